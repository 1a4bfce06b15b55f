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

/* How libstdc++ is configured decides what its other headers have. */
#if __has_include(<bits/c++config.h>)
#include <bits/c++config.h>
/* Later versions of clang accept the type as long as device code does not use it. */
#if __clang_major__ < 19
#undef _GLIBCXX_USE_FLOAT128
#endif
/* Its assertions, which are in constexpr functions too. Later versions of clang have these. */
#ifndef __CLANG_CUDA_WRAPPERS_BITS_CPP_CONFIG
namespace std {
__attribute__((noreturn)) inline __device__ void __glibcxx_assert_fail() noexcept {
    __trap();
    __builtin_unreachable();
}
__attribute__((noreturn)) inline __device__ void
__glibcxx_assert_fail(const char *file, int line, const char *function,
                      const char *condition) noexcept {
    __assertfail(condition, file, (unsigned)line, function, sizeof(char));
}
} // namespace std
#endif
#endif

#include "bulkhead_complex.h"
#include "bulkhead_std_math.h"

/* new is of each side by itself, and what throws is of the host. */
#include <new>
#if __has_include(<bits/functexcept.h>)
#include <bits/functexcept.h>
#endif

/* Other headers are for both sides as far as they are constexpr. */
#pragma clang force_cuda_host_device begin
#include <type_traits>
#if __has_include(<bits/move.h>)
#include <bits/move.h> /* swap */
#endif
#pragma clang force_cuda_host_device end

/* This declares functions that <list> defines, for the host. */
#if __has_include(<bits/stl_iterator_base_funcs.h>)
#include <bits/stl_iterator_base_funcs.h>
#endif

#pragma clang force_cuda_host_device begin
#include <tuple>
#pragma clang force_cuda_host_device end

/* What cuda_runtime.h brings along. */
#include <assert.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <math.h>
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
