/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups: prefix sums, and other operations, over the threads of a group of lanes. */
#ifndef BULKHEAD_COOPERATIVE_GROUPS_SCAN_H
#define BULKHEAD_COOPERATIVE_GROUPS_SCAN_H

#include <cooperative_groups.h>

namespace cooperative_groups {

template <class Group, class T, class Operation>
__BH_DEVICE T inclusive_scan(const Group &group, T value, Operation operation) {
    for (unsigned delta = 1; delta < group.num_threads(); delta *= 2) {
        T before = group.shfl_up(value, delta);
        if (group.thread_rank() >= delta) value = operation(before, value);
    }
    return value;
}
template <class Group, class T> __BH_DEVICE T inclusive_scan(const Group &group, T value) {
    return inclusive_scan(group, value, plus<T>());
}
/* The first thread gets a value of the type without meaning, zero here, as for plus. */
template <class Group, class T, class Operation>
__BH_DEVICE T exclusive_scan(const Group &group, T value, Operation operation) {
    T before = group.shfl_up(inclusive_scan(group, value, operation), 1);
    return group.thread_rank() == 0 ? T() : before;
}
template <class Group, class T> __BH_DEVICE T exclusive_scan(const Group &group, T value) {
    return exclusive_scan(group, value, plus<T>());
}

} // namespace cooperative_groups

#endif
