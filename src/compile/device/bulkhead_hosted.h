/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's C and C++ library beside device code: a whole program. The math functions of the
 * device come first, so that std has them.
 */
#ifndef BULKHEAD_HOSTED_H
#define BULKHEAD_HOSTED_H

#if !__has_include(<bits/c++config.h>) && !__has_include(<__config>)
#error "the C++ library of the host is not installed"
#endif

#include "bulkhead_complex.h"
#include "bulkhead_std_math.h"

/* What throws is of the host. */
#if __has_include(<bits/functexcept.h>)
#include <bits/functexcept.h>
#endif

/* Other headers are for both sides as far as they are constexpr. */
#pragma clang force_cuda_host_device begin
#include <tuple>
#include <type_traits>
#if __has_include(<bits/move.h>)
#include <bits/move.h> /* swap */
#endif
#pragma clang force_cuda_host_device end

/* What cuda_runtime.h brings along. */
#include <assert.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <math.h>
#include <new>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"

/* What a launch with <<<...>>> is checked against. */
extern "C" __host__ cudaError_t cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0,
                                                  cudaStream_t stream = nullptr);
extern "C" __host__ unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0,
                                                         cudaStream_t stream = nullptr);

#endif
