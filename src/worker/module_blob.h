/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the description of a module, the bh__module_blob that goes to the application. */
#ifndef BH_WORKER_MODULE_BLOB_H
#define BH_WORKER_MODULE_BLOB_H

#include <stdbool.h>

#include "error/error.h"
#include "wire/message.h"

typedef struct bh__blob_part {
    uint8_t *bytes;
    size_t count, capacity;
} bh__blob_part;

/* Starts as all zeros. Lack of memory is reported by bh__blob_finish. */
typedef struct bh__blob {
    bh__blob_part kernels, params, variables, names;
    bool failed;
} bh__blob;

/* The offsets in `kernel` and `variable` are filled in here. Everything is copied. */
void bh__blob_add_kernel(bh__blob *blob, const char *name, bh__blob_kernel kernel,
                         const bh__blob_param *params);
void bh__blob_add_variable(bh__blob *blob, const char *name, bh__blob_variable variable);

/* Makes the descriptor. Frees the parts, whether it succeeds or not. */
bh_status bh__blob_finish(bh__blob *blob, bh_error *error, int *out_fd);

#endif
