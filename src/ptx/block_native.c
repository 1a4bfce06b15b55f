/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that run in native code alone. Until something needs the scheduler, the warps run one after
 * another, each to its end or to the next barrier of the block, where all that have not exited meet.
 * A warp is then one number, where it is, and its registers are compact. What native code cannot do
 * by itself makes the block ordinary again, for good: block.c and warp.c go on with it.
 *
 * Warps before `next_warp` have exited or wait at the barrier; the others have not run since.
 */
#include <string.h>

#include "ptx/exec.h"

#define SLICE 65536 /* instructions of one warp before others must run too */

bool bh__ptx_block_takes_native(const bh__ptx_block *b, const bh__ptx_function *f) {
    const bh__ptx_exec *x = &b->x;
    return x->grid->compiled != NULL && x->check == NULL && x->tracing == NULL &&
           bh__ptx_cluster_size(x->grid) == 1 && f->stack_row == 0;
}

bool bh__ptx_block_native_begin(bh__ptx_block *b, const bh__ptx_function *f) {
    for (uint32_t n = 0; n < b->warp_count; n++) {
        if (!bh__ptx_warp_room(b, n, f)) {
            return false;
        }
        b->warps[n].pc[0] = f->code;
    }
    b->started = false;
    return true;
}

static void set_pc(bh__ptx_warp *w, uint32_t lanes, uint32_t pc) {
    FOR_LANES(lanes, w->pc[l] = pc;);
}

/* The registers of a warp that waits, or is about to go on, for the scheduler. */
static void expand(bh__ptx_block *b, bh__ptx_warp *w, const bh__ptx_function *f, bool started) {
    if (!started) {
        bh__ptx_warp_zero(w, f);
        return;
    }
    uint32_t pc = w->pc[0];
    bh__ptx_group_state state = {.mask = w->live, .pc = pc, .rows = ROWS_EXPAND};
    bh__ptx_bind(&b->x, w, 0);
    b->x.grid->compiled(&b->x, &state);
    set_pc(w, FULL_MASK, pc);
}

/* Gives the block to the scheduler. The warp at `next_warp` is whole: it has just run. */
static void give_up(bh__ptx_block *b, const bh__ptx_function *f) {
    bh__ptx_barrier *barrier = &b->barriers[0];
    for (uint32_t n = 0; n < b->warp_count; n++) {
        bh__ptx_warp *w = &b->warps[n];
        bool waits = n < b->next_warp && w->live != 0;
        bh__ptx_warp_begin(b, n, f);
        if (n != b->next_warp && w->live != 0) {
            expand(b, w, f, b->started || waits);
        }
        if (waits) {
            w->at_barrier = w->live;
            memset(w->barrier, 0, sizeof w->barrier);
            barrier->arrived += (uint32_t)__builtin_popcount(w->live);
        }
    }
    b->alone.live = b->alone.missing = b->live_threads;
    b->native = false;
}

/* What the warp at `next_warp` does next is for the scheduler. */
static bh__ptx_outcome hand_over(bh__ptx_block *b, const bh__ptx_function *f, uint32_t end,
                                 const bh__ptx_group_state *state) {
    bh__ptx_warp *w = &b->warps[b->next_warp];
    if (end == COMPILED_FAULT) { /* who faulted is told by the warp */
        bh__ptx_warp_begin(b, b->next_warp, f);
        set_pc(w, FULL_MASK, state->pc);
        return BH__PTX_FAULTED;
    }
    if (end == COMPILED_NOT) {
        expand(b, w, f, b->started);
    } else {
        set_pc(w, state->mask, state->pc);
    }
    give_up(b, f);
    return BH__PTX_YIELD;
}

bh__ptx_outcome bh__ptx_block_native_step(bh__ptx_block *b, uint64_t *budget) {
    const bh__ptx_function *f = ((const bh__ptx_frame *)(const void *)b->warps[0].regs)->function;
    bh__ptx_exec *x = &b->x;
    for (; b->next_warp < b->warp_count; b->next_warp++) {
        bh__ptx_warp *w = &b->warps[b->next_warp];
        if (w->live == 0) {
            continue;
        }
        if (*budget == 0) {
            return BH__PTX_YIELD;
        }
        bh__ptx_group_state state = {
            .mask = w->live, .pc = w->pc[0], .rows = ROWS_COMPACT, .left = SLICE};
        bh__ptx_bind(x, w, 0);
        uint32_t end = x->grid->compiled(x, &state);
        uint64_t used = state.left < SLICE ? (uint64_t)(SLICE - state.left) : 1;
        *budget -= used < *budget ? used : *budget;
        w->live &= ~state.exited;
        b->live_threads -= (uint32_t)__builtin_popcount(state.exited);
        if (end == COMPILED_BARRIER) {
            w->pc[0] = state.pc;
        } else if (end != COMPILED_EXIT) {
            return hand_over(b, f, end, &state);
        }
    }
    b->next_warp = 0;
    b->started = true;
    b->done = b->live_threads == 0;
    return BH__PTX_YIELD;
}
