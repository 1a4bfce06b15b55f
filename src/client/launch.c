/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: everything that can be known to be wrong is refused here, before the queue. */
#include <stdlib.h>
#include <string.h>

#include "client/internal.h"

enum { INLINE_USES = 32 };

typedef struct launch {
    bh__device *device;
    bh__kernel *kernel;
    const bh_launch_options *options;
    bh__launch_body body;
    uint32_t use_count;
    bh__use *uses;
    bh__use inline_uses[INLINE_USES];
    uint8_t params[BH__MAX_PARAM_BYTES] __attribute__((aligned(16)));
} launch;

static void dims_out(uint32_t out[3], bh_dim dim) {
    out[0] = dim.x ? dim.x : 1;
    out[1] = dim.y ? dim.y : 1;
    out[2] = dim.z ? dim.z : 1;
}

static bh_status check_axes(const char *kernel, const char *what, const uint32_t dims[3],
                            const uint32_t limits[3]) {
    for (int axis = 0; axis < 3; axis++) {
        if (dims[axis] <= limits[axis]) continue;
        return bh__refuse(BH_E_LAUNCH, "use a smaller shape, and let each thread do more",
                          "kernel %s: %s of %u x %u x %u; this device takes at most %u x %u x %u",
                          kernel, what, dims[0], dims[1], dims[2], limits[0], limits[1], limits[2]);
    }
    return BH_OK;
}

static bh_status check_cluster(const launch *self) {
    const char *name = self->kernel->name;
    uint64_t blocks = 1;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t size = self->body.cluster[axis] ? self->body.cluster[axis] : 1;
        blocks *= size > 1024 ? 1024 : size;
        if (self->body.grid[axis] % size) {
            return bh__refuse(BH_E_LAUNCH, "make the grid a multiple of the cluster",
                              "kernel %s: a grid of %u blocks in clusters of %u", name,
                              self->body.grid[axis], size);
        }
    }
    if (blocks > 1 && !self->device->info.cluster_launch) {
        return bh__refuse(BH_E_UNSUPPORTED, "launch without clusters on this device",
                          "kernel %s: device %s (%s) has no clusters", name,
                          self->device->info.name, self->device->info.arch);
    }
    return BH_OK;
}

static bh_status check_shape(launch *self, bh_shape shape) {
    const bh_device_info *info = &self->device->info;
    const bh__blob_kernel *kernel = &self->kernel->shape;
    const char *name = self->kernel->name;
    if (!shape.grid.x && !shape.grid.y && !shape.grid.z) {
        return bh__refuse(BH_E_LAUNCH, "launch at least one block and one thread",
                          "kernel %s: a grid of no blocks", name);
    }
    dims_out(self->body.grid, shape.grid);
    dims_out(self->body.block, shape.block);
    self->body.cluster[0] = shape.cluster.x;
    self->body.cluster[1] = shape.cluster.y;
    self->body.cluster[2] = shape.cluster.z;
    const uint32_t *block = self->body.block;
    if (check_axes(name, "a grid", self->body.grid, info->max_grid) != BH_OK ||
        check_axes(name, "a block", block, info->max_block) != BH_OK) {
        return BH_E_LAUNCH;
    }
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    uint32_t most = kernel->max_threads < info->max_threads_per_block ? kernel->max_threads
                                                                      : info->max_threads_per_block;
    if (threads > most) {
        return bh__refuse(
            BH_E_LAUNCH, "use smaller blocks, or build the kernel for larger ones",
            "kernel %s: a block of %u x %u x %u is %llu threads; this kernel takes at most %u",
            name, block[0], block[1], block[2], (unsigned long long)threads, most);
    }
    const uint32_t *required = kernel->required_block;
    if (required[0] &&
        (block[0] != required[0] || block[1] != required[1] || block[2] != required[2])) {
        return bh__refuse(
            BH_E_LAUNCH, "launch with the block the kernel was built for",
            "kernel %s: a block of %u x %u x %u; it was built for exactly %u x %u x %u", name,
            block[0], block[1], block[2], required[0], required[1], required[2]);
    }
    uint64_t shared = (uint64_t)kernel->static_shared + shape.shared_bytes;
    if (shared > info->shared_per_block_max) {
        return bh__refuse(
            BH_E_LAUNCH, "use less shared memory",
            "kernel %s: %u bytes of static and %u of dynamic shared memory; a block has at most %u",
            name, kernel->static_shared, shape.shared_bytes, info->shared_per_block_max);
    }
    self->body.shared_bytes = shape.shared_bytes;
    return shape.cluster.x | shape.cluster.y | shape.cluster.z ? check_cluster(self) : BH_OK;
}

static bh_status check_kernel(const launch *self) {
    const bh__kernel *kernel = self->kernel;
    if (kernel->quarantined) {
        return bh__refuse(
            BH_E_QUARANTINED, "mend the kernel, or let it run again with bh_kernel_pardon",
            "kernel %s faulted %u times and is not run any more", kernel->name, kernel->faults);
    }
    if (kernel->module->stale) {
        return bh__refuse(BH_E_STALE, "set its variables again and call bh_module_accept",
                          "kernel %s: the variables of its module were lost with a worker",
                          kernel->name);
    }
    return BH_OK;
}

/* ---- arguments
 * ---------------------------------------------------------------------------------------------- */

static bh_status add_use(launch *self, bh_buffer handle, uint32_t access, const char *what,
                         bh__use **out) {
    if (access < BH_ACCESS_IN || access > BH_ACCESS_INOUT) {
        return bh__refuse(BH_E_INVALID, "use BH_ACCESS_IN, BH_ACCESS_OUT or BH_ACCESS_INOUT",
                          "kernel %s: %s has access %u", self->kernel->name, what, access);
    }
    bh__buffer *buffer = bh__handle_get(self->device, handle.id, BH__KIND_BUFFER, what);
    if (!buffer) return bh__last()->status;
    bh__use *use = &self->uses[self->use_count++];
    *use = (bh__use){.memory = buffer->memory,
                     .offset = buffer->offset,
                     .bytes = buffer->bytes,
                     .access = access};
    *out = use;
    return BH_OK;
}

static bh_status pack_bytes(launch *self, uint32_t index, const void *bytes, uint32_t count) {
    const bh__blob_param *param = &self->kernel->params[index];
    if (count != param->bytes) {
        return bh__refuse(
            BH_E_LAUNCH, "pass a value of exactly the parameter's type; cast integers to its width",
            "kernel %s: argument %u has %u bytes, its parameter has %u", self->kernel->name, index,
            count, param->bytes);
    }
    memcpy(self->params + param->offset, bytes, count);
    return BH_OK;
}

static bh_status pack_arg(launch *self, uint32_t index, const bh_arg *arg) {
    const char *name = self->kernel->name;
    switch (arg->kind) {
    case BH_ARG_VALUE:
        if (arg->size == 0 || arg->size > sizeof arg->u.value) {
            return bh__refuse(BH_E_INVALID, "pass 1 to 16 bytes, or BH_VALUE for more",
                              "kernel %s: argument %u is a value of %u bytes", name, index,
                              arg->size);
        }
        return pack_bytes(self, index, arg->u.value, arg->size);
    case BH_ARG_DATA:
        if (!arg->u.data) {
            return bh__refuse(BH_E_INVALID, "pass the address of the value",
                              "kernel %s: argument %u is data at NULL", name, index);
        }
        return pack_bytes(self, index, arg->u.data, arg->size);
    case BH_ARG_BUFFER: {
        const bh__blob_param *param = &self->kernel->params[index];
        if (param->bytes != sizeof(uint64_t)) {
            return bh__refuse(BH_E_LAUNCH, "pass a scalar here",
                              "kernel %s: argument %u is a buffer, its parameter has %u bytes",
                              name, index, param->bytes);
        }
        bh__use *use;
        bh_status status = add_use(self, arg->u.buffer, arg->size, "argument", &use);
        if (status == BH_OK) use->argument = index + 1;
        return status;
    }
    default:
        return bh__refuse(BH_E_INVALID, "use BH_ARG_VALUE, BH_ARG_DATA or BH_ARG_BUFFER",
                          "kernel %s: argument %u has kind %u", name, index, arg->kind);
    }
}

static bool meets_writer(const launch *self, const bh__use *input) {
    for (uint32_t i = 0; i < self->use_count; i++) {
        const bh__use *use = &self->uses[i];
        if ((use->access & BH_ACCESS_OUT) && use->memory == input->memory &&
            use->offset < input->offset + input->bytes &&
            input->offset < use->offset + use->bytes) {
            return true;
        }
    }
    return false;
}

/* Inputs go by their read-only address, so that a kernel that writes one faults, except where the
 * launch also writes there. */
static void pack_addresses(launch *self, bh_args args, uint32_t flags) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < args.count; i++) {
        if (args.list[i].kind != BH_ARG_BUFFER) continue;
        const bh__use *use = &self->uses[next++];
        bool read_only = use->access == BH_ACCESS_IN && !(flags & BH_LAUNCH_WRITABLE_INPUTS) &&
                         !meets_writer(self, use);
        uint64_t address =
            (read_only ? use->memory->read_only_address : use->memory->address) + use->offset;
        memcpy(self->params + self->kernel->params[i].offset, &address, sizeof address);
    }
}

static bh_status pack(launch *self, bh_args args) {
    const bh__blob_kernel *kernel = &self->kernel->shape;
    const char *name = self->kernel->name;
    if (args.count != kernel->param_count) {
        return bh__refuse(BH_E_LAUNCH, "pass one argument for each parameter",
                          "kernel %s takes %u arguments, %zu were given", name, kernel->param_count,
                          args.count);
    }
    if (!args.list && args.count)
        return bh__refuse(BH_E_INVALID, "pass the arguments", "kernel %s: args.list is NULL", name);
    size_t also = self->options->also_count;
    if (also && !self->options->also)
        return bh__refuse(BH_E_INVALID, "pass the uses", "kernel %s: also is NULL", name);
    if (also > 65536)
        return bh__refuse(BH_E_INVALID, "name at most 65536 buffers",
                          "kernel %s: also names %zu buffers", name, also);
    self->uses = self->inline_uses;
    if (args.count + also > INLINE_USES) {
        self->uses = malloc((args.count + also) * sizeof *self->uses);
        if (!self->uses) {
            return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                              "no host memory for a launch with %zu buffers", args.count + also);
        }
    }
    memset(self->params, 0, kernel->param_bytes);
    for (uint32_t i = 0; i < args.count; i++) {
        bh_status status = pack_arg(self, i, &args.list[i]);
        if (status != BH_OK) return status;
    }
    for (size_t i = 0; i < also; i++) {
        bh__use *use;
        bh_status status = add_use(self, self->options->also[i].buffer,
                                   self->options->also[i].access, "also", &use);
        if (status != BH_OK) return status;
    }
    pack_addresses(self, args, self->options->flags);
    self->body.param_bytes = kernel->param_bytes;
    return BH_OK;
}

/* ---- the launch
 * ---------------------------------------------------------------------------------------------------
 */

static bh_status prepare(launch *self, bh_kernel handle, bh_shape shape, bh_args args) {
    self->use_count = 0;
    self->uses = self->inline_uses;
    self->kernel = bh__handle_get(self->device, handle.id, BH__KIND_KERNEL, "kernel");
    if (!self->kernel) return bh__last()->status;
    bh_status status = check_kernel(self);
    if (status == BH_OK) status = check_shape(self, shape);
    if (status == BH_OK) status = pack(self, args);
    self->body.module = self->kernel->module->number;
    self->body.kernel = self->kernel->index;
    self->body.flags = (self->options->flags & BH_LAUNCH_COOPERATIVE) |
                       (self->options->deadline_ns ? BH__LAUNCH_ALONE : 0);
    return status;
}

static bh_status submit(launch *self, bool *retry, bh_ticket *out) {
    const bh_launch_options *options = self->options;
    bh__lane *lane = bh__lane_get(self->device, options->lane);
    if (!lane) return bh__last()->status;
    bh__submission submission = {.lane = lane,
                                 .op = BH__OP_LAUNCH,
                                 .idempotent = (options->flags & BH_LAUNCH_IDEMPOTENT) != 0,
                                 .no_block = (options->flags & BH_LAUNCH_NO_BLOCK) != 0,
                                 .deadline_ns = options->deadline_ns
                                                    ? options->deadline_ns
                                                    : self->device->options.deadline_ns,
                                 .kernel = self->kernel,
                                 .module = self->kernel->module,
                                 .uses = self->uses,
                                 .use_count = self->use_count,
                                 .params = self->params,
                                 .param_bytes = self->body.param_bytes,
                                 .launch = &self->body};
    bh_status status = bh__submit(self->device, &submission, retry, out);
    if (status == BH_OK && !*retry) self->kernel->module->launched = true;
    return status;
}

static bh_status check_options(const bh_launch_options *given, bh_launch_options *out) {
    *out = (bh_launch_options)BH_INIT(*out);
    if (!given) return BH_OK;
    if (given->size < 2 * sizeof(uint32_t) || given->size > 4096) {
        return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                          "bh_launch_options.size is %u", given->size);
    }
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    uint32_t known = BH_LAUNCH_IDEMPOTENT | BH_LAUNCH_NO_BLOCK | BH_LAUNCH_WRITABLE_INPUTS |
                     BH_LAUNCH_COOPERATIVE;
    if (out->flags & ~known) {
        return bh__refuse(BH_E_INVALID, "use only flags from bulkhead.h",
                          "launch flags 0x%x are not known", out->flags & ~known);
    }
    return BH_OK;
}

bh_status bh_launch_with(bh_kernel kernel, bh_shape shape, bh_args args,
                         const bh_launch_options *given, bh_ticket *out) {
    bh_launch_options options;
    if (check_options(given, &options) != BH_OK) return BH_E_INVALID;
    launch self;
    self.options = &options;
    self.device = bh__device_lock(kernel.id, BH__KIND_KERNEL, "kernel", true);
    if (!self.device) return bh__last()->status;
    bh_status status;
    bool retry;
    do {
        retry = false;
        status = prepare(&self, kernel, shape, args);
        if (status == BH_OK) status = submit(&self, &retry, out);
        if (self.uses != self.inline_uses) free(self.uses);
    } while (retry && status == BH_OK);
    bh__device_unlock(self.device);
    return status;
}

bh_status bh_launch(bh_kernel kernel, bh_shape shape, bh_args args, bh_ticket *out) {
    return bh_launch_with(kernel, shape, args, NULL, out);
}

/* ---- for sequences: checked and packed as any launch, sent later
 * --------------------------------------------------------------------------------------------------
 */

bh_status bh__launch_pack(bh__device *device, bh_kernel kernel, bh_shape shape, bh_args args,
                          const bh_launch_options *given, bh__packed_launch *out) {
    bh_launch_options options;
    if (check_options(given, &options) != BH_OK) return BH_E_INVALID;
    launch self;
    self.options = &options;
    self.device = device;
    bh_status status = prepare(&self, kernel, shape, args);
    if (status == BH_OK) {
        out->kernel = self.kernel;
        out->body = self.body;
        out->use_count = self.use_count;
        out->uses = malloc((self.use_count + 1) * sizeof *out->uses);
        if (out->uses) memcpy(out->uses, self.uses, self.use_count * sizeof *out->uses);
        memcpy(out->params, self.params, self.body.param_bytes);
        if (!out->uses) {
            status = bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                                "no host memory for a launch with %u buffers", self.use_count);
        }
    }
    if (self.uses != self.inline_uses) free(self.uses);
    return status;
}
