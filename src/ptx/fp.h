/* SPDX-License-Identifier: Apache-2.0 */
/* Floating point as on a GPU: canonical NaN, flushed subnormals, saturation, rounding. */
#ifndef BH_PTX_FP_H
#define BH_PTX_FP_H

#include <fenv.h>

#include "ptx/half.h"
#include "ptx/ir.h"

#define NAN_F32 0x7fffffffu
#define NAN_F64 UINT64_C(0xfff8000000000000)

static inline uint32_t bh__flush_bits(uint32_t bits) {
    return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
}

static inline float bh__flush(float f) {
    return bh__float_of_bits(bh__flush_bits(bh__bits_of_float(f)));
}

/*
 * An inexact result is flushed if it is subnormal once rounded to 24 digits, as if the exponent had
 * no limit: rounding may still make it normal. `scaled` is the same operation with its operands
 * multiplied, so that the result has the factor BH__FTZ_SCALE and all its digits.
 */
#define BH__FTZ_SCALE 0x1p64f
static inline float bh__flush_scaled(float r, float scaled) {
    float limit = 0x1p-126f * BH__FTZ_SCALE;
    bool tiny = scaled > -limit && scaled < limit;
    return tiny ? bh__float_of_bits(bh__bits_of_float(r) & 0x80000000u) : r;
}

static inline double bh__flush64(double d) {
    uint64_t bits = bh__bits_of_double(d);
    return (bits >> 52 & 0x7ff) == 0 ? bh__double_of_bits(bits >> 63 << 63) : d;
}

static inline float bh__canonical(float f) {
    return f != f ? bh__float_of_bits(NAN_F32) : f;
}

static inline uint64_t bh__quiet64(uint64_t bits) {
    return bits | UINT64_C(1) << 51;
}

/* The NaN that double precision arithmetic returns: one of the operands, made quiet. */
static inline double bh__nan64(double a, double b, double c) {
    double from = b != b ? b : c != c ? c : a;
    return bh__double_of_bits(from != from ? bh__quiet64(bh__bits_of_double(from)) : NAN_F64);
}

/* The result of approximations that give the upper half of a double. */
static inline uint64_t bh__upper_half(double d) {
    return d != d ? UINT64_C(0x7fffffff) << 32 : bh__bits_of_double(bh__flush64(d)) >> 32 << 32;
}

static inline float bh__saturate(float f) {
    return f >= 1.0f ? 1.0f : f > 0.0f ? f : 0.0f;
}

static inline bh__round bh__round_of(const bh__ptx_insn *insn) {
    return HAS(insn, RZ) || HAS(insn, RZI)   ? BH__ROUND_ZERO
           : HAS(insn, RM) || HAS(insn, RMI) ? BH__ROUND_DOWN
           : HAS(insn, RP) || HAS(insn, RPI) ? BH__ROUND_UP
           : HAS(insn, RNA)                  ? BH__ROUND_AWAY
                                             : BH__ROUND_NEAREST;
}

/*
 * Code between the two calls computes in `mode`. Its operands must be volatile, because the
 * compiler assumes that the rounding mode is constant.
 */
static inline void bh__round_enter(bh__round mode) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
    if (mode != BH__ROUND_NEAREST) {
        fesetround(modes[mode]);
    }
}

static inline void bh__round_leave(bh__round mode) {
    if (mode != BH__ROUND_NEAREST) {
        fesetround(FE_TONEAREST);
    }
}

#endif
