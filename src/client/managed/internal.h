/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed buffers: what the files of this room share. A managed buffer has a copy on the device and
 * a mirror: the copy in host memory, at the same address. docs/architecture/client/managed.md says
 * how they work.
 */
#ifndef BH_CLIENT_MANAGED_INTERNAL_H
#define BH_CLIENT_MANAGED_INTERNAL_H

#include "client/core/device.h"

/* A set of pages. */
typedef struct bh__pages {
    uint64_t *words; /* Owned. */
    uint64_t set;    /* number of pages in the set */
} bh__pages;

/* A range of the mirror that the program has mapped with bh_managed_map. */
typedef struct bh__map {
    struct bh__map *next;
    uint64_t offset, bytes;
    uint32_t flags;
} bh__map;

/* The mirror of a managed buffer as the program sees it. While maps are held it outlives the
 * device. Protected by the registry's lock. While the device is open, `maps` is changed only with
 * both locks held, so either lock is enough to read it. */
typedef struct bh__mirror {
    struct bh__mirror *next;
    uint8_t *pointer;
    uint64_t bytes;       /* whole pages */
    uint64_t device;      /* the device's handle */
    bh__managed *managed; /* NULL: the buffer was freed */
    bh__map *maps;        /* Owned. */
    uint32_t references;  /* the buffer, maps, calls in progress */
    int tracker;          /* Owned: the userfaultfd; -1: none */
} bh__mirror;

/* Kinds of advice: advice[i] of a buffer has the ranges for which BH_ADVISE_... bit i is set. */
enum { BH__ADVICES = 5, BH__ADVICE_BITS = (1 << BH__ADVICES) - 1 };

typedef struct bh__spans {
    bh__span *list; /* Owned. */
    uint32_t count, capacity;
} bh__spans;

/* Requests of one lane, see writers.c. All zero: none. */
typedef struct bh__writers {
    uint64_t first, last; /* positions */
    bh__run *gaps;        /* Owned. In order. */
    uint32_t gap_count, capacity;
} bh__writers;

/* Protected by the device's lock. A page is in `host_newest`, in `device_newest`, or in neither:
 * then both copies are current, or will be when the moves in flight complete. */
struct bh__managed {
    bh__managed *next, *previous; /* in the device's list */
    bh__memory *memory;           /* Borrowed: it owns this. */
    bh__memory *host;             /* Owned: the mirror, as requests name it */
    bh__mirror *mirror;           /* Retained. */
    uint64_t pages, page_bytes;
    bh__pages host_newest, device_newest;
    bh__pages writing_back; /* write-back was submitted and is not known to be complete */
    bh__pages in_part;      /* of those that are device newest: with suspect bytes, and the host has
                               the others, or will have them when the moves in flight complete */
    uint32_t flags, tracking;
    bool fetching; /* a thread copies pages of a stopped device into the mirror: others wait */
    uint32_t attach;
    bh_lane lane;     /* BH_ATTACH_LANE */
    uint64_t lane_id; /* of that lane, as in tickets */
    bh__spans advice[BH__ADVICES];
    /* Transparent: for each lane, the requests that write the buffer and whose results are not
     * written back. The first and the last of them have not failed. */
    bh__writers to_write_back[BH__MAX_LANES];
    /* The program knows of results that are not written back, because other requests were to write
     * the buffer: the write-back was left to those. Their lanes, one bit each. */
    uint64_t owed;
    uint32_t to_write_back_count; /* lanes with such requests, plus 1 if any are owed */
    bh__job *unmap_job;           /* Owned until posted: makes workers unmap the mirror */
    bh_managed_info tally;        /* only its counters are used */
};

/* A buffer in memory that the driver manages. Each worker allocates its own. */
struct bh__driver_managed {
    bh__driver_managed *next, *previous; /* in the device's list, if `listed` */
    bh__memory *memory;                  /* Borrowed: it owns this. */
    uint64_t addresses[BH__AREAS];       /* in the worker with this area */
    bh__spans advice[BH__ADVICES];
    uint64_t prefetches;
    uint64_t align; /* of each address */
    bool listed;
};

/* ---- driver_managed.c: the public calls for driver-managed buffers ---- */

bh_status bh__driver_managed_create(bh__device *device, uint64_t bytes, uint64_t align,
                                    bh__memory **out);
/* The error of calls that need a mirror: there is none. */
bh_status bh__driver_managed_refuse_host(const bh__memory *memory, const char *what);
bh_status bh__driver_managed_prefetch(bh__device *device, bh_buffer handle, uint64_t offset,
                                      uint64_t bytes, uint32_t where,
                                      const bh_submit_options *options, bh_ticket *out);
bh_status bh__driver_managed_advise(bh__device *device, const bh__buffer *buffer, uint64_t offset,
                                    uint64_t bytes, uint32_t advice);
void bh__driver_managed_query(const bh__buffer *buffer, bh_managed_info *info);

/* ---- pages.c ---- */

bool bh__pages_make(bh__pages *pages, uint64_t count);
void bh__pages_free(bh__pages *pages);
void bh__pages_add(bh__pages *pages, uint64_t from, uint64_t to);
void bh__pages_remove(bh__pages *pages, uint64_t from, uint64_t to);
/* The first run of pages of [from, to) that are in the set. False: none is. */
bool bh__pages_next(const bh__pages *pages, uint64_t from, uint64_t to, uint64_t *out_from,
                    uint64_t *out_to);
static inline bool bh__pages_has(const bh__pages *pages, uint64_t page) {
    return pages->words[page / 64] >> (page % 64) & 1;
}

/* ---- managed.c ---- */

/* Records advice for a range: the kinds in `changed` become as `bits` says. False: no host
 * memory. */
bool bh__advice_note(bh__spans *advice, uint32_t bits, uint32_t changed, uint64_t offset,
                     uint64_t bytes);
/* Returns true if any byte of the range has this advice, one bit. */
bool bh__advice_has(const bh__spans *advice, uint32_t bit, uint64_t offset, uint64_t bytes);

/* The first page of a range of bytes, and the end of its last page. */
static inline uint64_t bh__page_from(const bh__managed *self, uint64_t offset) {
    return offset / self->page_bytes;
}
static inline uint64_t bh__page_to(const bh__managed *self, uint64_t end) {
    return (end + self->page_bytes - 1) / self->page_bytes;
}
/* Where the bytes of pages up to `page` end. */
static inline uint64_t bh__page_end(const bh__managed *self, uint64_t page) {
    uint64_t end = page * self->page_bytes;
    return end < self->memory->bytes ? end : self->memory->bytes;
}

/* Locks the device of a managed buffer, finds it and checks that the range lies in it. NULL:
 * nothing is locked and the thread's error is set. */
bh__buffer *bh__managed_lock(bh_buffer handle, const char *what, uint64_t offset, uint64_t bytes,
                             bh__device **out);
/* The same with the device locked already. */
bh__buffer *bh__managed_get(bh__device *device, bh_buffer handle, const char *what, uint64_t offset,
                            uint64_t bytes);
/* The same, once no transfer in several requests uses these bytes (in whole pages): a map or an
 * attachment between its requests would refuse the rest of them. The lock may be released
 * meanwhile. `wait` false: BH_E_BUSY instead. */
bh__buffer *bh__managed_unleased(bh__device *device, bh_buffer handle, const char *what,
                                 uint64_t offset, uint64_t bytes, uint32_t access, bool wait);
/* Chooses a lane for a move of these bytes. On it the move waits for no unrelated work and delays
 * none. `upload`: the move writes the device's copy. */
bh__lane *bh__managed_lane(bh__device *device, const bh__managed *self, uint64_t offset,
                           uint64_t bytes, bool upload);

/* The registry has the mirrors of all devices. */
void bh__mirror_lock(void);
void bh__mirror_unlock(void);
/* With the registry locked. NULL: the pointer is in no mirror. */
bh__mirror *bh__mirror_find(const void *pointer);
/* Drops one reference. Without the registry's lock. */
void bh__mirror_release(bh__mirror *mirror);

/* ---- parts.c ---- */

/* The first run of bytes of [from, to) that are intact: not in doubt, and no request in flight on a
 * lost worker may have written them. False: there is none. */
bool bh__managed_intact(bh__device *device, const bh__managed *self, uint64_t from, uint64_t to,
                        uint64_t *out_from, uint64_t *out_to);

/* ---- writers.c ---- */

/* The request that ends at `position` is one of them. Those that end after the last one and up to
 * `before` are not, or nobody has their tickets. */
void bh__writers_add(bh__writers *self, uint64_t before, uint64_t position);
/* Leaves those from `first` to `last`, of which there are some. */
void bh__writers_keep(bh__writers *self, uint64_t first, uint64_t last);
void bh__writers_forget(bh__writers *self);
/* Fills in the runs that they are, gap_count + 1, and returns their number. There are some. */
uint32_t bh__writers_runs(const bh__writers *self, bh__run *out);

/* ---- track.c: which pages the program wrote ---- */

/* Makes the kernel record writes to the mirror from now on. False: not supported; the thread's
 * error says why. */
bool bh__track_begin(bh__mirror *mirror);
/* Calls `found` for each run of bytes in [from, to) that was written since the last call, and
 * resets the record. False: it could not be read. */
bool bh__track_collect(bh__mirror *mirror, uint64_t from, uint64_t to,
                       void (*found)(void *context, uint64_t from, uint64_t to), void *context);

/* ---- move.c: which pages move, and when ---- */

/* Adds the pages of [from, to) that the program wrote to `host_newest`. */
void bh__managed_collect(bh__device *device, bh__managed *self, uint64_t from, uint64_t to);
/* Submits moves of pages of [from, to) on this lane: those of `host_newest` to the device, or those
 * of `device_newest` to the host. As in bh__submit, *out_retry means that the lock was released. */
bh_status bh__managed_upload(bh__device *device, bh__managed *self, bh__lane *lane, uint64_t from,
                             uint64_t to, bool no_block, bool *out_retry);
bh_status bh__managed_download(bh__device *device, bh__managed *self, bh__lane *lane, uint64_t from,
                               uint64_t to, bool no_block, bool *out_retry);
/* ---- stopped.c: devices whose workers have ended ---- */

/* Copies the pages of [from, to) that are device newest and intact to the host, one thread at a
 * time. Releases the lock meanwhile; the caller has retained the memory. */
bh_status bh__managed_fetch(bh__device *device, bh__managed *self, uint64_t from, uint64_t to);

/* No write-back of these pages is in flight any more. */
void bh__managed_written_back(bh__managed *self, uint64_t from, uint64_t to);
/* Finds a move in flight that writes these bytes of the mirror or, with `reads`, reads them. False:
 * there is none. */
bool bh__managed_moving(bh__device *device, const bh__managed *self, uint64_t offset,
                        uint64_t bytes, bool reads, bh__lane **out_lane, uint64_t *out_position);

#endif
