/* SPDX-License-Identifier: Apache-2.0 */
/* Which instructions become native code. What is not certain to give the interpreter's bits stays
 * with the interpreter's handler. */
#include "jit/unit.h"

static bool is_word(bh__ptx_type t) {
    return t == T_B32 || t == T_U32 || t == T_S32;
}

static bool is_int(bh__ptx_type t) {
    return is_word(t) || t == T_B64 || t == T_U64 || t == T_S64;
}

static bh__jit_op select_int(const bh__ptx_insn *insn) {
    bh__ptx_type t = (bh__ptx_type)insn->types[0];
    if (!is_int(t) || HAS(insn, SAT) || HAS(insn, CC) || HAS(insn, RELU)) {
        return JIT_HANDLED;
    }
    bool wide = HAS(insn, WIDE), hi = HAS(insn, HI);
    switch (insn->op) {
    case OP_ADD:
        return JIT_ADD;
    case OP_SUB:
        return JIT_SUB;
    case OP_MUL:
        return wide ? (is_word(t) ? JIT_MUL_WIDE : JIT_HANDLED)
               : hi ? (is_word(t) ? JIT_MUL_HI : JIT_HANDLED)
                    : JIT_MUL;
    case OP_MAD:
        return wide ? (is_word(t) ? JIT_MAD_WIDE : JIT_HANDLED) : hi ? JIT_HANDLED : JIT_MAD;
    case OP_MIN:
        return JIT_MIN;
    case OP_MAX:
        return JIT_MAX;
    case OP_NEG:
        return JIT_NEG;
    case OP_ABS:
        return JIT_ABS;
    default:
        return JIT_HANDLED;
    }
}

static bh__jit_op select_bits(const bh__ptx_insn *insn) {
    bh__ptx_type t = (bh__ptx_type)insn->types[0];
    if (!is_int(t) && t != T_PRED) {
        return JIT_HANDLED;
    }
    switch (insn->op) {
    case OP_AND:
        return JIT_AND;
    case OP_OR:
        return JIT_OR;
    case OP_XOR:
        return JIT_XOR;
    case OP_NOT:
        return JIT_NOT;
    case OP_SHL:
        return JIT_SHL;
    case OP_SHR:
        return JIT_SHR;
    default:
        return JIT_HANDLED;
    }
}

/* Every rounding but to nearest is left to the handlers, and double precision that saturates. */
static bh__jit_op select_float(const bh__ptx_insn *insn) {
    bool single = insn->types[0] == T_F32;
    bool nearest = !HAS(insn, RZ) && !HAS(insn, RM) && !HAS(insn, RP);
    if (!nearest || (!single && (HAS(insn, FTZ) || HAS(insn, SAT) || HAS(insn, APPROX)))) {
        return JIT_HANDLED;
    }
    switch (insn->op) {
    case OP_ADDF:
        return JIT_FADD;
    case OP_SUBF:
        return JIT_FSUB;
    case OP_MULF:
        return JIT_FMUL;
    case OP_FMAF:
    case OP_MADF:
        return JIT_FMA;
    case OP_DIVF:
        return HAS(insn, APPROX) ? JIT_HANDLED : JIT_FDIV;
    case OP_RCP:
        return single ? JIT_RCP : JIT_HANDLED;
    case OP_SQRT:
        return single ? JIT_SQRT : JIT_HANDLED;
    default:
        return JIT_HANDLED;
    }
}

static bh__jit_op select_math(const bh__ptx_insn *insn) {
    bool single = insn->types[0] == T_F32;
    bool plain = !HAS(insn, NAN) && !HAS(insn, XORSIGN) && !HAS(insn, ABS) && !HAS(insn, FTZ);
    switch (insn->op) {
    case OP_NEGF:
        return plain && single ? JIT_FNEG : JIT_HANDLED;
    case OP_ABSF:
        return plain && single ? JIT_FABS : JIT_HANDLED;
    case OP_MINF:
        return plain && single ? JIT_FMIN : JIT_HANDLED;
    case OP_MAXF:
        return plain && single ? JIT_FMAX : JIT_HANDLED;
    default:
        return JIT_HANDLED;
    }
}

static bh__jit_op select_compare(const bh__ptx_insn *insn) {
    bh__ptx_type t = (bh__ptx_type)insn->types[0];
    bool ok = is_int(t) || t == T_F32 || t == T_F64;
    if (insn->op == OP_SELP) {
        return bh__ptx_bytes(t) >= 4 ? JIT_SELP : JIT_HANDLED;
    }
    if (insn->op != OP_SETP && insn->op != OP_SETPF) {
        return JIT_HANDLED;
    }
    return ok && !HAS(insn, FTZ) ? JIT_SETP : JIT_HANDLED;
}

static bool has_own_width(const bh__ptx_code *code, const bh__ptx_insn *insn) {
    return ((code->flags & FLAG_WIDE_D) != 0) == (bh__ptx_bytes(insn->types[0]) == 8) &&
           ((code->flags & FLAG_WIDE_A) != 0) == (bh__ptx_bytes(insn->types[1]) == 8);
}

static bh__jit_op select_convert(const bh__ptx_code *code, const bh__ptx_insn *insn) {
    bh__ptx_type to = (bh__ptx_type)insn->types[0], from = (bh__ptx_type)insn->types[1];
    if (insn->op != OP_CVT || HAS(insn, SAT) || HAS(insn, FTZ) || HAS(insn, RELU) ||
        HAS(insn, SATFINITE) || !has_own_width(code, insn)) {
        return JIT_HANDLED;
    }
    bool nearest = !HAS(insn, RZ) && !HAS(insn, RM) && !HAS(insn, RP);
    if (is_word(from) && is_int(to)) {
        return is_word(to) ? JIT_MOVE : JIT_WIDEN;
    }
    if (is_int(from) && is_word(to)) {
        return JIT_NARROW;
    }
    if (is_word(from) && to == T_F32 && nearest) {
        return JIT_INT_TO_F32;
    }
    return JIT_HANDLED;
}

static bool is_plain_register(const bh__ptx_operand *o) {
    return o->kind == OPERAND_REG || o->kind == OPERAND_INT || o->kind == OPERAND_FLOAT;
}

static bh__jit_op select_special(const bh__ptx_code *code, bool *uniform) {
    if (code->bytes != 4) {
        *uniform = code->imm != SREG_CLOCK64;
        return JIT_HANDLED;
    }
    switch (code->imm) {
    case SREG_TID:
        return code->count < 3 ? JIT_TID : JIT_HANDLED;
    case SREG_NTID:
    case SREG_CTAID:
    case SREG_NCTAID:
        return code->count < 3 ? JIT_BLOCK : JIT_HANDLED;
    case SREG_LANEID:
        return JIT_LANE;
    case SREG_LANEMASK_EQ:
    case SREG_LANEMASK_LE:
    case SREG_LANEMASK_LT:
    case SREG_LANEMASK_GE:
    case SREG_LANEMASK_GT:
        return JIT_HANDLED;
    default:
        *uniform = true;
        return JIT_HANDLED;
    }
}

static bh__jit_op select_move(const bh__jit_request *request, const bh__ptx_code *code,
                              const bh__ptx_insn *insn, bool *uniform) {
    if (code->run == request->run_sreg) {
        return select_special(code, uniform);
    }
    if (code->run == request->run_address) {
        *uniform = true;
        return JIT_HANDLED;
    }
    if (insn->op == OP_CVTA) {
        /* Other windows start elsewhere: a sum with `imm`. */
        return insn->operands[0].kind == OPERAND_REG ? JIT_MOVE : JIT_HANDLED;
    }
    bool one = insn->op == OP_MOV && !HAS(insn, V2) && !HAS(insn, V4) && !HAS(insn, V8) &&
               insn->types[0] != T_B128 && insn->operands[0].kind == OPERAND_REG &&
               is_plain_register(&insn->operands[1]);
    return one ? JIT_MOVE : JIT_HANDLED;
}

/* Weak and relaxed accesses of one value; vectors must be single accesses, which handlers are. */
static bh__jit_op select_memory(const bh__ptx_code *code, const bh__ptx_insn *insn, bool *uniform) {
    bool load = insn->op == OP_LD || insn->op == OP_LDU;
    if ((!load && insn->op != OP_ST) || code->count != 1 || insn->types[0] == T_B128 ||
        code->target != 0 || HAS(insn, MMIO)) {
        return JIT_HANDLED;
    }
    const bh__ptx_operand *memory = &insn->operands[load ? 1 : 0];
    switch (bh__ptx_insn_space(insn)) {
    case SPACE_PARAM:
        *uniform = load && memory->symbol != NULL && !memory->symbol->var->unsized &&
                   memory->symbol->var->formal && !memory->has_reg;
        return *uniform ? JIT_PARAM : JIT_HANDLED;
    case SPACE_GENERIC:
    case SPACE_GLOBAL:
    case SPACE_CONST:
    case SPACE_SHARED:
        return load ? JIT_LOAD : JIT_STORE;
    default:
        return JIT_HANDLED;
    }
}

bool bh__jit_is_barrier(const bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    uint64_t number;
    return c->kind == CODE_BAR && c->imm == BAR_SYNC && c->b == NO_ROW && c->guard == NO_ROW &&
           bh__jit_constant(u, c->a, false, &number) && number == 0;
}

bh__jit_op bh__jit_select(const bh__jit_request *request, const bh__ptx_code *code,
                          const bh__ptx_insn *insn, bool *uniform) {
    *uniform = false;
    switch (code->kind) {
    case CODE_RUN:
        break;
    case CODE_SYNC:
        return insn->op == OP_SHFL ? JIT_SHFL : JIT_HANDLED;
    case CODE_BRA:
        return JIT_BRANCH;
    case CODE_EXIT:
        return JIT_EXIT;
    default:
        return JIT_STOP;
    }
    if (code->run == request->run_not) {
        return JIT_NOT_PRED;
    }
    if (code->run == request->run_sreg || code->run == request->run_address) {
        return select_move(request, code, insn, uniform);
    }
    switch (bh__ptx_op_table[insn->op].unit) {
    case UNIT_INT:
        return select_int(insn);
    case UNIT_BITS:
        return select_bits(insn);
    case UNIT_FLOAT:
        return select_float(insn);
    case UNIT_MATH:
        return select_math(insn);
    case UNIT_CMP:
        return select_compare(insn);
    case UNIT_CVT:
        return select_convert(code, insn);
    case UNIT_MOVE:
        return select_move(request, code, insn, uniform);
    case UNIT_MEM:
        return select_memory(code, insn, uniform);
    default:
        return JIT_HANDLED;
    }
}
