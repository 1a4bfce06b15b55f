/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generators of curand_kernel.h, with the sequences of NVIDIA's: XORWOW (Marsaglia),
 * Philox4_32_10 (Salmon and others) and MRG32k3a (L'Ecuyer). Each has the same members: draw, jump
 * within the sequence, jump to another one.
 */
#ifndef BULKHEAD_RANDOM_GENERATORS_H
#define BULKHEAD_RANDOM_GENERATORS_H

#include "bulkhead_cuda.h"

#include "bulkhead_random_tables.h"

/* What the normal distribution keeps: it makes two values at a time. */
struct __bh_random_kept {
    int has_float, has_double;
    float kept_float;
    double kept_double;
};

/* ---- XORWOW ---- */

struct curandStateXORWOW : __bh_random_kept {
    unsigned d, v[5];
};

__BH_FUNCTION unsigned curand(curandStateXORWOW *s) {
    unsigned t = s->v[0] ^ (s->v[0] >> 2);
    s->v[0] = s->v[1];
    s->v[1] = s->v[2];
    s->v[2] = s->v[3];
    s->v[3] = s->v[4];
    s->v[4] = (s->v[4] ^ (s->v[4] << 4)) ^ (t ^ (t << 1));
    s->d += 362437u;
    return s->v[4] + s->d;
}
/* The sum of the states after i steps, for each i whose bit is set. */
__BH_SLOW void __bh_xorwow_apply(curandStateXORWOW *s, const unsigned *polynomial) {
    unsigned sum[5] = {0, 0, 0, 0, 0}, kept = s->d;
    for (int i = 0; i < 160; i++) {
        unsigned all = 0u - (polynomial[i / 32] >> (i % 32) & 1u);
        for (int j = 0; j < 5; j++) {
            sum[j] ^= s->v[j] & all;
        }
        curand(s);
    }
    for (int j = 0; j < 5; j++) {
        s->v[j] = sum[j];
    }
    s->d = kept;
}
__BH_FUNCTION void skipahead(unsigned long long n, curandStateXORWOW *s) {
    for (int i = 0; i < 64 && n >> i != 0; i++) {
        if (n >> i & 1) __bh_xorwow_apply(s, __bh_xorwow_steps[i]);
    }
    s->d += 362437u * (unsigned)n;
}
__BH_FUNCTION void skipahead_sequence(unsigned long long n, curandStateXORWOW *s) {
    for (int i = 0; i < 64 && n >> i != 0; i++) {
        if (n >> i & 1) __bh_xorwow_apply(s, __bh_xorwow_sequences[i]);
    }
}
__BH_FUNCTION void __bh_random_seed(unsigned long long seed, curandStateXORWOW *s) {
    unsigned a = 1099087573u * ((unsigned)seed ^ 0xaad26b49u);
    unsigned b = 2591861531u * ((unsigned)(seed >> 32) ^ 0xf7dcefddu);
    s->d = 6615241u + b + a;
    s->v[0] = 123456789u + a;
    s->v[1] = 362436069u ^ a;
    s->v[2] = 521288629u + b;
    s->v[3] = 88675123u ^ b;
    s->v[4] = 5783321u + a;
}

/* ---- Philox4_32_10 ---- */

/* As large as NVIDIA's, since programs allocate states by that size: not behind __bh_random_kept,
 * where the alignment of uint4 would cost 16 bytes. */
struct curandStatePhilox4_32_10 {
    uint4 ctr, output;
    uint2 key;
    unsigned STATE;
    int has_float, has_double;
    float kept_float;
    double kept_double;
};
static_assert(sizeof(curandStatePhilox4_32_10) == 64, "the size of NVIDIA's");

__BH_FUNCTION uint4 __bh_philox(uint4 c, uint2 k) {
    for (int round = 0; round < 10; round++) {
        unsigned high0 = __umulhi(0xd2511f53u, c.x), low0 = 0xd2511f53u * c.x;
        unsigned high1 = __umulhi(0xcd9e8d57u, c.z), low1 = 0xcd9e8d57u * c.z;
        c = uint4{high1 ^ c.y ^ k.x, low1, high0 ^ c.w ^ k.y, low0};
        k.x += 0x9e3779b9u;
        k.y += 0xbb67ae85u;
    }
    return c;
}
/* Adds to the lower or the upper half of the counter; the lower one carries. */
__BH_DEVICE void __bh_philox_add(curandStatePhilox4_32_10 *s, unsigned long long low,
                                 unsigned long long high) {
    unsigned long long a = (unsigned long long)s->ctr.y << 32 | s->ctr.x;
    unsigned long long b = (unsigned long long)s->ctr.w << 32 | s->ctr.z;
    unsigned long long sum = a + low;
    b += high + (sum < low ? 1 : 0);
    s->ctr = uint4{(unsigned)sum, (unsigned)(sum >> 32), (unsigned)b, (unsigned)(b >> 32)};
    s->output = __bh_philox(s->ctr, s->key);
}
__BH_FUNCTION unsigned curand(curandStatePhilox4_32_10 *s) {
    unsigned at = s->STATE++;
    unsigned result = at == 0   ? s->output.x
                      : at == 1 ? s->output.y
                      : at == 2 ? s->output.z
                                : s->output.w;
    if (s->STATE == 4) {
        __bh_philox_add(s, 1, 0);
        s->STATE = 0;
    }
    return result;
}
__BH_FUNCTION uint4 curand4(curandStatePhilox4_32_10 *s) {
    uint4 a = s->output;
    __bh_philox_add(s, 1, 0);
    uint4 b = s->output;
    switch (s->STATE) {
    case 1:
        return uint4{a.y, a.z, a.w, b.x};
    case 2:
        return uint4{a.z, a.w, b.x, b.y};
    case 3:
        return uint4{a.w, b.x, b.y, b.z};
    default:
        return a;
    }
}
__BH_FUNCTION void skipahead(unsigned long long n, curandStatePhilox4_32_10 *s) {
    s->STATE += (unsigned)(n & 3);
    n /= 4;
    if (s->STATE > 3) {
        n++;
        s->STATE -= 4;
    }
    __bh_philox_add(s, n, 0);
}
__BH_FUNCTION void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10 *s) {
    __bh_philox_add(s, 0, n);
}
__BH_FUNCTION void __bh_random_seed(unsigned long long seed, curandStatePhilox4_32_10 *s) {
    s->ctr = uint4{0, 0, 0, 0};
    s->key = uint2{(unsigned)seed, (unsigned)(seed >> 32)};
    s->STATE = 0;
    s->output = __bh_philox(s->ctr, s->key);
}

/* ---- MRG32k3a ---- */

struct curandStateMRG32k3a : __bh_random_kept {
    unsigned s1[3], s2[3];
};
enum : unsigned { __bh_mrg_modulus_1 = 4294967087u, __bh_mrg_modulus_2 = 4294944443u };

/* 1 to the first modulus */
__BH_FUNCTION double __bh_mrg_draw(curandStateMRG32k3a *s) {
    const unsigned long long m1 = __bh_mrg_modulus_1, m2 = __bh_mrg_modulus_2;
    unsigned long long a = (1403580ull * s->s1[1] + 810728ull * (m1 - s->s1[0])) % m1;
    unsigned long long b = (527612ull * s->s2[2] + 1370589ull * (m2 - s->s2[0])) % m2;
    s->s1[0] = s->s1[1];
    s->s1[1] = s->s1[2];
    s->s1[2] = (unsigned)a;
    s->s2[0] = s->s2[1];
    s->s2[1] = s->s2[2];
    s->s2[2] = (unsigned)b;
    return a <= b ? (double)(long long)(a - b) + (double)m1 : (double)(a - b);
}
__BH_FUNCTION unsigned curand(curandStateMRG32k3a *s) {
    return (unsigned)(__bh_mrg_draw(s) * 1.000000048662);
}
__BH_FUNCTION void __bh_mrg_product(const unsigned (*a)[3], const unsigned (*b)[3],
                                    unsigned (*out)[3], unsigned long long modulus) {
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            unsigned long long sum = 0;
            for (int k = 0; k < 3; k++) {
                sum = (sum + (unsigned long long)a[i][k] * b[k][j] % modulus) % modulus;
            }
            out[i][j] = (unsigned)sum;
        }
    }
}
/* Moves one component by `n` times what the matrix does. */
__BH_SLOW void __bh_mrg_jump(unsigned *state, const unsigned (*step)[3], unsigned long long n,
                             unsigned long long modulus) {
    unsigned power[3][3], next[3][3];
    for (int i = 0; i < 9; i++) {
        power[i / 3][i % 3] = step[i / 3][i % 3];
    }
    for (; n != 0; n >>= 1) {
        if (n & 1) {
            unsigned long long sum[3];
            for (int i = 0; i < 3; i++) {
                sum[i] = 0;
                for (int k = 0; k < 3; k++) {
                    sum[i] =
                        (sum[i] + (unsigned long long)power[i][k] * state[k] % modulus) % modulus;
                }
            }
            for (int i = 0; i < 3; i++) {
                state[i] = (unsigned)sum[i];
            }
        }
        __bh_mrg_product(power, power, next, modulus);
        for (int i = 0; i < 9; i++) {
            power[i / 3][i % 3] = next[i / 3][i % 3];
        }
    }
}
__BH_FUNCTION void skipahead(unsigned long long n, curandStateMRG32k3a *s) {
    __bh_mrg_jump(s->s1, __bh_mrg_1_0, n, __bh_mrg_modulus_1);
    __bh_mrg_jump(s->s2, __bh_mrg_2_0, n, __bh_mrg_modulus_2);
}
__BH_FUNCTION void skipahead_subsequence(unsigned long long n, curandStateMRG32k3a *s) {
    __bh_mrg_jump(s->s1, __bh_mrg_1_76, n, __bh_mrg_modulus_1);
    __bh_mrg_jump(s->s2, __bh_mrg_2_76, n, __bh_mrg_modulus_2);
}
__BH_FUNCTION void skipahead_sequence(unsigned long long n, curandStateMRG32k3a *s) {
    __bh_mrg_jump(s->s1, __bh_mrg_1_127, n, __bh_mrg_modulus_1);
    __bh_mrg_jump(s->s2, __bh_mrg_2_127, n, __bh_mrg_modulus_2);
}
__BH_FUNCTION void __bh_random_seed(unsigned long long seed, curandStateMRG32k3a *s) {
    unsigned long long a = (unsigned)seed ^ 0x55555555u;
    unsigned long long b = (unsigned)(seed >> 32) ^ 0xaaaaaaaau;
    for (int i = 0; i < 3; i++) {
        s->s1[i] = seed == 0 ? 12345u : (unsigned)((i == 1 ? b : a) * 12345u % __bh_mrg_modulus_1);
        s->s2[i] = seed == 0 ? 12345u : (unsigned)((i == 1 ? a : b) * 12345u % __bh_mrg_modulus_2);
    }
}

/* ---- all of them ---- */

typedef curandStateXORWOW curandStateXORWOW_t, curandState, curandState_t;
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef curandStateMRG32k3a curandStateMRG32k3a_t;

__BH_DEVICE void __bh_random_place(unsigned long long subsequence, curandStateXORWOW *s) {
    skipahead_sequence(subsequence, s);
}
__BH_DEVICE void __bh_random_place(unsigned long long subsequence, curandStatePhilox4_32_10 *s) {
    skipahead_sequence(subsequence, s);
}
__BH_DEVICE void __bh_random_place(unsigned long long subsequence, curandStateMRG32k3a *s) {
    skipahead_subsequence(subsequence, s);
}
template <class State>
__BH_FUNCTION void curand_init(unsigned long long seed, unsigned long long subsequence,
                               unsigned long long offset, State *s) {
    __bh_random_seed(seed, s);
    __bh_random_place(subsequence, s);
    skipahead(offset, s);
    s->has_float = s->has_double = 0;
    s->kept_float = 0;
    s->kept_double = 0;
}

#endif
