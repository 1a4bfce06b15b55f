/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's thread: starts workers, reads their messages, and replaces those that are
 * lost. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/plain_text.h"
#include "client/callback/callback.h"
#include "client/compile/compile.h"
#include "client/core/fork.h"
#include "client/core/hooks.h"
#include "client/jobs/jobs.h"
#include "client/managed/managed.h"
#include "client/process/kinds.h"
#include "client/process/worker_process.h"
#include "client/queue/queue.h"
#include "client/queue/resolve.h"
#include "client/workers/report.h"
#include "client/workers/supervisor.h"

enum {
    BOOT_ATTEMPTS = 3,
    /* If only one worker can use the device at a time: the successor may have to wait, with
     * pauses. */
    PATIENT_ATTEMPTS = 8,
    CROWDED_RETRY_S = 60,
    /* Of chunks; the CPU device has the minimum, GPUs have 2 MiB. */
    MIN_GRANULARITY = 64 << 10,
    MAX_GRANULARITY = 64 << 20,
    MAX_MESSAGES = 64,
    ALL_MESSAGES = 1024 /* more than a socket holds */
};

static void standby_changed(bh__device *device) {
    atomic_fetch_add(&device->workers.standby_word, 1);
    bh__futex_wake(&device->workers.standby_word, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

/* ---- stopping ---- */

static void fail_backlog(bh__device *device, const bh_error *why) {
    while (device->workers.backlog) {
        bh__order *order = device->workers.backlog;
        device->workers.backlog = order->next;
        order->job->error = *why;
        bh__order_finish(device, order);
    }
}

static void bury_all(bh__device *device) {
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers.workers[i];
        if (worker->state == BH__WORKER_NONE || worker->state == BH__WORKER_DYING) continue;
        bh__orders_recover(device, worker, BH__BLAME_NONE, NULL, &device->workers.backlog);
        bh__worker_bury(device, worker, 0);
    }
    device->workers.active = NULL;
    atomic_store(&device->workers.worker_pid, 0);
}

/* Waits until all killed workers have ended, for at most `patience` ns. */
static void reap_all(bh__device *device, uint64_t patience) {
    uint64_t deadline = bh__deadline_after(patience);
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers.workers[i];
        while (worker->state == BH__WORKER_DYING && !bh__worker_reap(device, worker) &&
               bh__now_ns() < deadline) {
            struct pollfd look = {.fd = worker->process.program.end_fd, .events = POLLIN};
            poll(&look, 1, 100);
        }
    }
}

/* Kills all workers and gives every unresolved request this verdict. Waits for a running worker to
 * end first: the program may reuse the memory of a request once its verdict is known. */
static void end_work(bh__device *device, const bh_error *reason, bh_status verdict,
                     uint64_t patience) {
    bh__area *area = atomic_load(&device->queue.area);
    bool running = device->workers.active != NULL;
    bh__lock_take(&device->lock);
    bh__device_freeze(device);
    bh__lock_give(&device->lock);
    bury_all(device);
    if (verdict == BH_E_STOPPED) bh__health_note_stopping(device, reason);
    if (running || verdict == BH_E_CANCELLED) reap_all(device, patience);
    if (verdict == BH_E_STOPPED) bh__managed_fetch_results(device);
    bh__lock_take(&device->lock);
    if (device->state != BH__DEVICE_STOPPED) {
        bh__health_note_stop(device, reason);
        bh__device_stop(device, reason, verdict);
    }
    device->workers.standbys_ready = 0;
    bh__health_note(device);
    bh__lock_give(&device->lock);
    fail_backlog(device, verdict == BH_E_CANCELLED ? reason : &device->stop_reason);
    bh__area_wake(area, device->queue.lane_limit);
}

static void stop(bh__device *device, const bh_error *reason) {
    if (device->state == BH__DEVICE_STOPPED) return;
    bool opening = atomic_load(&device->workers.opened) == 0;
    bh__log_error("%s", reason->message);
    end_work(device, reason, BH_E_STOPPED, 2 * BH__NS_PER_S);
    (void)bh__compiles_cancel(device, 0, &device->stop_reason);
    bh__dispatcher_poke(device);
    standby_changed(device);
    if (opening) {
        device->workers.open_error = *reason;
        atomic_store(&device->workers.opened, 2);
        bh__futex_wake(&device->workers.opened, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
    }
    if (device->workers.loss_pending) {
        device->workers.loss.stopped = 1;
        device->workers.loss.from_standby = 0; /* no worker took over */
        bh__loss_report_finish(device);
        bh__dispatch_loss(device, &device->workers.loss);
        atomic_store(&device->workers.loss_pending, false);
    }
}

static void pump(bh__device *device, bh__worker *worker);

/* If two workers cannot use the device at once, the next is started when the last one has ended. */
static bool must_wait_for_end(const bh__device *device) {
    for (uint32_t i = 0; (device->workers.alone || device->workers.crowded) && i < BH__AREAS; i++)
        if (device->workers.workers[i].state != BH__WORKER_NONE) return true;
    return false;
}

/* Starts a worker that becomes active as soon as it has booted. If that is not possible yet, the
 * supervisor's loop retries. */
static void start_cold(bh__device *device) {
    if (must_wait_for_end(device) || bh__now_ns() < device->workers.retry_cold_at) return;
    bh_error error;
    bh__worker *worker;
    if (bh__worker_start(device, &worker, &error) == BH_OK) {
        device->workers.active = worker;
        return;
    }
    if (error.status == BH_E_BUSY) return; /* an area is free as soon as a dead worker is reaped */
    if (atomic_load(&device->workers.opened) && bh__policy_retries(device, &error))
        device->workers.retry_cold_at = bh__now_ns() + BH__NS_PER_S;
    else
        stop(device, &error);
}

static int readiness(const bh__worker *worker) {
    if (bh__is_ready(worker)) return 2;
    return worker->state == BH__WORKER_STANDBY;
}

/* Returns the standby that can take over soonest, or NULL. */
static bh__worker *best_standby(bh__device *device) {
    bh__worker *best = NULL;
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers.workers[i];
        if (!bh__is_standby(device, worker)) continue;
        bool better =
            !best || readiness(worker) > readiness(best) ||
            (readiness(worker) == readiness(best) && worker->started_ns < best->started_ns);
        if (better) best = worker;
    }
    return best;
}

/* Publishes how many standbys are ready. */
static void count_standbys(bh__device *device) {
    uint32_t ready = 0;
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers.workers[i];
        bool can_take_over = bh__is_standby(device, worker) && bh__is_ready(worker);
        ready += can_take_over;
        worker->caught_up |= can_take_over;
    }
    const bh__worker *first = best_standby(device);
    if (ready == device->workers.standbys_ready) {
        bh__health_note(device);
        return;
    }
    bh__lock_take(&device->lock);
    bool all = ready >= device->options.standbys;
    if (ready > device->workers.standbys_ready) device->workers.boot_failures = 0;
    if (all) device->workers.degraded[0] = 0;
    if (all) device->workers.crowded = false;
    bool more = ready > device->workers.standbys_ready;
    device->workers.standbys_ready = ready;
    bh__health_note(device);
    bh__lock_give(&device->lock);
    standby_changed(device);
    if (more)
        bh__log_info("standby ready: %u of %u, next to take over is worker %d", ready,
                     device->options.standbys, first ? (int)first->process.program.pid : 0);
}

/* A standby that does not answer would be lost right after taking over. */
static void bury_silent_standbys(bh__device *device) {
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers.workers[i];
        if (!bh__is_standby(device, worker) || !bh__watch_doubts(device, worker)) continue;
        bh__log_warning("standby %d does not answer and is being replaced",
                        (int)worker->process.program.pid);
        bh__orders_recover(device, worker, BH__BLAME_NONE, NULL, &device->workers.backlog);
        bh__worker_bury(device, worker, 0);
    }
}

static void promote(bh__device *device) {
    bury_silent_standbys(device);
    bh__worker *standby = best_standby(device);
    device->workers.active = standby;
    device->workers.loss.from_standby = standby && standby->state == BH__WORKER_STANDBY;
    count_standbys(device);
    if (!standby) {
        start_cold(device);
    } else if (standby->state == BH__WORKER_STANDBY) {
        bh__orders_go(device, standby);
        pump(device, standby);
    }
}

/* ---- losing a worker ---- */

static void lose_active(bh__device *device, const bh__cause *cause) {
    bh__worker *worker = device->workers.active;
    bh__area *area = bh__worker_area(device, worker);
    device->workers.loss_detected_ns = bh__now_ns();
    bool own_doing = cause->status == BH_E_FAULT || cause->exited;
    bh__order_blame blame =
        (own_doing && !cause->sequence) || worker->unfit ? BH__BLAME_SENT : BH__BLAME_NONE;
    if (cause->overdue) blame = BH__BLAME_OVERDUE;
    bh__orders_recover(device, worker, blame, &cause->error, &device->workers.backlog);
    bh__lock_take(&device->lock);
    bh__judgement judgement;
    bh_verdict verdict;
    bh_error reason;
    bh__loss_begin(device, cause, &device->workers.loss, &judgement);
    atomic_store(&device->workers.worker_pid, 0);
    bh__health_note(device);
    bh__loss_report *report = bh__loss_report_begin(&judgement);
    bh__policy_decide(&judgement, &verdict, &reason);
    bh__health_note(device); /* with what the loss cost, before any request gets its verdict */
    bh__loss_judge(&judgement, &verdict);
    bh__loss_report_judged(&judgement, report);
    device->workers.broken = cause->broken && !verdict.go_on;
    atomic_store(&device->workers.loss_pending, true);
    bh__lock_give(&device->lock);
    device->workers.active = NULL;
    if (verdict.go_on) promote(device);
    bh__worker_bury(device, worker, device->losses);
    if (verdict.go_on) {
        bh__area_wake(area, device->queue.lane_limit);
        bh__dispatcher_poke(device);
    } else {
        stop(device, &reason);
    }
    standby_changed(device);
}

static void set_degraded(bh__device *device, const bh_error *why, bool crowded) {
    bh__lock_take(&device->lock);
    device->workers.crowded = crowded;
    if (device->workers.standbys_ready)
        snprintf(device->workers.degraded, sizeof device->workers.degraded,
                 "%u of %u standbys: %.220s", device->workers.standbys_ready,
                 device->options.standbys, why->message);
    else
        snprintf(device->workers.degraded, sizeof device->workers.degraded, "no standby: %.230s",
                 why->message);
    bh__health_note(device);
    bh__lock_give(&device->lock);
    bh__log_warning("no standby: %s", why->message);
    standby_changed(device);
}

static void boot_failed(bh__device *device, bh__worker *worker, const bh_error *why) {
    bool active = worker == device->workers.active;
    bool opening = atomic_load(&device->workers.opened) == 0;
    bh__orders_recover(device, worker, BH__BLAME_SENT, why, &device->workers.backlog);
    bh__worker_bury(device, worker, 0);
    device->workers.boot_failures++;
    if (active) {
        device->workers.active = NULL;
        device->workers.loss.from_standby = 0; /* the next worker is started cold */
        bool patient = device->workers.alone || device->workers.crowded;
        uint32_t attempts = patient ? PATIENT_ATTEMPTS : BOOT_ATTEMPTS;
        bool given_up = device->workers.boot_failures >= attempts;
        if (patient || given_up) {
            uint32_t doublings =
                device->workers.boot_failures < 10 ? device->workers.boot_failures : 10;
            device->workers.retry_cold_at = bh__now_ns() + (50 * BH__NS_PER_MS << doublings);
        }
        if (opening || (given_up && !bh__policy_retries(device, why))) {
            stop(device, why);
        } else {
            promote(device);
        }
        return;
    }
    uint32_t backoff = device->workers.boot_failures < 6 ? device->workers.boot_failures : 6;
    bool crowded = why->status == BH_E_NO_MEMORY;
    device->workers.retry_standby_at =
        bh__now_ns() + (crowded ? CROWDED_RETRY_S * BH__NS_PER_S : BH__NS_PER_S / 2 << backoff);
    count_standbys(device);
    set_degraded(device, why, crowded);
}

/* The worker's socket closed or its process ended. */
static void worker_ended(bh__device *device, bh__worker *worker) {
    bh__process_end end = {0};
    /* The canary and the socket close before the process can be reaped; waits a little to learn how
     * it ended, unless that takes long. */
    struct pollfd look = {.fd = worker->process.program.end_fd, .events = POLLIN};
    poll(&look, 1, worker->traits & BH__TRAIT_ENDS_SLOWLY ? 1 : 100);
    (void)bh__process_gone(&worker->process, &end);
    if (worker->errors_fd >= 0) bh__worker_read_errors(worker);
    bh__cause cause = {0};
    bh__cause_of_end(worker, &end, &cause);
    if (worker->state == BH__WORKER_ACTIVE) {
        (void)bh__cause_reported(device, worker, &cause);
        lose_active(device, &cause);
    } else {
        cause.error.status = BH_E_NO_DEVICE;
        bh_error why;
        bh__fail(&why, BH_E_NO_DEVICE, "run `bulkhead doctor`", "%s, while it was starting",
                 cause.error.message);
        boot_failed(device, worker, &why);
    }
}

/* ---- messages from workers ---- */

/* Powers of two: chunks made for one worker's granularity also fit another's smaller one. */
static bool is_granularity(uint64_t bytes) {
    return bh__is_power_of_two(bytes) && bytes >= MIN_GRANULARITY && bytes <= MAX_GRANULARITY;
}

static bool check_ready(const bh__device *device, const bh__ready *ready, bh_error *error) {
    static const char fix[] = "install the library and the worker programs from the same version";
    uint32_t may = bh__device_kind_find(device->kind)->traits;
    if (ready->magic != BH__WIRE_MAGIC || ready->version != BH__WIRE_VERSION ||
        !is_granularity(ready->chunk_granularity))
        bh__fail(error, BH_E_NO_DEVICE, fix,
                 "%s has protocol version %u, this library has version %u",
                 device->workers.worker_path, ready->version, BH__WIRE_VERSION);
    else if (ready->traits & ~may)
        bh__fail(error, BH_E_NO_DEVICE, fix,
                 "%s states the traits 0x%x, and a %s device may have 0x%x at most",
                 device->workers.worker_path, ready->traits, device->kind, may);
    else
        return true;
    return false;
}

/* Texts are terminated and plain. The kind is the one whose program was started. */
static void take_ready(const bh__device *device, const bh__ready *ready, bh__worker *worker) {
    bh__device_facts *info = &worker->info;
    *info = ready->info;
    worker->chunk_granularity = ready->chunk_granularity;
    worker->traits = ready->traits;
    worker->profiled = ready->profiled;
    memcpy(info->kind, device->kind, sizeof info->kind);
    BH__PLAIN(info->name);
    BH__PLAIN(info->driver);
    BH__PLAIN(info->arch);
    BH__PLAIN(info->uuid);
    BH__PLAIN(info->pci);
    BH__PLAIN(info->no_standby);
    BH__PLAIN(info->sandbox_lack);
}

static bool worker_ready(bh__device *device, bh__worker *worker, bh__message *message) {
    bh_error invalid;
    if (message->fd_count == 1) {
        worker->canary_fd = bh__fd_keep(message->fds[0]);
        message->fd_count = 0;
    }
    if (!check_ready(device, &message->u.ready, &invalid)) {
        boot_failed(device, worker, &invalid);
        return false;
    }
    take_ready(device, &message->u.ready, worker);
    const bh__device_facts *info = &worker->info;
    bh__lock_take(&device->lock);
    device->workers.alone = info->no_standby[0] != 0;
    bh__lock_give(&device->lock);
    if (device->workers.alone && !(device->options.flags & BH_DEVICE_NO_STANDBY)) {
        bh_error why;
        bh__fail(&why, BH_E_UNSUPPORTED, BH__WITHOUT_STANDBY, "%s", info->no_standby);
        if (worker != device->workers.active) { /* changed since the active worker started */
            boot_failed(device, worker, &why);
            return false;
        }
        set_degraded(device, &why, false);
    }
    worker->state = BH__WORKER_STANDBY;
    bh__orders_brief(device, worker);
    if (worker == device->workers.active) bh__orders_go(device, worker);
    return true;
}

/* An unexpected message: the worker is defective and is replaced. */
static void refuse_message(bh__worker *worker, const bh__message *message) {
    worker->unfit = true;
    if (message->type == BH__MSG_ACK) return; /* orders.c has set the reason */
    int length = snprintf(worker->errors, sizeof worker->errors,
                          "it sent an unexpected message of type %u", message->type);
    worker->errors_length = (size_t)length;
}

/* Returns false if no more messages of this worker must be read. */
static bool handle_message(bh__device *device, bh__worker *worker) {
    bh__message *message = device->workers.incoming;
    switch (message->type) {
    case BH__MSG_READY:
        if (worker->state == BH__WORKER_BOOTING) return worker_ready(device, worker, message);
        break;
    case BH__MSG_REFUSED: {
        if (worker->state != BH__WORKER_BOOTING) break;
        bh_error why = message->u.error;
        bh__error_of_worker(&why);
        if (why.status == BH_OK) why.status = BH_E_NO_DEVICE;
        boot_failed(device, worker, &why);
        return false;
    }
    case BH__MSG_ACK:
        if (bh__orders_acknowledge(device, worker, message)) return true;
        break;
    case BH__MSG_FAULT: {
        bh__cause cause;
        if (worker->state != BH__WORKER_ACTIVE || !bh__cause_reported(device, worker, &cause))
            break;
        lose_active(device, &cause);
        return false;
    }
    case BH__MSG_REPORT:
        if (worker->state == BH__WORKER_ACTIVE) {
            bh__lock_take(&device->lock);
            bh__reports_collect(device);
            bh__lock_give(&device->lock);
        }
        return true;
    case BH__MSG_PRINT:
        bh__dispatch_text(device, message->data, message->data_bytes);
        return true;
    case BH__MSG_FINDING:
        if (worker->state == BH__WORKER_ACTIVE && bh__findings_take(device, message)) return true;
        break;
    case BH__MSG_STATE:
        if (worker->state == BH__WORKER_ACTIVE && bh__fault_state_take(device, message))
            return true;
        break;
    case BH__MSG_NOTE:
        bh__plain_text((char *)message->data, message->data_bytes);
        bh__log_warning("worker %d: %.*s", (int)worker->process.program.pid,
                        (int)message->data_bytes, (const char *)message->data);
        return true;
    default:
        break;
    }
    refuse_message(worker, message);
    return true;
}

static void replace_unfit(bh__device *device, bh__worker *worker) {
    bh_error why;
    bh_status status = worker->unfit_status;
    bool full = status == BH_E_NO_MEMORY, host = status == BH_E_NO_HOST_MEMORY;
    bh__fail(&why, full || host ? status : BH_E_INTERNAL,
             full   ? "free device memory"
             : host ? "free memory, or raise the limit on open files (ulimit -n)"
                    : "report this with the program that causes it",
             "worker %d is replaced: %.200s", (int)worker->process.program.pid, worker->errors);
    if (worker->state == BH__WORKER_ACTIVE) {
        bh__cause cause = {.status = BH_E_LOST, .error = why};
        lose_active(device, &cause);
    } else {
        boot_failed(device, worker, &why);
    }
}

static bool is_alive(const bh__worker *worker) {
    return worker->state != BH__WORKER_DYING && worker->state != BH__WORKER_NONE;
}

static void pump(bh__device *device, bh__worker *worker) {
    bh__pump_result result = bh__orders_pump(device, worker);
    if (result == BH__PUMP_GO) {
        bh__worker_activate(device, worker);
        result = bh__orders_pump(device, worker);
    }
    if (result == BH__PUMP_UNFIT) replace_unfit(device, worker);
}

/* Reads available messages, at most `max`: a worker that never stops sending must not block the
 * supervisor. */
static void listen_to(bh__device *device, bh__worker *worker, uint32_t max) {
    for (uint32_t i = 0; i < max && is_alive(worker) && !worker->unfit; i++) {
        struct pollfd look = {.fd = worker->socket, .events = POLLIN};
        if (poll(&look, 1, 0) <= 0) break;
        int failed = bh__message_receive(worker->socket, device->workers.incoming);
        if (failed == -EPIPE || failed == -EBADF || failed == -ENOTSOCK) {
            worker_ended(device, worker);
            return;
        }
        if (failed == -EAGAIN) break;
        if (failed) {
            bh__worker_unfit(worker, "a message from the worker cannot be read", -failed);
            break;
        }
        bool listen = handle_message(device, worker);
        bh__message_close_fds(device->workers.incoming);
        if (!listen) return;
    }
    if (is_alive(worker)) pump(device, worker);
}

/* ---- stuck workers ---- */

static void replace_distrusted(bh__device *device) {
    if (!atomic_exchange(&device->queue.distrusted, false) || !device->workers.active ||
        device->workers.active->state != BH__WORKER_ACTIVE)
        return;
    bh__cause cause = {.status = BH_E_LOST};
    bh__fail(&cause.error, BH_E_LOST, "submit the work again",
             "the worker wrote impossible completion positions");
    lose_active(device, &cause);
}

static void replace_stuck(bh__device *device, bh__worker *worker, const bh__cause *cause) {
    if (worker->state == BH__WORKER_ACTIVE) {
        lose_active(device, cause);
        return;
    }
    bool was_ready = worker != device->workers.active && bh__is_ready(worker);
    bh_error why = cause->error;
    why.status = BH_E_NO_DEVICE;
    boot_failed(device, worker, &why);
    /* It was ready once, so the next one will probably be: no pause. */
    if (was_ready) device->workers.retry_standby_at = 0;
}

static void watch_workers(bh__device *device, uint64_t now, uint64_t *next) {
    bh__cause cause;
    bh__worker *stuck = bh__watch_look(device, now, next, &cause);
    if (!stuck && !atomic_load(&device->queue.distrusted)) return;
    if (stuck) replace_stuck(device, stuck, &cause);
    replace_distrusted(device);
    *next = now;
}

/* ---- the loop ---- */

static void take_jobs(bh__device *device, bh__job **out_close) {
    uint64_t count;
    if (bh__fd_is_ours(device->jobs.fd)) {
        ssize_t ignored = read(device->jobs.fd, &count, sizeof count);
        (void)ignored;
    }
    uint32_t flushes = atomic_load(&device->jobs.flushes_wanted);
    if (flushes != atomic_load(&device->jobs.flushes_done)) {
        if (device->workers.active) listen_to(device, device->workers.active, ALL_MESSAGES);
        bh__flushes_answer(device, flushes);
    }
    bh__job *job = bh__jobs_take(device, false);
    while (job) {
        bh__job *next = job->next;
        if (job->kind == BH__JOB_CLOSE) {
            *out_close = job;
        } else if (device->state == BH__DEVICE_STOPPED) {
            job->error = device->stop_reason;
            bh__job_finish(device, job);
        } else {
            bh__order **link = &device->workers.backlog;
            while (*link) link = &(*link)->next;
            *link = bh__order_of(job);
        }
        job = next;
    }
}

/* Sends new orders to the active worker, and to standbys the orders that the active worker has
 * executed. */
static void distribute_orders(bh__device *device) {
    bh__worker *active = device->workers.active;
    if (device->workers.backlog && active && active->state == BH__WORKER_ACTIVE) {
        while (device->workers.backlog) {
            bh__order *order = device->workers.backlog;
            device->workers.backlog = order->next;
            bh__order_append(active, order);
        }
        pump(device, active);
    }
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers.workers[i];
        if (bh__is_standby(device, worker) && worker->waiting) pump(device, worker);
    }
}

static bool wants_standby(const bh__device *device) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < BH__AREAS; i++)
        count += bh__is_standby(device, &device->workers.workers[i]);
    return count < device->options.standbys && !device->workers.alone &&
           device->state == BH__DEVICE_RUNNING;
}

/* Starts workers as needed, and counts the ready standbys. Lowers *next to the time of the next
 * attempt. */
static void keep_workers(bh__device *device, uint64_t now, uint64_t *next) {
    if (device->state == BH__DEVICE_STOPPED) return;
    if (!device->workers.active) start_cold(device);
    if (!device->workers.active && device->workers.retry_cold_at > now &&
        device->workers.retry_cold_at < *next)
        *next = device->workers.retry_cold_at;
    while (wants_standby(device) && now >= device->workers.retry_standby_at) {
        bh_error error;
        bh__worker *worker;
        bh_status status = bh__worker_start(device, &worker, &error);
        if (status == BH_OK) {
            bh__lock_take(&device->lock);
            device->counters.standby_starts++;
            bh__lock_give(&device->lock);
        } else {
            bool busy = status == BH_E_BUSY; /* until a dead worker is reaped */
            device->workers.retry_standby_at = now + (busy ? 10 * BH__NS_PER_MS : BH__NS_PER_S);
            if (!busy) set_degraded(device, &error, false);
        }
    }
    if (wants_standby(device) && device->workers.retry_standby_at < *next)
        *next = device->workers.retry_standby_at;
    count_standbys(device);
}

static void stop_without_fds(bh__device *device) {
    bh_error reason;
    bh__fail(&reason, BH_E_STOPPED,
             "close only descriptors that the program opened itself (not with closefrom)",
             "the program closed file descriptors that belong to Bulkhead");
    device->workers.fds_lost = true;
    stop(device, &reason);
}

static void close_all(bh__device *device, bh__job *job) {
    bh_error cancelled;
    bh__fail(&cancelled, BH_E_CANCELLED, "wait for work before closing the device",
             "the device was closed before this was done");
    bh__workers_finish(device);
    end_work(device, &cancelled, BH_E_CANCELLED, 10 * BH__NS_PER_S);
    bh__lock_take(&device->lock);
    (void)bh__deferred_tell(device, UINT64_MAX);
    bh__lock_give(&device->lock);
    for (uint32_t i = 0; i < BH__AREAS; i++) bh__process_close(&device->workers.workers[i].process);
    bh__jobs_close(device);
    bh__job_finish(device, job);
}

/* The descriptors that the supervisor polls. Only existing ones are listed: poll accepts at most as
 * many entries as the process may have descriptors, which may be few. */
enum { MAX_WATCHED = 2 + BH__AREAS * 4 };

typedef struct poll_set {
    struct pollfd look[MAX_WATCHED];
    bh__worker *worker[MAX_WATCHED];
    uint32_t count;
} poll_set;

static void watch(poll_set *self, int fd, bh__worker *worker) {
    if (fd < 0) return;
    self->look[self->count] = (struct pollfd){.fd = fd, .events = POLLIN};
    self->worker[self->count++] = worker;
}

/* *next is lowered to the time at which the socket for figures is looked at again. */
static void watch_all(bh__device *device, poll_set *self, uint64_t now, uint64_t *next) {
    self->count = 0;
    if (device->workers.fds_lost) return;
    watch(self, device->jobs.fd, NULL);
    int listens = device->observe.listen_fd;
    uint64_t next_at = device->observe.publisher.next_at;
    if (listens >= 0 && now >= next_at) watch(self, listens, NULL);
    if (listens >= 0 && now < next_at && next_at < *next) *next = next_at;
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers.workers[i];
        if (worker->state == BH__WORKER_NONE) continue;
        if (worker->state != BH__WORKER_DYING) {
            watch(self, worker->errors_fd, worker);
            watch(self, worker->socket, worker);
            watch(self, worker->canary_fd, worker);
        }
        watch(self, worker->process.program.end_fd, worker);
    }
}

/* The socket comes right after the descriptor for jobs, and after all that must not wait. */
static bool has_visitor(const bh__device *device, const poll_set *all) {
    return !device->workers.fds_lost && all->count > 1 && !all->worker[1] &&
           all->look[1].fd == device->observe.listen_fd && all->look[1].revents;
}

/* Handles an event on a worker's descriptor. An earlier event of the same poll may have changed the
 * worker's state. */
static void handle_event(bh__device *device, bh__worker *worker, int fd) {
    if (worker->state == BH__WORKER_NONE) return;
    if (worker->state == BH__WORKER_DYING) {
        if (fd == worker->process.program.end_fd) (void)bh__worker_reap(device, worker);
    } else if (fd == worker->errors_fd) {
        bh__worker_read_errors(worker);
    } else if (fd == worker->socket) {
        listen_to(device, worker, MAX_MESSAGES);
    } else if (fd == worker->process.program.end_fd || fd == worker->canary_fd) {
        listen_to(device, worker, ALL_MESSAGES); /* sent before it ended */
        if (is_alive(worker)) worker_ended(device, worker);
    }
}

void *bh__supervisor_main(void *argument) {
    bh__device *device = argument;
    bh__job *close_job = NULL;
    poll_set all;
    bh__supervise(device);
    while (!close_job) {
        uint64_t now = bh__now_ns(), next = BH__NEVER;
        keep_workers(device, now, &next);
        watch_workers(device, now, &next);
        if (device->workers.fds_lost && now + 10 * BH__NS_PER_MS < next)
            next = now + 10 * BH__NS_PER_MS;

        watch_all(device, &all, now, &next);
        struct timespec timeout = bh__timespec(next == BH__NEVER ? 0 : bh__time_left(next));
        ppoll(all.look, all.count, next == BH__NEVER ? NULL : &timeout, NULL);

        if (!device->workers.fds_lost && !bh__fd_is_ours(device->jobs.fd)) stop_without_fds(device);
        for (uint32_t i = 0; i < all.count && !device->workers.fds_lost; i++) {
            if (all.worker[i] && all.look[i].revents)
                handle_event(device, all.worker[i], all.look[i].fd);
        }
        take_jobs(device, &close_job);
        distribute_orders(device);
        if (has_visitor(device, &all)) bh__hooks.looked_at(device);
    }
    close_all(device, close_job);
    return NULL;
}
