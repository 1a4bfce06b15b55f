// SPDX-License-Identifier: Apache-2.0
// Counting with atomics in global and shared memory, by warps, and without any.

// RUN histogram_global n=4096 grid=8 block=256 exact
extern "C" __global__ void histogram_global(const unsigned *in, unsigned *out, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&out[in[i] >> 24], 1);
}

// RUN histogram_shared n=5000 grid=4 block=256 exact
extern "C" __global__ void histogram_shared(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        for (unsigned byte = 0; byte < 4; byte++) atomicAdd(&bins[in[i] >> 8 * byte & 255], 1);
    __syncthreads();
    if (bins[threadIdx.x]) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

// RUN histogram_match n=2048 grid=4 block=128 exact
extern "C" __global__ void histogram_match(const unsigned *in, unsigned *out, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned bin = in[i] % 11;
        unsigned peers = __match_any_sync(__activemask(), bin);
        if ((int)(threadIdx.x & 31) == __ffs(peers) - 1) atomicAdd(&out[bin], __popc(peers));
    }
}

// RUN histogram_private n=4096 grid=2 block=64 exact
extern "C" __global__ void histogram_private(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned char counts[64][68]; // padded: no conflicts of banks
    unsigned t = threadIdx.x, half = n / gridDim.x;
    for (unsigned b = 0; b < 64; b++) counts[t][b] = 0;
    for (unsigned i = t; i < half; i += 64) counts[t][in[blockIdx.x * half + i] & 63]++;
    __syncthreads();
    unsigned sum = 0;
    for (unsigned other = 0; other < 64; other++) sum += counts[other][t];
    out[blockIdx.x * 64 + t] = sum;
}

// RUN histogram_packed n=4096 grid=4 block=128 exact
extern "C" __global__ void histogram_packed(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned long long bins[16]; // four counts of 16 bits in each
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned bin = in[i] & 63;
        atomicAdd(&bins[bin / 4], 1ull << 16 * (bin % 4));
    }
    __syncthreads();
    if (threadIdx.x < 64)
        atomicAdd(&out[threadIdx.x],
                  (unsigned)(bins[threadIdx.x / 4] >> 16 * (threadIdx.x % 4)) & 0xffff);
}

// RUN histogram_extremes n=3000 grid=6 block=100 exact
extern "C" __global__ void histogram_extremes(const unsigned *in, unsigned *out, unsigned n) {
    // Count, largest, inverted smallest, and all bits, of each of 32 classes.
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned *o = out + (in[i] & 31) * 4, v = in[i] >> 5;
        atomicInc(&o[0], 0xffffffffu);
        atomicMax(&o[1], v);
        atomicMax((int *)&o[2], (int)~v & 0x7fffffff);
        atomicOr(&o[3], 1u << (v & 31));
    }
}

// RUN aggregated_atomics n=4096 grid=8 block=128 exact
extern "C" __global__ void aggregated_atomics(const unsigned *in, unsigned *out, unsigned n) {
    // Places are given out in any order; what is stored does not depend on it.
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        if (in[i] % 5 != 0) continue;
        unsigned active = __activemask(), lane = threadIdx.x & 31, leader = __ffs(active) - 1, at;
        if (lane == leader) at = atomicAdd(&out[0], __popc(active));
        at = __shfl_sync(active, at, leader) + __popc(active & ((1u << lane) - 1));
        atomicExch(&out[1 + at], 5u);
    }
}
