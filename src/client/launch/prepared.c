/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared launches: checked and packed once, then submitted many times. */
#include <stdlib.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/launch/launch.h"
#include "client/memory/memory.h"
#include "client/queue/queue.h"
#include "client/queue/uses.h"

struct bh__prepared {
    uint64_t id;
    bh_kernel handle;
    bh_lane lane; /* zero: the device's own */
    uint32_t arg_count, room, flags, busy;
    bh__launch_body body;
    bh__submission submission; /* points into this record */
    bh__use *uses;             /* Their memory is retained. */
    char *name;
    uint8_t params[];
};

/* ---- creating ---- */

static void retain_uses(const bh__use *uses, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) uses[i].memory->references++;
}

static void release_uses(bh__device *device, const bh__use *uses, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) bh__memory_release(device, uses[i].memory);
}

static void discard(bh__prepared *self) {
    free(self->uses);
    free(self->name);
    free(self);
}

static bh__prepared *make(const bh__launch *from, bh_kernel handle, bh__lane *lane) {
    const bh_launch_options *options = from->options;
    uint32_t arg_count = from->kernel->shape.param_count, bytes = from->body.param_bytes;
    bh__prepared *self = calloc(1, sizeof *self + bytes);
    if (!self) return NULL;
    self->handle = handle;
    self->lane = options->lane;
    self->arg_count = arg_count;
    self->flags = options->flags;
    self->room = arg_count + (uint32_t)options->also_count;
    self->body = from->body;
    self->uses = malloc((self->room + 1) * sizeof *self->uses);
    self->name = strdup(from->kernel->name);
    if (!self->uses || !self->name) {
        discard(self);
        return NULL;
    }
    memcpy(self->uses, from->uses, from->use_count * sizeof *self->uses);
    if (bytes) memcpy(self->params, from->params, bytes);
    bh__launch_submission(from, lane, &self->submission);
    self->submission.uses = self->uses;
    self->submission.params = self->params;
    self->submission.launch = &self->body;
    self->submission.busy = &self->busy;
    return self;
}

static bh_status keep(const bh__launch *from, bh_kernel handle, bh__lane *lane, bh_prepared *out) {
    if (bh__driver_managed_refuse(from->uses, from->use_count, "a prepared launch") != BH_OK)
        return bh__last()->status;
    bh__prepared *self = make(from, handle, lane);
    if (!self)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a prepared launch of kernel %s", from->kernel->name);
    bh_status status = bh__handle_add(from->device, BH__KIND_PREPARED, self, &self->id);
    if (status != BH_OK) {
        discard(self);
        return status;
    }
    retain_uses(self->uses, self->submission.use_count);
    out->id = self->id;
    return BH_OK;
}

bh_status bh_prepare(bh_kernel kernel, bh_shape shape, bh_args args, const bh_launch_options *given,
                     bh_prepared *out) {
    if (!out)
        return bh__refuse(BH_E_INVALID, "pass storage for the prepared launch", "out is NULL");
    bh_launch_options storage;
    bh__launch self;
    bh_status status = bh__launch_options_take(given, &storage, &self.options);
    if (status != BH_OK) return status;
    if (self.options->flags & BH_SUBMIT_WAIT || self.options->after_count)
        return bh__refuse(BH_E_INVALID, "prepare it without, and wait for tickets with bh_wait",
                          "a prepared launch with flags 0x%x and after_count %zu: BH_SUBMIT_WAIT "
                          "and `after` belong to one launch",
                          self.options->flags, self.options->after_count);
    self.ranges = NULL;
    self.device = bh__device_lock(kernel.id, BH__KIND_KERNEL, "kernel", true);
    if (!self.device) return bh__last()->status;
    bool retry;
    do {
        bh__lane *lane;
        status = bh__launch_pack(&self, kernel, &shape, args, &lane);
        retry = self.asks;
        if (retry) {
            bh__fit_question question = bh__launch_question(&self);
            status = bh__fit_ask(self.device, self.kernel, &question, NULL);
        } else if (status == BH_OK) {
            status = keep(&self, kernel, lane, out);
        }
        bh__launch_free(&self);
    } while (retry && status == BH_OK);
    bh__device_unlock(self.device);
    return status;
}

void bh__prepared_free_all(bh__device *device) {
    uint32_t cursor = 0;
    for (bh__prepared *self; (self = bh__table_next(&device->handles.prepared, &cursor));) {
        bh__handle_remove(device, self->id);
        for (uint32_t i = 0; i < self->submission.use_count; i++) {
            bh__memory *memory = self->uses[i].memory;
            if (--memory->references == 0) bh__memory_delete(device, memory);
        }
        discard(self);
    }
}

bh_status bh_prepared_release(bh_prepared handle) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_PREPARED, "prepared", false);
    if (!device) return bh__last()->status;
    bh__prepared *self = bh__handle_get(device, handle.id, BH__KIND_PREPARED, "prepared");
    bh_status status = self ? BH_OK : bh__last()->status;
    if (self) {
        bh__handle_remove(device, handle.id);
        release_uses(device, self->uses, self->submission.use_count);
        discard(self);
    }
    bh__device_unlock(device);
    return status;
}

/* ---- changing arguments ---- */

/* Fills in the fields of a launch that checks of arguments, and records of refusals, need. */
static void begin_check(bh__launch *out, bh__device *device, const bh__prepared *self,
                        bh_launch_options *options) {
    *options = (bh_launch_options){.size = sizeof *options, .flags = self->flags};
    out->device = device;
    out->kernel = self->submission.kernel;
    out->options = options;
    out->body = self->body;
    out->reason = BH_REASON_NONE;
    out->busy = self->busy;
    out->shaped = true;
    out->objects = NULL;
}

static bool has_kernel(const bh__device *device, const bh__prepared *self) {
    return bh__handle_find(device, &device->handles.kernels, self->handle.id, BH__KIND_KERNEL);
}

static bh_status refuse_kernel(const bh__prepared *self) {
    return bh__refuse(BH_E_INVALID,
                      "release the prepared launch, load the module and prepare it again",
                      "prepared launch of kernel %s: its module was released", self->name);
}

/* Sets the use of one argument; uses stay sorted by argument. `use` NULL: removes it. Returns the
 * new count. */
static uint32_t place_use(bh__use *uses, uint32_t count, uint32_t index, const bh__use *use) {
    uint32_t at = 0;
    while (at < count && uses[at].argument && uses[at].argument < index + 1) at++;
    bool there = at < count && uses[at].argument == index + 1;
    if (use && !there) {
        memmove(&uses[at + 1], &uses[at], (count - at) * sizeof *uses);
        count++;
    } else if (!use && there) {
        count--;
        memmove(&uses[at], &uses[at + 1], (count - at) * sizeof *uses);
    }
    if (use) uses[at] = *use;
    return count;
}

static bh_status change_all(bh__launch *check, const bh__prepared *self, const bh_change *changes,
                            size_t count, bool *moved) {
    bh__use *uses = check->uses;
    for (size_t i = 0; i < count; i++) {
        uint32_t index = changes[i].index;
        if (index >= self->arg_count)
            return bh__launch_refuse(
                check, BH_REASON_ARGUMENT_COUNT, index, self->arg_count, BH_E_INVALID,
                "use an index below the number of arguments",
                "prepared launch of kernel %s: there is no argument %u; the kernel takes %u",
                self->name, index, self->arg_count);
        bh__use use;
        bool is_buffer;
        bh_status status = bh__reserved_check(changes[i].reserved, "bh_change");
        if (status == BH_OK)
            status =
                bh__argument_take(check, index, &changes[i].arg, check->params, &use, &is_buffer);
        if (status != BH_OK) return status;
        uint32_t before = check->use_count;
        check->use_count = place_use(uses, before, index, is_buffer ? &use : NULL);
        *moved |= is_buffer || check->use_count != before;
    }
    return BH_OK;
}

static bh_status change(bh__device *device, bh__prepared *self, const bh_change *changes,
                        size_t count) {
    if (!has_kernel(device, self)) return refuse_kernel(self);
    bh_status status;
    bh__launch check;
    bh_launch_options options;
    begin_check(&check, device, self, &options);
    uint32_t before = self->submission.use_count, bytes = self->submission.param_bytes;
    bh__use *larger = self->room > BH__INLINE_USES ? malloc(self->room * sizeof *larger) : NULL;
    if (self->room > BH__INLINE_USES && !larger)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory to change a prepared launch of kernel %s", self->name);
    check.uses = larger ? larger : check.inline_uses;
    check.params = check.inline_params;
    status = bytes > sizeof check.inline_params ? bh__params_reserve(&check, bytes) : BH_OK;
    if (status != BH_OK) {
        bh__launch_free(&check);
        return status;
    }
    check.use_count = before;
    if (before) memcpy(check.uses, self->uses, before * sizeof *check.uses);
    if (bytes) memcpy(check.params, self->params, bytes);
    bool moved = false;
    status = change_all(&check, self, changes, count, &moved);
    if (status == BH_OK && moved)
        status = bh__driver_managed_refuse(check.uses, check.use_count, "a prepared launch");
    if (status == BH_OK && moved) {
        bh__arguments_place(check.kernel, check.uses, check.use_count,
                            self->flags & BH_LAUNCH_WRITABLE_INPUTS, check.params);
        retain_uses(check.uses, check.use_count);
        release_uses(device, self->uses, before);
        if (check.use_count) memcpy(self->uses, check.uses, check.use_count * sizeof *self->uses);
        self->submission.use_count = check.use_count;
    }
    if (status == BH_OK && bytes) memcpy(self->params, check.params, bytes);
    bh__launch_free(&check);
    return status;
}

/* ---- launching ---- */

/* Refuses the launch for the state of its kernel, or for its lane, which was released. */
static __attribute__((noinline)) bh_status refuse(bh__device *device, const bh__prepared *self) {
    bh__launch check;
    bh_launch_options options;
    begin_check(&check, device, self, &options);
    bh_status status = bh__kernel_check(&check);
    if (status != BH_OK) return status;
    status = bh__refuse(BH_E_INVALID, "prepare the launch for a lane that is open",
                        "prepared launch of kernel %s: its lane was released", self->name);
    bh__launch_record_status(&check, status);
    return status;
}

static __attribute__((noinline)) bh_status record(bh__device *device, const bh__prepared *self,
                                                  bh_status status) {
    bh__launch check;
    bh_launch_options options;
    begin_check(&check, device, self, &options);
    bh__launch_record_status(&check, status);
    return status;
}

static inline bh_status submit(bh__device *device, bh__prepared *self, bool *retry,
                               bh_ticket *out) {
    const bh__submission *submission = &self->submission;
    if (!has_kernel(device, self)) return refuse_kernel(self);
    if (submission->kernel->quarantined | submission->module->stale |
        (self->lane.id && submission->lane->handle != self->lane.id))
        return refuse(device, self);
    self->busy = BH_REASON_NONE;
    bh_status status = bh__submit(device, submission, retry, out);
    if (*retry) return status; /* the lock was released */
    if (status != BH_OK) return record(device, self, status);
    submission->module->launched = true;
    return status;
}

bh_status bh_prepared_launch(bh_prepared handle, const bh_change *changes, size_t count,
                             bh_ticket *out) {
    if (count && !changes)
        return bh__refuse(BH_E_INVALID, "pass the changes", "changes is NULL, count is %zu", count);
    bh__device *device = bh__device_lock(handle.id, BH__KIND_PREPARED, "prepared", true);
    if (!device) return bh__last()->status;
    bh_status status = BH_OK;
    bool retry;
    do {
        retry = false;
        bh__prepared *self =
            bh__handle_find(device, &device->handles.prepared, handle.id, BH__KIND_PREPARED);
        if (!self) {
            (void)bh__handle_get(device, handle.id, BH__KIND_PREPARED,
                                 "prepared"); /* sets the error */
            status = bh__last()->status;
            break;
        }
        if (count) status = change(device, self, changes, count);
        if (status == BH_OK) status = submit(device, self, &retry, out);
    } while (retry && status == BH_OK);
    bh__device_unlock(device);
    return status;
}
