/* SPDX-License-Identifier: Apache-2.0 */
/* Barrier objects in shared memory, as the instructions have them: since sm_80. */
#ifndef BULKHEAD_MBARRIER_H
#define BULKHEAD_MBARRIER_H

#include "bulkhead_cuda.h"

#if __CUDA_ARCH__ >= 800

__BH_DEVICE unsigned __bh_shared(const void *at) {
    return (unsigned)__cvta_generic_to_shared(at);
}
__BH_DEVICE void __bh_mbarrier_init(void *at, unsigned count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;"
                 :
                 : "r"(__bh_shared(at)), "r"(count)
                 : "memory");
}
__BH_DEVICE void __bh_mbarrier_invalidate(void *at) {
    asm volatile("mbarrier.inval.shared.b64 [%0];" : : "r"(__bh_shared(at)) : "memory");
}
#define __BH_MBARRIER_ARRIVE(name, instruction)                                                    \
    __BH_DEVICE unsigned long long __bh_mbarrier_##name(void *at) {                                \
        unsigned long long token;                                                                  \
        asm volatile(instruction ".shared.b64 %0, [%1];"                                           \
                     : "=l"(token)                                                                 \
                     : "r"(__bh_shared(at))                                                        \
                     : "memory");                                                                  \
        return token;                                                                              \
    }                                                                                              \
    __BH_DEVICE unsigned long long __bh_mbarrier_##name##_part(void *at, unsigned count) {         \
        unsigned long long token;                                                                  \
        asm volatile(instruction ".noComplete.shared.b64 %0, [%1], %2;"                            \
                     : "=l"(token)                                                                 \
                     : "r"(__bh_shared(at)), "r"(count)                                            \
                     : "memory");                                                                  \
        return token;                                                                              \
    }
__BH_MBARRIER_ARRIVE(arrive, "mbarrier.arrive")
__BH_MBARRIER_ARRIVE(arrive_drop, "mbarrier.arrive_drop")
#undef __BH_MBARRIER_ARRIVE
__BH_DEVICE bool __bh_mbarrier_test(const void *at, unsigned long long token) {
    unsigned complete;
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.shared.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(complete)
                 : "r"(__bh_shared(at)), "l"(token)
                 : "memory");
    return complete != 0;
}
__BH_DEVICE bool __bh_mbarrier_test_parity(const void *at, bool parity) {
    unsigned complete;
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(complete)
                 : "r"(__bh_shared(at)), "r"(parity ? 1u : 0u)
                 : "memory");
    return complete != 0;
}
__BH_DEVICE unsigned __bh_mbarrier_pending(unsigned long long token) {
    unsigned count;
    asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(token));
    return count;
}
/* The phase ends only after the copies that this thread has started so far. */
__BH_DEVICE void __bh_mbarrier_after_copies(void *at) {
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" : : "r"(__bh_shared(at)) : "memory");
}
#endif

#endif
