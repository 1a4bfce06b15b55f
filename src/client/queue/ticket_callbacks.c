/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of tickets: any thread registers them, the dispatcher runs them once the ticket is done
 * or has failed. */
#include <stdlib.h>
#include <string.h>

#include "client/callback/callback.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/queue/queue.h"

static void run_callback(bh__device *device, const bh__callback *callback, bh_status status) {
    if (callback->done) {
        callback->done(callback->context, callback->ticket, status);
    } else {
        (void)bh__fd_poke(device->callback.event_fd);
    }
}

/* Tells the worker the lowest position of each lane at which it must wake the dispatcher. The
 * caller must check the callbacks once more afterwards: the worker may have passed a position
 * before it could see the request. */
static void post_notify(bh__device *device, const bh__callback *list,
                        const uint64_t *writing_back) {
    uint64_t lowest[BH__LANES];
    memcpy(lowest, writing_back, sizeof lowest);
    for (const bh__callback *callback = list; callback; callback = callback->next) {
        uint32_t lane = bh__lane_id_index(callback->ticket.lane);
        if (!callback->writing_back && callback->ticket.sequence < lowest[lane])
            lowest[lane] = callback->ticket.sequence;
    }
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        atomic_store(&device->queue.front->lane[i].notify_dispatch, lowest[i]);
    }
}

/* Writes transparent buffers back. BH_E_BUSY: lowers writing_back[lane] to the position to wait
 * for. */
static bh_status write_back(bh__device *device, bh__lane *lane, uint64_t sequence,
                            uint64_t *writing_back) {
    bh__lane *via = NULL;
    uint64_t position = BH__NEVER;
    bh_status status = bh__hooks.completing(device, lane, sequence, &via, &position);
    if (status == BH_E_BUSY && via && position < writing_back[via->index])
        writing_back[via->index] = position;
    return status;
}

/* Runs the callbacks of `*list` that are due, in the order of registration, and removes them.
 * Returns true if the list must be checked again. */
static bool run_due(bh__device *device, bh__callback **list, uint64_t *writing_back) {
    bool any = false;
    for (uint32_t i = 0; i < BH__LANES; i++) writing_back[i] = BH__NEVER;
    uint64_t busy[BH__LANES] = {0}; /* for each lane the first ticket that is not done */
    for (bh__callback **link = list; *link;) {
        bh__callback *callback = *link;
        bh__lane *lane = &device->lanes[bh__lane_id_index(callback->ticket.lane)];
        bool open = atomic_load(&lane->id) == callback->ticket.lane;
        bh_status status = open ? bh__lane_ask(device, lane, callback->ticket)
                                : bh__verdicts_status(callback->ticket);
        uint64_t *first_busy = &busy[lane->index];
        if (status == BH_E_BUSY) {
            if (*first_busy == 0 || callback->ticket.sequence < *first_busy) {
                *first_busy = callback->ticket.sequence;
            }
            link = &callback->next;
            continue;
        }
        /* An earlier ticket of this lane was busy a moment ago and must be done by now. Its
         * callback runs first, in the next round. */
        if (status == BH_OK && lane->index != BH__LOAD_LANE && *first_busy &&
            *first_busy < callback->ticket.sequence) {
            link = &callback->next;
            any = true;
            continue;
        }
        if (status == BH_OK && open) {
            if (atomic_load(&device->managed.to_write_back))
                status = write_back(device, lane, callback->ticket.sequence, writing_back);
            else
                bh__lane_note_written_back(device, lane, callback->ticket.sequence);
        }
        if (status == BH_E_BUSY) {
            callback->writing_back = true;
            link = &callback->next;
            continue;
        }
        *link = callback->next;
        run_callback(device, callback, status);
        free(callback);
        any = true;
    }
    return any;
}

static void take_new_callbacks(bh__device *device, bh__callback **list) {
    pthread_mutex_lock(&device->dispatch_lock);
    bh__callback *taken = device->callback.callbacks;
    device->callback.callbacks = NULL;
    pthread_mutex_unlock(&device->dispatch_lock);
    /* The newest is first in the list. Reverse it and append it to the others. */
    bh__callback *ordered = NULL;
    while (taken) {
        bh__callback *next = taken->next;
        taken->next = ordered;
        ordered = taken;
        taken = next;
    }
    while (*list) list = &(*list)->next;
    *list = ordered;
}

bool bh__callbacks_run(bh__device *device, bh__callback **pending) {
    uint64_t writing_back[BH__LANES], later[BH__LANES];
    take_new_callbacks(device, pending);
    bool any = run_due(device, pending, writing_back);
    post_notify(device, *pending, writing_back);
    any |= run_due(device, pending, later);
    for (uint32_t i = 0; i < BH__LANES; i++) any |= later[i] < writing_back[i];
    return any;
}

static bh_status register_callback(bh_ticket ticket, bh_done_fn *done, void *context) {
    bh__device *device;
    bh__lane *lane;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bool given = bh__ticket_enter(ticket, &device, &lane);
    if (!given || (lane && (ticket.sequence == 0 || ticket.sequence > atomic_load(&lane->tail)))) {
        if (lane) bh__ticket_leave(device);
        return bh__refuse_ticket(ticket);
    }
    if (!lane) {
        return bh__refuse(
            BH_E_STOPPED,
            "register callbacks before the lane is released and the device closed; use bh_wait now",
            "the ticket's lane was released, or its device closed");
    }
    bh_status status = bh__dispatcher_start(device);
    bh__callback *callback = status == BH_OK ? malloc(sizeof *callback) : NULL;
    if (callback) {
        *callback = (bh__callback){.ticket = ticket, .done = done, .context = context};
        pthread_mutex_lock(&device->dispatch_lock);
        bool stopping = device->callback.state != BH__DISPATCHER_RUNNING;
        if (!stopping) {
            callback->next = device->callback.callbacks;
            device->callback.callbacks = callback;
        }
        pthread_mutex_unlock(&device->dispatch_lock);
        if (stopping) {
            free(callback);
            status = bh__refuse_stopping();
        } else {
            bh__dispatcher_poke(device);
        }
    } else if (status == BH_OK) {
        status =
            bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a callback");
    }
    bh__ticket_leave(device);
    return status;
}

bh_status bh_on_done(bh_ticket ticket, bh_done_fn *done, void *context) {
    if (!done) return bh__refuse(BH_E_INVALID, "pass a function", "done is NULL");
    return register_callback(ticket, done, context);
}

bh_status bh_notify(bh_ticket ticket) {
    return register_callback(ticket, NULL, NULL);
}
