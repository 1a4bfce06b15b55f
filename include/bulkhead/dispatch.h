/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/dispatch.h: a kernel on arrays of the host, in one call. Experimental.
 *
 * The library takes buffers, copies the inputs to the device, runs the kernel, copies the outputs
 * back and releases the buffers.
 *
 *     bh_status saxpy_arrays(bh_kernel saxpy, float a, const float *x, float *y, uint32_t n) {
 *         return bh_dispatch(saxpy, BH_GRID(n, 256),
 *                            BH_ARGS(a, BH_HOST_IN(x, n * sizeof *x),
 *                                    BH_HOST_INOUT(y, n * sizeof *y), n),
 *                            NULL);
 *     }
 */
#ifndef BULKHEAD_DISPATCH_H
#define BULKHEAD_DISPATCH_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Arguments beside those of launches: arrays of the program that the kernel reads, writes whole, or
 * reads and writes. What it wrote is copied back only if it completed without an error. Numbers and
 * buffers, which stay on the device, are passed as in launches. At most 1024 arguments. */
#define BH_HOST_IN(data, bytes)    bh_arg_host((data), (bytes), BH_ACCESS_IN)
#define BH_HOST_OUT(data, bytes)   bh_arg_host((data), (bytes), BH_ACCESS_OUT)
#define BH_HOST_INOUT(data, bytes) bh_arg_host((data), (bytes), BH_ACCESS_INOUT)

static inline bh_arg bh_arg_host(const void *data, uint64_t bytes, uint16_t access) {
    return bh_arg_words(BH_ARG_HOST, access, 0, (uint64_t)(uintptr_t)data, bytes);
}

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
BH_API bh_status bh_dispatch(bh_kernel kernel, bh_shape shape, bh_args args,
                             const bh_dispatch_options *options);

typedef struct bh_dispatch_item {
    uint32_t size;
    bh_status status; /* out: its result */
    bh_kernel kernel;
    bh_shape shape;
    uint32_t attempts; /* out: how often it was started */
    uint32_t reserved;
    bh_args args;
    bh_error *error; /* out: the details of its error; NULL: not wanted */
} bh_dispatch_item;

/* Runs many items on one device, over several lanes: while one runs, others are copied to the
 * device and back. Small arrays of successive items are moved together, with one transfer in each
 * direction. Items are independent: they run in any order, and one that fails does not affect the
 * others. Returns the first error in the order given. item_size is the sizeof of an item. */
BH_API bh_status bh_dispatch_batch(bh_dispatch_item *items, size_t item_size, size_t count,
                                   const bh_dispatch_options *options);

#ifdef __cplusplus
} /* extern "C" */

/* For the lists of BH_ARGS, as in args.h. */
namespace bulkhead {
namespace detail {

template <size_t N>
inline bh_status bh_dispatch(bh_kernel kernel, bh_shape shape, const arg_list<N> &args,
                             const bh_dispatch_options *options) {
    return ::bh_dispatch(kernel, shape, args, options);
}

} // namespace detail
} // namespace bulkhead
#endif

#endif
