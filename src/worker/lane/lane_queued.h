/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files behind queued lanes do for each other. A queued lane puts requests into its
 * device's queue; the device writes `done`; the lane's thread reads it and wakes those who wait.
 *
 *   lane_queued.c       the lane: takes requests, waits for room and dependencies, queues them
 *   queued_train.c      trains: many short launches as one operation
 *   queued_sequence.c   replays of sequences
 *   queued_waker.c      a thread that sleeps inside the device and wakes those who wait
 *   kernel_times.c      how long kernels take, for trains and wakers
 *
 * The lane's thread calls everything here except bh__waker_join. Functions that return bool return
 * false when the lane is over.
 */
#ifndef BH_WORKER_LANE_LANE_QUEUED_H
#define BH_WORKER_LANE_LANE_QUEUED_H

#include "worker/lane/lane.h"

/* ---- lane_queued.c ---- */

/* Takes the next request, waiting until there is one and the device's queue has room. */
bool bh__queued_take(bh__worker_lane *lane);
/* Waits until fewer than `limit` slots are queued and not complete. */
bool bh__queued_wait_below(bh__worker_lane *lane, uint32_t limit);
/* Waits until fewer than `limit` writes of the lane's `pulse` word are queued and not complete. */
bool bh__queued_wait_for_pulse(bh__worker_lane *lane, uint64_t limit);
/* Queues lane->work once all that it depends on is queued. */
bool bh__queued_wait_and_send(bh__worker_lane *lane);
/* Queues lane->work at once. */
bool bh__queued_send(bh__worker_lane *lane);
/* Says that all up to `position` is queued. */
void bh__queued_publish(bh__worker_lane *lane, uint64_t position);
/* Sets the `handing` word before a call to the device's driver that should soon return: the first
 * request that is handed over. NULL: the call has returned. */
void bh__queued_set_handing(bh__worker_lane *lane, const bh__work *work);
/* Waits until all that is queued is complete and passes on what it printed. */
bool bh__queued_flush_print(bh__worker_lane *lane);
/* Reports that the device failed; returns false. */
bool bh__queued_fault(bh__worker_lane *lane, const bh_error *error);

static inline uint64_t bh__queued_end(const bh__worker_lane *lane) {
    return atomic_load_explicit(&lane->queue.end, memory_order_relaxed);
}

/* ---- queued_train.c ---- */

/* True if the launch that was taken and those behind it should go as a train. */
bool bh__train_is_due(bh__worker_lane *lane);
/* Takes the others and queues them all. */
bool bh__train_take_and_send(bh__worker_lane *lane);
/* Queues lane->work and its write of `done` as one operation. BH_E_UNSUPPORTED: not possible, and
 * nothing was queued. */
bh_status bh__train_send_single(bh__worker_lane *lane, bh_error *error);

/* ---- queued_sequence.c ---- */

/* Queues lane->work, a replay. Returns what the device's enqueue returns. */
bh_status bh__queued_sequence_send(bh__worker_lane *lane, bh_error *error);

/* ---- queued_waker.c ---- */

/* Called before and after work is queued. Record events so that the waker can wait for it. */
bool bh__waker_before_work(bh__worker_lane *lane, const bh__work *work);
bool bh__waker_after_work(bh__worker_lane *lane, const bh__work *works, uint32_t count);
/* Asks the waker to wake the lane when `done` moves. False: it cannot for all that is queued, and
 * the lane must poll. */
bool bh__waker_request(bh__worker_lane *lane);
/* Joins the waker, if there is one. The worker has been killed and the lane's thread has ended.
 * Control thread. */
void bh__waker_join(bh__worker_lane *lane);

#endif
