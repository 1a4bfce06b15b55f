/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: their sizes and names. */
#include "bulkhead.h"

static const struct {
    size_t size;
    const char *name;
} types[] = {
    [BH_I8] = {1, "i8"},   [BH_U8] = {1, "u8"},      [BH_I16] = {2, "i16"}, [BH_U16] = {2, "u16"},
    [BH_I32] = {4, "i32"}, [BH_U32] = {4, "u32"},    [BH_I64] = {8, "i64"}, [BH_U64] = {8, "u64"},
    [BH_F16] = {2, "f16"}, [BH_BF16] = {2, "bf16"},  [BH_F32] = {4, "f32"}, [BH_F64] = {8, "f64"},
    [BH_C64] = {8, "c64"}, [BH_C128] = {16, "c128"},
};

static bool is_type(bh_type type) {
    return type < sizeof types / sizeof types[0] && types[type].size != 0;
}

size_t bh_type_size(bh_type type) {
    return is_type(type) ? types[type].size : 0;
}

const char *bh_type_name(bh_type type) {
    return is_type(type) ? types[type].name : "?";
}
