/* SPDX-License-Identifier: Apache-2.0 */
/* Functions across the lanes of a warp: shuffles, votes, matches and reductions. */
#ifndef BULKHEAD_WARP_H
#define BULKHEAD_WARP_H

#include "bulkhead_types.h"

/* The 32-bit shuffles; `clamp` is the last lane of a segment, or 0 for up. */
#define __BH_SHUFFLE_WORD(name, kind, clamp)                                                       \
    __BH_DEVICE unsigned name(unsigned mask, unsigned value, unsigned lane, int width) {           \
        unsigned result, control = (unsigned)(32 - width) << 8 | clamp;                            \
        asm volatile("shfl.sync." kind ".b32 %0, %1, %2, %3, %4;"                                  \
                     : "=r"(result)                                                                \
                     : "r"(value), "r"(lane), "r"(control), "r"(mask));                            \
        return result;                                                                             \
    }
__BH_SHUFFLE_WORD(__bh_shfl_idx, "idx", 31u)
__BH_SHUFFLE_WORD(__bh_shfl_up, "up", 0u)
__BH_SHUFFLE_WORD(__bh_shfl_down, "down", 31u)
__BH_SHUFFLE_WORD(__bh_shfl_bfly, "bfly", 31u)
#undef __BH_SHUFFLE_WORD

#define __BH_SHUFFLE_32(name, word, type, lane_type)                                               \
    __BH_DEVICE type name(unsigned mask, type value, lane_type lane, int width = 32) {             \
        return __bh_bits<type>(word(mask, __bh_bits<unsigned>(value), (unsigned)lane, width));     \
    }
#define __BH_SHUFFLE_64(name, word, type, lane_type)                                               \
    __BH_DEVICE type name(unsigned mask, type value, lane_type lane, int width = 32) {             \
        unsigned long long bits = __bh_bits<unsigned long long>(value);                            \
        unsigned low = word(mask, (unsigned)bits, (unsigned)lane, width);                          \
        unsigned high = word(mask, (unsigned)(bits >> 32), (unsigned)lane, width);                 \
        return __bh_bits<type>((unsigned long long)high << 32 | low);                              \
    }
#define __BH_SHUFFLES(name, word, lane_type)                                                       \
    __BH_SHUFFLE_32(name, word, int, lane_type)                                                    \
    __BH_SHUFFLE_32(name, word, unsigned, lane_type)                                               \
    __BH_SHUFFLE_32(name, word, float, lane_type)                                                  \
    __BH_SHUFFLE_64(name, word, long, lane_type)                                                   \
    __BH_SHUFFLE_64(name, word, unsigned long, lane_type)                                          \
    __BH_SHUFFLE_64(name, word, long long, lane_type)                                              \
    __BH_SHUFFLE_64(name, word, unsigned long long, lane_type)                                     \
    __BH_SHUFFLE_64(name, word, double, lane_type)
__BH_SHUFFLES(__shfl_sync, __bh_shfl_idx, int)
__BH_SHUFFLES(__shfl_up_sync, __bh_shfl_up, unsigned)
__BH_SHUFFLES(__shfl_down_sync, __bh_shfl_down, unsigned)
__BH_SHUFFLES(__shfl_xor_sync, __bh_shfl_bfly, int)
#undef __BH_SHUFFLES
#undef __BH_SHUFFLE_32
#undef __BH_SHUFFLE_64

#define __BH_VOTE(name, kind)                                                                      \
    __BH_DEVICE int name(unsigned mask, int predicate) {                                           \
        int result;                                                                                \
        asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.s32 p, %1, 0;\n\t"                          \
                     "vote.sync." kind ".pred q, p, %2;\n\tselp.s32 %0, 1, 0, q;\n\t}"             \
                     : "=r"(result)                                                                \
                     : "r"(predicate), "r"(mask));                                                 \
        return result;                                                                             \
    }
__BH_VOTE(__all_sync, "all")
__BH_VOTE(__any_sync, "any")
__BH_VOTE(__uni_sync, "uni")
#undef __BH_VOTE

__BH_DEVICE unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned result;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %1, 0;\n\t"
                 "vote.sync.ballot.b32 %0, p, %2;\n\t}"
                 : "=r"(result)
                 : "r"(predicate), "r"(mask));
    return result;
}
__BH_DEVICE unsigned __activemask() {
    unsigned result;
    asm volatile("activemask.b32 %0;" : "=r"(result));
    return result;
}

#define __BH_MATCH(type, bits, letter, suffix)                                                     \
    __BH_DEVICE unsigned __match_any_sync(unsigned mask, type value) {                             \
        unsigned result;                                                                           \
        asm volatile("match.any.sync." suffix " %0, %1, %2;"                                       \
                     : "=r"(result)                                                                \
                     : letter(__bh_bits<bits>(value)), "r"(mask));                                 \
        return result;                                                                             \
    }                                                                                              \
    __BH_DEVICE unsigned __match_all_sync(unsigned mask, type value, int *all) {                   \
        unsigned result;                                                                           \
        int same;                                                                                  \
        asm volatile("{\n\t.reg .pred p;\n\tmatch.all.sync." suffix " %0|p, %2, %3;\n\t"           \
                     "selp.s32 %1, 1, 0, p;\n\t}"                                                  \
                     : "=&r"(result), "=r"(same)                                                   \
                     : letter(__bh_bits<bits>(value)), "r"(mask));                                 \
        *all = same;                                                                               \
        return result;                                                                             \
    }
__BH_MATCH(int, unsigned, "r", "b32")
__BH_MATCH(unsigned, unsigned, "r", "b32")
__BH_MATCH(float, unsigned, "r", "b32")
__BH_MATCH(long, unsigned long long, "l", "b64")
__BH_MATCH(unsigned long, unsigned long long, "l", "b64")
__BH_MATCH(long long, unsigned long long, "l", "b64")
__BH_MATCH(unsigned long long, unsigned long long, "l", "b64")
__BH_MATCH(double, unsigned long long, "l", "b64")
#undef __BH_MATCH

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define __BH_REDUCE(name, type, operation)                                                         \
    __BH_DEVICE type name(unsigned mask, type value) {                                             \
        type result;                                                                               \
        asm volatile("redux.sync." operation " %0, %1, %2;"                                        \
                     : "=r"(result)                                                                \
                     : "r"(value), "r"(mask));                                                     \
        return result;                                                                             \
    }
__BH_REDUCE(__reduce_add_sync, unsigned, "add.u32")
__BH_REDUCE(__reduce_add_sync, int, "add.s32")
__BH_REDUCE(__reduce_min_sync, unsigned, "min.u32")
__BH_REDUCE(__reduce_min_sync, int, "min.s32")
__BH_REDUCE(__reduce_max_sync, unsigned, "max.u32")
__BH_REDUCE(__reduce_max_sync, int, "max.s32")
__BH_REDUCE(__reduce_and_sync, unsigned, "and.b32")
__BH_REDUCE(__reduce_or_sync, unsigned, "or.b32")
__BH_REDUCE(__reduce_xor_sync, unsigned, "xor.b32")
#undef __BH_REDUCE
#endif

__BH_DEVICE unsigned __bh_lane() {
    return (unsigned)__nvvm_read_ptx_sreg_laneid();
}

#endif
