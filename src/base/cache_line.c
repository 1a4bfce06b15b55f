/* SPDX-License-Identifier: Apache-2.0 */
/* Detects whether this processor can flush cache lines. */
#include "base/cache_line.h"

#if defined(__x86_64__)

#include <cpuid.h>

bool bh__cache_line_gives_back(void) {
    enum { FEATURES_LEAF = 7, CLFLUSHOPT = 1 << 23 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(FEATURES_LEAF, 0, &a, &b, &c, &d) && (b & CLFLUSHOPT);
}

#else

bool bh__cache_line_gives_back(void) {
    return false;
}

#endif
