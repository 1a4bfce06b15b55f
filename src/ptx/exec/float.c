/* SPDX-License-Identifier: Apache-2.0 */
/* Single and double precision arithmetic with IEEE rounding. */
#include <math.h>

#include "ptx/fp.h"
#include "ptx/run/exec.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

/* Round to nearest, with and without flushed subnormals: common, so each has its own loop. */
#define FAST2(name, T, R, pre, post, expr)                                                         \
    WIDE_VECTORS HANDLER(name) {                                                                   \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);                                    \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES(mask, T a = pre(pa[l]); T b = pre(pb[l]); pd[l] = post(expr););                  \
        return true;                                                                               \
    }

#define FAST3_AS(name, attribute, T, R, pre, post, expr)                                           \
    attribute HANDLER(name) {                                                                      \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b), *pc = bh__row(x, i->c);            \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES(mask, T a = pre(pa[l]); T b = pre(pb[l]); T c = pre(pc[l]);                      \
                  pd[l] = post(expr););                                                            \
        return true;                                                                               \
    }

#define CANON(v)       bh__canonical(v)
#define FLUSH(v)       bh__flush(v)
#define CANON_FLUSH(v) bh__canonical(bh__flush(v))
#define SAME(v)        (v)

#define SCALE BH__FTZ_SCALE

/* Operands that are too large to be scaled give no result that is flushed. */
static inline float mul_flushed(float a, float b) {
    return bh__flush_scaled(a * b, a * SCALE * b);
}

static inline float div_flushed(float a, float b) {
    return bh__flush_scaled(a / b, a * SCALE / b);
}

static inline float fma_flushed(float a, float b, float c) {
    return bh__flush_scaled(__builtin_fmaf(a, b, c), __builtin_fmaf(a * SCALE, b, c * SCALE));
}

static inline double nan2(double a, double b, double r) {
    return r == r ? r : bh__nan64(a, b, b);
}

static inline double nan3(double a, double b, double c, double r) {
    return r == r ? r : bh__nan64(a, b, c);
}

FAST2(add_f32, float, bh__f32, SAME, CANON, a + b)
FAST2(sub_f32, float, bh__f32, SAME, CANON, a - b)
FAST2(mul_f32, float, bh__f32, SAME, CANON, a *b)
FAST2(div_f32, float, bh__f32, SAME, CANON, a / b)
FAST2(add_f32_ftz, float, bh__f32, FLUSH, CANON_FLUSH, a + b)
FAST2(sub_f32_ftz, float, bh__f32, FLUSH, CANON_FLUSH, a - b)
FAST2(mul_f32_ftz, float, bh__f32, FLUSH, CANON, mul_flushed(a, b))
FAST2(div_f32_ftz, float, bh__f32, FLUSH, CANON, div_flushed(a, b))
FAST2(add_f64, double, bh__f64, SAME, SAME, nan2(a, b, a + b))
FAST2(sub_f64, double, bh__f64, SAME, SAME, nan2(a, b, a - b))
FAST2(mul_f64, double, bh__f64, SAME, SAME, nan2(a, b, a *b))
FAST2(div_f64, double, bh__f64, SAME, SAME, nan2(b, a, a / b))
FAST3_AS(fma_f32, , float, bh__f32, SAME, CANON, fmaf(a, b, c))
FAST3_AS(fma_f32_ftz, , float, bh__f32, FLUSH, CANON, fma_flushed(a, b, c))
FAST3_AS(fma_f64, , double, bh__f64, SAME, SAME, nan3(a, b, c, fma(a, b, c)))

/* For processors that may have fused multiply-add, if the build cannot assume it. */
#if defined(__x86_64__) && !defined(__FMA__)
#define WITH_FMA __attribute__((target("avx2,fma")))
FAST3_AS(fma_f32_hw, WITH_FMA, float, bh__f32, SAME, CANON, __builtin_fmaf(a, b, c))
FAST3_AS(fma_f32_ftz_hw, WITH_FMA, float, bh__f32, FLUSH, CANON, fma_flushed(a, b, c))
FAST3_AS(fma_f64_hw, WITH_FMA, double, bh__f64, SAME, SAME, nan3(a, b, c, __builtin_fma(a, b, c)))

static bool has_fma(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define fma_f32_hw     fma_f32
#define fma_f32_ftz_hw fma_f32_ftz
#define fma_f64_hw     fma_f64

static bool has_fma(void) {
    return true;
}
#endif

/* Any rounding mode, flushed and saturated as the flags say. `count` is the mode. */
static float finish(float a, float b, float c, float r, unsigned flags, unsigned sources) {
    (void)a, (void)b, (void)c, (void)sources;
    r = bh__canonical(flags & FLAG_FTZ ? bh__flush(r) : r);
    return flags & FLAG_SAT ? bh__saturate(r) : r;
}

/* As above, for results that are inexact where they are subnormal. */
static float finish_product(float a, float b, float c, float r, unsigned flags, unsigned sources) {
    if (flags & FLAG_FTZ) {
        r = sources > 2 ? fma_flushed(a, b, c) : mul_flushed(a, b);
    }
    return finish(a, b, c, r, flags, sources);
}

static float finish_quotient(float a, float b, float c, float r, unsigned flags, unsigned sources) {
    if (flags & FLAG_FTZ) {
        r = sources > 1 ? div_flushed(a, b) : div_flushed(1.0f, a);
    }
    return finish(a, b, c, r, flags, sources);
}

static float start(float a, unsigned flags) {
    return flags & FLAG_FTZ ? bh__flush(a) : a;
}

static double start64(double a, unsigned flags) {
    return flags & FLAG_FTZ ? bh__flush64(a) : a;
}

static double finish64(double a, double b, double c, double r, unsigned flags, unsigned sources) {
    if (r != r) {
        r = bh__nan64(a, sources > 1 ? b : a, sources > 2 ? c : sources > 1 ? b : a);
    }
    return start64(r, flags);
}

#define SLOW(name, T, R, begin, end, sources, expr)                                                \
    HANDLER(name) {                                                                                \
        const R *pa = bh__row(x, i->a);                                                            \
        const R *pb = sources > 1 ? bh__row(x, i->b) : pa;                                         \
        const R *pc = sources > 2 ? bh__row(x, i->c) : pa;                                         \
        R *pd = bh__row(x, i->d);                                                                  \
        bh__round_enter((bh__round)i->count);                                                      \
        FOR_LANES_IN_ORDER(mask) {                                                                 \
            volatile T va = begin(pa[l], i->flags), vb = begin(pb[l], i->flags);                   \
            volatile T vc = begin(pc[l], i->flags);                                                \
            T a = va, b = vb, c = vc;                                                              \
            volatile T r = (expr);                                                                 \
            pd[l] = end(a, b, c, r, i->flags, sources);                                            \
        }                                                                                          \
        bh__round_leave((bh__round)i->count);                                                      \
        return true;                                                                               \
    }

#define SLOW_PAIR(name, finish32, sources, expr32, expr64)                                         \
    SLOW(name##_f32_any, float, bh__f32, start, finish32, sources, expr32)                         \
    SLOW(name##_f64_any, double, bh__f64, start64, finish64, sources, expr64)

/* A quotient returns the dividend's NaN before the divisor's. */
static double finish_quotient64(double a, double b, double c, double r, unsigned flags,
                                unsigned sources) {
    return finish64(b, a, c, r, flags, sources);
}

SLOW_PAIR(add, finish, 2, a + b, a + b)
SLOW_PAIR(sub, finish, 2, a - b, a - b)
SLOW_PAIR(mul, finish_product, 2, a *b, a *b)
SLOW(div_f32_any, float, bh__f32, start, finish_quotient, 2, a / b)
SLOW(div_f64_any, double, bh__f64, start64, finish_quotient64, 2, a / b)
SLOW_PAIR(fma, finish_product, 3, fmaf(a, b, c), fma(a, b, c))
SLOW_PAIR(rcp, finish_quotient, 1, 1.0f / a, 1.0 / a)
SLOW_PAIR(sqrt, finish, 1, sqrtf(a), sqrt(a))

/* a * (1 / b): the reciprocal of |b| above 2^126 is zero. */
HANDLER(div_f32_approx) {
    const bh__f32 *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);
    bh__f32 *pd = bh__row(x, i->d);
    FOR_LANES_IN_ORDER(mask) {
        float a = start(pa[l], i->flags), b = start(pb[l], i->flags);
        float r = fabsf(b) > 0x1p126f && isfinite(b) ? a * copysignf(0, b) : a / b;
        pd[l] = finish(a, b, b, r, i->flags, 2);
    }
    return true;
}

/* Takes the upper half of a double and returns the upper half of its reciprocal. */
HANDLER(rcp_f64_approx) {
    const bh__u64 *pa = bh__row(x, i->a);
    bh__u64 *pd = bh__row(x, i->d);
    FOR_LANES_IN_ORDER(mask) {
        double a = bh__flush64(bh__double_of_bits(pa[l] >> 32 << 32));
        pd[l] = bh__upper_half(1.0 / a);
    }
    return true;
}

static bh__ptx_handler *pick_any(uint16_t op, bool single) {
    switch (op) {
    case OP_ADDF:
        return single ? add_f32_any : add_f64_any;
    case OP_SUBF:
        return single ? sub_f32_any : sub_f64_any;
    case OP_MULF:
        return single ? mul_f32_any : mul_f64_any;
    case OP_FMAF:
    case OP_MADF:
        return single ? fma_f32_any : fma_f64_any;
    case OP_DIVF:
        return single ? div_f32_any : div_f64_any;
    case OP_RCP:
        return single ? rcp_f32_any : rcp_f64_any;
    case OP_SQRT:
        return single ? sqrt_f32_any : sqrt_f64_any;
    default:
        return NULL;
    }
}

static bh__ptx_handler *pick_fast(uint16_t op, bool single, bool ftz) {
    switch (op) {
    case OP_ADDF:
        return !single ? add_f64 : ftz ? add_f32_ftz : add_f32;
    case OP_SUBF:
        return !single ? sub_f64 : ftz ? sub_f32_ftz : sub_f32;
    case OP_MULF:
        return !single ? mul_f64 : ftz ? mul_f32_ftz : mul_f32;
    case OP_DIVF:
        return !single ? div_f64 : ftz ? div_f32_ftz : div_f32;
    case OP_FMAF:
    case OP_MADF:
        if (has_fma()) {
            return !single ? fma_f64_hw : ftz ? fma_f32_ftz_hw : fma_f32_hw;
        }
        return !single ? fma_f64 : ftz ? fma_f32_ftz : fma_f32;
    default:
        return NULL;
    }
}

bool bh__ptx_pick_float(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bool single = insn->types[0] == T_F32, ftz = HAS(insn, FTZ), sat = HAS(insn, SAT);
    bool approx = HAS(insn, APPROX) || HAS(insn, FULL);
    bh__round mode = bh__round_of(insn);
    if (!single && insn->op == OP_RCP && approx && ftz) {
        code->run = rcp_f64_approx;
        return true;
    }
    if (insn->op == OP_DIVF && single && HAS(insn, APPROX)) {
        code->run = div_f32_approx;
        code->flags = (uint8_t)(ftz ? FLAG_FTZ : 0);
        return true;
    }
    if (!single && (ftz || sat || approx)) {
        return false;
    }
    bool rounded = HAS(insn, RN) || HAS(insn, RZ) || HAS(insn, RM) || HAS(insn, RP);
    bool must = insn->op == OP_FMAF || insn->op == OP_DIVF || insn->op == OP_RCP ||
                insn->op == OP_SQRT || (insn->op == OP_MADF && !single);
    if (must && !rounded && !approx) {
        return false;
    }
    code->run = mode == BH__ROUND_NEAREST && !sat ? pick_fast(insn->op, single, ftz) : NULL;
    if (code->run == NULL) {
        code->run = pick_any(insn->op, single);
    }
    code->flags = (uint8_t)((ftz ? FLAG_FTZ : 0) | (sat ? FLAG_SAT : 0));
    code->count = (uint8_t)mode;
    return true;
}
