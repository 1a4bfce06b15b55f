/* SPDX-License-Identifier: Apache-2.0 */
/* Events: losses, changes of health and the output of kernels, queued for watchers and delivered by
 * the dispatcher. Each goes to the watchers that existed when it happened. */
#include <stdlib.h>

#include "client/callback/callback.h"

/* ---- queueing ---- */

void bh__event_append(bh__device *device, bh__event *event) {
    event->next = NULL;
    event->last_watch = device->callback.last_watch_id;
    if (device->callback.events_last) {
        device->callback.events_last->next = event;
    } else {
        device->callback.events = event;
    }
    device->callback.events_last = event;
}

/* Returns NULL if there is no host memory. */
static bh__event *event_new(uint32_t kind) {
    bh__event *event = malloc(sizeof *event);
    if (!event) return NULL;
    event->kind = kind;
    event->text_bytes = event->text_room = 0;
    return event;
}

static void queue_event(bh__device *device, bh__event *event) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool running = device->callback.state == BH__DISPATCHER_RUNNING;
    if (running) bh__event_append(device, event);
    pthread_mutex_unlock(&device->dispatch_lock);
    if (running) {
        bh__dispatcher_poke(device);
    } else {
        free(event); /* the device is being closed */
    }
}

/* Without host memory, losses that were not told yet become one, the newest: its number says how
 * many there were. */
void bh__dispatch_loss(bh__device *device, const bh_loss *loss) {
    if (!bh__is_wanted(device, BH_EVENT_LOSS)) return;
    bh__event *event = event_new(BH_EVENT_LOSS);
    pthread_mutex_lock(&device->dispatch_lock);
    bh__callback_room *room = &device->callback;
    bool running = room->state == BH__DISPATCHER_RUNNING;
    bool merges = !event || room->merged.number;
    if (running && merges) {
        room->merged = *loss;
        room->merged_last_watch = room->last_watch_id;
    } else if (running) {
        event->u.loss = *loss;
        bh__event_append(device, event);
    }
    pthread_mutex_unlock(&device->dispatch_lock);
    if (!running || merges) free(event);
    if (running) bh__dispatcher_poke(device);
}

bool bh__dispatch_health(bh__device *device, const bh_health *health) {
    if (!bh__is_wanted(device, BH_EVENT_HEALTH)) return true;
    bh__event *event = event_new(BH_EVENT_HEALTH);
    if (!event) return false;
    event->u.health = *health;
    queue_event(device, event);
    return true;
}

/* ---- delivering ---- */

/* Finds the first watcher of this kind with an id above `last` and at most `limit`, and starts its
 * run. Returns false if there is none. */
static bool run_next(bh__device *device, uint32_t kind, uint64_t last, uint64_t limit,
                     bh__watch_run *out) {
    pthread_mutex_lock(&device->dispatch_lock);
    const bh__watcher *watcher = device->callback.watchers;
    while (watcher && (watcher->id <= last || !(watcher->kinds & kind))) watcher = watcher->next;
    bool found = watcher && watcher->id <= limit;
    if (found) bh__watch_run_begin(device, watcher, out);
    pthread_mutex_unlock(&device->dispatch_lock);
    return found;
}

static void deliver(bh__device *device, const bh_event *event, uint64_t limit) {
    bh__watch_run run = {0};
    while (run_next(device, event->kind, run.id, limit, &run)) {
        bh_event copy = *event; /* a watcher cannot change what the next one is told */
        bh__watch_tell(device, &run, &copy);
    }
}

static void run_event(bh__device *device, const bh__event *event) {
    bh_event told = {.kind = event->kind};
    switch (event->kind) {
    case BH_EVENT_LOSS:
        told.loss = &event->u.loss;
        break;
    case BH_EVENT_HEALTH:
        told.health = &event->u.health;
        break;
    default:
        told.text = event->text;
        told.length = event->text_bytes;
    }
    deliver(device, &told, event->last_watch);
    if (event->kind == BH_EVENT_PRINT) bh__printed_delivered(device, event);
}

bool bh__events_run(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bh__event *event = device->callback.events;
    device->callback.events = device->callback.events_last = NULL;
    bh__event merged = {.kind = BH_EVENT_LOSS,
                        .last_watch = device->callback.merged_last_watch,
                        .u.loss = device->callback.merged};
    device->callback.merged.number = 0;
    pthread_mutex_unlock(&device->dispatch_lock);
    bool any = event != NULL || merged.u.loss.number;
    while (event) {
        bh__event *next = event->next;
        run_event(device, event);
        free(event);
        event = next;
    }
    if (merged.u.loss.number) run_event(device, &merged); /* newer than all of these */
    char notice[BH__NOTICE_BYTES];
    size_t length = bh__printed_notice(device, notice);
    bh_event told = {.kind = BH_EVENT_PRINT, .text = notice, .length = length};
    if (length) deliver(device, &told, UINT64_MAX);
    return any || length;
}
