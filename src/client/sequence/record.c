/* SPDX-License-Identifier: Apache-2.0 */
/* Recording a sequence: each step is checked like a request of its own, then stored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "client/core/handles.h"
#include "client/launch/launch.h"
#include "client/library/library.h"
#include "client/memory/memory.h"
#include "client/queue/queue.h"
#include "client/queue/uses.h"
#include "client/sequence/steps.h"
#include "client/transfer/transfer.h"

bool bh__list_reserve(void *list, uint32_t count, uint32_t more, uint32_t *capacity,
                      size_t element) {
    uint64_t wanted = (uint64_t)count + more;
    if (wanted <= *capacity) return true;
    uint64_t larger = *capacity ? *capacity : 16;
    while (larger < wanted) larger *= 2;
    void *old;
    memcpy(&old, list, sizeof old);
    void *grown = larger <= UINT32_MAX ? realloc(old, larger * element) : NULL;
    if (!grown) {
        bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                   "no host memory for a list of %llu elements in a sequence",
                   (unsigned long long)wanted);
        return false;
    }
    memcpy(list, &grown, sizeof grown);
    *capacity = (uint32_t)larger;
    return true;
}

#define RESERVE(self, list, count, more, capacity)                                                 \
    bh__list_reserve(&(self)->list, (self)->count, (more), &(self)->capacity, sizeof *(self)->list)

/* ---- bindings and uses ---- */

/* The table of bindings is open-addressed, with linear probing. Handles and addresses differ in
 * their highest bits. */
static uint64_t binding_key(uint64_t recorded, const bh__memory *memory) {
    return recorded ? recorded : (uintptr_t)memory;
}

/* Returns the entry of the binding with this key, or the free one to put it in. */
static uint32_t *binding_entry(const bh__sequence *self, uint32_t *table, uint32_t size,
                               uint64_t key) {
    uint32_t at = (uint32_t)bh__hash_u64(key) & (size - 1);
    for (; table[at]; at = (at + 1) & (size - 1)) {
        const bh__binding *known = &self->bindings[table[at] - 1];
        if (binding_key(known->recorded, known->memory) == key) break;
    }
    return &table[at];
}

uint32_t bh__binding_find(const bh__sequence *self, uint64_t recorded, const bh__memory *memory) {
    if (self->binding_table_size == 0) return UINT32_MAX;
    uint32_t entry = *binding_entry(self, self->binding_table, self->binding_table_size,
                                    binding_key(recorded, memory));
    return entry ? entry - 1 : UINT32_MAX;
}

static bool binding_table_reserve(bh__sequence *self) {
    uint32_t size = self->binding_table_size ? self->binding_table_size * 2 : 32;
    if (self->binding_count * 2 < self->binding_table_size) return true;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table) {
        bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                   "no host memory for a table of %u buffers of a sequence", size);
        return false;
    }
    for (uint32_t i = 0; i < self->binding_count; i++) {
        const bh__binding *known = &self->bindings[i];
        *binding_entry(self, table, size, binding_key(known->recorded, known->memory)) = i + 1;
    }
    free(self->binding_table);
    self->binding_table = table;
    self->binding_table_size = size;
    return true;
}

/* Finds or adds the binding for this memory. UINT32_MAX: the thread's error is set. */
static uint32_t binding_for(bh__sequence *self, uint64_t recorded, bh__memory *memory,
                            uint64_t offset, uint64_t bytes) {
    uint32_t known = bh__binding_find(self, recorded, memory);
    if (known != UINT32_MAX) return known;
    if (bh__driver_managed_refuse(&(bh__use){.memory = memory}, 1, "a sequence") != BH_OK ||
        !RESERVE(self, bindings, binding_count, 1, binding_capacity) ||
        !binding_table_reserve(self))
        return UINT32_MAX;
    memory->references++;
    self->bindings[self->binding_count] = (bh__binding){recorded, memory, offset, bytes};
    *binding_entry(self, self->binding_table, self->binding_table_size,
                   binding_key(recorded, memory)) = self->binding_count + 1;
    return self->binding_count++;
}

static bool add_use(bh__sequence *self, bh__step_use use) {
    if (use.binding == UINT32_MAX ||
        !RESERVE(self, step_uses, step_use_count, 1, step_use_capacity))
        return false;
    self->step_uses[self->step_use_count++] = use;
    self->steps[self->step_count].use_count++;
    return true;
}

static bool add_buffer(bh__sequence *self, const bh__buffer *buffer, uint64_t offset,
                       uint64_t bytes, uint32_t access, uint32_t argument) {
    uint32_t binding = binding_for(self, buffer->id, buffer->memory, buffer->offset, buffer->bytes);
    return add_use(self, (bh__step_use){binding, access, argument, offset, bytes});
}

static bool add_host(bh__sequence *self, bh__memory *memory, uint64_t offset, uint64_t bytes,
                     uint32_t access) {
    uint32_t binding = binding_for(self, 0, memory, 0, memory->bytes);
    return add_use(self, (bh__step_use){binding, access, 0, offset, bytes});
}

static bool add_kernel(bh__sequence *self, bh__kernel *kernel) {
    bool known = false, pinned = false;
    for (uint32_t i = 0; i < self->kernel_count; i++) known |= self->kernels[i] == kernel;
    for (uint32_t i = 0; i < self->module_count; i++) pinned |= self->modules[i] == kernel->module;
    if (!known) {
        if (!RESERVE(self, kernels, kernel_count, 1, kernel_capacity)) return false;
        self->kernels[self->kernel_count++] = kernel;
    }
    if (!pinned) {
        if (!RESERVE(self, modules, module_count, 1, module_capacity)) return false;
        kernel->module->pins++;
        self->modules[self->module_count++] = kernel->module;
    }
    return true;
}

/* ---- steps ---- */

/* Makes room for a step. step_end adds it. */
static bh_status step_begin(bh__sequence *self, uint32_t op) {
    if (self->step_count == BH__MAX_STEPS) {
        return bh__refuse(BH_E_INVALID, "split it into several sequences",
                          "sequence \"%s\" has %u steps, the maximum", self->name,
                          self->step_count);
    }
    if (!RESERVE(self, steps, step_count, 1, step_capacity) ||
        !RESERVE(self, records, step_count, 1, record_capacity))
        return bh__last()->status;
    self->steps[self->step_count] = (bh__step){.first_use = self->step_use_count};
    memset(&self->records[self->step_count], 0, sizeof *self->records);
    self->records[self->step_count].op = op;
    return BH_OK;
}

/* Adds the step or, on failure, drops it. Bindings and kernels that only a dropped step names stay:
 * they do no harm. */
static bh_status step_end(bh__sequence *self, bh_status status, uint32_t *out_step) {
    if (status != BH_OK) {
        self->step_use_count = self->steps[self->step_count].first_use;
        return status;
    }
    if (out_step) *out_step = self->step_count;
    self->step_count++;
    return BH_OK;
}

static bh_status check_options(const bh__sequence *self, const bh_launch_options *options) {
    const uint32_t known =
        BH_SUBMIT_IDEMPOTENT | BH_SUBMIT_NO_BLOCK | BH_SUBMIT_WAIT | BH_SUBMIT_TIMED;
    uint32_t others = options->flags & known;
    if (!others && !options->lane.id && !options->deadline_ns && !options->after_count)
        return BH_OK;
    return bh__refuse(
        BH_E_INVALID, "set lane, deadline, after and flags in the options of bh_sequence_submit",
        "sequence \"%s\": the options of a step have lane 0x%llx, deadline_ns %llu, after_count "
        "%zu and flags 0x%x, which are for submissions",
        self->name, (unsigned long long)options->lane.id, (unsigned long long)options->deadline_ns,
        options->after_count, others);
}

/* The handle of the buffer that use `index` came from: an argument, or one of `also`. */
static uint64_t handle_of(const bh__launch *packed, uint32_t index, bh_args args) {
    const bh__use *use = &packed->uses[index];
    if (use->argument) return args.list[use->argument - 1].u.buffer.handle.id;
    uint32_t first = packed->use_count - (uint32_t)packed->options->also_count;
    return packed->options->also[index - first].buffer.id;
}

static bh_status keep_launch(bh__sequence *self, const bh__launch *packed, bh_args args) {
    uint32_t bytes = (packed->body.param_bytes + 15) & ~15u;
    if (self->params_bytes + bytes > BH__MAX_VERSION_BYTES)
        return bh__sequence_refuse_size(self, self->params_bytes + bytes);
    if (!RESERVE(self, params, params_bytes, bytes, params_capacity) ||
        !add_kernel(self, packed->kernel))
        return bh__last()->status;
    for (uint32_t i = 0; i < packed->use_count; i++) {
        const bh__use *use = &packed->uses[i];
        const bh__buffer *buffer = bh__handle_find(packed->device, &packed->device->handles.buffers,
                                                   handle_of(packed, i, args), BH__KIND_BUFFER);
        /* What is written with gaps is not there whole for the steps behind. */
        uint32_t access = use->access & BH__ACCESS_GAPS ? BH_ACCESS_INOUT : use->access;
        if (!add_buffer(self, buffer, use->offset - buffer->offset, use->bytes, access,
                        use->argument))
            return bh__last()->status;
    }
    bh__step *step = &self->steps[self->step_count];
    step->kernel = packed->kernel;
    step->of_library = packed->ranges != NULL;
    step->elements = packed->options->elements;
    step->writable_inputs = packed->options->flags & BH_LAUNCH_WRITABLE_INPUTS;
    bh__sequence_step *record = &self->records[self->step_count];
    record->u.launch = packed->body;
    record->params = self->params_bytes;
    if (bytes) {
        memset(self->params + self->params_bytes, 0, bytes);
        memcpy(self->params + self->params_bytes, packed->params, packed->body.param_bytes);
    }
    self->params_bytes += bytes;
    return BH_OK;
}

/* Asks the worker what the checks need. Releases the lock meanwhile: afterwards another thread may
 * have finished or released the sequence. */
static bh_status ask_fit(bh__launch *packed) {
    bh__fit_question question = bh__launch_question(packed);
    bh_status status = bh__fit_ask(packed->device, packed->kernel, &question, NULL);
    packed->kernel = NULL;
    return status;
}

/* `ranges`: as in bh__launch. */
static bh_status record_launch(bh_sequence handle, bh_kernel kernel, bh_shape shape, bh_args args,
                               const bh__range *ranges, const bh_launch_options *given,
                               uint32_t *out_step) {
    bh_launch_options storage;
    bh__launch packed = {.kernel = NULL, .ranges = ranges};
    bh_status status = bh__launch_options_take(given, &storage, &packed.options);
    if (status != BH_OK) return status;
    bh__sequence *self = bh__sequence_lock(handle, BH__SEQUENCE_RECORDING, &packed.device);
    if (!self) return bh__last()->status;
    bool again;
    do {
        again = false;
        status = check_options(self, packed.options);
        if (status == BH_OK) status = step_begin(self, BH__OP_LAUNCH);
        if (status != BH_OK) break;
        status = bh__launch_pack(&packed, kernel, &shape, args, NULL);
        if (packed.asks) {
            status = ask_fit(&packed);
            again = status == BH_OK;
            if (again) self = bh__sequence_get(packed.device, handle, BH__SEQUENCE_RECORDING);
            if (!self) status = bh__last()->status;
        } else {
            if (status == BH_OK && packed.objects)
                status = bh__refuse(BH_E_UNSUPPORTED, "use bh_launch, or bh_prepare",
                                    "kernel %s: a step of a sequence cannot have textures, "
                                    "surfaces or tensor maps",
                                    packed.kernel->name);
            if (status == BH_OK) status = keep_launch(self, &packed, args);
            status = step_end(self, status, out_step);
        }
        bh__launch_free(&packed);
    } while (again && self);
    if (status != BH_OK) bh__launch_record_status(&packed, status);
    bh__device_unlock(packed.device);
    return status;
}

bh_status bh_sequence_launch(bh_sequence handle, bh_kernel kernel, bh_shape shape, bh_args args,
                             const bh_launch_options *options, uint32_t *out_step) {
    return record_launch(handle, kernel, shape, args, NULL, options, out_step);
}

static bh_status add_call(bh_sequence handle, const bh_request *request, uint32_t *out_step) {
    bh__library_call call;
    bh_kernel kernel;
    const bh_launch_options one_element = {.size = sizeof one_element, .elements = 1};
    bh_shape one = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    bh_status status = bh__library_take(request, &call);
    if (status == BH_OK) status = bh__library_kernel(&call, (bh_lane){0}, false, &kernel);
    if (status != BH_OK) return status;
    return record_launch(handle, kernel, one, bh__library_args(&call), call.ranges, &one_element,
                         out_step);
}

/* A transfer of no bytes: a step that does nothing, with buffers that can be bound. */
static bh_status add_nothing(bh__sequence *self, const bh__buffer *one, const bh__buffer *other) {
    if (binding_for(self, one->id, one->memory, one->offset, one->bytes) == UINT32_MAX ||
        (other &&
         binding_for(self, other->id, other->memory, other->offset, other->bytes) == UINT32_MAX))
        return bh__last()->status;
    return step_begin(self, BH__OP_SKIP);
}

static bh_status add_copy(bh__device *device, bh__sequence *self, const bh_transfer *what) {
    bh__buffer *to = bh__handle_get(device, what->target.id, BH__KIND_BUFFER, "target");
    bh__buffer *from =
        to ? bh__handle_get(device, what->source.id, BH__KIND_BUFFER, "source") : NULL;
    if (!from || bh__buffer_range("copy to", what->target_offset, what->width, to) != BH_OK ||
        bh__buffer_range("copy from", what->source_offset, what->width, from) != BH_OK)
        return bh__last()->status;
    if (what->width == 0) return add_nothing(self, to, from);
    if (step_begin(self, BH__OP_COPY) != BH_OK) return bh__last()->status;
    self->records[self->step_count].u.copy.bytes = what->width;
    if (!add_buffer(self, from, what->source_offset, what->width, BH_ACCESS_IN, 0) ||
        !add_buffer(self, to, what->target_offset, what->width, BH_ACCESS_OUT, 0))
        return bh__last()->status;
    return BH_OK;
}

static bh_status add_fill(bh__device *device, bh__sequence *self, const bh_transfer *what) {
    uint32_t bytes = what->pattern_bytes;
    if (!what->from || bytes == 0 || bytes > 16 || !bh__is_power_of_two(bytes) ||
        what->width % bytes)
        return bh__refuse(BH_E_INVALID,
                          "use a pattern of 1, 2, 4, 8 or 16 bytes and fill a multiple of it",
                          "fill: %llu bytes, pattern of %u bytes at %p",
                          (unsigned long long)what->width, bytes, what->from);
    bh__buffer *to = bh__handle_get(device, what->target.id, BH__KIND_BUFFER, "buffer");
    if (!to || bh__buffer_range("fill", what->target_offset, what->width, to) != BH_OK)
        return bh__last()->status;
    if (what->width == 0) return add_nothing(self, to, NULL);
    if (step_begin(self, BH__OP_FILL) != BH_OK) return bh__last()->status;
    bh__copy_body *body = &self->records[self->step_count].u.copy;
    body->bytes = what->width;
    body->pattern_bytes = bytes;
    memcpy(body->pattern, what->from, bytes);
    return add_buffer(self, to, what->target_offset, what->width, BH_ACCESS_OUT, 0)
               ? BH_OK
               : bh__last()->status;
}

/* A write or a read: the buffer is always the first use, bh__sequence_resolve relies on it. */
static bh_status add_move(bh__device *device, bh__sequence *self, const bh_transfer *what) {
    bool write = what->direction == BH_TRANSFER_WRITE;
    uint64_t offset = write ? what->target_offset : what->source_offset, bytes = what->width;
    const uint8_t *pointer = write ? what->from : what->to;
    if (pointer) pointer += write ? what->source_offset : what->target_offset;
    bh__buffer *buffer =
        bh__handle_get(device, (write ? what->target : what->source).id, BH__KIND_BUFFER, "buffer");
    if (!buffer || bh__buffer_range(write ? "write" : "read", offset, bytes, buffer) != BH_OK)
        return bh__last()->status;
    if (bytes == 0) return add_nothing(self, buffer, NULL);
    if (bh__host_check(device, pointer, bytes) != BH_OK) return bh__last()->status;
    uint64_t host_offset = 0;
    bh__memory *host = bh__host_find(device, pointer, bytes, &host_offset);
    if (!host)
        return bh__refuse(BH_E_INVALID, "use memory from bh_host_alloc of this device",
                          "%llu bytes at %p are not host memory of this device",
                          (unsigned long long)bytes, (const void *)pointer);
    if (step_begin(self, write ? BH__OP_WRITE : BH__OP_READ) != BH_OK) return bh__last()->status;
    bh__copy_body *body = &self->records[self->step_count].u.copy;
    body->bytes = bytes;
    body->host = host->host_id;
    *(write ? &body->source : &body->target) = host->host_from + host_offset;
    if (!add_buffer(self, buffer, offset, bytes, write ? BH_ACCESS_OUT : BH_ACCESS_IN, 0) ||
        !add_host(self, host, host_offset, bytes, write ? BH_ACCESS_IN : BH_ACCESS_OUT))
        return bh__last()->status;
    return BH_OK;
}

/* Rows without gaps are one range. */
static bh_status take_range(const bh_request *request, bh_transfer *out) {
    if (bh__transfer_take(request, out) != BH_OK) return bh__last()->status;
    uint64_t height = out->height ? out->height : 1, bytes;
    bool fills = out->direction == BH_TRANSFER_FILL;
    if (out->width == 0) height = 1;
    bool tight = (!out->target_pitch || out->target_pitch == out->width) &&
                 (fills || !out->source_pitch || out->source_pitch == out->width);
    if (height > 1 && (!tight || (fills && out->pattern_bytes > 1)))
        return bh__refuse(BH_E_UNSUPPORTED, "record each row as a step",
                          "a step of a sequence is one range, not %llu rows",
                          (unsigned long long)height);
    if (!bh__mul_u64(out->width, height, &bytes))
        return bh__refuse(BH_E_INVALID, "use fewer or shorter rows",
                          "%llu rows of %llu bytes are more than 2^64 bytes",
                          (unsigned long long)height, (unsigned long long)out->width);
    out->width = bytes;
    out->height = 1;
    return BH_OK;
}

bh_status bh_sequence_add(bh_sequence handle, const bh_request *request, uint32_t *out_step) {
    bh_transfer what;
    if (bh__is_library_call(request)) return add_call(handle, request, out_step);
    if (take_range(request, &what) != BH_OK) return bh__last()->status;
    bh__device *device;
    bh__sequence *self = bh__sequence_lock(handle, BH__SEQUENCE_RECORDING, &device);
    if (!self) return bh__last()->status;
    uint32_t uses = self->step_use_count;
    bh_status status = what.direction == BH_TRANSFER_COPY   ? add_copy(device, self, &what)
                       : what.direction == BH_TRANSFER_FILL ? add_fill(device, self, &what)
                                                            : add_move(device, self, &what);
    if (status == BH_OK)
        status = step_end(self, status, out_step);
    else
        self->step_use_count = uses;
    bh__device_unlock(device);
    return status;
}
