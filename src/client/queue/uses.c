/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of memory by requests: which lane used it last, which requests a new one must wait for, and
 * when the memory is idle. */
#include <stdlib.h>
#include <string.h>

#include "client/core/error.h"
#include "client/queue/queue.h"
#include "client/queue/uses.h"

typedef unsigned long long ull;

/* ---- sets of bytes: sorted spans that are not adjacent ---- */

static bool spans_reserve(bh__span **list, uint32_t count, uint32_t *capacity) {
    if (count < *capacity) return true;
    uint32_t larger = *capacity ? *capacity * 2 : 4;
    bh__span *grown = realloc(*list, larger * sizeof *grown);
    if (!grown) return false;
    *list = grown;
    *capacity = larger;
    return true;
}

bool bh__spans_overlap(const bh__span *list, uint32_t count, uint64_t offset, uint64_t bytes) {
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].offset < offset + bytes && offset < list[i].offset + list[i].bytes) return true;
    }
    return false;
}

/* Returns the index of the first span that ends at `offset` or after it. */
static uint32_t spans_from(const bh__span *list, uint32_t count, uint64_t offset) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list[middle].offset + list[middle].bytes < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool bh__spans_cover(const bh__span *list, uint32_t count, uint64_t offset, uint64_t bytes) {
    uint32_t at = spans_from(list, count, offset + bytes);
    return at < count && list[at].offset <= offset;
}

bool bh__spans_add(bh__span **list, uint32_t *count, uint32_t *capacity, uint64_t offset,
                   uint64_t bytes) {
    if (bytes == 0) return true;
    if (!spans_reserve(list, *count, capacity)) return false;
    uint64_t from = offset, to = offset + bytes;
    uint32_t first = spans_from(*list, *count, from), last = first;
    for (; last < *count && (*list)[last].offset <= to; last++) { /* these become one with it */
        const bh__span *span = &(*list)[last];
        if (span->offset < from) from = span->offset;
        if (span->offset + span->bytes > to) to = span->offset + span->bytes;
    }
    memmove(&(*list)[first + 1], &(*list)[last], (*count - last) * sizeof **list);
    (*list)[first] = (bh__span){from, to - from};
    *count = *count - last + first + 1;
    return true;
}

bool bh__spans_remove(bh__span **list, uint32_t *count, uint32_t *capacity, uint64_t offset,
                      uint64_t bytes) {
    if (!spans_reserve(list, *count, capacity)) return false;
    uint64_t to = offset + bytes;
    for (uint32_t i = 0; i < *count; i++) {
        bh__span span = (*list)[i];
        uint64_t end = span.offset + span.bytes;
        if (end <= offset || span.offset >= to) continue;
        if (span.offset < offset && end > to) { /* a hole in the middle */
            memmove(&(*list)[i + 1], &(*list)[i], (*count - i) * sizeof **list);
            (*list)[i].bytes = offset - span.offset;
            (*list)[i + 1] = (bh__span){to, end - to};
            ++*count;
            return true;
        }
        if (span.offset < offset) {
            (*list)[i].bytes = offset - span.offset;
        } else if (end > to) {
            (*list)[i] = (bh__span){to, end - to};
        } else {
            memmove(&(*list)[i], &(*list)[i + 1], (*count - i - 1) * sizeof **list);
            --*count;
            i--;
        }
    }
    return true;
}

/* ---- order between lanes ---- */

static bh__lane_use *find_use(bh__memory *memory, uint32_t lane) {
    for (uint32_t i = 0; i < memory->use_count; i++) {
        if (memory->uses[i].lane == lane) return &memory->uses[i];
    }
    return NULL;
}

static __attribute__((noinline)) bool add_use(bh__memory *memory, uint32_t lane) {
    if (memory->use_count == memory->use_capacity) {
        uint32_t capacity = memory->use_capacity * 2;
        bh__lane_use *uses = malloc(capacity * sizeof *uses);
        if (!uses) return false;
        memcpy(uses, memory->uses, memory->use_count * sizeof *uses);
        if (memory->uses != memory->use_inline) free(memory->uses);
        memory->uses = uses;
        memory->use_capacity = capacity;
    }
    if (memory->use_count == 0) memory->last_write = (bh_ticket){0, 0};
    memory->uses[memory->use_count++] = (bh__lane_use){.lane = lane};
    return true;
}

bool bh__memory_reserve_use(bh__memory *memory, uint32_t lane) {
    return find_use(memory, lane) || add_use(memory, lane);
}

/* Extends the range of a use that may be in flight; replaces it if that use is done. A use of no
 * bytes only keeps the memory. */
static void widen(uint64_t *position, uint64_t *from, uint64_t *to, uint64_t retired,
                  const bh__use *use, uint64_t now) {
    if (__builtin_expect(use->bytes == 0, 0)) {
        if (*position <= retired) *from = *to = 0;
    } else if (*position <= retired) {
        *from = use->offset;
        *to = use->offset + use->bytes;
    } else {
        if (use->offset < *from) *from = use->offset;
        if (use->offset + use->bytes > *to) *to = use->offset + use->bytes;
    }
    *position = now;
}

void bh__memory_note_use(const bh__use *use, const bh__lane *lane, uint64_t position) {
    bh__memory *memory = use->memory;
    bh__lane_use *noted = find_use(memory, lane->index);
    uint64_t retired = lane->retired;
    if (use->access & BH_ACCESS_IN) {
        widen(&noted->read_position, &noted->read_from, &noted->read_to, retired, use, position);
    }
    if (use->access & BH_ACCESS_OUT) {
        widen(&noted->write_position, &noted->write_from, &noted->write_to, retired, use, position);
        if (use->bytes == 0) return;
        memory->last_write =
            (bh_ticket){atomic_load_explicit(&lane->id, memory_order_relaxed), position};
        memory->last_writer = lane->handle;
    }
}

static bool overlaps(const bh__use *use, uint64_t from, uint64_t to) {
    return use->bytes && use->offset < to && from < use->offset + use->bytes;
}

bool bh__memory_order(bh__device *device, const bh__use *use, uint32_t lane, uint64_t *wait_for) {
    bool raised = false;
    for (uint32_t i = 0; i < use->memory->use_count; i++) {
        const bh__lane_use *other = &use->memory->uses[i];
        if (other->lane == lane) continue;
        uint64_t position = 0;
        if (overlaps(use, other->write_from, other->write_to)) position = other->write_position;
        if ((use->access & BH_ACCESS_OUT) && overlaps(use, other->read_from, other->read_to) &&
            other->read_position > position) {
            position = other->read_position;
        }
        if (position > wait_for[other->lane] &&
            position > bh__lane_done(device, &device->lanes[other->lane])) {
            wait_for[other->lane] = position;
            raised = true;
        }
    }
    return raised;
}

bool bh__memory_idle(bh__device *device, bh__memory *memory) {
    if (memory->held_by && memory->held_by > atomic_load(&device->queue.reaped)) return false;
    for (uint32_t i = 0; i < memory->use_count; i++) {
        const bh__lane_use *use = &memory->uses[i];
        uint64_t last =
            use->write_position > use->read_position ? use->write_position : use->read_position;
        bh__lane *lane = &device->lanes[use->lane];
        if (last > lane->retired && last > bh__lane_done(device, lane)) return false;
    }
    return true;
}

/* ---- memory that the driver manages: its address differs between workers ---- */

struct bh__driver_managed *bh__driver_managed_of(const bh__memory *memory) {
    return memory->dedicated ? memory->dedicated->driver_managed : NULL;
}

bh_status bh__driver_managed_refuse(const bh__use *uses, uint32_t count, const char *what) {
    for (uint32_t i = 0; i < count; i++) {
        const bh__memory *memory = uses[i].memory;
        if (!bh__driver_managed_of(memory)) continue;
        return bh__refuse(BH_E_UNSUPPORTED, "use bh_launch and the bh_submit calls for it",
                          "%s keeps addresses, and the %llu bytes at 0x%llx are managed by the "
                          "driver: their address changes when the worker is replaced",
                          what, (ull)memory->bytes, (ull)memory->address);
    }
    return BH_OK;
}

bh_status bh__driver_managed_refuse_lost(const bh__memory *memory, bh_error *error) {
    return bh__fail(error, BH_E_STALE,
                    "write the data again, or accept the contents with bh_buffer_accept, then "
                    "submit again",
                    "a buffer of %llu bytes is managed by the driver: its contents were lost with "
                    "the worker, and its address has changed",
                    (ull)memory->bytes);
}
