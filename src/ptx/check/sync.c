/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: which threads have synchronised, and the happens-before times that follow from it. */
#include <stdlib.h>
#include <string.h>

#include "ptx/check/check.h"

enum { MAX_PAGES = 8192 };          /* kept from grid to grid */
#define MAX_AGE (UINT64_C(1) << 31) /* of records, in time; more do not fit into them */

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void raise_to(uint64_t *time, uint64_t at_least) {
    *time = later(*time, at_least);
}

/* ---- grids ---- */

bh__ptx_check *bh__ptx_check_create(void) {
    bh__ptx_check *check = calloc(1, sizeof *check);
    if (check == NULL) {
        return NULL;
    }
    check->findings = malloc(BH__PTX_FINDINGS * sizeof *check->findings);
    if (check->findings == NULL || pthread_mutex_init(&check->lock, NULL) != 0) {
        free(check->findings);
        free(check);
        return NULL;
    }
    static _Atomic uint64_t created;
    check->id = atomic_fetch_add(&created, 1) + 1;
    atomic_init(&check->now, 1);
    return check;
}

static void free_fenced(bh__ptx_check *check) {
    for (uint32_t n = 0; n < CHECK_BUCKETS; n++) {
        while (check->fenced[n] != NULL) {
            bh__check_fenced *fenced = check->fenced[n];
            check->fenced[n] = fenced->next;
            free(fenced->times);
            free(fenced);
        }
    }
}

void bh__ptx_check_destroy(bh__ptx_check *check) {
    if (check == NULL) {
        return;
    }
    bh__check_pages_free(check);
    free_fenced(check);
    for (uint32_t n = 0; n < SITE_PIECES; n++) {
        free(atomic_load(&check->sites[n]));
    }
    pthread_mutex_destroy(&check->lock);
    free(check->findings);
    free(check->state);
    free(check);
}

void bh__ptx_check_begin(bh__ptx_check *check) {
    uint64_t now = atomic_fetch_add(&check->now, 1);
    if (atomic_load(&check->page_count) > MAX_PAGES || now - check->base > MAX_AGE) {
        bh__check_pages_free(check);
        check->base = now - 1;
    }
    check->began = now;
    atomic_store(&check->site_count, CHECK_FIRST_SITE);
    atomic_store(&check->incomplete, false);
    atomic_store(&check->over, false);
    atomic_store(&check->finding_count, 0);
    check->occurrences = 0;
    free(bh__ptx_check_take_state(check));
}

bool bh__ptx_check_end(bh__ptx_check *check) {
    free_fenced(check);
    return !atomic_load(&check->incomplete);
}

/* ---- blocks ---- */

static uint32_t index_in_grid(const bh__ptx_block *b) {
    const uint32_t *grid = b->x.grid->grid;
    return (uint32_t)(b->id[0] + (uint64_t)grid[0] * (b->id[1] + (uint64_t)grid[1] * b->id[2]));
}

static bool room_for_shared(bh__check_block *c, uint32_t bytes) {
    uint32_t count = (bytes + PAGE_BYTES - 1) >> PAGE_SHIFT;
    if (count <= c->page_count) {
        return true;
    }
    bh__check_page **pages = realloc(c->pages, count * sizeof *pages);
    if (pages == NULL) {
        return false;
    }
    memset(pages + c->page_count, 0, (count - c->page_count) * sizeof *pages);
    c->pages = pages;
    c->page_count = count;
    return true;
}

static bool room_for_lanes(bh__check_block *c, uint32_t warps) {
    if (c->lane_warps < warps) {
        free(c->lanes);
        c->lanes = calloc(warps, sizeof *c->lanes);
        c->lane_warps = c->lanes == NULL ? 0 : warps;
    }
    return c->lane_warps >= warps;
}

static void clear_shared(bh__check_block *c) {
    for (uint32_t n = 0; n < c->page_count; n++) {
        if (c->pages[n] != NULL) {
            bh__check_page_clear(c->pages[n]);
        }
    }
}

/* Times of another check mean nothing in this one. */
static void forget_times(bh__check_block *c) {
    memset(c->whole, 0, sizeof c->whole);
    memset(c->warps, 0, sizeof c->warps);
    memset(c->lanes, 0, c->lane_warps * sizeof *c->lanes);
    memset(c->acquired, 0, sizeof c->acquired);
    memset(c->acquired_wide, 0, sizeof c->acquired_wide);
    memset(c->touched, 0, sizeof c->touched);
    memset(&c->in_block, 0, sizeof c->in_block);
    memset(&c->in_grid, 0, sizeof c->in_grid);
}

/* Pages of an earlier grid may be gone, and its sites are. */
static void forget_caches(bh__check_block *c, const bh__ptx_check *check) {
    if (c->owner != check->id) {
        forget_times(c);
    }
    if (c->owner != check->id || c->base != check->base) {
        clear_shared(c);
    }
    memset(c->recent, 0, sizeof c->recent);
    c->owner = check->id;
    c->grid = check->began;
    c->base = check->base;
    c->site_stride = c->site_next = c->site_end = 0;
    c->used_of = NULL;
}

bool bh__check_block_begin(bh__ptx_block *b) {
    bh__ptx_check *check = b->x.check;
    if (b->check == NULL) {
        b->check = calloc(1, sizeof *b->check);
    }
    bh__check_block *c = b->check;
    if (c == NULL || !room_for_shared(c, b->x.shared_bytes) || !room_for_lanes(c, b->warp_count) ||
        !bh__check_marks_begin(b)) {
        return false;
    }
    if (c->owner != check->id || c->grid != check->began) {
        forget_caches(c, check);
    }
    for (uint32_t n = 0; n < b->warp_count; n++) {
        bh__check_forget_registers(&b->warps[n], 0, UINT32_MAX);
    }
    c->range = NULL;
    c->index = index_in_grid(b);
    c->threads = b->threads;
    c->began = c->all = c->accessed = atomic_fetch_add(&check->now, 1);
    c->acquired_all = c->acquired_wide_all = 0;
    c->fenced = NULL;
    memset(c->arrivals, 0, sizeof c->arrivals);
    return true;
}

void bh__check_block_free(bh__check_block *c) {
    if (c == NULL) {
        return;
    }
    for (uint32_t n = 0; n < c->page_count; n++) {
        bh__check_page_free(c->pages[n]);
    }
    for (uint32_t n = 0; n < LANES; n++) {
        free(c->locals[n].marks);
    }
    free(c->pages);
    free(c->lanes);
    free(c->shared_marks);
    free(c->copies);
    free(c->site_of);
    free(c->origins);
    free(c->used);
    free(c);
}

static uint64_t published_by(const bh__check_published *p, unsigned thread) {
    return later(p->all, later(p->warp[thread / LANES], p->thread[thread]));
}

/* Keeps, for a block that ends, the time up to which accesses of each thread were published. */
void bh__check_block_end(bh__ptx_block *b) {
    bh__ptx_check *check = b->x.check;
    bh__check_block *c = b->check;
    if (c->fenced == NULL) {
        return;
    }
    bool everything = true;
    for (uint32_t t = 0; t < b->threads; t++) {
        uint64_t touched = c->touched[t / LANES];
        everything &= touched <= c->began || touched <= published_by(&c->in_grid, t);
    }
    uint64_t *times = everything ? NULL : malloc(b->threads * sizeof *times);
    for (uint32_t t = 0; times != NULL && t < b->threads; t++) {
        times[t] = published_by(&c->in_grid, t);
    }
    if (!everything && times == NULL) {
        atomic_store(&check->incomplete, true);
    }
    pthread_mutex_lock(&check->lock);
    c->fenced->running = NULL;
    c->fenced->everything = times == NULL;
    c->fenced->times = times;
    pthread_mutex_unlock(&check->lock);
    c->fenced = NULL;
}

/* ---- synchronisation ---- */

/* The time up to which the block's accesses so far were made. */
static uint64_t tick(bh__ptx_check *check, const bh__check_block *c) {
    uint64_t now = atomic_load_explicit(&check->now, memory_order_relaxed);
    return c->accessed < now ? now - 1 : atomic_fetch_add(&check->now, 1);
}

static void share_latest(uint64_t *times, uint32_t members) {
    uint64_t latest = 0;
    FOR_LANES_IN_ORDER(members) {
        latest = later(latest, times[l]);
    }
    FOR_LANES_IN_ORDER(members) {
        times[l] = latest;
    }
}

static void share_acquired(bh__check_block *c, unsigned warp, uint32_t members) {
    share_latest(&c->acquired[warp * LANES], members);
    share_latest(&c->acquired_wide[warp * LANES], members);
}

void bh__check_warp_sync(bh__ptx_exec *x, bh__ptx_warp *w, uint32_t members) {
    bh__check_block *c = x->block->check;
    uint64_t now = tick(x->check, c);
    share_acquired(c, w->index, members);
    if ((w->live & ~members) == 0) {
        c->whole[w->index] = now;
        return;
    }
    uint64_t(*lanes)[LANES] = c->lanes[w->index], joint[LANES] = {0};
    FOR_LANES_IN_ORDER(members) {
        for (unsigned other = 0; other < LANES; other++) {
            raise_to(&joint[other], lanes[l][other]);
        }
    }
    FOR_LANES_IN_ORDER(members) {
        joint[l] = now;
    }
    FOR_LANES_IN_ORDER(members) {
        memcpy(lanes[l], joint, sizeof joint);
    }
}

void bh__check_acquire(bh__ptx_exec *x, uint32_t mask, uint8_t flags) {
    bh__check_block *c = x->block->check;
    bool reads = !(flags & ACCESS_WRITE) || flags & ACCESS_ATOMIC;
    if (!reads || !(flags & (ACCESS_STRONG | ACCESS_VOLATILE))) {
        return;
    }
    uint64_t now = atomic_fetch_add(&x->check->now, 1);
    uint64_t *any = &c->acquired[x->warp->index * LANES];
    uint64_t *wide = &c->acquired_wide[x->warp->index * LANES];
    FOR_LANES_IN_ORDER(mask) {
        any[l] = now;
        wide[l] = bh__check_wide(x, flags) ? now : wide[l];
    }
}

/* A fence publishes the accesses of its thread, and those of its block that happen before it. */
static void publish(bh__check_block *c, bh__check_published *p, unsigned warp, uint32_t mask,
                    uint64_t now) {
    raise_to(&p->all, c->all);
    for (unsigned other = 0; other < LANES; other++) {
        raise_to(&p->warp[other], other == warp ? c->whole[warp] : c->warps[warp][other]);
    }
    FOR_LANES_IN_ORDER(mask) {
        for (unsigned other = 0; other < LANES; other++) {
            raise_to(&p->thread[warp * LANES + other], c->lanes[warp][l][other]);
        }
        p->thread[warp * LANES + l] = now;
    }
}

/* The first fence for the grid: other blocks may now ask what was published. */
static bool list_fenced(bh__ptx_check *check, bh__check_block *c) {
    bh__check_fenced *fenced = calloc(1, sizeof *fenced);
    if (fenced == NULL) {
        atomic_store(&check->incomplete, true);
        return false;
    }
    fenced->block = c->index;
    fenced->running = c;
    bh__check_fenced **bucket = &check->fenced[c->index % CHECK_BUCKETS];
    fenced->next = *bucket;
    *bucket = c->fenced = fenced;
    return true;
}

void bh__check_fence(bh__ptx_exec *x, uint32_t mask, bool grid) {
    bh__check_block *c = x->block->check;
    uint64_t now = tick(x->check, c);
    publish(c, &c->in_block, x->warp->index, mask, now);
    if (grid) {
        pthread_mutex_lock(&x->check->lock);
        if (c->fenced != NULL || list_fenced(x->check, c)) {
            publish(c, &c->in_grid, x->warp->index, mask, now);
        }
        pthread_mutex_unlock(&x->check->lock);
    }
}

void bh__check_arrived(bh__ptx_exec *x, unsigned barrier) {
    bh__check_block *c = x->block->check;
    c->arrivals[barrier] |= 1u << x->warp->index;
    c->arrived_at[barrier][x->warp->index] = tick(x->check, c);
}

/* Lanes of a warp that wait at an aligned barrier must have executed the same instruction. */
static void check_one_instruction(bh__ptx_block *b, bh__ptx_warp *w, uint32_t lanes) {
    const bh__ptx_code *code = b->x.module->code;
    unsigned first = (unsigned)__builtin_ctz(lanes);
    FOR_LANES_IN_ORDER(lanes) {
        const bh__ptx_code *here = &code[w->pc[l] - 1], *there = &code[w->pc[first] - 1];
        if (here == there || (here->count == 0 && there->count == 0)) {
            continue;
        }
        bh__ptx_exec x = b->x;
        bh__ptx_bind(&x, w, w->base[l]);
        x.code = here;
        const bh__ptx_site *site = &b->x.module->sites[w->pc[first] - 1];
        char place[BH__PTX_PLACE];
        bh__check_report(&x, BH__PTX_FAULT_DIVERGED, l,
                         "divergent barrier: lanes of one warp wait at different barriers, lane %u "
                         "at this one, lane %u at the one on PTX %s",
                         (unsigned)l, first, bh__ptx_place(b->x.module, site->line, place));
        return;
    }
}

static uint32_t waiting_at(const bh__ptx_warp *w, unsigned barrier) {
    uint32_t lanes = 0;
    FOR_LANES_IN_ORDER(w->at_barrier) {
        lanes |= (uint32_t)(w->barrier[l] == barrier) << l;
    }
    return lanes;
}

static void barrier_of_block(bh__ptx_block *b, uint64_t now) {
    bh__check_block *c = b->check;
    c->all = now;
    for (uint32_t t = 0; t < b->threads; t++) {
        raise_to(&c->acquired_all, c->acquired[t]);
        raise_to(&c->acquired_wide_all, c->acquired_wide[t]);
    }
}

/* A barrier of some of the block's warps. */
static void barrier_of_warps(bh__ptx_block *b, const uint32_t *waiting, uint32_t waiters,
                             unsigned barrier, uint64_t now) {
    bh__check_block *c = b->check;
    uint32_t sources = waiters | c->arrivals[barrier];
    uint64_t acquired = 0, wide = 0, joint[LANES] = {0};
    FOR_LANES_IN_ORDER(sources) {
        for (unsigned other = 0; other < LANES; other++) {
            raise_to(&joint[other], c->warps[l][other]);
            raise_to(&acquired, c->acquired[l * LANES + other]);
            raise_to(&wide, c->acquired_wide[l * LANES + other]);
        }
    }
    FOR_LANES_IN_ORDER(sources) {
        raise_to(&joint[l], waiters >> l & 1 ? now : c->arrived_at[barrier][l]);
    }
    for (uint32_t m = waiters; m != 0; m &= m - 1) {
        unsigned w = (unsigned)__builtin_ctz(m);
        memcpy(c->warps[w], joint, sizeof joint);
        bh__check_warp_sync(&b->x, &b->warps[w], waiting[w]);
        FOR_LANES_IN_ORDER(waiting[w]) {
            raise_to(&c->acquired[w * LANES + l], acquired);
            raise_to(&c->acquired_wide[w * LANES + l], wide);
        }
    }
}

void bh__check_barrier(bh__ptx_block *b, unsigned barrier) {
    uint32_t waiting[LANES] = {0}, waiters = 0, threads = 0;
    uint64_t now = tick(b->x.check, b->check);
    for (uint32_t n = 0; n < b->warp_count; n++) {
        waiting[n] = waiting_at(&b->warps[n], barrier);
        waiters |= (uint32_t)(waiting[n] != 0) << n;
        threads += (uint32_t)__builtin_popcount(waiting[n]);
        if (waiting[n] != 0) {
            check_one_instruction(b, &b->warps[n], waiting[n]);
        }
    }
    if (threads == b->live_threads && b->check->arrivals[barrier] == 0) {
        barrier_of_block(b, now);
    } else {
        barrier_of_warps(b, waiting, waiters, barrier, now);
    }
    b->check->arrivals[barrier] = 0;
}

/* ---- queries ---- */

/* Returns the time up to which accesses of the threads in `lanes` of a warp of another block were
 * published. */
static uint64_t published_by_other(bh__ptx_check *check, const bh__check_site *s, uint32_t lanes) {
    uint64_t time = 0;
    pthread_mutex_lock(&check->lock);
    const bh__check_fenced *f = check->fenced[s->block % CHECK_BUCKETS];
    while (f != NULL && f->block != s->block) {
        f = f->next;
    }
    if (f != NULL && f->running == NULL && f->everything) {
        time = UINT64_MAX;
    } else if (f != NULL) {
        time = UINT64_MAX;
        FOR_LANES_IN_ORDER(lanes) {
            unsigned thread = s->warp * LANES + l;
            uint64_t its =
                f->running != NULL ? published_by(&f->running->in_grid, thread) : f->times[thread];
            time = its < time ? its : time;
        }
    }
    pthread_mutex_unlock(&check->lock);
    return time;
}

/* Returns `acquired`, or 0 if it is a time of an earlier block. */
static uint64_t of_this_block(const bh__check_block *c, uint64_t acquired) {
    return acquired > c->began ? acquired : 0;
}

/* A published access happens before everything that follows a later acquire. */
bool bh__check_ordered(bh__ptx_check *check, const bh__check_block *c, unsigned thread,
                       bh__check_record record) {
    const bh__check_site *s = bh__check_site_of(check, record);
    uint64_t time = bh__check_time_of(check, record);
    unsigned lane = RECORD_LANE(record), warp = thread / LANES;
    if (s->block != c->index) {
        uint64_t wide = later(c->acquired_wide[thread], c->acquired_wide_all);
        return of_this_block(c, wide) >= time &&
               ((s->flags & ACCESS_STRONG && !(s->flags & ACCESS_CTA)) ||
                published_by_other(check, s, 1u << lane) >= time);
    }
    if (s->warp * LANES + lane == thread || time <= c->all) {
        return true;
    }
    uint64_t known = warp != s->warp ? c->warps[warp][s->warp]
                                     : later(c->whole[warp], c->lanes[warp][thread % LANES][lane]);
    uint64_t acquired = of_this_block(c, later(c->acquired[thread], c->acquired_all));
    return time <= known ||
           (acquired >= time && (s->flags & ACCESS_STRONG ||
                                 published_by(&c->in_block, s->warp * LANES + lane) >= time));
}

/* The lanes of a warp that exist. */
static uint32_t lanes_of(const bh__check_block *c, unsigned warp) {
    uint32_t threads = c->threads - warp * LANES;
    return threads >= LANES ? FULL_MASK : (1u << threads) - 1;
}

bool bh__check_ordered_all(bh__ptx_check *check, const bh__check_block *c, unsigned warp,
                           uint32_t mask, bh__check_record record) {
    const bh__check_site *s = bh__check_site_of(check, record);
    uint64_t time = bh__check_time_of(check, record);
    if (s->block == c->index) {
        return time <= c->all ||
               time <= (warp == s->warp ? c->whole[warp] : c->warps[warp][s->warp]);
    }
    uint64_t acquired = UINT64_MAX;
    FOR_LANES_IN_ORDER(mask) {
        uint64_t its =
            of_this_block(c, later(c->acquired_wide[warp * LANES + l], c->acquired_wide_all));
        acquired = its < acquired ? its : acquired;
    }
    return acquired >= time && ((s->flags & ACCESS_STRONG && !(s->flags & ACCESS_CTA)) ||
                                published_by_other(check, s, lanes_of(c, s->warp)) >= time);
}
