/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD in a word: two numbers of 16 bits, or four of 8. */
#ifndef BULKHEAD_SIMD_H
#define BULKHEAD_SIMD_H

#include "bulkhead_types.h"

/* Part i of a word, with the sign or without as the type says. */
template <class Lane> __BH_BOTH constexpr int __bh_simd_part(unsigned word, unsigned i) {
    return (int)(Lane)(word >> (i * 8 * sizeof(Lane)));
}
/* f of each pair of parts, its low bits put together. */
template <class Lane, class F> __BH_DEVICE unsigned __bh_simd(unsigned a, unsigned b, F f) {
    unsigned result = 0, mask = (1u << (8 * sizeof(Lane))) - 1u;
#pragma unroll
    for (unsigned i = 0; i < 4 / sizeof(Lane); i++) {
        unsigned part = (unsigned)f(__bh_simd_part<Lane>(a, i), __bh_simd_part<Lane>(b, i));
        result |= (part & mask) << (i * 8 * sizeof(Lane));
    }
    return result;
}
/* Their sum as whole numbers. */
template <class Lane, class F> __BH_DEVICE unsigned __bh_simd_sum(unsigned a, unsigned b, F f) {
    unsigned result = 0;
#pragma unroll
    for (unsigned i = 0; i < 4 / sizeof(Lane); i++) {
        result += (unsigned)f(__bh_simd_part<Lane>(a, i), __bh_simd_part<Lane>(b, i));
    }
    return result;
}
/* The nearest number that the type has. */
template <class Lane> __BH_BOTH constexpr int __bh_saturated(int x) {
    constexpr int bits = 8 * (int)sizeof(Lane), low = (Lane)-1 < 0 ? -(1 << (bits - 1)) : 0;
    constexpr int high = low + (1 << bits) - 1;
    return x < low ? low : x > high ? high : x;
}

#define __BH_SIMD(name, lane, ...)                                                                 \
    __BH_DEVICE unsigned name(unsigned a, unsigned b) {                                            \
        return __bh_simd<lane>(a, b, [](int x, int y) { return __VA_ARGS__; });                    \
    }
#define __BH_SIMD_SUM(name, lane, ...)                                                             \
    __BH_DEVICE unsigned name(unsigned a, unsigned b) {                                            \
        return __bh_simd_sum<lane>(a, b, [](int x, int y) { return __VA_ARGS__; });                \
    }
#define __BH_SIMD_ONE(name, lane, ...)                                                             \
    __BH_DEVICE unsigned name(unsigned a) {                                                        \
        return __bh_simd<lane>(a, a, [](int x, int) { return __VA_ARGS__; });                      \
    }
#define __BH_SIMD_COMPARE(name, lane, size, operation)                                             \
    __BH_SIMD(__vcmp##name##size, lane, x operation y ? -1 : 0)                                    \
    __BH_SIMD(__vset##name##size, lane, x operation y ? 1 : 0)
#define __BH_SIMD_SIZE(size, s, u)                                                                 \
    __BH_SIMD(__vadd##size, u, x + y)                                                              \
    __BH_SIMD(__vaddss##size, s, __bh_saturated<s>(x + y))                                         \
    __BH_SIMD(__vaddus##size, u, __bh_saturated<u>(x + y))                                         \
    __BH_SIMD(__vsub##size, u, x - y)                                                              \
    __BH_SIMD(__vsubss##size, s, __bh_saturated<s>(x - y))                                         \
    __BH_SIMD(__vsubus##size, u, __bh_saturated<u>(x - y))                                         \
    __BH_SIMD(__vavgs##size, s, (x + y + (x + y >= 0 ? 1 : 0)) >> 1)                               \
    __BH_SIMD(__vavgu##size, u, (x + y + 1) >> 1)                                                  \
    __BH_SIMD(__vhaddu##size, u, (x + y) >> 1)                                                     \
    __BH_SIMD(__vabsdiffs##size, s, x > y ? x - y : y - x)                                         \
    __BH_SIMD(__vabsdiffu##size, u, x > y ? x - y : y - x)                                         \
    __BH_SIMD(__vmaxs##size, s, x > y ? x : y)                                                     \
    __BH_SIMD(__vmaxu##size, u, x > y ? x : y)                                                     \
    __BH_SIMD(__vmins##size, s, x < y ? x : y)                                                     \
    __BH_SIMD(__vminu##size, u, x < y ? x : y)                                                     \
    __BH_SIMD_SUM(__vsads##size, s, x > y ? x - y : y - x)                                         \
    __BH_SIMD_SUM(__vsadu##size, u, x > y ? x - y : y - x)                                         \
    __BH_SIMD_ONE(__vabs##size, s, x < 0 ? -x : x)                                                 \
    __BH_SIMD_ONE(__vabsss##size, s, __bh_saturated<s>(x < 0 ? -x : x))                            \
    __BH_SIMD_ONE(__vneg##size, s, -x)                                                             \
    __BH_SIMD_ONE(__vnegss##size, s, __bh_saturated<s>(-x))                                        \
    __BH_SIMD_COMPARE(eq, u, size, ==)                                                             \
    __BH_SIMD_COMPARE(ne, u, size, !=)                                                             \
    __BH_SIMD_COMPARE(ges, s, size, >=)                                                            \
    __BH_SIMD_COMPARE(geu, u, size, >=)                                                            \
    __BH_SIMD_COMPARE(gts, s, size, >)                                                             \
    __BH_SIMD_COMPARE(gtu, u, size, >)                                                             \
    __BH_SIMD_COMPARE(les, s, size, <=)                                                            \
    __BH_SIMD_COMPARE(leu, u, size, <=)                                                            \
    __BH_SIMD_COMPARE(lts, s, size, <)                                                             \
    __BH_SIMD_COMPARE(ltu, u, size, <)
__BH_SIMD_SIZE(2, short, unsigned short)
__BH_SIMD_SIZE(4, signed char, unsigned char)
#undef __BH_SIMD
#undef __BH_SIMD_SUM
#undef __BH_SIMD_ONE
#undef __BH_SIMD_COMPARE
#undef __BH_SIMD_SIZE

#endif
