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

/* One piece through a staging slot. Called and returns with the lock held. */
static bh_status move_piece(bh__device *device, bh__module *module, uint32_t index, uint64_t offset,
                            void *target, const void *source, uint64_t bytes) {
    uint32_t slot;
    bh_status status = bh__staging_take(device, true, &slot);
    if (status != BH_OK) return status;
    if (source) memcpy(bh__staging_memory(device, slot), source, bytes);
    uint64_t staged = (uint64_t)slot * BH__STAGING_BYTES;
    bh__submission submission = {.lane = &device->lanes[0],
                                 .op = source ? BH__OP_GLOBAL_WRITE : BH__OP_GLOBAL_READ,
                                 .module = module,
                                 .copy = {.target = source ? offset : staged,
                                          .source = source ? staged : offset,
                                          .bytes = bytes,
                                          .host = device->staging->host_id,
                                          .module = module->number,
                                          .variable = index}};
    bh_ticket ticket;
    bool retry = true;
    while (retry && status == BH_OK) status = bh__submit(device, &submission, &retry, &ticket);
    if (status == BH_OK) {
        bh__device_step_out(device);
        status = bh_wait(ticket, BH_FOREVER);
        if (status == BH_OK && target) memcpy(target, bh__staging_memory(device, slot), bytes);
        bh__device_step_in(device);
    }
    bh__staging_put(device, slot, 0, 0, status != BH_OK);
    return status;
}

/* The value that every later worker starts with. */
static bh_status remember(bh__variable *variable, uint64_t offset, const void *source,
                          uint64_t bytes) {
    if (!variable->value) variable->value = calloc(1, variable->bytes);
    if (!variable->value || !bh__spans_add(&variable->written, &variable->written_count,
                                           &variable->written_capacity, offset, bytes)) {
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "the variable is set, but there is no host memory to remember it");
    }
    memcpy(variable->value + offset, source, bytes);
    return BH_OK;
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
    for (uint64_t moved = 0, piece; moved < bytes && status == BH_OK; moved += piece) {
        piece = bytes - moved < BH__STAGING_BYTES ? bytes - moved : BH__STAGING_BYTES;
        uint8_t *to = target ? target + moved : NULL;
        const uint8_t *from = source ? source + moved : NULL;
        status = move_piece(device, module, index, offset + moved, to, from, piece);
        if (status == BH_OK && from) {
            status = remember(&module->variables[index], offset + moved, from, piece);
        }
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
