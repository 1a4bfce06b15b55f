/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that workers can access: regions from bh_host_alloc, and the staging slots that data
 * in plain memory goes through. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/jobs/jobs.h"
#include "client/memory/memory.h"
#include "client/queue/queue.h"
#include "client/transfer/transfer.h"
#include "wire/share.h"

/* ---- host regions ---- */

static bool hosts_reserve(bh__device *device) {
    if (device->transfer.host_count < device->transfer.host_capacity) return true;
    uint32_t capacity = device->transfer.host_capacity ? device->transfer.host_capacity * 2 : 8;
    bh__host_entry *hosts = realloc(device->transfer.hosts, capacity * sizeof *hosts);
    if (!hosts) return false;
    device->transfer.hosts = hosts;
    device->transfer.host_capacity = capacity;
    return true;
}

/* Creates the memory of a region and fills in the job that has workers map it. */
static bh_status region_begin(bh__device *device, uint64_t asked, bh__job *job) {
    char text[128];
    uint64_t bytes = (asked + 4095) & ~4095ull;
    bh__memory *memory = bh__memory_new(device);
    int fd = memory ? bh__share_create("bulkhead-host", bytes) : -ENOMEM;
    void *mapped = fd >= 0 ? bh__share_map(fd, 0, bytes, true) : NULL;
    if (!mapped) {
        int number = fd < 0 ? -fd : errno;
        if (fd >= 0) bh__fd_close(bh__fd_keep(fd));
        if (memory) bh__memory_delete(device, memory);
        return bh__refuse(BH_E_NO_HOST_MEMORY,
                          bh__errno_fix(number, "ask for less, or free host memory"),
                          "cannot allocate %llu bytes of shared memory: %s",
                          (unsigned long long)bytes, bh__errno_text(number, text, sizeof text));
    }
    fd = bh__fd_keep(fd);
    memory->host = mapped;
    memory->bytes = asked;
    memory->host_id = device->transfer.next_host_id++;
    bh__host_region region = {.id = memory->host_id, .bytes = bytes};
    *job = (bh__job){.kind = BH__JOB_ORDER,
                     .order = {.type = BH__MSG_HOST_MAP, .host = region, .fd = fd},
                     .host = memory};
    return BH_OK;
}

/* The job has failed: no worker has the region. */
static void region_undo(bh__device *device, const bh__job *job) {
    bh__share_unmap(job->host->host, job->order.host.bytes);
    bh__fd_close(job->order.fd);
    bh__memory_delete(device, job->host);
}

bh_status bh__host_region_create(bh__device *device, uint64_t asked, bh__memory **out) {
    bh__job job;
    bh_status status = region_begin(device, asked, &job);
    if (status != BH_OK) return status;
    status = bh__order_run(device, &job);
    if (status != BH_OK)
        region_undo(device, &job);
    else
        *out = job.host;
    return status;
}

bool bh__host_note(bh__device *device, const bh__host_region *region, int fd, bh__memory *memory) {
    if (!hosts_reserve(device)) return false;
    device->transfer.hosts[device->transfer.host_count++] =
        (bh__host_entry){.region = *region, .fd = fd, .memory = memory};
    return true;
}

bh_status bh_host_alloc(bh_device handle, uint64_t bytes, void **out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the pointer", "out is NULL");
    if (bytes == 0 || bytes > (uint64_t)INT64_MAX / 2) {
        return bh__refuse(BH_E_INVALID, "ask for at least 1 byte and at most 2^62",
                          "bh_host_alloc: %llu bytes requested", (unsigned long long)bytes);
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
    for (uint32_t i = 0; i < device->transfer.host_count; i++) {
        if (device->transfer.hosts[i].memory == memory) return &device->transfer.hosts[i];
    }
    return NULL;
}

void bh__host_wait_idle(bh__device *device, const bh__memory *memory) {
    for (uint32_t i = 0; i < memory->use_count; i++) {
        const bh__lane_use *use = &memory->uses[i];
        uint64_t last =
            use->write_position > use->read_position ? use->write_position : use->read_position;
        bh__lane *lane = &device->lanes[use->lane];
        if (last <= bh__lane_done(device, lane)) continue;
        (void)bh__lane_let_pass(device, lane, last);
    }
}

/* The program cannot use the region from here on. Workers keep it until the work that uses it has
 * completed: a worker that is started meanwhile may have to redo that work. */
void bh__host_region_destroy(bh__device *device, bh__memory *memory) {
    bh__host_entry_of(device, memory)->leaving = true;
    bh__host_wait_idle(device, memory);
    bh__host_entry *at = bh__host_entry_of(device, memory), entry = *at;
    *at = device->transfer.hosts[--device->transfer.host_count];
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
    while (at < device->transfer.host_count && device->transfer.hosts[at].memory->host != pointer)
        at++;
    if (at == device->transfer.host_count ||
        device->transfer.hosts[at].memory == device->transfer.staging ||
        device->transfer.hosts[at].slab || device->transfer.hosts[at].leaving ||
        device->transfer.hosts[at].memory->mirror) {
        bh__device_unlock(device);
        return bh__refuse(BH_E_INVALID, "pass a pointer from bh_host_alloc of this device, once",
                          "%p is not host memory of this device", pointer);
    }
    if (device->transfer.hosts[at].memory->references > 1) {
        bh__device_unlock(device);
        return bh__refuse(BH_E_BUSY, "release the sequences that use it first",
                          "%p is used by %u sequences", pointer,
                          device->transfer.hosts[at].memory->references - 1);
    }
    bh__host_region_destroy(device, device->transfer.hosts[at].memory);
    bh__device_unlock(device);
    return BH_OK;
}

/* Returns true if the program has pointers into the region. */
static bool is_handed_out(const bh__device *device, const bh__host_entry *entry) {
    return entry->memory != device->transfer.staging && !entry->memory->mirror && !entry->leaving;
}

bh__memory *bh__host_find(bh__device *device, const void *pointer, uint64_t bytes,
                          uint64_t *out_offset) {
    for (uint32_t i = 0; i < device->transfer.host_count; i++) {
        bh__memory *memory = device->transfer.hosts[i].memory;
        uintptr_t base = (uintptr_t)memory->host, at = (uintptr_t)pointer;
        if (!is_handed_out(device, &device->transfer.hosts[i]) || at < base ||
            !bh__range_fits(at - base, bytes, memory->bytes))
            continue;
        if (device->transfer.hosts[i].slab)
            return bh__host_pool_find(device->transfer.hosts[i].slab, at - base, bytes, out_offset);
        *out_offset = at - base;
        return memory;
    }
    return NULL;
}

static BH__COLD bh_status refuse_partial(const void *pointer, uint64_t bytes,
                                         const bh__host_entry *entry) {
    const bh__memory *memory = entry->memory;
    if (entry->slab)
        return bh__refuse(BH_E_INVALID, "stay within one piece, and use it before it is given back",
                          "%llu bytes at %p are not in one taken piece of a pool, which has "
                          "%llu bytes at %p",
                          (unsigned long long)bytes, pointer, (unsigned long long)memory->bytes,
                          memory->host);
    return bh__refuse(BH_E_INVALID, "stay within the memory",
                      "%llu bytes at %p are only partly in memory of bh_host_alloc, which has %llu "
                      "bytes at %p",
                      (unsigned long long)bytes, pointer, (unsigned long long)memory->bytes,
                      memory->host);
}

bh_status bh__host_check(bh__device *device, const void *pointer, uint64_t bytes) {
    uint64_t first = (uintptr_t)pointer, end, unused;
    if (bytes == 0) return BH_OK;
    if (!bh__add_u64(first, bytes, &end))
        return bh__refuse(BH_E_INVALID, "pass the memory's address and size",
                          "%llu bytes at %p end beyond 2^64", (unsigned long long)bytes, pointer);
    for (uint32_t i = 0; i < device->transfer.host_count; i++) {
        const bh__host_entry *entry = &device->transfer.hosts[i];
        uint64_t base = (uintptr_t)entry->memory->host, past = base + entry->memory->bytes;
        if (end <= base || past <= first || !is_handed_out(device, entry)) continue;
        if (!bh__host_find(device, pointer, bytes, &unused))
            return refuse_partial(pointer, bytes, entry);
    }
    return BH_OK;
}

/* ---- staging slots ---- */

uint8_t *bh__staging_memory(bh__device *device, uint32_t slot) {
    return (uint8_t *)device->transfer.staging->host + (size_t)slot * BH__STAGING_BYTES;
}

static bool slot_free(bh__device *device, const bh__staging_slot *slot) {
    if (slot->taken || slot->hold > atomic_load(&device->queue.reaped)) return false;
    return slot->sequence == 0 ||
           bh__lane_done(device, &device->lanes[slot->lane]) >= slot->sequence;
}

/* Waits for at most a millisecond, with the lock released. The wait is short because any slot
 * may become free first, and because work on a lane may depend on what this thread is about to
 * submit. */
static void wait_for_slot(bh__device *device) {
    for (uint32_t i = 0; device->transfer.staging && i < BH__STAGING_SLOTS; i++) {
        const bh__staging_slot *slot = &device->transfer.staging_slots[i];
        if (slot->taken || slot->hold > atomic_load(&device->queue.reaped)) continue;
        bh__lane *lane = &device->lanes[slot->lane];
        uint64_t sequence = slot->sequence;
        bh__device_step_out(device);
        (void)bh__lane_wait(device, lane, (bh_ticket){0, sequence}, bh__now_ns() + BH__NS_PER_MS);
        bh__device_step_in(device);
        return;
    }
    bh__device_pause(device, BH__NS_PER_MS / 5);
}

/* Creates the slots on first use, with the lock released meanwhile. One thread does so; others
 * return at once, find no slots and retry. */
static bh_status make_slots(bh__device *device) {
    if (device->transfer.staging || device->transfer.staging_pending) return BH_OK;
    bh__memory *memory;
    device->transfer.staging_pending = true;
    bh_status status =
        bh__host_region_create(device, (uint64_t)BH__STAGING_SLOTS * BH__STAGING_BYTES, &memory);
    device->transfer.staging_pending = false;
    if (status == BH_OK) device->transfer.staging = memory;
    return status;
}

static void slots_made(bh__device *device, bh__job *job) {
    bh__lock_take(&device->lock);
    device->transfer.staging_pending = false;
    if (job->error.status == BH_OK)
        device->transfer.staging = job->host;
    else
        region_undo(device, job);
    bh__lock_give(&device->lock);
}

/* Has the slots made, without waiting for them. The lock is released meanwhile. */
static bh_status start_slots(bh__device *device) {
    if (device->transfer.staging || device->transfer.staging_pending) return BH_OK;
    bh__job *job = malloc(sizeof *job);
    if (!job)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for the job that makes staging memory");
    bh_status status = region_begin(device, (uint64_t)BH__STAGING_SLOTS * BH__STAGING_BYTES, job);
    if (status != BH_OK) {
        free(job);
        return status;
    }
    job->self_owned = true;
    job->finished = slots_made;
    device->transfer.staging_pending = true;
    bh__device_step_out(device);
    bh__job_post(device, job);
    bh__device_step_in(device);
    return BH_OK;
}

bh_status bh__staging_take_all(bh__device *device, uint32_t count, uint32_t *out_slots) {
    bh_status status = start_slots(device);
    if (status != BH_OK) return status;
    if (!bh__takes_work(device)) return bh__refuse_work(device);
    uint32_t found = 0;
    for (uint32_t i = 0; device->transfer.staging && i < BH__STAGING_SLOTS; i++) {
        if (!slot_free(device, &device->transfer.staging_slots[i])) continue;
        if (found < count) out_slots[found] = i;
        found++;
    }
    if (!device->transfer.staging)
        return bh__refuse(BH_E_BUSY,
                          "submit it again in a moment, or use memory from bh_host_alloc",
                          "the %d staging slots of %d bytes that plain memory goes through are "
                          "being made",
                          BH__STAGING_SLOTS, BH__STAGING_BYTES);
    if (found < count)
        return bh__refuse(BH_E_BUSY, "wait for earlier work, or use memory from bh_host_alloc",
                          "%u of the %d staging slots of %d bytes are free, %u are needed", found,
                          BH__STAGING_SLOTS, BH__STAGING_BYTES, count);
    for (uint32_t i = 0; i < count; i++)
        device->transfer.staging_slots[out_slots[i]] = (bh__staging_slot){.taken = true};
    return BH_OK;
}

bh_status bh__staging_take(bh__device *device, bool wait, uint32_t *out_slot) {
    for (;;) {
        /* In the loop: the thread that was creating the slots may have failed. */
        bh_status status = make_slots(device);
        if (status != BH_OK) return status;
        if (!bh__takes_work(device)) {
            return bh__refuse_work(device);
        }
        for (uint32_t i = 0; device->transfer.staging && i < BH__STAGING_SLOTS; i++) {
            if (!slot_free(device, &device->transfer.staging_slots[i])) continue;
            device->transfer.staging_slots[i] = (bh__staging_slot){.taken = true};
            *out_slot = i;
            return BH_OK;
        }
        if (!wait) return BH_E_BUSY;
        wait_for_slot(device);
    }
}

void bh__staging_put(bh__device *device, uint32_t slot, uint32_t lane, uint64_t sequence,
                     bool failed) {
    device->transfer.staging_slots[slot] =
        (bh__staging_slot){.lane = lane, .sequence = sequence, .hold = failed ? device->losses : 0};
}
