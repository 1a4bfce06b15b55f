/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: asking, waiting, cancelling. The order of loads here is argued in docs/protocol.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/futex.h"
#include "base/relax.h"
#include "client/doubt.h"
#include "client/queue.h"
#include "client/resolve.h"

static bh__lane_area *words(bh__area *area, const bh__lane *lane) {
    return &area->lane[lane->index];
}

BH__COLD void bh__worker_is_mad(bh__device *device) {
    if (!atomic_exchange(&device->insane, true)) bh__supervisor_poke(device);
}

void bh__lane_retire(bh__device *device, bh__lane *lane, uint64_t position) {
    if (device->doubted) bh__doubt_completed(device, lane, lane->retired, position);
    lane->retired = position;
}

uint64_t bh__lane_done(bh__device *device, bh__lane *lane) {
    if (device->frozen || !lane->exists) return lane->floor;
    uint64_t done = atomic_load(&words(atomic_load(&device->area), lane)->done);
    if (done == lane->retired) return done;
    uint64_t tail = atomic_load_explicit(&lane->tail, memory_order_relaxed);
    /* A worker gone mad may claim anything; what was never submitted is not done, what was done stays
     * so, and requests are done whole. */
    if (done > tail || done < lane->retired ||
        (done != tail && bh__shadow_at(device, lane, done)->start != done)) {
        bh__worker_is_mad(device);
        return lane->retired;
    }
    bh__lane_retire(device, lane, done);
    return done;
}

/* With the lock. While lanes are frozen this is the only way to ask: the judgement, made with the
 * lock held, says what is done. */
static bh_status ask_locked(bh__device *device, bh__lane *lane, bh_ticket ticket) {
    bh__lock_take(&device->lock);
    bh_status status = ticket.lane ? bh__history_status(ticket) : BH_OK;
    if (status == BH_OK && bh__lane_done(device, lane) < ticket.sequence &&
        bh__answered_position(atomic_load(&lane->answered)) < ticket.sequence)
        status = atomic_load(&device->state) == BH_DEVICE_STOPPED &&
                         !bh__late_pending(device, lane, ticket)
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
    return open ? BH_E_BUSY : bh__history_status(ticket);
}

/* Notes that the lane is believed to be done up to here. False: the worker was replaced since
 * `*answered` was read. */
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
        uint64_t epoch = atomic_load(&device->epoch);
        uint64_t answered = atomic_load(&lane->answered), claim = 0;
        bool done = bh__answered_position(answered) >= sequence;
        if (!done) {
            bh__lane_area *area = words(atomic_load(&device->area), lane);
            /* What a frozen worker says has been looked at already and is not noted: the note would
             * pass for something that was known in time. If the freeze comes after this look, the
             * note fails, or the supervisor sees it. */
            if (atomic_load(&area->claim) & BH__FROZEN) return ask_locked(device, lane, ticket);
            uint64_t position = atomic_load(&area->done);
            if (position > atomic_load(&lane->tail)) {
                bh__worker_is_mad(device);
                position = 0;
            }
            done = position >= sequence;
            /* Noted first, frozen looked at second; the supervisor freezes first and looks at what
             * was noted second. */
            if (done && !note_answered(lane, &answered, sequence)) continue;
            claim = atomic_load(&area->claim);
        }
        uint64_t last_failed = atomic_load(&lane->last_failed);
        bool stopped = atomic_load(&device->state) == BH_DEVICE_STOPPED;
        if (atomic_load(&device->epoch) != epoch) continue;
        bool failed = ticket.lane && sequence <= last_failed;
        bh_status verdict = failed ? bh__history_status(ticket) : BH_OK;
        if (verdict != BH_OK) return verdict;
        /* A verdict may be about to be written. */
        if ((claim & BH__FROZEN) || stopped || (failed && done))
            return ask_locked(device, lane, ticket);
        return done ? BH_OK : BH_E_BUSY;
    }
}

/* ---- sleeping ---- */

/* Tells the worker the lowest position that a sleeper waits for. Those whose position is done count
 * until they have left: they may not have been woken yet. */
static void post_notify(bh__device *device, bh__lane *lane) {
    uint64_t lowest = BH__NEVER;
    for (const bh__sleeper *sleeper = lane->sleepers; sleeper; sleeper = sleeper->next) {
        if (sleeper->sequence < lowest) lowest = sleeper->sequence;
    }
    atomic_store(&device->front->lane[lane->index].notify_sleep, lowest);
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
        bh__area *area = atomic_load(&device->area);
        uint32_t seen = atomic_load(&words(area, lane)->wake);
        pthread_mutex_lock(&lane->wait_lock);
        post_notify(device, lane);
        pthread_mutex_unlock(&lane->wait_lock);
        /* Posted first, asked second: the worker stores done first and looks for posts second. */
        status = bh__lane_ask(device, lane, ticket);
        if (status != BH_E_BUSY) break;
        if (atomic_load(&device->area) != area) continue;
        bh__watch_begin(device);
        if (!bh__futex_wait(&words(area, lane)->wake, seen, deadline, BH__FUTEX_SHARED)) {
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
    if (lane->index == BH__LOAD_LANE)
        return sleep_on_loads(device, lane, ticket, deadline);
    return sleep_on_ring(device, lane, ticket, deadline);
}

bh_status bh__lane_let_pass(bh__device *device, bh__lane *lane, uint64_t position) {
    bh__device_step_out(device);
    bh_status status = bh__lane_wait(device, lane, (bh_ticket){0, position}, BH__NEVER);
    bh__device_step_in(device);
    return status;
}

void bh__area_wake(bh__area *area, uint32_t lanes) {
    for (uint32_t i = 0; i < lanes; i++) {
        atomic_fetch_add(&area->lane[i].wake, 1);
        bh__futex_wake(&area->lane[i].wake, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    }
}

/* ---- reports ---- */

/* Copies a piece of text out of shared memory, which may change under our hands and need not end.
 */
static void copy_text(char *target, size_t target_bytes, const char *source, size_t source_bytes) {
    size_t bytes = source_bytes < target_bytes ? source_bytes : target_bytes;
    memcpy(target, source, bytes);
    target[bytes - 1] = 0;
}

/* The worker waits with the request it reports until the report is taken, so it is not done. A report
 * of anything else is that of a worker gone mad. */
static bool collect_one(bh__device *device, const bh__report *report) {
    uint32_t index = report->lane;
    uint64_t sequence = report->sequence;
    bh__lane *lane = index < device->lane_limit ? &device->lanes[index] : NULL;
    bh__shadow *shadow =
        lane && lane->exists ? bh__shadow_ending(device, lane, sequence) : NULL;
    if (!shadow) return false;
    bh_error error = {.status = report->status, .device_code = report->device_code};
    if (error.status <= BH_OK || error.status > BH_E_INTERNAL) error.status = BH_E_INTERNAL;
    copy_text(error.message, sizeof error.message, report->message, sizeof report->message);
    copy_text(error.fix, sizeof error.fix, report->fix, sizeof report->fix);
    copy_text(error.device_name, sizeof error.device_name, report->device_name,
              sizeof report->device_name);
    /* Steps of a sequence before the one that was refused have run. Without a move of a managed buffer's pages, or the
     * zeros of a new buffer, what was submitted behind it would find old bytes. */
    bool damaged =
        shadow->sequence || shadow->needed || bh__managed_moves(device, lane, shadow);
    bh__request_fail(device, lane, shadow,
                        &(bh__failure){.status = error.status, .certain = 1, .detail = &error},
                        damaged);
    return true;
}

void bh__reports_collect(bh__device *device) {
    if (device->frozen) return;
    bh__area *area = atomic_load(&device->area);
    uint32_t made = atomic_load(&area->reports_made), taken = atomic_load(&area->reports_taken);
    if (made == taken) return;
    for (uint32_t left = BH__REPORTS; taken != made && left > 0; left--, taken++) {
        if (!collect_one(device, &area->reports[taken % BH__REPORTS])) bh__worker_is_mad(device);
    }
    bh__dependents_resolve(device);
    /* Only now may the lanes that reported go on. */
    atomic_store(&area->reports_taken, made);
    bh__futex_wake(&area->reports_taken, BH__FUTEX_ALL, BH__FUTEX_SHARED);
}

/* ---- the public calls ---- */

static bh_status refuse_ticket(bh_ticket ticket) {
    return bh__refuse(BH_E_INVALID, "pass a ticket that a Bulkhead call has filled in",
                      "ticket {0x%llx, %llu} was never given out", (unsigned long long)ticket.lane,
                      (unsigned long long)ticket.sequence);
}

/* What transparent buffers were written with is there before the program learns of it. */
static bh_status come_home(bh__device *device, bh__lane *lane, uint64_t sequence, bool wait,
                           uint64_t deadline) {
    bh__lane *via;
    uint64_t position;
    return wait ? bh__managed_home_wait(device, lane, sequence, deadline)
                : bh__managed_home(device, lane, sequence, &via, &position);
}

/* A request that failed changes nothing about its answer, but results before it that were left for it
 * to bring home come home now, in the time that there is. */
static void bring_rest_home(bh__device *device, bh__lane *lane, uint64_t sequence,
                            uint64_t deadline) {
    bh__lock_take(&device->lock);
    uint64_t done = bh__lane_done(device, lane);
    bh__lock_give(&device->lock);
    (void)bh__managed_home_wait(device, lane, done < sequence ? done : sequence, deadline);
}

/* Finds the ticket's lane, asks or waits, and explains a failure in *out. */
static bh_status ticket_answer(bh_ticket ticket, bool wait, uint64_t deadline, bh_error *out) {
    bh__device *device;
    bh__lane *lane;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    if (!bh__ticket_enter(ticket, &device, &lane)) return refuse_ticket(ticket);
    if (!lane) return bh__history_describe(ticket, out);
    bh_status status;
    if (wait && bh__in_policy(device)) {
        bh__ticket_leave(device);
        return bh__refuse_in_policy();
    }
    if (ticket.sequence > atomic_load(&lane->tail) || ticket.sequence == 0) {
        bh__ticket_leave(device);
        return refuse_ticket(ticket);
    }
    status = wait ? bh__lane_wait(device, lane, ticket, deadline)
                  : bh__lane_ask(device, lane, ticket);
    if (status == BH_OK && __builtin_expect(atomic_load(&device->unhomed), 0))
        status = come_home(device, lane, ticket.sequence, wait, deadline);
    bool failed = status != BH_OK && status != BH_E_BUSY && status != BH_E_TIMEOUT;
    if (failed && wait && lane->index != BH__LOAD_LANE && atomic_load(&device->unhomed))
        bring_rest_home(device, lane, ticket.sequence, deadline);
    bh__ticket_leave(device);
    if (failed) (void)bh__history_describe(ticket, out);
    return status;
}

bh_status bh_query(bh_ticket ticket) {
    return ticket_answer(ticket, false, 0, bh__last());
}

bh_status bh_wait(bh_ticket ticket, uint64_t timeout_ns) {
    bh_status status = ticket_answer(ticket, true, bh__deadline_after(timeout_ns), bh__last());
    if (status == BH_E_TIMEOUT) {
        bh__refuse(BH_E_TIMEOUT, "wait longer, or give the launch a deadline",
                   "the work was not done after %llu ns", (unsigned long long)timeout_ns);
    }
    return status;
}

bh_status bh_wait_all(const bh_ticket *tickets, size_t count, uint64_t timeout_ns) {
    if (!tickets && count)
        return bh__refuse(BH_E_INVALID, "pass an array of tickets",
                          "tickets is NULL and count is %zu", count);
    uint64_t deadline = bh__deadline_after(timeout_ns);
    bh_error first = {.status = BH_OK};
    for (size_t i = 0; i < count; i++) {
        bh_status status = ticket_answer(tickets[i], true, deadline, bh__last());
        if (status == BH_E_TIMEOUT) {
            return bh__refuse(BH_E_TIMEOUT, "wait longer, or give the launches a deadline",
                              "ticket %zu of %zu was not done after %llu ns", i, count,
                              (unsigned long long)timeout_ns);
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
    return bh__refuse(BH_E_INVALID, "ask bh_query what became of it",
                      "the work has ended already");
}

static bh_status refuse_begun(void) {
    return bh__refuse(BH_E_BUSY, "wait for it; a deadline on the launch bounds how long it may run",
                      "the work has begun and cannot be cancelled");
}

/* With PAUSED set the worker takes nothing, so what is not taken now can be turned into a request
 * that does nothing. Work that depends on it may be taken, on other lanes, but cannot complete before
 * the request is passed: it still gets its verdict in time. */
static bh_status cancel_locked(bh__device *device, bh__lane *lane, bh_ticket ticket) {
    if (atomic_load(&lane->id) != ticket.lane || bh__history_status(ticket) != BH_OK)
        return refuse_ended();
    bh__shadow *shadow = bh__shadow_ending(device, lane, ticket.sequence);
    if (!shadow) return refuse_ended();
    /* A call of several requests is cancelled whole or not at all. */
    uint64_t start = shadow->call ? shadow->call - 1 : shadow->start;
    bh__lane_area *area = words(atomic_load(&device->area), lane);
    uint64_t taken = lane->floor;
    if (!device->frozen) taken = bh__claim_position(atomic_fetch_or(&area->claim, BH__PAUSED));
    /* What a lost worker had begun and is sent again has begun, too. */
    bool free_to_cancel = taken <= start && lane->begun <= start;
    if (free_to_cancel) {
        bh__request_fail(device, lane, shadow,
                            &(bh__failure){.status = BH_E_CANCELLED, .certain = 1}, false);
        bh__dependents_resolve(device);
    }
    if (!device->frozen) atomic_fetch_and(&area->claim, ~BH__PAUSED);
    return free_to_cancel ? BH_OK : refuse_begun();
}

static bh_status cancel_load(bh__device *device, bh__lane *lane, uint64_t sequence) {
    bh_error cancelled;
    bh__fail(&cancelled, BH_E_CANCELLED, "nothing: it was cancelled before it was loaded",
             "the compile was cancelled");
    if (bh__flights_recall(device, sequence, &cancelled)) return BH_OK;
    bh__lock_take(&device->lock);
    bool open = bh__load_pending(lane, sequence);
    bh__lock_give(&device->lock);
    return open
               ? bh__refuse(BH_E_BUSY, "wait for it", "the load has begun and cannot be cancelled")
               : refuse_ended();
}

bh_status bh_cancel(bh_ticket ticket) {
    bh__device *device;
    bh__lane *lane;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    if (!bh__ticket_enter(ticket, &device, &lane)) return refuse_ticket(ticket);
    if (!lane) return refuse_ended();
    bh_status status;
    if (ticket.sequence > atomic_load(&lane->tail) || ticket.sequence == 0) {
        status = refuse_ticket(ticket);
    } else if (lane->index == BH__LOAD_LANE) {
        status = cancel_load(device, lane, ticket.sequence);
    } else {
        bh__lock_take(&device->lock);
        status = cancel_locked(device, lane, ticket);
        bh__area *area = atomic_load(&device->area);
        uint32_t lanes = device->lane_limit;
        bh__lock_give(&device->lock);
        if (status == BH_OK) {
            bh__area_wake(area, lanes);
            bh__dispatcher_poke(device);
        } else if (status == BH_E_INVALID && atomic_load(&device->unhomed) &&
                   bh__lane_ask(device, lane, ticket) == BH_OK &&
                   come_home(device, lane, ticket.sequence, false, 0) == BH_E_BUSY) {
            /* Not done for whoever asks, as long as what it wrote is on its way. */
            status = refuse_begun();
        }
    }
    bh__ticket_leave(device);
    return status;
}
