/* SPDX-License-Identifier: Apache-2.0 */
/* div and rem of integers. Division by zero gives all ones; the smallest number divided by -1
 * wraps around. */
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

static LLVMValueRef plain(bh__jit_unit *u, LLVMValueRef a, LLVMValueRef b, bool is_signed) {
    return is_signed ? LLVMBuildSDiv(u->b, a, b, "") : LLVMBuildUDiv(u->b, a, b, "");
}

/* 64 bits: lane after lane, of those that run. */
static LLVMValueRef one_by_one(bh__jit_unit *u, LLVMValueRef a, LLVMValueRef b, bool is_signed,
                               LLVMValueRef known) {
    enum { AT_A, AT_B, AT_QUOTIENT };
    bh__jit_loop loop;
    LLVMTypeRef type = LLVMTypeOf(a), element = LLVMGetElementType(type);
    LLVMBuildStore(u->b, a, bh__jit_scratch(u, AT_A));
    LLVMBuildStore(u->b, b, bh__jit_scratch(u, AT_B));
    LLVMBuildStore(u->b, a, bh__jit_scratch(u, AT_QUOTIENT));
    LLVMBasicBlockRef none = bh__jit_new_block(u), some = bh__jit_new_block(u);
    LLVMBuildCondBr(u->b, LLVMBuildICmp(u->b, LLVMIntEQ, u->active, bh__jit_int(u, u->i32, 0), ""),
                    none, some);
    LLVMPositionBuilderAtEnd(u->b, some);
    bh__jit_loop_begin(u, u->active, &loop);
    LLVMValueRef x =
        LLVMBuildLoad2(u->b, element, bh__jit_scratch_at(u, AT_A, element, loop.lane), "");
    LLVMValueRef y = known;
    if (y == NULL) {
        y = LLVMBuildLoad2(u->b, element, bh__jit_scratch_at(u, AT_B, element, loop.lane), "");
    }
    LLVMBuildStore(u->b, plain(u, x, y, is_signed),
                   bh__jit_scratch_at(u, AT_QUOTIENT, element, loop.lane));
    bh__jit_loop_end(u, &loop);
    LLVMBuildBr(u->b, none);
    LLVMPositionBuilderAtEnd(u->b, none);
    return LLVMBuildLoad2(u->b, type, bh__jit_scratch(u, AT_QUOTIENT), "");
}

/* As wide as the division is made: 32 bits at least. */
static LLVMValueRef source(bh__jit_unit *u, const bh__jit_step *s, int32_t row, bool is_signed) {
    unsigned bytes = bh__ptx_bytes((bh__ptx_type)s->insn->types[0]);
    LLVMValueRef v = bh__jit_operand(u, s->code->d, row, bytes == 8);
    if (bytes != 2) {
        return v;
    }
    LLVMTypeRef wide = LLVMTypeOf(v);
    v = LLVMBuildTrunc(u->b, v, bh__jit_shaped(v, u->i16), "");
    return LLVMBuildIntCast2(u->b, v, wide, is_signed, "");
}

LLVMValueRef bh__jit_divide(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    unsigned bytes = bh__ptx_bytes((bh__ptx_type)s->insn->types[0]);
    bool is_signed = bh__ptx_class((bh__ptx_type)s->insn->types[0]) == 'S';
    LLVMValueRef a = source(u, s, c->a, is_signed), b = source(u, s, c->b, is_signed);
    LLVMValueRef none = equals(u, b, 0), minus = equals(u, b, UINT64_MAX);
    LLVMValueRef odd = is_signed ? LLVMBuildOr(u->b, none, minus, "") : none;
    LLVMValueRef by = LLVMBuildSelect(u->b, odd, bh__jit_const_like(u, b, 1), b, "");
    bool known = c->b < 0; /* a division by a constant is a multiplication */
    LLVMValueRef q;
    if (bh__jit_width(a) == LANES && bytes == 8) {
        LLVMValueRef first = LLVMBuildExtractElement(u->b, by, bh__jit_int(u, u->i32, 0), "");
        q = one_by_one(u, a, by, is_signed, known ? first : NULL);
    } else if (bh__jit_is_vector(a) && bytes != 8 && !known) {
        q = as_doubles(u, a, by, is_signed);
    } else {
        q = plain(u, a, by, is_signed);
    }
    LLVMValueRef r = q;
    if (s->op == JIT_REM) {
        r = LLVMBuildSub(u->b, a, LLVMBuildMul(u->b, q, by, ""), "");
    }
    if (is_signed) {
        LLVMValueRef wrapped =
            s->op == JIT_REM ? bh__jit_const_like(u, a, 0) : LLVMBuildNeg(u->b, a, "");
        r = LLVMBuildSelect(u->b, minus, wrapped, r, "");
    }
    r = LLVMBuildSelect(u->b, none, bh__jit_const_like(u, a, UINT64_MAX), r, "");
    return bytes == 2 ? LLVMBuildTrunc(u->b, r, bh__jit_shaped(r, u->i16), "") : r;
}
