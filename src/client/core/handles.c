/* SPDX-License-Identifier: Apache-2.0 */
/* Maps handles and ticket ids to devices, lanes and objects. Detects values that are closed, belong
 * to another device or were never issued. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/relax.h"
#include "client/core/fork.h"
#include "client/core/handles.h"

/*
 * A handle: kind (4 bits), device slot (8), index (22), generation (30).
 * A lane id: count of lanes opened in this process (48), device slot (8), lane index (8), all of it
 * scrambled.
 * Device structs are never freed, so a slot can be read without a lock.
 */
static _Atomic(bh__device *) devices[BH__MAX_DEVICES];
static bool slot_taken[BH__MAX_DEVICES]; /* under BH__LOCK_SLOTS */
_Atomic uint64_t bh__lane_ids_given;

static uint64_t make_handle(uint32_t kind, uint32_t slot, uint32_t index, uint32_t generation) {
    return (uint64_t)kind << 60 | (uint64_t)slot << 52 | (uint64_t)index << BH__GENERATION_BITS |
           generation;
}

static uint32_t handle_kind(uint64_t handle) {
    return (uint32_t)(handle >> 60);
}
static uint32_t handle_slot(uint64_t handle) {
    return (uint32_t)(handle >> 52) & 0xff;
}
static uint32_t handle_index(uint64_t handle) {
    return (uint32_t)(handle >> BH__GENERATION_BITS) & ((1u << BH__INDEX_BITS) - 1);
}
static uint32_t handle_generation(uint64_t handle) {
    return (uint32_t)handle & ((1u << BH__GENERATION_BITS) - 1);
}

static bh__table *table_of(bh__device *device, uint32_t kind) {
    switch (kind) {
    case BH__KIND_LANE:
        return &device->handles.lanes;
    case BH__KIND_MODULE:
        return &device->handles.modules;
    case BH__KIND_KERNEL:
        return &device->handles.kernels;
    case BH__KIND_BUFFER:
        return &device->handles.buffers;
    case BH__KIND_PREPARED:
        return &device->handles.prepared;
    case BH__KIND_SEQUENCE:
        return &device->handles.sequences;
    case BH__KIND_POOL:
        return &device->handles.pools;
    case BH__KIND_WATCH:
        return &device->handles.watches;
    case BH__KIND_IMAGE:
        return &device->handles.images;
    case BH__KIND_TEXTURE:
        return &device->handles.textures;
    case BH__KIND_SURFACE:
        return &device->handles.surfaces;
    case BH__KIND_TENSOR_MAP:
        return &device->handles.tensor_maps;
    default:
        return NULL;
    }
}

static const char *kind_name(uint32_t kind) {
    static const char *const names[] = {
        "no handle", "a device",          "a lane",      "a module", "a kernel", "a buffer",
        "a binary",  "a prepared launch", "a sequence",  "a pool",   "a watch",  "an image",
        "a texture", "a surface",         "a tensor map"};
    return kind < sizeof names / sizeof *names ? names[kind] : "no handle of this library";
}

bh_status bh__refuse_handle(uint64_t handle, uint32_t kind, const char *what) {
    if (handle == 0) {
        bh__refuse(BH_E_INVALID,
                   "pass a handle that a Bulkhead call has filled in and that is still open",
                   "%s is a zero handle, not %s", what, kind_name(kind));
    } else if (handle_kind(handle) != kind) {
        bh__refuse(BH_E_INVALID, "pass the right kind of handle", "%s (0x%llx) is %s, not %s", what,
                   (unsigned long long)handle, kind_name(handle_kind(handle)), kind_name(kind));
    } else {
        bh__refuse(BH_E_INVALID, "use a handle only until it is released or its device is closed",
                   "%s (0x%llx) is not a handle of %s: it was released, closed or never issued",
                   what, (unsigned long long)handle, kind_name(kind));
    }
    return BH_E_INVALID;
}

/* Called with the device locked. */
static bool is_open(bh__device *device, uint64_t handle, uint32_t kind) {
    uint32_t life = atomic_load(&device->life);
    return life != BH__LIFE_CLOSED && life != BH__LIFE_OPENING &&
           (kind != BH__KIND_DEVICE || atomic_load(&device->id) == handle);
}

/* Sets the error for a device that the caller may not use, and unlocks it. */
static BH__COLD bh__device *refuse_device(bh__device *device, uint64_t handle, uint32_t kind,
                                          const char *what) {
    if (!is_open(device, handle, kind)) {
        bh__refuse_handle(handle, kind, what);
    } else if (bh__in_policy(device)) {
        bh__refuse_in_policy();
    } else {
        bh__refuse_work(device);
    }
    bh__lock_give(&device->lock);
    return NULL;
}

BH__COLD bh_status bh__refuse_in_policy(void) {
    return bh__refuse(BH_E_INVALID, "decide from what the callback is given, or on another thread",
                      "the device's policy callback called the device, which waits for the "
                      "callback");
}

static BH__COLD bh__device *refuse_slot(uint64_t handle, uint32_t kind, const char *what) {
    if (!bh__refuse_forked()) bh__refuse_handle(handle, kind, what);
    return NULL;
}

bh__device *bh__device_lock(uint64_t handle, uint32_t kind, const char *what, bool running) {
    bh__device *device =
        handle_kind(handle) == kind ? atomic_load(&devices[handle_slot(handle)]) : NULL;
    if (!device || bh__is_forked_child()) return refuse_slot(handle, kind, what);
    bh__lock_take(&device->lock);
    bool refused = (running && !bh__takes_work(device)) || bh__in_policy(device);
    return is_open(device, handle, kind) && !refused ? device
                                                     : refuse_device(device, handle, kind, what);
}

/* The order of count and check pairs with close: see bh__ticket_enter. */
bh__device *bh__device_enter(uint64_t handle) {
    bool fits = handle_kind(handle) == BH__KIND_DEVICE;
    bh__device *device = fits ? atomic_load(&devices[handle_slot(handle)]) : NULL;
    if (!device || bh__is_forked_child()) return refuse_slot(handle, BH__KIND_DEVICE, "device");
    atomic_fetch_add(&device->users, 1);
    if (atomic_load(&device->id) == handle) return device;
    atomic_fetch_sub(&device->users, 1);
    bh__refuse_handle(handle, BH__KIND_DEVICE, "device");
    return NULL;
}

void bh__device_unlock(bh__device *device) {
    bh__lock_give(&device->lock);
}

void bh__device_pause(bh__device *device, uint64_t ns) {
    bh__device_step_out(device);
    struct timespec pause = bh__timespec(ns);
    nanosleep(&pause, NULL);
    bh__device_step_in(device);
}

void *bh__handle_get(bh__device *device, uint64_t handle, uint32_t kind, const char *what) {
    if (handle_kind(handle) == kind && handle_slot(handle) != device->slot) {
        bh__refuse(BH_E_INVALID, "use it with the device it was made on, or copy the data over",
                   "%s (0x%llx) belongs to another device", what, (unsigned long long)handle);
        return NULL;
    }
    void *object =
        handle_kind(handle) == kind
            ? bh__table_get(table_of(device, kind), handle_index(handle), handle_generation(handle))
            : NULL;
    if (!object) bh__refuse_handle(handle, kind, what);
    return object;
}

bh_status bh__handle_add(bh__device *device, uint32_t kind, void *object, uint64_t *out) {
    uint32_t index, generation;
    if (!bh__table_add(table_of(device, kind), object, &index, &generation)) {
        return bh__refuse(BH_E_NO_HOST_MEMORY, "release handles that are no longer needed",
                          "no room for another handle of %s: %u are open", kind_name(kind),
                          table_of(device, kind)->live);
    }
    *out = make_handle(kind, device->slot, index, generation);
    return BH_OK;
}

void bh__handle_remove(bh__device *device, uint64_t handle) {
    bh__table_remove(table_of(device, handle_kind(handle)), handle_index(handle));
}

/* Frees the locks and counts of a device that no thread uses. */
static void make_unused(bh__device *device) {
    atomic_store(&device->lock.word, 0);
    pthread_mutex_init(&device->jobs_lock, NULL);
    pthread_mutex_init(&device->dispatch_lock, NULL);
    for (uint32_t i = 0; i < BH__LANES; i++) pthread_mutex_init(&device->lanes[i].wait_lock, NULL);
    atomic_store(&device->users, 0);
}

/* Threads that looked at closed devices when the process was forked do not exist in the child. */
static void after_fork_in_child(void) {
    for (uint32_t slot = 0; slot < BH__MAX_DEVICES; slot++) {
        bh__device *device = atomic_load(&devices[slot]);
        if (device) make_unused(device);
    }
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

bh__device *bh__device_take_slot(void) {
    bh__process_lock_take(BH__LOCK_SLOTS);
    uint32_t slot = 0;
    while (slot < BH__MAX_DEVICES && slot_taken[slot]) slot++;
    bh__device *device = slot < BH__MAX_DEVICES ? atomic_load(&devices[slot]) : NULL;
    if (slot < BH__MAX_DEVICES && !device) {
        device = calloc(1, sizeof *device);
        if (device) {
            device->slot = slot;
            make_unused(device);
            atomic_store(&devices[slot], device);
        }
    }
    if (device) {
        slot_taken[slot] = true;
        bh__fork_count(1);
    }
    bh__process_lock_give(BH__LOCK_SLOTS);
    if (!device) {
        bh__refuse(BH_E_NO_HOST_MEMORY, "close devices that are no longer needed",
                   slot == BH__MAX_DEVICES ? "%d devices are open, which is the maximum"
                                           : "no host memory for a device",
                   BH__MAX_DEVICES);
    }
    return device;
}

uint32_t bh__devices_open(uint64_t out[BH__MAX_DEVICES]) {
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < BH__MAX_DEVICES; slot++) {
        bh__device *device = atomic_load(&devices[slot]);
        uint64_t id = device ? atomic_load(&device->id) : 0;
        if (id) out[count++] = id;
    }
    return count;
}

void bh__device_free_slot(bh__device *device) {
    bh__process_lock_take(BH__LOCK_SLOTS);
    slot_taken[device->slot] = false;
    bh__fork_count(-1);
    bh__process_lock_give(BH__LOCK_SLOTS);
}

void bh__device_publish(bh__device *device) {
    device->handle_generation = (device->handle_generation + 1) & ((1u << BH__GENERATION_BITS) - 1);
    uint32_t index = (uint32_t)bh__hash_u64((uintptr_t)device) & ((1u << BH__INDEX_BITS) - 1);
    bh__lock_take(&device->lock);
    atomic_store(&device->id,
                 make_handle(BH__KIND_DEVICE, device->slot, index, device->handle_generation));
    atomic_store(&device->life, BH__LIFE_OPEN);
    bh__lock_give(&device->lock);
}

/* A permutation: a forged or damaged id stands for a count that was not given out yet. The address
 * makes the ids different in each process. */
static uint64_t scramble(uint64_t plain) {
    return bh__hash_u64(plain ^ (uintptr_t)&bh__lane_ids_given);
}

static uint64_t unscramble(uint64_t id) {
    return bh__unhash_u64(id) ^ (uintptr_t)&bh__lane_ids_given;
}

uint64_t bh__lane_id_new(uint32_t device_slot, uint32_t lane_index) {
    uint64_t id = 0;
    while (id == 0) {
        uint64_t count = atomic_fetch_add(&bh__lane_ids_given, 1) + 1;
        id = scramble(count << 16 | (uint64_t)device_slot << 8 | lane_index);
    }
    return id;
}

bool bh__lane_id_read(uint64_t id, uint32_t *out_device_slot, uint32_t *out_lane_index) {
    uint64_t plain = unscramble(id), count = plain >> 16;
    *out_device_slot = (uint32_t)(plain >> 8) & 0xff;
    *out_lane_index = (uint32_t)plain & 0xff;
    return id != 0 && count != 0 && count <= atomic_load(&bh__lane_ids_given);
}

uint32_t bh__lane_id_index(uint64_t id) {
    return (uint32_t)unscramble(id) & 0xff;
}

bool bh__ticket_enter(bh_ticket ticket, bh__device **out_device, bh__lane **out_lane) {
    *out_device = NULL;
    *out_lane = NULL;
    uint32_t slot, index;
    if (!bh__lane_id_read(ticket.lane, &slot, &index)) return false;
    bh__device *device = atomic_load(&devices[slot]);
    if (!device || index >= BH__LANES) return false;
    /* This thread counts itself before it checks the device. Close hides the device before it waits
     * for the count. So either close waits for this thread, or this thread sees the close. */
    atomic_fetch_add(&device->users, 1);
    bh__lane *lane = &device->lanes[index];
    if (atomic_load(&device->life) != BH__LIFE_CLOSED && atomic_load(&lane->id) == ticket.lane) {
        *out_device = device;
        *out_lane = lane;
    } else {
        atomic_fetch_sub(&device->users, 1);
    }
    return true;
}

void bh__ticket_leave(bh__device *device) {
    atomic_fetch_sub(&device->users, 1);
}

BH__COLD bh_status bh__refuse_work(bh__device *device) {
    if (atomic_load(&device->life) != BH__LIFE_OPEN)
        return bh__refuse(BH_E_STOPPED, "use the device before closing it",
                          "the device is being closed");
    return bh__refuse_with(&device->stop_reason);
}
