/* SPDX-License-Identifier: Apache-2.0 */
/* div and rem of 32-bit integers. Division by zero gives all ones; the smallest number divided by
 * -1 wraps around. */
#include "jit/unit.h"

static LLVMValueRef equals(bh__jit_unit *u, LLVMValueRef v, uint64_t what) {
    return LLVMBuildICmp(u->b, LLVMIntEQ, v, bh__jit_const_like(u, v, what), "");
}

/* The processor has no vectors of integer divisions. A quotient of 32 bits, cut off, is exact in
 * double precision. */
static LLVMValueRef as_doubles(bh__jit_unit *u, LLVMValueRef a, LLVMValueRef b, bool is_signed) {
    LLVMTypeRef real = bh__jit_shaped(a, u->f64), whole = LLVMTypeOf(a);
    if (is_signed) {
        a = LLVMBuildSIToFP(u->b, a, real, "");
        b = LLVMBuildSIToFP(u->b, b, real, "");
        return LLVMBuildFPToSI(u->b, LLVMBuildFDiv(u->b, a, b, ""), whole, "");
    }
    a = LLVMBuildUIToFP(u->b, a, real, "");
    b = LLVMBuildUIToFP(u->b, b, real, "");
    return LLVMBuildFPToUI(u->b, LLVMBuildFDiv(u->b, a, b, ""), whole, "");
}

LLVMValueRef bh__jit_divide(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    bool is_signed = bh__ptx_class((bh__ptx_type)s->insn->types[0]) == 'S';
    LLVMValueRef a = bh__jit_operand(u, c->d, c->a, false),
                 b = bh__jit_operand(u, c->d, c->b, false);
    LLVMValueRef none = equals(u, b, 0), minus = equals(u, b, UINT32_MAX);
    LLVMValueRef odd = is_signed ? LLVMBuildOr(u->b, none, minus, "") : none;
    LLVMValueRef by = LLVMBuildSelect(u->b, odd, bh__jit_const_like(u, b, 1), b, "");
    bool known = c->b < 0; /* a division by a constant is a multiplication */
    LLVMValueRef q = bh__jit_is_vector(a) && !known ? as_doubles(u, a, by, is_signed)
                     : is_signed                    ? LLVMBuildSDiv(u->b, a, by, "")
                                                    : LLVMBuildUDiv(u->b, a, by, "");
    LLVMValueRef r = q;
    if (s->op == JIT_REM) {
        r = LLVMBuildSub(u->b, a, LLVMBuildMul(u->b, q, by, ""), "");
    }
    if (is_signed) {
        LLVMValueRef wrapped =
            s->op == JIT_REM ? bh__jit_const_like(u, a, 0) : LLVMBuildNeg(u->b, a, "");
        r = LLVMBuildSelect(u->b, minus, wrapped, r, "");
    }
    return LLVMBuildSelect(u->b, none, bh__jit_const_like(u, a, UINT32_MAX), r, "");
}
