/* SPDX-License-Identifier: Apache-2.0 */
/* Watchers: opening, calling and releasing them. events.c and memory/pressure.c say what they are
 * told. */
#include <stdlib.h>

#include "base/futex.h"
#include "client/callback/callback.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/core/sized.h"

enum { ALL_KINDS = BH_EVENT_LOSS | BH_EVENT_HEALTH | BH_EVENT_PRESSURE | BH_EVENT_PRINT };

/* ---- calling ---- */

void bh__watch_run_begin(bh__device *device, const bh__watcher *watcher, bh__watch_run *out) {
    *out = (bh__watch_run){watcher->id, watcher->told, watcher->context};
    device->callback.running_watch = watcher->id;
}

static void run_end(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    device->callback.running_watch = 0;
    if (device->callback.run_waiters) {
        atomic_fetch_add(&device->callback.runs_ended, 1);
        bh__futex_wake(&device->callback.runs_ended, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
    }
    pthread_mutex_unlock(&device->dispatch_lock);
}

void bh__watch_tell(bh__device *device, const bh__watch_run *run, bh_event *event) {
    event->size = sizeof *event;
    event->device = (bh_device){atomic_load(&device->id)};
    run->told(run->context, event);
    run_end(device);
}

/* Waits until the removed watcher with this id is not running. Returns at once on the dispatcher
 * thread. Called with dispatch_lock held, which is released while it waits. */
static void run_wait(bh__device *device, uint64_t id) {
    while (device->callback.running_watch == id &&
           !pthread_equal(pthread_self(), device->callback.thread)) {
        uint32_t seen = atomic_load(&device->callback.runs_ended);
        device->callback.run_waiters++;
        pthread_mutex_unlock(&device->dispatch_lock);
        bh__futex_wait(&device->callback.runs_ended, seen, BH__NEVER, BH__FUTEX_PRIVATE);
        pthread_mutex_lock(&device->dispatch_lock);
        device->callback.run_waiters--;
    }
}

/* ---- the list; called with dispatch_lock held ---- */

static void update_wanted(bh__device *device) {
    uint32_t kinds = 0;
    for (const bh__watcher *w = device->callback.watchers; w; w = w->next) kinds |= w->kinds;
    if ((kinds & BH_EVENT_PRINT) && !bh__is_wanted(device, BH_EVENT_PRINT))
        bh__printed_reset(&device->callback.printed);
    atomic_store(&device->callback.wanted, kinds);
}

static void append(bh__device *device, bh__watcher *watcher) {
    bh__watcher *last = device->callback.watchers_last;
    watcher->id = ++device->callback.last_watch_id;
    if (last) {
        last->next = watcher;
    } else {
        device->callback.watchers = watcher;
    }
    device->callback.watchers_last = watcher;
    update_wanted(device);
}

static void remove_from_list(bh__device *device, const bh__watcher *watcher) {
    bh__watcher *before = NULL, **link = &device->callback.watchers;
    while (*link != watcher) {
        before = *link;
        link = &before->next;
    }
    *link = watcher->next;
    if (device->callback.watchers_last == watcher) device->callback.watchers_last = before;
    update_wanted(device);
}

void bh__watchers_free(bh__device *device) {
    while (device->callback.watchers) {
        bh__watcher *watcher = device->callback.watchers;
        device->callback.watchers = watcher->next;
        bh__handle_remove(device, watcher->handle);
        free(watcher);
    }
}

/* ---- the public calls ---- */

static bh_status check_options(const bh_watch_options *options) {
    if (options->kinds & ~(uint32_t)ALL_KINDS)
        return bh__refuse(BH_E_INVALID, "combine BH_EVENT_... of this version, or pass 0 for all",
                          "bh_watch_options.kinds is 0x%x; 0x%x are known", options->kinds,
                          ALL_KINDS);
    if (options->pressure_threshold && options->kinds && !(options->kinds & BH_EVENT_PRESSURE))
        return bh__refuse(BH_E_INVALID,
                          "add BH_EVENT_PRESSURE to the kinds, or leave the threshold 0",
                          "pressure_threshold is %llu, but kinds (0x%x) has no BH_EVENT_PRESSURE",
                          (unsigned long long)options->pressure_threshold, options->kinds);
    return BH_OK;
}

/* Called with the device locked and the dispatcher started. */
static bh_status add_watcher(bh__device *device, const bh_watch_options *options,
                             bh_event_fn *callback, void *context, bh_watch *out) {
    bh__watcher *watcher = calloc(1, sizeof *watcher);
    if (!watcher)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a watch");
    watcher->kinds = options->kinds ? options->kinds : ALL_KINDS;
    watcher->told = callback;
    watcher->context = context;
    watcher->threshold = options->pressure_threshold;
    if (bh__handle_add(device, BH__KIND_WATCH, watcher, &watcher->handle) != BH_OK) {
        free(watcher);
        return bh__last()->status;
    }
    *out = (bh_watch){watcher->handle};
    pthread_mutex_lock(&device->dispatch_lock);
    append(device, watcher);
    pthread_mutex_unlock(&device->dispatch_lock);
    if (watcher->kinds & BH_EVENT_PRESSURE) bh__hooks.watched(device);
    return BH_OK;
}

bh_status bh_watch_open(bh_device handle, const bh_watch_options *options, bh_event_fn *callback,
                        void *context, bh_watch *out) {
    if (!callback) return bh__refuse(BH_E_INVALID, "pass a function", "callback is NULL");
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the watch", "out is NULL");
    bh_watch_options taken = {.size = sizeof taken};
    if (bh__options_take(options, &taken, "bh_watch_options") != BH_OK) return bh__last()->status;
    if (check_options(&taken) != BH_OK) return BH_E_INVALID;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_status status = bh__dispatcher_start(device);
    if (status == BH_OK) status = add_watcher(device, &taken, callback, context, out);
    bh__device_unlock(device);
    return status;
}

bh_status bh_watch_release(bh_watch watch) {
    bh__device *device = bh__device_lock(watch.id, BH__KIND_WATCH, "watch", false);
    if (!device) return bh__last()->status;
    bh__watcher *watcher = bh__handle_get(device, watch.id, BH__KIND_WATCH, "watch");
    if (!watcher) {
        bh__device_unlock(device);
        return BH_E_INVALID;
    }
    bh__handle_remove(device, watch.id);
    pthread_mutex_lock(&device->dispatch_lock);
    remove_from_list(device, watcher);
    pthread_mutex_unlock(&device->dispatch_lock);
    if (watcher->kinds & BH_EVENT_PRESSURE) bh__hooks.watched(device);
    /* Release the lock: the watcher that this thread waits for may call the device. */
    bh__device_step_out(device);
    pthread_mutex_lock(&device->dispatch_lock);
    run_wait(device, watcher->id);
    pthread_mutex_unlock(&device->dispatch_lock);
    bh__ticket_leave(device);
    free(watcher);
    return BH_OK;
}
