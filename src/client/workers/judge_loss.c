/* SPDX-License-Identifier: Apache-2.0 */
/* Judging a loss: each request in flight gets a verdict, the memory that it may have written is
 * marked doubtful, and requests that must wait for the lost worker's end are held. Supervisor only,
 * with the device locked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/core/handles.h"
#include "client/managed/managed.h"
#include "client/module/module.h"
#include "client/observe/trace.h"
#include "client/process/worker_process.h"
#include "client/queue/doubt.h"
#include "client/queue/resolve.h"
#include "client/queue/uses.h"
#include "client/queue/walk.h"
#include "client/sequence/sequence.h"
#include "client/workers/judge_loss.h"

/* Writes that are tracked by range. If there are more, a write counts as one of the whole
 * memory. */
enum { MAX_WRITTEN = 4096 };

/* ---- doubt ---- */

static void note_written(bh__judgement *self, const bh__use *use, uint64_t stamp) {
    if (self->writes && self->write_count < MAX_WRITTEN)
        self->writes[self->write_count] =
            (bh__written){use->memory, use->offset, use->bytes, stamp};
    self->write_count++;
}

static void hold_outputs(bh__judgement *self, bh__lane *lane, const bh__shadow *shadow) {
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        const bh__use *use = bh__use_at(self->device, lane, shadow, i);
        if (!(use->access & BH_ACCESS_OUT)) continue;
        note_written(self, use, shadow->stamp);
        use->memory->held_by = self->loss;
        if (use->memory->doubt_loss != self->loss || use->memory->doubt_stamp < shadow->stamp) {
            use->memory->doubt_stamp = shadow->stamp;
        }
        use->memory->doubt_loss = self->loss;
    }
}

/* Driver-managed memory belonged to the lost worker. Its successor has other memory at another
 * address, so a request that contains the old address cannot run, not even to overwrite the
 * memory. */
static const bh__memory *driver_managed_use(const bh__judgement *self, bh__lane *lane,
                                            const bh__shadow *shadow) {
    for (uint32_t i = 0; self->device->managed.driver_managed && i < shadow->use_count; i++) {
        const bh__memory *memory = bh__use_at(self->device, lane, shadow, i)->memory;
        if (bh__driver_managed_of(memory)) return memory;
    }
    return NULL;
}

static bool needs_stale_module(const bh__shadow *shadow) {
    if (shadow->sequence) return bh__sequence_lacks_state(shadow->sequence, shadow->stamp);
    return shadow->kernel && bh__module_lacks_state(shadow->module, shadow->stamp);
}

static bool is_quarantined(const bh__shadow *shadow) {
    if (shadow->sequence) return bh__sequence_is_quarantined(shadow->sequence);
    return shadow->kernel && shadow->kernel->quarantined;
}

/* Returns true if a request in flight that was submitted after this stamp writes bytes that `in`
 * reads. */
static bool is_overwritten(const bh__judgement *self, const bh__use *in, uint64_t stamp) {
    if (in->memory->doubt_loss != self->loss || in->memory->doubt_stamp <= stamp) return false;
    if (!self->writes || self->write_count > MAX_WRITTEN) return true;
    for (uint32_t i = 0; i < self->write_count; i++) {
        const bh__written *out = &self->writes[i];
        if (out->memory == in->memory && out->stamp > stamp &&
            out->offset < in->offset + in->bytes && in->offset < out->offset + out->bytes)
            return true;
    }
    return false;
}

/* Returns true if a request in flight is safe to run again from the start: neither it nor a later
 * request can have changed what it reads. A later request in flight may have overwritten its inputs
 * even if this one has not completed. */
static bool can_be_resent(const bh__judgement *self, bh__lane *lane, const bh__shadow *shadow) {
    if (!shadow->idempotent || bh__request_reads_doubt(self->device, lane, shadow)) return false;
    if (!self->resend && (shadow->kernel || shadow->sequence)) return false;
    if (needs_stale_module(shadow) || driver_managed_use(self, lane, shadow)) return false;
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        const bh__use *in = bh__use_at(self->device, lane, shadow, i);
        if (!(in->access & BH_ACCESS_IN)) continue;
        /* Moves into a mirror bring results of this request or of later ones: no conflict. */
        if (!in->memory->mirror && is_overwritten(self, in, shadow->stamp)) return false;
        for (uint32_t k = 0; k < shadow->use_count; k++) {
            const bh__use *out = bh__use_at(self->device, lane, shadow, k);
            if ((out->access & BH_ACCESS_OUT) && out->memory == in->memory &&
                out->offset < in->offset + in->bytes && in->offset < out->offset + out->bytes) {
                return false;
            }
        }
    }
    return true;
}

/* Returns the most recent loss whose worker must have ended before the request runs. */
static uint64_t hold_for(const bh__judgement *self, bh__lane *lane, const bh__shadow *shadow) {
    uint64_t reaped = atomic_load(&self->device->queue.reaped), hold = 0;
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        uint64_t by = bh__use_at(self->device, lane, shadow, i)->memory->held_by;
        if (by > reaped && by > hold) hold = by;
    }
    return hold;
}

/* ---- judge ---- */

static void resolve(bh__judgement *self, bh__lane *lane, bh__shadow *shadow, bh_status status) {
    bh__device *device = self->device;
    bool blamed = status == BH_E_FAULT || status == BH_E_DEADLINE;
    bh_error detail = self->blame;
    if (blamed && !self->certain) /* one of several candidates: its name comes first */
        bh__blame_candidate(self, lane->index, shadow, &detail);
    bh__kernel *kernel = blamed ? bh__blamed_kernel(self, lane->index, shadow) : shadow->kernel;
    const bh__memory *driver_managed =
        status == BH_E_STALE ? driver_managed_use(self, lane, shadow) : NULL;
    if (driver_managed) bh__driver_managed_refuse_lost(driver_managed, &detail);
    bh__request_fail(device, lane, shadow,
                     &(bh__failure){.status = status,
                                    .certain = blamed ? self->certain : 1,
                                    .loss = self->loss,
                                    .kernel = kernel ? kernel->name : NULL,
                                    .detail = blamed || driver_managed ? &detail : NULL},
                     true);
    switch (status) {
    case BH_E_FAULT:
    case BH_E_DEADLINE:
        self->summary->failed++;
        break;
    case BH_E_LOST:
        self->summary->lost++;
        break;
    default:
        self->summary->stale++;
        device->counters.stale_refusals += status == BH_E_STALE;
    }
}

static void judge_one(void *context, bh__lane *lane, bh__shadow *shadow) {
    bh__judgement *self = context;
    if (shadow->resolved) return;
    bool in_flight = shadow->start < self->taken[lane->index];
    bh__request *request = bh__ring_request(lane->ring, self->device->queue.length, shadow->start);
    if (bh__is_to_blame(self, lane, shadow)) {
        resolve(self, lane, shadow, self->cause->status);
    } else if (in_flight && !can_be_resent(self, lane, shadow)) {
        resolve(self, lane, shadow, BH_E_LOST);
    } else if (!in_flight && is_quarantined(shadow)) {
        resolve(self, lane, shadow, BH_E_QUARANTINED);
    } else if (!in_flight &&
               (bh__request_reads_doubt(self->device, lane, shadow) || needs_stale_module(shadow) ||
                driver_managed_use(self, lane, shadow))) {
        resolve(self, lane, shadow, BH_E_STALE);
    } else {
        if (in_flight) self->summary->resent++;
        if (shadow->kernel) shadow->module->launched = true;
        if (shadow->sequence) bh__sequence_launched(shadow->sequence);
        atomic_store(&request->hold, in_flight ? self->loss : hold_for(self, lane, shadow));
    }
}

/* A request that already has a verdict may still be running. The culprit is the kernel of the first
 * blamed request. */
static void hold_one(void *context, bh__lane *lane, bh__shadow *shadow) {
    bh__judgement *self = context;
    self->unfinished += !shadow->resolved;
    bool known = self->certain || self->one_kernel;
    if (!self->culprit && known && !shadow->resolved && bh__is_to_blame(self, lane, shadow))
        self->culprit = bh__blamed_kernel(self, lane->index, shadow);
    if (shadow->start < self->taken[lane->index] && (!shadow->resolved || shadow->running))
        hold_outputs(self, lane, shadow);
}

/* A module's variables are lost with the worker. Values that the program set are restored; values
 * that kernels wrote are not. While the policy decides, the program may accept the module and
 * launch from it again: that does not count for what was submitted before. */
static void judge_modules(bh__judgement *self) {
    bh__variables_settle(self->device);
    for (bh__module *module = self->device->module.list; module; module = module->next) {
        if (module->loaded && module->launched && bh__module_keeps_state(module)) {
            module->stale = true;
            module->lost_until = self->device->queue.stamp;
        }
        module->launched = false;
    }
}

static uint32_t count_suspect(const bh__device *device) {
    uint32_t count = 0;
    for (const bh__memory *memory = device->queue.doubted; memory; memory = memory->next_doubted)
        count += memory->references > 0;
    return count;
}

static void count_launches(void *context, bh__lane *lane, bh__shadow *shadow) {
    bh__judgement *self = context;
    (void)lane;
    if (shadow->resolved) return;
    self->unfinished_launches += shadow->sequence
                                     ? bh__sequence_has(shadow->sequence, self->culprit)
                                     : shadow->kernel == self->culprit;
}

static uint32_t kind_of(const bh__cause *cause) {
    if (cause->broken) return BH_LOSS_BROKEN;
    if (cause->error.status == BH_E_NO_MEMORY || strstr(cause->error.device_name, "OUT_OF_MEMORY"))
        return BH_LOSS_NO_MEMORY;
    if (cause->stuck || cause->overdue || cause->innocent) return BH_LOSS_STUCK;
    if (cause->status == BH_E_FAULT) return BH_LOSS_FAULT;
    return cause->status == BH_E_DEADLINE ? BH_LOSS_DEADLINE : BH_LOSS_LOST;
}

static uint64_t since_1970_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * BH__NS_PER_S + (uint64_t)now.tv_nsec;
}

void bh__loss_begin(bh__device *device, const bh__cause *cause, bh_loss *summary,
                    bh__judgement *self) {
    *self = (bh__judgement){.device = device, .cause = cause, .summary = summary};
    bh__lanes_freeze(device, self->taken);
    self->loss = ++device->losses;
    bh__process_kill(&device->workers.active->process);
    bh__blame_find(self);
    *summary = (bh_loss){.size = sizeof *summary,
                         .cause = cause->status,
                         .generation = device->generation,
                         .certain = self->certain,
                         .kind = kind_of(cause),
                         .number = self->loss,
                         .time_ns = since_1970_ns()};
    snprintf(summary->message, sizeof summary->message, "%s", self->blame.message);
    /* Requests that are submitted from now on run on the next worker. */
    judge_modules(self);
    bh__driver_managed_lose(device);
    self->writes = malloc(MAX_WRITTEN * sizeof *self->writes);
    bh__requests_walk(device, hold_one, self);
    if (self->culprit) {
        snprintf(summary->kernel, sizeof summary->kernel, "%s", self->culprit->name);
        bh__requests_walk(device, count_launches, self);
    }
    atomic_store(&device->state, BH__DEVICE_REPLACING);
}

void bh__loss_judge(bh__judgement *self, const bh_verdict *verdict) {
    bh__device *device = self->device;
    bh_loss *summary = self->summary;
    self->resend = verdict->resend;
    if (verdict->quarantine && self->culprit && !self->culprit->quarantined) {
        self->culprit->quarantined = true;
        device->counters.quarantines++;
    }
    bh__requests_walk(device, judge_one, self);
    free(self->writes);
    self->writes = NULL;
    /* If a later part of a call failed, requests that depend on the earlier parts fail too. */
    bh__dependents_resolve(device);
    summary->suspect_buffers = count_suspect(device);
    device->counters.faults += self->cause->status == BH_E_FAULT;
    device->counters.deadlines += self->cause->status == BH_E_DEADLINE;
    device->counters.requests_resent += summary->resent;
    bh__trace_instant(device, "worker lost", "generation", device->generation, summary->message);
}

/* ---- stopping a device ---- */

typedef struct stopping {
    bh__device *device;
    bh__failure verdict;
} stopping;

/* The outputs of a request that no worker has started are unchanged. */
static void stop_one(void *context, bh__lane *lane, bh__shadow *shadow) {
    stopping *self = context;
    bh__request_fail(self->device, lane, shadow, &self->verdict, shadow->start < lane->begun);
}

void bh__device_stop(bh__device *device, const bh_error *reason, bh_status verdict_status) {
    bh_error verdict = *reason;
    verdict.status = verdict_status;
    device->stop_reason = *reason;
    device->stop_reason.status = BH_E_STOPPED;
    stopping self = {device, {.status = verdict_status, .certain = 1, .detail = &verdict}};
    bh__requests_walk(device, stop_one, &self);
    bh__managed_judge(device);
    bh__managed_strand(device);
    atomic_store(&device->state, BH__DEVICE_STOPPED);
    atomic_fetch_add(&device->queue.epoch, 1);
}
