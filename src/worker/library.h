/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries as modules: their description for the application, and the requests of their calls. */
#ifndef BH_WORKER_LIBRARY_H
#define BH_WORKER_LIBRARY_H

#include "error/error.h"
#include "library/operation.h"
#include "worker/device.h"

/* Describes a library as a module whose kernels are its operations. */
bh_status bh__library_describe(const bh__library *library, bh_error *error, int *out_blob);

enum { BH__REQUEST_BYTES = 1024 };

/* A call as it came: the request with addresses in place of buffers. */
typedef struct bh__library_call {
    const bh__operation *operation;
    bh_type types[BH__OPERANDS];
    union {
        uint8_t bytes[BH__REQUEST_BYTES];
        uint64_t aligned;
    } request;
} bh__library_call;

/* Reads a launch of an operation. */
bh_status bh__library_call_read(const bh__library *library, const bh__work *work, bh_error *error,
                                bh__library_call *out);

#endif
