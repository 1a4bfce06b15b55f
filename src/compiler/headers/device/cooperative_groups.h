/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups: the grid, the block, tiles of a warp, and the active threads. */
#ifndef BULKHEAD_COOPERATIVE_GROUPS_H
#define BULKHEAD_COOPERATIVE_GROUPS_H

#include "bulkhead_cuda.h"

namespace cooperative_groups {

class thread_block {
  public:
    __device__ void sync() const {
        __syncthreads();
    }
    static __device__ unsigned thread_rank() {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    static __device__ unsigned num_threads() {
        return blockDim.x * blockDim.y * blockDim.z;
    }
    static __device__ unsigned size() {
        return num_threads();
    }
    static __device__ dim3 group_index() {
        return blockIdx;
    }
    static __device__ dim3 thread_index() {
        return threadIdx;
    }
    static __device__ dim3 group_dim() {
        return blockDim;
    }
    static __device__ dim3 dim_threads() {
        return blockDim;
    }
    using arrival_token = unsigned;
    __device__ arrival_token barrier_arrive() const {
        return 0;
    }
    __device__ void barrier_wait(arrival_token &&) const {
        __syncthreads();
    }
};
__BH_DEVICE thread_block this_thread_block() {
    return thread_block();
}

/*
 * All blocks of a cooperative launch. The barrier is a word that the launch provides: each block
 * adds 1, the first one what makes the sum change the top bit when all have come.
 */
class grid_group {
    unsigned *barrier;
    static __device__ bool leads_block() {
        return threadIdx.x + threadIdx.y + threadIdx.z == 0;
    }

  public:
    __device__ grid_group() {
        unsigned high, low;
        asm("mov.u32 %0, %%envreg1;" : "=r"(high));
        asm("mov.u32 %0, %%envreg2;" : "=r"(low));
        unsigned long long workspace = (unsigned long long)high << 32 | low;
        barrier = workspace ? (unsigned *)workspace + 1 : nullptr;
    }
    __device__ bool is_valid() const {
        return barrier != nullptr;
    }
    using arrival_token = unsigned;
    __device__ arrival_token barrier_arrive() const {
        unsigned old = 0;
        if (!is_valid()) __builtin_trap(); /* the launch is not cooperative */
        __syncthreads();
        if (leads_block()) {
            unsigned add = block_rank() == 0 ? 0x80000000u - (unsigned)(num_blocks() - 1) : 1u;
            asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                         : "=r"(old)
                         : "l"(barrier), "r"(add)
                         : "memory");
        }
        return old;
    }
    __device__ void barrier_wait(arrival_token &&old) const {
        if (leads_block()) {
            unsigned now;
            do {
                asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(barrier) : "memory");
            } while (((old ^ now) & 0x80000000u) == 0);
        }
        __syncthreads();
    }
    __device__ void sync() const {
        barrier_wait(barrier_arrive());
    }
    static __device__ unsigned long long num_blocks() {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    static __device__ unsigned long long block_rank() {
        return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    }
    static __device__ unsigned long long num_threads() {
        return num_blocks() * thread_block::num_threads();
    }
    static __device__ unsigned long long size() {
        return num_threads();
    }
    static __device__ unsigned long long thread_rank() {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
    static __device__ dim3 dim_blocks() {
        return gridDim;
    }
    static __device__ dim3 group_dim() {
        return gridDim;
    }
    static __device__ dim3 block_index() {
        return blockIdx;
    }
};
__BH_DEVICE grid_group this_grid() {
    return grid_group();
}

/* Base of tiles and coalesced groups: the lanes of a mask, ranked from the lowest; and which of
 * several groups it is, if it was made by a partition. */
class __bh_lanes {
  protected:
    unsigned mask, part, parts;
    __device__ explicit __bh_lanes(unsigned lanes, unsigned rank = 0, unsigned count = 1)
        : mask(lanes), part(rank), parts(count) {
    }
    template <class T>
    static __device__ void copy_word(unsigned lanes, const T &from, T &to, int lane, size_t i) {
        unsigned word = 0;
        size_t bytes = sizeof(T) - i < 4 ? sizeof(T) - i : 4;
        __builtin_memcpy(&word, (const char *)&from + i, bytes);
        word = __shfl_sync(lanes, word, lane);
        __builtin_memcpy((char *)&to + i, &word, bytes);
    }
    /* Any type that can be copied: word by word. `lane` is of the warp. */
    template <class T> __device__ T from_lane(T value, int lane) const {
        T result = value;
#pragma unroll
        for (size_t i = 0; i < sizeof(T); i += 4) {
            copy_word(mask, value, result, lane, i);
        }
        return result;
    }

  public:
    __device__ unsigned __bh_mask() const {
        return mask;
    }
    __device__ void sync() const {
        __syncwarp(mask);
    }
    __device__ int any(int predicate) const {
        return __any_sync(mask, predicate);
    }
    __device__ int all(int predicate) const {
        return __all_sync(mask, predicate);
    }
    __device__ unsigned meta_group_rank() const {
        return part;
    }
    __device__ unsigned meta_group_size() const {
        return parts;
    }
};

/* A group of lanes of which only the mask is known. */
class coalesced_group : public __bh_lanes {
    /* the lane with this rank, which is less than the size */
    __device__ int lane_of(unsigned rank) const {
        unsigned lane = 0;
        for (unsigned width = 16; width > 0; width /= 2) {
            unsigned below = (unsigned)__popc(mask >> lane & ((1u << width) - 1u));
            bool above = rank >= below;
            rank -= above ? below : 0;
            lane += above ? width : 0;
        }
        return (int)lane;
    }
    __device__ unsigned compact(unsigned lanes) const {
        unsigned result = 0;
        for (unsigned left = mask, bit = 0; left != 0; left &= left - 1, bit++) {
            result |= ((lanes & (left & (0u - left))) != 0 ? 1u : 0u) << bit;
        }
        return result;
    }

  public:
    __device__ explicit coalesced_group(unsigned lanes, unsigned rank = 0, unsigned count = 1)
        : __bh_lanes(lanes, rank, count) {
    }
    __device__ unsigned thread_rank() const {
        return (unsigned)__popc(mask & ((1u << __bh_lane()) - 1u));
    }
    __device__ unsigned num_threads() const {
        return (unsigned)__popc(mask);
    }
    __device__ unsigned size() const {
        return num_threads();
    }
    template <class T> __device__ T shfl(T value, int rank) const {
        return from_lane(value, lane_of((unsigned)rank % num_threads()));
    }
    template <class T> __device__ T shfl_up(T value, unsigned delta) const {
        unsigned rank = thread_rank();
        return from_lane(value, lane_of(rank < delta ? rank : rank - delta));
    }
    template <class T> __device__ T shfl_down(T value, unsigned delta) const {
        unsigned rank = thread_rank();
        return from_lane(value, lane_of(rank + delta >= num_threads() ? rank : rank + delta));
    }
    __device__ unsigned ballot(int predicate) const {
        return compact(__ballot_sync(mask, predicate));
    }
    template <class T> __device__ unsigned match_any(T value) const {
        return compact(__match_any_sync(mask, value));
    }
    template <class T> __device__ unsigned match_all(T value, int &all) const {
        return compact(__match_all_sync(mask, value, &all));
    }
};
__BH_DEVICE coalesced_group coalesced_threads() {
    return coalesced_group(__activemask());
}

template <unsigned Size, class Parent = void> class thread_block_tile;

/* Neighbouring lanes, as many as a power of two. */
template <unsigned Size> class __bh_tile : public __bh_lanes {
    static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                  "a tile has 1, 2, 4, 8, 16 or 32 threads");
    static constexpr unsigned ones = Size == 32 ? ~0u : (1u << (Size & 31u)) - 1u;
    static __device__ unsigned first() {
        return __bh_lane() & ~(Size - 1u);
    }

  public:
    __device__ __bh_tile(unsigned rank, unsigned count) : __bh_lanes(ones << first(), rank, count) {
    }
    static __device__ unsigned thread_rank() {
        return __bh_lane() & (Size - 1u);
    }
    static constexpr __device__ unsigned num_threads() {
        return Size;
    }
    static constexpr __device__ unsigned size() {
        return Size;
    }
    template <class T> __device__ T shfl(T value, int rank) const {
        return from_lane(value, (int)(first() | ((unsigned)rank & (Size - 1u))));
    }
    template <class T> __device__ T shfl_up(T value, unsigned delta) const {
        unsigned rank = thread_rank();
        return from_lane(value, (int)(first() | (rank < delta ? rank : rank - delta)));
    }
    template <class T> __device__ T shfl_down(T value, unsigned delta) const {
        unsigned rank = thread_rank();
        return from_lane(value, (int)(first() | (rank + delta >= Size ? rank : rank + delta)));
    }
    template <class T> __device__ T shfl_xor(T value, unsigned lanes) const {
        unsigned rank = thread_rank() ^ lanes;
        return from_lane(value, (int)(first() | (rank >= Size ? thread_rank() : rank)));
    }
    __device__ unsigned ballot(int predicate) const {
        return __ballot_sync(mask, predicate) >> first() & ones;
    }
    template <class T> __device__ unsigned match_any(T value) const {
        return __match_any_sync(mask, value) >> first() & ones;
    }
    template <class T> __device__ unsigned match_all(T value, int &all) const {
        return __match_all_sync(mask, value, &all) >> first() & ones;
    }
};

/* Without its parent: what any tile of the size converts to. */
template <unsigned Size> class thread_block_tile<Size, void> : public __bh_tile<Size> {
  public:
    __device__ thread_block_tile(unsigned rank, unsigned count) : __bh_tile<Size>(rank, count) {
    }
    template <class Parent>
    __device__ thread_block_tile(const thread_block_tile<Size, Parent> &from)
        : __bh_tile<Size>(from.meta_group_rank(), from.meta_group_size()) {
    }
};
template <unsigned Size, class Parent> class thread_block_tile : public __bh_tile<Size> {
  public:
    __device__ thread_block_tile(unsigned rank, unsigned count) : __bh_tile<Size>(rank, count) {
    }
};

template <unsigned Size, class Parent>
__BH_DEVICE thread_block_tile<Size, Parent> tiled_partition(const Parent &parent) {
    return thread_block_tile<Size, Parent>((unsigned)parent.thread_rank() / Size,
                                           ((unsigned)parent.num_threads() + Size - 1) / Size);
}

/* Any of the other groups, of which the size is known only at run time. */
class thread_group {
    enum kind { of_block, of_grid, of_lanes } is;
    coalesced_group lanes;

  public:
    __device__ thread_group(const thread_block &) : is(of_block), lanes(0) {
    }
    __device__ thread_group(const grid_group &) : is(of_grid), lanes(0) {
    }
    __device__ thread_group(const coalesced_group &group) : is(of_lanes), lanes(group) {
    }
    template <unsigned Size, class Parent>
    __device__ thread_group(const thread_block_tile<Size, Parent> &tile)
        : is(of_lanes), lanes(tile.__bh_mask(), tile.meta_group_rank(), tile.meta_group_size()) {
    }
    __device__ void sync() const {
        if (is == of_block) {
            __syncthreads();
        } else if (is == of_grid) {
            this_grid().sync();
        } else {
            lanes.sync();
        }
    }
    __device__ unsigned long long thread_rank() const {
        return is == of_block  ? thread_block::thread_rank()
               : is == of_grid ? grid_group::thread_rank()
                               : lanes.thread_rank();
    }
    __device__ unsigned long long num_threads() const {
        return is == of_block  ? thread_block::num_threads()
               : is == of_grid ? grid_group::num_threads()
                               : lanes.num_threads();
    }
    __device__ unsigned long long size() const {
        return num_threads();
    }
    /* The lanes of a tile of this one: of a warp if this is a block. */
    __device__ coalesced_group __bh_part(unsigned size) const {
        unsigned within = is == of_lanes ? lanes.__bh_mask() : ~0u;
        unsigned rank = is == of_lanes ? lanes.thread_rank() : __bh_lane();
        unsigned first = rank / size * size, chosen = 0, at = 0;
        for (unsigned left = within; left != 0; left &= left - 1, at++) {
            chosen |= at >= first && at < first + size ? left & (0u - left) : 0u;
        }
        return coalesced_group(chosen, (unsigned)thread_rank() / size,
                               ((unsigned)num_threads() + size - 1) / size);
    }
};
template <class Group>
__BH_DEVICE thread_group tiled_partition(const Group &parent, unsigned size) {
    return thread_group(thread_group(parent).__bh_part(size));
}

/* One group for each value that its threads have; ranked by the value of their lowest lane. */
template <class Group, class T>
__BH_DEVICE coalesced_group labeled_partition(const Group &group, T label) {
    unsigned mine = __match_any_sync(group.__bh_mask(), label), parts = 0, part = 0;
    unsigned leads = __ballot_sync(group.__bh_mask(), (mine & ((1u << __bh_lane()) - 1u)) == 0);
    parts = (unsigned)__popc(leads);
    part = (unsigned)__popc(leads & ((mine & (0u - mine)) - 1u));
    return coalesced_group(mine, part, parts);
}
template <class Group>
__BH_DEVICE coalesced_group binary_partition(const Group &group, bool predicate) {
    unsigned yes = __ballot_sync(group.__bh_mask(), predicate);
    unsigned no = group.__bh_mask() & ~yes;
    return coalesced_group(predicate ? yes : no, predicate ? 1u : 0u, 2u);
}

template <class Group> __BH_DEVICE void sync(const Group &group) {
    group.sync();
}
__BH_DEVICE void sync() {
    __syncthreads();
}
template <class Group> __BH_DEVICE unsigned long long thread_rank(const Group &group) {
    return group.thread_rank();
}
template <class Group> __BH_DEVICE unsigned long long group_size(const Group &group) {
    return group.num_threads();
}

/* Runs `function` in one thread of the group. */
template <class Group, class Function>
__BH_DEVICE void invoke_one(const Group &group, Function &&function) {
    if (group.thread_rank() == 0) function();
}
template <class Group, class Function>
__BH_DEVICE auto invoke_one_broadcast(const Group &group, Function &&function)
    -> decltype(function()) {
    decltype(function()) result{};
    if (group.thread_rank() == 0) result = function();
    return group.shfl(result, 0);
}

} // namespace cooperative_groups

#include "cooperative_groups/reduce.h"

#endif
