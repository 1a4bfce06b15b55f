/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from global to shared memory that run beside the thread, since sm_80; before, and between
 * other kinds of memory, they are done at once. */
#ifndef BULKHEAD_ASYNC_COPY_H
#define BULKHEAD_ASYNC_COPY_H

#include "bulkhead_mbarrier.h"

#if __CUDA_ARCH__ >= 800
#define __BH_COPY_ASYNC(bytes, cache)                                                              \
    __BH_DEVICE void __bh_copy_async_##bytes(void *to, const void *from, unsigned used) {          \
        asm volatile("cp.async." cache ".shared.global [%0], [%1], " #bytes ", %2;"                \
                     :                                                                             \
                     : "r"(__bh_shared(to)), "l"(__cvta_generic_to_global(from)), "r"(used)        \
                     : "memory");                                                                  \
    }
__BH_COPY_ASYNC(4, "ca")
__BH_COPY_ASYNC(8, "ca")
__BH_COPY_ASYNC(16, "cg")
#undef __BH_COPY_ASYNC
#endif

/* Ends a group of copies of this thread. */
__BH_DEVICE void __bh_copies_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}
/* Waits until at most `left` of the groups are in flight; more than 8 count as 8. */
__BH_DEVICE void __bh_copies_wait(unsigned left) {
#if __CUDA_ARCH__ >= 800
#define __BH_WAIT(n)                                                                               \
    case n:                                                                                        \
        asm volatile("cp.async.wait_group " #n ";" : : : "memory");                                \
        break;
    switch (left) {
        __BH_WAIT(0)
        __BH_WAIT(1)
        __BH_WAIT(2)
        __BH_WAIT(3)
        __BH_WAIT(4)
        __BH_WAIT(5)
        __BH_WAIT(6)
        __BH_WAIT(7)
    default:
        asm volatile("cp.async.wait_group 8;" : : : "memory");
    }
#undef __BH_WAIT
#else
    (void)left;
#endif
}
__BH_DEVICE void __bh_copies_wait_all() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}

/* 4, 8 or 16 bytes, of which the last `zeros` are not read but set to zero. */
__BH_DEVICE void __bh_copy_small(void *to, const void *from, size_t bytes, size_t zeros) {
#if __CUDA_ARCH__ >= 800
    unsigned used = (unsigned)(bytes - zeros);
    if (bytes == 16) {
        __bh_copy_async_16(to, from, used);
    } else if (bytes == 8) {
        __bh_copy_async_8(to, from, used);
    } else {
        __bh_copy_async_4(to, from, used);
    }
#else
    for (size_t i = 0; i < bytes; i++) {
        ((char *)to)[i] = i < bytes - zeros ? ((const char *)from)[i] : (char)0;
    }
#endif
}

template <class Word, class Group>
__BH_DEVICE void __bh_copy_words(const Group &group, void *to, const void *from, size_t bytes) {
    size_t step = (size_t)group.size();
    for (size_t i = (size_t)group.thread_rank(); i < bytes / sizeof(Word); i += step) {
        ((Word *)to)[i] = ((const Word *)from)[i];
    }
}
#if __CUDA_ARCH__ >= 800
template <unsigned Bytes, class Group>
__BH_DEVICE void __bh_copy_parts(const Group &group, void *to, const void *from, size_t bytes) {
    size_t step = (size_t)group.size() * Bytes;
    for (size_t at = (size_t)group.thread_rank() * Bytes; at < bytes; at += step) {
        __bh_copy_small((char *)to + at, (const char *)from + at, Bytes, 0);
    }
}
#endif
/* By all threads of a group, each its part; true if it runs on beside the thread. */
template <class Group>
__BH_DEVICE bool __bh_copy_group(const Group &group, void *to, const void *from, size_t bytes) {
    size_t all = (size_t)to | (size_t)from | bytes;
#if __CUDA_ARCH__ >= 800
    if (all % 4 == 0 && __isShared(to) && __isGlobal(from)) {
        if (all % 16 == 0) {
            __bh_copy_parts<16>(group, to, from, bytes);
        } else if (all % 8 == 0) {
            __bh_copy_parts<8>(group, to, from, bytes);
        } else {
            __bh_copy_parts<4>(group, to, from, bytes);
        }
        return true;
    }
#endif
    if (all % 16 == 0) {
        __bh_copy_words<uint4>(group, to, from, bytes);
    } else if (all % 4 == 0) {
        __bh_copy_words<unsigned>(group, to, from, bytes);
    } else {
        __bh_copy_words<char>(group, to, from, bytes);
    }
    return false;
}

namespace cuda {

/* A size that says what its pointers and itself are multiples of. */
template <size_t Alignment> struct aligned_size_t {
    static constexpr size_t align = Alignment;
    size_t value;
    __host__ __device__ explicit constexpr aligned_size_t(size_t bytes) : value(bytes) {
    }
    __host__ __device__ constexpr operator size_t() const {
        return value;
    }
};

/* The calling thread alone. */
struct __bh_this_thread {
    __device__ unsigned thread_rank() const {
        return 0;
    }
    __device__ unsigned size() const {
        return 1;
    }
};

enum class async_contract_fulfillment { none, async };

} // namespace cuda

#endif
