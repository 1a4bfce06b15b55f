/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_runtime_api.h declares the functions of this header. */
#ifndef BULKHEAD_CUDA_PROFILER_API_H
#define BULKHEAD_CUDA_PROFILER_API_H

#include "cuda_runtime_api.h"

#endif
