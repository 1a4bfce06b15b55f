/* SPDX-License-Identifier: Apache-2.0 */
/* Preflight: whether a launch would fit, and what would. Also the record of refused launches, as
 * one line of text. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/launch/check.h"
#include "client/launch/launch.h"
#include "client/queue/queue.h"

static const char *const reason_names[] = {
    [BH_REASON_NONE] = "none",
    [BH_REASON_ZERO_DIMENSION] = "zero_dimension",
    [BH_REASON_GRID_AXIS] = "grid_axis",
    [BH_REASON_BLOCK_AXIS] = "block_axis",
    [BH_REASON_BLOCK_THREADS] = "block_threads",
    [BH_REASON_KERNEL_THREADS] = "kernel_threads",
    [BH_REASON_REQUIRED_BLOCK] = "required_block",
    [BH_REASON_SHARED_MEMORY] = "shared_memory",
    [BH_REASON_CLUSTER_UNSUPPORTED] = "cluster_unsupported",
    [BH_REASON_CLUSTER_GRID] = "cluster_grid",
    [BH_REASON_CLUSTER_SIZE] = "cluster_size",
    [BH_REASON_REQUIRED_CLUSTER] = "required_cluster",
    [BH_REASON_COOPERATIVE_UNSUPPORTED] = "cooperative_unsupported",
    [BH_REASON_RESIDENCY] = "residency",
    [BH_REASON_ATTRIBUTE] = "attribute",
    [BH_REASON_ARGUMENT_COUNT] = "argument_count",
    [BH_REASON_ARGUMENT_SIZE] = "argument_size",
    [BH_REASON_ARGUMENT_KIND] = "argument_kind",
    [BH_REASON_BUFFER_SMALL] = "buffer_small",
    [BH_REASON_BUFFER_HANDLE] = "buffer_handle",
    [BH_REASON_SUSPECT] = "suspect",
    [BH_REASON_QUARANTINED] = "quarantined",
    [BH_REASON_MODULE_STALE] = "module_stale",
    [BH_REASON_QUEUE_FULL] = "queue_full",
    [BH_REASON_OTHER] = "other",
    [BH_REASON_PARAMETER_BYTES] = "parameter_bytes",
    [BH_REASON_BUFFER_BUSY] = "buffer_busy",
};

const char *bh_reason_name(bh_reason reason) {
    return reason < sizeof reason_names / sizeof *reason_names ? reason_names[reason] : "?";
}

/* ---- the record of a refusal ---- */

typedef struct record {
    bool set;
    bh_status status;
    uint32_t reason;
    uint64_t requested, limit, resident;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t static_shared, dynamic_shared;
    bool cooperative;
    char kernel[256], fix[256];
} record;

static _Thread_local record last_refused;

void bh__launch_record(const bh__launch *self, uint32_t reason, uint64_t requested,
                       uint64_t limit) {
    record *it = &last_refused;
    const bh__kernel *kernel = self->kernel;
    memset(it, 0, sizeof *it);
    it->set = true;
    it->status = bh__last()->status;
    it->reason = reason;
    it->requested = requested;
    it->limit = limit;
    bh__last()->reason = reason;
    bh__last()->requested = requested;
    bh__last()->limit = limit;
    it->resident = reason == BH_REASON_RESIDENCY ? limit : 0;
    it->cooperative = self->options->flags & BH_LAUNCH_COOPERATIVE;
    snprintf(it->fix, sizeof it->fix, "%s", bh__last()->fix);
    if (!kernel) return;
    snprintf(it->kernel, sizeof it->kernel, "%s", kernel->name);
    snprintf(bh__last()->kernel, sizeof bh__last()->kernel, "%s", kernel->name);
    it->static_shared = kernel->shape.static_shared;
    if (!self->shaped) return;
    memcpy(it->grid, self->body.grid, sizeof it->grid);
    memcpy(it->block, self->body.block, sizeof it->block);
    memcpy(it->cluster, self->body.cluster, sizeof it->cluster);
    it->dynamic_shared = self->body.shared_bytes;
}

void bh__launch_record_status(bh__launch *self, bh_status status) {
    if (self->reason != BH_REASON_NONE) return;
    uint32_t busy = self->busy ? self->busy : BH_REASON_QUEUE_FULL;
    uint32_t reason = status == BH_E_STALE  ? BH_REASON_SUSPECT
                      : status == BH_E_BUSY ? busy
                                            : BH_REASON_OTHER;
    bh__launch_record(self, reason, 0, 0);
}

/* ---- one line ---- */

typedef struct line {
    char *out;
    size_t bytes, used;
} line;

__attribute__((format(printf, 2, 3))) static void add(line *to, const char *format, ...) {
    va_list list;
    va_start(list, format);
    size_t room = to->used < to->bytes ? to->bytes - to->used : 0;
    int length = vsnprintf(room ? to->out + to->used : NULL, room, format, list);
    va_end(list);
    to->used += length > 0 ? (size_t)length : 0;
}

static void add_escaped(line *to, const char *name, size_t limit) {
    for (size_t i = 0; i < limit && name[i]; i++) {
        unsigned char c = (unsigned char)name[i];
        bool plain = c > ' ' && c != '|' && c != '%' && c != 0x7f;
        add(to, plain ? "%c" : "%%%02X", c);
    }
}

static bh_status write_line(const record *it, char *out, size_t bytes) {
    if (!out || !bytes)
        return bh__refuse(BH_E_INVALID, "pass BH_LINE_BYTES bytes for the line", "%s",
                          out ? "capacity is 0" : "text is NULL");
    line to = {out, bytes, 0};
    bool ok = it->status == BH_OK;
    add(&to, "bulkhead-launch-v1|kernel=");
    add_escaped(&to, it->kernel, sizeof it->kernel);
    add(&to, "|status=%s|reason=%s|requested=%llu|limit=%llu", ok ? "ok" : "blocked",
        bh_reason_name(it->reason), (unsigned long long)it->requested,
        (unsigned long long)it->limit);
    add(&to, "|grid=%ux%ux%u|block=%ux%ux%u|shared=%u+%u", it->grid[0], it->grid[1], it->grid[2],
        it->block[0], it->block[1], it->block[2], it->static_shared, it->dynamic_shared);
    add(&to, "|cooperative=%s|resident=%llu|cluster=", it->cooperative ? "yes" : "no",
        (unsigned long long)it->resident);
    if (it->cluster[0] | it->cluster[1] | it->cluster[2])
        add(&to, "%ux%ux%u", it->cluster[0], it->cluster[1], it->cluster[2]);
    else
        add(&to, "none");
    add(&to, "|fix=");
    add_escaped(&to, it->fix, sizeof it->fix);
    if (to.used < bytes) return BH_OK;
    return bh__refuse(BH_E_INVALID, "pass BH_LINE_BYTES bytes for the line",
                      "the line needs %zu bytes, bytes is %zu", to.used + 1, bytes);
}

static void dims_in(uint32_t out[3], bh_dim dim) {
    out[0] = dim.x;
    out[1] = dim.y;
    out[2] = dim.z;
}

bh_status bh_preflight_line(const bh_preflight *given, char *text, size_t capacity) {
    if (!given && !last_refused.set)
        return bh__refuse(BH_E_NOT_FOUND, "ask after a launch was refused",
                          "no launch of this thread was refused yet");
    if (!given) return write_line(&last_refused, text, capacity);
    bh_preflight all = BH_INIT(all);
    if (bh__options_take(given, &all, "bh_preflight") != BH_OK) return bh__last()->status;
    record it = {.status = all.error.status,
                 .reason = all.error.reason,
                 .requested = all.error.requested,
                 .limit = all.error.limit,
                 .resident = all.resident_blocks,
                 .static_shared = all.static_shared,
                 .dynamic_shared = all.dynamic_shared,
                 .cooperative = all.cooperative};
    dims_in(it.grid, all.grid);
    dims_in(it.block, all.block);
    dims_in(it.cluster, all.cluster);
    memcpy(it.kernel, all.kernel, sizeof it.kernel);
    memcpy(it.fix, all.error.fix, sizeof it.fix);
    return write_line(&it, text, capacity);
}

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

/* The checks of a launch, without arguments or with them. */
static bh_status check(question *self) {
    bh__launch *launch = &self->launch;
    bh__lane *lane;
    bh_status status;
    if (self->args) {
        status = bh__launch_pack(launch, self->handle, &self->shape, *self->args, &lane);
        if (status == BH_OK)
            status = bh__uses_readable(launch->device, launch->uses, launch->use_count);
        bh__launch_free(launch);
        return status;
    }
    status = bh__launch_check(launch, self->handle, &self->shape);
    if (status == BH_OK && !bh__lane_get(launch->device, launch->options->lane))
        status = bh__last()->status;
    return status == BH_OK ? bh__params_check(launch) : status;
}

static bh_status answer(question *self) {
    bh__launch *launch = &self->launch;
    bh_status status;
    for (;;) {
        last_refused.set = false;
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
    record refused = last_refused;
    bh_status status = answer(self);
    bh__device_unlock(self->launch.device);
    last_refused = refused;
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
