/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/tensor_map.h: tensor maps, with which kernels for sm_90 copy boxes of tensors between
 * global and shared memory (cp.async.bulk.tensor). Experimental.
 *
 * A kernel gets a map as a parameter `const __grid_constant__ CUtensorMap`. Here it works on tiles
 * of 64 x 32 floats of a matrix:
 *
 *     bh_status scale(bh_kernel kernel, bh_buffer matrix, uint32_t columns, uint32_t rows) {
 *         bh_tensor_shape shape = BH_INIT(shape);
 *         shape.type = BH_F32;
 *         shape.rank = 2;
 *         shape.dimensions[0] = columns;
 *         shape.dimensions[1] = rows;
 *         shape.strides[0] = columns * sizeof(float);
 *         shape.box[0] = 64;
 *         shape.box[1] = 32;
 *         bh_tensor_map map;
 *         bh_status status = bh_tensor_map_create(matrix, &shape, &map);
 *         if (status) return status;
 *         bh_shape grid = BH_SHAPE((columns + 63) / 64, (rows + 31) / 32, 1, 128, 1, 1);
 *         status = bh_launch(kernel, grid, BH_ARGS(BH_TENSOR_INOUT(map)), NULL, NULL);
 *         bh_tensor_map_release(map);
 *         return status;
 *     }
 *
 * A map is a description of a buffer and survives the loss of a worker. A launch that gets one uses
 * the buffer as if it were an argument itself: it waits for other work on the buffer, and what it
 * could write is suspect after a loss. An output (BH_TENSOR_OUT) makes suspect bytes good again
 * only if the tensor fills the buffer, without gaps between its rows: map a view for a part of a
 * buffer. The bytes that the kernel gets are made for that launch.
 */
#ifndef BULKHEAD_TENSOR_MAP_H
#define BULKHEAD_TENSOR_MAP_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bh_tensor_map {
    uint64_t id;
} bh_tensor_map;

enum {
    BH_TENSOR_NAN_FILL = 1u << 0, /* what is outside of the tensor reads as a NaN, not as zero */
    BH_TENSOR_FTZ = 1u << 1,      /* BH_F32: the driver's type .ftz; see docs/tensor-maps.md */
    BH_TENSOR_TF32 = 1u << 2,     /* BH_F32: loads round to the precision of .tf32 */
    BH_TENSOR_IM2COL = 1u << 3    /* the box is `lower` to `pixels`, for copies in .im2col mode */
};

/* How the 16-byte pieces of a box are arranged in shared memory, against bank conflicts. */
enum { BH_SWIZZLE_NONE = 0, BH_SWIZZLE_32 = 1, BH_SWIZZLE_64 = 2, BH_SWIZZLE_128 = 3 };
/* Slices of so many bytes of dimension 0, in memory. A GPU has it, the CPU device does not. */
enum { BH_INTERLEAVE_NONE = 0, BH_INTERLEAVE_16 = 1, BH_INTERLEAVE_32 = 2 };
/* A hint: so many bytes are fetched to the L2 cache at once. */
enum { BH_PROMOTE_NONE = 0, BH_PROMOTE_64 = 1, BH_PROMOTE_128 = 2, BH_PROMOTE_256 = 3 };

/* Dimension 0 is the innermost one; its elements follow each other without gaps. */
typedef struct bh_tensor_shape {
    uint32_t size;
    bh_type
        type; /* BH_U8, BH_U16, BH_U32, BH_I32, BH_U64, BH_I64, BH_F16, BH_BF16, BH_F32, BH_F64 */
    uint32_t rank;          /* 1 to 5 dimensions; 3 to 5 with an interleave or BH_TENSOR_IM2COL */
    uint32_t flags;         /* BH_TENSOR_... */
    uint64_t dimensions[5]; /* in elements, at most 2^32 each */
    uint64_t strides[4]; /* [i]: bytes from one element of dimension i + 1 to the next, a multiple
                               of 16 (of 32 with BH_INTERLEAVE_32) below 2^40 */
    uint32_t box[5];     /* elements that one copy passes over, 1 to 256 each. Those of dimension 0
                               are a multiple of 16 bytes, and with a swizzle not longer than it.
                               A kernel must begin at such a multiple too: other boxes fault */
    uint32_t steps[5];   /* from one element that is copied to the next: 1 to 8; 0 counts as 1.
                               That of dimension 0 has no effect without an interleave */
    uint32_t interleave; /* BH_INTERLEAVE_...; _32 requires BH_SWIZZLE_32 */
    uint32_t swizzle;    /* BH_SWIZZLE_... */
    uint32_t promotion;  /* BH_PROMOTE_... */
    /* BH_TENSOR_IM2COL, in place of `box`. Dimensions are channels, width, height, depth, images;
     * of rank 4 without depth, of rank 3 without height too. [0] is of the width. */
    int32_t lower[3]; /* the first corner of a filter, from the first element on */
    int32_t upper[3]; /* the last one, from the last element on. Both are within -2^15 to 2^15-1 for
                          rank 3, -128 to 127 for rank 4, -16 to 15 for rank 5 */
    uint32_t channels; /* 1 to 256 */
    uint32_t pixels;   /* 1 to 1024 */
    uint32_t reserved;
} bh_tensor_shape;

/* The tensor begins where the buffer, which may be a view, begins: at a multiple of 16, with
 * BH_INTERLEAVE_32 of 32. BH_E_INVALID: there is no such map, or the tensor is longer than the
 * buffer; BH_E_UNSUPPORTED: the device does not have it. A launch on a GPU before sm_90 ends with
 * BH_E_UNSUPPORTED. */
BH_API bh_status bh_tensor_map_create(bh_buffer buffer, const bh_tensor_shape *shape,
                                      bh_tensor_map *out);
/* Submitted work may still use it. */
BH_API bh_status bh_tensor_map_release(bh_tensor_map map);

/* For BH_ARGS: what the kernel does with the buffer through the map. They count among the
 * BH_OBJECTS_MAX of a launch. Sequences do not take them; a prepared launch keeps those that it was
 * prepared with. */
#define BH_TENSOR_IN(map)    bh_arg_tensor_map(map, BH_ACCESS_IN)
#define BH_TENSOR_OUT(map)   bh_arg_tensor_map(map, BH_ACCESS_OUT)
#define BH_TENSOR_INOUT(map) bh_arg_tensor_map(map, BH_ACCESS_INOUT)

static inline bh_arg bh_arg_tensor_map(bh_tensor_map map, uint16_t access) {
    return bh_arg_words(BH_ARG_TENSOR_MAP, access, 0, map.id, 0);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
