/* SPDX-License-Identifier: Apache-2.0 */
/* What devices are: the facts that a worker reports, given to the program as bh_device_info and
 * bh_device_limits, and the list of all devices. */
#include <stdio.h>
#include <string.h>

#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/device/device.h"
#include "client/managed/managed.h"
#include "client/process/kinds.h"

/* ---- one device ---- */

static bh_device_info info_of(const bh__device_facts *facts, const char *passed_over) {
    bh_device_info info = {.cooperative = facts->cooperative,
                           .memory_total = facts->memory_total,
                           .memory_free = facts->memory_free,
                           .multiprocessors = facts->multiprocessors,
                           .warp_size = facts->warp_size,
                           .max_threads_per_block = facts->max_threads_per_block,
                           .driver_version = facts->driver_version,
                           .sandbox = facts->sandbox};
#define TEXT(field)                                                                                \
    _Static_assert(sizeof info.field == sizeof facts->field, "the texts have the same room");      \
    memcpy(info.field, facts->field, sizeof info.field)
    TEXT(kind);
    TEXT(name);
    TEXT(driver);
    TEXT(arch);
    TEXT(uuid);
    TEXT(pci);
    TEXT(no_standby);
    TEXT(sandbox_lack);
#undef TEXT
    snprintf(info.passed_over, sizeof info.passed_over, "%s", passed_over);
    return info;
}

static bh_device_limits limits_of(const bh__device_facts *facts) {
    bh_device_limits limits = {
        .max_lanes = facts->max_lanes,
        .max_param_bytes = facts->max_param_bytes,
        .shared_per_block = facts->shared_per_block,
        .shared_per_block_max = facts->shared_per_block_max,
        .shared_per_multiprocessor = facts->shared_per_multiprocessor,
        .registers_per_block = facts->registers_per_block,
        .registers_per_multiprocessor = facts->registers_per_multiprocessor,
        .max_threads_per_multiprocessor = facts->max_threads_per_multiprocessor,
        .max_blocks_per_multiprocessor = facts->max_blocks_per_multiprocessor,
        .clock_khz = facts->clock_khz,
        .memory_clock_khz = facts->memory_clock_khz,
        .memory_bus_bits = facts->memory_bus_bits,
        .l2_bytes = facts->l2_bytes,
        .async_engines = facts->async_engines,
        .concurrent_kernels = facts->concurrent_kernels,
        .cluster_launch = facts->cluster_launch,
        .ecc = facts->ecc,
        .compute_mode = facts->compute_mode,
        .mig = facts->mig,
        .mps = facts->mps,
        .priority_lowest = facts->priority_lowest,
        .priority_highest = facts->priority_highest};
    memcpy(limits.max_block, facts->max_block, sizeof limits.max_block);
    memcpy(limits.max_grid, facts->max_grid, sizeof limits.max_grid);
    return limits;
}

void bh__info_fill(const bh__device *device, bh_device_info *out) {
    *out = info_of(&device->info, device->passed_over);
    out->size = sizeof *out;
}

bh_status bh_device_get_info(bh_device handle, bh_device_info *out) {
    if (bh__sized_check(out, "bh_device_info") != BH_OK) return BH_E_INVALID;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_device_info info = info_of(&device->info, device->passed_over);
    bh__device_unlock(device);
    bh__sized_give(out, &info, sizeof info);
    return BH_OK;
}

bh_status bh_device_get_limits(bh_device handle, bh_device_limits *out) {
    if (bh__sized_check(out, "bh_device_limits") != BH_OK) return BH_E_INVALID;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_device_limits limits = limits_of(&device->info);
    bh__device_unlock(device);
    bh__track_probe(limits.no_tracking, sizeof limits.no_tracking);
    bh__sized_give(out, &limits, sizeof limits);
    return BH_OK;
}

/* ---- listing ---- */

static void try_open(const char *name, bh_device_entry *out) {
    memset(out, 0, sizeof *out);
    snprintf(out->device, sizeof out->device, "%s", name);
    bh_device_options options = BH_INIT(options);
    options.device = name;
    options.flags = BH_DEVICE_NO_STANDBY | BH_DEVICE_PRIVATE;
    bh_device device;
    out->status = bh_device_open(&options, &device);
    if (out->status != BH_OK) {
        bh_last_error(&out->error);
        return;
    }
    out->info.size = sizeof out->info;
    out->limits.size = sizeof out->limits;
    bh_device_get_info(device, &out->info);
    bh_device_get_limits(device, &out->limits);
    bh_device_close(device);
}

/* The devices of one kind, appended to a list that has `count` entries. Returns how many it has
 * then. */
static size_t list_kind(const bh__device_kind *kind, bh_device_entry *entries, size_t entry_size,
                        size_t capacity, size_t count) {
    for (uint32_t index = 0; index < (kind->numbered ? 64 : 1); index++) {
        /* An entry that is not stored is counted. Whether a device is the last of its kind is known
         * only by opening the next. */
        if (!kind->numbered && count >= capacity) return count + 1;
        bh_device_entry entry;
        char name[32];
        bh__device_name_write(kind->name, index, name, sizeof name);
        try_open(name, &entry);
        /* The first one is listed even if it is missing, with the reason. The list ends at the next
         * one that is missing. */
        if (index > 0 && entry.status != BH_OK) break;
        if (count < capacity) bh__list_put(entries, entry_size, count, &entry, sizeof entry);
        count++;
        if (entry.status != BH_OK) break;
    }
    return count;
}

bh_status bh_device_list(bh_device_entry *entries, size_t entry_size, size_t capacity,
                         size_t *count) {
    if (bh__list_check(entries, entry_size, capacity, count, "bh_device_entry") != BH_OK)
        return BH_E_INVALID;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    size_t found = 0;
    for (size_t i = 0; i < BH__DEVICE_KINDS; i++)
        found = list_kind(&bh__device_kinds[i], entries, entry_size, capacity, found);
    *count = found;
    return BH_OK;
}
