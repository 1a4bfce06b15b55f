/* SPDX-License-Identifier: Apache-2.0 */
/* How a device is. The supervisor writes it down whenever it changes, so that it can be read without
 * the device's lock. */
#include <stdio.h>
#include <string.h>

#include "client/supervisor.h"

static uint32_t state_of(const bh__device *device) {
    switch (atomic_load(&device->state)) {
    case BH_DEVICE_STOPPED:
        return BH_HEALTH_STOPPED;
    case BH_DEVICE_REPLACING:
        return BH_HEALTH_REPLACING;
    default:
        return device->standbys_ready < device->options.standbys ? BH_HEALTH_DEGRADED
                                                                 : BH_HEALTH_OK;
    }
}

static void say_why(const bh__device *device, bh_health *out) {
    size_t room = sizeof out->reason;
    switch (out->state) {
    case BH_HEALTH_STOPPED:
        snprintf(out->reason, room, "%.*s", (int)room - 1, device->stop_reason.message);
        break;
    case BH_HEALTH_REPLACING:
        snprintf(out->reason, room, "the worker of generation %llu was lost: %.180s",
                 (unsigned long long)device->generation, device->loss.message);
        break;
    case BH_HEALTH_DEGRADED:
        if (device->degraded[0])
            snprintf(out->reason, room, "%.*s", (int)room - 1, device->degraded);
        else
            snprintf(out->reason, room, "%u of %u standbys are ready, the others are starting",
                     device->standbys_ready, device->options.standbys);
        break;
    default:
        break;
    }
}

static void list_standbys(bh__device *device, bh_health *out) {
    uint32_t count = 0;
    for (int ready = 1; ready >= 0; ready--) {
        for (uint32_t i = 0; i < BH__AREAS && count < BH__MAX_STANDBYS; i++) {
            bh__worker *worker = &device->workers[i];
            if (bh__is_standby(device, worker) && bh__is_ready(worker) == (ready != 0))
                out->standby_pids[count++] = worker->process.program.pid;
        }
    }
}

void bh__health_note(bh__device *device) {
    bh_health now = {.state = state_of(device),
                     .generation = device->generation,
                     .losses = device->losses,
                     .standbys_ready = device->standbys_ready,
                     .standbys = device->options.standbys,
                     .worker_pid = atomic_load(&device->worker_pid)};
    say_why(device, &now);
    list_standbys(device, &now);
    pthread_mutex_lock(&device->notes_lock);
    device->health = now;
    pthread_mutex_unlock(&device->notes_lock);
}

bh_status bh_device_get_health(bh_device handle, bh_health *out) {
    if (!out || out->size < sizeof(uint32_t) * 2)
        return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                          "out is NULL or its size is not set");
    bh__device *device = bh__device_enter(handle.id);
    if (!device) return bh__last()->status;
    pthread_mutex_lock(&device->notes_lock);
    bh_health health = device->health;
    pthread_mutex_unlock(&device->notes_lock);
    if (bh__is_closing(device)) {
        health.state = BH_HEALTH_CLOSING;
        snprintf(health.reason, sizeof health.reason, "the device is being closed");
    }
    bh__ticket_leave(device);
    health.size = out->size;
    memcpy(out, &health, out->size < sizeof health ? out->size : sizeof health);
    return BH_OK;
}
