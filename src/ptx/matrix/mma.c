/* SPDX-License-Identifier: Apache-2.0 */
/* mma.sync: products of matrices that the registers of a warp hold, A dense or sparse. */
#include "ptx/fp.h"
#include "ptx/matrix/matrix.h"

/* The shapes that each kind of types has; n is 8. */
enum {
    KIND_HALF,
    KIND_BRAIN,
    KIND_TENSOR,
    KIND_DOUBLE,
    KIND_EIGHT,
    KIND_BYTE,
    KIND_NIBBLE,
    KIND_BIT
};

static const struct {
    uint16_t m, k;
    uint8_t kind;
    bool sparse;
} forms[] = {
    {8, 4, KIND_HALF, false},     {16, 8, KIND_HALF, false},    {16, 16, KIND_HALF, false},
    {16, 8, KIND_BRAIN, false},   {16, 16, KIND_BRAIN, false},  {16, 4, KIND_TENSOR, false},
    {16, 8, KIND_TENSOR, false},  {8, 4, KIND_DOUBLE, false},   {16, 4, KIND_DOUBLE, false},
    {16, 8, KIND_DOUBLE, false},  {16, 16, KIND_DOUBLE, false}, {16, 16, KIND_EIGHT, false},
    {16, 32, KIND_EIGHT, false},  {8, 16, KIND_BYTE, false},    {16, 16, KIND_BYTE, false},
    {16, 32, KIND_BYTE, false},   {8, 32, KIND_NIBBLE, false},  {16, 32, KIND_NIBBLE, false},
    {16, 64, KIND_NIBBLE, false}, {8, 128, KIND_BIT, false},    {16, 128, KIND_BIT, false},
    {16, 256, KIND_BIT, false},   {16, 16, KIND_HALF, true},    {16, 32, KIND_HALF, true},
    {16, 16, KIND_BRAIN, true},   {16, 32, KIND_BRAIN, true},   {16, 8, KIND_TENSOR, true},
    {16, 16, KIND_TENSOR, true},  {16, 64, KIND_EIGHT, true},   {16, 32, KIND_BYTE, true},
    {16, 64, KIND_BYTE, true},    {16, 64, KIND_NIBBLE, true},  {16, 128, KIND_NIBBLE, true},
};

static int kind_of(unsigned type) {
    switch (type) {
    case T_F16:
        return KIND_HALF;
    case T_BF16:
        return KIND_BRAIN;
    case T_TF32:
        return KIND_TENSOR;
    case T_F64:
        return KIND_DOUBLE;
    case T_E4M3:
    case T_E5M2:
        return KIND_EIGHT;
    case T_S8:
    case T_U8:
        return KIND_BYTE;
    case T_S4:
    case T_U4:
        return KIND_NIBBLE;
    case T_B1:
        return KIND_BIT;
    default:
        return -1;
    }
}

static bool is_quads(const bh__ptx_matrix *f) {
    return f->m == 8 && f->k == 4 && f->a == T_F16;
}

static bool accumulators_fit(const bh__ptx_matrix *f, int kind) {
    switch (kind) {
    case KIND_HALF:
        return (f->c == f->d || (is_quads(f) && f->d == T_F32)) &&
               (f->c == T_F16 || f->c == T_F32) && (f->d == T_F16 || f->d == T_F32);
    case KIND_EIGHT:
        return f->c == f->d && (f->c == T_F32 || (f->c == T_F16 && !f->sparse));
    case KIND_BRAIN:
    case KIND_TENSOR:
        return f->c == T_F32 && f->d == T_F32;
    case KIND_DOUBLE:
        return f->c == T_F64 && f->d == T_F64;
    default:
        return f->c == T_S32 && f->d == T_S32;
    }
}

static bool has_form(const bh__ptx_insn *insn, const bh__ptx_matrix *f) {
    int kind = kind_of(f->a);
    if (insn->type_count != 4 || insn->shape[1] != 8 || kind < 0 || kind != kind_of(f->b) ||
        !accumulators_fit(f, kind)) {
        return false;
    }
    for (size_t n = 0; n < sizeof forms / sizeof *forms; n++) {
        if (forms[n].m == f->m && forms[n].k == f->k && forms[n].kind == kind &&
            forms[n].sparse == f->sparse) {
            return true;
        }
    }
    return false;
}

static bool modifiers_fit(bh__ptx_lowering *low, const bh__ptx_matrix *f) {
    const bh__ptx_insn *insn = low->insn;
    bool any_layout = is_quads(f), given = insn->layout[1] != 0;
    bool integers = f->d == T_S32 && f->a != T_B1;
    if (!given || (!any_layout && (insn->layout[0] != 'r' || insn->layout[1] != 'c'))) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "write .row.col",
                                  given ? "this shape has the layouts .row.col only"
                                        : "mma without the layouts of A and B");
    }
    if (HAS(insn, SATFINITE) && !integers) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "remove .satfinite",
                                  "only products of integers have .satfinite");
    }
    bool rounds = (insn->mods & ((bh__ptx_mods)1 << M_RN | (bh__ptx_mods)1 << M_RZ |
                                 (bh__ptx_mods)1 << M_RM | (bh__ptx_mods)1 << M_RP)) != 0;
    if (rounds && f->d != T_F64) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "remove the rounding mode",
                                  "only products of .f64 have a rounding mode");
    }
    bool bits = HAS(insn, XOR) != HAS(insn, AND) && HAS(insn, POPC);
    if (f->a == T_B1 ? !bits : HAS(insn, XOR) || HAS(insn, AND) || HAS(insn, POPC)) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "write .xor.popc or .and.popc with .b1 only",
                                  "the operation does not fit the type of A");
    }
    return true;
}

/* What the sums of this instruction keep on Hopper, see sum.c. */
static void set_precision(bh__ptx_matrix *f) {
    f->fraction = 25;
    f->kept = 23;
    f->group = (uint8_t)f->stored;
    if (kind_of(f->a) == KIND_EIGHT) { /* computed as products of f16 */
        f->group = (uint8_t)(f->stored / 2);
        f->pairs = true;
        f->apart = true;
    } else if (is_quads(f)) { /* computed without tensor cores */
        f->group = 1;
        f->apart = true;
    }
}

static bool lower_metadata(bh__ptx_lowering *low, bh__ptx_matrix *f) {
    const bh__ptx_operand *o = low->insn->operands;
    unsigned selectors = bh__matrix_selectors(f);
    if (o[4].kind != OPERAND_REG || bh__ptx_bytes(low->function->regs[o[4].reg].type) != 4) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give a .b32 register",
                                  "operand 5, the metadata, is not a 32-bit register");
    }
    if (o[5].kind != OPERAND_INT || o[5].imm >= selectors) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give a constant in that range",
                                  "operand 6, the selector, is not a constant from 0 to %u",
                                  selectors - 1);
    }
    f->metadata = bh__ptx_row_in(low, &o[4], T_B32);
    f->selector = (uint8_t)o[5].imm;
    return true;
}

static bool run_mma(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const bh__ptx_matrix *f = i->extra;
    bh__matrix_left a;
    bh__matrix_right b;
    bh__matrix_tile c, d;
    if (!bh__matrix_whole_warp(x, mask)) {
        return false;
    }
    bh__matrix_get_left(x, f, &a);
    bh__matrix_get_right(x, f, 0, &b);
    bh__matrix_get_tile(x, f, 0, &c);
    bh__matrix_multiply(f, &a, &b, &c, &d);
    bh__matrix_set_tile(x, f, 0, &d);
    return true;
}

static bool lower_rows(bh__ptx_lowering *low, bh__ptx_matrix *f) {
    unsigned m = is_quads(f) ? 32 : f->m; /* four products at once */
    f->rd = bh__matrix_rows(low, 0, bh__matrix_registers(f->d, m * f->n), f->d, true);
    if (f->rd == NULL) {
        return false;
    }
    f->ra = bh__matrix_rows(low, 1, bh__matrix_registers(f->a, m * f->stored), f->a, false);
    if (f->ra == NULL) {
        return false;
    }
    unsigned n = is_quads(f) ? 32 : f->n;
    f->rb = bh__matrix_rows(low, 2, bh__matrix_registers(f->b, n * f->k), f->b, false);
    if (f->rb == NULL) {
        return false;
    }
    f->rc = bh__matrix_rows(low, 3, bh__matrix_registers(f->c, m * f->n), f->c, false);
    return f->rc != NULL;
}

bool bh__ptx_lower_mma(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bool sparse = HAS(insn, SPARSE) || HAS(insn, ORDERED);
    bh__ptx_matrix f = {.m = insn->shape[0],
                        .n = insn->shape[1],
                        .k = insn->shape[2],
                        .d = insn->types[0],
                        .a = insn->types[1],
                        .b = insn->types[2],
                        .c = insn->types[3],
                        .sparse = sparse,
                        .exclusive = HAS(insn, XOR),
                        .saturate = HAS(insn, SATFINITE),
                        .round = (uint8_t)bh__round_of(insn),
                        .layout = {insn->layout[0], insn->layout[1]}};
    if (!has_form(insn, &f)) {
        return bh__matrix_no_form(low);
    }
    f.k = f.a == T_B1 ? f.k / 32 : f.k;
    f.stored = sparse ? f.k / 2 : f.k;
    set_precision(&f);
    if (!modifiers_fit(low, &f) || !bh__matrix_operands(low, sparse ? 6 : 4) ||
        !lower_rows(low, &f) || (sparse && !lower_metadata(low, &f))) {
        return false;
    }
    bh__ptx_code code = {.run = is_quads(&f) ? bh__ptx_run_quads : run_mma};
    return bh__matrix_emit(low, &code, &f);
}
