/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of wgmma in shared memory, in chunks of 16 bytes. */
#ifndef BH_PTX_MATRIX_DESCRIPTOR_H
#define BH_PTX_MATRIX_DESCRIPTOR_H

#include "ptx/run/exec.h"

#define CHUNK 16 /* bytes */

typedef struct bh__matrix_descriptor {
    uint32_t start, leading, stride; /* bytes */
    uint32_t base;                   /* where the pattern starts, in lines of 128 bytes */
    uint32_t width;                  /* of a swizzled line: 32, 64 or 128; 16: not swizzled */
    bool across; /* M or N is contiguous, not K: a chunk has elements of several rows */
} bh__matrix_descriptor;

bh__matrix_descriptor bh__matrix_descriptor_of(uint64_t bits, bool across);

/*
 * The chunk with number `chunk` along the contiguous dimension, of line `line` of the other one.
 * NULL: it is not in the block's shared memory, and the fault is recorded.
 */
const uint8_t *bh__matrix_chunk(bh__ptx_exec *x, const bh__matrix_descriptor *d, unsigned line,
                                unsigned chunk);

#endif
