// SPDX-License-Identifier: Apache-2.0
// Tables filled by many threads at once: hash tables, sets, bloom filters, lists, union find.

__device__ unsigned count_table[2048];

// RUN hash_count n=4096 grid=8 block=256 exact
extern "C" __global__ void hash_count(const unsigned *in, unsigned *out, unsigned n) {
    // Open addressing. The number of different keys does not depend on who comes first.
    unsigned *table = count_table, size = 2048;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned key = in[i] % 700 + 1, slot = key * 2654435761u % size;
        while (true) {
            unsigned old = atomicCAS(&table[slot], 0u, key);
            if (old == 0) atomicAdd(&out[0], 1);
            if (old == 0 || old == key) break;
            slot = (slot + 1) % size;
        }
        atomicAdd(&out[1], key);
    }
}

// RUN hash_map n=2048 grid=1 block=512 exact
extern "C" __global__ void hash_map(const unsigned *in, unsigned *out, unsigned n) {
    // Filled in shared memory, then looked up: how often the key of each element occurs.
    __shared__ unsigned keys[1024], counts[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) keys[i] = counts[i] = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        unsigned key = in[i] % 500 + 1, slot = key * 40503u >> 4 & 1023;
        while (true) {
            unsigned old = atomicCAS(&keys[slot], 0u, key);
            if (old == 0 || old == key) break;
            slot = (slot + 1) & 1023;
        }
        atomicAdd(&counts[slot], 1);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        unsigned key = in[i] % 500 + 1, slot = key * 40503u >> 4 & 1023;
        while (keys[slot] != key) slot = (slot + 1) & 1023;
        out[i] = counts[slot];
    }
}

// RUN bloom_filter n=2048 grid=1 block=256 exact
extern "C" __global__ void bloom_filter(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned bits[256];
    bits[threadIdx.x] = 0;
    __syncthreads();
    auto position = [](unsigned v, unsigned k) { return (v * (2 * k + 0x9e3779b1u) >> 11) & 8191; };
    for (unsigned i = threadIdx.x; i < n / 2; i += blockDim.x)
        for (unsigned k = 0; k < 3; k++) {
            unsigned p = position(in[i], k);
            atomicOr(&bits[p / 32], 1u << p % 32);
        }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        bool maybe = true;
        for (unsigned k = 0; k < 3; k++) {
            unsigned p = position(in[i], k);
            maybe = maybe && (bits[p / 32] >> p % 32 & 1);
        }
        out[i] = maybe;
    }
}

// RUN linked_lists n=2048 grid=1 block=256 exact
extern "C" __global__ void linked_lists(const unsigned *in, unsigned *out, unsigned n) {
    // Elements are pushed in any order; each list is summed up at the end.
    __shared__ int heads[64];
    __shared__ int next[2048];
    if (threadIdx.x < 64) heads[threadIdx.x] = -1;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) next[i] = atomicExch(&heads[in[i] & 63], (int)i);
    __syncthreads();
    if (threadIdx.x < 64) {
        unsigned sum = 0, length = 0;
        for (int at = heads[threadIdx.x]; at >= 0; at = next[at]) sum += in[at], length++;
        out[2 * threadIdx.x] = sum, out[2 * threadIdx.x + 1] = length;
    }
}

__device__ unsigned find_root(volatile unsigned *parent, unsigned i) {
    while (parent[i] != i) i = parent[i];
    return i;
}

// RUN union_find n=1024 grid=1 block=256 exact
extern "C" __global__ void union_find(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned parent[1024];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) parent[i] = i;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 600; i += blockDim.x) { // edges; the smaller root wins
        unsigned a = in[i] % n, b = (in[i] >> 12) % n;
        while (true) {
            a = find_root(parent, a), b = find_root(parent, b);
            if (a == b) break;
            if (a > b) {
                unsigned t = a;
                a = b, b = t;
            }
            if (atomicCAS(&parent[b], b, a) == b) break;
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) out[i] = find_root(parent, i);
}

// RUN spin_lock n=256 grid=4 block=64 exact
__device__ int lock_word;
__device__ unsigned shared_total[2];
extern "C" __global__ void spin_lock(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock_word, 0, 1) == 0) {
            __threadfence();
            volatile unsigned *total = shared_total;
            total[0] = total[0] + in[i];
            total[1] = total[1] + 1;
            out[0] = total[0], out[1] = total[1];
            __threadfence();
            atomicExch(&lock_word, 0);
            done = true;
        }
    }
}

__device__ volatile unsigned ready[16];

// RUN flags_chain n=1024 grid=8 block=128 cooperative exact
extern "C" __global__ void flags_chain(const unsigned *in, unsigned *out, unsigned n) {
    // Each block waits for the one before it, adds its part and raises its flag.
    unsigned b = blockIdx.x, i = b * blockDim.x + threadIdx.x;
    if (b > 0) {
        if (threadIdx.x == 0)
            while (ready[b - 1] == 0) {}
        __syncthreads();
        __threadfence();
    }
    unsigned before = b > 0 ? ((volatile unsigned *)out)[i - blockDim.x] : 7;
    out[i] = before * 33 + in[i];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) ready[b] = 1;
}

// RUN atomic_float n=1024 grid=4 block=128 exact
extern "C" __global__ void atomic_float(const unsigned *in, unsigned *out, unsigned n) {
    // Whole numbers as floats and doubles: every order gives the same sum.
    float *sums = (float *)out;
    double *wide = (double *)(out + 64);
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&sums[in[i] & 15], (float)(in[i] >> 20));
        atomicAdd(&wide[in[i] & 7], (double)in[i]);
        unsigned *largest = out + 32 + (in[i] & 3); // by compare and swap, as floats compare
        float mine = (float)(in[i] >> 8);
        for (unsigned old = *(volatile unsigned *)largest; mine > __uint_as_float(old);) {
            unsigned seen = atomicCAS(largest, old, __float_as_uint(mine));
            if (seen == old) break;
            old = seen;
        }
    }
}
