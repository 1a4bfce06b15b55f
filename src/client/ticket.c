/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: asking, waiting, cancelling. The order of loads here is argued in docs/protocol.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/futex.h"
#include "base/relax.h"
#include "client/trace.h"

static bh__lane_area *words(bh__area *area, const bh__lane *lane) {
    return &area->lane[lane->index];
}

static BH__COLD void have_replaced(bh__device *device) {
    if (!atomic_exchange(&device->insane, true)) bh__supervisor_poke(device);
}

uint64_t bh__lane_done(bh__device *device, bh__lane *lane) {
    if (device->frozen || !lane->exists) return lane->floor;
    uint64_t done = atomic_load(&words(atomic_load(&device->area), lane)->done);
    uint64_t tail = atomic_load_explicit(&lane->tail, memory_order_relaxed);
    /* A worker gone mad may claim anything; what was never submitted is not done, and what was done
     * stays so. */
    if (done > tail || done < lane->retired) {
        have_replaced(device);
        return lane->retired;
    }
    return lane->retired = done;
}

/* With the lock: a verdict if there is one, and whatever the worker reported and nobody has taken
 * over yet. While lanes are frozen this is the only way to ask: the judgement, made with the lock
 * held, says what is done. */
static bh_status ask_locked(bh__device *device, bh__lane *lane, uint64_t sequence,
                            bh__question question) {
    bh__lock_take(&device->lock);
    bh__reports_collect(device);
    const bh__failure *failure =
        question == BH__VERDICT ? bh__failures_find(&lane->failures, sequence) : NULL;
    bh_status status = failure ? failure->status : BH_OK;
    if (!failure && bh__lane_done(device, lane) < sequence)
        status = atomic_load(&device->stopped) ? BH_E_STOPPED : BH_E_BUSY;
    bh__lock_give(&device->lock);
    return status;
}

static bh_status ask_load_lane(bh__device *device, bh__lane *lane, uint64_t sequence,
                               bh__question question) {
    bool passed = atomic_load(&lane->load_done) >= sequence;
    if (question == BH__PASSED) return passed ? BH_OK : BH_E_BUSY;
    if (passed && sequence > atomic_load(&lane->last_failed)) return BH_OK;
    bh__lock_take(&device->lock);
    const bh__failure *failure = bh__failures_find(&lane->failures, sequence);
    bh_status status = BH_OK;
    if (bh__load_pending(lane, sequence)) {
        status = BH_E_BUSY;
    } else if (failure) {
        status = failure->status;
    }
    bh__lock_give(&device->lock);
    return status;
}

bh_status bh__lane_ask(bh__device *device, bh__lane *lane, uint64_t sequence,
                       bh__question question) {
    if (lane->index == BH__LOAD_LANE) return ask_load_lane(device, lane, sequence, question);
    for (;;) {
        uint64_t epoch = atomic_load(&device->epoch);
        bh__lane_area *area = words(atomic_load(&device->area), lane);
        uint64_t done = atomic_load(&area->done);
        uint64_t claim = atomic_load(&area->claim);
        uint32_t errors = atomic_load(&area->errors);
        uint64_t last_failed = atomic_load(&lane->last_failed);
        bool stopped = atomic_load(&device->stopped);
        if (atomic_load(&device->epoch) != epoch) continue;
        if (done > atomic_load(&lane->tail)) {
            have_replaced(device);
            done = 0;
        }

        if ((claim & BH__FROZEN) || stopped ||
            (question == BH__VERDICT && sequence <= last_failed)) {
            return ask_locked(device, lane, sequence, question);
        }
        if (done < sequence) return BH_E_BUSY;
        if (question == BH__VERDICT && errors != atomic_load(&lane->errors_seen)) {
            return ask_locked(device, lane, sequence, question);
        }
        return BH_OK;
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

static bh_status sleep_on_ring(bh__device *device, bh__lane *lane, uint64_t sequence,
                               uint64_t deadline, bh__question question) {
    bh__sleeper self = {.sequence = sequence};
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
        status = bh__lane_ask(device, lane, sequence, question);
        if (status != BH_E_BUSY) break;
        if (atomic_load(&device->area) != area) continue;
        bh__watch_begin(device);
        if (!bh__futex_wait(&words(area, lane)->wake, seen, deadline, BH__FUTEX_SHARED)) {
            status = bh__lane_ask(device, lane, sequence, question);
            if (status == BH_E_BUSY) status = BH_E_TIMEOUT;
            break;
        }
    }
    sleeper_remove(device, lane, &self);
    return status;
}

static bh_status sleep_on_loads(bh__device *device, bh__lane *lane, uint64_t sequence,
                                uint64_t deadline, bh__question question) {
    for (;;) {
        uint32_t seen = atomic_load(&lane->load_wake);
        bh_status status = ask_load_lane(device, lane, sequence, question);
        if (status != BH_E_BUSY) return status;
        if (!bh__futex_wait(&lane->load_wake, seen, deadline, BH__FUTEX_PRIVATE))
            return BH_E_TIMEOUT;
    }
}

bh_status bh__lane_wait(bh__device *device, bh__lane *lane, uint64_t sequence, uint64_t deadline,
                        bh__question question) {
    bh_status status = bh__lane_ask(device, lane, sequence, question);
    if (status != BH_E_BUSY) return status;
    uint64_t now = bh__now_ns();
    uint64_t spin_until = now + device->options.wait_spin_ns;
    if (spin_until > deadline) spin_until = deadline;
    while (now < spin_until) {
        for (int i = 0; i < 16; i++) {
            status = bh__lane_ask(device, lane, sequence, question);
            if (status != BH_E_BUSY) return status;
            bh__cpu_relax();
        }
        now = bh__now_ns();
    }
    if (now >= deadline) return BH_E_TIMEOUT;
    if (lane->index == BH__LOAD_LANE)
        return sleep_on_loads(device, lane, sequence, deadline, question);
    return sleep_on_ring(device, lane, sequence, deadline, question);
}

bh_status bh__lane_let_pass(bh__device *device, bh__lane *lane, uint64_t position) {
    atomic_fetch_add(&device->users, 1);
    bh__lock_give(&device->lock);
    bh_status status = bh__lane_wait(device, lane, position, BH__NEVER, BH__PASSED);
    bh__lock_take(&device->lock);
    atomic_fetch_sub(&device->users, 1);
    return status;
}

void bh__area_wake(bh__device *device, bh__area *area) {
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        atomic_fetch_add(&area->lane[i].wake, 1);
        bh__futex_wake(&area->lane[i].wake, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    }
}

/* ---- verdicts ---- */

void bh__lane_fail(bh__lane *lane, uint64_t sequence, bh_status status, uint32_t certain,
                   uint64_t loss, const char *kernel, const bh_error *detail) {
    bh__failure failure = {
        .sequence = sequence, .status = status, .certain = certain, .loss = loss};
    if (kernel) failure.kernel = strdup(kernel);
    if (detail) {
        failure.detail = malloc(sizeof *detail);
        if (failure.detail) *failure.detail = *detail;
    }
    bh__failures_add(&lane->failures, &failure);
    lane->tally.failed++;
    bh__trace_verdict(lane, sequence, status);
    if (sequence > atomic_load(&lane->last_failed)) atomic_store(&lane->last_failed, sequence);
}

/* Copies a piece of text out of shared memory, which may change under our hands and need not end.
 */
static void copy_text(char *target, size_t target_bytes, const char *source, size_t source_bytes) {
    size_t bytes = source_bytes < target_bytes ? source_bytes : target_bytes;
    memcpy(target, source, bytes);
    target[bytes - 1] = 0;
}

void bh__reports_collect(bh__device *device) {
    if (device->frozen) return;
    bh__area *area = atomic_load(&device->area);
    /* The worker counts a report in reports_made first and in its lane's errors second: read the
     * other way round. */
    uint32_t errors[BH__MAX_LANES];
    for (uint32_t i = 0; i < device->lane_limit; i++)
        errors[i] = atomic_load(&area->lane[i].errors);
    uint32_t made = atomic_load(&area->reports_made), taken = atomic_load(&area->reports_taken);
    for (uint32_t left = BH__REPORTS; taken != made && left > 0; left--, taken++) {
        const bh__report *report = &area->reports[taken % BH__REPORTS];
        uint32_t index = report->lane;
        if (index >= BH__MAX_LANES) continue;
        bh__lane *lane = &device->lanes[index];
        uint64_t sequence = report->sequence;
        if (!lane->exists || sequence > atomic_load(&lane->tail) || sequence <= lane->floor)
            continue;
        bh_error error = {.status = report->status, .device_code = report->device_code};
        if (error.status == BH_OK) error.status = BH_E_INTERNAL;
        copy_text(error.message, sizeof error.message, report->message, sizeof report->message);
        copy_text(error.fix, sizeof error.fix, report->fix, sizeof report->fix);
        copy_text(error.device_name, sizeof error.device_name, report->device_name,
                  sizeof report->device_name);
        bh__shadow *shadow = NULL;
        for (uint64_t back = 1; back <= device->front->queue_length && back <= sequence; back++) {
            bh__shadow *last = &lane->shadow[(sequence - back) & (device->front->queue_length - 1)];
            if (last->start + last->slots == sequence) {
                shadow = last;
                break;
            }
        }
        if (shadow && device->managed) bh__managed_undo(device, lane, shadow);
        if (!bh__failures_find(&lane->failures, sequence)) {
            bh__lane_fail(lane, sequence, error.status, 1, 0,
                          shadow && shadow->kernel ? shadow->kernel->name : NULL, &error);
        }
    }
    atomic_store(&area->reports_taken, made);
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        atomic_store(&device->lanes[i].errors_seen, errors[i]);
    }
}

/* ---- the public calls ---- */

static bh_status refuse_ticket(bh_ticket ticket) {
    return bh__refuse(BH_E_INVALID, "pass a ticket that a Bulkhead call has filled in",
                      "ticket {0x%llx, %llu} was never given out", (unsigned long long)ticket.lane,
                      (unsigned long long)ticket.sequence);
}

/* Fills the thread's error with what is known of a ticket that failed. */
static void explain(bh__device *device, bh__lane *lane, bh_ticket ticket, bh_status status,
                    bh_error *out) {
    bh__lock_take(&device->lock);
    const bh__failure *failure = bh__failures_find(&lane->failures, ticket.sequence);
    if (failure) bh__failure_describe(failure, ticket, out);
    bh__lock_give(&device->lock);
    if (!failure)
        bh__fail(out, status, "see the status", "the request failed: %s", bh_status_name(status));
}

/* What transparent buffers were written with is there before the program learns of it. */
static bh_status come_home(bh__device *device, bh__lane *lane, uint64_t sequence, bool wait,
                           uint64_t deadline) {
    bh__lane *via;
    uint64_t position;
    return wait ? bh__managed_home_wait(device, lane, sequence, deadline)
                : bh__managed_home(device, lane, sequence, &via, &position);
}

/* Finds the ticket's lane, asks or waits, and explains a failure in *out. */
static bh_status ticket_answer(bh_ticket ticket, bool wait, uint64_t deadline, bh_error *out) {
    bh__device *device;
    bh__lane *lane;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    if (!bh__ticket_enter(ticket, &device, &lane)) return refuse_ticket(ticket);
    if (!lane) return bh__history_ask(ticket, out);
    bh_status status;
    if (ticket.sequence > atomic_load(&lane->tail) || ticket.sequence == 0) {
        status = refuse_ticket(ticket);
    } else {
        status = wait ? bh__lane_wait(device, lane, ticket.sequence, deadline, BH__VERDICT)
                      : bh__lane_ask(device, lane, ticket.sequence, BH__VERDICT);
        bool ended = status != BH_E_BUSY && status != BH_E_TIMEOUT;
        if (__builtin_expect(ended && atomic_load(&device->unhomed), 0)) {
            bh_status home = come_home(device, lane, ticket.sequence, wait, deadline);
            if (home != BH_OK) status = home;
            ended = home == BH_OK;
        }
        if (status != BH_OK && ended) explain(device, lane, ticket, status, out);
    }
    bh__ticket_leave(device);
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

/* With PAUSED set the worker takes nothing, so what is not taken now can be turned into a request
 * that does nothing. */
static bh_status cancel_locked(bh__device *device, bh__lane *lane, uint64_t sequence) {
    if (bh__failures_find(&lane->failures, sequence)) {
        return bh__refuse(BH_E_INVALID, "ask bh_query what became of it",
                          "the work has ended already");
    }
    uint64_t mask = device->front->queue_length - 1;
    uint64_t start = 0;
    bh__shadow *shadow = NULL;
    for (uint64_t position = bh__lane_done(device, lane); position < sequence;
         position += shadow->slots) {
        shadow = &lane->shadow[position & mask];
        start = position;
    }
    if (!shadow || start + shadow->slots != sequence) {
        return bh__refuse(BH_E_INVALID, "ask bh_query what became of it",
                          "the work has ended already");
    }
    bh__lane_area *area = words(atomic_load(&device->area), lane);
    uint64_t taken = lane->floor;
    if (!device->frozen) taken = bh__claim_position(atomic_fetch_or(&area->claim, BH__PAUSED));
    /* What a lost worker had begun and is sent again has begun, too. */
    bool free_to_cancel = taken <= start && lane->begun <= start;
    if (free_to_cancel) {
        bh__request *request = bh__ring_request(lane->ring, device->front->queue_length, start);
        atomic_store(&request->op, BH__OP_SKIP);
        shadow->resolved = BH__RESOLVED_CANCELLED;
        for (uint32_t i = 0; shadow->cleared && i < shadow->use_count; i++) {
            const bh__use *use =
                &lane->shadow[(start + i / BH__USES_PER_SLOT) & mask].uses[i % BH__USES_PER_SLOT];
            if (use->access & BH_ACCESS_OUT) bh__suspect_add(use->memory, use->offset, use->bytes);
        }
        bh__lane_fail(lane, sequence, BH_E_CANCELLED, 1, 0,
                      shadow->kernel ? shadow->kernel->name : NULL, NULL);
    }
    if (!device->frozen) atomic_fetch_and(&area->claim, ~BH__PAUSED);
    if (!free_to_cancel) {
        return bh__refuse(BH_E_BUSY,
                          "wait for it; a deadline on the launch bounds how long it may run",
                          "the work has begun and cannot be taken back");
    }
    return BH_OK;
}

static bh_status cancel_load(bh__device *device, bh__lane *lane, uint64_t sequence) {
    bh_error cancelled;
    bh__fail(&cancelled, BH_E_CANCELLED, "nothing: it was taken back", "the compile was cancelled");
    if (bh__flights_recall(device, sequence, &cancelled)) return BH_OK;
    bh__lock_take(&device->lock);
    bool open = bh__load_pending(lane, sequence);
    bh__lock_give(&device->lock);
    return open
               ? bh__refuse(BH_E_BUSY, "wait for it", "the load has begun and cannot be taken back")
               : bh__refuse(BH_E_INVALID, "ask bh_query what became of it",
                            "the work has ended already");
}

bh_status bh_cancel(bh_ticket ticket) {
    bh__device *device;
    bh__lane *lane;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    if (!bh__ticket_enter(ticket, &device, &lane)) return refuse_ticket(ticket);
    if (!lane)
        return bh__refuse(BH_E_INVALID, "ask bh_query what became of it",
                          "the work has ended already");
    bh_status status;
    if (ticket.sequence > atomic_load(&lane->tail) || ticket.sequence == 0) {
        status = refuse_ticket(ticket);
    } else if (lane->index == BH__LOAD_LANE) {
        status = cancel_load(device, lane, ticket.sequence);
    } else {
        bh__lock_take(&device->lock);
        status = cancel_locked(device, lane, ticket.sequence);
        bh__area *area = atomic_load(&device->area);
        bh__lock_give(&device->lock);
        if (status == BH_OK) {
            bh__area_wake(device, area);
            bh__dispatcher_poke(device);
        }
    }
    bh__ticket_leave(device);
    return status;
}
