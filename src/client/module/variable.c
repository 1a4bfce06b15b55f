/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of modules: written and read in order with launches. What the program wrote is saved
 * for the next worker. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/core/handles.h"
#include "client/module/module.h"
#include "client/queue/queue.h"
#include "client/queue/uses.h"
#include "client/transfer/transfer.h"

/* Locks the device, finds the variable and checks the range. NULL: nothing is locked and the
 * thread's error is set. */
static bh__device *variable_lock(bh_module handle, const char *name, bool running, uint64_t offset,
                                 uint64_t bytes, bh__module **out_module, uint32_t *out_index) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_MODULE, "module", running);
    if (!device) return NULL;
    bh__module *module = bh__handle_get(device, handle.id, BH__KIND_MODULE, "module");
    if (module && !module->loaded) {
        bh__refuse(BH_E_BUSY, "wait for the ticket of its load",
                   "the module is still being loaded");
    } else if (module) {
        for (uint32_t i = 0; i < module->variable_count; i++) {
            if (strcmp(module->variables[i].name, name) != 0) continue;
            if (bh__range_fits(offset, bytes, module->variables[i].bytes)) {
                *out_module = module;
                *out_index = i;
                return device;
            }
            bh__refuse(BH_E_INVALID, "stay within the variable",
                       "%llu bytes at offset %llu do not fit variable %.100s of %llu bytes",
                       (unsigned long long)bytes, (unsigned long long)offset, name,
                       (unsigned long long)module->variables[i].bytes);
            bh__device_unlock(device);
            return NULL;
        }
        bh__refuse(BH_E_NOT_FOUND, "use the name as the module has it; C++ names are mangled",
                   "the module has no variable \"%.100s\"; it has %u variables", name,
                   module->variable_count);
    }
    bh__device_unlock(device);
    return NULL;
}

/* Waits for launches of the module on all lanes but the first: variables are written and read on
 * the first lane. */
static void wait_for_users(bh__device *device, bh__module *module) {
    for (uint32_t i = 1; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        uint64_t last = module->last[i];
        if (last <= bh__lane_done(device, lane)) continue;
        (void)bh__lane_let_pass(device, lane, last);
    }
}

/* ---- values for the next worker ---- */

/*
 * A submitted write of one piece. While it is in flight, a new worker must start without its value:
 * requests queued before it must find the old one. Once it has completed, every new worker must
 * start with its value. So the device has a list of writes in flight, and bh__variables_settle goes
 * through it.
 */
typedef struct bh__variable_write {
    struct bh__variable_write *next; /* sorted by position */
    bh__variable *variable;          /* Borrowed: its module is pinned. */
    uint64_t position;               /* on the first lane */
    uint64_t offset, bytes;
    uint8_t *data; /* Owned: the program may change its source meanwhile. */
} bh__variable_write;

static bh_status refuse_memory(const bh__variable *variable, uint64_t bytes) {
    return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                      "no host memory to save %llu bytes of variable %.100s of %llu bytes",
                      (unsigned long long)bytes, variable->name,
                      (unsigned long long)variable->bytes);
}

/* Allocates all memory for saving the write: nothing can fail once it is submitted. */
static bh_status write_prepare(bh__variable_write *self, bh__variable *variable, uint64_t offset,
                               const void *source, uint64_t bytes) {
    *self = (bh__variable_write){.variable = variable, .offset = offset, .bytes = bytes};
    if (!variable->value) variable->value = calloc(1, variable->bytes);
    self->data = malloc(bytes);
    if (!variable->value || !self->data) {
        free(self->data);
        return refuse_memory(variable, bytes);
    }
    memcpy(self->data, source, bytes);
    return BH_OK;
}

/* Makes room for the spans that all writes on the list, and this one, can add. With the lock held,
 * right before the request is submitted. */
static bool spans_reserve(bh__device *device, bh__variable *variable) {
    uint32_t needed = variable->written_count + 2;
    for (const bh__variable_write *write = device->module.variable_writes; write;
         write = write->next)
        needed += write->variable == variable;
    if (needed <= variable->written_capacity) return true;
    bh__span *larger = realloc(variable->written, 2 * needed * sizeof *larger);
    if (!larger) return false;
    variable->written = larger;
    variable->written_capacity = 2 * needed;
    return true;
}

static void write_add(bh__device *device, bh__variable_write *self, uint64_t position) {
    bh__variable_write **link = &device->module.variable_writes;
    while (*link) link = &(*link)->next; /* positions only increase */
    self->position = position;
    *link = self;
}

static void write_remove(bh__device *device, bh__variable_write *self) {
    bh__variable_write **link = &device->module.variable_writes;
    while (*link && *link != self) link = &(*link)->next;
    if (*link) *link = self->next;
    free(self->data);
}

void bh__variables_settle(bh__device *device) {
    if (!device->module.variable_writes) return;
    bh__lane *lane = &device->lanes[0];
    uint64_t done = bh__lane_done(device, lane);
    /* In order: of two writes that overlap, the later one wins. */
    while (device->module.variable_writes && device->module.variable_writes->position <= done) {
        bh__variable_write *write = device->module.variable_writes;
        device->module.variable_writes = write->next;
        if (bh__verdicts_status((bh_ticket){atomic_load(&lane->id), write->position}) != BH_OK)
            continue;
        bh__variable *variable = write->variable;
        /* Cannot fail: spans_reserve has made room. */
        (void)bh__spans_add(&variable->written, &variable->written_count,
                            &variable->written_capacity, write->offset, write->bytes);
        memcpy(variable->value + write->offset, write->data, write->bytes);
    }
}

/* ---- writing and reading ---- */

static bh_status refuse_stale(bh__device *device, const bh__variable *variable) {
    device->counters.stale_refusals++;
    return bh__refuse(
        BH_E_STALE, "write it again, or accept it as it is, and call bh_module_accept",
        "variable %.100s of %llu bytes: the value that kernels wrote was lost with a worker",
        variable->name, (unsigned long long)variable->bytes);
}

typedef struct piece {
    bh__module *module;
    uint32_t index;
    uint64_t offset, bytes;
    uint8_t *target;       /* NULL: a write */
    const uint8_t *source; /* NULL: a read */
    uint64_t lost_until;   /* the module's, before the first piece */
} piece;

/* Returns true if kernels may have changed the variable and its value was lost with a worker. If
 * that was between two pieces, it does not help that the module was accepted meanwhile: what was
 * read is of two workers. */
static bool is_stale(const piece *self) {
    const bh__module *module = self->module;
    return module->variables[self->index].writable &&
           (module->stale || module->lost_until != self->lost_until);
}

/* Waits for the ticket, with the lock released, and for a read copies the bytes. */
static bh_status finish_piece(bh__device *device, const piece *self, bh_ticket ticket,
                              const uint8_t *staged) {
    bh__device_step_out(device);
    bh_status status = bh_wait(ticket, BH_FOREVER);
    if (status == BH_OK && self->target) memcpy(self->target, staged, self->bytes);
    bh__device_step_in(device);
    if (status == BH_OK && self->target && is_stale(self))
        return refuse_stale(device, &self->module->variables[self->index]);
    return status;
}

/* Moves one piece through a staging slot. Called and returns with the lock held. */
static bh_status move_piece(bh__device *device, const piece *self) {
    bh__variable *variable = &self->module->variables[self->index];
    bool writes = self->source;
    bh__variable_write write;
    bh_status status =
        writes ? write_prepare(&write, variable, self->offset, self->source, self->bytes) : BH_OK;
    if (status != BH_OK) return status;
    uint32_t slot;
    status = bh__staging_take(device, true, &slot);
    if (status != BH_OK) {
        if (writes) free(write.data);
        return status;
    }
    uint8_t *memory = bh__staging_memory(device, slot);
    if (writes) memcpy(memory, write.data, self->bytes);
    uint64_t staged = (uint64_t)slot * BH__STAGING_BYTES;
    bh__submission submission = {.lane = &device->lanes[0],
                                 .op = writes ? BH__OP_GLOBAL_WRITE : BH__OP_GLOBAL_READ,
                                 .module = self->module,
                                 .copy = {.target = writes ? self->offset : staged,
                                          .source = writes ? staged : self->offset,
                                          .bytes = self->bytes,
                                          .host = device->transfer.staging->host_id,
                                          .module = self->module->number,
                                          .variable = self->index}};
    bh_ticket ticket;
    for (bool retry = true; retry && status == BH_OK;) {
        if (!writes && is_stale(self)) {
            status = refuse_stale(device, variable);
        } else if (writes && !spans_reserve(device, variable)) {
            status = refuse_memory(variable, self->bytes);
        } else {
            /* If kernels may have written it, a read is not repeated on the next worker. */
            submission.idempotent = writes || !(variable->writable && self->module->launched);
            status = bh__submit(device, &submission, &retry, &ticket);
        }
    }
    bool submitted = status == BH_OK;
    if (submitted && writes) write_add(device, &write, ticket.sequence);
    if (submitted) status = finish_piece(device, self, ticket, memory);
    if (writes) {
        if (submitted) bh__variables_settle(device);
        write_remove(device, &write);
    }
    bh__staging_put(device, slot, 0, 0, submitted && status != BH_OK);
    return status;
}

/* Some pieces of a write have completed and one failed: the module is stale, so that no kernel
 * reads the partial value. */
static bh_status fail_partial(bh__module *module, uint32_t index, const piece *failed,
                              uint64_t offset, uint64_t bytes) {
    bh_error why = *bh__last();
    module->stale = true;
    return bh__refuse(why.status, "write all of it again and call bh_module_accept",
                      "variable %.100s: of the %llu bytes at offset %llu only the first %llu were "
                      "written: %.200s",
                      module->variables[index].name, (unsigned long long)bytes,
                      (unsigned long long)offset, (unsigned long long)(failed->offset - offset),
                      why.message);
}

/* Moves the range in pieces. Exactly one of target and source is given. */
static bh_status move(bh_module handle, const char *name, uint64_t offset, uint8_t *target,
                      const uint8_t *source, uint64_t bytes) {
    bh__module *module;
    uint32_t index;
    bh__device *device = variable_lock(handle, name, true, offset, bytes, &module, &index);
    if (!device) return bh__last()->status;
    module->pins++;
    wait_for_users(device, module);
    uint64_t lost_until = module->lost_until;
    bh_status status = BH_OK;
    for (uint64_t moved = 0; moved < bytes && status == BH_OK;) {
        uint64_t left = bytes - moved;
        piece next = {.module = module,
                      .index = index,
                      .offset = offset + moved,
                      .bytes = left < BH__STAGING_BYTES ? left : BH__STAGING_BYTES,
                      .target = target ? target + moved : NULL,
                      .source = source ? source + moved : NULL,
                      .lost_until = lost_until};
        status = move_piece(device, &next);
        if (status != BH_OK && source && moved)
            status = fail_partial(module, index, &next, offset, bytes);
        moved += next.bytes;
    }
    bh__module_unpin(device, module);
    bh__device_unlock(device);
    return status;
}

bh_status bh_module_global_write(bh_module module, const char *name, uint64_t offset,
                                 const void *source, uint64_t bytes) {
    if (!name || (!source && bytes)) {
        return bh__refuse(BH_E_INVALID, "pass a name and the bytes", "name or source is NULL");
    }
    return move(module, name, offset, NULL, source, bytes);
}

bh_status bh_module_global_read(bh_module module, const char *name, uint64_t offset, void *target,
                                uint64_t bytes) {
    if (!name || (!target && bytes)) {
        return bh__refuse(BH_E_INVALID, "pass a name and storage", "name or target is NULL");
    }
    return move(module, name, offset, target, NULL, bytes);
}

bh_status bh_module_global_size(bh_module handle, const char *name, uint64_t *out) {
    if (!name || !out)
        return bh__refuse(BH_E_INVALID, "pass a name and storage for the size",
                          "name or out is NULL");
    bh__module *module;
    uint32_t index;
    bh__device *device = variable_lock(handle, name, false, 0, 0, &module, &index);
    if (!device) return bh__last()->status;
    *out = module->variables[index].bytes;
    bh__device_unlock(device);
    return BH_OK;
}
