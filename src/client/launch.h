/* SPDX-License-Identifier: Apache-2.0 */
/* A launch on its way to the queue: checked, packed. Shared by all ways of launching. */
#ifndef BH_CLIENT_LAUNCH_H
#define BH_CLIENT_LAUNCH_H

#include <stdlib.h>

#include "client/internal.h"

enum { BH__INLINE_USES = 32 };

typedef struct bh__launch {
    bh__device *device;
    bh__kernel *kernel; /* NULL: the handle was none */
    const bh_launch_options *options;
    bh__launch_body body;
    uint32_t use_count;
    uint32_t reason; /* of a refusal, BH_REASON_...; BH_REASON_NONE: none was given */
    bool asks;       /* refused only for now: bh__fit_ask first */
    bool shaped;     /* `body` has the shape */
    uint32_t busy;   /* what BH_E_BUSY was about, BH_REASON_...; BH_REASON_NONE: the queue */
    bh__use *uses;   /* inline_uses, or owned */
    uint8_t *params; /* inline_params, or owned: threads of programs may have small stacks */
    bh__use inline_uses[BH__INLINE_USES];
    uint8_t inline_params[BH__SMALL_PARAM_BYTES] __attribute__((aligned(16)));
} bh__launch;

/* All functions here are called with the device locked. */

/* ---- shape.c: geometry and resources ---- */

/* Fills in self->body from the shape and the options' attributes. Needs device, kernel, options. */
bh_status bh__shape_check(bh__launch *self, const bh_shape *shape);
/* Quarantine, the state of the module. */
bh_status bh__kernel_check(bh__launch *self);
/* The kernel's largest block, and the most dynamic shared memory. */
uint32_t bh__kernel_most_threads(const bh__device *device, const bh__kernel *kernel);
uint32_t bh__kernel_most_shared(const bh__device *device, const bh__kernel *kernel);

/* ---- launch.c ---- */

/* *out is `given` if it is all there, `storage` filled in otherwise. */
bh_status bh__launch_options_take(const bh_launch_options *given, bh_launch_options *storage,
                                  const bh_launch_options **out);
/*
 * Checks everything that can be known and packs it; device and options are filled in. Uses are those
 * of the arguments in order, then those of options->also. bh__launch_free in any case. Refusals are
 * recorded for bh_last_launch_line. *out_lane gets the lane that the options name; NULL: the launch
 * goes to no lane's queue by itself.
 */
bh_status bh__launch_pack(bh__launch *self, bh_kernel handle, const bh_shape *shape, bh_args args,
                          bh__lane **out_lane);
static inline void bh__launch_free(bh__launch *self) {
    if (self->uses != self->inline_uses) free(self->uses);
    if (self->params != self->inline_params) free(self->params);
}
/* The launch as bh__submit takes it. Everything but `copy` is filled in; it points into *self. */
static inline void bh__launch_submission(const bh__launch *self, bh__lane *lane,
                                         bh__submission *out) {
    const bh_launch_options *options = self->options;
    /* `copy` is not for launches, and not worth clearing. */
    out->lane = lane;
    out->op = BH__OP_LAUNCH;
    out->idempotent = (options->flags & BH_LAUNCH_IDEMPOTENT) != 0;
    out->needed = false;
    out->no_block = (options->flags & BH_LAUNCH_NO_BLOCK) != 0;
    out->deadline_ns =
        options->deadline_ns ? options->deadline_ns : self->device->options.deadline_ns;
    out->kernel = self->kernel;
    out->module = self->kernel->module;
    out->uses = self->uses;
    out->use_count = self->use_count;
    out->params = self->params;
    out->param_bytes = self->body.param_bytes;
    out->elements = options->elements;
    out->launch = &self->body;
    out->sequence = NULL;
    out->after = NULL;
    out->call = NULL;
    out->busy = NULL;
}
/* What is checked first, in this order, by all that answer for launches: the kernel's handle, the shape,
 * whether the kernel may run. */
static inline bh_status bh__launch_check(bh__launch *self, bh_kernel handle,
                                         const bh_shape *shape) {
    self->reason = self->busy = BH_REASON_NONE;
    self->asks = self->shaped = false;
    self->kernel =
        bh__handle_find(self->device, &self->device->kernels, handle.id, BH__KIND_KERNEL);
    if (!self->kernel) {
        (void)bh__handle_get(self->device, handle.id, BH__KIND_KERNEL, "kernel"); /* says why */
        return bh__last()->status;
    }
    bh_status status = bh__shape_check(self, shape);
    if (status == BH_OK && (self->kernel->quarantined | self->kernel->module->stale))
        status = bh__kernel_check(self);
    return status;
}
/* What the worker must be asked if self->asks is set. */
bh__fit_question bh__launch_question(const bh__launch *self);

/* ---- preflight.c: the record of a refusal ---- */

/* Notes for bh_last_launch_line what was refused; the thread's error is set. */
void bh__launch_record(const bh__launch *self, uint32_t reason, uint64_t requested, uint64_t limit);
/* For a launch that failed after the checks, or without a reason of its own. */
void bh__launch_record_status(bh__launch *self, bh_status status);

#define bh__launch_refuse(self, why, requested, limit, status, fix, ...)                           \
    ((self)->reason = (why), bh__refuse((status), (fix), __VA_ARGS__),                             \
     bh__launch_record((self), (why), (requested), (limit)), (status))

/* ---- fit.c: what the device knows about residency ---- */

/* The answer if it is known. */
const bh__fit *bh__fit_known(const bh__kernel *kernel, const bh__launch_body *body);
/* Has the worker answer and remembers it with the kernel. The lock is let go meanwhile: whatever
 * was looked up must be looked up again. */
bh_status bh__fit_ask(bh__device *device, bh__kernel *kernel, const bh__fit_question *question,
                      bh__fit *out);

/* ---- arguments.c ---- */

/* Whether the queue has room for the parameters of self->kernel. Only those with more than
 * BH__SMALL_PARAM_BYTES need be asked about; steps of sequences do not go through the queue. */
bh_status bh__params_check(bh__launch *self);
/* Room at self->params for more than BH__SMALL_PARAM_BYTES; bh__launch_free frees it. */
bh_status bh__params_reserve(bh__launch *self);

/* One argument into the parameter block and, if it is a buffer, into *use: then *is_buffer. The
 * address is left for bh__arguments_place. */
bh_status bh__argument_take(bh__launch *self, uint32_t index, const bh_arg *arg, uint8_t *params,
                            bh__use *use, bool *is_buffer);
/* All of them and what options->also names into self->params and self->uses, with addresses. */
bh_status bh__arguments_take(bh__launch *self, bh_args args);
/* Writes the addresses of buffers. Inputs go by their read-only address, so that a kernel that
 * writes one faults, except where the launch also writes there. */
void bh__arguments_place(const bh__kernel *kernel, const bh__use *uses, uint32_t use_count,
                         bool writable_inputs, uint8_t *params);

#endif
