/* SPDX-License-Identifier: Apache-2.0 */
/* The fast intrinsics: one or two approximate instructions each. */
#ifndef BULKHEAD_MATH_FAST_H
#define BULKHEAD_MATH_FAST_H

#include "bulkhead_math_core.h"

__BH_DEVICE float __sinf(float x) {
    return __bh_sin_approx(x);
}
__BH_DEVICE float __cosf(float x) {
    return __bh_cos_approx(x);
}
__BH_DEVICE float __tanf(float x) {
    return __bh_div_approx(__bh_sin_approx(x), __bh_cos_approx(x));
}
__BH_DEVICE void __sincosf(float x, float *sine, float *cosine) {
    *sine = __bh_sin_approx(x);
    *cosine = __bh_cos_approx(x);
}
__BH_DEVICE float __exp2f(float x) {
    return __bh_ex2_approx(x);
}
__BH_DEVICE float __expf(float x) {
    return __bh_ex2_approx(x * __BH_LOG2_E_1_F);
}
__BH_DEVICE float __exp10f(float x) {
    return __bh_ex2_approx(x * __BH_LOG2_10_1_F);
}
__BH_DEVICE float __log2f(float x) {
    return __bh_lg2_approx(x);
}
__BH_DEVICE float __logf(float x) {
    return __bh_lg2_approx(x) * __BH_LN2_FULL_1_F;
}
__BH_DEVICE float __log10f(float x) {
    return __bh_lg2_approx(x) * 0.301029996f;
}
__BH_DEVICE float __powf(float x, float y) {
    return __bh_ex2_approx(y * __bh_lg2_approx(x));
}
__BH_DEVICE float __fdividef(float x, float y) {
    return __bh_div_approx(x, y);
}
__BH_DEVICE float __tanhf(float x) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 750
    return __bh_tanh_approx(x);
#else
    return 1.0f - __bh_div_approx(2.0f, __expf(2.0f * x) + 1.0f);
#endif
}
__BH_DEVICE float fdividef(float x, float y) {
#ifdef __BULKHEAD_FAST_MATH__
    return __fdividef(x, y);
#else
    return x / y;
#endif
}

#endif
