/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue: submitting requests to the rings of lanes, querying tickets and waiting for them.
 * submit.c submits; ticket.c queries, waits and cancels; worker_positions.c reads how far the
 * worker is; resolve.c handles requests that do not complete; verdicts.c keeps the verdicts of
 * failed tickets.
 */
#ifndef BH_CLIENT_QUEUE_QUEUE_H
#define BH_CLIENT_QUEUE_QUEUE_H

#include "client/core/device.h"
#include "client/core/hooks.h"

/* ---- verdicts.c: verdicts of failed tickets, kept until the process ends ---- */

/* Creates the history of a lane, with capacity for `room` failures. NULL: no host memory. */
bh__verdicts *bh__verdicts_open(uint64_t lane_id, size_t room);
/* Reserves capacity for `room` more failures. A request is submitted only if the verdicts of all
 * requests in flight have capacity, so a verdict never gets lost for lack of memory. */
bool bh__verdicts_reserve(bh__verdicts *verdicts, size_t room);
/* The lane is closed and all its tickets are done or have failed. Frees a history without
 * failures. */
void bh__verdicts_close(bh__verdicts *verdicts);
/* Records a verdict. Returns false if the ticket has one already: a verdict never changes. */
bool bh__verdicts_fail(bh__verdicts *verdicts, const bh__failure *failure);
/* The device has stopped. The tickets of this run that have no verdict and get none completed, but
 * their results in transparent buffers did not reach the host: their verdict is BH_E_STOPPED. */
void bh__verdicts_strand(bh__verdicts *verdicts, bh__run run);
/* Returns the status of a failed ticket, or BH_OK if it has not failed. */
bh_status bh__verdicts_status(bh_ticket ticket);
/* The same, and fills *out if the ticket has failed. */
bh_status bh__verdicts_describe(bh_ticket ticket, bh_error *out);

/* ---- submit_options.c ---- */

/* Checks the options and copies them to *out. `known`: the flags that the call has. */
bh_status bh__submit_options_take(const bh_submit_options *given, uint32_t known,
                                  bh_submit_options *out);
/* Refuses deadline_ns and repeat, which only sequences have. `what` is the work, with its
 * article. */
bh_status bh__submit_options_once(const bh_submit_options *options, const char *what);
/* Submits a request that does nothing to options->lane: it waits for the tickets of
 * options->after. Called with the lock held. */
bh_status bh__barrier_submit(bh__device *device, const bh_submit_options *options);
/* Fills in positions[BH__MAX_LANES] for bh__submission.after from tickets of this device. Called
 * with the lock held. */
bh_status bh__after_take(bh__device *device, const bh_ticket *tickets, size_t count,
                         uint64_t *positions);

/* ---- worker_positions.c: how far the worker says that it is. With the lock held. ---- */

/* The active worker's words for a lane. Without the lock too. */
static inline bh__lane_area *bh__lane_words(const bh__device *device, const bh__lane *lane) {
    return &atomic_load(&device->queue.area)->lane[lane->index];
}
/* Returns the position up to which the lane is done, and stores it in lane->retired. */
uint64_t bh__lane_done(bh__device *device, bh__lane *lane);
/* Returns the position up to which the worker has taken requests, from its claim word. An
 * impossible claim counts as all requests taken. Called while the lanes are not frozen. */
uint64_t bh__lane_taken(bh__device *device, bh__lane *lane, uint64_t claim);
/* The requests up to this position are done. */
void bh__lane_retire(bh__device *device, bh__lane *lane, uint64_t position);
/* The worker wrote an impossible value: the supervisor replaces it. Without the lock too. */
void bh__worker_distrust(bh__device *device);

/* ---- ticket.c ---- */

/*
 * Returns the state of a ticket: BH_OK, BH_E_BUSY or the error it failed with. With ticket.lane 0:
 * returns BH_OK if the lane has passed ticket.sequence, BH_E_STOPPED if it never will. (A lane
 * passes a failed request later than the request gets its verdict.) Called without the lock, by a
 * thread that has entered the device.
 */
bh_status bh__lane_ask(bh__device *device, bh__lane *lane, bh_ticket ticket);
/* Waits until bh__lane_ask returns something other than BH_E_BUSY, or returns BH_E_TIMEOUT. Called
 * without the lock, by a thread that has entered the device. */
bh_status bh__lane_wait(bh__device *device, bh__lane *lane, bh_ticket ticket, uint64_t deadline);
/* Waits until the lane has passed a position. Called and returns with the lock held. The lock
 * is released meanwhile, so the caller must look up handles again. BH_E_STOPPED: the lane never
 * will. */
bh_status bh__lane_let_pass(bh__device *device, bh__lane *lane, uint64_t position);
/* Returns the position in `answered` and starts a new era: threads that read the worker's state
 * before this call can no longer raise it. */
uint64_t bh__answered_close(bh__lane *lane);
/* Refuses a ticket that was never issued. */
bh_status bh__refuse_ticket(bh_ticket ticket);
/* The program is told that a ticket is done, including its write-back: see
 * bh__lane.written_back. */
void bh__lane_note_written_back(bh__device *device, bh__lane *lane, uint64_t sequence);
/* Wakes all threads that wait on the first `lanes` lanes of this area. */
void bh__area_wake(bh__area *area, uint32_t lanes);
/* Reserves capacity for the verdicts of all requests that fit the lane's queue. Returns false if
 * there is no host memory: then nothing more may be submitted. Called with the lock held. */
bool bh__lane_reserve_verdicts(bh__device *device, bh__lane *lane);
/* Records a failed ticket. Called with the lock held. */
void bh__lane_fail(bh__device *device, bh__lane *lane, const bh__failure *failure);
/* bh__verdicts_strand for the tickets of a lane. Called with the lock held. */
void bh__lane_strand(bh__lane *lane, bh__run run);
/* Processes the worker's reports of requests that failed. Called with the lock held. */
void bh__reports_collect(bh__device *device);
/* Returns true if a ticket of the load lane is pending. Called with the lock held. */
bool bh__load_pending(const bh__lane *lane, uint64_t sequence);

/* ---- timed.c: times of single requests, BH_SUBMIT_TIMED. Called with the lock held. ---- */

/* Returns a time that a worker wrote, which is not trusted: at least `low` and at most `high`. */
static inline uint64_t bh__times_clamp(uint64_t value, uint64_t low, uint64_t high) {
    return value > high ? high : value < low ? low : value;
}
/* Reserves memory for the times of a lane. Returns false if there is no host memory. */
bool bh__timed_reserve(bh__lane *lane);
/* Records that the request at `start`, whose record is being written, is timed. Returns the value
 * of bh__request.timed. */
uint16_t bh__timed_note(bh__lane *lane, const bh__shadow *shadow, uint64_t submitted);
/* The worker is lost and its lanes are frozen: the times that it wrote are saved. */
void bh__timed_frozen(bh__device *device);

/* ---- ticket_callbacks.c ---- */

/* Runs the callbacks of tickets that are done or have failed. `*pending` holds the others. Returns
 * true if there may be more. Dispatcher only. */
bool bh__callbacks_run(bh__device *device, bh__callback **pending);

/* ---- leases.c: with the lock held ---- */

/* Takes a lease. Returns false if a lease of another transfer is in the way. */
bool bh__lease_begin(bh__device *device, const bh__memory *memory, uint64_t offset, uint64_t bytes,
                     uint32_t access, bh__lease *out);
void bh__lease_end(bh__device *device, bh__lease *lease);
/* Returns true if such a use must wait for a lease. */
bool bh__lease_covers(const bh__device *device, const bh__memory *memory, uint64_t offset,
                      uint64_t bytes, uint32_t access);
/* Waits until a lease has ended. The lock is released meanwhile, so the caller must look up handles
 * again. */
void bh__leases_wait(bh__device *device);

/* ---- worker_errors.c: validates what workers write ---- */

/* Copies a report out of shared memory, where it may change at any time, and terminates its
 * strings. */
void bh__report_copy(const bh__report *shared, bh__report *out);
/* Returns the status if a worker may report it, else BH_E_INTERNAL: the other statuses have a
 * special meaning to callers. */
bh_status bh__status_of_worker(bh_status said);
/* The same for an error in a message. BH_OK is kept. */
void bh__error_of_worker(bh_error *error);

/* ---- submit.c: all requests are submitted here ---- */

/* Checks that the request reads no bytes in doubt, orders it after the requests it depends on,
 * writes it to the ring and wakes the worker. Called and returns with the device locked. If the
 * ring is full, the lock is released until there is room: then *out_retry is true, nothing was
 * submitted, and the caller must look up its handles again. */
bh_status bh__submit_plain(bh__device *device, const bh__submission *submission, bool *out_retry,
                           bh_ticket *out);
/* Refuses uses that read bytes in doubt, as bh__submit does. Counts nothing. */
bh_status bh__uses_readable(bh__device *device, const bh__use *uses, uint32_t count);
/* Returns true if the request uses bytes of a lease of another transfer. Then *out_retry tells that
 * the lock was released until one ended, or *out_status is BH_E_BUSY. */
bool bh__leases_block(bh__device *device, const bh__submission *submission, bh_status *out_status,
                      bool *out_retry);
static inline bh_status bh__submit(bh__device *device, const bh__submission *submission,
                                   bool *out_retry, bh_ticket *out) {
    bh_status status;
    if (__builtin_expect(device->queue.leases != NULL, 0) &&
        bh__leases_block(device, submission, &status, out_retry))
        return status;
    if (__builtin_expect(device->managed.list != NULL || device->managed.addresses_unknown, 0))
        return bh__hooks.submit(device, submission, out_retry, out);
    return bh__submit_plain(device, submission, out_retry, out);
}
/* Checks that `count` requests like this one can be submitted now, without waiting and without
 * releasing the lock in between. `uses` are those of all of them together. BH_E_BUSY: not now, and
 * BH_E_UNSUPPORTED: never. */
bh_status bh__submit_room_plain(bh__device *device, const bh__submission *all, uint32_t count,
                                uint32_t moves);
static inline bh_status bh__submit_room(bh__device *device, const bh__submission *all,
                                        uint32_t count) {
    bh_status status;
    bool retry;
    if (device->queue.leases && bh__leases_block(device, all, &status, &retry)) return status;
    if (device->managed.list || device->managed.addresses_unknown)
        return bh__hooks.room(device, all, count);
    return bh__submit_room_plain(device, all, count, 0);
}
/* Returns true if a submission must not wait. */
static inline bool bh__no_block(const bh__submission *submission) {
    return submission->no_block || (submission->lane->no_block && !submission->waits);
}
/* Returns the lane of a handle; 0 is the device's default lane. NULL with the thread's error. */
bh__lane *bh__lane_get(bh__device *device, bh_lane lane);

#endif
