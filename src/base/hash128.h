/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 128-bit hash of bytes: several gigabytes per second and well mixed, so that two different files
 * do not collide by chance. Not resistant to deliberate collisions: where a wrong match would
 * matter, compare the bytes too.
 */
#ifndef BH_BASE_HASH128_H
#define BH_BASE_HASH128_H

#include <stddef.h>
#include <stdint.h>

void bh__hash128(const void *data, size_t bytes, uint64_t out[2]);

/* The same in pieces. The result does not depend on how the data is split. */
typedef struct bh__hash128_state {
    uint64_t lanes[4];
    uint64_t bytes;   /* so far */
    uint8_t rest[64]; /* bytes that do not fill a block yet */
} bh__hash128_state;

void bh__hash128_start(bh__hash128_state *state);
void bh__hash128_add(bh__hash128_state *state, const void *data, size_t bytes);
void bh__hash128_end(const bh__hash128_state *state, uint64_t out[2]);

#endif
