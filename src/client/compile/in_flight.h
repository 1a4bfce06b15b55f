/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles in flight. A request is looked up in memory, then on disk, then compiled. Requests for
 * the same result share one compile.
 *
 * bh__compile_lock protects all shared state of this room. It is never held while waiting for a
 * process, a file or a device. The only lock that may be held when it is taken is a device's.
 */
#ifndef BH_CLIENT_COMPILE_IN_FLIGHT_H
#define BH_CLIENT_COMPILE_IN_FLIGHT_H

#include "client/compile/request.h"
#include "client/core/device.h"

void bh__compile_lock(void);
void bh__compile_unlock(void);

typedef struct bh__outcome {
    bh__product *product; /* Retained; NULL: failed, see `error` */
    uint32_t cache;       /* BH_CACHE_MISS ... */
    bh_error error;
    char *log; /* Owned: the compiler's log if it failed */
} bh__outcome;

void bh__outcome_free(bh__outcome *outcome);
/* Finds the result in a cache, joins a compile in flight, or compiles. Waits for the result. */
bh_status bh__compile_run(bh__compile_request *request, bh__outcome *out);
/* The same on a background thread, which loads the result into `module` and completes its ticket.
 * Called with the device locked. Takes ownership of the request, which is on the heap, also on
 * failure. */
bh_status bh__compile_start(bh__compile_request *request, bh__device *device, bh__module *module);

#endif
