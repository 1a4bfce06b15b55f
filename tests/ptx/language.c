/* SPDX-License-Identifier: Apache-2.0 */
/* Less common parts of PTX: the dynamic stack, hints, multimem, wide moves, conversions, names. */
#include <string.h>

#include "support/kernel.h"
#include "test.h"

static uint32_t words[256];

static bh__ptx_outcome run(kernel *k, const char *text, uint32_t threads) {
    memset(words, 0, sizeof words);
    return run_text(k, text, threads, words, sizeof words);
}

static void refused(const char *text, bh_status status, const char *message) {
    bh_error error;
    memset(&error, 0, sizeof error);
    CHECK_EQ(load_error(text, strlen(text), &error), status);
    CHECK_STR_CONTAINS(error.message, message);
    CHECK(error.fix[0] != 0);
}

/* Each thread allocates its own number of bytes, twice, and calls a function in between. */
#define STACKS                                                                                     \
    PTX_HEAD ".func (.param .b32 r) sum(.param .b64 at, .param .b32 n) {\n"                        \
             " .local .align 8 .b8 l[16]; .reg .b64 %a<4>; .reg .b32 %x<4>; .reg .pred %p;\n"      \
             " ld.param.b64 %a1, [at]; ld.param.b32 %x1, [n]; mov.b32 %x2, 0;\n"                   \
             " st.local.u64 [l], -1; st.local.u64 [l+8], -1;\n"                                    \
             "more: ld.u32 %x3, [%a1]; add.u32 %x2, %x2, %x3; add.u64 %a1, %a1, 4;\n"              \
             " sub.u32 %x1, %x1, 1; setp.ne.u32 %p, %x1, 0; @%p bra more;\n"                       \
             " st.param.b32 [r], %x2; ret; }\n"                                                    \
             ".visible .entry k(.param .u64 p) { .reg .b64 %a<8>, %out; .reg .b32 %r<8>, %t;\n"    \
             " .reg .pred %p; ld.param.u64 %out, [p]; mov.u32 %t, %tid.x;\n"                       \
             " add.u32 %r1, %t, 1; mul.wide.u32 %a1, %r1, 4;\n"                                    \
             " stacksave.u64 %a6; alloca.u64 %a2, %a1; mov.u64 %a3, %a2; mov.u32 %r2, %r1;\n"      \
             "fill: st.local.u32 [%a3], %r2; add.u64 %a3, %a3, 4; sub.u32 %r2, %r2, 1;\n"          \
             " setp.ne.u32 %p, %r2, 0; @%p bra fill;\n"                                            \
             " alloca.u64 %a4, 8, 64; st.local.u64 [%a4], 5;\n"                                    \
             " cvta.local.u64 %a5, %a2; { .param .b64 x; .param .b32 y; .param .b32 z;\n"          \
             " st.param.b64 [x], %a5; st.param.b32 [y], %r1; call (z), sum, (x, y);\n"             \
             " ld.param.b32 %r3, [z]; } and.b64 %a4, %a4, 63; cvt.u32.u64 %r4, %a4;\n"             \
             " stackrestore.u64 %a6; alloca.u64 %a7, 16; sub.u64 %a7, %a7, %a2;\n"                 \
             " cvt.u32.u64 %r5, %a7; mul.wide.u32 %a1, %t, 16; add.u64 %out, %out, %a1;\n"         \
             " st.global.v4.u32 [%out], {%r3, %r4, %r5, %r5}; }\n"

TEST(alloca_gives_each_thread_memory_of_its_own) {
    kernel k;
    CHECK_EQ(run(&k, STACKS, 40), BH__PTX_DONE);
    for (uint32_t t = 0; t < 40; t++) {
        CHECK_EQ(words[4 * t], (t + 1) * (t + 2) / 2);
        CHECK_EQ(words[4 * t + 1], 0); /* aligned */
        CHECK_EQ(words[4 * t + 2], 0); /* the same place again */
    }
}

TEST(stack_overflow_by_alloca_faults) {
    kernel k;
    CHECK_EQ(run(&k, PTX_KERNEL("again: alloca.u64 %rd1, 1000; bra again;"), 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_STACK);
    CHECK_STR_CONTAINS(k.fault.text, "alloca of 1000 bytes");
    CHECK_EQ(run(&k, PTX_KERNEL("mov.u64 %rd1, -1; alloca.u64 %rd2, %rd1;"), 3), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_STACK);
    CHECK_EQ(run(&k, PTX_KERNEL("alloca.u32 %r1, 64; stackrestore.u64 100000;"), 1),
             BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(k.fault.text, "stackrestore");
    const char *past = PTX_KERNEL("alloca.u32 %r1, 64; st.local.u32 [%r1+64], %r1;");
    CHECK_EQ(run(&k, past, 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_ADDRESS);
    refused(PTX_KERNEL("alloca.u32 %r1, 64, 24;"), BH_E_LOAD, "alignment 24");
}

TEST(hints_have_no_effect) {
    kernel k;
    const char *text = PTX_KERNEL(
        "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd1, 0.5;\n"
        "createpolicy.range.global.L2::evict_first.b64 %rd2, [%out], 64, 128;\n"
        "createpolicy.cvt.L2.b64 %rd3, 0x16f0000000000000;\n"
        "applypriority.global.L2::evict_normal [%out], 128; discard.global.L2 [%out], 128;\n"
        "prefetch.global.L2 [%out]; prefetch.tensormap [%out]; prefetchu.L1 [%out];\n"
        "setmaxnreg.inc.sync.aligned.u32 240; pmevent 7; pmevent.mask 5;\n"
        "st.global.L1::no_allocate.L2::cache_hint.u32 [%out], 5, %rd1;\n"
        "ld.global.nc.L2::cache_hint.L2::128B.u32 %r1, [%out], %rd2;\n"
        "atom.global.add.L2::cache_hint.u32 %r2, [%out], %r1, %rd1;\n"
        "red.global.add.L2::cache_hint.u32 [%out], %r2, %rd3;\n"
        "atom.global.cas.L2::cache_hint.b32 %r3, [%out], 15, 16, %rd3;\n"
        "mov.u32 %r4, %pm3; mov.u64 %rd4, %pm0_64; mov.u64 %rd5, %current_graph_exec;\n"
        "st.global.u32 [%out+4], %r3; st.global.u64 [%out+8], %rd3;");
    CHECK_EQ(run(&k, text, 1), BH__PTX_DONE);
    CHECK_EQ(words[0], 16);
    CHECK_EQ(words[1], 15);
    CHECK_EQ(words[3], 0x16f00000);
    refused(PTX_KERNEL("setmaxnreg.inc.sync.aligned.u32 30;"), BH_E_LOAD, "30 is not valid");
    refused(PTX_KERNEL("discard.global.L2 [%out], 64;"), BH_E_LOAD, "64 is not valid");
    refused(PTX_KERNEL("pmevent 16;"), BH_E_LOAD, "16 is not valid");
    refused(PTX_KERNEL("createpolicy.fractional.b64 %rd1;"), BH_E_LOAD, "createpolicy");
}

TEST(multimem_on_one_device_is_plain_memory) {
    kernel k;
    const char *text = PTX_KERNEL("multimem.st.global.v4.f32 [%out], {%f1, %f1, %f1, %f1};\n"
                                  "mov.f32 %f1, 0f3FC00000;\n"
                                  "multimem.red.global.add.v2.f32 [%out], {%f1, %f1};\n"
                                  "multimem.red.relaxed.gpu.global.add.f32 [%out], %f1;\n"
                                  "multimem.ld_reduce.weak.global.add.f32 %f2, [%out];\n"
                                  "st.global.f32 [%out+16], %f2; multimem.st.u32 [%out+20], 12;\n"
                                  "multimem.red.and.b32 [%out+20], 6;\n"
                                  "multimem.ld_reduce.max.s32 %r1, [%out+20];\n"
                                  "st.global.u32 [%out+24], %r1;");
    CHECK_EQ(run(&k, text, 1), BH__PTX_DONE);
    CHECK_EQ(words[0], 0x40400000);
    CHECK_EQ(words[1], 0x3fc00000);
    CHECK_EQ(words[4], 0x40400000);
    CHECK_EQ(words[5], 4);
    CHECK_EQ(words[6], 4);
    refused(PTX_KERNEL("multimem.ld_reduce.u32 %r1, [%out];"), BH_E_UNSUPPORTED, "multimem");
}

TEST(vectors_of_halves_have_a_minimum) {
    kernel k;
    const char *text =
        PTX_KERNEL("st.global.v2.b32 [%out], {0x3c00bc00, 0x7e004000};\n" /* -1 1 2 NaN */
                   "mov.b32 %r1, 0x40003c00; mov.b32 %r2, 0x3c00c000;\n"  /* 1 2 -2 1 */
                   "atom.global.min.noftz.v2.f16x2 {%r3, %r4}, [%out], {%r1, %r2};\n"
                   "st.global.v2.b32 [%out+8], {%r3, %r4};\n"
                   "red.global.max.noftz.v2.f16x2 [%out], {%r1, %r1};");
    CHECK_EQ(run(&k, text, 1), BH__PTX_DONE);
    CHECK_EQ(words[2], 0x3c00bc00);
    CHECK_EQ(words[3], 0x7e004000);
    CHECK_EQ(words[0], 0x40003c00); /* of -1 1, then with 1 2 */
    CHECK_EQ(words[1], 0x40003c00); /* of -2 1 */
    refused(PTX_KERNEL("atom.global.min.noftz.f16x2 %r1, [%out], %r2;"), BH_E_UNSUPPORTED, "atom");
}

TEST(wide_and_narrow_moves) {
    kernel k;
    const char *text =
        PTX_KERNEL(".reg .b128 %q<2>; mov.b128 %q0, {1, %t, 3, 4};\n"
                   "mov.b128 %q1, %q0; mov.b128 {%r1, %r2, %r3, %r4}, %q1;\n"
                   "st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};\n"
                   "mov.u16 %h1, %ntid.x; cvt.u32.u16 %r5, %h1;\n"
                   "st.global.u32 [%out+16], %r5;\n"
                   "mov.u32 %r6, 0 || 3 > 2 ? 5 * 2 : 7; st.global.u32 [%out+20], %r6;\n"
                   "mov.u32 %r6, 1 && 0 ? 1 : 0 ? 2 : 9; st.global.u32 [%out+24], %r6;");
    CHECK_EQ(run(&k, text, 1), BH__PTX_DONE);
    CHECK(words[0] == 1 && words[1] == 0 && words[2] == 3 && words[3] == 4);
    CHECK_EQ(words[4], 1);
    CHECK_EQ(words[5], 10);
    CHECK_EQ(words[6], 9);
}

TEST(conversions_that_saturate) {
    kernel k;
    const char *text = PTX_KERNEL(
        "mov.f32 %f1, 0fFF800000; mov.f32 %f2, 0f7F7FFFFF; mov.f32 %f3, 0f7FC00000;\n"
        "cvt.rn.satfinite.f16x2.f32 %r1, %f1, %f2; cvt.rn.relu.satfinite.bf16x2.f32 %r2, %f1, %f2;\n"
        "cvt.rn.satfinite.f16x2.f32 %r3, %f3, %f1; cvt.rna.satfinite.tf32.f32 %r4, %f2;\n"
        "st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4};\n"
        "cvt.pack.sat.s4.s32.b32 %r1, -100, 100, 0x12345; cvt.pack.sat.u4.s32.b32 %r2, -1, 99, 1;\n"
        "cvt.pack.sat.s2.s32.b32 %r3, -100, 100, 0x12345; cvt.pack.sat.u2.s32.b32 %r4, 9, -9, 1;\n"
        "st.global.v4.b32 [%out+16], {%r1, %r2, %r3, %r4};\n"
        "mov.b32 %r1, 0x3c003c00; mov.b32 %r2, 0x3c007e00; set.equ.u32.f16x2 %r3, %r1, %r2;\n"
        "set.eq.s32.f16x2 %r4, %r1, %r2; st.global.v2.b32 [%out+32], {%r3, %r4};");
    CHECK_EQ(run(&k, text, 1), BH__PTX_DONE);
    CHECK_EQ(words[0], 0xfbff7bff);
    CHECK_EQ(words[1], 0x00007f7f);
    CHECK_EQ(words[2], 0x7ffffbff);
    CHECK_EQ(words[3], 0x7f7fe000);
    CHECK_EQ(words[4], 0x01234587);
    CHECK_EQ(words[5], 0x0000010f);
    CHECK_EQ(words[6], 0x00123459);
    CHECK_EQ(words[7], 0x0000001c);
    CHECK_EQ(words[8], 0xffffffff);
    CHECK_EQ(words[9], 0xffff0000);
}

TEST(what_came_after_sm_90_is_refused_by_name) {
    refused(PTX_KERNEL("tcgen05.wait::ld.sync.aligned;"), BH_E_UNSUPPORTED, "tcgen05 came with");
    refused(PTX_KERNEL("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %rd1;"),
            BH_E_UNSUPPORTED, "clusterlaunchcontrol came with sm_100");
    refused(PTX_KERNEL("add.rn.f32x2 %rd1, %rd2, %rd3;"), BH_E_UNSUPPORTED, ".f32x2 came with");
    refused(PTX_KERNEL("cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2;"), BH_E_UNSUPPORTED, ".e2m1x2");
    refused(PTX_KERNEL("cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;"), BH_E_UNSUPPORTED, ".rs came with");
}
