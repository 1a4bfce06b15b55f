/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic at its edges. The expected values are those of an NVIDIA H200. */
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"
#include "test.h"

/* Runs one instruction on %rd1, %rd2, %rd3 (64 bits), %r1.. (their low halves), %h1.. (low
 * quarters), and returns what it leaves in %rd0, %r0 or %h0. */
static uint64_t eval(const char *instruction, unsigned bits, uint64_t a, uint64_t b, uint64_t c) {
    char text[2048];
    uint64_t data[4] = {a, b, c, 0};
    const char *move = bits == 64   ? ""
                       : bits == 32 ? "cvt.u64.u32 %rd0, %r0;"
                       : bits == 16 ? "cvt.u64.u16 %rd0, %h0;"
                                    : "selp.u64 %rd0, 1, 0, %p0;";
    snprintf(text, sizeof text,
             PTX_HEAD ".entry k(.param .u64 p) { .reg .b64 %%rd<9>; .reg .b32 %%r<9>;\n"
                      ".reg .b16 %%h<9>; .reg .pred %%p<4>; ld.param.u64 %%rd8, [p];\n"
                      "ld.global.u64 %%rd1, [%%rd8]; ld.global.u64 %%rd2, [%%rd8+8];\n"
                      "ld.global.u64 %%rd3, [%%rd8+16]; cvt.u32.u64 %%r1, %%rd1;\n"
                      "cvt.u32.u64 %%r2, %%rd2; cvt.u32.u64 %%r3, %%rd3; cvt.u16.u64 %%h1, %%rd1;\n"
                      "cvt.u16.u64 %%h2, %%rd2; cvt.u16.u64 %%h3, %%rd3;\n"
                      "%s\n%s\nst.global.u64 [%%rd8+24], %%rd0; }\n",
             instruction, move);
    kernel k;
    CHECK_EQ(run_text(&k, text, 1, data, sizeof data), BH__PTX_DONE);
    return data[3];
}

#define EVAL32(instruction, a, b, c) eval(instruction, 32, a, b, c)
#define EVAL64(instruction, a, b, c) eval(instruction, 64, a, b, c)
#define EVAL16(instruction, a, b, c) eval(instruction, 16, a, b, c)

#define ONE   0x3f800000u
#define NAN32 0x7fffffffu
#define INF32 0x7f800000u

TEST(integers_wrap_saturate_and_divide) {
    CHECK_EQ(EVAL32("add.s32 %r0, %r1, %r2;", 0x7fffffff, 1, 0), 0x80000000u);
    CHECK_EQ(EVAL32("add.sat.s32 %r0, %r1, %r2;", 0x7fffffff, 1, 0), 0x7fffffffu);
    CHECK_EQ(EVAL32("sub.sat.s32 %r0, %r1, %r2;", 0x80000000u, 1, 0), 0x80000000u);
    CHECK_EQ(EVAL32("div.u32 %r0, %r1, %r2;", 7, 0, 0), UINT32_MAX);
    CHECK_EQ(EVAL32("rem.u32 %r0, %r1, %r2;", 7, 0, 0), UINT32_MAX);
    CHECK_EQ(EVAL32("div.s32 %r0, %r1, %r2;", 0x80000000u, UINT32_MAX, 0), 0x80000000u);
    CHECK_EQ(EVAL32("mul.hi.s32 %r0, %r1, %r2;", UINT32_MAX, 2, 0), UINT32_MAX);
    CHECK_EQ(EVAL64("mul.wide.s32 %rd0, %r1, %r2;", UINT32_MAX, 2, 0), UINT64_MAX - 1);
    CHECK_EQ(EVAL64("mul.hi.u64 %rd0, %rd1, %rd2;", UINT64_MAX, UINT64_MAX, 0), UINT64_MAX - 1);
    CHECK_EQ(EVAL16("mul.lo.u16 %h0, %h1, %h2;", 0xffff, 0xffff, 0), 1);
    CHECK_EQ(EVAL32("sad.u32 %r0, %r1, %r2, %r3;", 3, 10, 100), 107);
    CHECK_EQ(EVAL32("mul24.lo.s32 %r0, %r1, %r2;", 0x00ffffff, 2, 0), (uint32_t)-2);
}

TEST(carries_travel) {
    CHECK_EQ(EVAL32("add.cc.u32 %r0, %r1, %r2; addc.u32 %r0, %r3, 0;", UINT32_MAX, 1, 5), 6);
    CHECK_EQ(EVAL32("sub.cc.u32 %r0, %r1, %r2; subc.u32 %r0, %r3, 0;", 0, 1, 5), 4);
    CHECK_EQ(EVAL64("mad.lo.cc.u64 %rd0, %rd1, %rd2, %rd3; madc.hi.u64 %rd0, %rd1, %rd2, 0;",
                    UINT64_MAX, UINT64_MAX, UINT64_MAX),
             UINT64_MAX - 1 + 1);
    /* One flag for sums and differences: after a difference, 1 means that nothing was borrowed. */
    CHECK_EQ(EVAL32("sub.cc.u32 %r0, %r1, %r2; addc.u32 %r0, %r3, 0;", 0, 1, 5), 5);
    CHECK_EQ(EVAL32("sub.cc.u32 %r0, %r1, %r2; addc.u32 %r0, %r3, 0;", 1, 1, 5), 6);
    CHECK_EQ(EVAL32("add.cc.u32 %r0, %r1, %r2; subc.u32 %r0, %r3, 0;", UINT32_MAX, 1, 5), 5);
    CHECK_EQ(EVAL32("add.cc.u32 %r0, %r1, %r2; subc.u32 %r0, %r3, 0;", 1, 1, 5), 4);
    CHECK_EQ(EVAL64("sub.cc.u64 %rd0, %rd1, %rd2; madc.lo.u64 %rd0, %rd3, 2, 0;", 0, 0, 5), 11);
    CHECK_EQ(EVAL64("mad.lo.cc.u64 %rd0, %rd1, 1, %rd2; subc.cc.u64 %rd0, %rd3, 5;\n"
                    "addc.u64 %rd0, %rd0, 0;",
                    UINT64_MAX, 1, 5),
             1);
}

TEST(shifts_clamp) {
    CHECK_EQ(EVAL32("shl.b32 %r0, %r1, %r2;", 1, 32, 0), 0);
    CHECK_EQ(EVAL32("shl.b32 %r0, %r1, %r2;", 1, UINT32_MAX, 0), 0);
    CHECK_EQ(EVAL32("shr.s32 %r0, %r1, %r2;", 0x80000000u, 99, 0), UINT32_MAX);
    CHECK_EQ(EVAL64("shr.u64 %rd0, %rd1, %r2;", UINT64_MAX, 64, 0), 0);
    CHECK_EQ(EVAL16("shl.b16 %h0, %h1, %r2;", 0xffff, 15, 0), 0x8000);
    CHECK_EQ(EVAL32("shf.l.wrap.b32 %r0, %r1, %r2, %r3;", 0x12345678, 0x9abcdef0, 40), 0xbcdef012u);
    CHECK_EQ(EVAL32("shf.r.clamp.b32 %r0, %r1, %r2, %r3;", 0x12345678, 0x9abcdef0, 40),
             0x9abcdef0u);
}

TEST(fields_and_bytes_move) {
    CHECK_EQ(EVAL32("bfe.s32 %r0, %r1, %r2, %r3;", 0x00000f00, 8, 4), UINT32_MAX);
    CHECK_EQ(EVAL32("bfe.u32 %r0, %r1, %r2, %r3;", 0x80000000u, 31, 20), 1);
    CHECK_EQ(EVAL32("bfi.b32 %r0, %r1, %r2, 28, 8;", 0xff, 0, 0), 0xf0000000u);
    CHECK_EQ(EVAL32("prmt.b32 %r0, %r1, %r2, 0x7650;", 0x33221100, 0x77665544, 0), 0x77665500u);
    CHECK_EQ(EVAL32("prmt.b32 %r0, %r1, %r2, 0x888f;", 0x80, 0x80000000u, 0), UINT32_MAX);
    CHECK_EQ(EVAL32("bfind.s32 %r0, %r1;", UINT32_MAX, 0, 0), UINT32_MAX);
    CHECK_EQ(EVAL32("lop3.b32 %r0, %r1, %r2, %r3, 0x96;", 0xf0f0, 0xff00, 0x1), 0x0ff1);
    CHECK_EQ(EVAL32("dp4a.s32.s32 %r0, %r1, %r2, %r3;", 0xff020304, 0x02010101, 10), 17);
}

TEST(floats_round_in_every_mode) {
    CHECK_EQ(EVAL32("add.rn.f32 %r0, %r1, %r2;", ONE, 0x33800000, 0), ONE);
    CHECK_EQ(EVAL32("add.rp.f32 %r0, %r1, %r2;", ONE, 0x33800000, 0), ONE + 1);
    CHECK_EQ(EVAL32("add.rz.f32 %r0, %r1, %r2;", 0xbf800000u, 0xb3800001u, 0), 0xbf800000u);
    CHECK_EQ(EVAL32("add.rm.f32 %r0, %r1, %r2;", 0xbf800000u, 0xb3800000u, 0), 0xbf800001u);
    CHECK_EQ(EVAL32("div.rn.f32 %r0, %r1, %r2;", ONE, 0x40400000, 0), 0x3eaaaaabu);
    CHECK_EQ(EVAL32("div.rz.f32 %r0, %r1, %r2;", ONE, 0x40400000, 0), 0x3eaaaaaau);
    CHECK_EQ(EVAL32("sqrt.rp.f32 %r0, %r1;", 0x40000000, 0, 0), 0x3fb504f4u);
    CHECK_EQ(EVAL32("sqrt.rm.f32 %r0, %r1;", 0x40000000, 0, 0), 0x3fb504f3u);
    CHECK_EQ(EVAL32("fma.rn.f32 %r0, %r1, %r2, %r3;", 0x3f800001, 0x3f800001, 0xbf800002u),
             0x28800000u);
    CHECK_EQ(EVAL64("rcp.rp.f64 %rd0, %rd1;", UINT64_C(0x4008000000000000), 0, 0),
             UINT64_C(0x3fd5555555555556));
}

TEST(approximate_quotients_have_no_large_divisors) {
    const char *divide = "div.approx.f32 %r0, %r1, %r2;";
    CHECK_EQ(EVAL32(divide, ONE, 0x7e800000, 0), 0x00800000); /* 2^126 */
    CHECK_EQ(EVAL32(divide, ONE, 0x7e800001, 0), 0);
    CHECK_EQ(EVAL32(divide, 0xff7fffffu, 0x7f7fffff, 0), 0x80000000u);
    CHECK_EQ(EVAL32(divide, INF32, 0x7f000000, 0), NAN32);
    CHECK_EQ(EVAL32("div.full.f32 %r0, %r1, %r2;", 0x7f000000, 0x7f000000, 0), ONE);
}

TEST(nan_zero_and_subnormals) {
    CHECK_EQ(EVAL32("sub.f32 %r0, %r1, %r2;", INF32, INF32, 0), NAN32);
    CHECK_EQ(EVAL32("add.f32 %r0, %r1, %r2;", 0x7fc12345, ONE, 0), NAN32);
    CHECK_EQ(EVAL32("min.f32 %r0, %r1, %r2;", 0x7fc00000, ONE, 0), ONE);
    CHECK_EQ(EVAL32("min.NaN.f32 %r0, %r1, %r2;", 0x7fc00000, ONE, 0), NAN32);
    CHECK_EQ(EVAL32("max.f32 %r0, %r1, %r2;", 0x80000000u, 0, 0), 0);
    CHECK_EQ(EVAL32("mul.f32 %r0, %r1, %r2;", 0x00000004, 0x3f000000, 0), 2);
    CHECK_EQ(EVAL32("mul.ftz.f32 %r0, %r1, %r2;", 0x80000004u, ONE, 0), 0x80000000u);
    CHECK_EQ(EVAL32("mul.rn.ftz.f32 %r0, %r1, %r2;", 0x00800000, 0x3f7fffff, 0), 0);
    CHECK_EQ(EVAL32("add.sat.f32 %r0, %r1, %r2;", ONE, ONE, 0), ONE);
    CHECK_EQ(EVAL32("add.sat.f32 %r0, %r1, %r2;", 0x7fc00000, ONE, 0), 0);
    CHECK_EQ(eval("testp.normal.f32 %p0, %r1;", 1, 0, 0, 0), 1);
    CHECK_EQ(eval("testp.subnormal.f32 %p0, %r1;", 1, 1, 0, 0), 1);
}

TEST(halves_round_once) {
    CHECK_EQ(EVAL16("add.rn.f16 %h0, %h1, %h2;", 0x3c00, 0x1000, 0), 0x3c00);
    CHECK_EQ(EVAL16("fma.rn.f16 %h0, %h1, %h2, %h3;", 0x3c01, 0x3c01, 0x0001), 0x3c02);
    CHECK_EQ(EVAL16("add.rn.sat.f16 %h0, %h1, %h2;", 0xbc00, 0x3800, 0), 0);
    CHECK_EQ(EVAL16("mul.rn.bf16 %h0, %h1, %h2;", 0x3f81, 0x3f81, 0), 0x3f82);
    CHECK_EQ(EVAL32("add.rn.f16x2 %r0, %r1, %r2;", 0x3c007bff, 0x3c007bff, 0), 0x40007c00u);
    CHECK_EQ(EVAL16("cvt.rn.f16.f32 %h0, %r1;", 0x477ff000, 0, 0), 0x7c00);
    CHECK_EQ(EVAL16("cvt.rz.f16.f32 %h0, %r1;", 0x477ff000, 0, 0), 0x7bff);
    CHECK_EQ(EVAL32("cvt.rn.f16x2.f32 %r0, %r1, %r2;", ONE, 0x40000000, 0), 0x3c004000u);
    CHECK_EQ(EVAL32("cvt.rna.tf32.f32 %r0, %r1;", 0x3f801000, 0, 0), 0x3f802000u);
}

TEST(comparisons_know_nan_and_order) {
    CHECK_EQ(eval("setp.lt.f32 %p0, %r1, %r2;", 1, NAN32, ONE, 0), 0);
    CHECK_EQ(eval("setp.ltu.f32 %p0, %r1, %r2;", 1, NAN32, ONE, 0), 1);
    CHECK_EQ(eval("setp.ne.f32 %p0, %r1, %r2;", 1, NAN32, ONE, 0), 0);
    CHECK_EQ(eval("setp.neu.f32 %p0, %r1, %r2;", 1, NAN32, ONE, 0), 1);
    CHECK_EQ(eval("setp.lt.s32 %p0, %r1, %r2;", 1, UINT32_MAX, 0, 0), 1);
    CHECK_EQ(eval("setp.lo.u32 %p0, %r1, %r2;", 1, UINT32_MAX, 0, 0), 0);
    CHECK_EQ(
        eval("setp.eq.u32 %p1, %r1, %r1; setp.lt.and.s32 %p0|%p2, %r1, %r2, !%p1;", 1, 1, 2, 0), 0);
    CHECK_EQ(EVAL32("set.gt.u32.f32 %r0, %r1, %r2;", 0x40000000, ONE, 0), UINT32_MAX);
    CHECK_EQ(EVAL32("set.gt.f32.s32 %r0, %r1, %r2;", 2, 1, 0), ONE);
    CHECK_EQ(EVAL32("slct.u32.s32 %r0, %r1, %r2, %r3;", 7, 8, 0x80000000u), 8);
}

TEST(conversions_clamp_and_round) {
    CHECK_EQ(EVAL32("cvt.rzi.s32.f32 %r0, %r1;", 0x4f000000, 0, 0), 0x7fffffff);
    CHECK_EQ(EVAL32("cvt.rzi.u32.f32 %r0, %r1;", 0xbf800000u, 0, 0), 0);
    CHECK_EQ(EVAL32("cvt.rzi.s32.f32 %r0, %r1;", NAN32, 0, 0), 0);
    CHECK_EQ(EVAL64("cvt.rzi.s64.f32 %rd0, %r1;", NAN32, 0, 0), UINT64_C(1) << 63);
    CHECK_EQ(EVAL32("cvt.rni.s32.f32 %r0, %r1;", 0x40200000, 0, 0), 2);
    CHECK_EQ(EVAL32("cvt.rpi.f32.f32 %r0, %r1;", 0xbf000000u, 0, 0), 0x80000000u);
    CHECK_EQ(EVAL32("cvt.rn.f32.s64 %r0, %rd1;", UINT64_C(0x0000008000008001), 0, 0), 0x53000001u);
    CHECK_EQ(EVAL32("cvt.rz.f32.u64 %r0, %rd1;", UINT64_MAX, 0, 0), 0x5f7fffffu);
    CHECK_EQ(EVAL32("cvt.rp.f32.s32 %r0, %r1;", 0x01000001, 0, 0), 0x4b800001u);
    CHECK_EQ(EVAL32("cvt.s32.s8 %r0, %h1;", 0x80, 0, 0), 0xffffff80u);
    CHECK_EQ(EVAL32("cvt.sat.u8.s32 %r0, %r1;", 300, 0, 0), 255);
    CHECK_EQ(EVAL32("cvt.rn.f32.f64 %r0, %rd1;", UINT64_C(0x3690000000000001), 0, 0), 1);
    CHECK_EQ(EVAL32("cvt.pack.sat.u16.s32 %r0, %r1, %r2;", 70000, UINT32_MAX, 0), 0xffff0000u);
}

TEST(vectors_move_all_at_once) {
    CHECK_EQ(EVAL32("mov.v2.b32 {%r1, %r2}, {%r2, %r1}; shl.b32 %r1, %r1, 4;\n"
                    "or.b32 %r0, %r1, %r2;",
                    1, 2, 0),
             0x21);
    CHECK_EQ(EVAL64("mov.v2.u64 {%rd1, %rd2}, {%rd2, %rd1}; sub.u64 %rd0, %rd1, %rd2;", 1, 9, 0),
             8);
    CHECK_EQ(EVAL16("mov.v4.u16 {%h1, %h2, %h3, %h4}, {%h2, %h3, 7, %h1};\n"
                    "mov.v4.b16 {%h0, _, _, %h5}, {%h4, %h1, %h2, %h3};"
                    "mad.lo.u16 %h0, %h0, 10, %h2; mad.lo.u16 %h0, %h0, 10, %h5;",
                    1, 2, 3),
             137);
}

TEST(vectors_pack_and_unpack) {
    CHECK_EQ(EVAL64("mov.b64 %rd0, {%r1, %r2};", 1, 2, 0), UINT64_C(0x200000001));
    CHECK_EQ(EVAL32("mov.b64 {_, %r0}, %rd1;", UINT64_C(0x500000006), 0, 0), 5);
    CHECK_EQ(EVAL32("mov.b32 %r0, {%h1, %h2};", 0x1111, 0x2222, 0), 0x22221111u);
}

TEST(floats_of_eight_bits_round_and_saturate) {
    const char *e4m3 = "cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2;";
    CHECK_EQ(EVAL16(e4m3, ONE, 0x43e00000, 0), 0x387e);        /* 1 and 448, the largest */
    CHECK_EQ(EVAL16(e4m3, 0xc47a0000u, INF32, 0), 0xfe7e);     /* -1000, infinity */
    CHECK_EQ(EVAL16(e4m3, 0x3b000000, 0x3a800000, 0), 0x0100); /* 2^-9, 2^-10 */
    CHECK_EQ(EVAL16(e4m3, 0x3b400000, NAN32, 0), 0x027f);      /* 1.5 * 2^-9 to even */
    CHECK_EQ(EVAL16("cvt.rn.satfinite.relu.e5m2x2.f32 %h0, %r1, %r2;", 0x477fe000, 0xbf800000u, 0),
             0x7b00); /* 65504, -1 */
    CHECK_EQ(EVAL16("cvt.rn.satfinite.e5m2x2.f16x2 %h0, %r1;", 0x3c00fc00, 0, 0), 0x3cfb);
    CHECK_EQ(EVAL32("cvt.rn.f16x2.e4m3x2 %r0, %h1;", 0x38fe, 0, 0), 0x3c00df00u);
    CHECK_EQ(EVAL32("cvt.rn.f16x2.e4m3x2 %r0, %h1;", 0x0181, 0, 0), 0x18009800u);
    CHECK_EQ(EVAL32("cvt.rn.relu.f16x2.e5m2x2 %r0, %h1;", 0x7cbc, 0, 0), 0x7c000000u);
}

TEST(video_instructions_take_parts) {
    CHECK_EQ(EVAL32("vadd.s32.s32.u32 %r0, %r1.b3, %r2.h0;", 0xff000000u, 0x0001ffff, 0), 0xfffe);
    CHECK_EQ(EVAL32("vsub.u32.u32.u32.sat %r0, %r1, %r2;", 1, 2, 0), 0);
    CHECK_EQ(
        EVAL32("vabsdiff.s32.s32.s32.sat %r0.b1, %r1.b0, %r2.b0, %r3;", 0x80, 0x7f, 0x12345678),
        0x12347f78u);
    CHECK_EQ(EVAL32("vmin.s32.s32.s32.add %r0, %r1.h1, %r2, %r3;", 0x80000000u, 5, 1), 0xffff8001u);
    CHECK_EQ(EVAL32("vshl.u32.u32.u32.clamp %r0, %r1, %r2;", 1, 32, 0), 0);
    CHECK_EQ(EVAL32("vshr.s32.s32.u32.wrap %r0, %r1, %r2;", 0x80000000u, 33, 0), 0xc0000000u);
    CHECK_EQ(EVAL32("vmad.s32.s32.s32.sat.shr7 %r0, %r1.h0, %r2.h0, %r3;", 0xffff, 3, 128), 0);
    CHECK_EQ(EVAL32("vmad.s32.s32.s32 %r0, -%r1.b0, %r2, %r3;", 7, 3, 30), 9);
    CHECK_EQ(EVAL32("vset.s32.u32.lt.add %r0, %r1, %r2, %r3;", UINT32_MAX, 0, 41), 42);
}

TEST(video_instructions_that_gpus_get_wrong_are_refused) {
    static const char *const refused[] = {
        "vadd.u32.u32.u32.sat %r1, %r2, %r3;", "vshl.u32.u32.u32.sat.clamp %r1, %r2, %r3;",
        "vsub.u32.u32.u32.sat %r1.b0, %r2, %r3, %r4;", "vmad.u32.u32.u32.shr7 %r1, %r2, %r3, %r4;",
        "vsub.u32.u32.u32.min %r1, %r2, %r3, %r4;"};
    for (size_t n = 0; n < sizeof refused / sizeof *refused; n++) {
        char text[256];
        bh_error error;
        snprintf(text, sizeof text, PTX_HEAD ".entry k() { .reg .b32 %%r<5>; %s }", refused[n]);
        CHECK_EQ(load_error(text, strlen(text), &error), BH_E_UNSUPPORTED);
    }
}

TEST(video_instructions_of_several_lanes) {
    CHECK_EQ(EVAL32("vadd2.u32.u32.u32.sat %r0, %r1, %r2, %r3;", 0xffff0001u, 0x00010001, 0),
             0xffff0002u);
    CHECK_EQ(
        EVAL32("vsub4.s32.s32.s32 %r0.b20, %r1, %r2, %r3;", 0x01020304, 0x04030201, 0x55667788),
        0x55ff7703u);
    CHECK_EQ(EVAL32("vavrg4.u32.u32.u32 %r0, %r1, %r2.b7654, %r3;", 0xff000103, 0x00000200, 0),
             0x80000202u);
    CHECK_EQ(EVAL32("vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;", 0x01020304, 0x04030201, 100),
             108);
    CHECK_EQ(EVAL32("vmax2.s32.s32.s32 %r0, %r1.h32, %r2.h01, %r3;", 0x00070003, 0x0005ffff, 0),
             0x00050007u);
    CHECK_EQ(EVAL32("vset4.u32.u32.ge %r0, %r1, %r2, %r3;", 0x01020304, 0x04030201, 0), 0x101);
}
