/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor: one thread a device that starts workers, listens to them, and replaces those that
 * are lost. */
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
#include "client/report.h"
#include "client/resolve.h"
#include "client/supervisor.h"
#include "client/trace.h"

enum {
    BOOT_ATTEMPTS = 3,
    /* Where a successor has the device only once others have let go of it, with pauses between. */
    PATIENT_ATTEMPTS = 8,
    CROWDED_RETRY_S = 60,
    SOME_MESSAGES = 64,
    ALL_MESSAGES = 1024 /* more than a socket holds */
};

static void standby_changed(bh__device *device) {
    atomic_fetch_add(&device->standby_word, 1);
    bh__futex_wake(&device->standby_word, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

/* ---- stopping ---- */

static void fail_backlog(bh__device *device, const bh_error *why) {
    while (device->backlog) {
        bh__order *order = device->backlog;
        device->backlog = order->next;
        order->job->error = *why;
        bh__job_finish(device, order->job);
        bh__order_delete(order);
    }
}

static void bury_all(bh__device *device) {
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers[i];
        if (worker->state == BH__WORKER_NONE || worker->state == BH__WORKER_DYING) continue;
        bh__orders_recover(device, worker, BH__BLAME_NONE, &device->backlog);
        bh__worker_bury(worker, 0);
    }
    device->active = NULL;
    atomic_store(&device->worker_pid, 0);
}

/* Waits until no worker is left, for a while. */
static void reap_all(bh__device *device, uint64_t patience) {
    uint64_t deadline = bh__deadline_after(patience);
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers[i];
        while (worker->state == BH__WORKER_DYING && !bh__worker_reap(device, worker) &&
               bh__now_ns() < deadline) {
            struct pollfd look = {.fd = worker->process.program.end_fd, .events = POLLIN};
            poll(&look, 1, 100);
        }
    }
}

/* Ends all workers and gives everything unresolved this verdict. A worker that is still running comes
 * first: what a request was to write may be used again once its verdict is known. */
static void end_work(bh__device *device, const bh_error *reason, bh_status verdict,
                     uint64_t patience) {
    bh__area *area = atomic_load(&device->area);
    bool running = device->active != NULL;
    bh__lock_take(&device->lock);
    bh__device_freeze(device);
    bh__lock_give(&device->lock);
    bury_all(device);
    if (running || verdict == BH_E_CANCELLED) reap_all(device, patience);
    bh__lock_take(&device->lock);
    if (device->state != BH_DEVICE_STOPPED) bh__device_stop(device, reason, verdict);
    device->standbys_ready = 0;
    bh__health_note(device);
    bh__lock_give(&device->lock);
    fail_backlog(device, verdict == BH_E_CANCELLED ? reason : &device->stop_reason);
    bh__area_wake(area, device->lane_limit);
}

static void stop(bh__device *device, const bh_error *reason) {
    if (device->state == BH_DEVICE_STOPPED) return;
    bool opening = atomic_load(&device->opened) == 0;
    bh__log_error("%s", reason->message);
    end_work(device, reason, BH_E_STOPPED, 2 * BH__NS_PER_S);
    (void)bh__flights_recall(device, 0, &device->stop_reason);
    bh__dispatcher_poke(device);
    standby_changed(device);
    if (opening) {
        device->open_error = *reason;
        atomic_store(&device->opened, 2);
        bh__futex_wake(&device->opened, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
    }
    if (device->loss_pending) {
        device->loss_pending = false;
        device->loss.stopped = 1;
        device->loss.from_standby = 0; /* nobody took over */
        bh__loss_report_finish(device);
        bh__dispatch_loss(device, &device->loss);
    }
}

/* ---- becoming the active worker ---- */

static void tell_loss(bh__device *device) {
    if (!device->loss_pending) return;
    device->loss_pending = false;
    bh__loss_report_finish(device);
    bh__log_warning("worker of generation %llu lost and replaced in %llu us: %s",
                    (unsigned long long)device->loss.generation,
                    (unsigned long long)(device->loss.takeover_ns / 1000), device->loss.message);
    bh__dispatch_loss(device, &device->loss);
}

/* With the lock held: whoever sees the next generation finds the takeover counted. */
static void count_takeover(bh__device *device) {
    if (!device->loss_pending) return;
    uint64_t took = bh__now_ns() - device->loss_detected_ns;
    device->loss.takeover_ns = took;
    device->tally.restarts++;
    device->tally.standby_takeovers += device->loss.from_standby;
    bh__histogram_add(&device->tally.takeover, took);
    bh__trace_span(device, "takeover", took, "generation", device->generation,
                   device->loss.from_standby ? "a standby took over" : "a worker started cold");
}

/* Only now, with its words set to where each lane goes on, do this worker's words count. */
void bh__worker_goes(bh__device *device, bh__worker *worker) {
    bh__area *area = bh__worker_area(device, worker), *before = atomic_load(&device->area);
    bh__lock_take(&device->lock);
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (!lane->exists) continue;
        atomic_store(&area->lane[i].claim, bh__claim_word(lane->floor));
        atomic_store(&area->lane[i].done, lane->floor);
        /* What was believed of another worker's words is not believed of this one's. */
        uint64_t era = (atomic_load(&lane->answered) >> BH__ANSWERED_BITS) + 1;
        atomic_store(&lane->answered, era << BH__ANSWERED_BITS | lane->floor);
        lane->head_position = 0; /* what this worker runs begins now */
    }
    bh__driven_arrive(device, worker->area);
    atomic_store(&device->area, area);
    atomic_fetch_add(&device->epoch, 1);
    device->frozen = false;
    /* Whoever sees it run sees who runs. */
    atomic_store(&device->worker_pid, worker->process.program.pid);
    atomic_store(&device->state, BH_DEVICE_RUNNING);
    device->generation++;
    count_takeover(device);
    worker->state = BH__WORKER_ACTIVE;
    bh__health_note(device);
    bh__lock_give(&device->lock);
    device->boot_failures = 0;
    bh__area_wake(before, device->lane_limit);
    bh__dispatcher_poke(device);
    tell_loss(device);
    if (atomic_load(&device->opened) == 0) {
        atomic_store(&device->opened, 1);
        bh__futex_wake(&device->opened, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
    }
}

static void pump(bh__device *device, bh__worker *worker);

/* Where two workers cannot be side by side, the next is started when the last one is gone. */
static bool is_taken(const bh__device *device) {
    for (uint32_t i = 0; (device->alone || device->crowded) && i < BH__AREAS; i++)
        if (device->workers[i].state != BH__WORKER_NONE) return true;
    return false;
}

/* Starts a worker that will be the active one as soon as it is up. If it cannot be yet, the
 * supervisor's loop comes back here. */
static void start_cold(bh__device *device) {
    if (is_taken(device) || bh__now_ns() < device->retry_cold_at) return;
    bh_error error;
    bh__worker *worker;
    if (bh__worker_start(device, &worker, &error) == BH_OK) {
        device->active = worker;
        return;
    }
    if (error.status == BH_E_BUSY) return; /* an area is free as soon as a dead worker is reaped */
    if (atomic_load(&device->opened) && bh__policy_retries(device, &error))
        device->retry_cold_at = bh__now_ns() + BH__NS_PER_S;
    else
        stop(device, &error);
}

static int readiness(const bh__worker *worker) {
    if (bh__is_ready(worker)) return 2;
    return worker->state == BH__WORKER_STANDBY;
}

/* The one that can take over soonest. NULL: there is none. */
static bh__worker *best_standby(bh__device *device) {
    bh__worker *best = NULL;
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers[i];
        if (!bh__is_standby(device, worker)) continue;
        bool better =
            !best || readiness(worker) > readiness(best) ||
            (readiness(worker) == readiness(best) && worker->started_ns < best->started_ns);
        if (better) best = worker;
    }
    return best;
}

/* Says how many standbys are ready, and who is first. */
static void count_standbys(bh__device *device) {
    uint32_t ready = 0;
    for (uint32_t i = 0; i < BH__AREAS; i++)
        ready += bh__is_standby(device, &device->workers[i]) && bh__is_ready(&device->workers[i]);
    const bh__worker *first = best_standby(device);
    atomic_store(&device->standby_pid, first ? first->process.program.pid : 0);
    if (ready == device->standbys_ready) {
        bh__health_note(device);
        return;
    }
    bh__lock_take(&device->lock);
    bool all = ready >= device->options.standbys;
    if (ready > device->standbys_ready) device->boot_failures = 0;
    if (all) device->degraded[0] = 0;
    if (all) device->crowded = false;
    device->standbys_ready = ready;
    bh__health_note(device);
    bh__lock_give(&device->lock);
    standby_changed(device);
}

/* One that has not answered for a while would only be lost in its turn. */
static void bury_silent_standbys(bh__device *device) {
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers[i];
        if (!bh__is_standby(device, worker) || !bh__watch_doubts(device, worker)) continue;
        bh__log_warning("standby %d does not answer and is replaced",
                        (int)worker->process.program.pid);
        bh__orders_recover(device, worker, BH__BLAME_NONE, &device->backlog);
        bh__worker_bury(worker, 0);
    }
}

static void promote(bh__device *device) {
    bury_silent_standbys(device);
    bh__worker *standby = best_standby(device);
    device->active = standby;
    device->loss.from_standby = standby && standby->state == BH__WORKER_STANDBY;
    count_standbys(device);
    if (!standby) {
        start_cold(device);
    } else if (standby->state == BH__WORKER_STANDBY) {
        bh__orders_go(device, standby);
        pump(device, standby);
    }
}

/* ---- losing one ---- */

static void lose_active(bh__device *device, const bh__cause *cause) {
    bh__worker *worker = device->active;
    bh__area *area = bh__worker_area(device, worker);
    device->loss_detected_ns = bh__now_ns();
    bh__order_blame blame = cause->status == BH_E_FAULT && !cause->sequence ? BH__BLAME_SENT
                            : worker->unfit                                 ? BH__BLAME_SENT
                                                                            : BH__BLAME_NONE;
    if (cause->overdue) blame = BH__BLAME_OVERDUE;
    bh__orders_recover(device, worker, blame, &device->backlog);
    bh__lock_take(&device->lock);
    bh__judgement judgement;
    bh_verdict verdict;
    bh_error reason;
    bh__loss_begin(device, cause, &device->loss, &judgement);
    atomic_store(&device->worker_pid, 0);
    bh__health_note(device);
    bh__loss_report *report = bh__loss_report_begin(&judgement);
    bh__policy_decide(&judgement, &verdict, &reason);
    bh__loss_judge(&judgement, verdict.quarantine);
    bh__loss_report_judged(&judgement, report);
    device->broken = cause->broken && !verdict.go_on;
    device->loss_pending = true;
    bh__lock_give(&device->lock);
    device->active = NULL;
    if (verdict.go_on) promote(device);
    bh__worker_bury(worker, device->losses);
    if (verdict.go_on) {
        bh__area_wake(area, device->lane_limit);
        bh__dispatcher_poke(device);
    } else {
        stop(device, &reason);
    }
    standby_changed(device);
}

static void say_degraded(bh__device *device, const bh_error *why, bool crowded) {
    bh__lock_take(&device->lock);
    device->crowded = crowded;
    if (device->standbys_ready)
        snprintf(device->degraded, sizeof device->degraded, "%u of %u standbys: %.220s",
                 device->standbys_ready, device->options.standbys, why->message);
    else
        snprintf(device->degraded, sizeof device->degraded, "no standby: %.230s", why->message);
    bh__health_note(device);
    bh__lock_give(&device->lock);
    bh__log_warning("no standby: %s", why->message);
    standby_changed(device);
}

static void boot_failed(bh__device *device, bh__worker *worker, const bh_error *why) {
    bool active = worker == device->active;
    bool opening = atomic_load(&device->opened) == 0;
    bh__orders_recover(device, worker, BH__BLAME_SENT, &device->backlog);
    bh__worker_bury(worker, 0);
    device->boot_failures++;
    if (active) {
        device->active = NULL;
        device->loss.from_standby = 0; /* the next one is started cold */
        bool patient = device->alone || device->crowded;
        uint32_t attempts = patient ? PATIENT_ATTEMPTS : BOOT_ATTEMPTS;
        bool given_up = device->boot_failures >= attempts;
        if (patient || given_up) {
            uint32_t doublings = device->boot_failures < 10 ? device->boot_failures : 10;
            device->retry_cold_at = bh__now_ns() + (50 * BH__NS_PER_MS << doublings);
        }
        if (opening || (given_up && !bh__policy_retries(device, why))) {
            stop(device, why);
        } else {
            promote(device);
        }
        return;
    }
    uint32_t backoff = device->boot_failures < 6 ? device->boot_failures : 6;
    bool crowded = why->status == BH_E_NO_MEMORY;
    device->retry_standby_at =
        bh__now_ns() + (crowded ? CROWDED_RETRY_S * BH__NS_PER_S : BH__NS_PER_S / 2 << backoff);
    count_standbys(device);
    say_degraded(device, why, crowded);
}

/* Its socket closed or its process ended. */
static void worker_ended(bh__device *device, bh__worker *worker) {
    bh__process_end end = {0};
    /* The canary and the socket go before the process can be waited for, and how it ended matters.
     * Processes with a GPU's memory take long, and tell of their crashes themselves. */
    struct pollfd look = {.fd = worker->process.program.end_fd, .events = POLLIN};
    poll(&look, 1, strcmp(device->kind, "cpu") == 0 ? 100 : 1);
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

/* ---- listening ---- */

static bool worker_ready(bh__device *device, bh__worker *worker, bh__message *message) {
    const bh__ready *ready = &message->u.ready;
    if (message->fd_count == 1) {
        worker->canary_fd = bh__fd_keep(message->fds[0]);
        message->fd_count = 0;
    }
    if (ready->magic != BH__WIRE_MAGIC || ready->version != BH__WIRE_VERSION ||
        ready->chunk_granularity == 0 || ready->chunk_granularity % BH__HEAP_ALIGN) {
        bh_error why;
        bh__fail(&why, BH_E_NO_DEVICE,
                 "install the library and the worker programs from the same version",
                 "%s speaks version %u of the protocol, this library version %u",
                 device->worker_path, ready->version, BH__WIRE_VERSION);
        boot_failed(device, worker, &why);
        return false;
    }
    bh__lock_take(&device->lock);
    device->info = ready->info;
    bh_device_info *info = &device->info;
    info->size = sizeof *info;
    info->kind[sizeof info->kind - 1] = info->name[sizeof info->name - 1] = 0;
    info->driver[sizeof info->driver - 1] = info->arch[sizeof info->arch - 1] = 0;
    info->uuid[sizeof info->uuid - 1] = info->pci[sizeof info->pci - 1] = 0;
    info->no_standby[sizeof info->no_standby - 1] = 0;
    device->alone = info->no_standby[0] != 0;
    device->warp_mask = bh__is_power_of_two(info->warp_size) ? info->warp_size - 1 : 0;
    device->chunk_granularity = ready->chunk_granularity;
    if (device->options.memory_limit == 0) device->options.memory_limit = info->memory_total;
    bh__lock_give(&device->lock);
    if (device->alone && !(device->options.flags & BH_DEVICE_NO_STANDBY)) {
        bh_error why;
        bh__fail(&why, BH_E_UNSUPPORTED, BH__WITHOUT_STANDBY, "%s", device->info.no_standby);
        if (worker != device->active) { /* it has become so since the active one started */
            boot_failed(device, worker, &why);
            return false;
        }
        say_degraded(device, &why, false);
    }
    worker->profiled = ready->profiled;
    worker->state = BH__WORKER_STANDBY;
    bh__orders_brief(device, worker);
    if (worker == device->active) bh__orders_go(device, worker);
    return true;
}

/* Returns false once the worker is no longer to be listened to. */
static bool handle_message(bh__device *device, bh__worker *worker) {
    bh__message *message = device->incoming;
    switch (message->type) {
    case BH__MSG_READY:
        return worker->state == BH__WORKER_BOOTING && worker_ready(device, worker, message);
    case BH__MSG_REFUSED: {
        bh_error why = message->u.error;
        why.message[sizeof why.message - 1] = why.fix[sizeof why.fix - 1] = 0;
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
    case BH__MSG_NOTE:
        bh__log_warning("worker %d: %.*s", (int)worker->process.program.pid,
                        (int)message->data_bytes, (const char *)message->data);
        return true;
    default:
        break;
    }
    worker->unfit = true;
    return true;
}

static void replace_unfit(bh__device *device, bh__worker *worker) {
    bh_error why;
    bool full = worker->unfit_status == BH_E_NO_MEMORY;
    bh__fail(&why, full ? BH_E_NO_MEMORY : BH_E_INTERNAL,
             full ? "make room on the device" : "report this with the program that shows it",
             "worker %d could not be brought up to date: %.200s", (int)worker->process.program.pid,
             worker->errors);
    if (worker->state == BH__WORKER_ACTIVE) {
        bh__cause cause = {.status = BH_E_LOST, .error = why};
        lose_active(device, &cause);
    } else {
        boot_failed(device, worker, &why);
    }
}

static bool is_heard(const bh__worker *worker) {
    return worker->state != BH__WORKER_DYING && worker->state != BH__WORKER_NONE;
}

static void pump(bh__device *device, bh__worker *worker) {
    if (!bh__orders_pump(device, worker)) replace_unfit(device, worker);
}

/* Reads what is there, up to so many messages: one that never stops talking must not keep the
 * supervisor from the others. */
static void listen_to(bh__device *device, bh__worker *worker, uint32_t most) {
    for (uint32_t i = 0; i < most && is_heard(worker); i++) {
        struct pollfd look = {.fd = worker->socket, .events = POLLIN};
        if (poll(&look, 1, 0) <= 0) break;
        int failed = bh__message_receive(worker->socket, device->incoming);
        if (failed == -EPIPE || failed == -EBADF || failed == -ENOTSOCK) {
            worker_ended(device, worker);
            return;
        }
        if (failed) {
            worker->unfit = true;
            break;
        }
        bool listen = handle_message(device, worker);
        bh__message_close_fds(device->incoming);
        if (!listen) return;
    }
    if (is_heard(worker)) pump(device, worker);
}

/* ---- workers that are stuck ---- */

static void replace_insane(bh__device *device) {
    if (!atomic_exchange(&device->insane, false) || !device->active ||
        device->active->state != BH__WORKER_ACTIVE)
        return;
    bh__cause cause = {.status = BH_E_LOST};
    bh__fail(&cause.error, BH_E_LOST, "submit the work again",
             "the worker's completion words make no sense");
    lose_active(device, &cause);
}

static void lose_stuck(bh__device *device, bh__worker *worker, const bh__cause *cause) {
    if (worker->state == BH__WORKER_ACTIVE) {
        lose_active(device, cause);
        return;
    }
    bool was_ready = worker != device->active && bh__is_ready(worker);
    bh_error why = cause->error;
    why.status = BH_E_NO_DEVICE;
    boot_failed(device, worker, &why);
    /* It was fit once: nothing says that the next one will not be. */
    if (was_ready) device->retry_standby_at = 0;
}

static void watch_workers(bh__device *device, uint64_t now, uint64_t *next) {
    bh__cause cause;
    bh__worker *stuck = bh__watch_look(device, now, next, &cause);
    if (!stuck && !atomic_load(&device->insane)) return;
    if (stuck) lose_stuck(device, stuck, &cause);
    replace_insane(device);
    *next = now;
}

/* ---- the loop ---- */

static void take_jobs(bh__device *device, bh__job **out_close) {
    uint64_t count;
    if (bh__fd_is_ours(device->jobs_fd)) {
        ssize_t ignored = read(device->jobs_fd, &count, sizeof count);
        (void)ignored;
    }
    uint32_t flushes = atomic_load(&device->flushes_wanted);
    if (flushes != atomic_load(&device->flushes_done)) {
        if (device->active) listen_to(device, device->active, ALL_MESSAGES);
        bh__flushes_answer(device, flushes);
    }
    bh__job *job = bh__jobs_take(device, false);
    while (job) {
        bh__job *next = job->next;
        job->order.job = job;
        bh__order *order = job->kind == BH__JOB_ORDER ? bh__order_new(&job->order) : NULL;
        if (job->kind == BH__JOB_CLOSE) {
            *out_close = job;
        } else if (device->state == BH_DEVICE_STOPPED || !order) {
            bh__fail(&job->error, BH_E_NO_HOST_MEMORY, "free host memory",
                     "no host memory for an order");
            if (device->state == BH_DEVICE_STOPPED) job->error = device->stop_reason;
            if (order) bh__order_delete(order);
            bh__job_finish(device, job);
        } else {
            bh__order **link = &device->backlog;
            while (*link) link = &(*link)->next;
            *link = order;
        }
        job = next;
    }
}

/* Gives the active worker what was asked for, and the standby what the active worker has carried
 * out. */
static void hand_out_orders(bh__device *device) {
    bh__worker *active = device->active;
    if (device->backlog && active && active->state == BH__WORKER_ACTIVE) {
        while (device->backlog) {
            bh__order *order = device->backlog;
            device->backlog = order->next;
            bh__order_append(active, order);
        }
        pump(device, active);
    }
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers[i];
        if (bh__is_standby(device, worker) && worker->waiting) pump(device, worker);
    }
}

static bool wants_standby(const bh__device *device) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < BH__AREAS; i++) count += bh__is_standby(device, &device->workers[i]);
    return count < device->options.standbys && !device->alone && device->state == BH_DEVICE_RUNNING;
}

/* Keeps as many standbys as asked for and says when they are ready. Lowers *next. */
static void tend_workers(bh__device *device, uint64_t now, uint64_t *next) {
    if (device->state == BH_DEVICE_STOPPED) return;
    if (!device->active) start_cold(device);
    if (!device->active && device->retry_cold_at > now && device->retry_cold_at < *next)
        *next = device->retry_cold_at;
    while (wants_standby(device) && now >= device->retry_standby_at) {
        bh_error error;
        bh__worker *worker;
        bh_status status = bh__worker_start(device, &worker, &error);
        if (status == BH_OK) {
            bh__lock_take(&device->lock);
            device->tally.standby_starts++;
            bh__lock_give(&device->lock);
        } else {
            bool busy = status == BH_E_BUSY; /* until a dead worker is reaped */
            device->retry_standby_at = now + (busy ? 10 * BH__NS_PER_MS : BH__NS_PER_S);
            if (!busy) say_degraded(device, &error, false);
        }
    }
    if (wants_standby(device) && device->retry_standby_at < *next) *next = device->retry_standby_at;
    count_standbys(device);
}

static void stop_robbed(bh__device *device) {
    bh_error reason;
    bh__fail(&reason, BH_E_STOPPED,
             "close only descriptors that the program opened itself (not with closefrom)",
             "the program closed descriptors that belong to Bulkhead");
    device->robbed = true;
    stop(device, &reason);
}

static void close_all(bh__device *device, bh__job *job) {
    bh_error cancelled;
    bh__fail(&cancelled, BH_E_CANCELLED, "wait for work before closing the device",
             "the device was closed before this was done");
    bh__workers_finish(device);
    end_work(device, &cancelled, BH_E_CANCELLED, 10 * BH__NS_PER_S);
    bh__lock_take(&device->lock);
    (void)bh__late_tell(device, UINT64_MAX);
    bh__lock_give(&device->lock);
    for (uint32_t i = 0; i < BH__AREAS; i++) bh__process_close(&device->workers[i].process);
    bh__jobs_close(device);
    bh__job_finish(device, job);
}

/* What the supervisor sleeps on. Only descriptors that exist are listed: poll takes no more entries
 * than a process may have descriptors, and that may be few. */
enum { MOST_WATCHED = 1 + BH__AREAS * 4 };

typedef struct watched {
    struct pollfd look[MOST_WATCHED];
    bh__worker *worker[MOST_WATCHED];
    uint32_t count;
} watched;

static void watch(watched *self, int fd, bh__worker *worker) {
    if (fd < 0) return;
    self->look[self->count] = (struct pollfd){.fd = fd, .events = POLLIN};
    self->worker[self->count++] = worker;
}

static void watch_all(bh__device *device, watched *self) {
    self->count = 0;
    if (device->robbed) return;
    watch(self, device->jobs_fd, NULL);
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers[i];
        if (worker->state == BH__WORKER_NONE) continue;
        if (worker->state != BH__WORKER_DYING) {
            watch(self, worker->errors_fd, worker);
            watch(self, worker->socket, worker);
            watch(self, worker->canary_fd, worker);
        }
        watch(self, worker->process.program.end_fd, worker);
    }
}

/* A worker's descriptor has something to say; an earlier one may have changed what the worker is by
 * now. */
static void react(bh__device *device, bh__worker *worker, int fd) {
    if (worker->state == BH__WORKER_NONE) return;
    if (worker->state == BH__WORKER_DYING) {
        if (fd == worker->process.program.end_fd) (void)bh__worker_reap(device, worker);
    } else if (fd == worker->errors_fd) {
        bh__worker_read_errors(worker);
    } else if (fd == worker->socket) {
        listen_to(device, worker, SOME_MESSAGES);
    } else if (fd == worker->process.program.end_fd || fd == worker->canary_fd) {
        listen_to(device, worker, ALL_MESSAGES); /* what it said before it ended */
        if (is_heard(worker)) worker_ended(device, worker);
    }
}

void *bh__supervisor_main(void *argument) {
    bh__device *device = argument;
    bh__job *close_job = NULL;
    watched all;
    bh__supervise(device);
    while (!close_job) {
        uint64_t now = bh__now_ns(), next = BH__NEVER;
        tend_workers(device, now, &next);
        watch_workers(device, now, &next);
        if (device->robbed && now + 10 * BH__NS_PER_MS < next) next = now + 10 * BH__NS_PER_MS;

        watch_all(device, &all);
        struct timespec timeout = bh__timespec(next == BH__NEVER ? 0 : bh__time_left(next));
        ppoll(all.look, all.count, next == BH__NEVER ? NULL : &timeout, NULL);

        if (!device->robbed && !bh__fd_is_ours(device->jobs_fd)) stop_robbed(device);
        for (uint32_t i = 0; i < all.count && !device->robbed; i++) {
            if (all.worker[i] && all.look[i].revents) react(device, all.worker[i], all.look[i].fd);
        }
        take_jobs(device, &close_job);
        hand_out_orders(device);
    }
    close_all(device, close_job);
    return NULL;
}
