/* SPDX-License-Identifier: Apache-2.0 */
/* Log messages for the callback that the program sets. The library itself prints nothing. */
#ifndef BH_BASE_LOG_H
#define BH_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { BH__LOG_ERROR = 1, BH__LOG_WARNING, BH__LOG_INFO, BH__LOG_DEBUG };

typedef void bh__log_fn(void *context, int32_t level, const char *text);

/* How many callbacks can be in the course of being replaced at once. */
enum { BH__LOG_SINKS = 16 };

/*
 * Replaces the process's callback; NULL stops the messages. When this returns, the previous
 * callback is not running on any thread and will not run again. A call from inside a log callback
 * does not wait for other threads. Returns 0, or EBUSY if BH__LOG_SINKS are being replaced.
 */
int bh__log_set(bh__log_fn *log, void *context, int32_t max_level);

/* Returns true if a callback is set for messages of this level. */
bool bh__log_wants(int32_t level);

/* Formats nothing if no callback is set for this level. Must not be called with a lock held: the
 * callback may call the library. Text over 1023 bytes is cut. */
void bh__log(int32_t level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define bh__log_error(...)   bh__log(BH__LOG_ERROR, __VA_ARGS__)
#define bh__log_warning(...) bh__log(BH__LOG_WARNING, __VA_ARGS__)
#define bh__log_info(...)    bh__log(BH__LOG_INFO, __VA_ARGS__)
#define bh__log_debug(...)   bh__log(BH__LOG_DEBUG, __VA_ARGS__)

#endif
