/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers as pairs, by the names of cuComplex.h. */
#ifndef BULKHEAD_CUCOMPLEX_H
#define BULKHEAD_CUCOMPLEX_H

#include "bulkhead_cuda.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

/* A quotient is scaled by the divisor's size, so that squares do not overflow. */
#define __BH_CUCOMPLEX(type, pair, number, f)                                                      \
    __BH_BOTH constexpr pair make_##type(number real, number imaginary) {                          \
        return pair{real, imaginary};                                                              \
    }                                                                                              \
    __BH_BOTH constexpr number cuCreal##f(pair a) {                                                \
        return a.x;                                                                                \
    }                                                                                              \
    __BH_BOTH constexpr number cuCimag##f(pair a) {                                                \
        return a.y;                                                                                \
    }                                                                                              \
    __BH_BOTH constexpr pair cuConj##f(pair a) {                                                   \
        return pair{a.x, -a.y};                                                                    \
    }                                                                                              \
    __BH_BOTH constexpr pair cuCadd##f(pair a, pair b) {                                           \
        return pair{a.x + b.x, a.y + b.y};                                                         \
    }                                                                                              \
    __BH_BOTH constexpr pair cuCsub##f(pair a, pair b) {                                           \
        return pair{a.x - b.x, a.y - b.y};                                                         \
    }                                                                                              \
    __BH_BOTH constexpr pair cuCmul##f(pair a, pair b) {                                           \
        return pair{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};                                 \
    }                                                                                              \
    __BH_BOTH constexpr pair cuCfma##f(pair a, pair b, pair c) {                                   \
        return pair{a.x * b.x + c.x - a.y * b.y, a.x * b.y + c.y + a.y * b.x};                     \
    }                                                                                              \
    __BH_BOTH pair cuCdiv##f(pair a, pair b) {                                                     \
        number shrink = 1 / (fabs##f(b.x) + fabs##f(b.y));                                         \
        pair p = {a.x * shrink, a.y * shrink}, q = {b.x * shrink, b.y * shrink};                   \
        number inverse = 1 / (q.x * q.x + q.y * q.y);                                              \
        return pair{(p.x * q.x + p.y * q.y) * inverse, (p.y * q.x - p.x * q.y) * inverse};         \
    }                                                                                              \
    __BH_BOTH number cuCabs##f(pair a) {                                                           \
        return hypot##f(a.x, a.y);                                                                 \
    }

__BH_CUCOMPLEX(cuFloatComplex, float2, float, f)
__BH_CUCOMPLEX(cuDoubleComplex, double2, double, )
#undef __BH_CUCOMPLEX

__BH_BOTH constexpr cuComplex make_cuComplex(float real, float imaginary) {
    return make_cuFloatComplex(real, imaginary);
}
__BH_BOTH constexpr cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) {
    return make_cuDoubleComplex((double)a.x, (double)a.y);
}
__BH_BOTH constexpr cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
    return make_cuFloatComplex((float)a.x, (float)a.y);
}

#endif
