/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA C++ takes for granted, for clang without NVIDIA's headers. */
#ifndef BULKHEAD_CUDA_H
#define BULKHEAD_CUDA_H

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

#define BULKHEAD_COORDINATE(name, axis)                                                            \
    __declspec(property(get = get_##axis)) unsigned axis;                                          \
    static inline __attribute__((always_inline, device)) unsigned get_##axis() {                   \
        return __nvvm_read_ptx_sreg_##name##_##axis();                                             \
    }
#define BULKHEAD_BUILT_IN(variable, name)                                                          \
    struct bulkhead_##name {                                                                       \
        BULKHEAD_COORDINATE(name, x)                                                               \
        BULKHEAD_COORDINATE(name, y)                                                               \
        BULKHEAD_COORDINATE(name, z)                                                               \
    };                                                                                             \
    extern const __attribute__((device, weak)) bulkhead_##name variable;
BULKHEAD_BUILT_IN(threadIdx, tid)
BULKHEAD_BUILT_IN(blockIdx, ctaid)
BULKHEAD_BUILT_IN(blockDim, ntid)
BULKHEAD_BUILT_IN(gridDim, nctaid)


#endif
