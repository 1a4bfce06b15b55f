/* SPDX-License-Identifier: Apache-2.0 */
/* Cache lines: prefetching and flushing them. */
#ifndef BH_BASE_CACHE_LINE_H
#define BH_BASE_CACHE_LINE_H

#include <stdbool.h>

enum { BH__CACHE_LINE = 64 };

/* gcc considers a function that only prefetches to have no effect, and drops calls to it that are
 * not inlined at once. */
#define BH__FETCHER static inline __attribute__((always_inline)) void

/* Returns true if bh__cache_line_give_back is supported. */
bool bh__cache_line_gives_back(void);

/* Flushes a line from all caches to memory. A processor that writes a line which another one has
 * read must first invalidate it there, which takes several times as long as prefetching it from
 * memory. Called only if it is supported. */
static inline void bh__cache_line_give_back(const void *line) {
#if defined(__x86_64__)
    __asm__ volatile("clflushopt %0" : : "m"(*(const char *)line));
#else
    (void)line;
#endif
}

#endif
