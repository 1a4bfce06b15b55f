/* SPDX-License-Identifier: Apache-2.0 */
/* Building blocks of the math functions: bits of floats, rounding, scaling, sums and products in
 * two parts. __bh_mul is a product that the compiler must not contract with a sum. */
#ifndef BULKHEAD_MATH_CORE_H
#define BULKHEAD_MATH_CORE_H

#include "bulkhead_convert.h"
#include "bulkhead_math_tables.h"
#include "bulkhead_rounding.h"

/* A constant of the tables in the type T. */
template <class T> __BH_DEVICE constexpr T __bh_pick(float f, double d) {
    return sizeof(T) == sizeof(float) ? (T)f : (T)d;
}
#define __BH_C(name) __bh_pick<T>(__BH_##name##_F, __BH_##name##_D)

__BH_DEVICE float __bh_fma(float x, float y, float z) {
    return __builtin_fmaf(x, y, z);
}
__BH_DEVICE double __bh_fma(double x, double y, double z) {
    return __builtin_fma(x, y, z);
}
__BH_DEVICE float __bh_mul(float x, float y) {
    return __fmul_rn(x, y);
}
__BH_DEVICE double __bh_mul(double x, double y) {
    return __dmul_rn(x, y);
}
__BH_DEVICE float __bh_add(float x, float y) {
    return __fadd_rn(x, y);
}
__BH_DEVICE double __bh_add(double x, double y) {
    return __dadd_rn(x, y);
}
__BH_DEVICE float __bh_div(float x, float y) {
    return __fdiv_rn(x, y);
}
__BH_DEVICE double __bh_div(double x, double y) {
    return __ddiv_rn(x, y);
}
__BH_DEVICE float __bh_sqrt(float x) {
    return __fsqrt_rn(x);
}
__BH_DEVICE double __bh_sqrt(double x) {
    return __dsqrt_rn(x);
}
__BH_DEVICE float __bh_rint(float x) {
    return __builtin_rintf(x);
}
__BH_DEVICE double __bh_rint(double x) {
    return __builtin_rint(x);
}

template <class T> __BH_DEVICE T __bh_poly(T, T c) {
    return c;
}
template <class T, class... Rest> __BH_DEVICE T __bh_poly(T x, T c, Rest... rest) {
    return __bh_fma(x, __bh_poly(x, rest...), c);
}
#define __BH_POLYNOMIAL(function, name)                                                            \
    __BH_DEVICE float function(float x) {                                                          \
        return __bh_poly(x, __BH_##name##_F);                                                      \
    }                                                                                              \
    __BH_DEVICE double function(double x) {                                                        \
        return __bh_poly(x, __BH_##name##_D);                                                      \
    }

/* The bit layout of a type. */
template <class T> struct __bh_layout;
template <> struct __bh_layout<float> {
    typedef unsigned bits;
    typedef int whole;
    static constexpr int mantissa = 23, bias = 127;
    static constexpr unsigned infinity = 0x7f800000u, sign = 0x80000000u, nan = 0x7fffffffu;
    static constexpr unsigned root_half = 0x3f3504f3u, one = 0x3f800000u;
};
template <> struct __bh_layout<double> {
    typedef unsigned long long bits;
    typedef long long whole;
    static constexpr int mantissa = 52, bias = 1023;
    static constexpr unsigned long long infinity = 0x7ff0000000000000ull;
    static constexpr unsigned long long sign = 0x8000000000000000ull;
    static constexpr unsigned long long nan = 0x7fffffffffffffffull;
    static constexpr unsigned long long root_half = 0x3fe6a09e667f3bcdull;
    static constexpr unsigned long long one = 0x3ff0000000000000ull;
};
template <class T> using __bh_bits_t = typename __bh_layout<T>::bits;

template <class T> __BH_DEVICE T __bh_of(__bh_bits_t<T> bits) {
    return __bh_bits<T>(bits);
}
template <class T> __BH_DEVICE T __bh_infinity() {
    return __bh_of<T>(__bh_layout<T>::infinity);
}
template <class T> __BH_DEVICE T __bh_nan() {
    return __bh_of<T>(__bh_layout<T>::nan);
}
template <class T> __BH_DEVICE __bh_bits_t<T> __bh_magnitude(T x) {
    return __bh_bits_of(x) & ~__bh_layout<T>::sign;
}
template <class T> __BH_DEVICE T __bh_abs(T x) {
    return __bh_of<T>(__bh_magnitude(x));
}
template <class T> __BH_DEVICE bool __bh_negative(T x) {
    return (__bh_bits_of(x) & __bh_layout<T>::sign) != 0;
}
template <class T> __BH_DEVICE bool __bh_is_nan(T x) {
    return __bh_magnitude(x) > __bh_layout<T>::infinity;
}
template <class T> __BH_DEVICE bool __bh_is_infinite(T x) {
    return __bh_magnitude(x) == __bh_layout<T>::infinity;
}
template <class T> __BH_DEVICE bool __bh_is_finite(T x) {
    return __bh_magnitude(x) < __bh_layout<T>::infinity;
}
template <class T> __BH_DEVICE bool __bh_is_zero(T x) {
    return __bh_magnitude(x) == 0;
}
template <class T> __BH_DEVICE T __bh_with_sign(T x, T sign) {
    return __bh_of<T>(__bh_magnitude(x) | (__bh_bits_of(sign) & __bh_layout<T>::sign));
}

/* 2^n; n must be an exponent of normal numbers. */
template <class T> __BH_DEVICE T __bh_power_of_two(int n) {
    return __bh_of<T>((__bh_bits_t<T>)(n + __bh_layout<T>::bias) << __bh_layout<T>::mantissa);
}
/* x * 2^n for x near one. In two steps, of which only the second can round. */
template <class T> __BH_DEVICE T __bh_scale(T x, int n) {
    int half = n >> 1;
    return x * __bh_power_of_two<T>(half) * __bh_power_of_two<T>(n - half);
}

/* x = m * 2^e with m from sqrt(1/2) to sqrt(2), for positive finite x. */
template <class T> struct __bh_parts {
    T m;
    int e;
};
template <class T> __BH_DEVICE __bh_parts<T> __bh_split(T x) {
    typedef __bh_layout<T> layout;
    int below = 0;
    if (__bh_bits_of(x) < (__bh_bits_t<T>)1 << layout::mantissa) {
        x *= (T)((__bh_bits_t<T>)1 << layout::mantissa);
        below = layout::mantissa;
    }
    __bh_bits_t<T> bits = __bh_bits_of(x) + (layout::one - layout::root_half);
    int e = (int)(bits >> layout::mantissa) - layout::bias;
    bits = (bits & (((__bh_bits_t<T>)1 << layout::mantissa) - 1)) + layout::root_half;
    return __bh_parts<T>{__bh_of<T>(bits), e - below};
}

/* The unevaluated sum hi + lo. */
template <class T> struct __bh_pair { T hi, lo; };
template <class T> __BH_DEVICE __bh_pair<T> __bh_sum(T x, T y) {
    T s = __bh_add(x, y), v = __bh_add(s, -x);
    return __bh_pair<T>{s, __bh_add(__bh_add(x, -__bh_add(s, -v)), __bh_add(y, -v))};
}
/* The same where |x| >= |y|. */
template <class T> __BH_DEVICE __bh_pair<T> __bh_sum_ordered(T x, T y) {
    T s = __bh_add(x, y);
    return __bh_pair<T>{s, __bh_add(y, -__bh_add(s, -x))};
}
template <class T> __BH_DEVICE __bh_pair<T> __bh_product(T x, T y) {
    T p = __bh_mul(x, y);
    return __bh_pair<T>{p, __bh_fma(x, y, -p)};
}

#endif
