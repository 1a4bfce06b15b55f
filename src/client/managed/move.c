/* SPDX-License-Identifier: Apache-2.0 */
/* Managed buffers: which pages move, and when. All is decided with the device locked when a request
 * is submitted, and undone if the request fails. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/core/handles.h"
#include "client/managed/internal.h"
#include "client/managed/managed.h"
#include "client/memory/memory.h"
#include "client/queue/doubt.h"
#include "client/queue/queue.h"
#include "client/queue/resolve.h"
#include "client/queue/uses.h"
#include "client/queue/walk.h"

typedef unsigned long long ull;

/* ---- moves ---- */

/* Clears `writing_back` once no write-back is in flight. */
static void update_writing_back(bh__device *device, bh__managed *self) {
    bh__lane *lane;
    uint64_t position;
    if (self->writing_back.set &&
        !bh__managed_moving(device, self, 0, self->memory->bytes, false, &lane, &position))
        bh__managed_written_back(self, 0, self->pages);
}

/* Submits one copy of bytes, to the host or to the device. */
static bh_status copy(bh__device *device, bh__managed *self, bh__lane *lane, bool to_host,
                      uint64_t offset, uint64_t bytes, bool no_block, bool *out_retry) {
    bh__memory *memory = self->memory;
    uint32_t here = to_host ? BH_ACCESS_OUT : BH_ACCESS_IN, there = BH_ACCESS_INOUT ^ here;
    bh__use uses[2] = {{.memory = memory, .offset = offset, .bytes = bytes, .access = there},
                       {.memory = self->host, .offset = offset, .bytes = bytes, .access = here}};
    uint64_t address = memory->address + offset;
    if (to_host && device->managed.fetching) {
        if (no_block)
            return bh__refuse(BH_E_BUSY, "try again", "the device stops and its results are read");
        bh__device_pause(device, BH__NS_PER_MS / 5);
        *out_retry = true;
        return BH_OK;
    }
    if (to_host) update_writing_back(device, self);
    bh__submission submission = {.lane = lane,
                                 .op = to_host ? BH__OP_READ : BH__OP_WRITE,
                                 .idempotent = true,
                                 .finishes = to_host,
                                 .no_block = no_block,
                                 .waits = !no_block, /* a call that waits, on any lane */
                                 .uses = uses,
                                 .use_count = 2,
                                 .copy = {.target = to_host ? offset : address,
                                          .source = to_host ? address : offset,
                                          .bytes = bytes,
                                          .host = self->host->host_id}};
    bh_status status = bh__submit_plain(device, &submission, out_retry, NULL);
    if (status != BH_OK || *out_retry) return status;
    if (to_host)
        bh__pages_add(&self->writing_back, bh__page_from(self, offset),
                      bh__page_to(self, offset + bytes));
    bh__managed_totals *totals = &device->memory.managed;
    *(to_host ? &self->tally.bytes_to_host : &self->tally.bytes_to_device) += bytes;
    *(to_host ? &totals->to_host : &totals->to_device) += bytes;
    *(to_host ? &self->tally.moves_to_host : &self->tally.moves_to_device) += 1;
    return BH_OK;
}

/* Moves pages [from, to). */
static bh_status move(bh__device *device, bh__managed *self, bh__lane *lane, bool to_host,
                      uint64_t from, uint64_t to, bool no_block, bool *out_retry) {
    uint64_t offset = from * self->page_bytes, bytes = bh__page_end(self, to) - offset;
    bh_status status = copy(device, self, lane, to_host, offset, bytes, no_block, out_retry);
    if (status == BH_OK && !*out_retry)
        bh__pages_remove(to_host ? &self->device_newest : &self->host_newest, from, to);
    return status;
}

bh_status bh__managed_upload(bh__device *device, bh__managed *self, bh__lane *lane, uint64_t from,
                             uint64_t to, bool no_block, bool *out_retry) {
    uint64_t begin, end;
    *out_retry = false;
    while (bh__pages_next(&self->host_newest, from, to, &begin, &end)) {
        bh_status status = move(device, self, lane, false, begin, end, no_block, out_retry);
        if (status != BH_OK || *out_retry) return status;
        from = end;
    }
    return BH_OK;
}

bh_status bh__managed_download(bh__device *device, bh__managed *self, bh__lane *lane, uint64_t from,
                               uint64_t to, bool no_block, bool *out_retry) {
    uint64_t begin, end;
    *out_retry = false;
    while (bh__pages_next(&self->device_newest, from, to, &begin, &end)) {
        bh_status status = move(device, self, lane, true, begin, end, no_block, out_retry);
        if (status != BH_OK || *out_retry) return status;
        from = end;
    }
    return BH_OK;
}

static bool page_suspect(bh__device *device, const bh__managed *self, uint64_t page) {
    return bh__doubt_reads(device, self->memory, page * self->page_bytes, self->page_bytes,
                           UINT64_MAX);
}

/* Downloads the intact bytes of a page with suspect ones. No request that writes the buffer is in
 * flight. */
static bh_status download_part(bh__device *device, bh__managed *self, bh__lane *lane, uint64_t page,
                               bool *out_retry) {
    uint64_t from, to, end = bh__page_end(self, page + 1);
    for (uint64_t at = page * self->page_bytes;
         bh__managed_intact(device, self, at, end, &from, &to); at = to) {
        bh_status status = copy(device, self, lane, true, from, to - from, true, out_retry);
        if (status != BH_OK || *out_retry) return status;
    }
    bh__pages_add(&self->in_part, page, page + 1);
    return BH_OK;
}

/* Downloads what is not in doubt of all pages of `device_newest`. */
static bh_status download_good(bh__device *device, bh__managed *self, bh__lane *lane,
                               bool *out_retry) {
    *out_retry = false;
    if (!bh__doubt_any(self->memory))
        return bh__managed_download(device, self, lane, 0, self->pages, true, out_retry);
    uint64_t begin, end;
    for (uint64_t from = 0; bh__pages_next(&self->device_newest, from, self->pages, &begin, &end);
         from = end) {
        while (begin < end) {
            uint64_t good = begin;
            while (good < end && !page_suspect(device, self, good)) good++;
            if (good > begin) {
                bh_status status = move(device, self, lane, true, begin, good, true, out_retry);
                if (status != BH_OK || *out_retry) return status;
            }
            for (begin = good; begin < end && page_suspect(device, self, begin); begin++) {
                if (bh__pages_has(&self->in_part, begin)) continue;
                bh_status status = download_part(device, self, lane, begin, out_retry);
                if (status != BH_OK || *out_retry) return status;
            }
        }
    }
    return BH_OK;
}

void bh__managed_written_back(bh__managed *self, uint64_t from, uint64_t to) {
    bh__pages_remove(&self->writing_back, from, to);
}

bool bh__managed_moving(bh__device *device, const bh__managed *self, uint64_t offset,
                        uint64_t bytes, bool reads, bh__lane **out_lane, uint64_t *out_position) {
    for (uint32_t i = 0; i < self->host->use_count; i++) {
        const bh__lane_use *use = &self->host->uses[i];
        uint64_t position = 0;
        if (use->write_from < offset + bytes && offset < use->write_to)
            position = use->write_position;
        if (reads && use->read_from < offset + bytes && offset < use->read_to &&
            use->read_position > position)
            position = use->read_position;
        bh__lane *lane = &device->lanes[use->lane];
        if (position <= bh__lane_done(device, lane)) continue;
        *out_lane = lane;
        *out_position = position;
        return true;
    }
    return false;
}

/* ---- what the program wrote ---- */

/*
 * The program must not write a page between launches while the device's copy is the newest or its
 * write-back is in flight: for such a page the device's copy wins. A page in doubt is an exception,
 * if writes are tracked by page: its mirror has the contents from before the lost launch, and what
 * the program wrote since.
 */
typedef struct writer {
    bh__device *device;
    bh__managed *self;
} writer;

static void note_written(void *context, uint64_t from_byte, uint64_t to_byte) {
    bh__device *device = ((writer *)context)->device;
    bh__managed *self = ((writer *)context)->self;
    uint64_t from = bh__page_from(self, from_byte), to = bh__page_to(self, to_byte);
    if (self->device_newest.set == 0 && self->writing_back.set == 0) {
        bh__pages_add(&self->host_newest, from, to);
        return;
    }
    bool tracked = self->tracking == BH_TRACKING_PAGES;
    for (uint64_t page = from; page < to; page++) {
        if (bh__pages_has(&self->writing_back, page)) continue;
        if (bh__pages_has(&self->device_newest, page)) {
            if (!tracked || !page_suspect(device, self, page)) continue;
            bh__pages_remove(&self->device_newest, page, page + 1);
        }
        bh__pages_add(&self->host_newest, page, page + 1);
    }
}

void bh__managed_collect(bh__device *device, bh__managed *self, uint64_t from, uint64_t to) {
    if (self->tracking == BH_TRACKING_NONE) return;
    update_writing_back(device, self);
    uint64_t first = from * self->page_bytes, last = to * self->page_bytes;
    if (self->tracking == BH_TRACKING_PAGES &&
        bh__track_collect(self->mirror, first, last, note_written, &(writer){device, self}))
        return;
    /* Tracking failed: the program may have closed its descriptor. */
    self->tracking = BH_TRACKING_ALL_WRITTEN;
    note_written(&(writer){device, self}, first, last);
}

/* ---- submitting work that uses managed buffers ---- */

static bh_status check_attached(const bh__managed *self, const bh__submission *submission) {
    if (self->attach == BH_ATTACH_GLOBAL) return BH_OK;
    if (self->attach == BH_ATTACH_HOST)
        return bh__refuse(
            BH_E_BUSY, "attach it to a lane, or globally, with bh_managed_attach",
            "the managed buffer at 0x%llx is attached to the host: no lane may use it",
            (ull)self->memory->address);
    if (atomic_load(&submission->lane->id) == self->lane_id) return BH_OK;
    return bh__refuse(BH_E_BUSY, "use its lane, or attach it globally with bh_managed_attach",
                      "the managed buffer at 0x%llx is attached to another lane, not to lane %u",
                      (ull)self->memory->address, submission->lane->index);
}

/* Pages move as a whole, so a map conflicts with all work on its pages. */
static bh_status check_maps(const bh__managed *self, const bh__use *use) {
    uint64_t from = bh__page_from(self, use->offset);
    uint64_t to = bh__page_to(self, use->offset + use->bytes);
    for (const bh__map *map = self->mirror->maps; map; map = map->next) {
        if (bh__page_from(self, map->offset) >= to ||
            bh__page_to(self, map->offset + map->bytes) <= from)
            continue;
        bool writes = map->flags & BH_MAP_WRITE;
        if (!writes && !(use->access & BH_ACCESS_OUT)) continue;
        return bh__refuse(
            BH_E_BUSY, "unmap it with bh_managed_unmap first",
            "bytes %llu to %llu of the managed buffer at 0x%llx are mapped to %s; this would %s "
            "bytes %llu to %llu (maps count in whole pages of %llu)",
            (ull)map->offset, (ull)(map->offset + map->bytes), (ull)self->memory->address,
            writes ? "write" : "read", use->access & BH_ACCESS_OUT ? "write" : "read",
            (ull)use->offset, (ull)(use->offset + use->bytes), (ull)self->page_bytes);
    }
    return BH_OK;
}

bh_status bh__managed_check_maps(const bh__use *use) {
    return use->memory->managed ? check_maps(use->memory->managed, use) : BH_OK;
}

/* Submits the write-back of a launch's outputs right behind it, where advice says that the host
 * uses them next. If the queue is full, they are written back later. */
static void write_back_advised(bh__device *device, bh__managed *self, bh__lane *lane, uint64_t from,
                               uint64_t to) {
    if (!bh__advice_has(self->advice, BH_ADVISE_PREFER_HOST, from * self->page_bytes,
                        (to - from) * self->page_bytes))
        return;
    bh_error before = *bh__last();
    for (uint64_t page = from; page < to; page++) {
        uint64_t end = page;
        while (end < to && bh__advice_has(self->advice, BH_ADVISE_PREFER_HOST,
                                          end * self->page_bytes, self->page_bytes))
            end++;
        bool retry;
        if (end > page &&
            bh__managed_download(device, self, lane, page, end, true, &retry) != BH_OK)
            break;
        page = end;
    }
    *bh__last() = before;
}

static void count_write_back(bh__device *device, bh__managed *self) {
    if (self->to_write_back_count++ == 0) atomic_fetch_add(&device->managed.to_write_back, 1);
}

static void uncount_write_back(bh__device *device, bh__managed *self) {
    if (--self->to_write_back_count == 0) atomic_fetch_sub(&device->managed.to_write_back, 1);
}

static void expect_write_back(bh__device *device, bh__managed *self, bh__lane *lane,
                              uint64_t before, uint64_t position) {
    bh__writers *writers = &self->to_write_back[lane->index];
    if (writers->last == 0) {
        lane->to_write_back++;
        count_write_back(device, self);
    }
    bh__writers_add(writers, before, position);
}

static void forget_lane(bh__device *device, bh__managed *self, uint32_t lane) {
    if (self->to_write_back[lane].last == 0) return;
    bh__writers_forget(&self->to_write_back[lane]);
    device->lanes[lane].to_write_back--;
    uncount_write_back(device, self);
}

static void set_owed(bh__device *device, bh__managed *self, uint64_t lanes) {
    if (lanes && !self->owed) count_write_back(device, self);
    if (!lanes && self->owed) uncount_write_back(device, self);
    self->owed = lanes;
}

void bh__managed_forget(bh__device *device, bh__managed *self) {
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) forget_lane(device, self, i);
    set_owed(device, self, 0);
}

/* The request and the moves before it are on the lane from `before` up to `position`. */
static void note_outputs(bh__device *device, const bh__submission *submission, uint64_t before,
                         uint64_t position) {
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const bh__use *use = &submission->uses[i];
        bh__managed *self = use->memory->managed;
        if (!self || !(use->access & BH_ACCESS_OUT) || use->bytes == 0) continue;
        uint64_t from = bh__page_from(self, use->offset);
        uint64_t to = bh__page_to(self, use->offset + use->bytes);
        bh__pages_remove(&self->host_newest, from, to);
        bh__pages_add(&self->device_newest, from, to);
        bh__pages_remove(&self->in_part, from, to);
        if (self->flags & BH_BUFFER_TRANSPARENT) {
            expect_write_back(device, self, submission->lane, before, position);
        }
    }
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const bh__use *use = &submission->uses[i];
        if (!use->memory->managed || !(use->access & BH_ACCESS_OUT) || use->bytes == 0) continue;
        write_back_advised(device, use->memory->managed, submission->lane,
                           bh__page_from(use->memory->managed, use->offset),
                           bh__page_to(use->memory->managed, use->offset + use->bytes));
    }
}

/* Checks that the request may use its buffers now. *out_any: it uses managed ones. */
static bh_status check_use(bh__device *device, const bh__submission *submission, bool *out_any,
                           bool *out_retry) {
    *out_any = *out_retry = false;
    if (device->managed.addresses_unknown) {
        bh_status status = bh__driver_managed_settle(device, submission, out_retry);
        if (status != BH_OK || *out_retry) return status;
    }
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const bh__use *use = &submission->uses[i];
        const bh__managed *self = use->memory->managed;
        if (!self || use->bytes == 0) continue;
        *out_any = true;
        bh_status status = check_attached(self, submission);
        if (status == BH_OK) status = check_maps(self, use);
        if (status != BH_OK && submission->busy) *submission->busy = BH_REASON_BUFFER_BUSY;
        if (status != BH_OK) return status;
    }
    return BH_OK;
}

/* Finds the pages that must move to the device before the request, and returns in how many
 * moves. */
static uint32_t collect_moves(bh__device *device, const bh__submission *submission) {
    uint32_t moves = 0;
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const bh__use *use = &submission->uses[i];
        bh__managed *self = use->memory->managed;
        if (!self || use->bytes == 0) continue;
        uint64_t from = bh__page_from(self, use->offset), begin, end;
        uint64_t to = bh__page_to(self, use->offset + use->bytes);
        bh__managed_collect(device, self, from, to);
        for (; bh__pages_next(&self->host_newest, from, to, &begin, &end); from = end) moves++;
    }
    return moves;
}

/* Several requests: a range of pages that one would move is moved in as many parts. */
bh_status bh__managed_check_room(bh__device *device, const bh__submission *all, uint32_t count) {
    bool any, retry;
    bh_status status = check_use(device, all, &any, &retry);
    if (status != BH_OK) return status;
    uint32_t moves = any ? collect_moves(device, all) : 0;
    return bh__submit_room_plain(device, all, count, moves ? moves + count - 1 : 0);
}

bh_status bh__managed_submit(bh__device *device, const bh__submission *submission, bool *out_retry,
                             bh_ticket *out) {
    bool any, no_block = bh__no_block(submission);
    bh_status status = check_use(device, submission, &any, out_retry);
    if (status != BH_OK || *out_retry) return status;
    if (!any) return bh__submit_plain(device, submission, out_retry, out);
    uint64_t before = atomic_load(&submission->lane->tail);
    uint32_t moves = collect_moves(device, submission);
    if (moves && no_block) status = bh__submit_room_plain(device, submission, 1, moves);
    for (uint32_t i = 0; moves && status == BH_OK && i < submission->use_count; i++) {
        const bh__use *use = &submission->uses[i];
        bh__managed *self = use->memory->managed;
        if (!self || use->bytes == 0) continue;
        status =
            bh__managed_upload(device, self, submission->lane, bh__page_from(self, use->offset),
                               bh__page_to(self, use->offset + use->bytes), no_block, out_retry);
        if (*out_retry) return status;
    }
    if (status != BH_OK) return status;
    bh_ticket ticket = {0, 0};
    status = bh__submit_plain(device, submission, out_retry, &ticket);
    if (status != BH_OK || *out_retry) return status;
    note_outputs(device, submission, before, ticket.sequence);
    if (out) *out = ticket;
    return BH_OK;
}

/* ---- moves that failed ---- */

/* The managed buffer whose pages the request moves. NULL: it is not a move. */
static bh__managed *moved_by(bh__device *device, bh__lane *lane, const bh__shadow *shadow) {
    if (shadow->use_count != 2) return NULL;
    bh__managed *self = bh__use_at(device, lane, shadow, 0)->memory->managed;
    return self && bh__use_at(device, lane, shadow, 1)->memory == self->host ? self : NULL;
}

bool bh__managed_moves(bh__device *device, bh__lane *lane, const bh__shadow *shadow) {
    return device->managed.list && moved_by(device, lane, shadow);
}

/* A move failed: its pages are where they were before. */
static void undo_move(bh__device *device, bh__lane *lane, bh__shadow *shadow) {
    bh__managed *self = moved_by(device, lane, shadow);
    const bh__use *use = bh__use_at(device, lane, shadow, 0);
    uint64_t from = bh__page_from(self, use->offset);
    uint64_t to = bh__page_to(self, use->offset + use->bytes);
    bool to_host = shadow->op == BH__OP_READ || use->access == BH_ACCESS_IN;
    for (uint64_t page = from; page < to; page++) {
        bh__pages *these = to_host ? &self->device_newest : &self->host_newest;
        bh__pages *others = to_host ? &self->host_newest : &self->device_newest;
        if (bh__pages_has(others, page)) continue;
        bh__pages_add(these, page, page + 1);
        /* The host's copy is newer than these suspect bytes, and the next upload overwrites
         * them. */
        if (!to_host)
            (void)bh__doubt_clear(device, self->memory, page * self->page_bytes, self->page_bytes,
                                  shadow->stamp + 1);
    }
    if (to_host) {
        bh__pages_remove(&self->writing_back, from, to);
        bh__pages_remove(&self->in_part, from, to);
    }
}

/* A move that failed. */
typedef struct failed_move {
    bh__device *device;
    const bh__memory *host;
    uint64_t offset, end, stamp;
    bh__tells tells;
    bh_status status;
} failed_move;

/* A prefetch is behind all moves that it tells of, on whatever lane: it has no answer yet. */
static void fail_prefetch(void *context, bh__lane *lane, bh__shadow *shadow) {
    const failed_move *self = context;
    if (shadow->resolved || shadow->tells != self->tells || shadow->stamp < self->stamp) return;
    const bh__use *use = bh__use_at(self->device, lane, shadow, 0);
    if (use->memory != self->host || use->offset >= self->end ||
        self->offset >= use->offset + use->bytes)
        return;
    bh_error why;
    bh__fail(&why, self->status,
             "prefetch again; first overwrite or accept (bh_buffer_accept) what is suspect",
             "bytes %llu to %llu of the prefetch of bytes %llu to %llu were not moved: %s",
             (ull)self->offset, (ull)self->end, (ull)use->offset, (ull)(use->offset + use->bytes),
             bh_status_name(self->status));
    bh__request_fail(self->device, lane, shadow,
                     &(bh__failure){.status = self->status, .certain = 1, .detail = &why}, false);
}

static void fail_prefetches(bh__device *device, bh__lane *lane, const bh__shadow *move) {
    const bh__use *host = bh__use_at(device, lane, move, 1);
    failed_move it = {.device = device,
                      .host = host->memory,
                      .offset = host->offset,
                      .end = host->offset + host->bytes,
                      .stamp = move->stamp,
                      .tells =
                          host->access == BH_ACCESS_OUT ? BH__TELLS_DOWNLOADS : BH__TELLS_UPLOADS};
    it.status = bh__verdicts_status((bh_ticket){atomic_load(&lane->id), move->start + move->slots});
    bh__requests_walk(device, fail_prefetch, &it);
}

static bool writes(bh__device *device, bh__lane *lane, const bh__shadow *shadow,
                   const bh__managed *self) {
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        const bh__use *use = bh__use_at(device, lane, shadow, i);
        if (use->memory == self->memory && (use->access & BH_ACCESS_OUT))
            return !bh__managed_moves(device, lane, shadow);
    }
    return false;
}

/* Counts the lane's unresolved requests whose results still have to be written back. Retired
 * requests have succeeded. */
static void count_writers(bh__device *device, bh__managed *self, bh__lane *lane) {
    bh__writers *writers = &self->to_write_back[lane->index];
    uint64_t first = writers->first, last = writers->last;
    bool retired = first <= lane->retired;
    uint64_t from = retired ? first : 0, to = retired ? lane->retired : 0;
    if (last <= to) return;
    for (uint64_t at = lane->retired, tail = atomic_load(&lane->tail); at < tail && at < last;) {
        const bh__shadow *shadow = bh__shadow_at(device, lane, at);
        at += shadow->slots;
        if (at < first || shadow->resolved || !writes(device, lane, shadow, self)) continue;
        if (from == 0) from = at;
        to = at;
    }
    if (from == 0)
        forget_lane(device, self, lane->index);
    else
        bh__writers_keep(writers, from, to);
}

/* If all requests failed that were to write a transparent buffer since it was written back, the
 * program's copy is as new as the device's, and what the program stores from now on counts. Suspect
 * bytes stay as they are. */
static void forget_failed_writers(bh__device *device, bh__managed *self) {
    if (self->to_write_back_count == 0) return;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++)
        if (self->to_write_back[i].last) count_writers(device, self, &device->lanes[i]);
    if (self->to_write_back_count) return;
    for (uint64_t page = 0; page < self->pages && self->device_newest.set; page++) {
        if (!bh__pages_has(&self->device_newest, page)) continue;
        if (page_suspect(device, self, page))
            bh__pages_add(&self->in_part, page, page + 1);
        else
            bh__pages_remove(&self->device_newest, page, page + 1);
    }
}

/* Failed downloads come first: if a launch wrote a page after its upload, the device's copy is the
 * newest. */
void bh__managed_judge(bh__device *device) {
    if (!device->managed.list) return;
    for (int to_host = 1; to_host >= 0; to_host--) {
        for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
            bh__lane *lane = &device->lanes[i];
            if (!lane->exists) continue;
            for (uint64_t at = lane->retired, tail = atomic_load(&lane->tail); at < tail;) {
                bh__shadow *shadow = bh__shadow_at(device, lane, at);
                at += shadow->slots;
                if (!shadow->resolved || !shadow->undo || shadow->use_count != 2) continue;
                if ((bh__use_at(device, lane, shadow, 0)->access == BH_ACCESS_IN) != (to_host == 1))
                    continue;
                shadow->undo = 0;
                if (!moved_by(device, lane, shadow)) continue;
                undo_move(device, lane, shadow);
                fail_prefetches(device, lane, shadow);
            }
        }
    }
    for (bh__managed *self = device->managed.list; self; self = self->next)
        forget_failed_writers(device, self);
}

/* ---- write-back of transparent buffers ---- */

_Static_assert(BH__MAX_LANES <= 64, "a bit for each lane");

/* The lanes with requests in flight that write the buffer. */
static uint64_t lanes_writing(bh__device *device, const bh__managed *self) {
    uint64_t lanes = 0;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        if (self->to_write_back[i].last > bh__lane_done(device, &device->lanes[i]))
            lanes |= UINT64_C(1) << i;
    }
    return lanes;
}

/* While requests in flight write the buffer, nothing is written back: it happens when they
 * complete. */
static bool leave_to_writers(bh__device *device, bh__managed *self) {
    uint64_t writing = lanes_writing(device, self);
    if (writing) set_owed(device, self, self->owed | writing);
    return writing;
}

/* Submits the write-back if needed. BH_OK: it is complete. BH_E_BUSY: it is not yet. */
static bh_status write_back(bh__device *device, bh__managed *self, bh__lane **out_lane,
                            uint64_t *out_position) {
    bh__lane *via = bh__managed_lane(device, self, 0, self->memory->bytes, false);
    bool retry;
    bh_error before = *bh__last();
    bh_status status = download_good(device, self, via, &retry);
    if (status != BH_OK) { /* the queue is full, or no host memory: retry later */
        *bh__last() = before;
        *out_lane = status == BH_E_BUSY ? via : NULL;
        *out_position = bh__lane_done(device, via) + 1;
        return BH_E_BUSY;
    }
    if (bh__managed_moving(device, self, 0, self->memory->bytes, false, out_lane, out_position))
        return BH_E_BUSY;
    /* A lost worker may still write it. */
    if (self->host->held_by > atomic_load(&device->queue.reaped)) {
        *out_lane = NULL;
        return BH_E_BUSY;
    }
    bh__managed_written_back(self, 0, self->pages);
    bh__managed_forget(device, self);
    return BH_OK;
}

/* `leave`: a buffer that requests in flight write is left to them. Otherwise BH_E_BUSY, until they
 * have ended. */
static bh_status write_back_locked(bh__device *device, bh__lane *lane, uint64_t sequence,
                                   bool leave, bh__lane **out_lane, uint64_t *out_position) {
    if (!bh__finishes_work(device))
        return bh__verdicts_status((bh_ticket){atomic_load(&lane->id), sequence});
    if (bh__lane_done(device, lane) < sequence) {
        *out_lane = lane;
        *out_position = sequence;
        return BH_E_BUSY;
    }
    bh_status status = BH_OK;
    for (bh__managed *self = device->managed.list; self; self = self->next) {
        bh__lane *via;
        uint64_t position, written = self->to_write_back[lane->index].last;
        /* Up to `sequence`, or all are complete: then it is in order to write back more. */
        bool due = written && self->to_write_back[lane->index].first <= sequence &&
                   (!leave || written <= sequence || written <= bh__lane_done(device, lane));
        if (!due && !(self->owed >> lane->index & 1)) continue;
        if (leave && leave_to_writers(device, self)) {
            if (due) forget_lane(device, self, lane->index);
            continue;
        }
        uint64_t writing = lanes_writing(device, self);
        if (writing) {
            via = &device->lanes[__builtin_ctzll(writing)];
            position = self->to_write_back[via->index].last;
        } else if (write_back(device, self, &via, &position) == BH_OK) {
            continue;
        }
        status = BH_E_BUSY;
        *out_lane = via;
        *out_position = position;
    }
    if (status == BH_OK) bh__lane_note_written_back(device, lane, sequence);
    return status;
}

static void strand(bh__device *device, const bh__managed *self, bh__lane *lane) {
    const bh__writers *writers = &self->to_write_back[lane->index];
    uint64_t told = atomic_load(&lane->written_back);
    bh__run all = {writers->first, writers->last};
    bh__run *runs = malloc((writers->gap_count + 1) * sizeof *runs);
    uint32_t count = runs ? bh__writers_runs(writers, runs) : 1;
    for (uint32_t i = 0; i < count; i++) {
        bh__run run = runs ? runs[i] : all;
        if (run.from <= told) run.from = told + 1;
        if (run.from <= run.to) bh__lane_strand(lane, run);
    }
    free(runs);
    atomic_fetch_add(&device->managed.to_write_back, 1);
}

/* A thread that was told by bh__lane_ask that a ticket is done comes to write_back_locked before it
 * tells the program, because `managed.to_write_back` is not 0. It must not become 0 again. */
void bh__managed_strand(bh__device *device) {
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (lane->to_write_back == 0 || !lane->verdicts) continue;
        for (const bh__managed *self = device->managed.list; self; self = self->next)
            if (self->to_write_back[i].last) strand(device, self, lane);
    }
}

static bh_status start_write_back(bh__device *device, bh__lane *lane, uint64_t sequence, bool leave,
                                  bh__lane **out_lane, uint64_t *out_position) {
    if (lane->index == BH__LOAD_LANE) return BH_OK;
    bh__lock_take(&device->lock);
    bh_status status = write_back_locked(device, lane, sequence, leave, out_lane, out_position);
    bh__lock_give(&device->lock);
    return status;
}

bh_status bh__managed_write_back(bh__device *device, bh__lane *lane, uint64_t sequence,
                                 bh__lane **out_lane, uint64_t *out_position) {
    return start_write_back(device, lane, sequence, true, out_lane, out_position);
}

/* Waits until `via` has passed `position`, or for a moment if `via` is NULL. */
static bh_status wait_for_write_back(bh__device *device, bh__lane *via, uint64_t position,
                                     uint64_t deadline) {
    if (via) return bh__lane_wait(device, via, (bh_ticket){0, position}, deadline);
    if (bh__now_ns() >= deadline) return BH_E_TIMEOUT;
    struct timespec pause = bh__timespec(BH__NS_PER_MS / 5);
    nanosleep(&pause, NULL);
    return BH_OK;
}

static bh_status write_back_until(bh__device *device, bh__lane *lane, uint64_t sequence, bool leave,
                                  uint64_t deadline) {
    for (;;) {
        bh__lane *via = NULL;
        uint64_t position = 0;
        bh_status status = start_write_back(device, lane, sequence, leave, &via, &position);
        if (status != BH_E_BUSY) return status;
        if (wait_for_write_back(device, via, position, deadline) == BH_E_TIMEOUT)
            return BH_E_TIMEOUT;
    }
}

bh_status bh__managed_write_back_wait(bh__device *device, bh__lane *lane, uint64_t sequence,
                                      uint64_t deadline) {
    return write_back_until(device, lane, sequence, true, deadline);
}

void bh__managed_drain(bh__device *device, bh__lane *lane, uint64_t sequence, uint64_t deadline) {
    if (atomic_load(&device->managed.to_write_back))
        (void)write_back_until(device, lane, sequence, false, deadline);
}

void bh__managed_accepting(bh__device *device, bh__managed *self, uint64_t offset, uint64_t bytes) {
    if (!(self->flags & BH_BUFFER_TRANSPARENT)) return;
    uint64_t from = bh__page_from(self, offset), to = bh__page_to(self, offset + bytes);
    bh__managed_collect(device, self, from, to);
    bh__pages_remove(&self->in_part, from, to);
}

void bh__managed_accepted(bh__device *device, bh__managed *self) {
    if (!(self->flags & BH_BUFFER_TRANSPARENT)) return;
    bh__memory *memory = self->memory;
    memory->references++;
    bh_status status = BH_OK;
    while (status == BH_OK && bh__takes_work(device) && !leave_to_writers(device, self)) {
        bh__lane *via = NULL;
        uint64_t position = 0;
        if (write_back(device, self, &via, &position) == BH_OK) break;
        bh__device_step_out(device);
        status = wait_for_write_back(device, via, position, BH__NEVER);
        bh__device_step_in(device);
    }
    if (atomic_load(&device->state) == BH__DEVICE_STOPPED && !bh__is_closing(device))
        (void)bh__managed_fetch(device, self, 0, self->pages);
    bh__memory_release(device, memory);
}
