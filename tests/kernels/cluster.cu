// SPDX-License-Identifier: Apache-2.0
// FILE nvrtc arch=90a
// Blocks that work together in clusters: shared memory of others, barriers, bulk copies.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// RUN cluster_sum n=2048 grid=8 block=256 cluster=4 exact
extern "C" __global__ void cluster_sum(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned sum;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
    cluster.sync();
    if (threadIdx.x == 0) {
        unsigned all = 0;
        for (unsigned r = 0; r < cluster.num_blocks(); r++) all += *cluster.map_shared_rank(&sum, r);
        out[blockIdx.x] = all + cluster.block_rank();
    }
    cluster.sync();
}

// RUN cluster_histogram n=4096 grid=4 block=128 cluster=2 exact
extern "C" __global__ void cluster_histogram(const unsigned *in, unsigned *out, unsigned n) {
    // Each block of the cluster keeps one half of the bins.
    __shared__ unsigned bins[64];
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x < 64) bins[threadIdx.x] = 0;
    cluster.sync();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned bin = in[i] & 127;
        atomicAdd(cluster.map_shared_rank(&bins[bin % 64], bin / 64), 1);
    }
    cluster.sync();
    if (threadIdx.x < 64) atomicAdd(&out[cluster.block_rank() * 64 + threadIdx.x], bins[threadIdx.x]);
}

// RUN cluster_ring n=1024 grid=8 block=128 cluster=8 exact
extern "C" __global__ void __cluster_dims__(8, 1, 1)
    cluster_ring(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned box[2][128];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned t = threadIdx.x, rank = cluster.block_rank(), v = in[blockIdx.x * 128 + t];
    for (unsigned step = 0; step < 8; step++) {
        unsigned *next = cluster.map_shared_rank(box[step & 1], (rank + 1) % 8);
        next[t] = v * 3 + step;
        cluster.sync();
        v = box[step & 1][127 - t];
    }
    out[blockIdx.x * 128 + t] = v;
    cluster.sync();
}

// RUN bulk_copy n=1024 grid=2 block=128 exact
extern "C" __global__ void bulk_copy(const unsigned *in, unsigned *out, unsigned n) {
    // 2048 bytes at once into shared memory, complete when the barrier has counted them.
    __shared__ alignas(128) unsigned tile[512];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
    unsigned to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;" ::"r"(bar) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 2048, [%2];"
                     ::"r"(to), "l"(__cvta_generic_to_global(in + blockIdx.x * 512)), "r"(bar) : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar) : "memory");
    for (unsigned i = threadIdx.x; i < 512; i += 128) out[blockIdx.x * 512 + i] = tile[511 - i] + i;
}

// RUN bulk_store n=1024 grid=2 block=128 exact
extern "C" __global__ void bulk_store(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ alignas(128) unsigned tile[512];
    for (unsigned i = threadIdx.x; i < 512; i += 128) tile[i] = __brev(in[blockIdx.x * 512 + i]);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 2048;" ::"l"(
                         __cvta_generic_to_global(out + blockIdx.x * 512)),
                     "r"((unsigned)__cvta_generic_to_shared(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// RUN warp_specialized n=2048 grid=2 block=64 exact
extern "C" __global__ void warp_specialized(const unsigned *in, unsigned *out, unsigned n) {
    // A warp that only copies and a warp that only computes, with a ring of four buffers.
    __shared__ alignas(128) unsigned ring[4][64];
    __shared__ alignas(8) unsigned long long full[4], empty[4];
    auto address = [](const void *p) { return (unsigned)__cvta_generic_to_shared(p); };
    auto wait = [&](unsigned long long *b, unsigned parity) {
        unsigned done = 0;
        while (!done)
            asm volatile("{ .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                         " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(address(b)), "r"(parity) : "memory");
    };
    if (threadIdx.x == 0) {
        for (int s = 0; s < 4; s++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full[s])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(address(&empty[s])) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    unsigned half = n / gridDim.x, count = half / 64, lane = threadIdx.x % 32;
    in += blockIdx.x * half, out += blockIdx.x * half;
    if (threadIdx.x >= 32) {
        for (unsigned c = 0; c < count && lane == 0; c++) {
            unsigned s = c % 4;
            wait(&empty[s], (c / 4 & 1) ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(address(&full[s])) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                         ::"r"(address(ring[s])), "l"(__cvta_generic_to_global(in + c * 64)), "r"(address(&full[s])) : "memory");
        }
    } else {
        for (unsigned c = 0; c < count; c++) {
            unsigned s = c % 4;
            wait(&full[s], c / 4 & 1);
            unsigned v = ring[s][lane] * 7 + ring[s][63 - lane];
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&empty[s])) : "memory");
            out[c * 64 + lane] = v, out[c * 64 + 32 + lane] = ~v;
        }
    }
}

// RUN wgmma_half n=4096 grid=1 block=128 exact
extern "C" __global__ void wgmma_half(const unsigned *in, unsigned *out, unsigned n) {
    // 64 by 16 times 16 by 8; core matrices of 8 rows of 16 bytes, without a swizzle.
    __shared__ alignas(128) unsigned short a[64 * 16], b[16 * 8];
    auto small = [](unsigned v) { // a whole number below 16 as half precision
        v &= 15;
        return (unsigned short)(v == 0 ? 0 : (31 - __clz(v) + 15) << 10 | (v << (10 - (31 - __clz(v))) & 0x3ff));
    };
    for (unsigned i = threadIdx.x; i < 64 * 16; i += 128) {
        unsigned row = i / 16, k = i % 16;
        a[row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8] = small(in[i]);
    }
    for (unsigned i = threadIdx.x; i < 16 * 8; i += 128) {
        unsigned column = i / 16, k = i % 16;
        b[k / 8 * 64 + column * 8 + k % 8] = small(in[i] >> 8);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    auto descriptor = [](const void *p) {
        unsigned long long d = ((unsigned)__cvta_generic_to_shared(p) & 0x3ffff) >> 4;
        return d | 128ull >> 4 << 16 | 256ull >> 4 << 32; // next in k after 128 bytes, in m after 256
    };
    float c[4] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 0, 1, 1, 0, 0;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "l"(descriptor(a)), "l"(descriptor(b)));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])::"memory");
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp * 16 + lane / 4, column = lane % 4 * 2;
    out[row * 8 + column] = (unsigned)c[0], out[row * 8 + column + 1] = (unsigned)c[1];
    out[(row + 8) * 8 + column] = (unsigned)c[2], out[(row + 8) * 8 + column + 1] = (unsigned)c[3];
}
