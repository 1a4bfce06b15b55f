/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads for one large copy: one processor moves less than a device can take. */
#ifndef BH_CLIENT_CREW_H
#define BH_CLIENT_CREW_H

#include <stdint.h>

#include "bulkhead.h"

/* One part of a copy: does `bytes` from `offset` on and returns what became of it. */
typedef bh_status bh__crew_fn(void *context, uint64_t offset, uint64_t bytes, bh_ticket *out);

/*
 * Has `work` called for parts that make up `bytes` between them, on threads that have ended when
 * this returns; small copies, and those for which no thread can be had, are one part on the calling
 * thread. `out` gets the latest of the parts' tickets; they are of one lane. On failure the calling
 * thread has the error of one of the parts.
 */
bh_status bh__crew_run(uint64_t bytes, bh__crew_fn *work, void *context, bh_ticket *out);

#endif
