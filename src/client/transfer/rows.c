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
    out->pitch = pitch && height > 1 ? pitch : width;
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
static bh_status submit(bh__device *device, const bh__route *route, const request *wanted,
                        bh_ticket *out) {
    const plan *rows = &wanted->rows;
    for (;;) {
        bh__use uses[2];
        uint64_t target, source;
        bh__lane *lane = bh__lane_get(device, route->lane);
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
                                     .no_block = route->no_block,
                                     .waits = route->waits,
                                     .timed = route->timed,
                                     .leased = route->stage != NULL,
                                     .after = route->after,
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
        if (status == BH_OK && !retry)
            bh__stage_submitted(route->stage, rows->width * rows->height);
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

bh_status bh__rows_copy(const bh__route *route, const bh_transfer *given, bh_ticket *out) {
    request wanted = {.op = BH__OP_COPY_ROWS,
                      .target = {.buffer = given->target},
                      .source = {.buffer = given->source}};
    plan *rows = &wanted.rows;
    if (plan_rows(given, true, rows) != BH_OK ||
        bh__check_lane_device(route->lane, given->target) != BH_OK)
        return bh__last()->status;
    bh__device *device = begin(given->target, "target", &rows->target);
    if (!device) return bh__last()->status;
    bh_status status = submit(device, route, &wanted, out);
    bh__device_unlock(device);
    return status;
}

/* ---- between plain memory and buffers: as many rows at once as fit a staging slot ---- */

typedef struct staged {
    const bh__route *route;
    bh_buffer buffer;
    const plan *rows;
    side in_buffer, in_memory;
    uint8_t *memory;
    bool write;
    bh__call *call; /* of a write of several pieces; else NULL */
} staged;

/* What goes through one staging slot: whole rows, or a part of one that is larger than a slot. */
typedef struct part {
    uint64_t first, count; /* rows */
    uint64_t column, width;
} part;

/* Copies rows between plain memory and a staging slot, where they lie without gaps. */
static void pack(const staged *self, uint8_t *slot, const part *rows) {
    uint64_t pitch = self->in_memory.pitch, width = rows->width;
    uint8_t *memory = self->memory + self->in_memory.offset + rows->first * pitch + rows->column;
    for (uint64_t row = 0; row < rows->count; row++) {
        if (self->write)
            memcpy(slot + row * width, memory + row * pitch, width);
        else
            memcpy(memory + row * pitch, slot + row * width, width);
    }
}

static bh_status submit_slot(bh__device *device, const staged *self, uint32_t slot,
                             const part *rows, bh_ticket *out) {
    uint64_t width = rows->width, count = rows->count;
    place host = {.host = device->transfer.staging,
                  .host_offset = (uint64_t)slot * BH__STAGING_BYTES};
    place buffer = {.buffer = self->buffer};
    side tight = {.pitch = width, .extent = count * width};
    side range = {.offset =
                      self->in_buffer.offset + rows->first * self->in_buffer.pitch + rows->column,
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
    return submit(device, self->route, &wanted, out);
}

/* Submits the write of a slot that is filled, and returns the slot. */
static bh_status write_slot(bh__device *device, const staged *self, uint32_t slot, const part *rows,
                            bh_ticket *out) {
    bh_ticket ticket = {0, 0};
    bh_status status = submit_slot(device, self, slot, rows, &ticket);
    bool sent = status == BH_OK;
    bh__staging_put(device, slot, sent ? bh__lane_id_index(ticket.lane) : 0,
                    sent ? ticket.sequence : 0, false);
    if (sent) *out = ticket;
    return status;
}

static bh_status write_part(bh__device *device, const staged *self, const part *rows,
                            bh_ticket *out) {
    uint32_t slot;
    bh_status status = bh__staging_take(device, true, &slot);
    if (status != BH_OK) return status;
    bh__device_step_out(device);
    pack(self, bh__staging_memory(device, slot), rows);
    bh__device_step_in(device);
    return write_slot(device, self, slot, rows, out);
}

static bh_status read_part(bh__device *device, const staged *self, const part *rows,
                           bh_ticket *out) {
    uint32_t slot;
    bh_status status = bh__staging_take(device, true, &slot);
    if (status != BH_OK) return status;
    bh_ticket ticket;
    status = submit_slot(device, self, slot, rows, &ticket);
    if (status != BH_OK) {
        bh__staging_put(device, slot, 0, 0, false);
        return status;
    }
    bh__device_step_out(device);
    status = bh_wait(ticket, BH_FOREVER);
    if (status == BH_OK) pack(self, bh__staging_memory(device, slot), rows);
    bh__device_step_in(device);
    bh__staging_put(device, slot, 0, 0, status != BH_OK);
    *out = ticket;
    return status;
}

/* Moves one row that is larger than a staging slot. */
static bh_status move_row(const staged *self, uint64_t row, bh_ticket *out) {
    uint64_t offset = self->in_buffer.offset + row * self->in_buffer.pitch;
    uint8_t *memory = self->memory + self->in_memory.offset + row * self->in_memory.pitch;
    return self->write ? bh__write_pieces(self->route, self->buffer, offset, memory,
                                          self->rows->width, self->call, out)
                       : bh__transfer_read_now(self->route, self->buffer, offset, memory,
                                               self->rows->width, out);
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
        part rows = {.first = row, .count = count, .width = self->rows->width};
        status = self->write ? write_part(device, self, &rows, out)
                             : read_part(device, self, &rows, out);
    }
    bh__device_unlock(device);
    return status;
}

/* A write of several pieces is one call: it fails if one piece fails. */
static bh_status write_pieces(staged *self, bh_ticket *out) {
    if (self->rows->height * self->rows->width <= BH__STAGING_BYTES) return move_pieces(self, out);
    bh__call call;
    if (bh__call_begin(self->buffer, self->in_buffer.offset, self->in_buffer.extent, &call) !=
        BH_OK)
        return bh__last()->status;
    self->call = &call;
    bh_status status = move_pieces(self, out);
    return bh__call_finish(&call, status);
}

static bh_status move_staged(staged *self, bh_ticket *out) {
    bh_ticket last = {0, 0};
    bh__stage stage;
    bh_status status = bh__stage_begin(
        self->route, self->buffer, self->in_buffer.offset, self->in_buffer.extent,
        self->rows->width * self->rows->height, self->write ? BH_ACCESS_OUT : BH_ACCESS_IN, &stage);
    if (status != BH_OK) return status;
    self->route = &stage.route;
    status = self->write ? write_pieces(self, &last) : move_pieces(self, &last);
    bh__stage_end(&stage);
    if (status == BH_OK && out) *out = last;
    return status;
}

/* ---- writes that must not wait: all parts are submitted, or none ---- */

/* Cuts the rows into parts, one for each slot, at most `most`. Returns how many there are in
 * all. */
static uint64_t cut(const plan *rows, part *out, uint64_t most) {
    uint64_t width = rows->width, at_once = BH__STAGING_BYTES / width, count = 0;
    uint64_t columns = at_once ? 1 : (width + BH__STAGING_BYTES - 1) / BH__STAGING_BYTES;
    if (at_once == 0) at_once = 1;
    for (uint64_t row = 0; row < rows->height && count <= most; row += at_once) {
        for (uint64_t i = 0; i < columns; i++, count++) {
            uint64_t column = i * BH__STAGING_BYTES, rest = width - column;
            if (count >= most) continue;
            out[count] =
                (part){.first = row,
                       .count = rows->height - row < at_once ? rows->height - row : at_once,
                       .column = column,
                       .width = columns > 1 && rest > BH__STAGING_BYTES ? BH__STAGING_BYTES : rest};
        }
    }
    return count;
}

static bh_status refuse_too_large(const staged *self) {
    return bh__refuse(
        BH_E_UNSUPPORTED,
        "write from memory of bh_host_alloc, write less at once, or let the call wait",
        "%llu rows of %llu bytes of plain memory do not fit the %d staging slots of %d "
        "bytes, and the call must not wait for them",
        (ull)self->rows->height, (ull)self->rows->width, BH__STAGING_SLOTS, BH__STAGING_BYTES);
}

/* Checks that all parts can be submitted now. */
static bh_status check_room(bh__device *device, const staged *self, uint32_t count) {
    bh__buffer *buffer = bh__handle_get(device, self->buffer.id, BH__KIND_BUFFER, "target");
    bh__lane *lane = buffer ? bh__lane_get(device, self->route->lane) : NULL;
    if (!lane || check_inside("target", &self->in_buffer, buffer) != BH_OK)
        return bh__last()->status;
    bh__use use = {.memory = buffer->memory,
                   .offset = buffer->offset + self->in_buffer.offset,
                   .bytes = self->in_buffer.extent,
                   .access = BH_ACCESS_OUT};
    bh__submission all = {
        .lane = lane, .no_block = true, .after = self->route->after, .uses = &use, .use_count = 1};
    return bh__submit_room(device, &all, count);
}

static bh_status write_at_once_locked(bh__device *device, const staged *self, const part *parts,
                                      uint32_t count, bh_ticket *out) {
    uint32_t slots[BH__STAGING_SLOTS], next = 0;
    bh_status status = check_room(device, self, count); /* before the data is copied */
    if (status == BH_OK) status = bh__staging_take_all(device, count, slots);
    if (status != BH_OK) return status;
    bh__device_step_out(device);
    for (uint32_t i = 0; i < count; i++)
        pack(self, bh__staging_memory(device, slots[i]), &parts[i]);
    bh__device_step_in(device);
    status = check_room(device, self, count);
    for (; next < count && status == BH_OK; next++)
        status = write_slot(device, self, slots[next], &parts[next], out);
    for (; next < count; next++) bh__staging_put(device, slots[next], 0, 0, false);
    return status;
}

static bh_status write_at_once(staged *self, bh_ticket *out) {
    part parts[BH__STAGING_SLOTS];
    uint64_t count = cut(self->rows, parts, BH__STAGING_SLOTS);
    if (count > BH__STAGING_SLOTS) return refuse_too_large(self);
    bh__call call;
    if (count > 1) {
        if (bh__call_begin(self->buffer, self->in_buffer.offset, self->in_buffer.extent, &call) !=
            BH_OK)
            return bh__last()->status;
        self->call = &call;
    }
    bh_ticket last = {0, 0};
    bh__device *device = begin(self->buffer, "target", &self->in_buffer);
    bh_status status = device ? BH_OK : bh__last()->status;
    if (device) {
        status = write_at_once_locked(device, self, parts, (uint32_t)count, &last);
        bh__device_unlock(device);
    }
    if (count > 1) status = bh__call_finish(&call, status);
    if (status == BH_OK && out) *out = last;
    return status;
}

/* Moves the rows in one request if workers can access the memory. *out_direct: whether they can.
 * *out_at_once: whether the call must not wait. */
static bh_status move_direct(const staged *self, bool *out_direct, bool *out_at_once,
                             bh_ticket *out) {
    *out_direct = *out_at_once = false;
    bh__device *device = begin(self->buffer, self->write ? "target" : "source", &self->in_buffer);
    if (!device) return bh__last()->status;
    const uint8_t *first = self->memory + self->in_memory.offset;
    bh_status status = bh__host_check(device, first, self->in_memory.extent);
    *out_at_once = bh__must_not_wait(device, self->route);
    place host = {0}, buffer = {.buffer = self->buffer};
    if (status == BH_OK)
        host.host = bh__host_find(device, first, self->in_memory.extent, &host.host_offset);
    if (host.host) {
        *out_direct = true;
        request wanted = {.op = self->write ? BH__OP_WRITE_ROWS : BH__OP_READ_ROWS,
                          .target = self->write ? buffer : host,
                          .source = self->write ? host : buffer,
                          .rows = *self->rows};
        status = submit(device, self->route, &wanted, out);
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

bh_status bh__rows_write(const bh__route *route, const bh_transfer *given, bh_ticket *out) {
    plan rows;
    if (plan_rows(given, true, &rows) != BH_OK || check_memory(given->from, &rows) != BH_OK ||
        bh__check_lane_device(route->lane, given->target) != BH_OK)
        return bh__last()->status;
    union {
        const void *source;
        uint8_t *bytes;
    } memory = {given->from}; /* a write only reads it */
    staged self = {.route = route,
                   .buffer = given->target,
                   .rows = &rows,
                   .in_buffer = rows.target,
                   .in_memory = rows.source,
                   .memory = memory.bytes,
                   .write = true};
    bool direct, at_once;
    bh_status status = move_direct(&self, &direct, &at_once, out);
    if (status != BH_OK || direct) return status;
    return at_once ? write_at_once(&self, out) : move_staged(&self, out);
}

bh_status bh__rows_read(const bh__route *route, const bh_transfer *given, bool wait,
                        bh_ticket *out) {
    plan rows;
    if (plan_rows(given, true, &rows) != BH_OK || check_memory(given->to, &rows) != BH_OK ||
        bh__check_lane_device(route->lane, given->source) != BH_OK)
        return bh__last()->status;
    staged self = {.route = route,
                   .buffer = given->source,
                   .rows = &rows,
                   .in_buffer = rows.source,
                   .in_memory = rows.target,
                   .memory = given->to};
    bool direct, at_once;
    bh_status status = move_direct(&self, &direct, &at_once, out);
    if (status != BH_OK || direct) return status;
    if (!wait) return bh__refuse_plain_target(given->to);
    if (route->no_block) return bh__refuse_waiting_read(given->to, rows.width * rows.height);
    bh__route waiting = *route;
    waiting.waits = true;
    waiting.timed = false; /* there is no ticket for all pieces */
    self.route = &waiting;
    return move_staged(&self, out);
}

/* ---- patterns ---- */

/* Submits a fill whose pattern goes through a staging slot. */
static bh_status fill_rows(const bh__route *route, request *wanted, const void *pattern,
                           bool at_once, bh_ticket *out) {
    plan *rows = &wanted->rows;
    uint32_t slot;
    bh__device *device = begin(wanted->target.buffer, "target", &rows->target);
    if (!device) return bh__last()->status;
    bh_status status =
        at_once ? bh__staging_take_all(device, 1, &slot) : bh__staging_take(device, true, &slot);
    if (status == BH_OK) {
        memcpy(bh__staging_memory(device, slot), pattern, wanted->pattern_bytes);
        rows->source = (side){.pitch = wanted->pattern_bytes, .extent = wanted->pattern_bytes};
        wanted->source = (place){.host = device->transfer.staging,
                                 .host_offset = (uint64_t)slot * BH__STAGING_BYTES};
        bh_ticket ticket = {0, 0};
        status = submit(device, route, wanted, &ticket);
        bool sent = status == BH_OK;
        bh__staging_put(device, slot, sent ? bh__lane_id_index(ticket.lane) : 0,
                        sent ? ticket.sequence : 0, false);
        if (sent && out) *out = ticket;
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh__submit_pattern(const bh__route *route, bh_buffer buffer, uint64_t offset,
                             uint64_t pitch, uint64_t width, uint64_t height, const void *pattern,
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
    bool at_once = bh__must_not_wait(device, route);
    bh__device_unlock(device);
    bh__stage stage;
    if (!at_once) {
        bh_status status = bh__stage_begin(route, buffer, rows->target.offset, rows->target.extent,
                                           width * height, BH_ACCESS_OUT, &stage);
        if (status != BH_OK) return status;
    }
    bh_status status = fill_rows(at_once ? route : &stage.route, &wanted, pattern, at_once, out);
    if (!at_once) bh__stage_end(&stage);
    return status;
}

bh_status bh__rows_fill(const bh__route *route, const bh_transfer *given, bh_ticket *out) {
    plan rows;
    if (plan_rows(given, false, &rows) != BH_OK ||
        bh__check_pattern(given->from, given->pattern_bytes) != BH_OK ||
        bh__check_lane_device(route->lane, given->target) != BH_OK)
        return bh__last()->status;
    if (is_tight(&rows, &rows.target) && given->pattern_bytes == 1)
        return bh__transfer_fill(route, given->target, rows.target.offset, rows.target.extent,
                                 given->from, 1, out);
    return bh__submit_pattern(route, given->target, rows.target.offset, rows.target.pitch,
                              rows.width, rows.height, given->from, given->pattern_bytes, out);
}
