/* SPDX-License-Identifier: Apache-2.0 */
/* Approximate functions, with the operations of src/ptx/approx.h in their order. */
#include "ptx/approx.h"
#include "jit/floats.h"

static LLVMValueRef number(bh__jit_unit *u, LLVMValueRef like, double v) {
    LLVMValueRef bits = bh__jit_bits_of(u, like, true);
    return bh__jit_real_of(u, bh__jit_const_like(u, bits, bh__bits_of_double(v)), true);
}

LLVMValueRef bh__jit_ex2(bh__jit_unit *u, LLVMValueRef a) {
    LLVMValueRef x = LLVMBuildFPExt(u->b, a, bh__jit_shaped(a, u->f64), "");
    LLVMValueRef least = number(u, x, BH__EX2_MIN), most = number(u, x, BH__EX2_MAX);
    LLVMValueRef round = number(u, x, BH__EX2_ROUND), sum = number(u, x, bh__ex2_terms[0]);
    x = LLVMBuildSelect(u->b, LLVMBuildFCmp(u->b, LLVMRealOLT, x, least, ""), least, x, "");
    x = LLVMBuildSelect(u->b, LLVMBuildFCmp(u->b, LLVMRealOGT, x, most, ""), most, x, "");
    LLVMValueRef rounded = LLVMBuildFAdd(u->b, x, round, "");
    LLVMValueRef r = LLVMBuildFSub(u->b, x, LLVMBuildFSub(u->b, rounded, round, ""), "");
    for (int n = 1; n < BH__EX2_TERMS; n++) {
        sum = LLVMBuildFMul(u->b, sum, r, "");
        sum = LLVMBuildFAdd(u->b, sum, number(u, x, bh__ex2_terms[n]), "");
    }
    LLVMValueRef power = bh__jit_bits_of(u, rounded, true);
    power = LLVMBuildAdd(u->b, power, bh__jit_const_like(u, power, 1023), "");
    power = LLVMBuildShl(u->b, power, bh__jit_const_like(u, power, 52), "");
    sum = LLVMBuildFMul(u->b, sum, bh__jit_real_of(u, power, true), "");
    return LLVMBuildFPTrunc(u->b, sum, LLVMTypeOf(a), "");
}
