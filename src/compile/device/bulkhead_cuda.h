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

#include "bulkhead_atomics.h"
#include "bulkhead_bits.h"
#include "bulkhead_builtins.h"
#include "bulkhead_convert.h"
#include "bulkhead_math.h"
#include "bulkhead_memory.h"
#include "bulkhead_qualifiers.h"
#include "bulkhead_rounding.h"
#include "bulkhead_runtime.h"
#include "bulkhead_sync.h"
#include "bulkhead_types.h"
#include "bulkhead_vectors.h"
#include "bulkhead_warp.h"

#endif
