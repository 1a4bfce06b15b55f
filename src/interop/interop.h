/* SPDX-License-Identifier: Apache-2.0 */
/* libbulkhead-cuda's own: the thread's error, the driver, mappings. */
#ifndef BH_INTEROP_INTEROP_H
#define BH_INTEROP_INTEROP_H

#include "bulkhead_cuda.h"
#include "cuda/driver/driver.h"
#include "error/error.h"

bh_error *bh__interop_last(void);
#define bh__interop_refuse(status, fix, ...)                                                       \
    bh__fail(bh__interop_last(), (status), (fix), __VA_ARGS__)
/* A call of libbulkhead failed: its error is this one's too. */
bh_status bh__interop_pass_on(bh_status status);

/* The driver, loaded once; NULL with the thread's error. */
const bh__driver *bh__interop_driver(void);
bh_status bh__interop_driver_failed(const bh__driver *cu, int result, bh_status status,
                                    const char *fix, const char *what);

/* Makes the primary context of a device current, and what was current before it again. */
typedef struct bh__interop_visit {
    const bh__driver *cu;
    int device;
    bh__cu_context before;
} bh__interop_visit;
bh_status bh__interop_enter(const bh__driver *cu, int device, bh__interop_visit *out);
void bh__interop_leave(const bh__interop_visit *visit);

/* The ordinal of a GPU in this process, by the UUID a token carries. */
bh_status bh__interop_find_device(const bh__driver *cu, const char *uuid, int *out);

#endif
