/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers in kernels. The expected words are those of NVIDIA's header, folded into one. */
#include <curand_kernel.h>

#include "checks.h"

/* Programs allocate states by the sizes of NVIDIA's header. */
static_assert(sizeof(curandState) == 48 && sizeof(curandStateMRG32k3a) == 48, "sizes of states");
static_assert(sizeof(curandStatePhilox4_32_10_t) == 64, "the size of a state");

/* Draws from 8 places of 8 sequences, with jumps between, folded into one word. */
template <class State> __device__ unsigned fold() {
    unsigned sum = 2166136261u;
    for (unsigned t = 0; t < 8; t++) {
        unsigned long long subsequence = t == 6 ? 1ull << 33 : t * t * 7ull;
        unsigned long long offset = t == 7 ? 1ull << 40 : t < 4 ? t : t * 1000003ull;
        State s;
        curand_init(t * 0x123456789ull + t, subsequence, offset, &s);
        for (int i = 0; i < 24; i++) {
            if (i == 8) skipahead(12345ull, &s);
            if (i == 16) skipahead_sequence(3ull, &s);
            sum = (sum ^ curand(&s)) * 16777619u;
        }
    }
    return sum;
}

template <class State> __device__ void distributions(int *failed) {
    State s;
    curand_init(hide(7ull), 0, 0, &s);
    double uniform = 0, normal = 0, square = 0, exact = 0, logarithm = 0, few = 0, some = 0,
           many = 0;
    const int count = 2000;
    for (int i = 0; i < count; i++) {
        float u = curand_uniform(&s), n = curand_normal(&s);
        EXPECT(u > 0 && u <= 1);
        uniform += u;
        exact += curand_uniform_double(&s);
        normal += n + curand_normal_double(&s);
        square += n * n;
        logarithm +=
            log(curand_log_normal_double(&s, 1.0, 0.5)) + logf(curand_log_normal(&s, 1, 1));
        few += curand_poisson(&s, 3.0);
        some += curand_poisson(&s, 100.0);
        many += curand_poisson(&s, 5000.0);
    }
    EXPECT(fabs(uniform / count - 0.5) < 0.03 && fabs(exact / count - 0.5) < 0.03);
    EXPECT(fabs(normal / count) < 0.15 && fabs(square / count - 1) < 0.15);
    EXPECT(fabs(logarithm / count - 2) < 0.15 && fabs(few / count - 3) < 0.2);
    EXPECT(fabs(some / count - 100) < 1 && fabs(many / count - 5000) < 8);
}

KERNEL(random_words) {
    if (threadIdx.x > 0) return;
    EXPECT(fold<curandStateXORWOW_t>() == 1898811396u);
    EXPECT(fold<curandStatePhilox4_32_10_t>() == 4126274587u);
    EXPECT(fold<curandStateMRG32k3a_t>() == 2782091785u);
    /* published with the algorithm: counter and key of zeros */
    curandStatePhilox4_32_10_t s;
    curand_init(0, 0, 0, &s);
    uint4 first = curand4(&s);
    EXPECT(first.x == 0x6627e8d5u && first.y == 0xe169c58du);
    EXPECT(first.z == 0xbc57ac4cu && first.w == 0x9b00dbd8u);
    curand(&s);
    uint4 next = curand4(&s);
    curandState other;
    curand_init(1234, 5, 6, &other);
    curandState same = other;
    EXPECT(curand(&same) == curand(&other) && next.x != next.y);
}

KERNEL(random_numbers) {
    if (threadIdx.x > 0 || blockIdx.x > 0) return;
    distributions<curandState>(failed);
    distributions<curandStatePhilox4_32_10_t>(failed);
    distributions<curandStateMRG32k3a_t>(failed);
    curandStatePhilox4_32_10_t s;
    curand_init(1, 2, 3, &s);
    float4 u = curand_uniform4(&s), n = curand_normal4(&s);
    EXPECT(u.x > 0 && u.w <= 1 && u.x != u.y && fabsf(n.z) < 7 && n.x != n.y);
    EXPECT(curand_poisson4(&s, 2.0).x < 20 && curand_uniform2_double(&s).y <= 1);
}
