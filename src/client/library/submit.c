/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is described by a struct: bh_submit. */
#include "client/core/sized.h"
#include "client/library/library.h"
#include "client/queue/queue.h"
#include "client/transfer/transfer.h"

static bh_status submit_call(const bh_request *request, const bh_submit_options *options,
                             bh_ticket *out) {
    bh__library_call call;
    bh_kernel kernel;
    if (options->repeat > 1)
        return bh__refuse(BH_E_UNSUPPORTED, "record it in a sequence",
                          "a library call takes no repeat (%u)", options->repeat);
    bh_status status = bh__library_take(request, &call);
    bool no_block = options->flags & BH_SUBMIT_NO_BLOCK;
    if (status == BH_OK) status = bh__library_kernel(&call, options->lane, no_block, &kernel);
    if (status != BH_OK) return status;
    bh_launch_options with = {.size = sizeof with,
                              .flags = options->flags,
                              .lane = options->lane,
                              .deadline_ns = options->deadline_ns,
                              .elements = 1,
                              .after = options->after,
                              .after_count = options->after_count};
    bh_shape one = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    return bh__launch_ranges(kernel, one, bh__library_args(&call), call.ranges, &with, out);
}

bh_status bh_submit(const bh_request *request, const bh_submit_options *given, bh_ticket *out) {
    const uint32_t known =
        BH_SUBMIT_IDEMPOTENT | BH_SUBMIT_NO_BLOCK | BH_SUBMIT_WAIT | BH_SUBMIT_TIMED;
    bh_submit_options options;
    if (bh__submit_options_take(given, known, &options) != BH_OK) return bh__last()->status;
    return bh__is_library_call(request) ? submit_call(request, &options, out)
                                        : bh__transfer_submit(request, &options, out);
}
