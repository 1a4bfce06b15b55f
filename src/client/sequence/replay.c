/* SPDX-License-Identifier: Apache-2.0 */
/* Replays of sequences, and what other rooms ask about a sequence. Each version of the steps has
 * its own place in shared memory and keeps it until the requests that use it have completed. */
#include <stdio.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/launch/launch.h"
#include "client/module/module.h"
#include "client/queue/queue.h"
#include "client/sequence/sequence.h"
#include "client/sequence/steps.h"

/* A lane with requests in flight that use the version. NULL: none. */
static bh__lane *version_user(bh__device *device, const bh__sequence *self, uint32_t version) {
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        uint64_t last = self->version_last[version][i];
        if (last > lane->retired && last > bh__lane_done(device, lane)) return lane;
    }
    return NULL;
}

/* Copies the steps as they are now to a free version. If all versions are in use, waits with the
 * lock released and sets *retry. */
static bh_status publish(bh__device *device, bh__sequence *self, bool no_block, bool *retry) {
    *retry = false;
    if (!self->dirty) return BH_OK;
    uint32_t oldest = self->version % (BH__VERSIONS - 1) + 1, version = oldest;
    bh__lane *oldest_user = NULL; /* of the oldest version; a second query could find none */
    do {
        bh__lane *user = version_user(device, self, version);
        if (version == oldest) oldest_user = user;
        if (!user) {
            memcpy(self->versions + version * self->version_bytes, self->image,
                   self->version_bytes);
            self->version = version;
            self->serial++;
            self->dirty = false;
            return BH_OK;
        }
        version = version % (BH__VERSIONS - 1) + 1;
    } while (version != oldest);
    if (no_block) {
        return bh__refuse(BH_E_BUSY, "wait for earlier submissions of it",
                          "sequence \"%s\": the maximum of %d changed versions is in flight",
                          self->name, BH__VERSIONS - 1);
    }
    *retry = true;
    uint64_t last = self->version_last[oldest][oldest_user->index];
    (void)bh__lane_let_pass(device, oldest_user, last);
    return bh__takes_work(device) ? BH_OK : bh__refuse_work(device);
}

static bh_status check_kernels(bh__device *device, const bh__sequence *self) {
    for (uint32_t i = 0; i < self->kernel_count; i++) {
        bh__kernel *kernel = self->kernels[i];
        if (!(kernel->quarantined | kernel->module->stale)) continue;
        bh__launch check;
        bh_launch_options options = BH_INIT(options);
        bh__sequence_check(&check, device, kernel, NULL, &options);
        return bh__kernel_check(&check);
    }
    return BH_OK;
}

static bh_status replay(bh__device *device, bh__sequence *self, const bh_submit_options *options,
                        bool *retry, bh_ticket *out) {
    bh__lane *lane = bh__lane_get(device, options->lane);
    bool no_block = options->flags & BH_SUBMIT_NO_BLOCK || (lane && lane->no_block);
    bh_status status = lane ? check_kernels(device, self) : bh__last()->status;
    if (status == BH_OK) status = publish(device, self, no_block, retry);
    if (status != BH_OK || *retry) return status;
    for (uint32_t i = 0; i < self->total_count; i++)
        self->uses[i] = bh__sequence_use(self, &self->total[i]);
    uint64_t after[BH__MAX_LANES];
    if (options->after_count &&
        bh__after_take(device, options->after, options->after_count, after) != BH_OK)
        return bh__last()->status;
    bh__sequence_body body = {.id = self->number,
                              .version = self->version,
                              .serial = self->serial,
                              .repeat = options->repeat ? options->repeat : 1};
    bh__submission submission = {.lane = lane,
                                 .op = BH__OP_SEQUENCE,
                                 .idempotent = (options->flags & BH_SUBMIT_IDEMPOTENT) != 0,
                                 .no_block = no_block,
                                 .timed = (options->flags & BH_SUBMIT_TIMED) != 0,
                                 .deadline_ns = options->deadline_ns ? options->deadline_ns
                                                                     : device->options.deadline_ns,
                                 .uses = self->uses,
                                 .use_count = self->total_count,
                                 .sequence = self,
                                 .replay = &body,
                                 .after = options->after_count ? after : NULL};
    status = bh__submit(device, &submission, retry, out);
    if (status == BH_OK && !*retry) bh__sequence_launched(self);
    return status;
}

bh_status bh_sequence_submit(bh_sequence handle, const bh_submit_options *given, bh_ticket *out) {
    bh_submit_options options;
    const uint32_t known =
        BH_SUBMIT_IDEMPOTENT | BH_SUBMIT_NO_BLOCK | BH_SUBMIT_WAIT | BH_SUBMIT_TIMED;
    if (bh__submit_options_take(given, known, &options) != BH_OK) return bh__last()->status;
    bh_ticket ticket;
    bh__device *device;
    bh__sequence *self = bh__sequence_lock(handle, BH__SEQUENCE_READY, &device);
    if (!self) return bh__last()->status;
    bh_status status;
    bool retry = false;
    do {
        status = replay(device, self, &options, &retry, &ticket);
        if (retry && status == BH_OK) self = bh__sequence_get(device, handle, BH__SEQUENCE_READY);
    } while (retry && status == BH_OK && self);
    bh__device_unlock(device);
    if (!self) return bh__last()->status;
    if (status == BH_OK && options.flags & BH_SUBMIT_WAIT) status = bh_wait(ticket, BH_FOREVER);
    if (status == BH_OK && out) *out = ticket;
    return status;
}

void bh__sequence_note(bh__sequence *self, const bh__sequence_body *body, uint32_t lane,
                       uint64_t position) {
    self->last[lane] = position;
    self->version_last[body->version][lane] = position;
    for (uint32_t i = 0; i < self->module_count; i++) self->modules[i]->last[lane] = position;
}

/* ---- for the supervisor: names, steps, kernels ---- */

const char *bh__sequence_name(const bh__sequence *self) {
    return self->name;
}

uint32_t bh__sequence_step_count(const bh__sequence *self) {
    return self->step_count;
}

bh__kernel *bh__sequence_kernel(const bh__sequence *self, uint32_t first, uint32_t last) {
    bh__kernel *only = self->steps[first - 1].kernel;
    for (uint32_t i = first; i < last; i++) {
        if (self->steps[i].kernel != only) return NULL;
    }
    return only;
}

static const char *step_name(const bh__sequence *self, uint32_t index) {
    static const char *const names[] = {[BH__OP_WRITE] = "a write",
                                        [BH__OP_READ] = "a read",
                                        [BH__OP_COPY] = "a copy",
                                        [BH__OP_FILL] = "a fill",
                                        [BH__OP_SKIP] = "nothing"};
    const bh__kernel *kernel = self->steps[index].kernel;
    return kernel ? kernel->name : names[self->records[index].op];
}

static bool is_named_before(const bh__sequence *self, uint32_t first, uint32_t step) {
    for (uint32_t i = first; i < step; i++) {
        if (strcmp(step_name(self, i - 1), step_name(self, step - 1)) == 0) return true;
    }
    return false;
}

/* Each name once, with its steps, counted from 0: "saxpy 9-11, 13; a copy 12". `first` and `last`
 * count from 1. */
static void name_steps(const bh__sequence *self, uint32_t first, uint32_t last, char *out,
                       size_t size) {
    size_t used = 0, names = 0;
    for (uint32_t i = first; i <= last; i++) names += !is_named_before(self, first, i);
    int width = (int)((size - (last - first + 1) * 6) / names) - 3;
    for (uint32_t i = first; i <= last && used < size; i++) {
        const char *name = step_name(self, i - 1);
        if (is_named_before(self, first, i)) continue;
        used +=
            (size_t)snprintf(out + used, size - used, "%s%.*s", i > first ? "; " : "", width, name);
        for (uint32_t at = i; at <= last && used < size; at++) {
            if (strcmp(step_name(self, at - 1), name) != 0) continue;
            uint32_t end = at;
            while (end < last && strcmp(step_name(self, end), name) == 0) end++;
            used += (size_t)snprintf(out + used, size - used, end > at ? "%s%u-%u" : "%s%u",
                                     at > i ? ", " : " ", at - 1, end - 1);
            at = end;
        }
    }
}

void bh__sequence_describe(const bh__sequence *self, uint32_t first, uint32_t last, char *out,
                           size_t size) {
    const bh__launch_body *body = &self->records[first - 1].u.launch;
    if (first == last && !self->steps[first - 1].kernel) {
        snprintf(out, size, ", step %u of %u, counted from 0 (%s)", first - 1, self->step_count,
                 step_name(self, first - 1));
    } else if (first == last) {
        snprintf(out, size,
                 ", step %u of %u, counted from 0 (kernel \"%.60s\", grid %u x %u x %u, "
                 "block %u x %u x %u)",
                 first - 1, self->step_count, step_name(self, first - 1), body->grid[0],
                 body->grid[1], body->grid[2], body->block[0], body->block[1], body->block[2]);
    } else {
        char names[256];
        name_steps(self, first, last, names, sizeof names);
        snprintf(out, size, ", one of steps %u to %u of %u, counted from 0 (%s)", first - 1,
                 last - 1, self->step_count, names);
    }
}

bool bh__sequence_lacks_state(const bh__sequence *self, uint64_t stamp) {
    for (uint32_t i = 0; i < self->module_count; i++) {
        if (bh__module_lacks_state(self->modules[i], stamp)) return true;
    }
    return false;
}

bool bh__sequence_is_quarantined(const bh__sequence *self) {
    for (uint32_t i = 0; i < self->kernel_count; i++) {
        if (self->kernels[i]->quarantined) return true;
    }
    return false;
}

bool bh__sequence_has(const bh__sequence *self, const bh__kernel *kernel) {
    for (uint32_t i = 0; i < self->kernel_count; i++) {
        if (self->kernels[i] == kernel) return true;
    }
    return false;
}

void bh__sequence_dropped(bh__sequence *self) {
    for (uint32_t i = 0; i < self->kernel_count; i++) self->kernels[i]->dropped++;
}

void bh__sequence_launched(bh__sequence *self) {
    for (uint32_t i = 0; i < self->module_count; i++) self->modules[i]->launched = true;
}

/* ---- counters and traces ---- */

void bh__sequence_count(bh__device *device, const bh__sequence *self, uint32_t repeat,
                        bh__lane_tally *tally) {
    const bh__work_tally *of = &self->tally;
    bh__work_tally *work = &tally->work;
    tally->replays++;
    for (uint32_t i = 0; i < self->kernel_count; i++) self->kernels[i]->submitted++;
    tally->step_launches += of->launches * repeat;
    work->launches += of->launches * repeat;
    work->threads += of->threads * repeat;
    work->padding += of->padding * repeat;
    work->idle += of->idle * repeat;
    work->bytes_to_device += of->bytes_to_device * repeat;
    work->bytes_to_host += of->bytes_to_host * repeat;
    work->bytes_within += of->bytes_within * repeat;
    device->counters.replays++;
    device->counters.replay_steps += (uint64_t)self->step_count * repeat;
}

uint32_t *bh__sequence_trace_name(bh__sequence *self) {
    return &self->trace_name;
}
