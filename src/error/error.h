/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a bh_error: what failed, with the numbers, and the fix. */
#ifndef BH_ERROR_ERROR_H
#define BH_ERROR_ERROR_H

#include "base/errno_text.h" /* most errors that quote an errno are filled here */
#include "bulkhead.h"

/* For functions on error paths only: keeps them out of the fast path. */
#define BH__COLD __attribute__((noinline, cold))

/*
 * Fills `error` (which may be NULL) and returns `status`, so that a failing function reads
 *
 *     return bh__fail(error, BH_E_INVALID, "give a count of at least 1", "count is %zu", n);
 *
 * Text that does not fit is cut. All other fields of `error` are zeroed.
 */
bh_status bh__fail(bh_error *error, bh_status status, const char *fix, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds the device's own code and name, for example 700 and "CUDA_ERROR_ILLEGAL_ADDRESS". */
void bh__fail_device_code(bh_error *error, int code, const char *name);

#endif
