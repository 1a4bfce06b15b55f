/* SPDX-License-Identifier: Apache-2.0 */
/* __nv_bfloat16 and __nv_bfloat162: conversions, arithmetic, comparisons. sm_80 or later. */
#ifndef BULKHEAD_CUDA_BF16_H
#define BULKHEAD_CUDA_BF16_H

#include "bulkhead_cuda.h"

#include "bulkhead_half_round.h"

__BH_BOTH unsigned short __bh_to_bfloat16_rn(float value) {
    unsigned short result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(value));
    return result;
}
__BH_BOTH unsigned short __bh_to_bfloat16_rz(float value) {
    return __bh_is_nan(value) ? (unsigned short)0x7fffu
                              : (unsigned short)(__bh_bits_of(value) >> 16);
}
__BH_BOTH float __bh_to_bfloat16_widen(unsigned short value) {
    return __bh_float_of((unsigned)value << 16);
}

/* The bits alone. */
struct __nv_bfloat16_raw {
    unsigned short x;
};
struct __attribute__((aligned(4))) __nv_bfloat162_raw {
    unsigned short x, y;
};

struct __nv_bfloat16 {
    unsigned short __x;

    __nv_bfloat16() = default;
    __BH_METHOD __nv_bfloat16(const __nv_bfloat16_raw &raw) : __x(raw.x) {
    }
    __BH_METHOD operator __nv_bfloat16_raw() const {
        return __nv_bfloat16_raw{__x};
    }
    __BH_METHOD operator __nv_bfloat16_raw() const volatile {
        return __nv_bfloat16_raw{__x};
    }
    __BH_METHOD __nv_bfloat16(float value) : __x(__bh_to_bfloat16_rn(value)) {
    }
    /* through float, rounded to odd, so that the result is rounded once */
    __BH_METHOD __nv_bfloat16(double value) : __x(__bh_to_bfloat16_rn(__bh_odd_float(value))) {
    }
    template <class T, class = __bh_if_integer<T>>
    __BH_METHOD __nv_bfloat16(T value) : __x(__bh_to_bfloat16_rn(__bh_odd_float(value))) {
    }
    static __BH_METHOD __nv_bfloat16 from_bits(unsigned short value) {
        __nv_bfloat16 result;
        result.__x = value;
        return result;
    }
    __BH_METHOD operator float() const {
        return __bh_to_bfloat16_widen(__x);
    }
    __BH_METHOD explicit operator double() const {
        return (double)__bh_to_bfloat16_widen(__x);
    }
    __BH_METHOD explicit operator bool() const {
        return (__x & 0x7fffu) != 0;
    }
    template <class T, class = __bh_if_integer<T>> __BH_METHOD explicit operator T() const {
        return __bh_half_to_integer<T>(__bh_to_bfloat16_widen(__x));
    }
};
struct __attribute__((aligned(4))) __nv_bfloat162 {
    __nv_bfloat16 x, y;

    __nv_bfloat162() = default;
    __BH_METHOD __nv_bfloat162(const __nv_bfloat162_raw &raw)
        : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {
    }
    __BH_METHOD operator __nv_bfloat162_raw() const {
        return __nv_bfloat162_raw{x.__x, y.__x};
    }
    __BH_METHOD __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b) {
    }
};

/* Before sm_90 there is only fma: a b = fma(a, b, -0), a + b = fma(a, 1, b). */
__BH_BOTH unsigned short __bh_bfloat16_fma(unsigned short a, unsigned short b, unsigned short c) {
    unsigned short result;
    asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(result) : "h"(a), "h"(b), "h"(c));
    return result;
}
__BH_BOTH unsigned __bh_bfloat16_fma2(unsigned a, unsigned b, unsigned c) {
    unsigned result;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}
__BH_BOTH unsigned short __bh_bfloat16_add(unsigned short a, unsigned short b) {
    return __bh_bfloat16_fma(a, 0x3f80u, b);
}
__BH_BOTH unsigned __bh_bfloat16_add2(unsigned a, unsigned b) {
    return __bh_bfloat16_fma2(a, 0x3f803f80u, b);
}
__BH_BOTH unsigned short __bh_bfloat16_sub(unsigned short a, unsigned short b) {
    return __bh_bfloat16_fma(b, 0xbf80u, a);
}
__BH_BOTH unsigned __bh_bfloat16_sub2(unsigned a, unsigned b) {
    return __bh_bfloat16_fma2(b, 0xbf80bf80u, a);
}
__BH_BOTH unsigned short __bh_bfloat16_mul(unsigned short a, unsigned short b) {
    return __bh_bfloat16_fma(a, b, 0x8000u);
}
__BH_BOTH unsigned __bh_bfloat16_mul2(unsigned a, unsigned b) {
    return __bh_bfloat16_fma2(a, b, 0x80008000u);
}

#define __BH_H                     __nv_bfloat16
#define __BH_H2                    __nv_bfloat162
#define __BH_H_PTX                 "bf16"
#define __BH_H_RAW(name)           __BH_H_RAW_bfloat16(name)
#define __BH_H_RAW_bfloat16(name)  __bh_bfloat16_##name
#define __BH_H_NAME(name)          __bfloat16##name
#define __BH_H_MAKE(before, after) before##bfloat16##after
#define __BH_H_SPREAD              __bfloat162bfloat162
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define __BH_H_ATOMIC 1
#else
#define __BH_H_ATOMIC 0
#endif
#include "bulkhead_half_common.h"
#undef __BH_H
#undef __BH_H2
#undef __BH_H_RAW
#undef __BH_H_RAW_bfloat16
#undef __BH_H_NAME
#undef __BH_H_PTX
#undef __BH_H_MAKE
#undef __BH_H_SPREAD
#undef __BH_H_ATOMIC

#define CUDART_INF_BF16        __ushort_as_bfloat16((unsigned short)0x7f80u)
#define CUDART_NAN_BF16        __ushort_as_bfloat16((unsigned short)0x7fffu)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16((unsigned short)0x0001u)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7f7fu)
#define CUDART_NEG_ZERO_BF16   __ushort_as_bfloat16((unsigned short)0x8000u)
#define CUDART_ZERO_BF16       __ushort_as_bfloat16((unsigned short)0x0000u)
#define CUDART_ONE_BF16        __ushort_as_bfloat16((unsigned short)0x3f80u)

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#endif
