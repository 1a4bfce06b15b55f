/* SPDX-License-Identifier: Apache-2.0 */
/* The math functions under test, for math.cu and math.c.
 * X(name, low, high, float ulps, double ulps, beyond): arguments are drawn from [low, high], and,
 * where `beyond` is set, also as random bits. */
#define MATH_UNARY(X)                                                                              \
    X(sqrt, 0, 1000, 0.5, 0.5, 1)                                                                  \
    X(cbrt, -100, 100, 1, 1, 1)                                                                    \
    X(exp, -100, 100, 1, 1, 1)                                                                     \
    X(exp2, -150, 130, 1, 1, 1)                                                                    \
    X(exp10, -46, 40, 1, 1, 1)                                                                     \
    X(expm1, -5, 5, 1.5, 1.5, 1)                                                                   \
    X(log, 0, 10, 1, 1, 1)                                                                         \
    X(log2, 0, 10, 1, 1.5, 1)                                                                      \
    X(log10, 0, 10, 1, 1, 1)                                                                       \
    X(log1p, -1, 5, 1.5, 1.5, 1)                                                                   \
    X(sin, -100, 100, 1, 1, 1)                                                                     \
    X(cos, -100, 100, 1, 1, 1)                                                                     \
    X(tan, -100, 100, 2, 2, 1)                                                                     \
    X(asin, -1, 1, 2, 2, 1)                                                                        \
    X(acos, -1, 1, 2, 2, 1)                                                                        \
    X(atan, -10, 10, 1, 1, 1)                                                                      \
    X(sinh, -10, 10, 2, 2.5, 1)                                                                    \
    X(cosh, -10, 10, 2, 1.5, 1)                                                                    \
    X(tanh, -5, 5, 2, 1.5, 1)                                                                      \
    X(asinh, -10, 10, 3, 3, 1)                                                                     \
    X(acosh, 1, 10, 3, 3, 1)                                                                       \
    X(atanh, -1, 1, 3, 2.5, 1)                                                                     \
    X(erf, -4, 4, 2, 2, 1)                                                                         \
    X(erfc, -4, 27, 4, 4, 1)                                                                       \
    X(tgamma, 0.001, 35, 1, 4, 1)                                                                  \
    X(lgamma, 0.001, 50, 1, 12, 0)                                                                 \
    X(floor, -100, 100, 0, 0, 1)                                                                   \
    X(ceil, -100, 100, 0, 0, 1)                                                                    \
    X(trunc, -100, 100, 0, 0, 1)                                                                   \
    X(round, -100, 100, 0, 0, 1)                                                                   \
    X(rint, -100, 100, 0, 0, 1)                                                                    \
    X(nearbyint, -100, 100, 0, 0, 1)                                                               \
    X(fabs, -100, 100, 0, 0, 1)                                                                    \
    X(logb, -100, 100, 0, 0, 1)

/* These have no function in libm: X(name, low, high, float ulps, double ulps, reference of x) */
#define MATH_OTHER(X)                                                                              \
    X(rsqrt, 0.001, 100, 2, 1, 1 / sqrtl(x))                                                       \
    X(rcbrt, 0.001, 100, 1.5, 1.5, 1 / cbrtl(x))                                                   \
    X(sinpi, -100, 100, 1, 1, sin_of_pi(x))                                                        \
    X(cospi, -100, 100, 1, 1, cos_of_pi(x))                                                        \
    X(normcdf, -38, 9, 0.6, 4.5, erfcl(-x / sqrtl(2)) / 2)

#define MATH_BINARY(X)                                                                             \
    X(pow, 0, 20, 1, 1, 1)                                                                         \
    X(atan2, -10, 10, 2, 2, 1)                                                                     \
    X(hypot, -10, 10, 1, 1, 1)                                                                     \
    X(fmod, -100, 100, 0, 0, 1)                                                                    \
    X(remainder, -100, 100, 0, 0, 1)                                                               \
    X(fmin, -10, 10, 0, 0, 1)                                                                      \
    X(fmax, -10, 10, 0, 0, 1)                                                                      \
    X(copysign, -10, 10, 0, 0, 1)                                                                  \
    X(fdim, -10, 10, 0.5, 0.5, 1)                                                                  \
    X(nextafter, -10, 10, 0, 0, 1)
