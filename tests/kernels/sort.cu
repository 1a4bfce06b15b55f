// SPDX-License-Identifier: Apache-2.0
// Sorting in a block and over the grid, merging, selecting.

// RUN sort_bitonic n=2048 grid=4 block=256 exact
extern "C" __global__ void sort_bitonic(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned keys[512];
    unsigned base = blockIdx.x * 512, t = threadIdx.x;
    for (unsigned i = t; i < 512; i += blockDim.x) keys[i] = in[base + i];
    for (unsigned size = 2; size <= 512; size *= 2) {
        for (unsigned stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            unsigned a = 2 * t - (t & (stride - 1)), b = a + stride;
            bool up = (a & size) == 0;
            if ((keys[a] > keys[b]) == up) {
                unsigned k = keys[a];
                keys[a] = keys[b];
                keys[b] = k;
            }
        }
    }
    __syncthreads();
    for (unsigned i = t; i < 512; i += blockDim.x) out[base + i] = keys[i];
}

// RUN sort_odd_even n=512 grid=2 block=128 exact
extern "C" __global__ void sort_odd_even(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ int keys[256];
    unsigned base = blockIdx.x * 256, t = threadIdx.x;
    keys[t] = (int)in[base + t];
    keys[t + 128] = (int)in[base + t + 128];
    __syncthreads();
    for (unsigned round = 0; round < 256; round++) {
        unsigned a = 2 * t + (round & 1);
        if (a + 1 < 256 && keys[a] > keys[a + 1]) {
            int k = keys[a];
            keys[a] = keys[a + 1], keys[a + 1] = k;
        }
        __syncthreads();
    }
    out[base + t] = (unsigned)keys[t];
    out[base + t + 128] = (unsigned)keys[t + 128];
}

// RUN sort_radix n=1024 grid=4 block=256 exact
extern "C" __global__ void sort_radix(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned keys[256], zeros[8];
    unsigned t = threadIdx.x, lane = t & 31, warp = t >> 5, key = in[blockIdx.x * 256 + t];
    for (unsigned bit = 0; bit < 32; bit++) {
        bool one = key >> bit & 1;
        unsigned votes = __ballot_sync(~0u, !one);
        if (lane == 0) zeros[warp] = __popc(votes);
        __syncthreads();
        unsigned before = 0, all = 0;
        for (unsigned w = 0; w < 8; w++) {
            if (w < warp) before += zeros[w];
            all += zeros[w];
        }
        before += __popc(votes & ((1u << lane) - 1));
        keys[one ? all + t - before : before] = key;
        __syncthreads();
        key = keys[t];
    }
    out[blockIdx.x * 256 + t] = key;
}

// RUN sort_rank n=600 grid=3 block=200 exact
extern "C" __global__ void sort_rank(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = in[i] >> 24, rank = 0; // many equal ones: the order of equals is kept
    for (unsigned j = 0; j < n; j++) {
        unsigned other = in[j] >> 24;
        rank += other < key || (other == key && j < i);
    }
    out[rank] = in[i];
}

__device__ unsigned lower_bound(const unsigned *keys, unsigned count, unsigned key) {
    unsigned low = 0, high = count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (keys[middle] < key) low = middle + 1;
        else high = middle;
    }
    return low;
}

// RUN sort_merge n=1024 grid=1 block=512 exact
extern "C" __global__ void sort_merge(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned lists[2][1024];
    unsigned from = 0;
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x)
        lists[0][i] = (in[i] & ~1023u) | i; // all different
    __syncthreads();
    for (unsigned run = 1; run < 1024; run *= 2, from = 1 - from) {
        for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) {
            unsigned base = i & ~(2 * run - 1), mine = (i - base) / run, at = (i - base) % run;
            const unsigned *other = &lists[from][base + (1 - mine) * run];
            unsigned key = lists[from][i];
            lists[1 - from][base + at + lower_bound(other, run, key)] = key;
        }
        __syncthreads();
    }
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) out[i] = lists[from][i];
}

// RUN top_k n=4096 grid=1 block=256 exact
extern "C" __global__ void top_k(const unsigned *in, unsigned *out, unsigned n) {
    // The 16 largest: each thread keeps its own sorted list, then lists are merged in pairs.
    enum { K = 16 };
    __shared__ unsigned best[256][K + 1];
    unsigned mine[K] = {0};
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        unsigned v = in[i];
#pragma unroll
        for (int k = 0; k < K; k++) {
            unsigned larger = max(mine[k], v);
            v = min(mine[k], v);
            mine[k] = larger;
        }
    }
    for (int k = 0; k < K; k++) best[threadIdx.x][k] = mine[k];
    for (unsigned half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            unsigned *a = best[threadIdx.x], *b = best[threadIdx.x + half], ia = 0, ib = 0;
            unsigned merged[K];
            for (int k = 0; k < K; k++) merged[k] = a[ia] >= b[ib] ? a[ia++] : b[ib++];
            for (int k = 0; k < K; k++) a[k] = merged[k];
        }
    }
    __syncthreads();
    if (threadIdx.x < K) out[threadIdx.x] = best[0][threadIdx.x];
}

// RUN quick_select n=2048 grid=1 block=256 exact
extern "C" __global__ void quick_select(const unsigned *in, unsigned *out, unsigned n) {
    // The median and the quartiles, a bit at a time from the top.
    for (unsigned q = 1; q <= 3; q++) {
        unsigned rank = n / 4 * q, prefix = 0;
        for (int bit = 31; bit >= 0; bit--) {
            unsigned zeros = 0;
            for (unsigned base = 0; base < n; base += blockDim.x) {
                unsigned v = in[base + threadIdx.x];
                bool same = bit == 31 || v >> (bit + 1) == prefix >> (bit + 1);
                zeros += __syncthreads_count(same && !(v >> bit & 1));
            }
            if (rank >= zeros) {
                rank -= zeros;
                prefix |= 1u << bit;
            }
        }
        if (threadIdx.x == 0) out[q - 1] = prefix;
    }
}
