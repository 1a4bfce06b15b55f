/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the arguments of a launch against the kernel's parameters and packs them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/launch/launch.h"
#include "client/managed/managed.h"

typedef unsigned long long ull;

#define REFUSE bh__launch_refuse

static uint32_t index_of(const bh__launch *self, const bh__blob_param *param) {
    return (uint32_t)(param - self->kernel->params);
}

static const char *access_name(uint32_t access, bool at_least) {
    static const char *const names[2][4] = {
        {"", "BH_IN", "BH_OUT", "BH_INOUT"},
        {"", "BH_IN_AT_LEAST", "BH_OUT_AT_LEAST", "BH_INOUT_AT_LEAST"}};
    return access - BH_ACCESS_IN <= BH_ACCESS_INOUT - BH_ACCESS_IN ? names[at_least][access] : "";
}

/* ---- buffers ---- */

/* A buffer of a launch: an argument, or one of options->also. */
typedef struct source {
    uint32_t argument; /* from 1 on; 0: it is also[index] */
    uint32_t index;
    bool at_least;
} source;

/* "argument 2 (BH_IN)" or "also[3]" */
static void name_source(source from, uint32_t access, char *out, size_t size) {
    const char *kind = access_name(access, from.at_least);
    if (!from.argument)
        snprintf(out, size, "also[%u]", from.index);
    else if (*kind)
        snprintf(out, size, "argument %u (%s)", from.argument - 1, kind);
    else
        snprintf(out, size, "argument %u", from.argument - 1);
}

static BH__COLD bh_status refuse_access(bh__launch *self, uint32_t access, source from) {
    char name[64];
    name_source(from, access, name, sizeof name);
    return REFUSE(self, BH_REASON_ARGUMENT_KIND, access, BH_ACCESS_INOUT, BH_E_INVALID,
                  "use BH_ACCESS_IN, BH_ACCESS_OUT or BH_ACCESS_INOUT",
                  "kernel %s: the access of %s is %u", self->kernel->name, name, access);
}

static BH__COLD bh_status refuse_handle(bh__launch *self, bh_buffer handle, uint32_t access,
                                        source from) {
    char name[64];
    name_source(from, access, name, sizeof name);
    (void)bh__handle_get(self->device, handle.id, BH__KIND_BUFFER, name); /* sets the error */
    self->reason = BH_REASON_BUFFER_HANDLE;
    bh__launch_record(self, BH_REASON_BUFFER_HANDLE, 0, 0);
    return bh__last()->status;
}

static inline bh_status take_use(bh__launch *self, bh_buffer handle, uint32_t access, source from,
                                 bh__use *out) {
    if (access - BH_ACCESS_IN > BH_ACCESS_INOUT - BH_ACCESS_IN)
        return refuse_access(self, access, from);
    const bh__buffer *buffer =
        bh__handle_find(self->device, &self->device->handles.buffers, handle.id, BH__KIND_BUFFER);
    if (!buffer) return refuse_handle(self, handle, access, from);
    out->memory = buffer->memory;
    out->offset = buffer->offset;
    out->bytes = buffer->bytes;
    out->access = access;
    out->argument = from.argument;
    return BH_OK;
}

static BH__COLD bh_status refuse_buffer(bh__launch *self, const bh__blob_param *param, source from,
                                        uint32_t access) {
    char name[64];
    name_source(from, access, name, sizeof name);
    if (param->bytes != sizeof(uint64_t))
        return REFUSE(self, BH_REASON_ARGUMENT_KIND, sizeof(uint64_t), param->bytes, BH_E_LAUNCH,
                      "pass a scalar here",
                      "kernel %s: %s is a buffer, its parameter has %u bytes; a pointer has 8",
                      self->kernel->name, name, param->bytes);
    return REFUSE(self, BH_REASON_ARGUMENT_KIND, sizeof(uint64_t), param->bytes, BH_E_LAUNCH,
                  "pass a scalar here",
                  "kernel %s: %s is a buffer, its parameter is a floating-point number",
                  self->kernel->name, name);
}

static BH__COLD bh_status refuse_small(bh__launch *self, source from, uint32_t access, uint64_t has,
                                       uint64_t needs) {
    char name[64];
    name_source(from, access, name, sizeof name);
    return REFUSE(self, BH_REASON_BUFFER_SMALL, needs, has, BH_E_LAUNCH,
                  "pass a larger buffer, or launch for less data",
                  "kernel %s: %s is a buffer of %llu bytes; %llu are needed", self->kernel->name,
                  name, (ull)has, (ull)needs);
}

static inline bh_status take_buffer(bh__launch *self, const bh__blob_param *param,
                                    const bh_arg *arg, bh__use *out) {
    source from = {.argument = index_of(self, param) + 1, .at_least = arg->u.buffer.at_least != 0};
    if (param->bytes != sizeof(uint64_t) || param->scalar)
        return refuse_buffer(self, param, from, arg->access);
    bh_status status = take_use(self, arg->u.buffer.handle, arg->access, from, out);
    if (status == BH_OK && out->bytes < arg->u.buffer.at_least)
        return refuse_small(self, from, arg->access, out->bytes, arg->u.buffer.at_least);
    return status;
}

/* ---- values ---- */

/* Returns true if the value is an address that a kernel may be given. */
static bool is_address(const bh__device *device, uint64_t value) {
    for (uint32_t i = 0; i < device->memory.chunk_count; i++) {
        const bh__chunk *chunk = &device->memory.chunks[i].chunk;
        if (value - chunk->address < chunk->bytes ||
            value - chunk->read_only_address < chunk->bytes)
            return true;
    }
    if (bh__driver_managed_has(device, value)) return true;
    for (uint32_t i = 0; i < device->transfer.host_count; i++) {
        if (value - (uintptr_t)device->transfer.hosts[i].memory->host <
            device->transfer.hosts[i].region.bytes)
            return true;
    }
    return false;
}

static BH__COLD bh_status refuse_size(bh__launch *self, const bh__blob_param *param,
                                      uint32_t count) {
    return REFUSE(self, BH_REASON_ARGUMENT_SIZE, count, param->bytes, BH_E_LAUNCH,
                  "pass a value of exactly the parameter's type; cast integers to its width",
                  "kernel %s: argument %u (a value) has %u bytes, its parameter has %u",
                  self->kernel->name, index_of(self, param), count, param->bytes);
}

static __attribute__((noinline)) bh_status
check_pointer(bh__launch *self, const bh__blob_param *param, const void *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    if (value == 0 || is_address(self->device, value)) return BH_OK;
    return REFUSE(
        self, BH_REASON_ARGUMENT_KIND, value, 0, BH_E_LAUNCH,
        "pass BH_IN, BH_OUT or BH_INOUT with a buffer, BH_NULL, or an address from "
        "bh_buffer_get_info",
        "kernel %s: argument %u (a value) is 0x%llx, which is not an address in any buffer; its "
        "parameter is a pointer",
        self->kernel->name, index_of(self, param), (ull)value);
}

static inline bh_status take_bytes(bh__launch *self, const bh__blob_param *param, const void *bytes,
                                   uint32_t count, uint8_t *params) {
    if (count != param->bytes) return refuse_size(self, param, count);
    uint8_t *target = params + param->offset;
    if (count == 4) {
        memcpy(target, bytes, 4);
    } else if (count == 8) {
        if (param->pointer) {
            bh_status status = check_pointer(self, param, bytes);
            if (status != BH_OK) return status;
        }
        memcpy(target, bytes, 8);
    } else {
        memcpy(target, bytes, count);
    }
    return BH_OK;
}

static BH__COLD bh_status refuse_value(bh__launch *self, const bh__blob_param *param,
                                       const bh_arg *arg) {
    const char *name = self->kernel->name;
    uint32_t index = index_of(self, param);
    switch (arg->kind) {
    case BH_ARG_VALUE:
        return REFUSE(self, BH_REASON_ARGUMENT_SIZE, arg->size, sizeof arg->u.value, BH_E_INVALID,
                      "pass 1 to 16 bytes, or BH_VALUE for more",
                      "kernel %s: argument %u (BH_ARG_VALUE) has %u bytes", name, index, arg->size);
    case BH_ARG_DATA:
        return REFUSE(self, BH_REASON_ARGUMENT_KIND, 0, 0, BH_E_INVALID,
                      "pass the address of the value", "kernel %s: argument %u (BH_VALUE) is NULL",
                      name, index);
    case BH_ARG_HOST:
        return REFUSE(self, BH_REASON_ARGUMENT_KIND, 0, 0, BH_E_INVALID,
                      "use bh_dispatch, or pass a buffer with BH_IN and its like",
                      "kernel %s: argument %u is an array of the program (BH_HOST_...), which only "
                      "bh_dispatch takes",
                      name, index);
    default:
        return REFUSE(self, BH_REASON_ARGUMENT_KIND, arg->kind, BH_ARG_TENSOR_MAP, BH_E_INVALID,
                      "use BH_ARG_VALUE, BH_ARG_DATA, BH_ARG_BUFFER or another of BH_ARG_...",
                      "kernel %s: the kind of argument %u is %u", name, index, arg->kind);
    }
}

static inline bool is_object(const bh_arg *arg) {
    return arg->kind >= BH_ARG_TEXTURE && arg->kind <= BH_ARG_TENSOR_MAP;
}

static inline bh_status take_value(bh__launch *self, const bh__blob_param *param, const bh_arg *arg,
                                   uint8_t *params) {
    if (arg->kind == BH_ARG_VALUE && arg->size - 1 < sizeof arg->u.value)
        return take_bytes(self, param, arg->u.value, arg->size, params);
    if (arg->kind == BH_ARG_DATA && arg->u.data)
        return take_bytes(self, param, arg->u.data, arg->size, params);
    return is_object(arg) ? bh__object_take(self, param, arg) : refuse_value(self, param, arg);
}

/* ---- large parameters ---- */

BH__COLD bh_status bh__params_check(bh__launch *self) {
    uint32_t bytes = self->kernel->shape.param_bytes;
    uint32_t length = self->device->queue.length, limit = bh__params_that_fit(length);
    if (bytes <= limit) return BH_OK;
    uint32_t needed = length;
    while (bh__params_that_fit(needed) < bytes) needed *= 2;
    char fix[128];
    snprintf(fix, sizeof fix,
             "open the device with a queue_length of %u or more, or pass the data in a buffer",
             needed);
    return REFUSE(self, BH_REASON_PARAMETER_BYTES, bytes, limit, BH_E_LAUNCH, fix,
                  "kernel %s has %u bytes of parameters; a queue of %u slots takes at most %u",
                  self->kernel->name, bytes, length, limit);
}

BH__COLD bh_status bh__params_reserve(bh__launch *self, uint32_t bytes) {
    uint8_t *room = malloc(bytes);
    if (room) {
        self->params = room;
        return BH_OK;
    }
    return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                      "no host memory for a launch of kernel %s with %u bytes of parameters",
                      self->kernel->name, bytes);
}

/* ---- one argument, and all ---- */

static inline bool is_buffer(const bh_arg *arg) {
    return arg->kind == BH_ARG_BUFFER;
}

bh_status bh__argument_take(bh__launch *self, uint32_t index, const bh_arg *arg, uint8_t *params,
                            bh__use *use, bool *out_is_buffer) {
    const bh__blob_param *param = &self->kernel->params[index];
    *out_is_buffer = is_buffer(arg);
    bool kept = self->body.flags & BH__LAUNCH_OBJECTS && bh__objects_have(self, param, params);
    if (is_object(arg) || kept)
        return REFUSE(self, BH_REASON_ARGUMENT_KIND, 0, 0, BH_E_UNSUPPORTED,
                      "prepare or record another launch, or use bh_launch",
                      "kernel %s: argument %u is a texture, surface or tensor map, which cannot be "
                      "changed",
                      self->kernel->name, index);
    return *out_is_buffer ? take_buffer(self, param, arg, use)
                          : take_value(self, param, arg, params);
}

static BH__COLD bh_status refuse_count(bh__launch *self, size_t count) {
    uint32_t wanted = self->kernel->shape.param_count;
    return REFUSE(self, BH_REASON_ARGUMENT_COUNT, count, wanted, BH_E_LAUNCH,
                  "pass one argument for each parameter",
                  "kernel %s takes %u arguments; %zu were given", self->kernel->name, wanted,
                  count);
}

/* Called if the uses may exceed inline_uses, or if options->also names some. */
static BH__COLD bh_status make_room(bh__launch *self, size_t uses) {
    size_t also = self->options->also_count;
    const char *name = self->kernel->name;
    if (also && !self->options->also)
        return bh__refuse(BH_E_INVALID, "pass the buffers",
                          "kernel %s: options.also is NULL, also_count is %zu", name, also);
    if (also > 65536)
        return bh__refuse(BH_E_INVALID, "name at most 65536 buffers",
                          "kernel %s: options.also names %zu buffers", name, also);
    if (uses <= BH__INLINE_USES) return BH_OK;
    bh__use *list = malloc(uses * sizeof *self->uses);
    if (!list) {
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a launch of kernel %s with %zu buffers", name, uses);
    }
    self->uses = list;
    return BH_OK;
}

static bh_status take_also(bh__launch *self) {
    for (size_t i = 0; i < self->options->also_count; i++) {
        const bh_use *also = &self->options->also[i];
        bh_status status = bh__reserved_check(also->reserved, "bh_use");
        if (status == BH_OK)
            status = take_use(self, also->buffer, also->access, (source){.index = (uint32_t)i},
                              &self->uses[self->use_count]);
        if (status != BH_OK) return status;
        self->use_count++;
    }
    return BH_OK;
}

bool bh__use_is_written(const bh__use *uses, uint32_t count, const bh__use *input) {
    for (uint32_t i = 0; i < count; i++) {
        const bh__use *use = &uses[i];
        if ((use->access & BH_ACCESS_OUT) && use->memory == input->memory &&
            use->offset < input->offset + input->bytes &&
            input->offset < use->offset + use->bytes) {
            return true;
        }
    }
    return false;
}

static inline void place(const bh__kernel *kernel, const bh__use *uses, uint32_t use_count,
                         bool writable_inputs, uint8_t *params) {
    for (uint32_t i = 0; i < use_count && uses[i].argument; i++) {
        const bh__use *use = &uses[i];
        bool read_only = use->access == BH_ACCESS_IN && !writable_inputs &&
                         !bh__use_is_written(uses, use_count, use);
        uint64_t address =
            (read_only ? use->memory->read_only_address : use->memory->address) + use->offset;
        memcpy(params + kernel->params[use->argument - 1].offset, &address, sizeof address);
    }
}

void bh__arguments_place(const bh__kernel *kernel, const bh__use *uses, uint32_t use_count,
                         bool writable_inputs, uint8_t *params) {
    place(kernel, uses, use_count, writable_inputs, params);
}

/* The buffers were checked against the ranges when those were made; handles do not change what they
 * are for. */
static BH__COLD void narrow_uses(bh__launch *self) {
    for (uint32_t i = 0; i < self->use_count; i++) {
        self->uses[i].offset += self->ranges[i].offset;
        self->uses[i].bytes = self->ranges[i].bytes;
        if (self->ranges[i].gaps) self->uses[i].access |= BH__ACCESS_GAPS;
    }
}

bh_status bh__arguments_take(bh__launch *self, bh_args args) {
    const bh__kernel *kernel = self->kernel;
    size_t also = self->options->also_count;
    bh_status status = BH_OK;
    if (args.count != kernel->shape.param_count) return refuse_count(self, args.count);
    if (!args.list && args.count)
        return bh__refuse(BH_E_INVALID, "pass the arguments",
                          "kernel %s: args.list is NULL, args.count is %zu", kernel->name,
                          args.count);
    if (also || args.count > BH__INLINE_USES) status = make_room(self, args.count + also);
    if (status != BH_OK) return status;
    if (kernel->padded) memset(self->params, 0, kernel->shape.param_bytes);
    const bh__blob_param *param = kernel->params;
    bh__use *use = self->uses;
    for (size_t left = args.count; left; left--, param++, args.list++) {
        status = is_buffer(args.list) ? take_buffer(self, param, args.list, use++)
                                      : take_value(self, param, args.list, self->params);
        if (status != BH_OK) return status;
    }
    self->use_count = (uint32_t)(use - self->uses);
    if (__builtin_expect(self->ranges != NULL, 0)) narrow_uses(self);
    if (also) status = take_also(self);
    if (status != BH_OK) return status;
    place(kernel, self->uses, self->use_count, self->options->flags & BH_LAUNCH_WRITABLE_INPUTS,
          self->params);
    self->body.param_bytes = kernel->shape.param_bytes;
    return __builtin_expect(self->objects != NULL, 0) ? bh__objects_place(self) : BH_OK;
}
