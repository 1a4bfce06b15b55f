/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/dispatch.h: a kernel on arrays of the host, in one call. Experimental.
 *
 * The library takes buffers, copies the inputs to the device, runs the kernel, copies the outputs
 * back and releases the buffers.
 *
 *     bh_status saxpy_arrays(bh_kernel saxpy, float a, const float *x, float *y, uint32_t n) {
 *         bh_dispatch_arg args[] = {BH_HOST_VALUE(&a, sizeof a), BH_HOST_IN(x, n * sizeof *x),
 *                                   BH_HOST_INOUT(y, n * sizeof *y), BH_HOST_VALUE(&n, sizeof n)};
 *         return bh_dispatch(saxpy, BH_GRID(n, 256), args, 4, NULL);
 *     }
 */
#ifndef BULKHEAD_DISPATCH_H
#define BULKHEAD_DISPATCH_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BH_DISPATCH_VALUE = 1, /* a number or struct: the bytes at `input` */
    BH_DISPATCH_IN = 2,    /* an array that the kernel reads */
    BH_DISPATCH_OUT = 3,   /* an array that it writes whole */
    BH_DISPATCH_INOUT = 4  /* an array that it reads and writes; the two pointers may be the same */
};

typedef struct bh_dispatch_arg {
    uint32_t kind; /* BH_DISPATCH_... */
    uint32_t reserved;
    uint64_t bytes;
    const void *input;
    void *output; /* written only if the kernel completed without an error */
} bh_dispatch_arg;

typedef struct bh_dispatch_options {
    uint32_t size;
    uint32_t flags;       /* BH_SUBMIT_IDEMPOTENT */
    uint64_t deadline_ns; /* of each kernel; 0: the device's default */
    uint32_t lanes;       /* of a batch: used concurrently; 0: three, at most 8 */
    /* How often an item is run again, by itself, if it was lost with its worker or is one of
     * several possible causes of the loss; at most 100. */
    uint32_t retries;
} bh_dispatch_options;

/* Returns when the outputs are written, or with the error of the kernel. */
BH_API bh_status bh_dispatch(bh_kernel kernel, bh_shape shape, const bh_dispatch_arg *args,
                             size_t arg_count, const bh_dispatch_options *options);

typedef struct bh_dispatch_item {
    uint32_t size;
    bh_status status; /* out: its result */
    bh_kernel kernel;
    bh_shape shape;
    uint32_t attempts; /* out: how often it was started */
    uint32_t reserved;
    const bh_dispatch_arg *args;
    size_t arg_count;
    bh_error *error; /* out: the details of its error; NULL: not wanted */
} bh_dispatch_item;

/* Runs many items on one device, over several lanes: while one runs, others are copied to the
 * device and back. Small arrays of successive items are moved together, with one transfer in each
 * direction. Items are independent: they run in any order, and one that fails does not affect the
 * others. Returns the first error in the order given. items[0].size is the length of every item. */
BH_API bh_status bh_dispatch_batch(bh_dispatch_item *items, size_t count,
                                   const bh_dispatch_options *options);

#ifdef __cplusplus
} /* extern "C" */
#endif

#define BH_HOST_VALUE(data, bytes) bh_dispatch_array(BH_DISPATCH_VALUE, (data), NULL, (bytes))
#define BH_HOST_IN(data, bytes)    bh_dispatch_array(BH_DISPATCH_IN, (data), NULL, (bytes))
#define BH_HOST_OUT(data, bytes)   bh_dispatch_array(BH_DISPATCH_OUT, NULL, (data), (bytes))
#define BH_HOST_INOUT(data, bytes) bh_dispatch_array(BH_DISPATCH_INOUT, (data), (data), (bytes))

static inline bh_dispatch_arg bh_dispatch_array(uint32_t kind, const void *input, void *output,
                                                uint64_t bytes) {
    bh_dispatch_arg arg = {kind, 0, bytes, input, output};
    return arg;
}

#endif
