/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a launch against the kernel's parameters, and into their places. */
#include <string.h>

#include "client/launch.h"

typedef unsigned long long ull;

#define REFUSE bh__launch_refuse

static inline bh_status take_use(bh__launch *self, bh_buffer handle, uint32_t access,
                                 const char *what, bh__use *out) {
    if (access - BH_ACCESS_IN > BH_ACCESS_INOUT - BH_ACCESS_IN) {
        return REFUSE(self, BH_REASON_ARGUMENT_KIND, access, BH_ACCESS_INOUT, BH_E_INVALID,
                      "use BH_ACCESS_IN, BH_ACCESS_OUT or BH_ACCESS_INOUT",
                      "kernel %s: %s has access %u", self->kernel->name, what, access);
    }
    const bh__buffer *buffer =
        bh__handle_find(self->device, &self->device->buffers, handle.id, BH__KIND_BUFFER);
    if (!buffer) {
        (void)bh__handle_get(self->device, handle.id, BH__KIND_BUFFER, what); /* says why */
        self->reason = BH_REASON_BUFFER_HANDLE;
        bh__launch_record(self, BH_REASON_BUFFER_HANDLE, 0, 0);
        return bh__last()->status;
    }
    out->memory = buffer->memory;
    out->offset = buffer->offset;
    out->bytes = buffer->bytes;
    out->access = access;
    out->argument = 0;
    return BH_OK;
}

bh_status bh__use_take(bh__launch *self, bh_buffer handle, uint32_t access, const char *what,
                       bh__use *out) {
    return take_use(self, handle, access, what, out);
}

/* Whether a kernel could be given this as an address. */
static bool is_address(const bh__device *device, uint64_t value) {
    for (uint32_t i = 0; i < device->chunk_count; i++) {
        const bh__chunk *chunk = &device->chunks[i].chunk;
        if (value - chunk->address < chunk->bytes ||
            value - chunk->read_only_address < chunk->bytes)
            return true;
    }
    if (bh__driven_has(device, value)) return true;
    for (uint32_t i = 0; i < device->host_count; i++) {
        if (value - (uintptr_t)device->hosts[i].memory->host < device->hosts[i].region.bytes)
            return true;
    }
    return false;
}

static bh_status refuse_size(bh__launch *self, uint32_t index, uint32_t count) {
    uint32_t bytes = self->kernel->params[index].bytes;
    return REFUSE(self, BH_REASON_ARGUMENT_SIZE, count, bytes, BH_E_LAUNCH,
                  "pass a value of exactly the parameter's type; cast integers to its width",
                  "kernel %s: argument %u has %u bytes, its parameter has %u", self->kernel->name,
                  index, count, bytes);
}

static bh_status check_pointer(bh__launch *self, uint32_t index, const void *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    if (value == 0 || is_address(self->device, value)) return BH_OK;
    return REFUSE(
        self, BH_REASON_ARGUMENT_KIND, value, 0, BH_E_LAUNCH,
        "pass BH_IN, BH_OUT or BH_INOUT with a buffer, BH_NULL, or what bh_buffer_address "
        "gives",
        "kernel %s: argument %u is a scalar, 0x%llx, that is no address in any buffer; its "
        "parameter is a pointer",
        self->kernel->name, index, (ull)value);
}

static inline bh_status pack_bytes(bh__launch *self, uint32_t index, const void *bytes,
                                   uint32_t count, uint8_t *params) {
    const bh__blob_param *param = &self->kernel->params[index];
    if (__builtin_expect(count != param->bytes, 0)) return refuse_size(self, index, count);
    uint8_t *target = params + param->offset;
    if (count == 4) {
        memcpy(target, bytes, 4);
    } else if (count == 8) {
        if (param->pointer) {
            bh_status status = check_pointer(self, index, bytes);
            if (status != BH_OK) return status;
        }
        memcpy(target, bytes, 8);
    } else {
        memcpy(target, bytes, count);
    }
    return BH_OK;
}

static bh_status refuse_buffer(bh__launch *self, uint32_t index) {
    const bh__blob_param *param = &self->kernel->params[index];
    if (param->bytes != sizeof(uint64_t))
        return REFUSE(self, BH_REASON_ARGUMENT_KIND, sizeof(uint64_t), param->bytes, BH_E_LAUNCH,
                      "pass a scalar here",
                      "kernel %s: argument %u is a buffer, its parameter has %u bytes",
                      self->kernel->name, index, param->bytes);
    return REFUSE(self, BH_REASON_ARGUMENT_KIND, sizeof(uint64_t), param->bytes, BH_E_LAUNCH,
                  "pass a scalar here",
                  "kernel %s: argument %u is a buffer, its parameter is a floating-point number",
                  self->kernel->name, index);
}

static bh_status refuse_small(bh__launch *self, uint32_t index, uint64_t has, uint64_t needs) {
    return REFUSE(self, BH_REASON_BUFFER_SMALL, needs, has, BH_E_LAUNCH,
                  "pass a larger buffer, or launch for less data",
                  "kernel %s: argument %u is a buffer of %llu bytes; %llu are needed",
                  self->kernel->name, index, (ull)has, (ull)needs);
}

static bh_status refuse_value(bh__launch *self, uint32_t index, const bh_arg *arg) {
    const char *name = self->kernel->name;
    switch (arg->kind) {
    case BH_ARG_VALUE:
        return REFUSE(self, BH_REASON_ARGUMENT_SIZE, arg->size, sizeof arg->u.value, BH_E_INVALID,
                      "pass 1 to 16 bytes, or BH_VALUE for more",
                      "kernel %s: argument %u is a value of %u bytes", name, index, arg->size);
    case BH_ARG_DATA:
        return REFUSE(self, BH_REASON_ARGUMENT_KIND, 0, 0, BH_E_INVALID,
                      "pass the address of the value", "kernel %s: argument %u is data at NULL",
                      name, index);
    default:
        return REFUSE(self, BH_REASON_ARGUMENT_KIND, arg->kind, BH_ARG_BUFFER_AT_LEAST,
                      BH_E_INVALID, "use BH_ARG_VALUE, BH_ARG_DATA or BH_ARG_BUFFER",
                      "kernel %s: argument %u has kind %u", name, index, arg->kind);
    }
}

static inline bh_status take(bh__launch *self, uint32_t index, const bh_arg *arg, uint8_t *params,
                             bh__use *use, bool *is_buffer) {
    *is_buffer = false;
    switch (arg->kind) {
    case BH_ARG_VALUE:
        if (arg->size - 1 >= sizeof arg->u.value) return refuse_value(self, index, arg);
        return pack_bytes(self, index, arg->u.value, arg->size, params);
    case BH_ARG_DATA:
        if (!arg->u.data) return refuse_value(self, index, arg);
        return pack_bytes(self, index, arg->u.data, arg->size, params);
    case BH_ARG_BUFFER:
    case BH_ARG_BUFFER_AT_LEAST: {
        const bh__blob_param *param = &self->kernel->params[index];
        if (param->bytes != sizeof(uint64_t) || param->scalar) return refuse_buffer(self, index);
        bh_status status = take_use(self, arg->u.buffer, arg->size, "argument", use);
        if (status != BH_OK) return status;
        use->argument = index + 1;
        *is_buffer = true;
        if (arg->kind == BH_ARG_BUFFER_AT_LEAST && use->bytes < arg->u.at_least.bytes)
            return refuse_small(self, index, use->bytes, arg->u.at_least.bytes);
        return BH_OK;
    }
    default:
        return refuse_value(self, index, arg);
    }
}

bh_status bh__argument_take(bh__launch *self, uint32_t index, const bh_arg *arg, uint8_t *params,
                            bh__use *use, bool *is_buffer) {
    return take(self, index, arg, params, use, is_buffer);
}

bh_status bh__arguments_take(bh__launch *self, bh_args args) {
    uint32_t use_count = 0;
    bh__use *uses = self->uses;
    for (uint32_t i = 0; i < args.count; i++) {
        bool is_buffer;
        bh_status status = take(self, i, &args.list[i], self->params, &uses[use_count], &is_buffer);
        if (status != BH_OK) return status;
        use_count += is_buffer;
    }
    self->use_count = use_count;
    return BH_OK;
}

static bool meets_writer(const bh__use *uses, uint32_t count, const bh__use *input) {
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

void bh__arguments_place(const bh__kernel *kernel, const bh__use *uses, uint32_t use_count,
                         bool writable_inputs, uint8_t *params) {
    for (uint32_t i = 0; i < use_count && uses[i].argument; i++) {
        const bh__use *use = &uses[i];
        bool read_only =
            use->access == BH_ACCESS_IN && !writable_inputs && !meets_writer(uses, use_count, use);
        uint64_t address =
            (read_only ? use->memory->read_only_address : use->memory->address) + use->offset;
        memcpy(params + kernel->params[use->argument - 1].offset, &address, sizeof address);
    }
}
