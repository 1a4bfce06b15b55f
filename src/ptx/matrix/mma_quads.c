/* SPDX-License-Identifier: Apache-2.0 */
/* mma.m8n8k4 of f16: four products at once, each by the eight lanes 4q to 4q+3 and 16 more. */
#include "ptx/matrix/matrix.h"

static uint32_t half_at(const bh__ptx_exec *x, const int32_t *rows, unsigned lane, unsigned n) {
    return ((const bh__u32 *)bh__row(x, rows[n / 2]))[lane] >> 16 * (n % 2) & 0xffff;
}

/* The lane that has element `n` of line `line`: a line is a row or column that one lane holds. */
static unsigned lane_of(unsigned quad, unsigned line) {
    return 4 * quad + line % 4 + (line >= 4 ? 16 : 0);
}

/* The transposed layout: lanes of the lower half hold elements 0 to 3 of a line, others the
 * rest. */
static uint32_t element(const bh__ptx_exec *x, const int32_t *rows, unsigned quad, unsigned outer,
                        unsigned k, bool along_k) {
    return along_k ? half_at(x, rows, lane_of(quad, outer), k)
                   : half_at(x, rows, lane_of(quad, k + (outer & 4)), outer % 4);
}

static void get_factors(const bh__ptx_exec *x, const bh__ptx_matrix *f, unsigned quad,
                        bh__matrix_left *a, bh__matrix_right *b) {
    for (unsigned k = 0; k < 4; k++) {
        for (unsigned n = 0; n < 8; n++) {
            unsigned at = n * 4 + k;
            bh__matrix_put(T_F16, element(x, f->ra, quad, n, k, f->layout[0] == 'r'), &a->v[at],
                           &a->scale[at]);
            a->from[at] = (uint8_t)k;
            bh__matrix_put(T_F16, element(x, f->rb, quad, n, k, f->layout[1] == 'c'), &b->v[k][n],
                           &b->scale[k][n]);
        }
    }
}

/* Of f32, element `n` of a lane is two rows down for n & 2 and four columns on for n & 4. */
static void place_single(unsigned lane, unsigned n, unsigned *row, unsigned *column) {
    *row = (lane & 1) + (n & 2) + (lane >= 16 ? 4 : 0);
    *column = (n & 4) + (lane & 2) + (n & 1);
}

static void get_sums(const bh__ptx_exec *x, const bh__ptx_matrix *f, unsigned quad,
                     bh__matrix_tile *c) {
    for (unsigned line = 0; line < 8; line++) {
        unsigned lane = lane_of(quad, line), row = line, column;
        for (unsigned n = 0; n < 8; n++) {
            if (f->c == T_F16) {
                c->bits[row][n] = half_at(x, f->rc, lane, n);
            } else {
                place_single(lane, n, &row, &column);
                c->bits[row][column] = ((const bh__u32 *)bh__row(x, f->rc[n]))[lane];
            }
        }
    }
}

static void set_sums(const bh__ptx_exec *x, const bh__ptx_matrix *f, unsigned quad,
                     const bh__matrix_tile *d) {
    for (unsigned line = 0; line < 8; line++) {
        unsigned lane = lane_of(quad, line), row = line, column;
        for (unsigned n = 0; n < 8; n++) {
            if (f->d == T_F16) {
                uint32_t pair = (uint32_t)(d->bits[row][n & 6] | d->bits[row][n | 1] << 16);
                ((bh__u32 *)bh__row(x, f->rd[n / 2]))[lane] = pair;
            } else {
                place_single(lane, n, &row, &column);
                ((bh__u32 *)bh__row(x, f->rd[n]))[lane] = (uint32_t)d->bits[row][column];
            }
        }
    }
}

bool bh__ptx_run_quads(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const bh__ptx_matrix *f = i->extra;
    bh__matrix_left a;
    bh__matrix_right b;
    bh__matrix_tile c, d[4];
    if (!bh__matrix_whole_warp(x, mask)) {
        return false;
    }
    for (unsigned quad = 0; quad < 4; quad++) {
        get_factors(x, f, quad, &a, &b);
        get_sums(x, f, quad, &c);
        bh__matrix_multiply(f, &a, &b, &c, &d[quad]);
    }
    for (unsigned quad = 0; quad < 4; quad++) { /* D may be A or B */
        set_sums(x, f, quad, &d[quad]);
    }
    return true;
}
