/* SPDX-License-Identifier: Apache-2.0 */
/* Blame for a loss: finding the requests that may have caused it, and describing them. Supervisor
 * only, with the device locked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/managed/managed.h"
#include "client/memory/memory.h"
#include "client/queue/queue.h"
#include "client/queue/walk.h"
#include "client/sequence/sequence.h"
#include "client/workers/judge_loss.h"

enum {
    BLAME_BYTES = sizeof((bh_error *)0)->message,
    HEAD_BYTES = 420 /* of them for the name of a request: enough for eight steps of a sequence */
};

static bool is_blamed(const bh__judgement *self, uint32_t lane, const bh__shadow *shadow) {
    const bh__cause *cause = self->cause;
    if (cause->sequence)
        return lane == cause->lane && shadow->start + shadow->slots == cause->sequence;
    return shadow->start < self->blamed[lane];
}

bool bh__head_runs(bh__device *device, bh__lane *lane, uint64_t head) {
    bh__request *request = bh__ring_request(lane->ring, device->queue.length, head);
    if (atomic_load(&request->hold) > atomic_load(&device->queue.reaped)) return false;
    uint32_t count = request->dependency_count;
    for (uint32_t i = 0; i < count && i < BH__MAX_LANES; i++) {
        bh__dependency dependency;
        bh__payload_read(lane->ring, device->queue.length, head, i * sizeof dependency, &dependency,
                         sizeof dependency);
        if (dependency.lane < BH__MAX_LANES &&
            bh__lane_done(device, &device->lanes[dependency.lane]) < dependency.position)
            return false;
    }
    return true;
}

uint64_t bh__group_end(bh__device *device, bh__lane *lane, uint64_t position, uint64_t taken,
                       uint32_t *out_count) {
    const bh__lane_area *words = bh__lane_words(device, lane);
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

/* Finds the steps of a blamed sequence that can have been running, counted from 1. Returns false if
 * they are not known. */
static bool blamed_steps(const bh__judgement *self, uint32_t lane, const bh__shadow *shadow,
                         uint32_t *first, uint32_t *last) {
    uint32_t count = bh__sequence_step_count(shadow->sequence);
    uint64_t word = atomic_load(&atomic_load(&self->device->queue.area)->lane[lane].step);
    uint32_t done = (uint32_t)word, next = word ? (uint32_t)(word >> 32) : BH__STEP_GROUP;
    if (next > BH__STEP_GROUP) next = BH__STEP_GROUP;
    *first = self->cause->step ? self->cause->step : done + 1;
    *last = self->cause->step || next == 0 ? *first : *first + next - 1;
    if (*last < *first || *last > count) *last = count;
    return *first >= 1 && *first <= count;
}

bh__kernel *bh__blamed_kernel(const bh__judgement *self, uint32_t lane, const bh__shadow *shadow) {
    uint32_t first, last;
    if (!shadow->sequence) return shadow->kernel;
    if (!blamed_steps(self, lane, shadow, &first, &last)) return NULL;
    return bh__sequence_kernel(shadow->sequence, first, last);
}

/* The candidates of a lane are the request at its head, if it was running, and the requests that
 * complete in one group with it. All requests of a group are launches. */
static void add_candidates(bh__judgement *self, bool kernels_only) {
    const bh__cause *cause = self->cause;
    const bh__kernel *only = NULL;
    self->one_kernel = true;
    for (uint32_t i = 0; i < self->device->queue.lane_limit; i++) {
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
            const bh__kernel *kernel = bh__blamed_kernel(self, i, shadow);
            if (!only) only = kernel;
            self->one_kernel &= only && kernel == only;
            from += shadow->slots;
        }
    }
}

/* A device that faulted reports what happened, often not in which request. A fault with a device
 * code is caused by a kernel: transfers were checked before they were sent. A crash of the worker
 * may be caused by any request. */
static void find_candidates(bh__judgement *self) {
    const bh__cause *cause = self->cause;
    if (cause->status == BH_E_LOST) return;
    self->candidates = cause->sequence ? 1 : 0;
    if (cause->sequence) return;
    bool by_kernel = cause->error.device_code != 0 && !cause->broken;
    add_candidates(self, by_kernel);
    if (self->candidates == 0 && by_kernel) add_candidates(self, false);
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

/* Lists the candidates of one lane. Requests with the same name share one mention of it. */
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

/* Describes a bad address by the buffers that a request was given. */
static void describe_access(const bh__judgement *self, bh__lane *lane, uint64_t sequence,
                            uint64_t address, uint32_t bytes, bh_error *error) {
    bh__device *device = self->device;
    enum { MAX_USES = 64 };
    bh__use uses[MAX_USES];
    uint32_t count = 0;
    for (uint64_t at = lane->floor, tail = atomic_load(&lane->tail); at < tail;) {
        const bh__shadow *shadow = bh__shadow_at(device, lane, at);
        at += shadow->slots;
        if (at != sequence) continue;
        for (; count < shadow->use_count && count < MAX_USES; count++)
            uses[count] = *bh__use_at(device, lane, shadow, count);
        break;
    }
    if (bytes)
        bh__check_describe(device, uses, count, address, bytes, error);
    else
        bh__guard_describe(device, uses, count, error);
}

void bh__blame_describe(const bh__judgement *self, uint64_t address, uint32_t bytes,
                        bh_error *error) {
    const bh__cause *cause = self->cause;
    if (cause->sequence && bytes)
        describe_access(self, &self->device->lanes[cause->lane], cause->sequence, address, bytes,
                        error);
}

/* Joins the texts and cuts the end. The head always fits. */
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

/* For a fault in a known sequence: puts the sequence and the step before the message. */
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

/* Writes the message for the blamed requests. If the device did not report which request it was,
 * the message lists the candidates, as many as fit. */
static void write_blame(bh__judgement *self) {
    const bh__cause *cause = self->cause;
    self->blame = cause->error;
    self->blame.status = cause->status;
    self->certain = self->candidates <= 1;
    if (cause->sequence && cause->status != BH_E_LOST) name_sequence(self);
    bool names = bh__checked(self->device) || bh__guarded(self->device);
    if (names) bh__blame_describe(self, cause->address, cause->bytes, &self->blame);
    if (cause->sequence || self->candidates == 0) return;
    char list[320] = "", only[HEAD_BYTES] = "";
    size_t used = 0;
    bh__lane *blamed_lane = NULL;
    for (uint32_t i = 0; i < self->device->queue.lane_limit && used < sizeof list; i++) {
        bh__lane *lane = &self->device->lanes[i];
        if (!lane->exists || self->blamed[i] <= lane->floor) continue;
        blamed_lane = lane;
        bh__describe_blamed(self, i, bh__shadow_at(self->device, lane, lane->floor), only,
                            sizeof only);
        if (used) used += (size_t)snprintf(list + used, sizeof list - used, ", ");
        if (used < sizeof list)
            used += name_candidates(self, lane, list + used, sizeof list - used);
    }
    const char *reported = cause->error.message;
    if (self->candidates > 1)
        snprintf(self->blame.message, sizeof self->blame.message, "%.170s; one of: %s", reported,
                 list);
    else
        join(self->blame.message, only, ": ", reported);
    if (self->candidates == 1 && blamed_lane && bh__guarded(self->device) && cause->illegal)
        describe_access(self, blamed_lane, self->blamed[blamed_lane->index], cause->address,
                        cause->bytes, &self->blame);
}

bool bh__is_to_blame(const bh__judgement *self, bh__lane *lane, const bh__shadow *shadow) {
    bool in_flight = shadow->start < self->taken[lane->index];
    bool overdue = self->cause->status == BH_E_DEADLINE && self->cause->sequence;
    /* Moves of managed pages are never blamed: the program did not submit them and cannot repeat
     * them. */
    return (in_flight || overdue) && is_blamed(self, lane->index, shadow) &&
           !bh__managed_moves(self->device, lane, shadow);
}

void bh__blame_candidate(const bh__judgement *self, uint32_t lane, const bh__shadow *shadow,
                         bh_error *detail) {
    char own[HEAD_BYTES];
    bh__describe_blamed(self, lane, shadow, own, sizeof own);
    join(detail->message, own, ", perhaps: ", self->blame.message);
}

void bh__blame_find(bh__judgement *self) {
    find_candidates(self);
    write_blame(self);
}
