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

#endif
