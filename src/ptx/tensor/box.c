/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a box of a tensor, and what its elements become on the way. */
#include "ptx/tensor/box.h"

#include <string.h>

/* ---- rows ---- */

void bh__tensor_walk_begin(bh__tensor_walk *w, const bh__tensor *t, const int32_t *coordinates,
                           const uint16_t *offsets) {
    *w = (bh__tensor_walk){.tensor = t, .rows = t->im2col ? t->pixels : 1};
    w->row_bytes = bh__tensor_row(t) * bh__tensor_element_bytes(t);
    w->pitch = bh__tensor_pitch(t);
    for (unsigned i = 0; i < t->rank; i++) {
        w->first[i] = w->at[i] = coordinates[i];
        w->counts[i] = (t->box[i] + t->steps[i] - 1) / t->steps[i];
        if (i > 0 && !t->im2col) {
            /* Saturated: such a box does not fit shared memory. */
            uint64_t rows = (uint64_t)w->rows * w->counts[i];
            w->rows = rows > UINT32_MAX ? UINT32_MAX : (uint32_t)rows;
        }
        if (offsets != NULL && i > 0 && i + 1 < t->rank) {
            w->shifts[i] = offsets[i - 1];
        }
    }
}

bh__tensor_span bh__tensor_walk_span(const bh__tensor_walk *w) {
    const bh__tensor *t = w->tensor;
    bh__tensor_span span = {.address = t->address};
    int64_t width = bh__tensor_row(t), from = w->at[0] < 0 ? -w->at[0] : 0;
    int64_t to = (int64_t)t->dims[0] - w->at[0];
    uint32_t bytes = bh__tensor_element_bytes(t);
    for (unsigned i = 1; i < t->rank; i++) {
        int64_t at = w->at[i] + w->shifts[i];
        if (at < 0 || at >= (int64_t)t->dims[i]) {
            return span;
        }
        span.address += (uint64_t)at * t->strides[i - 1];
    }
    if (to > width) {
        to = width;
    }
    if (from < to) {
        span.address += (uint64_t)(w->at[0] + from) * bytes;
        span.offset = (uint32_t)from * bytes;
        span.bytes = (uint32_t)(to - from) * bytes;
    }
    return span;
}

/* The next corner of a filter between the corners of the bounding box, then the next image. */
static void next_pixel(bh__tensor_walk *w) {
    const bh__tensor *t = w->tensor;
    unsigned last = t->rank - 1u;
    for (unsigned i = 1; i < last; i++) {
        w->at[i] += t->steps[i];
        if (w->at[i] <= (int64_t)t->dims[i] - 1 + t->upper[i - 1]) {
            return;
        }
        w->at[i] = t->lower[i - 1];
    }
    w->at[last]++;
}

void bh__tensor_walk_next(bh__tensor_walk *w) {
    const bh__tensor *t = w->tensor;
    if (t->im2col) {
        next_pixel(w);
        return;
    }
    for (unsigned i = 1; i < t->rank; i++) {
        w->at[i] += t->steps[i];
        if (++w->taken[i] < w->counts[i]) {
            return;
        }
        w->taken[i] = 0;
        w->at[i] = w->first[i];
    }
}

/* ---- elements ---- */

void bh__tensor_fill(const bh__tensor *t, uint8_t *row, size_t bytes) {
    static const uint8_t nan[2] = {0xf7, 0x7f}; /* for elements of all sizes, as an H200 has it */
    for (size_t at = 0; at < bytes; at++) {
        row[at] = t->nan_fill ? nan[at % sizeof nan] : 0;
    }
}

static uint32_t flush(uint32_t v) {
    return (v & 0x7f800000) == 0 ? v & 0x80000000 : v;
}

/* To 10 bits of fraction, to the nearest, ties to even. */
static uint32_t round_tf32(uint32_t v) {
    const uint32_t dropped = 0x1fff;
    if ((v & 0x7f800000) == 0x7f800000) {
        bool nan = (v & 0x7fffff) != 0;
        return (v & ~dropped) | (nan ? 0x400000 : 0);
    }
    return (v + (dropped >> 1) + (v >> 13 & 1)) & ~dropped;
}

void bh__tensor_convert(const bh__tensor *t, uint8_t *elements, size_t bytes) {
    bool ftz = t->type == BH__TENSOR_TF32_FTZ, tf32 = ftz || t->type == BH__TENSOR_TF32;
    for (size_t at = 0; tf32 && at < bytes; at += sizeof(uint32_t)) {
        uint32_t v;
        memcpy(&v, elements + at, sizeof v);
        v = ftz ? flush(v) : v;
        v = round_tf32(v);
        memcpy(elements + at, &v, sizeof v);
    }
}
