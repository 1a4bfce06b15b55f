/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed buffers of a device that stops or has stopped: no worker moves pages any more. Pages
 * whose newest copy is on the device are read as any bytes of a stopped device are (hook
 * read_memory).
 *
 * Results in transparent buffers are fetched when the device stops, after the last worker has ended
 * and before any request gets the verdict BH_E_STOPPED. So the program finds the results of every
 * launch that it knows to be complete, whatever became of later ones.
 */
#include <string.h>

#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/managed/internal.h"
#include "client/managed/managed.h"
#include "client/memory/memory.h"
#include "client/queue/doubt.h"
#include "client/queue/walk.h"

/* Copies bytes to the host. Releases the lock meanwhile. */
static bh_status fetch_bytes(bh__device *device, bh__managed *self, uint64_t from, uint64_t to) {
    bh_status status =
        bh__hooks.read_memory(device, self->memory, from, to - from, self->mirror->pointer + from);
    if (status != BH_OK) return status;
    self->tally.bytes_to_host += to - from;
    self->tally.moves_to_host++;
    device->memory.managed.to_host += to - from;
    return BH_OK;
}

/* Copies pages [from, to), all of them device newest and intact, to the host. */
static bh_status fetch_run(bh__device *device, bh__managed *self, uint64_t from, uint64_t to) {
    bh_status status = fetch_bytes(device, self, from * self->page_bytes, bh__page_end(self, to));
    if (status != BH_OK) return status;
    bh__pages_remove(&self->device_newest, from, to);
    bh__pages_add(&self->host_newest, from, to);
    return BH_OK;
}

/* Copies the intact bytes of a page to the host, once. The page stays in device_newest; in_part
 * records that the copy is done. */
static bh_status fetch_part(bh__device *device, bh__managed *self, uint64_t page) {
    if (bh__pages_has(&self->in_part, page)) return BH_OK;
    uint64_t from, to, end = bh__page_end(self, page + 1);
    for (uint64_t at = page * self->page_bytes;
         bh__managed_intact(device, self, at, end, &from, &to); at = to) {
        bh_status status = fetch_bytes(device, self, from, to);
        if (status != BH_OK) return status;
    }
    bh__pages_add(&self->in_part, page, page + 1);
    return BH_OK;
}

static bool page_intact(bh__device *device, const bh__managed *self, uint64_t page) {
    uint64_t from, to, begin = page * self->page_bytes, end = bh__page_end(self, page + 1);
    return bh__managed_intact(device, self, begin, end, &from, &to) && from == begin && to == end;
}

static bh_status fetch(bh__device *device, bh__managed *self, uint64_t from, uint64_t to) {
    uint64_t begin, end;
    for (; bh__pages_next(&self->device_newest, from, to, &begin, &end); from = end) {
        uint64_t good = begin;
        while (good < end && page_intact(device, self, good)) good++;
        bh_status status =
            good > begin ? fetch_run(device, self, begin, good) : fetch_part(device, self, begin);
        if (status != BH_OK) return status;
        end = good > begin ? good : begin + 1;
    }
    return BH_OK;
}

/* Who waited looks again at what is to be copied. */
bh_status bh__managed_fetch(bh__device *device, bh__managed *self, uint64_t from, uint64_t to) {
    while (self->fetching) bh__device_pause(device, BH__NS_PER_MS / 5);
    self->fetching = true;
    bh_status status = fetch(device, self, from, to);
    self->fetching = false;
    return status;
}

const uint8_t *bh__managed_host_run(const bh__memory *memory, uint64_t offset, uint64_t *bytes) {
    const bh__managed *self = memory->managed;
    if (!self) return NULL;
    uint64_t begin, end, from = bh__page_from(self, offset),
                         to = bh__page_to(self, offset + *bytes);
    if (!bh__pages_next(&self->device_newest, from, to, &begin, &end))
        return self->mirror->pointer + offset;
    bool on_device = begin == from;
    uint64_t until = (on_device ? end : begin) * self->page_bytes;
    if (until < offset + *bytes) *bytes = until - offset;
    return on_device ? NULL : self->mirror->pointer + offset;
}

/* ---- when the device stops ---- */

/* A move to the device that is not complete never will be: the host's copy is the newest. */
static void undo_upload(void *context, bh__lane *lane, bh__shadow *shadow) {
    bh__device *device = context;
    if (shadow->resolved || !bh__managed_moves(device, lane, shadow)) return;
    const bh__use *use = bh__use_at(device, lane, shadow, 0);
    if (!(use->access & BH_ACCESS_OUT)) return;
    bh__managed *self = use->memory->managed;
    uint64_t from = bh__page_from(self, use->offset);
    uint64_t to = bh__page_to(self, use->offset + use->bytes);
    bh__pages_remove(&self->device_newest, from, to);
    bh__pages_add(&self->host_newest, from, to);
}

/* Write-backs that no worker will complete are undone: the device's copy stays the newest. */
static void take_back_moves(bh__managed *self) {
    uint64_t begin, end;
    for (uint64_t from = 0; bh__pages_next(&self->writing_back, from, self->pages, &begin, &end);
         from = end) {
        bh__pages_add(&self->device_newest, begin, end);
        bh__pages_remove(&self->in_part, begin, end);
    }
    bh__managed_written_back(self, 0, self->pages);
}

/* If the pages cannot be read, the program may know of results that it will never see: they are
 * suspect. Of pages in part the host has what is intact. */
static void fetch_results(bh__device *device, bh__managed *self) {
    if (bh__managed_fetch(device, self, 0, self->pages) == BH_OK) {
        bh__managed_forget(device, self);
        return;
    }
    uint64_t begin, end;
    for (uint64_t from = 0; bh__pages_next(&self->device_newest, from, self->pages, &begin, &end);
         from = end) {
        bool in_part = bh__pages_has(&self->in_part, begin);
        for (uint64_t page = begin + 1; page < end; page++)
            if (bh__pages_has(&self->in_part, page) != in_part) end = page;
        if (!in_part)
            bh__doubt_add(device, self->memory, begin * self->page_bytes,
                          (end - begin) * self->page_bytes, device->queue.stamp);
    }
}

void bh__managed_fetch_results(bh__device *device) {
    bh__lock_take(&device->lock);
    bool wanted = bh__finishes_work(device) && device->managed.list;
    device->managed.fetching = wanted;
    for (bh__managed *self = wanted ? device->managed.list : NULL; self; self = self->next)
        take_back_moves(self);
    if (wanted) bh__requests_walk(device, undo_upload, device);
    bh__managed *next;
    for (bh__managed *self = wanted ? device->managed.list : NULL; self; self = next) {
        next = self->next;
        if (self->to_write_back_count == 0) continue; /* or the program has released it */
        bh__memory *memory = self->memory;
        memory->references++;
        fetch_results(device, self);
        next = self->next;
        bh__memory_release(device, memory);
    }
    device->managed.fetching = false;
    bh__lock_give(&device->lock);
}
