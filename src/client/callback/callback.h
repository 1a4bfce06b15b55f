/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks: the dispatcher, one thread per device that runs the program's callbacks with no lock
 * held; watchers, which receive losses; and the output of kernels.
 */
#ifndef BH_CLIENT_CALLBACK_CALLBACK_H
#define BH_CLIENT_CALLBACK_CALLBACK_H

#include "client/core/device.h"

bh_status bh__dispatcher_start(bh__device *device);
/* Called once, by the thread that closes the device. Afterwards the dispatcher cannot be
 * started. */
void bh__dispatcher_stop(bh__device *device);
/* Wakes the dispatcher. */
void bh__dispatcher_poke(bh__device *device);
/* Sets the bell that wakes the dispatcher: the read end of a worker's pipe. Borrowed. */
void bh__dispatcher_listen(bh__device *device, int bell_fd);
/* Stops listening to this bell. On return the descriptor may be closed. */
void bh__dispatcher_ignore(bh__device *device, int bell_fd);
/* Sets the thread's error: the device is being closed. */
bh_status bh__refuse_stopping(void);
/* Delivers queued events to the watchers. Returns true if there were any. Dispatcher only. */
bool bh__events_run(bh__device *device);
/* Appends an event to the queue. Called with dispatch_lock held. */
void bh__event_append(bh__device *device, bh__event *event);
/* Queues a loss for the watchers. */
void bh__dispatch_loss(bh__device *device, const bh_loss *loss);
/* Waits until all callbacks queued so far have run. Returns false if the deadline passed first. */
bool bh__dispatcher_drain(bh__device *device, uint64_t deadline);

/* ---- printed.c: the output of kernels ---- */

enum { BH__NOTICE_BYTES = 192 };
/* Queues text for the print callback. Drops it if there is no callback. */
void bh__dispatch_text(bh__device *device, const void *text, size_t bytes);
/* Returns true if there is a print callback. */
bool bh__printed_wanted(bh__device *device);
/* Returns true if there are watchers of losses. */
bool bh__losses_wanted(bh__device *device);
/* The callback has received the event's text. Dispatcher only. */
void bh__printed_delivered(bh__device *device, const bh__event *event);
/* Writes the line that says how much text was dropped. Returns its length; 0: nothing to report
 * now. Dispatcher only. */
size_t bh__printed_notice(bh__device *device, char out[BH__NOTICE_BYTES]);
/* The callback was replaced. Called with dispatch_lock held. */
void bh__printed_reset(bh__printed *printed);

/* ---- watchers: callbacks that run more than once ---- */

/* All of these are called with dispatch_lock held. */

/* Returns an id for a new watcher. */
uint64_t bh__watch_id_new(bh__device *device);
/* The watcher with this id starts to run; the running watcher has returned. Dispatcher only. */
void bh__watch_run_begin(bh__device *device, uint64_t id);
void bh__watch_run_end(bh__device *device);
/* Waits until the removed watcher with this id is not running. Returns at once on the dispatcher
 * thread. The lock is released while it waits. */
void bh__watch_run_wait(bh__device *device, uint64_t id);

#endif
