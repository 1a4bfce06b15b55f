/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's last error, the version, and the log callback. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "client/core/error.h"

static _Thread_local bh_error last;

bh_error *bh__last(void) {
    return &last;
}

bh_status bh__refuse_with(const bh_error *error) {
    last = *error;
    return error->status;
}

bh_status bh_last_error(bh_error *out) {
    if (out) *out = last;
    return last.status;
}

const char *bh_last_message(void) {
    static _Thread_local char text[32 + sizeof last.message + sizeof last.fix];
    text[0] = 0;
    if (last.status != BH_OK)
        snprintf(text, sizeof text, "%s: %s%s%s", bh_status_name(last.status), last.message,
                 last.fix[0] ? "\nFix: " : "", last.fix);
    return text;
}

const char *bh_version(void) {
    return BULKHEAD_VERSION;
}

_Static_assert(BH_LOG_ERROR == (int)BH__LOG_ERROR && BH_LOG_WARNING == (int)BH__LOG_WARNING &&
                   BH_LOG_INFO == (int)BH__LOG_INFO && BH_LOG_DEBUG == (int)BH__LOG_DEBUG,
               "base/log.h has the levels of the public header");

bh_status bh_log_set(bh_log_fn *log, void *context, int32_t max_level) {
    if (log && (max_level < BH_LOG_ERROR || max_level > BH_LOG_DEBUG))
        return bh__refuse(BH_E_INVALID, "use BH_LOG_ERROR, _WARNING, _INFO or _DEBUG",
                          "max_level is %d, not %d to %d", max_level, BH_LOG_ERROR, BH_LOG_DEBUG);
    if (bh__log_set(log, context, max_level) == 0) return BH_OK;
    return bh__refuse(BH_E_BUSY, "set the log callback from one thread at a time",
                      "%d log callbacks are being replaced at once", BH__LOG_SINKS);
}
