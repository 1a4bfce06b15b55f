/* SPDX-License-Identifier: Apache-2.0 */
/* What a tensor map says: a tensor in memory, and the box of it that one copy moves. */
#ifndef BH_BASE_TENSOR_H
#define BH_BASE_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BH__TENSOR_RANK = 5,        /* the most dimensions */
    BH__TENSOR_MAP_BYTES = 128, /* of the object that a kernel gets */
    BH__TENSOR_MAP_ALIGN = 64
};

/* The numbers are those of the CUDA driver, as are all below. */
enum {
    BH__TENSOR_U8,
    BH__TENSOR_U16,
    BH__TENSOR_U32,
    BH__TENSOR_I32,
    BH__TENSOR_U64,
    BH__TENSOR_I64,
    BH__TENSOR_F16,
    BH__TENSOR_F32,
    BH__TENSOR_F64,
    BH__TENSOR_BF16,
    BH__TENSOR_F32_FTZ,
    BH__TENSOR_TF32,
    BH__TENSOR_TF32_FTZ,
    BH__TENSOR_TYPES
};

enum { BH__INTERLEAVE_NONE, BH__INTERLEAVE_16, BH__INTERLEAVE_32 };
enum { BH__SWIZZLE_NONE, BH__SWIZZLE_32, BH__SWIZZLE_64, BH__SWIZZLE_128 };

typedef struct bh__tensor {
    uint64_t address;
    uint64_t dims[BH__TENSOR_RANK]; /* elements; [0] is innermost */
    uint64_t
        strides[BH__TENSOR_RANK - 1]; /* [i]: bytes from one element of dims[i + 1] to the next */
    uint32_t box[BH__TENSOR_RANK];    /* not of im2col */
    uint32_t steps[BH__TENSOR_RANK];  /* from one element that is moved to the next */
    uint8_t rank, type, interleave, swizzle;
    uint8_t promotion; /* of fetches to the L2 cache: a hint */
    uint8_t nan_fill;  /* 1: what is outside reads as a NaN; 0: as zero */
    uint8_t im2col;    /* 1: it has what follows; [i] is of dims[i + 1] */
    uint8_t reserved;
    int32_t lower[BH__TENSOR_RANK - 2], upper[BH__TENSOR_RANK - 2];
    uint32_t channels, pixels;
} bh__tensor;

uint32_t bh__tensor_element_bytes(const bh__tensor *t);
/* Elements of a row of the box: what lies together in shared memory. */
uint32_t bh__tensor_row(const bh__tensor *t);
/* Bytes from one row of the box to the next in shared memory: with a swizzle at least its width. */
uint32_t bh__tensor_pitch(const bh__tensor *t);
/* From the address to behind the last element. False: more than 2^64. */
bool bh__tensor_bytes(const bh__tensor *t, uint64_t *out);
/* Returns true if every byte of bh__tensor_bytes, which can be computed, belongs to an element. */
bool bh__tensor_is_dense(const bh__tensor *t);
/* Returns NULL if there can be such a map; otherwise what is wrong, "a box of more than ...". */
const char *bh__tensor_wrong(const bh__tensor *t);

#endif
