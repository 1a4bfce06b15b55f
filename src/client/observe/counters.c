/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of devices and lanes: summing them, and the public calls. */
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/queue/queue.h"

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void add_words(void *to, const void *from, size_t bytes, bool subtract) {
    uint64_t *sum = to;
    const uint64_t *part = from;
    for (size_t i = 0; i < bytes / sizeof *sum; i++) sum[i] += subtract ? 0 - part[i] : part[i];
}

/* Subtracts every counter except the queue depths, which are not sums. */
static void subtract_before(bh_lane_counters *counts, const bh_lane_counters *before) {
    size_t first = offsetof(bh_lane_counters, requests),
           depths = offsetof(bh_lane_counters, queue_depth),
           times = offsetof(bh_lane_counters, queued);
    add_words((char *)counts + first, (const char *)before + first, depths - first, true);
    add_words((char *)counts + times, (const char *)before + times, sizeof *counts - times, true);
}

void bh__counts_all_lanes(bh__device *device, bh_lane_counters *out) {
    size_t first = offsetof(bh_lane_counters, requests);
    *out = (bh_lane_counters){.size = sizeof *out, .index = UINT32_MAX};
    uint64_t depth_max = 0;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh_lane_counters lane;
        bh__counts_lane(device, &device->lanes[i], &lane);
        add_words((char *)out + first, (char *)&lane + first, sizeof lane - first, false);
        depth_max = larger(depth_max, lane.queue_depth_max);
    }
    out->queue_depth_max = depth_max;
}

void bh__counts_device(bh__device *device, bh_device_counters *out) {
    *out = device->counters;
    out->lanes = device->queue.lane_limit;
    out->losses = device->losses;
    out->print_dropped = atomic_load(&device->callback.printed.dropped);
}

/* ---- the public calls ---- */

bh_status bh_device_get_counters(bh_device handle, bh_device_counters *out) {
    if (bh__sized_check(out, "bh_device_counters") != BH_OK) return BH_E_INVALID;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_device_counters counters;
    bh__counts_device(device, &counters);
    bh__device_unlock(device);
    bh__sized_give(out, &counters, sizeof counters);
    return BH_OK;
}

bh_status bh_lane_get_counters(bh_device handle, bh_lane which, bh_lane_counters *out) {
    if (bh__sized_check(out, "bh_lane_counters") != BH_OK) return BH_E_INVALID;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bool all = which.id == BH_ALL_LANES.id;
    bh__lane *lane = all ? NULL : bh__lane_get(device, which);
    bh_lane_counters counts;
    if (all || lane) bh__counts_collect(device);
    if (all) {
        bh__counts_all_lanes(device, &counts);
    } else if (lane) {
        bh__counts_lane(device, lane, &counts);
        subtract_before(&counts, &lane->tally.before);
    }
    bh__device_unlock(device);
    if (!all && !lane) return bh__last()->status;
    bh__sized_give(out, &counts, sizeof counts);
    return BH_OK;
}
