/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma: products by the four warps of a warpgroup, with B and perhaps A in shared memory. Each
 * warp computes its 16 of the 64 rows at once when it comes to the instruction. PTX allows that: a
 * product may be complete at any time before it is waited for.
 */
#include <string.h>

#include "ptx/matrix/descriptor.h"
#include "ptx/matrix/matrix.h"

#define GROUP_WARPS 4
#define WARP_ROWS   16

typedef struct product {
    bh__ptx_matrix f;
    int32_t a, b;  /* rows of the descriptors; a is NO_ROW where registers hold A */
    int32_t scale; /* row of a predicate: whether D is added */
    bool negate_a, negate_b, across_a, across_b;
} product;

static void put(unsigned type, const uint8_t *chunk, unsigned n, bool negate, double *v,
                double *scale) {
    unsigned bits = bh__matrix_bits(type);
    uint32_t element = 0;
    memcpy(&element, chunk + n * bits / 8, bits / 8);
    bh__matrix_put(type, element, v, scale);
    *v = negate ? -*v : *v;
}

static unsigned in_chunk(unsigned type) {
    return 8 * CHUNK / bh__matrix_bits(type);
}

/* The warp's rows of A from shared memory. */
static bool read_left(bh__ptx_exec *x, const product *p, bh__matrix_left *a) {
    const bh__ptx_matrix *f = &p->f;
    bh__matrix_descriptor d =
        bh__matrix_descriptor_of(*(const bh__u64 *)bh__row(x, p->a), p->across_a);
    unsigned many = in_chunk(f->a), first = x->warp->index % GROUP_WARPS * WARP_ROWS;
    unsigned lines = d.across ? f->stored : WARP_ROWS;
    unsigned chunks = (d.across ? WARP_ROWS : f->stored) / many;
    for (unsigned line = 0; line < lines; line++) {
        for (unsigned c = 0; c < chunks; c++) {
            const uint8_t *chunk = d.across ? bh__matrix_chunk(x, &d, line, first / many + c)
                                            : bh__matrix_chunk(x, &d, first + line, c);
            if (chunk == NULL) {
                return false;
            }
            for (unsigned n = 0; n < many; n++) {
                unsigned at =
                    d.across ? (c * many + n) * f->stored + line : line * f->stored + c * many + n;
                put(f->a, chunk, n, p->negate_a, &a->v[at], &a->scale[at]);
            }
        }
    }
    bh__matrix_positions(x, f, a);
    return true;
}

static bool get_left(bh__ptx_exec *x, const product *p, bh__matrix_left *a) {
    if (p->a != NO_ROW) {
        return read_left(x, p, a);
    }
    bh__matrix_get_left(x, &p->f, a);
    for (unsigned n = 0; p->negate_a && n < (unsigned)p->f.m * p->f.stored; n++) {
        a->v[n] = -a->v[n];
    }
    return true;
}

/* Eight columns of B. Of 16-bit elements, a chunk across the columns is just as wide. */
static bool read_right(bh__ptx_exec *x, const product *p, const bh__matrix_descriptor *d,
                       unsigned tile, bh__matrix_right *b) {
    const bh__ptx_matrix *f = &p->f;
    unsigned many = in_chunk(f->b), chunks = d->across ? 1 : f->k / many;
    unsigned lines = d->across ? f->k : MATRIX_COLUMNS;
    for (unsigned line = 0; line < lines; line++) {
        for (unsigned c = 0; c < chunks; c++) {
            const uint8_t *chunk = d->across
                                       ? bh__matrix_chunk(x, d, line, tile)
                                       : bh__matrix_chunk(x, d, tile * MATRIX_COLUMNS + line, c);
            if (chunk == NULL) {
                return false;
            }
            for (unsigned n = 0; n < many; n++) {
                unsigned k = d->across ? line : c * many + n, column = d->across ? n : line;
                put(f->b, chunk, n, p->negate_b, &b->v[k][column], &b->scale[k][column]);
            }
        }
    }
    return true;
}

static bool whole_group(bh__ptx_exec *x, uint32_t mask) {
    uint32_t last = x->warp->index / GROUP_WARPS * GROUP_WARPS + GROUP_WARPS;
    return bh__matrix_whole_warp(x, mask) &&
           (last <= x->block->warp_count ||
            bh__ptx_fault_other(x, BH__PTX_FAULT_TRAP, 0,
                                "wgmma needs the four warps %u to %u, and the block has %u",
                                (unsigned)(last - GROUP_WARPS), (unsigned)(last - 1),
                                (unsigned)x->block->warp_count));
}

static bool run_product(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const product *p = i->extra;
    bh__matrix_left a;
    bh__matrix_right b;
    bh__matrix_tile c, d;
    if (!whole_group(x, mask) || !get_left(x, p, &a)) {
        return false;
    }
    bh__matrix_descriptor right =
        bh__matrix_descriptor_of(*(const bh__u64 *)bh__row(x, p->b), p->across_b);
    bool adds = *(const bh__u32 *)bh__row(x, p->scale) & 1;
    memset(&c, 0, sizeof c);
    for (unsigned n = 0; n < p->f.n / MATRIX_COLUMNS; n++) {
        if (!read_right(x, p, &right, n, &b)) {
            return false;
        }
        if (adds) {
            bh__matrix_get_tile(x, &p->f, n, &c);
        }
        bh__matrix_multiply(&p->f, &a, &b, &c, &d);
        bh__matrix_set_tile(x, &p->f, n, &d);
    }
    return true;
}

static bool types_fit(const bh__ptx_matrix *f) {
    switch (f->a) {
    case T_F16:
        return f->b == T_F16 && (f->d == T_F16 || f->d == T_F32);
    case T_BF16:
    case T_TF32:
        return f->b == f->a && f->d == T_F32;
    case T_E4M3:
    case T_E5M2:
        return (f->b == T_E4M3 || f->b == T_E5M2) && (f->d == T_F16 || f->d == T_F32);
    case T_S8:
    case T_U8:
        return (f->b == T_S8 || f->b == T_U8) && f->d == T_S32;
    case T_B1:
        return f->b == T_B1 && f->d == T_S32 && !f->sparse;
    default:
        return false;
    }
}

/* A row of A has 32 bytes. Products of integers have not all widths. */
static bool has_form(const bh__ptx_insn *insn, const bh__ptx_matrix *f) {
    unsigned n = insn->shape[1], k = insn->shape[2];
    bool widths = f->d != T_S32 || n <= 32 || n % 16 == 0;
    if (insn->shape[0] != 64 || insn->type_count != 3 || n < 8 || n > 256 || n % 8 != 0 ||
        !types_fit(f) || !widths) {
        return false;
    }
    unsigned bits = f->a == T_B1 ? 1 : bh__matrix_bits(f->a);
    return k * bits == (f->sparse ? 512 : 256);
}

static bool is_wide(bh__ptx_lowering *low, const bh__ptx_operand *o) {
    if (o->kind == OPERAND_INT) {
        return true;
    }
    bh__ptx_type type = o->kind == OPERAND_REG ? low->function->regs[o->reg].type : T_NONE;
    return bh__ptx_bytes(type) == 8 && bh__ptx_class(type) != 'F';
}

static bool lower_descriptor(bh__ptx_lowering *low, unsigned operand, int32_t *row) {
    const bh__ptx_operand *o = &low->insn->operands[operand];
    if (!is_wide(low, o)) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give a matrix descriptor in a .b64 register",
                                  "operand %u is not a 64-bit integer", operand + 1);
    }
    *row = bh__ptx_row_in(low, o, T_B64);
    return true;
}

static bool lower_scale(bh__ptx_lowering *low, unsigned operand, int32_t *row) {
    const bh__ptx_operand *o = &low->insn->operands[operand];
    bool predicate = o->kind == OPERAND_REG && low->function->regs[o->reg].type == T_PRED;
    if (!predicate && (o->kind != OPERAND_INT || o->imm > 1)) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give a predicate, 0 or 1",
                                  "operand %u, scale-d, is not a predicate", operand + 1);
    }
    *row = bh__ptx_row_in(low, o, T_PRED);
    return true;
}

/* A constant that has one of two values. */
static bool choice(bh__ptx_lowering *low, unsigned operand, int first, int second,
                   bool *is_second) {
    const bh__ptx_operand *o = &low->insn->operands[operand];
    bool other = o->imm == (uint64_t)(int64_t)second;
    if (o->kind != OPERAND_INT || (!other && o->imm != (uint64_t)(int64_t)first)) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give one of the two",
                                  "operand %u is not %d or %d", operand + 1, first, second);
    }
    *is_second = other;
    return true;
}

static bool lower_metadata(bh__ptx_lowering *low, bh__ptx_matrix *f) {
    const bh__ptx_operand *o = low->insn->operands;
    unsigned selectors = bh__matrix_selectors(f);
    if (o[3].kind != OPERAND_REG || bh__ptx_bytes(low->function->regs[o[3].reg].type) != 4) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give a .b32 register",
                                  "operand 4, the metadata, is not a 32-bit register");
    }
    if (o[4].kind != OPERAND_INT || o[4].imm >= selectors) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give a constant in that range",
                                  "operand 5, the selector, is not a constant from 0 to %u",
                                  selectors - 1);
    }
    f->metadata = bh__ptx_row_in(low, &o[3], T_B32);
    f->selector = (uint8_t)o[4].imm;
    return true;
}

/* After A, B and the metadata: scale-d, and for floats the signs, and of 16 bits what is major. */
static bool lower_options(bh__ptx_lowering *low, product *p, unsigned at) {
    bool floats = p->f.d != T_S32, halves = p->f.a == T_F16 || p->f.a == T_BF16;
    bool in_memory = p->a != NO_ROW;
    unsigned wanted = at + 1 + (floats ? 2 : 0) + (halves ? 1 + in_memory : 0);
    if (!bh__matrix_operands(low, wanted) || !lower_scale(low, at, &p->scale)) {
        return false;
    }
    if (floats &&
        (!choice(low, at + 1, 1, -1, &p->negate_a) || !choice(low, at + 2, 1, -1, &p->negate_b))) {
        return false;
    }
    return !halves || ((!in_memory || choice(low, at + 3, 0, 1, &p->across_a)) &&
                       choice(low, at + 3 + in_memory, 0, 1, &p->across_b));
}

static bool lower_left(bh__ptx_lowering *low, product *p) {
    bh__ptx_matrix *f = &p->f;
    p->a = NO_ROW;
    if (low->insn->operands[1].kind != OPERAND_VECTOR) {
        return lower_descriptor(low, 1, &p->a);
    }
    unsigned count = bh__matrix_registers(f->a, (unsigned)f->m * f->stored);
    f->ra = bh__matrix_rows(low, 1, count, f->a, false);
    return f->ra != NULL;
}

static bool operation_fits(bh__ptx_lowering *low, const bh__ptx_matrix *f) {
    const bh__ptx_insn *insn = low->insn;
    bool bits = HAS(insn, AND) && HAS(insn, POPC) && !HAS(insn, XOR);
    if (f->a == T_B1 ? !bits : HAS(insn, XOR) || HAS(insn, AND) || HAS(insn, POPC)) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "write .and.popc with .b1 only",
                                  "the operation does not fit the type of A");
    }
    if (HAS(insn, SATFINITE) && (f->d != T_S32 || f->a == T_B1)) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "remove .satfinite",
                                  "only products of integers have .satfinite");
    }
    return insn->layout[0] == 0 ||
           bh__ptx_lower_fail(low, BH_E_LOAD, "remove .row and .col",
                              "wgmma has operands, not modifiers, for the layouts");
}

/* What the sums keep on Hopper, see sum.c. */
static void set_precision(bh__ptx_matrix *f) {
    bool eight = f->a == T_E4M3 || f->a == T_E5M2;
    f->group = (uint8_t)f->stored;
    f->fraction = eight ? 13 : 25;
    f->kept = eight ? 13 : 23;
}

static bool lower_product(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    product *p = bh__arena_alloc(&low->module->arena, 1, sizeof *p);
    if (p == NULL) {
        return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory",
                                  "no memory for a matrix instruction");
    }
    memset(p, 0, sizeof *p);
    bh__ptx_matrix *f = &p->f;
    f->sparse = HAS(insn, SPARSE);
    f->saturate = HAS(insn, SATFINITE);
    f->c = f->d = insn->types[0];
    f->a = insn->types[1];
    f->b = insn->types[2];
    if (!has_form(insn, f)) {
        return bh__matrix_no_form(low);
    }
    f->m = WARP_ROWS;
    f->n = insn->shape[1];
    f->k = f->a == T_B1 ? insn->shape[2] / 32 : insn->shape[2];
    f->stored = f->sparse ? f->k / 2 : f->k;
    set_precision(f);
    if (insn->operand_count < 4) {
        return bh__matrix_operands(low, 4);
    }
    f->rd = f->rc =
        bh__matrix_rows(low, 0, bh__matrix_registers(f->d, (unsigned)f->m * f->n), f->d, true);
    if (f->rd == NULL || !operation_fits(low, f) || !lower_left(low, p) ||
        !lower_descriptor(low, 2, &p->b)) {
        return false;
    }
    if (f->sparse &&
        (insn->operand_count < 6 ? !bh__matrix_operands(low, 6) : !lower_metadata(low, f))) {
        return false;
    }
    bh__ptx_code code = {.run = run_product, .extra = p};
    return lower_options(low, p, f->sparse ? 5 : 3) && bh__matrix_emit(low, &code, NULL);
}

bool bh__ptx_lower_wgmma(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    int kinds =
        HAS(insn, MMA_ASYNC) + HAS(insn, FENCE) + HAS(insn, COMMIT_GROUP) + HAS(insn, WAIT_GROUP);
    if (kinds != 1) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "write one of them",
                                  "wgmma with %d of .mma_async, .fence, .commit_group, .wait_group",
                                  kinds);
    }
    if (HAS(insn, MMA_ASYNC)) {
        return lower_product(low);
    }
    /* Products are complete at once, so that there is nothing to wait for. */
    if (insn->type_count != 0 || insn->shape[0] != 0 || HAS(insn, SPARSE)) {
        return bh__matrix_no_form(low);
    }
    if (!bh__matrix_operands(low, HAS(insn, WAIT_GROUP) ? 1 : 0)) {
        return false;
    }
    return !HAS(insn, WAIT_GROUP) || insn->operands[0].kind == OPERAND_INT ||
           bh__ptx_lower_fail(low, BH_E_LOAD, "give a constant",
                              "operand 1, the number of groups, is not a constant");
}
