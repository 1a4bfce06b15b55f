/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/cuda.h: buffers for other CUDA code in the same program, and DLPack. Experimental; in
 * libbulkhead-cuda.
 *
 * A shareable buffer of a GPU is mapped into the program's own CUDA context, without a copy, at an
 * address that PyTorch, CuPy or any other CUDA code there can use:
 *
 *     bh_status map_array(bh_device gpu, uint64_t n, bh_buffer *x, bh_cuda_mapping *here) {
 *         bh_cuda_mapping mapping = BH_INIT(mapping);
 *         bh_buffer_options options = BH_INIT(options);
 *         options.flags = BH_BUFFER_SHAREABLE;
 *         bh_status status = bh_buffer_alloc(gpu, BH_F32, n, &options, x);
 *         if (status == BH_OK) status = bh_cuda_map(*x, &mapping);
 *         *here = mapping; // use here->address with cuLaunchKernel and the like, then
 *         return status;   // cuStreamSynchronize, then bh_launch with BH_INOUT(*x)
 *     }
 *
 * Rules that hold everywhere:
 *
 * - This library is separate so that libbulkhead stays free of CUDA. It loads the driver
 *   (libcuda.so.1) when it first needs it, and builds without any NVIDIA software.
 * - A fault of other CUDA code in this process ruins this process's CUDA, as always; the worker and
 *   the contents of the buffer survive it. A fault in the worker does not reach this process.
 * - The program keeps the order: it finishes its work (cuStreamSynchronize) before a launch that
 *   uses the buffer, and waits for the launch's ticket before its own work uses the buffer. The
 *   library synchronises the context before it removes a mapping.
 * - Calls return a bh_status; after a failed one bh_cuda_last_error has the details. Any thread may
 *   make any call.
 */
#ifndef BULKHEAD_CUDA_H
#define BULKHEAD_CUDA_H

#include "core.h"
#include "share.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The error of this thread's last failed call to this library. Returns its status. */
BH_API bh_status bh_cuda_last_error(bh_error *out);

/* BH_OK: there is a driver that works; otherwise the error says why not. */
BH_API bh_status bh_cuda_probe(void);

/* ---- mapping ---- */

typedef struct bh_cuda_mapping {
    uint32_t size;
    int32_t device;   /* ordinal, as this process counts its GPUs */
    uint64_t address; /* a CUdeviceptr in the device's primary context, the one that runtimes use */
    uint64_t bytes;
    uint64_t id; /* for bh_cuda_unmap */
} bh_cuda_mapping;

/* Maps a buffer that was allocated with BH_BUFFER_SHAREABLE. The memory stays while it is mapped,
 * even if the buffer is released. BH_E_UNSUPPORTED: it is not memory of a GPU, or cannot be
 * shared. */
BH_API bh_status bh_cuda_map(bh_buffer buffer, bh_cuda_mapping *out);
/* The same with what bh_buffer_export returned, perhaps in another process; no device needs to be
 * open. Tokens are refused as in bh_buffer_import. */
BH_API bh_status bh_cuda_map_share(const int fds[BH_SHARE_FDS], const bh_share_token *token,
                                   bh_cuda_mapping *out);
/* Waits for the work of the device's primary context first. */
BH_API bh_status bh_cuda_unmap(const bh_cuda_mapping *mapping);

/* ---- DLPack ----
 *
 * The structs of DLPack 1, under names of our own. Pass pointers to them as DLManagedTensor * and
 * DLManagedTensorVersioned *, or in a capsule named "dltensor" or "dltensor_versioned".
 */

enum { BH_DL_CPU = 1, BH_DL_CUDA = 2, BH_DL_CUDA_HOST = 3, BH_DL_CUDA_MANAGED = 13 };
enum {
    BH_DL_INT = 0,
    BH_DL_UINT = 1,
    BH_DL_FLOAT = 2,
    BH_DL_BFLOAT = 4,
    BH_DL_COMPLEX = 5,
    BH_DL_BOOL = 6
};
enum { BH_DL_READ_ONLY = 1, BH_DL_IS_COPIED = 2 };

typedef struct bh_dl_tensor {
    void *data;
    int32_t device_type; /* BH_DL_CPU ... */
    int32_t device_id;
    int32_t ndim;
    uint8_t type_code; /* BH_DL_INT ... */
    uint8_t type_bits;
    uint16_t type_lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: contiguous rows */
    uint64_t byte_offset;
} bh_dl_tensor;

typedef struct bh_dl_managed {
    bh_dl_tensor tensor;
    void *context;
    void (*deleter)(struct bh_dl_managed *self);
} bh_dl_managed;

typedef struct bh_dl_versioned {
    uint32_t version_major;
    uint32_t version_minor;
    void *context;
    void (*deleter)(struct bh_dl_versioned *self);
    uint64_t flags; /* BH_DL_READ_ONLY ... */
    bh_dl_tensor tensor;
} bh_dl_versioned;

/* A shareable buffer as a tensor of this process, without a copy: memory of a GPU is mapped as by
 * bh_cuda_map, memory of the CPU device as by bh_share_map. `shape` has `ndim` entries, whose
 * product is the buffer's count; NULL: one dimension. The receiver of the tensor calls its deleter
 * when done, on any thread. The memory stays until then, even if the buffer is released or its
 * device closed. */
BH_API bh_status bh_dlpack_export(bh_buffer buffer, const int64_t *shape, int32_t ndim,
                                  bh_dl_managed **out);
BH_API bh_status bh_dlpack_export_versioned(bh_buffer buffer, const int64_t *shape, int32_t ndim,
                                            bh_dl_versioned **out);

/* A new buffer on `device` with a copy of the tensor's elements, because a worker cannot use memory
 * that others allocated. From a GPU to a device on the same GPU this is one copy there (and the
 * buffer is shareable); otherwise it goes through host memory. The tensor's own stream must be done
 * with it. Elements must be contiguous, row after row (BH_E_UNSUPPORTED otherwise). Calls the
 * tensor's deleter if it succeeds, and only then. */
BH_API bh_status bh_dlpack_import(bh_device device, bh_dl_managed *tensor, bh_buffer *out);
BH_API bh_status bh_dlpack_import_versioned(bh_device device, bh_dl_versioned *tensor,
                                            bh_buffer *out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
