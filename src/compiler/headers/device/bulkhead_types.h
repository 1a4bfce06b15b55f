/* SPDX-License-Identifier: Apache-2.0 */
/* Types and bit casts that the other headers use. */
#ifndef BULKHEAD_TYPES_H
#define BULKHEAD_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "bulkhead_qualifiers.h"

#ifdef __BULKHEAD_HOSTED__
#include <sys/types.h>
#endif
typedef __SIZE_TYPE__ size_t;
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorCudartUnloading = 4,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidSymbol = 13,
    cudaErrorInvalidDevicePointer = 17,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInsufficientDriver = 35,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorInvalidSource = 300,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorSymbolNotFound = 500,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorLaunchTimeout = 702,
    cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorPeerAccessNotEnabled = 705,
    cudaErrorAssert = 710,
    cudaErrorHostMemoryAlreadyRegistered = 712,
    cudaErrorHostMemoryNotRegistered = 713,
    cudaErrorLaunchFailure = 719,
    cudaErrorCooperativeLaunchTooLarge = 720,
    cudaErrorNotPermitted = 800,
    cudaErrorNotSupported = 801,
    cudaErrorUnknown = 999
} cudaError_t;

/* The names that the host's C library has, and NVIDIA's compilers too. */
#if !defined(__BULKHEAD_HOSTED__)
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
#endif
typedef unsigned char uchar;

/* The same bits as another type of the same size. */
template <class To, class From> __BH_BOTH constexpr To __bh_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "the types must have the same size");
    return __builtin_bit_cast(To, from);
}

__BH_BOTH constexpr unsigned __bh_bits_of(float x) {
    return __builtin_bit_cast(unsigned, x);
}
__BH_BOTH constexpr unsigned long long __bh_bits_of(double x) {
    return __builtin_bit_cast(unsigned long long, x);
}
__BH_BOTH constexpr float __bh_float_of(unsigned x) {
    return __builtin_bit_cast(float, x);
}
__BH_BOTH constexpr double __bh_double_of(unsigned long long x) {
    return __builtin_bit_cast(double, x);
}

#endif
