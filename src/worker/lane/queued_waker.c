/* SPDX-License-Identifier: Apache-2.0 */
/* The waker of a queued lane: a thread that sleeps inside the device until an event in the queue is
 * reached, and then wakes whoever waits for the work before it. Without it a sleeping lane would
 * notice late, or would have to poll. */
#include <stdio.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"
#include "worker/lane/lane_queued.h"
#include "worker/state.h"

enum {
    /* An event costs about a microsecond. Work that takes this long gets one, and so does the work
     * before it: no completion is seen much later than this because of work behind it. */
    EVENT_EVERY_NS = 100000,
    BYTES_PER_NS = 20,
    STEP_NS = 2000 /* a step of a sequence, whose time is not known */
};

/* ---- recording events: the lane's thread ---- */

static uint64_t expected_ns(const bh__worker_lane *lane, const bh__work *work) {
    if (work->op == BH__OP_SKIP) return 0;
    if (work->op == BH__OP_SEQUENCE) {
        uint64_t ns = (uint64_t)work->u.sequence.repeat * lane->image.step_count * STEP_NS;
        return ns < EVENT_EVERY_NS ? ns : EVENT_EVERY_NS;
    }
    if (work->op != BH__OP_LAUNCH) return bh__copy_bytes(&work->u.copy) / BYTES_PER_NS;
    uint64_t ns =
        bh__kernel_times_get(&lane->queue.times, work->u.launch.module, work->u.launch.kernel);
    return ns < EVENT_EVERY_NS ? ns : EVENT_EVERY_NS; /* also if nothing is known */
}

/* True if half of the events are recorded and not reached. Later work gets its event later. */
static bool many_pending(const bh__worker_lane *lane) {
    enum { MANY = BH__QUEUE_EVENTS / 2 };
    const bh__waker *waker = &lane->queue.waker;
    uint64_t recorded = atomic_load_explicit(&waker->recorded, memory_order_relaxed);
    if (recorded < MANY) return false;
    return atomic_load(&waker->positions[(recorded - MANY) % BH__QUEUE_EVENTS]) > lane->known_done;
}

static bool record_event(bh__worker_lane *lane, uint64_t position) {
    bh__waker *waker = &lane->queue.waker;
    uint64_t number = atomic_load_explicit(&waker->recorded, memory_order_relaxed);
    uint32_t slot = (uint32_t)(number % BH__QUEUE_EVENTS);
    bh_error error;
    if (many_pending(lane)) return true;
    waker->uncovered_ns = 0;
    atomic_store(&waker->positions[slot], position);
    if (lane->worker->ops->enqueue_event(lane->context, slot, &error) != BH_OK)
        return bh__queued_fault(lane, &error);
    atomic_store(&waker->recorded, number + 1);
    return true;
}

bool bh__waker_before_work(bh__worker_lane *lane, const bh__work *work) {
    if (!lane->worker->ops->enqueue_event || lane->queue.waker.uncovered_ns == 0) return true;
    if (expected_ns(lane, work) < EVENT_EVERY_NS) return true;
    return record_event(lane, bh__queued_end(lane));
}

bool bh__waker_after_work(bh__worker_lane *lane, const bh__work *works, uint32_t count) {
    if (!lane->worker->ops->enqueue_event) return true;
    for (uint32_t i = 0; i < count; i++)
        lane->queue.waker.uncovered_ns += 1 + expected_ns(lane, &works[i]);
    return lane->queue.waker.uncovered_ns < EVENT_EVERY_NS ||
           record_event(lane, works[count - 1].sequence);
}

/* ---- the waker's thread ---- */

/* Finds the first event that is not reached yet. False: all are. */
static bool next_event(const bh__worker_lane *lane, uint32_t *out_slot) {
    const bh__waker *waker = &lane->queue.waker;
    uint64_t recorded = atomic_load(&waker->recorded), done = atomic_load(&lane->area->done);
    uint64_t from = recorded > BH__QUEUE_EVENTS ? recorded - BH__QUEUE_EVENTS : 0;
    for (; from < recorded; from++) {
        *out_slot = (uint32_t)(from % BH__QUEUE_EVENTS);
        if (atomic_load(&waker->positions[*out_slot]) > done) return true;
    }
    return false;
}

static void wake(bh__worker_lane *lane) {
    bh__worker_lane_notify(lane, atomic_load(&lane->area->done), &lane->queue.waker.woken_dispatch);
    if (atomic_exchange(&lane->area->asleep, 0))
        bh__futex_wake(&lane->area->asleep, 1, BH__FUTEX_SHARED);
}

static void *waker_main(void *argument) {
    bh__worker_lane *lane = argument;
    bh__waker *waker = &lane->queue.waker;
    char name[16];
    snprintf(name, sizeof name, "bh-waker-%u", lane->index);
    pthread_setname_np(pthread_self(), name);
    while (!bh__worker_is_killed(lane->worker)) {
        uint32_t requested = atomic_load(&waker->requested), slot;
        if (requested == atomic_load(&waker->answered)) {
            bh__futex_wait(&waker->requested, requested, BH__NEVER, BH__FUTEX_PRIVATE);
            continue;
        }
        /* A device that has failed wakes the lane too, which queries it. */
        if (next_event(lane, &slot)) lane->worker->ops->event_wait(lane->context, slot);
        atomic_store(&waker->answered, requested);
        wake(lane);
    }
    return NULL;
}

static bool start(bh__worker_lane *lane) {
    lane->queue.waker.started =
        bh__thread_start(&lane->queue.waker.thread, NULL, waker_main, lane) == 0;
    return lane->queue.waker.started;
}

/* ---- requests: the lane's thread ---- */

bool bh__waker_request(bh__worker_lane *lane) {
    bh__waker *waker = &lane->queue.waker;
    uint32_t slot;
    if (!lane->worker->ops->enqueue_event) return false;
    uint32_t requested = atomic_load_explicit(&waker->requested, memory_order_relaxed);
    if (requested != atomic_load(&waker->answered)) return true;
    /* Much work behind the last event may have none. Then only its end gets one, and the lane polls
     * for those who wait for work in between. */
    bool covered = waker->uncovered_ns <= 2 * EVENT_EVERY_NS || next_event(lane, &slot);
    if (waker->uncovered_ns && !record_event(lane, bh__queued_end(lane)))
        return true; /* the next query finds the device failed */
    if (!waker->started && !start(lane)) return false;
    atomic_store(&waker->requested, requested + 1);
    bh__futex_wake(&waker->requested, 1, BH__FUTEX_PRIVATE);
    return covered;
}

void bh__waker_join(bh__worker_lane *lane) {
    if (!lane->queue.waker.started) return;
    atomic_fetch_add(&lane->queue.waker.requested, 1);
    bh__futex_wake(&lane->queue.waker.requested, 1, BH__FUTEX_PRIVATE);
    pthread_join(lane->queue.waker.thread, NULL);
    lane->queue.waker.started = false;
}
