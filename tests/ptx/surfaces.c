/* SPDX-License-Identifier: Apache-2.0 */
/* suld, sust, sured and suq: every shape, what happens outside of an image, and conversions. */
#include <stdio.h>
#include <string.h>

#include "ptx/texture/texture.h"
#include "support/kernel.h"
#include "test.h"

enum { LANES = 32, PITCH = 64, ROWS = 4, PLANES = 3, SLICE = PITCH * ROWS };

static struct {
    uint64_t handle, pad;
    uint32_t out[LANES][4];
    _Alignas(64) uint8_t image[SLICE * PLANES];
} m;

static bh__ptx_texture surface;

/* %x is 4 * lane; what the body leaves in %r11 to %r14 is stored. */
#define WORK(body)                                                                                 \
    PTX_KERNEL(".reg .b64 %s, %mine; .reg .b32 %x, %y;\n"                                          \
               "ld.global.u64 %s, [%out]; mul.wide.u32 %mine, %t, 16;\n"                           \
               "add.u64 %mine, %mine, %out; mov.b32 %y, 1; shl.b32 %x, %t, 2;\n"                   \
               "mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0; mov.b32 %r14, 0;\n" body        \
               "\nst.global.v4.b32 [%mine+16], {%r11, %r12, %r13, %r14};")

static bh__ptx_outcome run_on(const char *text, bh__ptx_fault *fault) {
    static const bh__ptx_texture *list[1] = {&surface};
    static const bh__ptx_textures all = {list, 1};
    kernel k;
    if (kernel_open(&k, text, LANES, &m, sizeof m) != BH_OK) {
        FAIL("%s", k.error.message);
        return BH__PTX_STOPPED;
    }
    k.grid.textures = &all;
    bh__ptx_outcome outcome = kernel_run(&k);
    if (fault != NULL) *fault = k.fault;
    if (outcome != BH__PTX_DONE && fault == NULL) FAIL("%s", k.fault.text);
    kernel_close(&k);
    return outcome;
}

/* 16 texels of 4 bytes in a row: lanes 16 to 31 are outside with %x. */
static void make(unsigned dimensions, bool layered) {
    memset(&m, 0, sizeof m);
    m.handle = (uint64_t)(uintptr_t)&surface;
    for (unsigned n = 0; n < sizeof m.image; n++) m.image[n] = (uint8_t)(n * 7 + 1);
    surface = (bh__ptx_texture){.surface = true,
                                .dimensions = (uint8_t)dimensions,
                                .layered = layered,
                                .layers = layered ? PLANES : 1,
                                .channels = 1,
                                .bits = 32,
                                .kind = BH__TEXEL_UNSIGNED,
                                .levels = 1,
                                .level = {{.address = (uint64_t)(uintptr_t)m.image,
                                           .pitch = PITCH,
                                           .slice = SLICE,
                                           .width = 16,
                                           .height = dimensions > 1 ? ROWS : 1,
                                           .depth = dimensions > 2 ? PLANES : 1}}};
}

static uint32_t word_at(unsigned plane, unsigned row, unsigned x) {
    uint32_t value;
    memcpy(&value, m.image + plane * SLICE + row * PITCH + x * 4, 4);
    return value;
}

TEST(loads_of_every_shape) {
    static const struct {
        const char *text;
        unsigned dimensions, plane, row;
        bool layered;
    } cases[] = {{WORK("suld.b.1d.b32.zero %r11, [%s, %x];"), 1, 0, 0, false},
                 {WORK("suld.b.2d.b32.zero {%r11}, [%s, {%x, %y}];"), 2, 0, 1, false},
                 {WORK("suld.b.3d.b32.zero {%r11}, [%s, {%x, 3, 2, 0}];"), 3, 2, 3, false},
                 {WORK("suld.b.a1d.b32.zero {%r11}, [%s, {2, %x}];"), 1, 2, 0, true},
                 {WORK("suld.b.a2d.cg.b32.zero {%r11}, [%s, {%y, %x, 2, 0}];"), 2, 1, 2, true}};
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        make(cases[n].dimensions, cases[n].layered);
        REQUIRE_EQ(run_on(cases[n].text, NULL), BH__PTX_DONE);
        for (unsigned l = 0; l < LANES; l++)
            CHECK_EQ(m.out[l][0], l < 16 ? word_at(cases[n].plane, cases[n].row, l) : 0);
    }
}

TEST(vectors_and_widths) {
    make(2, false);
    REQUIRE_EQ(
        run_on(WORK("suld.b.2d.v4.b32.trap {%r11, %r12, %r13, %r14}, [%s, {16, %y}];"), NULL),
        BH__PTX_DONE);
    for (unsigned n = 0; n < 4; n++) CHECK_EQ(m.out[9][n], word_at(0, 1, 4 + n));
    REQUIRE_EQ(run_on(WORK("suld.b.2d.v2.b64.trap {%rd1, %rd2}, [%s, {32, 0}];"
                           "mov.b64 {%r11, %r12}, %rd1; mov.b64 {%r13, %r14}, %rd2;"
                           "suld.b.2d.v2.b8.trap {%h1, %h2}, [%s, {2, 0}]; cvt.u32.u16 %r14, %h2;"
                           "suld.b.2d.b16.trap {%h1}, [%s, {6, 0}]; cvt.u32.u16 %r13, %h1;"),
                      NULL),
               BH__PTX_DONE);
    CHECK_EQ(m.out[0][0], word_at(0, 0, 8));
    CHECK_EQ(m.out[0][1], word_at(0, 0, 9));
    CHECK_EQ(m.out[0][2], word_at(0, 0, 1) >> 16);
    CHECK_EQ(m.out[0][3], word_at(0, 0, 0) >> 24);
}

TEST(outside_is_clamped_or_a_fault) {
    bh__ptx_fault fault;
    make(2, false);
    REQUIRE_EQ(run_on(WORK("suld.b.2d.b32.clamp %r11, [%s, {%x, 9}];"
                           "suld.b.2d.b32.clamp %r12, [%s, {-4, -1}];"),
                      NULL),
               BH__PTX_DONE);
    CHECK_EQ(m.out[3][0], word_at(0, 3, 3));
    CHECK_EQ(m.out[31][0], word_at(0, 3, 15));
    CHECK_EQ(m.out[31][1], word_at(0, 0, 0));
    CHECK_EQ(run_on(WORK("suld.b.2d.b32.trap %r11, [%s, {%x, %y}];"), &fault), BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(fault.text, "4 bytes at byte 64, row 1, plane 0 of a surface of 64 bytes, "
                                   "4 rows, 1 planes");
    CHECK_EQ(run_on(WORK("suld.b.2d.b32.trap %r11, [%s, {2, %y}];"), &fault), BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(fault.text, "misaligned");
    m.handle = 99;
    CHECK_EQ(run_on(WORK("suld.b.2d.b32.trap %r11, [%s, {%x, %y}];"), &fault), BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(fault.text, "0x63 is not the handle of a surface");
}

TEST(stores) {
    make(2, true);
    REQUIRE_EQ(run_on(WORK("sust.b.a2d.b32.zero [%s, {%y, %x, 3, 0}], %t;"), NULL), BH__PTX_DONE);
    for (unsigned l = 0; l < 16; l++) CHECK_EQ(word_at(1, 3, l), l);
    make(1, false);
    REQUIRE_EQ(run_on(WORK("sust.b.1d.v2.b32.clamp [%s, {56}], {%t, %y};"
                           "cvt.u16.u32 %h1, %y; sust.b.1d.b8.trap [%s, {5}], %h1;"),
                      NULL),
               BH__PTX_DONE);
    CHECK_EQ(word_at(0, 0, 14), 31);
    CHECK_EQ(word_at(0, 0, 15), 1);
    CHECK_EQ(m.image[5], 1);
}

static void store_formatted(uint8_t channels, uint8_t bits, uint8_t kind, uint32_t r, uint32_t g) {
    char text[4096];
    snprintf(text, sizeof text,
             PTX_HEAD ".entry k(.param .u64 p) { .reg .b64 %%o, %%s; .reg .b32 %%r<4>;"
                      "ld.param.u64 %%o, [p]; ld.global.u64 %%s, [%%o];"
                      "mov.b32 %%r1, %u; mov.b32 %%r2, %u;"
                      "sust.p.2d.v2.b32.trap [%%s, {3, 1}], {%%r1, %%r2}; ret; }\n",
             r, g);
    make(2, false);
    surface.channels = channels;
    surface.bits = bits;
    surface.kind = kind;
    REQUIRE_EQ(run_on(text, NULL), BH__PTX_DONE);
}

TEST(formatted_stores_convert) {
    store_formatted(4, 8, BH__TEXEL_UNSIGNED, 7, 300);
    CHECK_EQ(word_at(0, 1, 3), 0x0000ff07);
    store_formatted(2, 16, BH__TEXEL_SIGNED, (uint32_t)-5, 70000);
    CHECK_EQ(word_at(0, 1, 3), 0x7ffffffb);
    store_formatted(2, 16, BH__TEXEL_FLOAT, 0x3f800000, 0xc0000000);
    CHECK_EQ(word_at(0, 1, 3), 0xc0003c00);
    store_formatted(1, 32, BH__TEXEL_FLOAT, 0x7f800001, 0);
    CHECK_EQ(word_at(0, 1, 3), 0x7f800001);
}

TEST(reductions) {
    make(2, false);
    memset(m.image, 0, sizeof m.image);
    REQUIRE_EQ(run_on(WORK("sured.b.add.2d.u32.trap [%s, {8, %y}], %t;"
                           "sured.b.max.2d.u32.trap [%s, {12, %y}], %t;"
                           "neg.s32 %r1, %t; sured.b.min.2d.s32.clamp [%s, {16, %y}], %r1;"
                           "shl.b32 %r2, %y, %t; sured.b.or.2d.b32.clamp [%s, {20, %y}], %r2;"
                           "cvt.u64.u32 %rd1, %t; sured.b.add.2d.u64.clamp [%s, {24, %y}], %rd1;"
                           "cvt.s64.s32 %rd2, %r1; sured.b.min.2d.s64.clamp [%s, {32, %y}], %rd2;"
                           "sured.p.add.2d.b32.zero [%s, {10, %y}], %y;"
                           "sured.p.add.2d.b32.zero [%s, {16, %y}], %y;"),
                      NULL),
               BH__PTX_DONE);
    CHECK_EQ(word_at(0, 1, 2), 496);
    CHECK_EQ(word_at(0, 1, 3), 31);
    CHECK_EQ((int32_t)word_at(0, 1, 4), -31);
    CHECK_EQ(word_at(0, 1, 5), UINT32_MAX);
    CHECK_EQ(word_at(0, 1, 6), 496);
    CHECK_EQ((int32_t)word_at(0, 1, 8), -31);
    CHECK_EQ((int32_t)word_at(0, 1, 9), -1);
    CHECK_EQ(word_at(0, 1, 10), 32);
}

TEST(attributes) {
    make(2, true);
    REQUIRE_EQ(run_on(WORK("suq.width.b32 %r11, [%s]; suq.height.b32 %r12, [%s];"
                           "suq.array_size.b32 %r13, [%s]; suq.channel_order.b32 %r14, [%s];"),
                      NULL),
               BH__PTX_DONE);
    CHECK_EQ(m.out[0][0], 16);
    CHECK_EQ(m.out[0][1], ROWS);
    CHECK_EQ(m.out[0][2], PLANES);
    CHECK_EQ(m.out[0][3], 0x10b0);
}

TEST(other_forms_are_refused) {
    static const char *const bad[] = {
        WORK("suld.b.2d.b32 %r11, [%s, {%x, %y}];"),
        WORK("suld.p.2d.b32.trap %r11, [%s, {%x, %y}];"),
        WORK("suld.b.2d.v4.b64.trap {%rd1, %rd2, %rd3, %rd4}, [%s, {%x, %y}];"),
        WORK("suld.b.cube.b32.trap %r11, [%s, {%x, %y, %y, %y}];"),
        WORK("sust.p.2d.b64.trap [%s, {%x, %y}], %rd1;"),
        WORK("sured.b.and.2d.u32.trap [%s, {%x, %y}], %x;"),
        WORK("sured.b.add.2d.b32.trap [%s, {%x, %y}], %x;"),
        WORK("sured.b.2d.u32.trap [%s, {%x, %y}], %x;"),
        WORK("suq.memory_layout.b32 %r11, [%s];")};
    for (unsigned n = 0; n < sizeof bad / sizeof *bad; n++) {
        bh_error error;
        CHECK_NE(load_error(bad[n], strlen(bad[n]), &error), BH_OK);
        CHECK(error.fix[0] != 0);
    }
}
