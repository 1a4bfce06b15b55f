/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of devices that run requests on the lane's own thread (bh__device_ops.execute): take a
 * request, wait for what it depends on, execute it, store `done`. */
#include <sched.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/relax.h"
#include "worker/lane/lane.h"
#include "worker/state.h"

/* ---- waiting ---- */

/* Spins until *word is no longer `value`; gives up after `spin_ns` or when killed. */
static bool spin_while(bh__worker_instance *worker, _Atomic uint64_t *word, uint64_t value,
                       uint64_t spin_ns) {
    if (spin_ns == 0) return false;
    uint64_t end = bh__deadline_after(spin_ns);
    do {
        for (int i = 0; i < BH__SPINS_PER_CLOCK; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
            bh__cpu_relax();
        }
        if (atomic_load_explicit(&worker->idle_lanes, memory_order_relaxed) > worker->processors)
            sched_yield();
    } while (!bh__worker_is_killed(worker) && bh__now_ns() < end);
    return false;
}

/* Waits for a request at `position`: spins for a while, then sleeps. Lanes that spin give way to
 * those that have work if more of them are idle than there are processors. */
static void wait_for_request(bh__worker_lane *lane, uint64_t position) {
    bh__worker_instance *worker = lane->worker;
    atomic_fetch_add_explicit(&worker->idle_lanes, 1, memory_order_relaxed);
    bool came = spin_while(worker, &lane->front->tail, position, worker->front->worker_spin_ns);
    atomic_fetch_sub_explicit(&worker->idle_lanes, 1, memory_order_relaxed);
    if (!came) bh__worker_lane_sleep(lane, position, BH__NEVER);
}

/* Takes the next request, waiting for it. False: the lane is over. */
static bool take(bh__worker_lane *lane) {
    uint64_t position;
    while (!bh__worker_is_killed(lane->worker)) {
        bh__take result = bh__worker_lane_try_take(lane, &position);
        if (result == BH__TAKE_DONE) return true;
        if (result == BH__TAKE_ENDED) return false;
        if (result == BH__TAKE_EMPTY) wait_for_request(lane, position);
    }
    return false;
}

/* Waits until the lost worker that could still write what this request uses is gone. */
static bool wait_for_hold(bh__worker_lane *lane) {
    bh__worker_instance *worker = lane->worker;
    _Atomic uint64_t *reaped = &worker->front->reaped;
    for (;;) {
        uint64_t seen = atomic_load(reaped);
        if (seen >= lane->hold) return true;
        if (bh__worker_is_killed(worker)) return false;
        if (spin_while(worker, reaped, seen, BH__SHORT_SPIN_NS)) continue;
        bh__futex_wait(bh__low_half(reaped), (uint32_t)seen, BH__NEVER, BH__FUTEX_SHARED);
    }
}

static bool wait_for_lane(bh__worker_instance *worker, const bh__dependency *dependency) {
    bh__worker_lane *other = &worker->lanes[dependency->lane];
    _Atomic uint64_t *done = &other->area->done;
    uint64_t end = 0;
    while (atomic_load_explicit(done, memory_order_acquire) < dependency->position) {
        if (bh__worker_is_killed(worker)) return false;
        uint64_t now = bh__now_ns();
        if (end == 0) end = now + BH__SHORT_SPIN_NS;
        if (now < end) {
            bh__cpu_relax();
            continue;
        }
        /* The other lane stores done and then reads waiters: one of the two sees the other. */
        atomic_fetch_add(&other->waiters, 1);
        uint32_t progress = atomic_load(&other->progress);
        if (atomic_load(done) < dependency->position && !bh__worker_is_killed(worker))
            bh__futex_wait(&other->progress, progress, BH__NEVER, BH__FUTEX_PRIVATE);
        atomic_fetch_sub(&other->waiters, 1);
    }
    return true;
}

static bool wait_for_dependencies(bh__worker_lane *lane) {
    for (uint32_t i = 0; i < lane->dependency_count; i++) {
        if (!wait_for_lane(lane->worker, &lane->dependencies[i])) return false;
    }
    return true;
}

/* ---- executing ---- */

static bh_status execute_sequence(bh__worker_lane *lane, bh_error *error) {
    bh__worker_instance *worker = lane->worker;
    const bh__sequence_image *image = &lane->image;
    uint32_t repeat = lane->work->u.sequence.repeat;
    for (uint32_t replay = 0; replay < repeat; replay++) {
        for (uint32_t i = 0; i < image->step_count; i++) {
            if (bh__worker_is_killed(worker)) return BH_E_STOPPED;
            atomic_store_explicit(&lane->area->step, bh__step_word(i, 1), memory_order_relaxed);
            lane->step_at = i + 1;
            bh__work work = bh__sequence_work(image, i, lane->work);
            if (work.op == BH__OP_SKIP) continue;
            bool ranged = bh__range_begin_step(lane, i, &work);
            bh_status status = worker->ops->execute(lane->context, &work, error);
            bh__range_end(ranged);
            if (status == BH_OK) continue;
            if (status != BH_E_FAULT && status != BH_E_STOPPED) {
                bh__worker_sequence_name_step(lane, i, error);
                lane->step_at = 0;
            }
            return status;
        }
    }
    lane->step_at = 0;
    return BH_OK;
}

/* Executes the request that was taken. False: it is not complete and the lane is over. */
static bool execute(bh__worker_lane *lane) {
    bh__worker_instance *worker = lane->worker;
    if (!wait_for_hold(lane) || !wait_for_dependencies(lane) || !bh__worker_lane_reread_op(lane))
        return false;
    /* A skip does nothing, but in its turn: once `done` has passed it, `done` must also have passed
     * what it depends on. */
    if (lane->work->op == BH__OP_SKIP) return true;
    bh__meter_begin(&lane->meter, lane->work, lane->hold || lane->dependency_count);
    bh_error error;
    bool whole = lane->work->op == BH__OP_SEQUENCE;
    bool ranged = bh__range_begin(lane, lane->work, 1);
    bh_status status = whole ? execute_sequence(lane, &error)
                             : worker->ops->execute(lane->context, lane->work, &error);
    bh__range_end(ranged);
    if (status == BH_OK) return true;
    if (status == BH_E_STOPPED) return false;
    if (status == BH_E_FAULT) {
        bh__worker_lane_fault(lane, lane->work->sequence, &error);
        return false;
    }
    return bh__worker_lane_report(lane, lane->work->sequence, &error);
}

/* Publishes that everything up to `done` is complete, then wakes those who wait for it. */
static void complete(bh__worker_lane *lane, uint64_t done) {
    lane->known_done = done;
    atomic_store(&lane->area->done, done);
    bh__worker_lane_notify(lane, done, &lane->woken_dispatch);
    bh__worker_lane_wake_waiters(lane);
}

void bh__lane_direct_run(bh__worker_lane *lane) {
    while (take(lane)) {
        if (!execute(lane)) break;
        if (bh__worker_is_killed(lane->worker)) break;
        bh__meter_end(&lane->meter, lane->work);
        complete(lane, lane->work->sequence);
        bh__meter_count(&lane->meter, lane->work);
    }
}
