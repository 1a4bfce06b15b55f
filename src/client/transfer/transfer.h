/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers: copies between the program and buffers and between buffers, fills, rectangles (rows).
 * Also host memory that workers can access: regions, staging slots, pools.
 */
#ifndef BH_CLIENT_TRANSFER_TRANSFER_H
#define BH_CLIENT_TRANSFER_TRANSFER_H

#include "client/core/device.h"

/* Where a transfer goes, and how. */
typedef struct bh__route {
    bh_lane lane;
    bool no_block;           /* BH_SUBMIT_NO_BLOCK */
    bool waits;              /* for room, also on a lane with BH_LANE_NO_BLOCK */
    bool timed;              /* BH_SUBMIT_TIMED */
    struct bh__stage *stage; /* of a transfer through staging slots; else NULL */
    const uint64_t *after;   /* see bh__submission; NULL: none */
} bh__route;

/* ---- transfer.c ---- */

/* bh_submit_write and its like. */
bh_status bh__transfer_write(const bh__route *route, bh_buffer buffer, uint64_t offset,
                             const void *source, uint64_t bytes, bh_ticket *out);
bh_status bh__transfer_read(const bh__route *route, bh_buffer buffer, uint64_t offset, void *target,
                            uint64_t bytes, bh_ticket *out);
bh_status bh__transfer_copy(const bh__route *route, bh_buffer target, uint64_t target_offset,
                            bh_buffer source, uint64_t source_offset, uint64_t bytes,
                            bh_ticket *out);
bh_status bh__transfer_fill(const bh__route *route, bh_buffer buffer, uint64_t offset,
                            uint64_t bytes, const void *pattern, uint32_t pattern_bytes,
                            bh_ticket *out);
/* BH_WHOLE in *bytes of a fill becomes what there is from `offset` to the end of the buffer. An
 * offset beyond it is left to the fill's own check. */
bh_status bh__fill_whole(bh_buffer buffer, uint64_t offset, uint64_t *bytes);
/* Reads into any memory and returns when the data is in place. *out: the ticket of its last
 * request, which is done; zero if no worker's lane has read it: 0 bytes, or a stopped device. */
bh_status bh__transfer_read_now(const bh__route *route, bh_buffer buffer, uint64_t offset,
                                void *target, uint64_t bytes, bh_ticket *out);

/* Fills a new buffer with zeros, on the device's own lane. On failure its bytes are in doubt. */
bh_status bh__submit_zeros(bh_buffer buffer, uint64_t bytes);

/* Refuses a pattern that no fill supports. */
bh_status bh__check_pattern(const void *pattern, uint32_t pattern_bytes);
/* The error of a read without waiting into memory that workers cannot access. */
bh_status bh__refuse_plain_target(const void *target);
/* The error of a read into such memory that must not wait. */
bh_status bh__refuse_waiting_read(const void *target, uint64_t bytes);
/* Refuses a lane of another device than the buffer's. */
bh_status bh__check_lane_device(bh_lane lane, bh_buffer buffer);
/* Returns true if a submission must not wait. Called with the lock held. */
bool bh__must_not_wait(bh__device *device, const bh__route *route);
/* Submits a fill of rows of any pitch with a pattern of any length. The pattern goes through a
 * staging slot. */
bh_status bh__submit_pattern(const bh__route *route, bh_buffer buffer, uint64_t offset,
                             uint64_t pitch, uint64_t width, uint64_t height, const void *pattern,
                             uint32_t pattern_bytes, bh_ticket *out);

/*
 * A transfer through staging slots may be several requests, and other work on its bytes must not
 * come between them. From bh__stage_begin until all of its bytes are submitted it has a lease
 * (queue/leases.c). Even one request needs it: a thread that has taken a slot must not wait for a
 * lease. Until bh__stage_end the device cannot be freed. Without the lock, but for
 * bh__stage_submitted.
 */
typedef struct bh__stage {
    bh__device *device;
    bh__memory *memory; /* Retained. */
    bh__lease lease;
    uint64_t left;   /* bytes to be submitted; 0: the lease has ended. With the lock held. */
    bh__route route; /* the one given, with this stage */
} bh__stage;
/* `moved`: the bytes of all requests together, without the gaps between rows. */
bh_status bh__stage_begin(const bh__route *route, bh_buffer buffer, uint64_t offset, uint64_t bytes,
                          uint64_t moved, uint32_t access, bh__stage *out);
/* A request of the transfer is submitted. NULL: it is not staged. */
void bh__stage_submitted(bh__stage *self, uint64_t bytes);
void bh__stage_end(bh__stage *self);

/*
 * A write of several pieces counts as one call: it fails if one piece fails. bh__call_begin names
 * the bytes to be written, bh__write_pieces submits pieces through staging slots, bh__call_finish
 * returns the status of the whole. All without the lock. Between begin and finish the device cannot
 * be freed.
 */
bh_status bh__call_begin(bh_buffer buffer, uint64_t offset, uint64_t bytes, bh__call *out);
bh_status bh__write_pieces(const bh__route *route, bh_buffer buffer, uint64_t offset,
                           const void *source, uint64_t bytes, bh__call *call, bh_ticket *out);
bh_status bh__call_finish(bh__call *self, bh_status status);

/* ---- request.c ---- */

/* bh_submit of a transfer. The options were checked. */
bh_status bh__transfer_submit(const bh_request *request, const bh_submit_options *options,
                              bh_ticket *out);
/* Checks that a request is a transfer and copies it to *out. */
bh_status bh__transfer_take(const bh_request *given, bh_transfer *out);

/* ---- rows.c: transfers of several rows ---- */

bh_status bh__rows_write(const bh__route *route, const bh_transfer *given, bh_ticket *out);
/* `wait`: the target may be plain memory. Then the data is in place on return, and *out is the
 * ticket of its last request. */
bh_status bh__rows_read(const bh__route *route, const bh_transfer *given, bool wait,
                        bh_ticket *out);
bh_status bh__rows_copy(const bh__route *route, const bh_transfer *given, bh_ticket *out);
bh_status bh__rows_fill(const bh__route *route, const bh_transfer *given, bh_ticket *out);

/* ---- between.c ---- */

/* Copies between buffers of two devices and returns when the data is in place. */
bh_status bh__copy_between(bh_buffer target, uint64_t target_offset, bh_buffer source,
                           uint64_t source_offset, uint64_t bytes);

/* ---- staging.c: host regions and staging slots, with the lock held ---- */

/* Takes a free staging slot. `wait`: waits for one, with the lock released. A thread that holds a
 * slot must not wait for another: it passes false and gets BH_E_BUSY, without setting an error. */
bh_status bh__staging_take(bh__device *device, bool wait, uint32_t *out_slot);
/* Takes `count` free slots, or none: BH_E_BUSY. Never waits. If there are no slots yet, it has them
 * made. */
bh_status bh__staging_take_all(bh__device *device, uint32_t count, uint32_t *out_slots);
/* Returns a slot. It is free once `lane` has passed `sequence` (0: now). `failed`: a lost worker
 * may still access it, so it is free only after that worker is reaped. */
void bh__staging_put(bh__device *device, uint32_t slot, uint32_t lane, uint64_t sequence,
                     bool failed);
uint8_t *bh__staging_memory(bh__device *device, uint32_t slot);

/* Creates a region of shared memory. Releases the lock while the worker maps it. */
bh_status bh__host_region_create(bh__device *device, uint64_t asked, bh__memory **out);
/* Waits for the work that uses the region and unmaps it. Releases the lock meanwhile. */
void bh__host_region_destroy(bh__device *device, bh__memory *memory);
/* Waits until no submitted work uses the memory. Releases the lock meanwhile. */
void bh__host_wait_idle(bh__device *device, const bh__memory *memory);
bh__host_entry *bh__host_entry_of(bh__device *device, const bh__memory *memory);

/* Records a region that the worker has mapped. False: no host memory. */
bool bh__host_note(bh__device *device, const bh__host_region *region, int fd, bh__memory *memory);

/* Finds the region, or the taken piece of a pool, that contains [pointer, pointer + bytes). NULL:
 * none does. */
bh__memory *bh__host_find(bh__device *device, const void *pointer, uint64_t bytes,
                          uint64_t *out_offset);
/* Refuses a range that is partly in a region: the program has passed a wrong size or pointer. Plain
 * memory is accepted, since its bounds are not known. */
bh_status bh__host_check(bh__device *device, const void *pointer, uint64_t bytes);

/* ---- host_pool.c, with the lock held ---- */

/* The piece that contains these bytes of a pool's region. NULL: none, or the piece is not taken. */
bh__memory *bh__host_pool_find(struct bh__host_pool_slab *slab, uint64_t offset, uint64_t bytes,
                               uint64_t *out_offset);
/* Frees the records of all pools. Their regions stay. */
void bh__host_pools_free(bh__device *device);

#endif
