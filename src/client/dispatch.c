/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatcher: one thread a device that runs the program's callbacks, with no lock held. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/thread.h"
#include "client/internal.h"

/* The program may have closed a descriptor that is not its own: there is a second one for the same
 * eventfd, which also wakes whoever sleeps on the first. -1: both are gone. */
static int poke_fd(const bh__device *device) {
    if (bh__fd_is_ours(device->dispatch_fd)) return device->dispatch_fd;
    return bh__fd_is_ours(device->dispatch_spare_fd) ? device->dispatch_spare_fd : -1;
}

void bh__dispatcher_poke(bh__device *device) {
    (void)bh__fd_poke(poke_fd(device));
}

static void wait_for_poke(bh__device *device) {
    struct pollfd look = {.fd = poke_fd(device), .events = POLLIN};
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    if (look.fd >= 0) poll(&look, 1, -1);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    if (look.fd < 0 || (look.revents & POLLNVAL)) {
        /* Callbacks must run even so. */
        struct timespec pause = bh__timespec(10 * BH__NS_PER_MS);
        nanosleep(&pause, NULL);
        return;
    }
    uint64_t count;
    int fd = poke_fd(device);
    ssize_t ignored = fd >= 0 ? read(fd, &count, sizeof count) : 0;
    (void)ignored;
}

/* ---- events: losses and text ---- */

static void queue_event(bh__device *device, bh__event *event) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool running = device->dispatcher_state == BH__DISPATCHER_RUNNING;
    if (running) {
        event->next = NULL;
        if (device->events_last) {
            device->events_last->next = event;
        } else {
            device->events = event;
        }
        device->events_last = event;
    }
    pthread_mutex_unlock(&device->dispatch_lock);
    if (running) {
        bh__dispatcher_poke(device);
    } else {
        free(event); /* nobody has asked for callbacks */
    }
}

void bh__dispatch_text(bh__device *device, const void *text, size_t bytes) {
    bh__event *event = malloc(sizeof *event + bytes);
    if (!event) return;
    event->is_loss = false;
    event->text_bytes = bytes;
    memcpy(event->text, text, bytes);
    queue_event(device, event);
}

void bh__dispatch_loss(bh__device *device, const bh_loss *loss) {
    bh__event *event = malloc(sizeof *event);
    if (!event) return;
    event->is_loss = true;
    event->loss = *loss;
    event->text_bytes = 0;
    queue_event(device, event);
}

/* ---- who is told more than once ---- */

uint64_t bh__watch_id_new(bh__device *device) {
    return ++device->last_watch_id;
}

void bh__tell_begin(bh__device *device, uint64_t id) {
    device->telling = id;
}

void bh__tell_end(bh__device *device) {
    device->telling = 0;
    if (device->told_waiters == 0) return;
    atomic_fetch_add(&device->told, 1);
    bh__futex_wake(&device->told, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

void bh__tell_wait(bh__device *device, uint64_t id) {
    while (id && device->telling == id && !pthread_equal(pthread_self(), device->dispatcher)) {
        uint32_t seen = atomic_load(&device->told);
        device->told_waiters++;
        pthread_mutex_unlock(&device->dispatch_lock);
        bh__futex_wait(&device->told, seen, BH__NEVER, BH__FUTEX_PRIVATE);
        pthread_mutex_lock(&device->dispatch_lock);
        device->told_waiters--;
    }
}

static void end_telling(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bh__tell_end(device);
    pthread_mutex_unlock(&device->dispatch_lock);
}

/* The first watcher after `last` that was there by `limit`. False: there is none. */
static bool next_watcher(bh__device *device, uint64_t last, uint64_t limit, bh__watcher *out) {
    bool any = false;
    pthread_mutex_lock(&device->dispatch_lock);
    for (uint32_t i = 0; i < device->watcher_count && !any; i++) {
        *out = device->watchers[i];
        any = out->id > last && out->id <= limit;
    }
    if (any) bh__tell_begin(device, out->id);
    pthread_mutex_unlock(&device->dispatch_lock);
    return any;
}

static void tell_text(bh__device *device, const bh__event *event) {
    pthread_mutex_lock(&device->dispatch_lock);
    bh_print_fn *print = device->print;
    void *context = device->print_context;
    if (print) bh__tell_begin(device, device->print_id);
    pthread_mutex_unlock(&device->dispatch_lock);
    if (!print) return;
    print(context, event->text, event->text_bytes);
    end_telling(device);
}

static void run_event(bh__device *device, const bh__event *event) {
    if (!event->is_loss) {
        tell_text(device, event);
        return;
    }
    bh_device handle = {atomic_load(&device->id)};
    pthread_mutex_lock(&device->dispatch_lock);
    uint64_t limit = device->last_watch_id;
    pthread_mutex_unlock(&device->dispatch_lock);
    bh__watcher watcher = {0};
    while (next_watcher(device, watcher.id, limit, &watcher)) {
        watcher.watch(watcher.context, handle, &event->loss);
        end_telling(device);
    }
}

static bool run_events(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bh__event *event = device->events;
    device->events = device->events_last = NULL;
    pthread_mutex_unlock(&device->dispatch_lock);
    bool any = event != NULL;
    while (event) {
        bh__event *next = event->next;
        run_event(device, event);
        free(event);
        event = next;
    }
    return any;
}

/* ---- callbacks of tickets ---- */

static void run_callback(bh__device *device, const bh__callback *callback, bh_status status) {
    if (callback->done) {
        callback->done(callback->context, callback->ticket, status);
    } else {
        (void)bh__fd_poke(device->event_fd);
    }
}

/* Has the worker poke us when the first of these is done; then looks once more, in case it was done
 * before it could see that. */
static void post_notify(bh__device *device, const bh__callback *list, const uint64_t *homing) {
    uint64_t lowest[BH__LANES];
    memcpy(lowest, homing, sizeof lowest);
    for (const bh__callback *callback = list; callback; callback = callback->next) {
        uint32_t lane = (uint32_t)(callback->ticket.lane >> 16) & 0xff;
        if (!callback->homing && callback->ticket.sequence < lowest[lane])
            lowest[lane] = callback->ticket.sequence;
    }
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        atomic_store(&device->front->lane[i].notify_dispatch, lowest[i]);
    }
}

/* Whether what transparent buffers were written with is there. If not, `homing` gets what to wait for. */
static bool is_home(bh__device *device, bh__lane *lane, uint64_t sequence, uint64_t *homing) {
    bh__lane *via = NULL;
    uint64_t position = BH__NEVER;
    if (bh__managed_home(device, lane, sequence, &via, &position) == BH_OK) return true;
    if (via && position < homing[via->index]) homing[via->index] = position;
    return false;
}

/* Runs what is due of `*list`, in the order it was registered, and leaves the rest in it. */
static bool run_due(bh__device *device, bh__callback **list, uint64_t *homing) {
    bool any = false;
    for (uint32_t i = 0; i < BH__LANES; i++) homing[i] = BH__NEVER;
    uint64_t busy[BH__LANES] = {0}; /* the first ticket of a lane that was not done yet */
    for (bh__callback **link = list; *link;) {
        bh__callback *callback = *link;
        bh__lane *lane = &device->lanes[(callback->ticket.lane >> 16) & 0xff];
        bool open = atomic_load(&lane->id) == callback->ticket.lane;
        bh_status status = open ? bh__lane_ask(device, lane, callback->ticket)
                                : bh__history_status(callback->ticket);
        uint64_t *first_busy = &busy[lane->index];
        if (status == BH_E_BUSY) {
            if (*first_busy == 0 || callback->ticket.sequence < *first_busy) {
                *first_busy = callback->ticket.sequence;
            }
            link = &callback->next;
            continue;
        }
        /* Done meanwhile, and so is the one before it: that one first, in another round. */
        if (status == BH_OK && lane->index != BH__LOAD_LANE && *first_busy &&
            *first_busy < callback->ticket.sequence) {
            link = &callback->next;
            any = true;
            continue;
        }
        if (status == BH_OK && open && atomic_load(&device->unhomed) &&
            !is_home(device, lane, callback->ticket.sequence, homing)) {
            callback->homing = true;
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
    bh__callback *taken = device->callbacks;
    device->callbacks = NULL;
    pthread_mutex_unlock(&device->dispatch_lock);
    /* Registered last, listed first: turn them round and put them behind the others. */
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

/* A thread that is cancelled leaves its frames, which the address sanitizer must be told. */
static void leave_frames(void *unused) {
    (void)unused;
#ifdef __SANITIZE_ADDRESS__
    void __asan_handle_no_return(void);
    __asan_handle_no_return();
#endif
}

/* Runs what is due. True: there may be more. */
static bool run_round(bh__device *device, bh__callback **pending) {
    uint64_t homing[BH__LANES], later[BH__LANES];
    bool any = run_events(device);
    any |= bh__pressure_run(device);
    take_new_callbacks(device, pending);
    any |= run_due(device, pending, homing);
    post_notify(device, *pending, homing);
    any |= run_due(device, pending, later);
    for (uint32_t i = 0; i < BH__LANES; i++) any |= later[i] < homing[i];
    return any;
}

static void *dispatcher_main(void *argument) {
    bh__device *device = argument;
    bh__callback *pending = NULL;
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_cleanup_push(leave_frames, NULL);
    for (bool stop = false; !stop;) {
        if (run_round(device, &pending)) continue;
        pthread_mutex_lock(&device->dispatch_lock);
        bool empty = !device->events && !device->callbacks && !atomic_load(&device->pressure_due);
        stop = device->dispatcher_state == BH__DISPATCHER_STOPPING && empty && !pending;
        if (stop) device->dispatcher_state = BH__DISPATCHER_STOPPED;
        pthread_mutex_unlock(&device->dispatch_lock);
        if (!empty) continue;
        atomic_fetch_add(&device->drained, 1);
        bh__futex_wake(&device->drained, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
        if (!stop) wait_for_poke(device);
    }
    pthread_cleanup_pop(0);
    return NULL;
}

/* ---- starting and stopping ---- */

static bh_status refuse_stopping(void) {
    return bh__refuse(BH_E_STOPPED, "register callbacks before closing the device",
                      "the device is being closed");
}

bh_status bh__dispatcher_start(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    int failed = 0;
    if (device->dispatcher_state == BH__DISPATCHER_NONE) {
        failed = bh__thread_start(&device->dispatcher, NULL, dispatcher_main, device);
        if (!failed) device->dispatcher_state = BH__DISPATCHER_RUNNING;
    }
    bool ending = device->dispatcher_state > BH__DISPATCHER_RUNNING;
    pthread_mutex_unlock(&device->dispatch_lock);
    if (ending) return refuse_stopping();
    if (failed)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "raise the limit on threads",
                          "cannot start a thread: error %d", failed);
    return BH_OK;
}

/* Once, by the thread that closes the device. One that was never started never will be. */
void bh__dispatcher_stop(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool running = device->dispatcher_state == BH__DISPATCHER_RUNNING;
    device->dispatcher_state = running ? BH__DISPATCHER_STOPPING : BH__DISPATCHER_STOPPED;
    pthread_mutex_unlock(&device->dispatch_lock);
    if (!running) return;
    bh__dispatcher_poke(device);
    /* One that sleeps where nothing can wake it any more has nothing to run and holds nothing. */
    if (poke_fd(device) < 0) pthread_cancel(device->dispatcher);
    pthread_join(device->dispatcher, NULL);
    pthread_mutex_lock(&device->dispatch_lock);
    device->dispatcher_state = BH__DISPATCHER_STOPPED;
    pthread_mutex_unlock(&device->dispatch_lock);
    atomic_fetch_add(&device->drained, 1);
    bh__futex_wake(&device->drained, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

/* Whether there is a round to wait for: not from inside one. */
static bool dispatcher_runs(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool runs = device->dispatcher_state == BH__DISPATCHER_RUNNING ||
                device->dispatcher_state == BH__DISPATCHER_STOPPING;
    runs = runs && !pthread_equal(pthread_self(), device->dispatcher);
    pthread_mutex_unlock(&device->dispatch_lock);
    return runs;
}

bool bh__dispatcher_drain(bh__device *device, uint64_t deadline) {
    uint32_t first = atomic_load(&device->drained);
    for (;;) {
        uint32_t seen = atomic_load(&device->drained);
        /* One whole round that began after now. */
        if (seen - first >= 2 || !dispatcher_runs(device)) return true;
        /* One that sleeps where nothing can wake it has nothing to run either. */
        bool deaf = poke_fd(device) < 0;
        uint64_t soon = bh__deadline_after(BH__NS_PER_S / 10);
        uint64_t until = deaf && soon < deadline ? soon : deadline;
        bh__dispatcher_poke(device);
        if (bh__futex_wait(&device->drained, seen, until, BH__FUTEX_PRIVATE)) continue;
        if (atomic_load(&device->drained) == seen) return deaf;
    }
}

/* ---- the public calls ---- */

static bh_status register_callback(bh_ticket ticket, bh_done_fn *done, void *context) {
    bh__device *device;
    bh__lane *lane;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bool given = bh__ticket_enter(ticket, &device, &lane);
    if (!given || (lane && (ticket.sequence == 0 || ticket.sequence > atomic_load(&lane->tail)))) {
        if (lane) bh__ticket_leave(device);
        return bh__refuse(BH_E_INVALID, "pass a ticket that a Bulkhead call has filled in",
                          "the ticket was never given out");
    }
    if (!lane) {
        return bh__refuse(
            BH_E_STOPPED,
            "register callbacks before closing the lane or device; ask with bh_query now",
            "the ticket's lane or device is closed");
    }
    bh_status status = bh__dispatcher_start(device);
    bh__callback *callback = status == BH_OK ? malloc(sizeof *callback) : NULL;
    if (callback) {
        *callback = (bh__callback){.ticket = ticket, .done = done, .context = context};
        pthread_mutex_lock(&device->dispatch_lock);
        bool stopping = device->dispatcher_state != BH__DISPATCHER_RUNNING;
        if (!stopping) {
            callback->next = device->callbacks;
            device->callbacks = callback;
        }
        pthread_mutex_unlock(&device->dispatch_lock);
        if (stopping) {
            free(callback);
            status = refuse_stopping();
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

bh_status bh_device_eventfd(bh_device handle, int *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the descriptor", "out_fd is NULL");
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    *out = device->event_fd;
    bh__device_unlock(device);
    return BH_OK;
}

bh_status bh_device_watch(bh_device handle, bh_watch_fn *watch, void *context) {
    if (!watch) return bh__refuse(BH_E_INVALID, "pass a function", "watch is NULL");
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_status status = bh__dispatcher_start(device);
    if (status == BH_OK) {
        pthread_mutex_lock(&device->dispatch_lock);
        if (device->watcher_count < BH__MAX_WATCHERS) {
            device->watchers[device->watcher_count++] =
                (bh__watcher){bh__watch_id_new(device), watch, context};
        } else {
            status = BH_E_BUSY;
        }
        pthread_mutex_unlock(&device->dispatch_lock);
        if (status != BH_OK) {
            bh__refuse(status, "let one watcher tell the others",
                       "the device has %d watchers, which is the most", BH__MAX_WATCHERS);
        }
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_device_unwatch(bh_device handle, bh_watch_fn *watch, void *context) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    /* The watcher that is waited for may call the device. */
    bh__device_step_out(device);
    pthread_mutex_lock(&device->dispatch_lock);
    uint32_t i = 0;
    while (i < device->watcher_count &&
           (device->watchers[i].watch != watch || device->watchers[i].context != context))
        i++;
    bool found = i < device->watcher_count;
    if (found) {
        uint64_t id = device->watchers[i].id;
        uint32_t behind = --device->watcher_count - i;
        memmove(&device->watchers[i], &device->watchers[i + 1], behind * sizeof *device->watchers);
        bh__tell_wait(device, id);
    }
    pthread_mutex_unlock(&device->dispatch_lock);
    bh__ticket_leave(device);
    return found ? BH_OK
                 : bh__refuse(BH_E_NOT_FOUND, "pass what bh_device_watch was given",
                              "the device has no watcher with this function and context");
}

bh_status bh_device_on_print(bh_device handle, bh_print_fn *print, void *context) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_status status = print ? bh__dispatcher_start(device) : BH_OK;
    bh__device_step_out(device);
    if (status == BH_OK) {
        pthread_mutex_lock(&device->dispatch_lock);
        uint64_t before = device->print_id;
        device->print = print;
        device->print_context = context;
        device->print_id = bh__watch_id_new(device);
        bh__tell_wait(device, before);
        pthread_mutex_unlock(&device->dispatch_lock);
    }
    bh__ticket_leave(device);
    return status;
}
