/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores with a cache operator, address spaces, memcpy and memset, prefetching. */
#ifndef BULKHEAD_MEMORY_H
#define BULKHEAD_MEMORY_H

#include "bulkhead_types.h"
#include "bulkhead_vectors.h"

/* Scalars and vectors of two and four; `wide` is the register type for narrow values. */
#define __BH_LOAD_1(name, operation, type, wide, letter, suffix)                                   \
    __BH_DEVICE type name(const type *at) {                                                        \
        wide a;                                                                                    \
        asm volatile(operation "." suffix " %0, [%1];" : "=" letter(a) : "l"(at) : "memory");      \
        return (type)a;                                                                            \
    }
#define __BH_LOAD_2(name, operation, type, part, wide, letter, suffix)                             \
    __BH_DEVICE type name(const type *at) {                                                        \
        wide a, b;                                                                                 \
        asm volatile(operation ".v2." suffix " {%0, %1}, [%2];"                                    \
                     : "=" letter(a), "=" letter(b)                                                \
                     : "l"(at)                                                                     \
                     : "memory");                                                                  \
        return type{(part)a, (part)b};                                                             \
    }
#define __BH_LOAD_4(name, operation, type, part, wide, letter, suffix)                             \
    __BH_DEVICE type name(const type *at) {                                                        \
        wide a, b, c, d;                                                                           \
        asm volatile(operation ".v4." suffix " {%0, %1, %2, %3}, [%4];"                            \
                     : "=" letter(a), "=" letter(b), "=" letter(c), "=" letter(d)                  \
                     : "l"(at)                                                                     \
                     : "memory");                                                                  \
        return type{(part)a, (part)b, (part)c, (part)d};                                           \
    }
#define __BH_LOADS(name, op)                                                                       \
    __BH_LOAD_1(name, op, char, short, "h", "s8")                                                  \
    __BH_LOAD_1(name, op, signed char, short, "h", "s8")                                           \
    __BH_LOAD_1(name, op, unsigned char, unsigned short, "h", "u8")                                \
    __BH_LOAD_1(name, op, short, short, "h", "s16")                                                \
    __BH_LOAD_1(name, op, unsigned short, unsigned short, "h", "u16")                              \
    __BH_LOAD_1(name, op, int, int, "r", "s32")                                                    \
    __BH_LOAD_1(name, op, unsigned, unsigned, "r", "u32")                                          \
    __BH_LOAD_1(name, op, long, long, "l", "s64")                                                  \
    __BH_LOAD_1(name, op, unsigned long, unsigned long, "l", "u64")                                \
    __BH_LOAD_1(name, op, long long, long long, "l", "s64")                                        \
    __BH_LOAD_1(name, op, unsigned long long, unsigned long long, "l", "u64")                      \
    __BH_LOAD_1(name, op, float, float, "f", "f32")                                                \
    __BH_LOAD_1(name, op, double, double, "d", "f64")                                              \
    __BH_LOAD_2(name, op, char2, signed char, short, "h", "s8")                                    \
    __BH_LOAD_4(name, op, char4, signed char, short, "h", "s8")                                    \
    __BH_LOAD_2(name, op, uchar2, unsigned char, unsigned short, "h", "u8")                        \
    __BH_LOAD_4(name, op, uchar4, unsigned char, unsigned short, "h", "u8")                        \
    __BH_LOAD_2(name, op, short2, short, short, "h", "s16")                                        \
    __BH_LOAD_4(name, op, short4, short, short, "h", "s16")                                        \
    __BH_LOAD_2(name, op, ushort2, unsigned short, unsigned short, "h", "u16")                     \
    __BH_LOAD_4(name, op, ushort4, unsigned short, unsigned short, "h", "u16")                     \
    __BH_LOAD_2(name, op, int2, int, int, "r", "s32")                                              \
    __BH_LOAD_4(name, op, int4, int, int, "r", "s32")                                              \
    __BH_LOAD_2(name, op, uint2, unsigned, unsigned, "r", "u32")                                   \
    __BH_LOAD_4(name, op, uint4, unsigned, unsigned, "r", "u32")                                   \
    __BH_LOAD_2(name, op, longlong2, long long, long long, "l", "s64")                             \
    __BH_LOAD_2(name, op, ulonglong2, unsigned long long, unsigned long long, "l", "u64")          \
    __BH_LOAD_2(name, op, float2, float, float, "f", "f32")                                        \
    __BH_LOAD_4(name, op, float4, float, float, "f", "f32")                                        \
    __BH_LOAD_2(name, op, double2, double, double, "d", "f64")

__BH_LOADS(__ldg, "ld.global.nc")
__BH_LOADS(__ldca, "ld.global.ca")
__BH_LOADS(__ldcg, "ld.global.cg")
__BH_LOADS(__ldcs, "ld.global.cs")
__BH_LOADS(__ldlu, "ld.global.lu")
__BH_LOADS(__ldcv, "ld.global.cv")
#undef __BH_LOADS
#undef __BH_LOAD_1
#undef __BH_LOAD_2
#undef __BH_LOAD_4

#define __BH_STORE_1(name, operation, type, wide, letter, suffix)                                  \
    __BH_DEVICE void name(type *at, type value) {                                                  \
        asm volatile(operation "." suffix " [%0], %1;"                                             \
                     :                                                                             \
                     : "l"(at), letter((wide)value)                                                \
                     : "memory");                                                                  \
    }
#define __BH_STORE_2(name, operation, type, wide, letter, suffix)                                  \
    __BH_DEVICE void name(type *at, type value) {                                                  \
        asm volatile(operation ".v2." suffix " [%0], {%1, %2};"                                    \
                     :                                                                             \
                     : "l"(at), letter((wide)value.x), letter((wide)value.y)                       \
                     : "memory");                                                                  \
    }
#define __BH_STORE_4(name, operation, type, wide, letter, suffix)                                  \
    __BH_DEVICE void name(type *at, type value) {                                                  \
        asm volatile(operation ".v4." suffix " [%0], {%1, %2, %3, %4};"                            \
                     :                                                                             \
                     : "l"(at), letter((wide)value.x), letter((wide)value.y),                      \
                       letter((wide)value.z), letter((wide)value.w)                                \
                     : "memory");                                                                  \
    }
#define __BH_STORES(name, op)                                                                      \
    __BH_STORE_1(name, op, char, short, "h", "s8")                                                 \
    __BH_STORE_1(name, op, signed char, short, "h", "s8")                                          \
    __BH_STORE_1(name, op, unsigned char, unsigned short, "h", "u8")                               \
    __BH_STORE_1(name, op, short, short, "h", "s16")                                               \
    __BH_STORE_1(name, op, unsigned short, unsigned short, "h", "u16")                             \
    __BH_STORE_1(name, op, int, int, "r", "s32")                                                   \
    __BH_STORE_1(name, op, unsigned, unsigned, "r", "u32")                                         \
    __BH_STORE_1(name, op, long, long, "l", "s64")                                                 \
    __BH_STORE_1(name, op, unsigned long, unsigned long, "l", "u64")                               \
    __BH_STORE_1(name, op, long long, long long, "l", "s64")                                       \
    __BH_STORE_1(name, op, unsigned long long, unsigned long long, "l", "u64")                     \
    __BH_STORE_1(name, op, float, float, "f", "f32")                                               \
    __BH_STORE_1(name, op, double, double, "d", "f64")                                             \
    __BH_STORE_2(name, op, char2, short, "h", "s8")                                                \
    __BH_STORE_4(name, op, char4, short, "h", "s8")                                                \
    __BH_STORE_2(name, op, uchar2, unsigned short, "h", "u8")                                      \
    __BH_STORE_4(name, op, uchar4, unsigned short, "h", "u8")                                      \
    __BH_STORE_2(name, op, short2, short, "h", "s16")                                              \
    __BH_STORE_4(name, op, short4, short, "h", "s16")                                              \
    __BH_STORE_2(name, op, ushort2, unsigned short, "h", "u16")                                    \
    __BH_STORE_4(name, op, ushort4, unsigned short, "h", "u16")                                    \
    __BH_STORE_2(name, op, int2, int, "r", "s32")                                                  \
    __BH_STORE_4(name, op, int4, int, "r", "s32")                                                  \
    __BH_STORE_2(name, op, uint2, unsigned, "r", "u32")                                            \
    __BH_STORE_4(name, op, uint4, unsigned, "r", "u32")                                            \
    __BH_STORE_2(name, op, longlong2, long long, "l", "s64")                                       \
    __BH_STORE_2(name, op, ulonglong2, unsigned long long, "l", "u64")                             \
    __BH_STORE_2(name, op, float2, float, "f", "f32")                                              \
    __BH_STORE_4(name, op, float4, float, "f", "f32")                                              \
    __BH_STORE_2(name, op, double2, double, "d", "f64")

__BH_STORES(__stwb, "st.global.wb")
__BH_STORES(__stcg, "st.global.cg")
__BH_STORES(__stcs, "st.global.cs")
__BH_STORES(__stwt, "st.global.wt")
#undef __BH_STORES
#undef __BH_STORE_1
#undef __BH_STORE_2
#undef __BH_STORE_4

#define __BH_IS_SPACE(name, space)                                                                 \
    __BH_DEVICE unsigned name(const void *at) {                                                    \
        unsigned result;                                                                           \
        asm("{\n\t.reg .pred p;\n\tisspacep." space " p, %1;\n\tselp.u32 %0, 1, 0, p;\n\t}"        \
            : "=r"(result)                                                                         \
            : "l"(at));                                                                            \
        return result;                                                                             \
    }
__BH_IS_SPACE(__isGlobal, "global")
__BH_IS_SPACE(__isShared, "shared")
__BH_IS_SPACE(__isConstant, "const")
__BH_IS_SPACE(__isLocal, "local")
#undef __BH_IS_SPACE

#define __BH_TO_SPACE(name, space)                                                                 \
    __BH_DEVICE size_t __cvta_generic_to_##name(const void *at) {                                  \
        size_t result;                                                                             \
        asm("cvta.to." space ".u64 %0, %1;" : "=l"(result) : "l"(at));                             \
        return result;                                                                             \
    }                                                                                              \
    __BH_DEVICE void *__cvta_##name##_to_generic(size_t at) {                                      \
        void *result;                                                                              \
        asm("cvta." space ".u64 %0, %1;" : "=l"(result) : "l"(at));                                \
        return result;                                                                             \
    }
__BH_TO_SPACE(global, "global")
__BH_TO_SPACE(shared, "shared")
__BH_TO_SPACE(constant, "const")
__BH_TO_SPACE(local, "local")
#undef __BH_TO_SPACE

__BH_DEVICE void *memcpy(void *to, const void *from, size_t bytes) {
    return __builtin_memcpy(to, from, bytes);
}
__BH_DEVICE void *memset(void *at, int value, size_t bytes) {
    return __builtin_memset(at, value, bytes);
}
__BH_FUNCTION void *memmove(void *to, const void *from, size_t bytes) {
    volatile unsigned char *a = (volatile unsigned char *)to;
    const volatile unsigned char *b = (const volatile unsigned char *)from;
    if ((size_t)a <= (size_t)b) {
        for (size_t i = 0; i < bytes; i++) {
            a[i] = b[i];
        }
    } else {
        for (size_t i = bytes; i > 0; i--) {
            a[i - 1] = b[i - 1];
        }
    }
    return to;
}
__BH_FUNCTION int memcmp(const void *x, const void *y, size_t bytes) {
    const unsigned char *a = (const unsigned char *)x, *b = (const unsigned char *)y;
    for (size_t i = 0; i < bytes; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}
__BH_FUNCTION size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length] != 0) {
        length++;
    }
    return length;
}
__BH_FUNCTION int strcmp(const char *a, const char *b) {
    while (*a != 0 && *a == *b) {
        a++;
        b++;
    }
    return (int)(unsigned char)*a - (int)(unsigned char)*b;
}

#endif
