/* SPDX-License-Identifier: Apache-2.0 */
/* mov, of registers and vectors; cvta and isspacep. */
#include "ptx/run/exec.h"

enum { MAX_VECTOR = 8 };

#define HANDLER(name)                                                                              \
    WIDE_VECTORS static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

HANDLER(move_32) {
    const bh__u32 *pa = bh__row(x, i->a);
    bh__u32 *pd = bh__row(x, i->d);
    FOR_LANES(mask, pd[l] = pa[l];);
    return true;
}

HANDLER(move_64) {
    const bh__u64 *pa = bh__row(x, i->a);
    bh__u64 *pd = bh__row(x, i->d);
    FOR_LANES(mask, pd[l] = pa[l];);
    return true;
}

HANDLER(move_pred) {
    bh__set_predicate(x, i->d, *(const bh__u32 *)bh__row(x, i->a), mask);
    return true;
}

bool bh__ptx_run_not_pred(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    bh__set_predicate(x, i->d, ~*(const bh__u32 *)bh__row(x, i->a), mask);
    return true;
}

/* Several registers at once: all are read before any is written. `extra`: the rows of the
 * destinations, then those of the sources. */
HANDLER(move_vector) {
    const int32_t *to = i->extra, *from = to + i->count;
    uint64_t v[MAX_VECTOR];
    FOR_LANES_IN_ORDER(mask) {
        for (unsigned n = 0; n < i->count; n++) {
            v[n] = i->bytes == 8 ? ((const bh__u64 *)bh__row(x, from[n]))[l]
                                 : ((const bh__u32 *)bh__row(x, from[n]))[l];
        }
        for (unsigned n = 0; n < i->count; n++) {
            if (i->bytes == 8) {
                ((bh__u64 *)bh__row(x, to[n]))[l] = v[n];
            } else {
                ((bh__u32 *)bh__row(x, to[n]))[l] = (uint32_t)v[n];
            }
        }
    }
    return true;
}

/* Several values packed into one register. `extra`: their rows; `bytes`: size of each. */
HANDLER(pack) {
    const int32_t *rows = i->extra;
    unsigned bits = 8u * i->bytes;
    FOR_LANES_IN_ORDER(mask) {
        uint64_t v = 0;
        for (unsigned n = 0; n < i->count; n++) {
            uint64_t part = ((const bh__u32 *)bh__row(x, rows[n]))[l];
            v |= (part & (UINT64_MAX >> (64 - bits))) << n * bits;
        }
        if (i->flags & FLAG_WIDE_D) {
            ((bh__u64 *)bh__row(x, i->d))[l] = v;
        } else {
            ((bh__u32 *)bh__row(x, i->d))[l] = (uint32_t)v;
        }
    }
    return true;
}

HANDLER(unpack) {
    const int32_t *rows = i->extra;
    unsigned bits = 8u * i->bytes;
    FOR_LANES_IN_ORDER(mask) {
        uint64_t v = i->flags & FLAG_WIDE_A ? ((const bh__u64 *)bh__row(x, i->a))[l]
                                            : ((const bh__u32 *)bh__row(x, i->a))[l];
        for (unsigned n = 0; n < i->count; n++) {
            ((bh__u32 *)bh__row(x, rows[n]))[l] =
                (uint32_t)(v >> n * bits & UINT64_MAX >> (64 - bits));
        }
    }
    return true;
}

/* imm is added: the start of a window, or its negative. */
HANDLER(change_space) {
    const bh__u64 *pa = bh__row(x, i->a);
    bh__u64 *pd = bh__row(x, i->d);
    uint64_t add = i->imm;
    FOR_LANES(mask, pd[l] = pa[l] + add;);
    return true;
}

static bool in_constants(const bh__ptx_exec *x, uint64_t address) {
    const bh__ptx_image *image = x->block->image;
    for (size_t n = 0; n < image->range_count; n++) {
        const bh__ptx_range *r = &image->ranges[n];
        if (!r->writable && address - r->base < r->size) {
            return true;
        }
    }
    return false;
}

/* Whether an address of shared memory is of one of these blocks of the cluster. */
static bool in_blocks(uint64_t address, uint32_t first, uint32_t count) {
    uint64_t rank = (address - BH__PTX_WINDOW(WINDOW_SHARED)) >> BH__PTX_RANK_SHIFT;
    return rank - first < count;
}

HANDLER(is_space) {
    uint32_t bits = 0;
    FOR_LANES_IN_ORDER(mask) {
        uint64_t a = i->flags & FLAG_WIDE_A ? ((const bh__u64 *)bh__row(x, i->a))[l]
                                            : ((const bh__u32 *)bh__row(x, i->a))[l];
        uint64_t window = a >> BH__PTX_WINDOW_SHIFT;
        bool yes = false;
        switch (i->imm) {
        case SPACE_GLOBAL:
            yes = window == WINDOW_GLOBAL;
            break;
        case SPACE_SHARED:
            yes = window == WINDOW_SHARED && in_blocks(a, x->block->rank, 1);
            break;
        case SPACE_CLUSTER:
            yes = window == WINDOW_SHARED && in_blocks(a, 0, x->block->cluster->count);
            break;
        case SPACE_LOCAL:
            yes = window == WINDOW_LOCAL;
            break;
        case SPACE_PARAM:
            yes = window == WINDOW_PARAM;
            break;
        default:
            yes = window == WINDOW_GLOBAL && in_constants(x, a);
            break;
        }
        bits |= (uint32_t)yes << l;
    }
    bh__set_predicate(x, i->d, bits, mask);
    return true;
}

static bool bad_move(bh__ptx_lowering *low) {
    return bh__ptx_lower_fail(low, BH_E_LOAD, "give both sides the width and the kind of its type",
                              "the operands of mov have different widths, or not its type");
}

static bool check_part(bh__ptx_lowering *low, const bh__ptx_operand *o, unsigned bytes) {
    if (o->kind == OPERAND_INT || o->kind == OPERAND_SINK) {
        return true;
    }
    if (o->kind != OPERAND_REG) {
        return false;
    }
    unsigned have = bh__ptx_bytes(low->function->regs[o->reg].type);
    return have == bytes || (bytes == 1 && have == 2);
}

static bool lower_vector_move(bh__ptx_lowering *low, const bh__ptx_operand *d,
                              const bh__ptx_operand *a) {
    bh__ptx_type type = (bh__ptx_type)low->insn->types[0];
    bool packs = a->kind == OPERAND_VECTOR;
    const bh__ptx_operand *vector = packs ? a : d, *scalar = packs ? d : a;
    unsigned count = vector->count, total = bh__ptx_bytes(type);
    if (scalar->kind == OPERAND_VECTOR || (count != 2 && count != 4) || total % count != 0 ||
        total == 0) {
        return bad_move(low);
    }
    unsigned bytes = total / count;
    bh__ptx_type part = bytes == 1 ? T_B8 : bytes == 2 ? T_B16 : T_B32;
    int32_t *rows = bh__arena_alloc(&low->module->arena, count, sizeof *rows);
    if (rows == NULL) {
        return bad_move(low);
    }
    for (unsigned n = 0; n < count; n++) {
        const bh__ptx_operand *e = &vector->elements[n];
        if (!check_part(low, e, bytes) || (packs && e->kind == OPERAND_SINK) ||
            (!packs && e->kind == OPERAND_INT)) {
            return bad_move(low);
        }
        rows[n] = packs ? bh__ptx_row_in(low, e, part) : bh__ptx_row_out(low, e, part);
    }
    if (packs ? !check_part(low, scalar, total) || scalar->kind == OPERAND_INT
              : !(scalar->kind == OPERAND_FLOAT || check_part(low, scalar, total)) ||
                    scalar->kind == OPERAND_SINK) {
        return bad_move(low);
    }
    bh__ptx_code code = {.run = packs ? pack : unpack,
                         .extra = rows,
                         .count = (uint8_t)count,
                         .bytes = (uint8_t)bytes,
                         .flags = total == 8 ? FLAG_WIDE_A | FLAG_WIDE_D : 0};
    if (packs) {
        code.d = bh__ptx_row_out(low, scalar, type);
    } else {
        code.a = bh__ptx_row_in(low, scalar, type);
    }
    return bh__ptx_emit(low, &code, true);
}

/* Operands of moves. */
static bool fits(const bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type,
                 bool dest) {
    unsigned bytes = bh__ptx_bytes(type);
    switch (o->kind) {
    case OPERAND_SINK:
        return dest;
    case OPERAND_REG: {
        bh__ptx_type have = low->function->regs[o->reg].type;
        return (have == T_PRED) == (type == T_PRED) && bh__ptx_bytes(have) == bytes &&
               bh__ptx_types_agree(have, type) && (!o->negated || (!dest && type == T_PRED));
    }
    case OPERAND_INT:
        return !dest && type != T_F32 && type != T_F64;
    case OPERAND_FLOAT:
        return !dest && (type == T_F32 || type == T_F64 || type == (o->single ? T_B32 : T_B64));
    case OPERAND_SREG: {
        bh__ptx_type have = bh__ptx_sreg_table[o->sreg].type;
        return !dest && (have == T_PRED) == (type == T_PRED) && bh__ptx_class(type) != 'F' &&
               (bh__ptx_bytes(have) == bytes || (o->sreg == SREG_GRIDID && bytes == 4) ||
                (o->sreg <= SREG_NCTAID && bytes == 2));
    }
    case OPERAND_ADDRESS:
        if (dest || bh__ptx_class(type) == 'F' || type == T_PRED) {
            return false;
        }
        return bytes == 8 ||
               (bytes == 4 && o->symbol->kind == SYMBOL_VAR &&
                o->symbol->var->space != SPACE_GLOBAL && o->symbol->var->space != SPACE_CONST);
    default:
        return false;
    }
}

static bool lower_one_move(bh__ptx_lowering *low, const bh__ptx_operand *d,
                           const bh__ptx_operand *a) {
    bh__ptx_type type = (bh__ptx_type)low->insn->types[0];
    if (d->kind != OPERAND_REG || !fits(low, d, type, true) || !fits(low, a, type, false)) {
        return bad_move(low);
    }
    unsigned bytes = bh__ptx_bytes(type);
    bh__ptx_code code = {.d = bh__ptx_row_out(low, d, type), .bytes = (uint8_t)bytes};
    if (a->kind == OPERAND_SREG) {
        code.run = bytes == 2 ? bh__ptx_run_sreg16 : bh__ptx_run_sreg;
        code.imm = a->sreg;
        code.count = a->component;
    } else if (a->kind == OPERAND_ADDRESS) {
        code.run = bh__ptx_run_address;
        code.imm = a->imm;
        code.extra = a->symbol;
    } else {
        code.a = bh__ptx_row_in(low, a, type);
        code.run = bytes == 0 ? move_pred : bytes == 8 ? move_64 : move_32;
    }
    return bh__ptx_emit(low, &code, true);
}

static bool lower_moves(bh__ptx_lowering *low, const bh__ptx_operand *d, const bh__ptx_operand *a,
                        unsigned count) {
    bh__ptx_type type = (bh__ptx_type)low->insn->types[0];
    int32_t *rows = bh__arena_alloc(&low->module->arena, 2 * (size_t)count, sizeof *rows);
    if (rows == NULL || type == T_PRED || type == T_B128) {
        return bad_move(low);
    }
    for (unsigned n = 0; n < count; n++) {
        if (!fits(low, &d[n], type, true) || !fits(low, &a[n], type, false)) {
            return bad_move(low);
        }
        rows[n] = bh__ptx_row_out(low, &d[n], type);
        rows[count + n] = bh__ptx_row_in(low, &a[n], type);
    }
    bh__ptx_code code = {.run = move_vector,
                         .extra = rows,
                         .count = (uint8_t)count,
                         .bytes = (uint8_t)bh__ptx_bytes(type)};
    return bh__ptx_emit(low, &code, true);
}

/* The rows of both halves of a 128-bit register, or of two registers in braces. */
static bool halves_of(bh__ptx_lowering *low, const bh__ptx_operand *o, bool dest, int32_t rows[2]) {
    if (o->kind == OPERAND_VECTOR && o->count == 2) {
        for (unsigned n = 0; n < 2; n++) {
            const bh__ptx_operand *e = &o->elements[n];
            if (!fits(low, e, T_B64, dest)) {
                return bad_move(low);
            }
            rows[n] = dest ? bh__ptx_row_out(low, e, T_B64) : bh__ptx_row_in(low, e, T_B64);
        }
        return true;
    }
    if (o->kind != OPERAND_REG || low->function->regs[o->reg].type != T_B128) {
        return bad_move(low);
    }
    rows[0] = bh__ptx_row_out(low, o, T_B128);
    rows[1] = rows[0] + HIGH_HALF;
    return true;
}

/* Four 32-bit registers and a 128-bit one: a pair for each half. */
static bool lower_quarters(bh__ptx_lowering *low, const bh__ptx_operand *list,
                           const bh__ptx_operand *wide, bool packs) {
    int32_t *rows = bh__arena_alloc(&low->module->arena, 4, sizeof *rows), halves[2];
    if (rows == NULL || !halves_of(low, wide, packs, halves)) {
        return bad_move(low);
    }
    for (unsigned n = 0; n < 4; n++) {
        const bh__ptx_operand *e = &list->elements[n];
        if (!fits(low, e, T_B32, !packs)) {
            return bad_move(low);
        }
        rows[n] = packs ? bh__ptx_row_in(low, e, T_B32) : bh__ptx_row_out(low, e, T_B32);
    }
    for (unsigned n = 0; n < 2; n++) {
        bh__ptx_code code = {.run = packs ? pack : unpack,
                             .extra = rows + 2 * n,
                             .count = 2,
                             .bytes = 4,
                             .a = halves[n],
                             .d = halves[n],
                             .flags = FLAG_WIDE_A | FLAG_WIDE_D};
        if (!bh__ptx_emit(low, &code, true)) {
            return false;
        }
    }
    return true;
}

static bool lower_wide_move(bh__ptx_lowering *low, const bh__ptx_operand *d,
                            const bh__ptx_operand *a) {
    if (d->kind == OPERAND_VECTOR && d->count == 4) {
        return lower_quarters(low, d, a, false);
    }
    if (a->kind == OPERAND_VECTOR && a->count == 4) {
        return lower_quarters(low, a, d, true);
    }
    int32_t *rows = bh__arena_alloc(&low->module->arena, 4, sizeof *rows);
    if (rows == NULL || !halves_of(low, d, true, rows) || !halves_of(low, a, false, rows + 2)) {
        return bad_move(low);
    }
    bh__ptx_code code = {.run = move_vector, .extra = rows, .count = 2, .bytes = 8};
    return bh__ptx_emit(low, &code, true);
}

static bool lower_mov(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    if (insn->operand_count != 2) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give a destination and a source",
                                  "mov takes two operands");
    }
    const bh__ptx_operand *d = &insn->operands[0], *a = &insn->operands[1];
    unsigned count = HAS(insn, V2) ? 2 : HAS(insn, V4) ? 4 : HAS(insn, V8) ? 8 : 1;
    if (count > 1) {
        if (d->kind != OPERAND_VECTOR || a->kind != OPERAND_VECTOR || d->count != count ||
            a->count != count) {
            return bad_move(low);
        }
        return lower_moves(low, d->elements, a->elements, count);
    }
    if (insn->types[0] == T_B128) {
        return lower_wide_move(low, d, a);
    }
    if (d->kind == OPERAND_VECTOR || a->kind == OPERAND_VECTOR) {
        return lower_vector_move(low, d, a);
    }
    return lower_one_move(low, d, a);
}

static bool lower_cvta(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bh__ptx_space space = bh__ptx_insn_space(insn);
    if (insn->types[0] != T_U64 || space == SPACE_GENERIC || insn->operand_count != 2) {
        return bh__ptx_lower_fail(low, BH_E_UNSUPPORTED,
                                  "convert 64-bit addresses of a named space",
                                  "the CPU device does not support this form of cvta");
    }
    const bh__ptx_operand *d = &insn->operands[0], *a = &insn->operands[1];
    if (!fits(low, d, T_U64, true) || !fits(low, a, T_U64, false)) {
        return bad_move(low);
    }
    bool shared = space == SPACE_SHARED || space == SPACE_CLUSTER;
    uint64_t start = shared                 ? BH__PTX_WINDOW(WINDOW_SHARED)
                     : space == SPACE_LOCAL ? BH__PTX_WINDOW(WINDOW_LOCAL)
                     : space == SPACE_PARAM ? BH__PTX_WINDOW(WINDOW_PARAM)
                                            : 0;
    if (space == SPACE_PARAM && !low->function->entry) {
        start = BH__PTX_WINDOW(WINDOW_LOCAL); /* parameters of functions are in local memory */
    }
    bh__ptx_code code = {.run = start == 0 ? move_64 : change_space,
                         .imm = HAS(insn, TO) ? 0 - start : start};
    code.a = bh__ptx_row_in(low, a, T_U64);
    code.d = bh__ptx_row_out(low, d, T_U64);
    return bh__ptx_emit(low, &code, true);
}

bool bh__ptx_lower_move(bh__ptx_lowering *low) {
    if (low->insn->op == OP_MOV) {
        return lower_mov(low);
    }
    if (low->insn->op == OP_CVTA) {
        return lower_cvta(low);
    }
    bh__ptx_code code = {.run = is_space, .imm = bh__ptx_insn_space(low->insn)};
    if (code.imm == SPACE_GENERIC) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "name a space, isspacep.shared for example",
                                  "isspacep without a state space");
    }
    return bh__ptx_lower_plain(low, &code);
}
