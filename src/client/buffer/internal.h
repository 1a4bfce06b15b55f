/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: what the files of this room share. The room implements public calls only: allocating
 * buffers of all kinds (alloc.c), views and queries (buffer.c), sharing with other processes
 * (sharing.c).
 */
#ifndef BH_CLIENT_BUFFER_INTERNAL_H
#define BH_CLIENT_BUFFER_INTERNAL_H

#include "client/core/device.h"

/* ---- alloc.c ---- */

/* Creates the memory of a buffer, without a handle. On failure nothing is left and the thread's
 * error is set. Called with the lock held; may release it meanwhile. */
typedef bh_status bh__create_fn(bh__device *device, uint64_t bytes, void *context,
                                bh__memory **out);

typedef struct bh__allocation {
    bh_type type;
    uint64_t count, bytes;
    const char *tag;       /* NULL: none */
    const void *call_site; /* of the public call */
    bh__create_fn *create;
    void *context; /* of `create` */
} bh__allocation;

/* The path of all allocations: charges the tag, creates the memory, makes the handle, counts the
 * buffer. On failure all of it is undone. NULL: the thread's error is set. With the lock held;
 * `create` may release it. */
bh__memory *bh__allocate(bh__device *device, const bh__allocation *what, bh_buffer *out);

/* ---- sharing.c ---- */

/* A bh__create_fn for memory that can be exported. */
bh_status bh__shareable_create(bh__device *device, uint64_t bytes, void *context, bh__memory **out);

#endif
