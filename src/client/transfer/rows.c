/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers of rectangles (rows with a pitch), and fills with patterns of any length. */
#include <string.h>

#include "base/checked.h"
#include "client/core/handles.h"
#include "client/queue/queue.h"
#include "client/transfer/transfer.h"

typedef unsigned long long ull;

/* ---- checking ---- */

/* One side of a rectangle, in bytes of the buffer or memory it lies in. */
typedef struct side {
    uint64_t offset, pitch, extent;
} side;

typedef struct plan {
    uint64_t width, height;
    side target, source;
} plan;

static bh_status side_check(const char *what, uint64_t width, uint64_t height, uint64_t offset,
                            uint64_t pitch, side *out) {
    out->offset = offset;
    out->pitch = pitch ? pitch : width;
    out->extent = 0;
    if (width == 0) return BH_OK;
    uint64_t end;
    if (out->pitch < width)
        return bh__refuse(BH_E_INVALID, "use a pitch of at least the width, or 0 for the width",
                          "the %s has a pitch of %llu bytes, its rows have %llu", what, (ull)pitch,
                          (ull)width);
    if (!bh__rows_extent(width, height, out->pitch, &out->extent) ||
        !bh__add_u64(offset, out->extent, &end))
        return bh__refuse(BH_E_INVALID, "use fewer or shorter rows",
                          "the %s of %llu rows of %llu bytes with a pitch of %llu ends beyond 2^64",
                          what, (ull)height, (ull)width, (ull)out->pitch);
    return BH_OK;
}

static bh_status plan_rows(const bh_transfer *given, bool with_source, plan *out) {
    *out = (plan){.width = given->width, .height = given->height ? given->height : 1};
    bh_status status = side_check("target", out->width, out->height, given->target_offset,
                                  given->target_pitch, &out->target);
    if (status == BH_OK && with_source)
        status = side_check("source", out->width, out->height, given->source_offset,
                            given->source_pitch, &out->source);
    return status;
}

static bool is_tight(const plan *rows, const side *range) {
    return rows->height == 1 || range->pitch == rows->width;
}

static bh_status check_inside(const char *what, const side *range, const bh__buffer *buffer) {
    if (bh__range_fits(range->offset, range->extent, buffer->bytes)) return BH_OK;
    return bh__refuse(BH_E_INVALID, "stay within the buffer",
                      "the %s: %llu bytes at offset %llu do not fit a buffer of %llu bytes", what,
                      (ull)range->extent, (ull)range->offset, (ull)buffer->bytes);
}

/* Returns true if target and source share a byte, given their start offsets. With different
 * pitches, it compares only their ranges. */
static bool rows_overlap(const plan *rows, uint64_t target, uint64_t source) {
    if (target >= source + rows->source.extent || source >= target + rows->target.extent)
        return false;
    if (rows->target.pitch != rows->source.pitch || rows->height == 1) return true;
    uint64_t pitch = rows->target.pitch,
             apart = target > source ? target - source : source - target;
    uint64_t rest = apart % pitch;
    /* Row i of one begins `rest` bytes into row k of the other, and may extend into row k + 1. */
    bool here = rest < rows->width && apart / pitch < rows->height;
    bool after = pitch - rest < rows->width && apart / pitch + 1 < rows->height;
    return here || after;
}

/* ---- one request ---- */

static bh__use use_of(bh__memory *memory, uint64_t offset, const plan *rows, const side *range,
                      uint32_t access) {
    if (access == BH_ACCESS_OUT && !is_tight(rows, range)) access |= BH__ACCESS_GAPS;
    return (bh__use){.memory = memory, .offset = offset, .bytes = range->extent, .access = access};
}

/* One side of a request: a buffer, or host memory that workers can access. */
typedef struct place {
    bh_buffer buffer; /* zero: host memory */
    bh__memory *host;
    uint64_t host_offset;
} place;

typedef struct request {
    uint16_t op;
    place target, source;
    plan rows;
    uint32_t pattern_bytes;
    bh__call *call; /* the call that this is a piece of; NULL: none */
} request;

/* Fills in the use and the address of one side. False: the thread's error is set. */
static bool resolve(bh__device *device, const char *what, const place *where, const plan *rows,
                    const side *range, uint32_t access, bh__use *use, uint64_t *address) {
    if (!where->buffer.id && where->host) {
        *use = use_of(where->host, where->host_offset, rows, range, access);
        *address = where->host->host_from + where->host_offset;
        return true;
    }
    bh__buffer *buffer = bh__handle_get(device, where->buffer.id, BH__KIND_BUFFER, what);
    if (!buffer || check_inside(what, range, buffer) != BH_OK) return false;
    *use = use_of(buffer->memory, buffer->offset + range->offset, rows, range, access);
    *address = buffer->memory->address + use->offset;
    return true;
}

/* Called and returns with the lock held. */
static bh_status submit(bh__device *device, bh_lane lane_handle, const request *wanted,
                        bh_ticket *out) {
    const plan *rows = &wanted->rows;
    for (;;) {
        bh__use uses[2];
        uint64_t target, source;
        bh__lane *lane = bh__lane_get(device, lane_handle);
        if (!lane ||
            !resolve(device, "target", &wanted->target, rows, &rows->target, BH_ACCESS_OUT,
                     &uses[0], &target) ||
            !resolve(device, "source", &wanted->source, rows, &rows->source, BH_ACCESS_IN, &uses[1],
                     &source))
            return bh__last()->status;
        if (uses[0].memory == uses[1].memory && rows_overlap(rows, uses[0].offset, uses[1].offset))
            return bh__refuse(BH_E_INVALID, "copy through another buffer",
                              "source and target of %llu rows of %llu bytes overlap",
                              (ull)rows->height, (ull)rows->width);
        /* Two requests never share a staging slot, so it needs no ordering. */
        bool staged_target = uses[0].memory == device->transfer.staging;
        bool staged_source = uses[1].memory == device->transfer.staging;
        bh__memory *host = wanted->target.buffer.id ? wanted->source.host : wanted->target.host;
        bh__submission submission = {.lane = lane,
                                     .op = wanted->op,
                                     .idempotent = true,
                                     .uses = staged_target ? &uses[1] : uses,
                                     .use_count = staged_target || staged_source ? 1 : 2,
                                     .call = wanted->call,
                                     .copy = {.target = target,
                                              .source = source,
                                              .bytes = rows->width,
                                              .rows = rows->height,
                                              .host = host ? host->host_id : 0,
                                              .pattern_bytes = wanted->pattern_bytes,
                                              .pitch = {rows->target.pitch, rows->source.pitch}}};
        bool retry;
        bh_status status = bh__submit(device, &submission, &retry, out);
        if (!retry || status != BH_OK) return status;
    }
}

/* Locks the device and checks the range. NULL: nothing is locked and the thread's error is set. */
static bh__device *begin(bh_buffer handle, const char *what, const side *range) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, "buffer", true);
    if (!device) return NULL;
    bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
    if (buffer && check_inside(what, range, buffer) == BH_OK) return device;
    bh__device_unlock(device);
    return NULL;
}

/* ---- between buffers ---- */

bh_status bh__rows_copy(bh_lane lane, const bh_transfer *given, bh_ticket *out) {
    request wanted = {.op = BH__OP_COPY_ROWS,
                      .target = {.buffer = given->target},
                      .source = {.buffer = given->source}};
    plan *rows = &wanted.rows;
    if (plan_rows(given, true, rows) != BH_OK ||
        bh__check_lane_device(lane, given->target) != BH_OK)
        return bh__last()->status;
    bh__device *device = begin(given->target, "target", &rows->target);
    if (!device) return bh__last()->status;
    bh_status status = submit(device, lane, &wanted, out);
    bh__device_unlock(device);
    return status;
}

/* ---- between plain memory and buffers: as many rows at once as fit a staging slot ---- */

typedef struct staged {
    bh_lane lane;
    bh_buffer buffer;
    const plan *rows;
    side in_buffer, in_memory;
    uint8_t *memory;
    bool write;
    bh__call *call; /* of a write of several pieces; else NULL */
} staged;

/* Copies rows between plain memory and a staging slot, where they lie without gaps. */
static void pack(const staged *self, uint8_t *slot, uint64_t first, uint64_t count) {
    uint8_t *memory = self->memory + self->in_memory.offset + first * self->in_memory.pitch;
    uint64_t width = self->rows->width;
    for (uint64_t row = 0; row < count; row++) {
        if (self->write)
            memcpy(slot + row * width, memory + row * self->in_memory.pitch, width);
        else
            memcpy(memory + row * self->in_memory.pitch, slot + row * width, width);
    }
}

static bh_status submit_slot(bh__device *device, const staged *self, uint32_t slot, uint64_t first,
                             uint64_t count, bh_ticket *out) {
    uint64_t width = self->rows->width;
    place host = {.host = device->transfer.staging,
                  .host_offset = (uint64_t)slot * BH__STAGING_BYTES};
    place buffer = {.buffer = self->buffer};
    side tight = {.pitch = width, .extent = count * width};
    side range = {.offset = self->in_buffer.offset + first * self->in_buffer.pitch,
                  .pitch = self->in_buffer.pitch,
                  .extent = (count - 1) * self->in_buffer.pitch + width};
    request wanted = {.op = self->write ? BH__OP_WRITE_ROWS : BH__OP_READ_ROWS,
                      .target = self->write ? buffer : host,
                      .source = self->write ? host : buffer,
                      .rows = {.width = width,
                               .height = count,
                               .target = self->write ? range : tight,
                               .source = self->write ? tight : range},
                      .call = self->call};
    return submit(device, self->lane, &wanted, out);
}

/* Releases the lock while it copies. */
static void pack_unlocked(bh__device *device, const staged *self, uint32_t slot, uint64_t first,
                          uint64_t count) {
    bh__device_step_out(device);
    pack(self, bh__staging_memory(device, slot), first, count);
    bh__device_step_in(device);
}

static bh_status write_part(bh__device *device, const staged *self, uint64_t first, uint64_t count,
                            bh_ticket *out) {
    uint32_t slot;
    bh_status status = bh__staging_take(device, true, &slot);
    if (status != BH_OK) return status;
    pack_unlocked(device, self, slot, first, count);
    bh_ticket ticket = {0, 0};
    status = submit_slot(device, self, slot, first, count, &ticket);
    bool sent = status == BH_OK;
    bh__staging_put(device, slot, sent ? (uint32_t)(ticket.lane >> 16) & 0xff : 0,
                    sent ? ticket.sequence : 0, false);
    if (sent) *out = ticket;
    return status;
}

static bh_status read_part(bh__device *device, const staged *self, uint64_t first, uint64_t count) {
    uint32_t slot;
    bh_status status = bh__staging_take(device, true, &slot);
    if (status != BH_OK) return status;
    bh_ticket ticket;
    status = submit_slot(device, self, slot, first, count, &ticket);
    if (status != BH_OK) {
        bh__staging_put(device, slot, 0, 0, false);
        return status;
    }
    bh__device_step_out(device);
    status = bh_wait(ticket, BH_FOREVER);
    if (status == BH_OK) pack(self, bh__staging_memory(device, slot), first, count);
    bh__device_step_in(device);
    bh__staging_put(device, slot, 0, 0, status != BH_OK);
    return status;
}

/* Moves one row that is larger than a staging slot. */
static bh_status move_row(const staged *self, uint64_t row, bh_ticket *out) {
    uint64_t offset = self->in_buffer.offset + row * self->in_buffer.pitch;
    uint8_t *memory = self->memory + self->in_memory.offset + row * self->in_memory.pitch;
    return self->write ? bh__write_pieces(self->lane, self->buffer, offset, memory,
                                          self->rows->width, self->call, out)
                       : bh_buffer_read(self->buffer, offset, memory, self->rows->width);
}

static bh_status move_pieces(const staged *self, bh_ticket *out) {
    uint64_t height = self->rows->height, at_once = BH__STAGING_BYTES / self->rows->width;
    bh_status status = BH_OK;
    for (uint64_t row = 0; at_once == 0 && row < height && status == BH_OK; row++)
        status = move_row(self, row, out);
    if (at_once == 0) return status;
    bh__device *device = begin(self->buffer, self->write ? "target" : "source", &self->in_buffer);
    if (!device) return bh__last()->status;
    for (uint64_t row = 0; row < height && status == BH_OK; row += at_once) {
        uint64_t count = height - row < at_once ? height - row : at_once;
        status = self->write ? write_part(device, self, row, count, out)
                             : read_part(device, self, row, count);
    }
    bh__device_unlock(device);
    return status;
}

/* A write of several pieces is one call: it fails if one piece fails. */
static bh_status write_staged(staged *self, bh_ticket *out) {
    bh_ticket last = {0, 0};
    bh_status status;
    if (self->rows->height * self->rows->width <= BH__STAGING_BYTES) {
        status = move_pieces(self, &last);
    } else {
        bh__call call;
        if (bh__call_begin(self->buffer, self->in_buffer.offset, self->in_buffer.extent, &call) !=
            BH_OK)
            return bh__last()->status;
        self->call = &call;
        status = move_pieces(self, &last);
        status = bh__call_finish(&call, status);
    }
    if (status == BH_OK && out) *out = last;
    return status;
}

/* Moves the rows in one request if workers can access the memory. *out_direct: whether they can. */
static bh_status move_direct(const staged *self, bool *out_direct, bh_ticket *out) {
    *out_direct = false;
    bh__device *device = begin(self->buffer, self->write ? "target" : "source", &self->in_buffer);
    if (!device) return bh__last()->status;
    place host = {0}, buffer = {.buffer = self->buffer};
    host.host = bh__host_find(device, self->memory + self->in_memory.offset, self->in_memory.extent,
                              &host.host_offset);
    bh_status status = BH_OK;
    if (host.host) {
        *out_direct = true;
        request wanted = {.op = self->write ? BH__OP_WRITE_ROWS : BH__OP_READ_ROWS,
                          .target = self->write ? buffer : host,
                          .source = self->write ? host : buffer,
                          .rows = *self->rows};
        status = submit(device, self->lane, &wanted, out);
    }
    bh__device_unlock(device);
    return status;
}

static bh_status check_memory(const void *memory, const plan *rows) {
    if (memory) return BH_OK;
    return bh__refuse(BH_E_INVALID, "pass memory of that size",
                      "the pointer to %llu rows of %llu bytes is NULL", (ull)rows->height,
                      (ull)rows->width);
}

bh_status bh__rows_write(bh_lane lane, const bh_transfer *given, bh_ticket *out) {
    plan rows;
    if (plan_rows(given, true, &rows) != BH_OK || check_memory(given->from, &rows) != BH_OK ||
        bh__check_lane_device(lane, given->target) != BH_OK)
        return bh__last()->status;
    union {
        const void *source;
        uint8_t *bytes;
    } memory = {given->from}; /* a write only reads it */
    staged self = {.lane = lane,
                   .buffer = given->target,
                   .rows = &rows,
                   .in_buffer = rows.target,
                   .in_memory = rows.source,
                   .memory = memory.bytes,
                   .write = true};
    bool direct;
    bh_status status = move_direct(&self, &direct, out);
    return status != BH_OK || direct ? status : write_staged(&self, out);
}

bh_status bh__rows_read(bh_lane lane, const bh_transfer *given, bool wait, bh_ticket *out) {
    plan rows;
    if (plan_rows(given, true, &rows) != BH_OK || check_memory(given->to, &rows) != BH_OK ||
        bh__check_lane_device(lane, given->source) != BH_OK)
        return bh__last()->status;
    staged self = {.lane = lane,
                   .buffer = given->source,
                   .rows = &rows,
                   .in_buffer = rows.source,
                   .in_memory = rows.target,
                   .memory = given->to};
    bool direct;
    bh_status status = move_direct(&self, &direct, out);
    if (status != BH_OK || direct) return status;
    return wait ? move_pieces(&self, NULL) : bh__refuse_plain_target(given->to);
}

/* ---- patterns ---- */

bh_status bh__submit_pattern(bh_lane lane, bh_buffer buffer, uint64_t offset, uint64_t pitch,
                             uint64_t width, uint64_t height, const void *pattern,
                             uint32_t pattern_bytes, bh_ticket *out) {
    request wanted = {.op = BH__OP_FILL_ROWS,
                      .target = {.buffer = buffer},
                      .rows = {.width = width, .height = height},
                      .pattern_bytes = pattern_bytes};
    plan *rows = &wanted.rows;
    if (side_check("target", width, height, offset, pitch, &rows->target) != BH_OK)
        return bh__last()->status;
    bh__device *device = begin(buffer, "target", &rows->target);
    if (!device) return bh__last()->status;
    uint32_t slot;
    bh_status status = bh__staging_take(device, true, &slot);
    if (status == BH_OK) {
        memcpy(bh__staging_memory(device, slot), pattern, pattern_bytes);
        rows->source = (side){.pitch = pattern_bytes, .extent = pattern_bytes};
        wanted.source = (place){.host = device->transfer.staging,
                                .host_offset = (uint64_t)slot * BH__STAGING_BYTES};
        bh_ticket ticket = {0, 0};
        status = submit(device, lane, &wanted, &ticket);
        bool sent = status == BH_OK;
        bh__staging_put(device, slot, sent ? (uint32_t)(ticket.lane >> 16) & 0xff : 0,
                        sent ? ticket.sequence : 0, false);
        if (sent && out) *out = ticket;
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh__rows_fill(bh_lane lane, const bh_transfer *given, bh_ticket *out) {
    plan rows;
    if (plan_rows(given, false, &rows) != BH_OK ||
        bh__check_pattern(given->from, given->pattern_bytes) != BH_OK ||
        bh__check_lane_device(lane, given->target) != BH_OK)
        return bh__last()->status;
    if (is_tight(&rows, &rows.target) && given->pattern_bytes == 1)
        return bh_submit_fill(lane, given->target, rows.target.offset, rows.target.extent,
                              given->from, 1, out);
    return bh__submit_pattern(lane, given->target, rows.target.offset, rows.target.pitch,
                              rows.width, rows.height, given->from, given->pattern_bytes, out);
}
