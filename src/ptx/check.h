/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a grid: which bytes a kernel may touch, and which accesses nothing keeps apart. */
#ifndef BH_PTX_CHECK_H
#define BH_PTX_CHECK_H

#include "ptx/exec.h"

/*
 * Time. All blocks of a checked grid run on one thread, so there is one clock: a count that goes up
 * whenever threads synchronise. An access is marked with the time it happened at. What a thread
 * knows of another is a time too: everything that the other did up to then comes before what this
 * one does now. Times only ever grow, also from grid to grid, so whatever is left of earlier blocks
 * is told by its age and never has to be cleared.
 */

enum { /* how an access is made; what instructions carry in their `how` */
       HOW_ACQUIRE = 1,
       HOW_RELEASE = 2,
       HOW_STRONG = 4,   /* atomic, relaxed, acquire, release */
       HOW_VOLATILE = 8, /* strong between warps; within one it orders nothing */
       HOW_CTA = 16,     /* strong within a block only */
       HOW_ATOMIC = 32,
       HOW_WRITE = 64
};

typedef struct bh__check_mark { /* an access that happened */
    uint64_t time : 46;         /* 0: none */
    uint64_t thread : 10;       /* of the block */
    uint64_t how : 8;
    uint32_t block; /* of the grid */
    uint32_t code;  /* index in module->code */
} bh__check_mark;

/* The last write, and reads since then: two, so that one of them is by another thread than the next
 * to write. */
typedef struct bh__check_cell {
    bh__check_mark write, reads[2];
} bh__check_cell;

#define PAGE_SHIFT 8 /* a page of cells stands for 256 bytes */
#define PAGE_BYTES (1u << PAGE_SHIFT)

/* Cells stand for four bytes each until somebody accesses less. */
typedef struct bh__check_page {
    uint64_t base;
    struct bh__check_page *next; /* in the bucket */
    bool fine;                   /* one cell a byte */
    bh__check_cell *cells;
} bh__check_page;

/* What fences of a block have published: everything that a thread did up to the latest of these. */
typedef struct bh__check_published {
    uint64_t all, warp[LANES], thread[LANES * LANES];
} bh__check_published;

/* Who knows what in one block. */
struct bh__check_block {
    uint64_t began;
    uint32_t index; /* of the block in the grid */
    uint64_t all;   /* everybody knows everything up to here: the last barrier of the whole block */
    uint64_t acquired_all;
    uint64_t whole[LANES];            /* the same for the lanes of each warp */
    uint64_t warps[LANES][LANES];     /* what a warp knows of another */
    uint64_t (*lanes)[LANES][LANES];  /* what a lane knows of another of its warp */
    uint32_t lane_warps;              /* warps there is room for in `lanes` */
    uint64_t acquired[LANES * LANES]; /* when a thread last saw what others may have published */
    uint64_t touched[LANES * LANES];  /* its last plain access to global memory */
    bool fenced;
    bh__check_published in_block, in_grid;
    uint32_t arrivals[BARRIERS]; /* warps that arrived at a barrier and did not wait */
    uint64_t arrived_at[BARRIERS][LANES];
    bh__check_page **pages; /* of shared memory */
    uint32_t page_count;
    struct bh__check_block *next; /* of those that run */
};

/* What is left of a block that has ended and had executed fences. */
typedef struct bh__check_ended {
    uint32_t block;
    uint32_t count; /* of `list`; 0: everything it did was published */
    struct bh__check_ended *next;
    struct {
        uint32_t thread;
        uint64_t time;
    } list[];
} bh__check_ended;

#define CHECK_BUCKETS 4096

struct bh__ptx_check {
    uint64_t now, began;      /* `began`: the present grid */
    bh__check_page **buckets; /* of global memory */
    uint32_t bucket_count, page_count;
    bh__check_page *last;
    bh__check_ended *ended[CHECK_BUCKETS];
    bh__check_block *running;
    const bh__ptx_range *range; /* that the last access to global memory fell into */
    bool starved;               /* there was no memory for something */
};

/* check_sync.c: threads that meet. */
void bh__check_warp_met(bh__ptx_exec *x, bh__ptx_warp *warp, uint32_t members);
void bh__check_fence(bh__ptx_exec *x, uint32_t mask, bool grid);
void bh__check_acquire(bh__ptx_exec *x, unsigned lane);
void bh__check_arrived(bh__ptx_exec *x, unsigned barrier);
/* A barrier is met; the lanes that waited there are still marked so. False: a fault. */
bool bh__check_barrier(bh__ptx_block *block, unsigned barrier);
bool bh__check_block_begin(bh__ptx_block *block);
void bh__check_block_end(bh__ptx_block *block);
/* Whether a marked access comes before what `thread` of the block does now. */
bool bh__check_ordered(const bh__ptx_check *check, const bh__check_block *block, unsigned thread,
                       const bh__check_mark *mark);

/* check_race.c */
typedef struct bh__check_access {
    unsigned lane;
    bh__ptx_space space;
    uint64_t address;
    unsigned bytes;
    uint8_t how;
    const void *value; /* that is to be written, where it is known */
    uint8_t *at;       /* filled in: where it is */
    uint64_t home;     /* filled in: what it is known by */
    bool shared;       /* filled in */
} bh__check_access;

bool bh__check_race(bh__ptx_exec *x, const bh__check_access *access);

/* check_memory.c: checks one lane's access, in every respect. False: a fault is recorded. */
bool bh__check_access_lane(bh__ptx_exec *x, bh__check_access *access);

#endif
