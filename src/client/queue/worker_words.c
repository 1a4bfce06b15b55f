/* SPDX-License-Identifier: Apache-2.0 */
/* Validates the errors that workers send in reports and messages: a worker may be faulty or
 * hostile. */
#include <string.h>

#include "client/queue/queue.h"

void bh__report_copy(const bh__report *shared, bh__report *out) {
    memcpy(out, shared, sizeof *out);
    out->message[sizeof out->message - 1] = out->fix[sizeof out->fix - 1] = 0;
    out->device_name[sizeof out->device_name - 1] = 0;
}

bh_status bh__status_of_worker(bh_status said) {
    bool refusal = said > BH_OK && said <= BH_E_FAULT;
    return refusal || said == BH_E_IO || said == BH_E_CANCELLED ? said : BH_E_INTERNAL;
}

void bh__error_of_worker(bh_error *error) {
    if (error->status != BH_OK) error->status = bh__status_of_worker(error->status);
    error->message[sizeof error->message - 1] = error->fix[sizeof error->fix - 1] = 0;
    error->device_name[sizeof error->device_name - 1] = error->kernel[sizeof error->kernel - 1] = 0;
    error->ticket = (bh_ticket){0};
    error->generation = 0;
    error->certain = error->reason = 0;
    error->requested = error->limit = 0;
    memset(error->reserved, 0, sizeof error->reserved);
}
