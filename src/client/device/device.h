/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: opening and closing them, and reading from a device that has stopped. */
#ifndef BH_CLIENT_DEVICE_DEVICE_H
#define BH_CLIENT_DEVICE_DEVICE_H

#include "client/core/device.h"

/* Retries a read that failed with BH_E_STOPPED, which is the thread's error. Succeeds if the device
 * has stopped and the bytes are intact. */
bh_status bh__read_stopped(bh_buffer buffer, uint64_t offset, void *target, uint64_t bytes);
bh_status bh__read_memory(bh__device *device, const bh__memory *memory, uint64_t offset,
                          uint64_t bytes, void *target);

/* Fills *out, with the device locked. */
void bh__info_fill(const bh__device *device, bh_device_info *out);

/* ---- publish.c ---- */

/* Makes the socket for `bulkhead top`, if the program and the system allow it. */
void bh__publish_open(bh__device *device);
/* Removes it. The supervisor has ended. */
void bh__publish_close(bh__device *device);
/* Answers one connection. Supervisor only, without the lock. */
void bh__publish_answer(bh__device *device);

#endif
