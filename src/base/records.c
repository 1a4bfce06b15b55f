/* SPDX-License-Identifier: Apache-2.0 */
/* The free list of records. */
#include "base/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/cache_line.h"

/* Sanitizers detect use after free only if memory is really freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(BH__SIMULATED)
enum { MAX_KEPT = -1 };
#else
enum { MAX_KEPT = 1024 };
#endif

void *bh__records_take(bh__records *records, size_t size, size_t zeroed) {
    void *record = records->first;
    if (!record) {
        size = (size + BH__CACHE_LINE - 1) / BH__CACHE_LINE * BH__CACHE_LINE;
        record = aligned_alloc(BH__CACHE_LINE, size);
        return record ? memset(record, 0, size) : NULL;
    }
    memcpy(&records->first, record, sizeof records->first);
    records->count--;
    return memset(record, 0, zeroed);
}

void bh__records_give(bh__records *records, void *record) {
    if (records->count > MAX_KEPT) {
        free(record);
        return;
    }
    memcpy(record, &records->first, sizeof records->first);
    records->first = record;
    records->count++;
}

void bh__records_free(bh__records *records) {
    while (records->first) {
        void *record = records->first;
        memcpy(&records->first, record, sizeof records->first);
        free(record);
    }
    records->count = 0;
}
