/* SPDX-License-Identifier: Apache-2.0 */
/* wmma: matrices of whole numbers are loaded, multiplied and stored, in every shape and layout. */
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"
#include "support/matrix.h"
#include "test.h"

typedef struct form {
    unsigned m, n, k;
    const char *d, *a, *c;
    const char *layouts; /* of A, B, C and D, 'r' or 'c' */
    const char *end;     /* "", ".satfinite", ".xor.popc" */
    const char *space;
    unsigned pad; /* elements between the lines of a matrix */
} form;

#define AREA 8192 /* bytes for each matrix in memory */

static _Alignas(256) uint8_t memory[4 * AREA];
static int left[32][128], right[128][32], sum[32][32];

static unsigned factor_registers(const char *type, unsigned cells) {
    return strcmp(type, "f16") == 0   ? 8
           : strcmp(type, "f64") == 0 ? cells / 32
                                      : cells * type_bits(type) / 1024;
}

static unsigned sum_registers(const form *f, const char *type) {
    return strcmp(type, "f16") == 0 ? f->m * f->n / 64 : f->m * f->n / 32;
}

/* Elements from the start of a matrix to one of them. */
static size_t index_of(char layout, unsigned rows, unsigned columns, unsigned pad, unsigned i,
                       unsigned j) {
    return layout == 'r' ? (size_t)i * (columns + pad) + j : (size_t)j * (rows + pad) + i;
}

static void put(uint8_t *area, const char *type, size_t index, int value) {
    uint64_t bits = number_bits(type, value);
    unsigned width = type_bits(type);
    if (width < 8) {
        area[index * width / 8] |= (uint8_t)(bits << index * width % 8);
    } else {
        memcpy(area + index * width / 8, &bits, width / 8);
    }
}

static void fill(const form *f, uint64_t *state) {
    memset(memory, 0, sizeof memory);
    for (unsigned k = 0; k < f->k; k++) {
        for (unsigned i = 0; i < f->m; i++) {
            left[i][k] = small_number(f->a, state);
            put(memory, f->a, index_of(f->layouts[0], f->m, f->k, f->pad, i, k), left[i][k]);
        }
        for (unsigned j = 0; j < f->n; j++) {
            right[k][j] = small_number(f->a, state);
            put(memory + AREA, f->a, index_of(f->layouts[1], f->k, f->n, f->pad, k, j),
                right[k][j]);
        }
    }
    for (unsigned i = 0; i < f->m; i++) {
        for (unsigned j = 0; j < f->n; j++) {
            sum[i][j] = small_number(f->c, state);
            put(memory + 2 * AREA, f->c, index_of(f->layouts[2], f->m, f->n, f->pad, i, j),
                sum[i][j]);
        }
    }
}

static const char *layout_name(char layout) {
    return layout == 'r' ? "row" : "col";
}

static void add_load(program *p, const form *f, char matrix, const char *type, char layout,
                     unsigned rows, unsigned columns, unsigned registers) {
    char prefix[2] = {matrix, 0};
    add(p, ".reg .%s %%%c<%u>;\nwmma.load.%c.sync.aligned.%s.m%un%uk%u%s.%s ", register_type(type),
        matrix, registers, matrix, layout_name(layout), f->m, f->n, f->k, f->space, type);
    add_registers(p, prefix, registers);
    add(p, ", [%%in+%u]", (unsigned)(matrix - 'a') * AREA);
    if (f->pad != 0) {
        add(p, ", %u", (layout == 'r' ? columns : rows) + f->pad);
    }
    add(p, ";\n");
}

static void write_program(const form *f, program *p) {
    bool half = strcmp(f->a, "f16") == 0, shared = strcmp(f->space, ".shared") == 0;
    unsigned nd = sum_registers(f, f->d), nc = sum_registers(f, f->c);
    unsigned na = factor_registers(f->a, f->m * f->k), nb = factor_registers(f->a, f->k * f->n);
    p->length = 0;
    add(p,
        PTX_HEAD ".entry k(.param .u64 p) { .reg .b64 %%in, %%g, %%s; .reg .b32 %%v;\n"
                 ".reg .pred %%p; .shared .align 256 .b8 area[%u];\nld.param.u64 %%in, [p];\n",
        4 * AREA);
    add(p,
        shared ? "mov.u64 %%g, %%in; mov.u64 %%in, area; mov.u64 %%s, %%in;\n"
                 "C: ld.global.b32 %%v, [%%g]; st.shared.b32 [%%s], %%v; add.u64 %%g, %%g, 4;\n"
                 "add.u64 %%s, %%s, 4; setp.lt.u64 %%p, %%s, %u; @%%p bra C;\n"
               : "// %u\n",
        3 * AREA);
    add_load(p, f, 'a', f->a, f->layouts[0], f->m, f->k, na);
    add_load(p, f, 'b', f->a, f->layouts[1], f->k, f->n, nb);
    add_load(p, f, 'c', f->c, f->layouts[2], f->m, f->n, nc);
    bool bits = strstr(f->end, "popc") != NULL;
    add(p, ".reg .%s %%d<%u>;\nwmma.mma%s.sync.aligned.%s.%s.m%un%uk%u.%s.", register_type(f->d),
        nd, bits ? f->end : "", layout_name(f->layouts[0]), layout_name(f->layouts[1]), f->m, f->n,
        f->k, f->d);
    if (!half) {
        add(p, "%s.%s.", f->a, f->a);
    }
    add(p, "%s%s ", f->c, bits ? "" : f->end);
    add_registers(p, "d", nd);
    add(p, ", ");
    add_registers(p, "a", na);
    add(p, ", ");
    add_registers(p, "b", nb);
    add(p, ", ");
    add_registers(p, "c", nc);
    add(p, ";\n%swmma.store.d.sync.aligned.%s.m%un%uk%u%s.%s [%%in+%u], ",
        shared ? "sub.u64 %in, %g, 24576;\n" : "", layout_name(f->layouts[3]), f->m, f->n, f->k,
        shared ? ".global" : f->space, f->d, 3 * AREA);
    add_registers(p, "d", nd);
    if (f->pad != 0) {
        add(p, ", %u", (f->layouts[3] == 'r' ? f->n : f->m) + f->pad);
    }
    add(p, ";\nret; }\n");
}

static void check_result(const form *f, const char *text) {
    for (unsigned i = 0; i < f->m; i++) {
        for (unsigned j = 0; j < f->n; j++) {
            int want = sum[i][j];
            for (unsigned k = 0; k < f->k; k++) {
                want += strstr(f->end, "xor") ? left[i][k] ^ right[k][j] : left[i][k] * right[k][j];
            }
            uint64_t have = 0;
            unsigned bytes = type_bits(f->d) / 8;
            memcpy(&have,
                   memory + 3 * AREA + index_of(f->layouts[3], f->m, f->n, f->pad, i, j) * bytes,
                   bytes);
            if (have != number_bits(f->d, want)) {
                FAIL("element %u, %u is 0x%llx, not %d: %s", i, j, (unsigned long long)have, want,
                     strstr(text, "wmma.load.a"));
                return;
            }
        }
    }
}

static void try_form(const form *f) {
    static program p;
    uint64_t state = f->m * 64 + f->k;
    kernel k;
    fill(f, &state);
    write_program(f, &p);
    CHECK_EQ(run_text(&k, p.text, 32, memory, sizeof memory), BH__PTX_DONE);
    check_result(f, p.text);
}

static void try_layouts(form f, bool all) {
    static const char *const spaces[] = {"", ".global", ".shared"};
    for (unsigned n = 0; n < 16; n++) {
        char layouts[5] = {n & 1 && all ? 'c' : 'r', n & 2 && all ? 'r' : 'c', n & 4 ? 'c' : 'r',
                           n & 8 ? 'c' : 'r', 0};
        f.layouts = layouts;
        f.space = spaces[n % 3];
        f.pad = n % 2 ? 0 : type_bits(f.a) < 8 ? 128 : 8;
        try_form(&f);
    }
}

static const unsigned shapes[3][3] = {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}};

TEST(products_of_halves) {
    for (int n = 0; n < 12; n++) {
        const unsigned *s = shapes[n / 4];
        try_layouts((form){s[0], s[1], s[2], n & 1 ? "f16" : "f32", "f16", n & 2 ? "f16" : "f32",
                           "", "", "", 0},
                    true);
    }
}

TEST(products_of_other_floats) {
    for (int n = 0; n < 3; n++) {
        const unsigned *s = shapes[n];
        try_layouts((form){s[0], s[1], s[2], "f32", "bf16", "f32", "", "", "", 0}, true);
    }
    try_layouts((form){16, 16, 8, "f32", "tf32", "f32", "", "", "", 0}, true);
    try_layouts((form){8, 8, 4, "f64", "f64", "f64", "", "", "", 0}, true);
}

TEST(products_of_integers_and_bits) {
    for (int n = 0; n < 6; n++) {
        const unsigned *s = shapes[n / 2];
        const char *type = n % 2 ? "u8" : "s8", *end = n % 2 ? ".satfinite" : "";
        try_layouts((form){s[0], s[1], s[2], "s32", type, "s32", "", end, "", 0}, true);
    }
    try_layouts((form){8, 8, 32, "s32", "s4", "s32", "", "", "", 0}, false);
    try_layouts((form){8, 8, 32, "s32", "u4", "s32", "", ".satfinite", "", 0}, false);
    try_layouts((form){8, 8, 128, "s32", "b1", "s32", "", ".xor.popc", "", 0}, false);
    try_layouts((form){8, 8, 128, "s32", "b1", "s32", "", ".and.popc", "", 0}, false);
}

/* What a program does to every register of a fragment it does to every element of the matrix. */
TEST(fragments_can_be_changed_element_by_element) {
    static program p;
    form f = {16, 16, 16, "f32", "f16", "f32", "rcrr", "", "", 0};
    uint64_t state = 5;
    kernel k;
    fill(&f, &state);
    write_program(&f, &p);
    char rest[8192];
    char *at = strstr(p.text, "wmma.mma");
    REQUIRE(at != NULL);
    strcpy(rest, at);
    p.length = (size_t)(at - p.text);
    add(&p, ".reg .b32 %%two; mov.b32 %%two, 0x40004000;\n");
    for (unsigned n = 0; n < 8; n++) {
        add(&p, "mul.rn.f16x2 %%a%u, %%a%u, %%two; add.f32 %%c%u, %%c%u, %%c%u;\n", n, n, n, n, n);
    }
    add(&p, "%s", rest);
    CHECK_EQ(run_text(&k, p.text, 32, memory, sizeof memory), BH__PTX_DONE);
    for (unsigned i = 0; i < 16; i++) {
        for (unsigned n = 0; n < 16; n++) {
            left[i][n] *= 2;
            sum[i][n] *= 2;
        }
    }
    check_result(&f, p.text);
}

#define R8 "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"
#define F8 "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}"

TEST(forms_that_do_not_exist_are_refused) {
    check_refused("wmma.load.a.sync.aligned.row.m16n16k8.f16 " R8 ", [%out];",
                  "wmma has no form m16n16k8.f16");
    check_refused("wmma.load.a.sync.aligned.row.m16n16k4.f16 " R8 ", [%out];",
                  "wmma has no form m16n16k4.f16");
    check_refused("wmma.load.a.sync.aligned.m16n16k16.f16 " R8 ", [%out];", "one of .row and .col");
    check_refused("wmma.load.d.sync.aligned.row.m16n16k16.f16 " R8 ", [%out];", "another matrix");
    check_refused("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0, %r1, %r2, %r3}, [%out];",
                  "operand 1 has 4 registers where 8 are needed");
    check_refused("wmma.load.a.sync.aligned.row.m16n16k16.f16 " F8 ", [%out];",
                  "operand 1 has a .f32 register");
    check_refused("wmma.load.a.sync.aligned.col.m8n8k32.s4 {%r0}, [%out];", "small elements");
    check_refused("wmma.load.a.sync.aligned.row.m16n16k16.f16 " R8 ", [%out], %rd1;", "stride");
    check_refused("wmma.load.a.sync.aligned.row.m16n16k16.f16 " R8 ", [%r1];", "address");
    check_refused("wmma.store.d.sync.aligned.row.m16n16k16.bf16 [%out], {%r0, %r1, %r2, %r3};",
                  "wmma has no form m16n16k16.bf16");
    check_refused("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16.f16.f32 " F8 ", " R8 ", " R8
                  ", " F8 ";",
                  "has no form");
    check_refused("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 " R8
                  ", {%r0, %r1}, {%r2, %r3}, " R8 ";",
                  "has no form");
    check_refused("wmma.mma.sync.aligned.row.m16n16k16.f32.f32 " F8 ", " R8 ", " R8 ", " F8 ";",
                  "two layouts");
    check_refused("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite " F8 ", " R8 ", " R8
                  ", " F8 ";",
                  ".satfinite");
}
