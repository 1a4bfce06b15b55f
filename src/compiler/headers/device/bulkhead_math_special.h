/* SPDX-License-Identifier: Apache-2.0 */
/* Roots, norms, the error function and the gamma function. */
#ifndef BULKHEAD_MATH_SPECIAL_H
#define BULKHEAD_MATH_SPECIAL_H

#include "bulkhead_math_exp.h"
#include "bulkhead_math_parts.h"
#include "bulkhead_math_trig.h"

__BH_POLYNOMIAL(__bh_poly_cbrt, CBRT)
__BH_POLYNOMIAL(__bh_poly_erf, ERF)
__BH_POLYNOMIAL(__bh_poly_erfc, ERFC)

template <class T> __BH_FUNCTION T __bh_cbrt(T x) {
    if (!__bh_is_finite(x) || __bh_is_zero(x)) {
        return x;
    }
    __bh_integral<T> p = __bh_take_apart(x);
    /* |x| = m 2^(3k + third) with m in [1, 2) */
    T m = __bh_put_together<T>(p.m, -__bh_layout<T>::mantissa);
    int e = p.e + __bh_layout<T>::mantissa + 3072, k = e / 3, third = e - 3 * k;
    T y = __bh_poly_cbrt(m);
    y = third == 0 ? y : y * (third == 1 ? __BH_C(CBRT2_1) : __BH_C(CBRT4_1));
    m = third == 0 ? m : third == 1 ? m * (T)2 : m * (T)4;
    if (sizeof(T) == sizeof(double)) {
        y = y - __bh_div(y * y * y - m, (T)3 * y * y);
    }
    __bh_pair<T> square = __bh_product(y, y);
    /* the last step, with y^3 - m in extended precision */
    __bh_pair<T> cube = __bh_product(square.hi, y);
    T error = __bh_add(cube.hi, -m) + __bh_fma(square.lo, y, cube.lo);
    y = y - __bh_div(error, (T)3 * square.hi);
    square = __bh_product(y, y);
    cube = __bh_product(square.hi, y);
    error = __bh_add(cube.hi, -m) + __bh_fma(square.lo, y, cube.lo);
    y = y - __bh_div(error, (T)3 * square.hi);
    return __bh_with_sign(y * __bh_power_of_two<T>(k - 1024), x);
}
template <class T> __BH_DEVICE T __bh_rsqrt_wide(T x) {
    T root = __bh_sqrt(x), y = __bh_div((T)1, root);
    if (!(x > (T)0) || !__bh_is_finite(x)) {
        return __bh_is_zero(x) ? __bh_with_sign(y, x) : y;
    }
    /* one Newton step corrects the two rounding errors */
    T lost = __bh_fma(-root, root, x);
    T error = __bh_fma(-root, y, (T)1) - (T)0.5 * lost * y * y;
    return __bh_fma(y, error, y);
}

/* The exponent of the largest magnitude, for scaling: squares must not overflow or underflow. */
template <class T> __BH_DEVICE int __bh_exponent(T size) {
    int e = (int)(__bh_bits_of(size) >> __bh_layout<T>::mantissa) - __bh_layout<T>::bias;
    int limit = __bh_layout<T>::bias - 2;
    return e > limit ? limit : e < -limit ? -limit : e;
}
template <class T> struct __bh_norm {
    T root; /* the norm is root * 2^exponent */
    int exponent;
    bool infinite;
};
template <class T> __BH_DEVICE __bh_norm<T> __bh_norm_of(T a, T b, T c, T d) {
    a = __bh_abs(a), b = __bh_abs(b), c = __bh_abs(c), d = __bh_abs(d);
    bool infinite =
        __bh_is_infinite(a) || __bh_is_infinite(b) || __bh_is_infinite(c) || __bh_is_infinite(d);
    T big = a > b ? a : b;
    big = big > c ? big : c;
    big = big > d ? big : d;
    int e = __bh_exponent(big);
    T down = __bh_power_of_two<T>(-e);
    a *= down, b *= down, c *= down, d *= down;
    /* the sum of squares in two parts, then a correction of the root's last bit */
    __bh_pair<T> s = __bh_product(a, a), q = __bh_product(b, b), t = __bh_sum(s.hi, q.hi);
    T low = s.lo + q.lo + t.lo;
    q = __bh_product(c, c);
    t = __bh_sum(t.hi, q.hi);
    low += q.lo + t.lo;
    q = __bh_product(d, d);
    t = __bh_sum(t.hi, q.hi);
    low += q.lo + t.lo;
    T root = __bh_sqrt(t.hi + low);
    if (root > (T)0) {
        root += __bh_div(__bh_fma(-root, root, t.hi) + low, (T)2 * root);
    }
    return __bh_norm<T>{root, e, infinite};
}
template <class T> __BH_FUNCTION T __bh_norm4(T a, T b, T c, T d) {
    __bh_norm<T> n = __bh_norm_of(a, b, c, d);
    return n.infinite ? __bh_infinity<T>() : n.root * __bh_power_of_two<T>(n.exponent);
}
template <class T> __BH_FUNCTION T __bh_rnorm4(T a, T b, T c, T d) {
    __bh_norm<T> n = __bh_norm_of(a, b, c, d);
    return n.infinite ? (T)0 : __bh_div((T)1, n.root) * __bh_power_of_two<T>(-n.exponent);
}

/* erfc(x) for x >= 0.95: exp(-x^2) times a polynomial in (x - 2) / (x + 2), over 2x + 1. */
template <class T> __BH_DEVICE T __bh_erfc_large(T x) {
    if (x > __bh_pick<T>(10.1f, 27.3)) {
        return (T)0;
    }
    __bh_pair<T> square = __bh_product(x, x);
    T smooth = __bh_poly_erfc(__bh_div(x - (T)2, x + (T)2));
    T factor = __bh_div(smooth, __bh_fma((T)2, x, (T)1));
    T n = __bh_rint(-square.hi * __BH_C(LOG2_E_1));
    T a = __bh_fma(-n, __BH_C(LN2_1), -square.hi), b = __bh_fma(-n, __BH_C(LN2_2), -square.lo);
    T r = a + b, rest = (a - r) + b;
    return __bh_scale(__bh_exp_near(r, rest) * factor, (int)n);
}
template <class T> __BH_FUNCTION T __bh_erf(T x) {
    T a = __bh_abs(x);
    if (a < (T)0.95) {
        return __bh_fma(x, __bh_poly_erf(x * x), x);
    }
    return __bh_is_nan(x) ? __bh_nan<T>() : __bh_with_sign((T)1 - __bh_erfc_large(a), x);
}
template <class T> __BH_FUNCTION T __bh_erfc(T x) {
    T a = __bh_abs(x);
    if (a < (T)0.95) {
        T p = __bh_poly_erf(x * x);
        /* 1 - x - x p; for x > 1/4 as 1/2 + ((1/2 - x) - x p), which cancels less */
        return x > (T)0.25 ? (T)0.5 + (((T)0.5 - x) - x * p) : (T)1 - __bh_fma(x, p, x);
    }
    if (__bh_is_nan(x)) {
        return __bh_nan<T>();
    }
    T large = __bh_erfc_large(a);
    return __bh_negative(x) ? (T)2 - large : large;
}

/* erfc(-x / sqrt(2)) / 2. erfc magnifies what is lost in the quotient, so that is multiplied with
 * the slope of log(erfc(z)), the start of a continued fraction. */
__BH_FUNCTION double __bh_normcdf(double x) {
    const double root = 0.70710678118654757, root_rest = -4.8336466567264567e-17;
    double z = -x * root, y = __bh_erfc(z);
    if (!(z > 0.0 && z < 28.0)) {
        return 0.5 * y;
    }
    double lost = __bh_fma(-x, root, -z) - x * root_rest;
    double slope = -2.0 * (z + __bh_div(0.5, z + __bh_div(1.0, z + 1.2)));
    return 0.5 * __bh_fma(y, slope * lost, y);
}

/* log(gamma(x)) - (log(x) (x - 1/2) - x + log(2 pi) / 2) for x >= 8. */
__BH_DEVICE double __bh_stirling(double x) {
    double r = __bh_div(1.0, x);
    return r * __bh_poly(r * r, __BH_STIRLING_D);
}
__BH_SLOW double __bh_tgamma_positive(double x) {
    if (x >= 8.0) {
        if (x > 171.7) {
            return __bh_infinity<double>();
        }
        __bh_pair<double> l = __bh_log_pair(x), p = __bh_product(x - 0.5, l.hi);
        p.lo = __bh_fma(x - 0.5, l.lo, p.lo);
        __bh_pair<double> s = __bh_sum_ordered(p.hi, -x);
        double low = s.lo + p.lo + (__bh_stirling(x) + __BH_HALF_LOG_2PI_2_D);
        __bh_pair<double> t = __bh_sum_ordered(s.hi, (double)__BH_HALF_LOG_2PI_1_D);
        /* near overflow, as a product of two exponentials */
        double half = __bh_rint(t.hi * 0.5);
        return t.hi < 700.0 ? __bh_exp_pair(t.hi, t.lo + low)
                            : __bh_exp_pair(t.hi - half, t.lo + low) * __bh_exp(half);
    }
    double up = 1.0, down = 1.0;
    while (x >= 3.0) {
        x -= 1.0;
        up *= x;
    }
    if (x < 2.0) {
        double u = x;
        if (x < 1.0) {
            /* gamma(x) = gamma(x + 2) / (x (x + 1)), with u = x in the polynomial */
            down = u * (u + 1.0);
        } else {
            u = x - 1.0;
            down = x;
        }
        return __bh_div(__bh_poly(u, __BH_GAMMA_D), down);
    }
    return up * __bh_poly(x - 2.0, __BH_GAMMA_D);
}
__BH_SLOW double __bh_tgamma(double x) {
    if (__bh_is_nan(x) || (__bh_is_infinite(x) && x < 0.0)) {
        return __bh_nan<double>();
    }
    if (__bh_is_zero(x)) {
        return __bh_with_sign(__bh_infinity<double>(), x);
    }
    if (x > 0.0) {
        return x < 1e-300 ? __bh_div(1.0, x) : __bh_tgamma_positive(x);
    }
    if (__bh_rint(x) == x) {
        return __bh_nan<double>();
    }
    if (x > -1e-17) {
        return __bh_div(1.0, x);
    }
    if (x < -184.0) {
        return __bh_is_odd(__bh_trunc(x)) ? 0.0 : -0.0;
    }
    /* gamma(x) gamma(-x) = -pi / (x sin(pi x)), in an order that does not overflow */
    double g = x < -170.0 ? __bh_tgamma_positive(-x - 20.0) : __bh_tgamma_positive(-x);
    double result = __bh_div(__bh_div(-__BH_PI_1_D, x * __bh_sinpi(x)), g);
    if (x < -170.0) {
        for (int i = 1; i <= 20; i++) {
            result = __bh_div(result, -x - (double)i);
        }
    }
    return result;
}
__BH_SLOW double __bh_lgamma_positive(double x) {
    if (x < 1e-17) {
        return -__bh_log(x);
    }
    if (x < 1.0) {
        /* from lgamma(x + 1), which has the factors x and x - 1 */
        return __bh_fma(x * (x - 1.0), __bh_poly(x - 1.0, __BH_LGAMMA_D), -__bh_log(x));
    }
    if (x == 1.0 || x == 2.0) {
        return 0.0;
    }
    if (x < 3.0) {
        return (x - 1.0) * (x - 2.0) * __bh_poly(x - 2.0, __BH_LGAMMA_D);
    }
    if (x < 8.0) {
        double up = 1.0;
        while (x >= 3.0) {
            x -= 1.0;
            up *= x;
        }
        return __bh_log(up) + (x - 1.0) * (x - 2.0) * __bh_poly(x - 2.0, __BH_LGAMMA_D);
    }
    if (x > 1e17) {
        return x < 1e308 ? x * (__bh_log(x) - 1.0) : x * 1e-3 * (__bh_log(x) - 1.0) * 1e3;
    }
    __bh_pair<double> l = __bh_log_pair(x), p = __bh_product(x - 0.5, l.hi);
    __bh_pair<double> s = __bh_sum_ordered(p.hi, -x);
    double low = __bh_fma(x - 0.5, l.lo, p.lo) + s.lo + __bh_stirling(x);
    return s.hi + (__BH_HALF_LOG_2PI_1_D + low);
}
__BH_SLOW double __bh_lgamma(double x) {
    if (!__bh_is_finite(x)) {
        return __bh_is_nan(x) ? __bh_nan<double>() : __bh_infinity<double>();
    }
    if (x > 0.0) {
        return __bh_lgamma_positive(x);
    }
    if (__bh_rint(x) == x) {
        return __bh_infinity<double>();
    }
    double a = -x, s = __bh_abs(__bh_sinpi(a));
    return a < 1e-17 ? -__bh_log(a)
                     : __bh_log(__bh_div(__BH_PI_1_D, a * s)) - __bh_lgamma_positive(a);
}

#endif
