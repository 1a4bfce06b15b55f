/* SPDX-License-Identifier: Apache-2.0 */
/* How the kernels here check themselves: a line number for each check that does not hold. */
#ifndef DEVICE_HEADER_CHECKS_H
#define DEVICE_HEADER_CHECKS_H

/* failed[0] counts, failed[1..] are lines. */
#define EXPECT(...)                                                                                \
    do {                                                                                           \
        if (!(__VA_ARGS__)) {                                                                      \
            int at_ = atomicAdd(failed, 1);                                                        \
            if (at_ < 30) failed[1 + at_] = __LINE__;                                              \
        }                                                                                          \
    } while (0)

/* A value that the compiler cannot see through. */
__device__ inline int hide(int x) {
    asm volatile("" : "+r"(x));
    return x;
}
__device__ inline unsigned hide(unsigned x) {
    asm volatile("" : "+r"(x));
    return x;
}
__device__ inline long long hide(long long x) {
    asm volatile("" : "+l"(x));
    return x;
}
__device__ inline unsigned long long hide(unsigned long long x) {
    asm volatile("" : "+l"(x));
    return x;
}
__device__ inline float hide(float x) {
    asm volatile("" : "+f"(x));
    return x;
}
__device__ inline double hide(double x) {
    asm volatile("" : "+d"(x));
    return x;
}

#define KERNEL(name) extern "C" __global__ void name(int *failed)

#endif
