/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time in nanoseconds, and deadlines on it. */
#ifndef BH_BASE_CLOCK_H
#define BH_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define BH__NS_PER_US 1000ull
#define BH__NS_PER_MS 1000000ull
#define BH__NS_PER_S  1000000000ull

/* No deadline. */
#define BH__NEVER UINT64_MAX

/* CLOCK_MONOTONIC is the same in all processes of a machine: times can be compared across them. */
static inline uint64_t bh__now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * BH__NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Returns the time `timeout_ns` from now; BH__NEVER for UINT64_MAX, or if the sum overflows. */
static inline uint64_t bh__deadline_after(uint64_t timeout_ns) {
    uint64_t deadline;
    if (timeout_ns == BH__NEVER || __builtin_add_overflow(bh__now_ns(), timeout_ns, &deadline)) {
        return BH__NEVER;
    }
    return deadline;
}

/* Returns the time until `deadline`: 0 once it has passed, BH__NEVER for BH__NEVER. */
static inline uint64_t bh__time_left(uint64_t deadline) {
    if (deadline == BH__NEVER) {
        return BH__NEVER;
    }
    uint64_t now = bh__now_ns();
    return deadline > now ? deadline - now : 0;
}

static inline struct timespec bh__timespec(uint64_t ns) {
    struct timespec time = {.tv_sec = (time_t)(ns / BH__NS_PER_S),
                            .tv_nsec = (long)(ns % BH__NS_PER_S)};
    return time;
}

#endif
