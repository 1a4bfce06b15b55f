/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups: copies by all threads of a group, each its part. From global to shared memory
 * they run on until wait; others are done when the call returns. */
#ifndef BULKHEAD_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define BULKHEAD_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H

#include "bulkhead_async_copy.h"
#include <cooperative_groups.h>

namespace cooperative_groups {

template <class Group, class To, class From>
__BH_DEVICE void memcpy_async(const Group &group, To *to, const From *from, size_t bytes) {
    __bh_copy_group(group, (void *)to, (const void *)from, bytes);
    __bh_copies_commit();
}
/* Elements: as many as both have. */
template <class Group, class To, class From>
__BH_DEVICE void memcpy_async(const Group &group, To *to, size_t room, const From *from,
                              size_t count) {
    static_assert(sizeof(To) == sizeof(From), "the elements must have the same size");
    memcpy_async(group, to, from, (room < count ? room : count) * sizeof(To));
}
template <class Group> __BH_DEVICE void wait(const Group &group) {
    __bh_copies_wait(0);
    group.sync();
}
/* All but the last so many copies. */
template <unsigned Stages, class Group> __BH_DEVICE void wait_prior(const Group &group) {
    __bh_copies_wait(Stages);
    group.sync();
}

} // namespace cooperative_groups

#endif
