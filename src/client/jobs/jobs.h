/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: requests from other threads to the supervisor. Offers posting and waiting for jobs,
 * flushing the workers' messages and waking the supervisor, without depending on the supervisor's
 * room. */
#ifndef BH_CLIENT_JOBS_JOBS_H
#define BH_CLIENT_JOBS_JOBS_H

#include "client/core/device.h"

/* Has the supervisor execute an order, and waits for it. Called and returns with the lock held; the
 * lock is released meanwhile. */
bh_status bh__order_run(bh__device *device, bh__job *job);
void bh__job_post(bh__device *device, bh__job *job);
/* Has the supervisor execute an order that nobody waits for. False: no host memory. */
bool bh__order_post(bh__device *device, const bh__order *order);
/* Returns true if the calling thread is the device's supervisor. The program runs on it in its log
 * function. Calls that wait for the supervisor must be refused there. */
bool bh__supervises(const bh__device *device);
void bh__job_wait(bh__job *job);
/* Wakes the supervisor. */
void bh__supervisor_poke(bh__device *device);
/* Waits until the supervisor has read all messages that workers have sent so far. Returns false if
 * the deadline passed first. */
bool bh__workers_flush(bh__device *device, uint64_t deadline);
/* Work is in flight: the supervisor polls the lanes until all of them have been idle for a
 * while. */
static inline void bh__watch_begin(bh__device *device) {
    if (!atomic_load(&device->jobs.wants_tick) && !atomic_exchange(&device->jobs.wants_tick, 1))
        bh__supervisor_poke(device);
}
/* A request with this deadline is in flight: the supervisor must poll often enough for it. Called
 * with the lock held. */
static inline void bh__watch_deadline(bh__device *device, uint64_t deadline_ns) {
    if (device->jobs.tightest && device->jobs.tightest <= deadline_ns) return;
    device->jobs.tightest = deadline_ns;
    bh__supervisor_poke(device);
}

/* ---- for the supervisor ---- */

/* Wakes the thread that waits for the job, or frees the job if it is self_owned. */
void bh__job_finish(bh__device *device, bh__job *job);
/* Makes the calling thread the supervisor of this device, for bh__supervises. */
void bh__supervise(const bh__device *device);
/* Takes all posted jobs, in order. If `close` is set, later jobs fail. */
bh__job *bh__jobs_take(bh__device *device, bool close);
/* Fails all posted jobs and all later ones, and answers all flushes. */
void bh__jobs_close(bh__device *device);
/* Completes the first `wanted` flushes: all messages sent before they were requested have been
 * read. */
void bh__flushes_answer(bh__device *device, uint32_t wanted);

#endif
