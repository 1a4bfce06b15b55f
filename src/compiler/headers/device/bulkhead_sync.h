/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers of a block and a warp, and memory fences. */
#ifndef BULKHEAD_SYNC_H
#define BULKHEAD_SYNC_H

#include "bulkhead_qualifiers.h"

#if !__has_builtin(__syncthreads) /* clang's builtin, if it exists */
__BH_DEVICE void __syncthreads() {
    asm volatile("bar.sync 0;" : : : "memory");
}
#endif
__BH_DEVICE int __syncthreads_count(int predicate) {
    int result;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %1, 0;\n\t"
                 "bar.red.popc.u32 %0, 0, p;\n\t}"
                 : "=r"(result)
                 : "r"(predicate)
                 : "memory");
    return result;
}
__BH_DEVICE int __syncthreads_and(int predicate) {
    int result;
    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.s32 p, %1, 0;\n\t"
                 "bar.red.and.pred q, 0, p;\n\tselp.s32 %0, 1, 0, q;\n\t}"
                 : "=r"(result)
                 : "r"(predicate)
                 : "memory");
    return result;
}
__BH_DEVICE int __syncthreads_or(int predicate) {
    int result;
    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.s32 p, %1, 0;\n\t"
                 "bar.red.or.pred q, 0, p;\n\tselp.s32 %0, 1, 0, q;\n\t}"
                 : "=r"(result)
                 : "r"(predicate)
                 : "memory");
    return result;
}
__BH_DEVICE void __barrier_sync(unsigned id) {
    asm volatile("barrier.sync %0;" : : "r"(id) : "memory");
}
__BH_DEVICE void __barrier_sync_count(unsigned id, unsigned count) {
    asm volatile("barrier.sync %0, %1;" : : "r"(id), "r"(count) : "memory");
}
__BH_DEVICE void __syncwarp(unsigned mask = 0xffffffffu) {
    asm volatile("bar.warp.sync %0;" : : "r"(mask) : "memory");
}

__BH_DEVICE void __threadfence_block() {
    asm volatile("membar.cta;" : : : "memory");
}
__BH_DEVICE void __threadfence() {
    asm volatile("membar.gl;" : : : "memory");
}
__BH_DEVICE void __threadfence_system() {
    asm volatile("membar.sys;" : : : "memory");
}

#endif
