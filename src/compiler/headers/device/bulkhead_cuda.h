/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C++ for clang without any NVIDIA software: included before every source. */
#ifndef BULKHEAD_CUDA_H
#define BULKHEAD_CUDA_H

#if !defined(__clang__) || !defined(__CUDA__)
#error "bulkhead_cuda.h is for clang in CUDA mode (-x cuda)"
#endif
#if __clang_major__ < 16
#error "bulkhead_cuda.h needs clang 16 or later"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "bulkhead_cuda.h needs an architecture of sm_70 or later"
#endif

#define __BULKHEAD__ 1
#ifndef __CUDACC__
#define __CUDACC__ 1
#endif

/* The version of CUDA whose language and API these headers follow. */
#define CUDA_VERSION           12040
#define CUDART_VERSION         CUDA_VERSION
#define __CUDACC_VER_MAJOR__   12
#define __CUDACC_VER_MINOR__   4
#define __CUDACC_VER_BUILD__   0
#define __CUDA_API_VERSION     CUDA_VERSION
#define __CUDART_API_VERSION   CUDA_VERSION
#define __CUDA_API_VER_MAJOR__ __CUDACC_VER_MAJOR__
#define __CUDA_API_VER_MINOR__ __CUDACC_VER_MINOR__

/* CUB, Thrust and libcu++ by their own headers: there are no numbers of 4 and 6 bits here, and an
 * older CUB has calls of templates that are warnings to NVIDIA's compilers. */
#define CCCL_DISABLE_NVFP4_SUPPORT 1
#define CCCL_DISABLE_NVFP6_SUPPORT 1
#if __has_warning("-Wmissing-template-arg-list-after-template-kw")
#pragma clang diagnostic warning "-Wmissing-template-arg-list-after-template-kw"
#endif

#include "bulkhead_atomics.h"
#include "bulkhead_bits.h"
#include "bulkhead_builtins.h"
#include "bulkhead_convert.h"
#include "bulkhead_math.h"
#include "bulkhead_memory.h"
#include "bulkhead_qualifiers.h"
#include "bulkhead_rounding.h"
#include "bulkhead_runtime.h"
#include "bulkhead_simd.h"
#include "bulkhead_sync.h"
#include "bulkhead_types.h"
#include "bulkhead_vectors.h"
#include "bulkhead_warp.h"

/* With the host's C++ library: a whole program, whose host part is checked too. */
#ifdef __BULKHEAD_HOSTED__
#include "bulkhead_hosted.h"
#endif

#endif
