/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 128-bit hash of bytes: several gigabytes a second and well mixed, so that two different files
 * do not meet by chance. Not proof against someone who wants collisions: where a wrong match would
 * matter, compare the bytes too.
 */
#ifndef BH_BASE_HASH128_H
#define BH_BASE_HASH128_H

#include <stddef.h>
#include <stdint.h>

void bh__hash128(const void *data, size_t bytes, uint64_t out[2]);

/* The same piece by piece: the result does not depend on where the pieces were cut. */
typedef struct bh__hash128_state {
    uint64_t lanes[4];
    uint64_t bytes;   /* so far */
    uint8_t rest[64]; /* what does not fill a block yet */
} bh__hash128_state;

void bh__hash128_start(bh__hash128_state *state);
void bh__hash128_add(bh__hash128_state *state, const void *data, size_t bytes);
void bh__hash128_end(const bh__hash128_state *state, uint64_t out[2]);

#endif
