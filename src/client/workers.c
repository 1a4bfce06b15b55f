/* SPDX-License-Identifier: Apache-2.0 */
/* Workers as processes: starting one, ending one, and what is released when it is gone for good. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/log.h"
#include "client/resolve.h"
#include "client/supervisor.h"

/* A GPU's driver takes its time, more so when several processes start at once. */
static uint64_t boot_timeout(const bh__device *device) {
    return (strcmp(device->kind, "cpu") == 0 ? 10 : 30) * BH__NS_PER_S;
}

/* Not the one whose area still counts: a slow waiter could take its words, old and new, for one
 * state. */
static bh__worker *free_worker(bh__device *device) {
    const bh__area *current = device->generation ? atomic_load(&device->area) : NULL;
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        device->workers[i].area = i;
        if (device->workers[i].state == BH__WORKER_NONE &&
            bh__worker_area(device, &device->workers[i]) != current) {
            return &device->workers[i];
        }
    }
    return NULL;
}

/* Word by word: a waiter that has been asleep since an earlier worker may still be looking. `wake`
 * only ever counts up. */
static void area_reset(bh__device *device, const bh__worker *worker) {
    bh__area *area = bh__worker_area(device, worker);
    atomic_store(&device->front->ping[worker->area], 0);
    atomic_store(&area->pong, 0);
    atomic_store(&area->fault_state, BH__FAULT_NONE);
    atomic_store(&area->reports_made, 0);
    atomic_store(&area->reports_taken, 0);
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        atomic_store(&area->lane[i].claim, 0);
        atomic_store(&area->lane[i].handing, 0);
        atomic_store(&area->lane[i].asleep, 0);
        atomic_store(&area->lane[i].done, 0);
        bh__counts_clear(&area->lane[i].counts);
    }
}

static int send_boot(bh__device *device, bh__worker *worker) {
    int self = bh__process_self();
    bh__message *message = device->outgoing;
    memset(message, 0, offsetof(bh__message, data));
    message->type = BH__MSG_BOOT;
    message->u.boot = (bh__boot){.magic = BH__WIRE_MAGIC,
                                 .version = BH__WIRE_VERSION,
                                 .area = worker->area,
                                 .total_bytes = device->front->total_bytes,
                                 .device_index = device->device_index,
                                 .flags = device->options.flags & BH_DEVICE_CHECK};
    int fds[3] = {device->control_fd, device->dispatch_fd, self};
    int failed = bh__message_send(worker->socket, message, fds, self < 0 ? 2 : 3);
    if (self >= 0) close(self);
    return failed;
}

static bh_status refuse_start(bh_error *error, int number) {
    char text[128];
    return bh__fail(error, BH_E_NO_DEVICE, "raise the limit on open files (ulimit -n)",
                    "cannot start a worker: %s", bh__errno_text(number, text, sizeof text));
}

bh_status bh__worker_start(bh__device *device, bh__worker **out, bh_error *error) {
    bh__worker *worker = free_worker(device);
    if (!worker)
        return bh__fail(error, BH_E_BUSY, "nothing: it is tried again",
                        "%d lost workers are not reaped yet", BH__AREAS);
    int sockets[2], errors[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return refuse_start(error, errno);
    if (pipe2(errors, O_CLOEXEC | O_NONBLOCK) < 0) {
        int number = errno;
        close(sockets[0]);
        close(sockets[1]);
        return refuse_start(error, number);
    }
    memset(worker, 0, sizeof *worker);
    worker->area = (uint32_t)(worker - device->workers);
    area_reset(device, worker);
    bh_status status =
        bh__process_start(device->worker_path, sockets[1], errors[1], &worker->process, error);
    close(sockets[1]);
    close(errors[1]);
    if (status != BH_OK) {
        close(sockets[0]);
        close(errors[0]);
        return status;
    }
    worker->socket = bh__fd_keep(sockets[0]);
    worker->errors_fd = bh__fd_keep(errors[0]);
    worker->canary_fd = -1;
    worker->state = BH__WORKER_BOOTING;
    worker->started_ns = bh__now_ns();
    worker->boot_deadline = device->watch.clock + boot_timeout(device);
    int failed = send_boot(device, worker);
    if (failed && failed != -EPIPE) { /* one that is dead already is noticed as such */
        bh__worker_bury(worker, 0);
        return refuse_start(error, -failed);
    }
    *out = worker;
    return BH_OK;
}

/* As much as a pipe holds: one that never stops writing must not keep the supervisor from others. */
enum { MOST_READS = 64 };

/* Reads what it wrote to standard error: the end is kept for error messages, all of it goes to the
 * log. */
void bh__worker_read_errors(bh__worker *worker) {
    char text[1024];
    ssize_t got = -1;
    for (int i = 0; i < MOST_READS; i++) {
        got = read(worker->errors_fd, text, sizeof text - 1);
        if (got <= 0) break;
        text[got] = 0;
        size_t space = sizeof worker->words - worker->words_length;
        size_t part = (size_t)got < space ? (size_t)got : space;
        memcpy(worker->words + worker->words_length, text, part);
        worker->words_length += part;
        bh__log_warning("worker %d: %s", (int)worker->process.program.pid, text);
        size_t room = sizeof worker->errors - 1, keep = (size_t)got < room ? (size_t)got : room;
        size_t old = worker->errors_length < room - keep ? worker->errors_length : room - keep;
        memmove(worker->errors, worker->errors + worker->errors_length - old, old);
        memcpy(worker->errors + old, text + got - keep, keep);
        worker->errors_length = old + keep;
        worker->errors[worker->errors_length] = 0;
    }
    if (got == 0) {
        bh__fd_close(worker->errors_fd);
        worker->errors_fd = -1;
    }
}

void bh__workers_finish(bh__device *device) {
    bool asked[BH__AREAS];
    uint64_t deadline = bh__now_ns() + BH__FINISH_SECONDS * BH__NS_PER_S;
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        const bh__worker *worker = &device->workers[i];
        asked[i] = worker->profiled && worker->state != BH__WORKER_NONE &&
                   worker->state != BH__WORKER_DYING && bh__fd_is_ours(worker->socket) &&
                   bh__fd_is_ours(worker->process.program.end_fd);
        if (asked[i]) shutdown(worker->socket, SHUT_RDWR);
    }
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        struct pollfd look = {.fd = device->workers[i].process.program.end_fd, .events = POLLIN};
        uint64_t now = bh__now_ns();
        if (asked[i] && now < deadline) poll(&look, 1, (int)((deadline - now) / BH__NS_PER_MS));
    }
}

void bh__worker_bury(bh__worker *worker, uint64_t loss) {
    if (worker->errors_fd >= 0) bh__worker_read_errors(worker);
    bh__process_kill(&worker->process);
    bh__fd_close(worker->socket);
    bh__fd_close(worker->errors_fd);
    bh__fd_close(worker->canary_fd);
    worker->socket = worker->errors_fd = worker->canary_fd = -1;
    worker->state = BH__WORKER_DYING;
    worker->loss = loss;
}

/* Lost workers 1 .. reaped are gone; requests that wait for that, and memory held for it, may go
 * on. */
static void publish_reaped(bh__device *device) {
    uint64_t reaped = device->losses;
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        const bh__worker *worker = &device->workers[i];
        if (worker->state == BH__WORKER_DYING && worker->loss && worker->loss <= reaped)
            reaped = worker->loss - 1;
    }
    if (reaped <= atomic_load(&device->front->reaped)) return;
    bool told = bh__late_tell(device, reaped);
    atomic_store(&device->front->reaped, reaped);
    if (told) bh__area_wake(atomic_load(&device->area), device->lane_limit);
    if (told || atomic_load(&device->unhomed)) bh__dispatcher_poke(device);
    bh__futex_wake((_Atomic uint32_t *)(void *)&device->front->reaped, BH__FUTEX_ALL,
                   BH__FUTEX_SHARED);
}

bool bh__worker_reap(bh__device *device, bh__worker *worker) {
    bh__process_end end;
    if (!bh__process_gone(&worker->process, &end)) return false;
    bh__process_close(&worker->process);
    worker->state = BH__WORKER_NONE;
    bh__lock_take(&device->lock);
    publish_reaped(device);
    bh__lock_give(&device->lock);
    return true;
}
