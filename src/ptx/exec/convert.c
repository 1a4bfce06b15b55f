/* SPDX-License-Identifier: Apache-2.0 */
/* cvt: conversions between integers and floats of every width and rounding mode. */
#include <math.h>

#include "ptx/fp.h"
#include "ptx/run/exec.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

/* The parameters of a conversion, packed into `imm` of the code. */
typedef struct plan {
    uint8_t from, to; /* types */
    uint8_t round;    /* bh__round */
    uint8_t integral; /* round to an integer in floating-point format */
    uint8_t finite;   /* infinity becomes the largest number */
} plan;

static uint64_t pack_plan(plan p) {
    return p.from | (uint64_t)p.to << 8 | (uint64_t)p.round << 16 | (uint64_t)p.integral << 24 |
           (uint64_t)p.finite << 32;
}

static plan unpack_plan(uint64_t v) {
    return (plan){(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24),
                  (uint8_t)(v >> 32)};
}

static uint64_t load(const bh__ptx_exec *x, const bh__ptx_code *i, int32_t row, unsigned l) {
    return i->flags & FLAG_WIDE_A ? ((const bh__u64 *)bh__row(x, row))[l]
                                  : ((const bh__u32 *)bh__row(x, row))[l];
}

/* Extends a result that is narrower than its register. */
static void store(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l, uint64_t v) {
    if (i->flags & FLAG_WIDE_D) {
        ((bh__u64 *)bh__row(x, i->d))[l] = v;
    } else {
        ((bh__u32 *)bh__row(x, i->d))[l] = (uint32_t)v;
    }
}

static int64_t sign_extend(uint64_t v, unsigned bytes) {
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(v << shift) >> shift;
}

static uint64_t zero_extend(uint64_t v, unsigned bytes) {
    unsigned shift = 64 - 8 * bytes;
    return v << shift >> shift;
}

/* The value of an integer of type `type` in the low bits of `v`, extended to 64 bits. */
static uint64_t integer(uint64_t v, bh__ptx_type type) {
    unsigned bytes = bh__ptx_bytes(type);
    return bh__ptx_class(type) == 'S' ? (uint64_t)sign_extend(v, bytes) : zero_extend(v, bytes);
}

static double widen(uint64_t v, bh__ptx_type type) {
    switch (type) {
    case T_F16:
        return (double)bh__f16_to_float((uint16_t)v);
    case T_BF16:
        return (double)bh__bf16_to_float((uint16_t)v);
    case T_F32:
        return (double)bh__float_of_bits((uint32_t)v);
    default:
        return bh__double_of_bits(v);
    }
}

static double whole(double d, bh__round mode) {
    switch (mode) {
    case BH__ROUND_ZERO:
        return trunc(d);
    case BH__ROUND_DOWN:
        return floor(d);
    case BH__ROUND_UP:
        return ceil(d);
    default:
        return rint(d);
    }
}

static unsigned bits_of(bh__ptx_type type) {
    return type == T_U4 || type == T_S4   ? 4
           : type == T_U2 || type == T_S2 ? 2
                                          : 8 * bh__ptx_bytes(type);
}

static uint64_t saturate_integer(uint64_t v, bh__ptx_type from, bh__ptx_type to) {
    unsigned bits = bits_of(to);
    bool from_signed = bh__ptx_class(from) == 'S', negative = from_signed && (int64_t)v < 0;
    if (bh__ptx_class(to) == 'S') {
        int64_t max = (int64_t)(UINT64_MAX >> (65 - bits)), min = -max - 1;
        if (negative) {
            return (uint64_t)((int64_t)v < min ? min : (int64_t)v);
        }
        return v > (uint64_t)max ? (uint64_t)max : v;
    }
    uint64_t max = UINT64_MAX >> (64 - bits);
    return negative ? 0 : v > max ? max : v;
}

HANDLER(int_to_int) {
    plan p = unpack_plan(i->imm);
    FOR_LANES_IN_ORDER(mask) {
        uint64_t v = integer(load(x, i, i->a, l), (bh__ptx_type)p.from);
        if (i->flags & FLAG_SAT) {
            v = saturate_integer(v, (bh__ptx_type)p.from, (bh__ptx_type)p.to);
        }
        store(x, i, l, integer(v, (bh__ptx_type)p.to));
    }
    return true;
}

/*
 * A value out of range becomes the nearest limit. NaN becomes zero or, if source or destination has
 * 64 bits, the value with only the top bit set.
 */
static uint64_t float_to_integer(double d, bh__ptx_type from, bh__ptx_type to) {
    unsigned bits = 8 * bh__ptx_bytes(to);
    if (d != d) {
        return from == T_F64 || bits == 64 ? UINT64_C(1) << (bits - 1) : 0;
    }
    if (bh__ptx_class(to) == 'S') {
        double limit = ldexp(1.0, (int)bits - 1);
        if (d >= limit) {
            return UINT64_MAX >> (65 - bits);
        }
        return d < -limit ? UINT64_C(1) << (bits - 1) : (uint64_t)(int64_t)d;
    }
    if (d >= ldexp(1.0, (int)bits)) {
        return UINT64_MAX >> (64 - bits);
    }
    return d <= 0 ? 0 : (uint64_t)d;
}

HANDLER(float_to_int) {
    plan p = unpack_plan(i->imm);
    FOR_LANES_IN_ORDER(mask) {
        double d = widen(load(x, i, i->a, l), (bh__ptx_type)p.from);
        if (i->flags & FLAG_FTZ && p.from == T_F32) {
            d = (double)bh__flush((float)d);
        }
        uint64_t v = float_to_integer(whole(d, (bh__round)p.round), (bh__ptx_type)p.from,
                                      (bh__ptx_type)p.to);
        store(x, i, l, integer(v, (bh__ptx_type)p.to));
    }
    return true;
}

/* Rounds a finite double once to `type` and returns its bits. */
static uint64_t narrow(double d, bh__ptx_type type, bh__round mode) {
    switch (type) {
    case T_F16:
        return bh__f16_from_double(d, mode);
    case T_BF16:
        return bh__bf16_from_double(d, mode);
    case T_F32:
        return d != d ? NAN_F32 : bh__narrow_double(d, 23, 8, mode);
    default:
        return bh__bits_of_double(d);
    }
}

static uint64_t narrow_flushed(double d, bh__round mode) {
    double scaled = d * (double)BH__FTZ_SCALE;
    float r = bh__float_of_bits((uint32_t)narrow(d, T_F32, mode));
    float wide = bh__float_of_bits((uint32_t)narrow(scaled, T_F32, mode));
    return bh__bits_of_float(bh__flush_scaled(r, wide));
}

static bool is_nan(uint64_t bits, bh__ptx_type type) {
    return isnan(widen(bits, type));
}

static uint64_t finish_float(uint64_t bits, bh__ptx_type type, unsigned flags) {
    static const uint64_t ones[T_COUNT] = {[T_F16] = 0x3c00,
                                           [T_BF16] = 0x3f80,
                                           [T_F32] = 0x3f800000,
                                           [T_F64] = UINT64_C(0x3ff0000000000000)};
    unsigned sign = 8 * bh__ptx_bytes(type) - 1;
    bool nan = is_nan(bits, type);
    if (flags & FLAG_FTZ && type == T_F32) {
        bits = bh__flush_bits((uint32_t)bits);
    }
    if (flags & FLAG_SAT) {
        bits = nan || bits >> sign & 1 ? 0 : bits > ones[type] ? ones[type] : bits;
    }
    if (flags & FLAG_RELU && !nan && bits >> sign & 1) {
        bits = 0;
    }
    return bits;
}

/* .satfinite: f16 and bf16 */
static uint64_t without_infinity(uint64_t bits, bh__ptx_type type, plan p) {
    uint64_t infinity = type == T_F16 ? 0x7c00 : 0x7f80;
    return p.finite && (bits & 0x7fff) == infinity ? bits - 1 : bits;
}

/* NaN keeps its sign and leading bits if the source is double or bf16; else it is canonical. */
static uint64_t convert_nan(uint64_t v, bh__ptx_type from, bh__ptx_type to, unsigned flags) {
    if (from == T_BF16 && to == T_F32) {
        return flags & FLAG_FTZ ? NAN_F32 : v << 16;
    }
    if (from == T_F32 && to == T_F64) {
        uint32_t bits = flags & FLAG_FTZ ? NAN_F32 : (uint32_t)v;
        return bh__quiet64(bh__bits_of_double((double)bh__float_of_bits(bits)));
    }
    if (from != T_F64) {
        return to == T_F64 ? bh__bits_of_double(widen(v, from)) : narrow(widen(v, from), to, 0);
    }
    v = bh__quiet64(v);
    unsigned mantissa = to == T_F32 ? 23 : to == T_F16 ? 10 : 7;
    unsigned width = 8 * bh__ptx_bytes(to);
    uint64_t exponent = (UINT64_C(1) << (width - 1)) - (UINT64_C(1) << mantissa);
    uint64_t digits = (v & ((UINT64_C(1) << 52) - 1)) >> (52 - mantissa);
    return to == T_F64 ? v : v >> 63 << (width - 1) | exponent | digits;
}

HANDLER(float_to_float) {
    plan p = unpack_plan(i->imm);
    bh__ptx_type to = (bh__ptx_type)p.to, from = (bh__ptx_type)p.from;
    FOR_LANES_IN_ORDER(mask) {
        uint64_t v = load(x, i, i->a, l), bits;
        double d = widen(v, from);
        if (i->flags & FLAG_FTZ && from == T_F32 && to != T_F16) {
            d = (double)bh__flush((float)d);
        }
        if (p.integral) {
            d = whole(d, (bh__round)p.round);
        }
        if (d != d) {
            bits = convert_nan(v, from, to, i->flags);
        } else if (i->flags & FLAG_FTZ && to == T_F32) {
            bits = narrow_flushed(d, (bh__round)p.round);
        } else {
            bits = narrow(d, to, (bh__round)p.round);
        }
        bits = without_infinity(bits, to, p);
        store(x, i, l, finish_float(bits, to, i->flags));
    }
    return true;
}

/* 64-bit integers have more digits than a double: round to odd first, then to the target. */
static double integer_to_double_odd(uint64_t v, bool is_signed) {
    bool negative = is_signed && (int64_t)v < 0;
    uint64_t m = negative ? 0 - v : v;
    unsigned drop = m >> 53 == 0 ? 0 : 11 - (unsigned)__builtin_clzll(m);
    uint64_t kept = m >> drop;
    if (drop > 0 && (m & ((UINT64_C(1) << drop) - 1)) != 0) {
        kept |= 1;
    }
    double d = ldexp((double)(int64_t)kept, (int)drop);
    return negative ? -d : d;
}

static uint64_t integer_to_f64(uint64_t v, bool is_signed, bh__round mode) {
    bool negative = is_signed && (int64_t)v < 0;
    uint64_t m = negative ? 0 - v : v;
    unsigned drop = m >> 53 == 0 ? 0 : 11 - (unsigned)__builtin_clzll(m);
    uint64_t kept = m >> drop, rest = m & ((UINT64_C(1) << drop) - 1);
    uint64_t half = drop == 0 ? 1 : UINT64_C(1) << (drop - 1);
    bool up = mode == BH__ROUND_NEAREST ? rest > half || (rest == half && (kept & 1))
              : mode == BH__ROUND_UP    ? rest != 0 && !negative
              : mode == BH__ROUND_DOWN  ? rest != 0 && negative
                                        : false;
    double d = ldexp((double)(int64_t)(kept + up), (int)drop);
    return bh__bits_of_double(negative ? -d : d);
}

HANDLER(int_to_float) {
    plan p = unpack_plan(i->imm);
    bh__ptx_type to = (bh__ptx_type)p.to;
    bool is_signed = bh__ptx_class(p.from) == 'S';
    FOR_LANES_IN_ORDER(mask) {
        uint64_t v = integer(load(x, i, i->a, l), (bh__ptx_type)p.from), bits;
        if (to == T_F64) {
            bits = integer_to_f64(v, is_signed, (bh__round)p.round);
        } else {
            bits = narrow(integer_to_double_odd(v, is_signed), to, (bh__round)p.round);
        }
        store(x, i, l, finish_float(bits, to, i->flags));
    }
    return true;
}

/* Fast paths for the most common conversions. */
#define QUICK(name, RD, R, expr)                                                                   \
    HANDLER(name) {                                                                                \
        const R *pa = bh__row(x, i->a);                                                            \
        RD *pd = bh__row(x, i->d);                                                                 \
        FOR_LANES(mask, R a = pa[l]; pd[l] = (RD)(expr););                                         \
        return true;                                                                               \
    }
QUICK(s32_to_s64, bh__s64, bh__s32, a)
QUICK(u32_to_u64, bh__u64, bh__u32, a)
QUICK(low32, bh__u32, bh__u64, a)
QUICK(low16, bh__u32, bh__u32, (uint16_t)a)
QUICK(s32_to_f32, bh__f32, bh__s32, (float)a)
QUICK(u32_to_f32, bh__f32, bh__u32, (float)a)
QUICK(f32_to_f64, bh__f64, bh__f32, (double)a)
QUICK(f64_to_f32, bh__f32, bh__f64, (float)a)

/* cvt.rn.f16x2.f32 d, a, b: a goes to the upper half. */
HANDLER(pair_of_halves) {
    const bh__f32 *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);
    bh__u32 *pd = bh__row(x, i->d);
    plan p = unpack_plan(i->imm);
    bh__ptx_type to = p.to == T_F16X2 ? T_F16 : T_BF16;
    FOR_LANES_IN_ORDER(mask) {
        uint64_t high = without_infinity(narrow((double)pa[l], to, (bh__round)p.round), to, p);
        uint64_t low = without_infinity(narrow((double)pb[l], to, (bh__round)p.round), to, p);
        high = finish_float(high, to, i->flags);
        low = finish_float(low, to, i->flags);
        pd[l] = (uint32_t)(high << 16 | low);
    }
    return true;
}

#define TF32_ULP 0x2000u

/* tf32: a float with 10 bits of mantissa, kept in 32 bits. */
HANDLER(to_tf32) {
    const bh__f32 *pa = bh__row(x, i->a);
    bh__u32 *pd = bh__row(x, i->d);
    plan p = unpack_plan(i->imm);
    FOR_LANES_IN_ORDER(mask) {
        double d = (double)pa[l];
        uint32_t v = (uint32_t)bh__narrow_double(d, 10, 8, (bh__round)p.round) << 13;
        if (d != d) { /* rounding away from zero is an addition, which preserves NaN payloads */
            v = p.round == BH__ROUND_AWAY ? bh__bits_of_float(pa[l]) & -TF32_ULP : 0x7fffe000u;
        }
        if (p.finite && (v & 0x7fffffffu) >= 0x7f800000u) { /* an H200 does this to NaN, too */
            v -= TF32_ULP;
        }
        pd[l] = i->flags & FLAG_RELU && d == d && v >> 31 ? 0 : v;
    }
    return true;
}

/* cvt.pack.sat: packs two integers into the low bits; the third operand moves above them. */
HANDLER(pack_integers) {
    const bh__s32 *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);
    const bh__u32 *pc = i->c == NO_ROW ? NULL : bh__row(x, i->c);
    bh__u32 *pd = bh__row(x, i->d);
    plan p = unpack_plan(i->imm);
    bh__ptx_type to = (bh__ptx_type)p.to;
    unsigned bits = bits_of(to);
    FOR_LANES_IN_ORDER(mask) {
        uint32_t keep = (uint32_t)(UINT64_MAX >> (64 - bits));
        uint32_t a = (uint32_t)saturate_integer((uint64_t)(int64_t)pa[l], T_S32, to) & keep;
        uint32_t b = (uint32_t)saturate_integer((uint64_t)(int64_t)pb[l], T_S32, to) & keep;
        uint32_t pair = a << bits | b;
        pd[l] = pc == NULL ? pair : pc[l] << 2 * bits | pair;
    }
    return true;
}

static bool pick_special(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bool rounded = HAS(insn, RN) || HAS(insn, RZ) || HAS(insn, RNA);
    if (insn->op == OP_CVT2) {
        code->run = pair_of_halves;
        return rounded;
    }
    if (insn->op == OP_CVTF8 || insn->op == OP_CVTH8 || insn->op == OP_CVT8H) {
        return bh__ptx_pick_fp8(insn, code);
    }
    if (insn->op == OP_CVTTF) {
        code->run = to_tf32;
        return rounded && !(HAS(insn, RNA) && HAS(insn, RELU)) &&
               !(HAS(insn, SATFINITE) && !HAS(insn, RNA));
    }
    bool narrow_parts = bh__ptx_bytes(insn->types[0]) == 1;
    code->run = pack_integers;
    return HAS(insn, PACK) && HAS(insn, SAT) && insn->operand_count == (narrow_parts ? 4 : 3) &&
           (insn->type_count == 3) == narrow_parts && (!narrow_parts || insn->types[2] == T_B32);
}

static bh__ptx_handler *pick_fast_cvt(bh__ptx_type from, bh__ptx_type to,
                                      const bh__ptx_insn *insn) {
    bool nearest = bh__round_of(insn) == BH__ROUND_NEAREST;
    unsigned from_bytes = bh__ptx_bytes(from), to_bytes = bh__ptx_bytes(to);
    bool ints = bh__ptx_class(from) != 'F' && bh__ptx_class(to) != 'F';
    if (HAS(insn, SAT) || HAS(insn, FTZ) || HAS(insn, RELU)) {
        return NULL;
    }
    if (ints && from_bytes == 4 && to_bytes == 8) {
        return bh__ptx_class(from) == 'S' ? s32_to_s64 : u32_to_u64;
    }
    if (ints && from_bytes == 8 && to_bytes == 4) {
        return low32;
    }
    if (ints && from_bytes == 4 && to == T_U16) {
        return low16;
    }
    if (to == T_F32 && nearest && (from == T_S32 || from == T_U32)) {
        return from == T_S32 ? s32_to_f32 : u32_to_f32;
    }
    if (from == T_F32 && to == T_F64) {
        return f32_to_f64;
    }
    return from == T_F64 && to == T_F32 && nearest ? f64_to_f32 : NULL;
}

/* PTX requires a rounding mode if a conversion can be inexact, and forbids it otherwise. */
static bool rounding_fits(const bh__ptx_insn *insn, bh__ptx_type from, bh__ptx_type to) {
    bool rounded = HAS(insn, RN) || HAS(insn, RZ) || HAS(insn, RM) || HAS(insn, RP);
    bool integral = HAS(insn, RNI) || HAS(insn, RZI) || HAS(insn, RMI) || HAS(insn, RPI);
    bool from_float = bh__ptx_class(from) == 'F', to_float = bh__ptx_class(to) == 'F';
    if (!from_float && !to_float) {
        return !rounded && !integral;
    }
    if (from_float && !to_float) {
        return integral && !rounded;
    }
    if (!from_float) {
        return rounded && !integral;
    }
    unsigned from_bytes = bh__ptx_bytes(from), to_bytes = bh__ptx_bytes(to);
    if (from == to) {
        return !rounded;
    }
    if (from_bytes < to_bytes) {
        return (!rounded || from == T_BF16) && !integral;
    }
    return rounded && !integral;
}

bool bh__ptx_pick_cvt(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bh__ptx_type to = (bh__ptx_type)insn->types[0], from = (bh__ptx_type)insn->types[1];
    bool from_float = bh__ptx_class(from) == 'F', to_float = bh__ptx_class(to) == 'F';
    bool integral = HAS(insn, RNI) || HAS(insn, RZI) || HAS(insn, RMI) || HAS(insn, RPI);
    code->imm = pack_plan((plan){(uint8_t)from, (uint8_t)to, (uint8_t)bh__round_of(insn),
                                 integral && to_float, HAS(insn, SATFINITE)});
    code->flags = (uint8_t)((HAS(insn, FTZ) ? FLAG_FTZ : 0) | (HAS(insn, SAT) ? FLAG_SAT : 0) |
                            (HAS(insn, RELU) ? FLAG_RELU : 0));
    if (insn->op != OP_CVT) {
        return pick_special(insn, code);
    }
    bool halves = to == T_F16 || to == T_BF16;
    if (!rounding_fits(insn, from, to) || (HAS(insn, FTZ) && from != T_F32 && to != T_F32) ||
        ((HAS(insn, RELU) || HAS(insn, SATFINITE)) && !(halves && from == T_F32)) ||
        (HAS(insn, SATFINITE) && !HAS(insn, RN) && !HAS(insn, RZ))) {
        return false;
    }
    code->run = from_float ? (to_float ? float_to_float : float_to_int)
                           : (to_float ? int_to_float : int_to_int);
    return true;
}

bh__ptx_handler *bh__ptx_fast_cvt(const bh__ptx_insn *insn) {
    return pick_fast_cvt((bh__ptx_type)insn->types[1], (bh__ptx_type)insn->types[0], insn);
}
