/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that do not complete. Whatever keeps one from it (cancel, refusal, loss, stale input,
 * stop) comes here: it gets its verdict, what it would have written is decided about, and so is
 * everything queued that depends on it. With the device locked. */
#include "client/resolve.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/doubt.h"
#include "client/queue.h"
#include "client/trace.h"

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
    for (uint32_t i = 0; i < device->lane_limit; i++) cursor[i] = device->lanes[i].retired;
    for (;;) {
        bh__lane *next = NULL;
        uint64_t stamp = UINT64_MAX;
        for (uint32_t i = 0; i < device->lane_limit; i++) {
            bh__lane *lane = &device->lanes[i];
            if (!lane->exists || cursor[i] >= atomic_load(&lane->tail)) continue;
            uint64_t its = bh__shadow_at(device, lane, cursor[i])->stamp;
            if (its < stamp) {
                stamp = its;
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

/* While the worker runs, somebody may be asking. Raised first, `answered` looked at second; who asks
 * notes what is answered first and looks for failures second: one of the two sees the other. */
static void raise_last_failed(bh__lane *lane, uint64_t sequence) {
    if (sequence > atomic_load(&lane->last_failed)) atomic_store(&lane->last_failed, sequence);
}

void bh__lane_fail(bh__lane *lane, const bh__failure *failure) {
    raise_last_failed(lane, failure->sequence);
    if (!bh__history_fail(lane->history, failure)) return;
    lane->tally.failed++;
    bh__trace_verdict(lane, failure->sequence, failure->status);
}

static void doubt_outputs(bh__device *device, bh__lane *lane, const bh__shadow *shadow) {
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        const bh__use *use = bh__use_at(device, lane, shadow, i);
        if (use->access & BH_ACCESS_OUT)
            bh__doubt_add(device, use->memory, use->offset, use->bytes, shadow->stamp);
    }
}

static uint64_t taken_by_worker(bh__device *device, const bh__lane *lane) {
    if (device->frozen) return lane->begun;
    const bh__area *area = atomic_load(&device->area);
    return bh__claim_position(atomic_load(&area->lane[lane->index].claim));
}

/* ---- verdicts that are told later ---- */

/* The verdict of a request that a lost worker may still be executing, into memory that the program
 * itself can see: told once that worker is gone, so that the program can use the memory again. */
struct bh__late {
    struct bh__late *next;
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

static bool tell_later(bh__device *device, bh__lane *lane, const bh__failure *failure) {
    struct bh__late *late = malloc(sizeof *late);
    if (!late) return false;
    *late = (struct bh__late){
        .next = device->late, .lane = lane, .loss = device->losses, .failure = *failure};
    if (failure->detail) late->detail = *failure->detail;
    if (failure->detail) late->failure.detail = &late->detail;
    if (failure->kernel) {
        snprintf(late->kernel, sizeof late->kernel, "%s", failure->kernel);
        late->failure.kernel = late->kernel;
    }
    device->late = late;
    return true;
}

bool bh__late_pending(const bh__device *device, const bh__lane *lane, bh_ticket ticket) {
    for (const struct bh__late *late = device->late; late; late = late->next) {
        uint64_t its = late->failure.sequence;
        if (late->lane == lane && (ticket.lane ? its == ticket.sequence : its <= ticket.sequence))
            return true;
    }
    return false;
}

bool bh__late_tell(bh__device *device, uint64_t reaped) {
    bool any = false;
    for (struct bh__late **link = &device->late, *late; (late = *link);) {
        if (late->loss > reaped) {
            link = &late->next;
            continue;
        }
        *link = late->next;
        bh__lane_fail(late->lane, &late->failure);
        free(late);
        any = true;
    }
    return any;
}

/* ---- one request ---- */

/* The verdict comes first: whoever finds the request passed finds it too. False: somebody was told
 * that it is done, by a worker gone mad. */
static bool resolve_one(bh__device *device, bh__lane *lane, bh__shadow *shadow,
                        const bh__failure *verdict, bool damaged) {
    bh__failure own = *verdict;
    own.sequence = shadow->start + shadow->slots;
    if (!own.kernel && shadow->kernel) own.kernel = shadow->kernel->name;
    raise_last_failed(lane, own.sequence);
    if (!device->frozen && bh__answered_position(atomic_load(&lane->answered)) >= own.sequence) {
        bh__worker_is_mad(device);
        return false;
    }
    shadow->running = shadow->start < taken_by_worker(device, lane);
    bool later = device->frozen && shadow->running &&
                 device->losses > atomic_load(&device->front->reaped) &&
                 writes_host(device, lane, shadow) && tell_later(device, lane, &own);
    if (!later) bh__lane_fail(lane, &own);
    shadow->resolved = 1;
    shadow->undo = 1;
    device->dropped++;
    if (shadow->kernel) shadow->kernel->dropped++;
    if (shadow->sequence) bh__sequence_dropped(shadow->sequence);
    bh__request *request = bh__ring_request(lane->ring, device->front->queue_length, shadow->start);
    atomic_store(&request->op, BH__OP_SKIP);
    atomic_store(&request->hold, later ? device->losses : 0);
    /* One that is sent again was begun by a lost worker, whatever becomes of it now. */
    if (damaged || shadow->start < lane->begun) doubt_outputs(device, lane, shadow);
    return true;
}

/* All pieces of a call fare alike. Those before this one are done, or the lanes are frozen. If one has
 * begun, all that the call was to write is in doubt: since the first of them that is not done, and each
 * piece since itself. */
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
    for (bh__call *open = device->calls; open; open = open->next) {
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

/* ---- what depends on it ---- */

bool bh__request_reads_doubt(bh__device *device, bh__lane *lane, const bh__shadow *shadow) {
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        const bh__use *use = bh__use_at(device, lane, shadow, i);
        if ((use->access & BH_ACCESS_IN) &&
            bh__doubt_reads(device, use->memory, use->offset, use->bytes, shadow->stamp))
            return true;
    }
    return false;
}

typedef struct cascade {
    bh__device *device;
    bool any;
} cascade;

static void resolve_stale(void *context, bh__lane *lane, bh__shadow *shadow) {
    cascade *self = context;
    bh__device *device = self->device;
    if (shadow->resolved || !bh__request_reads_doubt(device, lane, shadow)) return;
    bh__request_fail(device, lane, shadow, &(bh__failure){.status = BH_E_STALE, .certain = 1},
                        true);
    self->any |= shadow->resolved;
    device->tally.stale_refusals += shadow->resolved;
}

/* One round settles everything in the order of submission. Another is needed where a call failed by
 * a later piece, and with it earlier ones. */
void bh__dependents_resolve(bh__device *device) {
    cascade self = {device, true};
    while (device->doubted && self.any) {
        self.any = false;
        bh__requests_walk(device, resolve_stale, &self);
    }
    bh__managed_judge(device);
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
        self->next = device->calls;
        device->calls = self;
    }
    shadow->call = self->first;
    shadow->call_offset = self->offset;
    shadow->call_bytes = self->bytes;
}

void bh__call_end(bh__device *device, bh__call *self, bh_status status) {
    if (self->first == 0) return;
    bh__call **link = &device->calls;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    if (status == BH_OK || self->status != BH_OK) return;
    /* Some pieces are queued and the others never will be. Those that are taken run; nobody has a
     * ticket for them. The others must not be taken while they are given up. */
    bh_error why = *bh__last();
    bh__lane *lane = self->lane;
    bh__failure verdict = {.status = status, .certain = 1, .detail = &why};
    _Atomic uint64_t *claim = &atomic_load(&device->area)->lane[lane->index].claim;
    if (!device->frozen) atomic_fetch_or(claim, BH__PAUSED);
    uint64_t taken = taken_by_worker(device, lane), tail = atomic_load(&lane->tail);
    for (uint64_t at = bh__lane_done(device, lane); at < tail;) {
        bh__shadow *shadow = bh__shadow_at(device, lane, at);
        at += shadow->slots;
        if (shadow->call == self->first && !shadow->resolved && shadow->start >= taken)
            (void)resolve_one(device, lane, shadow, &verdict, true);
    }
    bh__doubt_add(device, self->target, self->offset, self->bytes, device->stamp);
    bh__dependents_resolve(device);
    if (!device->frozen) atomic_fetch_and(claim, ~BH__PAUSED);
    *bh__last() = why;
}
