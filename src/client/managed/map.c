/* SPDX-License-Identifier: Apache-2.0 */
/* Managed buffers: map, unmap and prefetch. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/managed/internal.h"
#include "client/memory/memory.h"
#include "client/queue/doubt.h"
#include "client/queue/queue.h"
#include "client/queue/uses.h"

typedef unsigned long long ull;

/* ---- maps ---- */

static bh_status check_flags(uint32_t flags) {
    const uint32_t known = BH_MAP_READ | BH_MAP_WRITE | BH_MAP_DISCARD | BH_MAP_NO_WAIT;
    if (flags & ~known)
        return bh__refuse(BH_E_INVALID, "use only BH_MAP_... flags", "unknown map flags 0x%x",
                          flags & ~known);
    if (!(flags & (BH_MAP_READ | BH_MAP_WRITE)))
        return bh__refuse(BH_E_INVALID, "add BH_MAP_READ, BH_MAP_WRITE or both",
                          "map flags 0x%x neither read nor write", flags);
    if ((flags & BH_MAP_DISCARD) && (flags & (BH_MAP_READ | BH_MAP_WRITE)) != BH_MAP_WRITE)
        return bh__refuse(BH_E_INVALID, "discard with BH_MAP_WRITE and without BH_MAP_READ",
                          "map flags 0x%x both read and discard", flags);
    return BH_OK;
}

static bh_status check_overlap(const bh__managed *self, uint64_t offset, uint64_t bytes,
                               uint32_t flags) {
    for (const bh__map *map = self->mirror->maps; map; map = map->next) {
        if (!((map->flags | flags) & BH_MAP_WRITE) || map->offset >= offset + bytes ||
            offset >= map->offset + map->bytes)
            continue;
        return bh__refuse(
            BH_E_BUSY, "unmap it first, or map ranges that do not overlap",
            "bytes %llu to %llu are already mapped to %s; the new map of bytes %llu to "
            "%llu would %s them",
            (ull)map->offset, (ull)(map->offset + map->bytes),
            map->flags & BH_MAP_WRITE ? "write" : "read", (ull)offset, (ull)(offset + bytes),
            flags & BH_MAP_WRITE ? "write" : "read");
    }
    return BH_OK;
}

static bh_status refuse_stale(const bh__managed *self, uint64_t offset, uint64_t end) {
    return bh__refuse(BH_E_STALE,
                      "overwrite the whole range with BH_MAP_WRITE | BH_MAP_DISCARD, or accept the "
                      "buffer as it is with bh_buffer_accept",
                      "bytes %llu to %llu at 0x%llx are suspect: a lost worker may have left them "
                      "half written",
                      (ull)offset, (ull)end, (ull)self->memory->address);
}

static bh_status refuse_busy(const char *why, uint64_t offset, uint64_t bytes) {
    return bh__refuse(BH_E_BUSY, "map it later, or without BH_MAP_NO_WAIT",
                      "bytes %llu to %llu: %s", (ull)offset, (ull)(offset + bytes), why);
}

/* A range, its pages, and those of its pages that a discard covers completely. */
typedef struct extent {
    uint64_t offset, end;
    uint64_t from, to;             /* pages */
    uint64_t whole_from, whole_to; /* discarded; empty without BH_MAP_DISCARD */
} extent;

static extent extent_of(const bh__managed *self, uint64_t offset, uint64_t bytes, uint32_t flags) {
    uint64_t page = self->page_bytes, end = offset + bytes;
    extent e = {.offset = offset,
                .end = end,
                .from = bh__page_from(self, offset),
                .to = bh__page_to(self, end)};
    e.whole_from = e.whole_to = e.to;
    if (flags & BH_MAP_DISCARD) {
        uint64_t from = (offset + page - 1) / page;
        uint64_t to = end == self->memory->bytes ? e.to : end / page;
        if (from < to) {
            e.whole_from = from;
            e.whole_to = to;
        }
    }
    return e;
}

/* Saves the doubt about bytes that the map discards, to restore it if the map fails. */
static bool save_doubt(const bh__memory *memory, const extent *e, bh__spans *kept) {
    for (uint32_t i = 0; i < memory->doubt_count; i++) {
        uint64_t from = memory->doubt[i].offset, to = from + memory->doubt[i].bytes;
        if (from < e->offset) from = e->offset;
        if (to > e->end) to = e->end;
        if (from < to &&
            !bh__spans_add(&kept->list, &kept->count, &kept->capacity, from, to - from))
            return false;
    }
    return true;
}

static bool in_doubt(bh__device *device, const bh__memory *memory, uint64_t from, uint64_t to) {
    return bh__doubt_reads(device, memory, from, to - from, UINT64_MAX);
}

/* Clears the doubt about bytes that the map discards. Refuses doubt about bytes that it keeps. */
static bh_status check_doubt(bh__device *device, bh__managed *self, const extent *e, uint32_t flags,
                             bh__spans *kept) {
    bh__memory *memory = self->memory;
    if (!bh__doubt_any(memory)) return BH_OK;
    if (!(flags & BH_MAP_DISCARD))
        return in_doubt(device, memory, e->offset, e->end) ? refuse_stale(self, e->offset, e->end)
                                                           : BH_OK;
    uint64_t first = e->from * self->page_bytes, last = e->to * self->page_bytes;
    if (last > memory->bytes) last = memory->bytes;
    if (in_doubt(device, memory, first, e->offset)) return refuse_stale(self, first, e->offset);
    if (in_doubt(device, memory, e->end, last)) return refuse_stale(self, e->end, last);
    if (!in_doubt(device, memory, e->offset, e->end)) return BH_OK;
    if (!save_doubt(memory, e, kept))
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a map");
    (void)bh__doubt_accept(device, memory, e->offset, e->end - e->offset);
    return BH_OK;
}

/* Finds a request in flight that uses the bytes. */
static bool in_use(bh__device *device, const bh__memory *memory, const extent *e,
                   bh__lane **out_lane, uint64_t *out_position) {
    for (uint32_t i = 0; i < memory->use_count; i++) {
        const bh__lane_use *use = &memory->uses[i];
        uint64_t position = 0;
        if (use->write_from < e->end && e->offset < use->write_to) position = use->write_position;
        if (use->read_from < e->end && e->offset < use->read_to && use->read_position > position)
            position = use->read_position;
        bh__lane *lane = &device->lanes[use->lane];
        if (position <= bh__lane_done(device, lane)) continue;
        *out_lane = lane;
        *out_position = position;
        return true;
    }
    return false;
}

/* One step towards a usable map: downloads the range, then waits for work in flight on it. The map
 * is recorded already, so new launches that conflict are refused. *out_again: call it again. May
 * release the lock. */
static bh_status prepare_range(bh__device *device, bh__managed *self, const extent *e,
                               uint32_t flags, bh__spans *kept, bool *out_again) {
    bool no_wait = flags & BH_MAP_NO_WAIT, retry = false;
    bool stopped = device->state == BH__DEVICE_STOPPED;
    *out_again = self->fetching;
    if (self->fetching) {
        if (no_wait)
            return refuse_busy("they are being copied to the host", e->offset, e->end - e->offset);
        bh__device_pause(device, BH__NS_PER_MS / 5);
        return BH_OK;
    }
    bh_status status = check_doubt(device, self, e, flags, kept);
    if (status != BH_OK) return status;
    uint64_t a, b;
    bool needed = bh__pages_next(&self->device_newest, e->from, e->whole_from, &a, &b) ||
                  bh__pages_next(&self->device_newest, e->whole_to, e->to, &a, &b);
    if (needed && stopped && !bh__is_closing(device)) {
        status = bh__managed_fetch(device, self, e->from, e->to);
        if (status != BH_OK) return bh__refuse_work(device);
        if (bh__pages_next(&self->device_newest, e->from, e->to, &a, &b))
            return refuse_stale(self, a * self->page_bytes, b * self->page_bytes);
        *out_again = true;
        return BH_OK;
    }
    if (needed && !bh__takes_work(device)) return bh__refuse_work(device);
    uint64_t first = e->from * self->page_bytes, bytes = e->to * self->page_bytes - first;
    bh__lane *lane = needed ? bh__managed_lane(device, self, first, bytes, false) : NULL;
    if (needed) {
        status = bh__managed_download(device, self, lane, e->from, e->whole_from, no_wait, &retry);
        if (status == BH_OK && !retry)
            status = bh__managed_download(device, self, lane, e->whole_to, e->to, no_wait, &retry);
        if (status == BH_E_STALE) { /* bytes of its pages, outside the range */
            uint64_t last = e->to * self->page_bytes;
            return refuse_stale(self, e->from * self->page_bytes, last);
        }
        if (status != BH_OK) return status;
        *out_again = retry;
        if (retry) return BH_OK;
    }
    uint64_t position;
    bool writes = flags & BH_MAP_WRITE;
    if (!stopped && (bh__managed_moving(device, self, first, bytes, writes, &lane, &position) ||
                     (writes && in_use(device, self->memory, e, &lane, &position)))) {
        if (no_wait) return refuse_busy("work in flight uses them", e->offset, e->end - e->offset);
        status = bh__lane_let_pass(device, lane, position);
        *out_again = true;
        return status == BH_E_STOPPED ? BH_OK : status;
    }
    if (!stopped && self->host->held_by > atomic_load(&device->queue.reaped)) {
        if (no_wait)
            return refuse_busy("a lost worker may still write them", e->offset, e->end - e->offset);
        bh__device_pause(device, BH__NS_PER_MS / 5);
        *out_again = true;
    }
    return BH_OK;
}

static void add_map(bh__managed *self, bh__map *map) {
    bh__mirror_lock();
    map->next = self->mirror->maps;
    self->mirror->maps = map;
    self->mirror->references++;
    bh__mirror_unlock();
    self->memory->references++;
}

/* Removes a map from its mirror. With the registry locked. */
static void unlink_map(bh__mirror *mirror, const bh__map *map) {
    for (bh__map **link = &mirror->maps; *link; link = &(*link)->next) {
        if (*link != map) continue;
        *link = map->next;
        return;
    }
}

static void drop_map(bh__device *device, bh__managed *self, bh__map *map) {
    bh__mirror *mirror = self->mirror;
    bh__mirror_lock();
    unlink_map(mirror, map);
    bh__mirror_unlock();
    free(map);
    bh__memory_release(device, self->memory);
    bh__mirror_release(mirror);
}

bh_status bh_managed_map(bh_buffer handle, uint64_t offset, uint64_t bytes, uint32_t flags,
                         void **out_pointer) {
    if (check_flags(flags) != BH_OK) return bh__last()->status;
    bh__device *device;
    bh__buffer *buffer = bh__managed_lock(handle, "map", offset, bytes, &device);
    if (!buffer) return bh__last()->status;
    if (bh__driver_managed_of(buffer->memory)) {
        bh__driver_managed_refuse_host(buffer->memory, "map");
        bh__device_unlock(device);
        return bh__last()->status;
    }
    buffer = bh__managed_unleased(device, handle, "map", offset, bytes,
                                  flags & BH_MAP_WRITE ? BH_ACCESS_OUT : BH_ACCESS_IN,
                                  !(flags & BH_MAP_NO_WAIT));
    if (!buffer) {
        bh__device_unlock(device);
        return bh__last()->status;
    }
    bh__managed *self = buffer->memory->managed;
    uint64_t at = buffer->offset + offset;
    bh__map *map = NULL;
    bh_status status = check_overlap(self, at, bytes, flags);
    if (status == BH_OK) {
        map = malloc(sizeof *map);
        if (!map)
            status =
                bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a map");
    }
    if (status == BH_OK) {
        *map = (bh__map){.offset = at, .bytes = bytes, .flags = flags};
        add_map(self, map); /* retains `self` while the lock is released */
        extent e = extent_of(self, at, bytes, flags);
        bool again = true;
        bh__spans doubt = {0};
        while (status == BH_OK && again)
            status = prepare_range(device, self, &e, flags, &doubt, &again);
        if (status == BH_OK) bh__managed_written_back(self, e.from, e.to);
        if (status == BH_OK && (flags & BH_MAP_WRITE)) {
            bh__pages_remove(&self->device_newest, e.from, e.to);
            bh__pages_add(&self->host_newest, e.from, e.to);
        }
        if (status == BH_OK && out_pointer) *out_pointer = self->mirror->pointer + at;
        bh_error why = *bh__last();
        for (uint32_t i = 0; status != BH_OK && i < doubt.count; i++)
            bh__doubt_add(device, self->memory, doubt.list[i].offset, doubt.list[i].bytes,
                          device->queue.stamp);
        free(doubt.list);
        if (status != BH_OK) {
            drop_map(device, self, map);
            status = bh__refuse_with(&why);
        }
    }
    bh__device_unlock(device);
    return status;
}

static bh__map *find_map(const bh__mirror *mirror, const void *pointer, uint64_t bytes) {
    uint64_t offset = (uint64_t)((const uint8_t *)pointer - mirror->pointer);
    for (bh__map *map = mirror->maps; map; map = map->next) {
        if (map->offset == offset && map->bytes == bytes) return map;
    }
    return NULL;
}

static bh_status refuse_map(const void *pointer, uint64_t bytes) {
    return bh__refuse(BH_E_INVALID, "pass the pointer and the size of a map that is held, once",
                      "%llu bytes at %p are not mapped", (ull)bytes, pointer);
}

/* Uploads pages that the program wrote, where advice says that the device uses them next. If a
 * queue is full, the next launch uploads them. */
static void upload_advised(bh__device *device, bh__managed *self, const bh__map *map) {
    if (!(map->flags & BH_MAP_WRITE) || !bh__takes_work(device) || self->memory->references == 1 ||
        !bh__advice_has(self->advice, BH_ADVISE_PREFER_DEVICE, map->offset, map->bytes))
        return;
    bh_error before = *bh__last();
    uint64_t to = bh__page_to(self, map->offset + map->bytes);
    bh__lane *lane = bh__managed_lane(device, self, map->offset, map->bytes, true);
    for (uint64_t page = bh__page_from(self, map->offset); page < to; page++) {
        bool retry;
        uint64_t end = page;
        while (end < to && bh__advice_has(self->advice, BH_ADVISE_PREFER_DEVICE,
                                          end * self->page_bytes, self->page_bytes))
            end++;
        if (end > page && bh__managed_upload(device, self, lane, page, end, true, &retry) != BH_OK)
            break;
        page = end;
    }
    *bh__last() = before;
}

/* Returns true, with the thread's error, in the policy callback of this device, which may be
 * closed. */
static bool refused_in_policy(uint64_t handle) {
    bh_error before = *bh__last();
    bh__device *device = bh__device_enter(handle);
    *bh__last() = before;
    if (!device) return false;
    bool refused = bh__in_policy(device);
    if (refused) bh__refuse_in_policy();
    bh__ticket_leave(device);
    return refused;
}

bh_status bh_managed_unmap(const void *pointer, uint64_t bytes) {
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh__mirror_lock();
    bh__mirror *mirror = bh__mirror_find(pointer);
    bool held = mirror && find_map(mirror, pointer, bytes);
    uint64_t owner = held ? mirror->device : 0;
    if (held) mirror->references++;
    bh__mirror_unlock();
    if (!held) return refuse_map(pointer, bytes);

    if (refused_in_policy(owner)) {
        bh__mirror_release(mirror);
        return BH_E_INVALID;
    }
    bh_error before = *bh__last();
    bh__device *device = bh__device_lock(owner, BH__KIND_DEVICE, "device", false);
    if (!device) *bh__last() = before; /* it was closed; only the map is left */
    bh__mirror_lock();
    bh__map *map = find_map(mirror, pointer, bytes);
    bh__managed *self = device ? mirror->managed : NULL;
    if (map) unlink_map(mirror, map);
    bh__mirror_unlock();
    if (map && self) {
        if (map->flags & BH_MAP_WRITE) {
            /* They already are, unless another unmap has uploaded a page that both maps share. */
            bh__pages_add(&self->host_newest, bh__page_from(self, map->offset),
                          bh__page_to(self, map->offset + map->bytes));
        }
        upload_advised(device, self, map);
        bh__memory_release(device, self->memory);
    }
    if (device) bh__device_unlock(device);
    if (map) bh__mirror_release(mirror); /* the map's */
    bh__mirror_release(mirror);          /* this call's */
    if (!map) return refuse_map(pointer, bytes);
    free(map);
    return BH_OK;
}

/* ---- prefetch ---- */

/* Prefetch must not move pages that are mapped to write. */
static bh_status check_unmapped(const bh__managed *self, const extent *e) {
    for (const bh__map *map = self->mirror->maps; map; map = map->next) {
        if (!(map->flags & BH_MAP_WRITE) || bh__page_from(self, map->offset) >= e->to ||
            bh__page_to(self, map->offset + map->bytes) <= e->from)
            continue;
        return bh__refuse(
            BH_E_BUSY, "unmap it with bh_managed_unmap first",
            "bytes %llu to %llu are mapped to write; the prefetch is of bytes %llu to "
            "%llu",
            (ull)map->offset, (ull)(map->offset + map->bytes), (ull)e->offset, (ull)e->end);
    }
    return BH_OK;
}

/* The moves and the request behind them are submitted without waiting, or not at all. */
static bh_status check_room(bh__device *device, const bh__pages *pages, const extent *e,
                            const bh__submission *behind) {
    uint32_t moves = 0;
    uint64_t begin, end;
    for (uint64_t from = e->from; bh__pages_next(pages, from, e->to, &begin, &end); from = end)
        moves++;
    return bh__submit_room_plain(device, behind, 1, moves);
}

/* The uploads of these bytes that are on their way, whoever has submitted them. */
static void find_uploads(const bh__managed *self, const bh__use *use,
                         uint64_t positions[BH__MAX_LANES]) {
    memset(positions, 0, BH__MAX_LANES * sizeof *positions);
    for (uint32_t i = 0; i < self->host->use_count; i++) {
        const bh__lane_use *other = &self->host->uses[i];
        if (other->read_from < use->offset + use->bytes && use->offset < other->read_to)
            positions[other->lane] = other->read_position;
    }
}

static bh_status prefetch(bh__device *device, bh__managed *self, const extent *e, uint32_t where,
                          bh__lane *lane, bool no_block, bool *out_retry, bh_ticket *out) {
    /* The ticket belongs to a separate request behind the moves: cancelling it cancels no move. It
     * fails if one of them does, and comes after all that write the host's copy, as its reader. */
    bool up = where == BH_TO_DEVICE;
    uint64_t first = e->from * self->page_bytes, uploads[BH__MAX_LANES];
    bh__use uses[2] = {{.memory = self->host,
                        .offset = first,
                        .bytes = bh__page_end(self, e->to) - first,
                        .access = BH_ACCESS_IN},
                       {.memory = self->memory, .access = BH_ACCESS_IN}}; /* no bytes: keeps it */
    bh__submission behind = {.lane = lane,
                             .op = BH__OP_SKIP,
                             .idempotent = true,
                             .no_block = no_block,
                             .tells = up ? BH__TELLS_UPLOADS : BH__TELLS_DOWNLOADS,
                             .uses = uses,
                             .use_count = 2};
    bh_status status = check_unmapped(self, e);
    if (status != BH_OK) return status;
    if (up) bh__managed_collect(device, self, e->from, e->to);
    if (no_block)
        status = check_room(device, up ? &self->host_newest : &self->device_newest, e, &behind);
    if (status != BH_OK) return status;
    status = (up ? bh__managed_upload : bh__managed_download)(device, self, lane, e->from, e->to,
                                                              no_block, out_retry);
    if (status != BH_OK || *out_retry) return status;
    if (up) {
        find_uploads(self, &uses[0], uploads);
        behind.after = uploads;
    }
    return bh__submit_plain(device, &behind, out_retry, out);
}

/* Called with the lock held, which is released at times: finds the buffer again each time. */
static bh_status prefetch_mirror(bh__device *device, bh_buffer handle, uint64_t offset,
                                 uint64_t bytes, uint32_t where, const bh_submit_options *options,
                                 bh_ticket *out) {
    bool no_block = options->flags & BH_SUBMIT_NO_BLOCK, retry;
    bh_status status;
    do {
        retry = false;
        bh__buffer *buffer = bh__managed_get(device, handle, "prefetch", offset, bytes);
        bh__lane *lane = buffer ? bh__lane_get(device, options->lane) : NULL;
        if (!lane) return bh__last()->status;
        bh__managed *self = buffer->memory->managed;
        extent e = extent_of(self, buffer->offset + offset, bytes, 0);
        status = prefetch(device, self, &e, where, lane, no_block || lane->no_block, &retry, out);
        if (status == BH_OK && !retry) self->tally.prefetches++;
    } while (status == BH_OK && retry);
    return status;
}

bh_status bh_managed_prefetch(bh_buffer handle, uint64_t offset, uint64_t bytes, uint32_t where,
                              const bh_submit_options *given, bh_ticket *out) {
    const uint32_t known = BH_SUBMIT_IDEMPOTENT | BH_SUBMIT_NO_BLOCK | BH_SUBMIT_WAIT;
    bh_submit_options options;
    if (bh__submit_options_take(given, known, &options) != BH_OK ||
        bh__submit_options_once(&options, "a prefetch") != BH_OK)
        return bh__last()->status;
    if (where != BH_TO_DEVICE && where != BH_TO_HOST)
        return bh__refuse(BH_E_INVALID, "use BH_TO_DEVICE or BH_TO_HOST", "where is %u", where);
    bh__device *device;
    bh__buffer *buffer = bh__managed_lock(handle, "prefetch", offset, bytes, &device);
    if (!buffer) return bh__last()->status;
    bool by_driver = bh__driver_managed_of(buffer->memory) != NULL;
    bh_ticket ticket;
    bh_status status = BH_OK;
    if (device->state == BH__DEVICE_STOPPED) status = bh__refuse_with(&device->stop_reason);
    if (status == BH_OK && options.after_count) status = bh__barrier_submit(device, &options);
    if (status == BH_OK)
        status = (by_driver ? bh__driver_managed_prefetch : prefetch_mirror)(
            device, handle, offset, bytes, where, &options, &ticket);
    bh__device_unlock(device);
    if (status == BH_OK && out) *out = ticket;
    return status == BH_OK && options.flags & BH_SUBMIT_WAIT ? bh_wait(ticket, BH_FOREVER) : status;
}
