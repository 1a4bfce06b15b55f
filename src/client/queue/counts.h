/* SPDX-License-Identifier: Apache-2.0 */
/* Request counters, always on: the application counts submissions, workers count in their areas. */
#ifndef BH_CLIENT_QUEUE_COUNTS_H
#define BH_CLIENT_QUEUE_COUNTS_H

#include "client/core/types.h"
#include "wire/control.h"

/* The number of counters in a worker's bh__lane_counts. */
enum { BH__COUNT_WORDS = sizeof(bh__lane_counts) / sizeof(uint64_t) };
_Static_assert(sizeof(_Atomic uint64_t) == sizeof(uint64_t) &&
                   sizeof(bh__lane_counts) % sizeof(uint64_t) == 0,
               "counts are words and nothing else");

/* Work that was submitted as single requests or as steps of a sequence. */
typedef struct bh__work_tally {
    uint64_t launches, threads;
    uint64_t padding; /* thread slots beyond `threads` */
    uint64_t idle;    /* threads beyond the elements of launches that give their element count */
    uint64_t bytes_to_device, bytes_to_host, bytes_within;
} bh__work_tally;

static inline void bh__tally_launch(bh__work_tally *to, const bh__launch_body *body,
                                    uint64_t elements, uint32_t warp_mask) {
    uint64_t blocks = (uint64_t)body->grid[0] * body->grid[1] * body->grid[2];
    uint32_t threads = body->block[0] * body->block[1] * body->block[2], over = threads & warp_mask;
    uint64_t all = blocks * threads;
    to->launches++;
    to->threads += all;
    if (over) to->padding += blocks * (warp_mask + 1 - over);
    if (elements && elements < all) to->idle += all - elements;
}

static inline void bh__tally_copy(bh__work_tally *to, uint32_t op, uint64_t bytes) {
    switch (op) {
    case BH__OP_WRITE:
    case BH__OP_GLOBAL_WRITE:
    case BH__OP_WRITE_ROWS:
        to->bytes_to_device += bytes;
        break;
    case BH__OP_READ:
    case BH__OP_GLOBAL_READ:
    case BH__OP_READ_ROWS:
        to->bytes_to_host += bytes;
        break;
    case BH__OP_PREFETCH: /* the driver decides what it moves */
        break;
    default:
        to->bytes_within += bytes;
    }
}

/* The counters of one lane index, over all lanes that had it. Under the device's lock. */
typedef struct bh__lane_tally {
    /* Counted by the application. Requests are launches outside of sequences, transfers and
     * replays: see bh__tally_requests. */
    bh__work_tally work;
    uint64_t transfers, failed, lane_waits;
    uint64_t replays, step_launches;
    uint64_t depth_max;
    uint64_t past[BH__COUNT_WORDS]; /* counts of lost workers */
    uint64_t seen[BH__COUNT_WORDS]; /* counts of the active worker when last read */
    bh_lane_counters before;        /* the totals when the lane was last opened */
} bh__lane_tally;

static inline uint64_t bh__tally_requests(const bh__lane_tally *tally) {
    return tally->work.launches - tally->step_launches + tally->transfers + tally->replays;
}

/* All of these are called with the device locked, unless one says otherwise. */

/* Reads the worker's counters of all lanes. */
void bh__counts_collect(bh__device *device);
/* The worker is lost: reads its counters a last time and adds them to `past`. */
void bh__counts_settle(bh__device *device);
/* A lane index is reused for a new lane. */
void bh__counts_lane_opened(bh__device *device, bh__lane *lane);
/* The totals of one lane index since the device was opened. */
void bh__counts_lane(bh__device *device, bh__lane *lane, bh_lane_counters *out);
/* The sums over all lanes. */
void bh__counts_all_lanes(bh__device *device, bh_lane_counters *out);
void bh__counts_device(bh__device *device, bh_device_counters *out);

void bh__histogram_add(bh_histogram *to, uint64_t ns);

#endif
