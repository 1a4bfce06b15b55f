/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pressure: who wants to hear of it, and what they have not heard yet. Nothing is allocated
 * to tell them: what happens twice before a listener runs is told once. */
#include <string.h>

#include "client/internal.h"

static uint64_t threshold_of(const bh__device *device, const bh__listener *listener) {
    return listener->threshold ? listener->threshold
                               : device->options.memory_limit - device->options.memory_limit / 8;
}

static uint64_t low_of(uint64_t threshold) {
    return threshold - threshold / 16;
}

/* With the dispatch lock held. */
static void note(bh__device *device, bh__listener *listener, uint32_t reason, uint64_t asked) {
    bh_pressure *said = &listener->said[reason - 1];
    *said = (bh_pressure){.size = sizeof *said,
                          .reason = reason,
                          .threshold = threshold_of(device, listener),
                          .asked = asked,
                          .bytes_buffers = device->bytes_allocated,
                          .bytes_reserved = bh__held_bytes(device),
                          .limit = device->options.memory_limit,
                          .times = said->times + 1};
    listener->order[reason - 1] = ++device->pressure_notes;
    atomic_store(&device->pressure_due, true);
}

/* The next sizes at which somebody must be told. */
static void aim(bh__device *device) {
    device->pressure_high = UINT64_MAX;
    device->pressure_low = 0;
    for (uint32_t i = 0; i < device->listener_count; i++) {
        uint64_t high = threshold_of(device, &device->listeners[i]), low = low_of(high);
        if (!device->listeners[i].above && high < device->pressure_high)
            device->pressure_high = high;
        if (device->listeners[i].above && low > device->pressure_low) device->pressure_low = low;
    }
}

void bh__pressure_cross(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool any = false;
    for (uint32_t i = 0; i < device->listener_count; i++) {
        bh__listener *listener = &device->listeners[i];
        uint64_t high = threshold_of(device, listener);
        bool above = device->bytes_allocated >= (listener->above ? low_of(high) : high);
        if (above == listener->above) continue;
        listener->above = above;
        note(device, listener, above ? BH_PRESSURE_ABOVE : BH_PRESSURE_BELOW, 0);
        any = true;
    }
    aim(device);
    pthread_mutex_unlock(&device->dispatch_lock);
    if (any) bh__dispatcher_poke(device);
}

void bh__pressure_note(bh__device *device, uint32_t reason, uint64_t asked) {
    if (device->listener_count == 0) return;
    pthread_mutex_lock(&device->dispatch_lock);
    for (uint32_t i = 0; i < device->listener_count; i++)
        note(device, &device->listeners[i], reason, asked);
    pthread_mutex_unlock(&device->dispatch_lock);
    bh__dispatcher_poke(device);
}

void bh__pressure_limit(bh__device *device) {
    if (device->listener_count) bh__pressure_cross(device);
}

/* The earliest thing that was not told yet. */
static bool take_note(bh__device *device, bh__listener *out, bh_pressure *pressure) {
    bh__listener *first = NULL;
    uint32_t what = 0;
    for (uint32_t i = 0; i < device->listener_count; i++) {
        bh__listener *listener = &device->listeners[i];
        for (uint32_t reason = 0; reason < BH__PRESSURE_REASONS; reason++) {
            if (!listener->said[reason].times) continue;
            if (first && first->order[what] <= listener->order[reason]) continue;
            first = listener;
            what = reason;
        }
    }
    if (!first) return false;
    *out = *first;
    *pressure = first->said[what];
    first->said[what].times = 0;
    bh__tell_begin(device, first->id);
    return true;
}

bool bh__pressure_run(bh__device *device) {
    if (!atomic_exchange(&device->pressure_due, false)) return false;
    for (;;) {
        bh__listener listener;
        bh_pressure pressure;
        pthread_mutex_lock(&device->dispatch_lock);
        bool any = take_note(device, &listener, &pressure);
        pthread_mutex_unlock(&device->dispatch_lock);
        if (!any) return true;
        listener.pressed(listener.context, (bh_device){atomic_load(&device->id)}, &pressure);
        pthread_mutex_lock(&device->dispatch_lock);
        bh__tell_end(device);
        pthread_mutex_unlock(&device->dispatch_lock);
    }
}

bh_status bh_memory_watch(bh_device handle, uint64_t threshold, bh_pressure_fn *pressed,
                          void *context) {
    if (!pressed) return bh__refuse(BH_E_INVALID, "pass a function", "pressed is NULL");
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_status status = bh__dispatcher_start(device);
    if (status == BH_OK && device->listener_count == BH__MAX_WATCHERS) {
        status = bh__refuse(BH_E_BUSY, "let one listener tell the others",
                            "the device has %d listeners, which is the most", BH__MAX_WATCHERS);
    } else if (status == BH_OK) {
        pthread_mutex_lock(&device->dispatch_lock);
        device->listeners[device->listener_count++] = (bh__listener){.id = bh__watch_id_new(device),
                                                                     .pressed = pressed,
                                                                     .context = context,
                                                                     .threshold = threshold};
        pthread_mutex_unlock(&device->dispatch_lock);
        bh__pressure_cross(device);
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_memory_unwatch(bh_device handle, bh_pressure_fn *pressed, void *context) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    pthread_mutex_lock(&device->dispatch_lock);
    bh__listener *list = device->listeners;
    uint32_t i = 0;
    while (i < device->listener_count && (list[i].pressed != pressed || list[i].context != context))
        i++;
    bool found = i < device->listener_count;
    uint64_t id = found ? list[i].id : 0;
    if (found) {
        uint32_t behind = --device->listener_count - i;
        memmove(&list[i], &list[i + 1], behind * sizeof *list);
        aim(device);
    }
    pthread_mutex_unlock(&device->dispatch_lock);
    /* The listener that is waited for may call the device. */
    bh__device_step_out(device);
    pthread_mutex_lock(&device->dispatch_lock);
    bh__tell_wait(device, id);
    pthread_mutex_unlock(&device->dispatch_lock);
    bh__ticket_leave(device);
    return found ? BH_OK
                 : bh__refuse(BH_E_NOT_FOUND, "pass what bh_memory_watch was given",
                              "the device has no listener with this function and context");
}
