/* SPDX-License-Identifier: Apache-2.0 */
/* mma.sync against products in whole numbers, in the register layouts of the PTX manual. */
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"
#include "support/matrix.h"
#include "test.h"

#define LANES 32

typedef struct form {
    unsigned m, n, k;
    const char *d, *a, *b, *c;
    const char *end; /* "", ".satfinite", ".xor.popc" */
    bool sparse;
    unsigned selector;
} form;

static int a[32][256], b[256][8], c[16][8], expected[16][8];
static unsigned position[32][256]; /* of each stored element of A in its row */
static uint64_t memory[LANES][64];

static unsigned registers(const char *type, unsigned cells) {
    return strcmp(type, "f64") == 0 ? cells / LANES : cells * type_bits(type) / 32 / LANES;
}

/* Stored elements of a chunk of A, and the chunk's width. */
static unsigned in_chunk(const form *f) {
    return strcmp(f->a, "tf32") == 0 ? 1 : type_bits(f->a) == 4 ? 4 : 2;
}

/* Chooses which elements of a chunk are stored, and returns the metadata. */
static unsigned choose(const form *f, unsigned row, unsigned chunk, uint64_t *state) {
    static const uint8_t pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
    const uint8_t *pair = pairs[next_random(state) % 6];
    unsigned *at = &position[row][chunk * in_chunk(f)];
    switch (in_chunk(f)) {
    case 1:
        at[0] = 2 * chunk + pair[0] % 2;
        return pair[0] % 2 ? 0xe : 0x4;
    case 2:
        at[0] = 4 * chunk + pair[0];
        at[1] = 4 * chunk + pair[1];
        break;
    default:
        for (unsigned n = 0; n < 4; n++) {
            at[n] = 8 * chunk + 2u * pair[n / 2] + n % 2;
        }
    }
    return pair[0] | (unsigned)pair[1] << 2;
}

/* The lane and the first bit of the metadata of a chunk, from the figures of the manual. */
static void place_metadata(const form *f, unsigned row, unsigned chunk, unsigned *lane,
                           unsigned *bit) {
    unsigned chunks = f->k / (2 * in_chunk(f)), first = 0;
    if (type_bits(f->a) >= 16) { /* T0: columns of a quarter, row g in bits 0-15, g+8 in 16-31 */
        first = chunks == 4 ? f->selector : 2 * f->selector + chunk / 4;
        *bit = 4 * (chunk % 4) + (row >= 8 ? 16 : 0);
    } else { /* T0: row g, T1: row g+8, T2 and T3 the second half */
        first = 2 * f->selector + 2 * (chunk / 8) + (row >= 8);
        *bit = 4 * (chunk % 8);
    }
    *lane = 4 * (row % 8) + first;
}

static void fill(const form *f, uint32_t metadata[LANES], uint64_t *state) {
    unsigned stored = f->sparse ? f->k / 2 : f->k;
    memset(a, 0, sizeof a);
    for (unsigned l = 0; l < LANES; l++) {
        metadata[l] = f->sparse ? (uint32_t)next_random(state) : 0; /* of lanes not selected */
    }
    for (unsigned i = 0; i < f->m; i++) {
        for (unsigned n = 0; n < stored; n++) {
            position[i][n] = n;
        }
        for (unsigned chunk = 0; f->sparse && chunk < stored / in_chunk(f); chunk++) {
            unsigned lane, bit, bits = choose(f, i, chunk, state);
            place_metadata(f, i, chunk, &lane, &bit);
            metadata[lane] = (metadata[lane] & ~(15u << bit)) | bits << bit;
        }
        for (unsigned n = 0; n < stored; n++) {
            a[i][position[i][n]] = small_number(f->a, state);
        }
        for (unsigned j = 0; j < 8; j++) {
            c[i][j] = small_number(f->c, state);
        }
    }
    for (unsigned k = 0; k < f->k; k++) {
        for (unsigned j = 0; j < 8; j++) {
            b[k][j] = small_number(f->b, state);
        }
    }
}

static void multiply(const form *f) {
    bool bits = strcmp(f->a, "b1") == 0, exclusive = strstr(f->end, "xor") != NULL;
    for (unsigned i = 0; i < f->m; i++) {
        for (unsigned j = 0; j < 8; j++) {
            int sum = c[i][j];
            for (unsigned k = 0; k < f->k; k++) {
                sum += bits && exclusive ? a[i][k] ^ b[k][j] : a[i][k] * b[k][j];
            }
            expected[i][j] = sum;
        }
    }
}

/* Element i of a lane, as the manual gives it: the group of four lanes and the lane in it. */
static void put_fragments(const form *f, const uint32_t metadata[LANES]) {
    unsigned stored = f->sparse ? f->k / 2 : f->k;
    unsigned na = registers(f->a, f->m * stored), nb = registers(f->b, f->k * 8);
    unsigned nc = registers(f->c, f->m * 8), bits = type_bits(f->a), e = bits > 32 ? 1 : 32 / bits;
    memset(memory, 0, sizeof memory);
    for (unsigned l = 0; l < LANES; l++) {
        unsigned group = l >> 2, in_group = l % 4;
        uint64_t *at = memory[l];
        for (unsigned i = 0; i < na * e; i++) {
            unsigned row = group + (f->m == 16 && i / e % 2 ? 8 : 0);
            unsigned step = f->m == 16 ? 2 * e : e;
            unsigned column = in_group * e + i % e + i / step * 4 * e;
            at[i / e] |= number_bits(f->a, a[row][position[row][column]]) << i % e * bits % 64;
        }
        for (unsigned i = 0; i < nb * e; i++) {
            unsigned k = in_group * e + i % e + i / e * 4 * e;
            at[na + i / e] |= number_bits(f->b, b[k][group]) << i % e * bits % 64;
        }
        for (unsigned i = 0; i < f->m / 4; i++) {
            uint64_t v = number_bits(f->c, c[group + (i >= 2 ? 8 : 0)][in_group * 2 + (i & 1)]);
            if (strcmp(f->c, "f16") == 0) {
                at[na + nb + i / 2] |= v << i % 2 * 16;
            } else {
                at[na + nb + i] = v;
            }
        }
        at[na + nb + nc] = metadata[l];
    }
}

static void write_program(const form *f, program *p) {
    unsigned stored = f->sparse ? f->k / 2 : f->k;
    unsigned na = registers(f->a, f->m * stored), nb = registers(f->b, f->k * 8);
    unsigned nc = registers(f->c, f->m * 8);
    p->length = 0;
    add(p,
        PTX_HEAD ".entry k(.param .u64 p) { .reg .b64 %%in; .reg .b32 %%t, %%m;\n"
                 "ld.param.u64 %%in, [p]; mov.u32 %%t, %%tid.x;\n"
                 "mad.wide.u32 %%in, %%t, %u, %%in;\n",
        (unsigned)sizeof memory[0]);
    add_loads(p, "a", register_type(f->a), na, 0);
    add_loads(p, "b", register_type(f->b), nb, na);
    add_loads(p, "c", register_type(f->c), nc, na + nb);
    add(p, ".reg .%s %%d<%u>;\nld.global.b32 %%m, [%%in+%u];\n", register_type(f->d), nc,
        8 * (na + nb + nc));
    bool early = strcmp(f->end, ".satfinite") == 0;
    add(p, "mma%s.sync.aligned.m%un%uk%u.row.col%s.%s.%s.%s.%s%s ",
        f->sparse ? ".sp::ordered_metadata" : "", f->m, f->n, f->k, early ? f->end : "", f->d, f->a,
        f->b, f->c, early ? "" : f->end);
    const char *names[] = {"d", "a", "b", "c"};
    const unsigned counts[] = {nc, na, nb, nc};
    for (int n = 0; n < 4; n++) {
        add(p, n == 0 ? "" : ", ");
        add_registers(p, names[n], counts[n]);
    }
    if (f->sparse) {
        add(p, ", %%m, %u", f->selector);
    }
    add(p, ";\n");
    add_stores(p, "d", register_type(f->d), nc, 0);
    add(p, "ret; }\n");
}

static void check_results(const form *f, const char *text) {
    for (unsigned l = 0; l < LANES; l++) {
        for (unsigned i = 0; i < f->m / 4; i++) {
            int want = expected[(l >> 2) + (i >= 2 ? 8 : 0)][l % 4 * 2 + (i & 1)];
            bool half = strcmp(f->d, "f16") == 0;
            uint64_t have = half ? memory[l][i / 2] >> i % 2 * 16 & 0xffff : memory[l][i];
            if (strcmp(f->d, "f64") != 0) {
                have &= UINT32_MAX;
            }
            if (have != number_bits(f->d, want)) {
                FAIL("lane %u element %u is 0x%llx, not %d: %s", l, i, (unsigned long long)have,
                     want, strstr(text, "mma"));
                return;
            }
        }
    }
}

static void try_form(const form *f) {
    static program p;
    uint32_t metadata[LANES];
    uint64_t state = f->k + f->selector;
    kernel k;
    for (int round = 0; round < 3; round++) {
        fill(f, metadata, &state);
        multiply(f);
        put_fragments(f, metadata);
        write_program(f, &p);
        CHECK_EQ(run_text(&k, p.text, LANES, memory, sizeof memory), BH__PTX_DONE);
        check_results(f, p.text);
    }
}

TEST(products_of_floats) {
    static const form forms[] = {
        {16, 8, 8, "f16", "f16", "f16", "f16", "", false, 0},
        {16, 8, 8, "f32", "f16", "f16", "f32", "", false, 0},
        {16, 8, 16, "f16", "f16", "f16", "f16", "", false, 0},
        {16, 8, 16, "f32", "f16", "f16", "f32", "", false, 0},
        {16, 8, 8, "f32", "bf16", "bf16", "f32", "", false, 0},
        {16, 8, 16, "f32", "bf16", "bf16", "f32", "", false, 0},
        {16, 8, 4, "f32", "tf32", "tf32", "f32", "", false, 0},
        {16, 8, 8, "f32", "tf32", "tf32", "f32", "", false, 0},
        {8, 8, 4, "f64", "f64", "f64", "f64", "", false, 0},
        {16, 8, 4, "f64", "f64", "f64", "f64", "", false, 0},
        {16, 8, 8, "f64", "f64", "f64", "f64", "", false, 0},
        {16, 8, 16, "f64", "f64", "f64", "f64", "", false, 0},
    };
    for (size_t n = 0; n < sizeof forms / sizeof *forms; n++) {
        try_form(&forms[n]);
    }
    const char *eight[] = {"e4m3", "e5m2"};
    for (int n = 0; n < 4; n++) {
        for (unsigned k = 16; k <= 32; k += 16) {
            try_form(&(form){16, 8, k, "f32", eight[n / 2], eight[n % 2], "f32", "", false, 0});
            try_form(&(form){16, 8, k, "f16", eight[n / 2], eight[n % 2], "f16", "", false, 0});
        }
    }
}

TEST(products_of_integers_and_bits) {
    static const char *const types[] = {"s8", "u8", "s4", "u4"};
    static const struct {
        unsigned m, k;
    } shapes[2][3] = {{{8, 16}, {16, 16}, {16, 32}}, {{8, 32}, {16, 32}, {16, 64}}};
    for (int n = 0; n < 24; n++) {
        int four = n / 12;
        form f = {shapes[four][n % 3].m,
                  8,
                  shapes[four][n % 3].k,
                  "s32",
                  types[2 * four + n / 3 % 2],
                  types[2 * four + n / 6 % 2],
                  "s32",
                  "",
                  false,
                  0};
        try_form(&f);
        f.end = ".satfinite";
        try_form(&f);
    }
    for (unsigned n = 0; n < 6; n++) {
        try_form(&(form){n < 2 ? 8 : 16, 8, n < 4 ? 128 : 256, "s32", "b1", "b1", "s32",
                         n % 2 ? ".xor.popc" : ".and.popc", false, 0});
    }
}

TEST(products_of_sparse_matrices) {
    static const form forms[] = {
        {16, 8, 16, "f16", "f16", "f16", "f16", "", true, 4},
        {16, 8, 16, "f32", "f16", "f16", "f32", "", true, 4},
        {16, 8, 32, "f16", "f16", "f16", "f16", "", true, 2},
        {16, 8, 32, "f32", "f16", "f16", "f32", "", true, 2},
        {16, 8, 16, "f32", "bf16", "bf16", "f32", "", true, 4},
        {16, 8, 32, "f32", "bf16", "bf16", "f32", "", true, 2},
        {16, 8, 8, "f32", "tf32", "tf32", "f32", "", true, 4},
        {16, 8, 16, "f32", "tf32", "tf32", "f32", "", true, 2},
        {16, 8, 64, "f32", "e4m3", "e5m2", "f32", "", true, 1},
        {16, 8, 32, "s32", "s8", "u8", "s32", "", true, 2},
        {16, 8, 64, "s32", "u8", "s8", "s32", ".satfinite", true, 1},
        {16, 8, 64, "s32", "s4", "u4", "s32", "", true, 2},
        {16, 8, 128, "s32", "u4", "s4", "s32", "", true, 1},
    };
    for (size_t n = 0; n < sizeof forms / sizeof *forms; n++) {
        form f = forms[n];
        for (f.selector = 0; f.selector < forms[n].selector; f.selector++) {
            try_form(&f);
        }
    }
}

/* mma.m8n8k4 of f16: four products, by the formulas of the manual. */
static int qa[4][8][4], qb[4][4][8], qc[4][8][8];

static unsigned half_of(unsigned lane) {
    return lane < 16 ? 0 : 4;
}

static void place_quad_sum(const char *type, unsigned lane, unsigned i, unsigned *row,
                           unsigned *column) {
    if (strcmp(type, "f16") == 0) {
        *row = lane % 4 + half_of(lane);
        *column = i;
    } else {
        *row = (lane & 1) + (i & 2) + half_of(lane);
        *column = (i & 4) + (lane & 2) + (i & 1);
    }
}

static void fill_quads(uint64_t *state) {
    for (int q = 0; q < 4; q++) {
        for (int n = 0; n < 32; n++) {
            qa[q][n / 4][n % 4] = small_number("f16", state);
            qb[q][n % 4][n / 4] = small_number("f16", state);
        }
        for (int n = 0; n < 64; n++) {
            qc[q][n / 8][n % 8] = small_number("f16", state);
        }
    }
}

static void put_quads(bool a_row, bool b_col, const char *type) {
    memset(memory, 0, sizeof memory);
    for (unsigned l = 0; l < LANES; l++) {
        unsigned q = l / 4 % 4, row, column;
        for (unsigned i = 0; i < 4; i++) {
            int va = a_row ? qa[q][l % 4 + half_of(l)][i] : qa[q][i + half_of(l)][l % 4];
            int vb = b_col ? qb[q][i][l % 4 + half_of(l)] : qb[q][l % 4][i + half_of(l)];
            memory[l][i / 2] |= number_bits("f16", va) << i % 2 * 16;
            memory[l][2 + i / 2] |= number_bits("f16", vb) << i % 2 * 16;
        }
        for (unsigned i = 0; i < 8; i++) {
            place_quad_sum(type, l, i, &row, &column);
            uint64_t v = number_bits(type, qc[q][row][column]);
            if (strcmp(type, "f16") == 0) {
                memory[l][4 + i / 2] |= v << i % 2 * 16;
            } else {
                memory[l][4 + i] = v;
            }
        }
    }
}

static void check_quads(const char *type, const char *text) {
    for (unsigned l = 0; l < LANES; l++) {
        for (unsigned i = 0; i < 8; i++) {
            unsigned q = l / 4 % 4, row, column;
            place_quad_sum(type, l, i, &row, &column);
            int want = qc[q][row][column];
            for (int k = 0; k < 4; k++) {
                want += qa[q][row][k] * qb[q][k][column];
            }
            bool half = strcmp(type, "f16") == 0;
            uint64_t have =
                half ? memory[l][i / 2] >> i % 2 * 16 & 0xffff : memory[l][i] & UINT32_MAX;
            if (have != number_bits(type, want)) {
                FAIL("lane %u element %u is 0x%llx, not %d: %s", l, i, (unsigned long long)have,
                     want, strstr(text, "mma"));
                return;
            }
        }
    }
}

static void try_quads(bool a_row, bool b_col, const char *d, const char *from) {
    static program p;
    uint64_t state = a_row + 2u * b_col + 7;
    unsigned nc = strcmp(from, "f16") == 0 ? 4 : 8, nd = strcmp(d, "f16") == 0 ? 4 : 8;
    kernel k;
    fill_quads(&state);
    put_quads(a_row, b_col, from);
    p.length = 0;
    add(&p,
        PTX_HEAD ".entry k(.param .u64 p) { .reg .b64 %%in; .reg .b32 %%t;\n"
                 "ld.param.u64 %%in, [p]; mov.u32 %%t, %%tid.x;\n"
                 "mad.wide.u32 %%in, %%t, %u, %%in;\n",
        (unsigned)sizeof memory[0]);
    add_loads(&p, "a", "b32", 2, 0);
    add_loads(&p, "b", "b32", 2, 2);
    add_loads(&p, "c", register_type(from), nc, 4);
    add(&p, ".reg .%s %%d<%u>;\nmma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s ", register_type(d), nd,
        a_row ? "row" : "col", b_col ? "col" : "row", d, from);
    add_registers(&p, "d", nd);
    add(&p, ", {%%a0, %%a1}, {%%b0, %%b1}, ");
    add_registers(&p, "c", nc);
    add(&p, ";\n");
    add_stores(&p, "d", register_type(d), nd, 0);
    add(&p, "ret; }\n");
    CHECK_EQ(run_text(&k, p.text, LANES, memory, sizeof memory), BH__PTX_DONE);
    check_quads(d, p.text);
}

TEST(four_small_products_at_once) {
    for (int n = 0; n < 4; n++) {
        try_quads(n & 1, n & 2, "f16", "f16");
        try_quads(n & 1, n & 2, "f32", "f32");
        try_quads(n & 1, n & 2, "f32", "f16");
    }
}

/* One row times one column: lane 0 holds two factors of A and of B, and the accumulator. */
static uint32_t sum_of(const char *types, uint32_t left, uint32_t right, uint32_t sum) {
    static program p;
    char body[1024];
    uint32_t data[LANES * 8] = {left, right, sum};
    kernel k;
    bool half = strncmp(types, "f16", 3) == 0;
    snprintf(body, sizeof body,
             "mad.wide.u32 %%rd1, %%t, 32, %%out; ld.global.b32 %%r1, [%%rd1];\n"
             "ld.global.b32 %%r2, [%%rd1+4]; ld.global.b32 %%r3, [%%rd1+8];\n"
             "mov.b32 %%r0, 0; mma.sync.aligned.m16n8k8.row.col.%s\n"
             "{%%r4, %%r5%s}, {%%r1, %%r0}, {%%r2}, {%%r3, %%r0%s};\n"
             "st.global.b32 [%%rd1], %%r4;",
             types, half ? "" : ", %r6, %r7", half ? "" : ", %r0, %r0");
    kernel_text(&p, body);
    CHECK_EQ(run_text(&k, p.text, LANES, data, sizeof data), BH__PTX_DONE);
    return data[0];
}

#define HALVES(low, high) ((uint32_t)(high) << 16 | (low))

TEST(sums_are_aligned_cut_off_and_rounded_to_zero) {
    const char *types = "f32.f16.f16.f32";
    uint32_t one = 0x3f800000, tiny = 0x0c00; /* 2^-12 */
    /* 1 + 2^-24 + 2^-24 is exact; one of them alone is cut off when the sum is rounded. */
    CHECK_EQ(sum_of(types, HALVES(tiny, tiny), HALVES(tiny, tiny), one), one + 1);
    CHECK_EQ(sum_of(types, HALVES(tiny, 0), HALVES(tiny, 0), one), one);
    /* 1 - 2^-25 is less than 1, and 2^-26 is beyond the bits that are kept. */
    CHECK_EQ(sum_of(types, HALVES(0x8c00, 0), HALVES(0x0800, 0), one), one - 1);
    CHECK_EQ(sum_of(types, HALVES(0x8800, 0), HALVES(0x0800, 0), one), one);
    /* The same in f16: to the nearest. */
    CHECK_EQ(sum_of("f16.f16.f16.f16", HALVES(tiny, 0), HALVES(0x3c00, 0), 0x3c00), 0x3c00);
    CHECK_EQ(sum_of("f16.f16.f16.f16", HALVES(0x1400, 0), HALVES(0x3a00, 0), 0x3c00), 0x3c01);
}

TEST(sums_that_are_not_finite) {
    const char *types = "f32.f16.f16.f32";
    CHECK_EQ(sum_of(types, HALVES(0x7c00, 0), HALVES(0, 0), 0), 0x7fffffffu);
    CHECK_EQ(sum_of(types, HALVES(0x7c00, 0xfc00), HALVES(0x3c00, 0x3c00), 0), 0x7fffffffu);
    CHECK_EQ(sum_of(types, HALVES(0x7c00, 0x3c00), HALVES(0xbc00, 0x3c00), 0), 0xff800000u);
    CHECK_EQ(sum_of(types, HALVES(0x3c00, 0), HALVES(0x3c00, 0), 0x7fc00001), 0x7fffffffu);
    CHECK_EQ(sum_of("f16.f16.f16.f16", HALVES(0x7e00, 0), HALVES(0x3c00, 0), 0), 0x7fff7fff);
    CHECK_EQ(sum_of("f16.f16.f16.f16", HALVES(0x7bff, 0), HALVES(0x4000, 0), 0), 0x7c00);
    CHECK_EQ(sum_of("f32.bf16.bf16.f32", HALVES(0x7f00, 0), HALVES(0x7f00, 0), 0), 0x7f800000);
}

#define F4 "{%f0, %f1, %f2, %f3}"
#define R4 "{%r0, %r1, %r2, %r3}"
#define R2 "{%r0, %r1}"

TEST(forms_that_do_not_exist_are_refused) {
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m16n8k4.row.col.f32.f16.f16.f32 " F4
                  ", {%r0}, {%r1}, " F4 ";",
                  "mma has no form m16n8k4.f32.f16.f16.f32");
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 " F4 ", " R4
                  ", " R2 ", " F4 ";",
                  "mma has no form m16n8k16.f32.f16.bf16.f32");
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16 " R2 ", " R4
                  ", " R2 ", " R2 ";",
                  "has no form");
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 " F4 ", " R4
                  ", " R2 ", " F4 ";",
                  ".row.col only");
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m16n8k16.f32.f16.f16.f32 " F4 ", " R4 ", " R2
                  ", " F4 ";",
                  "without the layouts");
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " F4 ", " R2
                  ", " R2 ", " F4 ";",
                  "operand 2 has 2 registers where 4 are needed");
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " F4 ", " R4
                  ", " R2 ", {%f0, %f1,"
                  " %u0, %u1};",
                  "operand 4 has a .u32 register");
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " F4 ", " R4
                  ", {%u0, %u1}, " F4 ";",
                  "operand 3 has a .u32 register");
    check_refused(".reg .u32 %u<4>; mma.aligned.m16n8k16.row.col.f32.f16.f16.f32 " F4 ", " R4
                  ", " R2 ", " F4 ";",
                  "mma without .sync");
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32 " F4
                  ", " R4 ", " R2 ", " F4 ";",
                  ".satfinite");
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m16n8k16.row.col.rz.f32.f16.f16.f32 " F4
                  ", " R4 ", " R2 ", " F4 ";",
                  "rounding mode");
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32 " R2
                  ", {%r0}, {%r1}, " R2 ";",
                  "operation does not fit");
    check_refused(".reg .u32 %u<4>; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " F4 ", " R4
                  ", " R2 ";",
                  "3 operands where 4 are needed");
    check_refused(".reg .u32 %u<4>; mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " F4
                  ", " R2 ", " R2 ", " F4 ", %r0, 4;",
                  "selector, is not a constant from 0 to 3");
    check_refused(".reg .u32 %u<4>; mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 " R4 ", " R4
                  ", " R4 ", " R4 ", %r0, 1;",
                  "selector, is not a constant from 0 to 0");
    check_refused(
        ".reg .u32 %u<4>; mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e4m3.f32 " F4
        ", " R4 ", " R2 ", " F4 ";",
        "does not support .kind::f8f6f4");
    check_refused(".reg .u32 %u<4>; add.e4m3 %h0, %h1, %h2;", "add with these types");
    check_refused(".reg .s4 %z;", "cannot be .s4");
}

TEST(missing_lanes_are_a_fault) {
    const char *text = PTX_KERNEL("setp.ne.u32 %p1, %t, 5; mov.b32 %r0, 0;\n"
                                  "@%p1 mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 "
                                  "{%r1, %r2}, {%r0}, {%r0}, {%r0, %r0};");
    static uint32_t out[32];
    kernel k;
    CHECK_EQ(run_text(&k, text, 32, out, sizeof out), BH__PTX_FAULTED);
    CHECK(strstr(k.fault.text, "needs all 32 lanes of a warp, and 31 of them (mask 0xffffffdf)") !=
          NULL);
    CHECK_EQ(run_text(&k, PTX_KERNEL("movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;"), 8, out,
                      sizeof out),
             BH__PTX_FAULTED);
    CHECK(strstr(k.fault.text, "and 8 of them (mask 0x000000ff)") != NULL);
}
