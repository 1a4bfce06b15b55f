/* SPDX-License-Identifier: Apache-2.0 */
/* The product of two matrices in the arithmetic of tensor cores. */
#include <math.h>

#include "ptx/fp.h"
#include "ptx/matrix/matrix.h"

#define COLUMNS  ITERATIONS_INDEPENDENT for (unsigned j = 0; j < MATRIX_COLUMNS; j++)
#define SMALLEST 0x1p-126                                     /* no sum is aligned to less */
#define INLINED  __attribute__((always_inline)) static inline /* into versions for wide vectors */

#define MATRIX_GROUPS 32 /* elements of a row that are summed in groups */

typedef struct terms { /* the products of one row of A, or of a group of them */
    const double *v, *scale;
    const uint8_t *from;
    unsigned count;
    const bh__matrix_right *b;
} terms;

typedef struct row { /* the elements of a row of A in another order */
    double v[MATRIX_GROUPS], scale[MATRIX_GROUPS];
    uint8_t from[MATRIX_GROUPS];
} row;

/* The power of two of a float's exponent, infinity if it is not finite. */
INLINED double power_of(double v, bool half) {
    double p = bh__double_of_bits(bh__bits_of_double(v) & UINT64_C(0x7ff0000000000000));
    p = half && p != 0 && p < 0x1p-14 ? 0x1p-14 : p;
    return p > SMALLEST ? p : SMALLEST;
}

/* Terms that are not finite count as zero here if `clean`. */
INLINED void add_truncated(const terms *t, const double unit[MATRIX_COLUMNS],
                           double total[MATRIX_COLUMNS], bool clean) {
    for (unsigned n = 0; n < t->count; n++) {
        const double *b = t->b->v[t->from[n]];
        double a = t->v[n];
        COLUMNS {
            double x = a * b[j] * unit[j];
            if (clean) {
                x = fabs(x) < 0x1p30 ? x : 0;
            }
            total[j] += (double)(int32_t)x;
        }
    }
}

/*
 * The sum of a group of products and the accumulator, as NVIDIA's tensor cores form it: products
 * are exact; all terms are aligned to the largest exponent among them, where the exponent of a
 * product is the sum of the factors' exponents; each term is cut off (toward zero) after `fraction`
 * bits behind the point of that exponent; and what is left is added exactly. Hopper keeps 25 bits,
 * its wgmma of 8-bit floats 13. The result is rounded by the caller.
 */
INLINED void sum_group(const terms *t, unsigned fraction, bool half, double sum[MATRIX_COLUMNS]) {
    double largest[MATRIX_COLUMNS], unit[MATRIX_COLUMNS], total[MATRIX_COLUMNS];
    double point = bh__double_of_bits((uint64_t)(1023 + fraction) << 52); /* 2^fraction */
    bool special = false;
    COLUMNS {
        largest[j] = power_of(sum[j], half);
    }
    for (unsigned n = 0; n < t->count; n++) {
        const double *b = t->b->scale[t->from[n]];
        double a = t->scale[n];
        COLUMNS {
            double p = a * b[j];
            largest[j] = p > largest[j] ? p : largest[j];
        }
    }
    COLUMNS {
        special |= largest[j] == INFINITY;
        unit[j] = point / largest[j];
        total[j] = largest[j] == INFINITY ? 0 : trunc(sum[j] * unit[j]);
    }
    if (!special) {
        add_truncated(t, unit, total, false);
    } else {
        add_truncated(t, unit, total, true);
    }
    COLUMNS {
        if (largest[j] < INFINITY) {
            sum[j] = total[j] / unit[j];
            continue;
        }
        for (unsigned n = 0; n < t->count; n++) { /* gives an infinity or NaN */
            sum[j] += t->v[n] * t->b->v[t->from[n]][j];
        }
    }
}

/* Toward zero, to a float with `kept` bits of fraction. Too large numbers become infinity. */
static float round_single(double v, unsigned kept) {
    if (v != v) {
        return bh__float_of_bits(NAN_F32);
    }
    if (fabs(v) < SMALLEST) {
        double unit = ldexp(1, 126 + (int)kept);
        return (float)(trunc(v * unit) / unit);
    }
    uint64_t mask = UINT64_MAX << (52 - kept);
    return (float)bh__double_of_bits(bh__bits_of_double(v) & mask);
}

static double round_sum(const bh__ptx_matrix *f, double v) {
    if (f->d == T_F16) {
        return (double)bh__f16_to_float(bh__f16_from_double(v, BH__ROUND_NEAREST));
    }
    return (double)round_single(v, f->kept);
}

/* One product after the other, each sum rounded to nearest. */
INLINED void sum_chain(const terms *t, double sum[MATRIX_COLUMNS]) {
    for (unsigned n = 0; n < t->count; n++) {
        const double *b = t->b->v[t->from[n]];
        COLUMNS {
            sum[j] = (double)fmaf((float)t->v[n], (float)b[j], (float)sum[j]);
        }
    }
}

INLINED void sum_groups(const bh__ptx_matrix *f, terms t, double sum[MATRIX_COLUMNS]) {
    bool half = f->d == T_F16 && f->c == T_F16;
    for (unsigned rest = t.count; rest > 0; rest -= t.count) {
        t.count = rest < f->group ? rest : f->group;
        sum_group(&t, f->fraction, half, sum);
        COLUMNS {
            sum[j] = round_sum(f, sum[j]);
        }
        t.v += t.count;
        t.scale += t.count;
        t.from += t.count;
    }
}

static terms terms_of(const bh__ptx_matrix *f, const bh__matrix_left *a, unsigned i,
                      const bh__matrix_right *b, row *other) {
    unsigned first = i * f->stored;
    if (!f->pairs) {
        return (terms){a->v + first, a->scale + first, a->from + first, f->stored, b};
    }
    for (unsigned n = 0; n < f->stored; n++) {
        unsigned at = first + n % f->group / 2 * 4 + n / f->group * 2 + n % 2;
        other->v[n] = a->v[at];
        other->scale[n] = a->scale[at];
        other->from[n] = a->from[at];
    }
    return (terms){other->v, other->scale, other->from, f->stored, b};
}

/*
 * Products of 8-bit floats by mma.sync are two of f16, and mma.m8n8k4 is a chain of fused
 * multiply-adds. Both leave the accumulator to an addition at the end.
 */
WIDE_VECTORS static void multiply_floats(const bh__ptx_matrix *f, const bh__matrix_left *a,
                                         const bh__matrix_right *b, const bh__matrix_tile *c,
                                         bh__matrix_tile *d) {
    row other;
    for (unsigned i = 0; i < f->m; i++) {
        double sum[MATRIX_COLUMNS], before[MATRIX_COLUMNS];
        terms t = terms_of(f, a, i, b, &other);
        COLUMNS {
            before[j] = (double)(f->c == T_F16 ? bh__f16_to_float((uint16_t)c->bits[i][j])
                                               : bh__float_of_bits((uint32_t)c->bits[i][j]));
            sum[j] = f->apart ? 0 : before[j];
        }
        if (f->group == 1) {
            sum_chain(&t, sum);
        } else {
            sum_groups(f, t, sum);
        }
        COLUMNS {
            float v = f->apart ? (float)sum[j] + (float)before[j] : (float)sum[j];
            d->bits[i][j] = f->d == T_F16 ? bh__f16_from_double((double)v, BH__ROUND_NEAREST)
                                          : bh__bits_of_float(bh__canonical(v));
        }
    }
}

static uint32_t finish_integer(const bh__ptx_matrix *f, double sum, uint32_t c) {
    int64_t r = (int64_t)sum + (int32_t)c;
    if (f->saturate) {
        r = r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r;
    }
    return (uint32_t)r;
}

static void multiply_integers(const bh__ptx_matrix *f, const bh__matrix_left *a,
                              const bh__matrix_right *b, const bh__matrix_tile *c,
                              bh__matrix_tile *d) {
    for (unsigned i = 0; i < f->m; i++) {
        double sum[MATRIX_COLUMNS] = {0}; /* exact */
        for (unsigned n = i * f->stored; n < (i + 1u) * f->stored; n++) {
            const double *right = b->v[a->from[n]];
            double left = a->v[n];
            COLUMNS {
                sum[j] += left * right[j];
            }
        }
        COLUMNS {
            d->bits[i][j] = finish_integer(f, sum[j], (uint32_t)c->bits[i][j]);
        }
    }
}

static void multiply_bits(const bh__ptx_matrix *f, const bh__matrix_left *a,
                          const bh__matrix_right *b, const bh__matrix_tile *c, bh__matrix_tile *d) {
    for (unsigned i = 0; i < f->m; i++) {
        COLUMNS {
            uint32_t sum = (uint32_t)c->bits[i][j];
            for (unsigned n = 0; n < f->k; n++) {
                uint32_t left = (uint32_t)a->v[i * f->k + n], right = (uint32_t)b->v[n][j];
                sum += (uint32_t)__builtin_popcount(f->exclusive ? left ^ right : left & right);
            }
            d->bits[i][j] = sum;
        }
    }
}

static double multiply_add(double a, double b, double c) {
    volatile double va = a, vb = b, vc = c; /* the rounding mode may not be the usual one */
    volatile double r = fma(va, vb, vc);
    return r != r ? bh__nan64(a, b, c) : r;
}

static void multiply_doubles(const bh__ptx_matrix *f, const bh__matrix_left *a,
                             const bh__matrix_right *b, const bh__matrix_tile *c,
                             bh__matrix_tile *d) {
    bh__round_enter((bh__round)f->round);
    for (unsigned i = 0; i < f->m; i++) {
        COLUMNS {
            double sum = bh__double_of_bits(c->bits[i][j]);
            for (unsigned n = 0; n < f->k; n++) {
                sum = multiply_add(a->v[i * f->k + n], b->v[n][j], sum);
            }
            d->bits[i][j] = bh__bits_of_double(sum);
        }
    }
    bh__round_leave((bh__round)f->round);
}

void bh__matrix_multiply(const bh__ptx_matrix *f, const bh__matrix_left *a,
                         const bh__matrix_right *b, const bh__matrix_tile *c, bh__matrix_tile *d) {
    if (f->a == T_B1) {
        multiply_bits(f, a, b, c, d);
    } else if (f->d == T_S32) {
        multiply_integers(f, a, b, c, d);
    } else if (f->d == T_F64) {
        multiply_doubles(f, a, b, c, d);
    } else {
        multiply_floats(f, a, b, c, d);
    }
}
