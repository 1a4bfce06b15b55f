/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From block to block. There are two versions of each: one for all 32 lanes of the warp, which
 * knows no masks, and one for some of them. A branch that splits the lanes leads from the first to
 * the second; where all have converged again, the second leads back.
 *
 * In the second, the lanes at the first block run and the others wait, as in the interpreter. So
 * after a block those run that wait before its successor, if any do (pending.c says where).
 */
#include <stddef.h>

#include "jit/unit.h"

static LLVMValueRef word(bh__jit_unit *u, uint32_t v) {
    return bh__jit_int(u, u->i32, v);
}

static LLVMValueRef is_zero(bh__jit_unit *u, LLVMValueRef v) {
    return LLVMBuildICmp(u->b, LLVMIntEQ, v, word(u, 0), "");
}

static void start_at(bh__jit_unit *u, LLVMBasicBlockRef block) {
    LLVMPositionBuilderAtEnd(u->b, block);
}

static LLVMValueRef get(bh__jit_unit *u, LLVMValueRef slot) {
    return LLVMBuildLoad2(u->b, u->i32, slot, "");
}

/* These lanes wait at `at` from now on. */
static void wait_at(bh__jit_unit *u, uint32_t at, LLVMValueRef lanes) {
    LLVMValueRef slot = u->blocks[at].waiting;
    LLVMBuildStore(u->b, LLVMBuildOr(u->b, get(u, slot), lanes, ""), slot);
}

/* The lanes that wait at `at` run, if there are any. Goes on in a new LLVM block if not; `lanes`,
 * if there are any, then wait at `next`. */
static void resume(bh__jit_unit *u, uint32_t at, uint32_t next, LLVMValueRef lanes) {
    LLVMBasicBlockRef some = bh__jit_new_block(u), none = bh__jit_new_block(u);
    LLVMValueRef waiting = get(u, u->blocks[at].waiting);
    LLVMBuildCondBr(u->b, is_zero(u, waiting), none, some);
    start_at(u, some);
    if (lanes != NULL) {
        wait_at(u, next, lanes);
    }
    LLVMBuildStore(u->b, waiting, u->running);
    LLVMBuildStore(u->b, word(u, 0), u->blocks[at].waiting);
    LLVMBuildBr(u->b, u->blocks[at].masked);
    start_at(u, none);
}

/* `lanes` go on at `next`, after those that wait before it. */
static void continue_at(bh__jit_unit *u, uint32_t next, LLVMValueRef lanes) {
    const uint64_t *pending = u->block->pending;
    for (uint32_t n = 0; n < next; n++) {
        if (ROW_IN(pending, n)) {
            resume(u, n, next, lanes);
        }
    }
    if (ROW_IN(pending, next)) {
        LLVMValueRef slot = u->blocks[next].waiting;
        lanes = LLVMBuildOr(u->b, lanes, get(u, slot), "");
        LLVMBuildStore(u->b, word(u, 0), slot);
    }
    LLVMBuildStore(u->b, lanes, u->running);
    LLVMBuildBr(u->b, u->blocks[next].masked);
}

void bh__jit_go_on(bh__jit_unit *u, uint32_t next) {
    if (u->full) {
        LLVMBuildBr(u->b, u->blocks[next].full);
    } else {
        continue_at(u, next, u->mask);
    }
}

/* Some of the lanes branch: those at the earlier block run, the others wait. */
static void split(bh__jit_unit *u, uint32_t taken, uint32_t other, LLVMValueRef lanes) {
    LLVMValueRef rest = LLVMBuildAnd(u->b, u->mask, LLVMBuildNot(u->b, lanes, ""), "");
    bool forwards = other < taken;
    wait_at(u, forwards ? taken : other, forwards ? lanes : rest);
    LLVMValueRef first = forwards ? rest : lanes;
    if (u->full) {
        LLVMBuildStore(u->b, first, u->running);
        LLVMBuildBr(u->b, u->blocks[forwards ? other : taken].masked);
    } else {
        continue_at(u, forwards ? other : taken, first);
    }
}

void bh__jit_branch(bh__jit_unit *u, const bh__jit_step *s) {
    uint32_t taken = (uint32_t)u->block->next[0], other = (uint32_t)u->block->next[1];
    if (s->code->guard == NO_ROW || taken == other) {
        bh__jit_go_on(u, taken);
        return;
    }
    bh__jit_begin_step(u, s);
    LLVMBasicBlockRef all = bh__jit_new_block(u), none = bh__jit_new_block(u);
    if (u->guard_bit != NULL) {
        LLVMBuildCondBr(u->b, u->guard_bit, all, none);
    } else {
        LLVMBasicBlockRef some = bh__jit_new_block(u), parts = bh__jit_new_block(u);
        LLVMValueRef every = LLVMBuildICmp(u->b, LLVMIntEQ, u->active, u->mask, "");
        LLVMBuildCondBr(u->b, every, all, some);
        start_at(u, some);
        LLVMBuildCondBr(u->b, is_zero(u, u->active), none, parts);
        start_at(u, parts);
        split(u, taken, other, u->active);
    }
    start_at(u, all);
    bh__jit_go_on(u, taken);
    start_at(u, none);
    bh__jit_go_on(u, other);
}

/* The lanes have exited. Others of the warp, which still run, must know. */
static void take_away(bh__jit_unit *u, LLVMValueRef lanes) {
    size_t at = offsetof(bh__ptx_warp, live);
    LLVMValueRef live = bh__jit_field(u, u->warp, at, u->i32);
    live = LLVMBuildAnd(u->b, live, LLVMBuildNot(u->b, lanes, ""), "");
    bh__jit_set_field(u, u->warp, at, live);
}

static void finish(bh__jit_unit *u) {
    for (uint32_t n = 0; !u->full && n < u->block_count; n++) {
        if (ROW_IN(u->block->pending, n)) {
            resume(u, n, 0, NULL);
        }
    }
    bh__jit_end_warp(u);
    bh__jit_set_field(u, u->state, offsetof(bh__ptx_group_state, mask), word(u, 0));
    bh__jit_set_field(u, u->state, offsetof(bh__ptx_group_state, exited), u->all);
    bh__jit_set_field(u, u->state, offsetof(bh__ptx_group_state, left),
                      LLVMBuildLoad2(u->b, u->i64, u->left, ""));
    LLVMBuildRet(u->b, bh__jit_outcome(u, COMPILED_EXIT));
}

void bh__jit_exit(bh__jit_unit *u, const bh__jit_step *s) {
    if (s->code->guard == NO_ROW) {
        if (!u->full) {
            take_away(u, u->mask);
        }
        finish(u);
        return;
    }
    bh__jit_begin_step(u, s);
    uint32_t next = (uint32_t)u->block->next[0];
    LLVMBasicBlockRef none = bh__jit_new_block(u), some = bh__jit_new_block(u);
    LLVMBasicBlockRef all = bh__jit_new_block(u), parts = bh__jit_new_block(u);
    LLVMBuildCondBr(u->b, is_zero(u, u->active), none, some);
    start_at(u, none);
    bh__jit_go_on(u, next);
    start_at(u, some);
    take_away(u, u->active);
    LLVMValueRef rest = LLVMBuildAnd(u->b, u->mask, LLVMBuildNot(u->b, u->active, ""), "");
    LLVMBuildCondBr(u->b, is_zero(u, rest), all, parts);
    start_at(u, all);
    finish(u);
    start_at(u, parts);
    if (u->full) {
        LLVMBuildStore(u->b, rest, u->running);
        LLVMBuildBr(u->b, u->blocks[next].masked);
    } else {
        continue_at(u, next, rest);
    }
}
