/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of devices and lanes: summing them, and the public calls. */
#include <string.h>

#include "client/compile/compile.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/queue/queue.h"

uint64_t bh_histogram_limit(uint32_t bucket) {
    return bucket < BH_HISTOGRAM_BUCKETS - 1 ? (uint64_t)256 << bucket : UINT64_MAX;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void add_words(void *to, const void *from, size_t bytes, bool subtract) {
    uint64_t *sum = to;
    const uint64_t *part = from;
    for (size_t i = 0; i < bytes / sizeof *sum; i++) sum[i] += subtract ? 0 - part[i] : part[i];
}

/* Subtracts every counter except the queue depths, which are not sums. */
static void subtract_before(bh_lane_counts *counts, const bh_lane_counts *before) {
    size_t first = offsetof(bh_lane_counts, requests),
           depths = offsetof(bh_lane_counts, queue_depth), times = offsetof(bh_lane_counts, queued);
    add_words((char *)counts + first, (const char *)before + first, depths - first, true);
    add_words((char *)counts + times, (const char *)before + times, sizeof *counts - times, true);
}

void bh__counts_process(bh_counters *out) {
    out->compiles = atomic_load(&bh__cache_counted.compiles);
    out->cache_memory_hits = atomic_load(&bh__cache_counted.memory_hits);
    out->cache_disk_hits = atomic_load(&bh__cache_counted.disk_hits);
    out->cache_misses = atomic_load(&bh__cache_counted.misses);
    out->cache_joined = atomic_load(&bh__cache_counted.joined);
}

void bh__counts_device(bh__device *device, bh_counters *out) {
    size_t first = offsetof(bh_lane_counts, requests);
    _Static_assert(offsetof(bh_counters, requests) == offsetof(bh_lane_counts, requests) &&
                       offsetof(bh_counters, running) == offsetof(bh_lane_counts, running),
                   "bh_counters begins with the counters of bh_lane_counts");
    bh__counts_collect(device);
    *out = device->counters;
    uint64_t depth_max = 0;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh_lane_counts lane;
        bh__counts_lane(device, &device->lanes[i], &lane);
        add_words((char *)out + first, (char *)&lane + first, sizeof lane - first, false);
        depth_max = larger(depth_max, lane.queue_depth_max);
    }
    out->queue_depth_max = depth_max;
    out->lanes = device->queue.lane_limit;
    out->losses = device->losses;
    out->print_dropped = atomic_load(&device->callback.printed.dropped);
    bh__counts_process(out);
}

/* ---- the public calls ---- */

bh_status bh_device_get_counters(bh_device handle, bh_counters *out) {
    if (bh__sized_check(out, "bh_counters") != BH_OK) return BH_E_INVALID;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_counters counters;
    bh__counts_device(device, &counters);
    bh__device_unlock(device);
    bh__sized_give(out, &counters, sizeof counters);
    return BH_OK;
}

bh_status bh_lane_get_counters(bh_device handle, bh_lane which, bh_lane_counts *out) {
    if (bh__sized_check(out, "bh_lane_counts") != BH_OK) return BH_E_INVALID;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh__lane *lane = bh__lane_get(device, which);
    bh_lane_counts counts;
    if (lane) {
        bh__counts_collect(device);
        bh__counts_lane(device, lane, &counts);
        subtract_before(&counts, &lane->tally.before);
        bh__sized_give(out, &counts, sizeof counts);
    }
    bh__device_unlock(device);
    return lane ? BH_OK : bh__last()->status;
}
