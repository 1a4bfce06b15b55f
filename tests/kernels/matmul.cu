// SPDX-License-Identifier: Apache-2.0
// Products, transposes and factorizations of matrices, with shared memory and registers.

// RUN transpose_plain n=4096 grid=4x4 block=16x16 exact
extern "C" __global__ void transpose_plain(const unsigned *in, unsigned *out, unsigned n) {
    unsigned x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    out[x * 64 + y] = in[y * 64 + x];
}

// RUN transpose_tiled n=4096 grid=2x2 block=32x8 exact
extern "C" __global__ void transpose_tiled(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned tile[32][33];
    unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (unsigned j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * 64 + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (unsigned j = 0; j < 32; j += 8) out[(y + j) * 64 + x] = tile[threadIdx.x][threadIdx.y + j];
}

// RUN transpose_warp n=1024 grid=1 block=32 exact
extern "C" __global__ void transpose_warp(const unsigned *in, unsigned *out, unsigned n) {
    // A matrix of 32 by 32 bits in each group of 32 words: five steps of exchanged halves.
    unsigned lane = threadIdx.x;
    for (unsigned base = 0; base < n; base += 32) {
        unsigned row = in[base + lane];
        unsigned mask = 0x0000ffff;
        for (unsigned s = 16; s > 0; s >>= 1, mask ^= mask << s) {
            unsigned other = __shfl_xor_sync(~0u, row, s);
            row = lane & s ? (row & ~mask) | ((other & ~mask) >> s) : (row & mask) | ((other & mask) << s);
        }
        out[base + lane] = row;
    }
}

// RUN matmul_naive n=1024 grid=2x2 block=16x16 exact
extern "C" __global__ void matmul_naive(const unsigned *in, unsigned *out, unsigned n) {
    unsigned column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y, sum = 0;
    for (unsigned k = 0; k < 32; k++) sum += in[row * 32 + k] * in[k * 32 + column];
    out[row * 32 + column] = sum;
}

// RUN matmul_tiled n=4096 grid=4x4 block=16x16 exact
extern "C" __global__ void matmul_tiled(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ int a[16][16], b[16][17];
    const unsigned W = 64;
    unsigned tx = threadIdx.x, ty = threadIdx.y;
    unsigned column = blockIdx.x * 16 + tx, row = blockIdx.y * 16 + ty;
    int sum = 0;
    for (unsigned k0 = 0; k0 < W; k0 += 16) {
        a[ty][tx] = (int)in[row * W + k0 + tx] >> 20;
        b[ty][tx] = (int)in[(k0 + ty) * W + column] >> 22;
        __syncthreads();
#pragma unroll
        for (unsigned k = 0; k < 16; k++) sum += a[ty][k] * b[k][tx];
        __syncthreads();
    }
    out[row * W + column] = (unsigned)sum;
}

// RUN matmul_registers n=4096 grid=2x2 block=8x8 loose=1e-4
extern "C" __global__ void matmul_registers(const unsigned *in, unsigned *out, unsigned n) {
    // Each thread computes 4 by 4 elements of a tile of 32 by 32.
    __shared__ float a[8][32], b[8][32];
    const unsigned W = 64;
    unsigned t = threadIdx.y * 8 + threadIdx.x;
    float c[4][4] = {};
    for (unsigned k0 = 0; k0 < W; k0 += 8) {
        for (unsigned i = t; i < 256; i += 64) {
            a[i % 8][i / 8] = (in[(blockIdx.y * 32 + i / 8) * W + k0 + i % 8] >> 16) * (1 / 65536.0f);
            b[i / 32][i % 32] = (in[(k0 + i / 32) * W + blockIdx.x * 32 + i % 32] & 0xffff) * (1 / 65536.0f);
        }
        __syncthreads();
#pragma unroll
        for (unsigned k = 0; k < 8; k++) {
            float left[4], right[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                left[i] = a[k][threadIdx.y * 4 + i];
                right[i] = b[k][threadIdx.x * 4 + i];
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) c[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++) {
        unsigned row = blockIdx.y * 32 + threadIdx.y * 4 + i, column = blockIdx.x * 32 + threadIdx.x * 4;
        *(float4 *)&((float *)out)[row * W + column] = make_float4(c[i][0], c[i][1], c[i][2], c[i][3]);
    }
}

// RUN matmul_dp4a n=1024 grid=2x2 block=16x16 exact
extern "C" __global__ void matmul_dp4a(const unsigned *in, unsigned *out, unsigned n) {
    // Rows of 32 words of four signed bytes each.
    unsigned column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    int sum = 0;
    unsigned other = 0;
    for (unsigned k = 0; k < 32; k++) {
        sum = __dp4a((int)in[row * 32 + k], (int)in[column * 32 + k], sum);
        other = __dp4a(in[row * 32 + k], in[column * 32 + k], other);
    }
    out[row * 32 + column] = (unsigned)sum ^ other << 3;
}

// RUN matvec_warp n=4096 grid=8 block=256 exact
extern "C" __global__ void matvec_warp(const unsigned *in, unsigned *out, unsigned n) {
    unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    unsigned long long sum = 0;
    for (unsigned k = lane; k < 64; k += 32) sum += (unsigned long long)in[row * 64 + k] * in[k];
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) {
        out[2 * row] = (unsigned)sum;
        out[2 * row + 1] = (unsigned)(sum >> 32);
    }
}

// RUN cholesky n=256 grid=1 block=16x16 loose=1e-4
extern "C" __global__ void cholesky(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ float a[16][17];
    unsigned x = threadIdx.x, y = threadIdx.y;
    unsigned low = min(x, y), high = max(x, y);
    a[y][x] = (in[high * 16 + low] & 0xff) / 256.0f + (x == y ? 20.0f : 0.0f);
    for (unsigned k = 0; k < 16; k++) {
        __syncthreads();
        if (x == k && y == k) a[k][k] = sqrtf(a[k][k]);
        __syncthreads();
        if (x == k && y > k) a[y][k] /= a[k][k];
        __syncthreads();
        if (x > k && y >= x) a[y][x] -= a[y][k] * a[x][k];
    }
    __syncthreads();
    ((float *)out)[y * 16 + x] = y >= x ? a[y][x] : 0.0f;
}

// RUN lu_pivot n=256 grid=1 block=16x16 exact
extern "C" __global__ void lu_pivot(const unsigned *in, unsigned *out, unsigned n) {
    // Modulo a prime, so that the result is exact: the inverse by Fermat's little theorem.
    const unsigned long long P = 2147483647;
    __shared__ unsigned long long a[16][16], inverse;
    __shared__ unsigned pivot;
    unsigned x = threadIdx.x, y = threadIdx.y;
    a[y][x] = in[y * 16 + x] % 7 == 0 ? 0 : in[y * 16 + x] % P;
    for (unsigned k = 0; k < 16; k++) {
        __syncthreads();
        if (x == 0 && y == 0) {
            pivot = k;
            while (pivot < 15 && a[pivot][k] == 0) pivot++;
            unsigned long long base = a[pivot][k], power = 1;
            for (unsigned e = (unsigned)P - 2; e; e >>= 1, base = base * base % P)
                if (e & 1) power = power * base % P;
            inverse = power;
        }
        __syncthreads();
        unsigned long long swap = y == k ? a[pivot][x] : a[k][x];
        bool moves = y == k || y == pivot;
        __syncthreads();
        if (moves) a[y][x] = swap;
        __syncthreads();
        unsigned long long factor = a[y][k] * inverse % P;
        __syncthreads();
        if (y > k && x > k) a[y][x] = (a[y][x] + P * P - factor * a[k][x]) % P;
        if (y > k && x == k) a[y][k] = factor;
    }
    __syncthreads();
    out[y * 16 + x] = (unsigned)a[y][x];
}

// RUN jacobi_solve n=1024 grid=1 block=32 loose=1e-4
extern "C" __global__ void jacobi_solve(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ float x[32];
    unsigned row = threadIdx.x;
    float b = (float)(in[row] & 0xff), diagonal = 64.0f;
    x[row] = 0;
    __syncwarp();
    for (int step = 0; step < 30; step++) {
        float sum = b;
        for (unsigned k = 0; k < 32; k++)
            if (k != row) sum -= (float)(in[row * 32 + k] >> 30) * x[k];
        __syncwarp();
        x[row] = sum / diagonal;
        __syncwarp();
    }
    ((float *)out)[row] = x[row];
}
