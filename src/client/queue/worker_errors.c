/* SPDX-License-Identifier: Apache-2.0 */
/* Validates the errors that workers send in reports and messages: a worker may be faulty or
 * hostile. */
#include <string.h>

#include "base/plain_text.h"
#include "client/queue/queue.h"

void bh__report_copy(const bh__report *shared, bh__report *out) {
    memcpy(out, shared, sizeof *out);
    BH__PLAIN(out->message);
    BH__PLAIN(out->fix);
    BH__PLAIN(out->device_name);
}

bh_status bh__status_of_worker(bh_status said) {
    bool refusal = said > BH_OK && said <= BH_E_FAULT;
    return refusal || said == BH_E_IO || said == BH_E_CANCELLED ? said : BH_E_INTERNAL;
}

void bh__error_of_worker(bh_error *error) {
    if (error->status != BH_OK) error->status = bh__status_of_worker(error->status);
    BH__PLAIN(error->message);
    BH__PLAIN(error->fix);
    BH__PLAIN(error->device_name);
    BH__PLAIN(error->kernel);
    error->ticket = (bh_ticket){0};
    error->generation = 0;
    error->certain = error->reason = 0;
    error->requested = error->limit = 0;
    memset(error->reserved, 0, sizeof error->reserved);
}
