/* SPDX-License-Identifier: Apache-2.0 */
/* The names of status codes. */
#include "bulkhead.h"

static const char *const names[] = {
    [BH_OK] = "BH_OK",
    [BH_E_INVALID] = "BH_E_INVALID",
    [BH_E_NOT_FOUND] = "BH_E_NOT_FOUND",
    [BH_E_UNSUPPORTED] = "BH_E_UNSUPPORTED",
    [BH_E_NO_DEVICE] = "BH_E_NO_DEVICE",
    [BH_E_NO_MEMORY] = "BH_E_NO_MEMORY",
    [BH_E_NO_HOST_MEMORY] = "BH_E_NO_HOST_MEMORY",
    [BH_E_COMPILE] = "BH_E_COMPILE",
    [BH_E_LOAD] = "BH_E_LOAD",
    [BH_E_LAUNCH] = "BH_E_LAUNCH",
    [BH_E_RESIDENCY] = "BH_E_RESIDENCY",
    [BH_E_FAULT] = "BH_E_FAULT",
    [BH_E_DEADLINE] = "BH_E_DEADLINE",
    [BH_E_LOST] = "BH_E_LOST",
    [BH_E_STALE] = "BH_E_STALE",
    [BH_E_QUARANTINED] = "BH_E_QUARANTINED",
    [BH_E_STOPPED] = "BH_E_STOPPED",
    [BH_E_BUSY] = "BH_E_BUSY",
    [BH_E_CANCELLED] = "BH_E_CANCELLED",
    [BH_E_TIMEOUT] = "BH_E_TIMEOUT",
    [BH_E_IO] = "BH_E_IO",
    [BH_E_INTERNAL] = "BH_E_INTERNAL",
};

const char *bh_status_name(bh_status status) {
    if (status < 0 || (size_t)status >= sizeof names / sizeof names[0]) {
        return "BH_E_?";
    }
    return names[status];
}
