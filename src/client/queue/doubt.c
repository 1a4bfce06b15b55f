/* SPDX-License-Identifier: Apache-2.0 */
/* The set of bytes in doubt: what the program sees as suspect bytes. Each doubt has the stamp of
 * the request that raised it. It is cleared only by a completed request that was submitted later
 * and overwrites the bytes. */
#include <stdlib.h>
#include <string.h>

#include "client/core/hooks.h"
#include "client/queue/doubt.h"
#include "client/queue/walk.h"

/* ---- the set ---- */

/* The same bytes may be in doubt several times, with different stamps: a reader may have been
 * submitted after some of those requests and before others. */
typedef struct builder {
    bh__doubt *list;
    uint32_t count;
} builder;

/* Merges adjacent and overlapping ranges of the same stamp. */
static void builder_add(builder *self, uint64_t from, uint64_t to, uint64_t stamp) {
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

/* Puts a record into the device's list, or takes it out, if bytes of it are in doubt now and were
 * not `before`, or the other way round. */
static void update_list(bh__device *device, bh__memory *memory, bool before) {
    bool now = bh__doubt_any(memory);
    if (now == before) return;
    if (now) {
        memory->doubt_link = &device->queue.doubted;
        memory->next_doubted = device->queue.doubted;
        device->queue.doubted = memory;
    } else {
        *memory->doubt_link = memory->next_doubted;
    }
    if (memory->next_doubted)
        memory->next_doubted->doubt_link = now ? &memory->next_doubted : memory->doubt_link;
}

static void replace(bh__device *device, bh__memory *memory, const builder *made) {
    bool before = bh__doubt_any(memory);
    free(memory->doubt);
    memory->doubt = made->list;
    memory->doubt_count = made->count;
    update_list(device, memory, before);
}

/* Returns the stamp of the oldest request in flight. Doubts with lower stamps are equivalent for
 * all readers. They are merged under stamp 0, so that their number stays bounded. */
static uint64_t oldest_unfinished(bh__device *device) {
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (!lane->exists || lane->retired == atomic_load(&lane->tail)) continue;
        uint64_t stamp = bh__shadow_at(device, lane, lane->retired)->stamp;
        if (stamp < oldest) oldest = stamp;
    }
    return oldest;
}

/* Host memory is never in doubt: the program itself decides whether its contents are valid. */
void bh__doubt_add(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes,
                   uint64_t stamp) {
    if (memory->host || bytes == 0) return;
    if (memory->dedicated) bh__hooks.doubted(memory);
    builder made = {malloc(((size_t)memory->doubt_count + 1) * sizeof *made.list), 0};
    if (!made.list) { /* a doubt must not get lost: all bytes are in doubt */
        bool before = bh__doubt_any(memory);
        if (stamp == 0) stamp = 1; /* 0: none */
        if (memory->doubt_whole < stamp) memory->doubt_whole = stamp;
        update_list(device, memory, before);
        return;
    }
    uint64_t oldest = oldest_unfinished(device);
    for (uint32_t i = 0; i < memory->doubt_count; i++) {
        bh__doubt old = memory->doubt[i];
        builder_add(&made, old.offset, old.offset + old.bytes, old.stamp < oldest ? 0 : old.stamp);
    }
    builder_add(&made, offset, offset + bytes, stamp < oldest ? 0 : stamp);
    replace(device, memory, &made);
}

static bool is_cleared(const bh__doubt *doubt, uint64_t from, uint64_t to, uint64_t before) {
    return doubt->stamp < before && doubt->offset < to && doubt->offset + doubt->bytes > from;
}

/* Reserves an entry for each range that clearing splits in two. */
static bool reserve_splits(bh__memory *memory, uint64_t from, uint64_t to, uint64_t before) {
    size_t splits = 0;
    for (uint32_t i = 0; i < memory->doubt_count; i++) {
        const bh__doubt *doubt = &memory->doubt[i];
        splits += is_cleared(doubt, from, to, before) && doubt->offset < from &&
                  doubt->offset + doubt->bytes > to;
    }
    if (splits == 0) return true;
    bh__doubt *list = realloc(memory->doubt, (memory->doubt_count + splits) * sizeof *list);
    if (list) memory->doubt = list;
    return list;
}

bool bh__doubt_clear(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes,
                     uint64_t before) {
    uint64_t end = offset + bytes;
    bool any = bh__doubt_any(memory);
    if (bytes == 0) return true;
    if (offset == 0 && bytes == memory->bytes && memory->doubt_whole < before)
        memory->doubt_whole = 0;
    if (!reserve_splits(memory, offset, end, before)) return false;
    uint32_t count = memory->doubt_count;
    for (uint32_t i = 0; i < count;) {
        bh__doubt old = memory->doubt[i];
        uint64_t to = old.offset + old.bytes;
        if (!is_cleared(&old, offset, end, before)) {
            i++;
        } else if (old.offset < offset) {
            memory->doubt[i++].bytes = offset - old.offset;
            if (to > end) memory->doubt[count++] = (bh__doubt){end, to - end, old.stamp};
        } else if (to > end) {
            memory->doubt[i++] = (bh__doubt){end, to - end, old.stamp};
        } else {
            memory->doubt[i] = memory->doubt[--count];
        }
    }
    memory->doubt_count = count;
    update_list(device, memory, any);
    return true;
}

bool bh__doubt_accept(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes) {
    return bh__doubt_clear(device, memory, offset, bytes, UINT64_MAX) && !memory->doubt_whole;
}

void bh__doubt_free(bh__device *device, bh__memory *memory) {
    bool before = bh__doubt_any(memory);
    free(memory->doubt);
    memory->doubt = NULL;
    memory->doubt_count = memory->doubt_whole = 0;
    update_list(device, memory, before);
}

/* ---- completed requests ---- */

void bh__doubt_completed(bh__device *device, bh__lane *lane, uint64_t from, uint64_t to) {
    while (from < to) {
        const bh__shadow *shadow = bh__shadow_at(device, lane, from);
        for (uint32_t i = 0; !shadow->resolved && i < shadow->use_count; i++) {
            const bh__use *use = bh__use_at(device, lane, shadow, i);
            if (use->access == BH_ACCESS_OUT)
                (void)bh__doubt_clear(device, use->memory, use->offset, use->bytes, shadow->stamp);
        }
        from += shadow->slots;
    }
}

/* ---- reads of bytes in doubt ---- */

/* Returns the end of the range from `from` on that one request in flight will overwrite, of those
 * submitted between the two stamps. Returns `from` if there is none. */
static uint64_t overwritten_to(bh__device *device, const bh__memory *memory, uint64_t from,
                               uint64_t after, uint64_t before) {
    uint64_t to = from;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
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
    if (bytes == 0) return false;
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
