/* SPDX-License-Identifier: Apache-2.0 */
/* Approximate functions, minimum and maximum, signs, and the classification of floats. */
#include <math.h>

#include "ptx/approx.h"
#include "ptx/run/exec.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

/* More accurate than a GPU's approximation, so within its error bounds. */
#define FUNCTION(name, expr)                                                                       \
    HANDLER(name) {                                                                                \
        const bh__f32 *pa = bh__row(x, i->a);                                                      \
        bh__f32 *pd = bh__row(x, i->d);                                                            \
        FOR_LANES_IN_ORDER(mask) {                                                                 \
            float a = i->flags & FLAG_FTZ ? bh__flush(pa[l]) : pa[l];                              \
            float r = (expr);                                                                      \
            pd[l] = bh__canonical(i->flags & FLAG_FTZ ? bh__flush(r) : r);                         \
        }                                                                                          \
        return true;                                                                               \
    }
FUNCTION(sin_f32, sinf(a))
FUNCTION(cos_f32, cosf(a))
FUNCTION(lg2_f32, log2f(a))
FUNCTION(ex2_f32, bh__ex2(a))
FUNCTION(tanh_f32, tanhf(a))
FUNCTION(rsqrt_f32, (float)(1.0 / sqrt((double)a)))

HANDLER(rsqrt_f64) {
    const bh__f64 *pa = bh__row(x, i->a);
    bh__f64 *pd = bh__row(x, i->d);
    FOR_LANES_IN_ORDER(mask) {
        if (i->flags & FLAG_FTZ) {
            uint64_t upper = bh__bits_of_double(pa[l]) >> 32 << 32;
            double a = bh__flush64(bh__double_of_bits(upper));
            pd[l] = bh__double_of_bits(bh__upper_half(1.0 / sqrt(a)));
        } else {
            pd[l] = 1.0 / sqrt(pa[l]);
        }
    }
    return true;
}

#define BITS1(name, R, expr)                                                                       \
    HANDLER(name) {                                                                                \
        const R *pa = bh__row(x, i->a);                                                            \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES(mask, R a = pa[l]; pd[l] = (expr););                                             \
        return true;                                                                               \
    }
#define KEEP_NAN(a, v)   (((a)&0x7fffffffu) > 0x7f800000u ? NAN_F32 : (v))
#define KEEP_NAN64(a, v) (((a)&INT64_MAX) > UINT64_C(0x7ff0000000000000) ? bh__quiet64(a) : (v))
BITS1(abs_f32, bh__u32, KEEP_NAN(a, a & 0x7fffffffu))
BITS1(neg_f32, bh__u32, KEEP_NAN(a, a ^ 0x80000000u))
BITS1(abs_f32_ftz, bh__u32, KEEP_NAN(a, bh__flush_bits(a) & 0x7fffffffu))
BITS1(neg_f32_ftz, bh__u32, KEEP_NAN(a, bh__flush_bits(a) ^ 0x80000000u))
BITS1(abs_f64, bh__u64, KEEP_NAN64(a, a &INT64_MAX))
BITS1(neg_f64, bh__u64, KEEP_NAN64(a, a ^ UINT64_C(1) << 63))

static inline float smaller(float a, float b) {
    if (a != a || b != b) {
        return a != a ? bh__canonical(b) : a;
    }
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

static inline float larger(float a, float b) {
    if (a != a || b != b) {
        return a != a ? bh__canonical(b) : a;
    }
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

static float min_or_max(float a, float b, bool max, unsigned imm, unsigned flags) {
    if (flags & FLAG_FTZ) {
        a = bh__flush(a);
        b = bh__flush(b);
    }
    if ((imm & 1) && (a != a || b != b)) {
        return bh__float_of_bits(NAN_F32);
    }
    if (imm & 2) {
        bool sign = signbit(a) != signbit(b);
        float r = max ? larger(fabsf(a), fabsf(b)) : smaller(fabsf(a), fabsf(b));
        return r != r ? bh__canonical(r) : sign ? -r : r;
    }
    return max ? larger(a, b) : smaller(a, b);
}

/* imm: bit 0 .NaN, bit 1 .xorsign.abs, bit 2 maximum */
HANDLER(minmax_f32) {
    const bh__f32 *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);
    bh__f32 *pd = bh__row(x, i->d);
    unsigned options = (unsigned)i->imm;
    FOR_LANES_IN_ORDER(mask) {
        pd[l] = min_or_max(pa[l], pb[l], (options & 4) != 0, options, i->flags);
    }
    return true;
}

HANDLER(minmax_f64) {
    const bh__f64 *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);
    bh__f64 *pd = bh__row(x, i->d);
    bool max = (i->imm & 4) != 0;
    FOR_LANES_IN_ORDER(mask) {
        double a = pa[l], b = pb[l];
        if (a != a || b != b) {
            pd[l] = a == a ? a : b == b ? b : bh__nan64(a, b, b);
        } else if (a == b) {
            pd[l] = (signbit(a) != 0) == max ? b : a;
        } else {
            pd[l] = (a < b) == max ? b : a;
        }
    }
    return true;
}

HANDLER(copysign_f32) {
    const bh__u32 *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);
    bh__u32 *pd = bh__row(x, i->d);
    FOR_LANES(mask, pd[l] = (pa[l] & 0x80000000u) | (pb[l] & 0x7fffffffu););
    return true;
}

HANDLER(copysign_f64) {
    const bh__u64 *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);
    bh__u64 *pd = bh__row(x, i->d);
    FOR_LANES(mask, pd[l] = (pa[l] >> 63 << 63) | (pb[l] & INT64_MAX););
    return true;
}

static bool test_kind(int kind, unsigned test) {
    switch (test) {
    case M_FINITE:
        return kind != FP_NAN && kind != FP_INFINITE;
    case M_INFINITE:
        return kind == FP_INFINITE;
    case M_NUMBER:
        return kind != FP_NAN;
    case M_NOTANUMBER:
        return kind == FP_NAN;
    case M_NORMAL:
        return kind == FP_NORMAL || kind == FP_ZERO;
    default:
        return kind == FP_SUBNORMAL;
    }
}

HANDLER(testp) {
    uint32_t bits = 0;
    FOR_LANES_IN_ORDER(mask) {
        int kind = i->bytes == 8 ? fpclassify(((const bh__f64 *)bh__row(x, i->a))[l])
                                 : fpclassify(((const bh__f32 *)bh__row(x, i->a))[l]);
        bits |= (uint32_t)test_kind(kind, (unsigned)i->imm) << l;
    }
    bh__set_predicate(x, i->d, bits, mask);
    return true;
}

static bool pick_minmax(const bh__ptx_insn *insn, bh__ptx_code *code, bool single) {
    bool modified = HAS(insn, NAN) || HAS(insn, XORSIGN) || HAS(insn, ABS) || HAS(insn, FTZ);
    if ((!single && modified) || HAS(insn, XORSIGN) != HAS(insn, ABS)) {
        return false;
    }
    code->run = single ? minmax_f32 : minmax_f64;
    code->imm = (unsigned)HAS(insn, NAN) | (unsigned)HAS(insn, XORSIGN) << 1 |
                (unsigned)(insn->op == OP_MAXF) << 2;
    return true;
}

static bool pick_testp(const bh__ptx_insn *insn, bh__ptx_code *code) {
    static const bh__ptx_mod kinds[] = {M_FINITE,     M_INFINITE, M_NUMBER,
                                        M_NOTANUMBER, M_NORMAL,   M_SUBNORMAL};
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
        if ((insn->mods >> kinds[n] & 1) != 0) {
            code->run = testp;
            code->imm = kinds[n];
            code->bytes = (uint8_t)bh__ptx_bytes(insn->types[0]);
            return true;
        }
    }
    return false;
}

bool bh__ptx_pick_math(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bool single = insn->types[0] == T_F32, ftz = HAS(insn, FTZ);
    code->flags = ftz ? FLAG_FTZ : 0;
    switch (insn->op) {
    case OP_MINF:
    case OP_MAXF:
        return pick_minmax(insn, code, single);
    case OP_TESTP:
        return pick_testp(insn, code);
    case OP_COPYSIGN:
        code->run = single ? copysign_f32 : copysign_f64;
        return true;
    case OP_ABSF:
        code->run = !single ? abs_f64 : ftz ? abs_f32_ftz : abs_f32;
        return single || !ftz;
    case OP_NEGF:
        code->run = !single ? neg_f64 : ftz ? neg_f32_ftz : neg_f32;
        return single || !ftz;
    case OP_RSQRT:
        code->run = single ? rsqrt_f32 : rsqrt_f64;
        break;
    case OP_SIN:
        code->run = sin_f32;
        break;
    case OP_COS:
        code->run = cos_f32;
        break;
    case OP_LG2:
        code->run = lg2_f32;
        break;
    case OP_EX2:
        code->run = ex2_f32;
        break;
    case OP_TANH:
        code->run = tanh_f32;
        break;
    default:
        return false;
    }
    return HAS(insn, APPROX);
}
