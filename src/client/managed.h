/* SPDX-License-Identifier: Apache-2.0 */
/* Managed buffers: what the files behind bh_managed_... share. The protocol is written down in
 * docs/architecture.md. */
#ifndef BH_CLIENT_MANAGED_H
#define BH_CLIENT_MANAGED_H

#include "client/internal.h"

/* A set of pages. */
typedef struct bh__pages {
    uint64_t *words; /* Owned. */
    uint64_t set;    /* how many are in it */
} bh__pages;

typedef struct bh__map {
    struct bh__map *next;
    uint64_t offset, bytes;
    uint32_t flags;
} bh__map;

/* The host copy of a managed buffer as the program sees it. It outlives the device while maps are
 * held. Under the registry's lock; `maps` is also only changed with the device locked while there is
 * one, so that either lock is enough to look at it. */
typedef struct bh__mirror {
    struct bh__mirror *next;
    uint8_t *pointer;
    uint64_t bytes;              /* whole pages */
    uint64_t device;             /* its handle */
    struct bh__managed *managed; /* NULL: the buffer is gone */
    bh__map *maps;               /* Owned. */
    uint32_t references;         /* the buffer, maps, calls under way */
    int tracker;                 /* Owned: the userfaultfd; -1: none */
} bh__mirror;

enum {
    BH__ADVICE_READ_MOSTLY,
    BH__ADVICE_PREFER_DEVICE,
    BH__ADVICE_PREFER_HOST,
    BH__ADVICE_BY_DEVICE,
    BH__ADVICE_BY_HOST,
    BH__ADVICES
};

typedef struct bh__spans {
    bh__span *list; /* Owned. */
    uint32_t count, capacity;
} bh__spans;

/* With the device locked. A page is in `host_newest`, in `device_newest`, or in neither: then both
 * copies are good, or will be when the moves under way are done. */
typedef struct bh__managed {
    struct bh__managed *next, *previous; /* in the device's list */
    bh__memory *memory;                  /* Borrowed: it owns this. */
    bh__memory *host;                    /* Owned: the host copy, as requests name it */
    bh__mirror *mirror;                  /* Retained. */
    uint64_t pages, page_bytes;
    bh__pages host_newest, device_newest;
    bh__pages homing; /* sent home since nothing was last on its way there */
    uint32_t flags, tracking;
    uint32_t attach;
    bh_lane lane;     /* BH_ATTACH_LANE */
    uint64_t lane_id; /* and what tickets call it */
    bh__spans advice[BH__ADVICES];
    /* Transparent: the last request of each lane that wrote it and whose results were not brought home
     * for whoever asks for its ticket. 0: none. */
    uint64_t unhomed[BH__MAX_LANES];
    uint32_t unhomed_count;
    bh__job *farewell;     /* Owned until it is used: has workers unmap the host copy */
    bh_managed_info tally; /* the counts of it */
} bh__managed;

/* A managed buffer on the driver's own memory, of which each worker has its own. */
typedef struct bh__driven {
    struct bh__driven *next,
        *previous;                 /* in the device's list; `listed` says whether it is there */
    bh__memory *memory;            /* Borrowed: it owns this. */
    uint64_t addresses[BH__AREAS]; /* where the worker with this area has it */
    bh__spans advice[BH__ADVICES];
    uint64_t prefetches;
    bool listed;
} bh__driven;

/* ---- managed_driver.c: the public calls ---- */

bh_status bh__driven_create(bh__device *device, uint64_t bytes, const bh_managed_options *options,
                            bh__memory **out);
/* What maps and attaching say. */
bh_status bh__driven_refuse_host(const bh__memory *memory, const char *what);
bh_status bh__driven_prefetch(bh__device *device, bh_buffer handle, uint64_t offset, uint64_t bytes,
                              uint32_t where, bh_lane lane, bh_ticket *out);
bh_status bh__driven_advise(bh__device *device, const bh__buffer *buffer, uint64_t offset,
                            uint64_t bytes, uint32_t advice);
void bh__driven_query(const bh__buffer *buffer, bh_managed_info *info);

/* ---- managed_pages.c ---- */

bool bh__pages_make(bh__pages *pages, uint64_t count);
void bh__pages_free(bh__pages *pages);
void bh__pages_add(bh__pages *pages, uint64_t from, uint64_t to);
void bh__pages_remove(bh__pages *pages, uint64_t from, uint64_t to);
/* The first run of pages in the set within [from, to). False: there is none. */
bool bh__pages_next(const bh__pages *pages, uint64_t from, uint64_t to, uint64_t *out_from,
                    uint64_t *out_to);
static inline bool bh__pages_has(const bh__pages *pages, uint64_t page) {
    return pages->words[page / 64] >> (page % 64) & 1;
}

/* ---- managed.c ---- */

/* Notes advice for a range. False: no host memory. */
bool bh__advice_note(bh__spans *advice, uint32_t which, uint64_t offset, uint64_t bytes);
/* What holds for a byte: BH_ADVICE_... */
uint32_t bh__advice_at(const bh__spans *advice, uint64_t offset);

/* The pages that bytes lie in. */
static inline uint64_t bh__page_from(const bh__managed *self, uint64_t offset) {
    return offset / self->page_bytes;
}
static inline uint64_t bh__page_to(const bh__managed *self, uint64_t end) {
    return (end + self->page_bytes - 1) / self->page_bytes;
}

/* Locks the device of a managed buffer, finds it and checks that the range lies in it. NULL with
 * nothing locked and the thread's error set. */
bh__buffer *bh__managed_lock(bh_buffer handle, const char *what, uint64_t offset, uint64_t bytes,
                             bh__device **out);
/* The same with the device locked already. */
bh__buffer *bh__managed_get(bh__device *device, bh_buffer handle, const char *what, uint64_t offset,
                            uint64_t bytes);
/* Whether `device` is zero or the buffer's. */
bh_status bh__managed_check_device(const bh__device *owner, bh_device device, const char *what);
/* The lane for a move of these bytes that nobody chose a lane for: where it waits for nobody else's
 * work, and keeps nobody's waiting. `upload`: it writes them on the device. */
bh__lane *bh__managed_lane(bh__device *device, const bh__managed *self, uint64_t offset,
                           uint64_t bytes, bool upload);

/* The registry: mirrors of all devices. */
void bh__mirror_lock(void);
void bh__mirror_unlock(void);
/* With the registry locked. NULL: none has this byte. */
bh__mirror *bh__mirror_find(const void *pointer);
/* Drops one reference. Without the registry's lock. */
void bh__mirror_release(bh__mirror *mirror);

/* ---- managed_map.c ---- */

/* Lets go of the device's lock for a moment, to wait for what nobody is woken by. */

/* ---- managed_track.c: which pages did the program write ---- */

/* Has the system note writes to the mirror from now on. False: it cannot, the thread's error says
 * why. */
bool bh__track_begin(bh__mirror *mirror);
/* Calls `found` for each run of bytes written since the last time, within [from, to), and forgets
 * them. False: it cannot be told. */
bool bh__track_collect(bh__mirror *mirror, uint64_t from, uint64_t to,
                       void (*found)(void *context, uint64_t from, uint64_t to), void *context);

/* ---- managed_move.c: what moves when ---- */

/* Adds what the program wrote to `host_newest`. */
void bh__managed_collect(bh__device *device, bh__managed *self, uint64_t from, uint64_t to);
/* Sends pages of [from, to) that are newest here to the device, or those that are newest there home, on
 * this lane. As bh__submit: with *out_retry the lock was let go. */
bh_status bh__managed_upload(bh__device *device, bh__managed *self, bh__lane *lane, uint64_t from,
                             uint64_t to, bool no_block, bool *out_retry);
bh_status bh__managed_download(bh__device *device, bh__managed *self, bh__lane *lane, uint64_t from,
                               uint64_t to, bool no_block, bool *out_retry);
/* Whether bytes of [from, to) are advised so. */
bool bh__managed_advised(const bh__managed *self, uint32_t advice, uint32_t other, uint64_t from,
                         uint64_t to);
/* Nothing is on its way home, or not to these pages any more. */
void bh__managed_arrived(bh__managed *self, uint64_t from, uint64_t to);
/* The lane and position of a move under way, that writes or (if asked for) reads bytes of the host
 * copy. False: there is none. */
bool bh__managed_moving(bh__device *device, const bh__managed *self, uint64_t offset,
                        uint64_t bytes, bool reads, bh__lane **out_lane, uint64_t *out_position);

#endif
