/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups of a block: the block itself, tiles of a warp, and the active threads. */
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
};
__BH_DEVICE thread_block this_thread_block() {
    return thread_block();
}

/* Base of tiles and coalesced groups: the lanes of a mask, ranked from the lowest. */
class __bh_lanes {
  protected:
    unsigned mask;
    __device__ explicit __bh_lanes(unsigned lanes) : mask(lanes) {
    }

  public:
    __device__ void sync() const {
        __syncwarp(mask);
    }
    __device__ int any(int predicate) const {
        return __any_sync(mask, predicate);
    }
    __device__ int all(int predicate) const {
        return __all_sync(mask, predicate);
    }
};

template <unsigned Size, class Parent = void> class thread_block_tile : public __bh_lanes {
    static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                  "a tile has 1, 2, 4, 8, 16 or 32 threads");
    static __device__ unsigned first() {
        return thread_block::thread_rank() & 31u & ~(Size - 1u);
    }

  public:
    __device__ thread_block_tile()
        : __bh_lanes((Size == 32 ? ~0u : (1u << (Size & 31u)) - 1u) << first()) {
    }
    static __device__ unsigned thread_rank() {
        return thread_block::thread_rank() & (Size - 1u);
    }
    static constexpr __device__ unsigned num_threads() {
        return Size;
    }
    static constexpr __device__ unsigned size() {
        return Size;
    }
    static __device__ unsigned meta_group_rank() {
        return thread_block::thread_rank() / Size;
    }
    static __device__ unsigned meta_group_size() {
        return (thread_block::size() + Size - 1) / Size;
    }
    template <class T> __device__ T shfl(T value, int rank) const {
        return __shfl_sync(mask, value, rank, Size);
    }
    template <class T> __device__ T shfl_up(T value, unsigned delta) const {
        return __shfl_up_sync(mask, value, delta, Size);
    }
    template <class T> __device__ T shfl_down(T value, unsigned delta) const {
        return __shfl_down_sync(mask, value, delta, Size);
    }
    template <class T> __device__ T shfl_xor(T value, unsigned lanes) const {
        return __shfl_xor_sync(mask, value, (int)lanes, Size);
    }
    __device__ unsigned ballot(int predicate) const {
        return __ballot_sync(mask, predicate) >> first() &
               (Size == 32 ? ~0u : (1u << (Size & 31u)) - 1u);
    }
};
template <unsigned Size, class Parent>
__BH_DEVICE thread_block_tile<Size, Parent> tiled_partition(const Parent &) {
    return thread_block_tile<Size, Parent>();
}

class coalesced_group : public __bh_lanes {
  public:
    __device__ explicit coalesced_group(unsigned lanes) : __bh_lanes(lanes) {
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
    template <class T> __device__ T shfl(T value, unsigned rank) const {
        return __shfl_sync(mask, value, (int)__fns(mask, 0, (int)rank + 1));
    }
};
__BH_DEVICE coalesced_group coalesced_threads() {
    return coalesced_group(__activemask());
}

template <class Group> __BH_DEVICE void sync(const Group &group) {
    group.sync();
}

/* A butterfly reduction: every thread gets the result. */
template <class T> struct plus {
    __device__ T operator()(T a, T b) const {
        return a + b;
    }
};
template <class T> struct less {
    __device__ T operator()(T a, T b) const {
        return b < a ? b : a;
    }
};
template <class T> struct greater {
    __device__ T operator()(T a, T b) const {
        return a < b ? b : a;
    }
};
template <unsigned Size, class Parent, class T, class Operation>
__BH_DEVICE T reduce(const thread_block_tile<Size, Parent> &tile, T value, Operation operation) {
    for (unsigned lanes = Size / 2; lanes > 0; lanes /= 2) {
        value = operation(value, tile.shfl_xor(value, lanes));
    }
    return value;
}

} // namespace cooperative_groups

#endif
