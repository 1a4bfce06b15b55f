/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling: addresses, filters, levels. The formulas are those of "Texture Fetching" in NVIDIA's
 * CUDA programming guide. Weights have 8 bits of fraction, as there; a coordinate is rounded to the
 * nearest of these steps.
 */
#include "ptx/sample.h"

#include <math.h>
#include <string.h>

#include "ptx/check.h"
#include "ptx/half.h"

enum { FRACTION_BITS = 8, ONE = 1 << FRACTION_BITS };

bool bh__texture_is_float(const bh__ptx_texture *t) {
    return t->kind == BH__TEXEL_FLOAT || t->as_float;
}

static uint32_t bits_of(const bh__ptx_texture *t, double value) {
    if (bh__texture_is_float(t)) {
        return bh__bits_of_float((float)value);
    }
    double low = t->kind == BH__TEXEL_SIGNED ? INT32_MIN : 0;
    double high = t->kind == BH__TEXEL_SIGNED ? INT32_MAX : UINT32_MAX;
    value = value >= low ? value : low;
    value = value <= high ? value : high;
    return t->kind == BH__TEXEL_SIGNED ? (uint32_t)(int32_t)value : (uint32_t)value;
}

static void set_value(const bh__ptx_texture *t, bh__texel *out, unsigned n, double value) {
    out->value[n] = value;
    out->bits[n] = bits_of(t, value);
}

/* ---- texels ---- */

static double linear_of_srgb(double c) {
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static double fraction_of(const bh__ptx_texture *t, unsigned channel, double value) {
    double largest = (double)((UINT64_C(1) << (t->bits - (t->kind == BH__TEXEL_SIGNED))) - 1);
    double f = value / largest;
    if (f < -1) {
        return -1; /* the lowest integer has no counterpart */
    }
    return t->srgb && channel < 3 ? linear_of_srgb(f) : f;
}

static void convert(const bh__ptx_texture *t, unsigned n, const uint8_t *p, bh__texel *out) {
    uint32_t raw = 0;
    memcpy(&raw, p, t->bits / 8); /* little-endian, as all that the interpreter runs on */
    if (t->kind == BH__TEXEL_FLOAT) {
        float f = t->bits == 16 ? bh__f16_to_float((uint16_t)raw) : bh__float_of_bits(raw);
        out->value[n] = (double)f;
        out->bits[n] = bh__bits_of_float(f); /* a NaN keeps its bits */
        if (t->bits == 32) {
            out->bits[n] = raw;
        }
        return;
    }
    unsigned unused = 32 - t->bits;
    double value =
        t->kind == BH__TEXEL_SIGNED ? (double)((int32_t)(raw << unused) >> unused) : (double)raw;
    set_value(t, out, n, t->as_float ? fraction_of(t, n, value) : value);
}

/* Channels that the image does not have are 0, alpha is 1. */
static void fill(const bh__ptx_texture *t, bh__texel *out) {
    for (unsigned n = 0; n < 4; n++) {
        set_value(t, out, n, n == 3 ? 1 : 0);
    }
}

static void border(const bh__ptx_texture *t, bh__texel *out) {
    fill(t, out);
    for (unsigned n = 0; n < t->channels; n++) {
        set_value(t, out, n, (double)t->border[n]);
    }
}

/* Moves an index into the image. False: it is outside, and the border's colour counts. */
static bool address(int64_t *at, uint32_t size, unsigned mode) {
    int64_t n = size, i = *at;
    switch (mode) {
    case BH__ADDRESS_WRAP:
        *at = (i % n + n) % n;
        return true;
    case BH__ADDRESS_MIRROR:
        i = (i % (2 * n) + 2 * n) % (2 * n);
        *at = i < n ? i : 2 * n - 1 - i;
        return true;
    case BH__ADDRESS_BORDER:
        return i >= 0 && i < n;
    default:
        *at = i < 0 ? 0 : i < n ? i : n - 1;
        return true;
    }
}

/* Only normalised coordinates can repeat. */
static unsigned mode_of(const bh__sample *s, unsigned dimension) {
    unsigned mode = s->texture->address[dimension];
    bool repeats = mode == BH__ADDRESS_WRAP || mode == BH__ADDRESS_MIRROR;
    if (s->texture->cube) {
        return BH__ADDRESS_CLAMP;
    }
    return repeats && (s->whole || !s->texture->normalized) ? BH__ADDRESS_CLAMP : mode;
}

static bool fetch(const bh__sample *s, const bh__ptx_texture_level *level, uint64_t slice,
                  const int64_t index[3], bh__texel *out) {
    const bh__ptx_texture *t = s->texture;
    const uint32_t size[3] = {level->width, level->height, level->depth};
    int64_t at[3] = {0};
    for (unsigned d = 0; d < t->dimensions; d++) {
        at[d] = index[d];
        if (!address(&at[d], size[d], mode_of(s, d))) {
            border(t, out);
            return true;
        }
    }
    unsigned bytes = t->channels * t->bits / 8u;
    uint64_t where = level->address + (slice + (uint64_t)at[2]) * level->slice +
                     (uint64_t)at[1] * level->pitch + (uint64_t)at[0] * bytes;
    const uint8_t *p = bh__texel_at(s->x, s->lane, where, bytes, 0);
    if (p == NULL) {
        return false;
    }
    fill(t, out);
    for (unsigned n = 0; n < t->channels; n++) {
        convert(t, n, p + n * t->bits / 8, out);
    }
    return true;
}

/* ---- one level ---- */

/* In steps of 1 / ONE, from half a texel on; far outside it makes no difference where. */
static int64_t fixed_of(double texels) {
    const double far = 1 << 30;
    if (!(texels > -far)) { /* also what is not a number */
        texels = -far;
    } else if (texels > far) {
        texels = far;
    }
    return (int64_t)floor(texels * ONE + 0.5);
}

typedef struct footprint {
    int64_t first[3];
    uint32_t fraction[3];
} footprint;

static footprint footprint_of(const bh__sample *s, const bh__ptx_texture_level *level,
                              bool linear) {
    const bh__ptx_texture *t = s->texture;
    const uint32_t size[3] = {level->width, level->height, level->depth};
    footprint f = {{0}, {0}};
    for (unsigned d = 0; d < t->dimensions; d++) {
        if (s->whole) {
            f.first[d] = s->texel[d];
        } else {
            double u = (double)s->at[d] * (t->normalized ? (double)size[d] : 1);
            if (linear) {
                int64_t fixed = fixed_of(u - 0.5);
                f.first[d] = fixed >> FRACTION_BITS;
                f.fraction[d] = (uint32_t)fixed & (ONE - 1);
            } else {
                f.first[d] = fixed_of(floor(u)) >> FRACTION_BITS;
            }
        }
        f.first[d] += s->offset[d];
    }
    return f;
}

static bool sample_level(const bh__sample *s, uint32_t number, uint64_t slice, bh__texel *out) {
    const bh__ptx_texture *t = s->texture;
    const bh__ptx_texture_level *level = &t->level[number];
    bool linear = t->linear && !s->whole && bh__texture_is_float(t);
    footprint f = footprint_of(s, level, linear);
    if (!linear) {
        return fetch(s, level, slice, f.first, out);
    }
    double sum[4] = {0};
    for (unsigned corner = 0; corner < 1u << t->dimensions; corner++) {
        int64_t index[3] = {0};
        uint32_t weight = 1;
        bh__texel texel;
        for (unsigned d = 0; d < t->dimensions; d++) {
            bool upper = (corner >> d & 1) != 0;
            index[d] = f.first[d] + upper;
            weight *= upper ? f.fraction[d] : ONE - f.fraction[d];
        }
        if (weight == 0) {
            continue;
        }
        if (!fetch(s, level, slice, index, &texel)) {
            return false;
        }
        for (unsigned n = 0; n < 4; n++) {
            sum[n] += weight * texel.value[n];
        }
    }
    for (unsigned n = 0; n < 4; n++) {
        set_value(t, out, n, ldexp(sum[n], -(int)(FRACTION_BITS * t->dimensions)));
    }
    return true;
}

/* ---- cubes ---- */

/* X(major axis, s and its sign, t and its sign), of the faces +x -x +y -y +z -z */
static const struct {
    uint8_t major, s, t;
    int8_t s_sign, t_sign;
} faces[6] = {{0, 2, 1, -1, -1}, {0, 2, 1, 1, -1}, {1, 0, 2, 1, 1},
              {1, 0, 2, 1, -1},  {2, 0, 1, 1, -1}, {2, 0, 1, -1, -1}};

static float derivative(const float v[3], const float dv[3], unsigned major, unsigned c, int sign) {
    float m = fabsf(v[major]), dm = v[major] < 0 ? -dv[major] : dv[major];
    return m == 0 ? 0 : (float)sign * (dv[c] * m - v[c] * dm) / (2 * m * m);
}

/* Replaces the direction with coordinates on a face. Returns the face. */
static unsigned enter_face(bh__sample *s) {
    float v[3] = {s->at[0], s->at[1], s->at[2]};
    float a[3] = {fabsf(v[0]), fabsf(v[1]), fabsf(v[2])};
    unsigned major = a[2] >= a[0] && a[2] >= a[1] ? 2 : a[1] >= a[0] ? 1 : 0;
    unsigned face = 2 * major + (v[major] < 0);
    unsigned sc = faces[face].s, tc = faces[face].t;
    float dx[2] = {derivative(v, s->dx, major, sc, faces[face].s_sign),
                   derivative(v, s->dx, major, tc, faces[face].t_sign)};
    float dy[2] = {derivative(v, s->dy, major, sc, faces[face].s_sign),
                   derivative(v, s->dy, major, tc, faces[face].t_sign)};
    float m = a[major] > 0 ? a[major] : 1;
    s->at[0] = ((float)faces[face].s_sign * v[sc] / m + 1) / 2;
    s->at[1] = ((float)faces[face].t_sign * v[tc] / m + 1) / 2;
    for (unsigned n = 0; n < 2; n++) {
        s->dx[n] = dx[n];
        s->dy[n] = dy[n];
    }
    return face;
}

/* ---- levels ---- */

static double gradient_length(const bh__sample *s, const float g[3]) {
    const bh__ptx_texture *t = s->texture;
    const uint32_t size[3] = {t->level[0].width, t->level[0].height, t->level[0].depth};
    double sum = 0;
    for (unsigned d = 0; d < t->dimensions; d++) {
        double part = (double)g[d] * (t->normalized ? (double)size[d] : 1);
        sum += part * part;
    }
    return sqrt(sum);
}

/* In steps of 1 / ONE, inside of the levels that exist. */
static uint32_t level_of(const bh__sample *s) {
    const bh__ptx_texture *t = s->texture;
    double level = 0;
    if (s->select == SAMPLE_LEVEL) {
        level = (double)s->level + (double)t->level_bias;
    } else if (s->select == SAMPLE_GRADIENT) {
        double x = gradient_length(s, s->dx), y = gradient_length(s, s->dy);
        level = log2(x > y ? x : y) + (double)t->level_bias;
    }
    double low = (double)t->level_min, high = (double)t->level_max, last = t->levels - 1;
    level = level >= low ? level : low;
    level = level <= high ? level : high;
    level = level >= 0 ? level : 0;
    level = level <= last ? level : last;
    return (uint32_t)floor(level * ONE + 0.5);
}

static uint64_t slice_of(bh__sample *s) {
    const bh__ptx_texture *t = s->texture;
    uint64_t layer = !t->layered ? 0 : s->layer < t->layers ? s->layer : t->layers - 1;
    return t->cube ? layer * 6 + enter_face(s) : layer;
}

bool bh__sample_get(bh__sample *s, bh__texel *out) {
    const bh__ptx_texture *t = s->texture;
    uint64_t slice = slice_of(s);
    uint32_t level = level_of(s), last = t->levels - 1;
    if (!t->mip_linear || s->whole || !bh__texture_is_float(t)) {
        level = (level + ONE / 2) >> FRACTION_BITS;
        return sample_level(s, level <= last ? level : last, slice, out);
    }
    uint32_t fine = level >> FRACTION_BITS, weight = level & (ONE - 1);
    bh__texel coarse;
    if (!sample_level(s, fine, slice, out)) {
        return false;
    }
    if (weight == 0) {
        return true;
    }
    if (!sample_level(s, fine + 1, slice, &coarse)) {
        return false;
    }
    for (unsigned n = 0; n < 4; n++) {
        double sum = (ONE - weight) * out->value[n] + weight * coarse.value[n];
        set_value(t, out, n, sum / ONE);
    }
    return true;
}

/* Counter-clockwise from the lower left, where y points down. */
bool bh__sample_gather(bh__sample *s, unsigned channel, bh__texel *out) {
    static const uint8_t order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    uint64_t slice = slice_of(s);
    const bh__ptx_texture_level *level = &s->texture->level[0];
    footprint f = footprint_of(s, level, true);
    for (unsigned n = 0; n < 4; n++) {
        bh__texel texel;
        int64_t index[3] = {f.first[0] + order[n][0], f.first[1] + order[n][1], 0};
        if (!fetch(s, level, slice, index, &texel)) {
            return false;
        }
        out->value[n] = texel.value[channel];
        out->bits[n] = texel.bits[channel];
    }
    return true;
}
