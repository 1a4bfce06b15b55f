/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a box of a tensor, in the order in which they lie in shared memory. */
#ifndef BH_PTX_TENSOR_BOX_H
#define BH_PTX_TENSOR_BOX_H

#include <stddef.h>

#include "base/tensor.h"

enum {
    BH__TENSOR_CHUNK = 16,    /* swizzles move so many bytes together */
    BH__TENSOR_ROW_MAX = 2048 /* bytes of the longest row */
};

typedef struct bh__tensor_walk {
    const bh__tensor *tensor; /* checked */
    uint32_t rows;
    uint32_t row_bytes;
    uint32_t pitch; /* bytes from one row to the next in shared memory */
    uint32_t counts[BH__TENSOR_RANK], taken[BH__TENSOR_RANK];
    int64_t first[BH__TENSOR_RANK], at[BH__TENSOR_RANK];
    int64_t shifts[BH__TENSOR_RANK]; /* im2col: from a filter's corner to the element */
} bh__tensor_walk;

/* What is inside the tensor of the row that the walk is at. */
typedef struct bh__tensor_span {
    uint64_t address;
    uint32_t offset, bytes; /* in the row; bytes 0: all is outside */
} bh__tensor_span;

/* `offsets` are those of im2col, for each dimension but the first and the last; NULL: none. */
void bh__tensor_walk_begin(bh__tensor_walk *w, const bh__tensor *t, const int32_t *coordinates,
                           const uint16_t *offsets);
bh__tensor_span bh__tensor_walk_span(const bh__tensor_walk *w);
void bh__tensor_walk_next(bh__tensor_walk *w);

/* Where the bytes at an address of shared memory are with this swizzle. */
static inline uint64_t bh__tensor_swizzled(uint8_t swizzle, uint64_t address) {
    static const uint8_t masks[] = {[BH__SWIZZLE_NONE] = 0,
                                    [BH__SWIZZLE_32] = 0x10,
                                    [BH__SWIZZLE_64] = 0x30,
                                    [BH__SWIZZLE_128] = 0x70};
    return address ^ (address >> 3 & masks[swizzle]);
}

/* Fills a row with what elements outside of the tensor read as. */
void bh__tensor_fill(const bh__tensor *t, uint8_t *row, size_t bytes);
/* What a copy to shared memory makes of elements of this type. */
void bh__tensor_convert(const bh__tensor *t, uint8_t *elements, size_t bytes);

#endif
