/* SPDX-License-Identifier: Apache-2.0 */
/* What libbulkhead says about a status that a test did not expect. */
#include <stdio.h>

#include "bulkhead.h"
#include "test.h"

static void explain(long status, char *text, size_t size) {
    bh_error error;
    if (bh_last_error(&error) == (bh_status)status && status != BH_OK) {
        snprintf(text, size, "%s: %s\n    Fix: %s", bh_status_name(error.status), error.message,
                 error.fix);
    } else {
        snprintf(text, size, "%s", bh_status_name((bh_status)status));
    }
}

__attribute__((constructor)) static void install(void) {
    test_explain = explain;
}
