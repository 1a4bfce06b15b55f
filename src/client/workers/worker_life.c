/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes: starting and killing them, and releasing what was held for one that has
 * ended. */
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
#include "base/plain_text.h"
#include "client/callback/callback.h"
#include "client/core/fork.h"
#include "client/process/kinds.h"
#include "client/process/worker_process.h"
#include "client/queue/queue.h"
#include "client/queue/resolve.h"
#include "client/workers/internal.h"
#include "wire/share.h"

static uint64_t boot_timeout(const bh__device *device) {
    return bh__device_kind_find(device->kind)->boot_s * BH__NS_PER_S;
}

/* Does not reuse the current area: a slow waiter could mistake its old and new words for one
 * state. */
static bh__worker *free_worker(bh__device *device) {
    const bh__area *current = device->generation ? atomic_load(&device->queue.area) : NULL;
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        device->workers.workers[i].area = i;
        if (device->workers.workers[i].state == BH__WORKER_NONE &&
            bh__worker_area(device, &device->workers.workers[i]) != current) {
            return &device->workers.workers[i];
        }
    }
    return NULL;
}

/*
 * Each worker gets new memory for its area: the previous worker in this place may still write to
 * the old memory. A waiter that was delayed since then may still read this place and be about to
 * wait on `wake`. So `wake` continues from the old value, and waiters that started to wait between
 * the two steps are woken. Returns the descriptor, or a negative errno.
 */
static int area_new(bh__device *device, const bh__worker *worker) {
    bh__area *area = bh__worker_area(device, worker);
    uint32_t wakes[BH__MAX_LANES];
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) wakes[i] = atomic_load(&area->lane[i].wake);
    int fd = bh__share_create("bulkhead-area", device->queue.area_bytes);
    if (fd < 0) return fd;
    if (!bh__share_place(area, fd, device->queue.area_bytes)) {
        int number = errno;
        close(fd);
        return -number;
    }
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) atomic_store(&area->lane[i].wake, wakes[i]);
    bh__area_wake(area, device->queue.lane_limit);
    atomic_store(&device->queue.front->ping[worker->area], 0);
    return bh__fd_keep(fd);
}

/* Closes the area's descriptor after sending: only the worker keeps it. */
static int send_boot(bh__device *device, bh__worker *worker, int bell) {
    int area = area_new(device, worker);
    if (area < 0) return area;
    int self = bh__process_self();
    bh__message *message = device->workers.outgoing;
    memset(message, 0, offsetof(bh__message, data));
    message->type = BH__MSG_BOOT;
    message->u.boot =
        (bh__boot){.magic = BH__WIRE_MAGIC,
                   .version = BH__WIRE_VERSION,
                   .area = worker->area,
                   .front_bytes = device->queue.front_bytes,
                   .device_index = device->device_index,
                   .flags = device->options.flags & (BH_DEVICE_CHECK | BH_DEVICE_CORE_DUMPS),
                   .sandbox = device->options.sandbox,
                   .native = device->executor != BH_EXECUTE_INTERPRETER,
                   .libraries = device->options.libraries};
    int fds[4] = {device->queue.front_fd, area, bell, self};
    int failed = bh__message_send(worker->socket, message, fds, self < 0 ? 3 : 4);
    bh__fd_close(area);
    if (self >= 0) close(self);
    return failed;
}

static bh_status refuse_start(bh_error *error, int number) {
    char text[128];
    return bh__fail(error, BH_E_NO_DEVICE, bh__errno_fix(number, "free memory"),
                    "cannot start a worker: %s", bh__errno_text(number, text, sizeof text));
}

/* The channels to a worker. The first descriptor of each pair is the application's. */
typedef struct channels {
    int socket[2], errors[2], bell[2];
} channels;

static void close_ends(const channels *self, int end) {
    if (self->socket[end] >= 0) close(self->socket[end]);
    if (self->errors[end] >= 0) close(self->errors[end]);
    if (self->bell[end] >= 0) close(self->bell[end]);
}

/* Returns 0 or an errno. */
static int make_channels(channels *out) {
    *out = (channels){{-1, -1}, {-1, -1}, {-1, -1}};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out->socket) == 0 &&
        pipe2(out->errors, O_CLOEXEC | O_NONBLOCK) == 0 &&
        pipe2(out->bell, O_CLOEXEC | O_NONBLOCK) == 0)
        return 0;
    int number = errno;
    close_ends(out, 0);
    close_ends(out, 1);
    return number;
}

bh_status bh__worker_start(bh__device *device, bh__worker **out, bh_error *error) {
    bh__worker *worker = free_worker(device);
    if (!worker)
        return bh__fail(error, BH_E_BUSY, "none needed: it is retried",
                        "%d lost workers are not reaped yet", BH__AREAS);
    channels made;
    int failed = make_channels(&made);
    if (failed) return refuse_start(error, failed);
    memset(worker, 0, sizeof *worker);
    worker->area = (uint32_t)(worker - device->workers.workers);
    bh_status status = bh__process_start(device->workers.worker_path, made.socket[1],
                                         made.errors[1], &worker->process, error);
    if (status != BH_OK) {
        close_ends(&made, 0);
        close_ends(&made, 1);
        return status;
    }
    /* A worker that never reads must not block the supervisor. */
    fcntl(made.socket[0], F_SETFL, O_NONBLOCK);
    worker->socket = bh__fd_keep(made.socket[0]);
    worker->errors_fd = bh__fd_keep(made.errors[0]);
    worker->bell_fd = bh__fd_keep(made.bell[0]);
    worker->canary_fd = -1;
    worker->state = BH__WORKER_BOOTING;
    worker->started_ns = bh__now_ns();
    worker->boot_deadline = device->workers.watch.clock + boot_timeout(device);
    failed = send_boot(device, worker, made.bell[1]);
    close_ends(&made, 1);
    if (failed && failed != -EPIPE) { /* EPIPE: it died already, which poll reports */
        bh__worker_bury(device, worker, 0);
        return refuse_start(error, -failed);
    }
    bh__log_debug("worker %d started in area %u: %s", (int)worker->process.program.pid,
                  worker->area, device->workers.worker_path);
    *out = worker;
    return BH_OK;
}

/* As much as a pipe holds: a worker that never stops writing must not block the supervisor. */
enum { MAX_READS = 64 };

/* The beginning of what it wrote. A control character of two bytes may come in two reads, so that
 * what is joined is made plain again. */
static void keep_words(bh__worker *worker, const char *text, size_t length) {
    size_t old = worker->words_length, space = sizeof worker->words - old;
    size_t part = length < space ? length : space, from = old > 0 ? old - 1 : 0;
    memcpy(worker->words + old, text, part);
    worker->words_length += part;
    bh__plain_text(worker->words + from, worker->words_length - from);
}

/* The end of what it wrote. */
static void keep_errors(bh__worker *worker, const char *text, size_t length) {
    size_t room = sizeof worker->errors - 1, keep = length < room ? length : room;
    size_t old = worker->errors_length < room - keep ? worker->errors_length : room - keep;
    memmove(worker->errors, worker->errors + worker->errors_length - old, old);
    memcpy(worker->errors + old, text + length - keep, keep);
    worker->errors_length = old + keep;
    bh__plain_text(worker->errors, worker->errors_length);
    worker->errors[worker->errors_length] = 0;
}

/* Reads the worker's standard error. All of it is logged; its end is kept for error messages, its
 * beginning for assertions of kernels. */
void bh__worker_read_errors(bh__worker *worker) {
    char text[1024];
    ssize_t got = -1;
    for (int i = 0; i < MAX_READS; i++) {
        got = read(worker->errors_fd, text, sizeof text - 1);
        if (got <= 0) break;
        bh__plain_text(text, (size_t)got);
        text[got] = 0;
        keep_words(worker, text, (size_t)got);
        bh__log_warning("worker %d: %s", (int)worker->process.program.pid, text);
        keep_errors(worker, text, (size_t)got);
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
        const bh__worker *worker = &device->workers.workers[i];
        asked[i] = worker->profiled && worker->state != BH__WORKER_NONE &&
                   worker->state != BH__WORKER_DYING && bh__fd_is_ours(worker->socket) &&
                   bh__fd_is_ours(worker->process.program.end_fd);
        if (asked[i]) shutdown(worker->socket, SHUT_RDWR);
    }
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        struct pollfd look = {.fd = device->workers.workers[i].process.program.end_fd,
                              .events = POLLIN};
        uint64_t now = bh__now_ns();
        if (asked[i] && now < deadline) poll(&look, 1, (int)((deadline - now) / BH__NS_PER_MS));
    }
}

void bh__worker_unfit(bh__worker *worker, const char *what, int number) {
    char text[128];
    int length = snprintf(worker->errors, sizeof worker->errors, "%s: %s", what,
                          bh__errno_text(number, text, sizeof text));
    worker->errors_length = (size_t)length;
    worker->unfit = true;
    worker->unfit_status = number == EBADMSG ? BH_E_INTERNAL : BH_E_NO_HOST_MEMORY;
}

void bh__worker_bury(bh__device *device, bh__worker *worker, uint64_t loss) {
    bh__dispatcher_ignore(device, worker->bell_fd);
    if (worker->errors_fd >= 0) bh__worker_read_errors(worker);
    bh__process_kill(&worker->process);
    bh__fd_close(worker->socket);
    bh__fd_close(worker->errors_fd);
    bh__fd_close(worker->canary_fd);
    bh__fd_close(worker->bell_fd);
    worker->socket = worker->errors_fd = worker->canary_fd = worker->bell_fd = -1;
    worker->state = BH__WORKER_DYING;
    worker->loss = loss;
}

/* Publishes that the workers of losses 1 to `reaped` have ended. Requests and memory that were held
 * for them are released. Called with the lock held. */
static void publish_reaped(bh__device *device) {
    uint64_t reaped = device->losses;
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        const bh__worker *worker = &device->workers.workers[i];
        if (worker->state == BH__WORKER_DYING && worker->loss && worker->loss <= reaped)
            reaped = worker->loss - 1;
    }
    if (reaped <= atomic_load(&device->queue.reaped)) return;
    bool notified = bh__deferred_tell(device, reaped);
    atomic_store(&device->queue.reaped, reaped);
    atomic_store(&device->queue.front->reaped, reaped);
    if (notified) bh__area_wake(atomic_load(&device->queue.area), device->queue.lane_limit);
    if (notified || atomic_load(&device->managed.to_write_back)) bh__dispatcher_poke(device);
    bh__futex_wake((_Atomic uint32_t *)(void *)&device->queue.front->reaped, BH__FUTEX_ALL,
                   BH__FUTEX_SHARED);
}

bool bh__worker_reap(bh__device *device, bh__worker *worker) {
    bh__process_end end;
    if (!bh__process_gone(&worker->process, &end)) return false;
    int pid = (int)worker->process.program.pid;
    bh__process_close(&worker->process);
    worker->state = BH__WORKER_NONE;
    /* Waiters are woken again, now that the worker cannot undo it by changing its words. */
    bh__area_wake(bh__worker_area(device, worker), device->queue.lane_limit);
    bh__lock_take(&device->lock);
    publish_reaped(device);
    bh__lock_give(&device->lock);
    bh__log_debug("worker %d reaped", pid);
    return true;
}
