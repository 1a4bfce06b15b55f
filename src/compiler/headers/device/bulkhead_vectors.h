/* SPDX-License-Identifier: Apache-2.0 */
/* The vector types, their make_ functions, and dim3. */
#ifndef BULKHEAD_VECTORS_H
#define BULKHEAD_VECTORS_H

#include "bulkhead_qualifiers.h"

/* Vectors of one to four elements; two and four are aligned as a whole, up to 16 bytes. */
#define __BH_VECTORS(name, type, align2, align4)                                                   \
    struct name##1 {                                                                               \
        type x;                                                                                    \
    };                                                                                             \
    struct __attribute__((aligned(align2))) name##2 {                                              \
        type x, y;                                                                                 \
    };                                                                                             \
    struct name##3 {                                                                               \
        type x, y, z;                                                                              \
    };                                                                                             \
    struct __attribute__((aligned(align4))) name##4 {                                              \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    __BH_BOTH constexpr name##1 make_##name##1(type x) {                                           \
        return name##1 {x};                                                                        \
    }                                                                                              \
    __BH_BOTH constexpr name##2 make_##name##2(type x, type y) {                                   \
        return name##2 {x, y};                                                                     \
    }                                                                                              \
    __BH_BOTH constexpr name##3 make_##name##3(type x, type y, type z) {                           \
        return name##3 {x, y, z};                                                                  \
    }                                                                                              \
    __BH_BOTH constexpr name##4 make_##name##4(type x, type y, type z, type w) {                   \
        return name##4 {x, y, z, w};                                                               \
    }

__BH_VECTORS(char, signed char, 2, 4)
__BH_VECTORS(uchar, unsigned char, 2, 4)
__BH_VECTORS(short, short, 4, 8)
__BH_VECTORS(ushort, unsigned short, 4, 8)
__BH_VECTORS(int, int, 8, 16)
__BH_VECTORS(uint, unsigned int, 8, 16)
__BH_VECTORS(long, long, 16, 16)
__BH_VECTORS(ulong, unsigned long, 16, 16)
__BH_VECTORS(longlong, long long, 16, 16)
__BH_VECTORS(ulonglong, unsigned long long, 16, 16)
__BH_VECTORS(float, float, 8, 16)
__BH_VECTORS(double, double, 16, 16)

#undef __BH_VECTORS

struct dim3 {
    unsigned int x, y, z;
    __host__ __device__ constexpr dim3(unsigned int vx = 1, unsigned int vy = 1,
                                       unsigned int vz = 1)
        : x(vx), y(vy), z(vz) {
    }
    __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {
    }
    __host__ __device__ constexpr operator uint3() const {
        return uint3{x, y, z};
    }
};

#endif
