/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once: many small objects with one owner. */
#ifndef BH_BASE_ARENA_H
#define BH_BASE_ARENA_H

#include <stddef.h>

typedef struct bh__arena_chunk bh__arena_chunk;

/* Starts zeroed. */
typedef struct bh__arena {
    bh__arena_chunk *chunks;
    size_t used; /* of the newest chunk */
} bh__arena;

/* Returns zeroed memory for `count` objects of `size` bytes, aligned for any type, or NULL if
 * memory is exhausted. */
void *bh__arena_alloc(bh__arena *arena, size_t count, size_t size);

/* Returns a copy of `length` bytes with a NUL after them, or NULL if memory is exhausted. */
char *bh__arena_copy(bh__arena *arena, const char *text, size_t length);

/*
 * Makes room for one more element of an array: if `count` has reached the capacity, moves the array
 * and doubles the capacity. Returns the array, or NULL, with the array unchanged, if memory is
 * exhausted.
 */
void *bh__arena_grow(bh__arena *arena, void *array, size_t count, size_t *capacity, size_t size);

void bh__arena_free(bh__arena *arena);

#endif
