/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's time stamp counter: a third of the cost of clock_gettime, and the same in all
 * processes of a machine. The length of a tick is measured when a device is opened. */
#ifndef BH_BASE_TICKS_H
#define BH_BASE_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/tune.h"

/* Returns true if the counter has a constant rate and is synchronized between processors. Otherwise
 * the clock is used instead, and a tick is a nanosecond. */
bool bh__ticks_usable(void);

static inline uint64_t bh__ticks(bool usable) {
#if defined(BH__SIMULATED)
    if (usable) return bh__simulated_ticks();
#elif defined(__x86_64__)
    if (usable) return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (usable) {
        uint64_t value;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
        return value;
    }
#endif
    (void)usable;
    return bh__now_ns();
}

/* Nanoseconds per tick, as a fixed-point number with 32 fractional bits. */
#define BH__TICKS_ONE ((uint64_t)1 << 32)

static inline uint64_t bh__ticks_scale(uint64_t ticks, uint64_t ns) {
    __extension__ typedef unsigned __int128 wide;
    return ticks ? (uint64_t)(((wide)ns << 32) / ticks) : BH__TICKS_ONE;
}

static inline uint64_t bh__ticks_ns(uint64_t ticks, uint64_t scale) {
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)ticks * scale >> 32);
}

static inline uint64_t bh__ticks_of(uint64_t ns, uint64_t scale) {
    __extension__ typedef unsigned __int128 wide;
    return scale ? (uint64_t)(((wide)ns << 32) / scale) : 0;
}

/* Ticks from one time to a later one. Counters of two processors may differ by a few ticks. */
static inline uint64_t bh__ticks_between(uint64_t from, uint64_t to) {
    return to > from ? to - from : 0;
}

#endif
