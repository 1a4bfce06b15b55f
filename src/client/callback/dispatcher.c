/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatcher: one thread per device that runs the program's callbacks, with no lock held: those
 * of watchers (events.c), of tickets (queue/ticket_callbacks.c) and of memory pressure
 * (memory/pressure.c). */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/errno_text.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/thread.h"
#include "client/callback/callback.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"

/* The program may have closed the library's descriptor by mistake. The spare one refers to the same
 * eventfd and wakes a thread that sleeps on the first. -1: both are closed. */
static int poke_fd(const bh__device *device) {
    if (bh__fd_is_ours(device->callback.poke_fd)) return device->callback.poke_fd;
    return bh__fd_is_ours(device->callback.spare_fd) ? device->callback.spare_fd : -1;
}

void bh__dispatcher_poke(bh__device *device) {
    (void)bh__fd_poke(poke_fd(device));
}

void bh__dispatcher_listen(bh__device *device, int bell_fd) {
    pthread_mutex_lock(&device->dispatch_lock);
    device->callback.bell_fd = bell_fd;
    pthread_mutex_unlock(&device->dispatch_lock);
}

void bh__dispatcher_ignore(bh__device *device, int bell_fd) {
    pthread_mutex_lock(&device->dispatch_lock);
    if (device->callback.bell_fd == bell_fd) device->callback.bell_fd = -1;
    pthread_mutex_unlock(&device->dispatch_lock);
}

static int bell_of(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    int fd = device->callback.bell_fd;
    pthread_mutex_unlock(&device->dispatch_lock);
    return fd;
}

/* Stops listening to the bell if the worker has closed its end or the descriptor is not ours. */
static void drain_bell(bh__device *device, int fd) {
    char rings[4096];
    pthread_mutex_lock(&device->dispatch_lock);
    if (device->callback.bell_fd == fd) {
        ssize_t got = bh__fd_is_ours(fd) ? read(fd, rings, sizeof rings) : 0;
        if (got == 0) device->callback.bell_fd = -1;
    }
    pthread_mutex_unlock(&device->dispatch_lock);
}

static void drain_poke(bh__device *device) {
    uint64_t count;
    int fd = poke_fd(device);
    ssize_t ignored = fd >= 0 ? read(fd, &count, sizeof count) : 0;
    (void)ignored;
}

/* The application wakes the dispatcher with an eventfd that workers do not have. Each worker has
 * its own pipe, the bell: nothing that a worker does to it can block the application or other
 * workers. */
static void wait_for_poke(bh__device *device) {
    struct pollfd poll_fds[2] = {{.fd = poke_fd(device), .events = POLLIN},
                                 {.fd = bell_of(device), .events = POLLIN}};
    bool pokes = poll_fds[0].fd >= 0;
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    if (pokes) poll(poll_fds, 2, -1);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    if (!pokes || (poll_fds[0].revents & POLLNVAL)) {
        /* Both descriptors are closed. Callbacks must still run, so poll. */
        struct timespec pause = bh__timespec(10 * BH__NS_PER_MS);
        nanosleep(&pause, NULL);
        return;
    }
    if (poll_fds[1].revents) drain_bell(device, poll_fds[1].fd);
    if (poll_fds[0].revents) drain_poke(device);
}

/* A cancelled thread unwinds without returning. AddressSanitizer must be told. */
static void on_cancel(void *unused) {
    (void)unused;
#ifdef __SANITIZE_ADDRESS__
    void __asan_handle_no_return(void);
    __asan_handle_no_return();
#endif
}

static void *dispatcher_main(void *argument) {
    bh__device *device = argument;
    bh__callback *pending = NULL;
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_cleanup_push(on_cancel, NULL);
    for (bool stop = false; !stop;) {
        /* Both in each round, so that neither keeps the other waiting. */
        bool told = bh__events_run(device);
        bool dispatched = bh__hooks.dispatch(device, &pending);
        if (told || dispatched) continue;
        pthread_mutex_lock(&device->dispatch_lock);
        bool empty = !device->callback.events && !device->callback.merged.number &&
                     !device->callback.callbacks && !device->callback.printed.missing &&
                     !atomic_load(&device->memory.pressure.due);
        stop = device->callback.state == BH__DISPATCHER_STOPPING && empty && !pending;
        if (stop) device->callback.state = BH__DISPATCHER_STOPPED;
        pthread_mutex_unlock(&device->dispatch_lock);
        if (!empty) continue;
        atomic_fetch_add(&device->callback.drained, 1);
        bh__futex_wake(&device->callback.drained, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
        if (!stop) wait_for_poke(device);
    }
    pthread_cleanup_pop(0);
    return NULL;
}

/* ---- starting and stopping ---- */

bh_status bh__refuse_stopping(void) {
    return bh__refuse(BH_E_STOPPED, "register callbacks before closing the device",
                      "the device is being closed");
}

bh_status bh__dispatcher_start(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    int failed = 0;
    char text[96];
    if (device->callback.state == BH__DISPATCHER_NONE) {
        failed = bh__thread_start(&device->callback.thread, NULL, dispatcher_main, device);
        if (!failed) device->callback.state = BH__DISPATCHER_RUNNING;
    }
    bool ending = device->callback.state > BH__DISPATCHER_RUNNING;
    pthread_mutex_unlock(&device->dispatch_lock);
    if (ending) return bh__refuse_stopping();
    if (failed)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "raise the limit on threads",
                          "cannot start the dispatcher thread: %s",
                          bh__errno_text(failed, text, sizeof text));
    return BH_OK;
}

void bh__dispatcher_stop(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool running = device->callback.state == BH__DISPATCHER_RUNNING;
    device->callback.state = running ? BH__DISPATCHER_STOPPING : BH__DISPATCHER_STOPPED;
    pthread_mutex_unlock(&device->dispatch_lock);
    if (!running) return;
    bh__dispatcher_poke(device);
    /* Nothing can wake the dispatcher if both descriptors are closed. A thread that sleeps in poll
     * has no callbacks to run and holds no locks, so it can be cancelled. */
    if (poke_fd(device) < 0) pthread_cancel(device->callback.thread);
    pthread_join(device->callback.thread, NULL);
    pthread_mutex_lock(&device->dispatch_lock);
    device->callback.state = BH__DISPATCHER_STOPPED;
    pthread_mutex_unlock(&device->dispatch_lock);
    atomic_fetch_add(&device->callback.drained, 1);
    bh__futex_wake(&device->callback.drained, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

/* Returns true if the dispatcher runs and the caller can wait for it: not on its own thread. */
static bool can_wait_for_dispatcher(bh__device *device) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool runs = device->callback.state == BH__DISPATCHER_RUNNING ||
                device->callback.state == BH__DISPATCHER_STOPPING;
    runs = runs && !pthread_equal(pthread_self(), device->callback.thread);
    pthread_mutex_unlock(&device->dispatch_lock);
    return runs;
}

bool bh__dispatcher_drain(bh__device *device, uint64_t deadline) {
    uint32_t first = atomic_load(&device->callback.drained);
    for (;;) {
        uint32_t seen = atomic_load(&device->callback.drained);
        /* The second increment ends a round that began after the first, so after this call. */
        if (seen - first >= 2 || !can_wait_for_dispatcher(device)) return true;
        /* If nothing can wake the dispatcher and it sleeps, it has no callbacks to run. */
        bool unwakeable = poke_fd(device) < 0;
        uint64_t soon = bh__deadline_after(BH__NS_PER_S / 10);
        uint64_t until = unwakeable && soon < deadline ? soon : deadline;
        bh__dispatcher_poke(device);
        if (bh__futex_wait(&device->callback.drained, seen, until, BH__FUTEX_PRIVATE)) continue;
        if (atomic_load(&device->callback.drained) == seen) return unwakeable;
    }
}

bh_status bh_device_eventfd(bh_device handle, int *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the descriptor", "out_fd is NULL");
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    *out = device->callback.event_fd;
    bh__device_unlock(device);
    return BH_OK;
}
