/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups: partitions, what is known of a group at run time, reductions, scans, copies.
 * 2 blocks of 64. */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "checks.h"

namespace cg = cooperative_groups;

struct three {
    short a;
    double b;
    char c;
};

template <unsigned Size> __device__ void tile(int *failed) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<Size> t = cg::tiled_partition<Size>(block);
    unsigned rank = threadIdx.x % Size, first = threadIdx.x - rank;
    EXPECT(t.thread_rank() == rank && t.size() == Size && t.num_threads() == Size);
    EXPECT(t.meta_group_rank() == threadIdx.x / Size && t.meta_group_size() == 64 / Size);
    EXPECT(t.shfl((int)threadIdx.x, (int)Size - 1) == (int)(first + Size - 1));
    EXPECT(t.shfl_xor(threadIdx.x, Size / 2) == (threadIdx.x ^ (Size / 2)));
    EXPECT(t.shfl_down(threadIdx.x, 1) == (rank + 1 < Size ? threadIdx.x + 1 : threadIdx.x));
    EXPECT(t.shfl_up(threadIdx.x, 1) == (rank > 0 ? threadIdx.x - 1 : threadIdx.x));
    EXPECT(t.ballot(rank == Size - 1) == 1u << (Size - 1));
    EXPECT(t.any(rank == 0) && t.all(1) && (Size == 1 || !t.all(rank == 0)));
    EXPECT(t.match_any(rank & 1) != 0 && (t.match_any(rank) == 1u << rank));
    EXPECT(cg::reduce(t, (int)threadIdx.x, cg::plus<int>()) ==
           (int)(Size * first + Size * (Size - 1) / 2));
    EXPECT(cg::reduce(t, (float)rank, cg::greater<float>()) == (float)(Size - 1));
    EXPECT(cg::reduce(t, 1u << rank, cg::bit_or<unsigned>()) ==
           (Size == 32 ? ~0u : (1u << Size % 32) - 1));
    EXPECT(cg::inclusive_scan(t, 1) == (int)rank + 1 && cg::exclusive_scan(t, 2) == (int)rank * 2);
    three value = {(short)threadIdx.x, threadIdx.x * 0.5, 'c'};
    three got = t.shfl(value, 0);
    EXPECT(got.a == (short)first && got.b == first * 0.5 && got.c == 'c');
    t.sync();
}

KERNEL(tiles) {
    tile<1>(failed);
    tile<2>(failed);
    tile<4>(failed);
    tile<8>(failed);
    tile<16>(failed);
    tile<32>(failed);
}

__device__ int sum(cg::thread_group group, int *room, int value) {
    int rank = (int)group.thread_rank();
    for (int half = (int)group.size() / 2; half > 0; half /= 2) {
        room[rank] = value;
        group.sync();
        if (rank < half) value += room[rank + half];
        group.sync();
    }
    return value;
}

KERNEL(partitions) {
    __shared__ int room[64];
    cg::thread_block block = cg::this_thread_block();
    int all = sum(block, room, (int)threadIdx.x);
    EXPECT(threadIdx.x != 0 || all == 2016);
    cg::thread_group eight = cg::tiled_partition(block, 8);
    EXPECT(eight.size() == 8 && eight.thread_rank() == threadIdx.x % 8);
    int few = sum(eight, room + threadIdx.x / 8 * 8, 1);
    EXPECT(eight.thread_rank() != 0 || few == 8);
    cg::thread_group two = cg::tiled_partition(eight, 2);
    EXPECT(two.size() == 2 && two.thread_rank() == threadIdx.x % 2);

    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    cg::coalesced_group same = cg::labeled_partition(warp, threadIdx.x % 32 % 3);
    EXPECT(same.size() == (threadIdx.x % 32 % 3 == 2 ? 10u : 11u));
    EXPECT(same.meta_group_size() == 3 && same.thread_rank() == threadIdx.x % 32 / 3);
    EXPECT(cg::reduce(same, 1, cg::plus<int>()) == (int)same.size());
    EXPECT(cg::inclusive_scan(same, 1) == (int)same.thread_rank() + 1);
    EXPECT(same.shfl(threadIdx.x % 32, 1) == threadIdx.x % 32 % 3 + 3);
    cg::coalesced_group half = cg::binary_partition(warp, threadIdx.x % 32 < 5);
    EXPECT(half.size() == (threadIdx.x % 32 < 5 ? 5u : 27u));
    EXPECT(half.ballot(1) == (1u << half.size()) - 1);
    if (threadIdx.x & 1) {
        cg::coalesced_group odd = cg::coalesced_threads();
        EXPECT(odd.size() == 16 && odd.thread_rank() == threadIdx.x % 32 / 2);
        EXPECT(odd.shfl(threadIdx.x, 3) % 32 == 7 && odd.match_any(threadIdx.x & 2) != 0);
        EXPECT(odd.shfl_down(threadIdx.x, 1) % 32 ==
               (threadIdx.x % 32 == 31 ? 31u : threadIdx.x % 32 + 2));
    }
}

__device__ int source[64] = {0, 1, 2, 3, 4, 5, 6, 7};

KERNEL(copies) {
    __shared__ int to[64];
    __shared__ char bytes[7];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, to, source, sizeof to);
    cg::memcpy_async(block, bytes, (const char *)source, 7);
    cg::wait(block);
    EXPECT(to[5] == 5 && to[7] == 7 && to[8] == 0 && bytes[4] == 1);
    auto token = block.barrier_arrive();
    block.barrier_wait(static_cast<decltype(token) &&>(token));
    EXPECT(cg::this_grid().size() == 128 &&
           cg::this_grid().thread_rank() == blockIdx.x * 64 + threadIdx.x);
}
