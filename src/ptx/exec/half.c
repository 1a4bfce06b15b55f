/* SPDX-License-Identifier: Apache-2.0 */
/* Half precision arithmetic: computed exactly in double, then rounded once. */
#include <math.h>

#include "ptx/fp.h"
#include "ptx/run/exec.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

typedef struct format {
    bool brain; /* bf16 */
    uint16_t nan, one, exponent;
} format;

static const format f16 = {false, 0x7fff, 0x3c00, 0x7c00};
static const format bf16 = {true, 0x7fff, 0x3f80, 0x7f80};

static double widen(const format *f, uint16_t h) {
    return (double)(f->brain ? bh__bf16_to_float(h) : bh__f16_to_float(h));
}

static uint16_t narrow(const format *f, double d) {
    return f->brain ? bh__bf16_from_double(d, BH__ROUND_NEAREST)
                    : bh__f16_from_double(d, BH__ROUND_NEAREST);
}

static uint16_t flush(const format *f, uint16_t h) {
    return (h & f->exponent) == 0 ? h & 0x8000 : h;
}

static bool is_nan(const format *f, uint16_t h) {
    return (h & 0x7fff) > f->exponent;
}

/*
 * a * b + c with the sum rounded to odd: the last bit is set if the sum is inexact. Rounding that
 * to half precision gives the same result as rounding the exact value.
 */
static double fma_odd(double a, double b, double c) {
    double product = a * b; /* exact: two halves have 22 bits at most */
    double sum = product + c;
    if (!isfinite(sum)) {
        return sum;
    }
    double part = sum - product;
    double lost = (product - (sum - part)) + (c - part);
    if (lost != 0) {
        uint64_t bits = bh__bits_of_double(sum);
        if ((bits & 1) == 0) {
            bits = (lost > 0) == (sum > 0) ? bits + 1 : bits - 1;
        }
        sum = bh__double_of_bits(bits);
    }
    return sum;
}

static uint16_t minimum(const format *f, uint16_t a, uint16_t b, bool max) {
    if (is_nan(f, a) || is_nan(f, b)) {
        return !is_nan(f, a) ? a : is_nan(f, b) ? f->nan : b;
    }
    double p = widen(f, a), q = widen(f, b);
    if (p == q) {
        return (a >> 15 != 0) == max ? b : a;
    }
    return (p < q) == max ? b : a;
}

uint16_t bh__ptx_half_min(bool brain, uint16_t a, uint16_t b, bool max) {
    return minimum(brain ? &bf16 : &f16, a, b, max);
}

/* imm of minimum and maximum: bit 0 .NaN, bit 1 .xorsign.abs */
static uint16_t min_or_max(const format *f, uint16_t a, uint16_t b, bool max, uint64_t options) {
    if ((options & 1) && (is_nan(f, a) || is_nan(f, b))) {
        return f->nan;
    }
    if (options & 2) {
        uint16_t r = minimum(f, a & 0x7fff, b & 0x7fff, max);
        return is_nan(f, r) ? r : (uint16_t)(r | ((a ^ b) & 0x8000));
    }
    return minimum(f, a, b, max);
}

static uint16_t compute(const format *f, unsigned op, uint16_t a, uint16_t b, uint16_t c,
                        uint64_t options) {
    double p = widen(f, a), q = widen(f, b);
    switch (op) {
    case OP_ADDH:
        return narrow(f, fma_odd(1.0, p, q));
    case OP_SUBH:
        return narrow(f, fma_odd(1.0, p, -q));
    case OP_MULH:
        return narrow(f, p * q);
    case OP_FMAH:
        return narrow(f, fma_odd(p, q, widen(f, c)));
    case OP_ABSH:
        return is_nan(f, a) ? f->nan : a & 0x7fff;
    case OP_NEGH:
        return is_nan(f, a) ? f->nan : a ^ 0x8000;
    case OP_MINH:
        return min_or_max(f, a, b, false, options);
    case OP_MAXH:
        return min_or_max(f, a, b, true, options);
    case OP_EX2H:
        return narrow(f, exp2(p));
    default:
        return narrow(f, tanh(p));
    }
}

static uint16_t one(const format *f, const bh__ptx_code *i, uint16_t a, uint16_t b, uint16_t c) {
    if (i->flags & FLAG_FTZ) {
        a = flush(f, a);
        b = flush(f, b);
        c = flush(f, c);
    }
    uint16_t r = compute(f, i->target, a, b, c, i->imm);
    if (is_nan(f, r)) {
        return i->flags & FLAG_SAT ? 0 : f->nan;
    }
    if (i->flags & FLAG_FTZ) {
        r = flush(f, r);
    }
    if (i->flags & FLAG_SAT) {
        r = r >> 15 ? 0 : r > f->one ? f->one : r;
    }
    return i->flags & FLAG_RELU && r >> 15 ? 0 : r;
}

HANDLER(half) {
    const format *f = i->extra;
    const bh__u32 *pa = bh__row(x, i->a);
    const bh__u32 *pb = i->b == NO_ROW ? pa : bh__row(x, i->b);
    const bh__u32 *pc = i->c == NO_ROW ? pa : bh__row(x, i->c);
    bh__u32 *pd = bh__row(x, i->d);
    FOR_LANES_IN_ORDER(mask) {
        uint32_t a = pa[l], b = pb[l], c = pc[l];
        uint32_t r = one(f, i, (uint16_t)a, (uint16_t)b, (uint16_t)c);
        if (i->bytes == 4) {
            r |= (uint32_t)one(f, i, (uint16_t)(a >> 16), (uint16_t)(b >> 16), (uint16_t)(c >> 16))
                 << 16;
        }
        pd[l] = r;
    }
    return true;
}

bool bh__ptx_pick_half(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bool brain = insn->types[0] == T_BF16 || insn->types[0] == T_BF16X2;
    bool function = insn->op == OP_EX2H || insn->op == OP_TANHH;
    if (insn->op == OP_EX2H && HAS(insn, FTZ) != brain) {
        return false;
    }
    if ((function && !HAS(insn, APPROX)) || HAS(insn, XORSIGN) != HAS(insn, ABS) ||
        (insn->op == OP_FMAH && !HAS(insn, RN)) || (HAS(insn, SAT) && HAS(insn, RELU)) ||
        (HAS(insn, RELU) && insn->op != OP_FMAH) ||
        (brain && (HAS(insn, SAT) || (HAS(insn, FTZ) && insn->op != OP_EX2H)))) {
        return false;
    }
    code->run = half;
    code->extra = brain ? &bf16 : &f16;
    code->target = insn->op;
    code->bytes = (uint8_t)bh__ptx_bytes(insn->types[0]);
    code->imm = (unsigned)HAS(insn, NAN) | (unsigned)HAS(insn, XORSIGN) << 1;
    code->flags = (uint8_t)((HAS(insn, FTZ) ? FLAG_FTZ : 0) | (HAS(insn, SAT) ? FLAG_SAT : 0) |
                            (HAS(insn, RELU) ? FLAG_RELU : 0));
    return true;
}
