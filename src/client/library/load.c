/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries as modules: loaded by the first call, and kept until the device closes. */
#include <stdio.h>
#include <string.h>

#include "bulkhead/library.h"
#include "client/core/handles.h"
#include "client/library/library.h"
#include "client/module/module.h"
#include "client/queue/queue.h"

/* With the lock held. */
static bh_status begin_load(bh__device *device, uint32_t library) {
    bh__library_entry *entry = &device->library.entries[library];
    bh__library_image image;
    bh__library_image_make(library, &image);
    bh__module *module = bh__module_announce(device);
    if (!module) return bh__last()->status;
    bh__library_entry made = {
        .module = module->id,
        .ticket = {atomic_load(&device->lanes[BH__LOAD_LANE].id), module->ticket}};
    bh_error error = {.status = BH_OK};
    if (!bh__module_send(device, module, &image, sizeof image, &error)) {
        bh__module_resolve_locked(device, module, &error);
        return bh__refuse_with(&error);
    }
    *entry = made;
    return BH_OK;
}

/* The handles of the operations' kernels. The worker describes the module, so its word is checked.
 * With the lock held. */
static bh_status take_kernels(bh__device *device, uint32_t library, bh__module *module) {
    uint64_t handles[BH__LIBRARY_OPERATIONS] = {0};
    const bh__library *what = &bh__libraries[library];
    bh_status status = BH_OK;
    for (uint32_t i = 0; i < what->count && status == BH_OK; i++) {
        bh__kernel *kernel = i < module->kernel_count ? &module->kernels[i] : NULL;
        if (!kernel || strcmp(kernel->name, what->operations[i].name) != 0)
            return bh__refuse(BH_E_LOAD, "install the library and its workers of one version",
                              "the worker's library %s has no operation %s in place %u", what->name,
                              what->operations[i].name, i);
        if (!kernel->id) status = bh__handle_add(device, BH__KIND_KERNEL, kernel, &kernel->id);
        handles[i] = kernel->id;
    }
    if (status == BH_OK) memcpy(device->library.entries[library].kernels, handles, sizeof handles);
    return status;
}

static bh_status refuse_undeclared(uint32_t library) {
    char fix[128];
    snprintf(fix, sizeof fix, "open the device with %s in bh_device_options.libraries",
             bh__libraries[library].constant);
    return bh__refuse(BH_E_UNSUPPORTED, fix, "the device was opened without library %s",
                      bh__libraries[library].name);
}

/* Waits for the load without the lock. The entry of a failed load is cleared, so that the next call
 * tries again. */
static bh_status wait_for_load(bh__device *device, uint32_t library, bool no_block) {
    bh__library_entry *entry = &device->library.entries[library];
    bh_ticket ticket = entry->ticket;
    bh__device_step_out(device);
    bh_status status = bh_wait(ticket, no_block ? 0 : BH_FOREVER);
    bh__device_step_in(device);
    if (status == BH_E_BUSY)
        return bh__refuse(BH_E_BUSY, "call bh_library_load first, which waits for it",
                          "library %s is being loaded", bh__libraries[library].name);
    bool same = entry->ticket.sequence == ticket.sequence;
    bool over = !bh__load_pending(&device->lanes[BH__LOAD_LANE], ticket.sequence);
    if (status != BH_OK && same && over) *entry = (bh__library_entry){0};
    return status;
}

/* With the lock held; releases it meanwhile. */
static bh_status ensure_loaded(bh__device *device, uint32_t library, bool no_block) {
    bh__library_entry *entry = &device->library.entries[library];
    if (!(device->options.libraries & 1u << library)) return refuse_undeclared(library);
    bh_status status = entry->module ? BH_OK : begin_load(device, library);
    if (status == BH_OK) status = wait_for_load(device, library, no_block);
    if (status == BH_OK && !bh__takes_work(device)) status = bh__refuse_work(device);
    if (status != BH_OK || entry->kernels[0]) return status;
    bh__module *module = bh__handle_get(device, entry->module, BH__KIND_MODULE, "library");
    return module ? take_kernels(device, library, module) : bh__last()->status;
}

bh_status bh__library_kernel(const bh__library_call *self, bh_lane handle, bool no_block,
                             bh_kernel *out) {
    bh__device *device = bh__device_lock(bh__library_buffer(self, 0).id, BH__KIND_BUFFER,
                                         self->operation->operands[0].name, true);
    if (!device) return bh__last()->status;
    const bh__library_entry *entry = &device->library.entries[self->library];
    bh_status status = BH_OK;
    if (!entry->kernels[0]) {
        const bh__lane *lane = bh__lane_get(device, handle);
        status = lane ? ensure_loaded(device, self->library, no_block || lane->no_block)
                      : bh__last()->status;
    }
    if (status == BH_OK)
        out->id = entry->kernels[self->operation - bh__libraries[self->library].operations];
    bh__device_unlock(device);
    return status;
}

/* Programs have no handles of a library's kernels, so they pardon all of them together. */
static bh_status pardon(bh__device *device, uint32_t library) {
    bh__module *module =
        bh__handle_get(device, device->library.entries[library].module, BH__KIND_MODULE, "library");
    if (!module) return bh__last()->status;
    for (uint32_t i = 0; i < module->kernel_count; i++) bh__kernel_pardon(&module->kernels[i]);
    return BH_OK;
}

bh_status bh_library_load(bh_device handle, uint32_t libraries) {
    if (libraries & ~BH__ALL_LIBRARIES)
        return bh__refuse(BH_E_INVALID, "use BH_LIBRARY_...",
                          "libraries is 0x%x; 0x%x of it are unknown", libraries,
                          libraries & ~BH__ALL_LIBRARIES);
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh_status status = BH_OK;
    for (uint32_t i = 0; i < BH__LIBRARIES && status == BH_OK; i++) {
        if (!(libraries & 1u << i)) continue;
        status = ensure_loaded(device, i, false);
        if (status == BH_OK) status = pardon(device, i);
    }
    bh__device_unlock(device);
    return status;
}
