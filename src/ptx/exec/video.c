/* SPDX-License-Identifier: Apache-2.0 */
/* Video instructions: arithmetic on bytes, halves and words of registers, one or several at
 * once. */
#include <string.h>

#include "ptx/run/exec.h"

typedef enum video_op {
    VIDEO_ADD,
    VIDEO_SUB,
    VIDEO_ABSDIFF,
    VIDEO_MIN,
    VIDEO_MAX,
    VIDEO_AVERAGE,
    VIDEO_SHL,
    VIDEO_SHR,
    VIDEO_SET,
    VIDEO_MAD
} video_op;

enum { SECOND_NONE, SECOND_ADD, SECOND_MIN, SECOND_MAX };
enum { COMPARE_EQ, COMPARE_NE, COMPARE_LT, COMPARE_LE, COMPARE_GT, COMPARE_GE };

/*
 * What a video instruction does; packed into `imm` of the code. Sources are elements of the
 * registers a and b, seen as one of 64 bits, a below: digit n of `a_select` is the element, of
 * `a_width` bits, for lane n. Widths are the logarithms of 8, 16 or 32.
 */
typedef struct plan {
    uint64_t op : 4, second : 2, compare : 3;
    uint64_t lanes : 3; /* 1, 2 or 4 */
    uint64_t mask : 4;  /* of the destination's elements that are written, others are those of c */
    uint64_t d_width : 3, a_width : 3, b_width : 3;
    uint64_t a_select : 12, b_select : 12; /* three bits for each lane */
    uint64_t d_signed : 1, a_signed : 1, b_signed : 1, sat : 1;
    uint64_t wrap : 1;     /* shift amounts */
    uint64_t scale : 4;    /* mad: shifts the sum right */
    uint64_t plus_one : 1; /* mad.po */
    uint64_t negate_product : 1, negate_c : 1;
} plan;
_Static_assert(sizeof(plan) == sizeof(uint64_t), "a plan fits into imm");

static plan plan_of(const bh__ptx_code *i) {
    plan p;
    memcpy(&p, &i->imm, sizeof p);
    return p;
}

/* The value of `bits` bits of `v` from bit `at` on. */
static int64_t element(uint64_t v, unsigned at, unsigned bits, bool is_signed) {
    uint64_t up = v >> at << (64 - bits);
    return is_signed ? (int64_t)up >> (64 - bits) : (int64_t)(up >> (64 - bits));
}

static int64_t lane_of(uint64_t v, unsigned select, unsigned lane, unsigned width, bool is_signed) {
    return element(v, (select >> 3 * lane & 7) << width, 1u << width, is_signed);
}

static int64_t clamp(int64_t v, unsigned bits, bool is_signed) {
    int64_t max = (int64_t)(UINT64_MAX >> (64 - bits)) >> is_signed, min = is_signed ? -max - 1 : 0;
    return v < min ? min : v > max ? max : v;
}

static bool compare(int64_t a, int64_t b, unsigned how) {
    switch (how) {
    case COMPARE_EQ:
        return a == b;
    case COMPARE_NE:
        return a != b;
    case COMPARE_LT:
        return a < b;
    case COMPARE_LE:
        return a <= b;
    case COMPARE_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static int64_t primary(const plan *p, int64_t a, int64_t b) {
    uint32_t amount = p->wrap ? (uint32_t)b & 31 : (uint32_t)b > 32 ? 32 : (uint32_t)b;
    switch ((video_op)p->op) {
    case VIDEO_ADD:
        return a + b;
    case VIDEO_SUB:
        return a - b;
    case VIDEO_ABSDIFF:
        return a < b ? b - a : a - b;
    case VIDEO_MIN:
        return a < b ? a : b;
    case VIDEO_MAX:
        return a > b ? a : b;
    case VIDEO_AVERAGE:
        return (a + b + (a + b >= 0)) >> 1;
    case VIDEO_SHL:
        return (int64_t)((uint64_t)a << amount);
    case VIDEO_SHR:
        return a >> amount;
    default:
        return compare(a, b, p->compare);
    }
}

/* The second operation takes the low 32 bits of the sum of the lanes, and c. */
static uint32_t second(const plan *p, uint32_t sum, uint32_t c) {
    bool less = p->d_signed ? (int32_t)sum < (int32_t)c : sum < c;
    switch (p->second) {
    case SECOND_MIN:
        return less ? sum : c;
    case SECOND_MAX:
        return less ? c : sum;
    default:
        return sum + c;
    }
}

static uint32_t compute(const plan *p, uint32_t a, uint32_t b, uint32_t c) {
    uint64_t both = (uint64_t)b << 32 | a;
    unsigned bits = 1u << p->d_width, lane = 0;
    uint64_t merged = p->d_width == 5 ? 0 : c;
    int64_t sum = 0;
    for (unsigned at = 0; at < 4; at++) {
        if (p->lanes > 1) {
            lane = at;
        }
        if ((p->mask >> at & 1) == 0) {
            continue;
        }
        int64_t v = primary(p, lane_of(both, p->a_select, lane, p->a_width, p->a_signed),
                            lane_of(both, p->b_select, lane, p->b_width, p->b_signed));
        v = p->sat ? clamp(v, bits, p->d_signed) : v;
        sum += v;
        if (p->lanes == 1 && p->d_width == 4 && at == 1) {
            v >>= 16; /* into .h1 an NVIDIA GPU stores the upper half of the result */
        }
        uint64_t low = UINT64_MAX >> (64 - bits);
        merged = (merged & ~(low << at * bits)) | ((uint64_t)v & low) << at * bits;
    }
    return p->second == SECOND_NONE ? (uint32_t)merged : second(p, (uint32_t)sum, c);
}

__extension__ typedef __int128 wide;

static uint32_t multiply_add(const plan *p, uint32_t a, uint32_t b, uint32_t c) {
    uint64_t both = (uint64_t)b << 32 | a;
    bool is_signed = p->a_signed || p->b_signed || p->negate_product || p->negate_c;
    wide product = (wide)lane_of(both, p->a_select, 0, p->a_width, p->a_signed) *
                   lane_of(both, p->b_select, 0, p->b_width, p->b_signed);
    if (p->negate_product) {
        product = ~product;
    } else if (p->negate_c) {
        c = ~c;
    }
    wide sum = product + (is_signed ? (wide)(int32_t)c : (wide)c) +
               (p->plus_one || p->negate_product || p->negate_c);
    sum >>= p->scale;
    if (p->sat) {
        wide max = is_signed ? INT32_MAX : UINT32_MAX, min = is_signed ? INT32_MIN : 0;
        sum = sum < min ? min : sum > max ? max : sum;
    }
    return (uint32_t)sum;
}

#define HANDLER(name, expr)                                                                        \
    static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {                      \
        const bh__u32 *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);                              \
        const bh__u32 *pc = i->c == NO_ROW ? pa : bh__row(x, i->c);                                \
        bh__u32 *pd = bh__row(x, i->d);                                                            \
        plan p = plan_of(i);                                                                       \
        FOR_LANES_IN_ORDER(mask) {                                                                 \
            pd[l] = expr(&p, pa[l], pb[l], pc[l]);                                                 \
        }                                                                                          \
        return true;                                                                               \
    }
HANDLER(run_video, compute)
HANDLER(run_mad, multiply_add)

/* Widths as logarithms: none 5, .h 4, .b 3. */
static unsigned width_of(const bh__ptx_operand *o) {
    return SELECT_DIGITS(o->count) == 0 ? 5 : o->count & SELECT_HALVES ? 4 : 3;
}

/* The selector of a source: `first` is the element that the register starts with. */
static bool select_scalar(const bh__ptx_operand *o, unsigned register_index, unsigned *out) {
    unsigned width = width_of(o), per_register = 32u >> width, digit = SELECT_DIGIT(o->count, 0);
    *out = register_index * per_register + digit;
    return SELECT_DIGITS(o->count) <= 1 && digit < per_register;
}

static bool select_lanes(const bh__ptx_operand *o, unsigned lanes, unsigned first, unsigned *out) {
    unsigned digits = SELECT_DIGITS(o->count);
    bool ok = digits == 0 || (digits == lanes && width_of(o) == (lanes == 2 ? 4u : 3u));
    *out = 0;
    for (unsigned n = 0; n < lanes; n++) {
        unsigned digit = digits == 0 ? first + n : SELECT_DIGIT(o->count, n);
        ok = ok && digit < 2 * lanes;
        *out |= (digit & 7) << 3 * n;
    }
    return ok;
}

/* Which elements of the destination are written. */
static bool select_mask(const bh__ptx_operand *o, plan *p) {
    unsigned digits = SELECT_DIGITS(o->count), width = p->lanes == 1   ? width_of(o)
                                                       : p->lanes == 2 ? 4u
                                                                       : 3u;
    bool ok = digits == 0 || width_of(o) == width;
    unsigned mask = digits == 0 ? (1u << p->lanes) - 1 : 0;
    for (unsigned n = 0; n < digits; n++) {
        unsigned digit = SELECT_DIGIT(o->count, n);
        ok = ok && digit < 32u >> width && mask >> digit == 0; /* written from the highest down */
        mask |= 1u << (digit & 3);
    }
    p->mask = mask & 15;
    p->d_width = width & 7;
    return ok && (p->lanes > 1 || digits <= 1);
}

static bool set_selectors(const bh__ptx_insn *insn, plan *p) {
    const bh__ptx_operand *o = insn->operands;
    unsigned a = 0, b = 0;
    bool ok = select_mask(&o[0], p);
    if (p->lanes == 1) {
        ok = select_scalar(&o[1], 0, &a) && select_scalar(&o[2], 1, &b) && ok;
        p->a_width = width_of(&o[1]) & 7;
        p->b_width = width_of(&o[2]) & 7;
    } else {
        ok = select_lanes(&o[1], p->lanes, 0, &a) && select_lanes(&o[2], p->lanes, p->lanes, &b) &&
             ok;
        p->a_width = p->b_width = p->d_width;
    }
    p->a_select = a & 4095;
    p->b_select = b & 4095;
    return ok && (insn->operand_count < 4 || (o[3].count & ~SELECT_NEGATED) == 0);
}

static bool set_signs(const bh__ptx_insn *insn, plan *p) {
    bool set = p->op == VIDEO_SET; /* has no type of its destination */
    const uint8_t *source = insn->types + !set;
    p->d_signed = !set && insn->types[0] == T_S32;
    p->a_signed = source[0] == T_S32;
    p->b_signed = source[1] == T_S32;
    return insn->type_count == (set ? 2 : 3) && (source[1] == T_S32 || source[1] == T_U32);
}

static bool set_mad(const bh__ptx_insn *insn, plan *p) {
    const bh__ptx_operand *o = insn->operands;
    bool a = o[1].count & SELECT_NEGATED, b = o[2].count & SELECT_NEGATED;
    p->plus_one = HAS(insn, PO);
    p->negate_product = a != b;
    p->negate_c = insn->operand_count == 4 && (o[3].count & SELECT_NEGATED);
    p->scale = (HAS(insn, SHR7) ? 7 : HAS(insn, SHR15) ? 15 : 0) & 15;
    return insn->operand_count == 4 && SELECT_DIGITS(o[0].count) == 0 &&
           a + b + p->negate_c + p->plus_one <= 1;
}

static unsigned compare_of(const bh__ptx_insn *insn) {
    return HAS(insn, EQ)   ? COMPARE_EQ
           : HAS(insn, NE) ? COMPARE_NE
           : HAS(insn, LT) ? COMPARE_LT
           : HAS(insn, LE) ? COMPARE_LE
           : HAS(insn, GT) ? COMPARE_GT
           : HAS(insn, GE) ? COMPARE_GE
                           : 7;
}

static bool negates(const bh__ptx_insn *insn) {
    uint32_t any = 0;
    for (unsigned n = 0; n < insn->operand_count; n++) {
        any |= insn->operands[n].count & SELECT_NEGATED;
    }
    return any != 0;
}

/* c is there exactly if it is needed; a destination's part excludes a second operation. */
static bool fits_operands(const bh__ptx_insn *insn, const plan *p) {
    bool part = SELECT_DIGITS(insn->operands[0].count) != 0;
    bool second_fits = p->second == SECOND_NONE || (p->lanes > 1 ? !p->sat : !part);
    bool needs_c = p->lanes > 1 || part || p->second != SECOND_NONE;
    return second_fits && (insn->operand_count == 4) == needs_c && !negates(insn);
}

/* Forms for which an H200 does not give what PTX says. They are refused: nothing would be right. */
static bool is_disputed(const plan *p) {
    bool words = p->a_width == 5 && p->b_width == 5, both_signed = p->a_signed && p->b_signed;
    bool one_signed = p->a_signed || p->b_signed, adds = p->op == VIDEO_ADD || p->op == VIDEO_SUB;
    if (p->op == VIDEO_MAD) {
        bool scales = p->sat || p->scale != 0;
        return !both_signed && scales && (!one_signed || (words && p->sat));
    }
    if (p->lanes > 1) {
        return false;
    }
    if ((p->second == SECOND_MIN || p->second == SECOND_MAX) && adds && !p->d_signed) {
        return true;
    }
    bool negative = p->op == VIDEO_SUB || (p->op != VIDEO_ABSDIFF && one_signed);
    return p->sat && (p->op == VIDEO_SHL || (p->d_width < 5 && negative && !both_signed) ||
                      (p->op == VIDEO_ADD && words && !one_signed && !p->d_signed));
}

bool bh__ptx_pick_video(const bh__ptx_insn *insn, bh__ptx_code *code) {
    static const struct {
        uint8_t op, lanes;
    } kinds[OP_COUNT] = {
        [OP_VADD] = {VIDEO_ADD, 1},          [OP_VSUB] = {VIDEO_SUB, 1},
        [OP_VABSDIFF] = {VIDEO_ABSDIFF, 1},  [OP_VMIN] = {VIDEO_MIN, 1},
        [OP_VMAX] = {VIDEO_MAX, 1},          [OP_VSHL] = {VIDEO_SHL, 1},
        [OP_VSHR] = {VIDEO_SHR, 1},          [OP_VSET] = {VIDEO_SET, 1},
        [OP_VMAD] = {VIDEO_MAD, 1},          [OP_VADD2] = {VIDEO_ADD, 2},
        [OP_VSUB2] = {VIDEO_SUB, 2},         [OP_VAVRG2] = {VIDEO_AVERAGE, 2},
        [OP_VABSDIFF2] = {VIDEO_ABSDIFF, 2}, [OP_VMIN2] = {VIDEO_MIN, 2},
        [OP_VMAX2] = {VIDEO_MAX, 2},         [OP_VSET2] = {VIDEO_SET, 2},
        [OP_VADD4] = {VIDEO_ADD, 4},         [OP_VSUB4] = {VIDEO_SUB, 4},
        [OP_VAVRG4] = {VIDEO_AVERAGE, 4},    [OP_VABSDIFF4] = {VIDEO_ABSDIFF, 4},
        [OP_VMIN4] = {VIDEO_MIN, 4},         [OP_VMAX4] = {VIDEO_MAX, 4},
        [OP_VSET4] = {VIDEO_SET, 4},
    };
    plan p = {.op = kinds[insn->op].op & 15,
              .lanes = kinds[insn->op].lanes & 7,
              .compare = compare_of(insn) & 7,
              .sat = HAS(insn, SAT),
              .wrap = HAS(insn, WRAP),
              .second = HAS(insn, ADD)   ? SECOND_ADD
                        : HAS(insn, MIN) ? SECOND_MIN
                        : HAS(insn, MAX) ? SECOND_MAX
                                         : SECOND_NONE};
    bool shift = p.op == VIDEO_SHL || p.op == VIDEO_SHR;
    bool ok = set_selectors(insn, &p) && set_signs(insn, &p) &&
              (p.op != VIDEO_SET || p.compare != 7) &&
              (!shift || (HAS(insn, CLAMP) != HAS(insn, WRAP) && !p.b_signed));
    ok = ok && (p.op == VIDEO_MAD ? set_mad(insn, &p) : fits_operands(insn, &p));
    code->run = p.op == VIDEO_MAD ? run_mad : run_video;
    memcpy(&code->imm, &p, sizeof p);
    return ok && !is_disputed(&p);
}
