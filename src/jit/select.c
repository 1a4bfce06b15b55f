/* SPDX-License-Identifier: Apache-2.0 */
/* Which instructions become native code. What is not certain to give the interpreter's bits stays
 * with the interpreter's handler. */
#include "jit/floats.h"
#include "ptx/check/check.h"
#include "ptx/run/single.h"

static bool is_word(bh__ptx_type t) {
    return t == T_B32 || t == T_U32 || t == T_S32;
}

static bool is_half(bh__ptx_type t) { /* an integer of 16 bits */
    return t == T_B16 || t == T_U16 || t == T_S16;
}

static bool is_int(bh__ptx_type t) {
    return is_word(t) || t == T_B64 || t == T_U64 || t == T_S64;
}

static bh__jit_op select_int(const bh__ptx_insn *insn) {
    bh__ptx_type t = (bh__ptx_type)insn->types[0];
    bool narrow = is_word(t) || is_half(t);
    if ((!is_int(t) && !is_half(t)) || HAS(insn, SAT) || HAS(insn, CC) || HAS(insn, RELU)) {
        return JIT_HANDLED;
    }
    bool wide = HAS(insn, WIDE), hi = HAS(insn, HI);
    switch (insn->op) {
    case OP_ADD:
        return JIT_ADD;
    case OP_SUB:
        return JIT_SUB;
    case OP_MUL:
        return wide ? (narrow ? JIT_MUL_WIDE : JIT_HANDLED) : hi ? JIT_MUL_HI : JIT_MUL;
    case OP_MAD:
        return wide ? (narrow ? JIT_MAD_WIDE : JIT_HANDLED) : hi ? JIT_MAD_HI : JIT_MAD;
    case OP_MIN:
        return JIT_MIN;
    case OP_MAX:
        return JIT_MAX;
    case OP_DIV:
        return JIT_DIV;
    case OP_REM:
        return JIT_REM;
    case OP_NEG:
        return JIT_NEG;
    case OP_ABS:
        return JIT_ABS;
    default:
        return JIT_HANDLED;
    }
}

static bh__jit_op select_bits(const bh__ptx_code *code, const bh__ptx_insn *insn) {
    bh__ptx_type t = (bh__ptx_type)insn->types[0];
    if (!is_int(t) && !is_half(t) && t != T_PRED) {
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
    case OP_POPC:
        return JIT_POPC;
    case OP_CLZ:
        return JIT_CLZ;
    case OP_BREV:
        return JIT_BREV;
    case OP_BFIND:
        return JIT_FIND;
    case OP_BFE:
        return JIT_EXTRACT;
    case OP_BFI:
        return JIT_INSERT;
    case OP_SHF:
        return JIT_FUNNEL;
    case OP_PRMT:
        return code->imm == 0 ? JIT_PERMUTE : JIT_HANDLED; /* without a mode */
    case OP_LOP3:
        return code->d2 == NO_ROW ? JIT_LOGIC : JIT_HANDLED; /* without a predicate */
    case OP_DP4A:
        return JIT_DOT;
    default:
        return JIT_HANDLED;
    }
}

static bool is_nearest(const bh__ptx_insn *insn) {
    return !HAS(insn, RZ) && !HAS(insn, RM) && !HAS(insn, RP);
}

/* Other roundings than to nearest: where the processor has them in its instructions. */
static bool can_round(const bh__ptx_insn *insn) {
    bool known = insn->op == OP_ADDF || insn->op == OP_SUBF || insn->op == OP_MULF ||
                 insn->op == OP_FMAF || insn->op == OP_MADF;
    return known && insn->types[0] == T_F32 && !HAS(insn, FTZ) && bh__jit_has_roundings();
}

static bh__jit_op select_float(const bh__ptx_insn *insn) {
    bool single = insn->types[0] == T_F32;
    if ((!is_nearest(insn) && !can_round(insn)) ||
        (!single && (HAS(insn, FTZ) || HAS(insn, SAT) || HAS(insn, APPROX)))) {
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
        return HAS(insn, APPROX) ? JIT_QUOTIENT : JIT_FDIV;
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
    case OP_RSQRT:
        return single ? JIT_RSQRT : JIT_HANDLED;
    case OP_EX2:
        return single ? JIT_EX2 : JIT_HANDLED;
    default:
        return JIT_HANDLED;
    }
}

static bh__jit_op select_compare(const bh__ptx_insn *insn) {
    bh__ptx_type t = (bh__ptx_type)insn->types[0];
    bool ok = is_int(t) || is_half(t) || t == T_F32 || t == T_F64;
    if (insn->op == OP_SELP) {
        return bh__ptx_bytes(t) >= 2 && t != T_B128 ? JIT_SELP : JIT_HANDLED;
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

static bool is_whole_number(bh__ptx_type t) { /* of 8 bits or more */
    char class = bh__ptx_class(t);
    return bh__ptx_bytes(t) <= 8 && (class == 'U' || class == 'S') && t != T_U4 && t != T_S4 &&
           t != T_U2 && t != T_S2;
}

static bh__jit_op select_int_convert(const bh__ptx_code *code, const bh__ptx_insn *insn) {
    bh__ptx_type to = (bh__ptx_type)insn->types[0], from = (bh__ptx_type)insn->types[1];
    if (has_own_width(code, insn) && is_word(from) && is_int(to)) {
        return is_word(to) ? JIT_MOVE : JIT_WIDEN;
    }
    if (has_own_width(code, insn) && is_int(from) && is_word(to)) {
        return JIT_NARROW;
    }
    return is_whole_number(from) && is_whole_number(to) ? JIT_RECODE : JIT_HANDLED;
}

static bh__jit_op select_float_convert(const bh__ptx_insn *insn, bool integral) {
    bh__ptx_type to = (bh__ptx_type)insn->types[0], from = (bh__ptx_type)insn->types[1];
    if (to == T_F32 && from == T_F32) {
        bool sat = HAS(insn, SAT);
        return sat && !integral ? JIT_CLAMP : integral && !sat ? JIT_TO_WHOLE : JIT_HANDLED;
    }
    bool plain = !integral && is_nearest(insn) && !HAS(insn, SAT) && !HAS(insn, FTZ);
    return plain && from != to ? JIT_RESIZE : JIT_HANDLED;
}

/* f16 to f32 and back, to nearest. */
static bh__jit_op select_half_convert(const bh__ptx_insn *insn) {
    bool plain = is_nearest(insn) && !HAS(insn, SAT) && bh__jit_has_halves();
    bool from = insn->types[0] == T_F32 && insn->types[1] == T_F16;
    bool to = insn->types[0] == T_F16 && insn->types[1] == T_F32;
    return !plain ? JIT_HANDLED : from ? JIT_FROM_HALF : to ? JIT_TO_HALF : JIT_HANDLED;
}

static bh__jit_op select_half(const bh__ptx_code *code, const bh__ptx_insn *insn) {
    bool known =
        insn->op == OP_ADDH || insn->op == OP_SUBH || insn->op == OP_MULH || insn->op == OP_FMAH;
    bool plain = (insn->types[0] == T_F16 || insn->types[0] == T_F16X2) && code->flags == 0;
    return known && plain && bh__jit_has_halves() ? JIT_HALF : JIT_HANDLED;
}

static bh__jit_op select_convert(const bh__ptx_code *code, const bh__ptx_insn *insn) {
    bh__ptx_type to = (bh__ptx_type)insn->types[0], from = (bh__ptx_type)insn->types[1];
    bool integral = HAS(insn, RNI) || HAS(insn, RZI) || HAS(insn, RMI) || HAS(insn, RPI);
    bool from_float = from == T_F32 || from == T_F64, to_float = to == T_F32 || to == T_F64;
    if (insn->op != OP_CVT || HAS(insn, RELU) || HAS(insn, SATFINITE)) {
        return JIT_HANDLED;
    }
    if (to == T_F16 || from == T_F16) {
        return has_own_width(code, insn) && !integral && insn->operand_count == 2
                   ? select_half_convert(insn)
                   : JIT_HANDLED;
    }
    if (from_float && to_float) {
        return has_own_width(code, insn) ? select_float_convert(insn, integral) : JIT_HANDLED;
    }
    if (HAS(insn, SAT)) {
        return JIT_HANDLED;
    }
    if (to_float) {
        return is_whole_number(from) && is_nearest(insn) && !HAS(insn, FTZ) ? JIT_INT_TO_FLOAT
                                                                            : JIT_HANDLED;
    }
    if (from_float) {
        bool fits = is_int(to) && has_own_width(code, insn);
        return fits && (from == T_F32 || !HAS(insn, FTZ)) ? JIT_FLOAT_TO_INT : JIT_HANDLED;
    }
    return HAS(insn, FTZ) ? JIT_HANDLED : select_int_convert(code, insn);
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

static bh__jit_op select_address(const bh__ptx_code *code, bool *uniform) {
    const bh__ptx_symbol *symbol = code->extra;
    *uniform = true;
    if (symbol->kind != SYMBOL_VAR || symbol->var->formal) {
        return JIT_HANDLED;
    }
    bh__ptx_space space = symbol->var->space;
    bool known = space == SPACE_SHARED || space == SPACE_LOCAL || space == SPACE_GLOBAL ||
                 space == SPACE_CONST;
    return known ? JIT_ADDRESS : JIT_HANDLED;
}

static bh__jit_op select_move(const bh__jit_request *request, const bh__ptx_code *code,
                              const bh__ptx_insn *insn, bool *uniform) {
    if (code->run == request->run_sreg) {
        return select_special(code, uniform);
    }
    if (code->run == request->run_address) {
        return select_address(code, uniform);
    }
    if (insn->op == OP_CVTA) {
        /* Other windows start elsewhere: a sum with `imm`. */
        return insn->operands[0].kind == OPERAND_REG ? JIT_MOVE : JIT_HANDLED;
    }
    if (insn->op != OP_MOV || HAS(insn, V2) || HAS(insn, V4) || HAS(insn, V8) ||
        insn->types[0] == T_B128) {
        return JIT_HANDLED;
    }
    const bh__ptx_operand *to = &insn->operands[0], *from = &insn->operands[1];
    if (to->kind == OPERAND_REG && is_plain_register(from)) {
        return JIT_MOVE;
    }
    /* Elements that are no registers have instructions of their own, before it. */
    return from->kind == OPERAND_VECTOR && to->kind == OPERAND_REG ? JIT_PACK
           : to->kind == OPERAND_VECTOR && is_plain_register(from) ? JIT_UNPACK
                                                                   : JIT_HANDLED;
}

/* Vectors are single accesses; processors have them up to 16 bytes, some only up to 8. */
static bool is_vector(const bh__ptx_code *code) {
    unsigned bytes = (unsigned)code->bytes * code->count;
    bool two_or_four = code->count == 2 || code->count == 4;
    return two_or_four && bytes <= (bh__single_16() ? 16 : 8);
}

/* Accesses of a value or a vector. */
static bh__jit_op select_memory(const bh__ptx_code *code, const bh__ptx_insn *insn, bool *uniform) {
    bool load = insn->op == OP_LD || insn->op == OP_LDU;
    if (insn->op == OP_MEMBAR || insn->op == OP_FENCE) {
        return JIT_FENCE;
    }
    if ((!load && insn->op != OP_ST) || insn->types[0] == T_B128 || HAS(insn, MMIO)) {
        return JIT_HANDLED;
    }
    const bh__ptx_operand *memory = &insn->operands[load ? 1 : 0];
    switch (bh__ptx_insn_space(insn)) {
    case SPACE_PARAM:
        *uniform = load && code->count == 1 && memory->symbol != NULL &&
                   !memory->symbol->var->unsized && memory->symbol->var->formal && !memory->has_reg;
        return *uniform ? JIT_PARAM : JIT_HANDLED;
    case SPACE_GENERIC:
    case SPACE_GLOBAL:
    case SPACE_CONST:
    case SPACE_SHARED:
    case SPACE_LOCAL:
        if (code->count != 1 && !is_vector(code)) {
            return JIT_HANDLED;
        }
        return load ? JIT_LOAD : JIT_STORE;
    default:
        return JIT_HANDLED;
    }
}

/* Integers of 32 and 64 bits and sums in single precision, without an order that the processor's
 * does not imply. */
static bh__jit_op select_atomic(const bh__ptx_code *code, const bh__ptx_insn *insn) {
    bh__ptx_space space = bh__ptx_insn_space(insn);
    bool known = HAS(insn, ADD) || HAS(insn, AND) || HAS(insn, OR) || HAS(insn, XOR) ||
                 HAS(insn, MIN) || HAS(insn, MAX) || HAS(insn, CAS) || HAS(insn, EXCH);
    bh__ptx_type t = (bh__ptx_type)insn->types[0];
    bool sum = t == T_F32 && HAS(insn, ADD);
    bool vector = HAS(insn, V2) || HAS(insn, V4) || HAS(insn, V8);
    if (!known || vector || (!is_int(t) && !sum) || code->extra != NULL ||
        ((uint32_t)code->d2 & (ACCESS_ACQUIRE | ACCESS_RELEASE)) != 0) {
        return JIT_HANDLED;
    }
    return space == SPACE_SHARED || space == SPACE_GLOBAL || space == SPACE_GENERIC ? JIT_ATOMIC
                                                                                    : JIT_HANDLED;
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
        return insn->op == OP_SHFL                            ? JIT_SHFL
               : insn->op == OP_VOTE                          ? JIT_VOTE
               : insn->op == OP_BAR || insn->op == OP_BARRIER ? JIT_MEET
                                                              : JIT_HANDLED;
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
        return select_bits(code, insn);
    case UNIT_FLOAT:
        return select_float(insn);
    case UNIT_MATH:
        return select_math(insn);
    case UNIT_HALF:
        return select_half(code, insn);
    case UNIT_CMP:
        return select_compare(insn);
    case UNIT_CVT:
        return select_convert(code, insn);
    case UNIT_MOVE:
        return select_move(request, code, insn, uniform);
    case UNIT_MEM:
        return select_memory(code, insn, uniform);
    case UNIT_ATOM:
        return select_atomic(code, insn);
    default:
        return JIT_HANDLED;
    }
}
