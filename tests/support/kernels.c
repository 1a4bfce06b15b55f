/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX of the kernels the tests run. */
#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>

#define HEADER ".version 7.0\n.target sm_70\n.address_size 64\n"

/* %r1 = index of the thread in a one-dimensional grid; leaves if it is not below %r9. */
#define INDEX                                                                                      \
    "  mov.u32 %r2, %ctaid.x;\n"                                                                   \
    "  mov.u32 %r3, %ntid.x;\n"                                                                    \
    "  mov.u32 %r4, %tid.x;\n"                                                                     \
    "  mad.lo.u32 %r1, %r2, %r3, %r4;\n"

#define BELOW_N                                                                                    \
    "  setp.ge.u32 %p1, %r1, %r9;\n"                                                               \
    "  @%p1 bra DONE;\n"

#define REGISTERS                                                                                  \
    "  .reg .pred %p<4>;\n"                                                                        \
    "  .reg .b32 %r<20>;\n"                                                                        \
    "  .reg .b64 %rd<12>;\n"                                                                       \
    "  .reg .f32 %f<4>;\n"                                                                         \
    "  .reg .f64 %fd<2>;\n"                                                                        \
    "  .reg .b16 %h<4>;\n"

/* Says at %rd1 + 4 that it has begun and waits until the word at %rd1 is not zero. */
#define WAIT_FLAG                                                                                  \
    "  mov.u32 %r11, 1;\n"                                                                         \
    "  st.volatile.global.u32 [%rd1+4], %r11;\n"                                                   \
    "WAIT:\n"                                                                                      \
    "  ld.volatile.global.u32 %r10, [%rd1];\n"                                                     \
    "  setp.eq.u32 %p2, %r10, 0;\n"                                                                \
    "  @%p2 bra WAIT;\n"

const char ptx_basic[] = HEADER
    ".visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)\n"
    "{\n" REGISTERS "  ld.param.u32 %r9, [n];\n" INDEX BELOW_N "  ld.param.f32 %f0, [a];\n"
    "  ld.param.u64 %rd1, [x];\n"
    "  ld.param.u64 %rd2, [y];\n"
    "  cvta.to.global.u64 %rd1, %rd1;\n"
    "  cvta.to.global.u64 %rd2, %rd2;\n"
    "  mul.wide.u32 %rd3, %r1, 4;\n"
    "  add.s64 %rd1, %rd1, %rd3;\n"
    "  add.s64 %rd2, %rd2, %rd3;\n"
    "  ld.global.f32 %f1, [%rd1];\n"
    "  ld.global.f32 %f2, [%rd2];\n"
    "  fma.rn.f32 %f3, %f0, %f1, %f2;\n"
    "  st.global.f32 [%rd2], %f3;\n"
    "DONE:\n  ret;\n}\n"

    ".visible .entry iota(.param .u64 p, .param .u32 base, .param .u32 n)\n"
    "{\n" REGISTERS "  ld.param.u32 %r9, [n];\n" INDEX BELOW_N "  ld.param.u64 %rd1, [p];\n"
    "  ld.param.u32 %r5, [base];\n"
    "  add.u32 %r5, %r5, %r1;\n"
    "  mul.wide.u32 %rd3, %r1, 4;\n"
    "  add.s64 %rd1, %rd1, %rd3;\n"
    "  st.global.u32 [%rd1], %r5;\n"
    "DONE:\n  ret;\n}\n"

    ".visible .entry store_word(.param .u64 p, .param .u32 value)\n"
    "{\n" REGISTERS "  ld.param.u64 %rd1, [p];\n"
    "  ld.param.u32 %r1, [value];\n"
    "  st.global.u32 [%rd1], %r1;\n"
    "  ret;\n}\n"

    ".visible .entry add_one(.param .u64 p, .param .u32 n)\n"
    "{\n" REGISTERS "  ld.param.u32 %r9, [n];\n" INDEX BELOW_N "  ld.param.u64 %rd1, [p];\n"
    "  mul.wide.u32 %rd3, %r1, 4;\n"
    "  add.s64 %rd1, %rd1, %rd3;\n"
    "  ld.global.u32 %r5, [%rd1];\n"
    "  add.u32 %r5, %r5, 1;\n"
    "  st.global.u32 [%rd1], %r5;\n"
    "DONE:\n  ret;\n}\n"

    ".visible .entry copy_words(.param .u64 a, .param .u64 b, .param .u32 n)\n"
    "{\n" REGISTERS "  ld.param.u32 %r9, [n];\n" INDEX BELOW_N "  ld.param.u64 %rd1, [a];\n"
    "  ld.param.u64 %rd2, [b];\n"
    "  mul.wide.u32 %rd3, %r1, 4;\n"
    "  add.s64 %rd1, %rd1, %rd3;\n"
    "  add.s64 %rd2, %rd2, %rd3;\n"
    "  ld.global.u32 %r5, [%rd1];\n"
    "  st.global.u32 [%rd2], %r5;\n"
    "DONE:\n  ret;\n}\n"

    ".visible .entry mix(.param .u64 p, .param .u64 a, .param .u64 b, .param .u32 k, .param .u32 n)\n"
    "{\n" REGISTERS "  ld.param.u32 %r9, [n];\n" INDEX BELOW_N "  ld.param.u64 %rd1, [p];\n"
    "  ld.param.u64 %rd2, [a];\n"
    "  ld.param.u64 %rd4, [b];\n"
    "  ld.param.u32 %r8, [k];\n"
    "  mul.wide.u32 %rd3, %r1, 4;\n"
    "  add.s64 %rd1, %rd1, %rd3;\n"
    "  add.s64 %rd2, %rd2, %rd3;\n"
    "  add.s64 %rd4, %rd4, %rd3;\n"
    "  ld.global.u32 %r5, [%rd2];\n"
    "  ld.global.u32 %r6, [%rd4];\n"
    "  mad.lo.u32 %r7, %r5, 1664525, %r6;\n"
    "  xor.b32 %r7, %r7, %r8;\n"
    "  st.global.u32 [%rd1], %r7;\n"
    "DONE:\n  ret;\n}\n"

    ".visible .entry churn(.param .u64 p, .param .u32 k, .param .u32 n)\n"
    "{\n" REGISTERS "  ld.param.u32 %r9, [n];\n" INDEX BELOW_N "  ld.param.u64 %rd1, [p];\n"
    "  ld.param.u32 %r8, [k];\n"
    "  mul.wide.u32 %rd3, %r1, 4;\n"
    "  add.s64 %rd1, %rd1, %rd3;\n"
    "  ld.global.u32 %r5, [%rd1];\n"
    "  mad.lo.u32 %r5, %r5, 22695477, %r8;\n"
    "  st.global.u32 [%rd1], %r5;\n"
    "DONE:\n  ret;\n}\n"

    ".visible .entry gate(.param .u64 flag, .param .u64 p, .param .u32 value)\n"
    "{\n" REGISTERS "  ld.param.u64 %rd1, [flag];\n"
    "  ld.param.u64 %rd2, [p];\n"
    "  ld.param.u32 %r1, [value];\n" WAIT_FLAG "  st.global.u32 [%rd2], %r1;\n"
    "  ret;\n}\n"

    ".visible .entry spin(.param .u64 p, .param .u32 seed, .param .u32 rounds)\n"
    "{\n" REGISTERS "  ld.param.u64 %rd1, [p];\n" INDEX "  ld.param.u32 %r5, [seed];\n"
    "  ld.param.u32 %r6, [rounds];\n"
    "  add.u32 %r5, %r5, %r1;\n"
    "NEXT:\n"
    "  setp.eq.u32 %p1, %r6, 0;\n"
    "  @%p1 bra DONE;\n"
    "  mad.lo.u32 %r5, %r5, 1664525, 1013904223;\n"
    "  sub.u32 %r6, %r6, 1;\n"
    "  bra NEXT;\n"
    "DONE:\n"
    "  mul.wide.u32 %rd3, %r1, 4;\n"
    "  add.s64 %rd1, %rd1, %rd3;\n"
    "  st.global.u32 [%rd1], %r5;\n"
    "  ret;\n}\n"

    ".visible .entry gather(.param .u64 table, .param .u64 p, .param .u32 n)\n"
    "{\n" REGISTERS "  ld.param.u32 %r9, [n];\n" INDEX BELOW_N "  ld.param.u64 %rd1, [table];\n"
    "  ld.param.u64 %rd2, [p];\n"
    "  mul.wide.u32 %rd3, %r1, 8;\n"
    "  add.s64 %rd1, %rd1, %rd3;\n"
    "  ld.global.u64 %rd4, [%rd1];\n"
    "  ld.global.u32 %r5, [%rd4];\n"
    "  mul.wide.u32 %rd3, %r1, 4;\n"
    "  add.s64 %rd2, %rd2, %rd3;\n"
    "  st.global.u32 [%rd2], %r5;\n"
    "DONE:\n  ret;\n}\n"

    ".visible .entry scatter(.param .u64 table, .param .u32 value, .param .u32 n)\n"
    "{\n" REGISTERS "  ld.param.u32 %r9, [n];\n" INDEX BELOW_N "  ld.param.u64 %rd1, [table];\n"
    "  ld.param.u32 %r5, [value];\n"
    "  mul.wide.u32 %rd3, %r1, 8;\n"
    "  add.s64 %rd1, %rd1, %rd3;\n"
    "  ld.global.u64 %rd4, [%rd1];\n"
    "  add.u32 %r5, %r5, %r1;\n"
    "  st.global.u32 [%rd4], %r5;\n"
    "DONE:\n  ret;\n}\n"

    ".visible .entry scalars(.param .u8 a, .param .u16 b, .param .u32 c, .param .u64 d,\n"
    "                        .param .f32 e, .param .f64 f, .param .u64 p)\n"
    "{\n" REGISTERS "  ld.param.u64 %rd1, [p];\n"
    "  ld.param.u8 %r1, [a];\n"
    "  cvt.u64.u32 %rd2, %r1;\n"
    "  st.global.u64 [%rd1], %rd2;\n"
    "  ld.param.u16 %h0, [b];\n"
    "  cvt.u64.u16 %rd2, %h0;\n"
    "  st.global.u64 [%rd1+8], %rd2;\n"
    "  ld.param.u32 %r1, [c];\n"
    "  cvt.u64.u32 %rd2, %r1;\n"
    "  st.global.u64 [%rd1+16], %rd2;\n"
    "  ld.param.u64 %rd2, [d];\n"
    "  st.global.u64 [%rd1+24], %rd2;\n"
    "  ld.param.f32 %f0, [e];\n"
    "  mov.b32 %r1, %f0;\n"
    "  cvt.u64.u32 %rd2, %r1;\n"
    "  st.global.u64 [%rd1+32], %rd2;\n"
    "  ld.param.f64 %fd0, [f];\n"
    "  st.global.f64 [%rd1+40], %fd0;\n"
    "  ret;\n}\n"

    ".visible .entry by_struct(.param .align 8 .b8 s[24], .param .u64 p)\n"
    "{\n" REGISTERS "  ld.param.u64 %rd1, [p];\n"
    "  ld.param.u32 %r1, [s];\n"
    "  cvt.u64.u32 %rd2, %r1;\n"
    "  st.global.u64 [%rd1], %rd2;\n"
    "  ld.param.u64 %rd2, [s+8];\n"
    "  st.global.u64 [%rd1+8], %rd2;\n"
    "  ld.param.f32 %f0, [s+16];\n"
    "  mov.b32 %r1, %f0;\n"
    "  cvt.u64.u32 %rd2, %r1;\n"
    "  st.global.u64 [%rd1+16], %rd2;\n"
    "  ld.param.u8 %r1, [s+20];\n"
    "  cvt.u64.u32 %rd2, %r1;\n"
    "  st.global.u64 [%rd1+24], %rd2;\n"
    "  ret;\n}\n"

    /* The slot of a thread: blocks in order x, y, z, threads in order x, y, z within each. */
    ".visible .entry geometry(.param .u64 p)\n"
    "{\n" REGISTERS "  ld.param.u64 %rd1, [p];\n"
    "  mov.u32 %r1, %ctaid.x;\n"
    "  mov.u32 %r2, %ctaid.y;\n"
    "  mov.u32 %r3, %ctaid.z;\n"
    "  mov.u32 %r4, %tid.x;\n"
    "  mov.u32 %r5, %tid.y;\n"
    "  mov.u32 %r6, %tid.z;\n"
    "  mov.u32 %r7, %nctaid.x;\n"
    "  mov.u32 %r8, %nctaid.y;\n"
    "  mov.u32 %r9, %nctaid.z;\n"
    "  mov.u32 %r10, %ntid.x;\n"
    "  mov.u32 %r11, %ntid.y;\n"
    "  mov.u32 %r12, %ntid.z;\n"
    "  mad.lo.u32 %r13, %r3, %r8, %r2;\n"
    "  mad.lo.u32 %r13, %r13, %r7, %r1;\n"
    "  mul.lo.u32 %r14, %r10, %r11;\n"
    "  mul.lo.u32 %r14, %r14, %r12;\n"
    "  mul.lo.u32 %r13, %r13, %r14;\n"
    "  mad.lo.u32 %r15, %r6, %r11, %r5;\n"
    "  mad.lo.u32 %r15, %r15, %r10, %r4;\n"
    "  add.u32 %r13, %r13, %r15;\n"
    "  mul.wide.u32 %rd2, %r13, 48;\n"
    "  add.s64 %rd1, %rd1, %rd2;\n"
    "  st.global.u32 [%rd1], %r1;\n"
    "  st.global.u32 [%rd1+4], %r2;\n"
    "  st.global.u32 [%rd1+8], %r3;\n"
    "  st.global.u32 [%rd1+12], %r4;\n"
    "  st.global.u32 [%rd1+16], %r5;\n"
    "  st.global.u32 [%rd1+20], %r6;\n"
    "  st.global.u32 [%rd1+24], %r7;\n"
    "  st.global.u32 [%rd1+28], %r8;\n"
    "  st.global.u32 [%rd1+32], %r9;\n"
    "  st.global.u32 [%rd1+36], %r10;\n"
    "  st.global.u32 [%rd1+40], %r11;\n"
    "  st.global.u32 [%rd1+44], %r12;\n"
    "  ret;\n}\n"

    ".visible .entry null_or(.param .u64 pointer, .param .u64 p)\n"
    "{\n" REGISTERS "  ld.param.u64 %rd1, [pointer];\n"
    "  ld.param.u64 %rd2, [p];\n"
    "  setp.eq.u64 %p1, %rd1, 0;\n"
    "  selp.u32 %r1, 1, 0, %p1;\n"
    "  st.global.u32 [%rd2], %r1;\n"
    "  ret;\n}\n"

#define SUM_BODY(ARRAY)                                                                            \
    "  ld.param.u64 %rd1, [a];\n"                                                                  \
    "  ld.param.u64 %rd2, [sums];\n" INDEX "  mul.wide.u32 %rd3, %r1, 4;\n"                        \
    "  add.s64 %rd1, %rd1, %rd3;\n"                                                                \
    "  ld.global.u32 %r5, [%rd1];\n"                                                               \
    "  mov.u32 %r6, " ARRAY ";\n"                                                                  \
    "  shl.b32 %r7, %r4, 2;\n"                                                                     \
    "  add.u32 %r6, %r6, %r7;\n"                                                                   \
    "  st.shared.u32 [%r6], %r5;\n"                                                                \
    "  bar.sync 0;\n"                                                                              \
    "  shr.u32 %r8, %r3, 1;\n"                                                                     \
    "HALVE:\n"                                                                                     \
    "  setp.eq.u32 %p1, %r8, 0;\n"                                                                 \
    "  @%p1 bra STORE;\n"                                                                          \
    "  setp.ge.u32 %p2, %r4, %r8;\n"                                                               \
    "  @%p2 bra JOIN;\n"                                                                           \
    "  shl.b32 %r7, %r8, 2;\n"                                                                     \
    "  add.u32 %r7, %r7, %r6;\n"                                                                   \
    "  ld.shared.u32 %r9, [%r7];\n"                                                                \
    "  ld.shared.u32 %r5, [%r6];\n"                                                                \
    "  add.u32 %r5, %r5, %r9;\n"                                                                   \
    "  st.shared.u32 [%r6], %r5;\n"                                                                \
    "JOIN:\n"                                                                                      \
    "  bar.sync 0;\n"                                                                              \
    "  shr.u32 %r8, %r8, 1;\n"                                                                     \
    "  bra HALVE;\n"                                                                               \
    "STORE:\n"                                                                                     \
    "  setp.ne.u32 %p1, %r4, 0;\n"                                                                 \
    "  @%p1 bra DONE;\n"                                                                           \
    "  ld.shared.u32 %r5, [%r6];\n"                                                                \
    "  mul.wide.u32 %rd3, %r2, 4;\n"                                                               \
    "  add.s64 %rd2, %rd2, %rd3;\n"                                                                \
    "  st.global.u32 [%rd2], %r5;\n"                                                               \
    "DONE:\n  ret;\n}\n"

    ".visible .entry sum_shared(.param .u64 a, .param .u64 sums)\n"
    "{\n" REGISTERS "  .shared .align 4 .b8 held[1024];\n" SUM_BODY("held")

        ".extern .shared .align 16 .b8 dynamic[];\n"
        ".visible .entry sum_dynamic(.param .u64 a, .param .u64 sums)\n"
        "{\n" REGISTERS SUM_BODY("dynamic")

            ".visible .entry shared_size(.param .u64 p)\n"
            "{\n" REGISTERS "  ld.param.u64 %rd1, [p];\n"
            "  mov.u32 %r1, %dynamic_smem_size;\n"
            "  st.global.u32 [%rd1], %r1;\n"
            "  ret;\n}\n"

            ".visible .entry poke(.param .u64 address, .param .u32 value)\n"
            "{\n" REGISTERS "  ld.param.u64 %rd1, [address];\n"
            "  ld.param.u32 %r1, [value];\n"
            "  st.global.u32 [%rd1], %r1;\n"
            "  ret;\n}\n"

            ".visible .entry write_input(.param .u64 a, .param .u64 b)\n"
            "{\n" REGISTERS "  ld.param.u64 %rd1, [a];\n"
            "  ld.param.u64 %rd2, [b];\n"
            "  mov.u32 %r1, 1;\n"
            "  st.global.u32 [%rd1], %r1;\n"
            "  st.global.u32 [%rd2], %r1;\n"
            "  ret;\n}\n"

            ".visible .entry write_then_poke(.param .u64 p, .param .u32 n, .param .u64 address)\n"
            "{\n" REGISTERS "  ld.param.u32 %r9, [n];\n" INDEX BELOW_N "  ld.param.u64 %rd1, [p];\n"
            "  ld.param.u64 %rd2, [address];\n"
            "  mul.wide.u32 %rd3, %r1, 4;\n"
            "  add.s64 %rd1, %rd1, %rd3;\n"
            "  ld.global.u32 %r5, [%rd1];\n"
            "  not.b32 %r5, %r5;\n"
            "  st.global.u32 [%rd1], %r5;\n"
            "  st.global.u32 [%rd2], %r5;\n"
            "DONE:\n  ret;\n}\n"

            ".visible .entry trap_now()\n"
            "{\n  trap;\n  ret;\n}\n"

            ".visible .entry misaligned(.param .u64 p)\n"
            "{\n" REGISTERS "  ld.param.u64 %rd1, [p];\n"
            "  mov.u32 %r1, 1;\n"
            "  st.global.u32 [%rd1+1], %r1;\n"
            "  ret;\n}\n"

            ".visible .entry endless(.param .u64 flag, .param .u64 p)\n"
            "{\n" REGISTERS "  ld.param.u64 %rd2, [flag];\n"
            "  ld.param.u64 %rd1, [p];\n"
            "  mov.u32 %r1, 1;\n"
            "  st.volatile.global.u32 [%rd2+4], %r1;\n"
            "AGAIN:\n"
            "  add.u32 %r1, %r1, 1;\n"
            "  st.volatile.global.u32 [%rd1], %r1;\n"
            "  bra AGAIN;\n}\n"

            ".visible .entry wait_then_poke(.param .u64 flag, .param .u64 p, .param .u64 address)\n"
            "{\n" REGISTERS "  ld.param.u64 %rd1, [flag];\n"
            "  ld.param.u64 %rd2, [p];\n"
            "  ld.param.u64 %rd3, [address];\n" WAIT_FLAG "  ld.global.u32 %r1, [%rd2];\n"
            "  add.u32 %r1, %r1, 1;\n"
            "  st.global.u32 [%rd2], %r1;\n"
            "  st.global.u32 [%rd3], %r1;\n"
            "  ret;\n}\n";

const char ptx_globals[] = HEADER ".visible .global .align 4 .u32 counter;\n"
                                  ".visible .global .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
                                  ".visible .const .align 4 .u32 scale = 7;\n"

                                  ".visible .entry bump(.param .u64 p)\n"
                                  "{\n" REGISTERS "  ld.param.u64 %rd1, [p];\n"
                                  "  ld.global.u32 %r1, [counter];\n"
                                  "  add.u32 %r1, %r1, 1;\n"
                                  "  st.global.u32 [counter], %r1;\n"
                                  "  st.global.u32 [%rd1], %r1;\n"
                                  "  ret;\n}\n"

                                  ".visible .entry show(.param .u64 p)\n"
                                  "{\n" REGISTERS "  ld.param.u64 %rd1, [p];\n"
                                  "  ld.global.u32 %r1, [counter];\n"
                                  "  st.global.u32 [%rd1], %r1;\n"
                                  "  mov.u64 %rd2, table;\n"
                                  "  ld.global.u32 %r1, [%rd2];\n"
                                  "  st.global.u32 [%rd1+4], %r1;\n"
                                  "  ld.global.u32 %r1, [%rd2+4];\n"
                                  "  st.global.u32 [%rd1+8], %r1;\n"
                                  "  ld.global.u32 %r1, [table+8];\n"
                                  "  st.global.u32 [%rd1+12], %r1;\n"
                                  "  ld.global.u32 %r1, [table+12];\n"
                                  "  st.global.u32 [%rd1+16], %r1;\n"
                                  "  ld.const.u32 %r1, [scale];\n"
                                  "  st.global.u32 [%rd1+20], %r1;\n"
                                  "  ret;\n}\n"

                                  ".visible .entry set_table(.param .u32 value)\n"
                                  "{\n" REGISTERS "  ld.param.u32 %r1, [value];\n"
                                  "  st.global.u32 [table], %r1;\n"
                                  "  ret;\n}\n";

const char ptx_factor[] =
    HEADER ".visible .global .align 4 .u32 factor;\n"
           ".visible .entry scale_by(.param .u64 p, .param .u32 n)\n"
           "{\n" REGISTERS "  ld.param.u32 %r9, [n];\n" INDEX BELOW_N "  ld.param.u64 %rd1, [p];\n"
           "  mul.wide.u32 %rd3, %r1, 4;\n"
           "  add.s64 %rd1, %rd1, %rd3;\n"
           "  ld.global.u32 %r5, [%rd1];\n"
           "  ld.global.u32 %r6, [factor];\n"
           "  mul.lo.u32 %r5, %r5, %r6;\n"
           "  st.global.u32 [%rd1], %r5;\n"
           "DONE:\n  ret;\n}\n";

const char ptx_printf[] = HEADER
    ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);\n"
    /* "a=%u b=%u\n" and "line %u\n" */
    ".global .align 1 .b8 two[11] = {97, 61, 37, 117, 32, 98, 61, 37, 117, 10, 0};\n"
    ".global .align 1 .b8 one[9] = {108, 105, 110, 101, 32, 37, 117, 10, 0};\n"

    ".visible .entry say(.param .u32 a, .param .u32 b)\n"
    "{\n  .local .align 8 .b8 depot[8];\n" REGISTERS "  ld.param.u32 %r1, [a];\n"
    "  ld.param.u32 %r2, [b];\n"
    "  mov.u64 %rd1, depot;\n"
    "  cvta.local.u64 %rd2, %rd1;\n"
    "  st.local.u32 [%rd1], %r1;\n"
    "  st.local.u32 [%rd1+4], %r2;\n"
    "  mov.u64 %rd3, two;\n"
    "  cvta.global.u64 %rd3, %rd3;\n"
    "  {\n"
    "  .param .b64 format;\n"
    "  .param .b64 arguments;\n"
    "  .param .b32 result;\n"
    "  st.param.b64 [format], %rd3;\n"
    "  st.param.b64 [arguments], %rd2;\n"
    "  call.uni (result), vprintf, (format, arguments);\n"
    "  ld.param.b32 %r3, [result];\n"
    "  }\n"
    "  ret;\n}\n"

    ".visible .entry say_many(.param .u32 n)\n"
    "{\n  .local .align 8 .b8 depot[8];\n" REGISTERS "  ld.param.u32 %r9, [n];\n" INDEX BELOW_N
    "  mov.u64 %rd1, depot;\n"
    "  cvta.local.u64 %rd2, %rd1;\n"
    "  st.local.u32 [%rd1], %r1;\n"
    "  mov.u64 %rd3, one;\n"
    "  cvta.global.u64 %rd3, %rd3;\n"
    "  {\n"
    "  .param .b64 format;\n"
    "  .param .b64 arguments;\n"
    "  .param .b32 result;\n"
    "  st.param.b64 [format], %rd3;\n"
    "  st.param.b64 [arguments], %rd2;\n"
    "  call.uni (result), vprintf, (format, arguments);\n"
    "  ld.param.b32 %r3, [result];\n"
    "  }\n"
    "DONE:\n  ret;\n}\n";

const char ptx_assert[] =
    HEADER ".extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line,\n"
           "                           .param .b64 function, .param .b64 charsize);\n"
           /* "v == e", "t.cu", "must_be" */
           ".global .align 1 .b8 message[7] = {118, 32, 61, 61, 32, 101, 0};\n"
           ".global .align 1 .b8 file[5] = {116, 46, 99, 117, 0};\n"
           ".global .align 1 .b8 function[8] = {109, 117, 115, 116, 95, 98, 101, 0};\n"

           ".visible .entry must_be(.param .u32 value, .param .u32 expected)\n"
           "{\n" REGISTERS "  ld.param.u32 %r1, [value];\n"
           "  ld.param.u32 %r2, [expected];\n"
           "  setp.eq.u32 %p1, %r1, %r2;\n"
           "  @%p1 bra DONE;\n"
           "  mov.u64 %rd1, message;\n"
           "  cvta.global.u64 %rd1, %rd1;\n"
           "  mov.u64 %rd2, file;\n"
           "  cvta.global.u64 %rd2, %rd2;\n"
           "  mov.u64 %rd3, function;\n"
           "  cvta.global.u64 %rd3, %rd3;\n"
           "  mov.u64 %rd4, 1;\n"
           "  mov.u32 %r3, 42;\n"
           "  {\n"
           "  .param .b64 arg0;\n"
           "  .param .b64 arg1;\n"
           "  .param .b32 arg2;\n"
           "  .param .b64 arg3;\n"
           "  .param .b64 arg4;\n"
           "  st.param.b64 [arg0], %rd1;\n"
           "  st.param.b64 [arg1], %rd2;\n"
           "  st.param.b32 [arg2], %r3;\n"
           "  st.param.b64 [arg3], %rd3;\n"
           "  st.param.b64 [arg4], %rd4;\n"
           "  call.uni __assertfail, (arg0, arg1, arg2, arg3, arg4);\n"
           "  }\n"
           "DONE:\n  ret;\n}\n";

char *ptx_many_params(unsigned count) {
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (file == NULL) abort();
    fprintf(file, HEADER ".visible .entry big(\n");
    for (unsigned i = 0; i < count; i++) fprintf(file, "  .param .u64 v%u,\n", i);
    fprintf(file, "  .param .u64 p)\n{\n  .reg .b64 %%rd<4>;\n  mov.u64 %%rd1, 0;\n");
    for (unsigned i = 0; i < count; i++)
        fprintf(file, "  ld.param.u64 %%rd2, [v%u];\n  add.u64 %%rd1, %%rd1, %%rd2;\n", i);
    fprintf(file, "  ld.param.u64 %%rd3, [p];\n  st.global.u64 [%%rd3], %%rd1;\n  ret;\n}\n");
    fclose(file);
    return text;
}

char *ptx_block_param(unsigned bytes) {
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (file == NULL) abort();
    fprintf(file, HEADER ".visible .entry block(.param .align 4 .b8 v[%u], .param .u64 p)\n",
            bytes);
    fprintf(file, "{\n  .reg .b32 %%r<3>;\n  .reg .b64 %%rd<2>;\n  mov.u32 %%r1, 0;\n");
    for (unsigned i = 0; i + 4 <= bytes; i += 4)
        fprintf(file, "  ld.param.u32 %%r2, [v+%u];\n  add.u32 %%r1, %%r1, %%r2;\n", i);
    fprintf(file, "  ld.param.u64 %%rd1, [p];\n  st.global.u32 [%%rd1], %%r1;\n  ret;\n}\n");
    fclose(file);
    return text;
}

/* ---- textures and surfaces ---- */

#define FETCH(name, work)                                                                          \
    ".visible .entry " name "(.param .u64 t, .param .u64 .ptr .global .align 16 a,\n"              \
    "    .param .u64 .ptr .global .align 16 b, .param .u32 n)\n"                                   \
    "{\n"                                                                                          \
    "    .reg .pred %p;\n"                                                                         \
    "    .reg .b32 %i, %n, %x, %y, %z, %w, %p0, %p1, %p2, %p3;\n"                                  \
    "    .reg .f32 %fx, %fy, %fz, %fw;\n"                                                          \
    "    .reg .b64 %t, %a, %b, %o;\n"                                                              \
    "    mov.u32 %i, %ctaid.x; mov.u32 %x, %ntid.x; mov.u32 %y, %tid.x;\n"                         \
    "    mad.lo.u32 %i, %i, %x, %y;\n"                                                             \
    "    ld.param.u32 %n, [n]; setp.ge.u32 %p, %i, %n; @%p ret;\n"                                 \
    "    ld.param.u64 %t, [t]; ld.param.u64 %a, [a]; ld.param.u64 %b, [b];\n"                      \
    "    mul.wide.u32 %o, %i, 16; add.u64 %a, %a, %o; add.u64 %b, %b, %o;\n"                       \
    "    ld.global.v4.b32 {%x, %y, %z, %w}, [%a];\n"                                               \
    "    mov.b32 %fx, %x; mov.b32 %fy, %y; mov.b32 %fz, %z; mov.b32 %fw, %w;\n"                    \
    "    " work "\n"                                                                               \
    "    st.global.v4.b32 [%b], {%p0, %p1, %p2, %p3};\n"                                           \
    "    ret;\n"                                                                                   \
    "}\n"
#define GOT "{%p0, %p1, %p2, %p3}, "

#define SURFACE(name, more, work)                                                                  \
    ".visible .entry " name "(.param .u64 s, .param .u32 w, .param .u32 add" more ")\n"            \
    "{\n"                                                                                          \
    "    .reg .pred %p;\n"                                                                         \
    "    .reg .b32 %x, %y, %w, %add, %v;\n"                                                        \
    "    .reg .b64 %s, %a;\n"                                                                      \
    "    mov.u32 %x, %tid.x; mov.u32 %y, %ctaid.x;\n"                                              \
    "    ld.param.u32 %w, [w]; setp.ge.u32 %p, %x, %w; @%p ret;\n"                                 \
    "    ld.param.u64 %s, [s]; ld.param.u32 %add, [add];\n"                                        \
    "    shl.b32 %x, %x, 2;\n"                                                                     \
    "    suld.b.2d.b32.trap {%v}, [%s, {%x, %y}];\n"                                               \
    "    add.u32 %v, %v, %add;\n"                                                                  \
    "    sust.b.2d.b32.trap [%s, {%x, %y}], {%v};\n"                                               \
    "    " work "\n"                                                                               \
    "    ret;\n"                                                                                   \
    "}\n"

const char ptx_textures[] = ".version 7.0\n.target sm_70\n.address_size 64\n" FETCH(
    "fetch_1d", "tex.1d.v4.f32.f32 " GOT "[%t, {%fx}];") FETCH("fetch_2d", "tex.2d.v4.f32.f32 " GOT
                                                                           "[%t, {%fx, %fy}];")
    FETCH("fetch_3d", "tex.3d.v4.f32.f32 " GOT "[%t, {%fx, %fy, %fz, %fz}];")
        FETCH("fetch_a1d", "tex.a1d.v4.f32.f32 " GOT "[%t, {%w, %fx}];")
            FETCH("fetch_a2d", "tex.a2d.v4.f32.f32 " GOT "[%t, {%w, %fx, %fy, %fy}];")
                FETCH("fetch_cube", "tex.cube.v4.f32.f32 " GOT "[%t, {%fx, %fy, %fz, %fz}];")
                    FETCH("fetch_level", "tex.level.2d.v4.f32.f32 " GOT "[%t, {%fx, %fy}], %fz;")
                        FETCH("fetch_texel", "tex.1d.v4.u32.s32 " GOT "[%t, {%x}];")
                            FETCH("gather_2d", "tld4.r.2d.v4.f32.f32 " GOT "[%t, {%fx, %fy}];")
                                FETCH("size_2d",
                                      "txq.width.b32 %p0, [%t]; txq.height.b32 %p1, [%t]; "
                                      "mov.u32 %p2, 0; mov.u32 %p3, 0;")
                                    SURFACE("surface_add", "", "")
                                        SURFACE("surface_add_poke", ", .param .u64 address",
                                                "ld.param.u64 %a, [address]; "
                                                "st.u32 [%a], %v;");

/* Loads the block's box to `s`, with the thread's element in %v at address %mine. */
#define TILE(name, params, body)                                                                   \
    ".visible .entry " name "(.param .align 64 .b8 m[128]" params ")\n{\n"                         \
    ".reg .pred %p, %done; .reg .b32 %r<4>, %x, %y, %t, %s, %bar, %v, %mine;\n"                    \
    ".reg .b64 %map, %a, %b; .shared .align 128 .b8 s[256]; .shared .align 8 .b64 bar;\n"          \
    "mov.b64 %map, m; cvta.param.u64 %map, %map; mov.u32 %t, %tid.x;\n"                            \
    "mov.u32 %s, s; mov.u32 %bar, bar; mov.u32 %x, %ctaid.x; shl.b32 %x, %x, 4;\n"                 \
    "mov.u32 %y, %ctaid.y; shl.b32 %y, %y, 2; setp.ne.u32 %p, %t, 0; @%p bra LOADED;\n"            \
    "mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster;\n"                   \
    "mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 256;\n"                                       \
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes\n"           \
    " [%s], [%map, {%x, %y}], [%bar];\n"                                                           \
    "LOADED: bar.sync 0;\n"                                                                        \
    "WAIT: mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0; @!%done bra WAIT;\n"              \
    "shl.b32 %mine, %t, 2; add.u32 %mine, %mine, %s; ld.shared.u32 %v, [%mine];\n" body            \
    "ret;\n}\n"

/* Adds to it, and stores the box. */
#define TILE_STORE                                                                                 \
    "ld.param.u32 %r1, [add]; add.u32 %v, %v, %r1; st.shared.u32 [%mine], %v;\n"                   \
    "fence.proxy.async.shared::cta; bar.sync 0; @%p bra STORED;\n"                                 \
    "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {%x, %y}], [%s];\n"         \
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nSTORED:\n"

/* Fills `s`, loads a box to it with `load`, and copies it to b. */
#define DUMP(name, params, load)                                                                   \
    ".visible .entry " name "(.param .align 64 .b8 m[128], .param .u64 b, .param .u32 bytes, "     \
    ".param .s32 x, .param .s32 y" params ")\n{\n"                                                 \
    ".reg .pred %p, %done; .reg .b32 %r<4>, %x, %y, %t, %s, %bar, %i; .reg .b16 %h<3>;\n"          \
    ".reg .b64 %map, %a, %b; .shared .align 1024 .b8 s[4096]; .shared .align 8 .b64 bar;\n"        \
    "mov.b64 %map, m; cvta.param.u64 %map, %map; mov.u32 %t, %tid.x; ld.param.u64 %b, [b];\n"      \
    "mov.u32 %s, s; mov.u32 %bar, bar; ld.param.b32 %x, [x]; ld.param.b32 %y, [y];\n"              \
    "mov.u32 %r1, 0xeeeeeeee; shl.b32 %i, %t, 2;\n"                                                \
    "FILL: add.u32 %r2, %s, %i; st.shared.u32 [%r2], %r1; add.u32 %i, %i, 256;\n"                  \
    "setp.lt.u32 %p, %i, 4096; @%p bra FILL;\n"                                                    \
    "fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p, %t, 0; @%p bra LOADED;\n"          \
    "mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster;\n"                   \
    "ld.param.u32 %r3, [bytes]; mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %r3;\n" load       \
    "LOADED: bar.sync 0;\n"                                                                        \
    "WAIT: mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0; @!%done bra WAIT;\n"              \
    "shl.b32 %i, %t, 2;\n"                                                                         \
    "BACK: add.u32 %r2, %s, %i; ld.shared.u32 %r1, [%r2]; cvt.u64.u32 %a, %i;\n"                   \
    "add.u64 %a, %a, %b; st.global.u32 [%a], %r1; add.u32 %i, %i, 256;\n"                          \
    "setp.lt.u32 %p, %i, 4096; @%p bra BACK;\nret;\n}\n"

const char ptx_tensors[] = ".version 8.0\n.target sm_90\n.address_size 64\n" TILE(
    "tile_add", ", .param .u32 add",
    TILE_STORE) TILE("tile_add_poke", ", .param .u32 add, .param .u64 address",
                     TILE_STORE "ld.param.u64 %a, [address]; st.u32 [%a], %v;\n")
    TILE("tile_read", ", .param .u64 b",
         "mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.x;\n"
         "mad.lo.u32 %r1, %r1, %r2, %r3; shl.b32 %r1, %r1, 6; add.u32 %r1, %r1, %t;\n"
         "ld.param.u64 %b, [b]; mul.wide.u32 %a, %r1, 4; add.u64 %b, %b, %a;\n"
         "st.global.u32 [%b], %v;\n")
        DUMP("tensor_dump", "",
             "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes\n"
             " [%s], [%map, {%x, %y}], [%bar];\n")
            DUMP(
                "tensor_dump_pixels", ", .param .u16 w_offset, .param .u16 h_offset",
                "ld.param.b16 %h1, [w_offset]; ld.param.b16 %h2, [h_offset];\n"
                "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes\n"
                " [%s], [%map, {0, %x, %y, 0}], [%bar], {%h1, %h2};\n");
