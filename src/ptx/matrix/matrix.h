/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix instructions: what they multiply, and the matrices between registers and the product. */
#ifndef BH_PTX_MATRIX_MATRIX_H
#define BH_PTX_MATRIX_MATRIX_H

#include "ptx/half.h"
#include "ptx/run/exec.h"

#define MATRIX_COLUMNS 8    /* of the tiles that are multiplied at once */
#define MATRIX_LEFT    1024 /* stored elements of A, at most */
#define MATRIX_DEPTH   128  /* rows of B, at most */
#define MATRIX_ROWS    32   /* of A and C, at most */

/*
 * A product D = A*B + C, as one warp computes it: A is m*k, B is k*n. Single bits are handled as
 * words of 32, so that k counts words.
 */
typedef struct bh__ptx_matrix {
    uint16_t m, n, k;
    uint16_t stored;    /* columns of A that are stored: k, or k/2 if it is sparse */
    uint8_t a, b, c, d; /* types */
    uint8_t group;      /* products that are summed at once; one: by fused multiply-adds */
    bool pairs;         /* of every four products the first two are in the first group */
    bool apart;         /* C is added to the sum of all products, rounded to nearest */
    uint8_t fraction;   /* bits that the terms of a sum keep */
    uint8_t kept;       /* bits that a result in f32 keeps */
    uint8_t selector;   /* sparse: which lanes hold the metadata */
    uint8_t round;      /* of f64, a bh__round */
    bool sparse, exclusive, saturate;
    char layout[2];              /* mma.m8n8k4: 'r' or 'c' for A and B */
    const int32_t *rd, *ra, *rb; /* rows of the registers */
    const int32_t *rc;
    int32_t metadata; /* row */
} bh__ptx_matrix;

/* Elements as numbers. The scale of a float is the power of two of its exponent. */
typedef struct bh__matrix_left { /* A, row after row */
    double v[MATRIX_LEFT], scale[MATRIX_LEFT];
    uint8_t from[MATRIX_LEFT]; /* the row of B that the element is multiplied with */
} bh__matrix_left;

typedef struct bh__matrix_right { /* eight columns of B */
    double v[MATRIX_DEPTH][MATRIX_COLUMNS], scale[MATRIX_DEPTH][MATRIX_COLUMNS];
} bh__matrix_right;

typedef struct bh__matrix_tile { /* eight columns of C or D, as bits of their type */
    uint64_t bits[MATRIX_ROWS][MATRIX_COLUMNS];
} bh__matrix_tile;

static inline unsigned bh__matrix_bits(unsigned type) {
    return type == T_U4 || type == T_S4 ? 4 : type == T_B1 ? 32 : 8 * bh__ptx_bytes(type);
}

/* 32-bit registers, or 64-bit ones of f64, that a lane has for `cells` elements of a warp. */
static inline unsigned bh__matrix_registers(unsigned type, unsigned cells) {
    return type == T_F64 ? cells / LANES : cells * bh__matrix_bits(type) / 32 / LANES;
}

/* sum.c */
void bh__matrix_multiply(const bh__ptx_matrix *f, const bh__matrix_left *a,
                         const bh__matrix_right *b, const bh__matrix_tile *c, bh__matrix_tile *d);

/* fragment.c */
void bh__matrix_put(unsigned type, uint64_t bits, double *v, double *scale);
void bh__matrix_get_left(const bh__ptx_exec *x, const bh__ptx_matrix *f, bh__matrix_left *a);
void bh__matrix_get_right(const bh__ptx_exec *x, const bh__ptx_matrix *f, unsigned tile,
                          bh__matrix_right *b);
void bh__matrix_get_tile(const bh__ptx_exec *x, const bh__ptx_matrix *f, unsigned tile,
                         bh__matrix_tile *c);
void bh__matrix_set_tile(const bh__ptx_exec *x, const bh__ptx_matrix *f, unsigned tile,
                         const bh__matrix_tile *d);
/* Where an element of the registers is: `word` of the lane's registers, `part` of the word. */
typedef struct bh__matrix_place {
    unsigned row, column;
} bh__matrix_place;
bh__matrix_place bh__matrix_place_a(unsigned m, unsigned type, unsigned lane, unsigned word,
                                    unsigned part);
bh__matrix_place bh__matrix_place_b(unsigned k, unsigned type, unsigned lane, unsigned word,
                                    unsigned part);
bh__matrix_place bh__matrix_place_c(unsigned m, unsigned type, unsigned lane, unsigned word,
                                    unsigned part);

/* sparse.c: which row of B each stored element of A belongs to. */
void bh__matrix_positions(const bh__ptx_exec *x, const bh__ptx_matrix *f, bh__matrix_left *a);
unsigned bh__matrix_selectors(const bh__ptx_matrix *f);

/* lower.c: checks that all units need. All return false after lower_fail(). */
bool bh__matrix_collective(bh__ptx_lowering *low); /* .sync.aligned is there */
/* The rows of a vector of `count` registers that hold elements of `type`. */
const int32_t *bh__matrix_rows(bh__ptx_lowering *low, unsigned operand, unsigned count,
                               unsigned type, bool dest);
bool bh__matrix_operands(bh__ptx_lowering *low, unsigned wanted);
bool bh__matrix_address(bh__ptx_lowering *low, unsigned operand, bh__ptx_code *code);
bool bh__matrix_no_form(bh__ptx_lowering *low);
bool bh__matrix_emit(bh__ptx_lowering *low, bh__ptx_code *code, const bh__ptx_matrix *f);
bool bh__matrix_whole_warp(bh__ptx_exec *x, uint32_t mask);

/* The instructions. */
bool bh__ptx_lower_mma(bh__ptx_lowering *low);
bool bh__ptx_lower_wmma(bh__ptx_lowering *low);
bool bh__ptx_lower_wgmma(bh__ptx_lowering *low);
bool bh__ptx_lower_matrix_move(bh__ptx_lowering *low);
bh__ptx_handler bh__ptx_run_quads; /* mma.m8n8k4 of f16 */

#endif
