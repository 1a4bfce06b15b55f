/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a grid: accesses out of bounds, reads of uninitialised memory, and data races. */
#ifndef BH_PTX_CHECK_H
#define BH_PTX_CHECK_H

#include "ptx/exec.h"

/*
 * Race detection uses happens-before order and one logical clock: all blocks of a checked grid run
 * on one host thread, and the clock is incremented whenever threads synchronise. Each access is
 * recorded with its time. For each pair of threads there is a time up to which the accesses of one
 * happen before what the other does now. Times never decrease, not even from grid to grid, so
 * records of earlier blocks are recognised by their time and need not be cleared.
 */

enum { /* `flags` of an access and of its record */
       ACCESS_ACQUIRE = 1,
       ACCESS_RELEASE = 2,
       ACCESS_STRONG = 4,   /* atomic, relaxed, acquire, release */
       ACCESS_VOLATILE = 8, /* strong between warps; orders nothing within one */
       ACCESS_CTA = 16,     /* strong within a block only */
       ACCESS_ATOMIC = 32,
       ACCESS_WRITE = 64
};

typedef struct bh__check_record { /* the record of an access */
    uint64_t time : 46;           /* 0: no access */
    uint64_t thread : 10;         /* of the block */
    uint64_t flags : 8;
    uint32_t block; /* of the grid */
    uint32_t code;  /* index in module->code */
} bh__check_record;

/* The last write and two reads since then. Two, so that at least one of them is from another thread
 * than the next write. */
typedef struct bh__check_cell {
    bh__check_record write, reads[2];
} bh__check_cell;

#define PAGE_SHIFT 8 /* a page of cells describes 256 bytes */
#define PAGE_BYTES (1u << PAGE_SHIFT)

/* A cell describes four bytes, until a smaller access splits the page into cells of one byte. */
typedef struct bh__check_page {
    uint64_t base;
    struct bh__check_page *next; /* in the bucket */
    bool fine;                   /* one cell per byte */
    bh__check_cell *cells;
} bh__check_page;

/* Times up to which fences published accesses: of all threads, of each warp, of each thread. The
 * latest that applies to a thread counts. */
typedef struct bh__check_published {
    uint64_t all, warp[LANES], thread[LANES * LANES];
} bh__check_published;

/* The happens-before times of one block. */
struct bh__check_block {
    uint64_t began;
    uint32_t index; /* of the block in the grid */
    uint64_t all;   /* the last barrier of the whole block */
    uint64_t acquired_all;
    uint64_t whole[LANES];        /* the last barrier of the whole warp */
    uint64_t warps[LANES][LANES]; /* [w][v]: what v did up to then happens before what w does now */
    uint64_t (*lanes)[LANES][LANES];  /* the same for the lanes of a warp */
    uint32_t lane_warps;              /* capacity of `lanes`, in warps */
    uint64_t acquired[LANES * LANES]; /* the last acquire of each thread */
    uint64_t touched[LANES * LANES];  /* the last plain access of each thread to global memory */
    bool fenced;
    bh__check_published in_block, in_grid;
    uint32_t arrivals[BARRIERS]; /* warps that arrived at a barrier without waiting */
    uint64_t arrived_at[BARRIERS][LANES];
    bh__check_page **pages; /* of shared memory */
    uint32_t page_count;
    struct bh__check_block *next; /* in the list of running blocks */
};

/* What fences published, kept for a block that has ended. */
typedef struct bh__check_ended {
    uint32_t block;
    uint32_t count; /* of `list`; 0: all accesses of the block were published */
    struct bh__check_ended *next;
    struct {
        uint32_t thread;
        uint64_t time;
    } list[];
} bh__check_ended;

#define CHECK_BUCKETS 4096

struct bh__ptx_check {
    uint64_t now, began;      /* `began`: when the current grid began */
    bh__check_page **buckets; /* of global memory */
    uint32_t bucket_count, page_count;
    bh__check_page *last;
    bh__check_ended *ended[CHECK_BUCKETS];
    bh__check_block *running;
    const bh__ptx_range *range; /* of the last access to global memory */
    bool out_of_memory;         /* an allocation failed, so accesses went unchecked */
};

/* check_sync.c: synchronisation of threads. */
void bh__check_warp_sync(bh__ptx_exec *x, bh__ptx_warp *warp, uint32_t members);
void bh__check_fence(bh__ptx_exec *x, uint32_t mask, bool grid);
void bh__check_acquire(bh__ptx_exec *x, unsigned lane);
void bh__check_arrived(bh__ptx_exec *x, unsigned barrier);
/* A barrier has completed; its lanes are still marked as waiting. False: a fault was recorded. */
bool bh__check_barrier(bh__ptx_block *block, unsigned barrier);
bool bh__check_block_begin(bh__ptx_block *block);
void bh__check_block_end(bh__ptx_block *block);
/* Returns true if a recorded access happens before what `thread` of the block does now. */
bool bh__check_ordered(const bh__ptx_check *check, const bh__check_block *block, unsigned thread,
                       const bh__check_record *record);

/* check_race.c */
typedef struct bh__check_access {
    unsigned lane;
    bh__ptx_space space;
    uint64_t address;
    unsigned bytes;
    uint8_t flags;
    const void *value;  /* to be written, or NULL if not known */
    uint8_t *at;        /* filled in: the memory accessed */
    uint64_t canonical; /* filled in: the address that identifies the memory */
    bool shared;        /* filled in */
} bh__check_access;

bool bh__check_race(bh__ptx_exec *x, const bh__check_access *access);

/* check_memory.c: runs all checks on the access of one lane. False: a fault was recorded. */
bool bh__check_access_lane(bh__ptx_exec *x, bh__check_access *access);

#endif
