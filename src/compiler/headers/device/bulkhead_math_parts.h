/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with exact results: exponents and mantissas, remainders, nextafter, rounding. */
#ifndef BULKHEAD_MATH_PARTS_H
#define BULKHEAD_MATH_PARTS_H

#include "bulkhead_math_core.h"

/* m * 2^e with the mantissa's leading bit set, for finite x other than zero. */
template <class T> struct __bh_integral {
    __bh_bits_t<T> m;
    int e;
};
template <class T> __BH_DEVICE __bh_integral<T> __bh_take_apart(T x) {
    typedef __bh_layout<T> layout;
    __bh_bits_t<T> size = __bh_magnitude(x), hidden = (__bh_bits_t<T>)1 << layout::mantissa;
    int e = (int)(size >> layout::mantissa);
    __bh_bits_t<T> m = size & (hidden - 1);
    if (e != 0) {
        return __bh_integral<T>{m | hidden, e - layout::bias - layout::mantissa};
    }
    int up = 0;
    while (m < hidden) {
        m <<= 1;
        up++;
    }
    return __bh_integral<T>{m, 1 - up - layout::bias - layout::mantissa};
}
/* The inverse; m is below 2^(mantissa + 1). Exact if the result is representable. */
template <class T> __BH_DEVICE T __bh_put_together(__bh_bits_t<T> m, int e) {
    typedef __bh_layout<T> layout;
    const int lowest = 1 - layout::bias;
    T x = (T)m;
    if (e > layout::bias) {
        x *= __bh_power_of_two<T>(layout::bias);
        e -= layout::bias;
        e = e > layout::bias ? layout::bias : e;
    } else if (e < lowest) {
        x *= __bh_power_of_two<T>(lowest + layout::mantissa);
        e -= lowest + layout::mantissa;
        e = e < lowest ? lowest : e;
    }
    return x * __bh_power_of_two<T>(e);
}

template <class T> __BH_FUNCTION T __bh_ldexp(T x, int n) {
    if (!__bh_is_finite(x) || __bh_is_zero(x)) {
        return x;
    }
    __bh_integral<T> p = __bh_take_apart(x);
    n = n > 5000 ? 5000 : n < -5000 ? -5000 : n;
    return __bh_with_sign(__bh_put_together<T>(p.m, p.e + n), x);
}
template <class T> __BH_FUNCTION T __bh_frexp(T x, int *n) {
    if (!__bh_is_finite(x) || __bh_is_zero(x)) {
        *n = 0;
        return x;
    }
    __bh_integral<T> p = __bh_take_apart(x);
    *n = p.e + __bh_layout<T>::mantissa + 1;
    return __bh_with_sign(__bh_put_together<T>(p.m, -__bh_layout<T>::mantissa - 1), x);
}
template <class T> __BH_FUNCTION int __bh_ilogb(T x) {
    if (__bh_is_zero(x)) {
        return -2147483647 - 1;
    }
    if (!__bh_is_finite(x)) {
        return __bh_is_nan(x) ? -2147483647 - 1 : 2147483647;
    }
    return __bh_take_apart(x).e + __bh_layout<T>::mantissa;
}
template <class T> __BH_FUNCTION T __bh_logb(T x) {
    if (__bh_is_zero(x)) {
        return -__bh_infinity<T>();
    }
    return __bh_is_finite(x) ? (T)__bh_ilogb(x) : __bh_is_nan(x) ? __bh_nan<T>() : __bh_abs(x);
}
__BH_DEVICE float __bh_trunc(float x) {
    return __builtin_truncf(x);
}
__BH_DEVICE double __bh_trunc(double x) {
    return __builtin_trunc(x);
}
/* Ties away from zero. */
template <class T> __BH_DEVICE T __bh_round(T x) {
    T whole = __bh_trunc(x), rest = __bh_abs(__bh_add(x, -whole));
    return __bh_is_finite(x) ? __bh_with_sign(rest >= (T)0.5 ? __bh_abs(whole) + (T)1 : whole, x)
                             : x;
}
template <class T> __BH_DEVICE T __bh_modf(T x, T *whole) {
    *whole = __bh_trunc(x);
    return __bh_with_sign(__bh_is_infinite(x) ? (T)0 : __bh_add(x, -*whole), x);
}
template <class T> __BH_FUNCTION T __bh_nextafter(T x, T to) {
    if (__bh_is_nan(x) || __bh_is_nan(to)) {
        return __bh_nan<T>();
    }
    if (x == to) {
        return to;
    }
    if (__bh_is_zero(x)) {
        return __bh_with_sign(__bh_of<T>(1), to);
    }
    bool away = (x < to) != __bh_negative(x);
    return __bh_of<T>(away ? __bh_bits_of(x) + 1 : __bh_bits_of(x) - 1);
}

/* |x| mod |y| and the quotient's last bits: long division in steps that fit in 64 bits. */
template <class T> struct __bh_division {
    T rest;
    unsigned quotient;
};
template <class T> __BH_SLOW __bh_division<T> __bh_divide_long(T x, T y) {
    typedef unsigned long long u64;
    __bh_integral<T> a = __bh_take_apart(x), b = __bh_take_apart(y);
    const int room = 63 - __bh_layout<T>::mantissa;
    if (a.e < b.e) {
        return __bh_division<T>{__bh_abs(x), 0};
    }
    int left = a.e - b.e;
    u64 m = a.m, quotient = m / b.m;
    m %= b.m;
    while (left > 0 && m != 0) {
        int step = left < room ? left : room;
        m <<= step;
        quotient = quotient << step | m / b.m;
        m %= b.m;
        left -= step;
    }
    if (left > 0) {
        quotient = left < 32 ? quotient << left : 0;
    }
    return __bh_division<T>{__bh_put_together<T>((__bh_bits_t<T>)m, b.e), (unsigned)quotient};
}
template <class T> __BH_DEVICE bool __bh_mod_special(T x, T y) {
    return !__bh_is_finite(x) || __bh_is_nan(y) || __bh_is_zero(y);
}
template <class T> __BH_FUNCTION T __bh_fmod(T x, T y) {
    if (__bh_mod_special(x, y)) {
        return __bh_nan<T>();
    }
    if (__bh_magnitude(x) < __bh_magnitude(y)) {
        return x;
    }
    return __bh_with_sign(__bh_divide_long(x, y).rest, x);
}
template <class T> __BH_FUNCTION T __bh_remquo(T x, T y, int *quotient) {
    *quotient = 0;
    if (__bh_mod_special(x, y)) {
        return __bh_nan<T>();
    }
    if (__bh_is_infinite(y) || __bh_is_zero(x)) {
        return x;
    }
    T b = __bh_abs(y);
    __bh_division<T> d{__bh_abs(x), 0};
    if (__bh_magnitude(x) >= __bh_magnitude(y)) {
        d = __bh_divide_long(x, y);
    }
    /* compare rest with b - rest, which is exact; a tie goes to the even quotient */
    T other = __bh_add(b, -d.rest);
    if (d.rest > other || (d.rest == other && (d.quotient & 1))) {
        d.rest = -other;
        d.quotient++;
    }
    int low = (int)(d.quotient & 0x7fffffffu);
    *quotient = __bh_negative(x) != __bh_negative(y) ? -low : low;
    T result = __bh_negative(x) ? -d.rest : d.rest;
    return __bh_is_zero(result) ? __bh_with_sign((T)0, x) : result;
}

#endif
