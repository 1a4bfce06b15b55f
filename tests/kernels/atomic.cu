// SPDX-License-Identifier: Apache-2.0
// Atomic objects of libcu++: orders and scopes, references to ordinary memory, flags, small types.
#include <cuda/atomic>
#include <cuda/std/atomic>

// RUN atomic_messages n=1024 grid=8 block=128 exact
extern "C" __global__ void atomic_messages(const unsigned *in, unsigned *out, unsigned n) {
    // Each block waits for the block before it and adds to what that one published.
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(out[n - 1]);
    unsigned per = blockDim.x, base = blockIdx.x * per;
    if (threadIdx.x == 0)
        while (ready.load(cuda::memory_order_acquire) != blockIdx.x) {
        }
    __syncthreads();
    unsigned before = blockIdx.x ? out[base - 1] : 0;
    if (base + threadIdx.x < n - 1) out[base + threadIdx.x] = before + in[base + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) ready.store(blockIdx.x + 1, cuda::std::memory_order_release);
}

// RUN atomic_flag_lock n=256 grid=4 block=64 exact
struct account {
    cuda::std::atomic_flag busy;
    unsigned long long sum;
    unsigned visits;
};
__device__ account shared_account;
extern "C" __global__ void atomic_flag_lock(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    bool done = false;
    while (!done) {
        if (!shared_account.busy.test_and_set(cuda::std::memory_order_acquire)) {
            shared_account.sum += in[i];
            if (++shared_account.visits == n) {
                out[0] = (unsigned)shared_account.sum, out[1] = (unsigned)(shared_account.sum >> 32);
                shared_account.sum = 0, shared_account.visits = 0;
            }
            done = true;
            shared_account.busy.clear(cuda::std::memory_order_release);
        }
    }
}

// RUN atomic_histogram n=1024 grid=2 block=128 exact
extern "C" __global__ void atomic_histogram(const unsigned *in, unsigned *out, unsigned n) {
    using counter = cuda::atomic<unsigned, cuda::thread_scope_block>;
    __shared__ counter bins[256];
    __shared__ unsigned char parity[64];
    for (unsigned b = threadIdx.x; b < 256; b += blockDim.x) bins[b].store(0, cuda::memory_order_relaxed);
    if (threadIdx.x < 64) parity[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        bins[in[i] & 255].fetch_add(1, cuda::memory_order_relaxed);
        cuda::atomic_ref<unsigned char, cuda::thread_scope_block> bit(parity[in[i] >> 26]);
        bit ^= (unsigned char)(1u << (in[i] & 7));
    }
    __syncthreads();
    for (unsigned b = threadIdx.x; b < 256; b += blockDim.x)
        out[blockIdx.x * 512 + b] = bins[b].load() + 1000 * parity[b & 63];
}

// RUN atomic_extremes n=64 grid=4 block=64 exact
__device__ cuda::atomic<float, cuda::thread_scope_device> highest{-1.0e30f};
__device__ cuda::atomic<int, cuda::thread_scope_device> lowest{0};
extern "C" __global__ void atomic_extremes(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, w = in[i % n] * (i + 1);
    float f = (float)(int)w;
    float seen = highest.load(cuda::memory_order_relaxed);
    while (seen < f && !highest.compare_exchange_weak(seen, f, cuda::memory_order_relaxed)) {
    }
    lowest.fetch_min((int)w);
    cuda::atomic_ref<float> sum(*(float *)&out[2]);
    sum.fetch_add((float)(w & 15), cuda::memory_order_relaxed);
    cuda::atomic_ref<double> wide(*(double *)&out[4]);
    wide += (double)(w >> 8);
    cuda::atomic_ref<short> narrow(*(short *)&out[6]);
    narrow.fetch_sub((short)(w & 7));
    cuda::atomic_ref<unsigned long long> all(*(unsigned long long *)&out[8]);
    all.fetch_or(1ull << (w & 63));
    cuda::atomic_ref<unsigned> count(out[10]);
    if (count++ == gridDim.x * blockDim.x - 1) {
        cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
        out[0] = __float_as_uint(highest.load()), out[1] = (unsigned)(int)lowest;
        highest = -1.0e30f, lowest = 0;
    }
}
