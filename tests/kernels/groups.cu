// SPDX-License-Identifier: Apache-2.0
// Cooperative groups: tiles, coalesced threads, the whole grid.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

// RUN tile_sums n=2048 grid=4 block=256 exact
extern "C" __global__ void tile_sums(const unsigned *in, unsigned *out, unsigned n) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    for (unsigned i = cg::this_grid().thread_rank(); i < n; i += cg::this_grid().size()) {
        unsigned sum = cg::reduce(tile, in[i], cg::plus<unsigned>());
        unsigned high = cg::reduce(tile, in[i], cg::greater<unsigned>());
        out[i] = sum ^ high ^ tile.shfl(in[i], (tile.thread_rank() + 3) % 8);
    }
}

// RUN tile_scan n=1024 grid=4 block=128 exact
extern "C" __global__ void tile_scan(const unsigned *in, unsigned *out, unsigned n) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    for (unsigned i = cg::this_grid().thread_rank(); i < n; i += cg::this_grid().size())
        out[i] = cg::inclusive_scan(warp, in[i]) ^ cg::exclusive_scan(warp, in[i] & 0xff);
}

// RUN coalesced_counts n=2048 grid=4 block=256 exact
extern "C" __global__ void coalesced_counts(const unsigned *in, unsigned *out, unsigned n) {
    // One atomic for all threads that come along together, however many they are.
    for (unsigned i = cg::this_grid().thread_rank(); i < n; i += cg::this_grid().size()) {
        unsigned digit = in[i] % 10;
        if (digit < 4) {
            cg::coalesced_group active = cg::coalesced_threads();
            unsigned sum = cg::reduce(active, digit, cg::plus<unsigned>());
            if (active.thread_rank() == 0) {
                atomicAdd(&out[0], active.size());
                atomicAdd(&out[1], sum);
            }
        }
    }
}

// RUN labeled_parts n=1024 grid=4 block=128 exact
extern "C" __global__ void labeled_parts(const unsigned *in, unsigned *out, unsigned n) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    for (unsigned i = cg::this_grid().thread_rank(); i < n; i += cg::this_grid().size()) {
        auto mine = cg::labeled_partition(warp, in[i] % 3);
        unsigned sum = cg::reduce(mine, in[i] >> 8, cg::plus<unsigned>());
        auto half = cg::binary_partition(warp, in[i] >> 31);
        out[i] = sum + mine.thread_rank() * 3 + half.num_threads() * 1000;
    }
}

// RUN grid_steps n=2048 grid=8 block=128 cooperative exact
extern "C" __global__ void grid_steps(const unsigned *in, unsigned *out, unsigned n) {
    // Pointer jumping over the whole grid: each element finds the sum of all before it.
    cg::grid_group grid = cg::this_grid();
    unsigned half = n / 2, *a = out, *b = out + half;
    unsigned i = grid.thread_rank();
    a[i] = in[i];
    grid.sync();
    for (unsigned d = 1; d < half; d *= 2) {
        b[i] = a[i] + (i >= d ? a[i - d] : 0);
        grid.sync();
        unsigned *t = a;
        a = b, b = t;
    }
    if (a != out) {
        unsigned v = a[i];
        grid.sync();
        out[i] = v;
    }
    grid.sync();
    out[half + i] = in[half + i] ^ out[(i + 1) % half];
}

// RUN grid_odd_even n=512 grid=4 block=64 cooperative exact
extern "C" __global__ void grid_odd_even(const unsigned *in, unsigned *out, unsigned n) {
    cg::grid_group grid = cg::this_grid();
    unsigned i = grid.thread_rank();
    out[2 * i] = in[2 * i], out[2 * i + 1] = in[2 * i + 1];
    for (unsigned round = 0; round < 40; round++) {
        grid.sync();
        unsigned a = 2 * i + (round & 1);
        if (a + 1 < n && out[a] > out[a + 1]) {
            unsigned v = out[a];
            out[a] = out[a + 1], out[a + 1] = v;
        }
    }
}

// RUN block_copies n=2048 grid=2 block=128 exact
extern "C" __global__ void block_copies(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned buffer[256];
    cg::thread_block block = cg::this_thread_block();
    for (unsigned base = blockIdx.x * 256; base < n; base += gridDim.x * 256) {
        for (unsigned k = block.thread_rank(); k < 256; k += block.size()) buffer[k] = in[base + k];
        cg::sync(block);
        for (unsigned k = block.thread_rank(); k < 256; k += block.size()) out[base + k] = buffer[255 - k];
        block.sync();
    }
}
