/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a launch: whether the kernel may run, its shape and resources against the limits of device
 * and kernel, and whether its blocks fit at once. */
#include <string.h>

#include "client/launch/launch.h"
#include "client/module/module.h"

typedef unsigned long long ull;

#define REFUSE bh__launch_refuse

/* The oldest architecture with clusters and programmatic dependent launch. */
#define CLUSTER_ARCH "sm_90"

/* ---- the kernel ---- */

bh_status bh__kernel_check(bh__launch *self) {
    const bh__kernel *kernel = self->kernel;
    if (kernel->quarantined) {
        return REFUSE(self, BH_REASON_QUARANTINED, kernel->faults, 0, BH_E_QUARANTINED,
                      "fix the kernel, or let it run again with bh_kernel_pardon "
                      "(an operation of a library: bh_library_load)",
                      "kernel %s faulted %u times and is quarantined", kernel->name,
                      kernel->faults);
    }
    if (kernel->module->disputed) {
        bh__refuse_disputed(kernel->module, bh__last());
        self->reason = BH_REASON_MODULE_STALE;
        bh__launch_record(self, BH_REASON_MODULE_STALE, 0, 0);
        return BH_E_LOAD;
    }
    if (kernel->module->stale) {
        self->device->counters.stale_refusals++;
        return REFUSE(self, BH_REASON_MODULE_STALE, 0, 0, BH_E_STALE,
                      "set its variables again and call bh_module_accept",
                      "kernel %s: the variables of its module were lost with a worker",
                      kernel->name);
    }
    return BH_OK;
}

uint32_t bh__kernel_max_threads(const bh__device *device, const bh__kernel *kernel) {
    uint32_t limit = device->info.max_threads_per_block, own = kernel->shape.max_threads;
    return own < limit ? own : limit;
}

uint32_t bh__kernel_max_shared(const bh__device *device, const bh__kernel *kernel) {
    uint32_t limit = device->info.shared_per_block_max, own = kernel->shape.static_shared;
    return own < limit ? limit - own : 0;
}

/* ---- grid and block ---- */

/* Zeros at the end count as 1. False: a zero stands before a number. */
static __attribute__((noinline)) bool complete_dims(uint32_t dims[3]) {
    bool in_order = !((dims[2] && (!dims[1] || !dims[0])) || (dims[1] && !dims[0]));
    for (int i = 0; i < 3; i++) dims[i] += dims[i] == 0;
    return in_order;
}

static inline bool read_dims(uint32_t out[3], bh_dim dim) {
    out[0] = dim.x;
    out[1] = dim.y;
    out[2] = dim.z;
    return (dim.x && dim.y && dim.z) || complete_dims(out);
}

/* `dims` gets the shape as it was given, for the record. */
static BH__COLD bh_status refuse_zero(bh__launch *self, const char *what, bh_dim dim,
                                      uint32_t *dims) {
    dims[0] = dim.x;
    dims[1] = dim.y;
    dims[2] = dim.z;
    return REFUSE(self, BH_REASON_ZERO_DIMENSION, 0, 1, BH_E_LAUNCH,
                  "launch at least one block and one thread; check how the shape was computed",
                  "kernel %s: the %s is %u x %u x %u", self->kernel->name, what, dim.x, dim.y,
                  dim.z);
}

static BH__COLD bh_status refuse_axes(bh__launch *self, uint32_t reason, const char *what,
                                      const uint32_t dims[3], const uint32_t limits[3]) {
    int axis = 0;
    while (dims[axis] <= limits[axis]) axis++;
    return REFUSE(self, reason, dims[axis], limits[axis], BH_E_LAUNCH,
                  "use a smaller shape and do more work in each thread",
                  "kernel %s: the %s is %u x %u x %u; the maximum of this device is %u x %u x %u",
                  self->kernel->name, what, dims[0], dims[1], dims[2], limits[0], limits[1],
                  limits[2]);
}

static bool within(const uint32_t dims[3], const uint32_t limits[3]) {
    return dims[0] <= limits[0] && dims[1] <= limits[1] && dims[2] <= limits[2];
}

static BH__COLD bh_status refuse_threads(bh__launch *self, uint64_t threads, uint32_t limit) {
    const uint32_t *block = self->body.block;
    const bh__device_facts *info = &self->device->info;
    const bh__kernel *kernel = self->kernel;
    bool own = limit < info->max_threads_per_block;
    return REFUSE(
        self, own ? BH_REASON_KERNEL_THREADS : BH_REASON_BLOCK_THREADS, threads, limit, BH_E_LAUNCH,
        own ? "use smaller blocks, or build the kernel for larger ones (launch bounds, "
              "fewer registers)"
            : "use smaller blocks and more of them",
        "kernel %s: the block of %u x %u x %u has %llu threads; the maximum of this %s is "
        "%u (the kernel uses %u registers a thread)",
        kernel->name, block[0], block[1], block[2], (ull)threads, own ? "kernel" : "device", limit,
        kernel->shape.registers);
}

static BH__COLD bh_status refuse_required(bh__launch *self) {
    const uint32_t *block = self->body.block, *required = self->kernel->shape.required_block;
    return REFUSE(self, BH_REASON_REQUIRED_BLOCK, (ull)block[0] * block[1] * block[2],
                  (ull)required[0] * required[1] * required[2], BH_E_LAUNCH,
                  "launch with the block that the kernel requires",
                  "kernel %s: the block is %u x %u x %u; the kernel requires exactly %u x %u x %u",
                  self->kernel->name, block[0], block[1], block[2], required[0], required[1],
                  required[2]);
}

static BH__COLD bh_status refuse_shared(bh__launch *self, uint64_t bytes) {
    const bh__blob_kernel *kernel = &self->kernel->shape;
    uint32_t limit = self->device->info.shared_per_block_max;
    return REFUSE(
        self, BH_REASON_SHARED_MEMORY, bytes, limit, BH_E_LAUNCH, "use less shared memory",
        "kernel %s: %u bytes of static and %u of dynamic shared memory; a block has at most %u",
        self->kernel->name, kernel->static_shared, self->body.shared_bytes, limit);
}

/* ---- clusters, cooperative launches, attributes: off the fast path ---- */

static uint64_t block_count(const bh__launch_body *body) {
    return (uint64_t)body->grid[0] * body->grid[1] * body->grid[2];
}

static bh_status check_cluster(bh__launch *self, bh_dim given) {
    const char *name = self->kernel->name;
    const bh__blob_kernel *kernel = &self->kernel->shape;
    bh__launch_body *body = &self->body;
    const uint32_t *required = kernel->required_cluster;
    bool any = given.x | given.y | given.z;
    if (any && !read_dims(body->cluster, given))
        return refuse_zero(self, "cluster", given, body->cluster);
    if (required[0]) {
        if (any && (body->cluster[0] != required[0] || body->cluster[1] != required[1] ||
                    body->cluster[2] != required[2])) {
            return REFUSE(
                self, BH_REASON_REQUIRED_CLUSTER,
                (ull)body->cluster[0] * body->cluster[1] * body->cluster[2],
                (ull)required[0] * required[1] * required[2], BH_E_LAUNCH,
                "launch with the cluster that the kernel requires, or name none",
                "kernel %s: the cluster is %u x %u x %u; the kernel requires exactly %u x %u x %u",
                name, body->cluster[0], body->cluster[1], body->cluster[2], required[0],
                required[1], required[2]);
        }
        for (int i = 0; i < 3; i++) body->cluster[i] = required[i];
    } else if (kernel->needs_cluster && !any) {
        return REFUSE(self, BH_REASON_REQUIRED_CLUSTER, 0, 1, BH_E_LAUNCH,
                      "name a cluster in the shape",
                      "kernel %s requires a cluster, and the shape has none", name);
    }
    for (int axis = 0; axis < 3; axis++) {
        if (!body->cluster[0] || body->grid[axis] % body->cluster[axis] == 0) continue;
        return REFUSE(
            self, BH_REASON_CLUSTER_GRID, body->grid[axis], body->cluster[axis], BH_E_LAUNCH,
            "make each axis of the grid a multiple of the same axis of the cluster",
            "kernel %s: the grid, %u x %u x %u, is no multiple of the cluster, %u x %u x %u", name,
            body->grid[0], body->grid[1], body->grid[2], body->cluster[0], body->cluster[1],
            body->cluster[2]);
    }
    bool clustered = body->cluster[0] > 1 || body->cluster[1] > 1 || body->cluster[2] > 1;
    if ((clustered || kernel->needs_cluster) && !self->device->info.cluster_launch) {
        return REFUSE(self, BH_REASON_CLUSTER_UNSUPPORTED, 1, 0, BH_E_UNSUPPORTED,
                      "launch without clusters, or on a device of " CLUSTER_ARCH " or later",
                      "kernel %s: clusters are not supported on %s (%s)", name,
                      self->device->info.name, self->device->info.arch);
    }
    /* A cluster of one block counts as none, unless the kernel requires clusters. */
    if (!clustered && !kernel->needs_cluster && !required[0])
        body->cluster[0] = body->cluster[1] = body->cluster[2] = 0;
    return BH_OK;
}

static BH__COLD bh_status refuse_attribute(bh__launch *self, const char *what, int64_t given,
                                           const char *fix) {
    return REFUSE(self, BH_REASON_ATTRIBUTE, (uint64_t)given, 0, BH_E_UNSUPPORTED, fix,
                  "kernel %s: %s not supported on %s (%s)", self->kernel->name, what,
                  self->device->info.name, self->device->info.arch);
}

static bh_status check_attributes(bh__launch *self) {
    const bh_launch_options *options = self->options;
    const bh__device_facts *info = &self->device->info;
    if (options->flags & BH_LAUNCH_PRIORITY) {
        int32_t lowest = info->priority_lowest, highest = info->priority_highest;
        if (lowest == highest)
            return refuse_attribute(self, "launch priorities are", options->priority,
                                    "launch without BH_LAUNCH_PRIORITY on this device");
        if (options->priority < lowest || options->priority > highest)
            return REFUSE(self, BH_REASON_ATTRIBUTE, (uint64_t)(int64_t)options->priority,
                          (uint64_t)(int64_t)highest, BH_E_INVALID,
                          "use priority_lowest to priority_highest of bh_device_limits",
                          "kernel %s: the priority is %d; this device supports %d to %d",
                          self->kernel->name, (int)options->priority, (int)lowest, (int)highest);
        self->body.priority = options->priority;
    } else if (options->priority) {
        return REFUSE(self, BH_REASON_ATTRIBUTE, (uint64_t)(int64_t)options->priority, 0,
                      BH_E_INVALID, "set BH_LAUNCH_PRIORITY in flags, or leave priority at 0",
                      "kernel %s: the priority is %d, and BH_LAUNCH_PRIORITY is not set",
                      self->kernel->name, (int)options->priority);
    }
    /* These need the same generation of devices as clusters. */
    if ((options->flags & BH_LAUNCH_PROGRAMMATIC) && !info->cluster_launch)
        return refuse_attribute(
            self, "programmatic dependent launch is", 1,
            "launch without BH_LAUNCH_PROGRAMMATIC, or on a device of " CLUSTER_ARCH " or later");
    if (options->cluster_policy > BH_CLUSTER_BALANCE)
        return REFUSE(
            self, BH_REASON_ATTRIBUTE, options->cluster_policy, BH_CLUSTER_BALANCE, BH_E_INVALID,
            "use BH_CLUSTER_DEFAULT, BH_CLUSTER_SPREAD or BH_CLUSTER_BALANCE",
            "kernel %s: cluster_policy is %u", self->kernel->name, options->cluster_policy);
    if (options->cluster_policy && !info->cluster_launch)
        return refuse_attribute(self, "cluster_policy is", options->cluster_policy,
                                "use BH_CLUSTER_DEFAULT, or a device of " CLUSTER_ARCH " or later");
    self->body.cluster_policy = options->cluster_policy;
    return BH_OK;
}

static BH__COLD bh_status refuse_residency(bh__launch *self, const bh__fit *fit, uint64_t blocks) {
    const bh__launch_body *body = &self->body;
    bool clustered = fit->clusters != 0;
    return REFUSE(
        self, BH_REASON_RESIDENCY, blocks, fit->resident, BH_E_RESIDENCY,
        "use fewer blocks with more work each, or smaller blocks with less shared memory and "
        "fewer registers; bh_launch_preflight reports what fits",
        "kernel %s: %llu blocks of %u threads with %u bytes of dynamic shared memory cannot "
        "all be resident at once; the maximum is %llu (%u %s)",
        self->kernel->name, (ull)blocks, body->block[0] * body->block[1] * body->block[2],
        body->shared_bytes, (ull)fit->resident,
        clustered ? fit->clusters : fit->blocks_per_multiprocessor,
        clustered ? "clusters" : "on each multiprocessor");
}

/* Checks that need an answer of the worker. */
static bh_status check_fit(bh__launch *self, bool clustered, bool cooperative) {
    bh__launch_body *body = &self->body;
    if (cooperative && !self->device->info.cooperative) {
        return REFUSE(self, BH_REASON_COOPERATIVE_UNSUPPORTED, 1, 0, BH_E_UNSUPPORTED,
                      "launch without BH_LAUNCH_COOPERATIVE, or on a device of sm_60 or later",
                      "kernel %s: cooperative launches are not supported on %s (%s)",
                      self->kernel->name, self->device->info.name, self->device->info.arch);
    }
    const bh__fit *fit = bh__fit_known(self->kernel, body);
    if (!fit) {
        self->asks = true;
        return BH_E_BUSY;
    }
    if (clustered && fit->clusters == 0) {
        uint64_t size = (uint64_t)body->cluster[0] * body->cluster[1] * body->cluster[2];
        return REFUSE(self, BH_REASON_CLUSTER_SIZE, size, fit->largest_cluster, BH_E_LAUNCH,
                      "use smaller clusters, or blocks with less shared memory and fewer threads",
                      "kernel %s: clusters of %u x %u x %u blocks of %u threads with %u bytes of "
                      "dynamic shared memory do not fit this device; the maximum is %u blocks",
                      self->kernel->name, body->cluster[0], body->cluster[1], body->cluster[2],
                      body->block[0] * body->block[1] * body->block[2], body->shared_bytes,
                      fit->largest_cluster);
    }
    uint64_t blocks = block_count(body);
    return cooperative && blocks > fit->resident ? refuse_residency(self, fit, blocks) : BH_OK;
}

static __attribute__((noinline)) bh_status check_attributes_and_fit(bh__launch *self,
                                                                    bh_dim cluster) {
    bh_status status = check_cluster(self, cluster);
    if (status == BH_OK) status = check_attributes(self);
    if (status != BH_OK) return status;
    const uint32_t *size = self->body.cluster;
    bool clustered = size[0] > 1 || size[1] > 1 || size[2] > 1;
    bool cooperative = self->options->flags & BH_LAUNCH_COOPERATIVE;
    return clustered || cooperative ? check_fit(self, clustered, cooperative) : BH_OK;
}

bh_status bh__shape_check(bh__launch *self, const bh_shape *shape) {
    const bh__device_facts *info = &self->device->info;
    const bh__blob_kernel *kernel = &self->kernel->shape;
    const bh_launch_options *options = self->options;
    bh__launch_body *body = &self->body;
    const uint32_t *block = body->block, *required = kernel->required_block;
    self->shaped = true;
    body->cluster[0] = body->cluster[1] = body->cluster[2] = 0;
    body->shared_bytes = shape->shared_bytes;
    body->priority = 0;
    body->cluster_policy = 0;
    bool block_valid = read_dims(body->block, shape->block);
    bool grid_valid = read_dims(body->grid, shape->grid) && shape->grid.x;
    /* The block first: a grid that was computed from a zero block may be zero because of it. */
    if (!block_valid) return refuse_zero(self, "block", shape->block, body->block);
    if (!grid_valid) return refuse_zero(self, "grid", shape->grid, body->grid);
    if (!within(body->grid, info->max_grid))
        return refuse_axes(self, BH_REASON_GRID_AXIS, "grid", body->grid, info->max_grid);
    if (!within(block, info->max_block))
        return refuse_axes(self, BH_REASON_BLOCK_AXIS, "block", block, info->max_block);
    /* As in the CUDA driver: a block of one thread means the block that the kernel requires. */
    if (required[0] && (block[0] | block[1] | block[2]) == 1)
        memcpy(body->block, required, sizeof body->block);
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    uint32_t limit = bh__kernel_max_threads(self->device, self->kernel);
    if (threads > limit) return refuse_threads(self, threads, limit);
    if (required[0] &&
        (block[0] != required[0] || block[1] != required[1] || block[2] != required[2]))
        return refuse_required(self);
    uint64_t shared = (uint64_t)kernel->static_shared + shape->shared_bytes;
    if (shared > info->shared_per_block_max) return refuse_shared(self, shared);
    const uint32_t attributes = BH_LAUNCH_COOPERATIVE | BH_LAUNCH_PRIORITY | BH_LAUNCH_PROGRAMMATIC;
    if ((options->flags & attributes) | shape->cluster.x | shape->cluster.y | shape->cluster.z |
        kernel->required_cluster[0] | kernel->needs_cluster | (uint32_t)options->priority |
        options->cluster_policy)
        return check_attributes_and_fit(self, shape->cluster);
    return BH_OK;
}
