/* SPDX-License-Identifier: Apache-2.0 */
/* The bell of a lane: a thread that sleeps inside the device until queued work is done, and then
 * tells whoever waits for it. Without it a lane that sleeps would notice late, or look all the
 * time. */
#include <stdio.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"
#include "worker/state.h"

enum {
    /* A beacon costs about a microsecond. Work that takes this long gets one, and so does what comes
     * before it: nobody's news waits much longer than this for that of others. */
    BEACON_EVERY_NS = 100000,
    BYTES_PER_NS = 20,
    STEP_NS = 2000 /* of a sequence, where nothing is known */
};

/* ---- beacons: the lane's thread ---- */

static uint64_t expected_ns(const bh__lane *lane, const bh__work *work) {
    if (work->op == BH__OP_SKIP) return 0;
    if (work->op == BH__OP_SEQUENCE) {
        uint64_t ns = (uint64_t)work->u.sequence.repeat * lane->image.step_count * STEP_NS;
        return ns < BEACON_EVERY_NS ? ns : BEACON_EVERY_NS;
    }
    if (work->op != BH__OP_LAUNCH) return bh__copy_bytes(&work->u.copy) / BYTES_PER_NS;
    uint64_t ns = bh__pace_of(&lane->pace, work->u.launch.module, work->u.launch.kernel);
    return ns < BEACON_EVERY_NS ? ns : BEACON_EVERY_NS; /* also where nothing is known */
}

/* Whether many beacons are not reached yet. What comes behind them gets one later. */
static bool many_lit(const bh__lane *lane) {
    enum { MANY = BH__BEACONS / 2 };
    const bh__bell *bell = &lane->bell;
    uint64_t lit = atomic_load_explicit(&bell->lit, memory_order_relaxed);
    return lit >= MANY && atomic_load(&bell->positions[(lit - MANY) % BH__BEACONS]) > lane->told;
}

static bool light(bh__lane *lane, uint64_t position) {
    bh__bell *bell = &lane->bell;
    uint64_t number = atomic_load_explicit(&bell->lit, memory_order_relaxed);
    uint32_t slot = (uint32_t)(number % BH__BEACONS);
    bh_error error;
    if (many_lit(lane)) return true;
    bell->unlit_ns = 0;
    atomic_store(&bell->positions[slot], position);
    if (lane->worker->ops->beacon(lane->context, slot, &error) != BH_OK)
        return bh__queue_lost(lane, &error);
    atomic_store(&bell->lit, number + 1);
    return true;
}

bool bh__bell_before(bh__lane *lane, const bh__work *work) {
    if (!lane->worker->ops->beacon || lane->bell.unlit_ns == 0) return true;
    if (expected_ns(lane, work) < BEACON_EVERY_NS) return true;
    return light(lane, atomic_load_explicit(&lane->queued, memory_order_relaxed));
}

bool bh__bell_after(bh__lane *lane, const bh__work *works, uint32_t count) {
    if (!lane->worker->ops->beacon) return true;
    for (uint32_t i = 0; i < count; i++) lane->bell.unlit_ns += 1 + expected_ns(lane, &works[i]);
    return lane->bell.unlit_ns < BEACON_EVERY_NS || light(lane, works[count - 1].sequence);
}

/* ---- the bell's thread ---- */

/* The first beacon that is not reached yet. False: all are. */
static bool next_beacon(const bh__lane *lane, uint32_t *out_slot) {
    const bh__bell *bell = &lane->bell;
    uint64_t lit = atomic_load(&bell->lit), done = atomic_load(&lane->area->done);
    uint64_t from = lit > BH__BEACONS ? lit - BH__BEACONS : 0;
    for (; from < lit; from++) {
        *out_slot = (uint32_t)(from % BH__BEACONS);
        if (atomic_load(&bell->positions[*out_slot]) > done) return true;
    }
    return false;
}

static void ring(bh__lane *lane) {
    bh__serve_lane_tell(lane, atomic_load(&lane->area->done), &lane->bell.woken_dispatch);
    if (atomic_exchange(&lane->area->asleep, 0))
        bh__futex_wake(&lane->area->asleep, 1, BH__FUTEX_SHARED);
}

static void *bell_main(void *argument) {
    bh__lane *lane = argument;
    bh__bell *bell = &lane->bell;
    char name[16];
    snprintf(name, sizeof name, "bh-bell-%u", lane->index);
    pthread_setname_np(pthread_self(), name);
    while (!bh__serve_killed(lane->worker)) {
        uint32_t asked = atomic_load(&bell->asked), slot;
        if (asked == atomic_load(&bell->answered)) {
            bh__futex_wait(&bell->asked, asked, BH__NEVER, BH__FUTEX_PRIVATE);
            continue;
        }
        /* A device that has died wakes the lane too, which asks it and finds out. */
        if (next_beacon(lane, &slot)) lane->worker->ops->await(lane->context, slot);
        atomic_store(&bell->answered, asked);
        ring(lane);
    }
    return NULL;
}

static bool start(bh__lane *lane) {
    lane->bell.there = bh__thread_start(&lane->bell.thread, NULL, bell_main, lane) == 0;
    return lane->bell.there;
}

/* ---- asking: the lane's thread ---- */

bool bh__bell_ask(bh__lane *lane) {
    bh__bell *bell = &lane->bell;
    uint32_t slot;
    if (!lane->worker->ops->beacon) return false;
    uint32_t asked = atomic_load_explicit(&bell->asked, memory_order_relaxed);
    if (asked != atomic_load(&bell->answered)) return true;
    /* Behind the last beacon there may be a lot that got none: its end alone is lit, and the lane
     * looks now and then for those who wait for what is in between. */
    bool covered = bell->unlit_ns <= 2 * BEACON_EVERY_NS || next_beacon(lane, &slot);
    if (bell->unlit_ns && !light(lane, atomic_load_explicit(&lane->queued, memory_order_relaxed)))
        return true; /* the next look finds the device dead */
    if (!bell->there && !start(lane)) return false;
    atomic_store(&bell->asked, asked + 1);
    bh__futex_wake(&bell->asked, 1, BH__FUTEX_PRIVATE);
    return covered;
}

void bh__bell_end(bh__lane *lane) {
    if (!lane->bell.there) return;
    atomic_fetch_add(&lane->bell.asked, 1);
    bh__futex_wake(&lane->bell.asked, 1, BH__FUTEX_PRIVATE);
    pthread_join(lane->bell.thread, NULL);
    lane->bell.there = false;
}
