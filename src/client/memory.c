/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that work uses: who used it last, which bytes are in doubt, and when it may be reused. */
#include <stdlib.h>
#include <string.h>

#include "base/cache_line.h"
#include "client/doubt.h"

/* ---- sets of bytes: sorted spans that do not touch ---- */

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

bool bh__spans_add(bh__span **list, uint32_t *count, uint32_t *capacity, uint64_t offset,
                   uint64_t bytes) {
    if (bytes == 0) return true;
    if (!spans_reserve(list, *count, capacity)) return false;
    uint64_t from = offset, to = offset + bytes;
    uint32_t kept = 0, at = 0;
    for (uint32_t i = 0; i < *count; i++) {
        bh__span span = (*list)[i];
        if (span.offset + span.bytes < from) {
            (*list)[kept++] = span;
            at = kept;
        } else if (span.offset > to) {
            (*list)[kept++] = span;
        } else {
            if (span.offset < from) from = span.offset;
            if (span.offset + span.bytes > to) to = span.offset + span.bytes;
        }
    }
    memmove(&(*list)[at + 1], &(*list)[at], (kept - at) * sizeof **list);
    (*list)[at] = (bh__span){from, to - from};
    *count = kept + 1;
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
    memory->uses[memory->use_count++] = (bh__lane_use){.lane = lane};
    return true;
}

bool bh__memory_reserve_use(bh__memory *memory, uint32_t lane) {
    return find_use(memory, lane) || add_use(memory, lane);
}

static void widen(uint64_t *position, uint64_t *from, uint64_t *to, uint64_t retired,
                  const bh__use *use, uint64_t now) {
    if (*position <= retired) {
        *from = use->offset;
        *to = use->offset + use->bytes;
    } else {
        if (use->offset < *from) *from = use->offset;
        if (use->offset + use->bytes > *to) *to = use->offset + use->bytes;
    }
    *position = now;
}

void bh__memory_note_use(const bh__use *use, uint32_t lane, uint64_t position, uint64_t retired) {
    bh__lane_use *noted = find_use(use->memory, lane);
    if (use->access & BH_ACCESS_IN) {
        widen(&noted->read_position, &noted->read_from, &noted->read_to, retired, use, position);
    }
    if (use->access & BH_ACCESS_OUT) {
        widen(&noted->write_position, &noted->write_from, &noted->write_to, retired, use, position);
    }
}

static bool meets(const bh__use *use, uint64_t from, uint64_t to) {
    return use->offset < to && from < use->offset + use->bytes;
}

bool bh__memory_order(bh__device *device, const bh__use *use, uint32_t lane, uint64_t *wait_for) {
    bool raised = false;
    for (uint32_t i = 0; i < use->memory->use_count; i++) {
        const bh__lane_use *other = &use->memory->uses[i];
        if (other->lane == lane) continue;
        uint64_t position = 0;
        if (meets(use, other->write_from, other->write_to)) position = other->write_position;
        if ((use->access & BH_ACCESS_OUT) && meets(use, other->read_from, other->read_to) &&
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

/* ---- life and death ---- */

bh__memory *bh__memory_new(bh__device *device) {
    bh__memory *memory =
        bh__records_take(&device->memory_records, sizeof *memory, offsetof(bh__memory, next));
    if (!memory) return NULL;
    memory->references = 1;
    memory->uses = memory->use_inline;
    memory->use_capacity = sizeof memory->use_inline / sizeof *memory->use_inline;
    return memory;
}

void bh__memory_delete(bh__device *device, bh__memory *memory) {
    if (memory->solo && memory->managed) bh__managed_delete(device, memory->managed);
    if (memory->solo && memory->solo->driven) bh__driven_delete(device, memory->solo->driven);
    if (memory->uses != memory->use_inline) free(memory->uses);
    bh__doubt_free(device, memory);
    if (memory->tag) memory->tag->references--;
    if (memory->solo) bh__solo_delete(memory->solo);
    bh__records_give(&device->memory_records, memory);
}

bool bh__memory_idle(bh__device *device, bh__memory *memory) {
    if (memory->held_by && memory->held_by > atomic_load(&device->front->reaped)) return false;
    for (uint32_t i = 0; i < memory->use_count; i++) {
        const bh__lane_use *use = &memory->uses[i];
        uint64_t last =
            use->write_position > use->read_position ? use->write_position : use->read_position;
        bh__lane *lane = &device->lanes[use->lane];
        if (last > lane->retired && last > bh__lane_done(device, lane)) return false;
    }
    return true;
}

void bh__memory_drop(bh__device *device, bh__memory *memory) {
    if (memory->window) {
        bh__memory_delete(device, memory);
        return;
    }
    if (bh__checked(device)) {
        bh__check_retire(device, memory);
        return;
    }
    if (memory->solo) {
        bh__solo_give_back(device, memory);
        return;
    }
    bh__heap_free(&device->heap, memory->block, memory->bytes);
    bh__memory_delete(device, memory);
}

void bh__memory_release(bh__device *device, bh__memory *memory) {
    if (--memory->references > 0) return;
    bh__usage_remove(device, memory);
    if (memory->solo && memory->managed) bh__managed_forget(device, memory->managed);
    if (memory->solo) bh__deed_withdraw(memory->solo);
    if (bh__memory_idle(device, memory)) {
        bh__memory_drop(device, memory);
    } else {
        memory->next = device->leaving;
        device->leaving = memory;
    }
}

BH__FETCHER fetch_record(const bh__memory *memory) {
    __builtin_prefetch(&memory->bytes);
    __builtin_prefetch(&memory->first);
    __builtin_prefetch(&memory->address);
}

static void fetch_buffers(const bh__table *buffers, uint32_t *cursor) {
    enum { AT_A_TIME = 16 };
    for (int i = 0; i < AT_A_TIME; i++) {
        const bh__buffer *buffer = bh__table_next(buffers, cursor);
        if (!buffer) {
            *cursor = 0;
            return;
        }
        fetch_record(buffer->memory);
    }
}

void bh__memory_fetch_some(bh__device *device, bh__fetched *fetched) {
    enum { FIT_A_CACHE = 4096 };
    if (device->buffers.live > FIT_A_CACHE) return;
    fetch_buffers(&device->buffers, &fetched->buffers);
    bh__heap_fetch_some(&device->heap, &fetched->blocks);
}

void bh__memory_sweep(bh__device *device) {
    bh__memory **link = &device->leaving;
    while (*link) {
        bh__memory *memory = *link;
        if (bh__memory_idle(device, memory)) {
            *link = memory->next;
            bh__memory_drop(device, memory);
        } else {
            link = &memory->next;
        }
    }
}
