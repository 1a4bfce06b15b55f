/* SPDX-License-Identifier: Apache-2.0 */
/* Serializing numbers and texts for files: a writer that grows, and a reader that checks every
 * length before it uses it. */
#ifndef BH_CLIENT_COMPILE_PACK_H
#define BH_CLIENT_COMPILE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "wire/compile.h"

/* Starts zeroed. `failed` is set, and stays set, if host memory is exhausted or 4 GiB are
 * exceeded. */
typedef struct bh__pack {
    uint8_t *data; /* Owned: bh__pack_free. */
    size_t count, capacity;
    bool failed;
} bh__pack;

/* Makes room for that many more bytes. */
void bh__pack_reserve(bh__pack *pack, size_t bytes);
void bh__pack_raw(bh__pack *pack, const void *data, size_t bytes);
void bh__pack_u64(bh__pack *pack, uint64_t value);
/* Writes the length, then the bytes. */
void bh__pack_bytes(bh__pack *pack, const void *data, size_t bytes);
void bh__pack_text(bh__pack *pack, const char *text);
void bh__pack_texts(bh__pack *pack, const bh__texts *texts);
void bh__pack_free(bh__pack *pack);

/* A read past the end sets `failed`; that read and all later ones return zeros. */
typedef struct bh__unpack {
    const uint8_t *data;
    size_t left;
    bool failed;
} bh__unpack;

bool bh__unpack_raw(bh__unpack *unpack, void *out, size_t bytes);
uint64_t bh__unpack_u64(bh__unpack *unpack);
/* Reads a number. Fails if it exceeds `max`. */
uint64_t bh__unpack_count(bh__unpack *unpack, uint64_t max);
/* The result points into the data. */
bh__bytes bh__unpack_bytes(bh__unpack *unpack);
/* Returns a copy in the arena, or "" on failure. A text with a NUL inside fails. */
const char *bh__unpack_text(bh__unpack *unpack, bh__arena *arena);
/* Returns true if nothing failed and all data was read. */
bool bh__unpack_ended(const bh__unpack *unpack);

#endif
