/* SPDX-License-Identifier: Apache-2.0 */
/* Tables behind handles: growth, reuse and generations. */
#include <stdlib.h>

#include "base/hash.h"
#include "client/core/table.h"

enum { NO_ENTRY = UINT32_MAX, LAST_GENERATION = (1 << BH__GENERATION_BITS) - 1 };

static bool grow(bh__table *table) {
    uint32_t capacity = table->capacity ? table->capacity * 2 : 64;
    if (capacity > 1u << BH__INDEX_BITS) return false;
    bh__table_entry *entries = realloc(table->entries, capacity * sizeof *entries);
    if (!entries) return false;
    table->entries = entries;
    table->capacity = capacity;
    return true;
}

bool bh__table_add(bh__table *table, void *object, uint32_t *out_index, uint32_t *out_generation) {
    if (!table->ready) {
        table->first_free = NO_ENTRY;
        table->ready = true;
    }
    uint32_t index = table->first_free;
    if (index != NO_ENTRY) {
        table->first_free = table->entries[index].next_free;
    } else {
        if (table->count == table->capacity && !grow(table)) return false;
        index = table->count++;
        /* Start at a scattered generation, so that a guessed handle is almost never valid. */
        table->entries[index].generation =
            1 + (uint32_t)(bh__hash_u64((uintptr_t)table ^ index) & 0xffffff);
    }
    table->entries[index].object = object;
    table->live++;
    *out_index = index;
    *out_generation = table->entries[index].generation;
    return true;
}

void *bh__table_get(const bh__table *table, uint32_t index, uint32_t generation) {
    if (index >= table->count || table->entries[index].generation != generation) return NULL;
    void *object = table->entries[index].object;
    /* A buffer's record is the second cache line of its memory record. The caller also needs the
     * first line, and the next user of the record needs the third. */
    __builtin_prefetch((const void *)((uintptr_t)object - 64));
    __builtin_prefetch((const void *)((uintptr_t)object + 64));
    return object;
}

void bh__table_remove(bh__table *table, uint32_t index) {
    bh__table_entry *entry = &table->entries[index];
    entry->object = NULL;
    table->live--;
    /* An entry that has used up its generations is never reused, so old handles stay invalid. */
    if (entry->generation == LAST_GENERATION) {
        entry->generation = 0;
        return;
    }
    entry->generation++;
    entry->next_free = table->first_free;
    table->first_free = index;
}

void *bh__table_next(const bh__table *table, uint32_t *cursor) {
    while (*cursor < table->count) {
        void *object = table->entries[(*cursor)++].object;
        if (object) return object;
    }
    return NULL;
}
