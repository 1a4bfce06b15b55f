/* SPDX-License-Identifier: Apache-2.0 */
/* Types and bit casts that the other headers use. */
#ifndef BULKHEAD_TYPES_H
#define BULKHEAD_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "bulkhead_qualifiers.h"

typedef __SIZE_TYPE__ size_t;
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef enum cudaError { cudaSuccess = 0, cudaErrorUnknown = 999 } cudaError_t;

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
