/* SPDX-License-Identifier: Apache-2.0 */
/* A free list of records of one size, for records that are allocated and freed often. The owner's
 * lock protects it. */
#ifndef BH_BASE_RECORDS_H
#define BH_BASE_RECORDS_H

#include <stddef.h>
#include <stdint.h>

typedef struct bh__records {
    void *first; /* each free record begins with the address of the next */
    int32_t count;
} bh__records;

/* Returns a record whose first `zeroed` bytes are zero, or NULL if memory is exhausted. All calls
 * for one bh__records pass the same size. */
void *bh__records_take(bh__records *records, size_t size, size_t zeroed);
void bh__records_give(bh__records *records, void *record);
void bh__records_free(bh__records *records);

#endif
