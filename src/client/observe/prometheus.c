/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of devices of this process in the Prometheus text format. */
#include <stdlib.h>
#include <string.h>

#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/observe/snapshot.h"

typedef struct snapshots {
    bh__figures_process process;
    uint32_t count;
    bh__figures *devices;     /* Owned. */
    const bh__figures **list; /* Owned. */
} snapshots;

/* `named`: the program passed its handle. Otherwise readers of stopped devices are left out. */
static bool take_device(uint64_t handle, bool named, bh__figures *out) {
    bh__device *device = bh__device_lock(handle, BH__KIND_DEVICE, "device", false);
    if (!device) return false;
    bh__snapshot_counters(device, out);
    bool wanted = named || !device->is_reader;
    bh__device_unlock(device);
    return wanted;
}

/* Those that are closed meanwhile are left out. */
static void take_open(const uint64_t *handles, uint32_t open, snapshots *out) {
    bh_error before = *bh__last();
    for (uint32_t i = 0; i < open; i++)
        out->count += take_device(handles[i], false, &out->devices[out->count]);
    *bh__last() = before;
}

static bh_status take_given(const bh_device *given, uint32_t count, snapshots *out) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            /* Two samples with the same labels would make the page invalid. */
            if (given[k].id == given[i].id)
                return bh__refuse(BH_E_INVALID, "pass each device once",
                                  "devices[%u] and devices[%u] are the same", k, i);
        }
        if (!take_device(given[i].id, true, &out->devices[out->count])) return bh__last()->status;
        out->count++;
    }
    return BH_OK;
}

static bh_status take_snapshots(const bh_device *given, size_t count, snapshots *out) {
    uint64_t handles[BH__MAX_DEVICES];
    uint32_t wanted = given ? (uint32_t)count : bh__devices_open(handles);
    *out = (snapshots){.devices = calloc(wanted + 1, sizeof *out->devices),
                       .list = calloc(wanted + 1, sizeof *out->list)};
    if (!out->devices || !out->list)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a copy of the counters of %u devices", wanted);
    bh__snapshot_process(&out->process);
    bh_status status = BH_OK;
    if (given)
        status = take_given(given, wanted, out);
    else
        take_open(handles, wanted, out);
    for (uint32_t i = 0; i < out->count; i++) out->list[i] = &out->devices[i];
    return status;
}

/* ---- the public call ---- */

static bh_status put_text(const snapshots *all, char *out, size_t capacity, size_t *length) {
    bh__page measured = {0}, page = {.out = out, .room = capacity};
    bh__page_write(&measured, all->list, all->count, &all->process);
    bh_status status = bh__text_fits(measured.length, capacity, length);
    if (status == BH_OK && capacity) bh__page_write(&page, all->list, all->count, &all->process);
    return status;
}

static bh_status check_devices(const bh_device *devices, size_t count) {
    if (!devices && count)
        return bh__refuse(BH_E_INVALID, "pass the devices, or NULL and 0 for all",
                          "devices is NULL and count is %zu", count);
    if (count > BH__MAX_DEVICES)
        return bh__refuse(BH_E_INVALID, "pass each device once",
                          "count is %zu; a process can have %d devices open", count,
                          BH__MAX_DEVICES);
    return BH_OK;
}

bh_status bh_prometheus(const bh_device *devices, size_t count, char *out, size_t capacity,
                        size_t *length) {
    if (bh__text_check(out, capacity, length) != BH_OK) return BH_E_INVALID;
    if (check_devices(devices, count) != BH_OK) return BH_E_INVALID;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    snapshots all;
    bh_status status = take_snapshots(devices, count, &all);
    if (status == BH_OK) status = put_text(&all, out, capacity, length);
    free(all.devices);
    free(all.list);
    return status;
}
