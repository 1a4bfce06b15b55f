/* SPDX-License-Identifier: Apache-2.0 */
/* CUB in kernels, with its own headers: each thread checks the result with a plain loop. One block
 * of 128 threads; out[0] counts what is wrong, out[1] what was right. */
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

static constexpr int THREADS = 128, ITEMS = 4, COUNT = THREADS * ITEMS;

struct larger {
    __device__ unsigned operator()(unsigned a, unsigned b) const {
        return a < b ? b : a;
    }
};

__device__ static void check(unsigned *out, bool right) {
    atomicAdd(&out[right], 1u);
}

extern "C" __global__ void cub_sums(const unsigned *in, unsigned *out) {
    using reduce = cub::BlockReduce<unsigned, THREADS>;
    using scan = cub::BlockScan<unsigned, THREADS>;
    using warp_reduce = cub::WarpReduce<unsigned>;
    using warp_scan = cub::WarpScan<unsigned>;
    __shared__ typename reduce::TempStorage for_reduce;
    __shared__ typename scan::TempStorage for_scan;
    __shared__ typename warp_reduce::TempStorage for_warps[THREADS / 32];
    __shared__ typename warp_scan::TempStorage for_warp_scans[THREADS / 32];
    unsigned t = threadIdx.x, first = t / 32 * 32, value = in[t] * 2654435761u, before, up_to;
    unsigned sum = reduce(for_reduce).Sum(value);
    scan(for_scan).ExclusiveSum(value, before);
    unsigned most = warp_reduce(for_warps[t / 32]).Reduce(value, larger());
    warp_scan(for_warp_scans[t / 32]).InclusiveSum(value, up_to);
    unsigned all = 0, block_before = 0, warp_up_to = 0, warp_most = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        unsigned x = in[i] * 2654435761u;
        all += x;
        block_before += i < t ? x : 0;
        warp_up_to += i >= first && i <= t ? x : 0;
        warp_most = i >= first && i < first + 32 && x > warp_most ? x : warp_most;
    }
    check(out, before == block_before && up_to == warp_up_to);
    if (t == 0) check(out, sum == all);
    if (t == first) check(out, most == warp_most);
}

extern "C" __global__ void cub_sort(const unsigned *in, unsigned *out) {
    using load = cub::BlockLoad<unsigned, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
    using store = cub::BlockStore<unsigned, THREADS, ITEMS, cub::BLOCK_STORE_TRANSPOSE>;
    using sort = cub::BlockRadixSort<unsigned, THREADS, ITEMS>;
    using histogram = cub::BlockHistogram<unsigned char, THREADS, ITEMS, 16>;
    __shared__ union {
        typename load::TempStorage for_load;
        typename store::TempStorage for_store;
        typename sort::TempStorage for_sort;
        typename histogram::TempStorage for_histogram;
    } place;
    __shared__ unsigned sorted[COUNT], bins[16];
    unsigned items[ITEMS];
    unsigned char small[ITEMS];
    load(place.for_load).Load(in, items);
    __syncthreads();
    for (int i = 0; i < ITEMS; i++) items[i] *= 2654435761u, small[i] = items[i] >> 28;
    sort(place.for_sort).Sort(items);
    __syncthreads();
    store(place.for_store).Store(sorted, items);
    __syncthreads();
    histogram(place.for_histogram).Histogram(small, bins);
    __syncthreads();
    for (int i = threadIdx.x; i < COUNT; i += THREADS) {
        unsigned x = in[i] * 2654435761u, rank = 0;
        for (int k = 0; k < COUNT; k++) rank += in[k] * 2654435761u < x;
        check(out, sorted[rank] == x);
    }
    if (threadIdx.x < 16) {
        unsigned count = 0;
        for (int k = 0; k < COUNT; k++) count += in[k] * 2654435761u >> 28 == threadIdx.x;
        check(out, bins[threadIdx.x] == count);
    }
}
