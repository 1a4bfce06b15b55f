/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering of branches, barriers, ret, exit and trap. */
#include <string.h>

#include "ptx/run/exec.h"

static bool run_trap(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    (void)i;
    return bh__ptx_fault_other(x, BH__PTX_FAULT_TRAP, (unsigned)__builtin_ctz(mask),
                               "the kernel executed a trap");
}

static bool run_nothing(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    (void)x, (void)i, (void)mask;
    return true;
}

static bool bad(bh__ptx_lowering *low) {
    return bh__ptx_lower_fail(low, BH_E_LOAD, "write the operands in the order that PTX defines",
                              "the operands of %s are malformed",
                              bh__ptx_op_table[low->insn->op].mnemonic);
}

static bool lower_branch(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    if (insn->operand_count != 1 || insn->operands[0].kind != OPERAND_LABEL) {
        return bad(low);
    }
    bh__ptx_code code = {.kind = CODE_BRA, .target = (uint32_t)insn->operands[0].imm};
    return bh__ptx_emit(low, &code, true);
}

static bool is_word(const bh__ptx_lowering *low, const bh__ptx_operand *o) {
    if (o->kind == OPERAND_INT) {
        return true;
    }
    return o->kind == OPERAND_REG && !o->negated &&
           bh__ptx_bytes(low->function->regs[o->reg].type) == 4 &&
           bh__ptx_class(low->function->regs[o->reg].type) != 'F';
}

static bool is_predicate(const bh__ptx_lowering *low, const bh__ptx_operand *o) {
    return o->kind == OPERAND_REG && low->function->regs[o->reg].type == T_PRED;
}

/* brx.idx index, list: each use gets its own copy of the list, converted to code indices. */
static bool lower_indexed(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    if (insn->operand_count != 2 || !HAS(insn, IDX) || !is_word(low, &insn->operands[0]) ||
        insn->operands[1].kind != OPERAND_TARGETS) {
        return bad(low);
    }
    const bh__ptx_targets *list = insn->operands[1].symbol->targets;
    bh__ptx_targets *copy = bh__arena_alloc(&low->module->arena, 1, sizeof *copy);
    uint32_t *at = bh__arena_alloc(&low->module->arena, list->count, sizeof *at);
    if (copy == NULL || at == NULL) {
        return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory",
                                  "no memory for a branch");
    }
    memcpy(at, list->at, list->count * sizeof *at);
    *copy = (bh__ptx_targets){at, list->count};
    bh__ptx_code code = {.kind = CODE_BRX, .extra = copy};
    code.a = bh__ptx_row_in(low, &insn->operands[0], T_B32);
    return bh__ptx_emit(low, &code, true);
}

static bool lower_warp_sync(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    if (insn->operand_count != 1 || !HAS(insn, SYNC) || !is_word(low, &insn->operands[0])) {
        return bad(low);
    }
    bh__ptx_code code = {.kind = CODE_SYNC, .run = run_nothing, .count = EXCHANGE_ROWS};
    code.a = code.b = code.c = code.d = code.d2 = NO_ROW;
    code.e = bh__ptx_row_in(low, &insn->operands[0], T_B32);
    return bh__ptx_emit(low, &code, true);
}

/* barrier.cluster.arrive and .wait. imm: which; target: ACCESS_... */
static bool lower_cluster_barrier(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bool arrive = HAS(insn, ARRIVE), wait = HAS(insn, WAIT);
    bool order = arrive ? !HAS(insn, ACQUIRE) : !HAS(insn, RELEASE) && !HAS(insn, RELAXED);
    if (arrive == wait || !order || insn->operand_count != 0 || insn->type_count != 0 ||
        insn->op != OP_BARRIER) {
        return bad(low);
    }
    bh__ptx_code code = {.kind = CODE_CLUSTER,
                         .imm = arrive ? CLUSTER_ARRIVE : CLUSTER_WAIT,
                         .flags = !HAS(insn, RELAXED)};
    return bh__ptx_emit(low, &code, true);
}

/* Numbers that are constants: of the barrier, and of the threads, which are whole warps. */
static bool barrier_numbers(bh__ptx_lowering *low, const bh__ptx_operand *o, long count) {
    if (o[0].kind == OPERAND_INT && o[0].imm >= BARRIERS) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "use a barrier from 0 to 15",
                                  "barrier %llu does not exist", (unsigned long long)o[0].imm);
    }
    if (count == 2 && o[1].kind == OPERAND_INT && o[1].imm % LANES != 0) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give a multiple of 32",
                                  "a barrier for %llu threads, which are not whole warps",
                                  (unsigned long long)o[1].imm);
    }
    return true;
}

/* bar.red: [d, ] a [, b] [, {!}c] with d and c. imm: the kind of barrier; target: the reduction. */
static bool lower_barrier(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    if (HAS(insn, WARP)) {
        return lower_warp_sync(low);
    }
    if (HAS(insn, CLUSTER)) {
        return lower_cluster_barrier(low);
    }
    bool red = HAS(insn, RED), arrive = HAS(insn, ARRIVE);
    bool ordered = HAS(insn, RELEASE) || HAS(insn, RELAXED) || HAS(insn, ACQUIRE);
    if (ordered || (!red && !arrive && !HAS(insn, SYNC))) {
        return bad(low);
    }
    const bh__ptx_operand *o = insn->operands, *end = o + insn->operand_count;
    const bh__ptx_operand *d = NULL, *c = NULL;
    bool popc = HAS(insn, POPC);
    if (red) {
        bool predicate = HAS(insn, AND) || HAS(insn, OR);
        if (end - o < 3 || popc == predicate || insn->type_count != 1 ||
            insn->types[0] != (popc ? T_U32 : T_PRED)) {
            return bad(low);
        }
        d = o++;
        c = --end;
        bool d_ok = popc ? d->kind == OPERAND_SINK || (d->kind == OPERAND_REG && is_word(low, d))
                         : d->kind == OPERAND_SINK || (is_predicate(low, d) && !d->negated);
        if (!d_ok || !(is_predicate(low, c) || c->kind == OPERAND_INT)) {
            return bad(low);
        }
    } else if (insn->type_count != 0 || HAS(insn, POPC) || HAS(insn, AND) || HAS(insn, OR)) {
        return bad(low);
    }
    long count = end - o;
    if (count < 1 || count > 2 || (arrive && count != 2) || !is_word(low, &o[0]) ||
        (count == 2 && !is_word(low, &o[1]))) {
        return bad(low);
    }
    if (!barrier_numbers(low, o, count)) {
        return false;
    }
    bh__ptx_code code = {.kind = CODE_BAR,
                         .count = insn->op == OP_BAR ||
                                  HAS(insn, ALIGNED), /* .aligned: whole warps only */
                         .imm = red      ? BAR_RED
                                : arrive ? BAR_ARRIVE
                                         : BAR_SYNC,
                         .b = NO_ROW,
                         .c = NO_ROW,
                         .d = NO_ROW,
                         .target = popc             ? M_POPC
                                   : HAS(insn, AND) ? M_AND
                                                    : M_OR};
    code.a = bh__ptx_row_in(low, &o[0], T_B32);
    if (count == 2) {
        code.b = bh__ptx_row_in(low, &o[1], T_B32);
    }
    if (red) {
        code.c = bh__ptx_row_in(low, c, T_PRED);
        code.d = bh__ptx_row_out(low, d, popc ? T_B32 : T_PRED);
    }
    return bh__ptx_emit(low, &code, true);
}

bool bh__ptx_lower_control(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bh__ptx_code code = {0};
    switch (insn->op) {
    case OP_BRA:
        return lower_branch(low);
    case OP_BRX:
        return lower_indexed(low);
    case OP_CALL:
        return bh__ptx_lower_call(low);
    case OP_BAR:
    case OP_BARRIER:
        return lower_barrier(low);
    case OP_GRIDDEP: /* a grid begins when the one before it has ended, so there is no wait */
        return HAS(insn, WAIT) || HAS(insn, LAUNCH_DEPENDENTS) || bad(low);
    case OP_RET:
        code.kind = low->function->entry ? CODE_EXIT : CODE_RET;
        break;
    case OP_EXIT:
        code.kind = CODE_EXIT;
        break;
    case OP_NANOSLEEP:
        code.kind = CODE_SLEEP;
        break;
    default:
        code.run = run_trap;
        break;
    }
    return bh__ptx_emit(low, &code, true);
}
