/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that only fetch cache lines ahead of time. */
#ifndef BH_BASE_FETCH_H
#define BH_BASE_FETCH_H

/* gcc takes a function that does nothing but prefetch for one without effect, and drops calls of it
 * that it does not inline at once. */
#define BH__FETCHER static inline __attribute__((always_inline)) void

#endif
