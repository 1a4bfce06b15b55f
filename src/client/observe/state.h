/* SPDX-License-Identifier: Apache-2.0 */
/* The trace and the tick clock of a device. */
#ifndef BH_CLIENT_OBSERVE_STATE_H
#define BH_CLIENT_OBSERVE_STATE_H

#include "client/core/types.h"

/* The device's part. */
typedef struct bh__observe_room {
    bh__trace *trace;                   /* NULL: no trace is being recorded */
    bool starting;                      /* a thread is opening the file of one */
    uint64_t tick_start, tick_start_ns; /* when opening the device began */
    uint64_t tick_scale;                /* base/ticks.h; set before the device is published */
} bh__observe_room;

#endif
