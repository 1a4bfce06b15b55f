/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling: addresses, levels. The formulas are those of "Texture Fetching" in NVIDIA's CUDA
 * programming guide; how coordinates are rounded was found out on an H200. sample_texel.c has the
 * formats, sample_filter.c the sums.
 */
#include "ptx/texture/sample.h"

#include <math.h>

enum { COORDINATE_BITS = 20 /* that count behind the point of a normalised coordinate */ };

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

/* Only normalised coordinates can repeat. Outside of an image, whole ones read zero. */
static unsigned mode_of(const bh__sample *s, unsigned dimension) {
    unsigned mode = s->texture->address[dimension];
    bool repeats = mode == BH__ADDRESS_WRAP || mode == BH__ADDRESS_MIRROR;
    if (s->texture->cube) {
        return BH__ADDRESS_CLAMP;
    }
    return repeats && (s->whole || !s->texture->normalized) ? BH__ADDRESS_CLAMP : mode;
}

static bool fetch(const bh__sample *s, const bh__ptx_texture_level *level, const int64_t index[3],
                  unsigned dimensions, bh__texel *out) {
    const bh__ptx_texture *t = s->texture;
    bool outside = s->whole && t->layered && s->layer >= t->layers;
    const uint32_t size[3] = {level->width, level->height, level->depth};
    int64_t at[3] = {0};
    for (unsigned d = 0; d < dimensions; d++) {
        at[d] = index[d];
        outside |= !address(&at[d], size[d], mode_of(s, d)) || (s->whole && at[d] != index[d]);
    }
    if (outside) {
        bh__texel_border(t, s->whole, out);
        return true;
    }
    unsigned bytes = t->channels * t->bits / 8u;
    uint64_t where = level->address + (s->slice + (uint64_t)at[2]) * level->slice +
                     (uint64_t)at[1] * level->pitch + (uint64_t)at[0] * bytes;
    const uint8_t *p = bh__texel_at(s->x, s->lane, where, bytes, 0);
    if (p == NULL) {
        return false;
    }
    bh__texel_read(t, p, out);
    return true;
}

/* ---- one level ---- */

/* The coordinate in texels. A normalised one is cut off first; what is not a number counts as 0. */
static double in_texels(const bh__sample *s, unsigned d, uint32_t size) {
    const double far = 1 << 30; /* outside of every image */
    double x = d < s->texture->dimensions ? (double)s->at[d] : 0;
    if (s->texture->normalized) {
        const double one = 1 << COORDINATE_BITS;
        unsigned mode = mode_of(s, d);
        bool repeats = mode == BH__ADDRESS_WRAP || mode == BH__ADDRESS_MIRROR;
        x = floor(x * one);
        x = (repeats ? fmod(x, 2 * one) : x) / one * size;
    }
    return x != x ? 0 : x < -far ? -far : x > far ? far : x;
}

typedef struct footprint {
    int64_t first[3];
    uint32_t fraction[3];
} footprint;

static int64_t limited(int64_t value, int64_t last) {
    return value < 0 ? 0 : value > last ? last : value;
}

/* Linear: in steps of 1 / FILTER_ONE from half a texel on. Clamped coordinates may end `at_edge`:
 * at the middle of the last texel. */
static footprint footprint_of(const bh__sample *s, const bh__ptx_texture_level *level,
                              unsigned dimensions, bool linear, bool at_edge) {
    const uint32_t size[3] = {level->width, level->height, level->depth};
    footprint f = {{0}, {0}};
    for (unsigned d = 0; d < dimensions; d++) {
        if (s->whole) {
            f.first[d] = (int64_t)s->texel[d] + s->offset[d];
            continue;
        }
        double u = in_texels(s, d, size[d]);
        if (!linear) {
            f.first[d] = (int64_t)floor(u) + s->offset[d];
            continue;
        }
        int64_t fixed =
            (int64_t)floor((u - 0.5) * FILTER_ONE + 0.5) + (int64_t)s->offset[d] * FILTER_ONE;
        if (at_edge && mode_of(s, d) == BH__ADDRESS_CLAMP) {
            fixed = limited(fixed, ((int64_t)size[d] - 1) * FILTER_ONE);
        }
        f.first[d] = fixed >> FILTER_BITS;
        f.fraction[d] = (uint32_t)fixed & (FILTER_ONE - 1);
    }
    return f;
}

static bool is_linear(const bh__sample *s) {
    return s->texture->linear && !s->whole && bh__texture_is_float(s->texture);
}

/* Adds what a level gives, with a weight, to the texels that are mixed. */
static bool add_level(const bh__sample *s, uint32_t number, unsigned whole, bh__filter *out) {
    const bh__ptx_texture *t = s->texture;
    const bh__ptx_texture_level *level = &t->level[number];
    bool linear = is_linear(s);
    unsigned dimensions = t->dimensions;
    if (linear && dimensions == 1 && !t->layered && mode_of(s, 1) == BH__ADDRESS_BORDER) {
        dimensions = 2; /* a line is a plane of one row, read at its upper edge */
    }
    footprint f = footprint_of(s, level, dimensions, linear, true);
    uint16_t weight[8] = {(uint16_t)whole};
    if (linear) {
        bh__filter_weigh(weight, whole, dimensions, f.fraction);
    }
    for (unsigned corner = 0; corner < (linear ? 1u << dimensions : 1); corner++) {
        int64_t index[3] = {0};
        if (weight[corner] == 0) {
            continue;
        }
        for (unsigned d = 0; d < dimensions; d++) {
            index[d] = f.first[d] + (corner >> d & 1);
        }
        out->weight[out->count] = weight[corner];
        if (!fetch(s, level, index, dimensions, &out->texel[out->count++])) {
            return false;
        }
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

/* In steps of 1 / FILTER_ONE, toward zero. */
static int64_t steps_of(double level) {
    const double far = 1 << 20;
    return level != level ? 0
                          : (int64_t)((level < -far  ? -far
                                       : level > far ? far
                                                     : level) *
                                      FILTER_ONE);
}

/* Inside of the levels that exist. */
static uint32_t level_of(const bh__sample *s) {
    const bh__ptx_texture *t = s->texture;
    int64_t level = 0, low = steps_of((double)t->level_min), high = steps_of((double)t->level_max);
    if (s->select == SAMPLE_LEVEL) {
        level = steps_of((double)s->level) + steps_of((double)t->level_bias);
    } else if (s->select == SAMPLE_GRADIENT) {
        double x = gradient_length(s, s->dx), y = gradient_length(s, s->dy);
        double steps = floor(log2(x > y ? x : y) * FILTER_ONE + 0.5); /* rounded, unlike a level */
        level = steps_of(steps / FILTER_ONE) + steps_of((double)t->level_bias);
    }
    level = level < low ? low : level > high ? high : level;
    return (uint32_t)limited(level, ((int64_t)t->levels - 1) * FILTER_ONE);
}

static void enter_slice(bh__sample *s) {
    const bh__ptx_texture *t = s->texture;
    uint64_t layer = !t->layered ? 0 : s->layer < t->layers ? s->layer : t->layers - 1;
    s->slice = t->cube ? layer * 6 + enter_face(s) : layer;
}

bool bh__sample_get(bh__sample *s, bh__texel *out) {
    const bh__ptx_texture *t = s->texture;
    bh__filter filter = {.count = 0};
    enter_slice(s);
    uint32_t level = level_of(s), fine = level >> FILTER_BITS, part = level & (FILTER_ONE - 1);
    if (!t->mip_linear || s->whole || !bh__texture_is_float(t)) {
        fine = (level + FILTER_ONE / 2) >> FILTER_BITS;
        part = 0;
    }
    if (!add_level(s, fine, FILTER_ONE - part, &filter) ||
        (part != 0 && !add_level(s, fine + 1, part, &filter))) {
        return false;
    }
    if (filter.count == 1 && !is_linear(s)) {
        *out = filter.texel[0];
    } else {
        bh__filter_sum(t, &filter, out);
    }
    return true;
}

/* Counter-clockwise from the lower left, where y points down. */
bool bh__sample_gather(bh__sample *s, unsigned channel, bh__texel *out) {
    static const uint8_t order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    const bh__ptx_texture_level *level = &s->texture->level[0];
    enter_slice(s);
    footprint f = footprint_of(s, level, 2, true, false);
    for (unsigned n = 0; n < 4; n++) {
        bh__texel texel;
        int64_t index[3] = {f.first[0] + order[n][0], f.first[1] + order[n][1], 0};
        if (!fetch(s, level, index, 2, &texel)) {
            return false;
        }
        out->value[n] = texel.value[channel];
        out->bits[n] = texel.bits[channel];
    }
    return true;
}
