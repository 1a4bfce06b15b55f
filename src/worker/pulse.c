/* SPDX-License-Identifier: Apache-2.0 */
/* The pulse: a thread that answers the supervisor's pings and does nothing else. It calls no driver
 * and takes no lock, so that it answers as long as the process runs at all, and it sleeps while the
 * supervisor does not ask. */
#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"
#include "worker/state.h"

enum { STACK_BYTES = 64 * 1024 };

static _Atomic uint32_t *ping_word(bh__worker *worker) {
    return &worker->front->ping[worker->area_index];
}

static void *pulse_main(void *argument) {
    bh__worker *worker = argument;
    pthread_setname_np(pthread_self(), "bh-pulse");
    while (!bh__serve_killed(worker)) {
        uint32_t ping = atomic_load(ping_word(worker));
        atomic_store(&worker->area->pong, ping);
        bh__futex_wait(ping_word(worker), ping, BH__NEVER, BH__FUTEX_SHARED);
    }
    atomic_store(&worker->pulse_ended, true);
    return NULL;
}

bh_status bh__pulse_start(bh__worker *worker, bh_error *error) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int result = bh__thread_start(&worker->pulse, &attributes, pulse_main, worker);
    pthread_attr_destroy(&attributes);
    worker->has_pulse = result == 0;
    if (worker->has_pulse) return BH_OK;
    char reason[128];
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "raise the limit on processes (ulimit -u)",
                    "the thread that answers pings cannot be started: %s",
                    bh__errno_text(result, reason, sizeof reason));
}

void bh__pulse_join(bh__worker *worker) {
    if (!worker->has_pulse) return;
    /* It may go to sleep right after it looked at `killed`: woken until it has seen it. */
    while (!atomic_load(&worker->pulse_ended)) {
        bh__futex_wake(ping_word(worker), BH__FUTEX_ALL, BH__FUTEX_SHARED);
        nanosleep(&(struct timespec){.tv_nsec = 20 * BH__NS_PER_US}, NULL);
    }
    pthread_join(worker->pulse, NULL);
    worker->has_pulse = false;
}
