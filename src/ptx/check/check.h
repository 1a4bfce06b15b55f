/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a grid: accesses out of bounds, reads of unwritten memory, data races, misuse of warps
 * and barriers. */
#ifndef BH_PTX_CHECK_CHECK_H
#define BH_PTX_CHECK_CHECK_H

#include <pthread.h>

#include "ptx/run/exec.h"

/*
 * Race detection uses happens-before order and one logical clock for all blocks, which is
 * incremented whenever threads synchronise. Each access is recorded with its time. For each pair of
 * threads there is a time up to which the accesses of one happen before what the other does now.
 * Times never decrease, not even from grid to grid, so records of earlier blocks are recognised by
 * their time and need not be cleared.
 *
 * Blocks may run on several threads. A block's own state is used by its thread only. Cells of
 * global memory are used under the lock of their page, what blocks know of each other and the
 * findings under the lock of the check.
 */

enum { /* `flags` of an access and of its record */
       ACCESS_ACQUIRE = 1,
       ACCESS_RELEASE = 2,
       ACCESS_STRONG = 4,   /* atomic, relaxed, acquire, release */
       ACCESS_VOLATILE = 8, /* strong between warps; orders nothing within one */
       ACCESS_CTA = 16,     /* strong within a block only */
       ACCESS_ATOMIC = 32,
       ACCESS_WRITE = 64,
       ACCESS_CLUSTER = 128 /* strong within a cluster; never in a record */
};

/* ---- records of accesses: cells.c ---- */

/* An instruction of a warp. Each accesses memory many times, so records refer to it by number. */
typedef struct bh__check_site {
    uint32_t block; /* of the grid */
    uint32_t code;  /* index in module->code */
    uint8_t warp, flags;
} bh__check_site;

/* The record of an access: time since `base` of the check, number of the site, lane. 0: none. */
typedef uint64_t bh__check_record;
#define RECORD_TIME_SHIFT 32
#define RECORD_SITE_SHIFT 5
#define RECORD_LANE(r)    ((unsigned)((r)&31))
#define RECORD_SITE(r)    ((uint32_t)(r) >> RECORD_SITE_SHIFT)

/* The last write and two reads since then. Two, so that at least one of them is from another thread
 * than the next write. */
typedef struct bh__check_cell {
    bh__check_record write, reads[2];
} bh__check_cell;

#define PAGE_SHIFT 12 /* a page of cells describes 4096 bytes */
#define PAGE_BYTES (1u << PAGE_SHIFT)

/* A cell describes four bytes, until a smaller access splits the page into cells of one byte. */
typedef struct bh__check_page {
    uint64_t base;
    struct bh__check_page *next; /* in the bucket */
    atomic_flag lock;
    bool fine; /* one cell per byte */
    bh__check_cell *cells;
} bh__check_page;

#define CHECK_BUCKETS 16384
#define SITES_SHIFT   14 /* sites are allocated in pieces of so many */
#define SITE_PIECES   (1u << (32 - RECORD_SITE_SHIFT - SITES_SHIFT))
#define PAGE_CACHE    64

/* Numbers of sites are given out in groups of so many, beginning with the second group. */
#define CHECK_FIRST_SITE 256

/* ---- what threads know of each other: sync.c ---- */

/* Times up to which fences published accesses: of all threads, of each warp, of each thread. The
 * latest that applies to a thread counts. */
typedef struct bh__check_published {
    uint64_t all, warp[LANES], thread[LANES * LANES];
} bh__check_published;

/* A block that executed a fence for the whole grid. */
typedef struct bh__check_fenced {
    uint32_t block;
    bool everything;                /* it has ended, and all of its accesses were published */
    const bh__check_block *running; /* NULL: it has ended */
    uint64_t *times;                /* of each thread, once it has ended */
    struct bh__check_fenced *next;
} bh__check_fenced;

/* A copy that was begun with cp.async and not waited for yet. */
typedef struct bh__check_copy {
    uint32_t address, bytes; /* of shared memory */
    uint32_t code, group;    /* group: of its thread; UINT32_MAX: not committed yet */
    uint16_t thread;
} bh__check_copy;

/* Marks of the local memory of a warp: one for each byte, lane after lane. */
typedef struct bh__check_local {
    uint8_t *marks;
    uint32_t stride, used;
} bh__check_local;

/* Values of marks. Others: bits of the byte that are defined, of which not all are. */
enum { MARK_NONE, MARK_WRITTEN, MARK_COPYING = 0xaa };

/* The undefined bits of a byte as a mark, and back. That bit 0 alone is defined is written as 255,
 * because 1 means all; MARK_COPYING, four bits in turn, counts as all. */
static inline uint8_t bh__check_mark_of(uint8_t undefined) {
    uint8_t defined = (uint8_t)~undefined;
    return undefined == 0xff                           ? MARK_NONE
           : undefined == 0 || defined == MARK_COPYING ? MARK_WRITTEN
           : defined == 1                              ? 0xff
                                                       : defined;
}
static inline uint8_t bh__check_undefined_of(uint8_t mark) {
    return mark == MARK_NONE                              ? 0xff
           : mark == MARK_WRITTEN || mark == MARK_COPYING ? 0
           : mark == 0xff                                 ? 0xfe
                                                          : (uint8_t)~mark;
}

/* The state of one block. */
struct bh__check_block {
    uint64_t owner, grid, base; /* the check that the state is of, when its grid began, its base */
    uint32_t threads;
    uint64_t began;
    uint64_t accessed;            /* when the block last accessed memory */
    uint32_t index;               /* of the block in the grid */
    uint64_t all;                 /* the last barrier of the whole block */
    uint64_t whole[LANES];        /* the last barrier of the whole warp */
    uint64_t warps[LANES][LANES]; /* [w][v]: what v did up to then happens before what w does now */
    uint64_t (*lanes)[LANES][LANES]; /* the same for the lanes of a warp */
    uint32_t lane_warps;             /* capacity of `lanes`, in warps */
    /* The last acquire of each thread: of any scope, and of one that includes other blocks. */
    uint64_t acquired[LANES * LANES], acquired_wide[LANES * LANES];
    uint64_t acquired_all, acquired_wide_all;
    uint64_t touched[LANES]; /* the last plain access of each warp to global memory */
    bh__check_published in_block, in_grid;
    bh__check_fenced *fenced;    /* NULL: no fence for the grid yet */
    uint32_t arrivals[BARRIERS]; /* warps that arrived at a barrier without waiting */
    uint64_t arrived_at[BARRIERS][LANES];

    bh__check_page **pages; /* of shared memory */
    uint32_t page_count;
    uint8_t *shared_marks;
    uint32_t shared_capacity;
    bh__check_local locals[LANES];
    bh__check_copy *copies;
    size_t copy_count, copy_capacity;
    uint32_t groups[LANES * LANES];   /* cp.async groups that each thread committed */
    struct bh__check_origin *origins; /* ORIGINS of them, or NULL: see values.h */
    uint32_t origin_count;
    uint8_t *used; /* by code: of a load, whether anything reads its result; see values.c */
    size_t used_capacity;
    const bh__ptx_module *used_of;

    /* Caches. */
    const bh__ptx_range *range; /* of the last access to global memory */
    bh__check_page *recent[PAGE_CACHE];
    uint32_t *site_of; /* by warp, then by twice the index of the code, plus 1 for a write */
    size_t site_capacity, site_stride;
    uint32_t site_next, site_end; /* numbers that are reserved for this block's thread */
};

/* ---- the state of a grid ---- */

struct bh__ptx_check {
    uint64_t id; /* different from that of every other */
    _Atomic uint64_t now;
    uint64_t began;          /* when the current grid began */
    uint64_t base;           /* that times of records count from */
    _Atomic bool incomplete; /* accesses went unchecked: no memory, or too much time */
    _Atomic bool over;       /* enough was found */
    _Atomic(bh__check_page *) buckets[CHECK_BUCKETS]; /* of global memory */
    _Atomic uint32_t page_count;
    _Atomic(bh__check_site *) sites[SITE_PIECES];
    _Atomic uint32_t site_count;
    pthread_mutex_t lock;
    bh__check_fenced *fenced[CHECK_BUCKETS];
    bh__ptx_finding *findings;
    char *state; /* Owned, or NULL: of the thread of the first finding */
    _Atomic uint32_t finding_count;
    uint64_t occurrences;
};

/* Whether an access or fence is strong beyond its block. */
static inline bool bh__check_wide(const bh__ptx_exec *x, uint32_t flags) {
    return !(flags & ACCESS_CTA) && (!(flags & ACCESS_CLUSTER) || x->block->cluster->count > 1);
}

static inline const bh__check_site *bh__check_site_of(const bh__ptx_check *check,
                                                      bh__check_record record) {
    uint32_t site = RECORD_SITE(record);
    return &atomic_load_explicit(&check->sites[site >> SITES_SHIFT],
                                 memory_order_acquire)[site & ((1u << SITES_SHIFT) - 1)];
}
static inline uint64_t bh__check_time_of(const bh__ptx_check *check, bh__check_record record) {
    return (record >> RECORD_TIME_SHIFT) + check->base;
}
/* Records below this were made at `time` or before. */
static inline bh__check_record bh__check_until(const bh__ptx_check *check, uint64_t time) {
    return time < check->base ? 0 : (time - check->base + 1) << RECORD_TIME_SHIFT;
}

/* The number of the current instruction's site, or 0: no memory. */
uint32_t bh__check_own_site(bh__ptx_exec *x, uint8_t flags);
/* A page, or NULL: no memory. Pages of global memory are returned locked. */
bh__check_page *bh__check_page_take(bh__ptx_exec *x, uint64_t base, bool shared);
void bh__check_page_give(bh__check_page *page, bool shared);
/* Splits the page into one cell per byte. */
bool bh__check_page_refine(bh__ptx_check *check, bh__check_page *page);
void bh__check_pages_free(bh__ptx_check *check);
void bh__check_page_free(bh__check_page *page);
void bh__check_page_clear(bh__check_page *page);
/* Global memory was allocated: accesses to what was there before are forgotten. */
void bh__check_forget(bh__ptx_exec *x, uint64_t address, uint64_t bytes);

/* ---- sync.c: synchronisation of threads ---- */

void bh__check_warp_sync(bh__ptx_exec *x, bh__ptx_warp *warp, uint32_t members);
void bh__check_fence(bh__ptx_exec *x, uint32_t mask, bool grid);
/* After an access that may acquire, or a wait that succeeded. */
void bh__check_acquire(bh__ptx_exec *x, uint32_t mask, uint8_t flags);
void bh__check_arrived(bh__ptx_exec *x, unsigned barrier);
/* A barrier has completed; its lanes are still marked as waiting. */
void bh__check_barrier(bh__ptx_block *block, unsigned barrier);
bool bh__check_block_begin(bh__ptx_block *block);
void bh__check_block_end(bh__ptx_block *block);
/* Returns true if a recorded access happens before what `thread` of the block does now. */
bool bh__check_ordered(bh__ptx_check *check, const bh__check_block *block, unsigned thread,
                       bh__check_record record);
/* The same for all accesses of the record's site at that time and all threads in `mask` of `warp`.
 * May return false where the above returns true for each. */
bool bh__check_ordered_all(bh__ptx_check *check, const bh__check_block *block, unsigned warp,
                           uint32_t mask, bh__check_record record);

/* ---- memory.c: an access of a warp ---- */

typedef struct bh__check_access {
    bh__ptx_space space;
    unsigned bytes; /* of each lane */
    uint8_t flags;
    const bh__ptx_code *store; /* an instruction that stores registers, or NULL */
    bool loads; /* registers: what of them is undefined is found when they are used */
    uint64_t address[LANES];
    uint8_t *at[LANES];        /* filled in: the memory accessed */
    uint64_t canonical[LANES]; /* filled in: the address that identifies the memory */
    uint32_t global, shared;   /* filled in: lanes that access such memory */
    uint32_t undefined;        /* filled in if `loads`: lanes that read bytes with undefined bits */
} bh__check_access;

/* Runs all checks. Returns the lanes whose access is to be made; others are out of bounds. */
uint32_t bh__check_access_lanes(bh__ptx_exec *x, bh__check_access *access, uint32_t mask);
/* The same for one lane. Returns the memory, or NULL: the access is not to be made. */
uint8_t *bh__check_access_lane(bh__ptx_exec *x, unsigned lane, bh__ptx_space space,
                               uint64_t address, unsigned bytes, unsigned flags);
/* The addresses of a load, a store or an atomic. */
void bh__check_addresses(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                         bh__check_access *access);

/* ---- race.c ---- */

/* Compares the access of the lanes with the records of earlier ones, and records it. */
void bh__check_races(bh__ptx_exec *x, const bh__check_access *access, uint32_t mask, bool shared);

/* ---- values.c: values that were read from memory which nobody wrote ---- */

/* After a load of registers: notes which of their bits are undefined. */
void bh__check_loaded(bh__ptx_exec *x, const bh__ptx_code *i, const bh__check_access *access,
                      uint32_t lanes);
/* Before a store of registers, which has set the marks: takes back those of undefined bits. */
void bh__check_stored(bh__ptx_exec *x, const bh__ptx_code *i, const bh__check_access *access,
                      uint32_t lanes);
/* The same for parameters of functions by name, `offset` bytes from the start of the frame. */
void bh__check_loaded_param(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask);
void bh__check_stored_param(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask);
/* An argument or result was copied. */
void bh__check_passed(bh__ptx_exec *from, const bh__ptx_slot *a, bh__ptx_exec *to,
                      const bh__ptx_slot *d, uint32_t mask);
/* A shuffle gave the lanes of `mask` what `from` has in row a. */
void bh__check_shuffled(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                        const uint8_t from[LANES]);

/* ---- flow.c ---- */

/* Called before each instruction while the warp has undefined bits in registers. */
void bh__check_flow(bh__ptx_exec *x, uint32_t pc, uint32_t mask);

/* ---- marks.c: reads of shared and local memory that nobody wrote; cp.async ---- */

bool bh__check_marks_begin(bh__ptx_block *block);
/* Reads must be of memory that was written; writes mark it. `offset`: of shared or local memory. */
void bh__check_shared_marks(bh__ptx_exec *x, bh__check_access *access, uint32_t mask);
void bh__check_local_marks(bh__ptx_exec *x, bh__check_access *access, unsigned lane,
                           uint64_t offset);
/* The marks of a lane's local memory, of at least `bytes` bytes, or NULL. */
uint8_t *bh__check_local_at(bh__ptx_exec *x, unsigned lane, uint64_t bytes);
/* A function is entered: its frame has never been written. */
void bh__check_frame(bh__ptx_exec *x, uint32_t mask, uint32_t stack,
                     const bh__ptx_function *function);
/* Memory was written in a way that is not checked itself. `address` is generic. */
void bh__check_written(bh__ptx_exec *x, unsigned lane, uint64_t address, uint64_t bytes);
void bh__check_copy_begun(bh__ptx_exec *x, const bh__check_access *to, uint32_t mask);
void bh__check_copy_commit(bh__ptx_exec *x, uint32_t mask);
/* Waits until at most `left` groups of each thread are not complete. */
void bh__check_copy_wait(bh__ptx_exec *x, uint32_t mask, uint32_t left, bool uncommitted);

/* ---- find.c: findings ---- */

#define NO_CODE UINT32_MAX

/* Counts what was found before: true. False: it is new, and the caller describes it with one of
 * the next. `other`: the other instruction of a race, or NO_CODE. */
bool bh__check_seen(bh__ptx_exec *x, bh__ptx_fault_kind kind, uint32_t other);
void bh__check_found(bh__ptx_exec *x, const bh__ptx_fault *fault, bh__check_record other);
/* Both, for what another instruction than the current one has done. */
bool bh__check_seen_at(bh__ptx_exec *x, bh__ptx_fault_kind kind, uint32_t code);
void bh__check_found_at(bh__ptx_exec *x, const bh__ptx_fault *fault, uint32_t code);
/* Both of the above for what is neither an access nor a race. */
void bh__check_report(bh__ptx_exec *x, bh__ptx_fault_kind kind, unsigned lane, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));
/* The same for the access of a lane. `what` is added to the text. */
void bh__check_report_access(bh__ptx_exec *x, bh__ptx_fault_kind kind, unsigned lane,
                             const bh__check_access *access, const char *what);

#endif
