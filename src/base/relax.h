/* SPDX-License-Identifier: Apache-2.0 */
/* The pause of a spinning thread between two checks. */
#ifndef BH_BASE_RELAX_H
#define BH_BASE_RELAX_H

#include "base/tune.h"

static inline void bh__cpu_relax(void) {
#if defined(BH__SIMULATED)
    bh__simulated_relax();
#elif defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

#endif
