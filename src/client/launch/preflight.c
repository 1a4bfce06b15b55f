/* SPDX-License-Identifier: Apache-2.0 */
/* Preflight: whether a launch would fit, and what would. */
#include <stdio.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/launch/check.h"
#include "client/launch/launch.h"
#include "client/queue/queue.h"

/* ---- what would fit ---- */

static uint32_t minimum(uint64_t a, uint64_t b) {
    return (uint32_t)(a < b ? a : b);
}

/* The largest block within `given` that has at most `threads` threads. */
static bh_dim shrink_block(const bh__device_facts *info, const uint32_t given[3],
                           uint32_t threads) {
    bh_dim block = {minimum(given[0], info->max_block[0]), minimum(given[1], info->max_block[1]),
                    minimum(given[2], info->max_block[2])};
    if (!block.x || !block.y || !block.z || !threads) return (bh_dim){0, 0, 0};
    block.z = minimum(block.z, threads);
    block.y = minimum(block.y, threads / block.z);
    block.x = minimum(block.x, threads / (block.z * block.y));
    return block;
}

/* The length of one axis: at most `given`, in whole clusters, with at most `resident` blocks in
 * all. `others`: blocks of the other two axes. */
static uint32_t shrink_axis(uint32_t given, uint32_t cluster, uint64_t resident, uint64_t others) {
    uint64_t limit = others ? resident / others : 0;
    uint64_t length = given < limit ? given : limit;
    return (uint32_t)(length / cluster * cluster);
}

static bh_dim shrink_grid(const bh__device_facts *info, const uint32_t given[3],
                          const uint32_t cluster[3], uint64_t resident) {
    uint32_t unit[3], dims[3];
    for (int i = 0; i < 3; i++) {
        unit[i] = cluster[i] ? cluster[i] : 1;
        dims[i] = minimum(given[i], info->max_grid[i]) / unit[i] * unit[i];
    }
    uint64_t others = (uint64_t)unit[0] * unit[1];
    dims[2] = shrink_axis(dims[2], unit[2], resident, others);
    others = (uint64_t)unit[0] * dims[2];
    dims[1] = shrink_axis(dims[1], unit[1], resident, others);
    others = (uint64_t)dims[1] * dims[2];
    dims[0] = shrink_axis(dims[0], unit[0], resident, others);
    if (!dims[0] || !dims[1] || !dims[2]) dims[0] = dims[1] = dims[2] = 0;
    return (bh_dim){dims[0], dims[1], dims[2]};
}

/* ---- the questions ---- */

/* What is asked about, and all that is known of it. */
typedef struct question {
    bh__launch launch;
    bh_kernel handle;
    bh_shape shape;
    const bh_args *args; /* NULL: they are not looked at */
    bh_preflight out;
    bh_occupancy occupancy;
} question;

static void describe(question *self) {
    const bh__launch *launch = &self->launch;
    const bh__device *device = launch->device;
    const bh__launch_body *body = &launch->body;
    const bh__blob_kernel *kernel = &launch->kernel->shape;
    bh_preflight *out = &self->out;
    out->cooperative = launch->options->flags & BH_LAUNCH_COOPERATIVE ? 1 : 0;
    out->grid = (bh_dim){body->grid[0], body->grid[1], body->grid[2]};
    out->block = (bh_dim){body->block[0], body->block[1], body->block[2]};
    out->cluster = (bh_dim){body->cluster[0], body->cluster[1], body->cluster[2]};
    out->static_shared = kernel->static_shared;
    out->dynamic_shared = body->shared_bytes;
    snprintf(out->kernel, sizeof out->kernel, "%s", launch->kernel->name);
    self->occupancy.max_threads = bh__kernel_max_threads(device, launch->kernel);
    self->occupancy.max_dynamic_shared = bh__kernel_max_shared(device, launch->kernel);
    const uint32_t *required = kernel->required_block;
    out->fits_block = required[0]
                          ? (bh_dim){required[0], required[1], required[2]}
                          : shrink_block(&device->info, body->block, self->occupancy.max_threads);
}

/* Adds the worker's answer. The question may have had a smaller block and less shared memory than
 * the launch: then the numbers for residency are left out. */
static void add_fit(question *self, const bh__device *device, const bh__launch_body *body,
                    const uint32_t *required, const bh__fit *fit) {
    bh_preflight *out = &self->out;
    bh_occupancy *occupancy = &self->occupancy;
    bool same_block = out->fits_block.x == out->block.x && out->fits_block.y == out->block.y &&
                      out->fits_block.z == out->block.z;
    bool same_question = same_block && out->error.reason != BH_REASON_SHARED_MEMORY;
    occupancy->recommended_block =
        required[0] ? required[0] * required[1] * required[2] : fit->recommended_block;
    occupancy->recommended_grid = fit->recommended_grid;
    occupancy->max_cluster = fit->largest_cluster;
    if (same_question) {
        occupancy->blocks_per_multiprocessor = fit->blocks_per_multiprocessor;
        occupancy->resident_blocks = out->resident_blocks = fit->resident;
        occupancy->occupancy = fit->occupancy;
    }
    if (out->error.reason == BH_REASON_RESIDENCY) {
        out->fits_block = (bh_dim){0, 0, 0};
        if (fit->fitting_threads && !required[0])
            out->fits_block = shrink_block(&device->info, body->block, fit->fitting_threads);
    }
    out->fits_grid = shrink_grid(&device->info, body->grid, body->cluster,
                                 out->cooperative ? fit->resident : UINT64_MAX);
}

/* Refused for what the worker would be asked about. Residency is what it answers. */
static bool is_of_shape(uint32_t reason) {
    return reason != BH_REASON_NONE && reason <= BH_REASON_ATTRIBUTE &&
           reason != BH_REASON_RESIDENCY;
}

static uint64_t blocks_of(const bh__launch_body *body) {
    uint64_t plane = (uint64_t)body->grid[0] * body->grid[1], blocks;
    return __builtin_mul_overflow(plane, (uint64_t)body->grid[2], &blocks) ? UINT64_MAX : blocks;
}

static bh_status ask_all(question *self) {
    bh__device *device = self->launch.device;
    bh__launch_body body = self->launch.body;
    bh__fit_question asked = bh__launch_question(&self->launch);
    /* The shape may have more errors than the one it was refused for, so the worker is asked about
     * a shape that is valid. */
    asked.block[0] = self->out.fits_block.x;
    asked.block[1] = self->out.fits_block.y;
    asked.block[2] = self->out.fits_block.z;
    asked.shared_bytes = minimum(body.shared_bytes, self->occupancy.max_dynamic_shared);
    asked.blocks = blocks_of(&body);
    asked.advice = 1;
    if (!device->info.cluster_launch || is_of_shape(self->out.error.reason))
        memset(asked.cluster, 0, sizeof asked.cluster);
    bh__fit fit;
    bh_status status = bh__fit_ask(device, self->launch.kernel, &asked, &fit);
    if (status != BH_OK) return status;
    const bh__kernel *kernel = bh__handle_get(device, self->handle.id, BH__KIND_KERNEL, "kernel");
    if (!kernel) return bh__last()->status;
    add_fit(self, device, &body, kernel->shape.required_block, &fit);
    return BH_OK;
}

static bh_status check_after(const bh__launch *launch) {
    uint64_t positions[BH__MAX_LANES];
    const bh_launch_options *options = launch->options;
    if (options->after_count == 0) return BH_OK;
    return bh__after_take(launch->device, options->after, options->after_count, positions);
}

/* The checks of a launch, without arguments or with them. */
static bh_status check(question *self) {
    bh__launch *launch = &self->launch;
    bh__lane *lane;
    bh_status status;
    if (self->args) {
        status = bh__launch_pack(launch, self->handle, &self->shape, *self->args, &lane);
        if (status == BH_OK) status = check_after(launch);
        if (status == BH_OK)
            status = bh__uses_readable(launch->device, launch->uses, launch->use_count);
        bh__launch_free(launch);
        return status;
    }
    status = bh__launch_check(launch, self->handle, &self->shape);
    if (status == BH_OK && !bh__lane_get(launch->device, launch->options->lane))
        status = bh__last()->status;
    if (status == BH_OK) status = bh__params_check(launch);
    return status == BH_OK ? check_after(launch) : status;
}

static bh_status answer(question *self) {
    bh__launch *launch = &self->launch;
    bh_status status;
    for (;;) {
        bh__last_refusal()->set = false;
        status = check(self);
        if (!launch->kernel) return status;
        if (!launch->asks) break;
        bh__fit_question asked = bh__launch_question(launch);
        status = bh__fit_ask(launch->device, launch->kernel, &asked, NULL);
        if (status != BH_OK) return status;
    }
    if (status != BH_OK) {
        bh__launch_record_status(launch, status);
        self->out.error = *bh__last();
    }
    describe(self);
    return self->out.error.reason == BH_REASON_ZERO_DIMENSION ? BH_OK : ask_all(self);
}

/* Answers with the device locked, and unlocks it. A refusal in there is the answer, not an error of
 * this thread. */
static bh_status answer_locked(question *self) {
    bh_error error = *bh__last();
    bh__refusal refused = *bh__last_refusal();
    bh_status status = answer(self);
    bh__device_unlock(self->launch.device);
    *bh__last_refusal() = refused;
    if (status == BH_OK) *bh__last() = error;
    return status;
}

bh_status bh_launch_preflight(bh_kernel handle, bh_shape shape, const bh_args *args,
                              const bh_launch_options *given, bh_preflight *out) {
    if (bh__sized_check(out, "bh_preflight") != BH_OK) return BH_E_INVALID;
    bh_launch_options storage;
    question self = {.handle = handle, .shape = shape, .args = args};
    bh_status status = bh__launch_options_take(given, &storage, &self.launch.options);
    if (status != BH_OK) return status;
    self.launch.device = bh__device_lock(handle.id, BH__KIND_KERNEL, "kernel", true);
    if (!self.launch.device) return bh__last()->status;
    status = answer_locked(&self);
    if (status == BH_OK) bh__sized_give(out, &self.out, sizeof self.out);
    return status;
}

/* ---- occupancy ---- */

/* One cluster, so that no grid is refused. */
static bh_dim smallest_grid(const bh__kernel *kernel, bh_dim cluster) {
    const uint32_t *required = kernel->shape.required_cluster;
    if (required[0]) return (bh_dim){required[0], required[1], required[2]};
    return (bh_dim){cluster.x ? cluster.x : 1, cluster.y ? cluster.y : 1,
                    cluster.z ? cluster.z : 1};
}

bh_status bh_kernel_get_occupancy(bh_kernel handle, bh_shape shape, bh_occupancy *out) {
    if (bh__sized_check(out, "bh_occupancy") != BH_OK) return BH_E_INVALID;
    bh_launch_options storage;
    question self = {.handle = handle, .shape = shape};
    (void)bh__launch_options_take(NULL, &storage, &self.launch.options);
    bh__device *device = bh__device_lock(handle.id, BH__KIND_KERNEL, "kernel", true);
    if (!device) return bh__last()->status;
    self.launch.device = device;
    const bh__kernel *kernel = bh__handle_get(device, handle.id, BH__KIND_KERNEL, "kernel");
    if (!kernel) {
        bh__device_unlock(device);
        return bh__last()->status;
    }
    self.shape.grid = smallest_grid(kernel, shape.cluster);
    bh_status status = answer_locked(&self);
    if (status == BH_OK && self.out.error.reason == BH_REASON_ZERO_DIMENSION)
        return bh__refuse_with(&self.out.error);
    if (status == BH_OK) bh__sized_give(out, &self.occupancy, sizeof self.occupancy);
    return status;
}
