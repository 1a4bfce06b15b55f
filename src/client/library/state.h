/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries of a device, as modules. */
#ifndef BH_CLIENT_LIBRARY_STATE_H
#define BH_CLIENT_LIBRARY_STATE_H

#include "client/core/types.h"
#include "library/operation.h"

typedef struct bh__library_entry {
    uint64_t module;                          /* its handle; 0: it was not loaded yet */
    bh_ticket ticket;                         /* of its load */
    uint64_t kernels[BH__LIBRARY_OPERATIONS]; /* handles, in order of the operations; 0: none yet */
} bh__library_entry;

/* The device's part. */
typedef struct bh__library_room {
    bh__library_entry entries[BH__LIBRARIES]; /* by number */
} bh__library_room;

#endif
