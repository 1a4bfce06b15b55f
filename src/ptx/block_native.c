/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that run in native code alone. Until something needs the scheduler, the warps run one
 * after another, each to its end or to the next barrier of the block, where all that have not
 * exited meet. A warp is then one number, where it is, and its registers are compact. What native
 * code cannot do by itself makes the block ordinary again, for good: block.c and warp.c go on with
 * it.
 *
 * Warps before `next_warp` have exited or wait at the barrier; the others have not run since.
 */
#include <string.h>

#include "ptx/run/exec.h"

/* Without allocations of its own on the stack (stack_row) a kernel's frames are alike in all warps:
 * native code goes from warp to warp with the x->local_end of the first. */
bool bh__ptx_block_takes_native(const bh__ptx_block *b, const bh__ptx_function *f) {
    const bh__ptx_exec *x = &b->x;
    return x->grid->compiled != NULL && x->check == NULL && x->tracing == NULL &&
           bh__ptx_cluster_size(x->grid) == 1 && f->stack_row == 0;
}

static const bh__ptx_function *function_of(const bh__ptx_block *b) {
    return ((const bh__ptx_frame *)(const void *)b->warps[0].regs)->function;
}

static void begin_warps(bh__ptx_block *b, const bh__ptx_function *f) {
    uint32_t pc = f->code;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        bh__ptx_warp *w = &b->warps[n];
        w->live = FULL_MASK;
        w->carry = 0;
        w->pc[0] = pc;
    }
    if (b->threads % LANES != 0) {
        b->warps[b->warp_count - 1].live = (1u << b->threads % LANES) - 1;
    }
    b->started = false;
}

bool bh__ptx_block_native_begin(bh__ptx_block *b, const bh__ptx_function *f) {
    for (uint32_t n = 0; n < b->warp_count; n++) {
        if (!bh__ptx_warp_room(b, n, f)) {
            return false;
        }
    }
    begin_warps(b, f);
    return true;
}

bool bh__ptx_block_native_again(bh__ptx_block *b, const bh__ptx_grid *grid) {
    if (!b->native || grid->tracing != NULL || b->ranges_of != grid ||
        b->ranges_of_id != grid->grid_id) {
        return false;
    }
    b->live_threads = b->threads;
    b->next_warp = 0;
    b->done = false;
    if (b->x.shared_bytes > 0) {
        memset(b->shared, 0, b->x.shared_bytes);
    }
    for (uint32_t n = 0; grid->kernel->local_bytes > 0 && n < b->warp_count; n++) {
        bh__ptx_warp_zero_local(&b->warps[n], grid->kernel->local_bytes);
    }
    begin_warps(b, function_of(b));
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
    const bh__ptx_function *f = function_of(b);
    bh__ptx_exec *x = &b->x;
    bh__ptx_compiled *code = x->grid->compiled;
    bh__ptx_bind(x, &b->warps[0], 0); /* the frames of all warps are alike */
    for (; b->next_warp < b->warp_count; b->next_warp++) {
        bh__ptx_warp *w = &b->warps[b->next_warp];
        if (w->live == 0) {
            continue;
        }
        if (*budget == 0) {
            return BH__PTX_YIELD;
        }
        bh__ptx_group_state state = {.mask = w->live,
                                     .pc = w->pc[0],
                                     .rows = ROWS_COMPACT,
                                     .rest = b->warp_count - 1 - b->next_warp,
                                     .left = NATIVE_SLICE};
        x->warp = w;
        x->bases[0] = w->regs;
        uint32_t end = code(x, &state);
        uint64_t used = state.left < NATIVE_SLICE ? (uint64_t)(NATIVE_SLICE - state.left) : 1;
        *budget -= used < *budget ? used : *budget;
        b->next_warp = (uint32_t)(x->warp - b->warps);
        if (end != COMPILED_WARPS) {
            x->warp->live &= ~state.exited;
            b->live_threads -= (uint32_t)__builtin_popcount(state.exited);
            return hand_over(b, f, end, &state);
        }
    }
    b->next_warp = 0;
    b->started = true;
    b->done = b->live_threads == 0;
    return BH__PTX_YIELD;
}
