/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16: __nv_bfloat16 and __nv_bfloat162, conversions, arithmetic, comparisons. sm_80 on. */
#ifndef BULKHEAD_CUDA_BF16_H
#define BULKHEAD_CUDA_BF16_H

#include "bulkhead_cuda.h"

#include "bulkhead_half_round.h"

__BH_DEVICE unsigned short __bh_to_bfloat16_rn(float value) {
    unsigned short result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(value));
    return result;
}
__BH_DEVICE unsigned short __bh_to_bfloat16_rz(float value) {
    return __bh_is_nan(value) ? (unsigned short)0x7fffu
                              : (unsigned short)(__bh_bits_of(value) >> 16);
}
__BH_DEVICE float __bh_to_bfloat16_widen(unsigned short value) {
    return __bh_float_of((unsigned)value << 16);
}

struct __nv_bfloat16 {
    unsigned short bits;

    __nv_bfloat16() = default;
    __device__ __attribute__((always_inline)) __nv_bfloat16(float value)
        : bits(__bh_to_bfloat16_rn(value)) {
    }
    /* through float with a sticky last bit, so that it rounds once */
    __device__ __attribute__((always_inline)) __nv_bfloat16(double value)
        : bits(__bh_to_bfloat16_rn(__bh_odd_float(value))) {
    }
    template <class T, class = __bh_if_integer<T>>
    __device__ __attribute__((always_inline)) __nv_bfloat16(T value)
        : bits(__bh_to_bfloat16_rn(__bh_odd_float((double)value))) {
    }
    static __device__ __attribute__((always_inline)) __nv_bfloat16 from_bits(unsigned short value) {
        __nv_bfloat16 result;
        result.bits = value;
        return result;
    }
    __device__ __attribute__((always_inline)) operator float() const {
        return __bh_to_bfloat16_widen(bits);
    }
    __device__ __attribute__((always_inline)) explicit operator double() const {
        return (double)__bh_to_bfloat16_widen(bits);
    }
    __device__ __attribute__((always_inline)) explicit operator bool() const {
        return (bits & 0x7fffu) != 0;
    }
    template <class T, class = __bh_if_integer<T>>
    __device__ __attribute__((always_inline)) explicit operator T() const {
        return (T)__bh_to_bfloat16_widen(bits);
    }
};
struct __attribute__((aligned(4))) __nv_bfloat162 {
    __nv_bfloat16 x, y;

    __nv_bfloat162() = default;
    __device__ __attribute__((always_inline)) __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b)
        : x(a), y(b) {
    }
};

/* Before sm_90 there is fma alone: a b = fma(a, b, -0), a + b = fma(a, 1, b). */
__BH_DEVICE unsigned short __bh_bfloat16_fma(unsigned short a, unsigned short b, unsigned short c) {
    unsigned short result;
    asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(result) : "h"(a), "h"(b), "h"(c));
    return result;
}
__BH_DEVICE unsigned __bh_bfloat16_fma2(unsigned a, unsigned b, unsigned c) {
    unsigned result;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}
__BH_DEVICE unsigned short __bh_bfloat16_add(unsigned short a, unsigned short b) {
    return __bh_bfloat16_fma(a, 0x3f80u, b);
}
__BH_DEVICE unsigned __bh_bfloat16_add2(unsigned a, unsigned b) {
    return __bh_bfloat16_fma2(a, 0x3f803f80u, b);
}
__BH_DEVICE unsigned short __bh_bfloat16_sub(unsigned short a, unsigned short b) {
    return __bh_bfloat16_fma(b, 0xbf80u, a);
}
__BH_DEVICE unsigned __bh_bfloat16_sub2(unsigned a, unsigned b) {
    return __bh_bfloat16_fma2(b, 0xbf80bf80u, a);
}
__BH_DEVICE unsigned short __bh_bfloat16_mul(unsigned short a, unsigned short b) {
    return __bh_bfloat16_fma(a, b, 0x8000u);
}
__BH_DEVICE unsigned __bh_bfloat16_mul2(unsigned a, unsigned b) {
    return __bh_bfloat16_fma2(a, b, 0x80008000u);
}

#define __BH_H                    __nv_bfloat16
#define __BH_H2                   __nv_bfloat162
#define __BH_H_RAW(name)          __BH_H_RAW_bfloat16(name)
#define __BH_H_RAW_bfloat16(name) __bh_bfloat16_##name
#define __BH_H_NAME(name)         __bfloat16##name
#include "bulkhead_half_common.h"
#undef __BH_H
#undef __BH_H2
#undef __BH_H_RAW
#undef __BH_H_RAW_bfloat16
#undef __BH_H_NAME

__BH_DEVICE __nv_bfloat16 __float2bfloat16(float a) {
    return __nv_bfloat16(a);
}
__BH_DEVICE __nv_bfloat16 __float2bfloat16_rn(float a) {
    return __nv_bfloat16(a);
}
__BH_DEVICE __nv_bfloat16 __float2bfloat16_rz(float a) {
    return __nv_bfloat16::from_bits(__bh_to_bfloat16_rz(a));
}
__BH_DEVICE __nv_bfloat16 __double2bfloat16(double a) {
    return __nv_bfloat16(a);
}
__BH_DEVICE float __bfloat162float(__nv_bfloat16 a) {
    return (float)a;
}
__BH_DEVICE __nv_bfloat16 __int2bfloat16_rn(int a) {
    return __nv_bfloat16(a);
}
__BH_DEVICE __nv_bfloat16 __uint2bfloat16_rn(unsigned a) {
    return __nv_bfloat16(a);
}
__BH_DEVICE __nv_bfloat16 __short2bfloat16_rn(short a) {
    return __nv_bfloat16((float)a);
}
__BH_DEVICE __nv_bfloat16 __ushort2bfloat16_rn(unsigned short a) {
    return __nv_bfloat16((float)a);
}
__BH_DEVICE __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) {
    return __nv_bfloat16::from_bits(a);
}
__BH_DEVICE __nv_bfloat16 __short_as_bfloat16(short a) {
    return __nv_bfloat16::from_bits((unsigned short)a);
}
__BH_DEVICE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) {
    return __nv_bfloat162(a, a);
}
__BH_DEVICE __nv_bfloat162 __float2bfloat162_rn(float a) {
    return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(a));
}
__BH_DEVICE __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b));
}
__BH_DEVICE __nv_bfloat162 __float22bfloat162_rn(float2 a) {
    return __nv_bfloat162(__nv_bfloat16(a.x), __nv_bfloat16(a.y));
}
__BH_DEVICE float2 __bfloat1622float2(__nv_bfloat162 a) {
    return float2{(float)a.x, (float)a.y};
}
__BH_DEVICE __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat162(a, b);
}
__BH_DEVICE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat162(a, b);
}
__BH_DEVICE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) {
    return a.x;
}
__BH_DEVICE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) {
    return a.y;
}
__BH_DEVICE float __low2float(__nv_bfloat162 a) {
    return (float)a.x;
}
__BH_DEVICE float __high2float(__nv_bfloat162 a) {
    return (float)a.y;
}
__BH_DEVICE __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a) {
    return __nv_bfloat162(a.x, a.x);
}
__BH_DEVICE __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a) {
    return __nv_bfloat162(a.y, a.y);
}
__BH_DEVICE __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return __nv_bfloat162(a.x, b.x);
}
__BH_DEVICE __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return __nv_bfloat162(a.y, b.y);
}
__BH_DEVICE __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 a) {
    return __nv_bfloat162(a.y, a.x);
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__BH_DEVICE __nv_bfloat162 atomicAdd(__nv_bfloat162 *at, __nv_bfloat162 value) {
    unsigned result;
    asm volatile("atom.add.noftz.bf16x2 %0, [%1], %2;"
                 : "=r"(result)
                 : "l"(at), "r"(__bh_bits<unsigned>(value))
                 : "memory");
    return __bh_bits<__nv_bfloat162>(result);
}
__BH_DEVICE __nv_bfloat16 atomicAdd(__nv_bfloat16 *at, __nv_bfloat16 value) {
    unsigned short result;
    asm volatile("atom.add.noftz.bf16 %0, [%1], %2;"
                 : "=h"(result)
                 : "l"(at), "h"(value.bits)
                 : "memory");
    return __nv_bfloat16::from_bits(result);
}
#endif

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#endif
