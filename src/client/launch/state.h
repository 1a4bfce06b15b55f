/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the launch room: host memory for dispatches. */
#ifndef BH_CLIENT_LAUNCH_STATE_H
#define BH_CLIENT_LAUNCH_STATE_H

#include "client/core/types.h"

enum { BH__BATCH_AREAS = 8, BH__BATCH_BYTES = 1024 * 1024 };

/* Host memory for the arrays of dispatches, allocated on first use and kept. */
typedef struct bh__batch_area {
    void *memory;
    bool taken;
    uint64_t hold; /* not free before this lost worker is reaped; 0: none */
} bh__batch_area;

/* The device's part. */
typedef struct bh__launch_room {
    bh__batch_area batch_areas[BH__BATCH_AREAS];
} bh__launch_room;

#endif
