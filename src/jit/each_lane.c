/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over lanes, for what cannot be done for all of them at once. */
#include "jit/unit.h"

LLVMValueRef bh__jit_scratch(bh__jit_unit *u, unsigned row) {
    LLVMValueRef index = bh__jit_int(u, u->i64, row * 8u * LANES);
    return LLVMBuildInBoundsGEP2(u->b, u->i8, u->scratch, &index, 1, "");
}

LLVMValueRef bh__jit_scratch_at(bh__jit_unit *u, unsigned row, LLVMTypeRef type,
                                LLVMValueRef lane) {
    return LLVMBuildInBoundsGEP2(u->b, type, bh__jit_scratch(u, row), &lane, 1, "");
}

void bh__jit_loop_begin(bh__jit_unit *u, LLVMValueRef mask, bh__jit_loop *out) {
    *out = (bh__jit_loop){.mask = mask,
                          .before = LLVMGetInsertBlock(u->b),
                          .body = bh__jit_new_block(u),
                          .after = bh__jit_new_block(u)};
    LLVMBuildBr(u->b, out->body);
    LLVMPositionBuilderAtEnd(u->b, out->body);
    out->left = LLVMBuildPhi(u->b, u->i32, "");
    LLVMTypeRef types[] = {u->i32};
    LLVMValueRef args[] = {out->left, bh__jit_int(u, u->i1, 1)};
    LLVMValueRef lane = bh__jit_intrinsic(u, "llvm.cttz", types, 1, args, 2);
    out->lane = LLVMBuildZExt(u->b, lane, u->i64, "");
}

void bh__jit_loop_end(bh__jit_unit *u, const bh__jit_loop *loop) {
    LLVMValueRef less = LLVMBuildSub(u->b, loop->left, bh__jit_int(u, u->i32, 1), "");
    LLVMValueRef rest = LLVMBuildAnd(u->b, loop->left, less, "");
    LLVMValueRef none = LLVMBuildICmp(u->b, LLVMIntEQ, rest, bh__jit_int(u, u->i32, 0), "");
    LLVMBuildCondBr(u->b, none, loop->after, loop->body);
    LLVMValueRef from[] = {loop->mask, rest};
    LLVMBasicBlockRef blocks[] = {loop->before, LLVMGetInsertBlock(u->b)};
    LLVMAddIncoming(loop->left, from, blocks, 2);
    LLVMPositionBuilderAtEnd(u->b, loop->after);
}
