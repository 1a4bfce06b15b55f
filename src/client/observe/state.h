/* SPDX-License-Identifier: Apache-2.0 */
/* The trace and the tick clock of a device. */
#ifndef BH_CLIENT_OBSERVE_STATE_H
#define BH_CLIENT_OBSERVE_STATE_H

#include <stdint.h>
#include <sys/types.h>

#include "client/core/types.h"

#define BH__PUBLISH_PAUSE_NS UINT64_C(5000000)

/* The socket that answers with the device's figures: device/publish.c. */
typedef struct bh__publisher {
    uid_t uid;        /* the only user who gets an answer */
    uint64_t start;   /* when that process started */
    pid_t pid;        /* the process that made it */
    uint64_t next_at; /* when the supervisor looks at the socket again */
    char folder[256];
} bh__publisher;

/* The device's part. */
typedef struct bh__observe_room {
    bh__trace *trace;                   /* NULL: no trace is being recorded */
    bool starting;                      /* a thread is opening the file of one */
    uint64_t tick_start, tick_start_ns; /* when opening the device began */
    uint64_t tick_scale;                /* base/ticks.h; set before the device is published */
    _Atomic int listen_fd;              /* -1: none. The supervisor's, once the device is open */
    bh__publisher publisher;
} bh__observe_room;

#endif
