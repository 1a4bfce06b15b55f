/* SPDX-License-Identifier: Apache-2.0 */
/* Watchers: callbacks that run more than once, for losses and for the output of kernels. */
#include <stdlib.h>
#include <string.h>

#include "base/futex.h"
#include "client/callback/callback.h"
#include "client/core/handles.h"

/* ---- events: losses and text ---- */

void bh__event_append(bh__device *device, bh__event *event) {
    event->next = NULL;
    if (device->callback.events_last) {
        device->callback.events_last->next = event;
    } else {
        device->callback.events = event;
    }
    device->callback.events_last = event;
}

static void queue_event(bh__device *device, bh__event *event) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool running = device->callback.state == BH__DISPATCHER_RUNNING;
    if (running) bh__event_append(device, event);
    pthread_mutex_unlock(&device->dispatch_lock);
    if (running) {
        bh__dispatcher_poke(device);
    } else {
        free(event); /* no callback was ever registered, or the device is being closed */
    }
}

void bh__dispatch_loss(bh__device *device, const bh_loss *loss) {
    bh__event *event = malloc(sizeof *event);
    if (!event) return;
    event->is_loss = true;
    event->loss = *loss;
    event->text_bytes = event->text_room = 0;
    queue_event(device, event);
}

/* ---- running watchers ---- */

uint64_t bh__watch_id_new(bh__device *device) {
    return ++device->callback.last_watch_id;
}

void bh__watch_run_begin(bh__device *device, uint64_t id) {
    device->callback.running_watch = id;
}

void bh__watch_run_end(bh__device *device) {
    device->callback.running_watch = 0;
    if (device->callback.run_waiters == 0) return;
    atomic_fetch_add(&device->callback.runs_ended, 1);
    bh__futex_wake(&device->callback.runs_ended, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

void bh__watch_run_wait(bh__device *device, uint64_t id) {
    while (id && device->callback.running_watch == id &&
           !pthread_equal(pthread_self(), device->callback.thread)) {
        uint32_t seen = atomic_load(&device->callback.runs_ended);
        device->callback.run_waiters++;
        pthread_mutex_unlock(&device->dispatch_lock);
        bh__futex_wait(&device->callback.runs_ended, seen, BH__NEVER, BH__FUTEX_PRIVATE);
        pthread_mutex_lock(&device->dispatch_lock);
        device->callback.run_waiters--;
    }
}

static void end_run(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bh__watch_run_end(device);
    pthread_mutex_unlock(&device->dispatch_lock);
}

/* Finds the first watcher with an id above `last` and at most `limit`. Returns false if there is
 * none. */
static bool next_watcher(bh__device *device, uint64_t last, uint64_t limit, bh__watcher *out) {
    bool any = false;
    pthread_mutex_lock(&device->dispatch_lock);
    for (uint32_t i = 0; i < device->callback.watcher_count && !any; i++) {
        *out = device->callback.watchers[i];
        any = out->id > last && out->id <= limit;
    }
    if (any) bh__watch_run_begin(device, out->id);
    pthread_mutex_unlock(&device->dispatch_lock);
    return any;
}

static void deliver_text(bh__device *device, const char *text, size_t bytes) {
    pthread_mutex_lock(&device->dispatch_lock);
    bh_print_fn *print = device->callback.print;
    void *context = device->callback.print_context;
    if (print) bh__watch_run_begin(device, device->callback.print_id);
    pthread_mutex_unlock(&device->dispatch_lock);
    if (!print) return;
    print(context, text, bytes);
    end_run(device);
}

static void run_event(bh__device *device, const bh__event *event) {
    if (!event->is_loss) {
        deliver_text(device, event->text, event->text_bytes);
        bh__printed_delivered(device, event);
        return;
    }
    bh_device handle = {atomic_load(&device->id)};
    pthread_mutex_lock(&device->dispatch_lock);
    uint64_t limit = device->callback.last_watch_id;
    pthread_mutex_unlock(&device->dispatch_lock);
    bh__watcher watcher = {0};
    while (next_watcher(device, watcher.id, limit, &watcher)) {
        watcher.watch(watcher.context, handle, &event->loss);
        end_run(device);
    }
}

bool bh__events_run(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bh__event *event = device->callback.events;
    device->callback.events = device->callback.events_last = NULL;
    pthread_mutex_unlock(&device->dispatch_lock);
    bool any = event != NULL;
    while (event) {
        bh__event *next = event->next;
        run_event(device, event);
        free(event);
        event = next;
    }
    char notice[BH__NOTICE_BYTES];
    size_t length = bh__printed_notice(device, notice);
    if (length) deliver_text(device, notice, length);
    return any || length;
}

bool bh__losses_wanted(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool wanted = device->callback.watcher_count > 0;
    pthread_mutex_unlock(&device->dispatch_lock);
    return wanted;
}

/* ---- the public calls ---- */

bh_status bh_device_watch(bh_device handle, bh_watch_fn *watch, void *context) {
    if (!watch) return bh__refuse(BH_E_INVALID, "pass a function", "watch is NULL");
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_status status = bh__dispatcher_start(device);
    if (status == BH_OK) {
        pthread_mutex_lock(&device->dispatch_lock);
        if (device->callback.watcher_count < BH__MAX_WATCHERS) {
            device->callback.watchers[device->callback.watcher_count++] =
                (bh__watcher){bh__watch_id_new(device), watch, context};
        } else {
            status = BH_E_BUSY;
        }
        pthread_mutex_unlock(&device->dispatch_lock);
        if (status != BH_OK) {
            bh__refuse(status, "let one watcher inform the others",
                       "the device has %d watchers, which is the maximum", BH__MAX_WATCHERS);
        }
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_device_unwatch(bh_device handle, bh_watch_fn *watch, void *context) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    /* Release the lock: the watcher that this thread waits for may call the device. */
    bh__device_step_out(device);
    pthread_mutex_lock(&device->dispatch_lock);
    uint32_t i = 0;
    while (i < device->callback.watcher_count && (device->callback.watchers[i].watch != watch ||
                                                  device->callback.watchers[i].context != context))
        i++;
    bool found = i < device->callback.watcher_count;
    if (found) {
        uint64_t id = device->callback.watchers[i].id;
        uint32_t behind = --device->callback.watcher_count - i;
        memmove(&device->callback.watchers[i], &device->callback.watchers[i + 1],
                behind * sizeof *device->callback.watchers);
        bh__watch_run_wait(device, id);
    }
    pthread_mutex_unlock(&device->dispatch_lock);
    bh__ticket_leave(device);
    return found ? BH_OK
                 : bh__refuse(BH_E_NOT_FOUND, "pass the function and context of bh_device_watch",
                              "the device has no watcher with this function and context");
}

bh_status bh_device_on_print(bh_device handle, bh_print_fn *print, void *context) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_status status = print ? bh__dispatcher_start(device) : BH_OK;
    bh__device_step_out(device);
    if (status == BH_OK) {
        pthread_mutex_lock(&device->dispatch_lock);
        uint64_t before = device->callback.print_id;
        device->callback.print = print;
        device->callback.print_context = context;
        bh__printed_reset(&device->callback.printed);
        device->callback.print_id = bh__watch_id_new(device);
        bh__watch_run_wait(device, before);
        pthread_mutex_unlock(&device->dispatch_lock);
    }
    bh__ticket_leave(device);
    return status;
}
