/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers of a whole grid, as NVIDIA's compilers emit cooperative_groups::this_grid().sync(). */
#include "../support/support.h"

/*
 * Each round every block stores the round, waits for the grid, and compares what its right-hand
 * neighbour has stored. p[0] counts what was wrong; the blocks' words are from p[64] on, in two
 * halves that take turns. The first thread of a block does it; all threads take part in barriers.
 */
static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry rounds(.param .u64 p, .param .u32 n)\n"
    "{ .reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<24>;\n"
    "ld.param.u64 %rd4, [p]; cvta.to.global.u64 %rd5, %rd4; ld.param.u32 %r30, [n];\n"
    "mov.u32 %r6, %envreg2; cvt.u64.u32 %rd6, %r6; mov.u32 %r7, %envreg1;\n"
    "cvt.u64.u32 %rd7, %r7; bfi.b64 %rd1, %rd7, %rd6, 32, 32;\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %tid.x; mov.u32 %r29, 0;\n"
    "setp.ne.s64 %p1, %rd1, 0; @%p1 bra ROUND; trap;\n"
    "ROUND: add.u32 %r29, %r29, 1; and.b32 %r8, %r29, 1; mad.lo.u32 %r9, %r8, %r2, %r1;\n"
    "mul.wide.u32 %rd8, %r9, 4; add.u64 %rd8, %rd8, %rd5; setp.ne.u32 %p2, %r3, 0;\n"
    "@!%p2 st.global.u32 [%rd8+256], %r29;\n"
    "barrier.sync 0; @%p2 bra CAME;\n"
    "add.s64 %rd20, %rd1, 4; setp.eq.s32 %p3, %r1, 0; mov.u32 %r33, -2147483647;\n"
    "sub.s32 %r34, %r33, %r2; selp.b32 %r23, %r34, 1, %p3;\n"
    "atom.add.release.gpu.u32 %r22, [%rd20], %r23;\n"
    "WAIT: ld.acquire.gpu.u32 %r35, [%rd20]; xor.b32 %r36, %r35, %r22;\n"
    "setp.gt.s32 %p4, %r36, -1; @%p4 bra WAIT;\n"
    "CAME: barrier.sync 0; @%p2 bra NEXT;\n"
    "add.u32 %r10, %r1, 1; setp.eq.u32 %p5, %r10, %r2; selp.u32 %r10, 0, %r10, %p5;\n"
    "mad.lo.u32 %r9, %r8, %r2, %r10; mul.wide.u32 %rd8, %r9, 4; add.u64 %rd8, %rd8, %rd5;\n"
    "ld.global.u32 %r11, [%rd8+256]; setp.ne.u32 %p6, %r11, %r29;\n"
    "@%p6 red.global.add.u32 [%rd5], 1;\n"
    "NEXT: setp.lt.u32 %p7, %r29, %r30; @%p7 bra ROUND;\n"
    "ret; }\n";

enum { ROUNDS = 25, MAX = 512 };

static bh_status run_rounds(bh_device device, uint32_t blocks, uint64_t flags, uint32_t *wrong) {
    bh_module module;
    bh_launch_options options = BH_INIT(options);
    options.flags = flags;
    REQUIRE_OK(bh_module_load(device, text, sizeof text - 1, &module));
    bh_buffer words = words_filled(device, 64 + 2 * MAX, 0);
    bh_status status = run_with(get_kernel(module, "rounds"), BH_SHAPE(blocks, 1, 1, 96, 1, 1),
                                BH_ARGS(BH_INOUT(words), (uint32_t)ROUNDS), &options);
    if (status == BH_OK) {
        *wrong = word_read(words, 0);
        for (uint32_t i = 0; i < blocks; i++)
            REQUIRE_EQ(word_read(words, 64 + (ROUNDS & 1) * blocks + i), ROUNDS);
    }
    return status;
}

/* As many blocks as the device says it runs at once, 64 for each two processors of a CPU. */
static uint32_t many(bh_device device) {
    bh_device_info info = BH_INIT(info);
    REQUIRE_OK(bh_device_get_info(device, &info));
    return info.multiprocessors * 32 < MAX ? info.multiprocessors * 32 : MAX;
}

TEST_TIMEOUT(every_block_waits_for_the_grid, 60) {
    bh_device device = open_device();
    uint32_t wrong = UINT32_MAX;
    for (uint32_t blocks = 1; blocks <= many(device); blocks *= 2) {
        CHECK_OK(run_rounds(device, blocks, BH_LAUNCH_COOPERATIVE, &wrong));
        CHECK_EQ(wrong, 0);
    }
    CHECK_OK(bh_device_close(device));
}

TEST(a_launch_that_is_not_cooperative_has_no_grid_barrier) {
    bh_device device = open_device();
    uint32_t wrong;
    CHECK_EQ(run_rounds(device, 2, 0, &wrong), BH_E_FAULT);
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(checks_understand_the_grid_barrier, 60) {
    bh_device plain = open_device();
    if (!is_cpu(plain) || has_queues(plain)) SKIP("checks are for the CPU device without queues");
    bh_device_options options = device_options(BH_DEVICE_CHECK);
    bh_device device = open_device_with(&options);
    uint32_t wrong = UINT32_MAX;
    CHECK_OK(run_rounds(device, 16, BH_LAUNCH_COOPERATIVE, &wrong));
    CHECK_EQ(wrong, 0);
    CHECK_OK(bh_device_close(device));
    CHECK_OK(bh_device_close(plain));
}
