/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers in kernels: the distributions over the generators of
 * bulkhead_random_generators.h. */
#ifndef BULKHEAD_CURAND_KERNEL_H
#define BULKHEAD_CURAND_KERNEL_H

#include "bulkhead_cuda.h"

#include "bulkhead_random_generators.h"

/* ---- uniform: above 0, up to and including 1 ---- */

__BH_DEVICE float __bh_unit(unsigned x) {
    return (float)x * 0x1p-32f + 0x1p-33f;
}
__BH_DEVICE double __bh_unit(unsigned low, unsigned high) {
    unsigned long long z = (unsigned long long)low ^ (unsigned long long)high << 21;
    return (double)z * 0x1p-53 + 0x1p-54;
}
template <class State> __BH_DEVICE float curand_uniform(State *s) {
    return __bh_unit(curand(s));
}
template <class State> __BH_DEVICE double curand_uniform_double(State *s) {
    unsigned x = curand(s), y = curand(s);
    return __bh_unit(x, y);
}
__BH_DEVICE float curand_uniform(curandStateMRG32k3a *s) {
    return (float)(__bh_mrg_draw(s) * 2.3283065498378288e-10);
}
__BH_DEVICE double curand_uniform_double(curandStateMRG32k3a *s) {
    return __bh_mrg_draw(s) * 2.3283065498378288e-10;
}
/* one word only */
__BH_DEVICE double curand_uniform_double(curandStatePhilox4_32_10 *s) {
    return (double)curand(s) * 0x1p-32 + 0x1p-32;
}
__BH_DEVICE float4 curand_uniform4(curandStatePhilox4_32_10 *s) {
    uint4 x = curand4(s);
    return float4{__bh_unit(x.x), __bh_unit(x.y), __bh_unit(x.z), __bh_unit(x.w)};
}
__BH_DEVICE double2 curand_uniform2_double(curandStatePhilox4_32_10 *s) {
    uint4 x = curand4(s);
    return double2{__bh_unit(x.x, x.y), __bh_unit(x.z, x.w)};
}

/* ---- normal: Box and Muller's transformation, two values at a time ---- */

__BH_FUNCTION float2 __bh_normal_pair(unsigned x, unsigned y) {
    const float turn = 0x1p-32f * 6.2831855f;
    float angle = (float)y * turn + turn / 2;
    float radius = sqrtf(-2.0f * logf(__bh_unit(x))), sine, cosine;
    sincosf(angle, &sine, &cosine);
    return float2{sine * radius, cosine * radius};
}
__BH_FUNCTION double2 __bh_normal_pair(double u, double half_turns) {
    double radius = sqrt(-2.0 * log(u)), sine, cosine;
    sincospi(half_turns, &sine, &cosine);
    return double2{sine * radius, cosine * radius};
}
__BH_FUNCTION double2 __bh_normal_pair(uint4 x) {
    unsigned long long z = (unsigned long long)x.z ^ (unsigned long long)x.w << 21;
    return __bh_normal_pair(__bh_unit(x.x, x.y), (double)z * 0x1p-52 + 0x1p-53);
}
template <class State> __BH_DEVICE float2 curand_normal2(State *s) {
    unsigned x = curand(s), y = curand(s);
    return __bh_normal_pair(x, y);
}
template <class State> __BH_DEVICE double2 curand_normal2_double(State *s) {
    uint4 x;
    x.x = curand(s);
    x.y = curand(s);
    x.z = curand(s);
    x.w = curand(s);
    return __bh_normal_pair(x);
}
__BH_DEVICE double2 curand_normal2_double(curandStatePhilox4_32_10 *s) {
    return __bh_normal_pair(curand4(s));
}
__BH_FUNCTION float2 curand_normal2(curandStateMRG32k3a *s) {
    float u = curand_uniform(s), angle = curand_uniform(s) * 6.2831855f, sine, cosine;
    float radius = sqrtf(-2.0f * logf(u));
    sincosf(angle, &sine, &cosine);
    return float2{sine * radius, cosine * radius};
}
__BH_FUNCTION double2 curand_normal2_double(curandStateMRG32k3a *s) {
    double u = curand_uniform_double(s), half_turns = curand_uniform_double(s) * 2.0;
    return __bh_normal_pair(u, half_turns);
}
__BH_FUNCTION float4 curand_normal4(curandStatePhilox4_32_10 *s) {
    uint4 x = curand4(s);
    float2 a = __bh_normal_pair(x.x, x.y), b = __bh_normal_pair(x.z, x.w);
    return float4{a.x, a.y, b.x, b.y};
}
/* The second value of a pair is kept for the next call of the same kind: 1 is normal, 2 is
 * log-normal. */
template <class State> __BH_DEVICE float curand_normal(State *s) {
    bool kept = s->has_float == 1;
    s->has_float = kept ? 0 : 1;
    if (kept) return s->kept_float;
    float2 pair = curand_normal2(s);
    s->kept_float = pair.y;
    return pair.x;
}
template <class State> __BH_DEVICE double curand_normal_double(State *s) {
    bool kept = s->has_double == 1;
    s->has_double = kept ? 0 : 1;
    if (kept) return s->kept_double;
    double2 pair = curand_normal2_double(s);
    s->kept_double = pair.y;
    return pair.x;
}

/* ---- log-normal ---- */

template <class State> __BH_DEVICE float curand_log_normal(State *s, float mean, float deviation) {
    bool kept = s->has_float == 2;
    s->has_float = kept ? 0 : 2;
    if (kept) return s->kept_float;
    float2 pair = curand_normal2(s);
    s->kept_float = expf(mean + deviation * pair.y);
    return expf(mean + deviation * pair.x);
}
template <class State>
__BH_DEVICE double curand_log_normal_double(State *s, double mean, double deviation) {
    bool kept = s->has_double == 2;
    s->has_double = kept ? 0 : 2;
    if (kept) return s->kept_double;
    double2 pair = curand_normal2_double(s);
    s->kept_double = exp(mean + deviation * pair.y);
    return exp(mean + deviation * pair.x);
}
template <class State>
__BH_DEVICE float2 curand_log_normal2(State *s, float mean, float deviation) {
    float2 x = curand_normal2(s);
    return float2{expf(mean + deviation * x.x), expf(mean + deviation * x.y)};
}
template <class State>
__BH_DEVICE double2 curand_log_normal2_double(State *s, double mean, double deviation) {
    double2 x = curand_normal2_double(s);
    return double2{exp(mean + deviation * x.x), exp(mean + deviation * x.y)};
}
__BH_DEVICE float4 curand_log_normal4(curandStatePhilox4_32_10 *s, float mean, float deviation) {
    float4 x = curand_normal4(s);
    return float4{expf(mean + deviation * x.x), expf(mean + deviation * x.y),
                  expf(mean + deviation * x.z), expf(mean + deviation * x.w)};
}

/* ---- Poisson ---- */

/* Few events: products of uniform numbers (Knuth). Very many: almost normal. Between: rejection
 * under a transformed uniform number (Hoermann's PTRS), which has the same distribution as NVIDIA's
 * but another sequence. */
template <class State> __BH_FUNCTION unsigned __bh_poisson_few(State *s, double mean) {
    float least = expf((float)-mean), all = 1.0f;
    unsigned count = 0;
    do {
        count++;
        all *= curand_uniform(s);
    } while (all > least);
    return count - 1;
}
template <class State> __BH_FUNCTION unsigned __bh_poisson_many(State *s, double mean) {
    double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
    double inverse = 1.1239 + 1.1328 / (b - 3.4), accept = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = curand_uniform_double(s) - 0.5, v = curand_uniform_double(s);
        double us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= accept) return (unsigned)k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v * inverse / (a / (us * us) + b)) <= k * log(mean) - mean - lgamma(k + 1))
            return (unsigned)k;
    }
}
template <class State> __BH_FUNCTION unsigned curand_poisson(State *s, double mean) {
    if (mean < 64) return __bh_poisson_few(s, mean);
    if (mean > 4000) return (unsigned)(sqrt(mean) * curand_normal_double(s) + mean + 0.5);
    return __bh_poisson_many(s, mean);
}
__BH_DEVICE uint4 curand_poisson4(curandStatePhilox4_32_10 *s, double mean) {
    uint4 result;
    result.x = curand_poisson(s, mean);
    result.y = curand_poisson(s, mean);
    result.z = curand_poisson(s, mean);
    result.w = curand_poisson(s, mean);
    return result;
}

#endif
