/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/managed.h: buffers with one address in the program and on the device. Stable.
 *
 * A managed buffer has a second copy of its bytes in host memory, at the same address as on the
 * device: one pointer is valid on both sides. It is a buffer like any other. The portable way to
 * its host copy is to map a range of it. Only what is newer on the other side is moved, in whole
 * pages.
 *
 *     bh_status add_one_to_all(bh_device gpu, bh_kernel add_one, uint32_t n) {
 *         bh_buffer_options options = BH_INIT(options);
 *         options.flags = BH_BUFFER_MANAGED;
 *         bh_buffer buffer;
 *         void *pointer;
 *         bh_status s = bh_buffer_alloc(gpu, BH_U32, n, &options, &buffer);
 *         if (s) return s;
 *         s = bh_managed_map(buffer, 0, n * 4ull, BH_MAP_WRITE | BH_MAP_DISCARD, &pointer);
 *         if (!s) {
 *             uint32_t *x = (uint32_t *)pointer; // the same on the device, and after any loss
 *             for (uint32_t i = 0; i < n; i++) x[i] = i;
 *             (void)((s = bh_managed_unmap(x, n * 4ull)) ||
 *                    (s = bh_launch(add_one, BH_GRID(n, 256), BH_ARGS(BH_INOUT(buffer), n), NULL,
 *                                  NULL)) ||
 *                    (s = bh_managed_map(buffer, 0, n * 4ull, BH_MAP_READ, NULL)) || // waits
 *                    (s = x[n - 1] == n ? BH_OK : BH_E_INTERNAL) ||
 *                    (s = bh_managed_unmap(x, n * 4ull)));
 *         }
 *         bh_buffer_release(buffer);
 *         return s;
 *     }
 *
 * After a loss the rules for all buffers apply; what is newest in the host copy is never lost.
 *
 * With BH_BUFFER_DRIVER there is no second copy. The driver moves the memory between device and
 * host by itself, for data larger than the device. The program has no pointer to it and no maps;
 * launches, reads, writes and copies reach it. It is lost with a worker: after each loss all of it
 * is suspect, and bh_buffer_info has another address.
 *
 * docs/managed.md has more.
 */
#ifndef BULKHEAD_MANAGED_H
#define BULKHEAD_MANAGED_H

#include "request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- allocating ---- */

/* For bh_buffer_options.flags. The address is bh_buffer_info.pointer; bh_managed_map gives it
 * too. */
enum {
    BH_BUFFER_MANAGED = 1u << 8, /* a second copy in host memory, at the same address */
    BH_BUFFER_TRANSPARENT =
        1u << 9,                    /* with it: plain loads and stores at any time between launches.
                                        A ticket is BH_OK once its results are in host memory */
    BH_BUFFER_UNTRACKED = 1u << 10, /* with that: treat every page as written at each launch, as
                                        where the system cannot report which were */
    BH_BUFFER_DRIVER = 1u << 11     /* in place of them: memory that the device's driver moves
                                        itself: see above */
};

enum {
    BH_ATTACH_GLOBAL = 0, /* any lane may use it; so it begins */
    BH_ATTACH_HOST = 1,   /* no lane may */
    BH_ATTACH_LANE = 2    /* one lane may */
};

/* Sets who may use the buffer from now on. Launches of others are refused with BH_E_BUSY. */
BH_API bh_status bh_managed_attach(bh_buffer buffer, uint32_t attach, bh_lane lane);

/* ---- mapping. Ranges have at least one byte, here and below. ---- */

enum {
    BH_MAP_READ = 1,
    BH_MAP_WRITE = 2, /* bytes that are not written keep their value */
    /* With BH_MAP_WRITE and without BH_MAP_READ: all of it will be written. Only pages that the
     * range covers in part are moved. */
    BH_MAP_DISCARD = 4,
    BH_MAP_NO_WAIT = 8 /* BH_E_BUSY instead of waiting; the moves that are needed have started */
};

/* Makes `bytes` from byte `offset` on ready for the program. Waits for launches that write the
 * range, and with BH_MAP_WRITE also for those that read it. Maps for reading may overlap; a map for
 * writing overlaps no other (BH_E_BUSY). From the call on and while mapped, launches and transfers
 * that write a page of the range are refused with BH_E_BUSY, and with BH_MAP_WRITE also those that
 * read one. A page has bh_managed_info.page_bytes: work on other bytes of it counts. Suspect bytes
 * give BH_E_STALE unless they are discarded. A map keeps the memory alive, even after the buffer is
 * released and the device closed. */
BH_API bh_status bh_managed_map(bh_buffer buffer, uint64_t offset, uint64_t bytes, uint32_t flags,
                                void **out_pointer);
/* Ends a map, given its pointer and bytes. The next launch sees what was written. */
BH_API bh_status bh_managed_unmap(const void *pointer, uint64_t bytes);

/* ---- moving bytes early ---- */

enum { BH_TO_DEVICE = 1, BH_TO_HOST = 2 };

/* Moves what is newer on the other side now, as work on a lane. With BH_BUFFER_DRIVER the driver
 * does this. Of the options lane, after and the flags BH_SUBMIT_WAIT, BH_SUBMIT_NO_BLOCK and
 * BH_SUBMIT_IDEMPOTENT are used; NULL: the defaults. If a move of these bytes fails, the ticket
 * gets its status. Cancelling the ticket does not undo moves. */
BH_API bh_status bh_managed_prefetch(bh_buffer buffer, uint64_t offset, uint64_t bytes,
                                     uint32_t where, const bh_submit_options *options,
                                     bh_ticket *out);

/* How a range is used, as bits. */
enum {
    BH_ADVISE_PREFER_DEVICE = 1u << 0, /* at unmap, what the program wrote is sent to the device */
    BH_ADVISE_PREFER_HOST = 1u << 1,   /* what a launch wrote is sent to the host right after it */
    /* With BH_BUFFER_DRIVER only: */
    BH_ADVISE_READ_MOSTLY = 1u << 2,
    BH_ADVISE_ACCESSED_BY_DEVICE = 1u << 3,
    BH_ADVISE_ACCESSED_BY_HOST = 1u << 4
};

/* Sets the advice that holds for the range from now on, in place of what held before; 0: none. It
 * changes when bytes move, never their values. With BH_BUFFER_DRIVER the driver gets it, and only
 * one of the two preferences is possible. BH_E_UNSUPPORTED: it would have no effect on this buffer,
 * or the driver refused it. */
BH_API bh_status bh_managed_advise(bh_buffer buffer, uint64_t offset, uint64_t bytes,
                                   uint32_t advice);

/* ---- properties ---- */

enum {
    BH_TRACKING_NONE = 0,       /* not transparent */
    BH_TRACKING_PAGES = 1,      /* the system reports which pages were written */
    BH_TRACKING_ALL_WRITTEN = 2 /* it does not (bh_device_limits.no_tracking), or the buffer is
                                   untracked: all pages count as written */
};

typedef struct bh_managed_info {
    uint32_t size;
    uint32_t tracking; /* BH_TRACKING_... */
    uint64_t page_bytes;
    uint32_t attach; /* BH_ATTACH_... */
    uint32_t reserved;
    bh_lane lane;
    /* Now, of the whole allocation: */
    uint64_t host_newest;   /* bytes whose copy on the device is old */
    uint64_t device_newest; /* bytes whose copy on the host is old */
    uint64_t on_both;       /* bytes that are the same on both */
    uint32_t maps;          /* held */
    uint32_t lanes;         /* with moves in flight */
    /* Since it was allocated: */
    uint64_t bytes_to_device;
    uint64_t bytes_to_host;
    uint64_t moves_to_device; /* contiguous ranges */
    uint64_t moves_to_host;
    uint64_t prefetches;
} bh_managed_info;

/* Address, size and kind: bh_buffer_get_info. */
BH_API bh_status bh_managed_get_info(bh_buffer buffer, bh_managed_info *out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
