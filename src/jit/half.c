/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f16, alone and in pairs: add, sub, mul, fma, cvt to and from single precision, rounded to
 * nearest. A sum or product of two halves may be rounded to single precision first: that has more
 * than twice the digits, so the second rounding gives what one would. For fma both steps round to
 * odd; see src/ptx/exec/half.c.
 */
#include "jit/floats.h"

enum { NAN_F16 = 0x7fff };

static LLVMTypeRef half_type(const bh__jit_unit *u) {
    return LLVMHalfTypeInContext(u->context);
}

/* A half in the lower or the upper 16 bits of a word, in single precision. */
static LLVMValueRef half_in(bh__jit_unit *u, LLVMValueRef word, unsigned shift) {
    LLVMValueRef bits = LLVMBuildLShr(u->b, word, bh__jit_const_like(u, word, shift), "");
    bits = LLVMBuildTrunc(u->b, bits, bh__jit_shaped(bits, u->i16), "");
    LLVMValueRef v = LLVMBuildBitCast(u->b, bits, bh__jit_shaped(bits, half_type(u)), "");
    return LLVMBuildFPExt(u->b, v, bh__jit_shaped(v, u->f32), "");
}

/* Rounded to half precision, in the lower 16 bits of a word. */
static LLVMValueRef as_half(bh__jit_unit *u, LLVMValueRef v) {
    LLVMValueRef rounded = LLVMBuildFPTrunc(u->b, v, bh__jit_shaped(v, half_type(u)), "");
    LLVMValueRef bits = LLVMBuildBitCast(u->b, rounded, bh__jit_shaped(v, u->i16), "");
    LLVMValueRef nan = bh__jit_const_like(u, bits, NAN_F16);
    bits = LLVMBuildSelect(u->b, bh__jit_is_nan(u, v), nan, bits, "");
    return LLVMBuildZExt(u->b, bits, bh__jit_shaped(bits, u->i32), "");
}

/* `v` moved by one unit in its last place towards `lost`, which rounding left out, if that makes
 * the last bit odd. */
static LLVMValueRef make_odd(bh__jit_unit *u, LLVMValueRef v, LLVMValueRef lost, bool wide) {
    LLVMValueRef bits = bh__jit_bits_of(u, v, wide), one = bh__jit_const_like(u, bits, 1);
    LLVMValueRef none = LLVMConstNull(LLVMTypeOf(bits));
    LLVMValueRef zero = bh__jit_real_of(u, none, wide);
    LLVMValueRef even = LLVMBuildICmp(u->b, LLVMIntEQ, LLVMBuildAnd(u->b, bits, one, ""), none, "");
    LLVMValueRef inexact = LLVMBuildFCmp(u->b, LLVMRealONE, lost, zero, "");
    LLVMValueRef outwards = LLVMBuildXor(u->b, LLVMBuildFCmp(u->b, LLVMRealOGT, lost, zero, ""),
                                         LLVMBuildFCmp(u->b, LLVMRealOGT, v, zero, ""), "");
    LLVMValueRef moved = LLVMBuildSelect(u->b, outwards, LLVMBuildSub(u->b, bits, one, ""),
                                         LLVMBuildAdd(u->b, bits, one, ""), "");
    LLVMValueRef change = LLVMBuildAnd(u->b, even, inexact, "");
    return bh__jit_real_of(u, LLVMBuildSelect(u->b, change, moved, bits, ""), wide);
}

/* a * b + c in single precision, rounded to odd. The product of two halves is exact in double. */
static LLVMValueRef multiply_add(bh__jit_unit *u, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
    LLVMTypeRef wide = bh__jit_shaped(a, u->f64);
    a = LLVMBuildFPExt(u->b, a, wide, "");
    b = LLVMBuildFPExt(u->b, b, wide, "");
    c = LLVMBuildFPExt(u->b, c, wide, "");
    LLVMValueRef product = LLVMBuildFMul(u->b, a, b, "");
    LLVMValueRef sum = LLVMBuildFAdd(u->b, product, c, "");
    LLVMValueRef part = LLVMBuildFSub(u->b, sum, product, "");
    LLVMValueRef lost = LLVMBuildFSub(u->b, sum, part, "");
    lost = LLVMBuildFSub(u->b, product, lost, "");
    lost = LLVMBuildFAdd(u->b, lost, LLVMBuildFSub(u->b, c, part, ""), "");
    sum = make_odd(u, sum, lost, true);
    LLVMValueRef narrow = LLVMBuildFPTrunc(u->b, sum, bh__jit_shaped(sum, u->f32), "");
    lost = LLVMBuildFSub(u->b, sum, LLVMBuildFPExt(u->b, narrow, wide, ""), "");
    lost = LLVMBuildFPTrunc(u->b, lost, LLVMTypeOf(narrow), "");
    return make_odd(u, narrow, lost, false);
}

static LLVMValueRef compute(bh__jit_unit *u, const bh__ptx_insn *insn, const LLVMValueRef *words,
                            unsigned shift) {
    LLVMValueRef in[3] = {NULL};
    for (unsigned n = 0; n < 3 && words[n] != NULL; n++) {
        in[n] = half_in(u, words[n], shift);
    }
    switch (insn->op) {
    case OP_ADDH:
        return as_half(u, LLVMBuildFAdd(u->b, in[0], in[1], ""));
    case OP_SUBH:
        return as_half(u, LLVMBuildFSub(u->b, in[0], in[1], ""));
    case OP_MULH:
        return as_half(u, LLVMBuildFMul(u->b, in[0], in[1], ""));
    default:
        return as_half(u, multiply_add(u, in[0], in[1], in[2]));
    }
}

LLVMValueRef bh__jit_half(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    const int32_t rows[] = {c->a, c->b, c->c};
    unsigned count = s->insn->op == OP_FMAH ? 3 : 2;
    LLVMValueRef words[3] = {NULL};
    for (unsigned n = 0; n < count; n++) {
        words[n] = bh__jit_operand(u, c->d, rows[n], false);
    }
    LLVMValueRef r = compute(u, s->insn, words, 0);
    if (c->bytes == 4) {
        LLVMValueRef upper = compute(u, s->insn, words, 16);
        upper = LLVMBuildShl(u->b, upper, bh__jit_const_like(u, upper, 16), "");
        r = LLVMBuildOr(u->b, r, upper, "");
    }
    return r;
}

LLVMValueRef bh__jit_from_half(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef v = half_in(u, bh__jit_operand(u, s->code->d, s->code->a, false), 0);
    return bh__jit_bits_of(u, bh__jit_canonical(u, v), false);
}

LLVMValueRef bh__jit_to_half(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef v = bh__jit_operand(u, s->code->d, s->code->a, false);
    return as_half(u, bh__jit_real_of(u, v, false));
}
