/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the managed buffers of a device. internal.h has the record of one. */
#ifndef BH_CLIENT_MANAGED_STATE_H
#define BH_CLIENT_MANAGED_STATE_H

#include <stdatomic.h>

#include "client/core/types.h"

/* The device's part. */
typedef struct bh__managed_room {
    bh__managed *list;                  /* Each owned by its memory. */
    bh__driver_managed *driver_managed; /* Each owned by its memory. */
    /* A worker was lost; the addresses of driver-managed buffers in the next are not known yet. */
    bool addresses_unknown;
    /* Results are being fetched, because the device stops: no move to the host is submitted. */
    bool fetching;
    _Atomic bool transparent;       /* a transparent one was created. Read without the lock. */
    _Atomic uint32_t to_write_back; /* transparent ones with results that are not written back */
} bh__managed_room;

#endif
