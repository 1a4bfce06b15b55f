/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a tensor map on this device. */
#include "ptx/tensor/map.h"

#include <string.h>

#include "base/hash.h"

#define MAGIC 0x31504d5448424c42u

typedef struct packed {
    uint64_t magic; /* xor a hash of the rest */
    uint64_t address;
    uint64_t dims[BH__TENSOR_RANK], strides[BH__TENSOR_RANK - 1];
    uint16_t box[BH__TENSOR_RANK];
    uint8_t steps[BH__TENSOR_RANK];
    uint8_t rank, type, swizzle;
    uint8_t interleave : 2, promotion : 2, nan_fill : 1, im2col : 1;
    uint8_t reserved;
    int16_t lower[BH__TENSOR_RANK - 2], upper[BH__TENSOR_RANK - 2];
    uint16_t channels, pixels;
    uint8_t zero[4];
} packed;
_Static_assert(sizeof(packed) == BH__TENSOR_MAP_BYTES, "a map has no gaps");

static uint64_t seal(const packed *p) {
    uint64_t hash = 0, words[BH__TENSOR_MAP_BYTES / 8];
    memcpy(words, p, sizeof words);
    for (unsigned i = 1; i < sizeof words / sizeof *words; i++) {
        hash = bh__hash_u64(hash + words[i] + i);
    }
    return MAGIC ^ hash;
}

/* What does not fit becomes a value that is refused when the map is used. */
static uint16_t narrow(uint32_t value) {
    return value > UINT16_MAX ? UINT16_MAX : (uint16_t)value;
}

void bh__tensor_map_write(const bh__tensor *from, uint8_t out[BH__TENSOR_MAP_BYTES]) {
    packed p = {.address = from->address,
                .rank = from->rank,
                .type = from->type,
                .swizzle = from->swizzle,
                .interleave = from->interleave & 3,
                .promotion = from->promotion & 3,
                .nan_fill = from->nan_fill & 1,
                .im2col = from->im2col & 1,
                .channels = narrow(from->channels),
                .pixels = narrow(from->pixels)};
    memcpy(p.dims, from->dims, sizeof p.dims);
    memcpy(p.strides, from->strides, sizeof p.strides);
    for (unsigned i = 0; i < BH__TENSOR_RANK; i++) {
        p.box[i] = narrow(from->box[i]);
        p.steps[i] = from->steps[i] > UINT8_MAX ? UINT8_MAX : (uint8_t)from->steps[i];
    }
    for (unsigned i = 0; i < BH__TENSOR_RANK - 2; i++) {
        p.lower[i] = (int16_t)from->lower[i];
        p.upper[i] = (int16_t)from->upper[i];
    }
    p.magic = seal(&p);
    memcpy(out, &p, sizeof p);
}

const char *bh__tensor_map_read(const uint8_t bytes[BH__TENSOR_MAP_BYTES], bh__tensor *out) {
    packed p;
    memcpy(&p, bytes, sizeof p);
    if (p.magic != seal(&p)) {
        return "the 128 bytes there are not a tensor map";
    }
    *out = (bh__tensor){.address = p.address,
                        .rank = p.rank,
                        .type = p.type,
                        .swizzle = p.swizzle,
                        .interleave = p.interleave,
                        .promotion = p.promotion,
                        .nan_fill = p.nan_fill,
                        .im2col = p.im2col,
                        .channels = p.channels,
                        .pixels = p.pixels};
    memcpy(out->dims, p.dims, sizeof p.dims);
    memcpy(out->strides, p.strides, sizeof p.strides);
    for (unsigned i = 0; i < BH__TENSOR_RANK; i++) {
        out->box[i] = p.box[i];
        out->steps[i] = p.steps[i];
    }
    for (unsigned i = 0; i < BH__TENSOR_RANK - 2; i++) {
        out->lower[i] = p.lower[i];
        out->upper[i] = p.upper[i];
    }
    return NULL;
}
