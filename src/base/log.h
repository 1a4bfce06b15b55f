/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for whoever asked for them with bh_log_set. Nothing is printed here. */
#ifndef BH_BASE_LOG_H
#define BH_BASE_LOG_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Replaces the process's callback; NULL stops the messages. When this returns, the callback before
 * it is not running any more on any thread and will not run again, unless the call comes from
 * inside a log callback, which does not wait for others.
 */
bh_status bh__log_set(bh_log_fn *log, void *context, int32_t max_level, bh_error *error);

/* Whether a message of this level would reach anyone. */
bool bh__log_wants(int32_t level);

/* Not to be called with a lock held: the callback may call the library. Long text is cut. */
void bh__log(int32_t level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define bh__log_error(...)   bh__log(BH_LOG_ERROR, __VA_ARGS__)
#define bh__log_warning(...) bh__log(BH_LOG_WARNING, __VA_ARGS__)
#define bh__log_info(...)    bh__log(BH_LOG_INFO, __VA_ARGS__)
#define bh__log_debug(...)   bh__log(BH_LOG_DEBUG, __VA_ARGS__)

#endif
