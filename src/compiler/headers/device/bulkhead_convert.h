/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between integers and floats with a rounding mode, and between bit patterns. */
#ifndef BULKHEAD_CONVERT_H
#define BULKHEAD_CONVERT_H

#include "bulkhead_types.h"

#define __BH_CONVERT(name, to, out, from, in, instruction)                                         \
    __BH_DEVICE to name(from x) {                                                                  \
        to result;                                                                                 \
        asm(instruction " %0, %1;" : out(result) : in(x));                                         \
        return result;                                                                             \
    }
/* To an integer: rn, rz, ru, rd are .rni .rzi .rpi .rmi. From one: .rn .rz .rp .rm. */
#define __BH_TO_INTEGER(name, to, out, from, in, types)                                            \
    __BH_CONVERT(name##_rn, to, out, from, in, "cvt.rni." types)                                   \
    __BH_CONVERT(name##_rz, to, out, from, in, "cvt.rzi." types)                                   \
    __BH_CONVERT(name##_ru, to, out, from, in, "cvt.rpi." types)                                   \
    __BH_CONVERT(name##_rd, to, out, from, in, "cvt.rmi." types)
#define __BH_TO_FLOAT(name, to, out, from, in, types)                                              \
    __BH_CONVERT(name##_rn, to, out, from, in, "cvt.rn." types)                                    \
    __BH_CONVERT(name##_rz, to, out, from, in, "cvt.rz." types)                                    \
    __BH_CONVERT(name##_ru, to, out, from, in, "cvt.rp." types)                                    \
    __BH_CONVERT(name##_rd, to, out, from, in, "cvt.rm." types)

__BH_TO_INTEGER(__float2int, int, "=r", float, "f", "s32.f32")
__BH_TO_INTEGER(__float2uint, unsigned, "=r", float, "f", "u32.f32")
__BH_TO_INTEGER(__float2ll, long long, "=l", float, "f", "s64.f32")
__BH_TO_INTEGER(__float2ull, unsigned long long, "=l", float, "f", "u64.f32")
__BH_TO_INTEGER(__double2int, int, "=r", double, "d", "s32.f64")
__BH_TO_INTEGER(__double2uint, unsigned, "=r", double, "d", "u32.f64")
__BH_TO_INTEGER(__double2ll, long long, "=l", double, "d", "s64.f64")
__BH_TO_INTEGER(__double2ull, unsigned long long, "=l", double, "d", "u64.f64")
__BH_TO_FLOAT(__int2float, float, "=f", int, "r", "f32.s32")
__BH_TO_FLOAT(__uint2float, float, "=f", unsigned, "r", "f32.u32")
__BH_TO_FLOAT(__ll2float, float, "=f", long long, "l", "f32.s64")
__BH_TO_FLOAT(__ull2float, float, "=f", unsigned long long, "l", "f32.u64")
__BH_TO_FLOAT(__ll2double, double, "=d", long long, "l", "f64.s64")
__BH_TO_FLOAT(__ull2double, double, "=d", unsigned long long, "l", "f64.u64")
__BH_TO_FLOAT(__double2float, float, "=f", double, "d", "f32.f64")

#undef __BH_TO_INTEGER
#undef __BH_TO_FLOAT
#undef __BH_CONVERT

__BH_DEVICE double __int2double_rn(int x) {
    return (double)x;
}
__BH_DEVICE double __uint2double_rn(unsigned x) {
    return (double)x;
}

__BH_DEVICE int __float_as_int(float x) {
    return __bh_bits<int>(x);
}
__BH_DEVICE unsigned __float_as_uint(float x) {
    return __bh_bits<unsigned>(x);
}
__BH_DEVICE float __int_as_float(int x) {
    return __bh_bits<float>(x);
}
__BH_DEVICE float __uint_as_float(unsigned x) {
    return __bh_bits<float>(x);
}
__BH_DEVICE long long __double_as_longlong(double x) {
    return __bh_bits<long long>(x);
}
__BH_DEVICE double __longlong_as_double(long long x) {
    return __bh_bits<double>(x);
}
__BH_DEVICE int __double2hiint(double x) {
    return (int)(__bh_bits_of(x) >> 32);
}
__BH_DEVICE int __double2loint(double x) {
    return (int)__bh_bits_of(x);
}
__BH_DEVICE double __hiloint2double(int high, int low) {
    return __bh_double_of((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}

#endif
