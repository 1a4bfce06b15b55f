// SPDX-License-Identifier: Apache-2.0
// Barriers, latches, semaphores and pipelines of libcu++ in their other forms.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/utility>

namespace cg = cooperative_groups;

// RUN barrier_copies n=2048 grid=2 block=64 exact
extern "C" __global__ void barrier_copies(const unsigned *in, unsigned *out, unsigned n) {
    // Copies of one thread, of a group, and from shared to shared memory, all for one barrier.
    __shared__ cuda::barrier<cuda::thread_scope_block> gate;
    __shared__ __align__(16) unsigned tile[256], copy[256];
    cg::thread_block block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&gate, block.size());
    block.sync();
    for (unsigned base = blockIdx.x * 256; base < n; base += gridDim.x * 256) {
        if (threadIdx.x == 0) cuda::memcpy_async(tile, in + base, 256, gate);
        cuda::memcpy_async(block, tile + 64, in + base + 64, cuda::aligned_size_t<16>(256), gate);
        cuda::memcpy_async(block, tile + 129, in + base + 129, sizeof(unsigned) * 127, gate);
        if (threadIdx.x == 1) tile[128] = 5;
        gate.wait(gate.arrive());
        cuda::memcpy_async(block, copy, tile, sizeof tile, gate);
        gate.arrive_and_wait();
        for (unsigned k = threadIdx.x; k < 256; k += 64) out[base + k] = copy[k] + 3 * tile[255 - k];
        gate.arrive_and_wait();
    }
}

struct halve {
    unsigned *sum;
    __device__ void operator()() { *sum /= 2; }
};

// RUN barrier_completion n=256 grid=1 block=64 exact
extern "C" __global__ void barrier_completion(const unsigned *in, unsigned *out, unsigned n) {
    // The last thread of each phase halves the sum; threads leave one by one.
    using barrier = cuda::barrier<cuda::thread_scope_block, halve>;
    __shared__ __align__(16) char place[sizeof(barrier)];
    __shared__ unsigned sum;
    barrier &gate = *(barrier *)place;
    if (threadIdx.x == 0) sum = 0, init(&gate, 64, halve{&sum});
    __syncthreads();
    for (unsigned round = 0; round < 3; round++) {
        atomicAdd(&sum, in[round * 64 + threadIdx.x] >> 8);
        gate.arrive_and_wait();
        out[round * 64 + threadIdx.x] = sum + threadIdx.x;
        gate.arrive_and_wait();
    }
    if (threadIdx.x & 1) {
        gate.arrive_and_drop();
        return;
    }
    gate.arrive_and_wait();
    atomicAdd(&sum, 1u << 20);
    gate.wait(gate.arrive());
    out[192 + threadIdx.x] = sum;
}

// RUN barrier_of_device n=512 grid=4 block=32 exact cooperative
__device__ cuda::barrier<cuda::thread_scope_device> between_blocks;
__device__ unsigned turn;
extern "C" __global__ void barrier_of_device(const unsigned *in, unsigned *out, unsigned n) {
    // Threads of all blocks; one prepares the barrier, the others wait until it is there.
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(turn);
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) {
        init(&between_blocks, 128);
        ready.store(1, cuda::memory_order_release);
    }
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
    for (unsigned round = 0; round < 4; round++) {
        out[round * 128 + i] = in[round * 128 + i] + (round ? out[(round - 1) * 128 + (i * 5 + 1) % 128] : 0);
        auto token = between_blocks.arrive();
        between_blocks.wait(cuda::std::move(token));
    }
    if (i == 0) ready.store(0);
}

// RUN latch_and_semaphore n=128 grid=1 block=128 exact
extern "C" __global__ void latch_and_semaphore(const unsigned *in, unsigned *out, unsigned n) {
    using latch = cuda::latch<cuda::thread_scope_block>;
    using semaphore = cuda::counting_semaphore<cuda::thread_scope_block, 4>;
    __shared__ __align__(16) char places[2][16];
    __shared__ unsigned values[128], inside, most;
    latch &loaded = *(latch *)places[0];
    semaphore &seats = *(semaphore *)places[1];
    if (threadIdx.x == 0) {
        new (places[0]) latch(128);
        new (places[1]) semaphore(4);
        inside = most = 0;
    }
    __syncthreads();
    values[threadIdx.x] = in[threadIdx.x];
    loaded.arrive_and_wait();
    for (bool done = false; !done;) {
        if (seats.try_acquire()) {
            atomicMax(&most, atomicAdd(&inside, 1) + 1);
            atomicSub(&inside, 1);
            seats.release();
            done = true;
        }
    }
    __syncthreads();
    out[threadIdx.x] = values[127 - threadIdx.x] + (most >= 1 && most <= 4) + loaded.try_wait();
}

// RUN pipeline_of_thread n=2048 grid=2 block=64 exact
extern "C" __global__ void pipeline_of_thread(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ __align__(16) uint4 stage[4][64];
    auto pipe = cuda::make_pipeline();
    unsigned half = n / gridDim.x / 4, base = blockIdx.x * half, count = half / 64;
    const uint4 *from = (const uint4 *)in + base;
    unsigned filled = 0;
    for (unsigned c = 0; c < count; c++) {
        for (; filled < count && filled < c + 3; filled++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[filled % 4][threadIdx.x], &from[filled * 64 + threadIdx.x],
                               cuda::aligned_size_t<16>(sizeof(uint4)), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        uint4 v = stage[c % 4][threadIdx.x];
        ((uint4 *)out)[base + c * 64 + threadIdx.x] = make_uint4(v.y, v.x, v.w + c, v.z);
        pipe.consumer_release();
    }
}

// RUN pipeline_of_roles n=2048 grid=1 block=96 exact
extern "C" __global__ void pipeline_of_roles(const unsigned *in, unsigned *out, unsigned n) {
    // The first warp loads for the two others.
    __shared__ __align__(16) unsigned stage[3][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 3> state;
    cg::thread_block block = cg::this_thread_block();
    bool loads = threadIdx.x < 32;
    auto role = loads ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    for (unsigned c = 0; c < n / 64; c++) {
        if (loads) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[c % 3][2 * threadIdx.x], in + c * 64 + 2 * threadIdx.x,
                               cuda::aligned_size_t<8>(8), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            unsigned k = threadIdx.x - 32;
            out[c * 64 + k] = stage[c % 3][63 - k] + stage[c % 3][k];
            pipe.consumer_release();
        }
    }
}
