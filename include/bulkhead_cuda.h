/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbulkhead-cuda: Bulkhead buffers for other CUDA code in the same program, and DLPack.
 *
 * A shareable buffer of a GPU is mapped into the program's own CUDA context, without a copy, at an
 * address that PyTorch, CuPy or any other CUDA code there can use:
 *
 *     bh_buffer x;
 *     bh_cuda_mapping here = BH_INIT(here);
 *     bh_buffer_alloc_shareable(gpu, BH_F32, n, &x);
 *     bh_cuda_map(x, &here);
 *     ... cuLaunchKernel and the like, on here.address; cuStreamSynchronize ...
 *     bh_launch(kernel, BH_GRID(n, 256), BH_ARGS(BH_INOUT(x), n), &done);
 *
 * What holds everywhere:
 *
 * - This library is apart from libbulkhead so that one stays free of CUDA. It loads the driver
 *   (libcuda.so.1) when it first needs it and builds without any NVIDIA software.
 * - A fault of other CUDA code in this process ruins this process's CUDA, as ever; the compartment and
 *   what is in the buffer survive it, and a fault in the compartment does not reach this process.
 * - Order is the program's to keep: finish work here (cuStreamSynchronize) before a launch that uses
 *   the buffer, and wait for the launch's ticket before work here uses it. The library synchronises
 *   the context before it takes a mapping away.
 * - Calls return a bh_status; after a failed one bh_cuda_last_error tells more. Any thread may call.
 */
#ifndef BULKHEAD_CUDA_H
#define BULKHEAD_CUDA_H

#include "bulkhead.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The last failed call of this thread to this library. Returns its status. */
BH_API bh_status bh_cuda_last_error(bh_error *out);

/* BH_OK: there is a driver that works; otherwise the error says why not. */
BH_API bh_status bh_cuda_probe(void);

/* ---- mapping --------------------------------------------------------------------------------- */

typedef struct bh_cuda_mapping {
    uint32_t size;
    int32_t device;   /* ordinal, as this process counts its GPUs */
    uint64_t address; /* a CUdeviceptr in the device's primary context, the one runtimes use */
    uint64_t bytes;
    uint64_t id; /* for bh_cuda_unmap */
} bh_cuda_mapping;

/* Maps a buffer from bh_buffer_alloc_shareable. The memory stays while it is mapped, whatever becomes
 * of the buffer. BH_E_UNSUPPORTED: it is no memory of a GPU, or cannot be shared. */
BH_API bh_status bh_cuda_map(bh_buffer buffer, bh_cuda_mapping *out);
/* The same from what bh_buffer_export gave out, perhaps in another process; no compartment is needed.
 * Tokens are refused as bh_buffer_import refuses them. */
BH_API bh_status bh_cuda_map_share(const int fds[BH_SHARE_FDS], const bh_share_token *token,
                                   bh_cuda_mapping *out);
/* Waits for the work of the device's primary context first. */
BH_API bh_status bh_cuda_unmap(const bh_cuda_mapping *mapping);

/* ---- DLPack ------------------------------------------------------------------------------------
 *
 * The structs of DLPack 1, under names of our own: pass pointers to them as DLManagedTensor * and
 * DLManagedTensorVersioned *, or put them in a capsule named "dltensor" or "dltensor_versioned".
 */

enum { BH_DL_CPU = 1, BH_DL_CUDA = 2, BH_DL_CUDA_HOST = 3, BH_DL_CUDA_MANAGED = 13 };
enum { BH_DL_INT = 0, BH_DL_UINT = 1, BH_DL_FLOAT = 2, BH_DL_BFLOAT = 4, BH_DL_BOOL = 6 };
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
    int64_t *strides; /* in elements; NULL: rows one after the other */
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

/*
 * A shareable buffer as a tensor of this process, without a copy: memory of a GPU as bh_cuda_map maps
 * it, memory of the CPU device as bh_share_map does. `shape` has `ndim` entries whose product is the
 * buffer's count; NULL is one dimension. Whoever gets the tensor calls its deleter when done, on any
 * thread; the memory stays until then, also if the buffer is released or its device closed.
 */
BH_API bh_status bh_dlpack_export(bh_buffer buffer, const int64_t *shape, int32_t ndim,
                                  bh_dl_managed **out);
BH_API bh_status bh_dlpack_export_versioned(bh_buffer buffer, const int64_t *shape, int32_t ndim,
                                            bh_dl_versioned **out);

/*
 * A new buffer on `device` with a copy of the tensor's elements: memory that others made cannot be
 * taken into a compartment. From a GPU to a compartment on the same GPU it is one copy there (and
 * the buffer a shareable one), else it goes through host memory. The tensor's own stream must be
 * done with it. Elements must lie row after row without gaps (BH_E_UNSUPPORTED otherwise). Calls the
 * tensor's deleter if it succeeds, and only then.
 */
BH_API bh_status bh_dlpack_import(bh_device device, bh_dl_managed *tensor, bh_buffer *out);
BH_API bh_status bh_dlpack_import_versioned(bh_device device, bh_dl_versioned *tensor,
                                            bh_buffer *out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
