/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: query, wait, cancel. docs/protocol.md explains why the order of loads here is right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/futex.h"
#include "base/relax.h"
#include "client/callback/callback.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/jobs/jobs.h"
#include "client/queue/doubt.h"
#include "client/queue/queue.h"
#include "client/queue/resolve.h"
#include "client/queue/walk.h"

/* Queries with the lock held. This is the only way while lanes are frozen: the supervisor decides
 * with the lock held which requests are done. */
static bh_status ask_locked(bh__device *device, bh__lane *lane, bh_ticket ticket) {
    bh__lock_take(&device->lock);
    bh_status status = ticket.lane ? bh__verdicts_status(ticket) : BH_OK;
    if (status == BH_OK && bh__lane_done(device, lane) < ticket.sequence &&
        bh__answered_position(atomic_load(&lane->answered)) < ticket.sequence)
        status = atomic_load(&device->state) == BH__DEVICE_STOPPED &&
                         !bh__deferred_pending(device, lane, ticket)
                     ? BH_E_STOPPED
                     : BH_E_BUSY;
    bh__lock_give(&device->lock);
    return status;
}

static bh_status ask_load_lane(bh__device *device, bh__lane *lane, bh_ticket ticket) {
    bool passed = atomic_load(&lane->load_done) >= ticket.sequence;
    if (!ticket.lane) return passed ? BH_OK : BH_E_BUSY;
    if (passed && ticket.sequence > atomic_load(&lane->last_failed)) return BH_OK;
    bh__lock_take(&device->lock);
    bool open = bh__load_pending(lane, ticket.sequence);
    bh__lock_give(&device->lock);
    return open ? BH_E_BUSY : bh__verdicts_status(ticket);
}

/* Records in lane->answered that a caller has seen the lane done up to here. Returns false if the
 * lanes froze or the worker was replaced since `*answered` was read. */
static bool note_answered(bh__lane *lane, uint64_t *answered, uint64_t sequence) {
    uint64_t now = *answered, era = now >> BH__ANSWERED_BITS;
    while (bh__answered_position(now) < sequence) {
        uint64_t next = era << BH__ANSWERED_BITS | sequence;
        if (atomic_compare_exchange_weak(&lane->answered, &now, next)) break;
        if (now >> BH__ANSWERED_BITS != era) return false;
    }
    return true;
}

uint64_t bh__answered_close(bh__lane *lane) {
    uint64_t one = (uint64_t)1 << BH__ANSWERED_BITS;
    return bh__answered_position(atomic_fetch_add(&lane->answered, one));
}

bh_status bh__lane_ask(bh__device *device, bh__lane *lane, bh_ticket ticket) {
    if (lane->index == BH__LOAD_LANE) return ask_load_lane(device, lane, ticket);
    uint64_t sequence = ticket.sequence;
    for (;;) {
        uint64_t epoch = atomic_load(&device->queue.epoch);
        uint64_t answered = atomic_load(&lane->answered);
        bool done = bh__answered_position(answered) >= sequence, halted = false;
        if (!done) {
            /* After a freeze the supervisor has read the worker's state, and `answered` must not be
             * raised from it any more. If the freeze comes after this check, note_answered fails or
             * the supervisor sees its value. */
            if (atomic_load(&device->queue.halted)) return ask_locked(device, lane, ticket);
            uint64_t position = atomic_load(&bh__lane_words(device, lane)->done);
            if (position > atomic_load(&lane->tail)) {
                if (atomic_load(&device->queue.epoch) == epoch) bh__worker_distrust(device);
                position = 0;
            }
            done = position >= sequence;
            /* This thread raises `answered` before it reads `halted`. The supervisor sets `halted`
             * before it reads `answered`. */
            if (done && !note_answered(lane, &answered, sequence)) continue;
            halted = atomic_load(&device->queue.halted);
        }
        uint64_t last_failed = atomic_load(&lane->last_failed);
        bool stopped = atomic_load(&device->state) == BH__DEVICE_STOPPED;
        if (atomic_load(&device->queue.epoch) != epoch) continue;
        bool failed = ticket.lane && sequence <= last_failed;
        bh_status verdict = failed ? bh__verdicts_status(ticket) : BH_OK;
        if (verdict != BH_OK) return verdict;
        /* Another thread may be about to record a verdict. */
        if (halted || stopped || (failed && done)) return ask_locked(device, lane, ticket);
        return done ? BH_OK : BH_E_BUSY;
    }
}

/* ---- sleeping ---- */

/* Tells the worker the lowest position that a sleeper waits for. A sleeper whose position is done
 * still counts until it has left: it may not have been woken yet. */
static void post_notify(bh__device *device, bh__lane *lane) {
    uint64_t lowest = BH__NEVER;
    for (const bh__sleeper *sleeper = lane->sleepers; sleeper; sleeper = sleeper->next) {
        if (sleeper->sequence < lowest) lowest = sleeper->sequence;
    }
    atomic_store(&lane->lowest_sleeper, lowest);
    atomic_store(&device->queue.front->lane[lane->index].notify_sleep, lowest);
}

static void sleeper_remove(bh__device *device, bh__lane *lane, bh__sleeper *self) {
    pthread_mutex_lock(&lane->wait_lock);
    bh__sleeper **link = &lane->sleepers;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    post_notify(device, lane);
    pthread_mutex_unlock(&lane->wait_lock);
}

static bh_status sleep_on_ring(bh__device *device, bh__lane *lane, bh_ticket ticket,
                               uint64_t deadline) {
    bh__sleeper self = {.sequence = ticket.sequence};
    pthread_mutex_lock(&lane->wait_lock);
    self.next = lane->sleepers;
    lane->sleepers = &self;
    pthread_mutex_unlock(&lane->wait_lock);

    bh_status status;
    for (;;) {
        bh__area *area = atomic_load(&device->queue.area);
        _Atomic uint32_t *wake = &area->lane[lane->index].wake;
        uint32_t seen = atomic_load(wake);
        pthread_mutex_lock(&lane->wait_lock);
        post_notify(device, lane);
        pthread_mutex_unlock(&lane->wait_lock);
        /* This thread posts its position before it reads `done`. The worker stores `done` before it
         * reads the posted position. So no wakeup gets lost. */
        status = bh__lane_ask(device, lane, ticket);
        if (status != BH_E_BUSY) break;
        if (atomic_load(&device->queue.area) != area) continue;
        bh__watch_begin(device);
        /* Check the clock, too: a faulty worker may change `wake` so often that the futex wait
         * never times out. */
        if (!bh__futex_wait(wake, seen, deadline, BH__FUTEX_SHARED) || bh__now_ns() >= deadline) {
            status = bh__lane_ask(device, lane, ticket);
            if (status == BH_E_BUSY) status = BH_E_TIMEOUT;
            break;
        }
    }
    sleeper_remove(device, lane, &self);
    return status;
}

static bh_status sleep_on_loads(bh__device *device, bh__lane *lane, bh_ticket ticket,
                                uint64_t deadline) {
    for (;;) {
        uint32_t seen = atomic_load(&lane->load_wake);
        bh_status status = ask_load_lane(device, lane, ticket);
        if (status != BH_E_BUSY) return status;
        if (!bh__futex_wait(&lane->load_wake, seen, deadline, BH__FUTEX_PRIVATE))
            return BH_E_TIMEOUT;
    }
}

bh_status bh__lane_wait(bh__device *device, bh__lane *lane, bh_ticket ticket, uint64_t deadline) {
    bh_status status = bh__lane_ask(device, lane, ticket);
    if (status != BH_E_BUSY) return status;
    atomic_fetch_add_explicit(&lane->host_waits, 1, memory_order_relaxed);
    uint64_t now = bh__now_ns();
    uint64_t spin_until = now + device->options.wait_spin_ns;
    if (spin_until > deadline) spin_until = deadline;
    while (now < spin_until) {
        for (int i = 0; i < 16; i++) {
            status = bh__lane_ask(device, lane, ticket);
            if (status != BH_E_BUSY) return status;
            bh__cpu_relax();
        }
        now = bh__now_ns();
    }
    if (now >= deadline) return BH_E_TIMEOUT;
    if (lane->index == BH__LOAD_LANE) return sleep_on_loads(device, lane, ticket, deadline);
    return sleep_on_ring(device, lane, ticket, deadline);
}

bh_status bh__lane_let_pass(bh__device *device, bh__lane *lane, uint64_t position) {
    bh__device_step_out(device);
    bh_status status = bh__lane_wait(device, lane, (bh_ticket){0, position}, BH__NEVER);
    bh__device_step_in(device);
    return status;
}

/* A worker can write `wake`, too. It cannot predict the step, so it cannot restore the old value
 * and make a sleeper miss the wakeup. */
void bh__area_wake(bh__area *area, uint32_t lanes) {
    uint32_t step = (uint32_t)(bh__now_ns() & 0xffff) | 1;
    for (uint32_t i = 0; i < lanes; i++) {
        atomic_fetch_add(&area->lane[i].wake, step);
        bh__futex_wake(&area->lane[i].wake, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    }
}

/* ---- reports ---- */

/* A worker does not complete the request that it reports before the report is taken. A report of
 * any other request is faulty: returns false. */
static bool collect_one(bh__device *device, const bh__report *shared) {
    bh__report report;
    bh__report_copy(shared, &report);
    bh__lane *lane = report.lane < device->queue.lane_limit ? &device->lanes[report.lane] : NULL;
    bh__shadow *shadow =
        lane && lane->exists ? bh__shadow_ending(device, lane, report.sequence) : NULL;
    if (!shadow) return false;
    bh_error error;
    bh__fail(&error, bh__status_of_worker(report.status), report.fix, "%s", report.message);
    bh__fail_device_code(&error, report.device_code, report.device_name);
    /* Outputs are suspect after a stopped launch (written in part), a failed sequence (earlier
     * steps have run), a failed page move or zeroing (later requests would read old bytes), and a
     * failed library call (it may have written part of them). */
    bool damaged = error.status == BH_E_CANCELLED || shadow->sequence || shadow->needed ||
                   bh__hooks.moves_pages(device, lane, shadow);
    bh__request_fail(device, lane, shadow,
                     &(bh__failure){.status = error.status, .certain = 1, .detail = &error},
                     damaged);
    return true;
}

void bh__reports_collect(bh__device *device) {
    if (device->queue.frozen) return;
    bh__area *area = atomic_load(&device->queue.area);
    uint32_t made = atomic_load(&area->reports_made), taken = device->queue.reports_taken;
    if (made == taken) return;
    bool sane = made - taken <= BH__REPORTS;
    for (; sane && taken != made; taken++)
        sane = collect_one(device, &area->reports[taken % BH__REPORTS]);
    if (!sane) bh__worker_distrust(device);
    bh__dependents_resolve(device);
    device->queue.reports_taken = made;
    /* The verdicts are recorded: the worker's lanes may continue. */
    atomic_store(&area->reports_taken, made);
    bh__futex_wake(&area->reports_taken, BH__FUTEX_ALL, BH__FUTEX_SHARED);
}

/* ---- the public calls ---- */

bh_status bh__refuse_ticket(bh_ticket ticket) {
    return bh__refuse(BH_E_INVALID, "pass a ticket that a Bulkhead call has filled in",
                      "ticket {0x%llx, %llu} was never issued", (unsigned long long)ticket.lane,
                      (unsigned long long)ticket.sequence);
}

void bh__lane_note_written_back(bh__device *device, bh__lane *lane, uint64_t sequence) {
    if (__builtin_expect(!atomic_load(&device->managed.transparent), 1)) return;
    uint64_t before = atomic_load(&lane->written_back);
    while (before < sequence &&
           !atomic_compare_exchange_weak(&lane->written_back, &before, sequence)) {
    }
}

/* Completes the write-back of transparent buffers before the program is told that a ticket is done.
 * If a later writer is cancelled, earlier results may need a write-back again. The next query does
 * that; a ticket that was reported as done stays done. Reads first what was reported: on a stopped
 * device later tickets may be reported as done although this one was not. */
static bh_status write_back_first(bh__device *device, bh__lane *lane, uint64_t sequence, bool wait,
                                  uint64_t deadline) {
    bh__lane *via;
    uint64_t position;
    bool reported = sequence <= atomic_load(&lane->written_back);
    bh_status status = wait ? bh__hooks.completing_wait(device, lane, sequence, deadline)
                            : bh__hooks.completing(device, lane, sequence, &via, &position);
    return reported && (status == BH_E_BUSY || status == BH_E_TIMEOUT) ? BH_OK : status;
}

/* For a failed ticket. Its status does not change, but the write-back of earlier results may have
 * been left to it. Waits for that write-back until the deadline. */
static void write_back_rest(bh__device *device, bh__lane *lane, uint64_t sequence,
                            uint64_t deadline) {
    bh__lock_take(&device->lock);
    uint64_t done = bh__lane_done(device, lane);
    bh__lock_give(&device->lock);
    (void)bh__hooks.completing_wait(device, lane, done < sequence ? done : sequence, deadline);
}

/* Queries the ticket or waits for it, and describes a failure in *out. */
static bh_status ticket_answer(bh_ticket ticket, bool wait, uint64_t deadline, bh_error *out) {
    bh__device *device;
    bh__lane *lane;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    if (!bh__ticket_enter(ticket, &device, &lane)) return bh__refuse_ticket(ticket);
    if (!lane) return bh__verdicts_describe(ticket, out);
    bh_status status;
    if (wait && bh__in_policy(device)) {
        bh__ticket_leave(device);
        return bh__refuse_in_policy();
    }
    if (ticket.sequence > atomic_load(&lane->tail) || ticket.sequence == 0) {
        bh__ticket_leave(device);
        return bh__refuse_ticket(ticket);
    }
    status =
        wait ? bh__lane_wait(device, lane, ticket, deadline) : bh__lane_ask(device, lane, ticket);
    if (status == BH_OK) {
        if (__builtin_expect(atomic_load(&device->managed.to_write_back), 0))
            status = write_back_first(device, lane, ticket.sequence, wait, deadline);
        else
            bh__lane_note_written_back(device, lane, ticket.sequence);
    }
    bool failed = status != BH_OK && status != BH_E_BUSY && status != BH_E_TIMEOUT;
    if (failed && wait && lane->index != BH__LOAD_LANE &&
        atomic_load(&device->managed.to_write_back))
        write_back_rest(device, lane, ticket.sequence, deadline);
    bh__ticket_leave(device);
    if (failed) (void)bh__verdicts_describe(ticket, out);
    return status;
}

bh_status bh_wait(bh_ticket ticket, uint64_t timeout_ns) {
    if (timeout_ns == 0) return ticket_answer(ticket, false, 0, bh__last());
    bh_status status = ticket_answer(ticket, true, bh__deadline_after(timeout_ns), bh__last());
    if (status == BH_E_TIMEOUT) {
        bh__refuse(BH_E_TIMEOUT, "wait longer, or give the launch a deadline",
                   "timed out after %llu ns: the work is not done", (unsigned long long)timeout_ns);
    }
    return status;
}

bh_status bh_wait_all(const bh_ticket *tickets, size_t count, uint64_t timeout_ns) {
    if (!tickets && count)
        return bh__refuse(BH_E_INVALID, "pass an array of tickets",
                          "tickets is NULL and count is %zu", count);
    if (count > PTRDIFF_MAX / sizeof *tickets) /* most likely a negative count */
        return bh__refuse(BH_E_INVALID, "pass the number of tickets in the array",
                          "count is %zu, which is more than an array can have", count);
    uint64_t deadline = bh__deadline_after(timeout_ns);
    bh_error first = {.status = BH_OK}, before = *bh__last();
    for (size_t i = 0; i < count; i++) {
        bh_status status = ticket_answer(tickets[i], timeout_ns > 0, deadline, bh__last());
        if (status == BH_E_BUSY) {
            *bh__last() = before; /* without the error of an earlier ticket */
            return status;
        }
        if (status == BH_E_TIMEOUT) {
            return bh__refuse(BH_E_TIMEOUT, "wait longer, or give the launches a deadline",
                              "timed out after %llu ns: tickets[%zu] of %zu is not done",
                              (unsigned long long)timeout_ns, i, count);
        }
        if (status != BH_OK && first.status == BH_OK) first = *bh__last();
    }
    return first.status == BH_OK ? BH_OK : bh__refuse_with(&first);
}

bh_status bh_ticket_error(bh_ticket ticket, bh_error *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the error", "out is NULL");
    memset(out, 0, sizeof *out);
    bh_status status = ticket_answer(ticket, false, 0, out);
    if (status == BH_E_INVALID && out->status == BH_OK) *out = *bh__last();
    if (status == BH_E_BUSY)
        bh__fail(out, BH_E_BUSY, "wait for it with bh_wait", "the work is not done yet");
    return status;
}

static bh_status refuse_ended(void) {
    return bh__refuse(BH_E_INVALID, "get its result with bh_wait and a timeout of 0",
                      "the work has already ended");
}

static bh_status refuse_begun(void) {
    return bh__refuse(BH_E_BUSY, "wait for it; a deadline limits how long a launch may run",
                      "the work has begun and cannot be cancelled");
}

/* With PAUSED set the worker takes no request of this lane, so one that is not taken now can be
 * replaced by BH__OP_SKIP. Dependent requests on other lanes may be taken, but they cannot complete
 * before the lane passes this request, so they get their verdicts in time. */
static bh_status cancel_locked(bh__device *device, bh__lane *lane, bh_ticket ticket) {
    if (atomic_load(&lane->id) != ticket.lane || bh__verdicts_status(ticket) != BH_OK)
        return refuse_ended();
    bh__shadow *shadow = bh__shadow_ending(device, lane, ticket.sequence);
    if (!shadow) return refuse_ended();
    /* All pieces of a call are cancelled, or none. */
    uint64_t start = shadow->call ? shadow->call - 1 : shadow->start;
    bh__lane_area *area = bh__lane_words(device, lane);
    uint64_t taken = lane->floor;
    if (!device->queue.frozen)
        taken = bh__lane_taken(device, lane, atomic_fetch_or(&area->claim, BH__PAUSED));
    /* A request that a lost worker had begun counts as begun, even if it is retried. */
    bool cancellable = taken <= start && lane->begun <= start;
    if (cancellable) {
        bh__request_fail(device, lane, shadow,
                         &(bh__failure){.status = BH_E_CANCELLED, .certain = 1}, false);
        bh__dependents_resolve(device);
    }
    if (!device->queue.frozen) atomic_fetch_and(&area->claim, ~BH__PAUSED);
    return cancellable ? BH_OK : refuse_begun();
}

bool bh__load_pending(const bh__lane *lane, uint64_t sequence) {
    const bh__module *module = lane->pending;
    while (module && module->ticket < sequence) module = module->next_pending;
    return module && module->ticket == sequence;
}

static bh_status cancel_load(bh__device *device, bh__lane *lane, uint64_t sequence) {
    bh_error cancelled;
    bh__fail(&cancelled, BH_E_CANCELLED, "nothing to do: it was cancelled before it was loaded",
             "the compile was cancelled");
    if (bh__hooks.cancel_compile(device, sequence, &cancelled)) return BH_OK;
    bh__lock_take(&device->lock);
    bool open = bh__load_pending(lane, sequence);
    bh__lock_give(&device->lock);
    return open ? bh__refuse(BH_E_BUSY, "wait for it", "the load has begun and cannot be cancelled")
                : refuse_ended();
}

bh_status bh_cancel(bh_ticket ticket) {
    bh__device *device;
    bh__lane *lane;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    if (!bh__ticket_enter(ticket, &device, &lane)) return bh__refuse_ticket(ticket);
    if (!lane) return refuse_ended();
    bh_status status;
    if (ticket.sequence > atomic_load(&lane->tail) || ticket.sequence == 0) {
        status = bh__refuse_ticket(ticket);
    } else if (lane->index == BH__LOAD_LANE) {
        status = cancel_load(device, lane, ticket.sequence);
    } else {
        bh__lock_take(&device->lock);
        status = cancel_locked(device, lane, ticket);
        bh__area *area = atomic_load(&device->queue.area);
        uint32_t lanes = device->queue.lane_limit;
        bh__lock_give(&device->lock);
        if (status == BH_OK) {
            bh__area_wake(area, lanes);
            bh__dispatcher_poke(device);
        } else if (status == BH_E_INVALID && atomic_load(&device->managed.to_write_back) &&
                   bh__lane_ask(device, lane, ticket) == BH_OK &&
                   write_back_first(device, lane, ticket.sequence, false, 0) == BH_E_BUSY) {
            /* Callers see the ticket as not done while its write-back is in flight. */
            status = refuse_begun();
        }
    }
    bh__ticket_leave(device);
    return status;
}
