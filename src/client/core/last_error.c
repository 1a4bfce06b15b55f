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

bh_status bh_log_set(bh_log_fn *log, void *context, int32_t max_level) {
    return bh__log_set(log, context, max_level, bh__last());
}
