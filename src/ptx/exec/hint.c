/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that advise the hardware: they are checked and have no effect here. */
#include "ptx/run/exec.h"

/* A policy of normal priority, for createpolicy: no instruction looks at it. */
#define POLICY UINT64_C(0x1000000000000000)

enum { CACHE_LINE = 128, MAX_REGISTERS = 256, MIN_REGISTERS = 24, EVENTS = 16 };

static bool bad(bh__ptx_lowering *low) {
    return bh__ptx_lower_fail(low, BH_E_LOAD, "write the operands in the order that PTX defines",
                              "the operands of %s are malformed",
                              bh__ptx_op_table[low->insn->op].mnemonic);
}

static bool is_source(const bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type) {
    if (o->kind == OPERAND_REG) {
        return !o->negated &&
               bh__ptx_bytes(low->function->regs[o->reg].type) == bh__ptx_bytes(type);
    }
    return o->kind == (type == T_F32 ? OPERAND_FLOAT : OPERAND_INT);
}

static bool run_policy(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const bh__u64 *pa = bh__row(x, i->a);
    bh__u64 *pd = bh__row(x, i->d);
    FOR_LANES(mask, pd[l] = pa[l];);
    return true;
}

static bool lower_policy(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands;
    unsigned count = insn->operand_count;
    if (count == 0 || o[0].kind != OPERAND_REG ||
        bh__ptx_bytes(low->function->regs[o[0].reg].type) != 8) {
        return bad(low);
    }
    bool convert = HAS(insn, CONVERT), range = HAS(insn, RANGE);
    bool ok = convert ? count == 2 && HAS(insn, L2) && is_source(low, &o[1], T_B64)
              : range ? count == 4 && HAS(insn, HINT) && o[1].kind == OPERAND_MEMORY &&
                            is_source(low, &o[2], T_B32) && is_source(low, &o[3], T_B32)
                      : HAS(insn, FRACTIONAL) && HAS(insn, HINT) &&
                            (count == 1 || (count == 2 && is_source(low, &o[1], T_F32)));
    if (!ok) {
        return bad(low);
    }
    bh__ptx_code code = {.run = run_policy, .d = bh__ptx_row_out(low, &o[0], T_B64)};
    code.a = convert ? bh__ptx_row_in(low, &o[1], T_B64) : bh__ptx_constant(low, POLICY, 8);
    return bh__ptx_emit(low, &code, true);
}

static bool refuse_number(bh__ptx_lowering *low, const char *fix, uint64_t number) {
    return bh__ptx_lower_fail(low, BH_E_LOAD, fix, "%llu is not valid for %s",
                              (unsigned long long)number, bh__ptx_op_table[low->insn->op].mnemonic);
}

bool bh__ptx_lower_hint(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    if (insn->op == OP_CREATEPOLICY) {
        return lower_policy(low);
    }
    uint64_t n = insn->operands[insn->operand_count - 1].imm;
    switch (insn->op) {
    case OP_APPLYPRIORITY:
    case OP_DISCARD:
        return n == CACHE_LINE || refuse_number(low, "give 128, the size of a cache line", n);
    case OP_SETMAXNREG:
        return (HAS(insn, SYNC) && HAS(insn, ALIGNED) && (HAS(insn, INC) || HAS(insn, DEC)) &&
                n >= MIN_REGISTERS && n <= MAX_REGISTERS && n % 8 == 0) ||
               refuse_number(low, "give a multiple of 8 from 24 to 256, with .sync.aligned", n);
    default: /* pmevent */
        return n < (HAS(insn, MASK) ? 1u << EVENTS : (unsigned)EVENTS) ||
               refuse_number(low, "give an event from 0 to 15, or a mask of 16 bits", n);
    }
}
