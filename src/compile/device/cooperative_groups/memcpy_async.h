/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups: copies by all threads of a group. They are done when the call returns; wait
 * makes them visible to the group. */
#ifndef BULKHEAD_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define BULKHEAD_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H

#include <cooperative_groups.h>

namespace cooperative_groups {

template <class Word, class Group>
__BH_DEVICE void __bh_copy(const Group &group, void *to, const void *from, size_t bytes) {
    size_t step = (size_t)group.num_threads();
    for (size_t i = (size_t)group.thread_rank(); i < bytes / sizeof(Word); i += step) {
        ((Word *)to)[i] = ((const Word *)from)[i];
    }
}
template <class Group, class To, class From>
__BH_DEVICE void memcpy_async(const Group &group, To *to, const From *from, size_t bytes) {
    size_t all = (size_t)to | (size_t)from | bytes;
    if (all % 16 == 0) {
        __bh_copy<uint4>(group, (void *)to, (const void *)from, bytes);
    } else if (all % 4 == 0) {
        __bh_copy<unsigned>(group, (void *)to, (const void *)from, bytes);
    } else {
        __bh_copy<char>(group, (void *)to, (const void *)from, bytes);
    }
}
/* Elements: as many as both have. */
template <class Group, class To, class From>
__BH_DEVICE void memcpy_async(const Group &group, To *to, size_t room, const From *from,
                              size_t count) {
    static_assert(sizeof(To) == sizeof(From), "the elements must have the same size");
    memcpy_async(group, to, from, (room < count ? room : count) * sizeof(To));
}
template <class Group> __BH_DEVICE void wait(const Group &group) {
    group.sync();
}
template <unsigned Stages, class Group> __BH_DEVICE void wait_prior(const Group &group) {
    group.sync();
}

} // namespace cooperative_groups

#endif
