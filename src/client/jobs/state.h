/* SPDX-License-Identifier: Apache-2.0 */
/* The data of this room: orders, jobs and the device's job queue. */
#ifndef BH_CLIENT_JOBS_STATE_H
#define BH_CLIENT_JOBS_STATE_H

#include <stdatomic.h>

#include "client/core/types.h"
#include "wire/message.h"

/* A message to a worker that it must acknowledge. `job` is NULL for an order that only brings a
 * worker up to date. */
struct bh__order {
    bh__order *next;
    bh__job *job;
    uint32_t type; /* BH__MSG_... */
    uint32_t serial;
    int fd; /* Held once the order waits to be sent; Borrowed while it is in a job. -1: none. */
    bh__chunk chunk;
    bh__host_region host;
    bh__advice_message advice;
    bh__module_message module;
    bh__lane_message lane;
    bh__fit_question fit;
    bh__sequence_message sequence;
    uint8_t *data; /* Owned. */
    uint32_t data_bytes;
};

enum { BH__JOB_ORDER, BH__JOB_CLOSE };

/* A request to the supervisor. */
struct bh__job {
    bh__job *next;
    int kind;
    bh__order order;
    bh__memory *host;   /* BH__MSG_HOST_MAP: the memory record of the region */
    bh__module *module; /* module loads */
    /* Called without the lock when the job is finished, before the waiting thread is woken. May be
     * NULL. */
    void (*finished)(bh__device *device, bh__job *job);
    bh__sequence *sequence;             /* BH__MSG_SEQUENCE_DEFINE */
    bh__driver_managed *driver_managed; /* BH__MSG_CHUNK_CREATE with BH__CHUNK_DRIVER */
    uint32_t attempts;                  /* number of workers lost while they executed it */
    void *context;                      /* of `finished` */
    bh__fit fit;                        /* BH__MSG_FIT: the answer */
    bh_error error;
    _Atomic uint32_t done; /* futex */
    bool self_owned;       /* no thread waits: the supervisor frees it */
};

/* The device's job queue, and the other reasons to wake the supervisor. */
typedef struct bh__jobs_room {
    bh__job *first, *last; /* under jobs_lock, as is `closed` */
    bool closed;           /* the supervisor accepts no more jobs */
    int fd;                /* the eventfd that wakes the supervisor */
    /* bh__workers_flush increments flushes_wanted and waits until flushes_done, a futex, has
     * reached that count. */
    _Atomic uint32_t flushes_wanted, flushes_done;
    /* Requests may be in flight: the supervisor polls the lanes. Read without the lock. */
    _Atomic uint32_t wants_tick;
    uint64_t tightest; /* shortest deadline submitted since polling began; 0: none */
} bh__jobs_room;

#endif
