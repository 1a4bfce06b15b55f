/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed buffers: the program and kernels use the same pointer. This header has what other rooms
 * call; internal.h and docs/architecture/client/managed.md describe how managed buffers work.
 */
#ifndef BH_CLIENT_MANAGED_MANAGED_H
#define BH_CLIENT_MANAGED_MANAGED_H

#include "client/core/device.h"

/* ---- creating, for bh_buffer_alloc ---- */

/* The flags of buffers with a mirror. */
enum { BH__BUFFER_MIRRORED = BH_BUFFER_MANAGED | BH_BUFFER_TRANSPARENT | BH_BUFFER_UNTRACKED };

/* Refuses flags of bh_buffer_options that do not go together, and sizes that no mirror can have. */
bh_status bh__managed_check(uint32_t flags, uint64_t bytes);
/* Creates the memory of a managed or driver-managed buffer, without a handle. With the lock held;
 * releases it meanwhile. */
bh_status bh__managed_create(bh__device *device, uint64_t bytes, const bh_buffer_options *options,
                             bh__memory **out);
/* The address of the mirror. NULL: driver-managed memory has none. */
void *bh__managed_pointer(const bh__memory *memory);
/* BH_BUFFER_MANAGED and the flags that go with it, or BH_BUFFER_DRIVER; 0: it is not managed. */
uint32_t bh__managed_flags(const bh__memory *memory);

/* ---- managed.c, move.c ---- */

/* See bh__hook_table.check_maps. */
bh_status bh__managed_check_maps(const bh__use *use);
/* bh__submit for devices with managed buffers: uploads the pages that the request needs first. */
bh_status bh__managed_submit(bh__device *device, const bh__submission *submission, bool *out_retry,
                             bh_ticket *out);
/* bh__submit_room for them. */
bh_status bh__managed_check_room(bh__device *device, const bh__submission *all, uint32_t count);

/* Frees what this room keeps for a managed buffer whose memory is being freed; for all of them. */
void bh__managed_delete(bh__device *device, bh__managed *self);
void bh__managed_delete_all(bh__device *device);
/* Returns true if the request moves pages of a managed buffer. */
bool bh__managed_moves(bh__device *device, bh__lane *lane, const bh__shadow *shadow);
/* Requests were resolved. Undoes the page states of moves that failed: their pages are where they
 * were before. */
void bh__managed_judge(bh__device *device);
/* The program is about to learn that the lane has passed `sequence`: starts the write-back of
 * results in transparent buffers. BH_OK: all are written back. BH_E_STOPPED: the device stopped
 * before that; it is the ticket's verdict. BH_E_BUSY: a write-back is in flight until *out_lane has
 * passed *out_position (NULL: retry a little later). Without the lock, between bh__ticket_enter and
 * bh__ticket_leave. */
bh_status bh__managed_write_back(bh__device *device, bh__lane *lane, uint64_t sequence,
                                 bh__lane **out_lane, uint64_t *out_position);
/* The same, and waits until all are written back. BH_E_TIMEOUT: they are not yet. */
bh_status bh__managed_write_back_wait(bh__device *device, bh__lane *lane, uint64_t sequence,
                                      uint64_t deadline);
/* The same when the device closes, until the deadline; 0: only starts it. Results are not left to
 * later requests that write the buffer, because those may be cancelled. */
void bh__managed_drain(bh__device *device, bh__lane *lane, uint64_t sequence, uint64_t deadline);
/* The device stops: its workers have ended, and every request that is not done has its verdict.
 * Tickets whose results in transparent buffers are not written back fail, if the program was not
 * told that they are done. */
void bh__managed_strand(bh__device *device);
/* The device is about to stop and its workers have ended: copies results in transparent buffers to
 * the host. Without the lock. */
void bh__managed_fetch_results(bh__device *device);
/* For reads of a stopped device. Returns where the newest copy of the byte at `offset` is on the
 * host, NULL: it is on the device; cuts *bytes to what lies on the same side. */
const uint8_t *bh__managed_host_run(const bh__memory *memory, uint64_t offset, uint64_t *bytes);
/* The program is about to accept bytes in doubt: what it stored beside them counts. */
void bh__managed_accepting(bh__device *device, bh__managed *self, uint64_t offset, uint64_t bytes);
/* The program has accepted bytes in doubt: writes a transparent buffer back. Releases the lock
 * meanwhile. */
void bh__managed_accepted(bh__device *device, bh__managed *self);
/* Drops pending write-backs of the buffer: completions do not wait for it any more. */
void bh__managed_forget(bh__device *device, bh__managed *self);
/* The highest end of the managed buffers of this process that end above `address`. 0: none does. */
uint64_t bh__managed_above(uint64_t address);

/* ---- track.c ---- */

/* Writes why the system does not report which pages were written. "": it does. */
void bh__track_probe(char *why, size_t size);

/* ---- driver_managed.c: driver-managed buffers (BH_BUFFER_DRIVER), with the lock held ---- */

/* Called while the addresses in the new worker are not known. If the submission uses a driver-
 * managed buffer, releases the lock for a moment and sets *out_retry. */
bh_status bh__driver_managed_settle(bh__device *device, const bh__submission *submission,
                                    bool *out_retry);
/* Returns true if the address lies in a driver-managed buffer. */
bool bh__driver_managed_has(const bh__device *device, uint64_t address);
/* A worker has allocated the buffer: the active one, for a job, or another. False: its answer is
 * not valid. */
bool bh__driver_managed_made(bh__device *device, const bh__order *order, uint32_t area,
                             const bh__message *answer);
/* The active worker has applied advice. False: no host memory to record it. */
bool bh__driver_managed_advised(bh__device *device, const bh__advice_message *what);
/* Sends a new worker the orders that create all driver-managed buffers, with their advice. */
void bh__driver_managed_brief(bh__device *device, bh__worker *worker,
                              void (*tell)(bh__worker *worker, const bh__order *what));
/* The active worker is lost, and the contents of all driver-managed buffers with it. */
void bh__driver_managed_lose(bh__device *device);
/* A worker becomes active: its addresses apply from now on. */
void bh__driver_managed_arrive(bh__device *device, uint32_t area);
void bh__driver_managed_delete(bh__device *device, bh__driver_managed *self);

#endif
