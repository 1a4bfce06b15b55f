/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one open device. It is composed of one struct per room.
 *
 * Locks, outermost first. None is held while a callback of the program runs.
 *   device->lock           protects all of bh__device, unless a field says otherwise
 *   bh__compile_lock       compile requests and the compile cache (client/compile)
 *   lane->wait_lock        the lane's list of sleeping threads
 *   device->jobs_lock      the supervisor's job queue
 *   device->dispatch_lock  the dispatcher's queues
 *   device->notes_lock     health and reports; never held across a wait
 */
#ifndef BH_CLIENT_CORE_DEVICE_H
#define BH_CLIENT_CORE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "client/callback/state.h"
#include "client/core/table.h"
#include "client/core/types.h"
#include "client/jobs/state.h"
#include "client/launch/state.h"
#include "client/library/state.h"
#include "client/managed/state.h"
#include "client/memory/state.h"
#include "client/module/state.h"
#include "client/observe/state.h"
#include "client/queue/state.h"
#include "client/sequence/state.h"
#include "client/texture/state.h"
#include "client/transfer/state.h"
#include "client/workers/state.h"

/* The life cycle of a device. Written with its lock held. Only an OPEN device accepts work.
 * DRAINING: submitted work may finish. CLOSING: the remaining work was cancelled. CLOSED: handles
 * no longer find the device. It is destroyed once no thread holds its lock or is counted in
 * `users`. */
typedef enum bh__life {
    BH__LIFE_CLOSED,
    BH__LIFE_OPENING,
    BH__LIFE_OPEN,
    BH__LIFE_DRAINING,
    BH__LIFE_CLOSING
} bh__life;

/* What the workers of an open device do. STOPPED is final. */
typedef enum bh__device_state {
    BH__DEVICE_RUNNING = 1,
    BH__DEVICE_REPLACING = 2, /* the active worker was lost, or is the first and starts */
    BH__DEVICE_STOPPED = 3
} bh__device_state;

/* The tables behind handles. */
typedef struct bh__handles {
    bh__table buffers, modules, kernels, lanes, prepared, sequences, pools, watches, images,
        textures, surfaces, tensor_maps;
} bh__handles;

struct bh__device {
    /* These fields are kept when the slot is reused, so that old handles and tickets are
     * detected. */
    bh__lane lanes[BH__LANES];
    bh__lock lock;
    pthread_mutex_t jobs_lock;
    pthread_mutex_t dispatch_lock;
    uint32_t slot;
    uint32_t handle_generation;
    _Atomic uint64_t id;      /* the handle; 0: closed. Read without the lock. */
    _Atomic uint32_t life;    /* bh__life. Read without the lock. */
    _Atomic uint32_t users;   /* threads that use the device without holding the lock */
    _Atomic uint32_t landing; /* compiles that have ended and whose results are being delivered */
    bh__handles handles;

    /* All fields from here on are zeroed on each open. The most used ones come first. */
    bh__queue_room queue;
    bh__jobs_room jobs;
    _Atomic uint32_t state; /* bh__device_state. Written with the lock held. */
    bh__managed_room managed;
    bh__observe_room observe;
    bh_device_options options;
    bh__device_facts info;
    uint32_t traits;             /* BH__TRAIT_..., of the active worker */
    bh_device_counters counters; /* counters that are not kept per lane */

    bh__memory_room memory;
    bh__transfer_room transfer;
    bh__module_room module;
    bh__launch_room launch;
    bh__texture_room texture;
    bh__library_room library;
    bh__sequence_room sequence;
    bh__callback_room callback;
    bh__workers_room workers;
    pthread_mutex_t notes_lock; /* protects workers.notes */

    char kind[16];
    uint32_t executor; /* BH_EXECUTE_...; never BH_EXECUTE_DEFAULT */
    uint32_t device_index;
    char passed_over[256]; /* bh__device_facts.passed_over */
    uint64_t generation, losses;
    bh_error stop_reason;
    bh_device reader; /* Owned. Serves reads after this device has stopped. Zero: none. */
    bool is_reader;   /* this device is the reader of a stopped one */
};

#endif
