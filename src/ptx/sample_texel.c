/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: from the bytes of a texel, or the border's colour, to numbers. */
#include <math.h>
#include <string.h>

#include "ptx/half.h"
#include "ptx/texture/sample.h"

bool bh__texture_is_float(const bh__ptx_texture *t) {
    return t->kind == BH__TEXEL_FLOAT || t->as_float;
}

void bh__texel_set(bh__texel *texel, unsigned n, float value) {
    texel->value[n] = (double)value;
    texel->bits[n] = bh__bits_of_float(value);
}

static double linear_of_srgb(double c) {
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static double srgb_of_linear(double c) {
    return c <= 0.0031308 ? c * 12.92 : 1.055 * pow(c, 1 / 2.4) - 0.055;
}

/* An H200 has a table for this, of numbers with eight digits. */
static double eight_digits(double value) {
    int exponent;
    double digits = frexp(value, &exponent);
    return ldexp(floor(ldexp(digits, 8) + 0.5), exponent - 8);
}

static bool is_srgb(const bh__ptx_texture *t, unsigned channel) {
    return t->srgb && channel < 3;
}

/* An integer as a fraction of the largest one. */
static double fraction_of(const bh__ptx_texture *t, unsigned channel, double value) {
    double f = value / bh__texel_largest(t);
    if (f < -1) {
        return -1; /* the lowest integer has no counterpart */
    }
    return is_srgb(t, channel) ? eight_digits(linear_of_srgb(f)) : f;
}

static void set_integer(const bh__ptx_texture *t, bh__texel *out, unsigned n, uint32_t raw) {
    unsigned unused = 32 - t->bits;
    double value =
        t->kind == BH__TEXEL_SIGNED ? (double)((int32_t)(raw << unused) >> unused) : (double)raw;
    if (!t->as_float) {
        out->value[n] = value;
        out->bits[n] = t->kind == BH__TEXEL_SIGNED ? (uint32_t)(int32_t)value : raw;
        return;
    }
    out->value[n] = fraction_of(t, n, value);
    out->bits[n] = bh__bits_of_float((float)out->value[n]);
}

void bh__texel_read(const bh__ptx_texture *t, const uint8_t *p, bh__texel *out) {
    *out = (bh__texel){{0}, {0}}; /* what channels have that are not there, alpha too */
    for (unsigned n = 0; n < t->channels; n++) {
        uint32_t raw = 0;
        memcpy(&raw, p + n * t->bits / 8, t->bits / 8); /* little-endian, as all processors here */
        if (t->kind != BH__TEXEL_FLOAT) {
            set_integer(t, out, n, raw);
        } else if (t->bits == 16) {
            bh__texel_set(out, n, bh__f16_to_float((uint16_t)raw));
        } else {
            bh__texel_set(out, n, bh__float_of_bits(raw));
            out->bits[n] = raw; /* a NaN keeps its bits */
        }
    }
}

/* The integer of the format that is nearest to a fraction. */
static double nearest_integer(const bh__ptx_texture *t, unsigned channel, double f) {
    double low = t->kind == BH__TEXEL_SIGNED ? -1 : 0;
    f = f >= low ? f : low;
    f = f <= 1 ? f : 1;
    f = (is_srgb(t, channel) ? srgb_of_linear(f) : f) * bh__texel_largest(t);
    return copysign(ceil(fabs(f) - 0.5), f);
}

/* The colour is rounded to the format. Of integers that are no fractions it is the bits. */
void bh__texel_border(const bh__ptx_texture *t, bool zero, bh__texel *out) {
    *out = (bh__texel){{0}, {0}};
    for (unsigned n = 0; !zero && n < t->channels; n++) {
        float colour = t->border[n];
        if (t->kind == BH__TEXEL_FLOAT) {
            bh__texel_set(out, n,
                          t->bits == 32 ? colour
                                        : bh__f16_to_float(bh__f16_from_double((double)colour,
                                                                               BH__ROUND_NEAREST)));
        } else if (t->as_float) {
            set_integer(t, out, n, (uint32_t)(int64_t)nearest_integer(t, n, (double)colour));
        } else {
            set_integer(t, out, n, bh__bits_of_float(colour) & UINT32_MAX >> (32 - t->bits));
        }
    }
}
