// SPDX-License-Identifier: Apache-2.0
// The parts of networks: softmax, norms, attention, convolution, activations, an optimizer.

__device__ float value(const unsigned *in, unsigned i) { return (int)(in[i] & 0xffff) / 16384.0f - 2.0f; }

__device__ float warp_max(float v) {
    for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    return v;
}
__device__ float warp_sum(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    return v;
}

// RUN softmax_rows n=2048 grid=4 block=128 loose=1e-4
extern "C" __global__ void softmax_rows(const unsigned *in, unsigned *out, unsigned n) {
    unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float v[4], top = -1e30f, sum = 0;
    for (int k = 0; k < 4; k++) top = fmaxf(top, v[k] = value(in, row * 128 + k * 32 + lane));
    top = warp_max(top);
    for (int k = 0; k < 4; k++) sum += v[k] = expf(v[k] - top);
    sum = warp_sum(sum);
    for (int k = 0; k < 4; k++) ((float *)out)[row * 128 + k * 32 + lane] = v[k] / sum;
}

// RUN softmax_online n=2048 grid=1 block=16 loose=1e-4
extern "C" __global__ void softmax_online(const unsigned *in, unsigned *out, unsigned n) {
    unsigned row = threadIdx.x;
    float top = -__int_as_float(0x7f800000), sum = 0;
    for (unsigned k = 0; k < 128; k++) {
        float v = value(in, row * 128 + k), larger = fmaxf(top, v);
        sum = sum * __expf(top - larger) + __expf(v - larger);
        top = larger;
    }
    for (unsigned k = 0; k < 128; k++)
        ((float *)out)[row * 128 + k] = __expf(value(in, row * 128 + k) - top) / sum;
}

// RUN layer_norm n=2048 grid=8 block=128 loose=1e-3
extern "C" __global__ void layer_norm(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ float sums[4], squares[4];
    unsigned t = threadIdx.x, base = blockIdx.x * 256;
    float a = value(in, base + t), b = value(in, base + t + 128);
    float s = warp_sum(a + b), q = warp_sum(a * a + b * b);
    if (t % 32 == 0) sums[t / 32] = s, squares[t / 32] = q;
    __syncthreads();
    s = sums[0] + sums[1] + sums[2] + sums[3], q = squares[0] + squares[1] + squares[2] + squares[3];
    float mean = s / 256, scale = rsqrtf(q / 256 - mean * mean + 1e-5f);
    ((float *)out)[base + t] = (a - mean) * scale * 0.5f + 1.0f;
    ((float *)out)[base + t + 128] = (b - mean) * scale * 0.5f + 1.0f;
}

// RUN attention_tile n=3072 grid=1 block=32 loose=1e-3
extern "C" __global__ void attention_tile(const unsigned *in, unsigned *out, unsigned n) {
    // 32 queries, keys and values of 32 dimensions; a thread has a query, keys come in tiles of 8.
    __shared__ float keys[8][32], values[8][32];
    unsigned t = threadIdx.x;
    float q[32], o[32] = {}, top = -1e30f, sum = 0;
    for (int d = 0; d < 32; d++) q[d] = value(in, t * 32 + d) * 0.17677669f;
    for (unsigned tile = 0; tile < 32; tile += 8) {
        __syncwarp();
        for (unsigned i = t; i < 256; i += 32) {
            keys[i / 32][i % 32] = value(in, 1024 + tile * 32 + i);
            values[i / 32][i % 32] = value(in, 2048 + tile * 32 + i) + 3.0f;
        }
        __syncwarp();
        for (int k = 0; k < 8; k++) {
            float s = 0;
            for (int d = 0; d < 32; d++) s += q[d] * keys[k][d];
            float larger = fmaxf(top, s), old = expf(top - larger), p = expf(s - larger);
            sum = sum * old + p;
            for (int d = 0; d < 32; d++) o[d] = o[d] * old + p * values[k][d];
            top = larger;
        }
    }
    for (int d = 0; d < 32; d++) ((float *)out)[t * 32 + d] = o[d] / sum;
}

// RUN conv2d n=2048 grid=4 block=16x16 loose=1e-3
extern "C" __global__ void conv2d(const unsigned *in, unsigned *out, unsigned n) {
    // Two channels of 16 by 16 to four, with filters of 3 by 3 in shared memory.
    __shared__ float filter[2][9], plane[2][18][18];
    unsigned x = threadIdx.x, y = threadIdx.y, t = y * 16 + x;
    for (unsigned i = t; i < 2 * 18 * 18; i += 256) (&plane[0][0][0])[i] = 0;
    if (t < 18) filter[t / 9][t % 9] = value(in, 1024 + blockIdx.x * 18 + t);
    __syncthreads();
    for (int c = 0; c < 2; c++) plane[c][y + 1][x + 1] = value(in, c * 256 + t) + 2.5f;
    __syncthreads();
    float sum = 40.0f;
#pragma unroll
    for (int c = 0; c < 2; c++)
#pragma unroll
        for (int k = 0; k < 9; k++) sum += filter[c][k] * plane[c][y + k / 3][x + k % 3];
    ((float *)out)[blockIdx.x * 256 + t] = fmaxf(sum, 0.0f);
}

// RUN activations n=1024 grid=4 block=256 loose=1e-4
extern "C" __global__ void activations(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = value(in, i);
    float gelu = 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    float silu = x / (1.0f + expf(-x)), plus = log1pf(expf(x)), elu = x > 0 ? x : expm1f(x);
    ((float *)out)[i] = gelu + silu + plus + elu + 4.0f + erff(x) + exp2f(x);
}

// RUN adam_steps n=1024 grid=4 block=256 loose=1e-3
extern "C" __global__ void adam_steps(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float weight = value(in, i) + 3.0f, m = 0, v = 0;
    for (int step = 1; step <= 10; step++) {
        float gradient = 2 * weight - 1;
        m = 0.9f * m + 0.1f * gradient;
        v = 0.999f * v + 0.001f * gradient * gradient;
        float mh = m / (1 - powf(0.9f, step)), vh = v / (1 - powf(0.999f, step));
        weight -= 0.01f * mh / (sqrtf(vh) + 1e-8f);
    }
    ((float *)out)[i] = weight;
}

// RUN argmax_rows n=2048 grid=4 block=128 exact
extern "C" __global__ void argmax_rows(const unsigned *in, unsigned *out, unsigned n) {
    unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float best = -1e30f;
    int where = 0;
    for (unsigned k = lane; k < 128; k += 32) {
        float v = value(in, row * 128 + k);
        if (v > best) best = v, where = (int)k;
    }
    for (int d = 16; d > 0; d /= 2) {
        float other = __shfl_xor_sync(~0u, best, d);
        int there = __shfl_xor_sync(~0u, where, d);
        if (other > best || (other == best && there < where)) best = other, where = there;
    }
    if (lane == 0) out[row] = (unsigned)where;
}
