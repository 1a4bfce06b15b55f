/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates of how long each kernel takes on a queued lane, from the times at which work was seen
 * to be complete. Estimates are too long rather than too short. */
#ifndef BH_WORKER_LANE_KERNEL_TIMES_H
#define BH_WORKER_LANE_KERNEL_TIMES_H

#include "worker/device.h"

enum {
    BH__TIMED_KERNELS = 64,  /* kernels that are remembered */
    BH__TIMED_REQUESTS = 512 /* in flight; more than can be queued at once */
};

typedef struct bh__kernel_time {
    uint32_t module, kernel;
    uint64_t ns; /* 0: nothing is known */
} bh__kernel_time;

/* One request that was queued and not yet seen to be complete. */
typedef struct bh__timed_request {
    uint64_t sequence;
    uint64_t queued_ns;
    uint32_t module, kernel;
    bool launch;
} bh__timed_request;

typedef struct bh__kernel_times {
    bh__kernel_time kernels[BH__TIMED_KERNELS];
    bh__timed_request requests[BH__TIMED_REQUESTS];
    uint64_t first, next; /* of the requests in flight; they never wrap */
    uint64_t seen_ns;     /* when something was last seen to be complete */
} bh__kernel_times;

/* The lane begins: nothing is in flight. */
void bh__kernel_times_begin(bh__kernel_times *times);
/* `work` was queued. */
void bh__kernel_times_queued(bh__kernel_times *times, const bh__work *work, uint64_t now_ns);
/* All up to `done` was seen to be complete. */
void bh__kernel_times_done(bh__kernel_times *times, uint64_t done, uint64_t now_ns);
/* The time that a kernel takes; UINT64_MAX: nothing is known. */
uint64_t bh__kernel_times_get(const bh__kernel_times *times, uint32_t module, uint32_t kernel);

#endif
