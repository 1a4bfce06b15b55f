// SPDX-License-Identifier: Apache-2.0
// Generators of random numbers and what is computed with them.

__device__ unsigned xorshift(unsigned &s) {
    s ^= s << 13, s ^= s >> 17, s ^= s << 5;
    return s;
}

// RUN count_pi n=1024 grid=4 block=256 exact
extern "C" __global__ void count_pi(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, s = in[i] | 1, inside = 0;
    for (int k = 0; k < 50; k++) {
        unsigned long long x = xorshift(s) >> 1, y = xorshift(s) >> 1;
        inside += x * x + y * y < 1ull << 62;
    }
    out[i] = inside;
}

// RUN leap_frog n=1024 grid=1 block=64 exact
extern "C" __global__ void leap_frog(const unsigned *in, unsigned *out, unsigned n) {
    // One linear congruential sequence, each thread takes every 64th number.
    unsigned a = 1, c = 0, x = in[0];
    for (unsigned k = 0; k < threadIdx.x; k++) x = x * 1664525u + 1013904223u;
    for (int k = 0; k < 64; k++) a *= 1664525u, c = c * 1664525u + 1013904223u;
    for (unsigned i = threadIdx.x; i < n; i += 64, x = x * a + c) out[i] = x;
}

// RUN philox n=1024 grid=1 block=256 exact
extern "C" __global__ void philox(const unsigned *in, unsigned *out, unsigned n) {
    uint4 c = make_uint4(threadIdx.x, in[0], in[1], in[2]);
    uint2 key = make_uint2(in[3], in[4]);
    for (int round = 0; round < 10; round++) {
        unsigned low0 = 0xD2511F53u * c.x, high0 = __umulhi(0xD2511F53u, c.x);
        unsigned low1 = 0xCD9E8D57u * c.z, high1 = __umulhi(0xCD9E8D57u, c.z);
        c = make_uint4(high1 ^ c.y ^ key.x, low1, high0 ^ c.w ^ key.y, low0);
        key.x += 0x9E3779B9u, key.y += 0xBB67AE85u;
    }
    ((uint4 *)out)[threadIdx.x] = c;
}

// RUN shuffle_cards n=832 grid=1 block=16 exact
extern "C" __global__ void shuffle_cards(const unsigned *in, unsigned *out, unsigned n) {
    unsigned char deck[52];
    unsigned s = in[threadIdx.x] | 1;
    for (int k = 0; k < 52; k++) deck[k] = (unsigned char)k;
    for (unsigned k = 51; k > 0; k--) {
        unsigned j = __umulhi(xorshift(s), k + 1);
        unsigned char card = deck[k];
        deck[k] = deck[j], deck[j] = card;
    }
    for (int k = 0; k < 52; k++) out[threadIdx.x * 52 + k] = deck[k];
}

// RUN random_walk n=512 grid=2 block=256 exact
extern "C" __global__ void random_walk(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, s = in[i] | 1;
    int x = 0, y = 0, steps = 0;
    while (abs(x) + abs(y) < 6 && steps < 200) {
        switch (xorshift(s) >> 30) {
        case 0: x++; break;
        case 1: x--; break;
        case 2: y++; break;
        default: y--; break;
        }
        steps++;
    }
    out[i] = (unsigned)steps << 16 | (unsigned)(x + 8) << 8 | (unsigned)(y + 8);
}

// RUN box_muller n=1024 grid=2 block=256 loose=1e-4
extern "C" __global__ void box_muller(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    float u = ((in[i] >> 8) + 1) * (1.0f / 16777217.0f), a = (in[i + 1] >> 8) * (2.0f / 16777216.0f), s, c;
    float r = sqrtf(-2 * logf(u));
    sincospif(a, &s, &c);
    ((float *)out)[i] = r * c + 8.0f, ((float *)out)[i + 1] = r * s + 8.0f;
}
