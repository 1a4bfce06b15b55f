/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices in the registers of a warp: which lane holds which element, and as what number. */
#include <math.h>

#include "ptx/matrix/matrix.h"

#define ZERO_SCALE 0x1p-600 /* of zero: it aligns nothing, but with infinity it is infinite */

/*
 * The layouts of PTX for all shapes are one. Lanes are 8 groups of 4. A register of A holds
 * neighbours of a row, that of B of a column; registers go down the rows in steps of 8, then along
 * the columns. wmma leaves the layout open, so the same is used there.
 */
static unsigned parts_of(unsigned type) {
    unsigned bits = bh__matrix_bits(type);
    return bits > 32 ? 1 : 32 / bits;
}

bh__matrix_place bh__matrix_place_a(unsigned m, unsigned type, unsigned lane, unsigned word,
                                    unsigned part) {
    unsigned parts = parts_of(type), blocks = m / 8;
    return (bh__matrix_place){lane / 4 + 8 * (word % blocks),
                              (word / blocks * 4 + lane % 4) * parts + part};
}

bh__matrix_place bh__matrix_place_b(unsigned k, unsigned type, unsigned lane, unsigned word,
                                    unsigned part) {
    unsigned parts = parts_of(type), blocks = k / (4 * parts);
    return (bh__matrix_place){(word % blocks * 4 + lane % 4) * parts + part,
                              lane / 4 + 8 * (word / blocks)};
}

/* Of C and D every lane has pairs of neighbours in a row. */
bh__matrix_place bh__matrix_place_c(unsigned m, unsigned type, unsigned lane, unsigned word,
                                    unsigned part) {
    unsigned blocks = m / 8, pair = type == T_F16 ? word : word / 2;
    unsigned second = type == T_F16 ? part : word % 2;
    return (bh__matrix_place){lane / 4 + 8 * (pair % blocks),
                              8 * (pair / blocks) + 2 * (lane % 4) + second};
}

static double eight_bits(unsigned type, uint32_t bits) {
    uint32_t rest = bits & 0x7f;
    double v;
    if (type == T_E5M2) {
        return (double)bh__f16_to_float((uint16_t)(bits << 8));
    }
    if (rest == 0x7f) {
        return NAN;
    }
    v = (double)bh__f16_to_float((uint16_t)(rest << 7)) * 0x1p8; /* the bias is 7, not 15 */
    return bits & 0x80 ? -v : v;
}

static double number_of(unsigned type, uint64_t bits) {
    switch (type) {
    case T_F16:
        return (double)bh__f16_to_float((uint16_t)bits);
    case T_BF16:
        return (double)bh__bf16_to_float((uint16_t)bits);
    case T_TF32:
        return (double)bh__float_of_bits((uint32_t)bits & 0xffffe000u);
    case T_E4M3:
    case T_E5M2:
        return eight_bits(type, (uint32_t)bits & 0xff);
    case T_S8:
        return (int8_t)bits;
    case T_U8:
        return (uint8_t)bits;
    case T_S4:
        return (int8_t)((uint32_t)bits << 4) >> 4;
    case T_U4:
        return (double)(bits & 15);
    case T_F64:
        return bh__double_of_bits(bits);
    default:
        return (uint32_t)bits;
    }
}

/* A subnormal number has the exponent of the smallest normal one. */
static double scale_of(unsigned type, double v) {
    double smallest = type == T_F16 || type == T_E5M2 ? 0x1p-14
                      : type == T_E4M3                ? 0x1p-6
                                                      : 0x1p-126;
    double p = bh__double_of_bits(bh__bits_of_double(v) & UINT64_C(0x7ff0000000000000));
    return v == 0 ? ZERO_SCALE : p < smallest ? smallest : p;
}

void bh__matrix_put(unsigned type, uint64_t bits, double *v, double *scale) {
    *v = number_of(type, bits);
    *scale = bh__ptx_class(type) == 'F' ? scale_of(type, *v) : 0;
}

static uint64_t word_at(const bh__ptx_exec *x, int32_t row, unsigned type, unsigned lane) {
    return type == T_F64 ? ((const bh__u64 *)bh__row(x, row))[lane]
                         : ((const bh__u32 *)bh__row(x, row))[lane];
}

void bh__matrix_get_left(const bh__ptx_exec *x, const bh__ptx_matrix *f, bh__matrix_left *a) {
    unsigned words = bh__matrix_registers(f->a, (unsigned)f->m * f->stored);
    unsigned parts = parts_of(f->a), bits = bh__matrix_bits(f->a);
    for (unsigned w = 0; w < words; w++) {
        for (unsigned l = 0; l < LANES; l++) {
            uint64_t word = word_at(x, f->ra[w], f->a, l);
            bh__matrix_place p = bh__matrix_place_a(f->m, f->a, l, w, 0);
            unsigned at = p.row * f->stored + p.column;
            for (unsigned n = 0; n < parts; n++) {
                bh__matrix_put(f->a, word >> n * bits, &a->v[at + n], &a->scale[at + n]);
            }
        }
    }
    bh__matrix_positions(x, f, a);
}

void bh__matrix_get_right(const bh__ptx_exec *x, const bh__ptx_matrix *f, unsigned tile,
                          bh__matrix_right *b) {
    unsigned words = bh__matrix_registers(f->b, (unsigned)f->k * MATRIX_COLUMNS);
    unsigned parts = parts_of(f->b), bits = bh__matrix_bits(f->b);
    for (unsigned w = 0; w < words; w++) {
        for (unsigned l = 0; l < LANES; l++) {
            uint64_t word = word_at(x, f->rb[tile * words + w], f->b, l);
            bh__matrix_place p = bh__matrix_place_b(f->k, f->b, l, w, 0);
            for (unsigned n = 0; n < parts; n++) {
                bh__matrix_put(f->b, word >> n * bits, &b->v[p.row + n][p.column],
                               &b->scale[p.row + n][p.column]);
            }
        }
    }
}

void bh__matrix_get_tile(const bh__ptx_exec *x, const bh__ptx_matrix *f, unsigned tile,
                         bh__matrix_tile *c) {
    unsigned words = bh__matrix_registers(f->c, (unsigned)f->m * MATRIX_COLUMNS);
    unsigned parts = f->c == T_F16 ? 2 : 1;
    for (unsigned w = 0; w < words; w++) {
        for (unsigned l = 0; l < LANES; l++) {
            uint64_t word = word_at(x, f->rc[tile * words + w], f->c, l);
            for (unsigned n = 0; n < parts; n++) {
                bh__matrix_place p = bh__matrix_place_c(f->m, f->c, l, w, n);
                c->bits[p.row][p.column] = parts == 2 ? word >> 16 * n & 0xffff : word;
            }
        }
    }
}

static uint64_t tile_word(const bh__ptx_matrix *f, const bh__matrix_tile *d, unsigned lane,
                          unsigned word) {
    bh__matrix_place p = bh__matrix_place_c(f->m, f->d, lane, word, 0);
    const uint64_t *bits = &d->bits[p.row][p.column];
    return f->d == T_F16 ? bits[0] | bits[1] << 16 : bits[0];
}

void bh__matrix_set_tile(const bh__ptx_exec *x, const bh__ptx_matrix *f, unsigned tile,
                         const bh__matrix_tile *d) {
    unsigned words = bh__matrix_registers(f->d, (unsigned)f->m * MATRIX_COLUMNS);
    for (unsigned w = 0; w < words; w++) {
        void *row = bh__row(x, f->rd[tile * words + w]);
        for (unsigned l = 0; l < LANES; l++) {
            if (f->d == T_F64) {
                ((bh__u64 *)row)[l] = tile_word(f, d, l, w);
            } else {
                ((bh__u32 *)row)[l] = (uint32_t)tile_word(f, d, l, w);
            }
        }
    }
}
