/* SPDX-License-Identifier: Apache-2.0 */
/* wmma: fragments of matrices loaded, multiplied and stored. Their layout is that of mma.sync. */
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/fp.h"
#include "ptx/matrix/matrix.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

typedef bh__matrix_place place_function(unsigned size, unsigned type, unsigned lane, unsigned word,
                                        unsigned part);

typedef struct access { /* of wmma.load and wmma.store */
    const int32_t *rows;
    place_function *place;
    uint16_t size; /* first argument of `place` */
    uint16_t stride;
    uint8_t words, unique; /* registers; from `unique` on they repeat the first ones */
    uint8_t type, parts, bytes;
    bool row_major, store;
    bh__ptx_space space;
} access;

/* The rows of all shapes: m, n, k. */
static const uint16_t shapes[][3] = {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}, {16, 16, 8},
                                     {8, 8, 4},    {8, 8, 32},  {8, 8, 128}};
enum { SHAPE_16, SHAPE_32_8, SHAPE_8_32, SHAPE_TENSOR, SHAPE_DOUBLE, SHAPE_NIBBLE, SHAPE_BIT };

static int shape_of(const bh__ptx_insn *insn) {
    for (int n = 0; n <= SHAPE_BIT; n++) {
        if (memcmp(insn->shape, shapes[n], sizeof shapes[n]) == 0) {
            return n;
        }
    }
    return -1;
}

static bool multiplies(int shape, unsigned type) {
    switch (shape) {
    case SHAPE_TENSOR:
        return type == T_TF32;
    case SHAPE_DOUBLE:
        return type == T_F64;
    case SHAPE_NIBBLE:
        return type == T_S4 || type == T_U4;
    case SHAPE_BIT:
        return type == T_B1;
    default:
        return type == T_F16 || type == T_BF16 || type == T_S8 || type == T_U8;
    }
}

static bool accumulates(int shape, unsigned type) {
    switch (shape) {
    case SHAPE_TENSOR:
        return type == T_F32;
    case SHAPE_DOUBLE:
        return type == T_F64;
    case SHAPE_NIBBLE:
    case SHAPE_BIT:
        return type == T_S32;
    default:
        return type == T_F16 || type == T_F32 || type == T_S32;
    }
}

/* Fragments of A and B in f16 have eight registers in all shapes. */
static unsigned factor_registers(unsigned type, unsigned cells) {
    return type == T_F16 ? 8 : bh__matrix_registers(type, cells);
}

/* NULL: a fault, or, with checks, an element to leave out. */
static uint8_t *reach(bh__ptx_exec *x, const access *a, unsigned lane, uint64_t address) {
    if (x->check != NULL) {
        return bh__check_access_lane(x, lane, a->space, address, a->bytes,
                                     a->store ? ACCESS_WRITE : 0);
    }
    bool near = a->space != SPACE_SHARED && address >= x->range_base && x->range_size >= a->bytes &&
                address - x->range_base <= x->range_size - a->bytes &&
                (x->range_writable || !a->store) && address % a->bytes == 0;
    return near ? (uint8_t *)(uintptr_t)address
                : bh__ptx_resolve_lane(x, lane, a->space, address, a->bytes, a->bytes, a->store);
}

/* Bytes from the matrix's address to an element, or to a word of elements smaller than a byte. */
static uint64_t offset_of(const access *a, unsigned lane, unsigned word, unsigned part,
                          uint64_t stride) {
    bh__matrix_place p = a->place(a->size, a->type, lane, word, part);
    unsigned unit = a->type == T_B1 ? 32 : 1; /* bits are counted in words */
    uint64_t element = a->row_major ? p.row * stride + (uint64_t)p.column * unit
                                    : p.column * stride + (uint64_t)p.row * unit;
    return element * (a->type == T_B1 ? 1 : bh__matrix_bits(a->type)) / 8;
}

static uint64_t stride_of(const bh__ptx_exec *x, const bh__ptx_code *i, const access *a,
                          unsigned lane) {
    return i->b == NO_ROW ? a->stride : ((const bh__u32 *)bh__row(x, i->b))[lane];
}

static bool load_word(bh__ptx_exec *x, const bh__ptx_code *i, const access *a, unsigned lane,
                      unsigned word, uint64_t *out) {
    uint64_t base = bh__ptx_address_at(x, i, i->a, i->imm, lane), stride = stride_of(x, i, a, lane);
    *out = 0;
    for (unsigned n = 0; n < a->parts; n++) {
        uint64_t element = 0;
        const uint8_t *p = reach(x, a, lane, base + offset_of(a, lane, word, n, stride));
        if (p == NULL && x->check == NULL) {
            return false;
        }
        if (p != NULL) {
            memcpy(&element, p, a->bytes);
        }
        *out |= element << 8 * a->bytes * n % 64;
    }
    return true;
}

HANDLER(load_fragment) {
    const access *a = i->extra;
    uint64_t words[8][LANES];
    if (!bh__matrix_whole_warp(x, mask)) {
        return false;
    }
    for (unsigned l = 0; l < LANES; l++) {
        for (unsigned w = 0; w < a->unique; w++) {
            if (!load_word(x, i, a, l, w, &words[w][l])) {
                return false;
            }
        }
    }
    for (unsigned w = 0; w < a->words; w++) {
        void *row = bh__row(x, a->rows[w]);
        for (unsigned l = 0; l < LANES; l++) {
            uint64_t word = words[w % a->unique][l];
            if (a->type == T_F64) {
                ((bh__u64 *)row)[l] = word;
            } else {
                ((bh__u32 *)row)[l] = (uint32_t)word;
            }
        }
    }
    return true;
}

static bool store_word(bh__ptx_exec *x, const bh__ptx_code *i, const access *a, unsigned lane,
                       unsigned word) {
    uint64_t base = bh__ptx_address_at(x, i, i->a, i->imm, lane), stride = stride_of(x, i, a, lane);
    const void *row = bh__row(x, a->rows[word]);
    uint64_t bits = a->type == T_F64 ? ((const bh__u64 *)row)[lane] : ((const bh__u32 *)row)[lane];
    for (unsigned n = 0; n < a->parts; n++) {
        uint8_t *p = reach(x, a, lane, base + offset_of(a, lane, word, n, stride));
        if (p == NULL && x->check == NULL) {
            return false;
        }
        uint64_t element = bits >> 8 * a->bytes * n % 64;
        if (p != NULL) {
            memcpy(p, &element, a->bytes);
        }
    }
    return true;
}

HANDLER(store_fragment) {
    const access *a = i->extra;
    if (!bh__matrix_whole_warp(x, mask)) {
        return false;
    }
    for (unsigned l = 0; l < LANES; l++) {
        for (unsigned w = 0; w < a->words; w++) {
            if (!store_word(x, i, a, l, w)) {
                return false;
            }
        }
    }
    return true;
}

HANDLER(multiply_fragments) {
    const bh__ptx_matrix *f = i->extra;
    bh__matrix_left a;
    bh__matrix_right b;
    bh__matrix_tile c, d[4];
    unsigned tiles = f->n / MATRIX_COLUMNS;
    if (!bh__matrix_whole_warp(x, mask)) {
        return false;
    }
    bh__matrix_get_left(x, f, &a);
    for (unsigned n = 0; n < tiles; n++) {
        bh__matrix_get_right(x, f, n, &b);
        bh__matrix_get_tile(x, f, n, &c);
        bh__matrix_multiply(f, &a, &b, &c, &d[n]);
    }
    for (unsigned n = 0; n < tiles; n++) { /* D may be one of the others */
        bh__matrix_set_tile(x, f, n, &d[n]);
    }
    return true;
}

static bool no_modifiers(const bh__ptx_insn *insn, bool moves) {
    bool other = moves ? (insn->mods & ~((bh__ptx_mods)1 << M_SYNC | (bh__ptx_mods)1 << M_ALIGNED |
                                         (bh__ptx_mods)1 << M_GLOBAL | (bh__ptx_mods)1 << M_SHARED))
                       : HAS(insn, GLOBAL) || HAS(insn, SHARED);
    return !other;
}

static bool bad_modifiers(bh__ptx_lowering *low, const char *what) {
    return bh__ptx_lower_fail(low, BH_E_LOAD, "write it as the manual of PTX has it",
                              "wmma with %s", what);
}

/* Which matrix it is, in the order A, B, C; the layout and the element type must fit it. */
static bool set_matrix(bh__ptx_lowering *low, int shape, access *a) {
    const bh__ptx_insn *insn = low->insn;
    const uint16_t *size = shapes[shape];
    bool left = HAS(insn, A), right = HAS(insn, B);
    bool sum = a->store ? HAS(insn, D) : HAS(insn, C);
    if (left + right + sum != 1 || (a->store && !sum) || HAS(insn, D) != a->store) {
        return bad_modifiers(low, "another matrix than load.a, load.b, load.c or store.d");
    }
    if (insn->layout[0] == 0 || insn->layout[1] != 0) {
        return bad_modifiers(low, "more or less than one of .row and .col");
    }
    if (insn->type_count != 1 || !(sum ? accumulates : multiplies)(shape, insn->types[0])) {
        return bh__matrix_no_form(low);
    }
    unsigned rows = right ? size[2] : size[0], columns = left ? size[2] : size[1];
    unsigned cells = rows * columns / (a->type == T_B1 ? 32 : 1), bits = bh__matrix_bits(a->type);
    a->row_major = insn->layout[0] == 'r';
    a->place = left ? bh__matrix_place_a : right ? bh__matrix_place_b : bh__matrix_place_c;
    a->size = (uint16_t)(right ? size[2] / (a->type == T_B1 ? 32 : 1) : size[0]);
    a->stride = (uint16_t)(a->row_major ? columns : rows);
    a->unique = (uint8_t)bh__matrix_registers(a->type, cells);
    a->words = (uint8_t)(sum ? a->unique : factor_registers(a->type, cells));
    a->bytes = (uint8_t)(bits < 8 ? 4 : bits / 8);
    a->parts = (uint8_t)(bits < 8 || bits >= 32 ? 1 : 32 / bits);
    if (bits < 8 || a->type == T_B1) {
        if (a->row_major != left) {
            return bad_modifiers(low, "small elements other than A in .row and B in .col");
        }
    }
    return true;
}

static bool lower_stride(bh__ptx_lowering *low, bh__ptx_code *code) {
    const bh__ptx_operand *o = &low->insn->operands[2];
    bool word = o->kind == OPERAND_REG && bh__ptx_bytes(low->function->regs[o->reg].type) == 4 &&
                bh__ptx_class(low->function->regs[o->reg].type) != 'F';
    if (!word && o->kind != OPERAND_INT) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give a 32-bit integer",
                                  "operand 3, the stride, is not a 32-bit integer");
    }
    code->b = bh__ptx_row_in(low, o, T_B32);
    return true;
}

static bool lower_access(bh__ptx_lowering *low, int shape) {
    const bh__ptx_insn *insn = low->insn;
    bool store = HAS(insn, STORE);
    access *a = bh__arena_alloc(&low->module->arena, 1, sizeof *a);
    if (a == NULL) {
        return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory",
                                  "no memory for a matrix instruction");
    }
    *a = (access){.store = store, .type = insn->types[0], .space = bh__ptx_insn_space(insn)};
    bh__ptx_code code = {.run = store ? store_fragment : load_fragment, .extra = a, .b = NO_ROW};
    if (!no_modifiers(insn, true)) {
        return bad_modifiers(low, "an operation, where it loads or stores");
    }
    if (!set_matrix(low, shape, a) || !bh__matrix_operands(low, insn->operand_count == 3 ? 3 : 2) ||
        !bh__matrix_address(low, store ? 0 : 1, &code) ||
        (insn->operand_count == 3 && !lower_stride(low, &code))) {
        return false;
    }
    a->rows = bh__matrix_rows(low, store ? 1 : 0, a->words, a->type, !store);
    return a->rows != NULL && bh__matrix_emit(low, &code, NULL);
}

static bool product_fits(const bh__ptx_insn *insn, int shape, const bh__ptx_matrix *f) {
    bool half = insn->type_count == 2, floats = bh__ptx_class(f->a) == 'F';
    if (!(half || insn->type_count == 4) || (f->a == T_F16) != half || f->a != f->b ||
        !multiplies(shape, f->a) || !accumulates(shape, f->c) || !accumulates(shape, f->d)) {
        return false;
    }
    if (!half && f->c != f->d) {
        return false;
    }
    return floats ? f->d != T_S32 && f->c != T_S32 && (half || f->d != T_F16) : f->d == T_S32;
}

static bool operation_fits(bh__ptx_lowering *low, const bh__ptx_matrix *f) {
    const bh__ptx_insn *insn = low->insn;
    bool small = f->a == T_S4 || f->a == T_U4 || f->a == T_B1;
    bool bits = HAS(insn, XOR) != HAS(insn, AND) && HAS(insn, POPC);
    bool rounds = HAS(insn, RN) || HAS(insn, RZ) || HAS(insn, RM) || HAS(insn, RP);
    if (insn->layout[1] == 0 || (small && (insn->layout[0] != 'r' || insn->layout[1] != 'c'))) {
        return bad_modifiers(low, small ? "small elements other than in .row.col"
                                        : "less than two layouts");
    }
    if (f->a == T_B1 ? !bits : HAS(insn, XOR) || HAS(insn, AND) || HAS(insn, POPC)) {
        return bad_modifiers(low, "an operation that does not fit the type of A");
    }
    if (HAS(insn, SATFINITE) && (f->d != T_S32 || f->a == T_B1)) {
        return bad_modifiers(low, ".satfinite, which only products of integers have");
    }
    if (rounds && f->d != T_F64) {
        return bad_modifiers(low, "a rounding mode, which only products of .f64 have");
    }
    return no_modifiers(insn, false) || bad_modifiers(low, "a state space, where it multiplies");
}

static bool lower_product(bh__ptx_lowering *low, int shape) {
    const bh__ptx_insn *insn = low->insn;
    bool half = insn->type_count == 2;
    bh__ptx_matrix f = {.m = shapes[shape][0],
                        .n = shapes[shape][1],
                        .k = shapes[shape][2],
                        .d = insn->types[0],
                        .a = half ? T_F16 : insn->types[1],
                        .b = half ? T_F16 : insn->types[2],
                        .c = insn->types[half ? 1 : 3],
                        .fraction = 25,
                        .kept = 23,
                        .exclusive = HAS(insn, XOR),
                        .saturate = HAS(insn, SATFINITE),
                        .round = (uint8_t)bh__round_of(insn)};
    if (!product_fits(insn, shape, &f)) {
        return bh__matrix_no_form(low);
    }
    f.k = f.a == T_B1 ? f.k / 32 : f.k;
    f.stored = f.k;
    f.group = (uint8_t)f.k;
    if (!operation_fits(low, &f) || !bh__matrix_operands(low, 4)) {
        return false;
    }
    unsigned sums = (unsigned)f.m * f.n;
    f.rd = bh__matrix_rows(low, 0, bh__matrix_registers(f.d, sums), f.d, true);
    f.ra = f.rd == NULL
               ? NULL
               : bh__matrix_rows(low, 1, factor_registers(f.a, (unsigned)f.m * f.k), f.a, false);
    f.rb = f.ra == NULL
               ? NULL
               : bh__matrix_rows(low, 2, factor_registers(f.b, (unsigned)f.n * f.k), f.b, false);
    f.rc =
        f.rb == NULL ? NULL : bh__matrix_rows(low, 3, bh__matrix_registers(f.c, sums), f.c, false);
    bh__ptx_code code = {.run = multiply_fragments};
    return f.rc != NULL && bh__matrix_emit(low, &code, &f);
}

bool bh__ptx_lower_wmma(bh__ptx_lowering *low) {
    int shape = shape_of(low->insn);
    if (shape < 0) {
        return bh__matrix_no_form(low);
    }
    if (HAS(low->insn, MULTIPLY) && !HAS(low->insn, LOAD) && !HAS(low->insn, STORE)) {
        return lower_product(low, shape);
    }
    if (HAS(low->insn, LOAD) != HAS(low->insn, STORE)) {
        return lower_access(low, shape);
    }
    return bad_modifiers(low, "other than one of .load, .store and .mma");
}
