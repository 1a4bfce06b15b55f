/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers room. Each device has one supervisor thread. It starts workers, sends them orders,
 * watches them, gives verdicts to the requests of a lost worker, and activates the next one.
 */
#ifndef BH_CLIENT_WORKERS_SUPERVISOR_H
#define BH_CLIENT_WORKERS_SUPERVISOR_H

#include "client/core/device.h"

/* The thread's function. */
void *bh__supervisor_main(void *device);

/* The fix for errors about a device without standby. */
#define BH__WITHOUT_STANDBY                                                                        \
    "continue without one: after a loss a worker is started cold; see `bulkhead devices`"

#endif
