/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once: many small objects with one owner. */
#ifndef BH_BASE_ARENA_H
#define BH_BASE_ARENA_H

#include <stddef.h>

typedef struct bh__arena_chunk bh__arena_chunk;

/* Starts out zeroed. */
typedef struct bh__arena {
    bh__arena_chunk *chunks;
    size_t used; /* of the newest chunk */
} bh__arena;

/* Zeroed memory for `count` objects of `size` bytes, aligned for any type. NULL: no memory. */
void *bh__arena_alloc(bh__arena *arena, size_t count, size_t size);

/* A copy of `length` bytes with a NUL after them. NULL: no memory. */
char *bh__arena_copy(bh__arena *arena, const char *text, size_t length);

/*
 * Room for one more element in an array that grows: returns the array, moved if need be, with its
 * capacity doubled when `count` has reached it. NULL: no memory, and the array is as it was.
 */
void *bh__arena_grow(bh__arena *arena, void *array, size_t count, size_t *capacity, size_t size);

void bh__arena_free(bh__arena *arena);

#endif
