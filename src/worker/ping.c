/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that answers the supervisor's pings and does nothing else. It calls no driver and takes
 * no lock, so that it answers as long as the process runs at all. It sleeps between pings. */
#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"
#include "worker/state.h"

enum { STACK_BYTES = 64 * 1024 };

static _Atomic uint32_t *ping_word(bh__worker_instance *worker) {
    return &worker->front->ping[worker->area_index];
}

static void *ping_main(void *argument) {
    bh__worker_instance *worker = argument;
    pthread_setname_np(pthread_self(), "bh-ping");
    while (!bh__worker_is_killed(worker)) {
        uint32_t ping = atomic_load(ping_word(worker));
        atomic_store(&worker->area->pong, ping);
        bh__futex_wait(ping_word(worker), ping, BH__NEVER, BH__FUTEX_SHARED);
    }
    atomic_store(&worker->ping_ended, true);
    return NULL;
}

bh_status bh__ping_start(bh__worker_instance *worker, bh_error *error) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int result = bh__thread_start(&worker->ping_thread, &attributes, ping_main, worker);
    pthread_attr_destroy(&attributes);
    worker->has_ping_thread = result == 0;
    if (worker->has_ping_thread) return BH_OK;
    char reason[128];
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "raise the limit on processes (ulimit -u)",
                    "the thread that answers pings cannot be started: %s",
                    bh__errno_text(result, reason, sizeof reason));
}

void bh__ping_join(bh__worker_instance *worker) {
    if (!worker->has_ping_thread) return;
    /* The thread may go to sleep right after it read `killed`: it is woken until it has ended. */
    while (!atomic_load(&worker->ping_ended)) {
        bh__futex_wake(ping_word(worker), BH__FUTEX_ALL, BH__FUTEX_SHARED);
        nanosleep(&(struct timespec){.tv_nsec = 20 * BH__NS_PER_US}, NULL);
    }
    pthread_join(worker->ping_thread, NULL);
    worker->has_ping_thread = false;
}
