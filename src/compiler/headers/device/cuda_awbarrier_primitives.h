/* SPDX-License-Identifier: Apache-2.0 */
/* Barrier objects in shared memory: functions with the names that CUDA gives them; since sm_80. */
#ifndef BULKHEAD_CUDA_AWBARRIER_PRIMITIVES_H
#define BULKHEAD_CUDA_AWBARRIER_PRIMITIVES_H

#include "bulkhead_mbarrier.h"

typedef unsigned long long __mbarrier_t;
typedef unsigned long long __mbarrier_token_t;

__BH_BOTH constexpr unsigned __mbarrier_maximum_count() {
    return (1u << 20) - 1;
}
#if __CUDA_ARCH__ >= 800
__BH_DEVICE void __mbarrier_init(__mbarrier_t *at, unsigned expected) {
    __bh_mbarrier_init(at, expected);
}
__BH_DEVICE void __mbarrier_inval(__mbarrier_t *at) {
    __bh_mbarrier_invalidate(at);
}
__BH_DEVICE __mbarrier_token_t __mbarrier_arrive(__mbarrier_t *at) {
    return __bh_mbarrier_arrive(at);
}
__BH_DEVICE __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t *at) {
    return __bh_mbarrier_arrive_drop(at);
}
__BH_DEVICE bool __mbarrier_test_wait(__mbarrier_t *at, __mbarrier_token_t token) {
    return __bh_mbarrier_test(at, token);
}
__BH_DEVICE bool __mbarrier_test_wait_parity(__mbarrier_t *at, bool parity) {
    return __bh_mbarrier_test_parity(at, parity);
}
__BH_DEVICE unsigned __mbarrier_token_pending_count(__mbarrier_token_t token) {
    return __bh_mbarrier_pending(token);
}
#endif

#endif
