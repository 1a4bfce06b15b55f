/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of small whole numbers in the types of matrix instructions, and PTX text, for tests. */
#include "support/matrix.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/half.h"
#include "support/kernel.h"
#include "test.h"

void add(program *p, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(p->text + p->length, sizeof p->text - p->length, format, list);
    va_end(list);
    REQUIRE(n >= 0 && p->length + (size_t)n < sizeof p->text);
    p->length += (size_t)n;
}

void kernel_text(program *p, const char *body) {
    const char *whole = PTX_KERNEL("\1"), *at = strchr(whole, 1);
    p->length = 0;
    add(p, "%.*s%s%s", (int)(at - whole), whole, body, at + 1);
}

void check_refused(const char *instruction, const char *why) {
    static program p;
    bh_error error;
    kernel_text(&p, instruction);
    CHECK_NE(load_error(p.text, p.length, &error), BH_OK);
    if (strstr(error.message, why) == NULL) {
        FAIL("\"%s\" does not say \"%s\"", error.message, why);
    }
}

void add_registers(program *p, const char *prefix, unsigned count) {
    for (unsigned n = 0; n < count; n++) {
        add(p, "%s%%%s%u", n == 0 ? "{" : ", ", prefix, n);
    }
    add(p, "}");
}

void add_loads(program *p, const char *prefix, const char *type, unsigned count, unsigned first) {
    add(p, ".reg .%s %%%s<%u>;\n", type, prefix, count);
    for (unsigned n = 0; n < count; n++) {
        add(p, "ld.global.%s %%%s%u, [%%in+%u];\n", type, prefix, n, 8 * (first + n));
    }
}

void add_stores(program *p, const char *prefix, const char *type, unsigned count, unsigned first) {
    for (unsigned n = 0; n < count; n++) {
        add(p, "st.global.%s [%%in+%u], %%%s%u;\n", type, 8 * (first + n), prefix, n);
    }
}

static bool is(const char *type, const char *name) {
    return strcmp(type, name) == 0;
}

unsigned type_bits(const char *type) {
    if (is(type, "e4m3") || is(type, "e5m2")) {
        return 8;
    }
    return is(type, "tf32") ? 32 : (unsigned)atoi(type + strcspn(type, "0123456789"));
}

const char *register_type(const char *type) {
    return is(type, "f64") ? "f64" : is(type, "f32") ? "f32" : "b32";
}

uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

int small_number(const char *type, uint64_t *state) {
    int n = (int)(next_random(state) % 9);
    return is(type, "b1") ? n % 2 : type[0] == 'u' ? n % 5 : n - 4;
}

uint64_t number_bits(const char *type, int value) {
    double v = value, magnitude = abs(value);
    uint64_t sign = value < 0 ? 1 : 0;
    if (is(type, "f16")) {
        return bh__f16_from_double(v, BH__ROUND_NEAREST);
    }
    if (is(type, "bf16")) {
        return bh__bf16_from_double(v, BH__ROUND_NEAREST);
    }
    if (is(type, "f32") || is(type, "tf32")) {
        return bh__bits_of_float((float)v);
    }
    if (is(type, "f64")) {
        return bh__bits_of_double(v);
    }
    if (is(type, "e5m2")) {
        return sign << 7 | bh__narrow_double(magnitude, 2, 5, BH__ROUND_NEAREST);
    }
    if (is(type, "e4m3")) {
        return sign << 7 | bh__narrow_double(magnitude * 0x1p-8, 3, 5, BH__ROUND_NEAREST);
    }
    return (uint64_t)(int64_t)value & (UINT64_MAX >> (64 - type_bits(type)));
}
