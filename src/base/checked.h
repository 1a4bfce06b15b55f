/* SPDX-License-Identifier: Apache-2.0 */
/* Checked arithmetic on sizes. Each function returns false, with *out unchanged, if the result
 * overflows. */
#ifndef BH_BASE_CHECKED_H
#define BH_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BH__DEFINE_CHECKED(name, type, builtin)                                                    \
    static inline bool name(type a, type b, type *out) {                                           \
        type result;                                                                               \
        if (builtin(a, b, &result)) {                                                              \
            return false;                                                                          \
        }                                                                                          \
        *out = result;                                                                             \
        return true;                                                                               \
    }
BH__DEFINE_CHECKED(bh__add_u32, uint32_t, __builtin_add_overflow)
BH__DEFINE_CHECKED(bh__sub_u32, uint32_t, __builtin_sub_overflow)
BH__DEFINE_CHECKED(bh__mul_u32, uint32_t, __builtin_mul_overflow)
BH__DEFINE_CHECKED(bh__add_u64, uint64_t, __builtin_add_overflow)
BH__DEFINE_CHECKED(bh__sub_u64, uint64_t, __builtin_sub_overflow)
BH__DEFINE_CHECKED(bh__mul_u64, uint64_t, __builtin_mul_overflow)
BH__DEFINE_CHECKED(bh__add_size, size_t, __builtin_add_overflow)
BH__DEFINE_CHECKED(bh__sub_size, size_t, __builtin_sub_overflow)
BH__DEFINE_CHECKED(bh__mul_size, size_t, __builtin_mul_overflow)
#undef BH__DEFINE_CHECKED

static inline bool bh__is_power_of_two(uint64_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

/* Rounds up to a multiple of `alignment`, which is a power of two. */
static inline bool bh__align_up_u64(uint64_t value, uint64_t alignment, uint64_t *out) {
    uint64_t padded;
    if (!bh__add_u64(value, alignment - 1, &padded)) {
        return false;
    }
    *out = padded & ~(alignment - 1);
    return true;
}

/* Returns true if [offset, offset + size) lies within [0, limit). Safe against overflow. */
static inline bool bh__range_fits(uint64_t offset, uint64_t size, uint64_t limit) {
    return size <= limit && offset <= limit - size;
}

#endif
