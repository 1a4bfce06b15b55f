/* SPDX-License-Identifier: Apache-2.0 */
/* Single and double precision, rounded to nearest, with the interpreter's NaNs and flushing:
 * src/ptx/fp.h says what they are. */
#include "jit/floats.h"
#include "ptx/fp.h"

LLVMValueRef bh__jit_bits_of(bh__jit_unit *u, LLVMValueRef v, bool wide) {
    return LLVMBuildBitCast(u->b, v, bh__jit_shaped(v, wide ? u->i64 : u->i32), "");
}

LLVMValueRef bh__jit_real_of(bh__jit_unit *u, LLVMValueRef v, bool wide) {
    return LLVMBuildBitCast(u->b, v, bh__jit_shaped(v, wide ? u->f64 : u->f32), "");
}

static LLVMValueRef operand(bh__jit_unit *u, const bh__jit_step *s, int32_t row, bool wide) {
    return bh__jit_real_of(u, bh__jit_operand(u, s->code->d, row, wide), wide);
}

static LLVMValueRef real_const(bh__jit_unit *u, LLVMValueRef like, float f) {
    LLVMValueRef bits = bh__jit_bits_of(u, like, false);
    return bh__jit_real_of(u, bh__jit_const_like(u, bits, bh__bits_of_float(f)), false);
}

LLVMValueRef bh__jit_is_nan(bh__jit_unit *u, LLVMValueRef v) {
    return LLVMBuildFCmp(u->b, LLVMRealUNO, v, v, "");
}

LLVMValueRef bh__jit_canonical(bh__jit_unit *u, LLVMValueRef v) {
    LLVMValueRef bits = bh__jit_bits_of(u, v, false);
    LLVMValueRef nan = bh__jit_const_like(u, bits, NAN_F32);
    return bh__jit_real_of(u, LLVMBuildSelect(u->b, bh__jit_is_nan(u, v), nan, bits, ""), false);
}

static bool any_nan_will_do(const bh__jit_unit *u, int32_t row) {
    int32_t index = bh__jit_row_index(u, row);
    return index >= 0 && u->rows[index].any_nan;
}

static LLVMValueRef sign_of(bh__jit_unit *u, LLVMValueRef bits) {
    return LLVMBuildAnd(u->b, bits, bh__jit_const_like(u, bits, 0x80000000u), "");
}

LLVMValueRef bh__jit_flush(bh__jit_unit *u, LLVMValueRef v) {
    LLVMValueRef bits = bh__jit_bits_of(u, v, false);
    LLVMValueRef exponent = LLVMBuildAnd(u->b, bits, bh__jit_const_like(u, bits, 0x7f800000u), "");
    LLVMValueRef tiny =
        LLVMBuildICmp(u->b, LLVMIntEQ, exponent, bh__jit_const_like(u, bits, 0), "");
    return bh__jit_real_of(u, LLVMBuildSelect(u->b, tiny, sign_of(u, bits), bits, ""), false);
}

static LLVMValueRef flush_scaled(bh__jit_unit *u, LLVMValueRef r, LLVMValueRef scaled) {
    float limit = 0x1p-126f * BH__FTZ_SCALE;
    LLVMValueRef above = LLVMBuildFCmp(u->b, LLVMRealOGT, scaled, real_const(u, r, -limit), "");
    LLVMValueRef below = LLVMBuildFCmp(u->b, LLVMRealOLT, scaled, real_const(u, r, limit), "");
    LLVMValueRef bits = bh__jit_bits_of(u, r, false);
    LLVMValueRef tiny = LLVMBuildAnd(u->b, above, below, "");
    return bh__jit_real_of(u, LLVMBuildSelect(u->b, tiny, sign_of(u, bits), bits, ""), false);
}

LLVMValueRef bh__jit_saturate(bh__jit_unit *u, LLVMValueRef v) {
    LLVMValueRef one = real_const(u, v, 1), zero = real_const(u, v, 0);
    LLVMValueRef positive = LLVMBuildFCmp(u->b, LLVMRealOGT, v, zero, "");
    LLVMValueRef large = LLVMBuildFCmp(u->b, LLVMRealOGE, v, one, "");
    v = LLVMBuildSelect(u->b, positive, v, zero, "");
    return LLVMBuildSelect(u->b, large, one, v, "");
}

static LLVMValueRef call(bh__jit_unit *u, const char *name, LLVMValueRef *args, unsigned count) {
    LLVMTypeRef types[] = {LLVMTypeOf(args[0])};
    return bh__jit_intrinsic(u, name, types, 1, args, count);
}

static LLVMValueRef compute(bh__jit_unit *u, bh__jit_op op, LLVMValueRef a, LLVMValueRef b,
                            LLVMValueRef c) {
    LLVMValueRef args[] = {a, b, c};
    switch (op) {
    case JIT_FADD:
        return LLVMBuildFAdd(u->b, a, b, "");
    case JIT_FSUB:
        return LLVMBuildFSub(u->b, a, b, "");
    case JIT_FMUL:
        return LLVMBuildFMul(u->b, a, b, "");
    case JIT_FMA:
        return call(u, "llvm.fma", args, 3);
    case JIT_SQRT:
        return call(u, "llvm.sqrt", args, 1);
    default:
        return LLVMBuildFDiv(u->b, a, b, "");
    }
}

/* The same with a result that has the factor BH__FTZ_SCALE. */
static LLVMValueRef compute_scaled(bh__jit_unit *u, bh__jit_op op, LLVMValueRef a, LLVMValueRef b,
                                   LLVMValueRef c) {
    LLVMValueRef scale = real_const(u, a, BH__FTZ_SCALE);
    a = LLVMBuildFMul(u->b, a, scale, "");
    c = c == NULL ? NULL : LLVMBuildFMul(u->b, c, scale, "");
    return compute(u, op, a, b, c);
}

static bool is_nearest(const bh__ptx_insn *insn) {
    return !HAS(insn, RZ) && !HAS(insn, RM) && !HAS(insn, RP);
}

static LLVMValueRef single(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *k = s->code;
    bool ftz = HAS(s->insn, FTZ), one = s->op == JIT_RCP || s->op == JIT_SQRT;
    LLVMValueRef a = operand(u, s, k->a, false);
    LLVMValueRef b = one ? NULL : operand(u, s, k->b, false);
    LLVMValueRef c = s->op == JIT_FMA ? operand(u, s, k->c, false) : NULL;
    if (ftz) {
        a = bh__jit_flush(u, a);
        b = b == NULL ? NULL : bh__jit_flush(u, b);
        c = c == NULL ? NULL : bh__jit_flush(u, c);
    }
    if (s->op == JIT_RCP) {
        b = a;
        a = real_const(u, a, 1);
    }
    LLVMValueRef args[] = {a, b, c};
    LLVMValueRef r = is_nearest(s->insn)
                         ? compute(u, s->op, a, b, c)
                         : bh__jit_rounded(u, s->op, s->insn, args, c == NULL ? 2 : 3);
    bool inexact = s->op == JIT_FMUL || s->op == JIT_FMA || s->op == JIT_FDIV || s->op == JIT_RCP;
    if (ftz) {
        r = inexact ? flush_scaled(u, r, compute_scaled(u, s->op, a, b, c)) : bh__jit_flush(u, r);
    }
    if (!any_nan_will_do(u, k->d)) {
        r = bh__jit_canonical(u, r);
    }
    return HAS(s->insn, SAT) ? bh__jit_saturate(u, r) : r;
}

/* The first of the operands, in this order, that is a NaN, made quiet; else the default. */
static LLVMValueRef pick_nan(bh__jit_unit *u, LLVMValueRef *order, unsigned count) {
    LLVMValueRef bits = bh__jit_bits_of(u, order[0], true);
    LLVMValueRef r = bh__jit_const_like(u, bits, NAN_F64);
    LLVMValueRef quiet = bh__jit_const_like(u, bits, UINT64_C(1) << 51);
    for (unsigned n = count; n > 0; n--) {
        LLVMValueRef v = LLVMBuildOr(u->b, bh__jit_bits_of(u, order[n - 1], true), quiet, "");
        r = LLVMBuildSelect(u->b, bh__jit_is_nan(u, order[n - 1]), v, r, "");
    }
    return r;
}

static LLVMValueRef twice(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *k = s->code;
    bool three = s->op == JIT_FMA;
    LLVMValueRef a = operand(u, s, k->a, true), b = operand(u, s, k->b, true);
    LLVMValueRef c = three ? operand(u, s, k->c, true) : NULL;
    LLVMValueRef r = compute(u, s->op, a, b, c);
    LLVMValueRef order[] = {b, three ? c : a, a}, quotient[] = {a, b};
    LLVMValueRef nan =
        s->op == JIT_FDIV ? pick_nan(u, quotient, 2) : pick_nan(u, order, three ? 3 : 2);
    return LLVMBuildSelect(u->b, bh__jit_is_nan(u, r), nan, bh__jit_bits_of(u, r, true), "");
}

/* Of zeros, the negative one is the smaller. */
static LLVMValueRef extreme(bh__jit_unit *u, const bh__jit_step *s) {
    bool max = s->op == JIT_FMAX;
    LLVMValueRef a = operand(u, s, s->code->a, false), b = operand(u, s, s->code->b, false);
    LLVMValueRef bits = bh__jit_bits_of(u, a, false);
    LLVMValueRef negative =
        LLVMBuildICmp(u->b, LLVMIntSLT, bits, bh__jit_const_like(u, bits, 0), "");
    LLVMValueRef equal = LLVMBuildFCmp(u->b, LLVMRealOEQ, a, b, "");
    LLVMValueRef wins = LLVMBuildFCmp(u->b, max ? LLVMRealOGT : LLVMRealOLT, a, b, "");
    LLVMValueRef tie = max ? LLVMBuildNot(u->b, negative, "") : negative;
    LLVMValueRef take_a = LLVMBuildSelect(u->b, equal, tie, wins, "");
    LLVMValueRef r = LLVMBuildSelect(u->b, take_a, a, b, "");
    r = LLVMBuildSelect(u->b, bh__jit_is_nan(u, b), a, r, "");
    return LLVMBuildSelect(u->b, bh__jit_is_nan(u, a), bh__jit_canonical(u, b), r, "");
}

static LLVMValueRef change_sign(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef a = operand(u, s, s->code->a, false), bits = bh__jit_bits_of(u, a, false);
    LLVMValueRef r = s->op == JIT_FNEG
                         ? LLVMBuildXor(u->b, bits, bh__jit_const_like(u, bits, 0x80000000u), "")
                         : LLVMBuildAnd(u->b, bits, bh__jit_const_like(u, bits, 0x7fffffffu), "");
    return LLVMBuildSelect(u->b, bh__jit_is_nan(u, a), bh__jit_const_like(u, bits, NAN_F32), r, "");
}

/* 1 / sqrt, rounded twice: in double precision, then to single. */
static LLVMValueRef reciprocal_root(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef a = operand(u, s, s->code->a, false);
    bool ftz = HAS(s->insn, FTZ);
    a = ftz ? bh__jit_flush(u, a) : a;
    LLVMTypeRef narrow = LLVMTypeOf(a), types[] = {bh__jit_shaped(a, u->f64)};
    LLVMValueRef wide = LLVMBuildFPExt(u->b, a, types[0], "");
    LLVMValueRef root = bh__jit_intrinsic(u, "llvm.sqrt", types, 1, &wide, 1);
    LLVMValueRef one = bh__jit_bits_of(u, wide, true);
    one = bh__jit_real_of(u, bh__jit_const_like(u, one, UINT64_C(0x3ff0000000000000)), true);
    LLVMValueRef r = LLVMBuildFPTrunc(u->b, LLVMBuildFDiv(u->b, one, root, ""), narrow, "");
    return bh__jit_canonical(u, ftz ? bh__jit_flush(u, r) : r);
}

static LLVMValueRef power_of_two(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef a = operand(u, s, s->code->a, false);
    bool ftz = HAS(s->insn, FTZ);
    LLVMValueRef r = bh__jit_ex2(u, ftz ? bh__jit_flush(u, a) : a);
    return bh__jit_canonical(u, ftz ? bh__jit_flush(u, r) : r);
}

/* a * (1 / b): the reciprocal of |b| above 2^126 is zero. */
static LLVMValueRef quotient(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef a = operand(u, s, s->code->a, false), b = operand(u, s, s->code->b, false);
    bool ftz = HAS(s->insn, FTZ);
    a = ftz ? bh__jit_flush(u, a) : a;
    b = ftz ? bh__jit_flush(u, b) : b;
    LLVMValueRef bits = bh__jit_bits_of(u, b, false);
    LLVMValueRef zero = bh__jit_real_of(u, sign_of(u, bits), false);
    LLVMValueRef size = LLVMBuildAnd(u->b, bits, bh__jit_const_like(u, bits, 0x7fffffffu), "");
    LLVMValueRef large =
        LLVMBuildICmp(u->b, LLVMIntUGT, size, bh__jit_const_like(u, bits, 0x7e800000u), "");
    LLVMValueRef finite =
        LLVMBuildICmp(u->b, LLVMIntULT, size, bh__jit_const_like(u, bits, 0x7f800000u), "");
    LLVMValueRef none = LLVMBuildAnd(u->b, large, finite, "");
    LLVMValueRef r = LLVMBuildSelect(u->b, none, LLVMBuildFMul(u->b, a, zero, ""),
                                     LLVMBuildFDiv(u->b, a, b, ""), "");
    return bh__jit_canonical(u, ftz ? bh__jit_flush(u, r) : r);
}

void bh__jit_floating(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef r;
    bool wide = s->insn->types[0] == T_F64;
    switch (s->op) {
    case JIT_RSQRT:
        r = reciprocal_root(u, s);
        break;
    case JIT_EX2:
        r = power_of_two(u, s);
        break;
    case JIT_QUOTIENT:
        r = quotient(u, s);
        break;
    case JIT_FNEG:
    case JIT_FABS:
        r = change_sign(u, s);
        break;
    case JIT_FMIN:
    case JIT_FMAX:
        r = extreme(u, s);
        break;
    default:
        r = wide ? twice(u, s) : single(u, s);
        break;
    }
    bh__jit_set(u, s->code->d, bh__jit_bits_of(u, r, wide));
}
