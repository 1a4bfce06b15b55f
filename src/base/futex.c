/* SPDX-License-Identifier: Apache-2.0 */
/* The futex system call. */
#include "base/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

static int private_flag(bh__futex_scope scope) {
    return scope == BH__FUTEX_PRIVATE ? FUTEX_PRIVATE_FLAG : 0;
}

bool bh__futex_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline,
                    bh__futex_scope scope) {
    /* The bitset form takes an absolute time, so the timeout is not recomputed after a wake-up. */
    struct timespec until = bh__timespec(deadline);
    int saved = errno;
    long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | private_flag(scope), expected,
                          deadline == BH__NEVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
    bool timed_out = result != 0 && errno == ETIMEDOUT;
    errno = saved;
    return !timed_out;
}

int bh__futex_wake(_Atomic(uint32_t) *word, int count, bh__futex_scope scope) {
    int saved = errno;
    long woken = syscall(SYS_futex, word, FUTEX_WAKE | private_flag(scope), count, NULL, NULL, 0);
    errno = saved;
    return woken < 0 ? 0 : (int)woken;
}
