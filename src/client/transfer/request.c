/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is described by a struct: bh_submit. */
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/queue/queue.h"
#include "client/transfer/transfer.h"

typedef unsigned long long ull;

bh_status bh__transfer_take(const bh_request *given, bh_transfer *out) {
    if (!given || given->size < sizeof *given || given->size > 4096)
        return bh__refuse(BH_E_INVALID,
                          "make it with bh_transfer_write and its like, and pass &transfer.request",
                          "the request is %s", given ? "without a size" : "NULL");
    if (given->kind != BH_REQUEST_TRANSFER)
        return bh__refuse(BH_E_UNSUPPORTED, "use BH_REQUEST_TRANSFER",
                          "requests of kind %u are not known to this version", given->kind);
    *out = (bh_transfer){.request = {sizeof *out, given->kind}};
    if (bh__options_take(given, out, "bh_transfer") != BH_OK) return BH_E_INVALID;
    if (out->direction < BH_TRANSFER_WRITE || out->direction > BH_TRANSFER_FILL)
        return bh__refuse(BH_E_INVALID, "use BH_TRANSFER_WRITE, _READ, _COPY or _FILL",
                          "bh_transfer.direction is %u", out->direction);
    return BH_OK;
}

static bool has_rows(const bh_transfer *self) {
    return self->height > 1 && self->width;
}

/* A transfer of one range. Offsets into host memory count from its pointer. */
static bh_status submit_range(bh_lane lane, const bh_transfer *self, bool wait, bh_ticket *out) {
    const uint8_t *from = self->from;
    uint8_t *to = self->to;
    switch (self->direction) {
    case BH_TRANSFER_WRITE:
        return bh_submit_write(lane, self->target, self->target_offset,
                               from ? from + self->source_offset : NULL, self->width, out);
    case BH_TRANSFER_READ:
        if (to) to += self->target_offset;
        return wait ? bh_buffer_read(self->source, self->source_offset, to, self->width)
                    : bh_submit_read(lane, self->source, self->source_offset, to, self->width, out);
    case BH_TRANSFER_COPY:
        return bh_submit_copy(lane, self->target, self->target_offset, self->source,
                              self->source_offset, self->width, out);
    default:
        if (self->pattern_bytes > 1 && self->width % self->pattern_bytes)
            return bh__rows_fill(lane, self, out);
        return bh_submit_fill(lane, self->target, self->target_offset, self->width, self->from,
                              self->pattern_bytes, out);
    }
}

/* A request that does nothing, before the transfer on its lane: it waits for the tickets. */
static bh_status submit_barrier(bh_buffer buffer, const bh_submit_options *options) {
    bh__device *device = bh__device_lock(buffer.id, BH__KIND_BUFFER, "buffer", true);
    if (!device) return bh__last()->status;
    uint64_t after[BH__MAX_LANES];
    bh_status status = bh__after_take(device, options->after, options->after_count, after);
    bool retry = status == BH_OK;
    while (retry && status == BH_OK) {
        bh__submission barrier = {.lane = bh__lane_get(device, options->lane),
                                  .op = BH__OP_SKIP,
                                  .idempotent = true,
                                  .after = after};
        status = barrier.lane ? bh__submit(device, &barrier, &retry, NULL) : bh__last()->status;
    }
    bh__device_unlock(device);
    return status;
}

static bh_status submit_transfer(bh_lane lane, const bh_transfer *self, bool wait, bh_ticket *out) {
    if (!has_rows(self)) return submit_range(lane, self, wait, out);
    switch (self->direction) {
    case BH_TRANSFER_WRITE:
        return bh__rows_write(lane, self, out);
    case BH_TRANSFER_READ:
        return bh__rows_read(lane, self, wait, out);
    case BH_TRANSFER_COPY:
        return bh__rows_copy(lane, self, out);
    default:
        return bh__rows_fill(lane, self, out);
    }
}

bh_status bh_submit(const bh_request *request, const bh_submit_options *given, bh_ticket *out) {
    bh_submit_options options;
    bh_transfer transfer;
    if (bh__submit_options_take(given, BH_SUBMIT_IDEMPOTENT | BH_SUBMIT_WAIT, &options) != BH_OK ||
        bh__transfer_take(request, &transfer) != BH_OK)
        return bh__last()->status;
    if (options.deadline_ns || options.repeat > 1)
        return bh__refuse(BH_E_UNSUPPORTED, "leave these at 0: they are for sequences",
                          "a transfer with deadline_ns %llu and repeat %u",
                          (ull)options.deadline_ns, options.repeat);
    bool wait = options.flags & BH_SUBMIT_WAIT, reads = transfer.direction == BH_TRANSFER_READ;
    bh_buffer buffer = reads ? transfer.source : transfer.target;
    bh_ticket ticket = {0, 0};
    bh_status status = bh__check_lane_device(options.lane, buffer);
    if (status == BH_OK && options.after_count) status = submit_barrier(buffer, &options);
    if (status == BH_OK) status = submit_transfer(options.lane, &transfer, wait, &ticket);
    if (status == BH_OK && wait && ticket.lane) status = bh_wait(ticket, BH_FOREVER);
    /* What was read into plain memory is there already. The ticket is that of an empty read. */
    if (status == BH_OK && out && !ticket.lane)
        status = bh_submit_read(options.lane, buffer, 0, NULL, 0, &ticket);
    if (status == BH_OK && out) *out = ticket;
    return status;
}
