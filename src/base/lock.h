/* SPDX-License-Identifier: Apache-2.0 */
/* A lock for sections that mostly take less than a microsecond. Without contention, taking and
 * releasing it is one locked instruction each. A thread that finds it taken spins before it
 * waits. */
#ifndef BH_BASE_LOCK_H
#define BH_BASE_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

/* All zero: free. */
typedef struct bh__lock {
    _Atomic uint32_t word; /* 0: free, 1: held, 2: held, and threads may be waiting */
} bh__lock;

/* The slow paths: wait for a held lock and take it; wake one waiter. */
void bh__lock_wait(bh__lock *lock) __attribute__((cold));
void bh__lock_wake(bh__lock *lock) __attribute__((cold));

static inline void bh__lock_take(bh__lock *lock) {
    uint32_t free = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->word, &free, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        bh__lock_wait(lock);
}

static inline void bh__lock_give(bh__lock *lock) {
    if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2) bh__lock_wake(lock);
}

#endif
