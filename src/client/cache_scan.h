/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a cache folder as a list. */
#ifndef BH_CLIENT_CACHE_SCAN_H
#define BH_CLIENT_CACHE_SCAN_H

#include "client/compile.h"

typedef struct bh__cache_file {
    char name[BH__ENTRY_NAME];
    uint64_t used_ns; /* since 1970 */
    uint64_t bytes;   /* that it takes on disk */
} bh__cache_file;

typedef struct bh__cache_files {
    bh__cache_file *list; /* Owned. */
    size_t count, capacity;
    uint64_t bytes;
} bh__cache_files;

/* All entries, in no order; what killed processes left behind is removed on the way. False: it
 * could not be read, or no host memory. */
bool bh__cache_scan(const bh__folder *folder, bh__cache_files *out);
/* Least recently used first. */
void bh__cache_sort(bh__cache_files *files);
void bh__cache_files_free(bh__cache_files *files);

#endif
