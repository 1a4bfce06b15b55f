/* SPDX-License-Identifier: Apache-2.0 */
/* Executing PTX: faults of every kind, barriers, warps, calls, atomics, stopping and resuming. */
#include <pthread.h>
#include <string.h>

#include "support/kernel.h"
#include "test.h"

static uint32_t words[256];

static bh__ptx_outcome run(kernel *k, const char *text, uint32_t threads) {
    memset(words, 0, sizeof words);
    return run_text(k, text, threads, words, sizeof words);
}

TEST(a_bad_address_faults_with_all_details) {
    kernel k;
    const char *text = PTX_KERNEL("setp.ne.u32 %p1, %t, 37;\n@%p1 ret;\n"
                                  "st.global.u32 [%out+4096], %t;");
    CHECK_EQ(run(&k, text, 64), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_ADDRESS);
    CHECK_EQ(k.fault.address, (uint64_t)(uintptr_t)words + 4096);
    CHECK_EQ(k.fault.size, 4);
    CHECK(k.fault.write);
    CHECK_EQ(k.fault.thread[0], 37);
    CHECK_EQ(k.fault.line, 12);
    CHECK_STR_CONTAINS(k.fault.text, "st.global.u32 [%out+4096], %t");
    CHECK_STR_CONTAINS(k.fault.text, "thread (37,0,0)");
}

TEST(reads_past_the_end_and_through_null_fault) {
    kernel k;
    CHECK_EQ(run(&k, PTX_KERNEL("ld.global.u32 %r1, [%out+1024];"), 1), BH__PTX_FAULTED);
    CHECK(k.fault.kind == BH__PTX_FAULT_ADDRESS && !k.fault.write);
    CHECK_EQ(run(&k, PTX_KERNEL("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%out+1008];"), 1),
             BH__PTX_DONE);
    CHECK_EQ(run(&k, PTX_KERNEL("mov.u64 %rd1, 0; ld.u32 %r1, [%rd1];"), 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.address, 0);
    CHECK_EQ(run(&k, PTX_KERNEL(".shared .b8 s[64]; mov.u32 %r1, 64; ld.shared.u8 %r2, [%r1];"), 1),
             BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(k.fault.text, "shared");
    CHECK_EQ(
        run(&k, PTX_KERNEL(".local .b8 l[16]; mov.u64 %rd1, l; st.local.u32 [%rd1+16], %r1;"), 1),
        BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(k.fault.text, "local");
}

TEST(misaligned_access_faults) {
    kernel k;
    CHECK_EQ(run(&k, PTX_KERNEL("ld.global.u32 %r1, [%out+2];"), 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_MISALIGNED);
    CHECK_EQ(run(&k, PTX_KERNEL("st.global.v2.u32 [%out+4], {%r1,%r2};"), 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_MISALIGNED);
}

TEST(read_only_memory_is_not_written) {
    kernel k;
    REQUIRE_EQ(kernel_open(&k, PTX_KERNEL("st.global.u32 [%out], 1;"), 1, words, sizeof words),
               BH_OK);
    k.range.writable = false;
    CHECK_EQ(kernel_run(&k), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_READ_ONLY);
    kernel_close(&k);
    const char *constant = PTX_HEAD ".const .u32 c = 5;\n.entry k(.param .u64 p) {\n"
                                    ".reg .b64 %a; mov.u64 %a, c; st.u32 [%a], 1; }\n";
    CHECK_EQ(run(&k, constant, 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_READ_ONLY);
    CHECK_EQ(k.fault.line, 6);
}

TEST(traps_fault) {
    kernel k;
    CHECK_EQ(run(&k, PTX_KERNEL("trap;"), 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_TRAP);
    CHECK_EQ(run(&k, PTX_KERNEL("brkpt;"), 1), BH__PTX_FAULTED);
}

#define ASSERTS                                                                                    \
    PTX_HEAD ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c,\n"           \
             " .param .b64 d, .param .b64 e);\n"                                                   \
             ".global .b8 m[6] = {105,32,60,32,110,0}; .global .b8 f[5] = {97,46,99,117,0};\n"     \
             ".entry k(.param .u64 p) { .reg .b64 %r<4>; .reg .b32 %t; .reg .pred %q;\n"           \
             " mov.u32 %t, %tid.x; setp.ne.u32 %q, %t, 3; @%q ret;\n"                              \
             " mov.u64 %r1, m; mov.u64 %r2, f;\n"                                                  \
             " { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"     \
             "   st.param.b64 [a], %r1; st.param.b64 [b], %r2; st.param.b32 [c], 42;\n"            \
             "   st.param.b64 [d], %r2; st.param.b64 [e], 1;\n"                                    \
             "   call.uni __assertfail, (a, b, c, d, e); } }\n"

TEST(failed_assertions_are_told_as_cuda_tells_them) {
    kernel k;
    CHECK_EQ(run(&k, ASSERTS, 8), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_ASSERT);
    CHECK_STR_EQ(k.fault.text,
                 "a.cu:42: a.cu: block: [0,0,0], thread: [3,0,0] Assertion `i < n` failed.");
    CHECK_EQ(k.fault.line, 13);
}

TEST(endless_recursion_faults) {
    kernel k;
    const char *text = PTX_HEAD ".func f() { .local .b8 l[64]; .reg .b64 %a; mov.u64 %a, l;\n"
                                " call f, (); ret; }\n"
                                ".entry k(.param .u64 p) { call f, (); }\n";
    CHECK_EQ(run(&k, text, 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_STACK);
    CHECK_EQ(k.fault.line, 5);
}

TEST(calls_to_no_function_fault) {
    kernel k;
    const char *text = PTX_KERNEL("proto: .callprototype _ ();\ncall %out, (), proto;");
    CHECK_EQ(run(&k, text, 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_BAD_CALL);
    CHECK_EQ(k.fault.line, 11);
}

TEST(calls_pass_values_and_recurse) {
    kernel k;
    const char *text =
        PTX_HEAD ".func (.param .b32 r) fib(.param .b32 n) { .reg .b32 %x<6>; .reg .pred %p;\n"
                 " ld.param.b32 %x1, [n]; st.param.b32 [r], %x1;\n"
                 " setp.lt.u32 %p, %x1, 2; @%p ret; sub.u32 %x2, %x1, 1; sub.u32 %x3, %x1, 2;\n"
                 " { .param .b32 a; .param .b32 b; st.param.b32 [a], %x2; call.uni (b), fib, (a);\n"
                 "   ld.param.b32 %x4, [b]; }\n"
                 " { .param .b32 a; .param .b32 b; st.param.b32 [a], %x3; call.uni (b), fib, (a);\n"
                 "   ld.param.b32 %x5, [b]; }\n"
                 " add.u32 %x4, %x4, %x5; st.param.b32 [r], %x4; ret; }\n"
                 ".func (.reg .b32 %y) twice(.reg .b32 %x) { add.u32 %y, %x, %x; ret; }\n"
                 ".entry k(.param .u64 p) { .reg .b64 %o<3>; .reg .b32 %t<5>;\n"
                 " ld.param.u64 %o1, [p]; mov.u32 %t1, %tid.x; mul.wide.u32 %o2, %t1, 4;\n"
                 " add.u64 %o1, %o1, %o2;\n"
                 " { .param .b32 a; .param .b32 b; st.param.b32 [a], %t1; call (b), fib, (a);\n"
                 "   ld.param.b32 %t2, [b]; }\n"
                 " call (%t3), twice, (%t2);\n"
                 " st.global.u32 [%o1], %t3; }\n";
    CHECK_EQ(run(&k, text, 21), BH__PTX_DONE);
    CHECK_EQ(words[10], 2 * 55);
    CHECK_EQ(words[1], 2);
    CHECK_EQ(words[20], 2 * 6765);
}

TEST(a_barrier_holds_every_thread) {
    kernel k;
    const char *text = PTX_KERNEL(".shared .b32 s[128]; mul.lo.u32 %r1, %t, 4; mov.u32 %r2, s;\n"
                                  "add.u32 %r3, %r2, %r1; st.shared.u32 [%r3], %t; bar.sync 0;\n"
                                  "sub.u32 %r4, 127, %t; mul.lo.u32 %r4, %r4, 4;\n"
                                  "add.u32 %r4, %r4, %r2; ld.shared.u32 %r5, [%r4];\n"
                                  "mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %rd1, %out;\n"
                                  "st.global.u32 [%rd1], %r5;");
    CHECK_EQ(run(&k, text, 128), BH__PTX_DONE);
    CHECK_EQ(words[0], 127);
    CHECK_EQ(words[127], 0);
    CHECK_EQ(words[100], 27);
}

TEST(threads_that_exit_count_as_arrived) {
    kernel k;
    const char *text = PTX_KERNEL("setp.gt.u32 %p1, %t, 40; @%p1 exit; bar.sync 0;\n"
                                  "setp.lt.u32 %p2, %t, 10; bar.red.popc.u32 %r1, 0, %p2;\n"
                                  "st.global.u32 [%out], %r1;");
    CHECK_EQ(run(&k, text, 96), BH__PTX_DONE);
    CHECK_EQ(words[0], 10);
}

TEST(a_barrier_that_cannot_be_met_faults) {
    kernel k;
    const char *text = PTX_KERNEL("setp.gt.u32 %p1, %t, 31;\n@%p1 bra L; bar.sync 1; bra E;\n"
                                  "L: bar.sync 2; E: ");
    CHECK_EQ(run(&k, text, 64), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_BARRIER);
    CHECK_EQ(k.fault.line, 11);
    CHECK_EQ(run(&k, PTX_KERNEL("mov.u32 %r1, 16; bar.sync %r1;"), 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_BARRIER);
}

TEST(producers_and_consumers_meet_at_counted_barriers) {
    kernel k;
    const char *text = PTX_KERNEL(".shared .b32 s; mov.u32 %r2, s; setp.lt.u32 %p1, %t, 32;\n"
                                  "@%p1 bra C; st.shared.u32 [%r2], 99; bar.arrive 3, 64; bra E;\n"
                                  "C: bar.sync 3, 64; ld.shared.u32 %r1, [%r2];\n"
                                  "st.global.u32 [%out], %r1; E: ");
    CHECK_EQ(run(&k, text, 64), BH__PTX_DONE);
    CHECK_EQ(words[0], 99);
}

TEST(lanes_that_diverge_meet_again) {
    kernel k;
    const char *text = PTX_KERNEL("and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra A;\n"
                                  "add.u32 %r2, %t, 100; bra B; A: add.u32 %r2, %t, 200; B:\n"
                                  "activemask.b32 %r3; st.global.u32 [%out], %r3;\n"
                                  "shfl.sync.bfly.b32 %r4|%p2, %r2, 1, 31, -1;\n"
                                  "mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %rd1, %out;\n"
                                  "st.global.u32 [%rd1+4], %r4;");
    CHECK_EQ(run(&k, text, 32), BH__PTX_DONE);
    CHECK_EQ(words[0], UINT32_MAX);
    CHECK_EQ(words[1], 101);
    CHECK_EQ(words[2], 200);
}

TEST(a_shuffle_waits_for_its_members) {
    kernel k;
    const char *text = PTX_KERNEL("setp.lt.u32 %p1, %t, 16; @%p1 bra LOW;\n"
                                  "shfl.sync.idx.b32 %r1, %t, 20, 31, 0xffff0000; bra E;\n"
                                  "LOW: shfl.sync.idx.b32 %r1, %t, 5, 31, 0x0000ffff; E:\n"
                                  "mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %rd1, %out;\n"
                                  "st.global.u32 [%rd1], %r1;");
    CHECK_EQ(run(&k, text, 32), BH__PTX_DONE);
    CHECK_EQ(words[0], 5);
    CHECK_EQ(words[31], 20);
    const char *never = PTX_KERNEL("setp.lt.u32 %p1, %t, 16; @%p1 bra LOW; bar.sync 0; bra E;\n"
                                   "LOW: bar.warp.sync -1; bar.sync 0; E: ");
    CHECK_EQ(run(&k, never, 32), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_BARRIER);
}

TEST(subgroups_reduce_apart) {
    kernel k;
    const char *text = PTX_KERNEL("and.b32 %r1, %t, 24; mov.u32 %r2, 255; shl.b32 %r2, %r2, %r1;\n"
                                  "redux.sync.add.u32 %r3, %t, %r2;\n"
                                  "mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %rd1, %out;\n"
                                  "st.global.u32 [%rd1], %r3;");
    CHECK_EQ(run(&k, text, 32), BH__PTX_DONE);
    CHECK_EQ(words[0], 28);
    CHECK_EQ(words[9], 92);
    CHECK_EQ(words[31], 220);
}

TEST(a_lock_between_lanes_of_a_warp_makes_progress) {
    kernel k;
    const char *text = PTX_KERNEL("L: atom.global.cas.b32 %r1, [%out], 0, 1;\n"
                                  "setp.ne.u32 %p1, %r1, 0; @%p1 bra L;\n"
                                  "ld.volatile.global.u32 %r2, [%out+4]; add.u32 %r2, %r2, 1;\n"
                                  "st.volatile.global.u32 [%out+4], %r2;\n"
                                  "atom.global.exch.b32 %r3, [%out], 0;");
    CHECK_EQ(run(&k, text, 64), BH__PTX_DONE);
    CHECK_EQ(words[1], 64);
}

TEST(printf_formats) {
    const char *text =
        PTX_HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
                 ".global .b8 f[32] = {37,100,32,37,53,46,50,102,124,37,45,52,115,124,37,108,108,"
                 "120,32,37,99,37,37,10,0};\n" /* "%d %5.2f|%-4s|%llx %c%%\n" */
                 ".global .b8 s[3] = {104,105,0};\n"
                 ".entry k(.param .u64 p) { .local .align 8 .b8 l[40]; .reg .b64 %r<5>;\n"
                 " mov.u64 %r1, l; cvta.local.u64 %r2, %r1; mov.u64 %r3, s; mov.u64 %r4, f;\n"
                 " st.local.u32 [%r1], -7; st.local.f64 [%r1+8], 3.14159;\n"
                 " st.local.u64 [%r1+16], %r3; st.local.u64 [%r1+24], 0xabcdef0123;\n"
                 " st.local.u32 [%r1+32], 90;\n"
                 " { .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %r4;\n"
                 "   st.param.b64 [b], %r2; call.uni (c), vprintf, (a, b); } }\n";
    kernel k;
    CHECK_EQ(run(&k, text, 1), BH__PTX_DONE);
    CHECK_STR_EQ(k.printed, "-7  3.14|hi  |abcdef0123 Z%\n");
}

TEST(stepping_gives_the_same_result_as_running) {
    const char *text = PTX_KERNEL("mov.u32 %r1, 0; mov.u32 %r2, 1;\n"
                                  "L: mad.lo.u32 %r2, %r2, 1664525, %t; add.u32 %r1, %r1, 1;\n"
                                  "setp.lt.u32 %p1, %r1, 50; @%p1 bra L; bar.sync 0;\n"
                                  "mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %rd1, %out;\n"
                                  "st.global.u32 [%rd1], %r2;");
    kernel k;
    CHECK_EQ(run(&k, text, 64), BH__PTX_DONE);
    uint32_t whole[64];
    memcpy(whole, words, sizeof whole);
    memset(words, 0, sizeof words);
    REQUIRE_EQ(kernel_open(&k, text, 64, words, sizeof words), BH_OK);
    REQUIRE_EQ(bh__ptx_block_begin(k.block, &k.grid, 0, 0, 0, &k.error), BH_OK);
    bh__ptx_outcome outcome;
    unsigned steps = 0;
    while ((outcome = bh__ptx_block_step(k.block, 7, &k.fault)) == BH__PTX_YIELD) {
        steps++;
    }
    CHECK_EQ(outcome, BH__PTX_DONE);
    CHECK_GT(steps, 50);
    CHECK_MEM_EQ(whole, words, sizeof whole);
    kernel_close(&k);
}

TEST(a_running_block_can_be_stopped) {
    kernel k;
    _Atomic(bool) stop = true;
    REQUIRE_EQ(kernel_open(&k, PTX_KERNEL("L: bra L;"), 32, words, sizeof words), BH_OK);
    k.grid.stop = &stop;
    CHECK_EQ(kernel_run(&k), BH__PTX_STOPPED);
    kernel_close(&k);
}

typedef struct worker {
    kernel *k;
    uint32_t index;
    bh__ptx_outcome outcome;
} worker;

static void *work(void *context) {
    worker *w = context;
    bh__ptx_block *block = bh__ptx_block_create();
    bh_error error;
    bh__ptx_fault fault;
    w->outcome = BH__PTX_STOPPED;
    if (block != NULL && bh__ptx_block_begin(block, &w->k->grid, w->index, 0, 0, &error) == BH_OK) {
        do {
            w->outcome = bh__ptx_block_step(block, 1000, &fault);
        } while (w->outcome == BH__PTX_YIELD);
    }
    bh__ptx_block_destroy(block);
    return NULL;
}

TEST(atomics_hold_between_threads) {
    const char *text = PTX_KERNEL("mov.u32 %r1, 0;\n"
                                  "L: red.global.add.u32 [%out], 1; atom.global.add.f32 %f1, "
                                  "[%out+4], 0f3F800000; atom.global.inc.u32 %r2, [%out+8], 6;\n"
                                  "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 200; @%p1 bra L;");
    kernel k;
    memset(words, 0, sizeof words);
    REQUIRE_EQ(kernel_open(&k, text, 32, words, sizeof words), BH_OK);
    k.grid.grid[0] = 2;
    worker workers[2] = {{&k, 0, 0}, {&k, 1, 0}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(workers[i].outcome, BH__PTX_DONE);
    }
    float sum;
    memcpy(&sum, &words[1], 4);
    CHECK_EQ(words[0], 12800);
    CHECK(sum == 12800.0f);
    CHECK_EQ(words[2], 12800 % 7);
    kernel_close(&k);
}
