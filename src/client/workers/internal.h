/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor's files share: starting workers, sending them orders, watching and replacing
 * them. Used on the supervisor's thread only. */
#ifndef BH_CLIENT_WORKERS_INTERNAL_H
#define BH_CLIENT_WORKERS_INTERNAL_H

#include "client/core/device.h"

/* Why a worker is lost. */
typedef struct bh__cause {
    bh_status status; /* BH_E_FAULT, BH_E_DEADLINE, BH_E_LOST */
    bool lane_known;
    bool broken;   /* the device must not be used again */
    bool overdue;  /* its oldest order timed out */
    bool innocent; /* the named request did not cause it: the worker was stuck */
    bool stuck;    /* the worker was alive and made no progress */
    bool exited;   /* it ended itself */
    uint32_t lane;
    uint64_t sequence; /* 0: not known; otherwise `lane` is known too */
    uint64_t address;  /* of the bad access, if `bytes` is not 0 */
    uint32_t bytes;    /* of that access; 0: not reported */
    bool illegal;      /* a kernel accessed an illegal address, which may be unknown */
    uint32_t step;     /* of a sequence, counted from 1; 0: not known */
    bh_error error;    /* for the blamed request */
} bh__cause;

/*
 * Returns the position after the group of requests that completes together with the request at
 * `position`, which is taken and has not completed. *out_count receives the number of requests in
 * the group: 1 unless the worker sent several as one. Called with the lock held.
 */
uint64_t bh__group_end(bh__device *device, bh__lane *lane, uint64_t position, uint64_t taken,
                       uint32_t *out_count);
/* Returns true if the request at `head` of a lane waits for no dependency and no lost worker.
 * Called with the lock held. */
bool bh__head_runs(bh__device *device, bh__lane *lane, uint64_t head);
/* kernel "saxpy" (launch 17 of lane 0, grid 4 x 1 x 1, block 256 x 1 x 1) */
void bh__shadow_describe(const bh__shadow *shadow, uint32_t lane, char *out, size_t size);
/* From here on nothing that the current worker writes is used. Called with the lock held. */
void bh__device_freeze(bh__device *device);
/* Stops the device permanently. Every unresolved request gets this verdict. Called with the lock
 * held and the device frozen. */
void bh__device_stop(bh__device *device, const bh_error *reason, bh_status verdict);

static inline bh__area *bh__worker_area(bh__device *device, const bh__worker *worker) {
    return (bh__area *)(void *)(device->queue.areas + worker->area * device->queue.area_bytes);
}

/* ---- health.c ---- */

/* Updates what bh_device_get_health returns. Called after each change. */
void bh__health_note(bh__device *device);
/* The same before the device stops, so that a thread that sees the verdict of a ticket also sees
 * the device stopped. Watchers are told by the next bh__health_note. */
void bh__health_note_stop(bh__device *device, const bh_error *reason);
/* No worker takes over any more, and what was done is still being saved. Watchers are not told. */
void bh__health_note_stopping(bh__device *device, const bh_error *reason);
/* When the oldest request that runs was first seen; 0: none runs. */
void bh__health_note_running(bh__device *device, uint64_t since);

/* Losses that count against restart_limit at this moment: policy.c. */
uint32_t bh__restarts_spent(const bh_device_options *options, const bh__restart_budget *budget);

/* Returns true for a standby, whether it is booting, catching up on orders, or ready. */
static inline bool bh__is_standby(const bh__device *device, const bh__worker *worker) {
    return worker != device->workers.active &&
           (worker->state == BH__WORKER_BOOTING || worker->state == BH__WORKER_STANDBY);
}

/* Returns true if the standby can take over immediately. */
static inline bool bh__is_ready(const bh__worker *worker) {
    return worker->state == BH__WORKER_STANDBY && !worker->waiting && !worker->sent;
}

/* ---- orders.c: orders to workers, and their answers ---- */

/* Appends an order to a worker's queue, which takes ownership. */
void bh__order_append(bh__worker *worker, bh__order *order);
/* Returns the order of a job, which is part of the job. */
bh__order *bh__order_of(bh__job *job);
void bh__order_delete(bh__order *order);
/* Deletes the order and finishes its job. */
void bh__order_finish(bh__device *device, bh__order *order);
/* Queues all orders that a worker needs before it can take over. */
void bh__orders_brief(bh__device *device, bh__worker *worker);
/* Queues the values of module variables that the program has set, then GO. */
void bh__orders_go(bh__device *device, bh__worker *worker);
typedef enum bh__pump_result {
    BH__PUMP_SENT, /* everything that can be sent now was sent */
    BH__PUMP_GO,   /* GO is next: the worker must be activated first */
    BH__PUMP_UNFIT /* the worker must be replaced */
} bh__pump_result;
/* Sends queued orders. */
bh__pump_result bh__orders_pump(bh__device *device, bh__worker *worker);
/* Processes the answer to an order. Returns false if the worker must be replaced. */
bool bh__orders_acknowledge(bh__device *device, bh__worker *worker, bh__message *message);
/* Whether the orders of a lost worker are blamed for the loss. */
typedef enum bh__order_blame {
    BH__BLAME_NONE,
    BH__BLAME_SENT,   /* the orders it was executing may be the cause */
    BH__BLAME_OVERDUE /* its oldest order timed out */
} bh__order_blame;
/* Removes the orders that a lost worker has not executed: those with a job are moved to *backlog,
 * the others are deleted. A job fails after several workers were lost while executing it; `why` is
 * said of the last of them. */
void bh__orders_recover(bh__device *device, bh__worker *worker, bh__order_blame blame,
                        const bh_error *why, bh__order **backlog);
/* For example "MODULE_LOAD". */
const char *bh__order_name(uint32_t type);

/* ---- dispute.c ---- */

/* Another worker has loaded a module and describes it. If it describes it differently, the module
 * is not used any more. False: the description cannot be read. */
bool bh__description_check(bh__device *device, uint32_t number, int blob_fd);

/* ---- cause.c: why a worker is lost ---- */

/* For a worker that reported no fault: how its process ended. */
void bh__cause_of_end(const bh__worker *worker, const bh__process_end *end, bh__cause *out);
/* The fault that the worker reported. Returns false, with *out unchanged, if it reported none. */
bool bh__cause_reported(bh__device *device, bh__worker *worker, bh__cause *out);

/* ---- watchdog.c: workers that are alive but stuck, and requests that exceed deadlines ---- */

/* Checks everything that is outstanding. Returns a worker that is lost, with the cause, or NULL.
 * Lowers *next to the time of the next check. */
bh__worker *bh__watch_look(bh__device *device, uint64_t now, uint64_t *next, bh__cause *out);
/* The maximum time between two checks. */
uint64_t bh__watch_period(const bh__device *device);
/* Returns true if the worker has not answered for so long that another one should take over. */
bool bh__watch_doubts(const bh__device *device, const bh__worker *worker);
/* Returns true if the order may take long: a driver may compile. */
bool bh__order_is_slow(const bh__order *order);

/* ---- worker_life.c ---- */

/* Starts a worker and sends it BOOT. Returns BH_E_BUSY if every area belongs to a worker that is
 * not reaped yet. */
bh_status bh__worker_start(bh__device *device, bh__worker **out, bh_error *error);
void bh__worker_read_errors(bh__worker *worker);
/* Gives workers that run under a profiler time to exit, so that the profiler can write its data.
 * Called when the device closes, before all workers are killed. */
void bh__workers_finish(bh__device *device);
/* Kills the worker and closes its descriptors. Its orders must have been recovered. `loss` is the
 * number of the loss, 0 for a standby. */
void bh__worker_bury(bh__device *device, bh__worker *worker, uint64_t loss);
/* Marks the worker for replacement: it cannot be sent orders or read from, because of this
 * errno. */
void bh__worker_unfit(bh__worker *worker, const char *what, int number);
/* Returns true if the process has ended. Memory and requests that were held for it are released. */
bool bh__worker_reap(bh__device *device, bh__worker *worker);

/* ---- activate.c ---- */

/* Makes this the active worker, whose control words the library uses. Called before GO is sent. */
void bh__worker_activate(bh__device *device, bh__worker *worker);

#endif
