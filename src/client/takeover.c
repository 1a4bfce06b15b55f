/* SPDX-License-Identifier: Apache-2.0 */
/* Losing a worker: freeze, judge, spread doubt, hold. Everything here runs on the supervisor with
 * the device locked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/doubt.h"
#include "client/queue.h"
#include "client/resolve.h"
#include "client/takeover.h"
#include "client/trace.h"

enum { ILLEGAL_ADDRESS = 700 }; /* CUDA_ERROR_ILLEGAL_ADDRESS */

enum { MOST_PASSES = 1000 }; /* over the lanes' `done` words before the worker is killed */

enum {
    BLAME_BYTES = sizeof((bh_error *)0)->message,
    HEAD_BYTES = 420 /* of them for the name of a request: eight steps of a sequence */
};

/* As many as that are looked at one by one; beyond them a write counts as one of the whole memory. */
enum { MOST_WRITTEN = 4096 };

/* ---- freeze ---- */

/* What a worker says about positions is cut to what can be, and to where a request begins. */
static uint64_t sane_position(bh__device *device, bh__lane *lane, uint64_t position,
                              uint64_t lowest) {
    uint64_t tail = atomic_load(&lane->tail);
    if (position < lowest || position > tail) return lowest;
    return position == tail ? tail : bh__shadow_at(device, lane, position)->start;
}

/* First every lane is frozen, only then is any position read: what is done by then stays done, and
 * nothing more is taken. */
static void freeze(bh__device *device, uint64_t taken[BH__MAX_LANES]) {
    bh__area *area = atomic_load(&device->area);
    /* Before the freeze: what a worker has counted is done, and what is done by now stays so. */
    bh__counts_settle(device);
    atomic_fetch_add(&device->epoch, 1);
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) atomic_fetch_or(&area->lane[i].claim, BH__FROZEN);
    /* What anybody believed to be done is, even if the worker takes it back. */
    uint64_t answered[BH__MAX_LANES];
    for (uint32_t i = 0; i < device->lane_limit; i++)
        answered[i] = bh__answered_close(&device->lanes[i]);
    /* What was in flight may go on ending meanwhile. Only values that all lanes had at one moment
     * will do: else a request could be seen done whose source, read before, is not. */
    uint64_t done[BH__MAX_LANES] = {0};
    uint32_t passes = 0;
    for (bool changed = true; changed && passes < 2 * MOST_PASSES; passes++) {
        /* A worker gone mad may count for ever; what it says then means nothing anyway. */
        if (passes == MOST_PASSES && device->active) bh__process_kill(&device->active->process);
        changed = false;
        for (uint32_t i = 0; i < device->lane_limit; i++) {
            uint64_t now = atomic_load(&area->lane[i].done);
            changed |= now != done[i];
            done[i] = now;
        }
    }
    /* Before any lane's floor moves: what is reported is not done. What is reported later does not
     * count. */
    bh__reports_collect(device);
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (!lane->exists) continue;
        uint64_t known = sane_position(device, lane, answered[i], lane->retired);
        bh__lane_retire(device, lane, sane_position(device, lane, done[i], known));
        lane->floor = lane->retired;
        taken[i] = sane_position(
            device, lane, bh__claim_position(atomic_load(&area->lane[i].claim)), lane->floor);
        if (taken[i] > lane->begun) lane->begun = taken[i];
    }
    device->frozen = true;
    bh__trace_frozen(device, taken);
}

/* ---- blame ---- */

static bool is_blamed(const bh__judgement *self, uint32_t lane, const bh__shadow *shadow) {
    const bh__cause *cause = self->cause;
    if (cause->sequence)
        return lane == cause->lane && shadow->start + shadow->slots == cause->sequence;
    return shadow->start < self->blamed[lane];
}

bool bh__head_runs(bh__device *device, bh__lane *lane, uint64_t head) {
    bh__request *request = bh__ring_request(lane->ring, device->front->queue_length, head);
    if (atomic_load(&request->hold) > atomic_load(&device->front->reaped)) return false;
    for (uint32_t i = 0; i < request->dependency_count; i++) {
        bh__dependency dependency;
        bh__payload_read(lane->ring, device->front->queue_length, head, i * sizeof dependency,
                         &dependency, sizeof dependency);
        if (bh__lane_done(device, &device->lanes[dependency.lane]) < dependency.position)
            return false;
    }
    return true;
}

uint64_t bh__group_end(bh__device *device, bh__lane *lane, uint64_t position, uint64_t taken,
                       uint32_t *out_count) {
    const bh__lane_area *words = &atomic_load(&device->area)->lane[lane->index];
    uint64_t end = 0;
    for (uint32_t i = 0; i < BH__GROUPS; i++) {
        if (atomic_load(&words->groups[i].begin) == position)
            end = atomic_load(&words->groups[i].end);
    }
    *out_count = 0;
    do {
        position += bh__shadow_at(device, lane, position)->slots;
        ++*out_count;
    } while (position < end && position < taken && *out_count < BH__GROUP_LENGTH);
    return position;
}

/* Of a sequence that is to blame: the steps that can have been running, from 1 on. False: not
 * known. */
static bool blamed_steps(const bh__judgement *self, uint32_t lane, const bh__shadow *shadow,
                         uint32_t *first, uint32_t *last) {
    uint32_t count = bh__sequence_step_count(shadow->sequence);
    uint64_t word = atomic_load(&atomic_load(&self->device->area)->lane[lane].step);
    uint32_t done = (uint32_t)word, next = word ? (uint32_t)(word >> 32) : BH__STEP_GROUP;
    if (next > BH__STEP_GROUP) next = BH__STEP_GROUP;
    *first = self->cause->step ? self->cause->step : done + 1;
    *last = self->cause->step || next == 0 ? *first : *first + next - 1;
    if (*last < *first || *last > count) *last = count;
    return *first >= 1 && *first <= count;
}

/* The kernel that a request to blame ran, where it can only have been one. */
static bh__kernel *blamed_kernel(const bh__judgement *self, uint32_t lane,
                                 const bh__shadow *shadow) {
    uint32_t first, last;
    if (!shadow->sequence) return shadow->kernel;
    if (!blamed_steps(self, lane, shadow, &first, &last)) return NULL;
    return bh__sequence_kernel(shadow->sequence, first, last);
}

/* On each lane it can have been whatever is next to be known done, if that was running at all. Those
 * that are known done together are all launches. */
static void add_candidates(bh__judgement *self, bool kernels_only) {
    const bh__cause *cause = self->cause;
    const bh__kernel *only = NULL;
    self->one_kernel = true;
    for (uint32_t i = 0; i < self->device->lane_limit; i++) {
        bh__lane *lane = &self->device->lanes[i];
        uint64_t from = lane->floor;
        if (!lane->exists || self->taken[i] <= from || (cause->lane_known && cause->lane != i) ||
            !bh__head_runs(self->device, lane, from))
            continue;
        const bh__shadow *head = bh__shadow_at(self->device, lane, from);
        if (kernels_only && !head->kernel && !head->sequence) continue;
        uint32_t count;
        self->blamed[i] = bh__group_end(self->device, lane, from, self->taken[i], &count);
        self->candidates += count;
        while (from < self->blamed[i]) {
            const bh__shadow *shadow = bh__shadow_at(self->device, lane, from);
            const bh__kernel *kernel = blamed_kernel(self, i, shadow);
            if (!only) only = kernel;
            self->one_kernel &= only && kernel == only;
            from += shadow->slots;
        }
    }
}

/* A device that faulted says what happened, often not where. What it has a code for is a kernel's
 * doing: transfers were checked before they were sent. A crash of the worker can be anyone's. */
static void find_candidates(bh__judgement *self) {
    const bh__cause *cause = self->cause;
    if (cause->status == BH_E_LOST) return;
    self->candidates = cause->sequence ? 1 : 0;
    if (cause->sequence) return;
    bool a_kernels = cause->error.device_code != 0 && !cause->broken;
    add_candidates(self, a_kernels);
    if (self->candidates == 0 && a_kernels) add_candidates(self, false);
}

static const char *request_name(const bh__shadow *shadow) {
    switch (shadow->op) {
    case BH__OP_WRITE:
    case BH__OP_WRITE_ROWS:
        return "a write";
    case BH__OP_READ:
    case BH__OP_READ_ROWS:
        return "a read";
    case BH__OP_COPY:
    case BH__OP_COPY_ROWS:
        return "a copy";
    case BH__OP_FILL:
    case BH__OP_FILL_ROWS:
        return "a fill";
    case BH__OP_PREFETCH:
        return "a prefetch";
    case BH__OP_SEQUENCE:
        return "a sequence";
    default:
        return "a request";
    }
}

void bh__shadow_describe(const bh__shadow *shadow, uint32_t lane, char *out, size_t size) {
    unsigned long long sequence = shadow->start + shadow->slots;
    if (shadow->sequence)
        snprintf(out, size, "sequence \"%s\" (request %llu of lane %u)",
                 bh__sequence_name(shadow->sequence), sequence, lane);
    else if (!shadow->kernel)
        snprintf(out, size, "%s (request %llu of lane %u)", request_name(shadow), sequence, lane);
    else
        snprintf(out, size,
                 "kernel \"%.80s\" (launch %llu of lane %u, grid %u x %u x %u, "
                 "block %u x %u x %u)",
                 shadow->kernel->name, sequence, lane, shadow->grid[0], shadow->grid[1],
                 shadow->grid[2], shadow->block[0], shadow->block[1], shadow->block[2]);
}

/* Names the candidates of one lane: the same name with all its requests. */
static size_t name_candidates(const bh__judgement *self, bh__lane *lane, char *list, size_t room) {
    size_t used = 0;
    const char *last = NULL;
    for (uint64_t at = lane->floor; at < self->blamed[lane->index] && used < room;) {
        const bh__shadow *shadow = bh__shadow_at(self->device, lane, at);
        const char *name = shadow->kernel ? shadow->kernel->name : request_name(shadow);
        at += shadow->slots;
        bool same = last && strcmp(last, name) == 0;
        int some = same ? snprintf(list + used, room - used, ", %llu", (unsigned long long)at)
                        : snprintf(list + used, room - used, "%s%.40s (lane %u, request %llu",
                                   last ? "), " : "", name, lane->index, (unsigned long long)at);
        if (some > 0) used += (size_t)some;
        last = name;
    }
    if (used < room) used += (size_t)snprintf(list + used, room - used, ")");
    return used;
}

/* What the request to blame was given says what a bad address of it means. */
static void describe_access(bh__judgement *self, bh__lane *lane, uint64_t sequence) {
    bh__device *device = self->device;
    const bh__cause *cause = self->cause;
    enum { MOST_USES = 64 }; /* of those that are named as arguments */
    bh__use uses[MOST_USES];
    uint32_t count = 0;
    for (uint64_t at = lane->floor, tail = atomic_load(&lane->tail); at < tail;) {
        const bh__shadow *shadow = bh__shadow_at(device, lane, at);
        at += shadow->slots;
        if (at != sequence) continue;
        for (; count < shadow->use_count && count < MOST_USES; count++)
            uses[count] = *bh__use_at(device, lane, shadow, count);
        break;
    }
    if (cause->bytes)
        bh__check_describe(device, uses, count, cause->address, cause->bytes, &self->blame);
    else
        bh__guard_describe(device, uses, count, &self->blame);
}

/* Both, as far as there is room; the head is short enough to be there whole. */
static void join(char out[BLAME_BYTES], const char *head, const char *between, const char *rest) {
    size_t room = BLAME_BYTES - strlen(head) - strlen(between);
    snprintf(out, BLAME_BYTES, "%s%s%.*s", head, between, (int)room - 1, rest);
}

void bh__describe_blamed(const bh__judgement *self, uint32_t lane, const bh__shadow *shadow,
                         char *out, size_t size) {
    uint32_t first, last;
    bh__shadow_describe(shadow, lane, out, size);
    if (!shadow->sequence || !blamed_steps(self, lane, shadow, &first, &last)) return;
    size_t used = strlen(out);
    bh__sequence_describe(shadow->sequence, first, last, out + used, size - used);
}

/* A fault in a sequence whose request is known: which one and where come first. */
static void name_sequence(bh__judgement *self) {
    const bh__cause *cause = self->cause;
    bh__lane *lane = &self->device->lanes[cause->lane];
    for (uint64_t at = lane->floor, tail = atomic_load(&lane->tail); at < tail;) {
        const bh__shadow *shadow = bh__shadow_at(self->device, lane, at);
        at += shadow->slots;
        if (at != cause->sequence || !shadow->sequence) continue;
        char head[HEAD_BYTES];
        bh__describe_blamed(self, cause->lane, shadow, head, sizeof head);
        join(self->blame.message, head, ": ", cause->error.message);
        return;
    }
}

/* Makes the text for whoever is to blame. Where the device did not say which request it was, all
 * candidates are named, as far as there is room. */
static void write_blame(bh__judgement *self) {
    const bh__cause *cause = self->cause;
    self->blame = cause->error;
    self->blame.status = cause->status;
    self->certain = self->candidates <= 1;
    if (cause->sequence && cause->status != BH_E_LOST) name_sequence(self);
    bool names = bh__checked(self->device) || bh__guarded(self->device);
    if (cause->sequence && cause->bytes && names)
        describe_access(self, &self->device->lanes[cause->lane], cause->sequence);
    if (cause->sequence || self->candidates == 0) return;
    char list[320] = "", only[HEAD_BYTES] = "";
    size_t used = 0;
    bh__lane *its = NULL;
    for (uint32_t i = 0; i < self->device->lane_limit && used < sizeof list; i++) {
        bh__lane *lane = &self->device->lanes[i];
        if (!lane->exists || self->blamed[i] <= lane->floor) continue;
        its = lane;
        bh__describe_blamed(self, i, bh__shadow_at(self->device, lane, lane->floor), only,
                            sizeof only);
        if (used) used += (size_t)snprintf(list + used, sizeof list - used, ", ");
        if (used < sizeof list)
            used += name_candidates(self, lane, list + used, sizeof list - used);
    }
    const char *device_says = cause->error.message;
    if (self->candidates > 1)
        snprintf(self->blame.message, sizeof self->blame.message, "%.170s; one of: %s", device_says,
                 list);
    else
        join(self->blame.message, only, ": ", device_says);
    if (self->candidates == 1 && its && bh__guarded(self->device) &&
        cause->error.device_code == ILLEGAL_ADDRESS)
        describe_access(self, its, self->blamed[its->index]);
}

/* ---- doubt ---- */

static void note_written(bh__judgement *self, const bh__use *use, uint64_t stamp) {
    if (self->writes && self->write_count < MOST_WRITTEN)
        self->writes[self->write_count] = (bh__written){use->memory, use->offset, use->bytes, stamp};
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

/* Memory of the driver's was the lost worker's own: its successor has another, elsewhere, and what was
 * packed with the old address cannot run, not even to overwrite it. */
static const bh__memory *driven_use(const bh__judgement *self, bh__lane *lane,
                                    const bh__shadow *shadow) {
    for (uint32_t i = 0; self->device->driven && i < shadow->use_count; i++) {
        const bh__memory *memory = bh__use_at(self->device, lane, shadow, i)->memory;
        if (bh__driven_of(memory)) return memory;
    }
    return NULL;
}

static bool needs_stale_module(const bh__shadow *shadow) {
    if (shadow->sequence) return bh__sequence_is_stale(shadow->sequence);
    return shadow->kernel && shadow->module->stale;
}

static bool is_quarantined(const bh__shadow *shadow) {
    if (shadow->sequence) return bh__sequence_is_quarantined(shadow->sequence);
    return shadow->kernel && shadow->kernel->quarantined;
}

/* Whether a request in flight that came after this stamp writes bytes that `in` reads. */
static bool is_swept(const bh__judgement *self, const bh__use *in, uint64_t stamp) {
    if (in->memory->doubt_loss != self->loss || in->memory->doubt_stamp <= stamp) return false;
    if (!self->writes || self->write_count > MOST_WRITTEN) return true;
    for (uint32_t i = 0; i < self->write_count; i++) {
        const bh__written *out = &self->writes[i];
        if (out->memory == in->memory && out->stamp > stamp &&
            out->offset < in->offset + in->bytes && in->offset < out->offset + out->bytes)
            return true;
    }
    return false;
}

/* In flight, and safe to run again from the start: nothing it reads can have been changed by itself
 * or by work behind it. Its inputs may have been overwritten by a later request in flight although
 * this one is not known to be done. */
static bool can_be_resent(const bh__judgement *self, bh__lane *lane, const bh__shadow *shadow) {
    if (!shadow->idempotent || bh__request_reads_doubt(self->device, lane, shadow)) return false;
    if (needs_stale_module(shadow) || driven_use(self, lane, shadow)) return false;
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        const bh__use *in = bh__use_at(self->device, lane, shadow, i);
        if (!(in->access & BH_ACCESS_IN)) continue;
        /* What moves into a mirror meanwhile is what comes of this, or of work behind it. */
        if (!in->memory->mirror && is_swept(self, in, shadow->stamp)) return false;
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

/* The latest lost worker whose end a request must wait for, given what it touches. */
static uint64_t hold_for(const bh__judgement *self, bh__lane *lane, const bh__shadow *shadow) {
    uint64_t reaped = atomic_load(&self->device->front->reaped), hold = 0;
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
    if (blamed && !self->certain) { /* one of several: which one this is comes first */
        char own[HEAD_BYTES];
        bh__describe_blamed(self, lane->index, shadow, own, sizeof own);
        join(detail.message, own, ", perhaps: ", self->blame.message);
    }
    bh__kernel *kernel = blamed ? blamed_kernel(self, lane->index, shadow) : shadow->kernel;
    const bh__memory *driven = status == BH_E_STALE ? driven_use(self, lane, shadow) : NULL;
    if (driven) bh__driven_refuse_lost(driven, &detail);
    bh__request_fail(device, lane, shadow,
                     &(bh__failure){.status = status,
                                    .certain = blamed ? self->certain : 1,
                                    .loss = self->loss,
                                    .kernel = kernel ? kernel->name : NULL,
                                    .detail = blamed || driven ? &detail : NULL},
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
        device->tally.stale_refusals += status == BH_E_STALE;
    }
}

bool bh__is_to_blame(const bh__judgement *self, bh__lane *lane, const bh__shadow *shadow) {
    bool in_flight = shadow->start < self->taken[lane->index];
    bool overdue = self->cause->status == BH_E_DEADLINE && self->cause->sequence;
    /* A move of a managed buffer's pages is nobody's fault, and the program could not repeat it. */
    return (in_flight || overdue) && is_blamed(self, lane->index, shadow) &&
           !bh__managed_moves(self->device, lane, shadow);
}

static void judge_one(void *context, bh__lane *lane, bh__shadow *shadow) {
    bh__judgement *self = context;
    if (shadow->resolved) return;
    bool in_flight = shadow->start < self->taken[lane->index];
    bh__request *request =
        bh__ring_request(lane->ring, self->device->front->queue_length, shadow->start);
    if (bh__is_to_blame(self, lane, shadow)) {
        resolve(self, lane, shadow, self->cause->status);
    } else if (in_flight && !can_be_resent(self, lane, shadow)) {
        resolve(self, lane, shadow, BH_E_LOST);
    } else if (!in_flight && is_quarantined(shadow)) {
        resolve(self, lane, shadow, BH_E_QUARANTINED);
    } else if (!in_flight && (bh__request_reads_doubt(self->device, lane, shadow) ||
                              needs_stale_module(shadow) || driven_use(self, lane, shadow))) {
        resolve(self, lane, shadow, BH_E_STALE);
    } else {
        if (in_flight) self->summary->resent++;
        if (shadow->kernel) shadow->module->launched = true;
        if (shadow->sequence) bh__sequence_launched(shadow->sequence);
        atomic_store(&request->hold, in_flight ? self->loss : hold_for(self, lane, shadow));
    }
}

/* One that has its verdict may be running all the same. The first that is to blame names the
 * culprit. */
static void hold_one(void *context, bh__lane *lane, bh__shadow *shadow) {
    bh__judgement *self = context;
    self->unfinished += !shadow->resolved;
    bool known = self->certain || self->one_kernel;
    if (!self->culprit && known && !shadow->resolved && bh__is_to_blame(self, lane, shadow))
        self->culprit = blamed_kernel(self, lane->index, shadow);
    if (shadow->start < self->taken[lane->index] && (!shadow->resolved || shadow->running))
        hold_outputs(self, lane, shadow);
}

/* A module's variables died with the worker. What the program set is put back; what kernels left
 * there is not. */
static void judge_modules(bh__judgement *self) {
    bh__variables_settle(self->device);
    for (bh__module *module = self->device->module_list; module; module = module->next) {
        if (module->loaded && module->launched && bh__module_keeps_state(module))
            module->stale = true;
        module->launched = false;
    }
}

static uint32_t count_suspect(bh__device *device) {
    uint32_t cursor = 0, count = 0;
    for (bh__buffer *buffer; (buffer = bh__table_next(&device->buffers, &cursor));) {
        if (!buffer->is_view && bh__doubt_any(buffer->memory)) count++;
    }
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

void bh__loss_begin(bh__device *device, const bh__cause *cause, bh_loss *summary,
                    bh__judgement *self) {
    *self = (bh__judgement){.device = device, .cause = cause, .summary = summary};
    freeze(device, self->taken);
    self->loss = ++device->losses;
    bh__process_kill(&device->active->process);
    find_candidates(self);
    write_blame(self);
    *summary = (bh_loss){.size = sizeof *summary,
                         .cause = cause->status,
                         .generation = device->generation,
                         .certain = self->certain,
                         .kind = kind_of(cause),
                         .number = self->loss};
    snprintf(summary->message, sizeof summary->message, "%s", self->blame.message);
    /* Work that is submitted from now on is for the next worker. */
    judge_modules(self);
    bh__driven_lose(device);
    self->writes = malloc(MOST_WRITTEN * sizeof *self->writes);
    bh__requests_walk(device, hold_one, self);
    if (self->culprit) {
        snprintf(summary->kernel, sizeof summary->kernel, "%s", self->culprit->name);
        bh__requests_walk(device, count_launches, self);
    }
    atomic_store(&device->state, BH_DEVICE_REPLACING);
}

void bh__loss_judge(bh__judgement *self, bool quarantine) {
    bh__device *device = self->device;
    bh_loss *summary = self->summary;
    if (quarantine && self->culprit && !self->culprit->quarantined) {
        self->culprit->quarantined = true;
        device->tally.quarantines++;
    }
    bh__requests_walk(device, judge_one, self);
    free(self->writes);
    self->writes = NULL;
    /* A call that failed because of a later piece may have spoilt what was let through before. */
    bh__dependents_resolve(device);
    summary->suspect_buffers = count_suspect(device);
    device->tally.faults += self->cause->status == BH_E_FAULT;
    device->tally.deadlines += self->cause->status == BH_E_DEADLINE;
    device->tally.requests_resent += summary->resent;
    bh__trace_instant(device, "worker lost", "generation", device->generation, summary->message);
}

/* ---- the end of a device ---- */

void bh__device_freeze(bh__device *device) {
    uint64_t taken[BH__MAX_LANES];
    if (!device->frozen) freeze(device, taken);
}

typedef struct stopping {
    bh__device *device;
    bh__failure verdict;
} stopping;

/* What no worker has begun leaves its outputs as they were. */
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
    atomic_store(&device->state, BH_DEVICE_STOPPED);
    atomic_fetch_add(&device->epoch, 1);
}
