/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of 8 bits: e4m3 without infinities, up to 448, and e5m2, up to 57344. Conversions to them
 * round once, to nearest even; those of the classes give the largest number for what is too large.
 */
#ifndef BULKHEAD_CUDA_FP8_H
#define BULKHEAD_CUDA_FP8_H

#include "bulkhead_cuda.h"
#include "cuda_fp16.h"
#if __CUDA_ARCH__ >= 800
#include "cuda_bf16.h"
#endif

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;

__BH_BOTH __nv_fp8_storage_t __nv_cvt_double_to_fp8(double value, __nv_saturation_t saturate,
                                                    __nv_fp8_interpretation_t kind) {
    const int fraction = kind == __NV_E4M3 ? 3 : 2, lowest = kind == __NV_E4M3 ? -6 : -14;
    const unsigned largest = kind == __NV_E4M3 ? 0x7eu : 0x7bu;
    unsigned long long bits = __bh_bits_of(value), size = bits & ~(1ull << 63);
    unsigned sign = (unsigned)(bits >> 63) << 7, code = 0;
    /* not a number: quiet, with its sign and as much of it as e5m2 has room for */
    if (size > 0x7ffull << 52)
        return (__nv_fp8_storage_t)(sign | 0x7eu | (kind == __NV_E4M3 ? 1u : size >> 50 & 1u));
    int exponent = (int)(size >> 52) - 1023;
    /* what is below the last bit that stays; more of it for denormal numbers */
    int normal = exponent >= lowest ? 1 : 0;
    int dropped = 52 - fraction + (normal ? 0 : lowest - exponent);
    if (size == 0x7ffull << 52) {
        code = 0x80;
    } else if (dropped <= 53) {
        unsigned long long all = (size & ((1ull << 52) - 1)) | 1ull << 52;
        unsigned long long rest = all & ((1ull << dropped) - 1), half = 1ull << (dropped - 1);
        unsigned kept = (unsigned)(all >> dropped);
        kept += rest > half || (rest == half && (kept & 1u)) ? 1u : 0u;
        code =
            exponent > 15 ? 0x80 : (normal ? (unsigned)(exponent - lowest) << fraction : 0u) + kept;
    }
    if (code > largest)
        code = saturate == __NV_SATFINITE ? largest : kind == __NV_E4M3 ? 0x7fu : 0x7cu;
    return (__nv_fp8_storage_t)(sign | code);
}
/* The first number is in the low byte. */
__BH_BOTH __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 value, __nv_saturation_t saturate,
                                                         __nv_fp8_interpretation_t kind) {
    unsigned low = __nv_cvt_double_to_fp8(value.x, saturate, kind);
    return (__nv_fp8x2_storage_t)(low | __nv_cvt_double_to_fp8(value.y, saturate, kind) << 8);
}

/* The instructions of sm_90 always saturate. */
#if __CUDA_ARCH__ >= 900
__BH_DEVICE unsigned short __bh_float_to_fp8x2(float low, float high,
                                               __nv_fp8_interpretation_t kind) {
    unsigned short result;
    if (kind == __NV_E4M3) {
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(result) : "f"(high), "f"(low));
    } else {
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(result) : "f"(high), "f"(low));
    }
    return result;
}
#endif
__BH_BOTH __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t saturate,
                                                   __nv_fp8_interpretation_t kind) {
#if __CUDA_ARCH__ >= 900
    if (saturate == __NV_SATFINITE)
        return (__nv_fp8_storage_t)__bh_float_to_fp8x2(value, 0.0f, kind);
#endif
    /* what is not a number loses its sign, other than from double */
    return value != value ? (__nv_fp8_storage_t)0x7f
                          : __nv_cvt_double_to_fp8((double)value, saturate, kind);
}
__BH_BOTH __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 value, __nv_saturation_t saturate,
                                                        __nv_fp8_interpretation_t kind) {
#if __CUDA_ARCH__ >= 900
    if (saturate == __NV_SATFINITE) return __bh_float_to_fp8x2(value.x, value.y, kind);
#endif
    unsigned low = __nv_cvt_float_to_fp8(value.x, saturate, kind);
    return (__nv_fp8x2_storage_t)(low | __nv_cvt_float_to_fp8(value.y, saturate, kind) << 8);
}
__BH_DEVICE __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw value, __nv_saturation_t saturate,
                                                       __nv_fp8_interpretation_t kind) {
    return __nv_cvt_float_to_fp8((float)__half(value), saturate, kind);
}
__BH_DEVICE __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw value,
                                                            __nv_saturation_t saturate,
                                                            __nv_fp8_interpretation_t kind) {
    float2 both = {(float)__half(__half_raw{value.x}), (float)__half(__half_raw{value.y})};
    return __nv_cvt_float2_to_fp8x2(both, saturate, kind);
}
#if __CUDA_ARCH__ >= 800
__BH_DEVICE __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw value,
                                                           __nv_saturation_t saturate,
                                                           __nv_fp8_interpretation_t kind) {
    return __nv_cvt_float_to_fp8((float)__nv_bfloat16(value), saturate, kind);
}
__BH_DEVICE __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw value,
                                                                __nv_saturation_t saturate,
                                                                __nv_fp8_interpretation_t kind) {
    float2 both = {(float)__nv_bfloat16(__nv_bfloat16_raw{value.x}),
                   (float)__nv_bfloat16(__nv_bfloat16_raw{value.y})};
    return __nv_cvt_float2_to_fp8x2(both, saturate, kind);
}
#endif

/* Every number is one of half too. */
__BH_BOTH __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t value,
                                             __nv_fp8_interpretation_t kind) {
    unsigned size = value & 0x7fu, sign = (unsigned)(value & 0x80u) << 8, half;
    if (kind == __NV_E5M2) {
        half = size > 0x7cu ? 0x7fffu : sign | size << 8;
    } else if (size == 0x7fu) {
        half = 0x7fffu;
    } else if (size >= 8) {
        half = sign | ((size << 7) + (8u << 10)); /* exponents of half are 8 larger */
    } else {
        /* size / 512, which is normal in half */
        unsigned shift = size >= 4 ? 1u : size >= 2 ? 2u : 3u;
        half = size == 0 ? sign : sign | (9u - shift) << 10 | (size << (7 + shift) & 0x3ffu);
    }
    return __half_raw{(unsigned short)half};
}
__BH_BOTH __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t value,
                                                 __nv_fp8_interpretation_t kind) {
    return __half2_raw{__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)value, kind).x,
                       __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(value >> 8), kind).x};
}
__BH_DEVICE float __bh_fp8_to_float(__nv_fp8_storage_t value, __nv_fp8_interpretation_t kind) {
    return (float)__half(__nv_cvt_fp8_to_halfraw(value, kind));
}

#if __CUDA_ARCH__ >= 800
#define __BH_FP8_BFLOAT(type, kind)                                                                \
    __device__ explicit type(__nv_bfloat16 value)                                                  \
        : __x(__nv_cvt_bfloat16raw_to_fp8(value, __NV_SATFINITE, kind)) {                          \
    }                                                                                              \
    __device__ explicit operator __nv_bfloat16() const {                                           \
        return __nv_bfloat16(__bh_fp8_to_float(__x, kind));                                        \
    }
#define __BH_FP8X2_BFLOAT(type, kind)                                                              \
    __device__ explicit type(__nv_bfloat162 value)                                                 \
        : __x(__nv_cvt_bfloat16raw2_to_fp8x2(value, __NV_SATFINITE, kind)) {                       \
    }
#define __BH_FP8X4_BFLOAT(type, kind)                                                              \
    __device__ explicit type(__nv_bfloat162 low, __nv_bfloat162 high)                              \
        : __x(__nv_cvt_bfloat16raw2_to_fp8x2(low, __NV_SATFINITE, kind) |                          \
              (unsigned)__nv_cvt_bfloat16raw2_to_fp8x2(high, __NV_SATFINITE, kind) << 16) {        \
    }
#else
#define __BH_FP8_BFLOAT(type, kind)
#define __BH_FP8X2_BFLOAT(type, kind)
#define __BH_FP8X4_BFLOAT(type, kind)
#endif

/* Whole numbers beyond the largest are exact enough in double; to them it is cut, as from half. */
#define __BH_FP8(name, kind)                                                                       \
    struct __nv_fp8_##name {                                                                       \
        __nv_fp8_storage_t __x;                                                                    \
        __nv_fp8_##name() = default;                                                               \
        __host__ __device__ explicit __nv_fp8_##name(float value)                                  \
            : __x(__nv_cvt_float_to_fp8(value, __NV_SATFINITE, kind)) {                            \
        }                                                                                          \
        __host__ __device__ explicit __nv_fp8_##name(double value)                                 \
            : __x(__nv_cvt_double_to_fp8(value, __NV_SATFINITE, kind)) {                           \
        }                                                                                          \
        __device__ explicit __nv_fp8_##name(__half value)                                          \
            : __x(__nv_cvt_halfraw_to_fp8(value, __NV_SATFINITE, kind)) {                          \
        }                                                                                          \
        template <class T, class = __bh_if_integer<T>>                                             \
        __host__ __device__ explicit __nv_fp8_##name(T value)                                      \
            : __x(__nv_cvt_double_to_fp8((double)value, __NV_SATFINITE, kind)) {                   \
        }                                                                                          \
        __BH_FP8_BFLOAT(__nv_fp8_##name, kind)                                                     \
        __device__ explicit operator __half() const {                                              \
            return __half(__nv_cvt_fp8_to_halfraw(__x, kind));                                     \
        }                                                                                          \
        __device__ explicit operator float() const {                                               \
            return __bh_fp8_to_float(__x, kind);                                                   \
        }                                                                                          \
        __device__ explicit operator double() const {                                              \
            return (double)__bh_fp8_to_float(__x, kind);                                           \
        }                                                                                          \
        __host__ __device__ explicit operator bool() const {                                       \
            return (__x & 0x7fu) != 0;                                                             \
        }                                                                                          \
        template <class T, class = __bh_if_integer<T>> __device__ explicit operator T() const {    \
            return __bh_to_integer<T>(__bh_fp8_to_float(__x, kind));                           \
        }                                                                                          \
    };                                                                                             \
    struct __attribute__((aligned(2))) __nv_fp8x2_##name {                                         \
        __nv_fp8x2_storage_t __x;                                                                  \
        __nv_fp8x2_##name() = default;                                                             \
        __host__ __device__ explicit __nv_fp8x2_##name(float2 value)                               \
            : __x(__nv_cvt_float2_to_fp8x2(value, __NV_SATFINITE, kind)) {                         \
        }                                                                                          \
        __host__ __device__ explicit __nv_fp8x2_##name(double2 value)                              \
            : __x(__nv_cvt_double2_to_fp8x2(value, __NV_SATFINITE, kind)) {                        \
        }                                                                                          \
        __device__ explicit __nv_fp8x2_##name(__half2 value)                                       \
            : __x(__nv_cvt_halfraw2_to_fp8x2(value, __NV_SATFINITE, kind)) {                       \
        }                                                                                          \
        __BH_FP8X2_BFLOAT(__nv_fp8x2_##name, kind)                                                 \
        __device__ explicit operator __half2() const {                                             \
            return __half2(__nv_cvt_fp8x2_to_halfraw2(__x, kind));                                 \
        }                                                                                          \
        __device__ explicit operator float2() const {                                              \
            return float2{__bh_fp8_to_float((__nv_fp8_storage_t)__x, kind),                        \
                          __bh_fp8_to_float((__nv_fp8_storage_t)(__x >> 8), kind)};                \
        }                                                                                          \
    };                                                                                             \
    struct __attribute__((aligned(4))) __nv_fp8x4_##name {                                         \
        __nv_fp8x4_storage_t __x;                                                                  \
        __nv_fp8x4_##name() = default;                                                             \
        __host__ __device__ explicit __nv_fp8x4_##name(float4 value)                               \
            : __x(__nv_cvt_float2_to_fp8x2(float2{value.x, value.y}, __NV_SATFINITE, kind) |       \
                  (unsigned)__nv_cvt_float2_to_fp8x2(float2{value.z, value.w}, __NV_SATFINITE,     \
                                                     kind)                                         \
                      << 16) {                                                                     \
        }                                                                                          \
        __host__ __device__ explicit __nv_fp8x4_##name(double4 value)                              \
            : __x(__nv_cvt_double2_to_fp8x2(double2{value.x, value.y}, __NV_SATFINITE, kind) |     \
                  (unsigned)__nv_cvt_double2_to_fp8x2(double2{value.z, value.w}, __NV_SATFINITE,   \
                                                      kind)                                        \
                      << 16) {                                                                     \
        }                                                                                          \
        __device__ explicit __nv_fp8x4_##name(__half2 low, __half2 high)                           \
            : __x(__nv_cvt_halfraw2_to_fp8x2(low, __NV_SATFINITE, kind) |                          \
                  (unsigned)__nv_cvt_halfraw2_to_fp8x2(high, __NV_SATFINITE, kind) << 16) {        \
        }                                                                                          \
        __BH_FP8X4_BFLOAT(__nv_fp8x4_##name, kind)                                                 \
        __device__ explicit operator float4() const {                                              \
            return float4{__bh_fp8_to_float((__nv_fp8_storage_t)__x, kind),                        \
                          __bh_fp8_to_float((__nv_fp8_storage_t)(__x >> 8), kind),                 \
                          __bh_fp8_to_float((__nv_fp8_storage_t)(__x >> 16), kind),                \
                          __bh_fp8_to_float((__nv_fp8_storage_t)(__x >> 24), kind)};               \
        }                                                                                          \
    };

__BH_FP8(e4m3, __NV_E4M3)
__BH_FP8(e5m2, __NV_E5M2)
#undef __BH_FP8
#undef __BH_FP8_BFLOAT
#undef __BH_FP8X2_BFLOAT
#undef __BH_FP8X4_BFLOAT

#endif
