/* SPDX-License-Identifier: Apache-2.0 */
/* BH_DEVICE_CHECK: what is found in a kernel's accesses, its name, and that work goes on. */
#include "../support/support.h"

/* store_byte(u64 p): a byte at p. both(u64 p): every thread stores its number in the same word.
 * apart(u64 p): in a word of its own. */
static const char ptx_small[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                ".visible .entry store_byte(.param .u64 p) {\n"
                                "    .reg .b64 %a;\n"
                                "    ld.param.u64 %a, [p];\n"
                                "    st.global.u8 [%a], 1;\n"
                                "    ret;\n"
                                "}\n"
                                ".visible .entry both(.param .u64 p) {\n"
                                "    .reg .b64 %a;\n"
                                "    .reg .b32 %t;\n"
                                "    ld.param.u64 %a, [p];\n"
                                "    mov.u32 %t, %tid.x;\n"
                                "    st.global.u32 [%a], %t;\n"
                                "    ret;\n"
                                "}\n"
                                ".visible .entry apart(.param .u64 p) {\n"
                                "    .reg .b64 %a, %o;\n"
                                "    .reg .b32 %t;\n"
                                "    ld.param.u64 %a, [p];\n"
                                "    mov.u32 %t, %tid.x;\n"
                                "    mul.wide.u32 %o, %t, 4;\n"
                                "    add.u64 %a, %a, %o;\n"
                                "    st.global.u32 [%a], %t;\n"
                                "    ret;\n"
                                "}\n";

static rig open_checked(uint32_t flags) {
    rig plain = rig_open(0);
    bool queues = has_queues(plain.device);
    REQUIRE_OK(bh_device_close(plain.device));
    if (queues) SKIP("checks are for the CPU device without queues");
    bh_device_options options =
        device_options(BH_DEVICE_CHECK | BH_DEVICE_NO_RESTART_LIMIT | flags);
    options.quarantine_after = 1000;
    return rig_open_with(&options);
}

/* The launch is ended by a finding of this name, and its message says `text`. */
static void check_found(bh_kernel kernel, bh_shape shape, bh_args args, const char *name,
                        const char *text) {
    bh_ticket ticket = submit(kernel, shape, args, NULL);
    bh_error error;
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(ticket, &error), BH_E_FAULT);
    CHECK_STR_EQ(error.device_name, name);
    CHECK_STR_CONTAINS(error.message, text);
    CHECK_EQ(error.certain, 1);
    CHECK(error.fix[0] != '\0');
}

TEST(one_element_past_the_end) {
    rig r = open_checked(0);
    bh_kernel iota = rig_kernel(&r, "iota");
    bh_buffer p = words_alloc(r.device, 10);
    CHECK_OK(run_now(iota, BH_GRID(10, 32), BH_ARGS(BH_OUT(p), 5u, 10u)));
    CHECK(words_count(p, 10, 5));
    check_found(iota, BH_GRID(11, 32), BH_ARGS(BH_OUT(p), 5u, 11u), "CHECK_OUT_OF_BOUNDS",
                "starts 0 bytes past the end of argument 0, a buffer of u32[10]");
    CHECK_OK(bh_device_close(r.device));
}

TEST(without_checks_the_same_element_is_not_noticed) {
    rig r = rig_open(0);
    bh_buffer p = words_alloc(r.device, 10);
    CHECK_OK(run_now(rig_kernel(&r, "iota"), BH_GRID(11, 32), BH_ARGS(BH_OUT(p), 5u, 11u)));
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_input_past_its_end) {
    rig r = open_checked(0);
    bh_buffer a = words_counting(r.device, 9, 0), b = words_alloc(r.device, 10);
    check_found(rig_kernel(&r, "copy_words"), BH_GRID(10, 32), BH_ARGS(BH_IN(a), BH_OUT(b), 10u),
                "CHECK_OUT_OF_BOUNDS",
                "starts 0 bytes past the end of argument 0, a buffer of u32[9]");
    CHECK_OK(bh_device_close(r.device));
}

TEST(before_the_start_and_to_the_byte) {
    rig r = open_checked(0);
    bh_kernel store = get_kernel(load_module(r.device, ptx_small), "store_byte");
    bh_buffer bytes, between;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, 256, NULL, &between));
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, 13, NULL, &bytes));
    uint64_t first = address_of(bytes), inside = first + 12, past = first + 13, before = first - 1;
    CHECK_OK(run_now(store, BH_GRID(1, 1), BH_ARGS(inside)));
    check_found(store, BH_GRID(1, 1), BH_ARGS(past), "CHECK_OUT_OF_BOUNDS",
                "starts 0 bytes past the end of a buffer of u8[13]");
    check_found(store, BH_GRID(1, 1), BH_ARGS(before), "CHECK_OUT_OF_BOUNDS",
                "1 byte before the start of a buffer of u8[13]");
    CHECK_OK(bh_device_close(r.device));
}

TEST(use_after_release) {
    rig r = open_checked(0);
    bh_kernel poke = rig_kernel(&r, "poke");
    bh_buffer p = words_filled(r.device, 10, 1);
    uint64_t address = address_of(p) + 8;
    CHECK_OK(run_now(poke, BH_GRID(1, 1), BH_ARGS(address, 7u)));
    CHECK_EQ(word_read(p, 2), 7);
    REQUIRE_OK(bh_buffer_release(p));
    bh_buffer next = words_filled(r.device, 10, 1);
    CHECK(address_of(next) != address - 8);
    check_found(poke, BH_GRID(1, 1), BH_ARGS(address, 7u), "CHECK_USE_AFTER_FREE",
                "at byte 8 of a released buffer of u32[10]");
    CHECK(words_are(next, 10, 1));
    CHECK_OK(bh_device_close(r.device));
}

TEST(released_memory_is_reused_in_the_end) {
    rig r = open_checked(0);
    for (int i = 0; i < 600; i++) {
        bh_buffer p;
        REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, 1 << 20, NULL, &p));
        REQUIRE_OK(bh_buffer_release(p));
    }
    CHECK_LT(memory_of(r.device).bytes_reserved, UINT64_C(300) << 20);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_full_device_gives_released_memory_out_again) {
    rig plain = open_checked(0);
    CHECK_OK(bh_device_close(plain.device));
    bh_device_options options = device_options(BH_DEVICE_CHECK);
    options.memory_limit = 48 << 20;
    rig r = rig_open_with(&options);
    for (int i = 0; i < 20; i++) {
        bh_buffer p;
        REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, 20 << 20, NULL, &p));
        REQUIRE_OK(bh_buffer_release(p));
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(reads_of_what_was_never_written) {
    rig r = open_checked(0);
    bh_kernel add = rig_kernel(&r, "add_one"), copy = rig_kernel(&r, "copy_words");
    bh_buffer o = words_alloc(r.device, 64), p = words_alloc(r.device, 64),
              q = words_alloc(r.device, 64);
    check_found(add, BH_GRID(64, 64), BH_ARGS(BH_INOUT(o), 64u), "CHECK_UNINITIALISED",
                "at byte 0 of argument 0, a buffer of u32[64]");

    uint32_t words[32] = {0};
    REQUIRE_OK(bh_buffer_write(p, 0, words, sizeof words));
    CHECK_OK(run_now(add, BH_GRID(32, 64), BH_ARGS(BH_INOUT(p), 32u)));
    check_found(copy, BH_GRID(33, 64), BH_ARGS(BH_IN(p), BH_OUT(q), 33u), "CHECK_UNINITIALISED",
                "at byte 128 of argument 0");

    /* A copy brings along what was never written; a fill and a kernel write. */
    REQUIRE_OK(bh_buffer_copy(q, 0, p, 0, 256));
    check_found(add, BH_GRID(33, 64), BH_ARGS(BH_INOUT(q), 33u), "CHECK_UNINITIALISED",
                "at byte 128 of argument 0");
    REQUIRE_OK(bh_buffer_fill(q, 0, 256, "\0", 1));
    CHECK_OK(run_now(add, BH_GRID(64, 64), BH_ARGS(BH_INOUT(q), 64u)));
    CHECK(words_are(q, 64, 1));
    bh_buffer s = words_alloc(r.device, 64);
    CHECK_OK(run_now(rig_kernel(&r, "iota"), BH_GRID(64, 64), BH_ARGS(BH_OUT(s), 3u, 64u)));
    CHECK_OK(run_now(add, BH_GRID(64, 64), BH_ARGS(BH_INOUT(s), 64u)));
    CHECK(words_count(s, 64, 4));
    CHECK_OK(bh_device_close(r.device));
}

TEST(memory_handed_out_again_was_never_written) {
    rig plain = open_checked(0);
    CHECK_OK(bh_device_close(plain.device));
    bh_device_options options = device_options(BH_DEVICE_CHECK);
    options.memory_limit = 48 << 20;
    rig r = rig_open_with(&options);
    bh_buffer p = words_filled(r.device, 15 << 19, 9);
    uint64_t before = address_of(p);
    REQUIRE_OK(bh_buffer_release(p));
    p = words_alloc(r.device, 15 << 19);
    CHECK_EQ(address_of(p), before);
    check_found(rig_kernel(&r, "add_one"), BH_GRID(1, 64), BH_ARGS(BH_INOUT(p), 1u),
                "CHECK_UNINITIALISED", "at byte 0 of argument 0");
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_race_names_both_threads) {
    rig r = open_checked(0);
    bh_module module = load_module(r.device, ptx_small);
    bh_kernel both = get_kernel(module, "both");
    bh_buffer p = words_alloc(r.device, 64);
    CHECK_OK(run_now(get_kernel(module, "apart"), BH_GRID(64, 64), BH_ARGS(BH_OUT(p))));
    check_found(both, BH_GRID(40, 40), BH_ARGS(BH_OUT(p)), "CHECK_RACE",
                "write by block (0,0,0), thread (0,0,0) on PTX line 15");
    check_found(both, BH_GRID(40, 40), BH_ARGS(BH_OUT(p)), "CHECK_RACE",
                "write by block (0,0,0), thread (1,0,0) on PTX line 15");
    CHECK_OK(run_now(both, BH_GRID(1, 1), BH_ARGS(BH_OUT(p))));
    CHECK_OK(bh_device_close(r.device));
}

TEST(launches_do_not_race_with_each_other) {
    rig r = open_checked(0);
    bh_buffer p = words_filled(r.device, 1000, 0);
    for (int i = 0; i < 20; i++)
        CHECK_OK(
            run_now(rig_kernel(&r, "add_one"), BH_GRID(1000, 64), BH_ARGS(BH_INOUT(p), 1000u)));
    CHECK(words_are(p, 1000, 20));
    CHECK_OK(bh_device_close(r.device));
}

/* What is known of an instruction in one launch is not taken for what it did in the next, where
 * instructions come in another order. */
TEST(a_launch_that_takes_another_way_than_the_last_one) {
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .entry ways(.param .u64 p, .param .u32 way) {\n"
                              "    .reg .b64 %a;\n"
                              "    .reg .b32 %r, %w;\n"
                              "    .reg .pred %p;\n"
                              "    ld.param.u64 %a, [p];\n"
                              "    ld.param.u32 %w, [way];\n"
                              "    setp.ne.u32 %p, %w, 0;\n"
                              "    @%p bra ATOMIC;\n"
                              "    ld.global.u32 %r, [%a+4];\n"
                              "ATOMIC:\n"
                              "    ld.global.u32 %r, [%a+8];\n"
                              "    red.global.add.u32 [%a], 1;\n"
                              "    @!%p bra END;\n"
                              "    ld.global.u32 %r, [%a+12];\n"
                              "    ld.global.u32 %r, [%a+16];\n"
                              "    red.global.add.u32 [%a], 1;\n"
                              "END:\n"
                              "    ret;\n"
                              "}\n";
    rig r = open_checked(0);
    bh_kernel ways = get_kernel(load_module(r.device, ptx), "ways");
    bh_buffer p = words_filled(r.device, 5, 0);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_OK(run_now(ways, BH_GRID(64, 64), BH_ARGS(BH_INOUT(p), i % 2)));
    CHECK_EQ(word_read(p, 0), 6 * 64);
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_standby_checks_too_and_knows_what_was_written) {
    rig r = open_checked(0);
    bh_kernel iota = rig_kernel(&r, "iota"), add = rig_kernel(&r, "add_one");
    bh_buffer intact = words_counting(r.device, 100, 3), p = words_alloc(r.device, 10);
    for (uint64_t generation = 2; generation < 5; generation++) {
        wait_standby(r.device);
        check_found(iota, BH_GRID(11, 32), BH_ARGS(BH_OUT(p), 5u, 11u), "CHECK_OUT_OF_BOUNDS",
                    "starts 0 bytes past the end of argument 0");
        wait_generation(r.device, generation);
        CHECK(words_count(intact, 100, (uint32_t)generation + 1));
        CHECK_OK(run_now(add, BH_GRID(100, 32), BH_ARGS(BH_INOUT(intact), 100u)));
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(lanes_are_checked_beside_each_other) {
    rig r = open_checked(0);
    bh_kernel churn = rig_kernel(&r, "churn");
    bh_buffer p[3];
    bh_lane lanes[3];
    for (int i = 0; i < 3; i++) {
        p[i] = words_filled(r.device, 4096, 1);
        lanes[i] = open_lane(r.device);
    }
    bh_ticket last[3];
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < 3; i++) {
            bh_launch_options options = on_lane(lanes[i], 0);
            last[i] =
                submit(churn, BH_GRID(4096, 128), BH_ARGS(BH_INOUT(p[i]), 7u, 4096u), &options);
        }
    uint32_t expected = 1;
    for (int round = 0; round < 10; round++) expected = churn_word(expected, 7);
    CHECK_OK(bh_wait_all(last, 3, LONG_NS));
    for (int i = 0; i < 3; i++) CHECK(words_are(p[i], 4096, expected));
    CHECK_OK(bh_device_close(r.device));
}

/* wrong(u64 p): reads past the end of ten words, then every thread stores in the first. */
static const char ptx_wrong[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                ".visible .entry wrong(.param .u64 p) {\n"
                                "    .reg .b64 %a;\n"
                                "    .reg .b32 %t;\n"
                                "    ld.param.u64 %a, [p];\n"
                                "    ld.global.u32 %t, [%a+40];\n"
                                "    mov.u32 %t, %tid.x;\n"
                                "    .loc 1 7 3\n"
                                "    st.global.u32 [%a], %t;\n"
                                "    ret;\n"
                                "}\n"
                                ".file 1 \"wrong.cu\"\n";

TEST(all_findings_can_be_listed) {
    rig r = open_checked(0);
    bh_kernel wrong = get_kernel(load_module(r.device, ptx_wrong), "wrong");
    bh_buffer p = words_filled(r.device, 10, 1);
    bh_finding found[3];
    size_t count = 9;
    CHECK_REFUSED(bh_device_list_findings(r.device, 0, NULL, 0, 0, &count), BH_E_NOT_FOUND);
    check_found(wrong, BH_GRID(32, 32), BH_ARGS(BH_INOUT(p)), "CHECK_OUT_OF_BOUNDS",
                "finding 1 of 2: read of 4 bytes");
    memset(found, 0, sizeof found);
    REQUIRE_OK(bh_device_list_findings(r.device, 0, found, sizeof *found, 3, &count));
    REQUIRE_EQ(count, 2);
    CHECK_STR_EQ(found[0].kind, "CHECK_OUT_OF_BOUNDS");
    CHECK_STR_EQ(found[0].kernel, "wrong");
    CHECK_STR_CONTAINS(found[0].message, "0 bytes past the end of argument 0, a buffer of u32[10]");
    CHECK_EQ(found[0].here.line, 8);
    CHECK_EQ(found[0].here.access, BH_ACCESS_IN);
    CHECK_EQ(found[0].count, 32);
    CHECK_EQ(found[0].other.line, 0);
    CHECK_STR_EQ(found[1].kind, "CHECK_RACE");
    CHECK_STR_CONTAINS(found[1].message, "at byte 0 of argument 0");
    CHECK_STR_EQ(found[1].here.file, "wrong.cu");
    CHECK_EQ(found[1].here.source_line, 7);
    CHECK_EQ(found[1].other.line, 11);
    CHECK_EQ(found[1].other.access, BH_ACCESS_OUT);
    CHECK_EQ(found[1].count, 31);
    CHECK(found[1].fix[0] != '\0');
    char text[8192];
    size_t length;
    REQUIRE_OK(bh_device_get_report(r.device, 0, text, sizeof text, &length));
    CHECK_STR_CONTAINS(text, "found by checks: 2");
    CHECK_REFUSED(bh_device_list_findings(r.device, 77, NULL, 0, 0, &count), BH_E_NOT_FOUND);
    CHECK_OK(bh_device_close(r.device));
}

/* Long enough for helpers to join. */
TEST(a_long_launch_is_checked_on_several_threads) {
    rig r = open_checked(0);
    enum { COUNT = 1 << 20 };
    bh_buffer p = words_filled(r.device, COUNT, 1);
    CHECK_OK(run_now(rig_kernel(&r, "churn"), BH_GRID(COUNT, 128),
                     BH_ARGS(BH_INOUT(p), 7u, (uint32_t)COUNT)));
    CHECK(words_are(p, COUNT, churn_word(1, 7)));
    check_found(get_kernel(load_module(r.device, ptx_small), "both"), BH_GRID(COUNT, 128),
                BH_ARGS(BH_OUT(p)), "CHECK_RACE", "on PTX line 15");
    CHECK_OK(bh_device_close(r.device));
}

TEST(other_devices_refuse) {
    bh_device_options options = BH_INIT(options);
    options.device = "cuda";
    options.flags = BH_DEVICE_CHECK;
    bh_device device;
    bh_status status = bh_device_open(&options, &device);
    bh_error error;
    bh_last_error(&error);
    if (strstr(error.message, "is not installed")) SKIP("%s", error.message);
    CHECK_STATUS(status, BH_E_UNSUPPORTED);
    CHECK_STR_CONTAINS(error.fix, "cpu");
    CHECK_STR_CONTAINS(error.fix, "compute-sanitizer");
}
