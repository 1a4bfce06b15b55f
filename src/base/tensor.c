/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensor maps there can be. */
#include "base/tensor.h"

#include "base/checked.h"

enum { MAX_BOX = 256, MAX_STEP = 8, MAX_CHANNELS = 256, MAX_PIXELS = 1024, CHUNK = 16 };
#define MAX_ELEMENTS  (UINT64_C(1) << 32) /* of one dimension */
#define STRIDES_BELOW (UINT64_C(1) << 40)

uint32_t bh__tensor_element_bytes(const bh__tensor *t) {
    static const uint8_t bytes[BH__TENSOR_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return t->type < BH__TENSOR_TYPES ? bytes[t->type] : 0;
}

uint32_t bh__tensor_row(const bh__tensor *t) {
    return t->im2col ? t->channels : t->box[0];
}

uint32_t bh__tensor_pitch(const bh__tensor *t) {
    uint32_t bytes = bh__tensor_row(t) * bh__tensor_element_bytes(t);
    uint32_t width = t->swizzle == BH__SWIZZLE_NONE ? 0 : CHUNK << t->swizzle;
    return bytes > width ? bytes : width;
}

bool bh__tensor_bytes(const bh__tensor *t, uint64_t *out) {
    uint64_t end = t->dims[0] * bh__tensor_element_bytes(t); /* at most 2^35 */
    for (uint32_t i = 1; i < t->rank; i++) {
        uint64_t part;
        if (!bh__mul_u64(t->dims[i] - 1, t->strides[i - 1], &part) || !bh__add_u64(end, part, &end))
            return false;
    }
    *out = end;
    return true;
}

/* Where the slices of an interleave are is not known. */
bool bh__tensor_is_dense(const bh__tensor *t) {
    uint64_t bytes = t->dims[0] * bh__tensor_element_bytes(t);
    for (uint32_t i = 1; i < t->rank; i++) {
        if (t->dims[i] > 1 && t->strides[i - 1] != bytes) return false;
        bytes *= t->dims[i];
    }
    return t->interleave == BH__INTERLEAVE_NONE;
}

static const char *tensor_wrong(const bh__tensor *t) {
    bool wide = t->interleave == BH__INTERLEAVE_32;
    if (t->rank < 1 || t->rank > BH__TENSOR_RANK) return "a rank that is not 1 to 5";
    if (t->rank < 3 && t->im2col) return "a rank below 3 with im2col";
    if (t->rank < 3 && t->interleave) return "a rank below 3 with an interleave";
    if (t->type >= BH__TENSOR_TYPES) return "a type that elements of tensors cannot have";
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] == 0 || t->dims[i] > MAX_ELEMENTS)
            return "a dimension that is not 1 to 2^32";
    }
    for (uint32_t i = 0; i + 1 < t->rank; i++) {
        if (t->strides[i] % CHUNK) return "a stride that is not a multiple of 16";
        if (wide && t->strides[i] % 32)
            return "a stride that is not a multiple of 32, with an interleave of 32 bytes";
        if (t->strides[i] >= STRIDES_BELOW) return "a stride of 2^40 or more";
    }
    if (t->address % CHUNK) return "an address that is not a multiple of 16";
    return wide && t->address % 32
               ? "an address that is not a multiple of 32, with an interleave of 32 bytes"
               : NULL;
}

static const char *pixels_wrong(const bh__tensor *t) {
    int32_t limit = t->rank == 3 ? 1 << 15 : t->rank == 4 ? 1 << 7 : 1 << 4;
    if (t->channels == 0 || t->channels > MAX_CHANNELS) return "channels that are not 1 to 256";
    if (t->pixels == 0 || t->pixels > MAX_PIXELS) return "pixels that are not 1 to 1024";
    for (uint32_t i = 0; i + 2 < t->rank; i++) {
        if (t->lower[i] < -limit || t->lower[i] >= limit || t->upper[i] < -limit ||
            t->upper[i] >= limit)
            return "a corner outside of -2^15 to 2^15-1 (rank 3), -128 to 127 (rank 4) or -16 to "
                   "15 (rank 5)";
        if (t->lower[i] > (int64_t)t->dims[i + 1] - 1 + t->upper[i])
            return "corners with nothing between them";
    }
    return NULL;
}

static const char *box_wrong(const bh__tensor *t) {
    for (uint32_t i = 0; i < t->rank; i++) {
        if (!t->im2col && (t->box[i] == 0 || t->box[i] > MAX_BOX))
            return "a box that is not 1 to 256 in each dimension";
        if (t->steps[i] == 0 || t->steps[i] > MAX_STEP)
            return "a step that is not 1 to 8 in each dimension";
    }
    return NULL;
}

static const char *layout_wrong(const bh__tensor *t) {
    uint32_t bytes = bh__tensor_row(t) * bh__tensor_element_bytes(t);
    if (t->interleave > BH__INTERLEAVE_32) return "an unknown interleave";
    if (t->swizzle > BH__SWIZZLE_128) return "an unknown swizzle";
    if (t->interleave == BH__INTERLEAVE_32 && t->swizzle != BH__SWIZZLE_32)
        return "an interleave of 32 bytes without a swizzle of 32 bytes";
    if (!t->interleave && bytes % CHUNK)
        return "rows of the box that are not multiples of 16 bytes";
    if (!t->interleave && t->swizzle && bytes > 16u << t->swizzle)
        return "rows of the box that are longer than the swizzle";
    if (t->promotion > 3) return "an unknown promotion";
    return t->nan_fill && (t->type < BH__TENSOR_F16) ? "a fill of NaN with integers" : NULL;
}

const char *bh__tensor_wrong(const bh__tensor *t) {
    const char *wrong = tensor_wrong(t);
    if (!wrong) wrong = box_wrong(t);
    if (!wrong && t->im2col) wrong = pixels_wrong(t);
    return wrong ? wrong : layout_wrong(t);
}
