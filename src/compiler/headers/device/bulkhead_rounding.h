/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic with a rounding mode, which the compiler does not contract or reorder. */
#ifndef BULKHEAD_ROUNDING_H
#define BULKHEAD_ROUNDING_H

#include "bulkhead_types.h"

#define __BH_ROUND_1(name, type, letter, instruction)                                              \
    __BH_DEVICE type name(type x) {                                                                \
        type result;                                                                               \
        asm(instruction " %0, %1;" : "=" letter(result) : letter(x));                              \
        return result;                                                                             \
    }
#define __BH_ROUND_2(name, type, letter, instruction)                                              \
    __BH_DEVICE type name(type x, type y) {                                                        \
        type result;                                                                               \
        asm(instruction " %0, %1, %2;" : "=" letter(result) : letter(x), letter(y));               \
        return result;                                                                             \
    }
#define __BH_ROUND_3(name, type, letter, instruction)                                              \
    __BH_DEVICE type name(type x, type y, type z) {                                                \
        type result;                                                                               \
        asm(instruction " %0, %1, %2, %3;"                                                         \
            : "=" letter(result)                                                                   \
            : letter(x), letter(y), letter(z));                                                    \
        return result;                                                                             \
    }
#define __BH_ROUND(shape, name, type, letter, instruction, suffix)                                 \
    shape(name##_rn, type, letter, instruction ".rn." suffix)                                      \
        shape(name##_rz, type, letter, instruction ".rz." suffix)                                  \
            shape(name##_ru, type, letter, instruction ".rp." suffix)                              \
                shape(name##_rd, type, letter, instruction ".rm." suffix)

__BH_ROUND(__BH_ROUND_2, __fadd, float, "f", "add", "f32")
__BH_ROUND(__BH_ROUND_2, __fsub, float, "f", "sub", "f32")
__BH_ROUND(__BH_ROUND_2, __fmul, float, "f", "mul", "f32")
__BH_ROUND(__BH_ROUND_2, __fdiv, float, "f", "div", "f32")
__BH_ROUND(__BH_ROUND_3, __fmaf, float, "f", "fma", "f32")
__BH_ROUND(__BH_ROUND_1, __frcp, float, "f", "rcp", "f32")
__BH_ROUND(__BH_ROUND_1, __fsqrt, float, "f", "sqrt", "f32")
__BH_ROUND(__BH_ROUND_2, __dadd, double, "d", "add", "f64")
__BH_ROUND(__BH_ROUND_2, __dsub, double, "d", "sub", "f64")
__BH_ROUND(__BH_ROUND_2, __dmul, double, "d", "mul", "f64")
__BH_ROUND(__BH_ROUND_2, __ddiv, double, "d", "div", "f64")
__BH_ROUND(__BH_ROUND_3, __fma, double, "d", "fma", "f64")
__BH_ROUND(__BH_ROUND_1, __drcp, double, "d", "rcp", "f64")
__BH_ROUND(__BH_ROUND_1, __dsqrt, double, "d", "sqrt", "f64")
__BH_ROUND(__BH_ROUND_3, __fmaf_ieee, float, "f", "fma", "f32")

/* The approximate instructions. */
__BH_ROUND_1(__bh_sin_approx, float, "f", "sin.approx.f32")
__BH_ROUND_1(__bh_cos_approx, float, "f", "cos.approx.f32")
__BH_ROUND_1(__bh_lg2_approx, float, "f", "lg2.approx.f32")
__BH_ROUND_1(__bh_ex2_approx, float, "f", "ex2.approx.f32")
__BH_ROUND_1(__bh_sqrt_approx, float, "f", "sqrt.approx.f32")
__BH_ROUND_1(__bh_rsqrt_approx, float, "f", "rsqrt.approx.f32")
__BH_ROUND_1(__bh_rcp_approx, float, "f", "rcp.approx.f32")
__BH_ROUND_2(__bh_div_approx, float, "f", "div.approx.f32")
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 750
__BH_ROUND_1(__bh_tanh_approx, float, "f", "tanh.approx.f32")
#endif

#undef __BH_ROUND
#undef __BH_ROUND_1
#undef __BH_ROUND_2
#undef __BH_ROUND_3

__BH_DEVICE float __frsqrt_rn(float x) {
    double wide = (double)x;
    return __bh_bits_of(x) == 0x80000000u ? __bh_float_of(0xff800000u)
                                          : (float)__drcp_rn(__dsqrt_rn(wide));
}
__BH_DEVICE float __saturatef(float x) {
    float result;
    asm("cvt.sat.f32.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

#endif
