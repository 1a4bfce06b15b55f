/* SPDX-License-Identifier: Apache-2.0 */
/* Maps handles and tickets to devices, lanes and objects; entering, locking and leaving a
 * device. */
#ifndef BH_CLIENT_CORE_HANDLES_H
#define BH_CLIENT_CORE_HANDLES_H

#include "client/core/device.h"
#include "client/core/error.h"

enum {
    BH__KIND_DEVICE = 1,
    BH__KIND_LANE,
    BH__KIND_MODULE,
    BH__KIND_KERNEL,
    BH__KIND_BUFFER,
    BH__KIND_BINARY, /* belongs to no device */
    BH__KIND_PREPARED,
    BH__KIND_SEQUENCE,
    BH__KIND_POOL,
    BH__KIND_WATCH,
    BH__KIND_IMAGE,
    BH__KIND_TEXTURE,
    BH__KIND_SURFACE,
    BH__KIND_TENSOR_MAP
};

/* Locks and returns the device that a handle of this kind belongs to. On failure sets the thread's
 * error and returns NULL. Also returns a device that has stopped, unless `running` is set. */
bh__device *bh__device_lock(uint64_t handle, uint32_t kind, const char *what, bool running);
void bh__device_unlock(bh__device *device);
/* Finds a device in any state, without locking it. The device is not destroyed before
 * bh__ticket_leave. Returns NULL and sets the thread's error on failure. */
bh__device *bh__device_enter(uint64_t handle);
/* Release and reacquire the lock. In between the device may change in any way, but it is not
 * destroyed: the thread is counted in `users`. */
static inline void bh__device_step_out(bh__device *device) {
    atomic_fetch_add(&device->users, 1);
    bh__lock_give(&device->lock);
}
static inline void bh__device_step_in(bh__device *device) {
    bh__lock_take(&device->lock);
    atomic_fetch_sub(&device->users, 1);
}
/* Returns true if the calling thread runs the device's policy callback, where a call to the device
 * would deadlock. */
static inline bool bh__in_policy(const bh__device *device) {
    return __builtin_expect(atomic_load_explicit(&device->workers.deciding, memory_order_relaxed),
                            0) &&
           pthread_equal(pthread_self(), device->workers.thread);
}
bh_status bh__refuse_in_policy(void);
/* Returns true if the device accepts work. Called with the lock held. bh__refuse_work sets the
 * thread's error to the reason why it does not. */
static inline bool bh__takes_work(const bh__device *device) {
    return atomic_load_explicit(&device->life, memory_order_relaxed) == BH__LIFE_OPEN &&
           atomic_load_explicit(&device->state, memory_order_relaxed) != BH__DEVICE_STOPPED;
}
/* Returns true if submitted work may still complete: also while the device closes, until each
 * request that is not done has its verdict. */
static inline bool bh__finishes_work(const bh__device *device) {
    return atomic_load_explicit(&device->life, memory_order_relaxed) >= BH__LIFE_OPEN &&
           atomic_load_explicit(&device->state, memory_order_relaxed) != BH__DEVICE_STOPPED;
}
bh_status bh__refuse_work(bh__device *device);
static inline bool bh__is_closing(const bh__device *device) {
    return atomic_load_explicit(&device->life, memory_order_relaxed) != BH__LIFE_OPEN;
}
/* Releases the lock, sleeps for `ns` and reacquires the lock. For short waits without a wakeup. The
 * device is not destroyed meanwhile. */
void bh__device_pause(bh__device *device, uint64_t ns);
void *bh__handle_get(bh__device *device, uint64_t handle, uint32_t kind, const char *what);
/* Sets the thread's error for a handle that refers to no live object. */
bh_status bh__refuse_handle(uint64_t handle, uint32_t kind, const char *what);
bh_status bh__handle_add(bh__device *device, uint32_t kind, void *object, uint64_t *out);
void bh__handle_remove(bh__device *device, uint64_t handle);
/* The same as bh__handle_get, without setting an error. For the launch path. */
static inline void *bh__handle_find(const bh__device *device, const bh__table *table,
                                    uint64_t handle, uint32_t kind) {
    uint32_t index = (uint32_t)(handle >> BH__GENERATION_BITS) & ((1u << BH__INDEX_BITS) - 1);
    uint32_t generation = (uint32_t)handle & ((1u << BH__GENERATION_BITS) - 1);
    bool here = handle >> 52 == (kind << 8 | device->slot) && index < table->count &&
                table->entries[index].generation == generation;
    return here ? table->entries[index].object : NULL;
}

enum { BH__MAX_DEVICES = 256 };
/* Stores the handles of all open devices. Returns their number. */
uint32_t bh__devices_open(uint64_t out[BH__MAX_DEVICES]);
/* Returns an unused device, CLOSED and not locked. NULL with the thread's error: none is free. */
bh__device *bh__device_take_slot(void);
void bh__device_free_slot(bh__device *device);
/* Makes the device OPEN under a new handle. */
void bh__device_publish(bh__device *device);

/* The lane ids in tickets. A forged id is not valid. */
uint64_t bh__lane_id_new(uint32_t device_slot, uint32_t lane_index);
/* Returns false for an id that was never given out. */
bool bh__lane_id_read(uint64_t id, uint32_t *out_device_slot, uint32_t *out_lane_index);
/* The lane index of an id that was. */
uint32_t bh__lane_id_index(uint64_t id);
extern _Atomic uint64_t bh__lane_ids_given;

/* Finds the lane of a ticket without locking. The device is not destroyed before bh__ticket_leave.
 * *out_lane is NULL if the lane or device was closed: then nothing was entered, and
 * bh__verdicts_status has the ticket's status. Returns false if the ticket was never issued. */
bool bh__ticket_enter(bh_ticket ticket, bh__device **out_device, bh__lane **out_lane);
void bh__ticket_leave(bh__device *device);

#endif
