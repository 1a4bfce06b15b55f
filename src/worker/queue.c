/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of devices with queues of their own: requests are queued ahead, the device says what is
 * done, and the lane's thread passes that on to those who sleep. */
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/relax.h"
#include "worker/state.h"

enum {
    /* Slots. Enough to keep a device busy; what is queued is lost with a worker and cannot be
     * cancelled. */
    MOST_AHEAD = BH__TUNE(128, 8),
    LOOKS_PER_CLOCK = BH__TUNE(32, 2),
    SPIN_NS = 20000,
    /* A nap is as long as a part of the wait so far, so that whoever waits for the device loses
     * little. */
    NAP_PART = 16,
    SHORTEST_NAP_NS = 20000,
    LONGEST_NAP_NS = 1000000,
    /* A device that has died tells only when asked. */
    ASK_EVERY_NS = 2000000,
    TIMER_SLACK_NS = 1000
};

bool bh__queue_lost(bh__lane *lane, const bh_error *error) {
    bh__serve_lane_fault(lane, 0, error);
    return false;
}

static uint64_t queued(const bh__lane *lane) {
    return atomic_load_explicit(&lane->queued, memory_order_relaxed);
}

/* Sees how far the device is. It writes `done` and cannot look for those who wait: this does. */
static void attend(bh__lane *lane) {
    uint64_t done = atomic_load(&lane->area->done);
    if (done == lane->told) return;
    lane->told = done;
    lane->stirred_ns = bh__now_ns();
    bh__pace_see(&lane->pace, done, lane->stirred_ns);
    bh__meter_see(&lane->meter, done);
    bh__serve_lane_tell(lane, done, &lane->woken_dispatch);
}

/* Asks the device whether it is well, not too often. */
static bool check_device(bh__lane *lane, uint64_t now) {
    if (now - lane->stirred_ns < ASK_EVERY_NS || now - lane->asked_ns < ASK_EVERY_NS) return true;
    lane->asked_ns = now;
    bh_error error;
    bh_status status = lane->worker->ops->ask(lane->context, &error);
    return status == BH_OK || status == BH_E_BUSY || bh__queue_lost(lane, &error);
}

static uint64_t nap_after(uint64_t waited) {
    uint64_t nap = waited / NAP_PART;
    if (nap < SHORTEST_NAP_NS) return SHORTEST_NAP_NS;
    return nap < LONGEST_NAP_NS ? nap : LONGEST_NAP_NS;
}

static void nap(uint64_t until) {
    struct timespec time = bh__timespec(until);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* For a thread that keeps the device supplied: the bell wakes those who wait for results, not this. */
static void nap_briefly(const bh__lane *lane, uint64_t until) {
    uint64_t now = bh__now_ns(), limit = now + nap_after(now - lane->stirred_ns);
    nap(until < limit ? until : limit);
}

bool bh__queue_pause(bh__lane *lane, _Atomic uint64_t *word, uint64_t value, uint64_t spin_ns,
                     uint64_t *until) {
    *until = 0;
    attend(lane);
    uint64_t now = bh__now_ns(), waited = now - lane->stirred_ns;
    if (waited < spin_ns) {
        for (int i = 0; i < LOOKS_PER_CLOCK; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value ||
                atomic_load_explicit(&lane->area->done, memory_order_acquire) != lane->told)
                break;
            bh__cpu_relax();
        }
        return true;
    }
    if (lane->told == queued(lane)) {
        *until = BH__NEVER;
        return true;
    }
    *until = now + (bh__bell_ask(lane) ? ASK_EVERY_NS : nap_after(waited));
    return check_device(lane, now);
}

/* Waits until the device is done up to `position`. */
static bool wait_for_device(bh__lane *lane, uint64_t position) {
    attend(lane);
    while (lane->told < position) {
        if (bh__serve_killed(lane->worker)) return false;
        uint64_t until;
        if (!bh__queue_pause(lane, &lane->area->done, lane->told, SPIN_NS, &until)) return false;
        if (until) nap_briefly(lane, until);
        attend(lane);
    }
    return true;
}

bool bh__queue_wait_for_pulse(bh__lane *lane, uint64_t most) {
    _Atomic uint64_t *word = &lane->area->pulse;
    for (;;) {
        uint64_t seen = atomic_load(word), until;
        if (lane->pulses - seen < most) return true;
        if (bh__serve_killed(lane->worker)) return false;
        if (!bh__queue_pause(lane, word, seen, SPIN_NS, &until)) return false;
        /* Nothing that is marked is in flight; what is queued of this request is. */
        if (until == BH__NEVER && !check_device(lane, bh__now_ns())) return false;
        if (until) nap_briefly(lane, until);
    }
}

bool bh__queue_wait_for_few(bh__lane *lane, uint32_t most) {
    attend(lane);
    uint64_t ahead = queued(lane);
    return ahead - lane->told < most || wait_for_device(lane, ahead - most + 1);
}

bool bh__queue_wait_for_room(bh__lane *lane) {
    return bh__queue_wait_for_few(lane, MOST_AHEAD);
}

void bh__queue_announce(bh__lane *lane, uint64_t position) {
    atomic_store(&lane->queued, position);
    if (!atomic_load(&lane->waiters)) return;
    atomic_fetch_add(&lane->progress, 1);
    bh__futex_wake(&lane->progress, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

bool bh__queue_begin(bh__lane *lane, uint64_t done) {
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    lane->told = done;
    lane->stirred_ns = bh__now_ns();
    bh__pace_begin(&lane->pace);
    lane->bell.woken_dispatch = done;
    atomic_store(&lane->area->step, 0);
    atomic_store(&lane->area->pulse, 0);
    for (uint32_t i = 0; i < BH__GROUPS; i++) {
        atomic_store(&lane->area->groups[i].begin, BH__NEVER);
        atomic_store(&lane->area->groups[i].end, 0);
    }
    bh_error error;
    if (lane->worker->ops->lane_begin(lane->context, done, &error) != BH_OK)
        return bh__queue_lost(lane, &error);
    bh__queue_announce(lane, done);
    return true;
}

/*
 * Waits until what this request waits for is queued on its own lane, with the write that tells
 * of it. What is queued thus only ever waits for what was queued before it, so that devices that
 * put several lanes in one line get stuck on nothing. That write never waits for a request of
 * this lane either: each is marked by itself.
 */
static bool wait_until_queued(bh__lane *lane, bh__lane *other, uint64_t position) {
    for (;;) {
        uint64_t there = atomic_load(&other->queued), until;
        if (there >= position || atomic_load(&other->area->done) >= position) return true;
        if (bh__serve_killed(lane->worker)) return false;
        if (!bh__queue_pause(lane, &other->queued, there, SPIN_NS, &until)) return false;
        if (until == 0) continue;
        /* The other lane stores queued and then looks at waiters: one of the two sees the other. */
        atomic_fetch_add(&other->waiters, 1);
        uint32_t progress = atomic_load(&other->progress);
        if (atomic_load(&other->queued) == there && !bh__serve_killed(lane->worker))
            bh__futex_wait(&other->progress, progress, until, BH__FUTEX_PRIVATE);
        atomic_fetch_sub(&other->waiters, 1);
    }
}

static bool follow_all(bh__lane *lane) {
    for (uint32_t i = 0; i < lane->dependency_count; i++) {
        const bh__dependency *on = &lane->dependencies[i];
        bh__lane *other = &lane->worker->lanes[on->lane];
        if (other == lane) continue;
        lane->stirred_ns = bh__now_ns();
        if (!wait_until_queued(lane, other, on->position)) return false;
        if (atomic_load(&other->area->done) >= on->position) continue;
        bh_error error;
        if (lane->worker->ops->follow(lane->context, (uint32_t)on->lane, on->position, &error) !=
            BH_OK)
            return bh__queue_lost(lane, &error);
    }
    return true;
}

/* The device may have text to hand over once it is done with this request. */
bool bh__queue_settle(bh__lane *lane) {
    const bh__device_ops *ops = lane->worker->ops;
    bh_error error;
    uint64_t began = bh__now_ns();
    bh_status status;
    while ((status = ops->ask(lane->context, &error)) == BH_E_BUSY) {
        if (bh__serve_killed(lane->worker)) return false;
        attend(lane);
        uint64_t now = bh__now_ns();
        if (now - began < SPIN_NS)
            bh__cpu_relax();
        else
            nap(now + nap_after(now - began));
    }
    if (status == BH_OK) status = ops->settle(lane->context, &error);
    return status == BH_OK || bh__queue_lost(lane, &error);
}

/* A request that failed on its own is reported when all before it are done, as one that ran
 * would be. */
static bool report(bh__lane *lane, const bh_error *error) {
    return wait_for_device(lane, queued(lane)) &&
           bh__serve_lane_report(lane, lane->work->sequence, error);
}

/* One with a verdict does nothing, but in its turn. */
static bh_status send(bh__lane *lane, const bh__work *work, bh_error *error) {
    if (work->op == BH__OP_SKIP) return BH_OK;
    if (work->op == BH__OP_SEQUENCE) return bh__sequence_queue(lane, error);
    return lane->worker->ops->enqueue(lane->context, work, error);
}

/* Says that a call to the device's driver begins that should soon return, and that it has. Replays
 * of sequences wait for the device in between and say nothing. */
void bh__queue_handing(bh__lane *lane, const bh__work *work) {
    uint64_t from = work && work->op != BH__OP_SEQUENCE ? work->start + 1 : 0;
    atomic_store_explicit(&lane->area->handing, from, memory_order_relaxed);
}

bool bh__queue_one(bh__lane *lane) {
    const bh__device_ops *ops = lane->worker->ops;
    const bh__work *work = lane->work;
    bh_error error;
    if (!bh__bell_before(lane, work)) return false;
    bh__meter_begin(&lane->meter, lane->work, lane->hold || lane->dependency_count);
    bool ranged = bh__range_begin(lane, work, 1);
    bh__queue_handing(lane, work);
    bh_status status = bh__train_one(lane, &error);
    bool marked = status == BH_OK;
    if (status == BH_E_UNSUPPORTED) status = send(lane, work, &error);
    bh__range_end(ranged);
    bh__queue_handing(lane, NULL);
    if (status == BH_E_STOPPED) return false;
    if (status == BH_E_FAULT) return bh__queue_lost(lane, &error);
    if (status == BH_E_BUSY) {
        if (!bh__queue_settle(lane)) return false;
    } else if (status != BH_OK && !report(lane, &error)) {
        return false;
    }
    if (!marked) {
        bh__queue_handing(lane, work);
        if (ops->mark(lane->context, work->sequence, &error) != BH_OK)
            return bh__queue_lost(lane, &error);
        bh__queue_handing(lane, NULL);
    }
    lane->stirred_ns = bh__now_ns();
    bh__pace_note(&lane->pace, work, lane->stirred_ns);
    bh__meter_note(&lane->meter, work);
    bh__queue_announce(lane, work->sequence);
    return bh__bell_after(lane, work, 1);
}

bool bh__queue_wait_and_send(bh__lane *lane) {
    return bh__serve_lane_hold(lane) && follow_all(lane) && bh__serve_lane_op_again(lane) &&
           bh__queue_one(lane);
}

bool bh__queue_perform(bh__lane *lane) {
    return bh__train_is_due(lane) ? bh__train_perform(lane) : bh__queue_wait_and_send(lane);
}
