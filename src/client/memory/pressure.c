/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pressure: the listeners and their pending notifications. A notification allocates nothing:
 * each listener has one slot per reason, and events before it runs are merged into one. */
#include <string.h>

#include "client/callback/callback.h"
#include "client/core/handles.h"
#include "client/memory/memory.h"

static uint64_t threshold_of(const bh__device *device, const bh__listener *listener) {
    return listener->threshold ? listener->threshold
                               : device->options.memory_limit - device->options.memory_limit / 8;
}

static uint64_t low_of(uint64_t threshold) {
    return threshold - threshold / 16;
}

/* Called with dispatch_lock held. */
static void note(bh__device *device, bh__listener *listener, uint32_t reason, uint64_t asked) {
    bh_pressure *pending = &listener->pending[reason - 1];
    *pending = (bh_pressure){.size = sizeof *pending,
                             .reason = reason,
                             .threshold = threshold_of(device, listener),
                             .asked = asked,
                             .bytes_buffers = device->memory.bytes_allocated,
                             .bytes_reserved = bh__held_bytes(device),
                             .limit = device->options.memory_limit,
                             .times = pending->times + 1};
    listener->order[reason - 1] = ++device->memory.pressure.notes;
    atomic_store(&device->memory.pressure.due, true);
}

/* Sets the sizes at which the next listener must be notified. */
static void update_thresholds(bh__device *device) {
    device->memory.pressure.high = UINT64_MAX;
    device->memory.pressure.low = 0;
    for (uint32_t i = 0; i < device->memory.pressure.listener_count; i++) {
        uint64_t high = threshold_of(device, &device->memory.pressure.listeners[i]),
                 low = low_of(high);
        if (!device->memory.pressure.listeners[i].above && high < device->memory.pressure.high)
            device->memory.pressure.high = high;
        if (device->memory.pressure.listeners[i].above && low > device->memory.pressure.low)
            device->memory.pressure.low = low;
    }
}

void bh__pressure_cross(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool any = false;
    for (uint32_t i = 0; i < device->memory.pressure.listener_count; i++) {
        bh__listener *listener = &device->memory.pressure.listeners[i];
        uint64_t high = threshold_of(device, listener);
        bool above = device->memory.bytes_allocated >= (listener->above ? low_of(high) : high);
        if (above == listener->above) continue;
        listener->above = above;
        note(device, listener, above ? BH_PRESSURE_ABOVE : BH_PRESSURE_BELOW, 0);
        any = true;
    }
    update_thresholds(device);
    pthread_mutex_unlock(&device->dispatch_lock);
    if (any) bh__dispatcher_poke(device);
}

void bh__pressure_note(bh__device *device, uint32_t reason, uint64_t asked) {
    if (device->memory.pressure.listener_count == 0) return;
    pthread_mutex_lock(&device->dispatch_lock);
    for (uint32_t i = 0; i < device->memory.pressure.listener_count; i++)
        note(device, &device->memory.pressure.listeners[i], reason, asked);
    pthread_mutex_unlock(&device->dispatch_lock);
    bh__dispatcher_poke(device);
}

void bh__pressure_limit(bh__device *device) {
    if (device->memory.pressure.listener_count) bh__pressure_cross(device);
}

/* Takes the oldest pending notification. Called with dispatch_lock held. */
static bool take_note(bh__device *device, bh__listener *out, bh_pressure *pressure) {
    bh__listener *first = NULL;
    uint32_t first_reason = 0;
    for (uint32_t i = 0; i < device->memory.pressure.listener_count; i++) {
        bh__listener *listener = &device->memory.pressure.listeners[i];
        for (uint32_t reason = 0; reason < BH__PRESSURE_REASONS; reason++) {
            if (!listener->pending[reason].times) continue;
            if (first && first->order[first_reason] <= listener->order[reason]) continue;
            first = listener;
            first_reason = reason;
        }
    }
    if (!first) return false;
    *out = *first;
    *pressure = first->pending[first_reason];
    first->pending[first_reason].times = 0;
    bh__watch_run_begin(device, first->id);
    return true;
}

bool bh__pressure_run(bh__device *device) {
    if (!atomic_exchange(&device->memory.pressure.due, false)) return false;
    for (;;) {
        bh__listener listener;
        bh_pressure pressure;
        pthread_mutex_lock(&device->dispatch_lock);
        bool any = take_note(device, &listener, &pressure);
        pthread_mutex_unlock(&device->dispatch_lock);
        if (!any) return true;
        listener.pressed(listener.context, (bh_device){atomic_load(&device->id)}, &pressure);
        pthread_mutex_lock(&device->dispatch_lock);
        bh__watch_run_end(device);
        pthread_mutex_unlock(&device->dispatch_lock);
    }
}

bh_status bh_memory_watch(bh_device handle, uint64_t threshold, bh_pressure_fn *pressed,
                          void *context) {
    if (!pressed) return bh__refuse(BH_E_INVALID, "pass a function", "pressed is NULL");
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_status status = bh__dispatcher_start(device);
    if (status == BH_OK && device->memory.pressure.listener_count == BH__MAX_WATCHERS) {
        status = bh__refuse(BH_E_BUSY, "let one listener inform the others",
                            "the device has %d listeners, which is the maximum", BH__MAX_WATCHERS);
    } else if (status == BH_OK) {
        pthread_mutex_lock(&device->dispatch_lock);
        device->memory.pressure.listeners[device->memory.pressure.listener_count++] =
            (bh__listener){.id = bh__watch_id_new(device),
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
    bh__listener *list = device->memory.pressure.listeners;
    uint32_t i = 0;
    while (i < device->memory.pressure.listener_count &&
           (list[i].pressed != pressed || list[i].context != context))
        i++;
    bool found = i < device->memory.pressure.listener_count;
    uint64_t id = found ? list[i].id : 0;
    if (found) {
        uint32_t behind = --device->memory.pressure.listener_count - i;
        memmove(&list[i], &list[i + 1], behind * sizeof *list);
        update_thresholds(device);
    }
    pthread_mutex_unlock(&device->dispatch_lock);
    /* Release the lock: the listener that this thread waits for may call the device. */
    bh__device_step_out(device);
    pthread_mutex_lock(&device->dispatch_lock);
    bh__watch_run_wait(device, id);
    pthread_mutex_unlock(&device->dispatch_lock);
    bh__ticket_leave(device);
    return found ? BH_OK
                 : bh__refuse(BH_E_NOT_FOUND, "pass the function and context of bh_memory_watch",
                              "the device has no listener with this function and context");
}
