/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of 16 bytes for processors that have none: two halves under a lock. */
#include "ptx/run/single.h"

#include <sched.h>
#include <stdatomic.h>

/* By place in the page: memory that is mapped at two addresses has the same lock at both. */
enum { PAGE = 4096, LOCKS = PAGE / 16 };

static atomic_flag locks[LOCKS];

static atomic_flag *lock(const void *at) {
    atomic_flag *flag = &locks[(uintptr_t)at % PAGE / 16];
    while (atomic_flag_test_and_set_explicit(flag, memory_order_acquire)) {
        sched_yield();
    }
    return flag;
}

static void copy_halves(void *to, const void *from) {
    bh__single_load(to, from, 8);
    bh__single_load((char *)to + 8, (const char *)from + 8, 8);
}

void bh__single_load16_locked(void *to, const void *from) {
    atomic_flag *flag = lock(from);
    copy_halves(to, from);
    atomic_flag_clear_explicit(flag, memory_order_release);
}

void bh__single_store16_locked(void *to, const void *from) {
    atomic_flag *flag = lock(to);
    copy_halves(to, from);
    atomic_flag_clear_explicit(flag, memory_order_release);
}

bool bh__single_swap16_locked(void *at, uint64_t expected[2], const uint64_t desired[2]) {
    uint64_t found[2];
    atomic_flag *flag = lock(at);
    copy_halves(found, at);
    bool swap = found[0] == expected[0] && found[1] == expected[1];
    if (swap) {
        copy_halves(at, desired);
    }
    atomic_flag_clear_explicit(flag, memory_order_release);
    expected[0] = found[0];
    expected[1] = found[1];
    return swap;
}
