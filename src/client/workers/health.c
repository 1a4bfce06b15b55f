/* SPDX-License-Identifier: Apache-2.0 */
/* The health of a device. The supervisor updates it on every change, so that it can be read without
 * the device's lock, and tells watchers if the state is another. */
#include <stdio.h>
#include <string.h>

#include "client/callback/callback.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/workers/internal.h"
#include "client/workers/report.h"

/* A standby that executes an order, such as a module load, still counts: it takes over soon,
 * without a cold start. Otherwise every load would change the state. */
static uint32_t usable_standbys(const bh__device *device) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        const bh__worker *worker = &device->workers.workers[i];
        count += bh__is_standby(device, worker) && worker->caught_up;
    }
    return count;
}

static uint32_t state_of(const bh__device *device) {
    switch (atomic_load(&device->state)) {
    case BH__DEVICE_STOPPED:
        return BH_HEALTH_STOPPED;
    case BH__DEVICE_REPLACING:
        return BH_HEALTH_REPLACING;
    default:
        return usable_standbys(device) < device->options.standbys ? BH_HEALTH_DEGRADED
                                                                  : BH_HEALTH_OK;
    }
}

static void fill_reason(const bh__device *device, bh_health *out) {
    size_t room = sizeof out->reason;
    switch (out->state) {
    case BH_HEALTH_STOPPED:
        snprintf(out->reason, room, "%.*s", (int)room - 1, device->stop_reason.message);
        break;
    case BH_HEALTH_REPLACING:
        snprintf(out->reason, room, "the worker of generation %llu was lost: %.180s",
                 (unsigned long long)device->generation, device->workers.loss.message);
        break;
    case BH_HEALTH_DEGRADED:
        if (device->workers.degraded[0])
            snprintf(out->reason, room, "%.*s", (int)room - 1, device->workers.degraded);
        else
            snprintf(out->reason, room, "%u of %u standbys are ready, the others are starting",
                     device->workers.standbys_ready, device->options.standbys);
        break;
    default:
        break;
    }
}

static void list_standbys(bh__device *device, bh_health *out) {
    uint32_t count = 0;
    for (int ready = 1; ready >= 0; ready--) {
        for (uint32_t i = 0; i < BH__AREAS && count < BH__MAX_STANDBYS; i++) {
            bh__worker *worker = &device->workers.workers[i];
            if (bh__is_standby(device, worker) && bh__is_ready(worker) == (ready != 0))
                out->standby_pids[count++] = worker->process.program.pid;
        }
    }
}

/* Closing is not reported: the program does it itself. */
static void tell_watchers(bh__device *device, const bh_health *now) {
    if (now->state == device->workers.health_told || bh__is_closing(device)) return;
    if (bh__dispatch_health(device, now)) device->workers.health_told = now->state;
}

static bh_health read_health(bh__device *device, uint32_t state) {
    bool limited = !(device->options.flags & BH_DEVICE_NO_RESTART_LIMIT);
    bh_health now = {.size = sizeof now,
                     .state = state,
                     .generation = device->generation,
                     .losses = device->losses,
                     .restart_limit = limited ? device->options.restart_limit : UINT32_MAX,
                     .standbys_ready = device->workers.standbys_ready,
                     .standbys = device->options.standbys,
                     .worker_pid = atomic_load(&device->workers.worker_pid),
                     .lanes = atomic_load(&device->queue.open_lanes),
                     .losses_in_window =
                         bh__restarts_spent(&device->options, &device->workers.policy.budget)};
    list_standbys(device, &now);
    return now;
}

static void publish(bh__device *device, const bh_health *now) {
    bh__notes *notes = &device->workers.notes;
    bool replaced = now->generation != notes->health.generation || !now->worker_pid;
    pthread_mutex_lock(&device->notes_lock);
    notes->health = *now;
    notes->budget = device->workers.policy.budget;
    if (replaced) notes->running_since = 0;
    pthread_mutex_unlock(&device->notes_lock);
}

void bh__health_note(bh__device *device) {
    bh_health now = read_health(device, state_of(device));
    fill_reason(device, &now);
    publish(device, &now);
    tell_watchers(device, &now);
}

void bh__health_note_stopping(bh__device *device, const bh_error *reason) {
    bh_health now = read_health(device, BH_HEALTH_REPLACING);
    snprintf(now.reason, sizeof now.reason, "stopping: %.*s", (int)sizeof now.reason - 11,
             reason->message);
    publish(device, &now);
}

void bh__health_note_stop(bh__device *device, const bh_error *reason) {
    bh_health now = read_health(device, BH_HEALTH_STOPPED);
    now.standbys_ready = 0;
    snprintf(now.reason, sizeof now.reason, "%.*s", (int)sizeof now.reason - 1, reason->message);
    publish(device, &now);
}

void bh__health_note_running(bh__device *device, uint64_t since) {
    pthread_mutex_lock(&device->notes_lock);
    device->workers.notes.running_since = since;
    pthread_mutex_unlock(&device->notes_lock);
}

/* Fields that change without an update of the health. */
static void bring_up_to_date(bh__device *device, const bh__restart_budget *budget,
                             uint64_t running_since, bh_health *out) {
    uint64_t now = bh__now_ns();
    out->lanes = atomic_load(&device->queue.open_lanes);
    out->losses_in_window = bh__restarts_spent(&device->options, budget);
    if (running_since && now > running_since) out->oldest_running_ns = now - running_since;
    if (bh__is_closing(device)) {
        out->state = BH_HEALTH_CLOSING;
        snprintf(out->reason, sizeof out->reason, "the device is being closed");
    }
}

void bh__health_get(bh__device *device, bh_health *out) {
    pthread_mutex_lock(&device->notes_lock);
    *out = device->workers.notes.health;
    bh__restart_budget budget = device->workers.notes.budget;
    uint64_t running_since = device->workers.notes.running_since;
    pthread_mutex_unlock(&device->notes_lock);
    bring_up_to_date(device, &budget, running_since, out);
}

bh_status bh_device_get_health(bh_device handle, bh_health *out) {
    if (bh__sized_check(out, "bh_health") != BH_OK) return BH_E_INVALID;
    bh__device *device = bh__device_enter(handle.id);
    if (!device) return bh__last()->status;
    bh_health health;
    bh__health_get(device, &health);
    bh__ticket_leave(device);
    bh__sized_give(out, &health, sizeof health);
    return BH_OK;
}
