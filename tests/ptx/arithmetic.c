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

TEST(vectors_pack_and_unpack) {
    CHECK_EQ(EVAL64("mov.b64 %rd0, {%r1, %r2};", 1, 2, 0), UINT64_C(0x200000001));
    CHECK_EQ(EVAL32("mov.b64 {_, %r0}, %rd1;", UINT64_C(0x500000006), 0, 0), 5);
    CHECK_EQ(EVAL32("mov.b32 %r0, {%h1, %h2};", 0x1111, 0x2222, 0), 0x22221111u);
}
