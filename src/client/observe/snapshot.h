/* SPDX-License-Identifier: Apache-2.0 */
/* What the figures of a device (figures/figures.h) are filled from. */
#ifndef BH_CLIENT_OBSERVE_SNAPSHOT_H
#define BH_CLIENT_OBSERVE_SNAPSHOT_H

#include "client/core/device.h"
#include "figures/figures.h"

/* The process's number, program and counters. Without a lock. */
void bh__snapshot_process(bh__figures_process *out);
/* What bh_prometheus reports of a device. With the device locked. */
void bh__snapshot_counters(bh__device *device, bh__figures *out);

#endif
