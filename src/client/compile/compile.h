/* SPDX-License-Identifier: Apache-2.0 */
/* What the compile room offers to other rooms. in_flight.h describes how a request is processed. */
#ifndef BH_CLIENT_COMPILE_COMPILE_H
#define BH_CLIENT_COMPILE_COMPILE_H

#include <stdatomic.h>

#include "client/core/types.h"

/* Completes compiles in flight of a device with the error *why: the one with this ticket, or all of
 * them if `sequence` is 0. A compiler that no request waits for any more is killed. Returns the
 * number of compiles cancelled. Called without any lock held. */
unsigned bh__compiles_cancel(bh__device *device, uint64_t sequence, const bh_error *why);

/* The hook compile_native. */
bool bh__compile_start_native(bh__device *device, bh__module *module, uint32_t kernel,
                              uint32_t shapes);

/* Counters of this process (cache_calls.c). */
typedef struct bh__cache_counts {
    _Atomic uint64_t memory_hits, disk_hits, misses, joined, dropped, evicted, compiles;
} bh__cache_counts;
extern bh__cache_counts bh__cache_counted;
/* The counts of bh_cache_info. */
void bh__cache_counts_fill(bh_cache_info *info);

#endif
