/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers of a block: threads that have arrived, threads expected, results of reductions. */
#include "ptx/check/check.h"

uint32_t bh__ptx_barrier_same(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    if (i->a < 0) {
        return mask; /* a constant */
    }
    const bh__u32 *row = bh__row(x, i->a);
    uint32_t id = row[__builtin_ctz(mask)], same = 0;
    FOR_LANES_IN_ORDER(mask) {
        same |= (uint32_t)(row[l] == id) << l;
    }
    return same;
}

static void give_result(bh__ptx_block *block, bh__ptx_warp *w, unsigned l,
                        const bh__ptx_barrier *barrier) {
    const bh__ptx_code *i = &block->x.module->code[w->pc[l] - 1];
    if (i->imm != BAR_RED) {
        return;
    }
    bh__ptx_exec x = block->x;
    x.bases[0] = w->regs + w->base[l];
    if (i->target == M_POPC) {
        ((bh__u32 *)bh__row(&x, i->d))[l] = barrier->count;
    } else {
        bool r = i->target == M_AND ? barrier->all : barrier->any;
        bh__set_predicate(&x, i->d, r ? UINT32_MAX : 0, 1u << l);
    }
}

/* Releases the waiting threads if all expected ones have arrived. */
static bool complete(bh__ptx_block *block, unsigned id) {
    bh__ptx_barrier *barrier = &block->barriers[id];
    uint32_t expected = barrier->expected != 0 ? barrier->expected : block->live_threads;
    if (barrier->arrived == 0 || barrier->arrived < expected) {
        return false;
    }
    if (block->x.check != NULL) {
        bh__check_barrier(block, id);
    }
    for (uint32_t n = 0; n < block->warp_count; n++) {
        bh__ptx_warp *w = &block->warps[n];
        uint32_t released = 0;
        for (unsigned l = 0; w->at_barrier != 0 && l < LANES; l++) {
            released |= (uint32_t)(w->barrier[l] == id) << l;
        }
        released &= w->at_barrier;
        if (barrier->reduces) {
            FOR_LANES_IN_ORDER(released) {
                give_result(block, w, l, barrier);
            }
        }
        w->at_barrier &= ~released;
    }
    *barrier = (bh__ptx_barrier){.all = true};
    return true;
}

bh__ptx_bar_result bh__ptx_barrier_arrive(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    bh__ptx_warp *w = x->warp;
    unsigned first = (unsigned)__builtin_ctz(mask);
    uint32_t id = ((const bh__u32 *)bh__row(x, i->a))[first];
    if (id >= BARRIERS) {
        bh__ptx_fault_other(x, BH__PTX_FAULT_BARRIER, first,
                            "barrier %u does not exist; barriers are 0 to %u", (unsigned)id,
                            BARRIERS - 1);
        return BAR_FAULT;
    }
    bh__ptx_barrier *barrier = &x->block->barriers[id];
    uint32_t lanes = (uint32_t)__builtin_popcount(mask);
    if (i->b != NO_ROW) {
        barrier->expected = ((const bh__u32 *)bh__row(x, i->b))[first];
        /* Counts are of whole warps: a warp with fewer than 32 threads counts as 32. */
        if (mask == w->live) {
            lanes = LANES;
        }
    }
    barrier->arrived += lanes;
    if (i->imm == BAR_RED) {
        uint32_t p = *(const bh__u32 *)bh__row(x, i->c) & mask;
        barrier->count += (uint32_t)__builtin_popcount(p);
        barrier->all &= p == mask;
        barrier->any |= p != 0;
        barrier->reduces = true;
    }
    if (i->imm != BAR_ARRIVE) {
        w->at_barrier |= mask;
        FOR_LANES(mask, w->barrier[l] = (uint8_t)id;);
    } else if (x->check != NULL) {
        bh__check_arrived(x, id);
    }
    complete(x->block, id);
    return i->imm == BAR_ARRIVE ? BAR_GO_ON : BAR_WAIT;
}

void bh__ptx_barrier_exit(bh__ptx_block *block) {
    for (unsigned id = 0; id < BARRIERS; id++) {
        if (block->barriers[id].arrived != 0 && block->barriers[id].expected == 0) {
            complete(block, id);
        }
    }
}
