/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel for every math function and type: y[i] = f(x[i]). */
#include <math.h>

#include "math_list.h"

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

#define UNARY(name, ...)                                                                           \
    extern "C" __global__ void float_##name(const float *x, float *y, unsigned n) {                \
        unsigned i = INDEX;                                                                        \
        if (i < n) y[i] = name##f(x[i]);                                                           \
    }                                                                                              \
    extern "C" __global__ void double_##name(const double *x, double *y, unsigned n) {             \
        unsigned i = INDEX;                                                                        \
        if (i < n) y[i] = name(x[i]);                                                              \
    }
MATH_UNARY(UNARY)
MATH_OTHER(UNARY)

#define BINARY(name, ...)                                                                          \
    extern "C" __global__ void float_##name(const float *x, const float *z, float *y,              \
                                            unsigned n) {                                          \
        unsigned i = INDEX;                                                                        \
        if (i < n) y[i] = name##f(x[i], z[i]);                                                     \
    }                                                                                              \
    extern "C" __global__ void double_##name(const double *x, const double *z, double *y,          \
                                             unsigned n) {                                         \
        unsigned i = INDEX;                                                                        \
        if (i < n) y[i] = name(x[i], z[i]);                                                        \
    }
MATH_BINARY(BINARY)
