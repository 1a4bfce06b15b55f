/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of devices with queues of their own (bh__device_ops.enqueue): requests are queued ahead,
 * the device writes `done`, and the lane's thread reads it and wakes those who wait. */
#include "worker/lane/lane_queued.h"

#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/relax.h"
#include "worker/state.h"

enum {
    /* Enough to keep a device busy. What is queued is lost with a worker and cannot be
     * cancelled. */
    MAX_QUEUED_SLOTS = BH__TUNE(128, 8),
    SPIN_NS = 20000,
    /* A nap lasts this fraction of the wait so far, so that a wait for the device is hardly longer
     * than it must be. */
    NAP_FRACTION = 16,
    MIN_NAP_NS = 20000,
    MAX_NAP_NS = 1000000,
    /* A device that has failed says so only when it is queried. */
    QUERY_EVERY_NS = 2000000,
    TIMER_SLACK_NS = 1000
};

bool bh__queued_fault(bh__worker_lane *lane, const bh_error *error) {
    bh__worker_lane_fault(lane, 0, error);
    return false;
}

/* ---- waiting ---- */

/* Reads how far the device is, and wakes those who wait: the device cannot. */
static void update_done(bh__worker_lane *lane) {
    uint64_t done = atomic_load(&lane->area->done);
    if (done == lane->known_done) return;
    lane->known_done = done;
    lane->queue.active_ns = bh__now_ns();
    bh__kernel_times_done(&lane->queue.times, done, lane->queue.active_ns);
    bh__meter_see(&lane->meter, done, lane->worker->ops->clock_read, lane->context);
    bh__worker_lane_notify(lane, done, &lane->woken_dispatch);
}

/* Queries the device, not too often, to see whether it has failed. */
static bool check_device(bh__worker_lane *lane, uint64_t now) {
    bh__worker_queue *queue = &lane->queue;
    if (now - queue->active_ns < QUERY_EVERY_NS || now - queue->queried_ns < QUERY_EVERY_NS)
        return true;
    queue->queried_ns = now;
    bh_error error;
    bh_status status = lane->worker->ops->query(lane->context, &error);
    return status == BH_OK || status == BH_E_BUSY || bh__queued_fault(lane, &error);
}

static uint64_t nap_after(uint64_t waited) {
    uint64_t nap = waited / NAP_FRACTION;
    if (nap < MIN_NAP_NS) return MIN_NAP_NS;
    return nap < MAX_NAP_NS ? nap : MAX_NAP_NS;
}

static void nap(uint64_t until) {
    struct timespec time = bh__timespec(until);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* For waits in which the lane must keep the device supplied: the waker wakes those who wait for
 * results, not this thread. */
static void nap_briefly(const bh__worker_lane *lane, uint64_t until) {
    uint64_t now = bh__now_ns(), limit = now + nap_after(now - lane->queue.active_ns);
    nap(until < limit ? until : limit);
}

/*
 * What a lane does between two reads of a word that still has this value: reads how far the device
 * is, wakes those who wait, and queries the device now and then. Spins for `spin_ns` at first.
 * *until gets the time until which the lane may sleep (BH__NEVER: nothing is in flight), 0 if it
 * should read the word again at once. False: the lane is over.
 */
static bool poll_device(bh__worker_lane *lane, _Atomic uint64_t *word, uint64_t value,
                        uint64_t spin_ns, uint64_t *until) {
    *until = 0;
    update_done(lane);
    uint64_t now = bh__now_ns(), waited = now - lane->queue.active_ns;
    if (waited < spin_ns) {
        for (int i = 0; i < BH__SPINS_PER_CLOCK; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value ||
                atomic_load_explicit(&lane->area->done, memory_order_acquire) != lane->known_done)
                break;
            bh__cpu_relax();
        }
        return true;
    }
    if (lane->known_done == bh__queued_end(lane)) {
        *until = BH__NEVER;
        return true;
    }
    *until = now + (bh__waker_request(lane) ? QUERY_EVERY_NS : nap_after(waited));
    return check_device(lane, now);
}

/* Waits until the device has completed all up to `position`. */
static bool wait_for_device(bh__worker_lane *lane, uint64_t position) {
    update_done(lane);
    while (lane->known_done < position) {
        if (bh__worker_is_killed(lane->worker)) return false;
        uint64_t until;
        if (!poll_device(lane, &lane->area->done, lane->known_done, SPIN_NS, &until)) return false;
        if (until) nap_briefly(lane, until);
        update_done(lane);
    }
    return true;
}

bool bh__queued_wait_for_pulse(bh__worker_lane *lane, uint64_t limit) {
    _Atomic uint64_t *word = &lane->area->pulse;
    for (;;) {
        uint64_t seen = atomic_load(word), until;
        if (lane->queue.pulses - seen < limit) return true;
        if (bh__worker_is_killed(lane->worker)) return false;
        if (!poll_device(lane, word, seen, SPIN_NS, &until)) return false;
        /* No complete request is in flight, but parts of this one are. */
        if (until == BH__NEVER && !check_device(lane, bh__now_ns())) return false;
        if (until) nap_briefly(lane, until);
    }
}

bool bh__queued_wait_below(bh__worker_lane *lane, uint32_t limit) {
    update_done(lane);
    uint64_t end = bh__queued_end(lane);
    return end - lane->known_done < limit || wait_for_device(lane, end - limit + 1);
}

/* Waits for a request at `position`, while the device may be running earlier ones. */
static bool wait_for_request(bh__worker_lane *lane, uint64_t position) {
    uint64_t until;
    if (!poll_device(lane, &lane->front->tail, position, lane->worker->front->worker_spin_ns,
                     &until))
        return false;
    if (until) bh__worker_lane_sleep(lane, position, until);
    return true;
}

bool bh__queued_take(bh__worker_lane *lane) {
    uint64_t position;
    while (!bh__worker_is_killed(lane->worker)) {
        if (!bh__queued_wait_below(lane, MAX_QUEUED_SLOTS)) return false;
        bh__take result = bh__worker_lane_try_take(lane, &position);
        if (result == BH__TAKE_DONE) return true;
        if (result == BH__TAKE_ENDED) return false;
        if (result == BH__TAKE_EMPTY && !wait_for_request(lane, position)) return false;
    }
    return false;
}

/* Waits until the lost worker that could still write what this request uses is gone. */
static bool wait_for_hold(bh__worker_lane *lane) {
    _Atomic uint64_t *reaped = &lane->worker->front->reaped;
    for (;;) {
        uint64_t seen = atomic_load(reaped), until;
        if (seen >= lane->hold) return true;
        if (bh__worker_is_killed(lane->worker)) return false;
        if (!poll_device(lane, reaped, seen, BH__SHORT_SPIN_NS, &until)) return false;
        if (until) bh__futex_wait(bh__low_half(reaped), (uint32_t)seen, until, BH__FUTEX_SHARED);
    }
}

/*
 * Waits until what this request depends on is queued on its own lane, with the write of `done`
 * behind it. Queued work thus only ever waits for work that was queued before it, so a device that
 * puts several lanes into one hardware queue cannot deadlock. That write never waits for a request
 * of this lane either: each request has its own write of `done`.
 */
static bool wait_until_queued(bh__worker_lane *lane, bh__worker_lane *other, uint64_t position) {
    for (;;) {
        uint64_t end = atomic_load(&other->queue.end), until;
        if (end >= position || atomic_load(&other->area->done) >= position) return true;
        if (bh__worker_is_killed(lane->worker)) return false;
        if (!poll_device(lane, &other->queue.end, end, SPIN_NS, &until)) return false;
        if (until == 0) continue;
        /* The other lane stores queue.end and then reads waiters: one of the two sees the other. */
        atomic_fetch_add(&other->waiters, 1);
        uint32_t progress = atomic_load(&other->progress);
        if (atomic_load(&other->queue.end) == end && !bh__worker_is_killed(lane->worker))
            bh__futex_wait(&other->progress, progress, until, BH__FUTEX_PRIVATE);
        atomic_fetch_sub(&other->waiters, 1);
    }
}

/* Has the device wait for every dependency that is not complete yet. */
static bool wait_for_dependencies(bh__worker_lane *lane) {
    for (uint32_t i = 0; i < lane->dependency_count; i++) {
        const bh__dependency *on = &lane->dependencies[i];
        bh__worker_lane *other = &lane->worker->lanes[on->lane];
        if (other == lane) continue;
        lane->queue.active_ns = bh__now_ns();
        if (!wait_until_queued(lane, other, on->position)) return false;
        if (atomic_load(&other->area->done) >= on->position) continue;
        bh_error error;
        if (lane->worker->ops->enqueue_wait(lane->context, (uint32_t)on->lane, on->position,
                                            &error) != BH_OK)
            return bh__queued_fault(lane, &error);
    }
    return true;
}

bool bh__queued_flush_print(bh__worker_lane *lane) {
    const bh__device_ops *ops = lane->worker->ops;
    bh_error error;
    uint64_t began = bh__now_ns();
    bh_status status;
    while ((status = ops->query(lane->context, &error)) == BH_E_BUSY) {
        if (bh__worker_is_killed(lane->worker)) return false;
        update_done(lane);
        uint64_t now = bh__now_ns();
        if (now - began < SPIN_NS)
            bh__cpu_relax();
        else
            nap(now + nap_after(now - began));
    }
    if (status == BH_OK) status = ops->print_flush(lane->context, &error);
    return status == BH_OK || bh__queued_fault(lane, &error);
}

/* ---- queueing ---- */

void bh__queued_publish(bh__worker_lane *lane, uint64_t position) {
    atomic_store(&lane->queue.end, position);
    bh__worker_lane_wake_waiters(lane);
}

/* A request that failed on its own is reported when all before it are complete, as if it had run.
 */
static bool report_failure(bh__worker_lane *lane, const bh_error *error) {
    return wait_for_device(lane, bh__queued_end(lane)) &&
           bh__worker_lane_report(lane, lane->work->sequence, error);
}

/* A skip does nothing, but in its turn. */
static bh_status enqueue(bh__worker_lane *lane, const bh__work *work, bh_error *error) {
    if (work->op == BH__OP_SKIP) return BH_OK;
    if (work->op == BH__OP_SEQUENCE) return bh__queued_sequence_send(lane, error);
    return lane->worker->ops->enqueue(lane->context, work, error);
}

/* Queues the start of a clock for a request with BH_SUBMIT_TIMED, once the request that it measured
 * before is complete. */
static bool clock_begin(bh__worker_lane *lane) {
    const bh__device_ops *ops = lane->worker->ops;
    bh__worker_queue *queue = &lane->queue;
    bh__work *work = lane->work;
    if (!work->timed || !ops->clock_begin || work->op == BH__OP_SKIP) return true;
    uint32_t slot = (uint32_t)(queue->clocks % BH__QUEUE_CLOCKS);
    if (!wait_for_device(lane, queue->clock_positions[slot])) return false;
    bh_error error;
    bh__queued_set_handing(lane, work);
    bh_status status = ops->clock_begin(lane->context, slot, &error);
    bh__queued_set_handing(lane, NULL);
    if (status != BH_OK) return bh__queued_fault(lane, &error);
    queue->clocks++;
    queue->clock_positions[slot] = work->sequence;
    work->clock = (uint16_t)(slot + 1);
    return true;
}

/* The request itself is queued, with this status. */
static bool clock_end(bh__worker_lane *lane, bh_status queued) {
    bh__work *work = lane->work;
    if (!work->clock) return true;
    bh_error error;
    bool whole = queued == BH_OK || queued == BH_E_BUSY;
    if (whole && lane->worker->ops->clock_end(lane->context, work->clock - 1u, &error) != BH_OK)
        return bh__queued_fault(lane, &error);
    if (!whole) work->clock = 0;
    return true;
}

/* Replays of sequences wait for the device between two calls and leave the word alone. */
void bh__queued_set_handing(bh__worker_lane *lane, const bh__work *work) {
    uint64_t from = work && work->op != BH__OP_SEQUENCE ? work->start + 1 : 0;
    atomic_store_explicit(&lane->area->handing, from, memory_order_relaxed);
}

bool bh__queued_send(bh__worker_lane *lane) {
    const bh__device_ops *ops = lane->worker->ops;
    const bh__work *work = lane->work;
    bh_error error;
    if (!bh__waker_before_work(lane, work) || !clock_begin(lane)) return false;
    bh__meter_begin(&lane->meter, lane->work, lane->hold || lane->dependency_count);
    bool ranged = bh__range_begin(lane, work, 1);
    bh__queued_set_handing(lane, work);
    bh_status status = bh__train_send_single(lane, &error);
    bool done_queued = status == BH_OK;
    if (status == BH_E_UNSUPPORTED) status = enqueue(lane, work, &error);
    bool timed = status == BH_E_STOPPED || status == BH_E_FAULT || clock_end(lane, status);
    bh__range_end(ranged);
    bh__queued_set_handing(lane, NULL);
    if (status == BH_E_STOPPED || !timed) return false;
    if (status == BH_E_FAULT) return bh__queued_fault(lane, &error);
    if (status == BH_E_BUSY) {
        if (!bh__queued_flush_print(lane)) return false;
    } else if (status != BH_OK && !report_failure(lane, &error)) {
        return false;
    }
    if (!done_queued) {
        bh__queued_set_handing(lane, work);
        if (ops->enqueue_done(lane->context, work->sequence, &error) != BH_OK)
            return bh__queued_fault(lane, &error);
        bh__queued_set_handing(lane, NULL);
    }
    lane->queue.active_ns = bh__now_ns();
    bh__kernel_times_queued(&lane->queue.times, work, lane->queue.active_ns);
    bh__meter_note(&lane->meter, work);
    bh__queued_publish(lane, work->sequence);
    return bh__waker_after_work(lane, work, 1);
}

bool bh__queued_wait_and_send(bh__worker_lane *lane) {
    return wait_for_hold(lane) && wait_for_dependencies(lane) && bh__worker_lane_reread_op(lane) &&
           bh__queued_send(lane);
}

/* ---- the lane ---- */

static bool begin(bh__worker_lane *lane) {
    uint64_t done = lane->known_done;
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    lane->queue.active_ns = bh__now_ns();
    bh__kernel_times_begin(&lane->queue.times);
    lane->queue.waker.woken_dispatch = done;
    atomic_store(&lane->area->step, 0);
    atomic_store(&lane->area->pulse, 0);
    for (uint32_t i = 0; i < BH__GROUPS; i++) {
        atomic_store(&lane->area->groups[i].begin, BH__NEVER);
        atomic_store(&lane->area->groups[i].end, 0);
    }
    bh_error error;
    if (lane->worker->ops->lane_begin(lane->context, done, &error) != BH_OK)
        return bh__queued_fault(lane, &error);
    bh__queued_publish(lane, done);
    return true;
}

void bh__lane_queued_run(bh__worker_lane *lane) {
    bool running = begin(lane);
    while (running && bh__queued_take(lane))
        running =
            bh__train_is_due(lane) ? bh__train_take_and_send(lane) : bh__queued_wait_and_send(lane);
}
