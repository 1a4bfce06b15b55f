/* SPDX-License-Identifier: Apache-2.0 */
/* mov, of registers, vectors, addresses and special registers; cvta and isspacep. */
#include <time.h>

#include "ptx/exec.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

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

static uint64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static uint64_t lane_value(const bh__ptx_exec *x, unsigned sreg, unsigned l) {
    switch (sreg) {
    case SREG_LANEID:
        return l;
    case SREG_LANEMASK_EQ:
        return 1u << l;
    case SREG_LANEMASK_LE:
        return UINT32_MAX >> (31 - l);
    case SREG_LANEMASK_LT:
        return (1u << l) - 1;
    case SREG_LANEMASK_GE:
        return UINT32_MAX << l;
    case SREG_LANEMASK_GT:
        return UINT32_MAX << l << 1;
    default:
        (void)x;
        return 0;
    }
}

/* Every block is a cluster. */
static uint64_t uniform_value(const bh__ptx_exec *x, unsigned sreg, unsigned component) {
    const bh__ptx_block *b = x->block;
    const bh__ptx_grid *g = x->grid;
    switch (sreg) {
    case SREG_NTID:
        return component < 3 ? g->block[component] : 0;
    case SREG_CTAID:
    case SREG_CLUSTERID:
        return component < 3 ? b->id[component] : 0;
    case SREG_NCTAID:
    case SREG_NCLUSTERID:
        return component < 3 ? g->grid[component] : 0;
    case SREG_CLUSTER_NCTAID:
        return component < 3;
    case SREG_CLUSTER_NCTARANK:
    case SREG_NSMID:
        return 1;
    case SREG_WARPID:
        return x->warp->index;
    case SREG_NWARPID:
        return 32;
    case SREG_GRIDID:
        return g->grid_id;
    case SREG_CLOCK:
    case SREG_CLOCK64:
        return now(CLOCK_MONOTONIC);
    case SREG_CLOCK_HI:
        return now(CLOCK_MONOTONIC) >> 32;
    case SREG_GLOBALTIMER:
    case SREG_GLOBALTIMER_LO:
        return now(CLOCK_REALTIME);
    case SREG_GLOBALTIMER_HI:
        return now(CLOCK_REALTIME) >> 32;
    case SREG_RESERVED_BEGIN:
    case SREG_RESERVED_0:
        return x->reserved_base;
    case SREG_RESERVED_1:
        return x->reserved_base + BH__PTX_RESERVED_SHARED / 2;
    case SREG_RESERVED_END:
        return x->reserved_base + BH__PTX_RESERVED_SHARED;
    case SREG_RESERVED_CAP:
        return BH__PTX_RESERVED_SHARED;
    case SREG_DYNAMIC_SMEM_SIZE:
        return g->dynamic_shared;
    case SREG_TOTAL_SMEM_SIZE:
    case SREG_AGGR_SMEM_SIZE:
        return x->shared_bytes;
    default:
        return 0;
    }
}

bool bh__ptx_run_sreg(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    unsigned sreg = (unsigned)i->imm;
    if (i->bytes == 0) {
        bh__set_predicate(x, i->d, 0, mask); /* %is_explicit_cluster */
        return true;
    }
    if (i->bytes == 8) {
        bh__u64 *pd = bh__row(x, i->d);
        uint64_t v = uniform_value(x, sreg, i->count);
        FOR_LANES(mask, pd[l] = v;);
        return true;
    }
    bh__u32 *pd = bh__row(x, i->d);
    if (sreg == SREG_TID && i->count < 3) {
        const uint32_t *tid = x->block->tid[i->count] + x->warp->index * LANES;
        FOR_LANES(mask, pd[l] = tid[l];);
    } else if (sreg == SREG_LANEID || (sreg >= SREG_LANEMASK_EQ && sreg <= SREG_LANEMASK_GT)) {
        FOR_LANES_IN_ORDER(mask) {
            pd[l] = (uint32_t)lane_value(x, sreg, l);
        }
    } else {
        uint32_t v = (uint32_t)uniform_value(x, sreg, i->count);
        FOR_LANES(mask, pd[l] = v;);
    }
    return true;
}

static uint64_t address_of(const bh__ptx_exec *x, const bh__ptx_symbol *symbol) {
    if (symbol->kind == SYMBOL_FUNCTION) {
        return BH__PTX_WINDOW(WINDOW_CODE) + (uint64_t)symbol->function->index * 16;
    }
    const bh__ptx_var *var = symbol->var;
    switch (var->space) {
    case SPACE_SHARED:
        return var->is_extern ? x->dynamic_base : var->offset;
    case SPACE_LOCAL:
        return x->stack + (uint64_t)var->offset;
    case SPACE_PARAM:
        /* Parameters of a kernel have a window; those of functions are in local memory. */
        return var->formal && x->frame_function->entry ? var->offset
                                                       : x->stack + (uint64_t)var->offset;
    default:
        return (uint64_t)(uintptr_t)x->block->image->variables[var->index];
    }
}

bool bh__ptx_run_address(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    uint64_t v = address_of(x, i->extra) + i->imm;
    if (i->bytes == 8) {
        bh__u64 *pd = bh__row(x, i->d);
        FOR_LANES(mask, pd[l] = v;);
    } else {
        bh__u32 *pd = bh__row(x, i->d);
        FOR_LANES(mask, pd[l] = (uint32_t)v;);
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
            yes = window == WINDOW_SHARED;
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
    return bh__ptx_lower_fail(low, BH_E_LOAD, "make both sides the same width",
                              "the two operands of mov have different widths");
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

/* Operands of moves: any register of the right width, whatever its kind. */
static bool fits(const bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type,
                 bool dest) {
    unsigned bytes = bh__ptx_bytes(type);
    switch (o->kind) {
    case OPERAND_SINK:
        return dest;
    case OPERAND_REG: {
        bh__ptx_type have = low->function->regs[o->reg].type;
        return (have == T_PRED) == (type == T_PRED) && bh__ptx_bytes(have) == bytes &&
               (!o->negated || (!dest && type == T_PRED));
    }
    case OPERAND_INT:
        return !dest && type != T_F32 && type != T_F64;
    case OPERAND_FLOAT:
        return !dest && type != T_PRED && bh__ptx_class(type) != 'U' && bh__ptx_class(type) != 'S';
    case OPERAND_SREG: {
        bh__ptx_type have = bh__ptx_sreg_table[o->sreg].type;
        return !dest && (have == T_PRED) == (type == T_PRED) &&
               (bh__ptx_bytes(have) == bytes || (o->sreg == SREG_GRIDID && bytes == 4));
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
    if (!fits(low, d, type, true) || !fits(low, a, type, false)) {
        return bad_move(low);
    }
    unsigned bytes = bh__ptx_bytes(type);
    bool direct = d->kind == OPERAND_REG;
    bh__ptx_code code = {.d = bh__ptx_row_out(low, d, type), .bytes = (uint8_t)bytes};
    if (direct && a->kind == OPERAND_SREG) {
        code.run = bh__ptx_run_sreg;
        code.imm = a->sreg;
        code.count = a->component;
    } else if (direct && a->kind == OPERAND_ADDRESS) {
        code.run = bh__ptx_run_address;
        code.imm = a->imm;
        code.extra = a->symbol;
    } else {
        code.a = bh__ptx_row_in(low, a, type);
        code.run = bytes == 0 ? move_pred : bytes == 8 ? move_64 : move_32;
    }
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
        for (unsigned n = 0; n < count; n++) {
            if (!lower_one_move(low, &d->elements[n], &a->elements[n])) {
                return false;
            }
        }
        return true;
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
    uint64_t start = space == SPACE_SHARED  ? BH__PTX_WINDOW(WINDOW_SHARED)
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
