/* SPDX-License-Identifier: Apache-2.0 */
/* Request counters per lane: those of the application and those that workers report. */
#include <string.h>

#include "client/queue/queue.h"
#include "wire/histogram.h"

/* ---- the workers' counters ---- */

static uint32_t word_of(size_t offset) {
    return (uint32_t)(offset / sizeof(uint64_t));
}

static bool is_sum(uint32_t word) {
    return word == word_of(offsetof(bh__lane_counts, queued.sum_ns)) ||
           word == word_of(offsetof(bh__lane_counts, waiting.sum_ns)) ||
           word == word_of(offsetof(bh__lane_counts, running.sum_ns));
}

/* A faulty worker may write any value. A value is used only if it is plausible: not lower than
 * before, and no more requests than were submitted. */
static void collect_lane(bh__device *device, bh__lane *lane) {
    const _Atomic uint64_t *words =
        (const _Atomic uint64_t *)(const void *)&atomic_load(&device->queue.area)
            ->lane[lane->index]
            .counts;
    uint64_t *seen = lane->tally.seen;
    for (uint32_t i = 0; i < BH__COUNT_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&words[i], memory_order_relaxed);
        uint64_t max = is_sum(i) ? UINT64_MAX >> 2 : bh__tally_requests(&lane->tally);
        if (i == word_of(offsetof(bh__lane_counts, depth_max))) max = device->queue.length;
        if (word > seen[i] && word <= max) seen[i] = word;
    }
}

void bh__counts_collect(bh__device *device) {
    for (uint32_t i = 0; i < device->queue.lane_limit && !device->queue.frozen; i++) {
        if (device->lanes[i].exists) collect_lane(device, &device->lanes[i]);
    }
}

/* A faulty worker may have reported very large counts: totals saturate. */
static uint64_t saturating_add(uint64_t a, uint64_t b) {
    return a + b < a ? UINT64_MAX : a + b;
}

void bh__counts_settle(bh__device *device) {
    bh__counts_collect(device);
    uint32_t depth = word_of(offsetof(bh__lane_counts, depth_max));
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane_tally *tally = &device->lanes[i].tally;
        for (uint32_t k = 0; k < BH__COUNT_WORDS; k++) {
            if (k != depth)
                tally->past[k] = saturating_add(tally->past[k], tally->seen[k]);
            else if (tally->seen[k] > tally->past[k])
                tally->past[k] = tally->seen[k];
        }
        memset(tally->seen, 0, sizeof tally->seen);
    }
}

/* ---- adding up ---- */

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

void bh__counts_lane(bh__device *device, bh__lane *lane, bh_lane_counters *out) {
    bh__lane_tally *tally = &lane->tally;
    uint64_t tail = atomic_load(&lane->tail);
    uint64_t depth = tail - bh__lane_done(device, lane);
    uint32_t depth_word = word_of(offsetof(bh__lane_counts, depth_max));
    tally->depth_max = larger(tally->depth_max, depth);
    const bh__work_tally *work = &tally->work;
    *out = (bh_lane_counters){.size = sizeof *out,
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
                              .bytes_within = work->bytes_within,
                              .lane_waits = tally->lane_waits,
                              .host_waits =
                                  atomic_load_explicit(&lane->host_waits, memory_order_relaxed)};
    out->trains = total(tally, offsetof(bh__lane_counts, trains));
    out->train_launches = total(tally, offsetof(bh__lane_counts, train_launches));
    out->queue_depth = depth;
    out->queue_depth_max =
        larger(tally->depth_max, larger(tally->past[depth_word], tally->seen[depth_word]));
    total_times(tally, offsetof(bh__lane_counts, queued), &out->queued);
    total_times(tally, offsetof(bh__lane_counts, waiting), &out->waiting);
    total_times(tally, offsetof(bh__lane_counts, running), &out->running);
}

void bh__counts_lane_opened(bh__device *device, bh__lane *lane) {
    bh__counts_collect(device);
    bh__counts_lane(device, lane, &lane->tally.before);
}
