/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: which threads have synchronised, and the happens-before times that follow from it. */
#include <stdlib.h>
#include <string.h>

#include "ptx/check.h"

#define MAX_PAGES 65536 /* kept from grid to grid */

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void raise_to(uint64_t *time, uint64_t at_least) {
    *time = later(*time, at_least);
}

/* ---- grids ---- */

bh__ptx_check *bh__ptx_check_create(void) {
    bh__ptx_check *check = calloc(1, sizeof *check);
    if (check != NULL) {
        check->now = 1;
    }
    return check;
}

static void free_pages(bh__ptx_check *check) {
    for (uint32_t n = 0; n < check->bucket_count; n++) {
        while (check->buckets[n] != NULL) {
            bh__check_page *page = check->buckets[n];
            check->buckets[n] = page->next;
            free(page->cells);
            free(page);
        }
    }
    free(check->buckets);
    check->buckets = NULL;
    check->bucket_count = check->page_count = 0;
    check->last = NULL;
}

static void free_ended(bh__ptx_check *check) {
    for (uint32_t n = 0; n < CHECK_BUCKETS; n++) {
        while (check->ended[n] != NULL) {
            bh__check_ended *ended = check->ended[n];
            check->ended[n] = ended->next;
            free(ended);
        }
    }
}

void bh__ptx_check_destroy(bh__ptx_check *check) {
    if (check != NULL) {
        free_pages(check);
        free_ended(check);
        free(check);
    }
}

void bh__ptx_check_begin(bh__ptx_check *check) {
    if (check->page_count > MAX_PAGES) {
        free_pages(check);
    }
    check->began = check->now++;
    check->running = NULL;
    check->range = NULL;
    check->out_of_memory = false;
}

bool bh__ptx_check_end(bh__ptx_check *check) {
    free_ended(check);
    check->running = NULL;
    return !check->out_of_memory;
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

bool bh__check_block_begin(bh__ptx_block *b) {
    bh__ptx_check *check = b->x.check;
    if (b->check == NULL) {
        b->check = calloc(1, sizeof *b->check);
    }
    bh__check_block *c = b->check;
    if (c == NULL || !room_for_shared(c, b->x.shared_bytes)) {
        return false;
    }
    if (c->lane_warps < b->warp_count) {
        free(c->lanes);
        c->lanes = calloc(b->warp_count, sizeof *c->lanes);
        c->lane_warps = c->lanes == NULL ? 0 : b->warp_count;
        if (c->lanes == NULL) {
            return false;
        }
    }
    c->index = index_in_grid(b);
    c->began = c->all = check->now++;
    c->acquired_all = 0;
    c->fenced = false;
    memset(c->arrivals, 0, sizeof c->arrivals);
    c->next = check->running;
    check->running = c;
    return true;
}

void bh__check_block_free(bh__check_block *c) {
    if (c == NULL) {
        return;
    }
    for (uint32_t n = 0; n < c->page_count; n++) {
        if (c->pages[n] != NULL) {
            free(c->pages[n]->cells);
            free(c->pages[n]);
        }
    }
    free(c->pages);
    free(c->lanes);
    free(c);
}

static uint64_t published_by(const bh__check_published *p, unsigned thread) {
    return later(p->all, later(p->warp[thread / LANES], p->thread[thread]));
}

/* Keeps, for a block that ends, the time up to which accesses of each thread were published. */
void bh__check_block_end(bh__ptx_block *b) {
    bh__ptx_check *check = b->x.check;
    bh__check_block *c = b->check;
    for (bh__check_block **link = &check->running; *link != NULL; link = &(*link)->next) {
        if (*link == c) {
            *link = c->next;
            break;
        }
    }
    if (!c->fenced) {
        return;
    }
    uint32_t some = 0;
    bool everything = true;
    for (uint32_t t = 0; t < b->threads; t++) {
        uint64_t time = published_by(&c->in_grid, t);
        some += time > c->began;
        everything &= c->touched[t] <= c->began || c->touched[t] <= time;
    }
    some = everything ? 0 : some;
    if (!everything && some == 0) {
        return;
    }
    bh__check_ended *ended = malloc(sizeof *ended + some * sizeof ended->list[0]);
    if (ended == NULL) {
        check->out_of_memory = true;
        return;
    }
    ended->block = c->index;
    ended->count = 0;
    for (uint32_t t = 0; !everything && t < b->threads; t++) {
        uint64_t time = published_by(&c->in_grid, t);
        if (time > c->began) {
            ended->list[ended->count].thread = t;
            ended->list[ended->count++].time = time;
        }
    }
    ended->next = check->ended[c->index % CHECK_BUCKETS];
    check->ended[c->index % CHECK_BUCKETS] = ended;
}

/* ---- synchronisation ---- */

static void share_acquired(bh__check_block *c, unsigned warp, uint32_t members) {
    uint64_t latest = 0;
    FOR_LANES_IN_ORDER(members) {
        latest = later(latest, c->acquired[warp * LANES + l]);
    }
    FOR_LANES_IN_ORDER(members) {
        c->acquired[warp * LANES + l] = latest;
    }
}

void bh__check_warp_sync(bh__ptx_exec *x, bh__ptx_warp *w, uint32_t members) {
    bh__check_block *c = x->block->check;
    uint64_t now = x->check->now++;
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

void bh__check_acquire(bh__ptx_exec *x, unsigned lane) {
    x->block->check->acquired[x->warp->index * LANES + lane] = x->check->now++;
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

void bh__check_fence(bh__ptx_exec *x, uint32_t mask, bool grid) {
    bh__check_block *c = x->block->check;
    uint64_t now = x->check->now++;
    publish(c, &c->in_block, x->warp->index, mask, now);
    if (grid) {
        publish(c, &c->in_grid, x->warp->index, mask, now);
        c->fenced = true;
    }
}

void bh__check_arrived(bh__ptx_exec *x, unsigned barrier) {
    bh__check_block *c = x->block->check;
    c->arrivals[barrier] |= 1u << x->warp->index;
    c->arrived_at[barrier][x->warp->index] = x->check->now++;
}

/* Lanes of a warp that wait at an aligned barrier must have executed the same instruction. */
static bool at_one_barrier_instruction(bh__ptx_block *b, bh__ptx_warp *w, uint32_t lanes) {
    const bh__ptx_code *code = b->x.module->code;
    unsigned first = (unsigned)__builtin_ctz(lanes);
    FOR_LANES_IN_ORDER(lanes) {
        if (w->pc[l] == w->pc[first]) {
            continue;
        }
        const bh__ptx_code *here = &code[w->pc[l] - 1], *there = &code[w->pc[first] - 1];
        if (here->count == 0 && there->count == 0) {
            continue;
        }
        bh__ptx_exec x = b->x;
        bh__ptx_bind(&x, w, w->base[l]);
        x.code = here;
        const bh__ptx_site *site = &b->x.module->sites[w->pc[first] - 1];
        return bh__ptx_fault_other(
            &x, BH__PTX_FAULT_DIVERGED, l,
            "lanes of one warp wait at different barriers: lane %u at this one, lane %u at the one "
            "on PTX line %u",
            (unsigned)l, first, (unsigned)site->line);
    }
    return true;
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
    }
}

/* A barrier of some of the block's warps. */
static void barrier_of_warps(bh__ptx_block *b, const uint32_t *waiting, uint32_t waiters,
                             unsigned barrier, uint64_t now) {
    bh__check_block *c = b->check;
    uint32_t sources = waiters | c->arrivals[barrier];
    uint64_t acquired = 0, joint[LANES] = {0};
    FOR_LANES_IN_ORDER(sources) {
        for (unsigned other = 0; other < LANES; other++) {
            raise_to(&joint[other], c->warps[l][other]);
            raise_to(&acquired, c->acquired[l * LANES + other]);
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
        }
    }
}

bool bh__check_barrier(bh__ptx_block *b, unsigned barrier) {
    uint32_t waiting[LANES] = {0}, waiters = 0, threads = 0;
    uint64_t now = b->x.check->now++;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        waiting[n] = waiting_at(&b->warps[n], barrier);
        waiters |= (uint32_t)(waiting[n] != 0) << n;
        threads += (uint32_t)__builtin_popcount(waiting[n]);
        if (waiting[n] != 0 && !at_one_barrier_instruction(b, &b->warps[n], waiting[n])) {
            return false;
        }
    }
    if (threads == b->live_threads && b->check->arrivals[barrier] == 0) {
        barrier_of_block(b, now);
    } else {
        barrier_of_warps(b, waiting, waiters, barrier, now);
    }
    b->check->arrivals[barrier] = 0;
    return true;
}

/* ---- queries ---- */

static bool published_by_other(const bh__ptx_check *check, const bh__check_record *record) {
    for (const bh__check_block *c = check->running; c != NULL; c = c->next) {
        if (c->index == record->block) {
            return c->fenced && published_by(&c->in_grid, record->thread) >= record->time;
        }
    }
    const bh__check_ended *ended = check->ended[record->block % CHECK_BUCKETS];
    while (ended != NULL && ended->block != record->block) {
        ended = ended->next;
    }
    if (ended == NULL) {
        return false;
    }
    for (uint32_t n = 0; n < ended->count; n++) {
        if (ended->list[n].thread == record->thread) {
            return ended->list[n].time >= record->time;
        }
    }
    return ended->count == 0;
}

bool bh__check_ordered(const bh__ptx_check *check, const bh__check_block *c, unsigned thread,
                       const bh__check_record *record) {
    uint64_t acquired = later(c->acquired[thread], c->acquired_all);
    acquired = acquired > c->began ? acquired : 0; /* 0: the time is of an earlier block */
    /* A published access happens before everything that follows a later acquire. */
    if (record->block != c->index) {
        return acquired >= record->time &&
               ((record->flags & ACCESS_STRONG && !(record->flags & ACCESS_CTA)) ||
                published_by_other(check, record));
    }
    unsigned warp = thread / LANES, other = record->thread / LANES;
    if (record->thread == thread || record->time <= c->all) {
        return true;
    }
    uint64_t known = warp != other ? c->warps[warp][other]
                                   : later(c->whole[warp],
                                           c->lanes[warp][thread % LANES][record->thread % LANES]);
    return record->time <= known || (acquired >= record->time &&
                                     (record->flags & ACCESS_STRONG ||
                                      published_by(&c->in_block, record->thread) >= record->time));
}
