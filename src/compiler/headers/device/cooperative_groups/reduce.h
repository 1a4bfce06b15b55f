/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups: reductions. */
#ifndef BULKHEAD_COOPERATIVE_GROUPS_REDUCE_H
#define BULKHEAD_COOPERATIVE_GROUPS_REDUCE_H

#include <cooperative_groups.h>

namespace cooperative_groups {

#define __BH_OPERATION(name, result)                                                               \
    template <class T> struct name {                                                               \
        __device__ T operator()(T a, T b) const {                                                  \
            return result;                                                                         \
        }                                                                                          \
    };
__BH_OPERATION(plus, a + b)
__BH_OPERATION(less, b < a ? b : a)
__BH_OPERATION(greater, a < b ? b : a)
__BH_OPERATION(bit_and, a &b)
__BH_OPERATION(bit_or, a | b)
__BH_OPERATION(bit_xor, a ^ b)
#undef __BH_OPERATION

/* A tile: a butterfly, every thread gets the result. */
template <unsigned Size, class Parent, class T, class Operation>
__BH_DEVICE T reduce(const thread_block_tile<Size, Parent> &tile, T value, Operation operation) {
    for (unsigned lanes = Size / 2; lanes > 0; lanes /= 2) {
        value = operation(value, tile.shfl_xor(value, lanes));
    }
    return value;
}
/* Any lanes: the first thread collects, with half as many after each step. */
template <class T, class Operation>
__BH_DEVICE T reduce(const coalesced_group &group, T value, Operation operation) {
    unsigned count = group.num_threads();
    while (count > 1) {
        unsigned half = (count + 1) / 2;
        T other = group.shfl_down(value, half);
        if (group.thread_rank() + half < count) value = operation(value, other);
        count = half;
    }
    return group.shfl(value, 0);
}

template <class Group, class T, class U, class Operation>
__BH_DEVICE void reduce_store_async(const Group &group, T *at, U value, Operation operation) {
    U result = reduce(group, value, operation);
    if (group.thread_rank() == 0) *at = (T)result;
}
template <class Group, class T, class U>
__BH_DEVICE void reduce_update_async(const Group &group, T &to, U value, plus<U>) {
    U result = reduce(group, value, plus<U>());
    if (group.thread_rank() == 0) to.fetch_add(result);
}

} // namespace cooperative_groups

#endif
