/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor's files share: starting workers, telling them things, replacing them. Used on
 * its thread only. */
#ifndef BH_CLIENT_SUPERVISOR_H
#define BH_CLIENT_SUPERVISOR_H

#include "client/internal.h"

/* Whether it is kept to take over: it boots, is brought up to date, or is ready. */
static inline bool bh__is_standby(const bh__device *device, const bh__worker *worker) {
    return worker != device->active &&
           (worker->state == BH__WORKER_BOOTING || worker->state == BH__WORKER_STANDBY);
}

/* Whether it could take over at once. */
static inline bool bh__is_ready(const bh__worker *worker) {
    return worker->state == BH__WORKER_STANDBY && !worker->waiting && !worker->sent;
}

/* ---- orders.c: what workers are told, and what comes of it ---- */

/* Puts an order at the end of a worker's queue. The worker's queue owns it. */
void bh__order_append(bh__worker *worker, bh__order *order);
bh__order *bh__order_new(const bh__order *from);
void bh__order_delete(bh__order *order);
/* Everything that a worker must know before it can take over. */
void bh__orders_brief(bh__device *device, bh__worker *worker);
/* Values of module variables that the program set, then GO. */
void bh__orders_go(bh__device *device, bh__worker *worker);
/* Sends what can be sent. False: the worker cannot be reached. */
bool bh__orders_pump(bh__device *device, bh__worker *worker);
/* An order was carried out, or refused. False: the worker is of no use. */
bool bh__orders_acknowledge(bh__device *device, bh__worker *worker, bh__message *message);
/* Why a worker with orders is lost, as far as they are concerned. */
typedef enum bh__order_blame {
    BH__BLAME_NONE,
    BH__BLAME_SENT,   /* what it was carrying out may have been the cause */
    BH__BLAME_OVERDUE /* it did not answer the first one */
} bh__order_blame;
/* Takes the orders a lost worker has not carried out: those with a job go to *backlog, the others
 * are deleted. Jobs that workers were lost with again and again are failed. */
void bh__orders_recover(bh__device *device, bh__worker *worker, bh__order_blame blame,
                        bh__order **backlog);
/* MODULE_LOAD and so on. */
const char *bh__order_name(uint32_t type);

/* ---- jobs.c ---- */

/* Tells who waits for it, or frees it where nobody does. */
void bh__job_finish(bh__device *device, bh__job *job);
/* Says which device the calling thread is the supervisor of. */
void bh__supervise(const bh__device *device);
/* All that were posted, in order. With `close` no more can be. */
bh__job *bh__jobs_take(bh__device *device, bool close);
/* Whoever asks from now on, or has just asked, finds nobody there any more. */
void bh__jobs_close(bh__device *device);
/* What was said before this many flushes were asked for has been read. */
void bh__flushes_answer(bh__device *device, uint32_t wanted);

/* ---- cause.c: why a worker is lost ---- */

/* How one that told nothing came to its end. */
void bh__cause_of_end(const bh__worker *worker, const bh__process_end *end, bh__cause *out);
/* What it reported before. False: nothing, and *out is as it was. */
bool bh__cause_reported(bh__device *device, bh__worker *worker, bh__cause *out);

/* ---- watchdog.c: workers that are alive and do nothing, and requests that overrun deadlines ---- */

/* Looks at everything that is outstanding. Returns a worker that is lost, with the cause; else *next
 * is lowered to when to look again. */
bh__worker *bh__watch_look(bh__device *device, uint64_t now, uint64_t *next, bh__cause *out);
/* How long after a look the next one comes, at most. */
uint64_t bh__watch_period(const bh__device *device);
/* Whether the worker has not answered for so long that another one is better. */
bool bh__watch_doubts(const bh__device *device, const bh__worker *worker);
/* Whether the device may take long over it: a driver may compile. */
bool bh__order_is_slow(const bh__order *order);

/* ---- workers.c ---- */

/* Starts a worker and tells it to boot. BH_E_BUSY: every area belongs to a worker that is not
 * reaped yet. */
bh_status bh__worker_start(bh__device *device, bh__worker **out, bh_error *error);
void bh__worker_read_errors(bh__worker *worker);
/* Before all are buried because the device closes: workers are killed, since nothing is lost by it.
 * With a profiler in them something is, and those are given time to end by themselves. */
void bh__workers_finish(bh__device *device);
/* Kills it and stops listening. Its orders must have been recovered. `loss`: which loss this is, 0
 * for a standby. */
void bh__worker_bury(bh__worker *worker, uint64_t loss);
/* True once it is gone for good; what was held because of it is released. */
bool bh__worker_reap(bh__device *device, bh__worker *worker);

/* ---- supervisor.c ---- */

/* Called by the pump when GO is sent: from now on this worker's words count. */
void bh__worker_goes(bh__device *device, bh__worker *worker);

#endif
