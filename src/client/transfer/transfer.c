/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes, copies and fills of byte ranges. When a worker is lost, each of these can be
 * repeated from the start, so every request here is idempotent. */
#include <string.h>

#include "base/checked.h"
#include "base/stream_copy.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/memory/memory.h"
#include "client/queue/queue.h"
#include "client/queue/resolve.h"
#include "client/transfer/parallel.h"
#include "client/transfer/transfer.h"

bh_status bh__check_lane_device(bh_lane lane, bh_buffer buffer) {
    if (lane.id == 0 || (lane.id >> 52 & 0xff) == (buffer.id >> 52 & 0xff)) return BH_OK;
    return bh__refuse(BH_E_INVALID, "use a lane of the buffer's device",
                      "the lane 0x%llx belongs to another device than the buffer 0x%llx",
                      (unsigned long long)lane.id, (unsigned long long)buffer.id);
}

/* Submits one copy between a buffer and host memory. Called and returns with the lock held. */
static bh_status submit_host_move(bh__device *device, const bh__route *route, uint16_t op,
                                  bh_buffer handle, uint64_t offset, bh__memory *host,
                                  uint64_t host_offset, uint64_t bytes, bh__call *call,
                                  bh_ticket *out) {
    for (;;) {
        bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
        bh__lane *lane = buffer ? bh__lane_get(device, route->lane) : NULL;
        if (!lane) return bh__last()->status;
        bool write = op == BH__OP_WRITE;
        uint64_t address = buffer->memory->address + buffer->offset + offset;
        bh__use uses[2] = {{.memory = buffer->memory,
                            .offset = buffer->offset + offset,
                            .bytes = bytes,
                            .access = write ? BH_ACCESS_OUT : BH_ACCESS_IN},
                           {.memory = host,
                            .offset = host_offset,
                            .bytes = bytes,
                            .access = write ? BH_ACCESS_IN : BH_ACCESS_OUT}};
        bh__submission submission = {
            .lane = lane,
            .op = op,
            .idempotent = true,
            .no_block = route->no_block,
            .waits = route->waits,
            .timed = route->timed,
            .leased = route->stage != NULL,
            .after = route->after,
            .uses = uses,
            /* Two requests never share a staging slot, so it needs no ordering. */
            .use_count = host == device->transfer.staging ? 1 : 2,
            .call = call,
            .copy = {.target = write ? address : host->host_from + host_offset,
                     .source = write ? host->host_from + host_offset : address,
                     .bytes = bytes,
                     .host = host->host_id}};
        bool retry;
        bh_status status = bh__submit(device, &submission, &retry, out);
        if (status == BH_OK && !retry) bh__stage_submitted(route->stage, bytes);
        if (!retry || status != BH_OK) return status;
    }
}

/* Locks the device and checks the buffer, the range and the pointer. NULL: nothing is locked and
 * the thread's error is set. */
static bh__device *begin(bh_buffer handle, const char *what, uint64_t offset, const void *pointer,
                         uint64_t bytes) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, "buffer", true);
    if (!device) return NULL;
    bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
    if (buffer && bh__buffer_range(what, offset, bytes, buffer) == BH_OK) {
        if (pointer || bytes == 0) return device;
        bh__refuse(BH_E_INVALID, "pass a pointer to at least that many bytes",
                   "%s: the pointer to %llu bytes is NULL", what, (unsigned long long)bytes);
    }
    bh__device_unlock(device);
    return NULL;
}

/* The same for a pointer to the program's memory. */
static bh__device *begin_host(bh_buffer handle, const char *what, uint64_t offset,
                              const void *pointer, uint64_t bytes) {
    bh__device *device = begin(handle, what, offset, pointer, bytes);
    if (!device || bh__host_check(device, pointer, bytes) == BH_OK) return device;
    bh__device_unlock(device);
    return NULL;
}

/* For transfers of 0 bytes: submits a request that does nothing, for its ticket. */
static bh_status submit_nothing(bh__device *device, const bh__route *route, bh_ticket *out) {
    for (;;) {
        bh__lane *lane = bh__lane_get(device, route->lane);
        if (!lane) return bh__last()->status;
        bh__submission submission = {.lane = lane,
                                     .op = BH__OP_SKIP,
                                     .idempotent = true,
                                     .no_block = route->no_block,
                                     .waits = route->waits,
                                     .timed = route->timed,
                                     .after = route->after};
        bool retry;
        bh_status status = bh__submit(device, &submission, &retry, out);
        if (!retry || status != BH_OK) return status;
    }
}

bh_status bh__stage_begin(const bh__route *route, bh_buffer handle, uint64_t offset, uint64_t bytes,
                          uint64_t moved, uint32_t access, bh__stage *out) {
    bh__device *device = begin(handle, "transfer", offset, out, bytes);
    if (!device) return bh__last()->status;
    for (;;) {
        const bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
        if (!buffer) break;
        bh__use use = {.memory = buffer->memory,
                       .offset = buffer->offset + offset,
                       .bytes = bytes,
                       .access = access};
        if (bh__hooks.check_maps(&use) != BH_OK) break;
        if (bh__lease_begin(device, use.memory, use.offset, bytes, access, &out->lease)) {
            out->device = device;
            out->memory = use.memory;
            out->memory->references++;
            out->left = moved;
            out->route = *route;
            out->route.stage = out;
            bh__device_step_out(device);
            return BH_OK;
        }
        bh__leases_wait(device);
    }
    bh__device_unlock(device);
    return bh__last()->status;
}

void bh__stage_submitted(bh__stage *self, uint64_t bytes) {
    if (!self) return;
    self->left -= bytes;
    if (self->left == 0) bh__lease_end(self->device, &self->lease);
}

void bh__stage_end(bh__stage *self) {
    bh__device *device = self->device;
    bh__device_step_in(device);
    if (self->left) bh__lease_end(device, &self->lease);
    bh__memory_release(device, self->memory);
    bh__device_unlock(device);
}

/* A copy between plain memory and a buffer, through the staging slots. */
typedef struct staged {
    const bh__route *route;
    bh_buffer buffer;
    uint64_t offset;
    bh__call *call; /* of a write of several pieces; else NULL */
    union {
        const uint8_t *source;
        uint8_t *target;
    } memory;
} staged;

/* When this returns, `source` was copied and may change. */
static bh_status write_part(void *context, uint64_t from, uint64_t bytes, bh_ticket *out) {
    const staged *whole = context;
    bh_buffer buffer = whole->buffer;
    uint64_t offset = whole->offset + from;
    const uint8_t *source = whole->memory.source + from;
    bh__device *device = begin(buffer, "write", offset, source, bytes);
    if (!device) return bh__last()->status;
    bh_status status = BH_OK;
    while (bytes > 0 && status == BH_OK) {
        uint32_t slot;
        status = bh__staging_take(device, true, &slot);
        if (status != BH_OK) break;
        uint64_t piece = bytes < BH__STAGING_BYTES ? bytes : BH__STAGING_BYTES;
        bh__device_step_out(device);
        memcpy(bh__staging_memory(device, slot), source, piece);
        bh__device_step_in(device);
        bh_ticket ticket = {0, 0};
        status = submit_host_move(device, whole->route, BH__OP_WRITE, buffer, offset,
                                  device->transfer.staging, (uint64_t)slot * BH__STAGING_BYTES,
                                  piece, whole->call, &ticket);
        uint32_t index = bh__lane_id_index(ticket.lane);
        bh__staging_put(device, slot, status == BH_OK ? index : 0,
                        status == BH_OK ? ticket.sequence : 0, false);
        if (status == BH_OK) *out = ticket;
        source += piece;
        offset += piece;
        bytes -= piece;
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh__write_pieces(const bh__route *route, bh_buffer buffer, uint64_t offset,
                           const void *source, uint64_t bytes, bh__call *call, bh_ticket *out) {
    staged whole = {route, buffer, offset, call, {.source = source}};
    return bh__parallel_run(bytes, write_part, &whole, out);
}

bh_status bh__call_begin(bh_buffer handle, uint64_t offset, uint64_t bytes, bh__call *out) {
    bh__device *device = begin(handle, "write", offset, out, bytes);
    if (!device) return bh__last()->status;
    const bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
    *out = (bh__call){.target = buffer->memory, .offset = buffer->offset + offset, .bytes = bytes};
    buffer->memory->references++;
    bh__device_step_out(device);
    out->device = device;
    return BH_OK;
}

bh_status bh__call_finish(bh__call *self, bh_status status) {
    bh__device *device = self->device;
    bh_error why = *bh__last();
    bh__device_step_in(device);
    bh__call_end(device, self, status == BH_OK ? BH_OK : why.status);
    if (status == BH_OK && self->status != BH_OK) {
        why = self->error;
        status = self->status;
    }
    bh__memory_release(device, self->target);
    bh__device_unlock(device);
    return status == BH_OK ? BH_OK : bh__refuse_with(&why);
}

bool bh__must_not_wait(bh__device *device, const bh__route *route) {
    const bh__lane *lane = bh__lane_get(device, route->lane);
    return route->no_block || (lane && lane->no_block && !route->waits);
}

/* Without waiting, as rows of which there is one. */
static bh_status write_at_once(const bh__route *route, bh_buffer buffer, uint64_t offset,
                               const void *source, uint64_t bytes, bh_ticket *out) {
    bh_transfer whole = bh_transfer_write(buffer, offset, source, bytes);
    return bh__rows_write(route, &whole, out);
}

static bh_status write_staged(const bh__route *route, bh_buffer buffer, uint64_t offset,
                              const void *source, uint64_t bytes, bh_ticket *out) {
    if (bytes <= BH__STAGING_BYTES)
        return bh__write_pieces(route, buffer, offset, source, bytes, NULL, out);
    bh__call call;
    if (bh__call_begin(buffer, offset, bytes, &call) != BH_OK) return bh__last()->status;
    bh_status status = bh__write_pieces(route, buffer, offset, source, bytes, &call, out);
    return bh__call_finish(&call, status);
}

bh_status bh__transfer_write(const bh__route *route, bh_buffer buffer, uint64_t offset,
                             const void *source, uint64_t bytes, bh_ticket *out) {
    if (bh__check_lane_device(route->lane, buffer) != BH_OK) return bh__last()->status;
    bh__device *device = begin_host(buffer, "write", offset, source, bytes);
    if (!device) return bh__last()->status;
    uint64_t host_offset;
    bh__memory *host = bytes ? bh__host_find(device, source, bytes, &host_offset) : NULL;
    bool at_once = bh__must_not_wait(device, route);
    bh_status status = BH_OK;
    if (bytes == 0) status = submit_nothing(device, route, out);
    if (host)
        status = submit_host_move(device, route, BH__OP_WRITE, buffer, offset, host, host_offset,
                                  bytes, NULL, out);
    bh__device_unlock(device);
    if (bytes == 0 || host) return status;
    if (at_once) return write_at_once(route, buffer, offset, source, bytes, out);
    bh_ticket last = {0, 0};
    bh__stage stage;
    status = bh__stage_begin(route, buffer, offset, bytes, bytes, BH_ACCESS_OUT, &stage);
    if (status != BH_OK) return status;
    status = write_staged(&stage.route, buffer, offset, source, bytes, &last);
    bh__stage_end(&stage);
    if (status == BH_OK && out) *out = last;
    return status;
}

bh_status bh_submit_write(bh_lane lane, bh_buffer buffer, uint64_t offset, const void *source,
                          uint64_t bytes, bh_ticket *out) {
    return bh__transfer_write(&(bh__route){.lane = lane}, buffer, offset, source, bytes, out);
}

bh_status bh__refuse_plain_target(const void *target) {
    return bh__refuse(BH_E_INVALID,
                      "read into memory from bh_host_alloc, or wait: use bh_buffer_read, or "
                      "bh_submit with BH_SUBMIT_WAIT",
                      "the target %p is not host memory of this device", target);
}

bh_status bh__refuse_waiting_read(const void *target, uint64_t bytes) {
    return bh__refuse(BH_E_UNSUPPORTED,
                      "read into memory from bh_host_alloc, or leave BH_SUBMIT_NO_BLOCK out",
                      "a read of %llu bytes into plain memory at %p waits for its pieces",
                      (unsigned long long)bytes, target);
}

bh_status bh__transfer_read(const bh__route *route, bh_buffer buffer, uint64_t offset, void *target,
                            uint64_t bytes, bh_ticket *out) {
    if (bh__check_lane_device(route->lane, buffer) != BH_OK) return bh__last()->status;
    bh__device *device = begin_host(buffer, "read", offset, target, bytes);
    if (!device) return bh__last()->status;
    uint64_t host_offset;
    bh__memory *host = bytes ? bh__host_find(device, target, bytes, &host_offset) : NULL;
    bh_status status;
    if (bytes == 0) {
        status = submit_nothing(device, route, out);
    } else if (host) {
        status = submit_host_move(device, route, BH__OP_READ, buffer, offset, host, host_offset,
                                  bytes, NULL, out);
    } else {
        status = bh__refuse_plain_target(target);
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_submit_read(bh_lane lane, bh_buffer buffer, uint64_t offset, void *target,
                         uint64_t bytes, bh_ticket *out) {
    return bh__transfer_read(&(bh__route){.lane = lane}, buffer, offset, target, bytes, out);
}

bh_status bh_buffer_write(bh_buffer buffer, uint64_t offset, const void *source, uint64_t bytes) {
    bh_ticket ticket;
    bh_status status = bh_submit_write((bh_lane){0}, buffer, offset, source, bytes, &ticket);
    return status == BH_OK ? bh_wait(ticket, BH_FOREVER) : status;
}

/* ---- reading into plain memory: several pieces in flight, each in a staging slot ---- */

typedef struct piece {
    uint32_t slot;
    uint64_t offset, bytes;
    bool large; /* part of a large read */
    bh_ticket ticket;
} piece;

static void copy(void *target, const void *source, size_t bytes) {
    memcpy(target, source, bytes);
}

enum { PIECES = 4 };
/* Smaller reads are copied through the caches: the program is likely to use the data soon. */
static const uint64_t large_read = BH__TUNE(4 << 20, 8 << 10);

/* Waits for a piece, with the lock released, and copies it to the target. */
static bh_status piece_finish(bh__device *device, const piece *part, uint8_t *target) {
    bh__device_step_out(device);
    bh_status status = bh_wait(part->ticket, BH_FOREVER);
    if (status == BH_OK) {
        const void *source = bh__staging_memory(device, part->slot);
        (part->large ? bh__stream_copy : copy)(target + part->offset, source, part->bytes);
    }
    bh__device_step_in(device);
    bh__staging_put(device, part->slot, 0, 0, status != BH_OK);
    return status;
}

static bh_status read_part(void *context, uint64_t from, uint64_t bytes, bh_ticket *out) {
    const staged *whole = context;
    bh_buffer buffer = whole->buffer;
    uint64_t offset = whole->offset + from;
    uint8_t *target = whole->memory.target + from;
    bh__device *device = begin(buffer, "read", offset, target, bytes);
    if (!device) return bh__last()->status;
    piece parts[PIECES];
    uint64_t started = 0, first = 0, count = 0;
    bh_status status = BH_OK;
    bh_error failed;
    while (status == BH_OK && (started < bytes || count > 0)) {
        piece *part = &parts[(first + count) % PIECES];
        bh_status taken = BH_E_BUSY;
        if (started < bytes && count < PIECES)
            taken = bh__staging_take(device, count == 0, &part->slot);
        if (taken == BH_E_BUSY && count > 0) {
            *out = parts[first % PIECES].ticket;
            status = piece_finish(device, &parts[first++ % PIECES], target);
            count--;
            continue;
        }
        status = taken;
        if (status != BH_OK) break;
        part->offset = started;
        part->large = bytes >= large_read;
        part->bytes = bytes - started < BH__STAGING_BYTES ? bytes - started : BH__STAGING_BYTES;
        status = submit_host_move(
            device, whole->route, BH__OP_READ, buffer, offset + started, device->transfer.staging,
            (uint64_t)part->slot * BH__STAGING_BYTES, part->bytes, NULL, &part->ticket);
        if (status == BH_OK) {
            count++;
            started += part->bytes;
        } else {
            bh__staging_put(device, part->slot, 0, 0, false);
        }
    }
    failed = *bh__last();
    for (; count > 0; count--) (void)piece_finish(device, &parts[first++ % PIECES], target);
    bh__device_unlock(device);
    return status == BH_OK ? BH_OK : bh__refuse_with(&failed);
}

static bh_status read_running(const bh__route *route, bh_buffer buffer, uint64_t offset,
                              void *target, uint64_t bytes, bh_ticket *out) {
    if (bh__check_lane_device(route->lane, buffer) != BH_OK) return bh__last()->status;
    bh__device *device = begin_host(buffer, "read", offset, target, bytes);
    if (!device) return bh__last()->status;
    uint64_t host_offset;
    bool direct = bytes && bh__host_find(device, target, bytes, &host_offset);
    bh__device_unlock(device);
    if (bytes == 0) return BH_OK;
    if (direct) {
        bh_status status = bh__transfer_read(route, buffer, offset, target, bytes, out);
        return status == BH_OK ? bh_wait(*out, BH_FOREVER) : status;
    }
    if (route->no_block) return bh__refuse_waiting_read(target, bytes);
    bh__route waiting = *route;
    waiting.waits = true;
    waiting.timed = false; /* there is no ticket for all pieces */
    bh__stage stage;
    if (!route->stage) {
        if (bh__stage_begin(&waiting, buffer, offset, bytes, bytes, BH_ACCESS_IN, &stage) != BH_OK)
            return bh__last()->status;
        waiting.stage = &stage;
    }
    staged whole = {&waiting, buffer, offset, NULL, {.target = target}};
    bh_status status = bh__parallel_run(bytes, read_part, &whole, out);
    if (!route->stage) bh__stage_end(&stage);
    return status;
}

bh_status bh__transfer_read_now(const bh__route *route, bh_buffer buffer, uint64_t offset,
                                void *target, uint64_t bytes, bh_ticket *out) {
    *out = (bh_ticket){0, 0};
    bh_status status = read_running(route, buffer, offset, target, bytes, out);
    return status == BH_E_STOPPED ? bh__hooks.read_stopped(buffer, offset, target, bytes) : status;
}

bh_status bh_buffer_read(bh_buffer buffer, uint64_t offset, void *target, uint64_t bytes) {
    bh_ticket ticket;
    return bh__transfer_read_now(&(bh__route){.lane = {0}}, buffer, offset, target, bytes, &ticket);
}

/* ---- within the device ---- */

bh_status bh__transfer_copy(const bh__route *route, bh_buffer target, uint64_t target_offset,
                            bh_buffer source, uint64_t source_offset, uint64_t bytes,
                            bh_ticket *out) {
    if (bh__check_lane_device(route->lane, target) != BH_OK) return bh__last()->status;
    bh__device *device = begin(target, "copy to", target_offset, &target, bytes);
    if (!device) return bh__last()->status;
    bh_status status = BH_OK;
    bool retry = true;
    while (retry && status == BH_OK) {
        bh__buffer *to = bh__handle_get(device, target.id, BH__KIND_BUFFER, "target");
        bh__buffer *from = to ? bh__handle_get(device, source.id, BH__KIND_BUFFER, "source") : NULL;
        bh__lane *lane = from ? bh__lane_get(device, route->lane) : NULL;
        if (!lane || bh__buffer_range("copy from", source_offset, bytes, from) != BH_OK) {
            status = bh__last()->status;
            break;
        }
        bh__use uses[2] = {{.memory = from->memory,
                            .offset = from->offset + source_offset,
                            .bytes = bytes,
                            .access = BH_ACCESS_IN},
                           {.memory = to->memory,
                            .offset = to->offset + target_offset,
                            .bytes = bytes,
                            .access = BH_ACCESS_OUT}};
        bh__submission submission = {.lane = lane,
                                     .op = bytes ? BH__OP_COPY : BH__OP_SKIP,
                                     .idempotent = true,
                                     .no_block = route->no_block,
                                     .timed = route->timed,
                                     .after = route->after,
                                     .uses = uses,
                                     .use_count = bytes ? 2 : 0,
                                     .copy = {.target = to->memory->address + uses[1].offset,
                                              .source = from->memory->address + uses[0].offset,
                                              .bytes = bytes}};
        status = bh__submit(device, &submission, &retry, out);
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_submit_copy(bh_lane lane, bh_buffer target, uint64_t target_offset, bh_buffer source,
                         uint64_t source_offset, uint64_t bytes, bh_ticket *out) {
    return bh__transfer_copy(&(bh__route){.lane = lane}, target, target_offset, source,
                             source_offset, bytes, out);
}

static bool same_device(bh_buffer one, bh_buffer other) {
    return (one.id >> 52 & 0xff) == (other.id >> 52 & 0xff);
}

bh_status bh_buffer_copy(bh_buffer target, uint64_t target_offset, bh_buffer source,
                         uint64_t source_offset, uint64_t bytes) {
    if (!same_device(target, source))
        return bh__copy_between(target, target_offset, source, source_offset, bytes);
    bh_ticket ticket;
    bh_status status =
        bh_submit_copy((bh_lane){0}, target, target_offset, source, source_offset, bytes, &ticket);
    return status == BH_OK ? bh_wait(ticket, BH_FOREVER) : status;
}

bh_status bh__check_pattern(const void *pattern, uint32_t pattern_bytes) {
    if (!pattern) return bh__refuse(BH_E_INVALID, "pass the pattern's bytes", "pattern is NULL");
    if (pattern_bytes == 0 || pattern_bytes > BH_PATTERN_MAX)
        return bh__refuse(BH_E_INVALID, "use a pattern of 1 to 65536 bytes",
                          "the pattern has %u bytes", pattern_bytes);
    return BH_OK;
}

static bh_status check_pattern(const void *pattern, uint32_t pattern_bytes, uint64_t bytes) {
    if (bh__check_pattern(pattern, pattern_bytes) != BH_OK) return BH_E_INVALID;
    if (bytes % pattern_bytes == 0) return BH_OK;
    return bh__refuse(BH_E_INVALID, "fill a whole number of patterns",
                      "%llu bytes are not a multiple of the pattern of %u bytes",
                      (unsigned long long)bytes, pattern_bytes);
}

static bh_status submit_fill(const bh__route *route, bh_buffer handle, uint64_t offset,
                             uint64_t bytes, const void *pattern, uint32_t pattern_bytes,
                             bool needed, bh_ticket *out) {
    if (check_pattern(pattern, pattern_bytes, bytes) != BH_OK ||
        bh__check_lane_device(route->lane, handle) != BH_OK) {
        return bh__last()->status;
    }
    if (bytes && (pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1))))
        return bh__submit_pattern(route, handle, offset, bytes, bytes, 1, pattern, pattern_bytes,
                                  out);
    bh__device *device = begin(handle, "fill", offset, pattern, bytes);
    if (!device) return bh__last()->status;
    bh_status status = BH_OK;
    bool retry = true;
    while (retry && status == BH_OK) {
        bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
        bh__lane *lane = buffer ? bh__lane_get(device, route->lane) : NULL;
        if (!lane) {
            status = bh__last()->status;
            break;
        }
        bh__use use = {.memory = buffer->memory,
                       .offset = buffer->offset + offset,
                       .bytes = bytes,
                       .access = BH_ACCESS_OUT};
        bh__submission submission = {.lane = lane,
                                     .op = bytes ? BH__OP_FILL : BH__OP_SKIP,
                                     .idempotent = true,
                                     .no_block = route->no_block,
                                     .timed = route->timed,
                                     .after = route->after,
                                     .needed = needed,
                                     .uses = &use,
                                     .use_count = bytes ? 1 : 0,
                                     .copy = {.target = buffer->memory->address + use.offset,
                                              .bytes = bytes,
                                              .pattern_bytes = pattern_bytes}};
        if (bytes) memcpy(submission.copy.pattern, pattern, pattern_bytes);
        status = bh__submit(device, &submission, &retry, out);
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh__transfer_fill(const bh__route *route, bh_buffer buffer, uint64_t offset,
                            uint64_t bytes, const void *pattern, uint32_t pattern_bytes,
                            bh_ticket *out) {
    return submit_fill(route, buffer, offset, bytes, pattern, pattern_bytes, false, out);
}

bh_status bh__fill_whole(bh_buffer handle, uint64_t offset, uint64_t *bytes) {
    if (*bytes != BH_WHOLE) return BH_OK;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, "buffer", true);
    if (!device) return bh__last()->status;
    const bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
    bh_status status = buffer ? BH_OK : bh__last()->status;
    if (buffer && offset <= buffer->bytes) *bytes = buffer->bytes - offset;
    bh__device_unlock(device);
    return status;
}

bh_status bh_submit_fill(bh_lane lane, bh_buffer buffer, uint64_t offset, uint64_t bytes,
                         const void *pattern, uint32_t pattern_bytes, bh_ticket *out) {
    bh_status status = bh__fill_whole(buffer, offset, &bytes);
    if (status != BH_OK) return status;
    return bh__transfer_fill(&(bh__route){.lane = lane}, buffer, offset, bytes, pattern,
                             pattern_bytes, out);
}

bh_status bh__submit_zeros(bh_buffer buffer, uint64_t bytes) {
    return submit_fill(&(bh__route){.lane = {0}}, buffer, 0, bytes, "", 1, true, NULL);
}

bh_status bh_buffer_fill(bh_buffer buffer, uint64_t offset, uint64_t bytes, const void *pattern,
                         uint32_t pattern_bytes) {
    bh_ticket ticket;
    bh_status status =
        bh_submit_fill((bh_lane){0}, buffer, offset, bytes, pattern, pattern_bytes, &ticket);
    return status == BH_OK ? bh_wait(ticket, BH_FOREVER) : status;
}
