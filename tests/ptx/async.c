/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers in memory, asynchronous copies, and clusters of blocks. */
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"
#include "test.h"

static _Alignas(128) uint32_t words[1024];

/* A kernel with 2 KiB of shared memory at s, eight mbarriers at bar, its rank in %rank. */
#define ASYNC(body)                                                                                \
    ".version 8.6\n.target sm_90a\n.address_size 64\n"                                             \
    ".visible .entry k(.param .u64 p)\n{\n"                                                        \
    ".reg .pred %p<8>, %done; .reg .b16 %h<8>; .reg .b32 %r<24>, %t, %rank, %s, %bar;\n"           \
    ".reg .b64 %rd<16>, %out; .reg .f32 %f<8>;\n"                                                  \
    ".shared .align 128 .b8 s[2048]; .shared .align 8 .b64 bar[8];\n"                              \
    "ld.param.u64 %out, [p]; mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank;\n"               \
    "mov.u32 %s, s; mov.u32 %bar, bar;\n" body "\nret;\n}\n"

/* Initialises the first mbarrier for `count` arrivals. */
#define INIT(count)                                                                                \
    "setp.ne.u32 %p1, %t, 0; @%p1 bra INITED;\n"                                                   \
    "mbarrier.init.shared::cta.b64 [%bar], " count "; fence.mbarrier_init.release.cluster;\n"      \
    "INITED: bar.sync 0;\n"

/* Waits for the phase of parity `parity`. */
#define WAIT(label, parity)                                                                        \
    label ": mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], " parity ";\n"                \
          "@!%done bra " label ";\n"

#define SYNC "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"

static bh__ptx_outcome run_grid(kernel *k, const char *text, uint32_t blocks, uint32_t cluster,
                                uint32_t threads) {
    for (uint32_t i = 0; i < 1024; i++) words[i] = i < 512 ? 0 : i;
    bh_status status = kernel_open(k, text, threads, words, sizeof words);
    if (status != BH_OK) {
        FAIL("%s", k->error.message);
        return BH__PTX_STOPPED;
    }
    k->grid.grid[0] = blocks;
    if (cluster != 0) {
        k->grid.cluster[0] = cluster;
        k->grid.cluster[1] = k->grid.cluster[2] = 1;
    }
    bh__ptx_outcome outcome = kernel_run(k);
    kernel_close(k);
    return outcome;
}

static bh__ptx_outcome run(kernel *k, const char *text, uint32_t threads) {
    return run_grid(k, text, 1, 0, threads);
}

static void check_fault(const char *text, uint32_t cluster, bh__ptx_fault_kind kind,
                        const char *what) {
    kernel k;
    CHECK_EQ(run_grid(&k, text, cluster ? cluster : 1, cluster, 32), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, kind);
    CHECK_STR_CONTAINS(k.fault.text, what);
    CHECK_STR_CONTAINS(k.fault.text, "in kernel k, block (");
}

/* ---- every form ---- */

static const char forms[] =
#include "async_forms.h"
    ;

TEST(every_form_loads) {
    bh_error error;
    char text[512];
    for (const char *at = forms; *at;) {
        size_t length = strcspn(at, ";") + 1;
        snprintf(text, sizeof text, "%.*s", (int)length, at);
        at += length;
        while (*at == '\n' || *at == ' ') at++;
        char module[2048];
        snprintf(module, sizeof module, "%s", ASYNC("FORM"));
        char *place = strstr(module, "FORM");
        memmove(place + strlen(text), place + 4, strlen(place + 4) + 1);
        memcpy(place, text, strlen(text));
        if (load_error(module, strlen(module), &error) != BH_OK) FAIL("%s", error.message);
    }
}

TEST(forms_that_ptx_does_not_have_are_refused) {
    static const char *const wrong[] = {
        "mbarrier.init.shared::cluster.b64 [%bar], 1;",
        "mbarrier.init.shared.b64 [%bar];",
        "mbarrier.arrive.shared::cluster.b64 %rd1, [%bar];",
        "mbarrier.arrive.noComplete.shared.b64 %rd1, [%bar];",
        "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%bar];",
        "mbarrier.test_wait.shared::cluster.b64 %p1, [%bar], %rd1;",
        "mbarrier.test_wait.shared.b64 %p1, [%bar], %rd1, 5;",
        "mbarrier.test_wait.parity.shared.b64 %p1, [%bar], %rd1;",
        "mbarrier.test_wait.shared.b64 %r1, [%bar], %rd1;",
        "mbarrier.arrive.b64 %rd1, [%bar];",
        "mbarrier.shared.b64 [%bar];",
        "mbarrier.pending_count.b64 %rd2, %rd1;",
        "cp.async.cg.shared.global [%s], [%out], 8;",
        "cp.async.ca.shared.global [%s], [%out], 12;",
        "cp.async.ca.shared.global [%s], [%s], 16;",
        "cp.async.mbarrier.shared.b64 [%bar];",
        "cp.async.bulk.shared::cluster.global [%s], [%out], 32, [%bar];",
        "cp.async.bulk.shared::cta.global.bulk_group [%s], [%out], 32, [%bar];",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], "
        "[%out], 32, [%bar], 3;",
        "cp.async.bulk.global.shared::cta.bulk_group [%out], [%s];",
        "cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 24;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.exch.b32 [%out], [%s], 32;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%out], [%s], 32;",
        "st.async.shared::cluster.b32 [%s], %r1, [%bar];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%s], "
        "{%rd1,%rd2,%rd3,%rd4}, [%bar];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%s], !%r1, [%bar];",
        "st.async.mbarrier::complete_tx::bytes.b32 [s], %r1, [bar];",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], "
        "[%out, {%r1}];",
        "barrier.cluster.sync;",
        "barrier.cluster.wait.release;",
        "barrier.cluster.arrive.acquire;",
        "bar.cluster.arrive;",
        "barrier.sync.release 0;",
        "mapa.u32 %r1, %r2, 0;",
        "fence.acq_rel.gpu [%out], 128;",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char module[2048];
        snprintf(module, sizeof module, "%s", ASYNC("FORM"));
        char *place = strstr(module, "FORM");
        memmove(place + strlen(wrong[i]), place + 4, strlen(place + 4) + 1);
        memcpy(place, wrong[i], strlen(wrong[i]));
        bh_error error;
        if (load_error(module, strlen(module), &error) == BH_OK) FAIL("accepted: %s", wrong[i]);
        CHECK(error.fix[0] != 0);
    }
}

/* ---- mbarriers ---- */

TEST(an_mbarrier_counts_arrivals_of_threads) {
    kernel k;
    /* Each thread writes, arrives, waits, reads what its mirror image wrote; three times. */
    const char *text =
        ASYNC(INIT("96") "mov.u32 %r9, 0; shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %s;\n"
                         "sub.u32 %r2, 95, %t; shl.b32 %r2, %r2, 2; add.u32 %r2, %r2, %s;\n"
                         "mul.wide.u32 %rd2, %t, 4; add.u64 %rd2, %rd2, %out; mov.u32 %r8, 0;\n"
                         "LOOP: mad.lo.u32 %r3, %r9, 100, %t; st.shared.u32 [%r1], %r3;\n"
                         "mbarrier.arrive.shared::cta.b64 %rd1, [%bar];\n"
                         "POLL: mbarrier.test_wait.shared::cta.b64 %done, [%bar], %rd1;\n"
                         "@!%done bra POLL; ld.shared.u32 %r4, [%r2]; add.u32 %r8, %r8, %r4;\n"
                         "mbarrier.arrive.shared::cta.b64 %rd1, [%bar];\n"
                         "POLL2: mbarrier.try_wait.shared::cta.b64 %done, [%bar], %rd1, 1000;\n"
                         "@!%done bra POLL2; add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 3;\n"
                         "@%p2 bra LOOP; st.global.u32 [%rd2], %r8;");
    REQUIRE_EQ(run(&k, text, 96), BH__PTX_DONE);
    for (uint32_t i = 0; i < 96; i++) REQUIRE_EQ(words[i], 300 + 3 * (95 - i));
}

TEST(lanes_that_poll_do_not_hold_up_others_of_their_warp) {
    kernel k;
    /* The last lane arrives further down in the code than the others poll. */
    const char *text = ASYNC(INIT("1") "setp.eq.u32 %p2, %t, 31; @%p2 bra LAST;\n" WAIT(
        "W", "0") "red.global.add.u32 [%out], 1; ret;\n"
                  "LAST: mbarrier.arrive.shared::cta.b64 _, [%bar];");
    REQUIRE_EQ(run(&k, text, 32), BH__PTX_DONE);
    CHECK_EQ(words[0], 31);
}

TEST(states_tell_phases_and_pending_counts) {
    kernel k;
    const char *text = ASYNC(
        "setp.ne.u32 %p1, %t, 0; @%p1 ret; mbarrier.init.shared.b64 [%bar], 5;\n"
        "mbarrier.test_wait.parity.shared.b64 %p2, [%bar], 1; selp.u32 %r1, 1, 0, %p2;\n"
        "mbarrier.test_wait.parity.shared.b64 %p2, [%bar], 0; selp.u32 %r2, 1, 0, %p2;\n"
        "mbarrier.arrive.noComplete.shared.b64 %rd1, [%bar], 3;\n"
        "mbarrier.pending_count.b64 %r3, %rd1; mbarrier.arrive.shared.b64 %rd2, [%bar];\n"
        "mbarrier.pending_count.b64 %r4, %rd2;\n"
        "mbarrier.arrive_drop.shared.b64 %rd3, [%bar]; mbarrier.pending_count.b64 %r5, %rd3;\n"
        "mbarrier.test_wait.shared.b64 %p2, [%bar], %rd3; selp.u32 %r6, 1, 0, %p2;\n"
        /* Four are left; bytes hold the phase back until they came. */
        "mbarrier.arrive.shared.b64 %rd4, [%bar], 3; mbarrier.pending_count.b64 %r7, %rd4;\n"
        "mbarrier.arrive.expect_tx.shared.b64 %rd5, [%bar], 48;\n"
        "mbarrier.test_wait.shared.b64 %p2, [%bar], %rd5; selp.u32 %r8, 1, 0, %p2;\n"
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar], 16;\n"
        "mbarrier.test_wait.parity.shared.b64 %p2, [%bar], 1; selp.u32 %r9, 1, 0, %p2;\n"
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar], 32;\n"
        "mbarrier.test_wait.parity.shared.b64 %p2, [%bar], 1; selp.u32 %r10, 1, 0, %p2;\n"
        "mbarrier.inval.shared.b64 [%bar];\n"
        "st.global.v4.u32 [%out], {%r1,%r2,%r3,%r4}; st.global.v4.u32 [%out+16], "
        "{%r5,%r6,%r7,%r8}; st.global.v2.u32 [%out+32], {%r9, %r10};");
    REQUIRE_EQ(run(&k, text, 32), BH__PTX_DONE);
    static const uint32_t expected[] = {1, 0, 5, 2, 1, 1, 4, 0, 0, 1};
    for (uint32_t i = 0; i < 10; i++) CHECK_EQ(words[i], expected[i]);
}

TEST(misuse_of_an_mbarrier_faults) {
    static const struct {
        const char *text, *what;
    } misuse[] = {
        {ASYNC("mbarrier.arrive.shared.b64 %rd1, [%bar];"), "not initialised"},
        {ASYNC(INIT("32") "mbarrier.inval.shared.b64 [%bar]; bar.sync 0;"), "invalidated"},
        {ASYNC("mbarrier.init.shared.b64 [%bar], 0;"), "an mbarrier of 0; it must be 1 to 1048575"},
        {ASYNC("mbarrier.init.shared.b64 [%bar], 1048576;"), "of 1048576"},
        {ASYNC(INIT("31") "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%bar], 32;"),
         "32 arrivals at an mbarrier that waits for 31"},
        {ASYNC(INIT("64") "mbarrier.arrive.noComplete.shared.b64 %rd1, [%bar], 64;"),
         ".noComplete arrivals of 64 complete the phase"},
        {ASYNC(INIT("64") "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], 1000000;"),
         "expects 1000000 bytes already; 1000000 more are over 1048575"},
        {ASYNC(INIT("64") "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar], 600000;"),
         "600000 bytes are copied where the mbarrier expects -600000"},
        {ASYNC(INIT("64") "mov.u64 %rd1, 7; mbarrier.test_wait.shared.b64 %p1, [%bar], %rd1;"),
         "not one that an arrival returned"},
        {ASYNC("mbarrier.arrive.b64 %rd1, [%out];"), "is not in shared memory"},
    };
    for (size_t i = 0; i < sizeof misuse / sizeof *misuse; i++)
        check_fault(misuse[i].text, 0, BH__PTX_FAULT_MBARRIER, misuse[i].what);
    check_fault(ASYNC("add.u32 %bar, %bar, 4; mbarrier.init.shared.b64 [%bar], 1;"), 0,
                BH__PTX_FAULT_MISALIGNED, "8 bytes");
    check_fault(ASYNC("mbarrier.init.shared.b64 [%bar+4096], 1;"), 0, BH__PTX_FAULT_ADDRESS,
                "shared");
}

/* ---- cp.async ---- */

TEST(cp_async_copies_parts_and_zeros) {
    kernel k;
    const char *text = ASYNC(
        "setp.ne.u32 %p1, %t, 0; @%p1 ret; mov.u32 %r1, -1;\n"
        "st.shared.v4.u32 [%s], {%r1,%r1,%r1,%r1};\n"
        "st.shared.v4.u32 [%s+16], {%r1,%r1,%r1,%r1};\n"
        "st.shared.v4.u32 [%s+32], {%r1,%r1,%r1,%r1};\n"
        "mbarrier.init.shared.b64 [%bar], 2; mov.u64 %rd3, 0;\n"
        "cp.async.cg.shared.global [%s], [%out+2048], 16, 8;\n"
        "setp.eq.u32 %p2, 0, 0; cp.async.ca.shared.global [%s+16], [%out+2048], 4, %p2;\n"
        "cp.async.ca.shared.global.L2::cache_hint.L2::128B [%s+32], [%out+2056], 8, !%p2, "
        "%rd3;\n"
        "cp.async.mbarrier.arrive.shared.b64 [%bar];\n"
        "cp.async.mbarrier.arrive.noinc.shared.b64 [%bar];\n"
        "mbarrier.arrive.shared.b64 %rd1, [%bar]; mbarrier.pending_count.b64 %r9, %rd1;\n" WAIT(
            "W", "0") "ld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%s]; "
                      "st.global.v4.u32 [%out], {%r1,%r2,%r3,%r4};\n"
                      "ld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%s+16]; "
                      "st.global.v4.u32 [%out+16], {%r1,%r2,%r3,%r4};\n"
                      "ld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%s+32]; "
                      "st.global.v4.u32 [%out+32], {%r1,%r2,%r3,%r9};");
    REQUIRE_EQ(run(&k, text, 32), BH__PTX_DONE);
    const uint32_t ones = UINT32_MAX;
    const uint32_t expected[] = {512, 513, 0, 0, 0, ones, ones, ones, 514, 515, ones, 1};
    for (uint32_t i = 0; i < 12; i++) CHECK_EQ(words[i], expected[i]);
}

/* ---- bulk copies ---- */

TEST(bulk_copies_go_in_and_out) {
    kernel k;
    const char *text = ASYNC(
        INIT("1") "@%p1 bra REST; mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 512;\n"
                  "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], "
                  "[%out+2048], 256, [%bar]; mov.u32 %r3, 256;\n"
                  "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s+256], "
                  "[%out+2304], %r3, [%bar];\n"
                  "REST: " WAIT("W", "0") "shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %s;\n"
                                          "ld.shared.u32 %r2, [%r1]; add.u32 %r2, %r2, 1000;\n"
                                          "st.shared.u32 [%r1], %r2; fence.proxy.async;\n"
                                          "bar.sync 0; @%p1 ret;\n"
                                          "cp.async.bulk.global.shared::cta.bulk_group "
                                          "[%out], [%s], 512;\n"
                                          "cp.async.bulk.commit_group;\n"
                                          "cp.async.bulk.wait_group.read 0;\n"
                                          "cp.async.bulk.wait_group 0;");
    REQUIRE_EQ(run(&k, text, 128), BH__PTX_DONE);
    for (uint32_t i = 0; i < 128; i++) REQUIRE_EQ(words[i], 512 + 1000 + i);
    CHECK_EQ(words[128], 0);
}

TEST(a_pipeline_of_stages_keeps_its_order) {
    kernel k;
    /* Thread 0 copies 16 tiles of 128 bytes through four stages; warp 1 adds them up. The stages'
     * full mbarriers are bar[0..3], the empty ones bar[4..7]. */
    const char *text = ASYNC(
        "setp.ne.u32 %p1, %t, 0; @%p1 bra INITED; mov.u32 %r1, 0;\n"
        "INIT: shl.b32 %r2, %r1, 3; add.u32 %r2, %r2, %bar; mbarrier.init.shared.b64 [%r2], 1;\n"
        "mbarrier.init.shared.b64 [%r2+32], 32; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 4;\n"
        "@%p2 bra INIT; INITED: bar.sync 0; mov.u32 %r1, 0; mov.u32 %r9, 0;\n"
        "setp.ge.u32 %p3, %t, 32; @%p3 bra CONSUME; @%p1 bra END;\n"
        "PRODUCE: and.b32 %r2, %r1, 3; shl.b32 %r3, %r2, 3; add.u32 %r3, %r3, %bar;\n"
        "shl.b32 %r4, %r2, 7; add.u32 %r4, %r4, %s; shr.u32 %r5, %r1, 2; xor.b32 %r5, %r5, 1;\n"
        "and.b32 %r5, %r5, 1; mul.wide.u32 %rd1, %r1, 128; add.u64 %rd1, %rd1, %out;\n"
        "FREE: mbarrier.try_wait.parity.shared.b64 %done, [%r3+32], %r5; @!%done bra FREE;\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 128;\n"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4], [%rd1+2048], 128, "
        "[%r3];\n"
        "add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 16; @%p4 bra PRODUCE; bra END;\n"
        "CONSUME: and.b32 %r2, %r1, 3; shl.b32 %r3, %r2, 3; add.u32 %r3, %r3, %bar;\n"
        "shl.b32 %r4, %r2, 7; add.u32 %r4, %r4, %s; shr.u32 %r5, %r1, 2; and.b32 %r5, %r5, 1;\n"
        "sub.u32 %r6, %t, 32; shl.b32 %r6, %r6, 2; add.u32 %r4, %r4, %r6;\n"
        "FULL: mbarrier.try_wait.parity.shared.b64 %done, [%r3], %r5; @!%done bra FULL;\n"
        "ld.shared.u32 %r7, [%r4]; mad.lo.u32 %r9, %r9, 3, %r7;\n"
        "mbarrier.arrive.shared.b64 _, [%r3+32];\n"
        "add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 16; @%p4 bra CONSUME;\n"
        "cvt.u64.u32 %rd2, %r6; add.u64 %rd2, %rd2, %out; st.global.u32 [%rd2], %r9;\n"
        "END: ");
    REQUIRE_EQ(run(&k, text, 64), BH__PTX_DONE);
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t sum = 0;
        for (uint32_t tile = 0; tile < 16; tile++) sum = sum * 3 + 512 + tile * 32 + lane;
        REQUIRE_EQ(words[lane], sum);
    }
}

TEST(bulk_reductions_combine_every_element) {
    kernel k;
    const char *text = ASYNC(
        "setp.ne.u32 %p1, %t, 0; @%p1 ret;\n"
        "mov.u32 %r1, 5; mov.u32 %r2, 600; st.shared.v4.u32 [%s], {%r1,%r2,%r1,%r2};\n"
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out+2048], [%s], 16;\n"
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%out+2064], [%s], 16;\n"
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u32 [%out+2080], [%s], 16;\n"
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b32 [%out+2096], [%s], 16;\n"
        "mov.f32 %f1, 0f3F800000; st.shared.v4.f32 [%s], {%f1,%f1,%f1,%f1};\n"
        "st.global.v4.f32 [%out], {%f1,%f1,%f1,%f1};\n"
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%out], [%s], 16;\n"
        /* halves: 2 and NaN against 1 and 3 */
        "mov.u32 %r3, 0x7e004000; st.shared.v4.u32 [%s], {%r3,%r3,%r3,%r3};\n"
        "mov.u32 %r4, 0x42003c00; st.global.v4.u32 [%out+16], {%r4,%r4,%r4,%r4};\n"
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.f16 [%out+16], [%s], 16;\n"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
        /* and between parts of shared memory */
        "mbarrier.init.shared.b64 [%bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 16;\n"
        "mov.u64 %rd1, 10; mov.u64 %rd2, 20; st.shared.v2.u64 [%s], {%rd1,%rd2};\n"
        "st.shared.v2.u64 [%s+64], {%rd2,%rd2};\n"
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 "
        "[%s+64], [%s], 16, [%bar];\n" WAIT(
            "W",
            "0") "ld.shared.v2.u64 {%rd1,%rd2}, [%s+64]; st.global.v2.u64 [%out+32], {%rd1,%rd2};");
    REQUIRE_EQ(run(&k, text, 32), BH__PTX_DONE);
    static const uint32_t expected[] = {517, 1113, 519, 1115, 5, 517, 5, 519};
    for (uint32_t i = 0; i < 8; i++) CHECK_EQ(words[512 + i], expected[i]);
    CHECK_EQ(words[520], 0); /* 520 is above 5: it wraps */
    CHECK_EQ(words[521], 522);
    CHECK_EQ(words[524], 524 ^ 5);
    CHECK_EQ(words[0], 0x40000000);
    CHECK_EQ(words[4], 0x42004000);
    CHECK_EQ(words[8], 30);
    CHECK_EQ(words[10], 40);
}

TEST(bad_bulk_copies_fault_with_numbers) {
#define COPY(to, from, size)                                                                       \
    ASYNC(INIT("1") "mov.u32 %r3, " size ";\n"                                                     \
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" to       \
                    "], [" from "], %r3, [%bar];")
    check_fault(COPY("%s", "%out", "24"), 0, BH__PTX_FAULT_COPY, "24 bytes");
    check_fault(COPY("%s+8", "%out", "16"), 0, BH__PTX_FAULT_COPY, "is not a multiple of 16");
    check_fault(COPY("%s", "%out+4", "16"), 0, BH__PTX_FAULT_COPY, "source of a bulk copy");
    check_fault(COPY("%s", "%out+4080", "32"), 0, BH__PTX_FAULT_ADDRESS, "32 bytes");
    check_fault(COPY("%s+2032", "%out", "4096"), 0, BH__PTX_FAULT_ADDRESS, "4096 bytes");
    check_fault(ASYNC("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], "
                      "[%out], 16, [%bar];"),
                0, BH__PTX_FAULT_MBARRIER, "not initialised");
    check_fault(ASYNC(INIT("1") "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                                ".multicast::cluster [%s], [%out], 16, [%bar], 5;"),
                2, BH__PTX_FAULT_COPY, "mask 0x5, in a cluster of 2");
}

/* ---- clusters ---- */

TEST(blocks_know_their_place_in_the_cluster) {
    kernel k;
    const char *text =
        ASYNC("mov.u32 %r1, %clusterid.x; mov.u32 %r2, %nclusterid.x; mov.u32 %r3, "
              "%cluster_ctaid.x; mov.u32 %r4, %cluster_nctaid.x; mov.u32 %r5, %cluster_nctarank; "
              "mov.pred %p1, %is_explicit_cluster; selp.u32 %r6, 1, 0, %p1; mov.u32 %r7, "
              "%ctaid.x; mul.wide.u32 %rd1, %r7, 32; add.u64 %rd1, %rd1, %out;\n"
              "st.global.v4.u32 [%rd1], {%r1,%r2,%r3,%r4}; "
              "st.global.v4.u32 [%rd1+16], {%rank,%r5,%r6,%r7};");
    REQUIRE_EQ(run_grid(&k, text, 12, 4, 1), BH__PTX_DONE);
    for (uint32_t i = 0; i < 12; i++) {
        const uint32_t expected[] = {i / 4, 3, i % 4, 4, i % 4, 4, 1, i};
        for (uint32_t n = 0; n < 8; n++) REQUIRE_EQ(words[i * 8 + n], expected[n]);
    }
    REQUIRE_EQ(run_grid(&k, text, 2, 0, 1), BH__PTX_DONE);
    const uint32_t expected[] = {1, 2, 0, 1, 0, 1, 0, 1};
    for (uint32_t n = 0; n < 8; n++) CHECK_EQ(words[8 + n], expected[n]);
}

TEST(a_cluster_barrier_in_a_loop_orders_remote_accesses) {
    kernel k;
    /* Each round a block writes to its right-hand neighbour's shared memory, and reads its own. */
    const char *text =
        ASYNC("mov.u32 %r1, %cluster_nctarank; add.u32 %r2, %rank, 1; rem.u32 %r2, %r2, %r1;\n"
              "mapa.shared::cluster.u32 %r3, %s, %r2; shl.b32 %r4, %t, 2; add.u32 %r3, %r3, %r4;\n"
              "add.u32 %r5, %s, %r4; mov.u32 %r6, 0; mov.u32 %r9, 0; " SYNC
              "LOOP: mad.lo.u32 %r7, %r6, 10, %rank; st.shared::cluster.u32 [%r3], %r7; " SYNC
              "ld.shared.u32 %r8, [%r5]; mad.lo.u32 %r9, %r9, 7, %r8; " SYNC
              "add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 5; @%p1 bra LOOP;\n"
              "mad.lo.u32 %r10, %rank, 64, %t; mul.wide.u32 %rd1, %r10, 4; "
              "add.u64 %rd1, %rd1, %out; st.global.u32 [%rd1], %r9;");
    REQUIRE_EQ(run_grid(&k, text, 8, 8, 64), BH__PTX_DONE);
    for (uint32_t i = 0; i < 512; i++) {
        uint32_t left = (i / 64 + 7) % 8, sum = 0;
        for (uint32_t n = 0; n < 5; n++) sum = sum * 7 + n * 10 + left;
        REQUIRE_EQ(words[i], sum);
    }
}

TEST(addresses_mean_the_same_in_the_whole_cluster) {
    kernel k;
    /* Generic addresses: each block leaves the address of its memory for block 0, which reads. */
    const char *text = ASYNC(
        "mov.u64 %rd1, s; cvta.shared.u64 %rd1, %rd1; add.u32 %r1, %rank, 40;\n"
        "st.u32 [%rd1], %r1; mul.wide.u32 %rd2, %rank, 8; add.u64 %rd2, %rd2, %out;\n"
        "st.global.u64 [%rd2+1024], %rd1; " SYNC "setp.ne.u32 %p1, %rank, 0; @%p1 bra END;\n"
        "ld.global.u64 %rd3, [%out+1048]; ld.u32 %r2, [%rd3]; st.global.u32 [%out], %r2;\n"
        "isspacep.shared::cta %p2, %rd3; selp.u32 %r3, 1, 0, %p2; st.global.u32 [%out+4], %r3;\n"
        "isspacep.shared::cluster %p2, %rd3; selp.u32 %r3, 1, 0, %p2; st.global.u32 [%out+8], "
        "%r3;\n"
        "isspacep.shared::cta %p2, %rd1; selp.u32 %r3, 1, 0, %p2; st.global.u32 [%out+12], %r3;\n"
        "getctarank.u64 %r4, %rd3; st.global.u32 [%out+16], %r4;\n"
        "mapa.u64 %rd4, %rd1, 3; setp.eq.u64 %p2, %rd3, %rd4; selp.u32 %r3, 1, 0, %p2;\n"
        "st.global.u32 [%out+20], %r3; cvta.to.shared::cluster.u64 %rd5, %rd3;\n"
        "getctarank.shared::cluster.u64 %r4, %rd5; st.global.u32 [%out+24], %r4;\n"
        "mapa.shared::cluster.u32 %r5, s, 2; ld.shared::cluster.u32 %r6, [%r5];\n"
        "st.global.u32 [%out+28], %r6; ld.shared::cluster.u32 %r6, [s];\n"
        "st.global.u32 [%out+32], %r6; END: " SYNC);
    REQUIRE_EQ(run_grid(&k, text, 4, 4, 1), BH__PTX_DONE);
    static const uint32_t expected[] = {43, 0, 1, 1, 3, 1, 3, 42, 40};
    for (uint32_t i = 0; i < 9; i++) CHECK_EQ(words[i], expected[i]);
}

TEST(remote_atomics_and_arrivals_reach_block_0) {
    kernel k;
    const char *text = ASYNC(
        INIT("256") SYNC "mapa.shared::cluster.u32 %r1, %s, 0; mapa.shared::cluster.u32 %r2, "
                         "%bar, 0;\n"
                         "atom.shared::cluster.add.u32 %r3, [%r1], 1;\n"
                         "red.relaxed.cluster.shared::cluster.max.u32 [%r1+4], %r3;\n"
                         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];\n"
                         "setp.ne.u32 %p2, %rank, 0; @%p2 bra END;\n"
                         "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, "
                         "[%bar], 0; @!%done bra W;\n"
                         "ld.shared.v2.u32 {%r4,%r5}, [%s]; st.global.v2.u32 [%out], {%r4,%r5};\n"
                         "END: " SYNC);
    REQUIRE_EQ(run_grid(&k, text, 4, 4, 64), BH__PTX_DONE);
    CHECK_EQ(words[0], 256);
    CHECK_EQ(words[1], 255);
}

TEST(stores_to_a_neighbour_complete_its_mbarrier) {
    kernel k;
    /* Each of 96 threads sends 8 bytes, and 4 more. */
    const char *text = ASYNC("mov.u32 %r10, %cluster_nctarank;\n" INIT(
        "1") "@!%p1 mbarrier.arrive.expect_tx.shared.b64 "
             "_, [%bar], 1152;\n" SYNC "add.u32 %r1, %rank, 1; rem.u32 %r1, %r1, %r10;\n"
             "mapa.shared::cluster.u32 %r2, %bar, %r1; mapa.shared::cluster.u32 %r3, %s, %r1;\n"
             "shl.b32 %r4, %t, 3; add.u32 %r3, %r3, %r4; mad.lo.u32 %r5, %rank, 100, %t;\n"
             "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r3], {%r5, %t}, "
             "[%r2];\n"
             "setp.lt.u32 %p3, %t, 64;\n"
             "mapa.shared::cluster.u32 %r6, %s, %r1;\n"
             "@%p3 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
             "[%r6+1024], %t, [%r2];\n"
             "@!%p3 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
             "[%r6+1028], 1, [%r2];\n" WAIT(
                 "W",
                 "0") "add.u32 %r7, %s, %r4;\n"
                      "ld.shared.u32 %r8, [%r7]; ld.shared.u32 %r9, [%r7+4]; add.u32 %r8, %r8, %r9;\n"
                      "mad.lo.u32 %r11, %rank, 96, %t; mul.wide.u32 %rd1, %r11, 4; add.u64 %rd1, %rd1, %out;\n"
                      "st.global.u32 [%rd1], %r8; @%p1 bra END; ld.shared.v2.u32 {%r8,%r9}, [%s+1024];\n"
                      "mul.wide.u32 %rd1, %rank, 8; add.u64 %rd1, %rd1, %out;\n"
                      "st.global.v2.u32 [%rd1+1600], {%r8,%r9}; END: " SYNC);
    REQUIRE_EQ(run_grid(&k, text, 4, 4, 96), BH__PTX_DONE);
    for (uint32_t i = 0; i < 384; i++) REQUIRE_EQ(words[i], (i / 96 + 3) % 4 * 100 + i % 96 * 2);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(words[400 + 2 * i], 63 * 32);
        CHECK_EQ(words[401 + 2 * i], 32);
    }
}

TEST(a_multicast_reaches_the_blocks_of_its_mask) {
    kernel k;
    const char *text = ASYNC(INIT(
        "1") "setp.eq.u32 %p2, %rank, 2; @%p1 bra SENT; @%p2 bra NONE;\n"
             "mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 128; bra NONE;\n"
             "NONE: SENT: " SYNC "or.b32 %r1, %rank, %t; setp.ne.u32 %p3, %r1, 0; "
             "mov.u16 %h1, 11; @%p3 bra COPIED;\n"
             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
             ".multicast::cluster [%s+256], [%out+2048], 128, [%bar], %h1;\n"
             "COPIED: @%p2 bra END;\n" WAIT(
                 "W",
                 "0") "shl.b32 %r2, %t, 2; add.u32 %r3, %r2, %s; ld.shared.u32 %r4, [%r3+256];\n"
                      "mad.lo.u32 %r5, %rank, 32, %t; mul.wide.u32 %rd1, %r5, 4; add.u64 %rd1, %rd1, %out;\n"
                      "st.global.u32 [%rd1], %r4; END: " SYNC);
    REQUIRE_EQ(run_grid(&k, text, 4, 4, 32), BH__PTX_DONE);
    for (uint32_t i = 0; i < 128; i++) REQUIRE_EQ(words[i], i / 32 == 2 ? 0 : 512 + i % 32);
}

TEST(threads_that_have_exited_do_not_hold_up_the_cluster) {
    kernel k;
    const char *text = ASYNC("setp.eq.u32 %p1, %rank, 1; @%p1 ret; setp.gt.u32 %p1, %t, 40; "
                             "@%p1 exit; barrier.cluster.arrive; setp.gt.u32 %p2, %t, 20;\n"
                             "@%p2 exit; barrier.cluster.wait; barrier.cluster.arrive.relaxed;\n"
                             "barrier.cluster.wait.acquire; mul.wide.u32 %rd1, %rank, 4;\n"
                             "add.u64 %rd1, %rd1, %out; red.global.add.u32 [%rd1], 1;");
    REQUIRE_EQ(run_grid(&k, text, 3, 3, 64), BH__PTX_DONE);
    CHECK_EQ(words[0], 21);
    CHECK_EQ(words[1], 0);
    CHECK_EQ(words[2], 21);
}

TEST(misuse_of_a_cluster_faults) {
    check_fault(ASYNC("barrier.cluster.wait;"), 2, BH__PTX_FAULT_BARRIER,
                "without a barrier.cluster.arrive");
    check_fault(ASYNC("barrier.cluster.arrive; barrier.cluster.arrive;"), 2, BH__PTX_FAULT_BARRIER,
                "arrive twice");
    check_fault(ASYNC("mapa.shared::cluster.u32 %r1, %s, 2;"), 2, BH__PTX_FAULT_ADDRESS,
                "mapa to block 2 of a cluster of 2");
    check_fault(
        ASYNC("setp.eq.u32 %p1, %rank, 1; @%p1 ret; mapa.shared::cluster.u32 %r1, %s, 1;\n" SYNC
              "L: ld.shared::cluster.u32 %r2, [%r1]; bra L;"),
        2, BH__PTX_FAULT_ADDRESS, "block of rank 1 of the cluster, which has ended");
    check_fault(ASYNC("xor.b32 %r3, %rank, 1; mapa.shared::cluster.u32 %r1, %s, %r3; " SYNC
                      "ld.shared.u32 %r2, [%r1];"),
                2, BH__PTX_FAULT_ADDRESS, "shared address");
    check_fault(ASYNC("xor.b32 %r3, %rank, 1; mapa.shared::cluster.u32 %r1, %s, %r3; " SYNC
                      "st.shared::cluster.u32 [%r1+8192], %t;"),
                2, BH__PTX_FAULT_ADDRESS, "write of 4 bytes at cluster's shared address");
    /* One block waits for the cluster, the other for a barrier that its first warp never
     * reaches. */
    check_fault(ASYNC("setp.eq.u32 %p1, %rank, 1; @%p1 bra B; " SYNC "ret;\n"
                      "B: setp.lt.u32 %p2, %t, 16; @%p2 bra C; barrier.sync 1, 64; ret;\n"
                      "C: " SYNC),
                2, BH__PTX_FAULT_BARRIER, "can never complete");
}
