/* SPDX-License-Identifier: Apache-2.0 */
/* Trigonometric functions and their inverses, for arguments of any size. */
#ifndef BULKHEAD_MATH_TRIG_H
#define BULKHEAD_MATH_TRIG_H

#include "bulkhead_math_core.h"

__BH_POLYNOMIAL(__bh_poly_sin, SIN)
__BH_POLYNOMIAL(__bh_poly_cos, COS)
__BH_POLYNOMIAL(__bh_poly_tan, TAN)
__BH_POLYNOMIAL(__bh_poly_asin, ASIN)
__BH_POLYNOMIAL(__bh_poly_atan, ATAN)

/* x = n pi/2 + r + low, |r| at most slightly more than pi/4. Only the last two bits of n matter. */
template <class T> struct __bh_angle {
    T r, low;
    int n;
};

static __device__ const unsigned __bh_two_over_pi_f[] = {0u, __BH_TWO_OVER_PI_BITS_F, 0u};
static __device__ const unsigned long long __bh_two_over_pi_d[] = {0ull, __BH_TWO_OVER_PI_BITS_D,
                                                                   0ull};

/* Large arguments: the mantissa times the bits of 2/pi that affect the result modulo 4. */
__BH_SLOW __bh_angle<float> __bh_reduce_large(float x) {
    unsigned bits = __bh_magnitude(x), m = (bits & 0x7fffffu) | 0x800000u;
    int from = (int)(bits >> 23) - 127 - 23 - 2 + 32, shift = from & 31;
    const unsigned *w = __bh_two_over_pi_f + (from >> 5);
    unsigned w2 = (unsigned)((((unsigned long long)w[0] << 32 | w[1]) << shift) >> 32);
    unsigned w1 = (unsigned)((((unsigned long long)w[1] << 32 | w[2]) << shift) >> 32);
    unsigned w0 = (unsigned)((((unsigned long long)w[2] << 32 | w[3]) << shift) >> 32);
    unsigned long long mid = (unsigned long long)m * w1 + ((unsigned long long)m * w0 >> 32);
    unsigned long long q = ((unsigned long long)m * w2 << 32) + mid;
    int n = (int)(q >> 62) + (int)(q >> 61 & 1);
    double r = (double)(long long)(q << 2) * (__BH_PIO2_1_D * 5.42101086242752217e-20);
    if (__bh_negative(x)) {
        r = -r;
        n = -n;
    }
    float hi = (float)r;
    return __bh_angle<float>{hi, (float)(r - (double)hi), n};
}
__BH_SLOW __bh_angle<double> __bh_reduce_large(double x) {
    typedef unsigned long long u64;
    typedef unsigned __int128 u128;
    u64 bits = __bh_magnitude(x), m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
    int from = (int)(bits >> 52) - 1023 - 52 - 2 + 64, shift = from & 63;
    const u64 *w = __bh_two_over_pi_d + (from >> 6);
    u64 w2 = shift == 0 ? w[0] : w[0] << shift | w[1] >> (64 - shift);
    u64 w1 = shift == 0 ? w[1] : w[1] << shift | w[2] >> (64 - shift);
    u64 w0 = shift == 0 ? w[2] : w[2] << shift | w[3] >> (64 - shift);
    u128 mid = (u128)m * w1 + (u64)((u128)m * w0 >> 64);
    u64 top = m * w2 + (u64)(mid >> 64);
    int n = (int)(top >> 62) + (int)(top >> 61 & 1);
    u64 high = top << 2 | (u64)mid >> 62, rest = (u64)mid << 2;
    bool minus = (high >> 63) != 0;
    if (minus) {
        high = ~high + (rest == 0);
        rest = 0ull - rest;
    }
    int zeros = high == 0 ? 63 : __builtin_clzll(high);
    if (zeros > 0) {
        high = high << zeros | rest >> (64 - zeros);
        rest <<= zeros;
    }
    double a = (double)(high & ~0x7ffull);
    double b = (double)((high & 0x7ffull) << 53 | rest >> 11) * 1.1102230246251565e-16;
    __bh_pair<double> p = __bh_product(a, (double)__BH_PIO2_1_D);
    p.lo = __bh_fma(a, __BH_PIO2_2_D, __bh_fma(b, __BH_PIO2_1_D, p.lo));
    double scale = __bh_power_of_two<double>(-64 - zeros);
    if (minus != __bh_negative(x)) {
        scale = -scale;
    }
    return __bh_angle<double>{p.hi * scale, p.lo * scale, __bh_negative(x) ? -n : n};
}

/* Small arguments: subtract n times pi/2 in three parts. The first step is exact. */
template <class T> __BH_DEVICE __bh_angle<T> __bh_reduce(T x) {
    if (__bh_abs(x) > __bh_pick<T>(71476.0f, 1048576.0)) {
        return __bh_reduce_large(x);
    }
    T n = __bh_rint(x * __BH_C(TWO_OVER_PI_1));
    T a = __bh_fma(-n, __BH_C(PIO2_1), x);
    __bh_pair<T> p = __bh_product(n, __BH_C(PIO2_2)), s = __bh_sum(a, -p.hi);
    T low = __bh_fma(-n, __BH_C(PIO2_3), s.lo - p.lo), r = __bh_add(s.hi, low);
    return __bh_angle<T>{r, __bh_add(__bh_add(s.hi, -r), low), (int)n};
}

template <class T> __BH_DEVICE T __bh_sin_near(T r, T low) {
    T z = r * r;
    return r + __bh_fma(r * z, __bh_poly_sin(z), __bh_fma((T)-0.5 * z, low, low));
}
template <class T> __BH_DEVICE T __bh_cos_near(T r, T low) {
    T z = __bh_mul(r, r), z_low = __bh_fma(r, r, -z), half = (T)0.5 * z;
    T w = __bh_add((T)1, -half);
    T lost = __bh_add(__bh_add((T)1, -w), -half);
    return w + (lost + __bh_fma(z * z, __bh_poly_cos(z), -__bh_fma(r, low, (T)0.5 * z_low)));
}
/* sin of the angle plus quarter turns. */
template <class T> __BH_DEVICE T __bh_sin_of(__bh_angle<T> a, int quarters) {
    int n = a.n + quarters;
    T result = n & 1 ? __bh_cos_near(a.r, a.low) : __bh_sin_near(a.r, a.low);
    return n & 2 ? -result : result;
}
template <class T> __BH_DEVICE bool __bh_is_tiny(T x) {
    return __bh_abs(x) < __bh_pick<T>(1e-4f, 1e-8);
}
template <class T> __BH_DEVICE T __bh_sin(T x) {
    if (__bh_is_tiny(x)) {
        return __bh_with_sign(__bh_fma(x * x, x * (T)(-1.0 / 6), x), x);
    }
    return __bh_is_finite(x) ? __bh_sin_of(__bh_reduce(x), 0) : __bh_nan<T>();
}
template <class T> __BH_DEVICE T __bh_cos(T x) {
    return __bh_is_finite(x) ? __bh_sin_of(__bh_reduce(x), 1) : __bh_nan<T>();
}
template <class T> __BH_DEVICE void __bh_sincos(T x, T *sine, T *cosine) {
    if (!__bh_is_finite(x)) {
        *sine = *cosine = __bh_nan<T>();
        return;
    }
    __bh_angle<T> a = __bh_reduce(x);
    *sine = __bh_is_tiny(x) ? __bh_sin(x) : __bh_sin_of(a, 0);
    *cosine = __bh_sin_of(a, 1);
}
template <class T> __BH_DEVICE T __bh_tan(T x) {
    if (!__bh_is_finite(x)) {
        return __bh_nan<T>();
    }
    if (__bh_is_tiny(x)) {
        return __bh_fma(x * x, x * (T)(1.0 / 3), x);
    }
    __bh_angle<T> a = __bh_reduce(x);
    T z = a.r * a.r, big = a.r;
    T small = __bh_fma(big * z, __bh_poly_tan(z), __bh_fma(z, a.low, a.low));
    if ((a.n & 1) == 0) {
        return big + small;
    }
    /* -1 / (big + small), corrected for the rounding error of the sum */
    __bh_pair<T> t = __bh_sum_ordered(big, small);
    T q = __bh_div((T)-1, t.hi);
    return __bh_fma(q, __bh_fma(q, t.lo, __bh_fma(q, t.hi, (T)1)), q);
}

/* Reduction of x in half turns, which is exact; then the product with pi. */
template <class T> __BH_DEVICE __bh_angle<T> __bh_reduce_pi(T x) {
    T n = __bh_rint((T)2 * x), r = __bh_fma((T)-0.5, n, x);
    T whole = n - (T)4 * __bh_rint((T)0.25 * n);
    __bh_pair<T> p = __bh_product(r, __BH_C(PI_1));
    return __bh_angle<T>{p.hi, __bh_fma(r, __BH_C(PI_2), p.lo), (int)whole};
}
template <class T> __BH_DEVICE bool __bh_is_huge(T x) {
    return __bh_abs(x) >= __bh_pick<T>(16777216.0f, 9007199254740992.0);
}
template <class T> __BH_DEVICE T __bh_sinpi(T x) {
    if (!__bh_is_finite(x)) {
        return __bh_nan<T>();
    }
    if (__bh_is_huge(x) || __bh_rint(x) == x) {
        return __bh_with_sign((T)0, x);
    }
    return __bh_sin_of(__bh_reduce_pi(x), 0);
}
template <class T> __BH_DEVICE T __bh_cospi(T x) {
    if (!__bh_is_finite(x)) {
        return __bh_nan<T>();
    }
    if (__bh_is_huge(x)) {
        return (T)1;
    }
    __bh_angle<T> a = __bh_reduce_pi(x);
    return __bh_is_zero(a.r) && (a.n & 1) ? (T)0 : __bh_sin_of(a, 1);
}

template <class T> __BH_DEVICE T __bh_asin(T x) {
    T a = __bh_abs(x), result;
    if (a <= (T)0.5) {
        T z = x * x;
        return __bh_fma(x * z, __bh_poly_asin(z), x);
    }
    T z = __bh_fma((T)-0.5, a, (T)0.5), s = __bh_sqrt(z);
    T lost = s > (T)0 ? __bh_div(__bh_fma(-s, s, z), (T)2 * s) : (T)0;
    T small = __bh_fma(s * z, __bh_poly_asin(z), lost);
    result = __bh_fma((T)-2, s, __BH_C(PIO2_1));
    result += __bh_fma((T)-2, s, __BH_C(PIO2_1) - result) - __bh_fma((T)2, small, -__BH_C(PIO2_2));
    return a <= (T)1 ? __bh_with_sign(result, x) : __bh_nan<T>();
}
template <class T> __BH_DEVICE T __bh_acos(T x) {
    T a = __bh_abs(x);
    if (a <= (T)0.5) {
        T z = x * x, small = x * z * __bh_poly_asin(z);
        __bh_pair<T> s = __bh_sum_ordered(__BH_C(PIO2_1), -x);
        return s.hi + (s.lo + (__BH_C(PIO2_2) - small));
    }
    if (!(a <= (T)1)) {
        return __bh_nan<T>();
    }
    T z = __bh_fma((T)-0.5, a, (T)0.5), s = __bh_sqrt(z);
    T lost = s > (T)0 ? __bh_div(__bh_fma(-s, s, z), (T)2 * s) : (T)0;
    T small = __bh_fma(s * z, __bh_poly_asin(z), lost);
    if (!__bh_negative(x)) {
        return (T)2 * (s + small);
    }
    __bh_pair<T> sum = __bh_sum_ordered(__BH_C(PI_1), (T)-2 * s);
    return sum.hi + (sum.lo + __bh_fma((T)-2, small, __BH_C(PI_2)));
}
/* atan(a + low) for a >= 0. */
template <class T> __BH_DEVICE T __bh_atan_positive(T a, T low) {
    T t = a, t_low = low, base = (T)0, base_low = (T)0;
    if (a > (T)2.41421356237309505) {
        t = __bh_div((T)-1, a);
        t_low = t * (__bh_fma(t, a, (T)1) + t * low);
        base = __BH_C(PIO2_1);
        base_low = __BH_C(PIO2_2);
    } else if (a > (T)0.41421356237309505) {
        __bh_pair<T> up = __bh_sum(a, (T)-1), down = __bh_sum(a, (T)1);
        t = __bh_div(up.hi, down.hi);
        t_low = __bh_fma(-t, down.hi, up.hi) + (up.lo - t * down.lo + low * ((T)1 - t));
        t_low = __bh_div(t_low, down.hi);
        base = (T)0.5 * __BH_C(PIO2_1);
        base_low = (T)0.5 * __BH_C(PIO2_2);
    }
    T z = t * t, small = __bh_fma(t * z, __bh_poly_atan(z), t_low);
    __bh_pair<T> s = __bh_sum_ordered(base, t);
    if (base == (T)0) {
        return t + small;
    }
    return s.hi + (s.lo + (small + base_low));
}
template <class T> __BH_DEVICE T __bh_atan(T x) {
    if (!__bh_is_finite(x)) {
        return __bh_is_nan(x) ? __bh_nan<T>() : __bh_with_sign(__BH_C(PIO2_1), x);
    }
    return __bh_with_sign(__bh_atan_positive(__bh_abs(x), (T)0), x);
}
template <class T> __BH_DEVICE T __bh_atan2(T y, T x) {
    T a = __bh_abs(y), b = __bh_abs(x), result;
    /* difference of the exponents; if y is much larger, the result is pi/2 */
    int up = (int)(__bh_bits_of(a) >> __bh_layout<T>::mantissa) -
             (int)(__bh_bits_of(b) >> __bh_layout<T>::mantissa);
    if (__bh_is_nan(x) || __bh_is_nan(y)) {
        return __bh_nan<T>();
    }
    if (__bh_is_zero(y)) {
        result = (T)0;
    } else if (__bh_is_infinite(y)) {
        result = (T)0.5 * (__bh_is_infinite(x) ? __BH_C(PIO2_1) : __BH_C(PI_1));
    } else if (__bh_is_infinite(x)) {
        result = (T)0;
    } else if (__bh_is_zero(x) || up > __bh_layout<T>::mantissa + 3) {
        result = __BH_C(PIO2_1);
    } else {
        T q = __bh_div(a, b);
        bool plain = q > __bh_pick<T>(1e-20f, 1e-200) && b > __bh_pick<T>(1e-25f, 1e-250);
        result = __bh_atan_positive(q, plain ? __bh_div(__bh_fma(-q, b, a), b) : (T)0);
    }
    if (__bh_negative(x)) {
        result = __BH_C(PI_1) - (result - __BH_C(PI_2));
    }
    return __bh_with_sign(result, y);
}

#endif
