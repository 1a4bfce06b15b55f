/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies of one thread in stages. */
#ifndef BULKHEAD_CUDA_PIPELINE_PRIMITIVES_H
#define BULKHEAD_CUDA_PIPELINE_PRIMITIVES_H

#include "bulkhead_async_copy.h"
#include "cuda_awbarrier_primitives.h"

/* 4, 8 or 16 bytes, which are also the alignment; the last `zfill` of them become zero. */
__BH_DEVICE void __pipeline_memcpy_async(void *__restrict__ to, const void *__restrict__ from,
                                         size_t bytes, size_t zfill = 0) {
    __bh_copy_small(to, from, bytes, zfill);
}
__BH_DEVICE void __pipeline_commit() {
    __bh_copies_commit();
}
__BH_DEVICE void __pipeline_wait_prior(size_t left) {
    __bh_copies_wait((unsigned)left);
}
#if __CUDA_ARCH__ >= 800
__BH_DEVICE void __pipeline_arrive_on(__mbarrier_t *at) {
    __bh_mbarrier_after_copies(at);
}
#endif

#endif
