/* SPDX-License-Identifier: Apache-2.0 */
/* atom and red: atomic between lanes, warps and the host threads that run other blocks. */
#include <math.h>
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/fp.h"
#include "ptx/run/single.h"

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

#define HALF_UPDATE(name, brain, max)                                                              \
    static uint64_t name(uint64_t old, uint64_t b) {                                               \
        return bh__ptx_half_min(brain, (uint16_t)old, (uint16_t)b, max);                           \
    }                                                                                              \
    static uint64_t name##x2(uint64_t old, uint64_t b) {                                           \
        return name(old >> 16, b >> 16) << 16 | name(old, b);                                      \
    }
HALF_UPDATE(min_f16, false, false)
HALF_UPDATE(max_f16, false, true)
HALF_UPDATE(min_bf16, true, false)
HALF_UPDATE(max_bf16, true, true)

static update *const updates[] = {
    add_f32,  add_f64,  add_f16,   add_bf16,  add_f16x2,  add_bf16x2, inc_u32, dec_u32,
    min_u,    max_u,    min_s32,   max_s32,   min_s64,    max_s64,    min_f16, max_f16,
    min_bf16, max_bf16, min_f16x2, max_f16x2, min_bf16x2, max_bf16x2};
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
    U_MIN_F16,
    U_MAX_F16,
    U_MIN_BF16,
    U_MAX_BF16,
    U_MIN_F16X2,
    U_MAX_F16X2,
    U_MIN_BF16X2,
    U_MAX_BF16X2,
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

enum { MAX_VECTOR = 8 };

typedef struct vector { /* the rows of its elements */
    unsigned count;
    int32_t b[MAX_VECTOR], d[MAX_VECTOR];
} vector;

static unsigned access_bytes(const bh__ptx_code *i) {
    return i->bytes * (i->extra == NULL ? 1 : ((const vector *)i->extra)->count);
}

/* Returns the lanes whose operation is to be made. */
static uint32_t check_lanes(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                            bh__ptx_space space, uint8_t *p[LANES]) {
    bh__check_access access;
    access.space = space;
    access.bytes = access_bytes(i);
    access.flags = (uint8_t)i->d2 | ACCESS_WRITE | ACCESS_ATOMIC | ACCESS_STRONG;
    access.store = NULL;
    access.loads = false;
    if (i->d2 & ACCESS_RELEASE) {
        bh__check_fence(x, mask, bh__check_wide(x, (uint32_t)i->d2));
    }
    bh__check_addresses(x, i, mask, &access);
    uint32_t fine = bh__check_access_lanes(x, &access, mask);
    memcpy(p, access.at, sizeof access.at);
    return fine;
}

static uint64_t get(const bh__ptx_exec *x, const bh__ptx_code *i, int32_t row, unsigned l) {
    return i->bytes == 8 ? ((const bh__u64 *)bh__row(x, row))[l]
                         : ((const bh__u32 *)bh__row(x, row))[l];
}

static void set(const bh__ptx_exec *x, const bh__ptx_code *i, int32_t row, unsigned l, uint64_t v) {
    if (i->bytes == 8) {
        ((bh__u64 *)bh__row(x, row))[l] = v;
    } else {
        ((bh__u32 *)bh__row(x, row))[l] = (uint32_t)v;
    }
}

uint64_t bh__ptx_update(const bh__ptx_code *i, uint8_t *p, uint64_t b, uint64_t c) {
    if (i->count == U_PLAIN) {
        return i->bytes == 8   ? plain_64(p, i->target, b, c)
               : i->bytes == 4 ? plain_32(p, i->target, b, c)
                               : plain_16(p, i->target, b, c);
    }
    update *f = updates[i->count];
    return i->bytes == 8 ? loop_64(p, f, b) : i->bytes == 4 ? loop_32(p, f, b) : loop_16(p, f, b);
}

/* Each element is atomic by itself. */
static void perform_vector(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l, uint8_t *p) {
    const vector *v = i->extra;
    uint64_t old[MAX_VECTOR];
    for (unsigned n = 0; n < v->count; n++) {
        old[n] = bh__ptx_update(i, p + n * i->bytes, get(x, i, v->b[n], l), 0);
    }
    for (unsigned n = 0; i->d != NO_ROW && n < v->count; n++) {
        set(x, i, v->d[n], l, old[n]);
    }
}

/* Compare and swap, or exchange, of 128 bits. */
static void perform_wide(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l, uint8_t *p) {
    bool cas = i->target == M_CAS;
    int32_t from = cas ? i->c : i->b;
    const uint64_t value[2] = {((const bh__u64 *)bh__row(x, from))[l],
                               ((const bh__u64 *)bh__row(x, from + HIGH_HALF))[l]};
    uint64_t old[2] = {((const bh__u64 *)bh__row(x, i->b))[l],
                       ((const bh__u64 *)bh__row(x, i->b + HIGH_HALF))[l]};
    while (!bh__single_swap16(p, old, value) && !cas) {
    }
    ((bh__u64 *)bh__row(x, i->d))[l] = old[0];
    ((bh__u64 *)bh__row(x, i->d + HIGH_HALF))[l] = old[1];
}

static void perform_lanes(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                          uint8_t *const p[LANES]) {
    FOR_LANES_IN_ORDER(mask) {
        if (i->extra != NULL) {
            perform_vector(x, i, l, p[l]);
        } else if (i->bytes == 16) {
            perform_wide(x, i, l, p[l]);
        } else {
            uint64_t c = i->c == NO_ROW ? 0 : get(x, i, i->c, l);
            uint64_t old = bh__ptx_update(i, p[l], get(x, i, i->b, l), c);
            if (i->d != NO_ROW) {
                set(x, i, i->d, l, old);
            }
        }
    }
}

/* An operation that was not made gives zero. */
static void give_zero(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const vector *v = i->extra;
    FOR_LANES_IN_ORDER(mask) {
        for (unsigned n = 0; v != NULL && i->d != NO_ROW && n < v->count; n++) {
            set(x, i, v->d[n], l, 0);
        }
        if (i->bytes == 16) {
            ((bh__u64 *)bh__row(x, i->d))[l] = 0;
            ((bh__u64 *)bh__row(x, i->d + HIGH_HALF))[l] = 0;
        } else if (v == NULL && i->d != NO_ROW) {
            set(x, i, i->d, l, 0);
        }
    }
}

static bool run_checked(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                        bh__ptx_space space) {
    uint8_t *p[LANES];
    uint32_t fine = check_lanes(x, i, mask, space, p);
    give_zero(x, i, mask & ~fine);
    perform_lanes(x, i, fine, p);
    bh__check_acquire(x, fine, (uint8_t)i->d2 | ACCESS_WRITE | ACCESS_ATOMIC | ACCESS_STRONG);
    return true;
}

/* `target`: the modifier of a plain operation; `count`: the update; d may be NO_ROW; d2:
 * ACCESS_...; `extra`: a vector, or NULL */
static bool run(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, bh__ptx_space space) {
    uint8_t *p[LANES];
    if (x->check != NULL) {
        return run_checked(x, i, mask, space);
    }
    if (!bh__ptx_resolve(x, i, mask, space, i->a, i->imm, access_bytes(i), true, p)) {
        return false;
    }
    perform_lanes(x, i, mask, p);
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

HANDLER(atomic_cluster) {
    return run(x, i, mask, SPACE_CLUSTER);
}

static int find_update(const bh__ptx_insn *insn) {
    bool add = HAS(insn, ADD), min = HAS(insn, MIN), max = HAS(insn, MAX);
    switch (insn->types[0]) {
    case T_F32:
        return add ? U_ADD_F32 : -1;
    case T_F64:
        return add ? U_ADD_F64 : -1;
    case T_F16:
        return add ? U_ADD_F16 : min ? U_MIN_F16 : max ? U_MAX_F16 : -1;
    case T_BF16:
        return add ? U_ADD_BF16 : min ? U_MIN_BF16 : max ? U_MAX_BF16 : -1;
    case T_F16X2:
        return add ? U_ADD_F16X2 : min ? U_MIN_F16X2 : max ? U_MAX_F16X2 : -1;
    case T_BF16X2:
        return add ? U_ADD_BF16X2 : min ? U_MIN_BF16X2 : max ? U_MAX_BF16X2 : -1;
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
    case T_B128:
        return HAS(insn, CAS) || HAS(insn, EXCH) ? U_PLAIN : -1;
    default:
        return HAS(insn, CAS) || HAS(insn, EXCH) || HAS(insn, AND) || HAS(insn, OR) ||
                       HAS(insn, XOR)
                   ? U_PLAIN
                   : -1;
    }
}

/* Fills in what bh__ptx_update needs: bytes, count and target. */
bool bh__ptx_pick_update(const bh__ptx_insn *insn, bh__ptx_code *code) {
    static const bh__ptx_mod plain[] = {M_ADD, M_AND, M_OR, M_XOR, M_EXCH, M_CAS};
    int found = find_update(insn);
    code->bytes = (uint8_t)bh__ptx_bytes((bh__ptx_type)insn->types[0]);
    code->count = (uint8_t)found;
    for (size_t n = 0; n < sizeof plain / sizeof *plain; n++) {
        if (HAS_MOD(insn, plain[n])) {
            code->target = plain[n];
        }
    }
    return found >= 0;
}

/* Vectors are of floats, of up to 16 bytes. Halves have a minimum and maximum in vectors only. */
static bool vector_fits(const bh__ptx_insn *insn) {
    unsigned count = HAS(insn, V2) ? 2 : HAS(insn, V4) ? 4 : HAS(insn, V8) ? 8 : 1;
    bool halves = insn->types[0] == T_F16 || insn->types[0] == T_BF16 ||
                  insn->types[0] == T_F16X2 || insn->types[0] == T_BF16X2;
    bool sums = HAS(insn, ADD), multi = bh__ptx_op_table[insn->op].unit == UNIT_MULTIMEM;
    if (count == 1) {
        return sums || multi || !halves;
    }
    return (halves || (insn->types[0] == T_F32 && sums)) && !HAS(insn, SHARED) &&
           !HAS(insn, SHARED_CLUSTER) && count * bh__ptx_bytes(insn->types[0]) <= 16;
}

static bool lower_vector(bh__ptx_lowering *low, const bh__ptx_operand *d, const bh__ptx_operand *b,
                         bh__ptx_code *code) {
    bh__ptx_type type = (bh__ptx_type)low->insn->types[0];
    vector *v = bh__arena_alloc(&low->module->arena, 1, sizeof *v);
    if (v == NULL) {
        return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory",
                                  "no memory for a vector");
    }
    v->count = b->count;
    for (unsigned n = 0; n < v->count; n++) {
        v->b[n] = bh__ptx_row_in(low, &b->elements[n], type);
        v->d[n] = d != NULL ? bh__ptx_row_out(low, &d->elements[n], type) : NO_ROW;
    }
    code->extra = v;
    code->b = NO_ROW;
    code->d = d != NULL ? v->d[0] : NO_ROW;
    return bh__ptx_emit(low, code, true);
}

bool bh__ptx_lower_atomic(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bh__ptx_type type = (bh__ptx_type)insn->types[0];
    bh__ptx_code code = {.c = NO_ROW, .d2 = (int32_t)bh__ptx_access_flags(insn)};
    unsigned first = insn->op == OP_ATOM ? 1 : 0;
    bool cas = HAS(insn, CAS);
    unsigned wanted = first + (cas ? 3u : 2u) + HAS(insn, POLICY);
    if (!bh__ptx_pick_update(insn, &code) || !vector_fits(insn) ||
        (insn->op == OP_RED && (cas || HAS(insn, EXCH)))) {
        return bh__ptx_lower_fail(
            low, BH_E_UNSUPPORTED, "use an operation that PTX defines for this type",
            "the CPU device does not support this form of %s", bh__ptx_op_table[insn->op].mnemonic);
    }
    if (insn->operand_count != wanted) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give as many operands as the operation takes",
                                  "%u operands where %u are needed", (unsigned)insn->operand_count,
                                  wanted);
    }
    bh__ptx_space space = bh__ptx_insn_space(insn);
    code.run = space == SPACE_GLOBAL    ? atomic_global
               : space == SPACE_SHARED  ? atomic_shared
               : space == SPACE_CLUSTER ? atomic_cluster
                                        : atomic_generic;
    if (!bh__ptx_lower_address(low, &insn->operands[first], &code)) {
        return false;
    }
    if (insn->operands[first + 1].kind == OPERAND_VECTOR) {
        return lower_vector(low, first ? &insn->operands[0] : NULL, &insn->operands[first + 1],
                            &code);
    }
    code.b = bh__ptx_row_in(low, &insn->operands[first + 1], type);
    if (cas) {
        code.c = bh__ptx_row_in(low, &insn->operands[first + 2], type);
    }
    code.d = first ? bh__ptx_row_out(low, &insn->operands[0], type) : NO_ROW;
    return bh__ptx_emit(low, &code, true);
}
