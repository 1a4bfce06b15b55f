/* SPDX-License-Identifier: Apache-2.0 */
/* Records of one size that come and go often: those given back are kept for the next to come. The
 * owner's lock guards them. */
#ifndef BH_BASE_RECORDS_H
#define BH_BASE_RECORDS_H

#include <stddef.h>
#include <stdint.h>

typedef struct bh__records {
    void *first; /* each begins with the address of the next */
    int32_t count;
} bh__records;

/* The first `zeroed` bytes are zero. NULL: no memory. All of one bh__records have the same size. */
void *bh__records_take(bh__records *records, size_t size, size_t zeroed);
void bh__records_give(bh__records *records, void *record);
void bh__records_free(bh__records *records);

#endif
