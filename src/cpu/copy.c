/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills: host regions, device memory and modules' variables. */
#include <string.h>

#include "base/checked.h"
#include "cpu/cpu.h"

typedef unsigned long long ull;

/* Large copies are done in pieces, so that a worker that is being ended stops soon. */
enum { PIECE_BYTES = 4 << 20 };

static bh_status refuse(bh_error *error, const bh__work *work, const char *what) {
    const bh__copy_body *body = &work->u.copy;
    return bh__fail(
        error, BH_E_INTERNAL, BH__CPU_DEFECT,
        "request %llu on lane %u (operation %u, target 0x%llx, source 0x%llx, %llu bytes): "
        "%s",
        (ull)work->sequence, work->lane, work->op, (ull)body->target, (ull)body->source,
        (ull)body->bytes, what);
}

static uint8_t *device_memory(const bh__cpu_view *view, uint64_t address, uint64_t bytes,
                              bool write) {
    return bh__cpu_view_covers(view, address, bytes, write) ? (uint8_t *)(uintptr_t)address : NULL;
}

static uint8_t *host_memory(const bh__cpu_view *view, uint32_t id, uint64_t offset,
                            uint64_t bytes) {
    const bh__cpu_host *host = bh__cpu_view_host(view, id);
    return host && bh__range_fits(offset, bytes, host->bytes) ? host->memory + offset : NULL;
}

static uint8_t *variable_memory(const bh__cpu_view *view, const bh__copy_body *body,
                                uint64_t offset) {
    const bh__cpu_module *module = bh__cpu_view_module(view, body->module);
    if (!module || body->variable >= bh__ptx_variable_count(module->code)) return NULL;
    const bh__ptx_variable *variable = bh__ptx_variable_at(module->code, body->variable);
    if (!bh__range_fits(offset, body->bytes, variable->size)) return NULL;
    return (uint8_t *)bh__ptx_image_variable(module->image, body->variable) + offset;
}

#ifdef __SANITIZE_THREAD__

/* Kernels may read memory that a copy writes, as they may on a GPU. Relaxed atomic accesses tell a
 * race detector that this is intended. */
static void copy_bytes(uint8_t *target, const uint8_t *source, uint64_t bytes) {
    bool words = (((uintptr_t)target | (uintptr_t)source | bytes) & 7) == 0;
    bool backwards = target > source;
    uint64_t step = words ? 8 : 1;
    for (uint64_t done = 0; done < bytes; done += step) {
        uint64_t at = backwards ? bytes - done - step : done;
        if (words) {
            uint64_t word =
                __atomic_load_n((const uint64_t *)(const void *)(source + at), __ATOMIC_RELAXED);
            __atomic_store_n((uint64_t *)(void *)(target + at), word, __ATOMIC_RELAXED);
        } else {
            __atomic_store_n(target + at, __atomic_load_n(source + at, __ATOMIC_RELAXED),
                             __ATOMIC_RELAXED);
        }
    }
}

#else

static void copy_bytes(uint8_t *target, const uint8_t *source, uint64_t bytes) {
    memmove(target, source, bytes);
}

#endif

static bh_status move(const bh__device_instance *device, uint8_t *target, const uint8_t *source,
                      uint64_t bytes) {
    bool apart = target + bytes <= source || source + bytes <= target;
    if (!apart || bytes <= PIECE_BYTES) {
        copy_bytes(target, source, bytes);
        return BH_OK;
    }
    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES) {
        if (bh__cpu_killed(device)) return BH_E_STOPPED;
        copy_bytes(target + at, source + at, bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES);
    }
    return BH_OK;
}

static bh_status fill(const bh__device_instance *device, uint8_t *target,
                      const bh__copy_body *body) {
    uint64_t bytes = body->bytes, filled = body->pattern_bytes;
    if (filled > bytes) filled = bytes;
    copy_bytes(target, body->pattern, filled);
    /* The filled part is copied behind itself, in growing pieces. */
    while (filled < bytes) {
        if (bh__cpu_killed(device)) return BH_E_STOPPED;
        uint64_t source = filled < PIECE_BYTES ? filled : PIECE_BYTES;
        uint64_t part = bytes - filled < source ? bytes - filled : source;
        copy_bytes(target + filled, target, part);
        filled += part;
    }
    return BH_OK;
}

/* With checks: marks the target as written. A copy within the device copies the marks of its
 * source. */
static void mark(const bh__cpu_view *view, const bh__work *work, uint64_t rows) {
    const bh__copy_body *body = &work->u.copy;
    bool copies = work->op == BH__OP_COPY || work->op == BH__OP_COPY_ROWS;
    const bh__ptx_range *to = bh__cpu_view_range(view, body->target);
    if (!to || !to->marks) return;
    uint8_t *marks = to->marks + (body->target - to->base);
    const bh__ptx_range *from = copies ? bh__cpu_view_range(view, body->source) : NULL;
    const uint8_t *source = from && from->marks ? from->marks + (body->source - from->base) : NULL;
    for (uint64_t row = 0; row < rows; row++) {
        if (source)
            copy_bytes(marks + row * body->pitch.target, source + row * body->pitch.source,
                       body->bytes);
        else
            memset(marks + row * body->pitch.target, 1, body->bytes);
    }
}

/* ---- rows ---- */

static bh_status move_rows(const bh__device_instance *device, uint8_t *target,
                           const uint8_t *source, const bh__copy_body *body) {
    uint64_t since = 0;
    for (uint64_t row = 0; row < body->rows; row++) {
        bh_status status = move(device, target + row * body->pitch.target,
                                source + row * body->pitch.source, body->bytes);
        if (status != BH_OK) return status;
        since += body->bytes + 64;
        if (since < PIECE_BYTES) continue;
        since = 0;
        if (bh__cpu_killed(device)) return BH_E_STOPPED;
    }
    return BH_OK;
}

/* Fills the first row from the pattern, the others from the first. */
static bh_status fill_rows(const bh__device_instance *device, uint8_t *target,
                           const uint8_t *pattern, const bh__copy_body *body) {
    uint64_t filled = body->bytes < body->pattern_bytes ? body->bytes : body->pattern_bytes;
    copy_bytes(target, pattern, filled);
    while (filled < body->bytes) {
        if (bh__cpu_killed(device)) return BH_E_STOPPED;
        /* Whole patterns, in pieces of limited size. */
        uint64_t whole =
            filled < PIECE_BYTES ? filled : PIECE_BYTES / body->pattern_bytes * body->pattern_bytes;
        uint64_t part = body->bytes - filled < whole ? body->bytes - filled : whole;
        copy_bytes(target + filled, target, part);
        filled += part;
    }
    if (body->rows == 1) return BH_OK;
    bh__copy_body others = *body;
    others.rows--;
    others.pitch.source = 0;
    return move_rows(device, target + body->pitch.target, target, &others);
}

static bh_status rows(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    const bh__copy_body *body = &work->u.copy;
    const bh__cpu_view *view = lane->view;
    bool fills = work->op == BH__OP_FILL_ROWS, reads = work->op == BH__OP_READ_ROWS;
    uint64_t to, from = body->pattern_bytes;
    if (!bh__rows_extent(body->bytes, body->rows, body->pitch.target, &to) ||
        (fills ? from == 0 || from > PIECE_BYTES
               : !bh__rows_extent(body->bytes, body->rows, body->pitch.source, &from)))
        return refuse(error, work, "the rows are not valid");
    uint8_t *target = reads ? host_memory(view, body->host, body->target, to)
                            : device_memory(view, body->target, to, true);
    const uint8_t *source = reads || work->op == BH__OP_COPY_ROWS
                                ? device_memory(view, body->source, from, false)
                                : host_memory(view, body->host, body->source, from);
    if (!target) return refuse(error, work, "the target is not in mapped memory");
    if (!source) return refuse(error, work, "the source is not in mapped memory");
    if (lane->device->services->check && !reads) mark(view, work, body->rows);
    return fills ? fill_rows(lane->device, target, source, body)
                 : move_rows(lane->device, target, source, body);
}

bh_status bh__cpu_copy(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    const bh__copy_body *body = &work->u.copy;
    const bh__cpu_view *view = lane->view;
    uint8_t *target = NULL, *source = NULL;
    switch (work->op) {
    case BH__OP_WRITE:
        target = device_memory(view, body->target, body->bytes, true);
        source = host_memory(view, body->host, body->source, body->bytes);
        break;
    case BH__OP_READ:
        target = host_memory(view, body->host, body->target, body->bytes);
        source = device_memory(view, body->source, body->bytes, false);
        break;
    case BH__OP_COPY:
        target = device_memory(view, body->target, body->bytes, true);
        source = device_memory(view, body->source, body->bytes, false);
        break;
    case BH__OP_GLOBAL_WRITE:
        target = variable_memory(view, body, body->target);
        source = host_memory(view, body->host, body->source, body->bytes);
        break;
    case BH__OP_GLOBAL_READ:
        target = host_memory(view, body->host, body->target, body->bytes);
        source = variable_memory(view, body, body->source);
        break;
    case BH__OP_FILL:
        target = device_memory(view, body->target, body->bytes, true);
        if (!bh__is_power_of_two(body->pattern_bytes) || body->pattern_bytes > sizeof body->pattern)
            return refuse(error, work, "the size of the pattern is not supported");
        if (!target) return refuse(error, work, "the target is not in device memory");
        if (lane->device->services->check) mark(view, work, 1);
        return fill(lane->device, target, body);
    case BH__OP_WRITE_ROWS:
    case BH__OP_READ_ROWS:
    case BH__OP_COPY_ROWS:
    case BH__OP_FILL_ROWS:
        return rows(lane, work, error);
    case BH__OP_PREFETCH: /* there is only one memory, and it is there */
        if (!device_memory(view, body->target, body->bytes, true))
            return refuse(error, work, "the target is not in device memory");
        return BH_OK;
    default:
        return refuse(error, work, "there is no such operation");
    }
    if (!target) return refuse(error, work, "the target is not in mapped memory");
    if (!source) return refuse(error, work, "the source is not in mapped memory");
    if (lane->device->services->check && (work->op == BH__OP_WRITE || work->op == BH__OP_COPY))
        mark(view, work, 1);
    return move(lane->device, target, source, body->bytes);
}
