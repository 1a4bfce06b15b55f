/* SPDX-License-Identifier: Apache-2.0 */
/* Splits one large copy over a few threads: one processor is slower than a device. */
#ifndef BH_CLIENT_TRANSFER_PARALLEL_H
#define BH_CLIENT_TRANSFER_PARALLEL_H

#include <stdint.h>

#include "bulkhead.h"

/* Copies one part: `bytes` from `offset` on. */
typedef bh_status bh__parallel_fn(void *context, uint64_t offset, uint64_t bytes, bh_ticket *out);

/*
 * Divides `bytes` into parts and calls `work` for each, on threads that end before this returns.
 * Small copies run as one part on the calling thread; so does each part whose thread cannot be
 * started. All parts use one lane; `out` gets the last of their tickets. On failure the calling
 * thread's error is that of one part.
 */
bh_status bh__parallel_run(uint64_t bytes, bh__parallel_fn *work, void *context, bh_ticket *out);

#endif
