/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic. */
#include "ptx/run/exec.h"

/* X(suffix, row type, type, unsigned type) */
#define INT_TYPES(X)                                                                               \
    X(u16, bh__u32, uint16_t, uint16_t)                                                            \
    X(s16, bh__u32, int16_t, uint16_t)                                                             \
    X(u32, bh__u32, uint32_t, uint32_t)                                                            \
    X(s32, bh__u32, int32_t, uint32_t)                                                             \
    X(u64, bh__u64, uint64_t, uint64_t)                                                            \
    X(s64, bh__u64, int64_t, uint64_t)

#define NAMES(op)                                                                                  \
    { op##_u16, op##_s16, op##_u32, op##_s32, op##_u64, op##_s64 }

static int type_index(bh__ptx_type type) {
    switch (type) {
    case T_U16:
        return 0;
    case T_S16:
        return 1;
    case T_U32:
        return 2;
    case T_S32:
        return 3;
    case T_U64:
        return 4;
    case T_S64:
        return 5;
    default:
        return -1;
    }
}

#define HANDLER(name)                                                                              \
    WIDE_VECTORS static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

#define UNARY(name, R, T, U, expr)                                                                 \
    HANDLER(name) {                                                                                \
        const R *pa = bh__row(x, i->a);                                                            \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES(mask, T a = (T)pa[l]; pd[l] = (R)(U)(expr););                                    \
        return true;                                                                               \
    }

#define BINARY(name, R, T, U, expr)                                                                \
    HANDLER(name) {                                                                                \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);                                    \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES(mask, T a = (T)pa[l]; T b = (T)pb[l]; pd[l] = (R)(U)(expr););                    \
        return true;                                                                               \
    }

#define TERNARY(name, R, T, U, expr)                                                               \
    HANDLER(name) {                                                                                \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b), *pc = bh__row(x, i->c);            \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES(mask, T a = (T)pa[l]; T b = (T)pb[l]; T c = (T)pc[l]; pd[l] = (R)(U)(expr););    \
        return true;                                                                               \
    }

/* Signed overflow wraps, so sums and products are computed unsigned. */
#define X(s, R, T, U)                                                                              \
    BINARY(add_##s, R, T, U, (U)a + (U)b)                                                          \
    BINARY(sub_##s, R, T, U, (U)a - (U)b)                                                          \
    BINARY(mul_lo_##s, R, T, U, (uint64_t)a *(uint64_t)b)                                          \
    TERNARY(mad_lo_##s, R, T, U, (uint64_t)a *(uint64_t)b + (uint64_t)c)                           \
    BINARY(min_##s, R, T, U, a < b ? a : b)                                                        \
    BINARY(max_##s, R, T, U, a > b ? a : b)                                                        \
    TERNARY(sad_##s, R, T, U, (U)c + (a < b ? (U)b - (U)a : (U)a - (U)b))
INT_TYPES(X)
#undef X

#define HIGH16(a, b)  ((int64_t)(a) * (int64_t)(b) >> 16)
#define HIGH32U(a, b) ((uint64_t)(a) * (uint64_t)(b) >> 32)
#define HIGH32S(a, b) ((int64_t)(a) * (int64_t)(b) >> 32)
__extension__ typedef unsigned __int128 wide_u;
__extension__ typedef __int128 wide_s;
#define HIGH64U(a, b) ((wide_u)(a) * (wide_u)(b) >> 64)
#define HIGH64S(a, b) ((wide_s)(a) * (wide_s)(b) >> 64)

BINARY(mul_hi_u16, bh__u32, uint16_t, uint16_t, HIGH16(a, b))
BINARY(mul_hi_s16, bh__u32, int16_t, uint16_t, HIGH16(a, b))
BINARY(mul_hi_u32, bh__u32, uint32_t, uint32_t, HIGH32U(a, b))
BINARY(mul_hi_s32, bh__u32, int32_t, uint32_t, HIGH32S(a, b))
BINARY(mul_hi_u64, bh__u64, uint64_t, uint64_t, HIGH64U(a, b))
BINARY(mul_hi_s64, bh__u64, int64_t, uint64_t, HIGH64S(a, b))
TERNARY(mad_hi_u16, bh__u32, uint16_t, uint16_t, (uint64_t)HIGH16(a, b) + c)
TERNARY(mad_hi_s16, bh__u32, int16_t, uint16_t, HIGH16(a, b) + c)
TERNARY(mad_hi_u32, bh__u32, uint32_t, uint32_t, HIGH32U(a, b) + c)
TERNARY(mad_hi_s32, bh__u32, int32_t, uint32_t, HIGH32S(a, b) + c)
TERNARY(mad_hi_u64, bh__u64, uint64_t, uint64_t, HIGH64U(a, b) + c)
TERNARY(mad_hi_s64, bh__u64, int64_t, uint64_t, (uint64_t)HIGH64S(a, b) + (uint64_t)c)

#define WIDE(name, R, RD, T, W)                                                                    \
    HANDLER(mul_wide_##name) {                                                                     \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);                                    \
        RD *pd = bh__row(x, i->d);                                                                 \
        FOR_LANES(mask, pd[l] = (RD)((W)(T)pa[l] * (W)(T)pb[l]););                                 \
        return true;                                                                               \
    }                                                                                              \
    HANDLER(mad_wide_##name) {                                                                     \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);                                    \
        const RD *pc = bh__row(x, i->c);                                                           \
        RD *pd = bh__row(x, i->d);                                                                 \
        FOR_LANES(mask, pd[l] = (RD)((W)(T)pa[l] * (W)(T)pb[l]) + pc[l];);                         \
        return true;                                                                               \
    }
WIDE(u16, bh__u32, bh__u32, uint16_t, uint32_t)
WIDE(s16, bh__u32, bh__u32, int16_t, int32_t)
WIDE(u32, bh__u32, bh__u64, uint32_t, uint64_t)
WIDE(s32, bh__u32, bh__u64, int32_t, int64_t)

/* Division by zero gives all ones as quotient and as remainder; MIN / -1 wraps. */
#define DIVIDE_U(s, R, T)                                                                          \
    BINARY(div_##s, R, T, T, b == 0 ? (T)-1 : (T)(a / b))                                          \
    BINARY(rem_##s, R, T, T, b == 0 ? (T)-1 : (T)(a % b))
#define DIVIDE_S(s, R, T, U)                                                                       \
    BINARY(div_##s, R, T, U, b == 0 ? -1 : b == -1 ? (T)(0 - (U)a) : (T)(a / b))                   \
    BINARY(rem_##s, R, T, U, b == 0 ? -1 : b == -1 ? 0 : (T)(a % b))
DIVIDE_U(u16, bh__u32, uint16_t)
DIVIDE_U(u32, bh__u32, uint32_t)
DIVIDE_U(u64, bh__u64, uint64_t)
DIVIDE_S(s16, bh__u32, int16_t, uint16_t)
DIVIDE_S(s32, bh__u32, int32_t, uint32_t)
DIVIDE_S(s64, bh__u64, int64_t, uint64_t)

#define SIGNS(s, R, T, U)                                                                          \
    UNARY(abs_##s, R, T, U, a < 0 ? (U)0 - (U)a : (U)a)                                            \
    UNARY(neg_##s, R, T, U, (U)0 - (U)a)
SIGNS(s16, bh__u32, int16_t, uint16_t)
SIGNS(s32, bh__u32, int32_t, uint32_t)
SIGNS(s64, bh__u64, int64_t, uint64_t)

static int32_t clamp32(int64_t v) {
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

BINARY(add_sat, bh__u32, int32_t, uint32_t, clamp32((int64_t)a + b))
BINARY(sub_sat, bh__u32, int32_t, uint32_t, clamp32((int64_t)a - b))
TERNARY(mad_hi_sat, bh__u32, int32_t, uint32_t, clamp32(HIGH32S(a, b) + c))
BINARY(min_relu, bh__u32, int32_t, uint32_t, a < b ? (a < 0 ? 0 : a) : (b < 0 ? 0 : b))
BINARY(max_relu, bh__u32, int32_t, uint32_t, a > b ? (a < 0 ? 0 : a) : (b < 0 ? 0 : b))

/* The low 24 bits of each operand, as a signed or unsigned number. */
#define S24(a) ((int64_t)((int32_t)((uint32_t)(a) << 8) >> 8))
#define U24(a) ((uint64_t)((a)&0xffffff))
BINARY(mul24_lo_u, bh__u32, uint32_t, uint32_t, U24(a) * U24(b))
BINARY(mul24_hi_u, bh__u32, uint32_t, uint32_t, U24(a) * U24(b) >> 16)
BINARY(mul24_lo_s, bh__u32, int32_t, uint32_t, S24(a) * S24(b))
BINARY(mul24_hi_s, bh__u32, int32_t, uint32_t, S24(a) * S24(b) >> 16)
TERNARY(mad24_lo_u, bh__u32, uint32_t, uint32_t, U24(a) * U24(b) + c)
TERNARY(mad24_hi_u, bh__u32, uint32_t, uint32_t, (U24(a) * U24(b) >> 16) + c)
TERNARY(mad24_lo_s, bh__u32, int32_t, uint32_t, S24(a) * S24(b) + c)
TERNARY(mad24_hi_s, bh__u32, int32_t, uint32_t, (S24(a) * S24(b) >> 16) + c)
TERNARY(mad24_hi_sat, bh__u32, int32_t, uint32_t, clamp32((S24(a) * S24(b) >> 16) + c))

/* Two 16-bit numbers in one register. */
#define PACKED(name, T, expr)                                                                      \
    static uint32_t name##_half(uint32_t ua, uint32_t ub) {                                        \
        T a = (T)ua, b = (T)ub;                                                                    \
        return (uint16_t)(expr);                                                                   \
    }                                                                                              \
    BINARY(name, bh__u32, uint32_t, uint32_t,                                                      \
           name##_half(a, b) | name##_half(a >> 16, b >> 16) << 16)
PACKED(add_x2, uint16_t, a + b)
PACKED(sub_x2, uint16_t, a - b)
PACKED(min_u16x2, uint16_t, a < b ? a : b)
PACKED(max_u16x2, uint16_t, a > b ? a : b)
PACKED(min_s16x2, int16_t, a < b ? a : b)
PACKED(max_s16x2, int16_t, a > b ? a : b)
PACKED(min_s16x2_relu, int16_t, a < b ? (a < 0 ? 0 : a) : (b < 0 ? 0 : b))
PACKED(max_s16x2_relu, int16_t, a > b ? (a < 0 ? 0 : a) : (b < 0 ? 0 : b))

/*
 * Arithmetic with the condition code. Flags have other meanings here: FLAG_SAT is "carry in",
 * FLAG_FTZ "carry out", FLAG_INVERT "subtract", which adds the complement and 1, so that a carry
 * means that nothing was borrowed. `imm` selects the part of the product.
 */
enum { CARRY_IN = FLAG_SAT, CARRY_OUT = FLAG_FTZ, SUBTRACT = FLAG_INVERT };
enum { PRODUCT_NONE, PRODUCT_LO, PRODUCT_HI_U, PRODUCT_HI_S };

#define CARRY(bits, R, T, S, HU, HS)                                                               \
    HANDLER(carry_##bits) {                                                                        \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);                                    \
        const R *pc = i->imm == PRODUCT_NONE ? pb : bh__row(x, i->c);                              \
        R *pd = bh__row(x, i->d);                                                                  \
        uint32_t out = 0;                                                                          \
        FOR_LANES_IN_ORDER(mask) {                                                                 \
            T a = pa[l], b = pb[l], r, s;                                                          \
            T in = i->flags & CARRY_IN ? x->warp->carry >> l & 1 : (i->flags & SUBTRACT) != 0;     \
            bool carry;                                                                            \
            switch (i->imm) {                                                                      \
            case PRODUCT_NONE:                                                                     \
                break;                                                                             \
            case PRODUCT_LO:                                                                       \
                a = a * b;                                                                         \
                break;                                                                             \
            case PRODUCT_HI_U:                                                                     \
                a = (T)HU(a, b);                                                                   \
                break;                                                                             \
            default:                                                                               \
                a = (T)HS((S)a, (S)b);                                                             \
                break;                                                                             \
            }                                                                                      \
            b = i->flags & SUBTRACT ? ~pc[l] : pc[l];                                              \
            carry = __builtin_add_overflow(a, b, &r);                                              \
            carry |= __builtin_add_overflow(r, in, &s);                                            \
            pd[l] = s;                                                                             \
            out |= (uint32_t)carry << l;                                                           \
        }                                                                                          \
        if (i->flags & CARRY_OUT) {                                                                \
            x->warp->carry = (x->warp->carry & ~mask) | out;                                       \
        }                                                                                          \
        return true;                                                                               \
    }
CARRY(32, bh__u32, uint32_t, int32_t, HIGH32U, HIGH32S)
CARRY(64, bh__u64, uint64_t, int64_t, HIGH64U, HIGH64S)

static bool pick_carry(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bh__ptx_type type = (bh__ptx_type)insn->types[0];
    bool carry_in = insn->op == OP_ADDC || insn->op == OP_SUBC || insn->op == OP_MADC;
    bool product = insn->op == OP_MAD || insn->op == OP_MADC;
    if (bh__ptx_bytes(type) < 4 || HAS(insn, SAT) || HAS(insn, WIDE) ||
        (product && !HAS(insn, LO) && !HAS(insn, HI))) {
        return false;
    }
    code->run = bh__ptx_bytes(type) == 8 ? carry_64 : carry_32;
    code->flags = (uint8_t)((carry_in ? CARRY_IN : 0) | (HAS(insn, CC) ? CARRY_OUT : 0) |
                            (insn->op == OP_SUB || insn->op == OP_SUBC ? SUBTRACT : 0));
    code->imm = !product                     ? PRODUCT_NONE
                : HAS(insn, LO)              ? PRODUCT_LO
                : bh__ptx_class(type) == 'S' ? PRODUCT_HI_S
                                             : PRODUCT_HI_U;
    return true;
}

static bh__ptx_handler *pick_packed(const bh__ptx_insn *insn) {
    bool is_signed = insn->types[0] == T_S16X2, relu = HAS(insn, RELU);
    if (HAS(insn, SAT) || HAS(insn, CC) || (relu && !is_signed)) {
        return NULL;
    }
    switch (insn->op) {
    case OP_ADD:
        return relu ? NULL : add_x2;
    case OP_SUB:
        return relu ? NULL : sub_x2;
    case OP_MIN:
        return relu ? min_s16x2_relu : is_signed ? min_s16x2 : min_u16x2;
    case OP_MAX:
        return relu ? max_s16x2_relu : is_signed ? max_s16x2 : max_u16x2;
    default:
        return NULL;
    }
}

static bh__ptx_handler *pick_special(const bh__ptx_insn *insn) {
    bool s32 = insn->types[0] == T_S32, hi = HAS(insn, HI), sat = HAS(insn, SAT);
    switch (insn->op) {
    case OP_MUL24:
        if (!hi && !HAS(insn, LO)) {
            return NULL;
        }
        return s32 ? (hi ? mul24_hi_s : mul24_lo_s) : (hi ? mul24_hi_u : mul24_lo_u);
    case OP_MAD24:
        if ((!hi && !HAS(insn, LO)) || (sat && !(s32 && hi))) {
            return NULL;
        }
        return sat   ? mad24_hi_sat
               : s32 ? (hi ? mad24_hi_s : mad24_lo_s)
                     : (hi ? mad24_hi_u : mad24_lo_u);
    case OP_ADD:
        return s32 ? add_sat : NULL;
    case OP_SUB:
        return s32 ? sub_sat : NULL;
    case OP_MAD:
        return s32 && hi ? mad_hi_sat : NULL;
    case OP_MIN:
        return s32 ? min_relu : NULL;
    case OP_MAX:
        return s32 ? max_relu : NULL;
    default:
        return NULL;
    }
}

static bh__ptx_handler *pick_table(const bh__ptx_insn *insn, int t) {
    static bh__ptx_handler *const add[] = NAMES(add), *const sub[] = NAMES(sub),
                                  *const mul_lo[] = NAMES(mul_lo), *const mul_hi[] = NAMES(mul_hi),
                                  *const mad_lo[] = NAMES(mad_lo), *const mad_hi[] = NAMES(mad_hi),
                                  *const div[] = NAMES(div), *const rem[] = NAMES(rem),
                                  *const min[] = NAMES(min), *const max[] = NAMES(max),
                                  *const sad[] = NAMES(sad);
    static bh__ptx_handler *const mul_wide[] = {mul_wide_u16, mul_wide_s16, mul_wide_u32,
                                                mul_wide_s32, NULL,         NULL};
    static bh__ptx_handler *const mad_wide[] = {mad_wide_u16, mad_wide_s16, mad_wide_u32,
                                                mad_wide_s32, NULL,         NULL};
    static bh__ptx_handler *const abs[] = {NULL, abs_s16, NULL, abs_s32, NULL, abs_s64};
    static bh__ptx_handler *const neg[] = {NULL, neg_s16, NULL, neg_s32, NULL, neg_s64};
    bool lo = HAS(insn, LO), hi = HAS(insn, HI), wide = HAS(insn, WIDE);
    switch (insn->op) {
    case OP_ADD:
        return add[t];
    case OP_SUB:
        return sub[t];
    case OP_MUL:
        return lo ? mul_lo[t] : hi ? mul_hi[t] : wide ? mul_wide[t] : NULL;
    case OP_MAD:
        return lo ? mad_lo[t] : hi ? mad_hi[t] : wide ? mad_wide[t] : NULL;
    case OP_SAD:
        return sad[t];
    case OP_DIV:
        return div[t];
    case OP_REM:
        return rem[t];
    case OP_ABS:
        return abs[t];
    case OP_NEG:
        return neg[t];
    case OP_MIN:
        return min[t];
    case OP_MAX:
        return max[t];
    default:
        return NULL;
    }
}

bool bh__ptx_pick_int(const bh__ptx_insn *insn, bh__ptx_code *code) {
    int t = type_index((bh__ptx_type)insn->types[0]);
    bool carries =
        HAS(insn, CC) || insn->op == OP_ADDC || insn->op == OP_SUBC || insn->op == OP_MADC;
    if (t < 0) {
        code->run = pick_packed(insn);
    } else if (carries) {
        return pick_carry(insn, code);
    } else if (HAS(insn, SAT) || HAS(insn, RELU) || insn->op == OP_MUL24 || insn->op == OP_MAD24) {
        code->run = pick_special(insn);
    } else {
        code->run = pick_table(insn, t);
    }
    return code->run != NULL;
}
