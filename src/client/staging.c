/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that workers can reach: the staging slots plain pointers go through, and what
 * bh_host_alloc hands out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/internal.h"
#include "wire/share.h"

/* ---- host regions ---- */

static bool hosts_reserve(bh__device *device) {
    if (device->host_count < device->host_capacity) return true;
    uint32_t capacity = device->host_capacity ? device->host_capacity * 2 : 8;
    bh__host_entry *hosts = realloc(device->hosts, capacity * sizeof *hosts);
    if (!hosts) return false;
    device->hosts = hosts;
    device->host_capacity = capacity;
    return true;
}

bh_status bh__host_region_create(bh__device *device, uint64_t asked, bh__memory **out) {
    char text[128];
    uint64_t bytes = (asked + 4095) & ~4095ull;
    bh__memory *memory = bh__memory_new(device);
    int fd = memory ? bh__share_create("bulkhead-host", bytes) : -ENOMEM;
    void *mapped = fd >= 0 ? bh__share_map(fd, 0, bytes, true) : NULL;
    if (!mapped) {
        int number = fd < 0 ? -fd : errno;
        if (fd >= 0) bh__fd_close(bh__fd_keep(fd));
        if (memory) bh__memory_delete(device, memory);
        return bh__refuse(BH_E_NO_HOST_MEMORY, "ask for less, or free host memory",
                          "cannot get %llu bytes of shared memory: %s", (unsigned long long)bytes,
                          bh__errno_text(number, text, sizeof text));
    }
    fd = bh__fd_keep(fd);
    memory->host = mapped;
    memory->bytes = asked;
    memory->host_id = device->next_host_id++;
    bh__host_region region = {.id = memory->host_id, .bytes = bytes};
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_HOST_MAP, .host = region, .fd = fd},
                   .host = memory};
    bh_status status = bh__order_run(device, &job);
    if (status != BH_OK) {
        bh__share_unmap(mapped, bytes);
        bh__fd_close(fd);
        bh__memory_delete(device, memory);
        return status;
    }
    *out = memory;
    return BH_OK;
}

bool bh__host_note(bh__device *device, const bh__host_region *region, int fd, bh__memory *memory) {
    if (!hosts_reserve(device)) return false;
    device->hosts[device->host_count++] =
        (bh__host_entry){.region = *region, .fd = fd, .memory = memory};
    return true;
}

bh_status bh_host_alloc(bh_device handle, uint64_t bytes, void **out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the pointer", "out is NULL");
    if (bytes == 0 || bytes > (uint64_t)INT64_MAX / 2) {
        return bh__refuse(BH_E_INVALID, "ask for at least 1 byte and at most 2^62",
                          "%llu bytes of host memory asked for", (unsigned long long)bytes);
    }
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh__memory *memory;
    bh_status status = bh__host_region_create(device, bytes, &memory);
    if (status == BH_OK) *out = memory->host;
    bh__device_unlock(device);
    return status;
}

bh__host_entry *bh__host_entry_of(bh__device *device, const bh__memory *memory) {
    for (uint32_t i = 0; i < device->host_count; i++) {
        if (device->hosts[i].memory == memory) return &device->hosts[i];
    }
    return NULL;
}

/* What was submitted must be done with it before it goes. */
void bh__host_let_pass(bh__device *device, const bh__memory *memory) {
    for (uint32_t i = 0; i < memory->use_count; i++) {
        const bh__lane_use *use = &memory->uses[i];
        uint64_t last =
            use->write_position > use->read_position ? use->write_position : use->read_position;
        bh__lane *lane = &device->lanes[use->lane];
        if (last <= bh__lane_done(device, lane)) continue;
        (void)bh__lane_let_pass(device, lane, last);
    }
}

/* The program cannot name it from the first step on. Workers know it until the work that uses it has
 * passed: one that is started meanwhile may have to do that work again. */
void bh__host_region_destroy(bh__device *device, bh__memory *memory) {
    bh__host_entry_of(device, memory)->leaving = true;
    bh__host_let_pass(device, memory);
    bh__host_entry *at = bh__host_entry_of(device, memory), entry = *at;
    *at = device->hosts[--device->host_count];
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_HOST_UNMAP, .host = entry.region, .fd = -1}};
    (void)bh__order_run(device, &job);
    bh__share_unmap(memory->host, entry.region.bytes);
    bh__fd_close(entry.fd);
    bh__memory_delete(device, memory);
}

bh_status bh_host_free(bh_device handle, void *pointer) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    uint32_t at = 0;
    while (at < device->host_count && device->hosts[at].memory->host != pointer) at++;
    if (at == device->host_count || device->hosts[at].memory == device->staging ||
        device->hosts[at].slab || device->hosts[at].leaving || device->hosts[at].memory->mirror) {
        bh__device_unlock(device);
        return bh__refuse(BH_E_INVALID, "pass what bh_host_alloc returned, once",
                          "%p is not host memory of this device", pointer);
    }
    if (device->hosts[at].memory->references > 1) {
        bh__device_unlock(device);
        return bh__refuse(BH_E_BUSY, "release the sequences that use it first",
                          "%p is used by %u sequences", pointer,
                          device->hosts[at].memory->references - 1);
    }
    bh__host_region_destroy(device, device->hosts[at].memory);
    bh__device_unlock(device);
    return BH_OK;
}

bh__memory *bh__host_find(bh__device *device, const void *pointer, uint64_t bytes,
                          uint64_t *out_offset) {
    for (uint32_t i = 0; i < device->host_count; i++) {
        bh__memory *memory = device->hosts[i].memory;
        uintptr_t base = (uintptr_t)memory->host, at = (uintptr_t)pointer;
        if (memory == device->staging || memory->mirror || device->hosts[i].leaving || at < base ||
            !bh__range_fits(at - base, bytes, memory->bytes))
            continue;
        if (device->hosts[i].slab)
            return bh__host_pool_find(device->hosts[i].slab, at - base, bytes, out_offset);
        *out_offset = at - base;
        return memory;
    }
    return NULL;
}

/* ---- staging slots ---- */

uint8_t *bh__staging_memory(bh__device *device, uint32_t slot) {
    return (uint8_t *)device->staging->host + (size_t)slot * BH__STAGING_BYTES;
}

static bool slot_free(bh__device *device, const bh__staging_slot *slot) {
    if (slot->taken || slot->hold > atomic_load(&device->front->reaped)) return false;
    return slot->sequence == 0 ||
           bh__lane_done(device, &device->lanes[slot->lane]) >= slot->sequence;
}

/* Waits a while for the first slot whose work is on a lane, or for a thread to be done with one. Not
 * longer: any of them may be free first, and work on a lane may wait for what this thread is to do.
 * Called and returns with the lock held, which it lets go of. */
static void wait_for_slot(bh__device *device) {
    for (uint32_t i = 0; device->staging && i < BH__STAGING_SLOTS; i++) {
        const bh__staging_slot *slot = &device->staging_slots[i];
        if (slot->taken || slot->hold > atomic_load(&device->front->reaped)) continue;
        bh__lane *lane = &device->lanes[slot->lane];
        uint64_t sequence = slot->sequence;
        bh__device_step_out(device);
        (void)bh__lane_wait(device, lane, (bh_ticket){0, sequence}, bh__now_ns() + BH__NS_PER_MS);
        bh__device_step_in(device);
        return;
    }
    bh__device_pause(device, BH__NS_PER_MS / 5);
}

/* The slots are made when first needed, by one thread; others find them missing and come back. With
 * the lock held, let go of meanwhile. */
static bh_status make_slots(bh__device *device) {
    if (device->staging || device->staging_pending) return BH_OK;
    bh__memory *memory;
    device->staging_pending = true;
    bh_status status =
        bh__host_region_create(device, (uint64_t)BH__STAGING_SLOTS * BH__STAGING_BYTES, &memory);
    device->staging_pending = false;
    if (status == BH_OK) device->staging = memory;
    return status;
}

bh_status bh__staging_take(bh__device *device, bool wait, uint32_t *out_slot) {
    for (;;) {
        /* Whoever was making them may have failed. */
        bh_status status = make_slots(device);
        if (status != BH_OK) return status;
        if (!bh__takes_work(device)) {
            return bh__refuse_work(device);
        }
        for (uint32_t i = 0; device->staging && i < BH__STAGING_SLOTS; i++) {
            if (!slot_free(device, &device->staging_slots[i])) continue;
            device->staging_slots[i] = (bh__staging_slot){.taken = true};
            *out_slot = i;
            return BH_OK;
        }
        if (!wait) return BH_E_BUSY;
        wait_for_slot(device);
    }
}

void bh__staging_put(bh__device *device, uint32_t slot, uint32_t lane, uint64_t sequence,
                     bool failed) {
    device->staging_slots[slot] =
        (bh__staging_slot){.lane = lane, .sequence = sequence, .hold = failed ? device->losses : 0};
}
