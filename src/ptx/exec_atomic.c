/* SPDX-License-Identifier: Apache-2.0 */
/* atom and red: atomic between lanes, warps and the host threads that run other blocks. */
#include "ptx/check.h"
#include "ptx/fp.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

typedef uint16_t __attribute__((may_alias)) a16;
typedef uint32_t __attribute__((may_alias)) a32;
typedef uint64_t __attribute__((may_alias)) a64;

/* Returns the value that replaces `old`. */
typedef uint64_t update(uint64_t old, uint64_t b);

static uint64_t add_f32(uint64_t old, uint64_t b) {
    float r = bh__float_of_bits((uint32_t)old) + bh__float_of_bits((uint32_t)b);
    return bh__bits_of_float(bh__canonical(r));
}

static uint64_t add_f64(uint64_t old, uint64_t b) {
    return bh__bits_of_double(bh__double_of_bits(old) + bh__double_of_bits(b));
}

/* The sum in double is exact for f16; for bf16 its rounding does not change the result. */
static uint64_t add_f16(uint64_t old, uint64_t b) {
    double r = (double)bh__f16_to_float((uint16_t)old) + (double)bh__f16_to_float((uint16_t)b);
    return bh__f16_from_double(r, BH__ROUND_NEAREST);
}

static uint64_t add_bf16(uint64_t old, uint64_t b) {
    double r = (double)bh__bf16_to_float((uint16_t)old) + (double)bh__bf16_to_float((uint16_t)b);
    return bh__bf16_from_double(r, BH__ROUND_NEAREST);
}

static uint64_t add_f16x2(uint64_t old, uint64_t b) {
    return add_f16(old >> 16, b >> 16) << 16 | add_f16(old, b);
}

static uint64_t add_bf16x2(uint64_t old, uint64_t b) {
    return add_bf16(old >> 16, b >> 16) << 16 | add_bf16(old, b);
}

static uint64_t inc_u32(uint64_t old, uint64_t b) {
    return (uint32_t)old >= (uint32_t)b ? 0 : old + 1;
}

static uint64_t dec_u32(uint64_t old, uint64_t b) {
    return (uint32_t)old == 0 || (uint32_t)old > (uint32_t)b ? b : old - 1;
}

static uint64_t min_u(uint64_t old, uint64_t b) {
    return old < b ? old : b;
}
static uint64_t max_u(uint64_t old, uint64_t b) {
    return old > b ? old : b;
}
static uint64_t min_s32(uint64_t old, uint64_t b) {
    return (int32_t)old < (int32_t)b ? old : b;
}
static uint64_t max_s32(uint64_t old, uint64_t b) {
    return (int32_t)old > (int32_t)b ? old : b;
}
static uint64_t min_s64(uint64_t old, uint64_t b) {
    return (int64_t)old < (int64_t)b ? old : b;
}
static uint64_t max_s64(uint64_t old, uint64_t b) {
    return (int64_t)old > (int64_t)b ? old : b;
}

static update *const updates[] = {add_f32,    add_f64, add_f16, add_bf16, add_f16x2,
                                  add_bf16x2, inc_u32, dec_u32, min_u,    max_u,
                                  min_s32,    max_s32, min_s64, max_s64};
enum {
    U_ADD_F32,
    U_ADD_F64,
    U_ADD_F16,
    U_ADD_BF16,
    U_ADD_F16X2,
    U_ADD_BF16X2,
    U_INC,
    U_DEC,
    U_MIN_U,
    U_MAX_U,
    U_MIN_S32,
    U_MAX_S32,
    U_MIN_S64,
    U_MAX_S64,
    U_PLAIN
};

#define SEQ __ATOMIC_SEQ_CST

#define ACCESS(bits, T)                                                                            \
    static uint64_t plain_##bits(void *p, unsigned op, uint64_t b, uint64_t c) {                   \
        T *at = p, expected = (T)b;                                                                \
        switch (op) {                                                                              \
        case M_ADD:                                                                                \
            return __atomic_fetch_add(at, (T)b, SEQ);                                              \
        case M_AND:                                                                                \
            return __atomic_fetch_and(at, (T)b, SEQ);                                              \
        case M_OR:                                                                                 \
            return __atomic_fetch_or(at, (T)b, SEQ);                                               \
        case M_XOR:                                                                                \
            return __atomic_fetch_xor(at, (T)b, SEQ);                                              \
        case M_EXCH:                                                                               \
            return __atomic_exchange_n(at, (T)b, SEQ);                                             \
        default:                                                                                   \
            __atomic_compare_exchange_n(at, &expected, (T)c, false, SEQ, SEQ);                     \
            return expected;                                                                       \
        }                                                                                          \
    }                                                                                              \
    static uint64_t loop_##bits(void *p, update *f, uint64_t b) {                                  \
        T *at = p, old = __atomic_load_n(at, __ATOMIC_RELAXED);                                    \
        while (                                                                                    \
            !__atomic_compare_exchange_n(at, &old, (T)f(old, b), false, SEQ, __ATOMIC_RELAXED)) {  \
        }                                                                                          \
        return old;                                                                                \
    }
ACCESS(16, a16)
ACCESS(32, a32)
ACCESS(64, a64)

static bool check_lanes(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                        bh__ptx_space space) {
    if (i->d2 & ACCESS_RELEASE) {
        bh__check_fence(x, mask, !(i->d2 & ACCESS_CTA));
    }
    FOR_LANES_IN_ORDER(mask) {
        bh__check_access access = {
            .lane = l,
            .space = space,
            .address = i->flags & FLAG_ADDRESS32
                           ? (uint32_t)(((const bh__u32 *)bh__row(x, i->a))[l] + (uint32_t)i->imm)
                           : ((const bh__u64 *)bh__row(x, i->a))[l] + i->imm,
            .bytes = i->bytes,
            .flags = (uint8_t)i->d2 | ACCESS_WRITE | ACCESS_ATOMIC | ACCESS_STRONG};
        if (!bh__check_access_lane(x, &access)) {
            return false;
        }
    }
    return true;
}

/* `target`: the modifier of a plain operation; `count`: the update; d may be NO_ROW; d2:
 * ACCESS_... */
static bool run(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, bh__ptx_space space) {
    uint8_t *p[LANES];
    if (x->check != NULL && !check_lanes(x, i, mask, space)) {
        return false;
    }
    if (!bh__ptx_resolve(x, i, mask, space, i->a, i->imm, i->bytes, true, p)) {
        return false;
    }
    bool wide = i->bytes == 8;
    const void *b = bh__row(x, i->b), *c = i->c == NO_ROW ? b : bh__row(x, i->c);
    void *d = i->d == NO_ROW ? NULL : bh__row(x, i->d);
    FOR_LANES_IN_ORDER(mask) {
        uint64_t vb = wide ? ((const bh__u64 *)b)[l] : ((const bh__u32 *)b)[l];
        uint64_t vc = wide ? ((const bh__u64 *)c)[l] : ((const bh__u32 *)c)[l];
        uint64_t old;
        if (i->count == U_PLAIN) {
            old = i->bytes == 8   ? plain_64(p[l], i->target, vb, vc)
                  : i->bytes == 4 ? plain_32(p[l], i->target, vb, vc)
                                  : plain_16(p[l], i->target, vb, vc);
        } else {
            update *f = updates[i->count];
            old = i->bytes == 8   ? loop_64(p[l], f, vb)
                  : i->bytes == 4 ? loop_32(p[l], f, vb)
                                  : loop_16(p[l], f, vb);
        }
        if (d != NULL && wide) {
            ((bh__u64 *)d)[l] = old;
        } else if (d != NULL) {
            ((bh__u32 *)d)[l] = (uint32_t)old;
        }
    }
    return true;
}

HANDLER(atomic_generic) {
    return run(x, i, mask, SPACE_GENERIC);
}
HANDLER(atomic_global) {
    return run(x, i, mask, SPACE_GLOBAL);
}
HANDLER(atomic_shared) {
    return run(x, i, mask, SPACE_SHARED);
}

static int pick_update(const bh__ptx_insn *insn) {
    bool add = HAS(insn, ADD), min = HAS(insn, MIN), max = HAS(insn, MAX);
    switch (insn->types[0]) {
    case T_F32:
        return add ? U_ADD_F32 : -1;
    case T_F64:
        return add ? U_ADD_F64 : -1;
    case T_F16:
        return add ? U_ADD_F16 : -1;
    case T_BF16:
        return add ? U_ADD_BF16 : -1;
    case T_F16X2:
        return add ? U_ADD_F16X2 : -1;
    case T_BF16X2:
        return add ? U_ADD_BF16X2 : -1;
    case T_U32:
        return HAS(insn, INC)   ? U_INC
               : HAS(insn, DEC) ? U_DEC
               : min            ? U_MIN_U
               : max            ? U_MAX_U
               : add            ? U_PLAIN
                                : -1;
    case T_S32:
        return min ? U_MIN_S32 : max ? U_MAX_S32 : add ? U_PLAIN : -1;
    case T_U64:
        return min ? U_MIN_U : max ? U_MAX_U : add ? U_PLAIN : -1;
    case T_S64:
        return min ? U_MIN_S64 : max ? U_MAX_S64 : add ? U_PLAIN : -1;
    case T_B16:
        return HAS(insn, CAS) ? U_PLAIN : -1;
    default:
        return HAS(insn, CAS) || HAS(insn, EXCH) || HAS(insn, AND) || HAS(insn, OR) ||
                       HAS(insn, XOR)
                   ? U_PLAIN
                   : -1;
    }
}

bool bh__ptx_lower_atomic(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bh__ptx_type type = (bh__ptx_type)insn->types[0];
    int update_kind = pick_update(insn);
    unsigned first = insn->op == OP_ATOM ? 1 : 0;
    bool cas = HAS(insn, CAS);
    unsigned wanted = first + (cas ? 3u : 2u);
    if (update_kind < 0 || HAS(insn, POLICY) || (insn->op == OP_RED && (cas || HAS(insn, EXCH)))) {
        return bh__ptx_lower_fail(
            low, BH_E_UNSUPPORTED, "use an operation that PTX defines for this type",
            "the CPU device does not support this form of %s", bh__ptx_op_table[insn->op].mnemonic);
    }
    if (insn->operand_count != wanted) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give as many operands as the operation takes",
                                  "%u operands where %u are needed", (unsigned)insn->operand_count,
                                  wanted);
    }
    static const bh__ptx_mod plain[] = {M_ADD, M_AND, M_OR, M_XOR, M_EXCH, M_CAS};
    bh__ptx_code code = {.bytes = (uint8_t)bh__ptx_bytes(type),
                         .count = (uint8_t)update_kind,
                         .c = NO_ROW,
                         .d2 = (int32_t)bh__ptx_access_flags(insn)};
    for (size_t n = 0; n < sizeof plain / sizeof *plain; n++) {
        if ((insn->mods >> plain[n] & 1) != 0) {
            code.target = plain[n];
        }
    }
    bh__ptx_space space = bh__ptx_insn_space(insn);
    code.run = space == SPACE_GLOBAL   ? atomic_global
               : space == SPACE_SHARED ? atomic_shared
                                       : atomic_generic;
    if (!bh__ptx_lower_address(low, &insn->operands[first], &code)) {
        return false;
    }
    code.b = bh__ptx_row_in(low, &insn->operands[first + 1], type);
    if (cas) {
        code.c = bh__ptx_row_in(low, &insn->operands[first + 2], type);
    }
    code.d = first ? bh__ptx_row_out(low, &insn->operands[0], type) : NO_ROW;
    return bh__ptx_emit(low, &code, true);
}
