/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Approximate functions as sums and products of doubles, each rounded: the interpreter computes
 * them in C, native code (src/jit/approx.c) with the same operations in the same order, so that
 * both have the same bits.
 */
#ifndef BH_PTX_APPROX_H
#define BH_PTX_APPROX_H

#include "ptx/fp.h"

/* 2^r for -0.5 <= r <= 0.5: the powers of ln 2 divided by the factorials, the last one first. */
enum { BH__EX2_TERMS = 10 };
static const double bh__ex2_terms[BH__EX2_TERMS] = {0x1.b5253d395e7c4p-24, 0x1.62c0223a5c824p-20,
                                                    0x1.ffcbfc588b0c7p-17, 0x1.430912f86c787p-13,
                                                    0x1.5d87fe78a6731p-10, 0x1.3b2ab6fba4e77p-7,
                                                    0x1.c6b08d704a0c0p-5,  0x1.ebfbdff82c58fp-3,
                                                    0x1.62e42fefa39efp-1,  1};
#define BH__EX2_MIN   (-160.0) /* gives zero in single precision */
#define BH__EX2_MAX   130.0    /* gives infinity */
#define BH__EX2_ROUND 0x1.8p52 /* added, leaves the nearest integer in the low bits */

static inline float bh__ex2(float a) {
    double x = (double)a;
    x = x < BH__EX2_MIN ? BH__EX2_MIN : x;
    x = x > BH__EX2_MAX ? BH__EX2_MAX : x;
    double rounded = x + BH__EX2_ROUND, sum = bh__ex2_terms[0];
    double r = x - (rounded - BH__EX2_ROUND);
    for (int n = 1; n < BH__EX2_TERMS; n++) {
        double product = sum * r;
        sum = product + bh__ex2_terms[n];
    }
    return (float)(sum * bh__double_of_bits((bh__bits_of_double(rounded) + 1023) << 52));
}

#endif
