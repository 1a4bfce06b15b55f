/* SPDX-License-Identifier: Apache-2.0 */
/* The slow paths of the lock: spinning, then waiting on a futex. */
#include "base/lock.h"

#include "base/clock.h"
#include "base/futex.h"
#include "base/relax.h"

enum { SPINS = BH__TUNE(100, 2) };

void bh__lock_wait(bh__lock *lock) {
    for (int i = 0; i < SPINS; i++) {
        bh__cpu_relax();
        uint32_t free = 0;
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(&lock->word, &free, 1, memory_order_acquire,
                                                    memory_order_relaxed))
            return;
    }
    /* A thread that wakes up cannot know whether others still wait, so it holds the lock as 2. */
    while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
        bh__futex_wait(&lock->word, 2, BH__NEVER, BH__FUTEX_PRIVATE);
}

void bh__lock_wake(bh__lock *lock) {
    bh__futex_wake(&lock->word, 1, BH__FUTEX_PRIVATE);
}
