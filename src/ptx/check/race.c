/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for data races: unordered accesses to the same bytes. */
#include <stdio.h>
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/run/single.h"

/* How the accesses of a site, as recorded at one time, stand to those of the current instruction.
 */
typedef enum relation {
    NO_CONFLICT,  /* none of them conflicts with any of ours */
    SAME_THREADS, /* those of the same lane do not conflict; look at others one by one */
    UNKNOWN       /* look at each */
} relation;

/* An instruction of a warp that is being compared with what is recorded. */
typedef struct comparison {
    bh__ptx_exec *x;
    bh__check_block *c;
    const bh__check_access *access;
    uint32_t mask;
    bool shared;
    bh__check_record now;  /* its own record, without the lane */
    bh__check_record past; /* records below this never conflict */
    /* The relation to the records of `seen`, which has no lane. */
    bh__check_record seen;
    relation relation;
    /* The same for records in each of a cell's places for reads, and of strong accesses too. */
    bh__check_record read_seen[2];
    relation read_relation[2];
    bool alike;        /* both are of one warp */
    uint32_t reported; /* lanes with a race, of which one is enough */
} comparison;

/* ---- conflicts ---- */

/* Returns true if both accesses are strong, so that they do not race. Two volatile accesses of one
 * warp to shared memory are taken for a forgotten __syncwarp, unless one is atomic. */
static bool both_strong(const comparison *k, const bh__check_site *s) {
    uint8_t flags = k->access->flags, both = s->flags & flags, any = s->flags | flags;
    bool one_block = s->block == k->c->index;
    if (!one_block && any & ACCESS_CTA) {
        return false;
    }
    if (both & ACCESS_STRONG) {
        return true;
    }
    bool strong =
        s->flags & (ACCESS_STRONG | ACCESS_VOLATILE) && flags & (ACCESS_STRONG | ACCESS_VOLATILE);
    bool one_warp = k->shared && one_block && s->warp == k->x->warp->index;
    return strong && (any & ACCESS_STRONG || !one_warp);
}

static relation relate(const comparison *k, bh__check_record record) {
    const bh__check_site *s = bh__check_site_of(k->x->check, record);
    unsigned warp = k->x->warp->index;
    if (both_strong(k, s) || bh__check_ordered_all(k->x->check, k->c, warp, k->mask, record)) {
        return NO_CONFLICT;
    }
    return s->block == k->c->index && s->warp == warp ? SAME_THREADS : UNKNOWN;
}

static inline bool conflicts(comparison *k, bh__check_record record, unsigned lane) {
    if (record < k->past) {
        return false;
    }
    if ((record & ~(bh__check_record)31) != k->seen) {
        k->seen = record & ~(bh__check_record)31;
        k->relation = relate(k, record);
    }
    if (k->relation == NO_CONFLICT ||
        (k->relation == SAME_THREADS && RECORD_LANE(record) == lane)) {
        return false;
    }
    return !bh__check_ordered(k->x->check, k->c, k->x->warp->index * LANES + lane, record);
}

/* ---- writes of the same value ---- */

static void stored_value(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned lane,
                         uint8_t out[64]) {
    const int32_t *rows = i->extra;
    for (unsigned n = 0; n < i->count; n++) {
        const uint8_t *row = bh__row(x, rows[n]);
        memcpy(out + n * i->bytes, row + lane * (i->flags & FLAG_WIDE_A ? 8u : 4u), i->bytes);
    }
}

/* Returns true if a store leaves the value that an earlier, conflicting store left. The values of
 * lanes of the same instruction are not in memory yet. */
static bool same_value(const comparison *k, bh__check_record record, unsigned lane) {
    const bh__check_access *a = k->access;
    if (a->store == NULL || bh__check_site_of(k->x->check, record)->flags & ACCESS_ATOMIC) {
        return false;
    }
    _Alignas(32) uint8_t mine[64], theirs[64];
    unsigned other = RECORD_LANE(record);
    stored_value(k->x, a->store, lane, mine);
    if ((record & ~(bh__check_record)31) == k->now && other < lane && k->mask >> other & 1 &&
        a->canonical[other] == a->canonical[lane]) {
        stored_value(k->x, a->store, other, theirs);
        return memcmp(mine, theirs, a->bytes) == 0;
    }
    if (a->bytes == 1) {
        return __atomic_load_n(a->at[lane], __ATOMIC_RELAXED) == mine[0];
    }
    bh__single_load(theirs, a->at[lane], a->bytes); /* other threads may write it meanwhile */
    return memcmp(mine, theirs, a->bytes) == 0;
}

/* ---- reports ---- */

static const char *kind_of(uint8_t flags) {
    return flags & ACCESS_ATOMIC ? "atomic" : flags & ACCESS_WRITE ? "write" : "read";
}

static void place(const bh__ptx_exec *x, const bh__check_site *s, unsigned lane, char *out,
                  size_t size) {
    const uint32_t *grid = x->grid->grid, *block = x->grid->block;
    uint32_t thread = s->warp * LANES + lane;
    char site[140];
    bh__ptx_site_text(x->module, s->code, 40, site, sizeof site);
    snprintf(out, size, "%s by block (%u,%u,%u), thread (%u,%u,%u) on %.110s", kind_of(s->flags),
             (unsigned)(s->block % grid[0]), (unsigned)(s->block / grid[0] % grid[1]),
             (unsigned)(s->block / grid[0] / grid[1]), (unsigned)(thread % block[0]),
             (unsigned)(thread / block[0] % block[1]), (unsigned)(thread / block[0] / block[1]),
             site);
}

/* What would have ordered the two. */
static const char *missing(const comparison *k, const bh__check_site *old) {
    uint8_t flags = k->access->flags;
    if (old->block != k->c->index) {
        bool narrow = old->flags & flags & (ACCESS_STRONG | ACCESS_VOLATILE) &&
                      (old->flags | flags) & ACCESS_CTA;
        return narrow ? "two blocks, but a scope of one block" : "no fence and flag";
    }
    return old->warp == k->x->warp->index && k->shared ? "no barrier and no __syncwarp"
                                                       : "no barrier";
}

/* `at`: the first byte that both accesses touch. */
static void report(comparison *k, unsigned lane, uint64_t at, bh__check_record record) {
    bh__ptx_exec *x = k->x;
    const bh__check_site *old = bh__check_site_of(x->check, record);
    if (k->reported >> lane & 1) {
        return;
    }
    k->reported |= 1u << lane;
    if (bh__check_seen(x, BH__PTX_FAULT_RACE, old->code)) {
        return;
    }
    bh__ptx_fault fault, *outer = x->fault;
    x->fault = &fault;
    bh__ptx_fault_other(x, BH__PTX_FAULT_RACE, lane, "race");
    x->fault = outer;
    fault.address = at;
    fault.size = 1;
    fault.global = !k->shared;
    fault.write = k->access->flags & ACCESS_WRITE;
    char first[240], second[240];
    place(x, old, RECORD_LANE(record), first, sizeof first);
    place(x, bh__check_site_of(x->check, k->now), lane, second, sizeof second);
    snprintf(fault.text, sizeof fault.text, "race at %s address 0x%llx, %s between: %.150s; %.150s",
             k->shared ? "shared" : "global", (unsigned long long)at, missing(k, old), first,
             second);
    bh__check_found(x, &fault, record);
}

/* ---- an access ---- */

/* What is known of the read in place `n`: looked up when it is another one than last time. */
static inline void know_read(comparison *k, const bh__check_record *reads, unsigned n) {
    bh__check_record key = reads[n] & ~(bh__check_record)31;
    if (key == k->read_seen[n]) {
        return;
    }
    bh__ptx_check *check = k->x->check;
    const bh__check_site *s = bh__check_site_of(check, key);
    const bh__check_site *t = bh__check_site_of(check, reads[1 - n]);
    unsigned warp = k->x->warp->index;
    bool ordered = bh__check_ordered_all(check, k->c, warp, k->mask, key);
    k->read_seen[n] = key;
    k->read_relation[n] = ordered                                      ? NO_CONFLICT
                          : s->block == k->c->index && s->warp == warp ? SAME_THREADS
                                                                       : UNKNOWN;
    k->alike = s->block == t->block && s->warp == t->warp;
}

/* Returns true if the read in place `n` happens before what the lane does now. For a thread of
 * another warp it may be false all the same: that is to be fast, and only decides which reads are
 * kept. */
static inline bool read_is_past(const comparison *k, bh__check_record read, unsigned n,
                                unsigned lane) {
    if (k->read_relation[n] != SAME_THREADS) {
        return k->read_relation[n] == NO_CONFLICT;
    }
    return RECORD_LANE(read) == lane ||
           bh__check_ordered(k->x->check, k->c, k->x->warp->index * LANES + lane, read);
}

static inline void note_read(comparison *k, bh__check_cell *cell, unsigned lane) {
    bh__check_record *reads = cell->reads, now = k->now | lane;
    bool in_first = (reads[0] & ~(bh__check_record)31) == k->now;
    if (in_first && (reads[0] == now || (reads[1] & ~(bh__check_record)31) == k->now)) {
        return; /* two lanes of this instruction are enough */
    }
    if (reads[0] < k->past) {
        reads[0] = now;
        return;
    }
    if (reads[1] < k->past) {
        reads[1] = now;
        return;
    }
    for (unsigned n = 0; n < 2; n++) {
        know_read(k, reads, n);
        if (read_is_past(k, reads[n], n, lane)) {
            reads[n] = now;
            return;
        }
    }
    if (k->alike) { /* reads of two warps find more races than two reads of one warp */
        reads[1] = now;
    }
}

static inline __attribute__((always_inline)) void visit(comparison *k, bh__check_cell *cell,
                                                        unsigned lane, uint64_t at, bool write) {
    if (conflicts(k, cell->write, lane) && !same_value(k, cell->write, lane)) {
        report(k, lane, at, cell->write);
    }
    if (!write) {
        note_read(k, cell, lane);
        return;
    }
    for (unsigned n = 0; n < 2; n++) {
        if (conflicts(k, cell->reads[n], lane)) {
            report(k, lane, at, cell->reads[n]);
            break;
        }
    }
    cell->write = k->now | lane;
    cell->reads[0] = cell->reads[1] = 0;
}

static bool begin(comparison *k) {
    bh__ptx_check *check = k->x->check;
    uint32_t site = bh__check_own_site(k->x, k->access->flags);
    uint64_t now = atomic_load_explicit(&check->now, memory_order_relaxed);
    if (site == 0 || now - check->base > UINT32_MAX - 1) {
        atomic_store(&check->incomplete, true);
        return false;
    }
    k->c->accessed = now;
    k->now = (now - check->base) << RECORD_TIME_SHIFT | (uint64_t)site << RECORD_SITE_SHIFT;
    k->past = bh__check_until(check, k->shared ? k->c->all : check->began);
    return true;
}

static inline __attribute__((always_inline)) void visit_lanes(comparison *k, bool write) {
    const bh__check_access *access = k->access;
    bh__check_page *page = NULL;
    unsigned bytes = access->bytes;
    FOR_LANES_IN_ORDER(k->mask) {
        uint64_t at = access->canonical[l], base = at & ~(uint64_t)(PAGE_BYTES - 1);
        if (page == NULL || page->base != base) {
            bh__check_page_give(page, k->shared);
            page = bh__check_page_take(k->x, base, k->shared);
            if (page == NULL) {
                return;
            }
        }
        if (!page->fine && bytes % 4 != 0 && !bh__check_page_refine(k->x->check, page)) {
            continue;
        }
        /* Accesses are aligned to their size, so none crosses pages. */
        unsigned grain = page->fine ? 1 : 4;
        bh__check_cell *cell = &page->cells[(at - base) / grain];
        for (uint64_t end = at + bytes; at < end; at += grain) {
            visit(k, cell++, l, at, write);
        }
    }
    bh__check_page_give(page, k->shared);
}

void bh__check_races(bh__ptx_exec *x, const bh__check_access *access, uint32_t mask, bool shared) {
    comparison k = {.x = x, .c = x->block->check, .access = access, .mask = mask, .shared = shared};
    if (!begin(&k)) {
        return;
    }
    if (access->flags & ACCESS_WRITE) {
        visit_lanes(&k, true);
    } else {
        visit_lanes(&k, false);
    }
}
