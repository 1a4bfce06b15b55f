/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/library.h: what calls of numerical libraries have in common. Experimental.
 *
 * A library call is a request like a transfer: it goes to a lane with bh_submit and into a sequence
 * with bh_sequence_add, it has a ticket and a deadline, work on the same buffers is ordered, and a
 * loss judges it like a launch. On a GPU it runs in NVIDIA's libraries, on the CPU device in those
 * of the system. blas.h, fft.h and solver.h have the operations.
 *
 * A device is opened with the libraries that it may use. Workers find them on the machine; a
 * library that is missing is BH_E_UNSUPPORTED, with what to install.
 *
 *     bh_status open_for_blas(bh_device *out) {
 *         bh_device_options options = BH_INIT(options);
 *         options.libraries = BH_LIBRARY_BLAS;
 *         return bh_device_open(&options, out);
 *     }
 *
 * Operands are vectors and matrices in buffers. Their element type is that of the buffer. Offsets,
 * counts and strides are in elements.
 */
#ifndef BULKHEAD_LIBRARY_H
#define BULKHEAD_LIBRARY_H

#include "request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads libraries now, so that the first call need not wait for it. Calls that must not wait
 * (BH_SUBMIT_NO_BLOCK, BH_LANE_NO_BLOCK) give BH_E_BUSY until their library is there.
 * BH_E_UNSUPPORTED: the device was opened without one of them, or the machine does not have it.
 * Operations that are quarantined may run again. */
BH_API bh_status bh_library_load(bh_device device, uint32_t libraries /* BH_LIBRARY_... */);

/* A number that an operation multiplies with. `im` is zero unless the elements are complex. */
typedef struct bh_scalar {
    double re, im;
} bh_scalar;

/* Of batch_stride: all members of a batch use the same elements. For inputs only. */
#define BH_BATCH_SHARED UINT64_MAX

/* Element i is at offset + i * stride. With a negative stride `offset` is still that of element 0,
 * which then lies behind the others. */
typedef struct bh_vector {
    bh_buffer buffer;
    uint64_t offset;
    uint64_t count;
    int64_t stride;        /* 0 counts as 1 */
    uint64_t batch_stride; /* from one vector of a batch to the next; 0: one behind the other */
} bh_vector;

enum {
    BH_MATRIX_COLUMN_MAJOR = 1u << 0, /* columns lie one behind the other; default: rows do */
    BH_MATRIX_CONJUGATE = 1u << 1     /* complex inputs: the conjugate of each element counts */
};

/* Row i begins at offset + i * stride; with BH_MATRIX_COLUMN_MAJOR column i does. */
typedef struct bh_matrix {
    bh_buffer buffer;
    uint64_t offset;
    uint64_t rows, columns;
    uint64_t stride;       /* 0: without gaps */
    uint64_t batch_stride; /* from one matrix of a batch to the next; 0: one behind the other */
    uint32_t flags;        /* BH_MATRIX_... */
    uint32_t reserved;
} bh_matrix;

enum { BH_ARRAY_RANK = 8 };

/* Element (i, j, ...) is at offset + i * stride[0] + j * stride[1] + ... With all strides 0 the
 * elements lie one behind the other, the last index fastest. */
typedef struct bh_array {
    bh_buffer buffer;
    uint64_t offset;
    uint32_t rank; /* 1 to BH_ARRAY_RANK */
    uint32_t reserved;
    uint64_t extent[BH_ARRAY_RANK];
    uint64_t stride[BH_ARRAY_RANK];
    uint64_t batch_stride; /* from one array of a batch to the next; 0: one behind the other */
} bh_array;

static inline bh_scalar bh_scalar_of(double re) {
    bh_scalar made = {re, 0};
    return made;
}

/* The first `count` elements of a buffer. */
static inline bh_vector bh_vector_of(bh_buffer buffer, uint64_t count) {
    bh_vector made = {buffer, 0, count, 1, 0};
    return made;
}

/* The first elements of a buffer, row by row without gaps. */
static inline bh_matrix bh_matrix_of(bh_buffer buffer, uint64_t rows, uint64_t columns) {
    bh_matrix made = {buffer, 0, rows, columns, 0, 0, 0, 0};
    return made;
}

/* The first elements of a buffer without gaps, the last index fastest. */
static inline bh_array bh_array_3d(bh_buffer buffer, uint64_t first, uint64_t second,
                                   uint64_t third) {
    bh_array made = {buffer, 0, 3, 0, {first, second, third}, {0}, 0};
    return made;
}
static inline bh_array bh_array_2d(bh_buffer buffer, uint64_t first, uint64_t second) {
    bh_array made = {buffer, 0, 2, 0, {first, second}, {0}, 0};
    return made;
}
static inline bh_array bh_array_1d(bh_buffer buffer, uint64_t count) {
    bh_array made = {buffer, 0, 1, 0, {count}, {0}, 0};
    return made;
}

/* A part of a matrix, which begins at an element of it. */
static inline bh_matrix bh_matrix_part(bh_matrix whole, uint64_t row, uint64_t column,
                                       uint64_t rows, uint64_t columns) {
    int by_columns = whole.flags & BH_MATRIX_COLUMN_MAJOR ? 1 : 0;
    uint64_t stride = whole.stride ? whole.stride : by_columns ? whole.rows : whole.columns;
    bh_matrix made = whole;
    made.offset += by_columns ? column * stride + row : row * stride + column;
    made.rows = rows;
    made.columns = columns;
    made.stride = stride;
    return made;
}

/* The same elements with rows and columns exchanged. Nothing is moved. */
static inline bh_matrix bh_matrix_transposed(bh_matrix of) {
    bh_matrix made = of;
    made.rows = of.columns;
    made.columns = of.rows;
    made.flags ^= BH_MATRIX_COLUMN_MAJOR;
    return made;
}

/* The same, conjugated. */
static inline bh_matrix bh_matrix_adjoint(bh_matrix of) {
    bh_matrix made = bh_matrix_transposed(of);
    made.flags ^= BH_MATRIX_CONJUGATE;
    return made;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
