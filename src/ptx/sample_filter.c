/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling: the weighted sum of a linear filter, in the arithmetic of an H200. NVIDIA's guide says
 * only that weights have 8 bits of fraction. Products of weights are rounded to these bits, too.
 */
#include <math.h>

#include "ptx/half.h"
#include "ptx/texture/sample.h"

/* Digits of texels that count, from the first one of the largest. */
enum { FLOAT_DIGITS = 28, SRGB_DIGITS = 8 };

/* Half of a step is rounded up. */
static unsigned part(unsigned whole, unsigned fraction) {
    return (whole * fraction + FILTER_ONE / 2) >> FILTER_BITS;
}

/* Splits a weight in x and y. */
static void weigh_plane(uint16_t weight[4], unsigned whole, const uint32_t fraction[2]) {
    unsigned right = part(whole, fraction[0]), left = whole - right;
    unsigned lower_right = part(right, fraction[1]);
    unsigned upper_left = part(left, FILTER_ONE - fraction[1]);
    weight[0] = (uint16_t)upper_left;
    weight[1] = (uint16_t)(right - lower_right);
    weight[2] = (uint16_t)(left - upper_left);
    weight[3] = (uint16_t)lower_right;
}

void bh__filter_weigh(uint16_t weight[8], unsigned whole, unsigned dimensions,
                      const uint32_t fraction[3]) {
    unsigned second = part(whole, fraction[dimensions == 3 ? 2 : 0]);
    if (dimensions == 1) {
        weight[0] = (uint16_t)(whole - second);
        weight[1] = (uint16_t)second;
    } else if (dimensions == 2) {
        weigh_plane(weight, whole, fraction);
    } else {
        weigh_plane(weight, whole - second, fraction);
        weigh_plane(weight + 4, second, fraction);
    }
}

/* Rounds to `digits`, half away from zero, not below the smallest number of the format. */
static float rounded(double value, int digits, int smallest) {
    int exponent;
    if (value == 0 || !isfinite(value)) {
        return (float)value;
    }
    frexp(value, &exponent);
    exponent = exponent - digits > smallest ? exponent - digits : smallest;
    return (float)ldexp(copysign(floor(fabs(ldexp(value, -exponent)) + 0.5), value), exponent);
}

/* Floats are cut off at a distance from the largest exponent, and their sum is exact. */
static double sum_aligned(const bh__filter *f, unsigned channel, int digits) {
    int largest = -1000, exponent;
    double sum = 0;
    for (unsigned n = 0; n < f->count; n++) {
        double v = f->texel[n].value[channel];
        if (v != 0 && isfinite(v)) {
            frexp(v, &exponent);
            largest = exponent > largest ? exponent : largest;
        }
    }
    for (unsigned n = 0; n < f->count; n++) {
        double v = f->texel[n].value[channel];
        sum += f->weight[n] * (isfinite(v) ? trunc(ldexp(v, digits - largest)) : v);
    }
    return ldexp(sum, largest - digits - FILTER_BITS);
}

static float sum_floats(const bh__ptx_texture *t, const bh__filter *f, unsigned channel) {
    double sum = sum_aligned(f, channel, t->kind == BH__TEXEL_FLOAT ? FLOAT_DIGITS : SRGB_DIGITS);
    return t->bits == 32 ? rounded(sum, 24, -149) : rounded(sum, 11, -24);
}

/* Fractions become integers of 16 bits, half a step is rounded up. */
static float sum_fractions(const bh__ptx_texture *t, const bh__filter *f, unsigned channel) {
    double wide = t->kind == BH__TEXEL_SIGNED ? INT16_MAX : UINT16_MAX;
    double largest = bh__texel_largest(t), sum = 0;
    for (unsigned n = 0; n < f->count; n++) {
        sum += f->weight[n] * rint(f->texel[n].value[channel] * largest);
    }
    return (float)(floor(sum * wide / (largest * FILTER_ONE) + 0.5) / wide);
}

void bh__filter_sum(const bh__ptx_texture *t, const bh__filter *f, bh__texel *out) {
    bool floats = t->kind == BH__TEXEL_FLOAT;
    for (unsigned n = 0; n < 4; n++) {
        bool srgb = t->srgb && n < 3;
        bh__texel_set(out, n, floats || srgb ? sum_floats(t, f, n) : sum_fractions(t, f, n));
    }
}
