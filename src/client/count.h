/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted, always: by the application as it submits, by workers in their areas. */
#ifndef BH_CLIENT_COUNT_H
#define BH_CLIENT_COUNT_H

#include "wire/control.h"

struct bh__device;
struct bh__lane;
struct bh__submission;

/* The words of a worker's bh__lane_counts. */
enum { BH__COUNT_WORDS = sizeof(bh__lane_counts) / sizeof(uint64_t) };
_Static_assert(sizeof(_Atomic uint64_t) == sizeof(uint64_t) &&
                   sizeof(bh__lane_counts) % sizeof(uint64_t) == 0,
               "counts are words and nothing else");

/* Work, submitted by itself or as steps of a sequence. */
typedef struct bh__work_tally {
    uint64_t launches, threads;
    uint64_t padding; /* thread slots beyond `threads` */
    uint64_t idle;    /* threads beyond the elements, where the program said how many these are */
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
    case BH__OP_PREFETCH: /* what moves is the driver's affair */
        break;
    default:
        to->bytes_within += bytes;
    }
}

/* Of one lane index, with the device locked. */
typedef struct bh__lane_tally {
    /* What the application counts itself. Launches outside of sequences, transfers and replays
     * together are the requests. */
    bh__work_tally work;
    uint64_t transfers, failed;
    uint64_t replays, step_launches;
    uint64_t depth_max;
    uint64_t past[BH__COUNT_WORDS]; /* what lost workers had counted */
    uint64_t seen[BH__COUNT_WORDS]; /* what the present one was last seen to have counted */
    bh_lane_counts before;          /* all of it when the lane was last opened */
} bh__lane_tally;

static inline uint64_t bh__tally_requests(const bh__lane_tally *tally) {
    return tally->work.launches - tally->step_launches + tally->transfers + tally->replays;
}

/* Sets a worker's counts to zero, word by word. */
void bh__counts_clear(bh__lane_counts *counts);

/* All of these with the device locked. */

/* Looks at the workers' words of all lanes. */
void bh__counts_collect(struct bh__device *device);
/* The worker is lost: looks once more, and what it has counted is past. */
void bh__counts_settle(struct bh__device *device);
/* A lane index is given out anew. */
void bh__counts_lane_opened(struct bh__device *device, struct bh__lane *lane);
/* All that is known of one lane index since the device was opened. */
void bh__counts_lane(struct bh__device *device, struct bh__lane *lane, bh_lane_counts *out);
void bh__counts_device(struct bh__device *device, bh_counters *out);

void bh__histogram_add(bh_histogram *to, uint64_t ns);

#endif
