/* SPDX-License-Identifier: Apache-2.0 */
/* Futexes: waiting on a 32-bit word, and waking the waiters. */
#ifndef BH_BASE_FUTEX_H
#define BH_BASE_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* PRIVATE: threads of one process. SHARED: the word lies in memory that several processes map. */
typedef enum bh__futex_scope { BH__FUTEX_PRIVATE, BH__FUTEX_SHARED } bh__futex_scope;

/*
 * Waits while *word is `expected`, until `deadline` (on bh__now_ns's clock, BH__NEVER for none).
 * Returns false if the deadline passed, true otherwise: woken, the word differs, or spuriously. The
 * caller checks the word again. A read-only mapping is sufficient.
 */
bool bh__futex_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline,
                    bh__futex_scope scope);

/* Wakes at most `count` waiters. Returns the number woken. */
int bh__futex_wake(_Atomic(uint32_t) *word, int count, bh__futex_scope scope);

/* For `count`: all waiters. */
#define BH__FUTEX_ALL INT32_MAX

#endif
