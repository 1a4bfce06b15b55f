/* SPDX-License-Identifier: Apache-2.0 */
/* How long requests were queued, waited and ran on a lane, counted in the worker's area. The lane's
 * thread calls all of it. docs/counters.md says what the times mean. */
#ifndef BH_WORKER_METER_H
#define BH_WORKER_METER_H

#include "worker/device.h"

enum { BH__METER_FLIGHT = 512 }; /* requests; more than can be queued at once */

typedef struct bh__meter_flight {
    uint64_t start, sequence, submitted, taken, begun; /* ticks */
    bool skipped;
} bh__meter_flight;

typedef struct bh__meter {
    bh__front *front;
    bh__area *area;
    uint32_t lane;
    uint64_t ended;       /* when something was last seen to be done */
    uint64_t first, next; /* of flights, counted without end */
    bh__meter_flight flights[BH__METER_FLIGHT];
} bh__meter;

void bh__meter_init(bh__meter *meter, bh__front *front, bh__area *area, uint32_t lane);
/* `work` was taken. `behind`: slots that are submitted and not done, if looked at; else 0. */
void bh__meter_take(bh__meter *meter, bh__work *work);
void bh__meter_depth(bh__meter *meter, uint64_t slots);
/* It is handed to the device; `waited`: after it was made to wait. */
void bh__meter_begin(bh__meter *meter, bh__work *work, bool waited);
/* Several went as one. */
void bh__meter_train(bh__meter *meter, uint32_t launches);

/* Devices that execute: it is done, and is about to be said so; it has been said. */
void bh__meter_end(bh__meter *meter, const bh__work *work);
void bh__meter_count(bh__meter *meter, const bh__work *work);

/* Devices with queues: it is queued; all up to `done` was seen to be done. */
void bh__meter_note(bh__meter *meter, const bh__work *work);
void bh__meter_see(bh__meter *meter, uint64_t done);

#endif
