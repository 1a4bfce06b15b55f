/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that do not complete, and calls that are made of several requests. With the device
 * locked. */
#ifndef BH_CLIENT_RESOLVE_H
#define BH_CLIENT_RESOLVE_H

#include "client/internal.h"

/*
 * The request does not complete: it gets this verdict (its sequence and, where none is named, its
 * kernel are filled in), unless it has one. `damaged`: it may have written some of its outputs, or
 * was to be computed from bytes in doubt, so that they are in doubt now. Other pieces of the same
 * call fare alike. Afterwards bh__dependents_resolve, once, for all that were resolved.
 */
void bh__request_fail(bh__device *device, bh__lane *lane, bh__shadow *shadow,
                         const bh__failure *verdict, bool damaged);
/* Gives BH_E_STALE to each queued request that would read bytes in doubt. */
void bh__dependents_resolve(bh__device *device);
/* Verdicts that waited for lost workers up to `reaped` to be gone are written down. False: none. */
bool bh__late_tell(bh__device *device, uint64_t reaped);
/* Whether the ticket has such a verdict; with ticket.lane 0, any of the lane up to it. */
bool bh__late_pending(const bh__device *device, const bh__lane *lane, bh_ticket ticket);
bool bh__request_reads_doubt(bh__device *device, bh__lane *lane, const bh__shadow *shadow);

/* A piece of the call is being submitted. */
void bh__call_piece(bh__device *device, bh__call *self, bh__lane *lane, uint64_t start,
                    bh__shadow *shadow);
/* A piece that is queued did not complete: the call has failed. */
void bh__call_fail(bh__call *self, const bh__failure *verdict);
/* transfer.c, without the lock: a call that is to write these bytes of a buffer begins; submits
 * pieces through staging slots; ends. From the beginning to the end the thread is inside the device. */
bh_status bh__call_begin(bh_buffer buffer, uint64_t offset, uint64_t bytes, bh__call *out);
bh_status bh__write_pieces(bh_lane lane, bh_buffer buffer, uint64_t offset, const void *source,
                           uint64_t bytes, bh__call *call, bh_ticket *out);
bh_status bh__call_finish(bh__call *self, bh_status status);
/* No more pieces come. With a status other than BH_OK, those that are queued are given up. */
void bh__call_end(bh__device *device, bh__call *self, bh_status status);

#endif
