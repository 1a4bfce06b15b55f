/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing lanes: from here on nothing that the current worker writes is used. Supervisor only,
 * with the device locked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/observe/trace.h"
#include "client/process/worker_process.h"
#include "client/module/module.h"
#include "client/queue/queue.h"
#include "client/queue/walk.h"
#include "client/workers/judge_loss.h"

enum { MAX_PASSES = 1000 }; /* over the lanes' `done` words before the worker is killed */

/* Clamps a position that a worker wrote to possible values, and to the start of a request. */
static uint64_t clamp_position(bh__device *device, bh__lane *lane, uint64_t position,
                               uint64_t lowest) {
    uint64_t tail = atomic_load(&lane->tail);
    if (position < lowest || position > tail) return lowest;
    return position == tail ? tail : bh__shadow_at(device, lane, position)->start;
}

/* How far the worker has taken requests, by its claim word, which must not go back. If the word is
 * impossible, the worker may have started every request. */
static uint64_t clamp_claim(bh__device *device, bh__lane *lane, uint64_t claim) {
    uint64_t position = bh__claim_position(claim), tail = atomic_load(&lane->tail);
    uint64_t lowest = lane->floor > lane->claimed ? lane->floor : lane->claimed;
    if (position < lowest || position >= tail) return tail;
    return bh__shadow_at(device, lane, position)->start == position ? position : tail;
}

/* Freezes every lane before it reads any position: what has completed by then stays completed, and
 * the worker takes no more requests. */
void bh__lanes_freeze(bh__device *device, uint64_t taken[BH__MAX_LANES]) {
    bh__area *area = atomic_load(&device->queue.area);
    /* Before the freeze: what a worker has counted has completed, and stays completed. */
    bh__counts_settle(device);
    bh__kernels_settle(device);
    atomic_fetch_add(&device->queue.epoch, 1);
    /* The library's own flag: the worker could clear the freeze bits in its words. */
    atomic_store(&device->queue.halted, true);
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) atomic_fetch_or(&area->lane[i].claim, BH__FROZEN);
    /* What a thread was told has completed stays completed, even if the worker lowers its word. */
    uint64_t answered[BH__MAX_LANES];
    for (uint32_t i = 0; i < device->queue.lane_limit; i++)
        answered[i] = bh__answered_close(&device->lanes[i]);
    /* Requests in flight may still complete. The positions of all lanes must be from one moment:
     * otherwise a request could be seen completed although a request it depends on, read earlier,
     * is not. */
    uint64_t done[BH__MAX_LANES] = {0};
    uint32_t passes = 0;
    for (bool changed = true; changed && passes < 2 * MAX_PASSES; passes++) {
        /* A defective worker may count forever; its words have no meaning then. */
        if (passes == MAX_PASSES && device->workers.active)
            bh__process_kill(&device->workers.active->process);
        changed = false;
        for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
            uint64_t now = atomic_load(&area->lane[i].done);
            changed |= now != done[i];
            done[i] = now;
        }
    }
    /* Before any lane's floor moves: a reported request has not completed. Later reports are
     * ignored. */
    bh__reports_collect(device);
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (!lane->exists) continue;
        uint64_t known = clamp_position(device, lane, answered[i], lane->retired);
        bh__lane_retire(device, lane, clamp_position(device, lane, done[i], known));
        lane->floor = lane->retired;
        taken[i] = clamp_claim(device, lane, atomic_load(&area->lane[i].claim));
        if (taken[i] > lane->begun) lane->begun = taken[i];
    }
    device->queue.frozen = true;
    bh__trace_frozen(device, taken);
    bh__timed_frozen(device);
}

void bh__device_freeze(bh__device *device) {
    uint64_t taken[BH__MAX_LANES];
    if (!device->queue.frozen) bh__lanes_freeze(device, taken);
}
