/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads, stores and atomic operations with a memory order and a thread scope, as PTX has them.
 * Sequential consistency is a fence.sc before an access that acquires; a store needs no more than
 * the fence, which also releases.
 */
#ifndef BULKHEAD_ATOMIC_ACCESS_H
#define BULKHEAD_ATOMIC_ACCESS_H

#include "bulkhead_cuda.h"

namespace cuda {

enum thread_scope {
    thread_scope_system = 0,
    thread_scope_device = 1,
    thread_scope_block = 2,
    thread_scope_thread = 10
};

namespace std {
enum memory_order {
    memory_order_relaxed,
    memory_order_consume,
    memory_order_acquire,
    memory_order_release,
    memory_order_acq_rel,
    memory_order_seq_cst
};
} // namespace std
using std::memory_order;
using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_consume;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

/* What a failed exchange may still do: it stores nothing. */
__BH_BOTH constexpr memory_order __bh_order_of_failure(memory_order order) {
    return order == memory_order_acq_rel   ? memory_order_acquire
           : order == memory_order_release ? memory_order_relaxed
                                           : order;
}

/* The order is a constant almost always, so that one line remains of each. */
#define __BH_EACH_ORDER(scope, before, after, ...)                                                 \
    if (order == memory_order_seq_cst) {                                                           \
        asm volatile("fence.sc." scope ";" : : : "memory");                                        \
        order = memory_order_acquire;                                                              \
    }                                                                                              \
    if (order == memory_order_relaxed) {                                                           \
        asm volatile(before ".relaxed." scope after __VA_ARGS__ : "memory");                       \
    } else if (order == memory_order_release) {                                                    \
        asm volatile(before ".release." scope after __VA_ARGS__ : "memory");                       \
    } else if (order == memory_order_acq_rel) {                                                    \
        asm volatile(before ".acq_rel." scope after __VA_ARGS__ : "memory");                       \
    } else {                                                                                       \
        asm volatile(before ".acquire." scope after __VA_ARGS__ : "memory");                       \
    }

#define __BH_ACCESS(bits, type, letter, scope)                                                     \
    static __device__ type load(const type *at, memory_order order) {                              \
        type value;                                                                                \
        if (order == memory_order_seq_cst) asm volatile("fence.sc." scope ";" : : : "memory");     \
        if (order == memory_order_relaxed) {                                                       \
            asm volatile("ld.relaxed." scope "." bits " %0, [%1];"                                 \
                         : "=" letter(value)                                                       \
                         : "l"(at)                                                                 \
                         : "memory");                                                              \
        } else {                                                                                   \
            asm volatile("ld.acquire." scope "." bits " %0, [%1];"                                 \
                         : "=" letter(value)                                                       \
                         : "l"(at)                                                                 \
                         : "memory");                                                              \
        }                                                                                          \
        return value;                                                                              \
    }                                                                                              \
    static __device__ void store(type *at, type value, memory_order order) {                       \
        if (order == memory_order_seq_cst) {                                                       \
            asm volatile("fence.sc." scope ";" : : : "memory");                                    \
            order = memory_order_relaxed;                                                          \
        }                                                                                          \
        if (order == memory_order_relaxed) {                                                       \
            asm volatile("st.relaxed." scope "." bits " [%0], %1;"                                 \
                         :                                                                         \
                         : "l"(at), letter(value)                                                  \
                         : "memory");                                                              \
        } else {                                                                                   \
            asm volatile("st.release." scope "." bits " [%0], %1;"                                 \
                         :                                                                         \
                         : "l"(at), letter(value)                                                  \
                         : "memory");                                                              \
        }                                                                                          \
    }
#define __BH_CHANGE(name, operation, type, letter, scope)                                          \
    static __device__ type name(type *at, type value, memory_order order) {                        \
        type old;                                                                                  \
        __BH_EACH_ORDER(scope, "atom", "." operation " %0, [%1], %2;",                             \
                        : "=" letter(old)                                                          \
                        : "l"(at), letter(value))                                                  \
        return old;                                                                                \
    }
#define __BH_COMPARE(operation, type, letter, scope)                                               \
    static __device__ type compare_exchange(type *at, type expected, type value,                   \
                                            memory_order order) {                                  \
        type old;                                                                                  \
        __BH_EACH_ORDER(scope, "atom", "." operation " %0, [%1], %2, %3;",                         \
                        : "=" letter(old)                                                          \
                        : "l"(at), letter(expected), letter(value))                                \
        return old;                                                                                \
    }
#define __BH_WORDS(word, with_sign, bits, letter, scope)                                           \
    __BH_ACCESS("b" bits, word, letter, scope)                                                     \
    __BH_COMPARE("cas.b" bits, word, letter, scope)                                                \
    __BH_CHANGE(exchange, "exch.b" bits, word, letter, scope)                                      \
    __BH_CHANGE(fetch_add, "add.u" bits, word, letter, scope)                                      \
    __BH_CHANGE(fetch_and, "and.b" bits, word, letter, scope)                                      \
    __BH_CHANGE(fetch_or, "or.b" bits, word, letter, scope)                                        \
    __BH_CHANGE(fetch_xor, "xor.b" bits, word, letter, scope)                                      \
    __BH_CHANGE(fetch_min, "min.u" bits, word, letter, scope)                                      \
    __BH_CHANGE(fetch_max, "max.u" bits, word, letter, scope)                                      \
    __BH_CHANGE(fetch_min, "min.s" bits, with_sign, letter, scope)                                 \
    __BH_CHANGE(fetch_max, "max.s" bits, with_sign, letter, scope)

template <thread_scope Scope> struct __bh_access;
#define __BH_SCOPE(of, scope)                                                                      \
    template <> struct __bh_access<of> {                                                           \
        __BH_WORDS(unsigned, int, "32", "r", scope)                                                \
        __BH_WORDS(unsigned long long, long long, "64", "l", scope)                                \
        __BH_CHANGE(fetch_add, "add.f32", float, "f", scope)                                       \
        __BH_CHANGE(fetch_add, "add.f64", double, "d", scope)                                      \
        __BH_ACCESS("b16", unsigned short, "h", scope)                                             \
        __BH_COMPARE("cas.b16", unsigned short, "h", scope)                                        \
        static __device__ void fence(memory_order order) {                                         \
            if (order == memory_order_seq_cst) {                                                   \
                asm volatile("fence.sc." scope ";" : : : "memory");                                \
            } else if (order != memory_order_relaxed) {                                            \
                asm volatile("fence.acq_rel." scope ";" : : : "memory");                           \
            }                                                                                      \
        }                                                                                          \
        /* Bytes are in 16-bit registers, and change within their 16-bit word. */                  \
        struct bytes {                                                                             \
            __BH_ACCESS("b8", unsigned short, "h", scope)                                          \
        };                                                                                         \
        static __device__ unsigned char load(const unsigned char *at, memory_order order) {        \
            return (unsigned char)bytes::load((const unsigned short *)at, order);                  \
        }                                                                                          \
        static __device__ void store(unsigned char *at, unsigned char value, memory_order order) { \
            bytes::store((unsigned short *)at, value, order);                                      \
        }                                                                                          \
        static __device__ unsigned char compare_exchange(unsigned char *at,                        \
                                                         unsigned char expected,                   \
                                                         unsigned char value,                      \
                                                         memory_order order) {                     \
            unsigned short *word = (unsigned short *)((size_t)at & ~(size_t)1);                    \
            unsigned shift = ((unsigned)(size_t)at & 1u) * 8u, mask = 0xffu << shift;              \
            unsigned short seen = load(word, memory_order_relaxed);                                \
            for (;;) {                                                                             \
                unsigned char now = (unsigned char)(seen >> shift);                                \
                /* if it is another value, the exchange with itself has the order */               \
                unsigned next = now == expected ? value : now;                                     \
                unsigned short old = compare_exchange(                                             \
                    word, seen, (unsigned short)((seen & ~mask) | next << shift), order);          \
                if (old == seen) return now;                                                       \
                seen = old;                                                                        \
            }                                                                                      \
        }                                                                                          \
    };
__BH_SCOPE(thread_scope_block, "cta")
__BH_SCOPE(thread_scope_device, "gpu")
__BH_SCOPE(thread_scope_system, "sys")
#undef __BH_SCOPE
#undef __BH_WORDS
#undef __BH_COMPARE
#undef __BH_CHANGE
#undef __BH_ACCESS
#undef __BH_EACH_ORDER
/* No other thread takes part; PTX has no smaller scope. */
template <> struct __bh_access<thread_scope_thread> : __bh_access<thread_scope_block> {};

/* The register type for values of a size. */
template <size_t Bytes> struct __bh_word {
    static_assert(Bytes == 1 || Bytes == 2 || Bytes == 4 || Bytes == 8,
                  "atomic objects have 1, 2, 4 or 8 bytes");
};
template <> struct __bh_word<1> { typedef unsigned char type; };
template <> struct __bh_word<2> { typedef unsigned short type; };
template <> struct __bh_word<4> { typedef unsigned type; };
template <> struct __bh_word<8> { typedef unsigned long long type; };

} // namespace cuda

#endif
