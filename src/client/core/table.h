/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that map handles to objects. An index is reused only with another generation. */
#ifndef BH_CLIENT_CORE_TABLE_H
#define BH_CLIENT_CORE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bh__table_entry {
    void *object; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
} bh__table_entry;

typedef struct bh__table {
    bh__table_entry *entries;
    uint32_t count, capacity;
    uint32_t first_free; /* UINT32_MAX: none */
    uint32_t live;
    bool ready;
} bh__table;

enum { BH__GENERATION_BITS = 30, BH__INDEX_BITS = 22 };

/* Returns false if there is no host memory or the table is full. */
bool bh__table_add(bh__table *table, void *object, uint32_t *out_index, uint32_t *out_generation);
/* Returns NULL if there is no such object or it was removed. */
void *bh__table_get(const bh__table *table, uint32_t index, uint32_t generation);
void bh__table_remove(bh__table *table, uint32_t index);
/* Returns the next object from *cursor on and advances *cursor. NULL: end of the table. */
void *bh__table_next(const bh__table *table, uint32_t *cursor);

#endif
