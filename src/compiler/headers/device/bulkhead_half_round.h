/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the conversions of half, bfloat16 and 8-bit numbers: to float rounded to odd (the last
 * bit is set if the float is inexact), so that a second rounding gives what one would have given;
 * and to integers, where numbers that do not fit become the nearest one that does. */
#ifndef BULKHEAD_HALF_ROUND_H
#define BULKHEAD_HALF_ROUND_H

#include "bulkhead_cuda.h"

__BH_BOTH float __bh_odd_float(double value) {
    float cut = __double2float_rz(value);
    bool inexact = (double)cut != value && !__bh_is_nan(value);
    return __bh_float_of(__bh_bits_of(cut) | (inexact ? 1u : 0u));
}
__BH_BOTH float __bh_odd_float(long long value) {
    float cut = __ll2float_rz(value);
    return __bh_float_of(__bh_bits_of(cut) | ((long long)cut != value ? 1u : 0u));
}
__BH_BOTH float __bh_odd_float(unsigned long long value) {
    float cut = __ull2float_rz(value);
    return __bh_float_of(__bh_bits_of(cut) | ((unsigned long long)cut != value ? 1u : 0u));
}
/* Smaller ones are exact in double. */
template <class T> __BH_BOTH float __bh_odd_float(T value) {
    if (sizeof(T) < 8) return __bh_odd_float((double)value);
    return (T)-1 < (T)0 ? __bh_odd_float((long long)value)
                        : __bh_odd_float((unsigned long long)value);
}

/* Cut, and no further than the type goes; not a number becomes zero. */
template <class T> __BH_BOTH T __bh_to_integer(float value) {
    constexpr bool negative = (T)-1 < (T)0;
    constexpr T high =
        negative ? (T)(((T)1 << (sizeof(T) * 8 - 2)) - 1 + ((T)1 << (sizeof(T) * 8 - 2))) : (T)-1;
    constexpr T low = negative ? (T)(-high - 1) : (T)0;
    if (__bh_is_nan(value)) return (T)0;
    if (value >= (float)high) return high;
    if (value <= (float)low) return low;
    return (T)value;
}
/* Of half and bfloat16: as the instruction does, where not a number is -2^63 of 64 bits. */
template <class T> __BH_BOTH T __bh_half_to_integer(float value) {
    if (sizeof(T) < 8) return __bh_to_integer<T>(value);
    return (T)-1 < (T)0 ? (T)__float2ll_rz(value) : (T)__float2ull_rz(value);
}

#endif
