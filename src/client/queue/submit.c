/* SPDX-License-Identifier: Apache-2.0 */
/* Submits a request to a lane's ring: checks its inputs for doubt, orders it after its
 * dependencies, writes it and wakes the worker. */
#include <stdio.h>
#include <string.h>

#include "base/cache_line.h"
#include "base/futex.h"
#include "base/ticks.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/jobs/jobs.h"
#include "client/queue/doubt.h"
#include "client/queue/queue.h"
#include "client/queue/resolve.h"
#include "client/queue/uses.h"

enum {
    FETCH_DISTANCE = 2, /* slots */
    TIMED_EVERY = 16    /* slots */
};

typedef struct plan {
    bh__dependency dependencies[BH__MAX_LANES];
    uint32_t dependency_count;
    uint32_t slots;
    uint64_t hold;
} plan;

static BH__COLD bh_status refuse_doubt(const bh__use *use) {
    char reader[48] = "the request";
    if (use->argument)
        snprintf(reader, sizeof reader, "argument %u (%s)", use->argument - 1,
                 use->access & BH_ACCESS_OUT ? "BH_INOUT" : "BH_IN");
    return bh__refuse(
        BH_E_STALE, "overwrite the whole buffer, or accept its contents with bh_buffer_accept",
        "%s reads data that a lost worker may have left half written: bytes %llu to "
        "%llu of the memory at 0x%llx",
        reader, (unsigned long long)use->offset, (unsigned long long)(use->offset + use->bytes),
        (unsigned long long)use->memory->address);
}

static bool reads_doubt(bh__device *device, const bh__use *use) {
    return use->access & BH_ACCESS_IN && bh__doubt_any(use->memory) &&
           bh__doubt_reads(device, use->memory, use->offset, use->bytes, UINT64_MAX);
}

static BH__COLD bh_status refuse_reading(const bh__use *use) {
    return bh__driver_managed_of(use->memory)
               ? bh__driver_managed_refuse_lost(use->memory, bh__last())
               : refuse_doubt(use);
}

bh_status bh__uses_readable(bh__device *device, const bh__use *uses, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (reads_doubt(device, &uses[i])) return refuse_reading(&uses[i]);
    }
    return BH_OK;
}

static bh_status check_doubt(bh__device *device, const bh__submission *submission, plan *out) {
    uint64_t reaped = atomic_load(&device->queue.reaped);
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const bh__use *use = &submission->uses[i];
        bh__memory *memory = use->memory;
        if (memory->held_by > reaped && memory->held_by > out->hold) out->hold = memory->held_by;
        if (reads_doubt(device, use)) {
            device->counters.stale_refusals++;
            return refuse_reading(use);
        }
    }
    return BH_OK;
}

static bh_status plan_order(bh__device *device, const bh__submission *submission, plan *out) {
    uint32_t lane = submission->lane->index;
    for (uint32_t i = 0; i < submission->use_count; i++) {
        if (!bh__memory_reserve_use(submission->uses[i].memory, lane)) {
            return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                              "no host memory to record the use of a buffer");
        }
    }
    if (device->queue.lane_limit <= 1) return BH_OK;
    uint64_t wait_for[BH__MAX_LANES] = {0};
    bool any = false;
    for (uint32_t i = 0; submission->after && i < device->queue.lane_limit; i++) {
        if (i == lane || submission->after[i] <= bh__lane_done(device, &device->lanes[i])) continue;
        wait_for[i] = submission->after[i];
        any = true;
    }
    for (uint32_t i = 0; i < submission->use_count; i++) {
        any |= bh__memory_order(device, &submission->uses[i], lane, wait_for);
    }
    for (uint32_t i = 0; any && i < device->queue.lane_limit; i++) {
        if (wait_for[i])
            out->dependencies[out->dependency_count++] = (bh__dependency){i, wait_for[i]};
    }
    return BH_OK;
}

/* Waits until the ring has room. The lock is released meanwhile. */
static bh_status wait_for_room(bh__device *device, bh__lane *lane, uint64_t position) {
    (void)bh__lane_let_pass(device, lane, position);
    return bh__takes_work(device) ? BH_OK : bh__refuse_work(device);
}

static void count(bh__device *device, const bh__submission *submission) {
    bh__lane_tally *tally = &submission->lane->tally;
    if (submission->op == BH__OP_LAUNCH) {
        submission->kernel->submitted++;
        bh__tally_launch(&tally->work, submission->launch, submission->elements,
                         device->queue.warp_mask);
    } else if (submission->op != BH__OP_SEQUENCE) { /* bh__hooks.submitted counts their steps */
        tally->transfers++;
        bh__tally_copy(&tally->work, submission->op, bh__copy_bytes(&submission->copy));
    }
}

/* Reading the clock costs more than all other counting. Only requests at a multiple of TIMED_EVERY
 * are timed; with a trace every request is, and those that ask for it. */
static uint64_t submit_ticks(const bh__device *device, const bh__submission *submission,
                             uint64_t start) {
    bool timed = start % TIMED_EVERY == 0 || device->observe.trace || submission->timed;
    return timed ? bh__ticks(device->queue.ticks_usable) : 0;
}

/* Called only where `done` was read anyway. */
static void count_depth(bh__lane *lane, uint64_t end) {
    uint64_t depth = end - lane->retired, *max = &lane->tally.depth_max;
    if (depth > *max) *max = depth;
}

static void write_request(bh__device *device, const bh__submission *submission, const plan *planned,
                          uint64_t start) {
    bh__lane *lane = submission->lane;
    uint32_t length = device->queue.length;
    uint64_t mask = length - 1;
    bh__request *request = bh__ring_request(lane->ring, length, start);
    atomic_store_explicit(&request->op, submission->op, memory_order_relaxed);
    request->slots = (uint16_t)planned->slots;
    request->dependency_count = (uint16_t)planned->dependency_count;
    request->timed = 0;
    request->sequence = start + planned->slots;
    request->submitted = submit_ticks(device, submission, start);
    atomic_store_explicit(&request->hold, planned->hold, memory_order_relaxed);
    if (submission->op == BH__OP_LAUNCH) {
        request->u.launch = *submission->launch;
    } else if (submission->op == BH__OP_SEQUENCE) {
        request->u.sequence = *submission->replay;
    } else {
        request->u.copy = submission->copy;
    }
    size_t dependency_bytes = planned->dependency_count * sizeof(bh__dependency);
    if (dependency_bytes) {
        bh__payload_write(lane->ring, length, start, 0, planned->dependencies, dependency_bytes);
        lane->tally.lane_waits++;
    }
    bh__payload_write(lane->ring, length, start, dependency_bytes, submission->params,
                      submission->param_bytes);

    for (uint32_t i = 0, use = 0; i < planned->slots; i++) {
        bh__shadow *part = &lane->shadow[(start + i) & mask];
        part->start = start;
        part->slots = planned->slots;
        for (uint32_t k = 0; k < BH__USES_PER_SLOT && use < submission->use_count; k++)
            part->uses[k] = submission->uses[use++];
    }
    bh__shadow *shadow = &lane->shadow[start & mask];
    shadow->stamp = ++device->queue.stamp;
    shadow->deadline_ns = submission->deadline_ns;
    shadow->kernel = submission->kernel;
    shadow->module = submission->module;
    shadow->sequence = submission->sequence;
    shadow->use_count = submission->use_count;
    shadow->op = submission->op;
    shadow->idempotent = submission->idempotent;
    shadow->needed = submission->needed;
    shadow->tells = (uint8_t)submission->tells;
    shadow->resolved = 0;
    shadow->call = 0;
    if (submission->call) bh__call_piece(device, submission->call, lane, start, shadow);
    if (__builtin_expect(submission->timed, 0))
        request->timed = bh__timed_note(lane, shadow, request->submitted);
    if (submission->op == BH__OP_LAUNCH) {
        memcpy(shadow->grid, submission->launch->grid, sizeof shadow->grid);
        memcpy(shadow->block, submission->launch->block, sizeof shadow->block);
    }
}

static void note_uses(const bh__submission *submission, uint64_t sequence) {
    bh__lane *lane = submission->lane;
    for (uint32_t i = 0; i < submission->use_count; i++) {
        bh__use use = submission->uses[i];
        /* A later request that uses any byte of the call's range waits for every piece: if one
         * piece fails, the whole range is in doubt. */
        if (submission->call && use.memory == submission->call->target) {
            use.offset = submission->call->offset;
            use.bytes = submission->call->bytes;
        }
        bh__memory_note_use(&use, lane, sequence);
    }
    if (submission->module) submission->module->last[lane->index] = sequence;
}

static void publish_tail(bh__device *device, bh__lane *lane, uint64_t tail) {
    bh__lane_front *front = &device->queue.front->lane[lane->index];
    atomic_store(&front->tail, tail);
    /* This thread stores the tail before it reads `asleep`. The worker's lane stores `asleep`
     * before it reads the tail. So no wakeup gets lost. */
    bh__lane_area *area = bh__lane_words(device, lane);
    if (atomic_load(&area->asleep) && atomic_exchange(&area->asleep, 0)) {
        bh__futex_wake(&area->asleep, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    }
}

/* The worker has read the next slots one round of the ring ago. They are fetched for writing before
 * they are needed: from another processor's cache, or from memory, that takes longer than one
 * launch. bench-boundary shows it (bare_slot). */
BH__FETCHER fetch_ahead(bh__lane *lane, uint32_t length, uint64_t end) {
    uint64_t position = end + FETCH_DISTANCE;
    const char *next = (const char *)bh__ring_request(lane->ring, length, position);
    const char *shadow = (const char *)&lane->shadow[position & (length - 1)];
    for (int line = 0; line < 2; line++) __builtin_prefetch(next + line * BH__CACHE_LINE, 1);
    for (int line = 0; line < 3; line++) __builtin_prefetch(shadow + line * BH__CACHE_LINE, 1);
}

/* The slots that a request with these dependencies takes. */
static uint32_t slots_of(const bh__submission *submission, uint32_t dependency_count) {
    uint32_t slots =
        bh__slots_for(dependency_count * sizeof(bh__dependency) + submission->param_bytes);
    uint32_t use_slots = (submission->use_count + BH__USES_PER_SLOT - 1) / BH__USES_PER_SLOT;
    return slots > use_slots ? slots : use_slots;
}

static BH__COLD bh_status refuse_full(const bh__device *device, const bh__lane *lane,
                                      uint64_t needed) {
    bh__refuse(BH_E_BUSY, "wait for earlier work, or open the device with a larger queue_length",
               "the queue of lane %u is full: %llu of %u slots are in use, %llu are needed",
               lane->index, (unsigned long long)(atomic_load(&lane->tail) - lane->retired),
               device->queue.length, (unsigned long long)needed);
    bh__last()->reason = BH_REASON_QUEUE_FULL;
    return BH_E_BUSY;
}

/* The page moves before a request (`moves`) depend on what the request depends on and on earlier
 * moves: on other lanes at most. */
bh_status bh__submit_room_plain(bh__device *device, const bh__submission *all, uint32_t count,
                                uint32_t moves) {
    if (!bh__takes_work(device)) return bh__refuse_work(device);
    bh__lane *lane = all->lane;
    plan planned = {.dependency_count = 0};
    bh_status status = plan_order(device, all, &planned);
    if (status != BH_OK) return status;
    uint32_t others = moves ? device->queue.lane_limit : planned.dependency_count;
    uint64_t needed = (uint64_t)count * slots_of(all, others) +
                      moves * (uint64_t)bh__slots_for(others * sizeof(bh__dependency));
    uint64_t used = atomic_load(&lane->tail) - bh__lane_done(device, lane);
    /* A single request may have more moves than the queue takes. They stay if it is busy then, and
     * the next attempt has fewer. */
    bool in_parts = moves && count == 1;
    if (needed <= device->queue.length - used || (in_parts && used == 0)) return BH_OK;
    if (needed <= device->queue.length || in_parts) return refuse_full(device, lane, needed);
    return bh__refuse(
        BH_E_UNSUPPORTED,
        "open the device with a larger queue_length, use memory from bh_host_alloc, or "
        "let the call wait",
        "the call needs %llu slots of a queue of %u and must not wait", (unsigned long long)needed,
        device->queue.length);
}

bh_status bh__submit_plain(bh__device *device, const bh__submission *submission, bool *out_retry,
                           bh_ticket *out) {
    *out_retry = false;
    /* Checked on every attempt: the lock may have been released since the call began. */
    if (__builtin_expect(!bh__takes_work(device), 0) &&
        !(submission->finishes && bh__finishes_work(device)))
        return bh__refuse_work(device);
    if (submission->call && submission->call->status != BH_OK)
        return bh__refuse_with(&submission->call->error);
    bh__lane *lane = submission->lane;
    if (__builtin_expect(lane->no_room_for_verdicts, 0) && !bh__lane_reserve_verdicts(device, lane))
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for the results of more requests");
    if (__builtin_expect(submission->timed, 0) && !bh__timed_reserve(lane))
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory, or leave BH_SUBMIT_TIMED out",
                          "no host memory for the times of %d requests", BH__TIMED);
    uint32_t length = device->queue.length;
    plan planned;
    planned.dependency_count = 0;
    planned.hold = 0;
    bh_status status = check_doubt(device, submission, &planned);
    if (status == BH_OK) status = plan_order(device, submission, &planned);
    if (status != BH_OK) return status;

    planned.slots = slots_of(submission, planned.dependency_count);
    if (planned.slots > length / 2) {
        return bh__refuse(
            BH_E_LAUNCH, "open the device with a larger queue_length, or pass fewer buffers",
            "the request needs %u slots of a queue of %u; one request may use at most half of them",
            planned.slots, length);
    }
    uint64_t start = atomic_load_explicit(&lane->tail, memory_order_relaxed);
    uint64_t end = start + planned.slots;
    /* Reading `done` takes its cache line from the worker, so it is read only when the ring looks
     * full and now and then. */
    if (end - lane->retired > length || (end - lane->retired > length / 4 && end % 32 == 0)) {
        (void)bh__lane_done(device, lane);
        if (end - lane->retired <= length) count_depth(lane, end);
    }
    if (end - lane->retired > length) {
        if (bh__no_block(submission)) return refuse_full(device, lane, planned.slots);
        *out_retry = true;
        return wait_for_room(device, lane, end - length);
    }

    write_request(device, submission, &planned, start);
    note_uses(submission, end);
    count(device, submission);
    if (__builtin_expect(submission->sequence || device->observe.trace, 0))
        bh__hooks.submitted(device, submission, start, end);
    atomic_store_explicit(&lane->tail, end, memory_order_release);
    publish_tail(device, lane, end);
    fetch_ahead(lane, length, end);
    bh__watch_begin(device);
    if (submission->deadline_ns) bh__watch_deadline(device, submission->deadline_ns);
    if (out) *out = (bh_ticket){atomic_load_explicit(&lane->id, memory_order_relaxed), end};
    return BH_OK;
}
