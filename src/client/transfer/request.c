/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers that are described by a struct. */
#include <string.h>

#include "base/checked.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/queue/queue.h"
#include "client/transfer/transfer.h"

/* Refuses host memory whose last byte has no address: pointer and offset would wrap. */
static bh_status check_host_end(const bh_transfer *self) {
    bool write = self->direction == BH_TRANSFER_WRITE;
    if ((!write && self->direction != BH_TRANSFER_READ) || self->width == 0) return BH_OK;
    const void *pointer = write ? self->from : self->to;
    uint64_t offset = write ? self->source_offset : self->target_offset;
    uint64_t pitch = write ? self->source_pitch : self->target_pitch;
    uint64_t height = self->height ? self->height : 1, extent, end;
    if (!pitch) pitch = self->width;
    if (height > 1 && pitch < self->width) return BH_OK; /* refused with the rows */
    if (bh__rows_extent(self->width, height, pitch, &extent) && bh__add_u64(offset, extent, &end) &&
        bh__add_u64((uintptr_t)pointer, end, &end))
        return BH_OK;
    return bh__refuse(BH_E_INVALID, "keep the offset and the rows within the host memory",
                      "the host memory at %p: %llu rows of %llu bytes from offset %llu on end "
                      "beyond 2^64",
                      pointer, (unsigned long long)height, (unsigned long long)self->width,
                      (unsigned long long)offset);
}

bh_status bh__transfer_take(const bh_request *given, bh_transfer *out) {
    if (!given || given->size < sizeof *given || given->size > 4096)
        return bh__refuse(BH_E_INVALID,
                          "make it with bh_transfer_write and its like, and pass &transfer.request",
                          "the request is %s", given ? "without a size" : "NULL");
    if (given->kind != BH_REQUEST_TRANSFER)
        return bh__refuse(BH_E_UNSUPPORTED, "use BH_REQUEST_TRANSFER",
                          "requests of kind %u are not known to this version", given->kind);
    *out = (bh_transfer){.request = {sizeof *out, given->kind}};
    if (bh__options_take(given, out, "bh_transfer") != BH_OK) return bh__last()->status;
    if (out->direction < BH_TRANSFER_WRITE || out->direction > BH_TRANSFER_FILL)
        return bh__refuse(BH_E_INVALID, "use BH_TRANSFER_WRITE, _READ, _COPY or _FILL",
                          "bh_transfer.direction is %u", out->direction);
    if (out->direction == BH_TRANSFER_FILL && out->height <= 1)
        return bh__fill_whole(out->target, out->target_offset, &out->width);
    return check_host_end(out);
}

static bool has_rows(const bh_transfer *self) {
    return self->height > 1 && self->width;
}

/* A transfer of one range. Offsets into host memory count from its pointer. */
static bh_status submit_range(const bh__route *route, const bh_transfer *self, bool wait,
                              bh_ticket *out) {
    const uint8_t *from = self->from;
    uint8_t *to = self->to;
    switch (self->direction) {
    case BH_TRANSFER_WRITE:
        return bh__transfer_write(route, self->target, self->target_offset,
                                  from ? from + self->source_offset : NULL, self->width, out);
    case BH_TRANSFER_READ:
        if (to) to += self->target_offset;
        return wait && self->width ? bh__transfer_read_now(route, self->source, self->source_offset,
                                                           to, self->width, out)
                                   : bh__transfer_read(route, self->source, self->source_offset, to,
                                                       self->width, out);
    case BH_TRANSFER_COPY:
        return bh__transfer_copy(route, self->target, self->target_offset, self->source,
                                 self->source_offset, self->width, out);
    default:
        if (self->pattern_bytes > 1 && self->width % self->pattern_bytes)
            return bh__rows_fill(route, self, out);
        return bh__transfer_fill(route, self->target, self->target_offset, self->width, self->from,
                                 self->pattern_bytes, out);
    }
}

static bh_status submit_transfer(const bh__route *route, const bh_transfer *self, bool wait,
                                 bh_ticket *out) {
    if (!has_rows(self)) return submit_range(route, self, wait, out);
    switch (self->direction) {
    case BH_TRANSFER_WRITE:
        return bh__rows_write(route, self, out);
    case BH_TRANSFER_READ:
        return bh__rows_read(route, self, wait, out);
    case BH_TRANSFER_COPY:
        return bh__rows_copy(route, self, out);
    default:
        return bh__rows_fill(route, self, out);
    }
}

static bh_status take_after(bh_buffer buffer, const bh_submit_options *options,
                            uint64_t *positions) {
    bh__device *device = bh__device_lock(buffer.id, BH__KIND_BUFFER, "buffer", true);
    if (!device) return bh__last()->status;
    bh_status status = bh__after_take(device, options->after, options->after_count, positions);
    bh__device_unlock(device);
    return status;
}

/* Gives work that is done without one a ticket. A device that has stopped issues none. */
static bh_status give_ticket(const bh__route *route, bh_buffer buffer, bh_ticket *out) {
    bh_error before = *bh__last();
    bh_status status = bh__transfer_read(route, buffer, 0, NULL, 0, out);
    if (status != BH_E_STOPPED) return status;
    *bh__last() = before;
    return BH_OK;
}

bh_status bh__transfer_submit(const bh_request *request, const bh_submit_options *options,
                              bh_ticket *out) {
    bh_transfer transfer;
    if (bh__transfer_take(request, &transfer) != BH_OK ||
        bh__submit_options_once(options, "a transfer") != BH_OK)
        return bh__last()->status;
    bool wait = options->flags & BH_SUBMIT_WAIT, reads = transfer.direction == BH_TRANSFER_READ;
    bh_buffer buffer = reads ? transfer.source : transfer.target;
    bh_ticket ticket = {0, 0};
    uint64_t after[BH__MAX_LANES];
    bh__route route = {.lane = options->lane,
                       .no_block = options->flags & BH_SUBMIT_NO_BLOCK,
                       .timed = options->flags & BH_SUBMIT_TIMED,
                       .after = options->after_count ? after : NULL};
    bh_status status = bh__check_lane_device(options->lane, buffer);
    if (status == BH_OK && route.after) status = take_after(buffer, options, after);
    if (status == BH_OK) status = submit_transfer(&route, &transfer, wait, &ticket);
    if (status == BH_OK && wait && ticket.lane) status = bh_wait(ticket, BH_FOREVER);
    if (status == BH_OK && out && !ticket.lane) status = give_ticket(&route, buffer, &ticket);
    if (status == BH_OK && out) *out = ticket;
    return status;
}
