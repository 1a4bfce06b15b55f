/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a bh_error: what went wrong, with its numbers, and what to do about it. */
#ifndef BH_BASE_ERROR_H
#define BH_BASE_ERROR_H

#include "bulkhead.h"

/* What only refusals reach: kept out of the way of what goes through. */
#define BH__COLD __attribute__((noinline, cold))

/*
 * Fills `error` (which may be NULL) and returns `status`, so that a failing function reads
 *
 *     return bh__fail(error, BH_E_INVALID, "give a count of at least 1", "count is %zu", n);
 *
 * Text that does not fit is cut. Everything in `error` beside status, message and fix is zeroed.
 */
bh_status bh__fail(bh_error *error, bh_status status, const char *fix, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds the device's own code and name, "CUDA_ERROR_ILLEGAL_ADDRESS" and 700 for example. */
void bh__fail_device_code(bh_error *error, int code, const char *name);

/* The system's words for an errno value, in the caller's storage; never fails. */
const char *bh__errno_text(int number, char *storage, size_t size);

#endif
