/* SPDX-License-Identifier: Apache-2.0 */
/* ldmatrix, stmatrix, movmatrix: matrices of 8*8 elements of 16 bits, between memory and lanes. */
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/matrix/matrix.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

typedef struct move { /* further data of the handlers */
    const int32_t *rows;
    unsigned count; /* of matrices */
    bool transposed;
    bh__ptx_space space;
} move;

typedef struct square {
    uint16_t at[8][8];
} square;

static void from_lanes(const bh__u32 *row, bool transposed, square *s) {
    for (unsigned l = 0; l < LANES; l++) {
        for (unsigned n = 0; n < 2; n++) {
            unsigned line = l / 4, at = l % 4 * 2 + n;
            s->at[transposed ? at : line][transposed ? line : at] = (uint16_t)(row[l] >> 16 * n);
        }
    }
}

static void to_lanes(const square *s, bool transposed, bh__u32 *row) {
    for (unsigned l = 0; l < LANES; l++) {
        unsigned line = l / 4, at = l % 4 * 2;
        row[l] = transposed ? s->at[at][line] | (uint32_t)s->at[at + 1][line] << 16
                            : s->at[line][at] | (uint32_t)s->at[line][at + 1] << 16;
    }
}

/* Lanes 8n to 8n+7 have the addresses of the rows of matrix n. */
static uint32_t address_lanes(const move *m) {
    return FULL_MASK >> (LANES - 8 * m->count);
}

/* *fine: the rows that are to be accessed; with checks, others are out of bounds. */
static bool locate(bh__ptx_exec *x, const bh__ptx_code *i, const move *m, bool write,
                   uint8_t *p[LANES], uint32_t *fine) {
    uint32_t mask = address_lanes(m);
    *fine = mask;
    if (x->check == NULL) {
        return bh__ptx_resolve(x, i, mask, m->space, i->a, i->imm, 16, write, p);
    }
    bh__check_access access = {
        .space = m->space, .bytes = 16, .flags = write ? ACCESS_WRITE : 0, .store = NULL};
    bh__check_addresses(x, i, mask, &access);
    *fine = bh__check_access_lanes(x, &access, mask);
    memcpy(p, access.at, sizeof access.at);
    return true;
}

HANDLER(load_matrix) {
    const move *m = i->extra;
    uint8_t *p[LANES];
    uint32_t fine;
    square s[4] = {0};
    if (!bh__matrix_whole_warp(x, mask) || !locate(x, i, m, false, p, &fine)) {
        return false;
    }
    FOR_LANES_IN_ORDER(fine) { /* all at once: a destination may be an address */
        memcpy(s[l / 8].at[l % 8], p[l], 16);
    }
    for (unsigned n = 0; n < m->count; n++) {
        to_lanes(&s[n], m->transposed, bh__row(x, m->rows[n]));
    }
    return true;
}

HANDLER(store_matrix) {
    const move *m = i->extra;
    uint8_t *p[LANES];
    uint32_t fine;
    if (!bh__matrix_whole_warp(x, mask) || !locate(x, i, m, true, p, &fine)) {
        return false;
    }
    for (unsigned n = 0; n < m->count; n++) {
        square s;
        from_lanes(bh__row(x, m->rows[n]), m->transposed, &s);
        for (unsigned line = 0; line < 8; line++) {
            if (fine >> (8 * n + line) & 1) {
                memcpy(p[8 * n + line], s.at[line], 16);
            }
        }
    }
    return true;
}

HANDLER(move_matrix) {
    square s;
    if (!bh__matrix_whole_warp(x, mask)) {
        return false;
    }
    from_lanes(bh__row(x, i->a), false, &s);
    to_lanes(&s, true, bh__row(x, i->d));
    return true;
}

static bool word_register(bh__ptx_lowering *low, unsigned operand) {
    const bh__ptx_operand *o = &low->insn->operands[operand];
    return (o->kind == OPERAND_REG && !o->negated &&
            bh__ptx_bytes(low->function->regs[o->reg].type) == 4) ||
           bh__ptx_lower_fail(low, BH_E_LOAD, "give a .b32 register",
                              "operand %u is not a 32-bit register", operand + 1);
}

static bool lower_move(bh__ptx_lowering *low) {
    const bh__ptx_operand *o = low->insn->operands;
    if (!HAS(low->insn, TRANS)) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "write .trans", "movmatrix without .trans");
    }
    if (!bh__matrix_operands(low, 2) || !word_register(low, 0) || !word_register(low, 1)) {
        return false;
    }
    bh__ptx_code code = {.run = move_matrix,
                         .d = bh__ptx_row_out(low, &o[0], T_B32),
                         .a = bh__ptx_row_in(low, &o[1], T_B32)};
    return bh__matrix_emit(low, &code, NULL);
}

bool bh__ptx_lower_matrix_move(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bool load = insn->op == OP_LDMATRIX;
    unsigned count = HAS(insn, X1) ? 1 : HAS(insn, X2) ? 2 : HAS(insn, X4) ? 4 : 0;
    if (insn->shape[0] != 8 || insn->shape[1] != 8 || insn->shape[2] != 0 ||
        insn->type_count != 1 || insn->types[0] != T_B16 || insn->layout[0] != 0) {
        return bh__matrix_no_form(low);
    }
    if (insn->op == OP_MOVMATRIX) {
        return lower_move(low);
    }
    if (count == 0) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "write .x1, .x2 or .x4",
                                  "%s without the number of matrices",
                                  bh__ptx_op_table[insn->op].mnemonic);
    }
    move *m = bh__arena_alloc(&low->module->arena, 1, sizeof *m);
    if (m == NULL) {
        return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory",
                                  "no memory for a matrix instruction");
    }
    bh__ptx_code code = {.run = load ? load_matrix : store_matrix, .extra = m};
    *m = (move){.count = count, .transposed = HAS(insn, TRANS), .space = bh__ptx_insn_space(insn)};
    if (!bh__matrix_operands(low, 2) || !bh__matrix_address(low, load ? 1 : 0, &code)) {
        return false;
    }
    m->rows = bh__matrix_rows(low, load ? 0 : 1, count, T_U8, load); /* any 32-bit registers */
    return m->rows != NULL && bh__matrix_emit(low, &code, NULL);
}
