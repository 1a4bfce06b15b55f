/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma against products in whole numbers, in the canonical layouts of the PTX manual. */
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"
#include "support/matrix.h"
#include "test.h"

#define THREADS 128
#define AREA    (44 * 1024) /* of shared memory */
#define PLACE_B (10 * 1024)

typedef struct form {
    unsigned n, k; /* m is 64 */
    const char *d, *a, *b;
    const char *end; /* "", ".satfinite", ".and.popc" */
    unsigned width;  /* of the swizzle: 16 (none), 32, 64, 128 */
    bool across_a, across_b;
    bool in_registers; /* A */
    bool negate_a, negate_b, no_sum;
    unsigned start; /* bytes into the line, where the product starts */
    unsigned base;  /* lines of 128 bytes by which the pattern is shifted */
    bool sparse;
    unsigned selector;
} form;

static int left[64][512], right[512][256], sum[64][256];
static unsigned position[64][256]; /* of the stored elements of A */
static uint32_t metadata[THREADS];
static struct {
    uint64_t descriptors[2];
    uint64_t registers[THREADS][144]; /* A, metadata, D */
    _Alignas(16) uint8_t area[AREA];
} memory;

static unsigned bytes_in_chunk(const form *f) {
    return 128 / type_bits(f->a); /* elements in 16 bytes */
}

typedef struct place {
    unsigned width, leading, stride, at, base; /* bytes; base: see form */
    bool across;
} place;

/* The canonical layouts, in elements, with strides in bytes. Returns a bit. */
static size_t bit_of(const form *f, const place *p, unsigned outer, unsigned k) {
    unsigned bits = type_bits(f->a), t = bytes_in_chunk(f), w = p->width / 16;
    size_t offset; /* in bits */
    if (!p->across) {
        size_t chunk = p->width == 16 ? (size_t)(k / t) * p->leading * 8 : (size_t)(k / t) * 128;
        offset = (size_t)(outer % 8) * w * 128 + (size_t)(outer / 8) * p->stride * 8 +
                 k % t * bits + chunk;
    } else if (p->width == 16) {
        offset = outer % t * bits + (size_t)(outer / t) * p->stride * 8 + (size_t)(k % 8) * 128 +
                 (size_t)(k / 8) * p->leading * 8;
    } else {
        offset = outer % t * bits + (size_t)(outer / t % w) * 128 +
                 (size_t)(outer / (t * w)) * p->leading * 8 + (size_t)(k % 8) * w * 128 +
                 (size_t)(k / 8) * p->stride * 8;
    }
    /* Swizzle<log2 w, 4, 3> of the bytes, from the start of the pattern on */
    size_t byte = offset / 8;
    byte ^= (byte >> 7 & (w - 1)) << 4;
    return (p->at + byte) * 8 + offset % 8;
}

static void put(const form *f, const char *type, const place *p, unsigned outer, unsigned k,
                int value) {
    size_t bit = bit_of(f, p, outer, k);
    uint64_t bits = number_bits(type, value);
    REQUIRE(bit / 8 + 8 <= AREA);
    if (type_bits(type) == 1) {
        memory.area[bit / 8] |= (uint8_t)(bits << bit % 8);
    } else {
        memcpy(memory.area + bit / 8, &bits, type_bits(type) / 8);
    }
}

static uint64_t descriptor(const form *f, const place *p) {
    uint64_t mode = p->width == 128 ? 1 : p->width == 64 ? 2 : p->width == 32 ? 3 : 0;
    return (uint64_t)(p->at + f->start) >> 4 | (uint64_t)p->leading >> 4 << 16 |
           (uint64_t)p->stride >> 4 << 32 | (uint64_t)p->base << 49 | mode << 62;
}

/* Blocks lie one after the other, and some bytes apart where the layout lets us choose. */
static place place_of(const form *f, bool across, unsigned outer, unsigned bytes, unsigned at) {
    unsigned w = f->width;
    place p = {.width = w, .across = across, .base = f->base, .at = at + 128 * f->base};
    if (!across && w == 16) { /* chunks of a row far apart */
        p.stride = 128;
        p.leading = outer * 16 + 64;
    } else if (!across) {
        p.stride = 8 * w;
        p.leading = bytes > w ? outer * w : 16;
    } else if (w == 16) {
        p.stride = 128;
        p.leading = outer * 16;
    } else {
        p.leading = 8 * w;
        p.stride = (outer * 2 + w - 1) / w * 8 * w;
    }
    return p;
}

static unsigned stored_of(const form *f) {
    return f->sparse ? f->k / 2 : f->k;
}

static void choose_positions(const form *f, unsigned row, uint64_t *state) {
    static const uint8_t pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
    bool single = strcmp(f->a, "tf32") == 0;
    unsigned chunks = stored_of(f) / (single ? 1 : 2);
    for (unsigned c = 0; c < chunks; c++) {
        const uint8_t *pair = pairs[next_random(state) % 6];
        unsigned bits = pair[0] | (unsigned)pair[1] << 2, lane = row % 8 * 4, at;
        if (single) {
            position[row][c] = 2 * c + pair[0] % 2;
            bits = pair[0] % 2 ? 0xe : 0x4;
        } else {
            position[row][2 * c] = 4 * c + pair[0];
            position[row][2 * c + 1] = 4 * c + pair[1];
        }
        if (type_bits(f->a) == 8) {
            lane += c / 8 * 2 + row % 16 / 8;
            at = 4 * (c % 8);
        } else {
            lane += 2 * f->selector + c / 4;
            at = 4 * (c % 4) + (row % 16 / 8) * 16;
        }
        metadata[row / 16 * 32 + lane] |= bits << at;
    }
}

static void fill(const form *f, const place *pa, const place *pb, uint64_t *state) {
    memset(&memory, 0, sizeof memory);
    memset(metadata, 0, sizeof metadata);
    memset(left, 0, sizeof left);
    unsigned stored = stored_of(f), skip = f->start * 8 / type_bits(f->a);
    for (unsigned i = 0; i < 64; i++) {
        for (unsigned n = 0; n < stored; n++) {
            position[i][n] = n;
        }
        if (f->sparse) {
            choose_positions(f, i, state);
        }
        for (unsigned n = 0; n < stored; n++) {
            int v = small_number(f->a, state);
            left[i][position[i][n]] = v;
            if (!f->in_registers) {
                put(f, f->a, pa, i, n + skip, v);
            }
        }
        for (unsigned j = 0; j < f->n; j++) {
            sum[i][j] = small_number(f->d, state);
        }
    }
    for (unsigned k = 0; k < f->k; k++) {
        for (unsigned j = 0; j < f->n; j++) {
            right[k][j] = small_number(f->b, state);
            put(f, f->b, pb, j, k + skip, right[k][j]);
        }
    }
    memory.descriptors[0] = descriptor(f, pa);
    memory.descriptors[1] = descriptor(f, pb);
}

static unsigned sum_registers(const form *f) {
    return strcmp(f->d, "f16") == 0 ? f->n / 4 : f->n / 2;
}

static void put_registers(const form *f) {
    unsigned bits = type_bits(f->a), e = 32 / bits;
    for (unsigned t = 0; t < THREADS; t++) {
        unsigned first = t / 32 * 16 + t % 32 / 4, in_group = t % 4;
        uint64_t *at = memory.registers[t];
        for (unsigned i = 0; i < 4 * e; i++) {
            unsigned row = first + i / e % 2 * 8,
                     column = in_group * e + i % e + i / (2 * e) * 4 * e;
            at[i / e] |= number_bits(f->a, left[row][position[row][column]]) << i % e * bits;
        }
        at[4] = metadata[t];
        for (unsigned i = 0; i < f->n / 2; i++) {
            uint64_t v =
                number_bits(f->d, sum[first + i / 2 % 2 * 8][i / 4 * 8 + in_group * 2 + i % 2]);
            if (strcmp(f->d, "f16") == 0) {
                at[5 + i / 2] |= v << i % 2 * 16;
            } else {
                at[5 + i] = v;
            }
        }
    }
}

static void write_program(const form *f, program *p) {
    bool halves = type_bits(f->a) == 16, floats = strcmp(f->d, "s32") != 0;
    unsigned nd = sum_registers(f);
    p->length = 0;
    add(p,
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".entry k(.param .u64 p) { .reg .b64 %%in, %%g, %%da, %%db; .reg .b32 %%t, %%s, %%v;\n"
        ".reg .pred %%p, %%sum; .shared .align 1024 .b8 area[%u]; .reg .b32 %%end;\n"
        "ld.param.u64 %%in, [p]; ld.global.u64 %%da, [%%in]; ld.global.u64 %%db, [%%in+8];\n"
        "mov.u32 %%t, %%tid.x; mov.u32 %%s, area; add.u32 %%end, %%s, %u;\n"
        "mad.lo.u32 %%s, %%t, 4, %%s; mad.wide.u32 %%g, %%t, 4, %%in;\n"
        "C: ld.global.b32 %%v, [%%g+%u]; st.shared.b32 [%%s], %%v; add.u64 %%g, %%g, 512;\n"
        "add.u32 %%s, %%s, 512; setp.lt.u32 %%p, %%s, %%end; @%%p bra C;\n"
        "fence.proxy.async; bar.sync 0; mad.wide.u32 %%in, %%t, %u, %%in;\n"
        "setp.%s.u32 %%sum, %%t, 1000;\n",
        AREA, AREA, (unsigned)offsetof(__typeof__(memory), area),
        (unsigned)sizeof memory.registers[0], f->no_sum ? "gt" : "lt");
    add_loads(p, "a", "b32", 4, 2);
    add_loads(p, "m", "b32", 1, 6);
    add_loads(p, "d", register_type(f->d), nd, 7);
    add(p, "wgmma.fence.sync.aligned;\nwgmma.mma_async%s.sync.aligned.m64n%uk%u.%s.%s.%s%s ",
        f->sparse ? ".sp" : "", f->n, f->k, f->d, f->a, f->b, f->end);
    add_registers(p, "d", nd);
    if (f->in_registers) {
        add(p, ", ");
        add_registers(p, "a", 4);
    } else {
        add(p, ", %%da");
    }
    add(p, ", %%db, ");
    if (f->sparse) {
        add(p, "%%m0, %u, ", f->selector);
    }
    add(p, "%%sum");
    if (floats) {
        add(p, ", %d, %d", f->negate_a ? -1 : 1, f->negate_b ? -1 : 1);
    }
    if (halves && !f->in_registers) {
        add(p, ", %d", f->across_a);
    }
    if (halves) {
        add(p, ", %d", f->across_b);
    }
    add(p, ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    add_stores(p, "d", register_type(f->d), nd, 7);
    add(p, "ret; }\n");
}

static int expected(const form *f, unsigned i, unsigned j) {
    int v = 0;
    for (unsigned k = 0; k < f->k; k++) {
        v += left[i][k] * right[k][j];
    }
    v = f->negate_a != f->negate_b ? -v : v;
    return f->no_sum ? v : v + sum[i][j];
}

static void check_results(const form *f, const char *text) {
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned i = 0; i < f->n / 2; i++) {
            unsigned row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8;
            unsigned column = i / 4 * 8 + t % 4 * 2 + i % 2;
            const uint64_t *at = memory.registers[t] + 5;
            uint64_t have =
                strcmp(f->d, "f16") == 0 ? at[i / 2] >> i % 2 * 16 & 0xffff : at[i] & UINT32_MAX;
            int want = expected(f, row, column);
            if (have != number_bits(f->d, want)) {
                FAIL("row %u column %u is 0x%llx, not %d; width %u, across %d %d: %.500s", row,
                     column, (unsigned long long)have, want, f->width, f->across_a, f->across_b,
                     strstr(text, "wgmma.mma"));
                return;
            }
        }
    }
}

static void try_form(const form *f) {
    static program p;
    uint64_t state = f->n + f->k;
    kernel k;
    unsigned bytes = f->k * type_bits(f->a) / 8;
    place pa = place_of(f, f->across_a, 64, 32, 1024);
    place pb = place_of(f, f->across_b, f->n, bytes, PLACE_B);
    fill(f, &pa, &pb, &state);
    put_registers(f);
    write_program(f, &p);
    CHECK_EQ(run_text(&k, p.text, THREADS, &memory, sizeof memory), BH__PTX_DONE);
    check_results(f, p.text);
}

TEST(every_width_of_b) {
    for (unsigned n = 8; n <= 256; n += 8) {
        try_form(&(form){.n = n,
                         .k = 16,
                         .d = "f32",
                         .a = "f16",
                         .b = "f16",
                         .end = "",
                         .width = n % 16 ? 128 : 32});
    }
}

TEST(every_layout_of_halves) {
    for (unsigned n = 0; n < 32; n++) {
        form f = {.n = n & 16 ? 64 : 40,
                  .k = 16,
                  .d = "f32",
                  .a = n & 1 ? "f16" : "bf16",
                  .end = "",
                  .across_a = n & 2,
                  .across_b = n & 4,
                  .in_registers = n & 8};
        f.b = f.a;
        f.across_a = f.across_a && !f.in_registers;
        for (f.width = 16; f.width <= 128; f.width *= 2) {
            try_form(&f);
        }
    }
}

TEST(every_type) {
    static const struct {
        unsigned k;
        const char *d, *a, *b, *end;
    } types[] = {{16, "f16", "f16", "f16", ""},         {8, "f32", "tf32", "tf32", ""},
                 {32, "f32", "e4m3", "e4m3", ""},       {32, "f32", "e4m3", "e5m2", ""},
                 {32, "f16", "e5m2", "e4m3", ""},       {32, "f16", "e5m2", "e5m2", ""},
                 {32, "s32", "s8", "s8", ""},           {32, "s32", "u8", "s8", ""},
                 {32, "s32", "s8", "u8", ".satfinite"}, {32, "s32", "u8", "u8", ""},
                 {256, "s32", "b1", "b1", ".and.popc"}};
    for (size_t n = 0; n < sizeof types / sizeof *types; n++) {
        for (unsigned m = 0; m < 8; m++) {
            try_form(&(form){.n = m & 1 ? 32 : 48,
                             .k = types[n].k,
                             .d = types[n].d,
                             .a = types[n].a,
                             .b = types[n].b,
                             .end = types[n].end,
                             .width = 16u << m / 2,
                             .in_registers = m & 1});
        }
    }
}

TEST(signs_and_no_sum) {
    for (int n = 0; n < 8; n++) {
        try_form(&(form){.n = 24,
                         .k = 16,
                         .d = "f32",
                         .a = "f16",
                         .b = "f16",
                         .end = "",
                         .width = 64,
                         .negate_a = n & 1,
                         .negate_b = n & 2,
                         .no_sum = n & 4,
                         .in_registers = n == 3});
    }
    try_form(&(form){.n = 16,
                     .k = 32,
                     .d = "s32",
                     .a = "s8",
                     .b = "s8",
                     .end = "",
                     .width = 128,
                     .no_sum = true});
}

/* A line of 128 bytes has four products of 32 bytes each: the descriptor's start moves along it. */
TEST(products_may_start_inside_a_line) {
    for (unsigned width = 64; width <= 128; width *= 2) {
        for (unsigned start = 32; start < width; start += 32) {
            try_form(&(form){.n = 64,
                             .k = 16,
                             .d = "f32",
                             .a = "bf16",
                             .b = "bf16",
                             .end = "",
                             .width = width,
                             .start = start});
        }
    }
}

TEST(patterns_may_start_anywhere) {
    for (unsigned base = 1; base < 8; base++) {
        try_form(&(form){.n = 32,
                         .k = 16,
                         .d = "f32",
                         .a = "f16",
                         .b = "f16",
                         .end = "",
                         .width = 128,
                         .base = base,
                         .across_b = base & 1});
    }
}

TEST(sparse_matrices) {
    static const struct {
        unsigned k, selectors;
        const char *d, *a, *b;
    } types[] = {{32, 2, "f32", "f16", "f16"},   {32, 2, "f16", "f16", "f16"},
                 {32, 2, "f32", "bf16", "bf16"}, {16, 2, "f32", "tf32", "tf32"},
                 {64, 1, "f32", "e4m3", "e5m2"}, {64, 1, "s32", "s8", "u8"}};
    for (size_t n = 0; n < sizeof types / sizeof *types; n++) {
        for (unsigned m = 0; m < 8; m++) {
            try_form(&(form){.n = 32,
                             .k = types[n].k,
                             .d = types[n].d,
                             .a = types[n].a,
                             .b = types[n].b,
                             .end = "",
                             .width = m & 2 ? 128 : 64,
                             .in_registers = m & 1,
                             .sparse = true,
                             .across_b = m & 4 && type_bits(types[n].a) == 16,
                             .selector = m / 2 % types[n].selectors});
        }
    }
}

static void check_fault(const char *body, uint32_t threads, const char *text) {
    static program p;
    static uint64_t out[16];
    kernel k;
    kernel_text(&p, body);
    CHECK_EQ(run_text(&k, p.text, threads, out, sizeof out), BH__PTX_FAULTED);
    if (strstr(k.fault.text, text) == NULL) {
        FAIL("\"%s\" does not say \"%s\"", k.fault.text, text);
    }
}

#define F4 "{%f0, %f1, %f2, %f3}"
#define R4 "{%r0, %r1, %r2, %r3}"
#define W  "wgmma.mma_async.sync.aligned."

TEST(matrices_outside_of_shared_memory_are_faults) {
    check_fault("mov.b64 %rd1, 0x3fff;" W "m64n8k16.f32.f16.f16 " F4 ", " R4 ", %rd1, 1, 1, 1, 0;",
                128, "illegal read of 16 bytes at shared address 0x3fff0");
    check_fault("mov.b64 %rd1, 0;" W "m64n8k16.f32.f16.f16 " F4 ", " R4 ", %rd1, 1, 1, 1, 0;", 96,
                "wgmma needs the four warps 0 to 3, and the block has 3");
}

TEST(forms_that_do_not_exist_are_refused) {
    check_refused(W "m64n8k8.f32.f16.f16 " F4 ", %rd0, %rd1, %p0, 1, 1, 0, 0;",
                  "wgmma has no form m64n8k8.f32.f16.f16");
    check_refused(W "m64n12k16.f32.f16.f16 " F4 ", %rd0, %rd1, %p0, 1, 1, 0, 0;", "has no form");
    check_refused(W "m64n40k32.s32.s8.s8 " R4 ", %rd0, %rd1, %p0;", "has no form");
    check_refused(W "m64n8k16.f16.bf16.bf16 {%r0, %r1}, %rd0, %rd1, %p0, 1, 1, 0, 0;",
                  "has no form");
    check_refused(W "m64n8k16.f32.f16.f16 {%f0, %f1}, %rd0, %rd1, %p0, 1, 1, 0, 0;",
                  "operand 1 has 2 registers where 4 are needed");
    check_refused(W "m64n8k16.f32.f16.f16 {_, %f1, %f2, %f3}, %rd0, %rd1, %p0, 1, 1, 0, 0;",
                  "not a register");
    check_refused(W "m64n8k16.f32.f16.f16 " F4 ", %r0, %rd1, %p0, 1, 1, 0, 0;",
                  "operand 2 is not a 64-bit integer");
    check_refused(W "m64n8k16.f32.f16.f16 " F4 ", %rd0, %rd1, %r0, 1, 1, 0, 0;",
                  "scale-d, is not a predicate");
    check_refused(W "m64n8k16.f32.f16.f16 " F4 ", %rd0, %rd1, %p0, 0, 1, 0, 0;",
                  "operand 5 is not 1 or -1");
    check_refused(W "m64n8k16.f32.f16.f16 " F4 ", %rd0, %rd1, %p0, 1, 1, 0, 2;",
                  "operand 8 is not 0 or 1");
    check_refused(W "m64n8k16.f32.f16.f16 " F4 ", " R4 ", %rd1, %p0, 1, 1, 0, 0;",
                  "8 operands where 7 are needed");
    check_refused(W "m64n8k8.f32.tf32.tf32 " F4 ", %rd0, %rd1, %p0, 1, 1, 0, 0;",
                  "8 operands where 6 are needed");
    check_refused(W "m64n8k256.s32.b1.b1.xor.popc " R4 ", %rd0, %rd1, %p0;",
                  "operation does not fit");
    check_refused("wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.s8 " R4
                  ", %rd0, %rd1, %r9, 1, %p0;",
                  "selector, is not a constant from 0 to 0");
    check_refused("wgmma.mma_async.sp::ordered_metadata.sync.aligned.m64n8k64.s32.s8.s8 " R4
                  ", %rd0, %rd1, %r9, 0, %p0;",
                  ".sp::ordered_metadata");
    check_refused("wgmma.wait_group.sync.aligned %r0;", "not a constant");
    check_refused("wgmma.fence.aligned;", "wgmma without .sync");
    check_refused("wgmma.sync.aligned;", "wgmma with 0 of");
}
