/* SPDX-License-Identifier: Apache-2.0 */
/* Text of limited length, and values of PTX types in it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/debug/debug.h"
#include "ptx/half.h"

void bh__ptx_string_add(bh__ptx_string *text, const char *format, ...) {
    size_t room = text->capacity - text->length;
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text->at + text->length, room, format, list);
    va_end(list);
    if (length < 0 || (size_t)length >= room) {
        text->at[text->length] = '\0'; /* all of it or nothing */
        text->cut = true;
        return;
    }
    text->length += (size_t)length;
}

typedef unsigned long long ull;

/* The fewest digits that read back to the same value. */
static void add_float(bh__ptx_string *text, double value, bool single) {
    char digits[40];
    for (int precision = single ? 6 : 15; precision <= (single ? 9 : 17); precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        double back = strtod(digits, NULL);
        if ((single ? (double)(float)back : back) == value || isnan(value)) {
            break;
        }
    }
    bh__ptx_string_add(text, "%s", digits);
}

static void add_half(bh__ptx_string *text, uint16_t bits, bool brain) {
    add_float(text, (double)(brain ? bh__bf16_to_float(bits) : bh__f16_to_float(bits)), true);
}

/* Bits: as a number if it is likely to be one, because addresses and masks are better read in
 * hexadecimal only. */
static void add_bits(bh__ptx_string *text, uint64_t bits, unsigned bytes) {
    int64_t number = bytes == 8   ? (int64_t)bits
                     : bytes == 4 ? (int32_t)(uint32_t)bits
                     : bytes == 2 ? (int16_t)(uint16_t)bits
                                  : (int8_t)(uint8_t)bits;
    if (bytes < 8 || (number > INT32_MIN && number < INT32_MAX)) {
        bh__ptx_string_add(text, "%lld ", (long long)number);
        bh__ptx_string_add(text, "(0x%llx)", (ull)bits);
    } else {
        bh__ptx_string_add(text, "0x%llx", (ull)bits);
    }
}

void bh__ptx_string_value(bh__ptx_string *text, bh__ptx_type type, uint64_t low, uint64_t high) {
    unsigned bytes = bh__ptx_bytes(type);
    uint64_t bits = bytes >= 8 ? low : low & ((UINT64_C(1) << 8 * bytes) - 1);
    switch (type) {
    case T_PRED:
        bh__ptx_string_add(text, "%s", low & 1 ? "true" : "false");
        return;
    case T_B128:
        bh__ptx_string_add(text, "0x%016llx%016llx", (ull)high, (ull)low);
        return;
    case T_F32:
    case T_TF32:
        add_float(text, (double)bh__float_of_bits((uint32_t)bits), true);
        break;
    case T_F64:
        add_float(text, bh__double_of_bits(bits), false);
        break;
    case T_F16:
    case T_BF16:
        add_half(text, (uint16_t)bits, type == T_BF16);
        break;
    case T_F16X2:
    case T_BF16X2:
        bh__ptx_string_add(text, "{");
        add_half(text, (uint16_t)bits, type == T_BF16X2);
        bh__ptx_string_add(text, ", ");
        add_half(text, (uint16_t)(bits >> 16), type == T_BF16X2);
        bh__ptx_string_add(text, "}");
        break;
    default:
        if (bh__ptx_class(type) == 'U') {
            bh__ptx_string_add(text, "%llu (0x%llx)", (ull)bits, (ull)bits);
            return;
        }
        add_bits(text, bits, bytes);
        return;
    }
    bh__ptx_string_add(text, " (0x%0*llx)", (int)bytes * 2, (ull)bits);
}
