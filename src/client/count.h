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

/* Of one lane index, with the device locked. */
typedef struct bh__lane_tally {
    /* What the application counts itself. Launches and transfers together are the requests. */
    uint64_t launches, threads, transfers, failed;
    uint64_t padding; /* thread slots beyond `threads` */
    uint64_t idle;    /* threads beyond the elements, where the program said how many these are */
    uint64_t bytes_to_device, bytes_to_host, bytes_within;
    uint64_t depth_max;
    uint64_t past[BH__COUNT_WORDS]; /* what lost workers had counted */
    uint64_t seen[BH__COUNT_WORDS]; /* what the present one was last seen to have counted */
    bh_lane_counts before;          /* all of it when the lane was last opened */
} bh__lane_tally;

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
