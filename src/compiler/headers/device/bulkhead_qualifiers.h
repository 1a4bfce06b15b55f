/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA keywords that are attributes in clang. */
#ifndef BULKHEAD_QUALIFIERS_H
#define BULKHEAD_QUALIFIERS_H

#define __host__     __attribute__((host))
#define __device__   __attribute__((device))
#define __global__   __attribute__((global))
#define __shared__   __attribute__((shared))
#define __constant__ __attribute__((constant))

#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__        __inline__ __attribute__((always_inline))
#define __align__(n)           __attribute__((aligned(n)))
#define __builtin_align__(n)   __attribute__((aligned(n)))

#if __has_attribute(grid_constant)
#define __grid_constant__ __attribute__((grid_constant))
#else
#define __grid_constant__
#endif

/* Not supported: an error where they are used. */
#define __managed__                                                                                \
    _Pragma("GCC error \"__managed__ variables are not supported: use a __device__ variable, or "  \
            "pass a buffer to the kernel\"")
#define __cluster_dims__(...)                                                                      \
    _Pragma("GCC error \"__cluster_dims__ is not supported by clang: give the cluster's shape "    \
            "with the launch\"")

/* Specifiers of the functions in these headers. With `nodebug` what is inlined has the line of the
 * call, so that messages name a line of the user's source. */
#define __BH_DEVICE   static __inline__ __device__ __attribute__((always_inline, nodebug, unused))
#define __BH_FUNCTION static __inline__ __device__ __attribute__((unused))
#define __BH_SLOW     static __device__ __attribute__((noinline, unused))
#define __BH_BOTH                                                                                  \
    static __inline__ __host__ __device__ __attribute__((always_inline, nodebug, unused))
#define __BH_METHOD __host__ __device__ __attribute__((always_inline, nodebug))

#endif
