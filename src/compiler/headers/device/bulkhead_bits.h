/* SPDX-License-Identifier: Apache-2.0 */
/* Integer intrinsics: bit counts and permutes, high products, min, max and abs. */
#ifndef BULKHEAD_BITS_H
#define BULKHEAD_BITS_H

#include "bulkhead_types.h"
#include "bulkhead_vectors.h"

__BH_DEVICE int __popc(unsigned x) {
    return __builtin_popcount(x);
}
__BH_DEVICE int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
__BH_DEVICE int __clz(int x) {
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
__BH_DEVICE int __clzll(long long x) {
    return x == 0 ? 64 : __builtin_clzll((unsigned long long)x);
}
__BH_DEVICE int __ffs(int x) {
    return x == 0 ? 0 : __builtin_ctz((unsigned)x) + 1;
}
__BH_DEVICE int __ffsll(long long x) {
    return x == 0 ? 0 : __builtin_ctzll((unsigned long long)x) + 1;
}
__BH_DEVICE unsigned __brev(unsigned x) {
    return __builtin_bitreverse32(x);
}
__BH_DEVICE unsigned long long __brevll(unsigned long long x) {
    return __builtin_bitreverse64(x);
}
__BH_DEVICE unsigned __fns(unsigned mask, unsigned base, int offset) {
    int step = offset < 0 ? -1 : 1, left = offset < 0 ? -offset : offset;
    if (offset == 0) {
        return base < 32 && (mask >> base & 1u) ? base : ~0u;
    }
    for (int at = (int)base; at >= 0 && at < 32; at += step) {
        if ((mask >> at & 1u) && --left == 0) {
            return (unsigned)at;
        }
    }
    return ~0u;
}

__BH_DEVICE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    unsigned result;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(selector & 0x7777u));
    return result;
}
__BH_DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    unsigned result;
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(shift));
    return result;
}
__BH_DEVICE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    unsigned result;
    asm("shf.l.clamp.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(shift));
    return result;
}
__BH_DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    unsigned result;
    asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(shift));
    return result;
}
__BH_DEVICE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    unsigned result;
    asm("shf.r.clamp.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(shift));
    return result;
}

__BH_DEVICE int __mulhi(int x, int y) {
    return (int)(((long long)x * y) >> 32);
}
__BH_DEVICE unsigned __umulhi(unsigned x, unsigned y) {
    return (unsigned)(((unsigned long long)x * y) >> 32);
}
__BH_DEVICE long long __mul64hi(long long x, long long y) {
    return (long long)(((__int128)x * y) >> 64);
}
__BH_DEVICE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}
__BH_DEVICE int __mul24(int x, int y) {
    return (int)((unsigned)((int)((unsigned)x << 8) >> 8) *
                 (unsigned)((int)((unsigned)y << 8) >> 8));
}
__BH_DEVICE unsigned __umul24(unsigned x, unsigned y) {
    return (x & 0xffffffu) * (y & 0xffffffu);
}
__BH_DEVICE unsigned __sad(int x, int y, unsigned sum) {
    return sum + (x < y ? (unsigned)y - (unsigned)x : (unsigned)x - (unsigned)y);
}
__BH_DEVICE unsigned __usad(unsigned x, unsigned y, unsigned sum) {
    return sum + (x < y ? y - x : x - y);
}
__BH_DEVICE int __hadd(int x, int y) {
    return (int)(((long long)x + y) >> 1);
}
__BH_DEVICE int __rhadd(int x, int y) {
    return (int)(((long long)x + y + 1) >> 1);
}
__BH_DEVICE unsigned __uhadd(unsigned x, unsigned y) {
    return (unsigned)(((unsigned long long)x + y) >> 1);
}
__BH_DEVICE unsigned __urhadd(unsigned x, unsigned y) {
    return (unsigned)(((unsigned long long)x + y + 1) >> 1);
}

__BH_DEVICE int __dp4a(int x, int y, int sum) {
    int result;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    return result;
}
__BH_DEVICE unsigned __dp4a(unsigned x, unsigned y, unsigned sum) {
    unsigned result;
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    return result;
}
__BH_DEVICE int __dp4a(char4 x, char4 y, int sum) {
    return __dp4a(__bh_bits<int>(x), __bh_bits<int>(y), sum);
}
__BH_DEVICE unsigned __dp4a(uchar4 x, uchar4 y, unsigned sum) {
    return __dp4a(__bh_bits<unsigned>(x), __bh_bits<unsigned>(y), sum);
}
__BH_DEVICE int __dp2a_lo(int x, int y, int sum) {
    int result;
    asm("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    return result;
}
__BH_DEVICE unsigned __dp2a_lo(unsigned x, unsigned y, unsigned sum) {
    unsigned result;
    asm("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    return result;
}
__BH_DEVICE int __dp2a_hi(int x, int y, int sum) {
    int result;
    asm("dp2a.hi.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    return result;
}
__BH_DEVICE unsigned __dp2a_hi(unsigned x, unsigned y, unsigned sum) {
    unsigned result;
    asm("dp2a.hi.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    return result;
}

/* Integers of two types are converted by the usual arithmetic conversions. */
#define __BH_MIN_MAX(type, a, b)                                                                   \
    __BH_BOTH constexpr type min(a x, b y) {                                                       \
        return (type)y < (type)x ? (type)y : (type)x;                                              \
    }                                                                                              \
    __BH_BOTH constexpr type max(a x, b y) {                                                       \
        return (type)x < (type)y ? (type)y : (type)x;                                              \
    }
#define __BH_MIN_MAX_PAIR(s, u)                                                                    \
    __BH_MIN_MAX(s, s, s) __BH_MIN_MAX(u, u, u) __BH_MIN_MAX(u, s, u) __BH_MIN_MAX(u, u, s)
__BH_MIN_MAX_PAIR(int, unsigned int)
__BH_MIN_MAX_PAIR(long, unsigned long)
__BH_MIN_MAX_PAIR(long long, unsigned long long)
#undef __BH_MIN_MAX_PAIR
#undef __BH_MIN_MAX

__BH_DEVICE unsigned umin(unsigned x, unsigned y) {
    return x < y ? x : y;
}
__BH_DEVICE unsigned umax(unsigned x, unsigned y) {
    return x < y ? y : x;
}
__BH_DEVICE long long llmin(long long x, long long y) {
    return x < y ? x : y;
}
__BH_DEVICE long long llmax(long long x, long long y) {
    return x < y ? y : x;
}
__BH_DEVICE unsigned long long ullmin(unsigned long long x, unsigned long long y) {
    return x < y ? x : y;
}
__BH_DEVICE unsigned long long ullmax(unsigned long long x, unsigned long long y) {
    return x < y ? y : x;
}

__BH_DEVICE constexpr int abs(int x) {
    return x < 0 ? (int)(0u - (unsigned)x) : x;
}
__BH_DEVICE constexpr long abs(long x) {
    return x < 0 ? (long)(0ul - (unsigned long)x) : x;
}
__BH_DEVICE constexpr long long abs(long long x) {
    return x < 0 ? (long long)(0ull - (unsigned long long)x) : x;
}
__BH_DEVICE constexpr long labs(long x) {
    return abs(x);
}
__BH_DEVICE constexpr long long llabs(long long x) {
    return abs(x);
}

#endif
