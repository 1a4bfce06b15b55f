/* SPDX-License-Identifier: Apache-2.0 */
/* Counters: adding up what the application and its workers have counted. */
#include "client/count.h"

#include <string.h>

#include "base/histogram.h"
#include "client/compile.h"

/* ---- words of workers ---- */

void bh__counts_clear(bh__lane_counts *counts) {
    _Atomic uint64_t *words = (_Atomic uint64_t *)(void *)counts;
    for (uint32_t i = 0; i < BH__COUNT_WORDS; i++)
        atomic_store_explicit(&words[i], 0, memory_order_relaxed);
}

static uint32_t word_of(size_t offset) {
    return (uint32_t)(offset / sizeof(uint64_t));
}

static bool is_sum(uint32_t word) {
    return word == word_of(offsetof(bh__lane_counts, queued.sum_ns)) ||
           word == word_of(offsetof(bh__lane_counts, waiting.sum_ns)) ||
           word == word_of(offsetof(bh__lane_counts, running.sum_ns));
}

/* A worker may write anything. What it says counts if it can be: never less than before, no more
 * requests than were submitted. */
static void collect_lane(bh__device *device, bh__lane *lane) {
    const _Atomic uint64_t *words =
        (const _Atomic uint64_t *)(const void *)&atomic_load(&device->area)
            ->lane[lane->index]
            .counts;
    uint64_t *seen = lane->tally.seen;
    for (uint32_t i = 0; i < BH__COUNT_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&words[i], memory_order_relaxed);
        uint64_t most = is_sum(i) ? UINT64_MAX >> 2 : bh__tally_requests(&lane->tally);
        if (i == word_of(offsetof(bh__lane_counts, depth_max))) most = device->front->queue_length;
        if (word > seen[i] && word <= most) seen[i] = word;
    }
}

void bh__counts_collect(bh__device *device) {
    for (uint32_t i = 0; i < device->lane_limit && !device->frozen; i++) {
        if (device->lanes[i].exists) collect_lane(device, &device->lanes[i]);
    }
}

void bh__counts_settle(bh__device *device) {
    bh__counts_collect(device);
    uint32_t depth = word_of(offsetof(bh__lane_counts, depth_max));
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        bh__lane_tally *tally = &device->lanes[i].tally;
        for (uint32_t k = 0; k < BH__COUNT_WORDS; k++) {
            if (k != depth)
                tally->past[k] += tally->seen[k];
            else if (tally->seen[k] > tally->past[k])
                tally->past[k] = tally->seen[k];
        }
        memset(tally->seen, 0, sizeof tally->seen);
    }
}

/* ---- adding up ---- */

uint64_t bh_histogram_limit(uint32_t bucket) {
    return bucket < BH_HISTOGRAM_BUCKETS - 1 ? (uint64_t)256 << bucket : UINT64_MAX;
}

void bh__histogram_add(bh_histogram *to, uint64_t ns) {
    to->count++;
    to->sum_ns += ns;
    to->buckets[bh__histogram_bucket(ns)]++;
}

static uint64_t total(const bh__lane_tally *tally, size_t offset) {
    return tally->past[word_of(offset)] + tally->seen[word_of(offset)];
}

static void total_times(const bh__lane_tally *tally, size_t offset, bh_histogram *out) {
    out->count = 0;
    out->sum_ns = total(tally, offset + offsetof(bh__times_counted, sum_ns));
    for (uint32_t i = 0; i < BH_HISTOGRAM_BUCKETS; i++) {
        out->buckets[i] =
            total(tally, offset + offsetof(bh__times_counted, buckets[0]) + i * sizeof(uint64_t));
        out->count += out->buckets[i];
    }
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

void bh__counts_lane(bh__device *device, bh__lane *lane, bh_lane_counts *out) {
    bh__lane_tally *tally = &lane->tally;
    uint64_t tail = atomic_load(&lane->tail);
    uint64_t depth = tail - bh__lane_done(device, lane);
    uint32_t most = word_of(offsetof(bh__lane_counts, depth_max));
    tally->depth_max = larger(tally->depth_max, depth);
    const bh__work_tally *work = &tally->work;
    *out = (bh_lane_counts){.size = sizeof *out,
                            .index = lane->index,
                            .requests = bh__tally_requests(tally),
                            .launches = work->launches,
                            .failed = tally->failed,
                            .elements = work->threads - work->idle,
                            .threads = work->threads,
                            .thread_slots = work->threads + work->padding,
                            .thread_slots_wasted = work->padding + work->idle,
                            .bytes_to_device = work->bytes_to_device,
                            .bytes_to_host = work->bytes_to_host,
                            .bytes_within = work->bytes_within};
    out->trains = total(tally, offsetof(bh__lane_counts, trains));
    out->train_launches = total(tally, offsetof(bh__lane_counts, train_launches));
    out->queue_depth = depth;
    out->queue_depth_max = larger(tally->depth_max, larger(tally->past[most], tally->seen[most]));
    total_times(tally, offsetof(bh__lane_counts, queued), &out->queued);
    total_times(tally, offsetof(bh__lane_counts, waiting), &out->waiting);
    total_times(tally, offsetof(bh__lane_counts, running), &out->running);
}

void bh__counts_lane_opened(bh__device *device, bh__lane *lane) {
    bh__counts_collect(device);
    bh__counts_lane(device, lane, &lane->tally.before);
}

static void add_words(void *to, const void *from, size_t bytes, bool subtract) {
    uint64_t *sum = to;
    const uint64_t *part = from;
    for (size_t i = 0; i < bytes / sizeof *sum; i++) sum[i] += subtract ? 0 - part[i] : part[i];
}

/* From the first counter to the end, but for the depths. */
static void subtract_before(bh_lane_counts *counts, const bh_lane_counts *before) {
    size_t first = offsetof(bh_lane_counts, requests),
           depths = offsetof(bh_lane_counts, queue_depth), times = offsetof(bh_lane_counts, queued);
    add_words((char *)counts + first, (const char *)before + first, depths - first, true);
    add_words((char *)counts + times, (const char *)before + times, sizeof *counts - times, true);
}

void bh__counts_device(bh__device *device, bh_counters *out) {
    size_t first = offsetof(bh_lane_counts, requests);
    _Static_assert(offsetof(bh_counters, requests) == offsetof(bh_lane_counts, requests) &&
                       offsetof(bh_counters, running) == offsetof(bh_lane_counts, running),
                   "a device's counters begin as a lane's do");
    bh__counts_collect(device);
    *out = device->tally;
    uint64_t depth_max = 0;
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        bh_lane_counts lane;
        bh__counts_lane(device, &device->lanes[i], &lane);
        add_words((char *)out + first, (char *)&lane + first, sizeof lane - first, false);
        depth_max = larger(depth_max, lane.queue_depth_max);
    }
    out->queue_depth_max = depth_max;
    out->lanes = device->lane_limit;
    out->losses = device->losses;
    out->compiles = atomic_load(&bh__cache_counted.compiles);
    out->cache_memory_hits = atomic_load(&bh__cache_counted.memory_hits);
    out->cache_disk_hits = atomic_load(&bh__cache_counted.disk_hits);
    out->cache_misses = atomic_load(&bh__cache_counted.misses);
    out->cache_joined = atomic_load(&bh__cache_counted.joined);
}

/* ---- the public calls ---- */

static bh_status refuse_size(const char *what, uint32_t size) {
    return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT", "%s.size is %u", what,
                      size);
}

bh_status bh_device_counters(bh_device handle, bh_counters *out) {
    if (!out || out->size < 2 * sizeof(uint32_t))
        return refuse_size("bh_counters", out ? out->size : 0);
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_counters counters;
    bh__counts_device(device, &counters);
    bh__device_unlock(device);
    counters.size = out->size;
    memcpy(out, &counters, out->size < sizeof counters ? out->size : sizeof counters);
    return BH_OK;
}

bh_status bh_lane_counters(bh_device handle, bh_lane which, bh_lane_counts *out) {
    if (!out || out->size < 2 * sizeof(uint32_t))
        return refuse_size("bh_lane_counts", out ? out->size : 0);
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh__lane *lane = bh__lane_get(device, which);
    bh_lane_counts counts;
    if (lane) {
        bh__counts_collect(device);
        bh__counts_lane(device, lane, &counts);
        subtract_before(&counts, &lane->tally.before);
        counts.size = out->size;
        memcpy(out, &counts, out->size < sizeof counts ? out->size : sizeof counts);
    }
    bh__device_unlock(device);
    return lane ? BH_OK : bh__last()->status;
}
