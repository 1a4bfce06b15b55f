/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix instructions when a module is loaded: checks of operands that several of them share. */
#include <stdio.h>
#include <string.h>

#include "ptx/matrix/matrix.h"

bool bh__matrix_collective(bh__ptx_lowering *low) {
    bool sync = HAS(low->insn, SYNC);
    /* NVIDIA's assembler does without .aligned for wgmma alone. */
    if (sync && (HAS(low->insn, ALIGNED) || low->insn->op == OP_WGMMA)) {
        return true;
    }
    return bh__ptx_lower_fail(low, BH_E_LOAD, "write .sync.aligned", "%s without .%s",
                              bh__ptx_op_table[low->insn->op].mnemonic, sync ? "aligned" : "sync");
}

bool bh__matrix_operands(bh__ptx_lowering *low, unsigned wanted) {
    return low->insn->operand_count == wanted ||
           bh__ptx_lower_fail(low, BH_E_LOAD, "give as many operands as the instruction takes",
                              "%u operands where %u are needed", (unsigned)low->insn->operand_count,
                              wanted);
}

/* "m16n8k16.f32.f16.f16.f32", as far as it is given */
static void name_form(const bh__ptx_insn *insn, char out[64]) {
    size_t at = 0;
    out[0] = 0;
    for (int n = 0; n < 3 && insn->shape[n] != 0; n++) {
        at += (size_t)snprintf(out + at, 64 - at, "%c%u", "mnk"[n], (unsigned)insn -> shape[n]);
    }
    for (int n = 0; n < insn->type_count && at < 50; n++) {
        const char *name = bh__ptx_type_table[insn->types[n]].name;
        at += (size_t)snprintf(out + at, 64 - at, "%s%s", at == 0 ? "" : ".", name);
    }
}

bool bh__matrix_no_form(bh__ptx_lowering *low) {
    char form[64];
    name_form(low->insn, form);
    return bh__ptx_lower_fail(low, BH_E_UNSUPPORTED,
                              "use a shape and types that PTX defines together up to sm_90a",
                              "%s has no form %s", bh__ptx_op_table[low->insn->op].mnemonic, form);
}

/* Which registers may hold elements of a type, as NVIDIA's assembler sees it. */
static bool holds(bh__ptx_type have, unsigned type) {
    char class = bh__ptx_class(have);
    if (bh__ptx_bytes(have) != (type == T_F64 ? 8u : 4u)) {
        return false;
    }
    switch (type) {
    case T_F16:
        return class == 'B' || have == T_F16X2;
    case T_BF16:
    case T_TF32:
        return class == 'B';
    case T_F32:
        return class == 'B' || have == T_F32;
    case T_S32:
        return class != 'F';
    default:
        return true;
    }
}

static bool element_fits(bh__ptx_lowering *low, unsigned operand, const bh__ptx_operand *o,
                         unsigned type, bool dest) {
    bool accumulator = operand == 3 && (low->insn->op == OP_MMA || low->insn->op == OP_WMMA);
    if (dest && o->kind == OPERAND_SINK && low->insn->op != OP_WGMMA) { /* which reads it */
        return true;
    }
    if (!dest && accumulator &&
        ((o->kind == OPERAND_FLOAT && (type == T_F32 || type == T_F64)) ||
         (o->kind == OPERAND_INT && type == T_S32))) {
        return true;
    }
    if (o->kind != OPERAND_REG || o->negated) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "list registers",
                                  "operand %u lists something that is not a register", operand + 1);
    }
    bh__ptx_type have = low->function->regs[o->reg].type;
    return holds(have, type) ||
           bh__ptx_lower_fail(
               low, BH_E_LOAD,
               "use .b32 registers, or .f32, .s32 and .f64 for elements of that type",
               "operand %u has a .%s register where elements of .%s are needed", operand + 1,
               bh__ptx_type_table[have].name, bh__ptx_type_table[type].name);
}

const int32_t *bh__matrix_rows(bh__ptx_lowering *low, unsigned operand, unsigned count,
                               unsigned type, bool dest) {
    const bh__ptx_operand *o = &low->insn->operands[operand];
    bh__ptx_type word = type == T_F64 ? T_B64 : T_B32;
    if (o->kind != OPERAND_VECTOR || o->count != count) {
        bh__ptx_lower_fail(low, BH_E_LOAD, "list as many registers in braces as the fragment has",
                           "operand %u has %u registers where %u are needed for .%s of this shape",
                           operand + 1, o->kind == OPERAND_VECTOR ? (unsigned)o->count : 1, count,
                           bh__ptx_type_table[type].name);
        return NULL;
    }
    int32_t *rows = bh__arena_alloc(&low->module->arena, count, sizeof *rows);
    if (rows == NULL) {
        bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory", "no memory for a vector");
        return NULL;
    }
    for (unsigned n = 0; n < count; n++) {
        const bh__ptx_operand *e = &o->elements[n];
        if (!element_fits(low, operand, e, type, dest)) {
            return NULL;
        }
        bh__ptx_type as = e->kind == OPERAND_FLOAT ? (bh__ptx_type)type : word;
        rows[n] = dest ? bh__ptx_row_out(low, e, word) : bh__ptx_row_in(low, e, as);
    }
    return low->status == BH_OK ? rows : NULL;
}

bool bh__matrix_address(bh__ptx_lowering *low, unsigned operand, bh__ptx_code *code) {
    const bh__ptx_operand *o = &low->insn->operands[operand];
    bh__ptx_space space = bh__ptx_insn_space(low->insn);
    if (o->kind != OPERAND_MEMORY) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "put the address in brackets",
                                  "operand %u is not an address", operand + 1);
    }
    if (o->symbol != NULL && o->symbol->var->space != space &&
        !(space == SPACE_GENERIC && o->symbol->var->space == SPACE_GLOBAL)) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "name the space that the variable is in",
                                  "%s is not in the state space of the instruction",
                                  o->symbol->name);
    }
    if (o->has_reg) {
        bh__ptx_type type = low->function->regs[o->reg].type;
        unsigned bytes = bh__ptx_bytes(type);
        if (bh__ptx_class(type) == 'F' || !(bytes == 8 || (bytes == 4 && space == SPACE_SHARED))) {
            return bh__ptx_lower_fail(low, BH_E_LOAD, "hold addresses in 64-bit integer registers",
                                      "the address is in a .%s register",
                                      bh__ptx_type_table[type].name);
        }
    }
    return bh__ptx_lower_address(low, o, code);
}

/* All lanes execute the instruction together. */
bool bh__matrix_emit(bh__ptx_lowering *low, bh__ptx_code *code, const bh__ptx_matrix *f) {
    if (f != NULL) {
        bh__ptx_matrix *copy = bh__arena_alloc(&low->module->arena, 1, sizeof *copy);
        if (copy == NULL) {
            return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory",
                                      "no memory for a matrix instruction");
        }
        memcpy(copy, f, sizeof *copy);
        code->extra = copy;
    }
    code->kind = CODE_SYNC;
    code->e = bh__ptx_constant(low, FULL_MASK, 4);
    return low->status == BH_OK && bh__ptx_emit(low, code, true);
}

bool bh__matrix_whole_warp(bh__ptx_exec *x, uint32_t mask) {
    return mask == FULL_MASK ||
           bh__ptx_fault_other(x, BH__PTX_FAULT_TRAP, (unsigned)__builtin_ctz(mask),
                               "a matrix instruction needs all 32 lanes of a warp, and %u of them "
                               "(mask 0x%08x) execute it",
                               (unsigned)__builtin_popcount(mask), (unsigned)mask);
}

bool bh__ptx_lower_matrix(bh__ptx_lowering *low) {
    if (!bh__matrix_collective(low)) {
        return false;
    }
    switch (low->insn->op) {
    case OP_MMA:
        return bh__ptx_lower_mma(low);
    case OP_WMMA:
        return bh__ptx_lower_wmma(low);
    case OP_WGMMA:
        return bh__ptx_lower_wgmma(low);
    default:
        return bh__ptx_lower_matrix_move(low);
    }
}
