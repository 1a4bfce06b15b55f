/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters: blocks that run in turn on one thread, and the barrier that all their threads share. */
#include <stdlib.h>
#include <string.h>

#include "ptx/check/check.h"

enum { MIN_SLICE = 1000 }; /* warp instructions of one block before the next one runs */

bh__ptx_cluster *bh__ptx_cluster_create(void) {
    return calloc(1, sizeof(bh__ptx_cluster));
}

void bh__ptx_cluster_destroy(bh__ptx_cluster *c) {
    for (uint32_t n = 0; c != NULL && n < c->capacity; n++) {
        bh__ptx_block_destroy(c->blocks[n]);
    }
    free(c);
}

uint32_t bh__ptx_cluster_size(const bh__ptx_grid *grid) {
    return grid->cluster[0] != 0 ? grid->cluster[0] * grid->cluster[1] * grid->cluster[2] : 1;
}

uint64_t bh__ptx_cluster_count(const bh__ptx_grid *grid) {
    return (uint64_t)grid->grid[0] * grid->grid[1] * grid->grid[2] / bh__ptx_cluster_size(grid);
}

void bh__ptx_cluster_alone(bh__ptx_block *b) {
    b->alone =
        (bh__ptx_cluster){.blocks = {b}, .count = 1, .live = b->threads, .missing = b->threads};
    b->cluster = &b->alone;
    b->rank = 0;
}

/* The index in each axis of item number `n` of `dims` items, x running fastest. */
static void split(uint64_t n, const uint32_t dims[3], uint32_t out[3]) {
    uint64_t rows = n / dims[0];
    out[0] = (uint32_t)(n - rows * dims[0]);
    out[1] = (uint32_t)(rows % dims[1]);
    out[2] = (uint32_t)(rows / dims[1]);
}

static bh_status begin_block(bh__ptx_cluster *c, const bh__ptx_grid *grid, uint32_t rank,
                             const uint32_t at[3], bh_error *error) {
    if (c->blocks[rank] == NULL) {
        c->blocks[rank] = bh__ptx_block_create();
        c->capacity = rank + 1;
    }
    bh__ptx_block *b = c->blocks[rank];
    if (b == NULL) {
        c->capacity = rank;
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory to run a block of \"%.100s\"", grid->kernel->name);
    }
    bh_status status = bh__ptx_block_begin(b, grid, at[0], at[1], at[2], error);
    if (c->count > 1) {
        b->cluster = c;
        b->rank = rank;
        b->x.shared_base = rank << BH__PTX_RANK_SHIFT;
    }
    return status;
}

bh_status bh__ptx_cluster_begin(bh__ptx_cluster *c, const bh__ptx_grid *grid, uint64_t index,
                                bh_error *error) {
    if (grid->cluster[0] == 0) {
        uint32_t at[3];
        split(index, grid->grid, at);
        c->count = 1;
        return begin_block(c, grid, 0, at, error);
    }
    const uint32_t *size = grid->cluster;
    const uint32_t clusters[3] = {grid->grid[0] / size[0], grid->grid[1] / size[1],
                                  grid->grid[2] / size[2]};
    uint32_t first[3], in[3];
    split(index, clusters, first);
    c->count = bh__ptx_cluster_size(grid);
    for (uint32_t rank = 0; rank < c->count; rank++) {
        split(rank, size, in);
        const uint32_t at[3] = {first[0] * size[0] + in[0], first[1] * size[1] + in[1],
                                first[2] * size[2] + in[2]};
        bh_status status = begin_block(c, grid, rank, at, error);
        if (status != BH_OK) {
            return status;
        }
    }
    c->live = c->missing = c->count * c->blocks[0]->threads;
    return BH_OK;
}

bh__ptx_outcome bh__ptx_cluster_step(bh__ptx_cluster *c, uint64_t budget, bh__ptx_fault *fault) {
    if (c->count == 1) {
        return bh__ptx_block_step(c->blocks[0], budget, fault);
    }
    uint64_t slice = budget / c->count > MIN_SLICE ? budget / c->count : MIN_SLICE;
    uint32_t running = 0, blocked = 0;
    bh__ptx_block *stuck = NULL;
    for (uint32_t n = 0; n < c->count; n++) {
        if (c->blocks[n]->done) {
            continue;
        }
        bh__ptx_outcome outcome = bh__ptx_block_step(c->blocks[n], slice, fault);
        if (outcome == BH__PTX_FAULTED || outcome == BH__PTX_STOPPED ||
            outcome == BH__PTX_AT_LINE) {
            return outcome;
        }
        running += outcome != BH__PTX_DONE;
        blocked += outcome == BH__PTX_BLOCKED;
        stuck = outcome == BH__PTX_BLOCKED ? c->blocks[n] : stuck;
    }
    /* A block that ended may have completed the barrier after another one was found blocked. */
    if (stuck != NULL && running == blocked && c->missing != 0 && c->missing != c->live) {
        return bh__ptx_block_deadlock(stuck);
    }
    return running == 0 ? BH__PTX_DONE : BH__PTX_YIELD;
}

char *bh__ptx_cluster_state(const bh__ptx_cluster *c, const bh__ptx_fault *fault) {
    for (uint32_t n = 0; n < c->count; n++) {
        if (memcmp(c->blocks[n]->id, fault->block, sizeof fault->block) == 0) {
            return bh__ptx_block_state(c->blocks[n], fault);
        }
    }
    return NULL;
}

/* ---- the barrier ---- */

static void acquire(bh__ptx_block *b, bh__ptx_warp *w, uint32_t lanes) {
    if (lanes != 0) {
        bh__ptx_exec x = b->x;
        x.warp = w;
        bh__check_acquire(&x, lanes, ACCESS_STRONG | ACCESS_CLUSTER);
    }
}

/* Releases the waiting threads once all threads that have not exited have arrived. */
static void complete(bh__ptx_cluster *c) {
    if (c->missing != 0 || c->live == 0) {
        return;
    }
    for (uint32_t n = 0; n < c->count; n++) {
        bh__ptx_block *b = c->blocks[n];
        for (uint32_t w = 0; w < b->warp_count; w++) {
            bh__ptx_warp *warp = &b->warps[w];
            if (b->x.check != NULL && !b->done) {
                acquire(b, warp, warp->at_cluster);
            }
            warp->cluster_pending &= ~warp->at_cluster;
            warp->at_cluster = warp->cluster_arrived = 0;
        }
    }
    c->missing = c->live;
}

static bool fault(bh__ptx_exec *x, uint32_t lanes, const char *what) {
    return bh__ptx_fault_other(x, BH__PTX_FAULT_BARRIER, (unsigned)__builtin_ctz(lanes), "%s",
                               what);
}

/* flags: not .relaxed */
static bool arrive(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    bh__ptx_warp *w = x->warp;
    if (w->cluster_pending & mask) {
        return fault(x, w->cluster_pending & mask,
                     "barrier.cluster.arrive twice without a barrier.cluster.wait between them");
    }
    if (x->check != NULL && i->flags) {
        bh__check_fence(x, mask, x->block->cluster->count > 1);
    }
    w->cluster_pending |= mask;
    w->cluster_arrived |= mask;
    x->block->cluster->missing -= (uint32_t)__builtin_popcount(mask);
    complete(x->block->cluster);
    return true;
}

bool bh__ptx_cluster_barrier(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    bh__ptx_warp *w = x->warp;
    if (i->imm == CLUSTER_ARRIVE) {
        return arrive(x, i, mask);
    }
    if (mask & ~w->cluster_pending) {
        return fault(x, mask & ~w->cluster_pending,
                     "barrier.cluster.wait without a barrier.cluster.arrive before it");
    }
    uint32_t passed = mask & ~w->cluster_arrived;
    w->at_cluster |= mask & w->cluster_arrived;
    w->cluster_pending &= ~passed;
    if (x->check != NULL) {
        acquire(x->block, w, passed);
    }
    return true;
}

void bh__ptx_cluster_exit(bh__ptx_exec *x, uint32_t lanes) {
    bh__ptx_cluster *c = x->block->cluster;
    c->live -= (uint32_t)__builtin_popcount(lanes);
    c->missing -= (uint32_t)__builtin_popcount(lanes & ~x->warp->cluster_arrived);
    complete(c);
}
