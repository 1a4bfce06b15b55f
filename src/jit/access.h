/* SPDX-License-Identifier: Apache-2.0 */
/* Where the lanes of an instruction access memory, and whether they may. */
#ifndef BH_JIT_ACCESS_H
#define BH_JIT_ACCESS_H

#include "jit/unit.h"

typedef struct bh__jit_place {
    const bh__ptx_code *code;
    bool writes, affine;
    bool shared, local; /* else global memory */
    uint32_t range;     /* global memory: which of the block's site_ranges */
    unsigned bytes;     /* that a lane accesses: one value, or a vector. Aligned to them */
    int64_t stride;
    LLVMValueRef base;   /* affine: lane 0's address, i64; else addresses, <32 x i64> */
    LLVMValueRef start;  /* i64: where the range starts, as an address of the kernel */
    LLVMValueRef size;   /* i64 */
    LLVMValueRef to;     /* ptr: where it starts in this process; local memory: lane 0's */
    LLVMValueRef usable; /* i1: may be accessed this way at all */
    LLVMTypeRef type;    /* an integer of these bytes; of 64 bits if they are 16 */
} bh__jit_place;

/*
 * Makes two ways. The fast one, where the builder is then, may access memory at `out`. The other
 * one calls the interpreter's handler. Returns where both meet: the fast one has to go there.
 */
LLVMBasicBlockRef bh__jit_begin_access(bh__jit_unit *u, const bh__jit_step *s, bh__jit_place *out);
/* <32 x ptr>; all lanes' addresses, also of those that do not run. */
LLVMValueRef bh__jit_pointers(bh__jit_unit *u, const bh__jit_place *a);
LLVMValueRef bh__jit_pointer(bh__jit_unit *u,
                             const bh__jit_place *a); /* lane 0's, or each part's */
bool bh__jit_is_single(const bh__jit_place *a);       /* one for all lanes */
bool bh__jit_is_contiguous(const bh__jit_place *a);   /* what lanes access follows each other */
bool bh__jit_is_split(const bh__jit_place *a);        /* each part has an address of its own */

/*
 * pairs.c: 16 bytes for each lane, as two values of 64 bits. Other threads see them as a whole or
 * not at all. A load gives values in the shape of its address: scalars, <parts x i64> or <32 x
 * i64>; a store of one address takes scalars, others take <32 x i64>.
 */
void bh__jit_load_pairs(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef out[2]);
void bh__jit_store_pairs(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef v[2]);

#endif
