/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pressure: watchers and their pending notifications. A notification allocates nothing: each
 * watcher has one slot per reason, and events before it runs are merged into one. */
#include "client/callback/callback.h"
#include "client/memory/memory.h"

static uint64_t threshold_of(const bh__device *device, const bh__watcher *watcher) {
    return watcher->threshold ? watcher->threshold
                              : device->options.memory_limit - device->options.memory_limit / 8;
}

static uint64_t low_of(uint64_t threshold) {
    return threshold - threshold / 16;
}

/* Called with dispatch_lock held. */
static void note(bh__device *device, bh__watcher *watcher, uint32_t reason, uint64_t asked) {
    bh_pressure *pending = &watcher->pending[reason - 1];
    *pending = (bh_pressure){.size = sizeof *pending,
                             .reason = reason,
                             .threshold = threshold_of(device, watcher),
                             .asked = asked,
                             .bytes_buffers = device->memory.bytes_allocated,
                             .bytes_reserved = bh__held_bytes(device),
                             .limit = device->options.memory_limit,
                             .times = pending->times + 1};
    watcher->order[reason - 1] = ++device->memory.pressure.notes;
    atomic_store(&device->memory.pressure.due, true);
}

/* Returns `watcher` or the first one after it that is told of pressure. */
static bh__watcher *next_of(bh__watcher *watcher) {
    while (watcher && !(watcher->kinds & BH_EVENT_PRESSURE)) watcher = watcher->next;
    return watcher;
}

static bh__watcher *first_of(const bh__device *device) {
    return next_of(device->callback.watchers);
}

/* Sets the sizes at which the next watcher must be told. */
static void update_thresholds(bh__device *device) {
    bh__pressures *self = &device->memory.pressure;
    self->high = UINT64_MAX;
    self->low = 0;
    for (bh__watcher *w = first_of(device); w; w = next_of(w->next)) {
        uint64_t high = threshold_of(device, w), low = low_of(high);
        if (!w->above && high < self->high) self->high = high;
        if (w->above && low > self->low) self->low = low;
    }
}

void bh__pressure_cross(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool any = false;
    for (bh__watcher *w = first_of(device); w; w = next_of(w->next)) {
        uint64_t high = threshold_of(device, w);
        bool above = device->memory.bytes_allocated >= (w->above ? low_of(high) : high);
        if (above == w->above) continue;
        w->above = above;
        note(device, w, above ? BH_PRESSURE_ABOVE : BH_PRESSURE_BELOW, 0);
        any = true;
    }
    update_thresholds(device);
    pthread_mutex_unlock(&device->dispatch_lock);
    if (any) bh__dispatcher_poke(device);
}

void bh__pressure_note(bh__device *device, uint32_t reason, uint64_t asked) {
    if (!bh__is_wanted(device, BH_EVENT_PRESSURE)) return;
    pthread_mutex_lock(&device->dispatch_lock);
    for (bh__watcher *w = first_of(device); w; w = next_of(w->next)) note(device, w, reason, asked);
    pthread_mutex_unlock(&device->dispatch_lock);
    bh__dispatcher_poke(device);
}

void bh__pressure_limit(bh__device *device) {
    if (bh__is_wanted(device, BH_EVENT_PRESSURE)) bh__pressure_cross(device);
}

/* Takes the oldest pending notification and starts the run of its watcher. Called with
 * dispatch_lock held. */
static bool take_note(bh__device *device, bh__watch_run *run, bh_pressure *pressure) {
    bh__watcher *first = NULL;
    uint32_t first_reason = 0;
    for (bh__watcher *w = first_of(device); w; w = next_of(w->next)) {
        for (uint32_t reason = 0; reason < BH__PRESSURE_REASONS; reason++) {
            if (!w->pending[reason].times) continue;
            if (first && first->order[first_reason] <= w->order[reason]) continue;
            first = w;
            first_reason = reason;
        }
    }
    if (!first) return false;
    *pressure = first->pending[first_reason];
    first->pending[first_reason].times = 0;
    bh__watch_run_begin(device, first, run);
    return true;
}

bool bh__pressure_run(bh__device *device) {
    if (!atomic_exchange(&device->memory.pressure.due, false)) return false;
    for (;;) {
        bh__watch_run run;
        bh_pressure pressure;
        pthread_mutex_lock(&device->dispatch_lock);
        bool any = take_note(device, &run, &pressure);
        pthread_mutex_unlock(&device->dispatch_lock);
        if (!any) return true;
        bh_event event = {.kind = BH_EVENT_PRESSURE, .pressure = &pressure};
        bh__watch_tell(device, &run, &event);
    }
}
