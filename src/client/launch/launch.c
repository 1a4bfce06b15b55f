/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: options, packing, submitting. All errors that can be known in advance are refused here,
 * before the queue. */
#include <stdlib.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/launch/check.h"
#include "client/launch/launch.h"
#include "client/module/ask_native.h"
#include "client/queue/queue.h"

static const bh_launch_options defaults = {.size = sizeof defaults};

bh_status bh__launch_options_take(const bh_launch_options *given, bh_launch_options *storage,
                                  const bh_launch_options **out) {
    *out = &defaults;
    if (!given) return BH_OK;
    if (bh__options_check(given, sizeof *storage, "bh_launch_options") != BH_OK)
        return bh__last()->status;
    *out = given;
    if (given->size < sizeof *storage) { /* the program was built with an older header */
        memset(storage, 0, sizeof *storage);
        memcpy(storage, given, given->size);
        *out = storage;
    }
    const uint32_t known = BH_SUBMIT_IDEMPOTENT | BH_SUBMIT_NO_BLOCK | BH_SUBMIT_WAIT |
                           BH_SUBMIT_TIMED | BH_LAUNCH_WRITABLE_INPUTS | BH_LAUNCH_COOPERATIVE |
                           BH_LAUNCH_PRIORITY | BH_LAUNCH_PROGRAMMATIC;
    if (given->flags & ~known) {
        return bh__refuse(BH_E_INVALID, "use only BH_SUBMIT_... and BH_LAUNCH_... flags",
                          "bh_launch_options.flags has unknown flags 0x%x", given->flags & ~known);
    }
    return BH_OK;
}

bh__fit_question bh__launch_question(const bh__launch *self) {
    const bh__launch_body *body = &self->body;
    bh__fit_question question = {.module = self->kernel->module->number,
                                 .kernel = self->kernel->index,
                                 .shared_bytes = body->shared_bytes};
    memcpy(question.block, body->block, sizeof question.block);
    memcpy(question.cluster, body->cluster, sizeof question.cluster);
    return question;
}

/* ---- the launch ---- */

/* Inlined by force: a call and its register spills cost 18 instructions of every launch. */
static inline __attribute__((always_inline)) bh_status
pack(bh__launch *self, bh_kernel handle, const bh_shape *shape, bh_args args, bh__lane **out_lane) {
    const uint32_t worker_flags =
        BH_LAUNCH_COOPERATIVE | BH_LAUNCH_PRIORITY | BH_LAUNCH_PROGRAMMATIC;
    self->use_count = 0;
    self->uses = self->inline_uses;
    self->objects = NULL;
    self->params = self->inline_params;
    bh_status status = bh__launch_check(self, handle, shape);
    if (status != BH_OK) return status;
    if (out_lane) {
        *out_lane = bh__lane_get(self->device, self->options->lane);
        if (!*out_lane) return bh__last()->status;
    }
    if (__builtin_expect(self->kernel->shape.param_bytes > BH__SMALL_PARAM_BYTES, 0)) {
        if (out_lane) status = bh__params_check(self);
        if (status == BH_OK) status = bh__params_reserve(self, self->kernel->shape.param_bytes);
        if (status != BH_OK) return status;
    }
    status = bh__arguments_take(self, args);
    self->body.module = self->kernel->module->number;
    self->body.kernel = self->kernel->index;
    self->body.flags = (self->options->flags & worker_flags) |
                       (self->options->deadline_ns ? BH__LAUNCH_ALONE : 0) |
                       (self->objects ? BH__LAUNCH_OBJECTS : 0);
    if (status == BH_OK) bh__native_want(self->device, self->kernel, self->body.block);
    return status;
}

bh_status bh__launch_pack(bh__launch *self, bh_kernel handle, const bh_shape *shape, bh_args args,
                          bh__lane **out_lane) {
    return pack(self, handle, shape, args, out_lane);
}

/* With tickets to come after. */
static BH__COLD bh_status submit_after(bh__launch *self, bh__submission *submission, bool *retry,
                                       bh_ticket *out) {
    uint64_t after[BH__MAX_LANES];
    const bh_launch_options *options = self->options;
    if (bh__after_take(self->device, options->after, options->after_count, after) != BH_OK)
        return bh__last()->status;
    submission->after = after;
    return bh__submit(self->device, submission, retry, out);
}

static inline bh_status submit(bh__launch *self, bh__lane *lane, bool *retry, bh_ticket *out) {
    bh__submission submission;
    bh__launch_submission(self, lane, &submission);
    submission.busy = &self->busy;
    bh_status status = __builtin_expect(self->options->after_count != 0, 0)
                           ? submit_after(self, &submission, retry, out)
                           : bh__submit(self->device, &submission, retry, out);
    if (status == BH_OK && !*retry) {
        self->kernel->module->launched = true;
        bh__native_count(self->device, self->kernel, self->body.block);
    }
    return status;
}

/* Asks the worker how many blocks can be resident. It answers soon, but a call that must not wait
 * does not ask. */
static BH__COLD bh_status ask_fit(bh__launch *self) {
    const bh__lane *lane = bh__lane_get(self->device, self->options->lane);
    if (!lane) return bh__last()->status;
    if (lane->no_block || self->options->flags & BH_SUBMIT_NO_BLOCK) {
        self->busy = BH_REASON_OTHER;
        return bh__refuse(
            BH_E_BUSY, "call bh_launch_preflight with this shape first: it asks the device once",
            "how many blocks of %u x %u x %u threads of kernel %s can be resident is not known yet",
            self->body.block[0], self->body.block[1], self->body.block[2], self->kernel->name);
    }
    bh__fit_question question = bh__launch_question(self);
    return bh__fit_ask(self->device, self->kernel, &question, NULL);
}

static inline bh_status launch(bh_kernel kernel, const bh_shape *shape, bh_args args,
                               const bh__range *ranges, const bh_launch_options *given,
                               bh_ticket *out) {
    bh_launch_options storage;
    bh__launch self;
    bh_status status = bh__launch_options_take(given, &storage, &self.options);
    self.kernel = NULL;
    self.ranges = ranges;
    self.reason = self.busy = BH_REASON_NONE;
    self.shaped = false;
    self.device =
        status == BH_OK ? bh__device_lock(kernel.id, BH__KIND_KERNEL, "kernel", true) : NULL;
    if (!self.device) {
        bh__launch_record_status(&self, bh__last()->status);
        return bh__last()->status;
    }
    bool retry;
    do {
        retry = false;
        bh__lane *lane;
        status = pack(&self, kernel, shape, args, &lane);
        if (__builtin_expect(self.asks, 0)) {
            status = ask_fit(&self);
            retry = status == BH_OK;
            self.kernel = NULL;
        } else if (status == BH_OK) {
            status = submit(&self, lane, &retry, out);
            if (retry) self.kernel = NULL; /* the lock was released */
        }
        bh__launch_free(&self);
    } while (retry && status == BH_OK);
    if (__builtin_expect(status != BH_OK, 0)) bh__launch_record_status(&self, status);
    bh__device_unlock(self.device);
    return status;
}

bh_status bh_launch(bh_kernel kernel, bh_shape shape, bh_args args,
                    const bh_launch_options *options, bh_ticket *out) {
    if (__builtin_expect(!options || !(options->flags & BH_SUBMIT_WAIT), 1))
        return launch(kernel, &shape, args, NULL, options, out);
    return bh__launch_ranges(kernel, shape, args, NULL, options, out);
}

bh_status bh__launch_ranges(bh_kernel kernel, bh_shape shape, bh_args args, const bh__range *ranges,
                            const bh_launch_options *options, bh_ticket *out) {
    bool wait = options && options->flags & BH_SUBMIT_WAIT;
    bh_ticket ticket;
    bh_status status = launch(kernel, &shape, args, ranges, options, wait ? &ticket : out);
    if (status == BH_OK && wait) status = bh_wait(ticket, BH_FOREVER);
    if (status == BH_OK && wait && out) *out = ticket;
    return status;
}
