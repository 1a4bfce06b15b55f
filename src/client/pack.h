/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and texts in a row of bytes, for what is kept on disk: a writer that grows and a reader
 * that believes nothing. */
#ifndef BH_CLIENT_PACK_H
#define BH_CLIENT_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "wire/compile.h"

/* Starts out zeroed. For want of memory, or past 4 GiB, `failed` is set and stays set. */
typedef struct bh__pack {
    uint8_t *data; /* Owned: bh__pack_free. */
    size_t count, capacity;
    bool failed;
} bh__pack;

/* Room for that many bytes more. */
void bh__pack_reserve(bh__pack *pack, size_t bytes);
void bh__pack_raw(bh__pack *pack, const void *data, size_t bytes);
void bh__pack_u64(bh__pack *pack, uint64_t value);
/* Its length, then the bytes. */
void bh__pack_bytes(bh__pack *pack, const void *data, size_t bytes);
void bh__pack_text(bh__pack *pack, const char *text);
void bh__pack_texts(bh__pack *pack, const bh__texts *texts);
void bh__pack_free(bh__pack *pack);

/* What does not fit sets `failed`, and gives zeros from then on. */
typedef struct bh__unpack {
    const uint8_t *data;
    size_t left;
    bool failed;
} bh__unpack;

bool bh__unpack_raw(bh__unpack *unpack, void *out, size_t bytes);
uint64_t bh__unpack_u64(bh__unpack *unpack);
/* At most `most`, or it fails. */
uint64_t bh__unpack_count(bh__unpack *unpack, uint64_t most);
/* Points into the data. */
bh__bytes bh__unpack_bytes(bh__unpack *unpack);
/* A copy, without a NUL inside; "" after a failure. */
const char *bh__unpack_text(bh__unpack *unpack, bh__arena *arena);
/* All was there and nothing is left. */
bool bh__unpack_ended(const bh__unpack *unpack);

#endif
