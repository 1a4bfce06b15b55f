// SPDX-License-Identifier: Apache-2.0
// Copies that run beside the work: cp.async by the pipeline functions, barriers with phases.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

// RUN two_stages n=4096 grid=2 block=128 exact
extern "C" __global__ void two_stages(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ alignas(16) unsigned stage[2][512];
    unsigned t = threadIdx.x, chunks = n / gridDim.x / 512, base = blockIdx.x * (n / gridDim.x);
    __pipeline_memcpy_async(&stage[0][4 * t], in + base + 4 * t, 16);
    __pipeline_commit();
    for (unsigned c = 0; c < chunks; c++) {
        if (c + 1 < chunks)
            __pipeline_memcpy_async(&stage[(c + 1) & 1][4 * t], in + base + (c + 1) * 512 + 4 * t, 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        for (unsigned k = t; k < 512; k += 128)
            out[base + c * 512 + k] = stage[c & 1][k] + 3 * stage[c & 1][(k + 1) % 512];
        __syncthreads();
    }
}

// RUN three_stages n=3072 grid=2 block=64 exact
extern "C" __global__ void three_stages(const unsigned *in, unsigned *out, unsigned n) {
    // As many rows as there are, three in flight, with what is not there filled with zeros.
    __shared__ alignas(16) unsigned rows[3][256];
    unsigned t = threadIdx.x, half = n / gridDim.x, base = blockIdx.x * half, count = half / 256;
    auto load = [&](unsigned row) {
        if (row < count) {
            unsigned skipped = row % 2 ? 8 : 0; // half of each chunk of an odd row
            __pipeline_memcpy_async(&rows[row % 3][4 * t], in + base + row * 256 + 4 * t, 16, skipped);
        }
        __pipeline_commit();
    };
    load(0), load(1);
    for (unsigned row = 0; row < count; row++) {
        load(row + 2);
        __pipeline_wait_prior(2);
        __syncthreads();
        uint4 v = *(const uint4 *)&rows[row % 3][4 * (63 - t)];
        *(uint4 *)&out[base + row * 256 + 4 * t] = make_uint4(v.w, v.z, v.y, v.x);
        __syncthreads();
    }
}

// RUN group_copies n=2048 grid=2 block=128 exact
extern "C" __global__ void group_copies(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ alignas(16) unsigned tile[256];
    cg::thread_block block = cg::this_thread_block();
    for (unsigned base = blockIdx.x * 256; base < n; base += gridDim.x * 256) {
        cg::memcpy_async(block, tile, in + base, sizeof tile);
        cg::wait(block);
        for (unsigned k = threadIdx.x; k < 256; k += 128) out[base + k] = tile[k ^ 0x55] + k;
        block.sync();
    }
}

// RUN split_barrier n=2048 grid=2 block=128 exact
extern "C" __global__ void split_barrier(const unsigned *in, unsigned *out, unsigned n) {
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ alignas(barrier) char place[sizeof(barrier)];
    __shared__ unsigned values[128];
    barrier *gate = reinterpret_cast<barrier *>(place);
    if (threadIdx.x == 0) init(gate, blockDim.x);
    __syncthreads();
    for (unsigned base = blockIdx.x * 128; base < n; base += gridDim.x * 128) {
        values[threadIdx.x] = in[base + threadIdx.x];
        barrier::arrival_token token = gate->arrive();
        unsigned own = __popc(in[base + threadIdx.x]); // work that needs no other thread
        gate->wait(static_cast<barrier::arrival_token &&>(token));
        out[base + threadIdx.x] = own + values[(threadIdx.x * 5 + 1) % 128];
        gate->arrive_and_wait();
    }
}

// RUN producer_consumer n=2048 grid=1 block=64 exact
extern "C" __global__ void producer_consumer(const unsigned *in, unsigned *out, unsigned n) {
    // One warp fills, the other empties; two barriers for each of two buffers.
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ alignas(barrier) char place[4 * sizeof(barrier)];
    __shared__ unsigned buffer[2][32];
    barrier *full = reinterpret_cast<barrier *>(place), *empty = full + 2;
    if (threadIdx.x < 4) init(full + threadIdx.x, 64);
    __syncthreads();
    unsigned lane = threadIdx.x % 32, rounds = n / 32;
    if (threadIdx.x < 32) {
        for (unsigned r = 0; r < rounds; r++) {
            if (r >= 2) empty[r & 1].arrive_and_wait();
            buffer[r & 1][lane] = in[r * 32 + lane] * 2654435761u;
            (void)full[r & 1].arrive();
        }
    } else {
        unsigned sum = 0;
        for (unsigned r = 0; r < rounds; r++) {
            full[r & 1].arrive_and_wait();
            sum = sum * 31 + buffer[r & 1][31 - lane];
            if (r + 2 < rounds) (void)empty[r & 1].arrive();
            out[r * 32 + lane] = sum;
        }
    }
}

// RUN pipeline_object n=4096 grid=2 block=128 exact
extern "C" __global__ void pipeline_object(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ alignas(16) unsigned stage[2][128];
    cg::thread_block block = cg::this_thread_block();
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto pipe = cuda::make_pipeline(block, &state);
    unsigned half = n / gridDim.x, base = blockIdx.x * half, count = half / 128;
    auto fetch = [&](unsigned c) {
        pipe.producer_acquire();
        cuda::memcpy_async(block, stage[c & 1], in + base + c * 128, cuda::aligned_size_t<16>(512), pipe);
        pipe.producer_commit();
    };
    fetch(0);
    for (unsigned c = 0; c < count; c++) {
        if (c + 1 < count) fetch(c + 1);
        pipe.consumer_wait();
        out[base + c * 128 + threadIdx.x] = stage[c & 1][127 - threadIdx.x] ^ stage[c & 1][threadIdx.x] >> 1;
        pipe.consumer_release();
    }
}
