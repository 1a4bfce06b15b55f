/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that do not complete: cancelled, refused, lost, stale or stopped. Records the verdict
 * and puts its outputs in doubt. doubt_spread.c fails what depends on them. All functions are
 * called with the device locked. */
#include <stdio.h>
#include <stdlib.h>

#include "client/core/error.h"
#include "client/core/hooks.h"
#include "client/queue/doubt.h"
#include "client/queue/queue.h"
#include "client/queue/resolve.h"
#include "client/queue/walk.h"

bh__shadow *bh__shadow_ending(bh__device *device, bh__lane *lane, uint64_t sequence) {
    uint64_t tail = atomic_load(&lane->tail);
    for (uint64_t at = bh__lane_done(device, lane); at < tail && at < sequence;) {
        bh__shadow *shadow = bh__shadow_at(device, lane, at);
        at += shadow->slots;
        if (at == sequence) return shadow;
    }
    return NULL;
}

void bh__requests_walk(bh__device *device, bh__visit_fn *visit, void *context) {
    uint64_t cursor[BH__MAX_LANES];
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) cursor[i] = device->lanes[i].retired;
    for (;;) {
        bh__lane *next = NULL;
        uint64_t stamp = UINT64_MAX;
        for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
            bh__lane *lane = &device->lanes[i];
            if (!lane->exists || cursor[i] >= atomic_load(&lane->tail)) continue;
            uint64_t lane_stamp = bh__shadow_at(device, lane, cursor[i])->stamp;
            if (lane_stamp < stamp) {
                stamp = lane_stamp;
                next = lane;
            }
        }
        if (!next) return;
        bh__shadow *shadow = bh__shadow_at(device, next, cursor[next->index]);
        cursor[next->index] += shadow->slots;
        visit(context, next, shadow);
    }
}

/* ---- the verdict ---- */

/* Another thread may query the ticket at the same time. This thread raises last_failed before it
 * reads `answered`. The other raises `answered` before it reads last_failed. So at least one of
 * them sees the other's write. */
static void raise_last_failed(bh__lane *lane, uint64_t sequence) {
    if (sequence > atomic_load(&lane->last_failed)) atomic_store(&lane->last_failed, sequence);
}

bool bh__lane_reserve_verdicts(bh__device *device, bh__lane *lane) {
    if (!lane->shadow) return true; /* the load lane: see bh__module_announce */
    lane->no_room_for_verdicts =
        !bh__verdicts_reserve(lane->verdicts, device->options.queue_length);
    return !lane->no_room_for_verdicts;
}

void bh__lane_fail(bh__device *device, bh__lane *lane, const bh__failure *failure) {
    raise_last_failed(lane, failure->sequence);
    if (!bh__verdicts_fail(lane->verdicts, failure)) return;
    (void)bh__lane_reserve_verdicts(device, lane);
    lane->tally.failed++;
    if (lane->trace) bh__hooks.failed(lane, failure->sequence, failure->status);
}

void bh__lane_strand(bh__lane *lane, bh__run run) {
    raise_last_failed(lane, run.to);
    bh__verdicts_strand(lane->verdicts, run);
}

static void doubt_outputs(bh__device *device, bh__lane *lane, const bh__shadow *shadow) {
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        const bh__use *use = bh__use_at(device, lane, shadow, i);
        if (use->access & BH_ACCESS_OUT)
            bh__doubt_add(device, use->memory, use->offset, use->bytes, shadow->stamp);
    }
}

static uint64_t taken_by_worker(bh__device *device, bh__lane *lane) {
    if (device->queue.frozen) return lane->begun;
    const bh__area *area = atomic_load(&device->queue.area);
    return bh__lane_taken(device, lane, atomic_load(&area->lane[lane->index].claim));
}

/* ---- deferred verdicts ---- */

/* The verdict of a request with which a lost worker may still write host memory of the program. It
 * is recorded once that worker has ended, so that a program that sees it can reuse the memory. */
struct bh__deferred {
    struct bh__deferred *next;
    bh__lane *lane;
    uint64_t loss;
    bh__failure failure;
    bh_error detail;
    char kernel[128];
};

static bool writes_host(bh__device *device, bh__lane *lane, const bh__shadow *shadow) {
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        const bh__use *use = bh__use_at(device, lane, shadow, i);
        if ((use->access & BH_ACCESS_OUT) && use->memory->host && !use->memory->mirror) return true;
    }
    return false;
}

static bool defer_verdict(bh__device *device, bh__lane *lane, const bh__failure *failure) {
    struct bh__deferred *deferred = malloc(sizeof *deferred);
    if (!deferred) return false;
    *deferred = (struct bh__deferred){
        .next = device->queue.deferred, .lane = lane, .loss = device->losses, .failure = *failure};
    if (failure->detail) deferred->detail = *failure->detail;
    if (failure->detail) deferred->failure.detail = &deferred->detail;
    if (failure->kernel) {
        snprintf(deferred->kernel, sizeof deferred->kernel, "%s", failure->kernel);
        deferred->failure.kernel = deferred->kernel;
    }
    device->queue.deferred = deferred;
    return true;
}

bool bh__deferred_pending(const bh__device *device, const bh__lane *lane, bh_ticket ticket) {
    for (const struct bh__deferred *deferred = device->queue.deferred; deferred;
         deferred = deferred->next) {
        uint64_t sequence = deferred->failure.sequence;
        if (deferred->lane == lane &&
            (ticket.lane ? sequence == ticket.sequence : sequence <= ticket.sequence))
            return true;
    }
    return false;
}

bool bh__deferred_tell(bh__device *device, uint64_t reaped) {
    bool any = false;
    for (struct bh__deferred **link = &device->queue.deferred, *deferred; (deferred = *link);) {
        if (deferred->loss > reaped) {
            link = &deferred->next;
            continue;
        }
        *link = deferred->next;
        bh__lane_fail(device, deferred->lane, &deferred->failure);
        free(deferred);
        any = true;
    }
    return any;
}

/* ---- one request ---- */

/* The verdict is recorded before the request is skipped, so a thread that sees the lane pass the
 * request also sees the verdict. Returns false if a caller was already told that the request is
 * done: then the worker is faulty. */
static bool resolve_one(bh__device *device, bh__lane *lane, bh__shadow *shadow,
                        const bh__failure *verdict, bool damaged) {
    bh__failure own = *verdict;
    own.sequence = shadow->start + shadow->slots;
    if (!own.kernel && shadow->kernel) own.kernel = shadow->kernel->name;
    raise_last_failed(lane, own.sequence);
    if (!device->queue.frozen &&
        bh__answered_position(atomic_load(&lane->answered)) >= own.sequence) {
        bh__worker_distrust(device);
        return false;
    }
    shadow->running = shadow->start < taken_by_worker(device, lane);
    bool later = device->queue.frozen && shadow->running &&
                 device->losses > atomic_load(&device->queue.reaped) &&
                 writes_host(device, lane, shadow) && defer_verdict(device, lane, &own);
    if (!later) bh__lane_fail(device, lane, &own);
    shadow->resolved = 1;
    shadow->undo = 1;
    device->queue.dropped++;
    if (shadow->kernel) shadow->kernel->dropped++;
    if (shadow->sequence) bh__hooks.sequence_failed(shadow->sequence);
    bh__request *request = bh__ring_request(lane->ring, device->queue.length, shadow->start);
    atomic_store(&request->op, BH__OP_SKIP);
    atomic_store(&request->hold, later ? device->losses : 0);
    /* A request that is retried was begun by a lost worker, which may have written its outputs. */
    if (damaged || shadow->start < lane->begun) doubt_outputs(device, lane, shadow);
    return true;
}

/* All pieces of a call fail together. The pieces before this one are done, or the lanes are frozen.
 * If a piece has begun, all bytes that the call writes are in doubt, with the stamp of the first
 * piece that is not done. The outputs of each piece are also in doubt with its own stamp. */
static void resolve_call(bh__device *device, bh__lane *lane, const bh__shadow *piece,
                         const bh__failure *verdict, bool damaged) {
    uint64_t call = piece->call, offset = piece->call_offset, bytes = piece->call_bytes;
    bh__memory *target = bh__use_at(device, lane, piece, 0)->memory;
    bool begun = damaged || call - 1 < taken_by_worker(device, lane);
    uint64_t first = 0, tail = atomic_load(&lane->tail);
    for (uint64_t at = lane->retired; at < tail;) {
        bh__shadow *other = bh__shadow_at(device, lane, at);
        at += other->slots;
        if (other->call != call || other->resolved) continue;
        if (!resolve_one(device, lane, other, verdict, begun)) continue;
        if (!first) first = other->stamp;
    }
    if (begun && first) bh__doubt_add(device, target, offset, bytes, first);
    for (bh__call *open = device->queue.calls; open; open = open->next) {
        if (open->lane == lane && open->first == call) bh__call_fail(open, verdict);
    }
}

void bh__request_fail(bh__device *device, bh__lane *lane, bh__shadow *shadow,
                      const bh__failure *verdict, bool damaged) {
    if (shadow->resolved) return;
    if (shadow->call)
        resolve_call(device, lane, shadow, verdict, damaged);
    else
        (void)resolve_one(device, lane, shadow, verdict, damaged);
}

/* ---- calls of several requests ---- */

void bh__call_fail(bh__call *self, const bh__failure *verdict) {
    if (self->status != BH_OK) return;
    self->status = verdict->status;
    if (verdict->detail)
        self->error = *verdict->detail;
    else
        bh__fail(&self->error, verdict->status, "submit it again",
                 "a part of the transfer did not complete: %s", bh_status_name(verdict->status));
    self->error.status = verdict->status;
}

void bh__call_piece(bh__device *device, bh__call *self, bh__lane *lane, uint64_t start,
                    bh__shadow *shadow) {
    if (self->first == 0) {
        self->first = start + 1;
        self->lane = lane;
        self->next = device->queue.calls;
        device->queue.calls = self;
    }
    shadow->call = self->first;
    shadow->call_offset = self->offset;
    shadow->call_bytes = self->bytes;
}

void bh__call_end(bh__device *device, bh__call *self, bh_status status) {
    if (self->first == 0) return;
    bh__call **link = &device->queue.calls;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    if (status == BH_OK || self->status != BH_OK) return;
    /* Some pieces are queued, and the rest will not be submitted. Pieces that the worker has taken
     * run; no caller has a ticket for them. PAUSED keeps it from taking the others while they are
     * cancelled. */
    bh_error why = *bh__last();
    bh__lane *lane = self->lane;
    bh__failure verdict = {.status = status, .certain = 1, .detail = &why};
    _Atomic uint64_t *claim = &bh__lane_words(device, lane)->claim;
    if (!device->queue.frozen) atomic_fetch_or(claim, BH__PAUSED);
    uint64_t taken = taken_by_worker(device, lane), tail = atomic_load(&lane->tail);
    bool begun = self->first - 1 < taken;
    for (uint64_t at = bh__lane_done(device, lane); at < tail;) {
        bh__shadow *shadow = bh__shadow_at(device, lane, at);
        at += shadow->slots;
        if (shadow->call == self->first && !shadow->resolved && shadow->start >= taken)
            (void)resolve_one(device, lane, shadow, &verdict, begun);
    }
    if (begun) bh__doubt_add(device, self->target, self->offset, self->bytes, device->queue.stamp);
    bh__dependents_resolve(device);
    if (!device->queue.frozen) atomic_fetch_and(claim, ~BH__PAUSED);
    *bh__last() = why;
}
