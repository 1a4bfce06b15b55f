/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses of up to 16 aligned bytes that other threads see as a whole or not at all, as a GPU
 * makes them. Programs rely on it for vectors: a flag and its value travel together.
 */
#ifndef BH_PTX_RUN_SINGLE_H
#define BH_PTX_RUN_SINGLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * single.c: for processors without an access of 16 bytes. A lock keeps these apart from each other;
 * with accesses of 8 bytes, which take no lock, each half is still whole.
 */
void bh__single_load16_locked(void *to, const void *from);
void bh__single_store16_locked(void *to, const void *from);
/* Stores `desired` if *at is *expected, else sets *expected to what is there. */
bool bh__single_swap16_locked(void *at, uint64_t expected[2], const uint64_t desired[2]);

#if defined(__x86_64__)
/* A processor with AVX makes aligned accesses of 16 bytes whole, with instructions older than AVX
 * too. Assembly, so that no compiler splits them. */
static inline bool bh__single_16(void) {
    return __builtin_cpu_supports("avx") != 0;
}

typedef long long bh__single_vector __attribute__((vector_size(16), may_alias));

static inline void bh__single_load16_native(void *to, const void *from) {
    bh__single_vector v;
    __asm__ volatile("movdqa %1, %0" : "=x"(v) : "m"(*(const bh__single_vector *)from));
    memcpy(to, &v, 16);
}

static inline void bh__single_store16_native(void *to, const void *from) {
    bh__single_vector v;
    memcpy(&v, from, 16);
    __asm__ volatile("movdqa %1, %0" : "=m"(*(bh__single_vector *)to) : "x"(v));
}

static inline bool bh__single_swap16_native(void *at, uint64_t expected[2],
                                            const uint64_t desired[2]) {
    bool swapped;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(swapped), "+m"(*(bh__single_vector *)at), "+a"(expected[0]),
                       "+d"(expected[1])
                     : "b"(desired[0]), "c"(desired[1])
                     : "memory");
    return swapped;
}
#else
static inline bool bh__single_16(void) {
    return false;
}
#define bh__single_swap16_native  bh__single_swap16_locked
#define bh__single_load16_native  bh__single_load16_locked
#define bh__single_store16_native bh__single_store16_locked
#endif

static inline bool bh__single_swap16(void *at, uint64_t expected[2], const uint64_t desired[2]) {
    return (bh__single_16() ? bh__single_swap16_native : bh__single_swap16_locked)(at, expected,
                                                                                   desired);
}

typedef uint16_t __attribute__((may_alias)) bh__single_u16;
typedef uint32_t __attribute__((may_alias)) bh__single_u32;
typedef uint64_t __attribute__((may_alias)) bh__single_u64;

#define BH__SINGLE_COPY(T, to, from)                                                               \
    __atomic_store_n((T *)(to), __atomic_load_n((const T *)(from), __ATOMIC_RELAXED),              \
                     __ATOMIC_RELAXED)

/*
 * Copy 2, 4, 8, 16 or 32 bytes, both sides aligned to that: one access of memory, two if 32. The
 * side that is not memory is private to the caller.
 */
static inline void bh__single_load(void *to, const void *from, unsigned bytes) {
    switch (bytes) {
    case 2:
        BH__SINGLE_COPY(bh__single_u16, to, from);
        break;
    case 4:
        BH__SINGLE_COPY(bh__single_u32, to, from);
        break;
    case 8:
        BH__SINGLE_COPY(bh__single_u64, to, from);
        break;
    default:
        for (unsigned at = 0; at < bytes; at += 16) {
            (bh__single_16() ? bh__single_load16_native
                             : bh__single_load16_locked)((char *)to + at, (const char *)from + at);
        }
        break;
    }
}

static inline void bh__single_store(void *to, const void *from, unsigned bytes) {
    if (bytes < 16) {
        bh__single_load(to, from, bytes); /* the same: either side may be the memory */
        return;
    }
    for (unsigned at = 0; at < bytes; at += 16) {
        (bh__single_16() ? bh__single_store16_native
                         : bh__single_store16_locked)((char *)to + at, (const char *)from + at);
    }
}

#endif
