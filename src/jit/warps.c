/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From warp to warp, in a block that runs in native code alone (src/ptx/block_native.c). A warp
 * that has exited or waits at the block's barrier is done for now; the function goes on with the
 * next one.
 */
#include <stddef.h>

#include "jit/unit.h"

static LLVMValueRef get(bh__jit_unit *u, size_t offset, LLVMTypeRef type) {
    return bh__jit_field(u, u->state, offset, type);
}

static void count_exited(bh__jit_unit *u, LLVMValueRef lanes) {
    LLVMTypeRef types[] = {u->i32};
    LLVMValueRef count = bh__jit_intrinsic(u, "llvm.ctpop", types, 1, &lanes, 1);
    LLVMValueRef block = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, block), u->ptr);
    size_t at = offsetof(bh__ptx_block, live_threads);
    LLVMValueRef threads = bh__jit_field(u, block, at, u->i32);
    bh__jit_set_field(u, block, at, LLVMBuildSub(u->b, threads, count, ""));
}

LLVMValueRef bh__jit_rows_are(bh__jit_unit *u, LLVMIntPredicate how, uint32_t what) {
    LLVMValueRef rows = get(u, offsetof(bh__ptx_group_state, rows), u->i32);
    return LLVMBuildICmp(u->b, how, rows, bh__jit_int(u, u->i32, what), "");
}

void bh__jit_end_warp(bh__jit_unit *u) {
    LLVMBasicBlockRef alone = bh__jit_new_block(u), on = bh__jit_new_block(u);
    LLVMBuildCondBr(u->b, bh__jit_rows_are(u, LLVMIntNE, ROWS_WHOLE), alone, on);
    LLVMPositionBuilderAtEnd(u->b, alone);
    count_exited(u, u->all);
    bh__jit_set_field(u, u->warp, offsetof(bh__ptx_warp, live), bh__jit_int(u, u->i32, 0));
    LLVMBuildBr(u->b, u->next_warp);
    LLVMPositionBuilderAtEnd(u->b, on);
}

void bh__jit_wait(bh__jit_unit *u) {
    LLVMBasicBlockRef wait = bh__jit_new_block(u), on = bh__jit_new_block(u);
    LLVMValueRef live = bh__jit_field(u, u->warp, offsetof(bh__ptx_warp, live), u->i32);
    LLVMValueRef alone = bh__jit_rows_are(u, LLVMIntNE, ROWS_WHOLE);
    if (!u->full) {
        LLVMValueRef all = LLVMBuildICmp(u->b, LLVMIntEQ, live, u->mask, "");
        alone = LLVMBuildAnd(u->b, alone, all, "");
    }
    LLVMBuildCondBr(u->b, alone, wait, on);
    LLVMPositionBuilderAtEnd(u->b, wait);
    const bh__jit_block *next = &u->blocks[u->block->next[0]];
    for (uint32_t n = 0; n < u->row_count; n++) {
        if (ROW_IN(next->live, n)) {
            bh__jit_pack(u, &u->rows[n]);
        }
    }
    if (!u->full) {
        count_exited(u, LLVMBuildAnd(u->b, u->all, LLVMBuildNot(u->b, live, ""), ""));
    }
    bh__jit_set_field(u, u->warp, offsetof(bh__ptx_warp, pc),
                      bh__jit_int(u, u->i32, u->first + next->first));
    LLVMBuildBr(u->b, u->next_warp);
    LLVMPositionBuilderAtEnd(u->b, on);
}

/* Goes to `head` with the next warp, if there is one that can run and enough time is left for
 * it. */
void bh__jit_make_next_warp(bh__jit_unit *u, LLVMBasicBlockRef head) {
    LLVMBasicBlockRef more = bh__jit_new_block(u), go = bh__jit_new_block(u);
    LLVMBasicBlockRef stop = bh__jit_new_block(u);
    LLVMPositionBuilderAtEnd(u->b, u->next_warp);
    size_t rest_at = offsetof(bh__ptx_group_state, rest);
    LLVMValueRef rest = get(u, rest_at, u->i32), zero = bh__jit_int(u, u->i32, 0);
    LLVMValueRef left = LLVMBuildLoad2(u->b, u->i64, u->left, "");
    LLVMValueRef time =
        LLVMBuildICmp(u->b, LLVMIntSGT, left, bh__jit_int(u, u->i64, NATIVE_SLICE / 2), "");
    LLVMValueRef any = LLVMBuildICmp(u->b, LLVMIntNE, rest, zero, "");
    LLVMBuildCondBr(u->b, LLVMBuildAnd(u->b, any, time, ""), more, stop);

    LLVMPositionBuilderAtEnd(u->b, more);
    LLVMValueRef size = bh__jit_int(u, u->i64, sizeof(bh__ptx_warp));
    LLVMValueRef warp = LLVMBuildInBoundsGEP2(u->b, u->i8, u->warp, &size, 1, "");
    LLVMValueRef live = bh__jit_field(u, warp, offsetof(bh__ptx_warp, live), u->i32);
    LLVMBuildCondBr(u->b, LLVMBuildICmp(u->b, LLVMIntNE, live, zero, ""), go, stop);

    LLVMPositionBuilderAtEnd(u->b, go);
    bh__jit_set_field(u, u->state, rest_at,
                      LLVMBuildSub(u->b, rest, bh__jit_int(u, u->i32, 1), ""));
    bh__jit_set_field(u, u->state, offsetof(bh__ptx_group_state, mask), live);
    bh__jit_set_field(u, u->state, offsetof(bh__ptx_group_state, pc),
                      bh__jit_field(u, warp, offsetof(bh__ptx_warp, pc), u->i32));
    bh__jit_set_field(u, u->x, offsetof(bh__ptx_exec, warp), warp);
    bh__jit_set_field(u, u->x, offsetof(bh__ptx_exec, bases),
                      bh__jit_field(u, warp, offsetof(bh__ptx_warp, regs), u->ptr));
    LLVMBuildBr(u->b, head);

    LLVMPositionBuilderAtEnd(u->b, stop);
    bh__jit_set_field(u, u->state, offsetof(bh__ptx_group_state, left), left);
    LLVMBuildRet(u->b, bh__jit_outcome(u, COMPILED_WARPS));
}
