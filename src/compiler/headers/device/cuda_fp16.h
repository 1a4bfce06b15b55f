/* SPDX-License-Identifier: Apache-2.0 */
/* Half precision: __half and __half2, conversions, arithmetic, comparisons. */
#ifndef BULKHEAD_CUDA_FP16_H
#define BULKHEAD_CUDA_FP16_H

#include "bulkhead_cuda.h"

#include "bulkhead_half_round.h"

__BH_BOTH unsigned short __bh_to_half_rn(float value) {
    unsigned short result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(value));
    return result;
}
__BH_BOTH unsigned short __bh_to_half_rz(float value) {
    unsigned short result;
    asm("cvt.rz.f16.f32 %0, %1;" : "=h"(result) : "f"(value));
    return result;
}
__BH_BOTH float __bh_to_half_widen(unsigned short value) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value));
    return result;
}

/* The bits alone. */
struct __half_raw {
    unsigned short x;
};
struct __attribute__((aligned(4))) __half2_raw {
    unsigned short x, y;
};

struct __half {
    unsigned short __x;

    __half() = default;
    __BH_METHOD __half(const __half_raw &raw) : __x(raw.x) {
    }
    __BH_METHOD operator __half_raw() const {
        return __half_raw{__x};
    }
    __BH_METHOD operator __half_raw() const volatile {
        return __half_raw{__x};
    }
    __BH_METHOD __half(float value) : __x(__bh_to_half_rn(value)) {
    }
    /* through float, rounded to odd, so that the result is rounded once */
    __BH_METHOD __half(double value) : __x(__bh_to_half_rn(__bh_odd_float(value))) {
    }
    template <class T, class = __bh_if_integer<T>>
    __BH_METHOD __half(T value) : __x(__bh_to_half_rn(__bh_odd_float(value))) {
    }
    static __BH_METHOD __half from_bits(unsigned short value) {
        __half result;
        result.__x = value;
        return result;
    }
    __BH_METHOD operator float() const {
        return __bh_to_half_widen(__x);
    }
    __BH_METHOD explicit operator double() const {
        return (double)__bh_to_half_widen(__x);
    }
    __BH_METHOD explicit operator bool() const {
        return (__x & 0x7fffu) != 0;
    }
    template <class T, class = __bh_if_integer<T>> __BH_METHOD explicit operator T() const {
        return __bh_half_to_integer<T>(__bh_to_half_widen(__x));
    }
};
struct __attribute__((aligned(4))) __half2 {
    __half x, y;

    __half2() = default;
    __BH_METHOD __half2(const __half2_raw &raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {
    }
    __BH_METHOD operator __half2_raw() const {
        return __half2_raw{x.__x, y.__x};
    }
    __BH_METHOD __half2(__half a, __half b) : x(a), y(b) {
    }
};

#define __BH_HALF_RAW(name, instruction)                                                           \
    __BH_BOTH unsigned short __bh_half_##name(unsigned short a, unsigned short b) {                \
        unsigned short result;                                                                     \
        asm(instruction ".rn.f16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));                    \
        return result;                                                                             \
    }                                                                                              \
    __BH_BOTH unsigned __bh_half_##name##2(unsigned a, unsigned b) {                               \
        unsigned result;                                                                           \
        asm(instruction ".rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));                  \
        return result;                                                                             \
    }
__BH_HALF_RAW(add, "add")
__BH_HALF_RAW(sub, "sub")
__BH_HALF_RAW(mul, "mul")
#undef __BH_HALF_RAW
__BH_BOTH unsigned short __bh_half_fma(unsigned short a, unsigned short b, unsigned short c) {
    unsigned short result;
    asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(result) : "h"(a), "h"(b), "h"(c));
    return result;
}
__BH_BOTH unsigned __bh_half_fma2(unsigned a, unsigned b, unsigned c) {
    unsigned result;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

#define __BH_H                     __half
#define __BH_H2                    __half2
#define __BH_H_PTX                 "f16"
#define __BH_H_RAW(name)           __BH_H_RAW_half(name)
#define __BH_H_RAW_half(name)      __bh_half_##name
#define __BH_H_NAME(name)          __half##name
#define __BH_H_MAKE(before, after) before##half##after
#define __BH_H_SPREAD              __half2half2
#define __BH_H_ATOMIC              1
#include "bulkhead_half_common.h"
#undef __BH_H
#undef __BH_H2
#undef __BH_H_RAW
#undef __BH_H_RAW_half
#undef __BH_H_NAME
#undef __BH_H_PTX
#undef __BH_H_MAKE
#undef __BH_H_SPREAD
#undef __BH_H_ATOMIC

#define CUDART_INF_FP16        __ushort_as_half((unsigned short)0x7c00u)
#define CUDART_NAN_FP16        __ushort_as_half((unsigned short)0x7fffu)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001u)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bffu)
#define CUDART_NEG_ZERO_FP16   __ushort_as_half((unsigned short)0x8000u)
#define CUDART_ZERO_FP16       __ushort_as_half((unsigned short)0x0000u)
#define CUDART_ONE_FP16        __ushort_as_half((unsigned short)0x3c00u)

typedef __half half;
typedef __half2 half2;

#endif
