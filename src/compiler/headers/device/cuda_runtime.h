/* SPDX-License-Identifier: Apache-2.0 */
/* What device code needs is in bulkhead_cuda.h; this adds the runtime API for the host part. */
#ifndef BULKHEAD_COMPAT_CUDA_RUNTIME_H
#define BULKHEAD_COMPAT_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"

#endif
