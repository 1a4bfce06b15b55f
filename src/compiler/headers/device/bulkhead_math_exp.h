/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials, logarithms, powers and hyperbolic functions. */
#ifndef BULKHEAD_MATH_EXP_H
#define BULKHEAD_MATH_EXP_H

#include "bulkhead_math_core.h"

__BH_POLYNOMIAL(__bh_poly_exp, EXP)
__BH_POLYNOMIAL(__bh_poly_tanh, TANH)
__BH_POLYNOMIAL(__bh_poly_atanh3, ATANH3)
__BH_POLYNOMIAL(__bh_poly_atanh5, ATANH5)

/* exp(r + low) for |r| <= ln(2)/2. */
template <class T> __BH_DEVICE T __bh_exp_near(T r, T low) {
    return (T)1 + (r + __bh_fma(r * r, __bh_poly_exp(r), low));
}
/* Beyond these limits an exponential is infinite or zero. NaN is returned as it is. */
template <class T> __BH_DEVICE T __bh_clamp(T x, T low, T high) {
    return x > high ? high : x < low ? low : x;
}
/* exp(x + low) for x within the limits of the type. */
template <class T> __BH_DEVICE T __bh_exp_pair(T x, T low) {
    T n = __bh_rint(x * __BH_C(LOG2_E_1));
    T a = __bh_fma(-n, __BH_C(LN2_1), x), b = __bh_fma(-n, __BH_C(LN2_2), low);
    T r = __bh_add(a, b);
    T rest = __bh_add(__bh_add(a, -r), b);
    return __bh_scale(__bh_exp_near(r, rest), (int)n);
}
template <class T> __BH_DEVICE T __bh_exp(T x) {
    x = __bh_clamp(x, __bh_pick<T>(-105, -746), __bh_pick<T>(89, 710));
    T n = __bh_rint(x * __BH_C(LOG2_E_1));
    T r = __bh_fma(-n, __BH_C(LN2_2), __bh_fma(-n, __BH_C(LN2_1), x));
    return __bh_scale(__bh_exp_near(r, (T)0), (int)n);
}
template <class T> __BH_DEVICE T __bh_exp2(T x) {
    x = __bh_clamp(x, __bh_pick<T>(-152, -1077), __bh_pick<T>(129, 1025));
    T n = __bh_rint(x), r = x - n;
    __bh_pair<T> p = __bh_product(r, __BH_C(LN2_FULL_1));
    return __bh_scale(__bh_exp_near(p.hi, __bh_fma(r, __BH_C(LN2_FULL_2), p.lo)), (int)n);
}
template <class T> __BH_DEVICE T __bh_exp10(T x) {
    x = __bh_clamp(x, __bh_pick<T>(-46, -325), __bh_pick<T>(39, 309));
    T n = __bh_rint(x * __BH_C(LOG2_10_1));
    T a = __bh_fma(-n, __BH_C(LOG10_2_1), x);
    T r = __bh_fma(-n, __BH_C(LOG10_2_2), a);
    T rest = __bh_fma(-n, __BH_C(LOG10_2_2), a - r);
    __bh_pair<T> p = __bh_product(r, __BH_C(LN10_1));
    T low = __bh_fma(r, __BH_C(LN10_2), __bh_fma(rest, __BH_C(LN10_1), p.lo));
    return __bh_scale(__bh_exp_near(p.hi, low), (int)n);
}
template <class T> __BH_DEVICE T __bh_expm1(T x) {
    if (__bh_abs(x) < __bh_pick<T>(1e-5f, 1e-9)) {
        return __bh_with_sign(__bh_fma(x * x, (T)0.5, x), x);
    }
    x = __bh_clamp(x, __bh_pick<T>(-20, -40), __bh_pick<T>(89, 710));
    T n = __bh_rint(x * __BH_C(LOG2_E_1));
    T a = __bh_fma(-n, __BH_C(LN2_1), x);
    T r = __bh_fma(-n, __BH_C(LN2_2), a), rest = __bh_fma(-n, __BH_C(LN2_2), a - r);
    __bh_pair<T> small = __bh_sum_ordered(r, __bh_fma(r * r, __bh_poly_exp(r), rest));
    /* 2^n (small + 1) - 1, computed with 2^(n-1), which does not overflow */
    T half = __bh_power_of_two<T>((int)n - 1);
    T sum = __bh_fma(half, small.lo, __bh_fma(half, small.hi, half - (T)0.5));
    return n == (T)0 ? small.hi : sum * (T)2;
}

/* log(m) for m near one. Float: a polynomial of m - 1. Double: of (m - 1) / (m + 1). */
template <class T> struct __bh_log_terms { T big, small; };
__BH_DEVICE __bh_log_terms<float> __bh_log_near(float f) {
    float square = f * f;
    return __bh_log_terms<float>{f, __bh_fma(square * f, __bh_poly(f, __BH_LOG_F), -0.5f * square)};
}
__BH_DEVICE __bh_log_terms<double> __bh_log_near(double f) {
    double s = __bh_div(f, f + 2.0), z = s * s;
    /* 2s = f - s f, where f is exact */
    return __bh_log_terms<double>{f, s * __bh_fma(z, __bh_poly_atanh3(z), -f)};
}
template <class T> __BH_DEVICE bool __bh_log_special(T x) {
    return __bh_bits_of(x) - 1 >= __bh_layout<T>::infinity - 1;
}
template <class T> __BH_DEVICE T __bh_log_of_special(T x) {
    if (__bh_is_zero(x)) {
        return -__bh_infinity<T>();
    }
    return __bh_is_nan(x) || __bh_negative(x) ? __bh_nan<T>() : x;
}
template <class T> __BH_DEVICE T __bh_log(T x) {
    if (__bh_log_special(x)) {
        return __bh_log_of_special(x);
    }
    __bh_parts<T> p = __bh_split(x);
    __bh_log_terms<T> t = __bh_log_near(p.m - (T)1);
    T e = (T)p.e;
    return __bh_fma(e, __BH_C(LN2_1), t.big + __bh_fma(e, __BH_C(LN2_2), t.small));
}
template <class T> __BH_DEVICE T __bh_log2(T x) {
    if (__bh_log_special(x)) {
        return __bh_log_of_special(x);
    }
    __bh_parts<T> p = __bh_split(x);
    __bh_log_terms<T> t = __bh_log_near(p.m - (T)1);
    __bh_pair<T> q = __bh_product(t.big, __BH_C(LOG2_E_1));
    T low = __bh_fma(t.big, __BH_C(LOG2_E_2), __bh_fma(t.small, __BH_C(LOG2_E_1), q.lo));
    __bh_pair<T> s = __bh_sum((T)p.e, q.hi);
    return s.hi + (s.lo + low);
}
template <class T> __BH_DEVICE T __bh_log10(T x) {
    if (__bh_log_special(x)) {
        return __bh_log_of_special(x);
    }
    __bh_parts<T> p = __bh_split(x);
    __bh_log_terms<T> t = __bh_log_near(p.m - (T)1);
    __bh_pair<T> q = __bh_product(t.big, __BH_C(LOG10_E_1));
    T low = __bh_fma(t.big, __BH_C(LOG10_E_2), __bh_fma(t.small, __BH_C(LOG10_E_1), q.lo));
    T e = (T)p.e;
    __bh_pair<T> s = __bh_sum(__bh_mul(e, __BH_C(LOG10_2_1)), q.hi);
    return s.hi + (s.lo + __bh_fma(e, __BH_C(LOG10_2_2), low));
}
template <class T> __BH_DEVICE T __bh_log1p(T x) {
    if (__bh_abs(x) < (T)0.29) {
        __bh_log_terms<T> t = __bh_log_near(x);
        return t.big + t.small;
    }
    T u = __bh_add((T)1, x);
    if (__bh_log_special(u)) {
        return __bh_log_of_special(u);
    }
    T low = x < (T)1 ? __bh_add(x, -__bh_add(u, (T)-1)) : __bh_add((T)1, -__bh_add(u, -x));
    __bh_parts<T> p = __bh_split(u);
    int down = p.e > 100 ? 100 : p.e;
    __bh_pair<T> f = __bh_sum_ordered(p.m - (T)1, low * __bh_power_of_two<T>(-down));
    __bh_log_terms<T> t = __bh_log_near(f.hi);
    /* log(1 + f.hi + f.lo) is about log(1 + f.hi) + f.lo (1 - f.hi) */
    t.small = __bh_fma(f.lo, (T)1 - f.hi, t.small);
    T e = (T)p.e;
    return __bh_fma(e, __BH_C(LN2_1), t.big + __bh_fma(e, __BH_C(LN2_2), t.small));
}

/* log(x) in two parts, about ten bits more precise than the type; x is positive and finite. */
template <class T> __BH_DEVICE __bh_pair<T> __bh_log_pair(T x) {
    __bh_parts<T> p = __bh_split(x);
    T f = __bh_add(p.m, (T)-1), t = __bh_add(p.m, (T)1), t_low = __bh_add(p.m, -__bh_add(t, (T)-1));
    T s = __bh_div(f, t);
    T s_low = __bh_div(__bh_fma(-s, t_low, __bh_fma(-s, t, f)), t);
    __bh_pair<T> z = __bh_product(s, s);
    z.lo = __bh_fma((T)2 * s, s_low, z.lo);
    /* 2s + 2/3 s^3 in two parts, further terms in one */
    __bh_pair<T> cube = __bh_product(s, z.hi);
    cube.lo += __bh_fma(s, z.lo, s_low * z.hi);
    __bh_pair<T> third = __bh_product(__BH_C(TWO_THIRDS_1), cube.hi);
    third.lo += __bh_fma(__BH_C(TWO_THIRDS_1), cube.lo, __BH_C(TWO_THIRDS_2) * cube.hi);
    T rest = cube.hi * z.hi * __bh_poly_atanh5(z.hi), e = (T)p.e;
    __bh_pair<T> sum = __bh_sum(__bh_mul(e, __BH_C(LN2_1)), (T)2 * s);
    __bh_pair<T> next = __bh_sum(sum.hi, third.hi);
    T low = sum.lo + next.lo + third.lo + rest + __bh_fma(e, __BH_C(LN2_2), (T)2 * s_low);
    return __bh_sum_ordered(next.hi, low);
}

template <class T> __BH_DEVICE bool __bh_is_integral(T x) {
    return __bh_is_finite(x) && __bh_rint(x) == x;
}
template <class T> __BH_DEVICE bool __bh_is_odd(T x) {
    return __bh_is_integral(x) && __bh_rint(x * (T)0.5) != x * (T)0.5;
}
/* pow if x or y is zero, infinite or NaN, or x is negative and y not an integer. */
template <class T> __BH_SLOW T __bh_pow_special(T x, T y) {
    if (__bh_is_zero(y) || __bh_bits_of(x) == __bh_layout<T>::one) {
        return (T)1;
    }
    if (__bh_is_nan(x) || __bh_is_nan(y)) {
        return __bh_nan<T>();
    }
    if (__bh_is_infinite(y)) {
        __bh_bits_t<T> size = __bh_magnitude(x);
        if (size == __bh_layout<T>::one) {
            return (T)1;
        }
        return (size > __bh_layout<T>::one) == !__bh_negative(y) ? __bh_infinity<T>() : (T)0;
    }
    if (__bh_is_zero(x) || __bh_is_infinite(x)) {
        T size = __bh_is_zero(x) == __bh_negative(y) ? __bh_infinity<T>() : (T)0;
        return __bh_is_odd(y) ? __bh_with_sign(size, x) : size;
    }
    return __bh_nan<T>();
}
template <class T> __BH_FUNCTION T __bh_pow(T x, T y) {
    bool negative = __bh_negative(x);
    if (__bh_magnitude(x) - 1 >= __bh_layout<T>::infinity - 1 || __bh_is_zero(y) ||
        !__bh_is_finite(y) || (negative && !__bh_is_integral(y)) ||
        __bh_bits_of(x) == __bh_layout<T>::one) {
        return __bh_pow_special(x, y);
    }
    __bh_pair<T> l = __bh_log_pair(__bh_abs(x)), p = __bh_product(y, l.hi);
    p.lo = __bh_fma(y, l.lo, p.lo);
    T low = __bh_pick<T>(-105, -746), high = __bh_pick<T>(89, 710);
    if (!(p.hi > low && p.hi < high)) {
        p.hi = p.hi > (T)0 ? high : low;
        p.lo = (T)0;
    }
    T result = __bh_exp_pair(p.hi, p.lo);
    return negative && __bh_is_odd(y) ? -result : result;
}

template <class T> __BH_DEVICE T __bh_sinh(T x) {
    T a = __bh_abs(x), result;
    if (a < __bh_pick<T>(88, 709)) {
        T e = __bh_expm1(a);
        result = (T)0.5 * (e + __bh_div(e, e + (T)1));
    } else {
        T e = __bh_exp((T)0.5 * a);
        result = (T)0.5 * e * e;
    }
    return __bh_is_nan(x) ? __bh_nan<T>() : __bh_with_sign(result, x);
}
template <class T> __BH_DEVICE T __bh_cosh(T x) {
    T a = __bh_abs(x);
    if (a < __bh_pick<T>(88, 709)) {
        T e = __bh_exp(a);
        return (T)0.5 * e + __bh_div((T)0.5, e);
    }
    T e = __bh_exp((T)0.5 * a);
    return (T)0.5 * e * e;
}
template <class T> __BH_DEVICE T __bh_tanh(T x) {
    T a = __bh_abs(x), z = x * x;
    if (a < (T)0.6) {
        return __bh_with_sign(__bh_fma(x * z, __bh_poly_tanh(z), x), x);
    }
    T result = (T)1 - __bh_div((T)2, __bh_exp((T)2 * a) + (T)1);
    return __bh_is_nan(x) ? __bh_nan<T>() : __bh_with_sign(result, x);
}
template <class T> __BH_DEVICE T __bh_asinh(T x) {
    T a = __bh_abs(x), result;
    if (a > __bh_pick<T>(1e6f, 1e10)) {
        result = __bh_log(a) + __BH_C(LN2_FULL_1);
    } else {
        T square = a * a;
        result = __bh_log1p(a + __bh_div(square, (T)1 + __bh_sqrt(square + (T)1)));
    }
    return __bh_with_sign(result, x);
}
template <class T> __BH_DEVICE T __bh_acosh(T x) {
    if (!(x >= (T)1)) {
        return __bh_nan<T>();
    }
    if (x > __bh_pick<T>(1e6f, 1e10)) {
        return __bh_log(x) + __BH_C(LN2_FULL_1);
    }
    T t = x - (T)1;
    return __bh_log1p(t + __bh_sqrt(__bh_fma(t, t, (T)2 * t)));
}
template <class T> __BH_DEVICE T __bh_atanh(T x) {
    T a = __bh_abs(x);
    return __bh_with_sign((T)0.5 * __bh_log1p(__bh_div((T)2 * a, (T)1 - a)), x);
}

#endif
