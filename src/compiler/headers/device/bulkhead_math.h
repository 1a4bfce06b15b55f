/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the math functions: sinf, sin(double), sin(float), sin of an integer, and in std. */
#ifndef BULKHEAD_MATH_H
#define BULKHEAD_MATH_H

#include "bulkhead_bits.h"
#include "bulkhead_math_fast.h"
#include "bulkhead_math_special.h"

/* Integers are converted to double, as in C++. */
template <bool Holds, class T> struct __bh_when {};
template <class T> struct __bh_when<true, T> { typedef T type; };
template <class T> struct __bh_is_integer { static constexpr bool value = false; };
#define __BH_INTEGER(type)                                                                         \
    template <> struct __bh_is_integer<type> { static constexpr bool value = true; };
__BH_INTEGER(bool)
__BH_INTEGER(char)
__BH_INTEGER(signed char)
__BH_INTEGER(unsigned char)
__BH_INTEGER(short)
__BH_INTEGER(unsigned short)
__BH_INTEGER(int)
__BH_INTEGER(unsigned)
__BH_INTEGER(long)
__BH_INTEGER(unsigned long)
__BH_INTEGER(long long)
__BH_INTEGER(unsigned long long)
#undef __BH_INTEGER
template <class T> struct __bh_is_number {
    static constexpr bool value = __bh_is_integer<T>::value;
};
template <> struct __bh_is_number<float> { static constexpr bool value = true; };
template <> struct __bh_is_number<double> { static constexpr bool value = true; };
template <class T, class R = double>
using __bh_if_integer = typename __bh_when<__bh_is_integer<T>::value, R>::type;
/* Two arguments of different types are converted to double. */
template <class A, class B> struct __bh_needs_double {
    static constexpr bool value = __bh_is_number<A>::value && __bh_is_number<B>::value;
};
template <> struct __bh_needs_double<float, float> { static constexpr bool value = false; };
template <> struct __bh_needs_double<double, double> { static constexpr bool value = false; };
template <class A, class B>
using __bh_if_mixed = typename __bh_when<__bh_needs_double<A, B>::value, double>::type;

/* Fast math uses the approximate instructions where they exist. */
#ifdef __BULKHEAD_FAST_MATH__
#define __BH_FAST(fast, exact) fast
#else
#define __BH_FAST(fast, exact) exact
#endif

#define __BH_UNARY_AS(name, float_value, double_value)                                             \
    __BH_DEVICE float name##f(float x) {                                                           \
        return float_value;                                                                        \
    }                                                                                              \
    __BH_DEVICE float name(float x) {                                                              \
        return float_value;                                                                        \
    }                                                                                              \
    __BH_DEVICE double name(double x) {                                                            \
        return double_value;                                                                       \
    }                                                                                              \
    template <class T> __BH_DEVICE __bh_if_integer<T> name(T x) {                                  \
        return name((double)x);                                                                    \
    }
#define __BH_UNARY(name) __BH_UNARY_AS(name, __bh_##name(x), __bh_##name(x))

__BH_UNARY_AS(sqrt, __BH_FAST(__bh_sqrt_approx(x), __fsqrt_rn(x)), __dsqrt_rn(x))
__BH_UNARY_AS(rsqrt, __bh_rsqrt_approx(x), __bh_rsqrt_wide(x))
__BH_UNARY_AS(exp, __BH_FAST(__expf(x), __bh_exp(x)), __bh_exp(x))
__BH_UNARY_AS(exp2, __BH_FAST(__exp2f(x), __bh_exp2(x)), __bh_exp2(x))
__BH_UNARY_AS(exp10, __BH_FAST(__exp10f(x), __bh_exp10(x)), __bh_exp10(x))
__BH_UNARY(expm1)
__BH_UNARY_AS(log, __BH_FAST(__logf(x), __bh_log(x)), __bh_log(x))
__BH_UNARY_AS(log2, __BH_FAST(__log2f(x), __bh_log2(x)), __bh_log2(x))
__BH_UNARY_AS(log10, __BH_FAST(__log10f(x), __bh_log10(x)), __bh_log10(x))
__BH_UNARY(log1p)
__BH_UNARY_AS(sin, __BH_FAST(__sinf(x), __bh_sin(x)), __bh_sin(x))
__BH_UNARY_AS(cos, __BH_FAST(__cosf(x), __bh_cos(x)), __bh_cos(x))
__BH_UNARY_AS(tan, __BH_FAST(__tanf(x), __bh_tan(x)), __bh_tan(x))
__BH_UNARY(sinpi)
__BH_UNARY(cospi)
__BH_UNARY(asin)
__BH_UNARY(acos)
__BH_UNARY(atan)
__BH_UNARY(sinh)
__BH_UNARY(cosh)
__BH_UNARY_AS(tanh, __BH_FAST(__tanhf(x), __bh_tanh(x)), __bh_tanh(x))
__BH_UNARY(asinh)
__BH_UNARY(acosh)
__BH_UNARY(atanh)
__BH_UNARY(cbrt)
__BH_UNARY_AS(rcbrt, __bh_div(1.0f, __bh_cbrt(x)), __bh_div(1.0, __bh_cbrt(x)))
__BH_UNARY(erf)
__BH_UNARY(erfc)
__BH_UNARY_AS(normcdf, (float)__bh_normcdf((double)x), __bh_normcdf(x))
__BH_UNARY_AS(tgamma, (float)__bh_tgamma((double)x), __bh_tgamma(x))
__BH_UNARY_AS(lgamma, (float)__bh_lgamma((double)x), __bh_lgamma(x))
__BH_UNARY_AS(floor, __builtin_floorf(x), __builtin_floor(x))
__BH_UNARY_AS(ceil, __builtin_ceilf(x), __builtin_ceil(x))
__BH_UNARY_AS(trunc, __builtin_truncf(x), __builtin_trunc(x))
__BH_UNARY(round)
__BH_UNARY_AS(rint, __builtin_rintf(x), __builtin_rint(x))
__BH_UNARY_AS(nearbyint, __builtin_rintf(x), __builtin_rint(x))
__BH_UNARY_AS(fabs, __builtin_fabsf(x), __builtin_fabs(x))
__BH_UNARY(logb)

#define __BH_BINARY_AS(name, float_value, double_value)                                            \
    __BH_DEVICE float name##f(float x, float y) {                                                  \
        return float_value;                                                                        \
    }                                                                                              \
    __BH_DEVICE float name(float x, float y) {                                                     \
        return float_value;                                                                        \
    }                                                                                              \
    __BH_DEVICE double name(double x, double y) {                                                  \
        return double_value;                                                                       \
    }                                                                                              \
    template <class A, class B> __BH_DEVICE __bh_if_mixed<A, B> name(A x, B y) {                   \
        return name((double)x, (double)y);                                                         \
    }
#define __BH_BINARY(name) __BH_BINARY_AS(name, __bh_##name(x, y), __bh_##name(x, y))

__BH_BINARY(atan2)
__BH_BINARY(fmod)
__BH_BINARY(nextafter)
__BH_BINARY_AS(hypot, __bh_norm4(x, y, 0.0f, 0.0f), __bh_norm4(x, y, 0.0, 0.0))
__BH_BINARY_AS(rhypot, __bh_rnorm4(x, y, 0.0f, 0.0f), __bh_rnorm4(x, y, 0.0, 0.0))
__BH_BINARY_AS(fmin, __builtin_fminf(x, y), __builtin_fmin(x, y))
__BH_BINARY_AS(fmax, __builtin_fmaxf(x, y), __builtin_fmax(x, y))
__BH_BINARY_AS(copysign, __bh_with_sign(x, y), __bh_with_sign(x, y))
__BH_BINARY_AS(fdim, x <= y ? 0.0f : x - y, x <= y ? 0.0 : x - y)

__BH_DEVICE float powf(float x, float y) {
    return __BH_FAST(__powf(x, y), __bh_pow(x, y));
}
__BH_DEVICE float pow(float x, float y) {
    return powf(x, y);
}
__BH_DEVICE double pow(double x, double y) {
    return __bh_pow(x, y);
}
__BH_DEVICE float pow(float x, int y) {
    return powf(x, (float)y);
}
__BH_DEVICE double pow(double x, int y) {
    return __bh_pow(x, (double)y);
}
template <class A, class B> __BH_DEVICE __bh_if_mixed<A, B> pow(A x, B y) {
    return __bh_pow((double)x, (double)y);
}
__BH_DEVICE float remainderf(float x, float y) {
    int ignored;
    return __bh_remquo(x, y, &ignored);
}
__BH_DEVICE double remainder(double x, double y) {
    int ignored;
    return __bh_remquo(x, y, &ignored);
}
__BH_DEVICE float remainder(float x, float y) {
    return remainderf(x, y);
}
__BH_DEVICE float remquof(float x, float y, int *quotient) {
    return __bh_remquo(x, y, quotient);
}
__BH_DEVICE double remquo(double x, double y, int *quotient) {
    return __bh_remquo(x, y, quotient);
}
__BH_DEVICE float fmaf(float x, float y, float z) {
    return __builtin_fmaf(x, y, z);
}
__BH_DEVICE float fma(float x, float y, float z) {
    return __builtin_fmaf(x, y, z);
}
__BH_DEVICE double fma(double x, double y, double z) {
    return __builtin_fma(x, y, z);
}

#define __BH_NORM(name, wide)                                                                      \
    __BH_DEVICE double name##3d(double x, double y, double z) {                                    \
        return wide(x, y, z, 0.0);                                                                 \
    }                                                                                              \
    __BH_DEVICE float name##3df(float x, float y, float z) {                                       \
        return wide(x, y, z, 0.0f);                                                                \
    }                                                                                              \
    __BH_DEVICE double name##4d(double x, double y, double z, double w) {                          \
        return wide(x, y, z, w);                                                                   \
    }                                                                                              \
    __BH_DEVICE float name##4df(float x, float y, float z, float w) {                              \
        return wide(x, y, z, w);                                                                   \
    }
__BH_NORM(norm, __bh_norm4)
__BH_NORM(rnorm, __bh_rnorm4)
#undef __BH_NORM

__BH_DEVICE void sincosf(float x, float *sine, float *cosine) {
#ifdef __BULKHEAD_FAST_MATH__
    __sincosf(x, sine, cosine);
#else
    __bh_sincos(x, sine, cosine);
#endif
}
__BH_DEVICE void sincos(double x, double *sine, double *cosine) {
    __bh_sincos(x, sine, cosine);
}
__BH_DEVICE void sincos(float x, float *sine, float *cosine) {
    sincosf(x, sine, cosine);
}
template <class T> __BH_DEVICE void __bh_sincospi(T x, T *sine, T *cosine) {
    *sine = __bh_sinpi(x);
    *cosine = __bh_cospi(x);
}
__BH_DEVICE void sincospif(float x, float *sine, float *cosine) {
    __bh_sincospi(x, sine, cosine);
}
__BH_DEVICE void sincospi(double x, double *sine, double *cosine) {
    __bh_sincospi(x, sine, cosine);
}

#define __BH_PARTS(type, f)                                                                        \
    __BH_DEVICE type ldexp##f(type x, int n) {                                                     \
        return __bh_ldexp(x, n);                                                                   \
    }                                                                                              \
    __BH_DEVICE type scalbn##f(type x, int n) {                                                    \
        return __bh_ldexp(x, n);                                                                   \
    }                                                                                              \
    __BH_DEVICE type scalbln##f(type x, long n) {                                                  \
        return __bh_ldexp(x, n > 5000 ? 5000 : n < -5000 ? -5000 : (int)n);                        \
    }                                                                                              \
    __BH_DEVICE type frexp##f(type x, int *n) {                                                    \
        return __bh_frexp(x, n);                                                                   \
    }                                                                                              \
    __BH_DEVICE type modf##f(type x, type *whole) {                                                \
        return __bh_modf(x, whole);                                                                \
    }                                                                                              \
    __BH_DEVICE int ilogb##f(type x) {                                                             \
        return __bh_ilogb(x);                                                                      \
    }                                                                                              \
    __BH_DEVICE long lround##f(type x) {                                                           \
        return (long)__bh_round(x);                                                                \
    }                                                                                              \
    __BH_DEVICE long long llround##f(type x) {                                                     \
        return (long long)__bh_round(x);                                                           \
    }                                                                                              \
    __BH_DEVICE long lrint##f(type x) {                                                            \
        return (long)__bh_rint(x);                                                                 \
    }                                                                                              \
    __BH_DEVICE long long llrint##f(type x) {                                                      \
        return (long long)__bh_rint(x);                                                            \
    }
__BH_PARTS(float, f)
__BH_PARTS(float, )
__BH_PARTS(double, )
#undef __BH_PARTS

__BH_DEVICE float nanf(const char *) {
    return __bh_nan<float>();
}
__BH_DEVICE double nan(const char *) {
    return __bh_nan<double>();
}

#define __BH_CLASSIFY(name, function)                                                              \
    __BH_DEVICE bool name(float x) {                                                               \
        return function(x);                                                                        \
    }                                                                                              \
    __BH_DEVICE bool name(double x) {                                                              \
        return function(x);                                                                        \
    }                                                                                              \
    template <class T> __BH_DEVICE __bh_if_integer<T, bool> name(T x) {                            \
        return function((double)x);                                                                \
    }
template <class T> __BH_DEVICE bool __bh_is_normal(T x) {
    return __bh_magnitude(x) - ((__bh_bits_t<T>)1 << __bh_layout<T>::mantissa) <
           __bh_layout<T>::infinity - ((__bh_bits_t<T>)1 << __bh_layout<T>::mantissa);
}
#undef isnan
#undef isinf
#undef isfinite
#undef isnormal
#undef signbit
__BH_CLASSIFY(isnan, __bh_is_nan)
__BH_CLASSIFY(isinf, __bh_is_infinite)
__BH_CLASSIFY(isfinite, __bh_is_finite)
__BH_CLASSIFY(isnormal, __bh_is_normal)
__BH_CLASSIFY(signbit, __bh_negative)
#undef __BH_CLASSIFY

__BH_DEVICE float abs(float x) {
    return __builtin_fabsf(x);
}
__BH_DEVICE double abs(double x) {
    return __builtin_fabs(x);
}
__BH_BOTH float min(float x, float y) {
    return __builtin_fminf(x, y);
}
__BH_BOTH float max(float x, float y) {
    return __builtin_fmaxf(x, y);
}
__BH_BOTH double min(double x, double y) {
    return __builtin_fmin(x, y);
}
__BH_BOTH double max(double x, double y) {
    return __builtin_fmax(x, y);
}
__BH_BOTH double min(float x, double y) {
    return __builtin_fmin((double)x, y);
}
__BH_BOTH double max(float x, double y) {
    return __builtin_fmax((double)x, y);
}
__BH_BOTH double min(double x, float y) {
    return __builtin_fmin(x, (double)y);
}
__BH_BOTH double max(double x, float y) {
    return __builtin_fmax(x, (double)y);
}

#undef __BH_UNARY
#undef __BH_UNARY_AS
#undef __BH_BINARY
#undef __BH_BINARY_AS
#undef __BH_FAST
#undef __BH_POLYNOMIAL
#undef __BH_C

#endif
