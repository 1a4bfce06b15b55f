/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/lock: one thread at a time holds it, and no thread sleeps on when it is free. */
#include <pthread.h>
#include <time.h>

#include "base/lock.h"
#include "test.h"

enum { THREADS = 8, ROUNDS = 20000, NAP_EVERY = 512, STAY_EVERY = 4, STAY = 200 };

static struct {
    bh__lock lock;
    uint64_t count; /* under it */
    int inside;     /* likewise */
    bool together;
} shared;

/* Now and then one stays a little longer, so that others find the lock taken and look again, or
 * falls asleep with it, so that they do too. */
static void *count_up(void *argument) {
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        bh__lock_take(&shared.lock);
        if (shared.inside++) shared.together = true;
        for (volatile int k = 0; i % STAY_EVERY == 0 && k < STAY; k++) continue;
        if (shared.count++ % NAP_EVERY == 0) nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
        shared.inside--;
        bh__lock_give(&shared.lock);
    }
    return NULL;
}

TEST(one_thread_at_a_time_and_none_is_left_asleep) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, count_up, NULL) == 0);
    for (int i = 0; i < THREADS; i++) REQUIRE(pthread_join(threads[i], NULL) == 0);
    CHECK(!shared.together);
    CHECK_EQ(shared.count, (uint64_t)THREADS * ROUNDS);
    CHECK_EQ(atomic_load(&shared.lock.word), 0);
}
