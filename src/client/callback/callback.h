/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks: the dispatcher, one thread per device that runs the program's callbacks with no lock
 * held; watchers, which are told of losses, health, memory pressure and the output of kernels.
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
/* Waits until all callbacks queued so far have run. Returns false if the deadline passed first. */
bool bh__dispatcher_drain(bh__device *device, uint64_t deadline);

/* ---- events.c: what watchers are told ---- */

/* Delivers queued events to the watchers. Returns true if there were any. Dispatcher only. */
bool bh__events_run(bh__device *device);
/* Appends an event to the queue. Called with dispatch_lock held. */
void bh__event_append(bh__device *device, bh__event *event);
/* Queues a loss for the watchers. */
void bh__dispatch_loss(bh__device *device, const bh_loss *loss);
/* Queues a change of health for the watchers. False: there is no host memory for it. */
bool bh__dispatch_health(bh__device *device, const bh_health *health);

/* ---- printed.c: the output of kernels ---- */

enum { BH__NOTICE_BYTES = 192 };
/* Queues text for the watchers. Drops it if there are none. */
void bh__dispatch_text(bh__device *device, const void *text, size_t bytes);
/* The watchers have received the event's text. Dispatcher only. */
void bh__printed_delivered(bh__device *device, const bh__event *event);
/* Writes the line that says how much text was dropped. Returns its length; 0: nothing to report
 * now. Dispatcher only. */
size_t bh__printed_notice(bh__device *device, char out[BH__NOTICE_BYTES]);
/* Text begins: until now nobody wanted it. Called with dispatch_lock held. */
void bh__printed_reset(bh__printed *printed);

/* ---- watchers.c ---- */

/* Returns true if a watcher wants to be told of these kinds, BH_EVENT_... */
static inline bool bh__is_wanted(const bh__device *device, uint32_t kinds) {
    return atomic_load(&device->callback.wanted) & kinds;
}
/* The watcher starts to run. Called with dispatch_lock held. Dispatcher only. */
void bh__watch_run_begin(bh__device *device, const bh__watcher *watcher, bh__watch_run *out);
/* Calls the watcher that has started to run. event->size and event->device are set here. Without
 * locks. Dispatcher only. */
void bh__watch_tell(bh__device *device, const bh__watch_run *run, bh_event *event);
/* Frees all watchers. The dispatcher has ended. */
void bh__watchers_free(bh__device *device);

#endif
