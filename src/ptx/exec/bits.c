/* SPDX-License-Identifier: Apache-2.0 */
/* Bit operations: logic, shifts, bit fields, permutes, counts; and dp4a and dp2a. */
#include "ptx/run/exec.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

#define UNARY(name, RD, R, T, expr)                                                                \
    HANDLER(name) {                                                                                \
        const R *pa = bh__row(x, i->a);                                                            \
        RD *pd = bh__row(x, i->d);                                                                 \
        FOR_LANES(mask, T a = (T)pa[l]; pd[l] = (RD)(expr););                                      \
        return true;                                                                               \
    }

#define BINARY(name, R, T, expr)                                                                   \
    HANDLER(name) {                                                                                \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);                                    \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES(mask, T a = (T)pa[l]; T b = (T)pb[l]; pd[l] = (R)(expr););                       \
        return true;                                                                               \
    }

/* The second source always has 32 bits. */
#define SHIFT(name, R, T, U, expr)                                                                 \
    HANDLER(name) {                                                                                \
        const R *pa = bh__row(x, i->a);                                                            \
        const bh__u32 *pb = bh__row(x, i->b);                                                      \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES(mask, T a = (T)pa[l]; uint32_t b = pb[l]; pd[l] = (R)(U)(expr););                \
        return true;                                                                               \
    }

#define WORD3(name, expr)                                                                          \
    HANDLER(name) {                                                                                \
        const bh__u32 *pa = bh__row(x, i->a), *pb = bh__row(x, i->b), *pc = bh__row(x, i->c);      \
        bh__u32 *pd = bh__row(x, i->d);                                                            \
        FOR_LANES(mask, uint32_t a = pa[l]; uint32_t b = pb[l]; uint32_t c = pc[l];                \
                  pd[l] = (expr););                                                                \
        return true;                                                                               \
    }

BINARY(and_16, bh__u32, uint16_t, a &b)
BINARY(and_32, bh__u32, uint32_t, a &b)
BINARY(and_64, bh__u64, uint64_t, a &b)
BINARY(or_16, bh__u32, uint16_t, a | b)
BINARY(or_32, bh__u32, uint32_t, a | b)
BINARY(or_64, bh__u64, uint64_t, a | b)
BINARY(xor_16, bh__u32, uint16_t, a ^ b)
BINARY(xor_32, bh__u32, uint32_t, a ^ b)
BINARY(xor_64, bh__u64, uint64_t, a ^ b)
UNARY(not_16, bh__u32, bh__u32, uint16_t, (uint16_t)~a)
UNARY(not_32, bh__u32, bh__u32, uint32_t, ~a)
UNARY(not_64, bh__u64, bh__u64, uint64_t, ~a)
UNARY(cnot_16, bh__u32, bh__u32, uint16_t, a == 0)
UNARY(cnot_32, bh__u32, bh__u32, uint32_t, a == 0)
UNARY(cnot_64, bh__u64, bh__u64, uint64_t, a == 0)

#define PREDICATE(name, expr)                                                                      \
    HANDLER(name) {                                                                                \
        uint32_t a = *(const bh__u32 *)bh__row(x, i->a);                                           \
        uint32_t b = i->b == NO_ROW ? 0 : *(const bh__u32 *)bh__row(x, i->b);                      \
        bh__set_predicate(x, i->d, expr, mask);                                                    \
        return true;                                                                               \
    }
PREDICATE(and_p, a &b)
PREDICATE(or_p, a | b)
PREDICATE(xor_p, a ^ b)
PREDICATE(not_p, ~a | (b & 0))

/* Amounts of at least the width shift out all bits. */
SHIFT(shl_16, bh__u32, uint16_t, uint16_t, b > 15 ? 0 : (uint32_t)a << b)
SHIFT(shl_32, bh__u32, uint32_t, uint32_t, b > 31 ? 0 : a << b)
SHIFT(shl_64, bh__u64, uint64_t, uint64_t, b > 63 ? 0 : a << b)
SHIFT(shr_u16, bh__u32, uint16_t, uint16_t, b > 15 ? 0 : a >> b)
SHIFT(shr_u32, bh__u32, uint32_t, uint32_t, b > 31 ? 0 : a >> b)
SHIFT(shr_u64, bh__u64, uint64_t, uint64_t, b > 63 ? 0 : a >> b)
SHIFT(shr_s16, bh__u32, int16_t, uint16_t, a >> (b > 15 ? 15 : b))
SHIFT(shr_s32, bh__u32, int32_t, uint32_t, a >> (b > 31 ? 31 : b))
SHIFT(shr_s64, bh__u64, int64_t, uint64_t, a >> (b > 63 ? 63 : b))

#define JOIN(hi, lo) ((uint64_t)(hi) << 32 | (lo))
WORD3(shf_l_wrap, (uint32_t)(JOIN(b, a) << (c & 31) >> 32))
WORD3(shf_l_clamp, (uint32_t)(JOIN(b, a) << (c > 32 ? 32 : c) >> 32))
WORD3(shf_r_wrap, (uint32_t)(JOIN(b, a) >> (c & 31)))
WORD3(shf_r_clamp, (uint32_t)(JOIN(b, a) >> (c > 32 ? 32 : c)))

UNARY(popc_32, bh__u32, bh__u32, uint32_t, __builtin_popcount(a))
UNARY(popc_64, bh__u32, bh__u64, uint64_t, __builtin_popcountll(a))
UNARY(clz_32, bh__u32, bh__u32, uint32_t, a == 0 ? 32 : __builtin_clz(a))
UNARY(clz_64, bh__u32, bh__u64, uint64_t, a == 0 ? 64 : __builtin_clzll(a))

static uint32_t reverse32(uint32_t v) {
    v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
    v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(v);
}

static uint64_t reverse64(uint64_t v) {
    return (uint64_t)reverse32((uint32_t)v) << 32 | reverse32((uint32_t)(v >> 32));
}

UNARY(brev_32, bh__u32, bh__u32, uint32_t, reverse32(a))
UNARY(brev_64, bh__u64, bh__u64, uint64_t, reverse64(a))

static uint32_t find32(uint32_t v) {
    return v == 0 ? UINT32_MAX : 31u - (uint32_t)__builtin_clz(v);
}

static uint32_t find64(uint64_t v) {
    return v == 0 ? UINT32_MAX : 63u - (uint32_t)__builtin_clzll(v);
}

static uint32_t shift_amount(uint32_t position, uint32_t top) {
    return position == UINT32_MAX ? position : top - position;
}

UNARY(bfind_u32, bh__u32, bh__u32, uint32_t, find32(a))
UNARY(bfind_s32, bh__u32, bh__u32, uint32_t, find32(a >> 31 ? ~a : a))
UNARY(bfind_u64, bh__u32, bh__u64, uint64_t, find64(a))
UNARY(bfind_s64, bh__u32, bh__u64, uint64_t, find64(a >> 63 ? ~a : a))
UNARY(bfinda_u32, bh__u32, bh__u32, uint32_t, shift_amount(find32(a), 31))
UNARY(bfinda_s32, bh__u32, bh__u32, uint32_t, shift_amount(find32(a >> 31 ? ~a : a), 31))
UNARY(bfinda_u64, bh__u32, bh__u64, uint64_t, shift_amount(find64(a), 63))
UNARY(bfinda_s64, bh__u32, bh__u64, uint64_t, shift_amount(find64(a >> 63 ? ~a : a), 63))

static uint32_t nth_set(uint32_t bits, uint32_t base, int32_t offset) {
    if (offset == INT32_MIN) { /* outside of what PTX defines */
        return 0;
    }
    if (offset == 0) {
        return base < 32 && (bits >> base & 1) ? base : UINT32_MAX;
    }
    int64_t count = (offset > 0 ? (int64_t)offset : -(int64_t)offset) - 1;
    int64_t step = offset > 0 ? 1 : -1;
    for (int64_t at = base; at >= 0 && at < 32; at += step) {
        if ((bits >> at & 1) && count-- == 0) {
            return (uint32_t)at;
        }
    }
    return UINT32_MAX;
}
WORD3(fns_32, nth_set(a, b, (int32_t)c))

/* Positions and lengths: the low byte for 32-bit fields, all bits for 64-bit fields. */
static unsigned field_number(uint32_t v, unsigned bits) {
    return bits == 32 ? v & 0xff : v > 0xff ? 0xff : v;
}

/* `bits` is the width of the register. Bits beyond it are copies of the sign. */
static uint64_t extract(uint64_t a, uint32_t b, uint32_t c, unsigned bits, bool is_signed) {
    unsigned pos = field_number(b, bits), len = field_number(c, bits);
    unsigned last = pos + len - 1 < bits ? pos + len - 1 : bits - 1;
    bool sign = is_signed && len != 0 && (a >> last & 1) != 0;
    unsigned valid = pos >= bits ? 0 : len < bits - pos ? len : bits - pos;
    uint64_t low = valid == 64 ? UINT64_MAX : (UINT64_C(1) << valid) - 1;
    uint64_t field = pos >= bits ? 0 : a >> pos & low;
    return sign ? field | ~low : field;
}

static uint64_t insert(uint64_t a, uint64_t b, uint32_t c, uint32_t d, unsigned bits) {
    unsigned pos = field_number(c, bits), len = field_number(d, bits);
    if (pos >= bits || len == 0) {
        return b;
    }
    len = len < bits - pos ? len : bits - pos;
    uint64_t low = len == 64 ? UINT64_MAX : (UINT64_C(1) << len) - 1;
    return (b & ~(low << pos)) | (a & low) << pos;
}

#define FIELDS(bits, R)                                                                            \
    HANDLER(bfe_u##bits) {                                                                         \
        const R *pa = bh__row(x, i->a);                                                            \
        const bh__u32 *pb = bh__row(x, i->b), *pc = bh__row(x, i->c);                              \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES_IN_ORDER(mask) {                                                                 \
            pd[l] = (R)extract(pa[l], pb[l], pc[l], bits, false);                                  \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
    HANDLER(bfe_s##bits) {                                                                         \
        const R *pa = bh__row(x, i->a);                                                            \
        const bh__u32 *pb = bh__row(x, i->b), *pc = bh__row(x, i->c);                              \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES_IN_ORDER(mask) {                                                                 \
            pd[l] = (R)extract(pa[l], pb[l], pc[l], bits, true);                                   \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
    HANDLER(bfi_##bits) {                                                                          \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);                                    \
        const bh__u32 *pc = bh__row(x, i->c), *pe = bh__row(x, i->e);                              \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES_IN_ORDER(mask) {                                                                 \
            pd[l] = (R)insert(pa[l], pb[l], pc[l], pe[l], bits);                                   \
        }                                                                                          \
        return true;                                                                               \
    }
FIELDS(32, bh__u32)
FIELDS(64, bh__u64)

static uint32_t bit_mask(uint32_t pos, uint32_t width, bool clamp) {
    uint32_t p = pos & 31, w = width & 31;
    uint32_t from = clamp && pos >= 32 ? 0 : UINT32_MAX << p;
    bool to_end = p + w >= 32 || (clamp && (pos >= 32 || width >= 32));
    return from & (to_end ? UINT32_MAX : ~(UINT32_MAX << (p + w)));
}
SHIFT(bmsk_clamp, bh__u32, uint32_t, uint32_t, bit_mask(a, b, true))
SHIFT(bmsk_wrap, bh__u32, uint32_t, uint32_t, bit_mask(a, b, false))

static uint32_t extend(uint32_t a, uint32_t n, bool clamp, bool is_signed) {
    n = clamp ? (n > 32 ? 32 : n) : n & 31;
    if (n == 0) {
        return 0;
    }
    uint32_t up = a << (32 - n);
    return is_signed ? (uint32_t)((int32_t)up >> (32 - n)) : up >> (32 - n);
}
SHIFT(szext_clamp_u, bh__u32, uint32_t, uint32_t, extend(a, b, true, false))
SHIFT(szext_clamp_s, bh__u32, uint32_t, uint32_t, extend(a, b, true, true))
SHIFT(szext_wrap_u, bh__u32, uint32_t, uint32_t, extend(a, b, false, false))
SHIFT(szext_wrap_s, bh__u32, uint32_t, uint32_t, extend(a, b, false, true))

static int64_t part(uint32_t v, unsigned shift, unsigned bits, bool is_signed) {
    uint32_t up = v >> shift << (32 - bits);
    return is_signed ? (int64_t)((int32_t)up >> (32 - bits)) : (int64_t)(up >> (32 - bits));
}

/* imm: bit 0 a is signed, bit 1 b is signed, bit 2 dp2a takes the high half of b */
static uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, uint64_t options) {
    int64_t sum = 0;
    for (unsigned n = 0; n < 32; n += 8) {
        sum += part(a, n, 8, options & 1) * part(b, n, 8, options & 2);
    }
    return c + (uint32_t)sum;
}

static uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, uint64_t options) {
    unsigned from = options & 4 ? 16 : 0;
    int64_t sum = part(a, 0, 16, options & 1) * part(b, from, 8, options & 2) +
                  part(a, 16, 16, options & 1) * part(b, from + 8, 8, options & 2);
    return c + (uint32_t)sum;
}
WORD3(dp4a_32, dot4(a, b, c, i->imm))
WORD3(dp2a_32, dot2(a, b, c, i->imm))

static uint32_t logic3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t r = 0;
    for (unsigned n = 0; n < 8; n++) {
        if (table >> n & 1) {
            r |= (n & 4 ? a : ~a) & (n & 2 ? b : ~b) & (n & 1 ? c : ~c);
        }
    }
    return r;
}
WORD3(lop3_32, logic3(a, b, c, (uint32_t)i->imm))

/* lop3.or d|p, ..., q: p is (d != 0) or q. */
HANDLER(lop3_pred) {
    lop3_32(x, i, mask);
    const bh__u32 *pd = bh__row(x, i->d);
    uint32_t set = 0, q = *(const bh__u32 *)bh__row(x, i->e);
    FOR_LANES_IN_ORDER(mask) {
        set |= (uint32_t)(pd[l] != 0) << l;
    }
    bh__set_predicate(x, i->d2, i->count == M_AND ? set & q : set | q, mask);
    return true;
}

static uint32_t permute(uint32_t a, uint32_t b, uint32_t c, uint32_t mode) {
    static const uint16_t tables[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
        {0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
        {0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
        {0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
        {0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
        {0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
    };
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t select = mode == 0 ? c : tables[mode - 1][c & 3], r = 0;
    for (unsigned n = 0; n < 4; n++) {
        uint32_t s = select >> 4 * n & 15;
        uint32_t byte = (uint32_t)(bytes >> 8 * (s & 7)) & 0xff;
        if (s & 8) {
            byte = byte & 0x80 ? 0xff : 0;
        }
        r |= byte << 8 * n;
    }
    return r;
}
WORD3(prmt_32, permute(a, b, c, (uint32_t)i->imm))

static bh__ptx_handler *by_width(bh__ptx_type type, bh__ptx_handler *p, bh__ptx_handler *h16,
                                 bh__ptx_handler *h32, bh__ptx_handler *h64) {
    switch (bh__ptx_bytes(type)) {
    case 0:
        return p;
    case 2:
        return h16;
    case 4:
        return h32;
    default:
        return h64;
    }
}

static bh__ptx_handler *pick_find(const bh__ptx_insn *insn) {
    bool shift = HAS(insn, SHIFTAMT);
    switch (insn->types[0]) {
    case T_U32:
        return shift ? bfinda_u32 : bfind_u32;
    case T_S32:
        return shift ? bfinda_s32 : bfind_s32;
    case T_U64:
        return shift ? bfinda_u64 : bfind_u64;
    default:
        return shift ? bfinda_s64 : bfind_s64;
    }
}

static bh__ptx_handler *pick_field(const bh__ptx_insn *insn) {
    bool wide = bh__ptx_bytes(insn->types[0]) == 8;
    bool is_signed = bh__ptx_class(insn->types[0]) == 'S';
    bool clamp = HAS(insn, CLAMP);
    switch (insn->op) {
    case OP_BFE:
        return is_signed ? (wide ? bfe_s64 : bfe_s32) : (wide ? bfe_u64 : bfe_u32);
    case OP_BFI:
        return wide ? bfi_64 : bfi_32;
    case OP_BMSK:
        return clamp ? bmsk_clamp : bmsk_wrap;
    default:
        return is_signed ? (clamp ? szext_clamp_s : szext_wrap_s)
                         : (clamp ? szext_clamp_u : szext_wrap_u);
    }
}

static bh__ptx_handler *pick_shift(const bh__ptx_insn *insn) {
    bool is_signed = bh__ptx_class(insn->types[0]) == 'S', clamp = HAS(insn, CLAMP);
    bh__ptx_type type = (bh__ptx_type)insn->types[0];
    switch (insn->op) {
    case OP_SHL:
        return by_width(type, NULL, shl_16, shl_32, shl_64);
    case OP_SHR:
        return is_signed ? by_width(type, NULL, shr_s16, shr_s32, shr_s64)
                         : by_width(type, NULL, shr_u16, shr_u32, shr_u64);
    default:
        if (!clamp && !HAS(insn, WRAP)) {
            return NULL;
        }
        return HAS(insn, L)   ? (clamp ? shf_l_clamp : shf_l_wrap)
               : HAS(insn, R) ? (clamp ? shf_r_clamp : shf_r_wrap)
                              : NULL;
    }
}

static bool pick_lop3(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bool pair = insn->operands[0].kind == OPERAND_PAIR, op = HAS(insn, AND) || HAS(insn, OR);
    if (pair != op || (insn->operand_count == 6) != op || insn->operands[4].imm > 255) {
        return false;
    }
    code->run = op ? lop3_pred : lop3_32;
    code->count = HAS(insn, AND) ? M_AND : M_OR;
    return true;
}

bool bh__ptx_pick_bits(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bh__ptx_type type = (bh__ptx_type)insn->types[0];
    switch (insn->op) {
    case OP_POPC:
        code->run = by_width(type, NULL, NULL, popc_32, popc_64);
        break;
    case OP_CLZ:
        code->run = by_width(type, NULL, NULL, clz_32, clz_64);
        break;
    case OP_BREV:
        code->run = by_width(type, NULL, NULL, brev_32, brev_64);
        break;
    case OP_BFIND:
        code->run = pick_find(insn);
        break;
    case OP_FNS:
        code->run = fns_32;
        break;
    case OP_BFE:
    case OP_BFI:
        code->run = pick_field(insn);
        break;
    case OP_BMSK:
    case OP_SZEXT:
        code->run = HAS(insn, CLAMP) || HAS(insn, WRAP) ? pick_field(insn) : NULL;
        break;
    case OP_DP4A:
    case OP_DP2A:
        code->imm = (insn->types[0] == T_S32) | (insn->types[1] == T_S32) << 1 | HAS(insn, HI) << 2;
        code->run = insn->op == OP_DP4A ? dp4a_32 : HAS(insn, HI) || HAS(insn, LO) ? dp2a_32 : NULL;
        break;
    case OP_AND:
        code->run = by_width(type, and_p, and_16, and_32, and_64);
        break;
    case OP_OR:
        code->run = by_width(type, or_p, or_16, or_32, or_64);
        break;
    case OP_XOR:
        code->run = by_width(type, xor_p, xor_16, xor_32, xor_64);
        break;
    case OP_NOT:
        code->run = by_width(type, not_p, not_16, not_32, not_64);
        break;
    case OP_CNOT:
        code->run = by_width(type, NULL, cnot_16, cnot_32, cnot_64);
        break;
    case OP_SHL:
    case OP_SHR:
    case OP_SHF:
        code->run = pick_shift(insn);
        break;
    case OP_LOP3:
        return pick_lop3(insn, code);
    case OP_PRMT:
        code->run = prmt_32;
        code->imm = HAS(insn, F4E)    ? 1
                    : HAS(insn, B4E)  ? 2
                    : HAS(insn, RC8)  ? 3
                    : HAS(insn, ECL)  ? 4
                    : HAS(insn, ECR)  ? 5
                    : HAS(insn, RC16) ? 6
                                      : 0;
        break;
    default:
        return false;
    }
    return code->run != NULL;
}
