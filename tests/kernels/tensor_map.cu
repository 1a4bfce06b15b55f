// SPDX-License-Identifier: Apache-2.0
// FILE nvrtc arch=90a
// Boxes of tensors: 32 x 8 words of a matrix with 64 columns, swizzled over 128 bytes.
#include <cuda.h>

struct tile {
    alignas(1024) unsigned word[8][32];
    // Where the hardware put word (x, y): 16 bytes are moved together.
    __device__ unsigned &at(unsigned x, unsigned y) { return word[y][x ^ (y % 8) * 4]; }
};

__device__ static unsigned shared_address(const void *p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// All threads of the block call it.
__device__ static void load(tile &to, const CUtensorMap &map, unsigned x, unsigned y) {
    __shared__ unsigned long long barrier;
    unsigned b = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b),
                     "r"(static_cast<unsigned>(sizeof to.word))
                     : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                         shared_address(&to)),
                     "l"(&map), "r"(x), "r"(y), "r"(b)
                     : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(b)
                     : "memory");
}

__device__ static void finish() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// RUN tensor_mirror n=4096 grid=2x8 block=256 maps exact
extern "C" __global__ void tensor_mirror(const __grid_constant__ CUtensorMap in,
                                         const __grid_constant__ CUtensorMap out, unsigned n) {
    __shared__ tile from, to;
    unsigned x = threadIdx.x % 32, y = threadIdx.x / 32;
    load(from, in, blockIdx.x * 32, blockIdx.y * 8);
    to.at(31 - x, 7 - y) = from.at(x, y) + n;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
                     "[%0, {%1, %2}], [%3];" ::"l"(&out),
                     "r"(32 - blockIdx.x * 32), "r"((gridDim.y - 1 - blockIdx.y) * 8),
                     "r"(shared_address(&to))
                     : "memory");
        finish();
    }
}

// The sum of all tiles of a column of tiles; their last row is outside of the matrix.
// RUN tensor_sum n=2048 grid=2x4 block=256 maps exact
extern "C" __global__ void tensor_sum(const __grid_constant__ CUtensorMap in,
                                      const __grid_constant__ CUtensorMap out, unsigned n) {
    __shared__ tile from;
    load(from, in, blockIdx.x * 32, blockIdx.y * 8);
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
                     "[%0, {%1, %2}], [%3];" ::"l"(&out),
                     "r"(blockIdx.x * 32), "r"(n / 64 - 7), "r"(shared_address(&from))
                     : "memory");
        finish();
    }
}
