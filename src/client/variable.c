/* SPDX-License-Identifier: Apache-2.0 */
/* A module's own variables: written and read in order with its launches, remembered for the next
 * worker. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/internal.h"

/* Locks the device and finds the variable; checks the range. */
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
                       "%llu bytes from byte %llu on, of variable %s of %llu bytes",
                       (unsigned long long)bytes, (unsigned long long)offset, name,
                       (unsigned long long)module->variables[i].bytes);
            bh__device_unlock(device);
            return NULL;
        }
        bh__refuse(BH_E_NOT_FOUND, "use the name as the module has it; C++ names are mangled",
                   "no variable \"%.100s\" among the module's %u", name, module->variable_count);
    }
    bh__device_unlock(device);
    return NULL;
}

/* Waits for launches of the module on other lanes than the first, which is the one that variables
 * go through. */
static void wait_for_users(bh__device *device, bh__module *module) {
    for (uint32_t i = 1; i < device->lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        uint64_t last = module->last[i];
        if (last <= bh__lane_done(device, lane)) continue;
        (void)bh__lane_let_pass(device, lane, last);
    }
}

/* ---- what later workers start with ---- */

/* A write of one piece that is submitted. While it is not known to be done, its value is not one that
 * a new worker may start with: what is queued before it must find the old one. Once it is done, no
 * worker may start without it. So the device has a list of these, and whoever learns what is done,
 * with the lock held, goes through it. */
typedef struct bh__variable_write {
    struct bh__variable_write *next; /* in the order of their positions */
    bh__variable *variable;          /* Borrowed: its module is pinned. */
    uint64_t position;               /* on the first lane */
    uint64_t offset, bytes;
    uint8_t *data; /* Owned. The program may change its own meanwhile. */
} bh__variable_write;

static bh_status refuse_memory(const bh__variable *variable, uint64_t bytes) {
    return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                      "no host memory to remember %llu bytes of variable %.100s of %llu bytes",
                      (unsigned long long)bytes, variable->name,
                      (unsigned long long)variable->bytes);
}

/* All the memory it takes to remember the write, so that nothing can fail once it is submitted. */
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

/* Room for one more span than all writes on the list, and this one, can make. With the lock held,
 * right before the request is submitted. */
static bool spans_reserve(bh__device *device, bh__variable *variable) {
    uint32_t needed = variable->written_count + 2;
    for (const bh__variable_write *write = device->variable_writes; write; write = write->next)
        needed += write->variable == variable;
    if (needed <= variable->written_capacity) return true;
    bh__span *larger = realloc(variable->written, 2 * needed * sizeof *larger);
    if (!larger) return false;
    variable->written = larger;
    variable->written_capacity = 2 * needed;
    return true;
}

static void write_add(bh__device *device, bh__variable_write *self, uint64_t position) {
    bh__variable_write **link = &device->variable_writes;
    while (*link) link = &(*link)->next; /* positions only go up */
    self->position = position;
    *link = self;
}

static void write_remove(bh__device *device, bh__variable_write *self) {
    bh__variable_write **link = &device->variable_writes;
    while (*link && *link != self) link = &(*link)->next;
    if (*link) *link = self->next;
    free(self->data);
}

void bh__variables_settle(bh__device *device) {
    if (!device->variable_writes) return;
    bh__lane *lane = &device->lanes[0];
    uint64_t done = bh__lane_done(device, lane);
    /* In their order: of two that overlap the later one counts, whoever waits for it. */
    while (device->variable_writes && device->variable_writes->position <= done) {
        bh__variable_write *write = device->variable_writes;
        device->variable_writes = write->next;
        if (bh__history_status((bh_ticket){atomic_load(&lane->id), write->position}) != BH_OK) continue;
        bh__variable *variable = write->variable;
        /* Cannot fail: the room is there. */
        (void)bh__spans_add(&variable->written, &variable->written_count,
                            &variable->written_capacity, write->offset, write->bytes);
        memcpy(variable->value + write->offset, write->data, write->bytes);
    }
}

/* ---- moving ---- */

/* Kernels may have changed it, and the loss of a worker may have put it back. */
static bool is_stale(const bh__module *module, uint32_t index) {
    return module->stale && module->variables[index].writable;
}

static bh_status refuse_stale(bh__device *device, const bh__variable *variable) {
    device->tally.stale_refusals++;
    return bh__refuse(BH_E_STALE, "set it again, or accept its value, with bh_module_accept",
                      "what kernels left in variable %.100s of %llu bytes was lost with a worker",
                      variable->name, (unsigned long long)variable->bytes);
}

typedef struct piece {
    bh__module *module;
    uint32_t index;
    uint64_t offset, bytes;
    uint8_t *target;       /* NULL: a write */
    const uint8_t *source; /* NULL: a read */
} piece;

/* Waits for the ticket and, for a read, takes the bytes. Called and returns with the lock held. */
static bh_status finish_piece(bh__device *device, const piece *self, bh_ticket ticket,
                              const uint8_t *staged) {
    bh__device_step_out(device);
    bh_status status = bh_wait(ticket, BH_FOREVER);
    if (status == BH_OK && self->target) memcpy(self->target, staged, self->bytes);
    bh__device_step_in(device);
    if (status == BH_OK && self->target && is_stale(self->module, self->index))
        return refuse_stale(device, &self->module->variables[self->index]);
    return status;
}

/* One piece through a staging slot. Called and returns with the lock held. */
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
                                          .host = device->staging->host_id,
                                          .module = self->module->number,
                                          .variable = self->index}};
    bh_ticket ticket;
    for (bool retry = true; retry && status == BH_OK;) {
        if (!writes && is_stale(self->module, self->index)) {
            status = refuse_stale(device, variable);
        } else if (writes && !spans_reserve(device, variable)) {
            status = refuse_memory(variable, self->bytes);
        } else {
            /* What a lost worker's kernels left there is not to be read from its successor. */
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

/* Some pieces of a write are done and one is not. Kernels would find half of it. */
static bh_status refuse_half(bh__module *module, uint32_t index, const piece *failed,
                             uint64_t offset, uint64_t bytes) {
    bh_error why = *bh__last();
    module->stale = true;
    return bh__refuse(why.status, "write all of it again and call bh_module_accept",
                      "of %llu bytes of variable %.100s from byte %llu on the first %llu are set "
                      "and the others are not: %.200s",
                      (unsigned long long)bytes, module->variables[index].name,
                      (unsigned long long)offset, (unsigned long long)(failed->offset - offset),
                      why.message);
}

/* All of it, piece by piece. Exactly one of target and source is given. */
static bh_status move(bh_module handle, const char *name, uint64_t offset, uint8_t *target,
                      const uint8_t *source, uint64_t bytes) {
    bh__module *module;
    uint32_t index;
    bh__device *device = variable_lock(handle, name, true, offset, bytes, &module, &index);
    if (!device) return bh__last()->status;
    module->pins++;
    wait_for_users(device, module);
    bh_status status = BH_OK;
    for (uint64_t moved = 0; moved < bytes && status == BH_OK;) {
        uint64_t left = bytes - moved;
        piece next = {.module = module,
                      .index = index,
                      .offset = offset + moved,
                      .bytes = left < BH__STAGING_BYTES ? left : BH__STAGING_BYTES,
                      .target = target ? target + moved : NULL,
                      .source = source ? source + moved : NULL};
        status = move_piece(device, &next);
        if (status != BH_OK && source && moved)
            status = refuse_half(module, index, &next, offset, bytes);
        moved += next.bytes;
    }
    module->pins--;
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
