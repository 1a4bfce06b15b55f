/* SPDX-License-Identifier: Apache-2.0 */
/* suld, sust and sured: reads, writes and reductions of an image without sampling. */
#include <math.h>
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/half.h"
#include "ptx/texture/sample.h"

typedef enum bounds { BOUNDS_TRAP, BOUNDS_CLAMP, BOUNDS_ZERO } bounds;

typedef struct surface_op {
    const bh__geometry *geometry;
    int32_t handle, at[4], value[4];
    bh__ptx_type type;
    unsigned count; /* of values */
    bounds bounds;
    bool formatted; /* .p: x counts texels, and values are converted */
    bh__ptx_mod reduce;
} surface_op;

static uint64_t get(const bh__ptx_exec *x, const surface_op *op, unsigned n, unsigned l) {
    const void *row = bh__row(x, op->value[n]);
    return bh__ptx_bytes(op->type) == 8 ? ((const bh__u64 *)row)[l] : ((const bh__u32 *)row)[l];
}

static void set(const bh__ptx_exec *x, const surface_op *op, unsigned n, unsigned l,
                uint64_t value) {
    void *row = bh__row(x, op->value[n]);
    if (bh__ptx_bytes(op->type) == 8) {
        ((bh__u64 *)row)[l] = value;
    } else {
        ((bh__u32 *)row)[l] = (uint32_t)value;
    }
}

static unsigned texel_bytes(const bh__ptx_texture *t) {
    return t->channels * t->bits / 8u;
}

static unsigned access_bytes(const surface_op *op, const bh__ptx_texture *t) {
    return op->formatted ? texel_bytes(t) : op->count * bh__ptx_bytes(op->type);
}

/* A coordinate, limited to [0, last]. */
static bool limit(const surface_op *op, int64_t *at, int64_t last, bool *outside) {
    if (*at >= 0 && *at <= last) {
        return true;
    }
    *outside = true;
    *at = *at < 0 ? 0 : last < 0 ? 0 : last;
    return op->bounds != BOUNDS_TRAP;
}

typedef struct place {
    const bh__ptx_texture *t;
    uint64_t address;
    unsigned bytes;
    bool none; /* outside, with .zero */
} place;

static bool bad_place(bh__ptx_exec *x, unsigned l, const int64_t at[3], const place *p) {
    const bh__ptx_texture_level *level = &p->t->level[0];
    return bh__ptx_fault_other(
        x, BH__PTX_FAULT_ADDRESS, l,
        "%u bytes at byte %lld, row %lld, plane %lld of a surface of %u bytes, %u rows, %u planes",
        p->bytes, (long long)at[0], (long long)at[1], (long long)at[2],
        level->width * texel_bytes(p->t), level->height,
        p->t->layered ? p->t->layers : level->depth);
}

/* Where a lane's access goes. */
static bool locate(bh__ptx_exec *x, const surface_op *op, unsigned l, place *out) {
    uint64_t handle = ((const bh__u64 *)bh__row(x, op->handle))[l];
    const bh__ptx_texture *t = bh__texture_find(x, l, handle, true);
    if (t == NULL || !bh__geometry_check(x, l, op->geometry, t)) {
        return false;
    }
    const bh__ptx_texture_level *level = &t->level[0];
    unsigned bytes = access_bytes(op, t), first = op->geometry->layered;
    int64_t at[3] = {0}, asked[3];
    for (unsigned n = 0; n < op->geometry->coordinates; n++) {
        at[n] = ((const bh__s32 *)bh__row(x, op->at[first + n]))[l];
    }
    if (first) {
        at[2] = ((const bh__u32 *)bh__row(x, op->at[0]))[l];
    }
    at[0] *= op->formatted ? (int64_t)texel_bytes(t) : 1;
    memcpy(asked, at, sizeof asked);
    *out = (place){.t = t, .bytes = bytes};
    bool outside = false;
    int64_t planes = t->layered ? (int64_t)t->layers : (int64_t)level->depth;
    bool fine = limit(op, &at[0], (int64_t)level->width * texel_bytes(t) - bytes, &outside) &&
                limit(op, &at[1], (int64_t)level->height - 1, &outside) &&
                limit(op, &at[2], planes - 1, &outside);
    if (!fine || bytes > level->width * (uint64_t)texel_bytes(t)) {
        return bad_place(x, l, asked, out);
    }
    out->none = outside && op->bounds == BOUNDS_ZERO;
    out->address = level->address + (uint64_t)at[2] * level->slice +
                   (uint64_t)at[1] * level->pitch + (uint64_t)at[0];
    if (at[0] % bytes != 0 && !out->none) { /* rows may begin anywhere */
        return bh__ptx_fault_access(x, BH__PTX_FAULT_MISALIGNED, l, out->address, bytes, false,
                                    "global");
    }
    return true;
}

/* ---- suld ---- */

static bool run_load(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const surface_op *op = i->extra;
    unsigned each = bh__ptx_bytes(op->type);
    FOR_LANES_IN_ORDER(mask) {
        place where;
        const uint8_t *p = NULL;
        if (!locate(x, op, l, &where) ||
            (!where.none && (p = bh__texel_at(x, l, where.address, where.bytes, 0)) == NULL)) {
            return false;
        }
        for (unsigned n = 0; n < op->count; n++) {
            uint64_t value = 0;
            if (p != NULL) {
                memcpy(&value, p + n * each, each);
            }
            set(x, op, n, l, value);
        }
    }
    return true;
}

/* ---- sust ---- */

/* One channel of sust.p: out of range becomes the nearest value that the channel can hold. */
static uint32_t narrowed(const bh__ptx_texture *t, uint32_t value) {
    if (t->kind == BH__TEXEL_FLOAT) {
        return t->bits == 32
                   ? value
                   : bh__f16_from_double((double)bh__float_of_bits(value), BH__ROUND_NEAREST);
    }
    if (t->kind == BH__TEXEL_UNSIGNED) {
        uint32_t high = UINT32_MAX >> (32 - t->bits);
        return value < high ? value : high;
    }
    int32_t high = INT32_MAX >> (32 - t->bits), low = -high - 1, v = (int32_t)value;
    return (uint32_t)(v < low ? low : v > high ? high : v);
}

static void store_formatted(const bh__ptx_exec *x, const surface_op *op, unsigned l,
                            const bh__ptx_texture *t, uint8_t *p) {
    for (unsigned n = 0; n < t->channels; n++) {
        uint32_t value = n < op->count ? narrowed(t, (uint32_t)get(x, op, n, l)) : 0;
        memcpy(p + n * t->bits / 8, &value, t->bits / 8);
    }
}

static bool run_store(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const surface_op *op = i->extra;
    unsigned each = bh__ptx_bytes(op->type);
    FOR_LANES_IN_ORDER(mask) {
        place where;
        if (!locate(x, op, l, &where)) {
            return false;
        }
        if (where.none) {
            continue;
        }
        uint8_t *p = bh__texel_at(x, l, where.address, where.bytes, ACCESS_WRITE);
        if (p == NULL) {
            return false;
        }
        if (op->formatted) {
            store_formatted(x, op, l, where.t, p);
            continue;
        }
        for (unsigned n = 0; n < op->count; n++) {
            uint64_t value = get(x, op, n, l);
            memcpy(p + n * each, &value, each);
        }
    }
    return true;
}

/* ---- sured ---- */

static uint64_t reduced(bh__ptx_mod op, bool is_signed, unsigned bytes, uint64_t a, uint64_t b) {
    unsigned unused = 64 - 8 * bytes;
    int64_t sa = (int64_t)(a << unused) >> unused, sb = (int64_t)(b << unused) >> unused;
    bool less = is_signed ? sa < sb : a < b;
    switch (op) {
    case M_ADD:
        return a + b;
    case M_MIN:
        return less ? a : b;
    case M_MAX:
        return less ? b : a;
    case M_AND:
        return a & b;
    default:
        return a | b;
    }
}

static void reduce(const surface_op *op, bool is_signed, uint8_t *p, uint64_t b) {
    if (bh__ptx_bytes(op->type) == 8) {
        bh__u64 *at = (bh__u64 *)(void *)p;
        uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(at, &old, reduced(op->reduce, is_signed, 8, old, b),
                                            false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
        }
        return;
    }
    bh__u32 *at = (bh__u32 *)(void *)p;
    uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old,
                                        (uint32_t)reduced(op->reduce, is_signed, 4, old, b), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
}

static bool run_reduce(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const surface_op *op = i->extra;
    FOR_LANES_IN_ORDER(mask) {
        place where;
        if (!locate(x, op, l, &where)) {
            return false;
        }
        if (where.none) {
            continue;
        }
        unsigned bytes = bh__ptx_bytes(op->type);
        uint8_t *p =
            bh__texel_at(x, l, where.address, bytes, ACCESS_WRITE | ACCESS_ATOMIC | ACCESS_STRONG);
        if (p == NULL) {
            return false;
        }
        if (where.address % bytes != 0) {
            return bh__ptx_fault_access(x, BH__PTX_FAULT_MISALIGNED, l, where.address, bytes, true,
                                        "global");
        }
        if (where.bytes != bytes) {
            return bh__ptx_fault_other(x, BH__PTX_FAULT_ADDRESS, l,
                                       "sured.p of %u bytes on a surface with texels of %u", bytes,
                                       where.bytes);
        }
        bool is_signed =
            op->formatted ? where.t->kind == BH__TEXEL_SIGNED : bh__ptx_class(op->type) == 'S';
        reduce(op, is_signed, p, get(x, op, 0, l));
    }
    return true;
}

/* ---- lowering ---- */

static bool lower_values(bh__ptx_lowering *low, const bh__ptx_operand *o, surface_op *op) {
    const bh__ptx_operand *list = o->kind == OPERAND_VECTOR ? o->elements : o;
    unsigned count = o->kind == OPERAND_VECTOR ? o->count : 1;
    op->count = HAS(low->insn, V2) ? 2 : HAS(low->insn, V4) ? 4 : 1;
    if (count != op->count || op->count * bh__ptx_bytes(op->type) > 16) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give as many values as .vN says, of 16 bytes",
                                  "a vector of %u values, %u bytes each", count,
                                  bh__ptx_bytes(op->type));
    }
    for (unsigned n = 0; n < count; n++) {
        op->value[n] = low->insn->op == OP_SULD ? bh__texture_row_out(low, &list[n], op->type)
                                                : bh__texture_row_in(low, &list[n], op->type);
    }
    return low->status == BH_OK;
}

/* Reductions that PTX defines for the type. */
static bool reduces(const bh__ptx_insn *insn, bh__ptx_mod reduction, bool formatted) {
    bool logic = reduction == M_AND || reduction == M_OR;
    char class = bh__ptx_class((bh__ptx_type)insn->types[0]);
    bool wide = insn->types[0] == T_S64;
    if (formatted) {
        return class == 'B';
    }
    return logic ? insn->types[0] == T_B32 : class != 'B' && !(wide && reduction == M_ADD);
}

static bool right_form(const bh__ptx_insn *insn, const surface_op *op) {
    bool b = HAS(insn, B), p = HAS(insn, P), sured = insn->op == OP_SURED;
    if (op->geometry == NULL || op->geometry->cube || b == p || insn->operand_count != 2) {
        return false;
    }
    if (!HAS(insn, TRAP) && !HAS(insn, CLAMP) && !HAS(insn, ZERO)) {
        return false;
    }
    if (insn->op == OP_SULD) {
        return b;
    }
    if (sured) {
        return !op->geometry->layered && op->reduce != M_END && reduces(insn, op->reduce, p);
    }
    return p ? insn->types[0] == T_B32 : bh__ptx_class((bh__ptx_type)insn->types[0]) == 'B';
}

bool bh__ptx_lower_surface(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    surface_op *op = bh__arena_alloc(&low->module->arena, 1, sizeof *op);
    if (op == NULL) {
        return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory",
                                  "no memory for an instruction");
    }
    *op = (surface_op){.geometry = bh__geometry_of(insn),
                       .type = (bh__ptx_type)insn->types[0],
                       .bounds = HAS(insn, CLAMP)  ? BOUNDS_CLAMP
                                 : HAS(insn, ZERO) ? BOUNDS_ZERO
                                                   : BOUNDS_TRAP,
                       .formatted = HAS(insn, P),
                       .reduce = HAS(insn, ADD)   ? M_ADD
                                 : HAS(insn, MIN) ? M_MIN
                                 : HAS(insn, MAX) ? M_MAX
                                 : HAS(insn, AND) ? M_AND
                                 : HAS(insn, OR)  ? M_OR
                                                  : M_END};
    if (!right_form(insn, op)) {
        return bh__ptx_lower_fail(
            low, BH_E_UNSUPPORTED, "use a form that PTX defines, suld.b.2d.b32.trap for example",
            "the CPU device does not support this form of %s", bh__ptx_op_table[insn->op].mnemonic);
    }
    unsigned memory = insn->op == OP_SULD ? 1 : 0;
    bh__ptx_code code = {.run = insn->op == OP_SULD   ? run_load
                                : insn->op == OP_SUST ? run_store
                                                      : run_reduce,
                         .extra = op};
    return lower_values(low, &insn->operands[1 - memory], op) &&
           bh__texture_operand(low, &insn->operands[memory], op->geometry, T_S32, &op->handle,
                               op->at) &&
           bh__ptx_emit(low, &code, true);
}
