/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: opening, closing, and waiting for all work of a lane or device. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/callback/callback.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/core/sized.h"
#include "client/jobs/jobs.h"
#include "client/queue/queue.h"

bh__lane *bh__lane_get(bh__device *device, bh_lane lane) {
    if (lane.id == 0) return &device->lanes[0];
    return bh__handle_get(device, lane.id, BH__KIND_LANE, "lane");
}

static bool lane_idle(bh__device *device, bh__lane *lane) {
    return bh__lane_done(device, lane) == atomic_load(&lane->tail);
}

/* Frees a closed lane whose work is done and whose results are written back, so that it can be
 * opened again. From now on its tickets are answered from the history. */
static void lane_free_if_done(bh__device *device, bh__lane *lane) {
    if (lane->state != BH__LANE_CLOSED || !lane_idle(device, lane) || lane->to_write_back) return;
    atomic_store(&lane->id, 0);
    bh__verdicts_close(lane->verdicts);
    lane->verdicts = NULL;
    lane->state = BH__LANE_FREE;
}

static bh__lane *lane_find_free(bh__device *device, int32_t priority) {
    for (uint32_t i = 1; i < BH__MAX_LANES; i++) {
        bh__lane *lane = &device->lanes[i];
        lane_free_if_done(device, lane);
        if (lane->state == BH__LANE_FREE && (!lane->exists || lane->priority == priority))
            return lane;
    }
    return NULL;
}

/* All lanes are in use: waits for a closed one that still has work. The lock is released meanwhile.
 * Returns false if there is none, or if the device no longer accepts work. */
static bool lane_wait_closed(bh__device *device, int32_t priority) {
    for (uint32_t i = 1; i < BH__MAX_LANES; i++) {
        bh__lane *lane = &device->lanes[i];
        if (lane->state != BH__LANE_CLOSED || lane->priority != priority) continue;
        uint64_t tail = atomic_load(&lane->tail);
        bh__device_step_out(device);
        (void)bh__lane_wait(device, lane, (bh_ticket){0, tail}, BH__NEVER);
        (void)bh__hooks.completing_wait(device, lane, tail, BH__NEVER);
        bh__device_step_in(device);
        return bh__takes_work(device);
    }
    return false;
}

/* Has the workers create the lane. The lock is released meanwhile; the state OPENING reserves the
 * lane. */
static bh_status lane_create(bh__device *device, bh__lane *lane) {
    lane->shadow = calloc(device->queue.length, sizeof *lane->shadow);
    if (!lane->shadow)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a lane's queue");
    lane->ring = bh__lane_ring(device->queue.front, device->queue.length, lane->index);
    bh__job job = {
        .kind = BH__JOB_ORDER,
        .order = {.type = BH__MSG_LANE_OPEN, .lane = {lane->index, lane->priority}, .fd = -1}};
    return bh__order_run(device, &job);
}

static bh_status refuse_full(const bh__device *device, int32_t priority) {
    uint32_t closed = 0;
    for (uint32_t i = 1; i < BH__MAX_LANES; i++)
        closed += device->lanes[i].exists && device->lanes[i].state != BH__LANE_OPEN;
    if (closed == 0)
        return bh__refuse(BH_E_BUSY, "release lanes that are not needed, or put more work on each",
                          "all %d lanes of the device are in use", BH__MAX_LANES);
    return bh__refuse(BH_E_BUSY, "open lanes with fewer different priorities",
                      "none of the device's %d lanes can have priority %d: %u are free, but were "
                      "created with another priority",
                      BH__MAX_LANES, (int)priority, closed);
}

static int32_t clamp_priority(const bh__device_facts *info, int32_t priority) {
    if (priority < info->priority_lowest) return info->priority_lowest;
    return priority > info->priority_highest ? info->priority_highest : priority;
}

/* Opens a FREE lane. On failure it stays FREE. */
static bh_status lane_open_free(bh__device *device, bh__lane *lane, int32_t priority,
                                uint32_t flags) {
    lane->state = BH__LANE_OPENING;
    uint64_t id = bh__lane_id_new(device->slot, lane->index);
    lane->verdicts = bh__verdicts_open(id, device->options.queue_length);
    lane->no_room_for_verdicts = false;
    bh_status status = lane->verdicts ? BH_OK
                                      : bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                                                   "no host memory for a lane's history");
    if (status == BH_OK && !lane->exists) {
        lane->priority = priority;
        status = lane_create(device, lane);
        if (status == BH_OK && !bh__takes_work(device)) status = bh__refuse_work(device);
    }
    if (status == BH_OK) status = bh__handle_add(device, BH__KIND_LANE, lane, &lane->handle);
    if (status == BH_OK) {
        bh__counts_lane_opened(device, lane);
        lane->no_block = flags & BH_LANE_NO_BLOCK;
        atomic_store(&lane->id, id);
        lane->state = BH__LANE_OPEN;
        atomic_fetch_add(&device->queue.open_lanes, 1);
        return BH_OK;
    }
    if (lane->verdicts) bh__verdicts_close(lane->verdicts);
    lane->verdicts = NULL;
    if (!lane->exists) {
        free(lane->shadow);
        lane->shadow = NULL;
    }
    lane->state = BH__LANE_FREE;
    return status;
}

bh_status bh_lane_open(bh_device handle, const bh_lane_options *given, bh_lane *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the lane", "out is NULL");
    bh_lane_options options = BH_INIT(options);
    if (bh__options_take(given, &options, "bh_lane_options") != BH_OK ||
        bh__reserved_check(options.reserved, "bh_lane_options") != BH_OK)
        return bh__last()->status;
    if (options.flags & ~(uint32_t)BH_LANE_NO_BLOCK)
        return bh__refuse(BH_E_INVALID, "use only BH_LANE_... flags",
                          "bh_lane_options.flags has unknown flags 0x%x",
                          options.flags & ~(uint32_t)BH_LANE_NO_BLOCK);
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    int32_t priority = clamp_priority(&device->info, options.priority);
    bh__lane *lane = lane_find_free(device, priority);
    while (!lane && lane_wait_closed(device, priority)) lane = lane_find_free(device, priority);
    bh_status status = BH_OK;
    if (lane)
        status = lane_open_free(device, lane, priority, options.flags);
    else if (bh__takes_work(device))
        status = refuse_full(device, priority);
    else
        status = bh__refuse_work(device);
    if (status == BH_OK) out->id = lane->handle;
    bh__device_unlock(device);
    return status;
}

bh_status bh_lane_release(bh_lane handle) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_LANE, "lane", false);
    if (!device) return bh__last()->status;
    bh__lane *lane = bh__handle_get(device, handle.id, BH__KIND_LANE, "lane");
    bh_status status = lane ? BH_OK : bh__last()->status;
    if (lane) {
        bh__handle_remove(device, handle.id);
        lane->handle = 0;
        lane->state = BH__LANE_CLOSED;
        atomic_fetch_sub(&device->queue.open_lanes, 1);
    }
    bh__device_unlock(device);
    return status;
}

/* Waits until all work now on the lane is done or has failed. Called with the lock held, returns
 * without it. */
static bh_status lane_drain(bh__device *device, bh__lane *lane, uint64_t deadline) {
    uint64_t tail = atomic_load(&lane->tail);
    bool nothing = tail == 0 || (lane->index != BH__LOAD_LANE && lane_idle(device, lane));
    bh__device_step_out(device);
    bh_status status = BH_OK;
    if (!nothing) status = bh__lane_wait(device, lane, (bh_ticket){0, tail}, deadline);
    if (tail && status != BH_E_TIMEOUT && atomic_load(&device->managed.to_write_back))
        status = bh__hooks.completing_wait(device, lane, tail, deadline);
    bh__ticket_leave(device);
    return status == BH_E_TIMEOUT ? status : BH_OK;
}

static bh_status refuse_timeout(const char *what, uint64_t timeout_ns) {
    return bh__refuse(
        timeout_ns ? BH_E_TIMEOUT : BH_E_BUSY, "wait longer, or give launches a deadline",
        "timed out after %llu ns: the %s still has work", (unsigned long long)timeout_ns, what);
}

bh_status bh_lane_sync(bh_lane handle, uint64_t timeout_ns) {
    uint64_t deadline = bh__deadline_after(timeout_ns);
    bh__device *device = bh__device_lock(handle.id, BH__KIND_LANE, "lane", false);
    if (!device) return bh__last()->status;
    bh__lane *lane = bh__handle_get(device, handle.id, BH__KIND_LANE, "lane");
    if (!lane) {
        bh__device_unlock(device);
        return bh__last()->status;
    }
    bh_status status = lane_drain(device, lane, deadline);
    return status == BH_OK ? BH_OK : refuse_timeout("lane", timeout_ns);
}

/* Waits until the dispatcher has been given the latest loss: the supervisor does that once the next
 * worker is activated. Returns false on timeout. Without the lock, inside. */
static bool losses_reported(bh__device *device, uint64_t deadline) {
    if (!bh__is_wanted(device, BH_EVENT_LOSS) || bh__supervises(device)) return true;
    while (atomic_load(&device->workers.loss_pending) && !bh__is_closing(device)) {
        if (bh__now_ns() >= deadline) return false;
        struct timespec pause = bh__timespec(BH__NS_PER_MS);
        nanosleep(&pause, NULL);
    }
    return true;
}

bh_status bh_device_sync(bh_device handle, uint64_t timeout_ns) {
    uint64_t deadline = bh__deadline_after(timeout_ns);
    for (uint32_t i = 0; i < BH__LANES; i++) {
        bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
        if (!device) return bh__last()->status;
        bh__lane *lane = &device->lanes[i];
        if (i < BH__MAX_LANES && !lane->exists) {
            bh__device_unlock(device);
            continue;
        }
        if (lane_drain(device, lane, deadline) != BH_OK)
            return refuse_timeout("device", timeout_ns);
    }
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh__device_step_out(device);
    /* Workers send the output of kernels to the supervisor before they complete the tickets. */
    bool in_time =
        losses_reported(device, deadline) &&
        (!bh__is_wanted(device, BH_EVENT_PRINT) || bh__workers_flush(device, deadline)) &&
        bh__dispatcher_drain(device, deadline);
    bh__ticket_leave(device);
    return in_time ? BH_OK : refuse_timeout("device", timeout_ns);
}
