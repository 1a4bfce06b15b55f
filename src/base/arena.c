/* SPDX-License-Identifier: Apache-2.0 */
/* The arena: a list of chunks. A request that exceeds the usual size gets a chunk of its own
 * size. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct bh__arena_chunk {
    bh__arena_chunk *next;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
};

#define CHUNK_BYTES ((size_t)64 * 1024 - 64)

void *bh__arena_alloc(bh__arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (arena->chunks == NULL || arena->chunks->size - arena->used < bytes) {
        size_t want = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        bh__arena_chunk *chunk = calloc(1, sizeof *chunk + want);
        if (chunk == NULL) return NULL;
        chunk->size = want;
        if (arena->chunks != NULL && bytes > CHUNK_BYTES / 4) {
            /* A large object gets its own chunk; allocation continues in the newest chunk. */
            chunk->next = arena->chunks->next;
            arena->chunks->next = chunk;
            return chunk->bytes;
        }
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        arena->used = 0;
    }
    void *result = arena->chunks->bytes + arena->used;
    arena->used += bytes;
    return result;
}

char *bh__arena_copy(bh__arena *arena, const char *text, size_t length) {
    if (length == SIZE_MAX) return NULL;
    char *copy = bh__arena_alloc(arena, length + 1, 1);
    if (copy != NULL && length > 0) memcpy(copy, text, length);
    return copy;
}

void *bh__arena_grow(bh__arena *arena, void *array, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return array;
    size_t wanted = *capacity == 0 ? 8 : *capacity * 2;
    if (wanted <= count) return NULL;
    void *moved = bh__arena_alloc(arena, wanted, size);
    if (moved == NULL) return NULL;
    if (count > 0) memcpy(moved, array, count * size);
    *capacity = wanted;
    return moved;
}

void bh__arena_free(bh__arena *arena) {
    bh__arena_chunk *chunk = arena->chunks;
    while (chunk != NULL) {
        bh__arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    *arena = (bh__arena){0};
}
