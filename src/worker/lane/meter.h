/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long requests were queued, waited and ran on a lane, and counts it in the worker's
 * area. The lane's thread calls all functions. docs/counters.md says what the times mean. */
#ifndef BH_WORKER_LANE_METER_H
#define BH_WORKER_LANE_METER_H

#include "worker/device.h"

enum { BH__METER_FLIGHT = 512 }; /* requests; more than can be queued at once */

typedef struct bh__meter_flight {
    uint64_t start, sequence, submitted, taken, begun; /* ticks */
    uint16_t timed, clock;                             /* see bh__work */
    bool skipped;
    uint64_t kernel; /* bh__kernel_key; 0: it is no launch */
} bh__meter_flight;

typedef struct bh__meter {
    bh__front *front;
    bh__area *area;
    uint32_t lane;
    uint64_t ended;       /* when something was last seen to be complete */
    uint64_t first, next; /* of the requests in flight; they never wrap */
    bh__meter_flight flights[BH__METER_FLIGHT];
} bh__meter;

void bh__meter_init(bh__meter *meter, bh__front *front, bh__area *area, uint32_t lane);
/* `work` was taken. */
void bh__meter_take(bh__meter *meter, bh__work *work);
/* So many slots were seen to be submitted and not complete. */
void bh__meter_depth(bh__meter *meter, uint64_t slots);
/* `work` is handed to the device; `waited`: it had to wait for something first. */
void bh__meter_begin(bh__meter *meter, bh__work *work, bool waited);
/* So many launches went as one train. */
void bh__meter_train(bh__meter *meter, uint32_t launches);

/* Direct lanes: before and after the `done` word of `work` is stored. */
void bh__meter_end(bh__meter *meter, const bh__work *work);
void bh__meter_count(bh__meter *meter, const bh__work *work);

/* Queued lanes: `work` is queued; all up to `done` was seen to be complete. `read`: see
 * bh__device_ops.clock_read; may be NULL. */
typedef bool bh__clock_read_fn(bh__device_lane *lane, uint32_t slot, uint64_t *out_ns);
void bh__meter_note(bh__meter *meter, const bh__work *work);
void bh__meter_see(bh__meter *meter, uint64_t done, bh__clock_read_fn *read,
                   bh__device_lane *device_lane);

#endif
