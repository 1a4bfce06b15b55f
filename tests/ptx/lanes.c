/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of a warp that meet at different instructions, which are the same operation. */
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"
#include "test.h"

static uint32_t words[256];

/* Two words for each lane: %r8 and %r9, and %p7 in the top bit of %r9. */
#define STORE                                                                                      \
    "END: @%p7 or.b32 %r9, %r9, 0x80000000; mul.wide.u32 %rd1, %t, 8;\n"                           \
    "add.u64 %rd1, %rd1, %out; st.global.v2.u32 [%rd1], {%r8, %r9};"

/* The lower half of the warp takes one branch, the upper half the other. Registers differ, so that
 * no two rows are the same. */
#define BRANCHES(low, high)                                                                        \
    PTX_KERNEL("mov.u32 %r8, 0; mov.u32 %r9, 0; setp.ne.u32 %p7, 0, 0; mov.u32 %r6, -1;\n"         \
               "mul.lo.u32 %r1, %t, 3; mov.u32 %r2, %r1; and.b32 %r3, %t, 3;\n"                    \
               "setp.eq.u32 %p2, %r3, 1; mov.pred %p3, %p2; cvt.u64.u32 %rd2, %r3;\n"              \
               "setp.lt.u32 %p1, %t, 16; @%p1 bra LOW;\n" high " bra END;\nLOW: " low "\n" STORE)

static void run(const char *text, uint32_t threads) {
    kernel k;
    memset(words, 0, sizeof words);
    CHECK_EQ(run_text(&k, text, threads, words, sizeof words), BH__PTX_DONE);
}

static void faults(const char *text, uint32_t threads, const char *message) {
    kernel k;
    CHECK_EQ(run_text(&k, text, threads, words, sizeof words), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_BARRIER);
    CHECK_STR_CONTAINS(k.fault.text, message);
}

TEST(two_copies_of_a_shuffle_exchange_values) {
    run(BRANCHES("shfl.sync.bfly.b32 %r8|%p7, %r1, 16, 31, -1;",
                 "shfl.sync.bfly.b32 %r8, %r2, 16, 31, %r6; add.u32 %r9, %r8, 1;"),
        32);
    for (uint32_t t = 0; t < 32; t++) {
        CHECK_EQ(words[2 * t], 3 * (t ^ 16));
        CHECK_EQ(words[2 * t + 1], t < 16 ? 0x80000000u : 3 * (t ^ 16) + 1);
    }
}

/* Each lane has a source lane of its own; the mask leaves out lanes of both halves. */
TEST(shuffles_of_some_lanes_of_both_branches) {
    run(BRANCHES("and.b32 %r5, %t, 1; setp.eq.u32 %p4, %r5, 1; @%p4 bra END;\n"
                 "sub.u32 %r7, 30, %t; shfl.sync.idx.b32 %r8, %r1, %r7, 31, 0x55555555;",
                 "and.b32 %r5, %t, 1; setp.eq.u32 %p4, %r5, 1; @%p4 bra END;\n"
                 "sub.u32 %r4, 30, %t; shfl.sync.idx.b32 %r8, %r2, %r4, 31, 0x55555555;"),
        32);
    for (uint32_t t = 0; t < 32; t++) {
        CHECK_EQ(words[2 * t], t % 2 ? 0 : 3 * (30 - t));
    }
}

TEST(two_copies_of_a_vote_count_all_lanes) {
    run(BRANCHES("vote.sync.ballot.b32 %r8, %p2, -1; vote.sync.any.pred %p7, %p2, -1;",
                 "vote.sync.ballot.b32 %r8, %p3, -1; vote.sync.any.pred %p7, !%p1, -1;"),
        32);
    for (uint32_t t = 0; t < 32; t++) {
        CHECK_EQ(words[2 * t], 0x22222222);
        CHECK_EQ(words[2 * t + 1], 0x80000000);
    }
    run(BRANCHES("vote.sync.all.pred %p7, %p1, -1;", "vote.sync.all.pred %p7, !%p3, -1;"), 32);
    CHECK_EQ(words[1], 0);
    CHECK_EQ(words[63], 0);
    run(BRANCHES("vote.sync.uni.pred %p7, %p1, -1;", "vote.sync.uni.pred %p7, !%p1, -1;"), 32);
    CHECK_EQ(words[1], 0x80000000);
    CHECK_EQ(words[63], 0x80000000);
}

TEST(two_copies_of_a_match_compare_all_lanes) {
    run(BRANCHES("match.any.sync.b64 %r8, %rd2, -1; match.all.sync.b32 %r9|%p7, 5, -1;",
                 "mov.b64 %rd3, %rd2; match.any.sync.b64 %r8, %rd3, -1;\n"
                 "mov.b32 %r5, 5; match.all.sync.b32 %r9|%p7, %r5, -1;"),
        32);
    for (uint32_t t = 0; t < 32; t++) {
        CHECK_EQ(words[2 * t], 0x11111111u << t % 4);
        CHECK_EQ(words[2 * t + 1], UINT32_MAX);
    }
    run(BRANCHES("match.all.sync.b32 %r9|%p7, 5, -1;", "match.all.sync.b32 %r9|%p7, 6, -1;"), 32);
    CHECK_EQ(words[1], 0);
    CHECK_EQ(words[63], 0);
}

TEST(two_copies_of_a_reduction_add_all_lanes) {
    run(BRANCHES("redux.sync.add.u32 %r8, %t, -1; redux.sync.min.s32 %r9, %r1, -1;",
                 "redux.sync.add.u32 %r8, %t, -1; neg.s32 %r2, %r2;\n"
                 "redux.sync.min.s32 %r9, %r2, -1;"),
        32);
    for (uint32_t t = 0; t < 32; t++) {
        CHECK_EQ(words[2 * t], 31 * 32 / 2);
        CHECK_EQ(words[2 * t + 1], (uint32_t)-93);
    }
}

TEST(one_leader_is_elected_in_two_branches) {
    run(BRANCHES("elect.sync %r8|%p7, 0xfffffff0;", "elect.sync %r8|%p7, 0xfffffff0;"), 32);
    CHECK_EQ(words[2 * 4], 4);
    CHECK_EQ(words[2 * 4 + 1], 0x80000000);
    CHECK_EQ(words[2 * 31], 4);
    CHECK_EQ(words[2 * 31 + 1], 0);
}

/* Shared memory that one branch writes before the barrier is there in the other one after it. */
TEST(bar_warp_sync_in_two_branches_is_one_barrier) {
    run(PTX_KERNEL(".shared .b32 s[32]; mov.u32 %r1, s; mad.lo.u32 %r1, %t, 4, %r1;\n"
                   "mov.u32 %r9, 0; setp.ne.u32 %p7, 0, 0;\n"
                   "setp.lt.u32 %p1, %t, 16; @%p1 bra LOW;\n"
                   "st.shared.u32 [%r1], %t; bar.warp.sync -1; ld.shared.u32 %r8, [%r1+-64];\n"
                   "bra END;\nLOW: add.u32 %r2, %t, 100; st.shared.u32 [%r1], %r2;\n"
                   "bar.warp.sync -1; ld.shared.u32 %r8, [%r1+64];\n" STORE),
        32);
    for (uint32_t t = 0; t < 32; t++) {
        CHECK_EQ(words[2 * t], t < 16 ? t + 16 : t - 16 + 100);
    }
}

/* Lane t goes around t times with a shuffle of the lanes that still do so, and all of them meet in
 * one of four copies of a vote. */
TEST(loops_with_a_trip_count_for_each_lane) {
    run(PTX_KERNEL("mov.u32 %r8, 0; mov.u32 %r9, 0; mov.u32 %r1, 0; mov.u32 %r6, -1;\n"
                   "setp.ne.u32 %p7, 0, 0; and.b32 %r3, %t, 3;\n"
                   "NEXT: setp.ge.u32 %p1, %r1, %t; vote.sync.ballot.b32 %r5, !%p1, %r6;\n"
                   "@%p1 bra MEET; mov.u32 %r6, %r5; redux.sync.add.u32 %r4, 1, %r6;\n"
                   "add.u32 %r8, %r8, %r4; add.u32 %r1, %r1, 1; bra NEXT;\n"
                   "MEET: TO: .branchtargets A, B, C, D; brx.idx %r3, TO;\n"
                   "A: setp.lt.u32 %p2, %t, 20; vote.sync.ballot.b32 %r9, %p2, -1; bra END;\n"
                   "B: setp.lt.u32 %p3, %t, 21; vote.sync.ballot.b32 %r9, %p3, -1; bra END;\n"
                   "C: setp.gt.u32 %p4, %t, 99; vote.sync.ballot.b32 %r9, !%p4, -1; bra END;\n"
                   "D: setp.gt.u32 %p5, %t, 99; vote.sync.ballot.b32 %r9, %p5, -1;\n" STORE),
        32);
    for (uint32_t t = 0; t < 32; t++) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < t; i++) {
            sum += 31 - i; /* lanes i + 1 to 31 are in it */
        }
        CHECK_EQ(words[2 * t], sum);
        CHECK_EQ(words[2 * t + 1], 0x11111 | 0x22222 | 0x44444444);
    }
}

TEST(members_that_exit_complete_the_set) {
    run(BRANCHES("add.u32 %r4, %t, 0; setp.eq.u32 %p4, %r4, 3; @%p4 bra LATE;\n"
                 "vote.sync.ballot.b32 %r8, 1, -1; bra END;\nLATE: mov.u32 %r5, 0;\n"
                 "SPIN: add.u32 %r5, %r5, 1; setp.lt.u32 %p5, %r5, 5000; @%p5 bra SPIN; exit;",
                 "vote.sync.ballot.b32 %r8, 1, -1;"),
        32);
    for (uint32_t t = 0; t < 32; t++) {
        CHECK_EQ(words[2 * t], t == 3 ? 0 : ~(1u << 3));
    }
}

/* Lanes 0 to 7 wait with a mask of 16 lanes while lanes 8 to 15 first meet lanes 16 to 23 in two
 * branches of their own. */
TEST(sets_with_other_masks_stay_apart) {
    run(BRANCHES("setp.lt.u32 %p4, %t, 8; @%p4 bra A;\n"
                 "redux.sync.add.u32 %r8, %t, 0x00ffff00;\n"
                 "redux.sync.add.u32 %r9, %t, 0x0000ffff; bra END;\n"
                 "A: redux.sync.add.u32 %r9, 100, 0x0000ffff;",
                 "setp.lt.u32 %p4, %t, 24; @!%p4 bra END; redux.sync.add.u32 %r8, %t, 0x00ffff00;"),
        32);
    CHECK_EQ(words[2 * 10], (8 + 23) * 8);
    CHECK_EQ(words[2 * 20], (8 + 23) * 8);
    CHECK_EQ(words[2 * 10 + 1], (8 + 15) * 4 + 800);
    CHECK_EQ(words[2 * 2 + 1], (8 + 15) * 4 + 800);
}

/* One half is in a function, the other in the kernel. */
TEST(lanes_in_a_function_exchange_with_lanes_outside) {
    const char *text = PTX_HEAD
        ".func (.reg .b32 r) f(.reg .b32 a) { .reg .b32 x<4>; add.u32 x1, a, 1000;\n"
        " shfl.sync.bfly.b32 x2, x1, 16, 31, -1; add.u32 r, x2, x1; ret; }\n"
        ".visible .entry k(.param .u64 p) { .reg .b32 %t, %r<10>; .reg .b64 %rd<4>, %out;\n"
        " .reg .pred %p<8>; ld.param.u64 %out, [p]; mov.u32 %t, %tid.x;\n"
        " mov.u32 %r9, 0; setp.ne.u32 %p7, 0, 0; setp.lt.u32 %p1, %t, 16;\n"
        "@%p1 bra LOW; call (%r8), f, (%t); bra END;\n"
        "LOW: shfl.sync.bfly.b32 %r8, %t, 16, 31, -1;\n" STORE " ret; }\n";
    run(text, 32);
    for (uint32_t t = 0; t < 32; t++) {
        CHECK_EQ(words[2 * t], t < 16 ? t + 16 + 1000 : (t - 16) + (t + 1000));
    }
}

TEST(different_operations_with_one_mask_fault) {
    faults(BRANCHES("shfl.sync.bfly.b32 %r8, %r1, 16, 31, -1;", "bar.warp.sync -1;"), 32,
           "wait at different operations: lane 0 at this one, lane 16 on PTX line 14");
    faults(BRANCHES("shfl.sync.bfly.b32 %r8, %r1, 16, 31, -1;",
                    "shfl.sync.idx.b32 %r8, %r1, 16, 31, -1;"),
           32, "member mask 0xffffffff wait at different operations");
    faults(BRANCHES("redux.sync.min.s32 %r8, %r1, -1;", "redux.sync.min.u32 %r8, %r1, -1;"), 32,
           "different operations");
    faults(BRANCHES("match.any.sync.b32 %r8, %r1, -1;", "match.any.sync.b64 %r8, %rd2, -1;"), 32,
           "different operations");
    faults(BRANCHES("vote.sync.any.pred %p7, %p1, -1;", "vote.sync.all.pred %p7, %p1, -1;"), 32,
           "different operations");
    faults(BRANCHES("vote.sync.any.pred %p7, %p1, 0x7fffffff;", "vote.sync.any.pred %p7, %p1, -1;"),
           32, "cannot arrive: member mask 0x7fffffff");
}

#define MMA "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1, %d2}, {%d3}, {%d4}, {%d5, %d6};"

TEST(copies_of_an_aligned_instruction_fault) {
    faults(BRANCHES(MMA, MMA), 32, "wait at copies of an .aligned instruction: lane 0 at this one");
    faults(BRANCHES(MMA, "bar.warp.sync -1;"), 32, "different operations");
}

/* Each half has a frame of its own; the matrices are those of all lanes. */
TEST(a_matrix_instruction_in_different_frames) {
    const char *text = PTX_HEAD
        ".func (.reg .b32 r) f(.reg .b32 a) { .reg .f64 %d<8>; mov.f64 %d3, 1.0;\n"
        " cvt.rn.f64.u32 %d4, a; mov.f64 %d5, 0.0; mov.f64 %d6, 0.0;\n" MMA
        " cvt.rni.u32.f64 r, %d1; ret; }\n"
        ".visible .entry k(.param .u64 p) { .reg .b32 %t, %r<10>; .reg .b64 %rd<4>, %out;\n"
        " .reg .pred %p<8>; ld.param.u64 %out, [p]; mov.u32 %t, %tid.x;\n"
        " mov.u32 %r9, 0; setp.ne.u32 %p7, 0, 0; setp.lt.u32 %p1, %t, 16;\n"
        "@%p1 bra LOW; call (%r8), f, (%t); bra END;\n"
        "LOW: call (%r8), f, (%t);\n" STORE " ret; }\n";
    run(text, 32);
    for (uint32_t t = 0; t < 32; t++) { /* lane t has B's row t % 4 of column t / 4 */
        uint32_t column = 2 * (t % 4);
        CHECK_EQ(words[2 * t], 4 * 4 * column + 6);
    }
}
