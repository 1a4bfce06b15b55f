/* SPDX-License-Identifier: Apache-2.0 */
/* The two addresses of a buffer: inputs cannot be written, unless the launch says or needs
 * otherwise. */
#include "../support/support.h"

TEST(an_input_is_passed_by_its_read_only_address) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer in = words_counting(r.device, 100, 1), out = words_filled(r.device, 1, 0);
    bh_kernel kernel = rig_kernel(&r, "write_input");
    CHECK_STATUS(run_now(kernel, BH_GRID(1, 1), BH_ARGS(BH_IN(in), BH_OUT(out))), BH_E_FAULT);
    CHECK(words_count(in, 100, 1));
    CHECK(!is_suspect(in));
    CHECK(is_suspect(out));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(writable_inputs_are_passed_by_the_writable_address) {
    rig r = rig_open(0);
    bh_buffer in = words_filled(r.device, 4, 5), out = words_filled(r.device, 1, 0);
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_LAUNCH_WRITABLE_INPUTS;
    CHECK_OK(run_with(rig_kernel(&r, "write_input"), BH_GRID(1, 1), BH_ARGS(BH_IN(in), BH_OUT(out)),
                      &options));
    CHECK_EQ(word_read(in, 0), 1);
    CHECK_EQ(word_read(out, 0), 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_argument_that_is_input_and_output_is_writable_in_both_places) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 4, 5);
    CHECK_OK(run_now(rig_kernel(&r, "write_input"), BH_GRID(1, 1), BH_ARGS(BH_IN(x), BH_INOUT(x))));
    CHECK_EQ(word_read(x, 0), 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(views_that_overlap_in_one_launch_share_the_writable_address) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 100, 5), low, high;
    REQUIRE_OK(bh_buffer_view(x, 0, 0, 60, &low));
    REQUIRE_OK(bh_buffer_view(x, 0, 40, 60, &high));
    CHECK_OK(
        run_now(rig_kernel(&r, "write_input"), BH_GRID(1, 1), BH_ARGS(BH_IN(low), BH_INOUT(high))));
    CHECK_EQ(word_read(x, 0), 1);
    CHECK_EQ(word_read(x, 40), 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(views_that_do_not_overlap_keep_their_input_read_only) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer x = words_filled(r.device, 128, 5), low, high;
    REQUIRE_OK(bh_buffer_view(x, 0, 0, 64, &low));
    REQUIRE_OK(bh_buffer_view(x, 0, 64, 64, &high));
    CHECK_STATUS(
        run_now(rig_kernel(&r, "write_input"), BH_GRID(1, 1), BH_ARGS(BH_IN(low), BH_INOUT(high))),
        BH_E_FAULT);
    CHECK(words_are(low, 64, 5));
    CHECK(!is_suspect(low));
    CHECK(is_suspect(high));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_kernel_may_update_in_place_through_an_input_and_an_output) {
    enum { N = 1000 };
    rig r = rig_open(0);
    bh_buffer x = words_counting(r.device, N, 0);
    CHECK_OK(run_now(rig_kernel(&r, "mix"), BH_GRID(N, 128),
                     BH_ARGS(BH_INOUT(x), BH_IN(x), BH_IN(x), 3u, (uint32_t)N)));
    for (uint32_t i = 0; i < N; i += 99) CHECK_EQ(word_read(x, i), mix_word(i, i, 3));
    CHECK_OK(bh_device_close(r.device));
}

TEST(both_addresses_show_the_same_bytes_one_launch_after_the_other) {
    enum { N = 256 };
    rig r = rig_open(0);
    bh_buffer a = words_counting(r.device, N, 0), b = words_alloc(r.device, N);
    bh_kernel add_one = rig_kernel(&r, "add_one"), copy = rig_kernel(&r, "copy_words");
    for (uint32_t i = 1; i <= 50; i++) {
        submit(add_one, BH_GRID(N, 64), BH_ARGS(BH_INOUT(a), (uint32_t)N), NULL);
        submit(copy, BH_GRID(N, 64), BH_ARGS(BH_IN(a), BH_OUT(b), (uint32_t)N), NULL);
        if (i % 10 == 0) CHECK(words_count(b, N, i));
    }
    CHECK_OK(bh_device_close(r.device));
}
