/* SPDX-License-Identifier: Apache-2.0 */
/* Records of one size that come and go often: those given back are kept for the next to come. The
 * owner's lock guards them. */
#ifndef BH_BASE_RECORDS_H
#define BH_BASE_RECORDS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct bh__records {
    void *first; /* each begins with the address of the next */
    int32_t count;
} bh__records;

enum { BH__RECORD_ALIGN = 64 }; /* a cache line */

/* Sanitizers see use after free only if memory is really freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { BH__RECORDS_KEPT = -1 };
#else
enum { BH__RECORDS_KEPT = 1024 };
#endif

/* The first `zeroed` bytes are zero. NULL: no memory. All of one bh__records have the same size. */
static inline void *bh__records_take(bh__records *records, size_t size, size_t zeroed) {
    void *record = records->first;
    if (!record) {
        size = (size + BH__RECORD_ALIGN - 1) / BH__RECORD_ALIGN * BH__RECORD_ALIGN;
        record = aligned_alloc(BH__RECORD_ALIGN, size);
        return record ? memset(record, 0, size) : NULL;
    }
    memcpy(&records->first, record, sizeof records->first);
    records->count--;
    return memset(record, 0, zeroed);
}

static inline void bh__records_give(bh__records *records, void *record) {
    if (records->count > BH__RECORDS_KEPT) {
        free(record);
        return;
    }
    memcpy(record, &records->first, sizeof records->first);
    records->first = record;
    records->count++;
}

static inline void bh__records_free(bh__records *records) {
    while (records->first) {
        void *record = records->first;
        memcpy(&records->first, record, sizeof records->first);
        free(record);
    }
    records->count = 0;
}

#endif
