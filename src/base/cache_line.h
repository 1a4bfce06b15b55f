/* SPDX-License-Identifier: Apache-2.0 */
/* Cache lines: fetched ahead of time, and given back. */
#ifndef BH_BASE_CACHE_LINE_H
#define BH_BASE_CACHE_LINE_H

#include <stdbool.h>

enum { BH__CACHE_LINE = 64 };

/* gcc takes a function that does nothing but prefetch for one without effect, and drops calls of it
 * that it does not inline at once. */
#define BH__FETCHER static inline __attribute__((always_inline)) void

/* Whether lines can be given back here. */
bool bh__cache_line_gives_back(void);

/* Puts a line back into memory, out of all caches. A processor that wants to write a line which
 * another one has read must first take it from there, and that takes several times as long as
 * fetching it from memory ahead of time. Only where it can be done. */
static inline void bh__cache_line_give_back(const void *line) {
#if defined(__x86_64__)
    __asm__ volatile("clflushopt %0" : : "m"(*(const char *)line));
#else
    (void)line;
#endif
}

#endif
