/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of arrays that lie in any way. The dimension in which they lie closest is the inner
 * loop; dimensions that continue one another are one. */
#include "cpu/library/strided.h"

#include <stdlib.h>
#include <string.h>

typedef struct walk {
    uint32_t rank; /* at least 1 */
    bh__fft_dimension at[BH__CPU_DIMENSIONS];
} walk;

static bool continues(const bh__fft_dimension *outer, const bh__fft_dimension *inner) {
    return outer->out == inner->count * inner->out && outer->in == inner->count * inner->in;
}

/* The largest stride first. */
static walk walk_make(const bh__fft_dimension *dimensions, uint32_t count) {
    walk made = {0};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = made.rank;
        if (dimensions[i].count == 1) continue;
        for (; at > 0 && made.at[at - 1].out < dimensions[i].out; at--)
            made.at[at] = made.at[at - 1];
        made.at[at] = dimensions[i];
        made.rank++;
    }
    if (made.rank == 0) made.at[made.rank++] = (bh__fft_dimension){1, 1, 1};
    uint32_t kept = 1;
    for (uint32_t i = 1; i < made.rank; i++) {
        bh__fft_dimension *outer = &made.at[kept - 1];
        if (continues(outer, &made.at[i])) {
            *outer =
                (bh__fft_dimension){outer->count * made.at[i].count, made.at[i].in, made.at[i].out};
        } else {
            made.at[kept++] = made.at[i];
        }
    }
    made.rank = kept;
    return made;
}

/* Goes on to the next inner loop. False: that was the last. */
static bool walk_next(const walk *self, int64_t *index, int64_t *in, int64_t *out) {
    for (uint32_t i = self->rank - 1; i-- > 0;) {
        const bh__fft_dimension *at = &self->at[i];
        *in += at->in;
        *out += at->out;
        if (++index[i] < at->count) return true;
        *in -= at->in * at->count;
        *out -= at->out * at->count;
        index[i] = 0;
    }
    return false;
}

static void copy_row(const bh__fft_dimension *row, const uint8_t *from, uint8_t *to, size_t bytes) {
    if (row->in == 1 && row->out == 1) {
        memcpy(to, from, (size_t)row->count * bytes);
        return;
    }
    int64_t from_next = row->in * (int64_t)bytes, to_next = row->out * (int64_t)bytes;
    for (int64_t i = 0; i < row->count; i++, from += from_next, to += to_next) {
        if (bytes == 4)
            memcpy(to, from, 4);
        else if (bytes == 8)
            memcpy(to, from, 8);
        else
            memcpy(to, from, 16);
    }
}

void bh__cpu_strided_copy(const bh__fft_dimension *dimensions, uint32_t count, const void *from,
                          void *to, uint32_t element_bytes) {
    walk way = walk_make(dimensions, count);
    int64_t index[BH__CPU_DIMENSIONS] = {0}, in = 0, out = 0;
    do {
        copy_row(&way.at[way.rank - 1], (const uint8_t *)from + in * (int64_t)element_bytes,
                 (uint8_t *)to + out * (int64_t)element_bytes, element_bytes);
    } while (walk_next(&way, index, &in, &out));
}

/* `count` numbers, which lie `stride` apart. */
static void scale_floats(float *at, int64_t count, int64_t stride, float alpha) {
    for (int64_t i = 0; i < count; i++) at[i * stride] *= alpha;
}

static void scale_doubles(double *at, int64_t count, int64_t stride, double alpha) {
    for (int64_t i = 0; i < count; i++) at[i * stride] *= alpha;
}

static void scale_complex_floats(float *at, int64_t count, int64_t stride, bh_scalar alpha) {
    float re = (float)alpha.re, im = (float)alpha.im;
    for (int64_t i = 0; i < count; i++, at += 2 * stride) {
        float old = at[0];
        at[0] = old * re - at[1] * im;
        at[1] = old * im + at[1] * re;
    }
}

static void scale_complex_doubles(double *at, int64_t count, int64_t stride, bh_scalar alpha) {
    for (int64_t i = 0; i < count; i++, at += 2 * stride) {
        double old = at[0];
        at[0] = old * alpha.re - at[1] * alpha.im;
        at[1] = old * alpha.im + at[1] * alpha.re;
    }
}

static void scale_row(const bh__fft_dimension *row, bh_type type, uint8_t *at, bh_scalar alpha) {
    bool single = bh__real_type(type) == BH_F32, complex = bh__type_is_complex(type);
    float *floats = (float *)(void *)at;
    double *doubles = (double *)(void *)at;
    if (complex && (alpha.im != 0 || row->out != 1)) {
        if (single)
            scale_complex_floats(floats, row->count, row->out, alpha);
        else
            scale_complex_doubles(doubles, row->count, row->out, alpha);
        return;
    }
    /* Complex elements without gaps and a real factor: twice as many numbers. */
    int64_t count = complex ? 2 * row->count : row->count;
    if (single)
        scale_floats(floats, count, row->out, (float)alpha.re);
    else
        scale_doubles(doubles, count, row->out, alpha.re);
}

void bh__cpu_strided_scale(const bh__fft_dimension *dimensions, uint32_t count, bh_type type,
                           void *data, bh_scalar alpha) {
    bh__fft_dimension places[BH__CPU_DIMENSIONS];
    for (uint32_t i = 0; i < count; i++)
        places[i] = (bh__fft_dimension){dimensions[i].count, dimensions[i].out, dimensions[i].out};
    walk way = walk_make(places, count);
    int64_t index[BH__CPU_DIMENSIONS] = {0}, in = 0, out = 0;
    do {
        scale_row(&way.at[way.rank - 1], type,
                  (uint8_t *)data + out * (int64_t)bh__element_bytes(type), alpha);
    } while (walk_next(&way, index, &in, &out));
}
