/* SPDX-License-Identifier: Apache-2.0 */
/* The common parts of half and bfloat16, included once each by cuda_fp16.h and cuda_bf16.h. They
 * define: __BH_H and __BH_H2, the types; __BH_H_PTX, the name of the type in PTX; __BH_H_NAME and
 * __BH_H_MAKE, for the names of functions that take and return the type; __BH_H_ATOMIC, if there is
 * an atomic addition; __BH_H_RAW, for arithmetic on raw 16-bit and packed 32-bit values. */

/* All but atomics can be named in host code too, as with NVIDIA's headers. Comparisons are exact in
 * float. */
#define __BH_H_COMPARE(name, operation)                                                            \
    __BH_BOTH bool __h##name(__BH_H a, __BH_H b) {                                                 \
        return (float)a operation(float) b;                                                        \
    }                                                                                              \
    __BH_BOTH bool __h##name##u(__BH_H a, __BH_H b) {                                              \
        return __hisnan(a) || __hisnan(b) || (float)a operation(float) b;                          \
    }                                                                                              \
    __BH_BOTH __BH_H2 __h##name##2(__BH_H2 a, __BH_H2 b) {                                         \
        return __BH_H2(__BH_H(__h##name(a.x, b.x) ? 1.0f : 0.0f),                                  \
                       __BH_H(__h##name(a.y, b.y) ? 1.0f : 0.0f));                                 \
    }                                                                                              \
    __BH_BOTH bool __hb##name##2(__BH_H2 a, __BH_H2 b) {                                           \
        return __h##name(a.x, b.x) && __h##name(a.y, b.y);                                         \
    }                                                                                              \
    __BH_BOTH __BH_H2 __h##name##u2(__BH_H2 a, __BH_H2 b) {                                        \
        return __BH_H2(__BH_H(__h##name##u(a.x, b.x) ? 1.0f : 0.0f),                               \
                       __BH_H(__h##name##u(a.y, b.y) ? 1.0f : 0.0f));                              \
    }                                                                                              \
    __BH_BOTH bool __hb##name##u2(__BH_H2 a, __BH_H2 b) {                                          \
        return __h##name##u(a.x, b.x) && __h##name##u(a.y, b.y);                                   \
    }                                                                                              \
    __BH_BOTH unsigned __h##name##2_mask(__BH_H2 a, __BH_H2 b) {                                   \
        return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);    \
    }                                                                                              \
    __BH_BOTH unsigned __h##name##u2_mask(__BH_H2 a, __BH_H2 b) {                                  \
        return (__h##name##u(a.x, b.x) ? 0xffffu : 0u) |                                           \
               (__h##name##u(a.y, b.y) ? 0xffff0000u : 0u);                                        \
    }                                                                                              \
    __BH_BOTH bool operator operation(__BH_H a, __BH_H b) {                                        \
        return __h##name(a, b);                                                                    \
    }                                                                                              \
    __BH_BOTH bool operator operation(__BH_H2 a, __BH_H2 b) {                                      \
        return __hb##name##2(a, b);                                                                \
    }
__BH_BOTH bool __hisnan(__BH_H a) {
    return __bh_is_nan((float)a);
}
__BH_BOTH int __hisinf(__BH_H a) {
    return !__bh_is_infinite((float)a) ? 0 : __bh_negative((float)a) ? -1 : 1;
}
__BH_H_COMPARE(eq, ==)
__BH_H_COMPARE(ne, !=)
__BH_H_COMPARE(lt, <)
__BH_H_COMPARE(le, <=)
__BH_H_COMPARE(gt, >)
__BH_H_COMPARE(ge, >=)
#undef __BH_H_COMPARE

#define __BH_H_BINARY(name, operation, raw, raw2)                                                  \
    __BH_BOTH __BH_H __h##name(__BH_H a, __BH_H b) {                                               \
        return __BH_H::from_bits(raw(a.__x, b.__x));                                               \
    }                                                                                              \
    __BH_BOTH __BH_H __h##name##_rn(__BH_H a, __BH_H b) {                                          \
        return __BH_H::from_bits(raw(a.__x, b.__x));                                               \
    }                                                                                              \
    __BH_BOTH __BH_H2 __h##name##2(__BH_H2 a, __BH_H2 b) {                                         \
        return __bh_bits<__BH_H2>(raw2(__bh_bits<unsigned>(a), __bh_bits<unsigned>(b)));           \
    }                                                                                              \
    __BH_BOTH __BH_H2 __h##name##2_rn(__BH_H2 a, __BH_H2 b) {                                      \
        return __h##name##2(a, b);                                                                 \
    }                                                                                              \
    __BH_BOTH __BH_H operator operation(__BH_H a, __BH_H b) {                                      \
        return __h##name(a, b);                                                                    \
    }                                                                                              \
    __BH_BOTH __BH_H2 operator operation(__BH_H2 a, __BH_H2 b) {                                   \
        return __h##name##2(a, b);                                                                 \
    }                                                                                              \
    __BH_BOTH __BH_H &operator operation##=(__BH_H &a, __BH_H b) {                                 \
        return a = __h##name(a, b);                                                                \
    }                                                                                              \
    __BH_BOTH __BH_H2 &operator operation##=(__BH_H2 &a, __BH_H2 b) {                              \
        return a = __h##name##2(a, b);                                                             \
    }
__BH_H_BINARY(add, +, __BH_H_RAW(add), __BH_H_RAW(add2))
__BH_H_BINARY(sub, -, __BH_H_RAW(sub), __BH_H_RAW(sub2))
__BH_H_BINARY(mul, *, __BH_H_RAW(mul), __BH_H_RAW(mul2))
#undef __BH_H_BINARY

/* A quotient in float rounds correctly: float has at least twice the bits and two more. */
__BH_BOTH __BH_H __hdiv(__BH_H a, __BH_H b) {
    return __BH_H(__fdiv_rn((float)a, (float)b));
}
__BH_BOTH __BH_H2 __h2div(__BH_H2 a, __BH_H2 b) {
    return __BH_H2(__hdiv(a.x, b.x), __hdiv(a.y, b.y));
}
__BH_BOTH __BH_H operator/(__BH_H a, __BH_H b) {
    return __hdiv(a, b);
}
__BH_BOTH __BH_H2 operator/(__BH_H2 a, __BH_H2 b) {
    return __h2div(a, b);
}
__BH_BOTH __BH_H &operator/=(__BH_H &a, __BH_H b) {
    return a = __hdiv(a, b);
}
__BH_BOTH __BH_H __hfma(__BH_H a, __BH_H b, __BH_H c) {
    return __BH_H::from_bits(__BH_H_RAW(fma)(a.__x, b.__x, c.__x));
}
__BH_BOTH __BH_H2 __hfma2(__BH_H2 a, __BH_H2 b, __BH_H2 c) {
    return __bh_bits<__BH_H2>(
        __BH_H_RAW(fma2)(__bh_bits<unsigned>(a), __bh_bits<unsigned>(b), __bh_bits<unsigned>(c)));
}
__BH_BOTH __BH_H __hneg(__BH_H a) {
    return __BH_H::from_bits((unsigned short)(a.__x ^ 0x8000u));
}
__BH_BOTH __BH_H __habs(__BH_H a) {
    return __BH_H::from_bits((unsigned short)(a.__x & 0x7fffu));
}
__BH_BOTH __BH_H2 __hneg2(__BH_H2 a) {
    return __BH_H2(__hneg(a.x), __hneg(a.y));
}
__BH_BOTH __BH_H2 __habs2(__BH_H2 a) {
    return __BH_H2(__habs(a.x), __habs(a.y));
}
__BH_BOTH __BH_H operator-(__BH_H a) {
    return __hneg(a);
}
__BH_BOTH __BH_H operator+(__BH_H a) {
    return a;
}
__BH_BOTH __BH_H2 operator-(__BH_H2 a) {
    return __hneg2(a);
}
__BH_BOTH __BH_H &operator++(__BH_H &a) {
    return a = __hadd(a, __BH_H(1.0f));
}
__BH_BOTH __BH_H &operator--(__BH_H &a) {
    return a = __hsub(a, __BH_H(1.0f));
}
__BH_BOTH __BH_H operator++(__BH_H &a, int) {
    __BH_H before = a;
    ++a;
    return before;
}
__BH_BOTH __BH_H operator--(__BH_H &a, int) {
    __BH_H before = a;
    --a;
    return before;
}
__BH_BOTH __BH_H2 operator+(__BH_H2 a) {
    return a;
}
__BH_BOTH __BH_H2 &operator/=(__BH_H2 &a, __BH_H2 b) {
    return a = __h2div(a, b);
}
__BH_BOTH __BH_H2 &operator++(__BH_H2 &a) {
    return a = __hadd2(a, __BH_H2(__BH_H(1.0f), __BH_H(1.0f)));
}
__BH_BOTH __BH_H2 &operator--(__BH_H2 &a) {
    return a = __hsub2(a, __BH_H2(__BH_H(1.0f), __BH_H(1.0f)));
}

__BH_BOTH __BH_H __bh_h_saturate(__BH_H a) {
    return __BH_H(__saturatef((float)a));
}
__BH_BOTH __BH_H __hadd_sat(__BH_H a, __BH_H b) {
    return __bh_h_saturate(__hadd(a, b));
}
__BH_BOTH __BH_H __hsub_sat(__BH_H a, __BH_H b) {
    return __bh_h_saturate(__hsub(a, b));
}
__BH_BOTH __BH_H __hmul_sat(__BH_H a, __BH_H b) {
    return __bh_h_saturate(__hmul(a, b));
}
__BH_BOTH __BH_H __hfma_sat(__BH_H a, __BH_H b, __BH_H c) {
    return __bh_h_saturate(__hfma(a, b, c));
}
__BH_BOTH __BH_H __hfma_relu(__BH_H a, __BH_H b, __BH_H c) {
    __BH_H r = __hfma(a, b, c);
    return __hisnan(r) ? r : (float)r > 0.0f ? r : __BH_H(0.0f);
}

__BH_BOTH __BH_H __hmin(__BH_H a, __BH_H b) {
    return __BH_H(__builtin_fminf((float)a, (float)b));
}
__BH_BOTH __BH_H __hmax(__BH_H a, __BH_H b) {
    return __BH_H(__builtin_fmaxf((float)a, (float)b));
}
__BH_BOTH __BH_H __hmin_nan(__BH_H a, __BH_H b) {
    return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b);
}
__BH_BOTH __BH_H __hmax_nan(__BH_H a, __BH_H b) {
    return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b);
}
__BH_BOTH __BH_H2 __hmin2(__BH_H2 a, __BH_H2 b) {
    return __BH_H2(__hmin(a.x, b.x), __hmin(a.y, b.y));
}
__BH_BOTH __BH_H2 __hmax2(__BH_H2 a, __BH_H2 b) {
    return __BH_H2(__hmax(a.x, b.x), __hmax(a.y, b.y));
}
__BH_BOTH __BH_H2 __hmin2_nan(__BH_H2 a, __BH_H2 b) {
    return __BH_H2(__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y));
}
__BH_BOTH __BH_H2 __hmax2_nan(__BH_H2 a, __BH_H2 b) {
    return __BH_H2(__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y));
}
__BH_BOTH __BH_H2 __hadd2_sat(__BH_H2 a, __BH_H2 b) {
    return __BH_H2(__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y));
}
__BH_BOTH __BH_H2 __hsub2_sat(__BH_H2 a, __BH_H2 b) {
    return __BH_H2(__hsub_sat(a.x, b.x), __hsub_sat(a.y, b.y));
}
__BH_BOTH __BH_H2 __hmul2_sat(__BH_H2 a, __BH_H2 b) {
    return __BH_H2(__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y));
}
__BH_BOTH __BH_H2 __hfma2_sat(__BH_H2 a, __BH_H2 b, __BH_H2 c) {
    return __BH_H2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));
}
__BH_BOTH __BH_H2 __hfma2_relu(__BH_H2 a, __BH_H2 b, __BH_H2 c) {
    return __BH_H2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));
}
/* a * b + c of complex numbers, x + i y */
__BH_BOTH __BH_H2 __hcmadd(__BH_H2 a, __BH_H2 b, __BH_H2 c) {
    return __BH_H2(__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)),
                   __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)));
}
__BH_BOTH __BH_H2 __hisnan2(__BH_H2 a) {
    return __BH_H2(__BH_H(__hisnan(a.x) ? 1.0f : 0.0f), __BH_H(__hisnan(a.y) ? 1.0f : 0.0f));
}

/* Math functions: computed in float, then rounded. */
#define __BH_H_MATH(name, function)                                                                \
    __BH_BOTH __BH_H h##name(__BH_H a) {                                                           \
        return __BH_H(function((float)a));                                                         \
    }                                                                                              \
    __BH_BOTH __BH_H2 h2##name(__BH_H2 a) {                                                        \
        return __BH_H2(h##name(a.x), h##name(a.y));                                                \
    }
__BH_H_MATH(sqrt, sqrtf)
__BH_H_MATH(rsqrt, rsqrtf)
__BH_H_MATH(rcp, __frcp_rn)
__BH_H_MATH(exp, expf)
__BH_H_MATH(exp2, exp2f)
__BH_H_MATH(exp10, exp10f)
__BH_H_MATH(log, logf)
__BH_H_MATH(log2, log2f)
__BH_H_MATH(log10, log10f)
__BH_H_MATH(sin, sinf)
__BH_H_MATH(cos, cosf)
__BH_H_MATH(tanh, tanhf)
__BH_H_MATH(floor, floorf)
__BH_H_MATH(ceil, ceilf)
__BH_H_MATH(trunc, truncf)
__BH_H_MATH(rint, rintf)
#undef __BH_H_MATH

#define __BH_H_SHUFFLE(name, lane_type)                                                            \
    __BH_BOTH __BH_H name(unsigned mask, __BH_H value, lane_type lane, int width = 32) {           \
        return __BH_H::from_bits((unsigned short)name(mask, (unsigned)value.__x, lane, width));    \
    }                                                                                              \
    __BH_BOTH __BH_H2 name(unsigned mask, __BH_H2 value, lane_type lane, int width = 32) {         \
        return __bh_bits<__BH_H2>(name(mask, __bh_bits<unsigned>(value), lane, width));            \
    }
__BH_H_SHUFFLE(__shfl_sync, int)
__BH_H_SHUFFLE(__shfl_up_sync, unsigned)
__BH_H_SHUFFLE(__shfl_down_sync, unsigned)
__BH_H_SHUFFLE(__shfl_xor_sync, int)
#undef __BH_H_SHUFFLE

#define __BH_H_LOAD(name)                                                                          \
    __BH_BOTH __BH_H name(const __BH_H *at) {                                                      \
        return __BH_H::from_bits(name((const unsigned short *)(const void *)at));                  \
    }                                                                                              \
    __BH_BOTH __BH_H2 name(const __BH_H2 *at) {                                                    \
        return __bh_bits<__BH_H2>(name((const unsigned *)(const void *)at));                       \
    }
__BH_H_LOAD(__ldg)
__BH_H_LOAD(__ldcg)
__BH_H_LOAD(__ldca)
__BH_H_LOAD(__ldcs)
#undef __BH_H_LOAD

/* Integers, with a rounding mode. NaN gives zero, as __float2int does. */
#define __BH_H_INTEGER(mode)                                                                       \
    __BH_BOTH int __BH_H_NAME(2int_##mode)(__BH_H a) {                                             \
        return __float2int_##mode((float)a);                                                       \
    }                                                                                              \
    __BH_BOTH unsigned __BH_H_NAME(2uint_##mode)(__BH_H a) {                                       \
        return __float2uint_##mode((float)a);                                                      \
    }                                                                                              \
    __BH_BOTH long long __BH_H_NAME(2ll_##mode)(__BH_H a) {                                        \
        return __float2ll_##mode((float)a);                                                        \
    }                                                                                              \
    __BH_BOTH unsigned long long __BH_H_NAME(2ull_##mode)(__BH_H a) {                              \
        return __float2ull_##mode((float)a);                                                       \
    }                                                                                              \
    __BH_BOTH short __BH_H_NAME(2short_##mode)(__BH_H a) {                                         \
        return __bh_to_integer<short>((float)__float2int_##mode((float)a));                        \
    }                                                                                              \
    __BH_BOTH unsigned short __BH_H_NAME(2ushort_##mode)(__BH_H a) {                               \
        return __bh_to_integer<unsigned short>((float)__float2int_##mode((float)a));               \
    }
__BH_H_INTEGER(rn)
__BH_H_INTEGER(rz)
__BH_H_INTEGER(ru)
__BH_H_INTEGER(rd)
#undef __BH_H_INTEGER
__BH_BOTH signed char __BH_H_NAME(2char_rz)(__BH_H a) {
    return __bh_to_integer<signed char>((float)a);
}
__BH_BOTH unsigned char __BH_H_NAME(2uchar_rz)(__BH_H a) {
    return __bh_to_integer<unsigned char>((float)a);
}
__BH_BOTH unsigned short __BH_H_NAME(_as_ushort)(__BH_H a) {
    return a.__x;
}
__BH_BOTH short __BH_H_NAME(_as_short)(__BH_H a) {
    return (short)a.__x;
}

/* Conversions, packing and unpacking. */
__BH_BOTH __BH_H __BH_H_MAKE(__float2, )(float a) {
    return __BH_H(a);
}
__BH_BOTH __BH_H __BH_H_MAKE(__float2, _rn)(float a) {
    return __BH_H(a);
}
__BH_BOTH __BH_H __BH_H_MAKE(__float2, _rz)(float a) {
    return __BH_H::from_bits(__BH_H_MAKE(__bh_to_, _rz)(a));
}
__BH_BOTH __BH_H __BH_H_MAKE(__double2, )(double a) {
    return __BH_H(a);
}
__BH_BOTH float __BH_H_NAME(2float)(__BH_H a) {
    return (float)a;
}
__BH_BOTH __BH_H __BH_H_MAKE(__int2, _rn)(int a) {
    return __BH_H(a);
}
__BH_BOTH __BH_H __BH_H_MAKE(__uint2, _rn)(unsigned a) {
    return __BH_H(a);
}
__BH_BOTH __BH_H __BH_H_MAKE(__ll2, _rn)(long long a) {
    return __BH_H(a);
}
__BH_BOTH __BH_H __BH_H_MAKE(__ull2, _rn)(unsigned long long a) {
    return __BH_H(a);
}
__BH_BOTH __BH_H __BH_H_MAKE(__short2, _rn)(short a) {
    return __BH_H((float)a);
}
__BH_BOTH __BH_H __BH_H_MAKE(__ushort2, _rn)(unsigned short a) {
    return __BH_H((float)a);
}

/* The next value up or down; zero has both signs. */
__BH_BOTH __BH_H __bh_h_step(__BH_H a, bool up) {
    if ((a.__x & 0x7fffu) == 0) {
        return __BH_H::from_bits(up ? 0x0001u : 0x8001u);
    }
    bool away = ((a.__x & 0x8000u) == 0) == up;
    return __BH_H::from_bits((unsigned short)(away ? a.__x + 1u : a.__x - 1u));
}
__BH_BOTH __BH_H __BH_H_MAKE(__float2, _ru)(float a) {
    __BH_H r(a);
    return (float)r >= a || __hisnan(r) ? r : __bh_h_step(r, true);
}
__BH_BOTH __BH_H __BH_H_MAKE(__float2, _rd)(float a) {
    __BH_H r(a);
    return (float)r <= a || __hisnan(r) ? r : __bh_h_step(r, false);
}
/* Rounding twice in one direction is rounding once. */
#define __BH_H_FROM(mode)                                                                          \
    __BH_BOTH __BH_H __BH_H_MAKE(__int2, _##mode)(int a) {                                         \
        return __BH_H_MAKE(__float2, _##mode)(__int2float_##mode(a));                              \
    }                                                                                              \
    __BH_BOTH __BH_H __BH_H_MAKE(__uint2, _##mode)(unsigned a) {                                   \
        return __BH_H_MAKE(__float2, _##mode)(__uint2float_##mode(a));                             \
    }                                                                                              \
    __BH_BOTH __BH_H __BH_H_MAKE(__ll2, _##mode)(long long a) {                                    \
        return __BH_H_MAKE(__float2, _##mode)(__ll2float_##mode(a));                               \
    }                                                                                              \
    __BH_BOTH __BH_H __BH_H_MAKE(__ull2, _##mode)(unsigned long long a) {                          \
        return __BH_H_MAKE(__float2, _##mode)(__ull2float_##mode(a));                              \
    }                                                                                              \
    __BH_BOTH __BH_H __BH_H_MAKE(__short2, _##mode)(short a) {                                     \
        return __BH_H_MAKE(__float2, _##mode)((float)a);                                           \
    }                                                                                              \
    __BH_BOTH __BH_H __BH_H_MAKE(__ushort2, _##mode)(unsigned short a) {                           \
        return __BH_H_MAKE(__float2, _##mode)((float)a);                                           \
    }
__BH_H_FROM(rz)
__BH_H_FROM(ru)
__BH_H_FROM(rd)
#undef __BH_H_FROM
__BH_BOTH __BH_H __BH_H_MAKE(__ushort_as_, )(unsigned short a) {
    return __BH_H::from_bits(a);
}
__BH_BOTH __BH_H __BH_H_MAKE(__short_as_, )(short a) {
    return __BH_H::from_bits((unsigned short)a);
}
__BH_BOTH __BH_H2 __BH_H_SPREAD(__BH_H a) {
    return __BH_H2(a, a);
}
__BH_BOTH __BH_H2 __BH_H_MAKE(__float2, 2_rn)(float a) {
    return __BH_H2(__BH_H(a), __BH_H(a));
}
__BH_BOTH __BH_H2 __BH_H_MAKE(__floats2, 2_rn)(float a, float b) {
    return __BH_H2(__BH_H(a), __BH_H(b));
}
__BH_BOTH __BH_H2 __BH_H_MAKE(__float22, 2_rn)(float2 a) {
    return __BH_H2(__BH_H(a.x), __BH_H(a.y));
}
__BH_BOTH float2 __BH_H_NAME(22float2)(__BH_H2 a) {
    return float2{(float)a.x, (float)a.y};
}
__BH_BOTH __BH_H2 __BH_H_MAKE(make_, 2)(__BH_H a, __BH_H b) {
    return __BH_H2(a, b);
}
__BH_BOTH __BH_H2 __BH_H_MAKE(__halves2, 2)(__BH_H a, __BH_H b) {
    return __BH_H2(a, b);
}
__BH_BOTH __BH_H __BH_H_MAKE(__low2, )(__BH_H2 a) {
    return a.x;
}
__BH_BOTH __BH_H __BH_H_MAKE(__high2, )(__BH_H2 a) {
    return a.y;
}
__BH_BOTH float __low2float(__BH_H2 a) {
    return (float)a.x;
}
__BH_BOTH float __high2float(__BH_H2 a) {
    return (float)a.y;
}
__BH_BOTH __BH_H2 __BH_H_MAKE(__low2, 2)(__BH_H2 a) {
    return __BH_H2(a.x, a.x);
}
__BH_BOTH __BH_H2 __BH_H_MAKE(__high2, 2)(__BH_H2 a) {
    return __BH_H2(a.y, a.y);
}
__BH_BOTH __BH_H2 __BH_H_MAKE(__lows2, 2)(__BH_H2 a, __BH_H2 b) {
    return __BH_H2(a.x, b.x);
}
__BH_BOTH __BH_H2 __BH_H_MAKE(__highs2, 2)(__BH_H2 a, __BH_H2 b) {
    return __BH_H2(a.y, b.y);
}
__BH_BOTH __BH_H2 __lowhigh2highlow(__BH_H2 a) {
    return __BH_H2(a.y, a.x);
}

#if __BH_H_ATOMIC
__BH_DEVICE __BH_H2 atomicAdd(__BH_H2 *at, __BH_H2 value) {
    unsigned result;
    asm volatile("atom.add.noftz." __BH_H_PTX "x2 %0, [%1], %2;"
                 : "=r"(result)
                 : "l"(at), "r"(__bh_bits<unsigned>(value))
                 : "memory");
    return __bh_bits<__BH_H2>(result);
}
__BH_DEVICE __BH_H atomicAdd(__BH_H *at, __BH_H value) {
    unsigned short result;
    asm volatile("atom.add.noftz." __BH_H_PTX " %0, [%1], %2;"
                 : "=h"(result)
                 : "l"(at), "h"(value.__x)
                 : "memory");
    return __BH_H::from_bits(result);
}
#else
/* Without an instruction for it: again until no other thread comes between. */
__BH_DEVICE __BH_H2 atomicAdd(__BH_H2 *at, __BH_H2 value) {
    unsigned seen = *(volatile unsigned *)at, old;
    do {
        old = seen;
        __BH_H2 sum = __hadd2(__bh_bits<__BH_H2>(old), value);
        seen = atomicCAS((unsigned *)at, old, __bh_bits<unsigned>(sum));
    } while (seen != old);
    return __bh_bits<__BH_H2>(old);
}
__BH_DEVICE __BH_H atomicAdd(__BH_H *at, __BH_H value) {
    unsigned short seen = *(volatile unsigned short *)at, old;
    do {
        old = seen;
        seen = atomicCAS((unsigned short *)at, old, __hadd(__BH_H::from_bits(old), value).__x);
    } while (seen != old);
    return __BH_H::from_bits(old);
}
#endif
