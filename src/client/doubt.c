/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes are in doubt. Each doubt carries the stamp of the request that raised it; only a
 * request that was submitted later, overwrites the bytes and completed clears it. */
#include "client/doubt.h"

#include <stdlib.h>
#include <string.h>

#include "client/queue.h"

/* ---- the set ---- */

/* The same bytes may be in doubt several times over, since different requests: whoever reads them was
 * submitted after some of those and before others. */
typedef struct builder {
    bh__doubt *list;
    uint32_t count;
} builder;

/* Ranges of the same stamp that meet become one. */
static void put(builder *self, uint64_t from, uint64_t to, uint64_t stamp) {
    if (from >= to) return;
    for (uint32_t i = 0; i < self->count;) {
        bh__doubt other = self->list[i];
        uint64_t end = other.offset + other.bytes;
        if (other.stamp != stamp || end < from || other.offset > to) {
            i++;
            continue;
        }
        if (other.offset < from) from = other.offset;
        if (end > to) to = end;
        self->list[i] = self->list[--self->count];
        i = 0;
    }
    self->list[self->count++] = (bh__doubt){from, to - from, stamp};
}

static void replace(bh__device *device, bh__memory *memory, const builder *made) {
    bool before = bh__doubt_any(memory);
    free(memory->doubt);
    memory->doubt = made->list;
    memory->doubt_count = made->count;
    if (made->count == 0) {
        free(memory->doubt);
        memory->doubt = NULL;
    }
    device->doubted += (uint32_t)bh__doubt_any(memory) - (uint32_t)before;
}

/* Nobody who was submitted before this is left: doubts from before it are all one, with stamp 0, so
 * that their number does not grow. */
static uint64_t oldest_unfinished(bh__device *device) {
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (!lane->exists || lane->retired == atomic_load(&lane->tail)) continue;
        uint64_t stamp = bh__shadow_at(device, lane, lane->retired)->stamp;
        if (stamp < oldest) oldest = stamp;
    }
    return oldest;
}

/* Host memory is the program's own to judge: it is never in doubt. */
void bh__doubt_add(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes,
                   uint64_t stamp) {
    if (memory->host || bytes == 0) return;
    if (memory->solo) bh__deed_doubt(memory->solo);
    builder made = {malloc(((size_t)memory->doubt_count + 1) * sizeof *made.list), 0};
    if (!made.list) { /* never forgotten: all of it then, until the program accepts it */
        device->doubted += !bh__doubt_any(memory);
        memory->doubt_whole = 1;
        return;
    }
    uint64_t oldest = oldest_unfinished(device);
    for (uint32_t i = 0; i < memory->doubt_count; i++) {
        bh__doubt old = memory->doubt[i];
        put(&made, old.offset, old.offset + old.bytes, old.stamp < oldest ? 0 : old.stamp);
    }
    put(&made, offset, offset + bytes, stamp < oldest ? 0 : stamp);
    replace(device, memory, &made);
}

void bh__doubt_clear(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes,
                     uint64_t before) {
    if (memory->doubt_count == 0) return;
    builder made = {malloc(2 * (size_t)memory->doubt_count * sizeof *made.list), 0};
    if (!made.list) return; /* it stays in doubt */
    uint64_t end = offset + bytes;
    for (uint32_t i = 0; i < memory->doubt_count; i++) {
        bh__doubt old = memory->doubt[i];
        uint64_t to = old.offset + old.bytes;
        if (old.stamp >= before || to <= offset || old.offset >= end) {
            put(&made, old.offset, to, old.stamp);
        } else {
            put(&made, old.offset, old.offset < offset ? offset : old.offset, old.stamp);
            put(&made, to > end ? end : to, to, old.stamp);
        }
    }
    replace(device, memory, &made);
}

void bh__doubt_accept(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes) {
    if (memory->doubt_whole && offset == 0 && bytes == memory->bytes) {
        memory->doubt_whole = 0;
        device->doubted -= !bh__doubt_any(memory);
    }
    bh__doubt_clear(device, memory, offset, bytes, UINT64_MAX);
}

void bh__doubt_free(bh__device *device, bh__memory *memory) {
    device->doubted -= bh__doubt_any(memory);
    free(memory->doubt);
    memory->doubt = NULL;
    memory->doubt_count = memory->doubt_whole = 0;
}

/* ---- what completes ---- */

void bh__doubt_completed(bh__device *device, bh__lane *lane, uint64_t from, uint64_t to) {
    while (from < to) {
        const bh__shadow *shadow = bh__shadow_at(device, lane, from);
        for (uint32_t i = 0; !shadow->resolved && i < shadow->use_count; i++) {
            const bh__use *use = bh__use_at(device, lane, shadow, i);
            if (use->access == BH_ACCESS_OUT)
                bh__doubt_clear(device, use->memory, use->offset, use->bytes, shadow->stamp);
        }
        from += shadow->slots;
    }
}

/* ---- what a request would find ---- */

/* How far from `from` on the bytes will have been overwritten by requests that were submitted
 * between the two stamps and have yet to complete. */
static uint64_t overwritten_to(bh__device *device, const bh__memory *memory, uint64_t from,
                               uint64_t after, uint64_t before) {
    uint64_t to = from;
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        uint64_t at = lane->retired, tail = lane->exists ? atomic_load(&lane->tail) : at;
        while (at < tail) {
            const bh__shadow *shadow = bh__shadow_at(device, lane, at);
            at += shadow->slots;
            if (shadow->resolved || shadow->stamp <= after || shadow->stamp >= before) continue;
            for (uint32_t k = 0; k < shadow->use_count; k++) {
                const bh__use *use = bh__use_at(device, lane, shadow, k);
                if (use->memory == memory && use->access == BH_ACCESS_OUT && use->offset <= from &&
                    use->offset + use->bytes > to)
                    to = use->offset + use->bytes;
            }
        }
    }
    return to;
}

bool bh__doubt_reads(bh__device *device, const bh__memory *memory, uint64_t offset, uint64_t bytes,
                     uint64_t stamp) {
    if (memory->doubt_whole) return true;
    for (uint32_t i = 0; i < memory->doubt_count; i++) {
        const bh__doubt *doubt = &memory->doubt[i];
        uint64_t from = doubt->offset, to = doubt->offset + doubt->bytes;
        if (doubt->stamp >= stamp) continue;
        if (from < offset) from = offset;
        if (to > offset + bytes) to = offset + bytes;
        while (from < to) {
            uint64_t next = overwritten_to(device, memory, from, doubt->stamp, stamp);
            if (next <= from) return true;
            from = next;
        }
    }
    return false;
}
