/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences: creating, finishing (defining them in workers), binding, setting, releasing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/jobs/jobs.h"
#include "client/launch/launch.h"
#include "client/memory/memory.h"
#include "client/module/module.h"
#include "client/queue/queue.h"
#include "client/queue/uses.h"
#include "client/sequence/sequence.h"
#include "client/sequence/steps.h"
#include "wire/share.h"

/* ---- lookup ---- */

static const char *const state_names[] = {"being recorded", "being finished by another thread",
                                          "finished", "broken: bh_sequence_finish failed"};

bh__sequence *bh__sequence_get(bh__device *device, bh_sequence handle, bh__sequence_state state) {
    bh__sequence *self = bh__handle_get(device, handle.id, BH__KIND_SEQUENCE, "sequence");
    if (!self || self->state == state) return self;
    bh__refuse(BH_E_INVALID,
               state == BH__SEQUENCE_RECORDING ? "record every step before bh_sequence_finish"
                                               : "call bh_sequence_finish first, once",
               "sequence \"%s\" is %s", self->name, state_names[self->state]);
    return NULL;
}

bh__sequence *bh__sequence_lock(bh_sequence handle, bh__sequence_state state, bh__device **out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_SEQUENCE, "sequence", true);
    if (!device) return NULL;
    bh__sequence *self = bh__sequence_get(device, handle, state);
    if (!self) bh__device_unlock(device);
    *out = device;
    return self;
}

/* ---- creating and releasing ---- */

static void delete (bh__sequence *self) {
    if (self->versions) bh__share_unmap(self->versions, self->version_bytes * BH__VERSIONS);
    bh__fd_close(self->fd);
    free(self->steps);
    free(self->records);
    free(self->step_uses);
    free(self->params);
    free(self->bindings);
    free(self->binding_table);
    free(self->kernels);
    free(self->modules);
    free(self->total);
    free(self->uses);
    free(self->scratch);
    free(self->image);
    free(self);
}

static void unlink_from(bh__device *device, bh__sequence *self) {
    bh__sequence **link = &device->sequence.list;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
}

/* Host regions are not freed with their last reference. */
static void release_memory(bh__device *device, bh__memory *memory) {
    if (memory->host)
        memory->references--;
    else
        bh__memory_release(device, memory);
}

static bool is_idle(bh__device *device, const bh__sequence *self) {
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        if (self->last[i] > bh__lane_done(device, &device->lanes[i])) return false;
    }
    return true;
}

/* Has the workers forget it. False: no host memory. */
static bool drop_in_workers(bh__device *device, const bh__sequence *self) {
    const bh__order drop = {
        .type = BH__MSG_SEQUENCE_DROP, .sequence = {.id = self->number}, .fd = -1};
    return !self->defined || bh__order_post(device, &drop);
}

void bh__sequences_sweep(bh__device *device) {
    for (bh__sequence *self = device->sequence.list, *next; self; self = next) {
        next = self->next;
        if (!self->released || self->state == BH__SEQUENCE_DEFINING || !is_idle(device, self) ||
            !drop_in_workers(device, self))
            continue;
        unlink_from(device, self);
        for (uint32_t i = 0; i < self->module_count; i++)
            bh__module_unpin(device, self->modules[i]);
        delete (self);
    }
}

void bh__sequences_free(bh__device *device) {
    while (device->sequence.list) {
        bh__sequence *self = device->sequence.list;
        device->sequence.list = self->next;
        if (!self->released) bh__handle_remove(device, self->id);
        for (uint32_t i = 0; !self->released && i < self->binding_count; i++) {
            bh__memory *memory = self->bindings[i].memory;
            if (--memory->references == 0) bh__memory_delete(device, memory);
        }
        delete (self);
    }
}

/* For messages, from the worker too, which has as much room. */
static bh_status check_name(const char *name) {
    enum { MAX_NAME = sizeof((bh__sequence *)0)->name - 1 };
    if (!name || strnlen(name, MAX_NAME + 1) <= MAX_NAME) return BH_OK;
    return bh__refuse(BH_E_INVALID, "use a shorter name",
                      "bh_sequence_options.name, \"%.20s...\", has more than %d bytes", name,
                      MAX_NAME);
}

static bh_status check_sequence_options(const bh_sequence_options *given,
                                        bh_sequence_options *out) {
    *out = (bh_sequence_options)BH_INIT(*out);
    if (bh__options_take(given, out, "bh_sequence_options") != BH_OK) return bh__last()->status;
    if (out->flags) {
        return bh__refuse(BH_E_INVALID, "set flags to 0", "bh_sequence_options.flags is 0x%x",
                          out->flags);
    }
    return check_name(out->name);
}

bh_status bh_sequence_begin(bh_device handle, const bh_sequence_options *given, bh_sequence *out) {
    bh_sequence_options options;
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the sequence", "out is NULL");
    if (check_sequence_options(given, &options) != BH_OK) return bh__last()->status;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh__sequences_sweep(device);
    bh_status status = BH_OK;
    bh__sequence *self = calloc(1, sizeof *self);
    if (!self) {
        status = bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                            "no host memory for a sequence's record");
    } else {
        status = bh__handle_add(device, BH__KIND_SEQUENCE, self, &self->id);
    }
    if (status == BH_OK) {
        self->fd = -1;
        self->number = ++device->sequence.next_number;
        if (options.name)
            snprintf(self->name, sizeof self->name, "%s", options.name);
        else
            snprintf(self->name, sizeof self->name, "sequence %u", self->number);
        self->next = device->sequence.list;
        device->sequence.list = self;
        out->id = self->id;
    } else {
        free(self);
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_sequence_release(bh_sequence handle) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_SEQUENCE, "sequence", false);
    if (!device) return bh__last()->status;
    bh__sequence *self = bh__handle_get(device, handle.id, BH__KIND_SEQUENCE, "sequence");
    if (self) {
        bh__handle_remove(device, handle.id);
        self->released = true;
        /* Requests in flight keep the memory: it is freed once they have completed. */
        for (uint32_t i = 0; i < self->binding_count; i++)
            release_memory(device, self->bindings[i].memory);
        self->binding_count = self->binding_table_size = 0;
        bh__sequences_sweep(device);
    }
    bh__device_unlock(device);
    return self ? BH_OK : bh__last()->status;
}

/* ---- addresses ---- */

bh__use bh__sequence_use(const bh__sequence *self, const bh__step_use *use) {
    const bh__binding *binding = &self->bindings[use->binding];
    return (bh__use){.memory = binding->memory,
                     .offset = binding->offset + use->offset,
                     .bytes = use->bytes,
                     .access = use->access};
}

static uint64_t address_of(const bh__sequence *self, const bh__step_use *use) {
    const bh__binding *binding = &self->bindings[use->binding];
    return binding->memory->address + binding->offset + use->offset;
}

void bh__sequence_resolve(bh__sequence *self, uint32_t index) {
    const bh__step *step = &self->steps[index];
    const bh__step_use *uses = &self->step_uses[step->first_use];
    bh__sequence_step *record = (bh__sequence_step *)(void *)self->image + index;
    bh__copy_body *copy = &record->u.copy;
    switch (record->op) {
    case BH__OP_SKIP:
        break;
    case BH__OP_LAUNCH:
        for (uint32_t i = 0; i < step->use_count; i++) {
            self->scratch[i] = bh__sequence_use(self, &uses[i]);
            self->scratch[i].argument = uses[i].argument;
        }
        bh__arguments_place(step->kernel, self->scratch, step->use_count, step->writable_inputs,
                            self->image + record->params);
        break;
    case BH__OP_COPY:
        copy->source = address_of(self, &uses[0]);
        copy->target = address_of(self, &uses[1]);
        break;
    case BH__OP_READ:
        copy->source = address_of(self, &uses[0]);
        break;
    default: /* WRITE, FILL */
        copy->target = address_of(self, &uses[0]);
    }
}

/* ---- finishing ---- */

typedef struct span_list {
    bh__span *list;
    uint32_t count, capacity;
} span_list;

/* What the steps so far do with a binding: the bytes that they read before they write them, and the
 * bytes that they write. */
typedef struct binding_total {
    span_list read, written;
} binding_total;

static bool spans_add(span_list *self, const bh__step_use *use) {
    return bh__spans_add(&self->list, &self->count, &self->capacity, use->offset, use->bytes);
}

/* A step reads before it writes. */
static bool add_step(const bh__sequence *self, const bh__step *step, binding_total *totals) {
    const bh__step_use *uses = &self->step_uses[step->first_use];
    for (uint32_t i = 0; i < step->use_count; i++) {
        binding_total *total = &totals[uses[i].binding];
        const span_list *written = &total->written;
        if ((uses[i].access & BH_ACCESS_IN) &&
            !bh__spans_cover(written->list, written->count, uses[i].offset, uses[i].bytes) &&
            !spans_add(&total->read, &uses[i]))
            return false;
    }
    for (uint32_t i = 0; i < step->use_count; i++) {
        if ((uses[i].access & BH_ACCESS_OUT) &&
            !spans_add(&totals[uses[i].binding].written, &uses[i]))
            return false;
    }
    return true;
}

static bool total_add(bh__sequence *self, uint32_t *capacity, uint32_t binding,
                      const span_list *spans, uint32_t access) {
    if (!bh__list_reserve(&self->total, self->total_count, spans->count, capacity,
                          sizeof *self->total))
        return false;
    for (uint32_t i = 0; i < spans->count; i++) {
        const bh__span *span = &spans->list[i];
        self->total[self->total_count++] =
            (bh__step_use){binding, access, 0, span->offset, span->bytes};
    }
    return true;
}

/* Computes the uses of all steps together. */
static bool add_all(bh__sequence *self) {
    uint32_t capacity = 0;
    binding_total *totals = calloc((size_t)self->binding_count + 1, sizeof *totals);
    bool fits = totals != NULL;
    for (uint32_t i = 0; i < self->step_count && fits; i++)
        fits = add_step(self, &self->steps[i], totals);
    for (uint32_t i = 0; i < self->binding_count && totals; i++) {
        fits = fits && total_add(self, &capacity, i, &totals[i].read, BH_ACCESS_IN) &&
               total_add(self, &capacity, i, &totals[i].written, BH_ACCESS_OUT);
        free(totals[i].read.list);
        free(totals[i].written.list);
    }
    free(totals);
    return fits;
}

static bh_status refuse_memory(const bh__sequence *self, int number) {
    char text[128];
    return bh__refuse(BH_E_NO_HOST_MEMORY, bh__errno_fix(number, "free host memory"),
                      "no memory for sequence \"%s\" of %u steps: %s", self->name, self->step_count,
                      bh__errno_text(number, text, sizeof text));
}

static bh_status make_total(bh__sequence *self) {
    if (!add_all(self)) return refuse_memory(self, ENOMEM);
    uint32_t max_uses = 0;
    for (uint32_t i = 0; i < self->step_count; i++) {
        if (self->steps[i].use_count > max_uses) max_uses = self->steps[i].use_count;
    }
    self->uses = calloc(self->total_count + 1, sizeof *self->uses);
    self->scratch = calloc(max_uses + 1, sizeof *self->scratch);
    return self->uses && self->scratch ? BH_OK : refuse_memory(self, ENOMEM);
}

static void make_tally(bh__sequence *self, uint32_t warp_mask) {
    for (uint32_t i = 0; i < self->step_count; i++) {
        const bh__sequence_step *record = &self->records[i];
        if (record->op == BH__OP_LAUNCH)
            bh__tally_launch(&self->tally, &record->u.launch, self->steps[i].elements, warp_mask);
        else
            bh__tally_copy(&self->tally, record->op, record->u.copy.bytes);
    }
}

bh_status bh__sequence_refuse_size(const bh__sequence *self, uint64_t bytes) {
    return bh__refuse(BH_E_INVALID, "split it into several sequences",
                      "sequence \"%s\" takes %llu bytes; the maximum is %d", self->name,
                      (unsigned long long)bytes, BH__MAX_VERSION_BYTES);
}

/* Joins records and parameters into the image, and publishes it as the first version. */
static bh_status make_image(bh__sequence *self) {
    uint64_t head = (self->step_count * sizeof *self->records + 15) & ~(uint64_t)15;
    self->version_bytes = (head + self->params_bytes + 63) & ~(uint64_t)63;
    if (self->version_bytes > BH__MAX_VERSION_BYTES)
        return bh__sequence_refuse_size(self, self->version_bytes);
    self->image = calloc(1, self->version_bytes);
    if (!self->image) return refuse_memory(self, ENOMEM);
    for (uint32_t i = 0; i < self->step_count; i++) {
        if (self->records[i].op == BH__OP_LAUNCH) self->records[i].params += (uint32_t)head;
    }
    memcpy(self->image, self->records, self->step_count * sizeof *self->records);
    if (self->params_bytes) memcpy(self->image + head, self->params, self->params_bytes);
    for (uint32_t i = 0; i < self->step_count; i++) bh__sequence_resolve(self, i);

    uint64_t bytes = self->version_bytes * BH__VERSIONS;
    void *versions;
    int fd = bh__share_publish("bulkhead-sequence", bytes, &versions);
    if (fd < 0) return refuse_memory(self, -fd);
    self->fd = bh__fd_keep(fd);
    self->versions = versions;
    memcpy(self->versions, self->image, self->version_bytes);
    self->serial = 1;
    return BH_OK;
}

static bh__sequence_message message_of(const bh__sequence *self) {
    bh__sequence_message message = {.id = self->number,
                                    .step_count = self->step_count,
                                    .version_bytes = self->version_bytes,
                                    .version_count = BH__VERSIONS};
    _Static_assert(sizeof message.name == sizeof self->name, "the name fits the message");
    memcpy(message.name, self->name, sizeof message.name);
    return message;
}

bh_status bh_sequence_finish(bh_sequence handle) {
    bh__device *device;
    bh__sequence *self = bh__sequence_lock(handle, BH__SEQUENCE_RECORDING, &device);
    if (!self) return bh__last()->status;
    if (self->step_count == 0) {
        bh__refuse(BH_E_INVALID, "record a step first", "sequence \"%s\" has no steps", self->name);
        bh__device_unlock(device);
        return BH_E_INVALID;
    }
    self->state = BH__SEQUENCE_DEFINING;
    make_tally(self, device->queue.warp_mask);
    bh_status status = make_total(self);
    if (status == BH_OK) status = make_image(self);
    if (status == BH_OK) {
        bh__job job = {.kind = BH__JOB_ORDER,
                       .order = {.type = BH__MSG_SEQUENCE_DEFINE,
                                 .sequence = message_of(self),
                                 .fd = self->fd},
                       .sequence = self};
        status = bh__order_run(device, &job);
    }
    self->state = status == BH_OK ? BH__SEQUENCE_READY : BH__SEQUENCE_BROKEN;
    bh__device_unlock(device);
    return status;
}

void bh__sequence_commit(bh__sequence *self) {
    self->defined = true;
}

void bh__sequences_brief(bh__device *device, bh__worker *worker, bh__tell_fn *tell) {
    for (const bh__sequence *self = device->sequence.list; self; self = self->next) {
        if (!self->defined) continue;
        tell(worker, &(bh__order){.type = BH__MSG_SEQUENCE_DEFINE,
                                  .sequence = message_of(self),
                                  .fd = self->fd});
    }
}

/* ---- binding and setting ---- */

bh_status bh_sequence_bind(bh_sequence handle, bh_buffer recorded, bh_buffer buffer) {
    bh__device *device;
    bh__sequence *self = bh__sequence_lock(handle, BH__SEQUENCE_READY, &device);
    if (!self) return bh__last()->status;
    bh_status status = BH_OK;
    uint32_t at = recorded.id ? bh__binding_find(self, recorded.id, NULL) : UINT32_MAX;
    bh__buffer *to = bh__handle_get(device, buffer.id, BH__KIND_BUFFER, "buffer");
    if (!to) {
        status = bh__last()->status;
    } else if (at == UINT32_MAX) {
        status = bh__refuse(BH_E_INVALID,
                            "pass the buffer that was recorded, not one that was bound later",
                            "sequence \"%s\" has no step with buffer 0x%llx", self->name,
                            (unsigned long long)recorded.id);
    } else if (to->bytes != self->bindings[at].bytes) {
        status = bh__refuse(
            BH_E_INVALID, "bind a buffer, or a view of one, of the same size",
            "sequence \"%s\" was recorded with a buffer of %llu bytes; the new one has %llu",
            self->name, (unsigned long long)self->bindings[at].bytes,
            (unsigned long long)to->bytes);
    } else if (bh__driver_managed_refuse(&(bh__use){.memory = to->memory}, 1, "a sequence") !=
               BH_OK) {
        status = bh__last()->status;
    } else {
        bh__binding *binding = &self->bindings[at];
        bh__memory *before = binding->memory;
        to->memory->references++;
        binding->memory = to->memory;
        binding->offset = to->offset;
        for (uint32_t i = 0; i < self->step_count; i++) {
            const bh__step *step = &self->steps[i];
            bool uses = false;
            for (uint32_t k = 0; k < step->use_count && !uses; k++)
                uses = self->step_uses[step->first_use + k].binding == at;
            if (uses) bh__sequence_resolve(self, i);
        }
        self->dirty = true;
        release_memory(device, before);
    }
    bh__device_unlock(device);
    return status;
}

void bh__sequence_check(bh__launch *out, bh__device *device, bh__kernel *kernel,
                        const bh__launch_body *body, const bh_launch_options *options) {
    out->device = device;
    out->kernel = kernel;
    out->options = options;
    out->reason = BH_REASON_NONE;
    out->shaped = body != NULL;
    if (body) out->body = *body;
}

static bh_status set_value(bh__device *device, bh__sequence *self, uint32_t index,
                           uint32_t argument, const bh_arg *value) {
    if (index >= self->step_count || !self->steps[index].kernel) {
        return bh__refuse(BH_E_INVALID, "pass a step number from bh_sequence_launch",
                          "step %u of sequence \"%s\" is not a launch; it has %u steps", index,
                          self->name, self->step_count);
    }
    const bh__step *step = &self->steps[index];
    bh__kernel *kernel = step->kernel;
    if (step->of_library)
        return bh__refuse(BH_E_INVALID, "record another call, or bind other buffers",
                          "step %u of sequence \"%s\" is a library call, whose numbers are fixed",
                          index, self->name);
    if (argument >= kernel->shape.param_count) {
        return bh__refuse(BH_E_INVALID, "use an index below the number of arguments",
                          "kernel %s takes %u arguments; there is no argument %u", kernel->name,
                          kernel->shape.param_count, argument);
    }
    for (uint32_t i = 0; i < step->use_count; i++) {
        if (self->step_uses[step->first_use + i].argument != argument + 1) continue;
        return bh__refuse(BH_E_INVALID, "use bh_sequence_bind for buffers",
                          "kernel %s: argument %u of the step is a buffer", kernel->name, argument);
    }
    if (value->kind == BH_ARG_BUFFER) {
        return bh__refuse(BH_E_INVALID, "record the launch with a buffer there, then bind another",
                          "kernel %s: argument %u of the step is a value, and a buffer was given",
                          kernel->name, argument);
    }
    const bh__sequence_step *record = (const bh__sequence_step *)(void *)self->image + index;
    bh__launch check;
    bh_launch_options options = BH_INIT(options);
    bh__use unused;
    bool is_buffer;
    bh__sequence_check(&check, device, kernel, &record->u.launch, &options);
    bh_status status = bh__argument_take(&check, argument, value, self->image + record->params,
                                         &unused, &is_buffer);
    if (status == BH_OK) self->dirty = true;
    return status;
}

bh_status bh_sequence_set(bh_sequence handle, uint32_t step, uint32_t argument, bh_arg value) {
    bh__device *device;
    bh__sequence *self = bh__sequence_lock(handle, BH__SEQUENCE_READY, &device);
    if (!self) return bh__last()->status;
    bh_status status = set_value(device, self, step, argument, &value);
    bh__device_unlock(device);
    return status;
}
