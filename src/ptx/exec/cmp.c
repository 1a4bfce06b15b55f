/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons and selection. */
#include "ptx/fp.h"
#include "ptx/run/exec.h"

#define HANDLER(name)                                                                              \
    WIDE_VECTORS static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

static const uint32_t lane_bit[LANES] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

/* Returns a bit for each lane of `mask` for which the comparison is true. */
typedef uint32_t comparison(const void *a, const void *b, uint32_t mask);

typedef struct comparison_row {
    comparison *ordered[6]; /* eq ne lt le gt ge */
} comparison_row;

#define COMPARE(name, R, T, expr)                                                                  \
    static uint32_t name(const void *va, const void *vb, uint32_t mask) {                          \
        const R *pa = va, *pb = vb;                                                                \
        uint32_t r = 0;                                                                            \
        FOR_LANES(mask, T a = (T)pa[l]; T b = (T)pb[l];                                            \
                  r |= (0 - (uint32_t)(expr)) & lane_bit[l];);                                     \
        return r;                                                                                  \
    }

/* For floats, ne is false if either is NaN, as all ordered forms; unordered forms are their
 * complements. */
#define COMPARE6(s, R, T)                                                                          \
    COMPARE(eq_##s, R, T, a == b)                                                                  \
    COMPARE(ne_##s, R, T, a<b || a> b)                                                             \
    COMPARE(lt_##s, R, T, a < b)                                                                   \
    COMPARE(le_##s, R, T, a <= b)                                                                  \
    COMPARE(gt_##s, R, T, a > b)                                                                   \
    COMPARE(ge_##s, R, T, a >= b)                                                                  \
    static const comparison_row row_##s = {{eq_##s, ne_##s, lt_##s, le_##s, gt_##s, ge_##s}};

COMPARE6(u16, bh__u32, uint16_t)
COMPARE6(s16, bh__u32, int16_t)
COMPARE6(u32, bh__u32, uint32_t)
COMPARE6(s32, bh__u32, int32_t)
COMPARE6(u64, bh__u64, uint64_t)
COMPARE6(s64, bh__u64, int64_t)
COMPARE6(f32, bh__f32, float)
COMPARE6(f64, bh__f64, double)
COMPARE(num_f32, bh__f32, float, a == a && b == b)
COMPARE(num_f64, bh__f64, double, a == a && b == b)

static comparison *const num_row[] = {num_f32, num_f64};

/*
 * A comparison in its code: `extra` is the comparison, FLAG_INVERT its complement, `count` the half
 * precision format of the operands, `bytes` how to combine with predicate c.
 */
enum { NO_HALF, HALF_F16, HALF_BF16, HALF_F16X2, HALF_BF16X2 };

static uint32_t compare(const bh__ptx_code *i, const void *a, const void *b, uint32_t mask) {
    comparison *const *slot = i->extra;
    uint32_t r = (*slot)(a, b, mask);
    return i->flags & FLAG_INVERT ? ~r : r;
}

/* Half precision operands as floats; `shift` takes the upper of two. */
static void widen(const bh__u32 *p, bool brain, unsigned shift, uint32_t mask, bool ftz,
                  bh__f32 *out) {
    FOR_LANES_IN_ORDER(mask) {
        uint16_t h = (uint16_t)(p[l] >> shift);
        if (ftz && !brain && (h & 0x7c00) == 0) {
            h &= 0x8000;
        }
        out[l] = brain ? bh__bf16_to_float(h) : bh__f16_to_float(h);
    }
}

static void flush_row(const bh__f32 *p, uint32_t mask, bh__f32 *out) {
    FOR_LANES(mask, out[l] = bh__flush(p[l]););
}

static uint32_t evaluate(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                         unsigned shift) {
    const void *a = bh__row(x, i->a), *b = bh__row(x, i->b);
    bh__f32 wide_a[LANES], wide_b[LANES];
    bool ftz = i->flags & FLAG_FTZ;
    if (i->count != NO_HALF) {
        bool brain = i->count == HALF_BF16 || i->count == HALF_BF16X2;
        widen(a, brain, shift, mask, ftz, wide_a);
        widen(b, brain, shift, mask, ftz, wide_b);
        a = wide_a;
        b = wide_b;
    } else if (ftz) {
        flush_row(a, mask, wide_a);
        flush_row(b, mask, wide_b);
        a = wide_a;
        b = wide_b;
    }
    return compare(i, a, b, mask);
}

static uint32_t combine(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t r) {
    if (i->bytes == M_COUNT) {
        return r;
    }
    uint32_t c = *(const bh__u32 *)bh__row(x, i->c);
    return i->bytes == M_AND ? r & c : i->bytes == M_OR ? r | c : r ^ c;
}

/* The common case: one predicate from one comparison of whole rows. */
HANDLER(setp_fast) {
    bh__set_predicate(x, i->d, compare(i, bh__row(x, i->a), bh__row(x, i->b), mask), mask);
    return true;
}

HANDLER(setp) {
    bool packed = i->count >= HALF_F16X2;
    uint32_t r = evaluate(x, i, mask, 0);
    uint32_t first = combine(x, i, r);
    uint32_t second = combine(x, i, packed ? evaluate(x, i, mask, 16) : ~r);
    bh__set_predicate(x, i->d, first, mask);
    if (i->d2 != NO_ROW) {
        bh__set_predicate(x, i->d2, second, mask);
    }
    return true;
}

/* imm: the value of true; false is zero */
HANDLER(set) {
    bool packed = i->count >= HALF_F16X2;
    uint32_t low = combine(x, i, evaluate(x, i, mask, 0));
    uint32_t high = packed ? combine(x, i, evaluate(x, i, mask, 16)) : low;
    uint32_t yes = (uint32_t)i->imm;
    bh__u32 *pd = bh__row(x, i->d);
    FOR_LANES_IN_ORDER(mask) {
        pd[l] = (low >> l & 1 ? yes & 0xffff : 0) | (high >> l & 1 ? yes & 0xffff0000u : 0);
    }
    return true;
}

#define SELECT(name, R)                                                                            \
    HANDLER(selp_##name) {                                                                         \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);                                    \
        R *pd = bh__row(x, i->d);                                                                  \
        uint32_t p = *(const bh__u32 *)bh__row(x, i->c);                                           \
        FOR_LANES(mask, R a = pa[l]; R b = pb[l]; pd[l] = (p & lane_bit[l]) != 0 ? a : b;);        \
        return true;                                                                               \
    }                                                                                              \
    HANDLER(slct_s32_##name) {                                                                     \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);                                    \
        const bh__s32 *pc = bh__row(x, i->c);                                                      \
        R *pd = bh__row(x, i->d);                                                                  \
        FOR_LANES(mask, R a = pa[l]; R b = pb[l]; pd[l] = pc[l] >= 0 ? a : b;);                    \
        return true;                                                                               \
    }                                                                                              \
    HANDLER(slct_f32_##name) {                                                                     \
        const R *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);                                    \
        const bh__f32 *pc = bh__row(x, i->c);                                                      \
        R *pd = bh__row(x, i->d);                                                                  \
        bool ftz = i->flags & FLAG_FTZ;                                                            \
        FOR_LANES_IN_ORDER(mask) {                                                                 \
            pd[l] = (ftz ? bh__flush(pc[l]) : pc[l]) >= 0 ? pa[l] : pb[l];                         \
        }                                                                                          \
        return true;                                                                               \
    }
SELECT(32, bh__u32)
SELECT(64, bh__u64)

static const comparison_row *row_of(bh__ptx_type type) {
    switch (type) {
    case T_B16:
    case T_U16:
        return &row_u16;
    case T_S16:
        return &row_s16;
    case T_B32:
    case T_U32:
        return &row_u32;
    case T_S32:
        return &row_s32;
    case T_B64:
    case T_U64:
        return &row_u64;
    case T_S64:
        return &row_s64;
    case T_F64:
        return &row_f64;
    default:
        return &row_f32;
    }
}

static const comparison_row *unsigned_row(bh__ptx_type type) {
    switch (bh__ptx_bytes(type)) {
    case 2:
        return &row_u16;
    case 4:
        return &row_u32;
    default:
        return &row_u64;
    }
}

enum { EQ, NE, LT, LE, GT, GE };

static bool find_comparison(const bh__ptx_insn *insn, bh__ptx_type type, bh__ptx_code *code) {
    static const struct {
        bh__ptx_mod mod;
        uint8_t index;
        bool invert;
    } floats[] = {{M_EQ, EQ, false}, {M_NE, NE, false}, {M_LT, LT, false}, {M_LE, LE, false},
                  {M_GT, GT, false}, {M_GE, GE, false}, {M_EQU, NE, true}, {M_NEU, EQ, true},
                  {M_LTU, GE, true}, {M_LEU, GT, true}, {M_GTU, LE, true}, {M_GEU, LT, true}},
      unsigneds[] = {{M_LO, LT, false}, {M_LS, LE, false}, {M_HI, GT, false}, {M_HS, GE, false}};
    bool is_float = bh__ptx_class(type) == 'F';
    for (size_t n = 0; n < sizeof floats / sizeof *floats; n++) {
        if ((insn->mods >> floats[n].mod & 1) != 0) {
            /* .b types have no order. */
            if (bh__ptx_class(type) == 'B' && floats[n].mod != M_EQ && floats[n].mod != M_NE) {
                return false;
            }
            code->extra = &row_of(type)->ordered[floats[n].index];
            code->flags |= floats[n].invert ? FLAG_INVERT : 0;
            return true;
        }
    }
    for (size_t n = 0; !is_float && n < sizeof unsigneds / sizeof *unsigneds; n++) {
        if ((insn->mods >> unsigneds[n].mod & 1) != 0) {
            code->extra = &unsigned_row(type)->ordered[unsigneds[n].index];
            return bh__ptx_class(type) == 'U';
        }
    }
    code->extra = &num_row[type == T_F64];
    code->flags |= HAS(insn, ISNAN) ? FLAG_INVERT : 0;
    return is_float && (HAS(insn, NUM) || HAS(insn, ISNAN));
}

static uint64_t truth(bh__ptx_type type) {
    switch (type) {
    case T_F32:
        return 0x3f800000u;
    case T_F16:
        return 0x3c00u;
    case T_BF16:
        return 0x3f80u;
    case T_F16X2:
        return 0x3c003c00u;
    case T_BF16X2:
        return 0x3f803f80u;
    case T_U16:
    case T_S16:
        return 0xffffu;
    default:
        return UINT32_MAX;
    }
}

static bool pick_select(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bool wide = bh__ptx_bytes(insn->types[0]) == 8;
    if (insn->op == OP_SELP) {
        code->run = wide ? selp_64 : selp_32;
        return true;
    }
    bool by_float = insn->types[1] == T_F32;
    code->flags = HAS(insn, FTZ) ? FLAG_FTZ : 0;
    code->run = by_float ? (wide ? slct_f32_64 : slct_f32_32) : (wide ? slct_s32_64 : slct_s32_32);
    return by_float || !HAS(insn, FTZ);
}

bool bh__ptx_pick_cmp(const bh__ptx_insn *insn, bh__ptx_code *code) {
    if (insn->op == OP_SELP || insn->op == OP_SLCT) {
        return pick_select(insn, code);
    }
    bool to_predicate = insn->op == OP_SETP || insn->op == OP_SETPF;
    bh__ptx_type type = (bh__ptx_type)insn->types[to_predicate ? 0 : 1];
    bool ftz = HAS(insn, FTZ), combined = HAS(insn, AND) || HAS(insn, OR) || HAS(insn, XOR);
    code->count = type == T_F16      ? HALF_F16
                  : type == T_BF16   ? HALF_BF16
                  : type == T_F16X2  ? HALF_F16X2
                  : type == T_BF16X2 ? HALF_BF16X2
                                     : NO_HALF;
    code->bytes = HAS(insn, AND) ? M_AND : HAS(insn, OR) ? M_OR : HAS(insn, XOR) ? M_XOR : M_COUNT;
    code->flags = ftz ? FLAG_FTZ : 0;
    code->imm = truth((bh__ptx_type)insn->types[0]);
    if (combined != (insn->operand_count == 4) || (ftz && type == T_F64) ||
        !find_comparison(insn, type, code)) {
        return false;
    }
    if (!to_predicate) {
        /* A comparison of two halves has two results, so the destination must have two halves. */
        bh__ptx_type to = (bh__ptx_type)insn->types[0];
        bool packed = to == T_F16X2 || to == T_BF16X2, word = to == T_U32 || to == T_S32;
        code->run = set;
        return packed ? code->count >= HALF_F16X2 : code->count < HALF_F16X2 || word;
    }
    bool plain =
        !combined && !ftz && code->count == NO_HALF && insn->operands[0].kind != OPERAND_PAIR;
    code->run = plain ? setp_fast : setp;
    return true;
}
