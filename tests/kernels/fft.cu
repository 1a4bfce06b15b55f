// SPDX-License-Identifier: Apache-2.0
// Transforms: Fourier's with floats, with whole numbers modulo a prime, Walsh's, Haar's, cosines.

// RUN fft_radix2 n=1024 grid=2 block=128 loose=1e-3
extern "C" __global__ void fft_radix2(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ float2 data[256];
    unsigned t = threadIdx.x, base = blockIdx.x * 256;
    for (unsigned i = t; i < 256; i += 128)
        data[__brev(i) >> 24] = make_float2((in[base + i] & 1023) / 1024.0f, 0);
    for (unsigned size = 2; size <= 256; size *= 2) {
        __syncthreads();
        unsigned half = size / 2, k = t % half, a = t / half * size + k;
        float s, c;
        sincospif(-2.0f * k / size, &s, &c);
        float2 u = data[a], v = data[a + half];
        float2 w = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
        data[a] = make_float2(u.x + w.x, u.y + w.y);
        data[a + half] = make_float2(u.x - w.x, u.y - w.y);
    }
    __syncthreads();
    for (unsigned i = t; i < 256; i += 128)
        ((float *)out)[base + i] = data[i].x * data[i].x + data[i].y * data[i].y;
}

__device__ unsigned mul_mod(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b % 998244353u);
}

__device__ unsigned pow_mod(unsigned base, unsigned e) {
    unsigned r = 1;
    for (; e; e >>= 1, base = mul_mod(base, base))
        if (e & 1) r = mul_mod(r, base);
    return r;
}

// RUN number_transform n=512 grid=2 block=128 exact
extern "C" __global__ void number_transform(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned data[256];
    const unsigned P = 998244353u;
    unsigned t = threadIdx.x, base = blockIdx.x * 256;
    for (unsigned i = t; i < 256; i += 128) data[__brev(i) >> 24] = in[base + i] % P;
    for (unsigned size = 2; size <= 256; size *= 2) {
        __syncthreads();
        unsigned half = size / 2, k = t % half, a = t / half * size + k;
        unsigned w = pow_mod(pow_mod(3, (P - 1) / size), k);
        unsigned u = data[a], v = mul_mod(data[a + half], w);
        data[a] = (u + v) % P;
        data[a + half] = (u + P - v) % P;
    }
    __syncthreads();
    for (unsigned i = t; i < 256; i += 128) out[base + i] = data[i];
}

// RUN walsh n=2048 grid=8 block=256 exact
extern "C" __global__ void walsh(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned data[256];
    unsigned t = threadIdx.x, v = in[blockIdx.x * 256 + t];
    for (unsigned d = 1; d < 32; d *= 2) { // within a warp without shared memory
        unsigned other = __shfl_xor_sync(~0u, v, d);
        v = t & d ? other - v : v + other;
    }
    for (unsigned d = 32; d < 256; d *= 2) {
        data[t] = v;
        __syncthreads();
        unsigned other = data[t ^ d];
        v = t & d ? other - v : v + other;
        __syncthreads();
    }
    out[blockIdx.x * 256 + t] = v;
}

// RUN haar_wavelet n=1024 grid=1 block=512 exact
extern "C" __global__ void haar_wavelet(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ int data[1024];
    unsigned t = threadIdx.x;
    data[t] = (int)in[t] >> 8, data[t + 512] = (int)in[t + 512] >> 8;
    for (unsigned count = 512; count > 0; count /= 2) {
        __syncthreads();
        int a = 0, b = 0;
        if (t < count) a = data[2 * t], b = data[2 * t + 1];
        __syncthreads();
        if (t < count) {
            data[t] = (a + b) >> 1;
            data[count + t] = a - b;
        }
    }
    __syncthreads();
    out[t] = (unsigned)data[t], out[t + 512] = (unsigned)data[t + 512];
}

__constant__ short dct_table[8][8] = {
    {91, 91, 91, 91, 91, 91, 91, 91},         {126, 106, 71, 25, -25, -71, -106, -126},
    {118, 49, -49, -118, -118, -49, 49, 118}, {106, -25, -126, -71, 71, 126, 25, -106},
    {91, -91, -91, 91, 91, -91, -91, 91},     {71, -126, 25, 106, -106, -25, 126, -71},
    {49, -118, 118, -49, -49, 118, -118, 49}, {25, -71, 106, -126, 126, -106, 71, -25}};

// RUN cosine_blocks n=4096 grid=8x8 block=8x8 exact
extern "C" __global__ void cosine_blocks(const unsigned *in, unsigned *out, unsigned n) {
    // The transform of JPEG in whole numbers, quantized.
    __shared__ int block[8][8], rows[8][8];
    unsigned x = threadIdx.x, y = threadIdx.y, i = (blockIdx.y * 8 + y) * 64 + blockIdx.x * 8 + x;
    block[y][x] = (int)(in[i] & 255) - 128;
    __syncthreads();
    int sum = 0;
    for (int k = 0; k < 8; k++) sum += block[y][k] * dct_table[x][k];
    rows[y][x] = sum;
    __syncthreads();
    sum = 0;
    for (int k = 0; k < 8; k++) sum += rows[k][x] * dct_table[y][k];
    out[i] = (unsigned)((sum >> 16) / (int)(4 + x + y));
}

// RUN convolve_1d n=2048 grid=8 block=256 exact
extern "C" __global__ void convolve_1d(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned tile[256 + 14];
    int i = blockIdx.x * 256 + threadIdx.x;
    for (int k = threadIdx.x; k < 270; k += 256) {
        int at = (int)blockIdx.x * 256 + k - 7;
        tile[k] = at >= 0 && at < (int)n ? in[at] >> 8 : 0;
    }
    __syncthreads();
    unsigned sum = 0;
#pragma unroll
    for (int k = 0; k < 15; k++) sum += tile[threadIdx.x + k] * (unsigned)(8 - abs(k - 7));
    out[i] = sum;
}
