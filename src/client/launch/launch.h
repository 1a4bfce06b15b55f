/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches: checks of shape, arguments and kernel; packing of parameters; prepared launches;
 * preflight; dispatches. A launch is checked and packed into a bh__launch before it is submitted.
 * Sequences use the same checks.
 */
#ifndef BH_CLIENT_LAUNCH_LAUNCH_H
#define BH_CLIENT_LAUNCH_LAUNCH_H

#include <stdlib.h>

#include "client/core/device.h"
#include "client/core/error.h"
#include "client/core/handles.h"

enum { BH__INLINE_USES = 32 };

/* The bytes of a buffer that a launch uses, if not all. `gaps`: it writes only some of them. */
typedef struct bh__range {
    uint64_t offset, bytes;
    bool gaps;
    bool in_place; /* of all of them: outputs may be inputs, from the first byte on */
} bh__range;

typedef struct bh__launch {
    bh__device *device;
    bh__kernel *kernel; /* NULL: the handle is not valid */
    const bh_launch_options *options;
    const bh__range *ranges; /* of the buffers among the arguments, in order; NULL: all of each */
    bh__launch_body body;
    uint32_t use_count;
    uint32_t reason; /* of a refusal, BH_REASON_...; BH_REASON_NONE: none recorded */
    bool asks;       /* the checks need an answer of the worker: call bh__fit_ask and check again */
    bool shaped;     /* `body` has the shape */
    uint32_t busy;   /* the cause of BH_E_BUSY, BH_REASON_...; BH_REASON_NONE: the queue is full */
    bh__use *uses;   /* inline_uses, or owned */
    uint8_t *params; /* inline_params, or owned: the program's threads may have small stacks */
    struct bh__object_list *objects; /* Owned. Its textures, surfaces and tensor maps; NULL: none.
                                        Set by bh__launch_pack. */
    bh__use inline_uses[BH__INLINE_USES];
    uint8_t inline_params[BH__SMALL_PARAM_BYTES] __attribute__((aligned(16)));
} bh__launch;

/* All functions here are called with the device's lock held. */

/* ---- check_launch.c: kernel, geometry and resources. check.h has the order of all checks ---- */

/* Fills in self->body from the shape and the options' attributes. Needs device, kernel, options. */
bh_status bh__shape_check(bh__launch *self, const bh_shape *shape);
/* Refuses a quarantined kernel, and one whose module is stale. */
bh_status bh__kernel_check(bh__launch *self);
/* The maximum threads of a block, and the maximum dynamic shared memory, of a kernel. */
uint32_t bh__kernel_max_threads(const bh__device *device, const bh__kernel *kernel);
uint32_t bh__kernel_max_shared(const bh__device *device, const bh__kernel *kernel);

/* ---- launch.c ---- */

/* bh_launch, where `ranges` says which bytes of its buffers the kernel uses. NULL: all. */
bh_status bh__launch_ranges(bh_kernel kernel, bh_shape shape, bh_args args, const bh__range *ranges,
                            const bh_launch_options *options, bh_ticket *out);
/* Checks the options. *out is `given`, the defaults, or `storage` (for an older struct). */
bh_status bh__launch_options_take(const bh_launch_options *given, bh_launch_options *storage,
                                  const bh_launch_options **out);
/*
 * Checks a launch and packs its parameters and uses. The caller has set device and options, and
 * calls bh__launch_free afterwards, also after a failure. Uses are those of the arguments in order,
 * then those of options->also. Refusals are recorded for bh_preflight_line. *out_lane gets the
 * lane that the options name. `out_lane` NULL: the launch is a step of a sequence and does not go
 * through a queue.
 */
bh_status bh__launch_pack(bh__launch *self, bh_kernel handle, const bh_shape *shape, bh_args args,
                          bh__lane **out_lane);
static inline void bh__launch_free(bh__launch *self) {
    if (self->uses != self->inline_uses) free(self->uses);
    if (self->params != self->inline_params) free(self->params);
    free(self->objects);
}
/* Fills in the submission of a launch, except `copy`. It points into *self. */
static inline void bh__launch_submission(const bh__launch *self, bh__lane *lane,
                                         bh__submission *out) {
    const bh_launch_options *options = self->options;
    /* Launches do not use `copy`; clearing it would cost time. */
    out->lane = lane;
    out->op = BH__OP_LAUNCH;
    out->idempotent = (options->flags & BH_SUBMIT_IDEMPOTENT) != 0;
    out->needed = self->ranges != NULL; /* a library call */
    out->no_block = (options->flags & BH_SUBMIT_NO_BLOCK) != 0;
    out->waits = false;
    out->timed = (options->flags & BH_SUBMIT_TIMED) != 0;
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
    out->leased = false;
    out->busy = NULL;
}
/* The question for bh__fit_ask if self->asks is set. */
bh__fit_question bh__launch_question(const bh__launch *self);

/* ---- refusal.c: the record of a refusal ---- */

typedef struct bh__refusal {
    bool set;
    bh_status status;
    uint32_t reason;
    uint64_t requested, limit, resident;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t static_shared, dynamic_shared;
    bool cooperative;
    char kernel[256], fix[256];
} bh__refusal;

/* The last refusal of this thread. */
bh__refusal *bh__last_refusal(void);
/* Records a refusal for bh_preflight_line. The thread's error is already set. */
void bh__launch_record(const bh__launch *self, uint32_t reason, uint64_t requested, uint64_t limit);
/* The same for a failure with no reason recorded, for example after the checks. */
void bh__launch_record_status(bh__launch *self, bh_status status);

#define bh__launch_refuse(self, why, requested, limit, status, fix, ...)                           \
    ((self)->reason = (why), bh__refuse((status), (fix), __VA_ARGS__),                             \
     bh__launch_record((self), (why), (requested), (limit)), (status))

/* ---- ask_fit.c: how many blocks can be resident ---- */

/* The cached answer. NULL: not known yet. */
const bh__fit *bh__fit_known(const bh__kernel *kernel, const bh__launch_body *body);
/* Asks the worker and caches the answer with the kernel. Releases the lock meanwhile: the caller
 * must look up all handles again. */
bh_status bh__fit_ask(bh__device *device, bh__kernel *kernel, const bh__fit_question *question,
                      bh__fit *out);

/* ---- check_arguments.c ---- */

/* Refuses a kernel whose parameters do not fit the queue. Needed only for more than
 * BH__SMALL_PARAM_BYTES, and not for steps of sequences. */
bh_status bh__params_check(bh__launch *self);
/* Allocates self->params for more than BH__SMALL_PARAM_BYTES. bh__launch_free frees it. */
bh_status bh__params_reserve(bh__launch *self, uint32_t bytes);

/* Checks one argument. A value is written to the parameter block. A buffer is written to *use and
 * sets *is_buffer; bh__arguments_place writes its address. */
bh_status bh__argument_take(bh__launch *self, uint32_t index, const bh_arg *arg, uint8_t *params,
                            bh__use *use, bool *is_buffer);
/* Checks all arguments and options->also; packs them, with addresses, into params and uses. */
bh_status bh__arguments_take(bh__launch *self, bh_args args);
/* Writes the addresses of buffers to the parameter block. Inputs are passed by their read-only
 * address, so that a kernel that writes one faults, unless the launch also writes the same
 * bytes. */
void bh__arguments_place(const bh__kernel *kernel, const bh__use *uses, uint32_t use_count,
                         bool writable_inputs, uint8_t *params);

/* Returns true if the launch also writes bytes of this input. */
bool bh__use_is_written(const bh__use *uses, uint32_t count, const bh__use *input);

/* ---- objects.c: textures, surfaces and tensor maps ---- */

/* Takes an argument that is a texture, surface or tensor map. The worker writes its parameter. */
bh_status bh__object_take(bh__launch *self, const bh__blob_param *param, const bh_arg *arg);
/* Called when all arguments have been taken: adds the objects to the uses, and behind the
 * parameters. */
bh_status bh__objects_place(bh__launch *self);
/* Returns true if this parameter of a packed launch is a texture, surface or tensor map. */
bool bh__objects_have(const bh__launch *self, const bh__blob_param *param, const uint8_t *params);

/* ---- prepared.c ---- */

/* Frees all prepared launches. The device is being freed. */
void bh__prepared_free_all(bh__device *device);

#endif
