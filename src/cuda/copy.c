/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills: host regions, device memory and modules' variables. */
#include <string.h>

#include "base/checked.h"
#include "cuda/state.h"

typedef unsigned long long ull;

static bh_status refuse(bh_error *error, const bh__work *work, const char *what) {
    const bh__copy_body *body = &work->u.copy;
    return bh__fail(
        error, BH_E_INTERNAL, BH__CUDA_DEFECT,
        "request %llu on lane %u (operation %u, target 0x%llx, source 0x%llx, %llu bytes): "
        "%s",
        (ull)work->sequence, work->lane, work->op, (ull)body->target, (ull)body->source,
        (ull)body->bytes, what);
}

uint8_t *bh__cuda_host_memory(const bh__device_instance *device, uint32_t id, uint64_t offset,
                              uint64_t bytes) {
    const bh__cuda_host *host = bh__cuda_find_host(device, id);
    return host && bh__range_fits(offset, bytes, host->bytes) ? host->memory + offset : NULL;
}

static bh__cu_address variable_memory(const bh__device_instance *device, const bh__copy_body *body,
                                      uint64_t offset) {
    const bh__cuda_module *module = bh__cuda_find_module(device, body->module);
    if (!module || body->variable >= module->variable_count) return 0;
    const bh__cuda_variable *variable = &module->variables[body->variable];
    return variable->address && bh__range_fits(offset, body->bytes, variable->bytes)
               ? variable->address + offset
               : 0;
}

uint32_t bh__cuda_shortest_pattern(const uint8_t *pattern, uint32_t bytes) {
    while (bytes > 1 && memcmp(pattern, pattern + bytes / 2, bytes / 2) == 0) bytes /= 2;
    return bytes;
}

static int fill(bh__device_lane *lane, const bh__copy_body *body) {
    const bh__driver *cu = &lane->device->cu;
    uint32_t length = bh__cuda_shortest_pattern(body->pattern, body->pattern_bytes);
    bool aligned = body->target % length == 0 && body->bytes % length == 0;
    uint16_t half;
    uint32_t word;
    memcpy(&half, body->pattern, sizeof half);
    memcpy(&word, body->pattern, sizeof word);
    if (length == 1) return cu->fill_8(body->target, body->pattern[0], body->bytes, lane->stream);
    if (length == 2 && aligned)
        return cu->fill_16(body->target, half, body->bytes / 2, lane->stream);
    if (length == 4 && aligned)
        return cu->fill_32(body->target, word, body->bytes / 4, lane->stream);
    /* The driver has no fill for these. The pattern is copied in, before the call returns; then the
     * filled part is copied behind itself, which doubles it each time. */
    uint64_t filled = body->bytes < length ? body->bytes : length;
    int result = cu->copy_in(body->target, body->pattern, filled, lane->stream);
    while (result == BH__CU_OK && filled < body->bytes) {
        uint64_t part = body->bytes - filled < filled ? body->bytes - filled : filled;
        result = cu->copy_within(body->target + filled, body->target, part, lane->stream);
        filled += part;
    }
    return result;
}

static int copy_within(bh__device_lane *lane, const bh__copy_body *body) {
    const bh__driver *cu = &lane->device->cu;
    bool apart =
        body->target + body->bytes <= body->source || body->source + body->bytes <= body->target;
    if (apart) return cu->copy_within(body->target, body->source, body->bytes, lane->stream);
    if (body->target == body->source) return BH__CU_OK;
    /* The driver does not define copies of overlapping ranges. */
    bh__cu_address between;
    int result = cu->scratch_alloc(&between, body->bytes, lane->stream);
    if (result != BH__CU_OK) return result;
    result = cu->copy_within(between, body->source, body->bytes, lane->stream);
    if (result == BH__CU_OK)
        result = cu->copy_within(body->target, between, body->bytes, lane->stream);
    int freed = cu->scratch_free(between, lane->stream);
    return result == BH__CU_OK ? freed : result;
}

static bh_status move(bh__device_lane *lane, const bh__work *work, bh_error *error,
                      int *out_result) {
    const bh__device_instance *device = lane->device;
    const bh__copy_body *body = &work->u.copy;
    bool in = work->op == BH__OP_WRITE || work->op == BH__OP_GLOBAL_WRITE;
    uint8_t *host =
        bh__cuda_host_memory(device, body->host, in ? body->source : body->target, body->bytes);
    if (!host) return refuse(error, work, "the host memory does not lie in its host region");
    bh__cu_address address = in ? body->target : body->source;
    if (work->op == BH__OP_GLOBAL_WRITE || work->op == BH__OP_GLOBAL_READ) {
        address = variable_memory(device, body, address);
        if (!address) return refuse(error, work, "the driver does not tell the variable's address");
    }
    *out_result = in ? device->cu.copy_in(address, host, body->bytes, lane->stream)
                     : device->cu.copy_out(host, address, body->bytes, lane->stream);
    return BH_OK;
}

/* ---- rows ---- */

static bh__cu_side on_host(uint8_t *host, uint64_t pitch) {
    return (bh__cu_side){.kind = BH__CU_SIDE_HOST, .host = host, .pitch = pitch};
}

static bh__cu_side on_device(bh__cu_address address, uint64_t pitch) {
    return (bh__cu_side){.kind = BH__CU_SIDE_DEVICE, .device = address, .pitch = pitch};
}

static int copy_row(bh__device_lane *lane, const bh__cu_rows *rows, uint64_t row) {
    const bh__driver *cu = &lane->device->cu;
    const bh__cu_side *to = &rows->target, *from = &rows->source;
    uint64_t to_offset = row * to->pitch, from_offset = row * from->pitch;
    if (to->kind == BH__CU_SIDE_HOST)
        return cu->copy_out((uint8_t *)to->host + to_offset, from->device + from_offset,
                            rows->width, lane->stream);
    if (from->kind == BH__CU_SIDE_HOST)
        return cu->copy_in(to->device + to_offset, (uint8_t *)from->host + from_offset, rows->width,
                           lane->stream);
    return cu->copy_within(to->device + to_offset, from->device + from_offset, rows->width,
                           lane->stream);
}

/* The driver may refuse a pitch that it did not choose itself, and refuses any of 2 GiB or more:
 * then the rows are copied one by one. */
static int copy_rows(bh__device_lane *lane, const bh__cu_rows *rows) {
    int result = BH__CU_INVALID_VALUE;
    if (rows->target.pitch <= INT32_MAX && rows->source.pitch <= INT32_MAX)
        result = lane->device->cu.copy_rows(rows, lane->stream);
    if (result != BH__CU_INVALID_VALUE) return result;
    result = BH__CU_OK;
    for (uint64_t row = 0; row < rows->height && result == BH__CU_OK; row++)
        result = copy_row(lane, rows, row);
    return result;
}

/* Copies the pattern into the first row, then the filled part behind itself, which doubles it each
 * time: first along the row, then over the rows. */
static int fill_rows(bh__device_lane *lane, const bh__copy_body *body, uint8_t *pattern) {
    const bh__driver *cu = &lane->device->cu;
    uint64_t filled = body->bytes < body->pattern_bytes ? body->bytes : body->pattern_bytes;
    int result = cu->copy_in(body->target, pattern, filled, lane->stream);
    while (result == BH__CU_OK && filled < body->bytes) {
        uint64_t part = body->bytes - filled < filled ? body->bytes - filled : filled;
        result = cu->copy_within(body->target + filled, body->target, part, lane->stream);
        filled += part;
    }
    uint64_t pitch = body->pitch.target;
    for (uint64_t done = 1; result == BH__CU_OK && done < body->rows;) {
        uint64_t part = body->rows - done < done ? body->rows - done : done;
        result =
            copy_rows(lane, &(bh__cu_rows){.source = on_device(body->target, pitch),
                                           .target = on_device(body->target + done * pitch, pitch),
                                           .width = body->bytes,
                                           .height = part});
        done += part;
    }
    return result;
}

static bh_status move_rows(bh__device_lane *lane, const bh__work *work, bh_error *error,
                           int *out_result) {
    const bh__copy_body *body = &work->u.copy;
    bool fills = work->op == BH__OP_FILL_ROWS, reads = work->op == BH__OP_READ_ROWS;
    uint64_t to, from = body->pattern_bytes;
    if (!bh__rows_extent(body->bytes, body->rows, body->pitch.target, &to) ||
        (fills ? from == 0 : !bh__rows_extent(body->bytes, body->rows, body->pitch.source, &from)))
        return refuse(error, work, "the rows are not valid");
    uint8_t *host = NULL;
    if (work->op != BH__OP_COPY_ROWS) {
        host = reads ? bh__cuda_host_memory(lane->device, body->host, body->target, to)
                     : bh__cuda_host_memory(lane->device, body->host, body->source, from);
        if (!host) return refuse(error, work, "the host memory does not lie in its host region");
    }
    if (fills) {
        *out_result = fill_rows(lane, body, host);
        return BH_OK;
    }
    /* A single row has no pitch, but the driver requires one that is long enough. */
    uint64_t target_pitch = body->rows == 1 ? body->bytes : body->pitch.target;
    uint64_t source_pitch = body->rows == 1 ? body->bytes : body->pitch.source;
    bh__cu_rows rows = {
        .target = reads ? on_host(host, target_pitch) : on_device(body->target, target_pitch),
        .source = work->op == BH__OP_WRITE_ROWS ? on_host(host, source_pitch)
                                                : on_device(body->source, source_pitch),
        .width = body->bytes,
        .height = body->rows};
    *out_result = copy_rows(lane, &rows);
    return BH_OK;
}

bh_status bh__cuda_copy(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    const bh__copy_body *body = &work->u.copy;
    int result = BH__CU_OK;
    if (body->bytes == 0) return BH_OK;
    switch (work->op) {
    case BH__OP_WRITE:
    case BH__OP_READ:
    case BH__OP_GLOBAL_WRITE:
    case BH__OP_GLOBAL_READ: {
        bh_status status = move(lane, work, error, &result);
        if (status != BH_OK) return status;
        break;
    }
    case BH__OP_COPY:
        result = copy_within(lane, body);
        break;
    case BH__OP_FILL:
        if (!bh__is_power_of_two(body->pattern_bytes) || body->pattern_bytes > sizeof body->pattern)
            return refuse(error, work, "the size of the pattern is not supported");
        result = fill(lane, body);
        break;
    case BH__OP_WRITE_ROWS:
    case BH__OP_READ_ROWS:
    case BH__OP_COPY_ROWS:
    case BH__OP_FILL_ROWS: {
        bh_status status = move_rows(lane, work, error, &result);
        if (status != BH_OK) return status;
        break;
    }
    case BH__OP_PREFETCH:
        result = bh__cuda_managed_prefetch(lane, body);
        break;
    default:
        return refuse(error, work, "there is no such operation");
    }
    if (result == BH__CU_OK) return BH_OK;
    return bh__cuda_fail(lane->device, error, result,
                         result == BH__CU_OUT_OF_MEMORY ? BH_E_NO_MEMORY : BH_E_INTERNAL,
                         result == BH__CU_OUT_OF_MEMORY ? "release buffers" : BH__CUDA_DEFECT,
                         "request %llu on lane %u (operation %u, %llu bytes) was refused",
                         (ull)work->sequence, work->lane, work->op, (ull)body->bytes);
}
