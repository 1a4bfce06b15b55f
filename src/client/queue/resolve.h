/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that do not complete, and calls that consist of several requests. All functions are
 * called with the device locked. */
#ifndef BH_CLIENT_QUEUE_RESOLVE_H
#define BH_CLIENT_QUEUE_RESOLVE_H

#include "client/core/device.h"

/*
 * The request does not complete. It gets this verdict, unless it has one; the function fills in the
 * sequence and, if it is NULL, the kernel. `damaged`: the outputs are in doubt, because the request
 * may have written some of them or its input is in doubt. All pieces of the same call fail with it.
 * The caller must call bh__dependents_resolve once after the last such request.
 */
void bh__request_fail(bh__device *device, bh__lane *lane, bh__shadow *shadow,
                      const bh__failure *verdict, bool damaged);
/* Lost workers up to number `reaped` have ended: records the verdicts that were deferred until
 * then. Returns false if there were none. */
bool bh__deferred_tell(bh__device *device, uint64_t reaped);
/* Returns true if the ticket has a deferred verdict. With ticket.lane 0: if any ticket of the lane
 * up to ticket.sequence has one. */
bool bh__deferred_pending(const bh__device *device, const bh__lane *lane, bh_ticket ticket);

/* ---- doubt_spread.c ---- */

/* Fails each queued request that would read bytes in doubt, with BH_E_STALE. */
void bh__dependents_resolve(bh__device *device);
bool bh__request_reads_doubt(bh__device *device, bh__lane *lane, const bh__shadow *shadow);

/* ---- calls of several requests ---- */

/* A piece of the call is submitted. */
void bh__call_piece(bh__device *device, bh__call *self, bh__lane *lane, uint64_t start,
                    bh__shadow *shadow);
/* A queued piece did not complete: the call has failed. */
void bh__call_fail(bh__call *self, const bh__failure *verdict);
/* The last piece was submitted. With a status other than BH_OK, the queued pieces are cancelled. */
void bh__call_end(bh__device *device, bh__call *self, bh_status status);

#endif
