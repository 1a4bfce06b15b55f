/* SPDX-License-Identifier: Apache-2.0 */
/* The bell of a lane: a thread that sleeps inside the device until what is queued is done, and then
 * wakes the lane. Without it a lane that sleeps would notice late, or look all the time. */
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/futex.h"
#include "worker/state.h"

static void ring(bh__lane *lane) {
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
        uint32_t asked = atomic_load(&bell->asked);
        if (asked == atomic_load(&bell->answered)) {
            bh__futex_wait(&bell->asked, asked, BH__NEVER, BH__FUTEX_PRIVATE);
            continue;
        }
        /* A device that has died wakes the lane too, which asks it and finds out. */
        lane->worker->ops->await(lane->context);
        atomic_store(&bell->answered, asked);
        ring(lane);
    }
    return NULL;
}

static bool start(bh__lane *lane) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    lane->bell.there = pthread_create(&lane->bell.thread, NULL, bell_main, lane) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return lane->bell.there;
}

void bh__bell_ask(bh__lane *lane) {
    bh__bell *bell = &lane->bell;
    if (!lane->worker->ops->await) return;
    uint32_t asked = atomic_load_explicit(&bell->asked, memory_order_relaxed);
    if (asked != atomic_load(&bell->answered)) return;
    /* Without a thread it goes on by looking now and then. */
    if (!bell->there && !start(lane)) return;
    atomic_store(&bell->asked, asked + 1);
    bh__futex_wake(&bell->asked, 1, BH__FUTEX_PRIVATE);
}

void bh__bell_end(bh__lane *lane) {
    if (!lane->bell.there) return;
    atomic_fetch_add(&lane->bell.asked, 1);
    bh__futex_wake(&lane->bell.asked, 1, BH__FUTEX_PRIVATE);
    pthread_join(lane->bell.thread, NULL);
    lane->bell.there = false;
}
