/* SPDX-License-Identifier: Apache-2.0 */
/* Suspect buffers: what they answer, what clears them, and how doubt spreads through queued
 * work. */
#include <signal.h>

#include "../support/support.h"

enum { N = 256 };

/* A device whose worker was lost with `x` half written. */
static rig rig_with_suspect(bh_buffer *x) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    *x = words_filled(r.device, N, 1);
    CHECK_STATUS(run_now(rig_kernel(&r, "write_then_poke"), BH_GRID(N, 64),
                         BH_ARGS(BH_INOUT(*x), (uint32_t)N, NOWHERE)),
                 BH_E_FAULT);
    CHECK(is_suspect(*x));
    return r;
}

static void check_stale(bh_buffer x) {
    uint32_t word = 0;
    CHECK_REFUSED(bh_buffer_read(x, 0, &word, 4), BH_E_STALE);
    CHECK(is_suspect(x));
}

TEST(every_use_of_suspect_data_is_stale) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    bh_buffer y = words_filled(r.device, N, 2);
    void *host = NULL;
    bh_ticket t;
    REQUIRE_OK(bh_host_alloc(r.device, N * 4, &host));
    check_stale(x);
    CHECK_REFUSED(bh_buffer_copy(y, 0, x, 0, N * 4), BH_E_STALE);
    bh_status status = bh_submit_read((bh_lane){0}, x, 0, host, N * 4, &t);
    CHECK_STATUS(status != BH_OK ? status : bh_wait(t, LONG_NS), BH_E_STALE);
    status = bh_submit_copy((bh_lane){0}, y, 0, x, 0, N * 4, &t);
    CHECK_STATUS(status != BH_OK ? status : bh_wait(t, LONG_NS), BH_E_STALE);
    CHECK_STATUS(
        run_now(rig_kernel(&r, "add_one"), BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), (uint32_t)N)),
        BH_E_STALE);
    CHECK_STATUS(run_now(rig_kernel(&r, "copy_words"), BH_GRID(N, 64),
                         BH_ARGS(BH_IN(x), BH_OUT(y), (uint32_t)N)),
                 BH_E_STALE);
    bh_use use = {x, BH_ACCESS_IN, 0};
    bh_launch_options options = BH_INIT(options);
    options.also = &use;
    options.also_count = 1;
    CHECK_STATUS(run_with(rig_kernel(&r, "iota"), BH_GRID(N, 64),
                          BH_ARGS(BH_OUT(y), 0u, (uint32_t)N), &options),
                 BH_E_STALE);
    check_stale(x);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_refused_use_leaves_its_target_alone) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    bh_buffer y = words_filled(r.device, N, 2);
    bh_ticket t;
    bh_status status = bh_launch(rig_kernel(&r, "copy_words"), BH_GRID(N, 64),
                                 BH_ARGS(BH_IN(x), BH_OUT(y), (uint32_t)N), NULL, &t);
    if (status == BH_OK) SKIP("this library answers with the ticket");
    CHECK_REFUSED(status, BH_E_STALE);
    CHECK(!is_suspect(y));
    CHECK(words_are(y, N, 2));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_stale_answer_says_what_to_do) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    uint32_t word;
    bh_error error;
    CHECK_REFUSED(bh_buffer_read(x, 0, &word, 4), BH_E_STALE);
    CHECK_STATUS(bh_last_error(&error), BH_E_STALE);
    CHECK_STR_CONTAINS(error.fix, "bh_buffer_accept");
    CHECK_OK(bh_device_close(r.device));
}

TEST(writing_all_of_it_clears_doubt) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    uint32_t words[N];
    for (uint32_t i = 0; i < N; i++) words[i] = i;
    CHECK_OK(bh_buffer_write(x, 0, words, sizeof words));
    CHECK(!is_suspect(x));
    CHECK(words_count(x, N, 0));
    CHECK_OK(bh_device_close(r.device));
}

TEST(filling_all_of_it_clears_doubt) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    uint32_t word = 9;
    CHECK_OK(bh_buffer_fill(x, 0, N * 4, &word, 4));
    CHECK(!is_suspect(x));
    CHECK(words_are(x, N, 9));
    CHECK_OK(bh_device_close(r.device));
}

TEST(copying_over_all_of_it_clears_doubt) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    bh_buffer y = words_counting(r.device, N, 5);
    CHECK_OK(bh_buffer_copy(x, 0, y, 0, N * 4));
    CHECK(!is_suspect(x));
    CHECK(words_count(x, N, 5));
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_output_of_a_kernel_clears_doubt) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    CHECK_OK(run_now(rig_kernel(&r, "iota"), BH_GRID(N, 64), BH_ARGS(BH_OUT(x), 3u, (uint32_t)N)));
    CHECK(!is_suspect(x));
    CHECK(words_count(x, N, 3));
    CHECK_OK(bh_device_close(r.device));
}

TEST(submitted_work_that_overwrites_clears_doubt_for_what_follows) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    bh_buffer y = words_filled(r.device, N, 0);
    uint32_t word = 4;
    bh_ticket t;
    CHECK_OK(bh_submit_fill((bh_lane){0}, x, 0, N * 4, &word, 4, NULL));
    CHECK_OK(bh_submit_copy((bh_lane){0}, y, 0, x, 0, N * 4, &t));
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK(words_are(y, N, 4));
    CHECK(!is_suspect(x));
    CHECK_OK(bh_device_close(r.device));
}

TEST(accepting_it_clears_doubt) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    uint32_t words[N];
    check_stale(x);
    CHECK_OK(bh_buffer_accept(x));
    CHECK(!is_suspect(x));
    CHECK_OK(bh_buffer_read(x, 0, words, sizeof words));
    for (int i = 0; i < N; i++) /* each word is either as it was or as the kernel left it */
        CHECK(words[i] == 1 || words[i] == ~1u);
    CHECK_OK(run_now(rig_kernel(&r, "add_one"), BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), (uint32_t)N)));
    CHECK_OK(bh_buffer_accept(x)); /* nothing to accept is fine */
    CHECK_OK(bh_device_close(r.device));
}

TEST(writing_a_part_clears_that_part) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    uint32_t words[N] = {0};
    bh_buffer_info info = BH_INIT(info);
    REQUIRE_OK(bh_buffer_get_info(x, &info));
    CHECK_EQ(info.suspect_offset, 0);
    CHECK_EQ(info.suspect_bytes, N * 4);
    CHECK_OK(bh_buffer_write(x, 0, words, N * 2));
    CHECK(is_suspect(x));
    info.size = sizeof info;
    REQUIRE_OK(bh_buffer_get_info(x, &info));
    CHECK_EQ(info.suspect_offset, N * 2);
    CHECK_EQ(info.suspect_bytes, N * 2);
    CHECK_REFUSED(bh_buffer_read(x, 0, words, N * 4), BH_E_STALE);
    CHECK_REFUSED(bh_buffer_read(x, N * 2, words, 4), BH_E_STALE);
    CHECK_OK(bh_buffer_read(x, 0, words, N * 2));
    CHECK_OK(bh_buffer_write(x, N * 2, words, N * 2));
    CHECK(!is_suspect(x));
    CHECK(words_are(x, N, 0));
    CHECK_OK(bh_device_close(r.device));
}

TEST(only_the_view_that_was_written_is_suspect) {
    rig r = rig_open(0);
    bh_buffer x = words_counting(r.device, N, 0), low, high;
    uint32_t words[N];
    REQUIRE_OK(bh_buffer_view(x, 0, 0, N / 2, &low));
    REQUIRE_OK(bh_buffer_view(x, 0, N / 2, N / 2, &high));
    CHECK_STATUS(run_now(rig_kernel(&r, "write_then_poke"), BH_GRID(N / 2, 64),
                         BH_ARGS(BH_INOUT(high), (uint32_t)N / 2, NOWHERE)),
                 BH_E_FAULT);
    CHECK(is_suspect(high));
    CHECK(is_suspect(x));
    CHECK(!is_suspect(low));
    CHECK(words_count(low, N / 2, 0));
    CHECK_OK(bh_buffer_read(x, 0, words, N * 2));
    CHECK_REFUSED(bh_buffer_read(x, 0, words, N * 4), BH_E_STALE);
    CHECK_OK(bh_buffer_accept(x));
    CHECK(!is_suspect(high));
    CHECK_OK(bh_device_close(r.device));
}

TEST(memory_of_a_suspect_buffer_starts_afresh) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    CHECK_OK(bh_buffer_release(x));
    bh_buffer all[32];
    for (int i = 0; i < 32; i++) {
        all[i] = words_counting(r.device, N, (uint32_t)i);
        CHECK(!is_suspect(all[i]));
    }
    sleep_ms(50);
    for (int i = 0; i < 32; i++) CHECK(words_count(all[i], N, (uint32_t)i));
    CHECK_OK(bh_device_close(r.device));
}

TEST(declared_writes_are_suspect_and_declared_reads_are_not) {
    rig r = rig_open(0);
    bh_buffer written = words_filled(r.device, N, 1), read = words_filled(r.device, N, 2);
    bh_use uses[2] = {{written, BH_ACCESS_INOUT, 0}, {read, BH_ACCESS_IN, 0}};
    bh_launch_options options = BH_INIT(options);
    options.also = uses;
    options.also_count = 2;
    CHECK_STATUS(run_with(rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u), &options),
                 BH_E_FAULT);
    CHECK(is_suspect(written));
    CHECK(!is_suspect(read));
    CHECK(words_are(read, N, 2));
    CHECK_OK(bh_device_close(r.device));
}

static bool gone(bh_status status) {
    return status == BH_E_STALE || status == BH_E_LOST;
}

/* Work queued behind the faulting kernel on its own lane. It may or may not have been begun, so
 * what reads doubtful data is stale or lost; what does not, and may be repeated, runs. */
TEST(doubt_spreads_through_a_lane) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options again = on_lane(lane, BH_SUBMIT_IDEMPOTENT);
    bh_kernel copy = rig_kernel(&r, "copy_words"), iota = rig_kernel(&r, "iota");
    bh_buffer a = words_filled(r.device, N, 1), b = words_filled(r.device, N, 2);
    bh_buffer c = words_filled(r.device, N, 3), d = words_filled(r.device, N, 4);
    bh_buffer e = words_filled(r.device, N, 5), f = words_filled(r.device, N, 6);
    bh_buffer flag = flag_alloc(r.device);
    loss_log log;
    loss_log_start(r.device, &log);
    bh_ticket fault = submit(rig_kernel(&r, "wait_then_poke"), BH_GRID(1, 1),
                             BH_ARGS(address_of(flag), BH_INOUT(a), NOWHERE), &again);
    flag_wait_begun(flag);
    bh_ticket a_to_b =
        submit(copy, BH_GRID(N, 64), BH_ARGS(BH_IN(a), BH_OUT(b), (uint32_t)N), &again);
    bh_ticket b_to_c =
        submit(copy, BH_GRID(N, 64), BH_ARGS(BH_IN(b), BH_OUT(c), (uint32_t)N), &again);
    bh_ticket new_b = submit(iota, BH_GRID(N, 64), BH_ARGS(BH_OUT(b), 70u, (uint32_t)N), &again);
    bh_ticket b_to_d =
        submit(copy, BH_GRID(N, 64), BH_ARGS(BH_IN(b), BH_OUT(d), (uint32_t)N), &again);
    bh_ticket e_to_f =
        submit(copy, BH_GRID(N, 64), BH_ARGS(BH_IN(e), BH_OUT(f), (uint32_t)N), &again);
    flag_raise(flag);
    CHECK_STATUS(bh_wait(fault, LONG_NS), BH_E_FAULT);
    CHECK(gone(bh_wait(a_to_b, LONG_NS)));
    CHECK(gone(bh_wait(b_to_c, LONG_NS)));
    CHECK_OK(bh_wait(new_b, LONG_NS));
    CHECK_OK(bh_wait(b_to_d, LONG_NS));
    CHECK_OK(bh_wait(e_to_f, LONG_NS));
    CHECK(is_suspect(a));
    CHECK(!is_suspect(b));
    CHECK(is_suspect(c));
    CHECK(!is_suspect(d));
    CHECK(!is_suspect(e));
    CHECK(!is_suspect(f));
    CHECK(words_count(b, N, 70));
    CHECK(words_count(d, N, 70));
    CHECK(words_are(f, N, 5));
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(log.losses[0].lost + log.losses[0].stale, 2);
    CHECK_EQ(log.losses[0].failed, 1);
    bh_error error;
    CHECK(gone(bh_ticket_error(a_to_b, &error)));
    CHECK(error.message[0] != '\0' && error.fix[0] != '\0');
    CHECK_EQ(error.generation, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(doubt_spreads_between_lanes) {
    rig r = rig_open(0);
    bh_lane one = open_lane(r.device), two = open_lane(r.device), three = open_lane(r.device);
    bh_launch_options on_one = on_lane(one, 0), on_two = on_lane(two, BH_SUBMIT_IDEMPOTENT);
    bh_launch_options on_three = on_lane(three, BH_SUBMIT_IDEMPOTENT);
    bh_kernel copy = rig_kernel(&r, "copy_words");
    bh_buffer a = words_filled(r.device, N, 1), b = words_filled(r.device, N, 2);
    bh_buffer c = words_filled(r.device, N, 3), d = words_filled(r.device, N, 4);
    bh_buffer flag = flag_alloc(r.device);
    bh_ticket fault = submit(rig_kernel(&r, "wait_then_poke"), BH_GRID(1, 1),
                             BH_ARGS(address_of(flag), BH_INOUT(a), NOWHERE), &on_one);
    flag_wait_begun(flag);
    bh_ticket a_to_b =
        submit(copy, BH_GRID(N, 64), BH_ARGS(BH_IN(a), BH_OUT(b), (uint32_t)N), &on_two);
    bh_ticket b_to_c =
        submit(copy, BH_GRID(N, 64), BH_ARGS(BH_IN(b), BH_OUT(c), (uint32_t)N), &on_three);
    flag_raise(flag);
    CHECK_STATUS(bh_wait(fault, LONG_NS), BH_E_FAULT);
    CHECK_NE(bh_wait(a_to_b, LONG_NS), BH_OK);
    CHECK_NE(bh_wait(b_to_c, LONG_NS), BH_OK);
    CHECK(is_suspect(a));
    CHECK(is_suspect(b));
    CHECK(is_suspect(c));
    CHECK(!is_suspect(d));
    CHECK(words_are(d, N, 4));
    CHECK_OK(bh_device_close(r.device));
}

TEST(doubt_in_part_of_a_buffer_spreads_only_to_readers_of_that_part) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, BH_SUBMIT_IDEMPOTENT);
    bh_kernel copy = rig_kernel(&r, "copy_words");
    bh_buffer x = words_counting(r.device, N, 0), low, high, flag = flag_alloc(r.device);
    bh_buffer from_low = words_filled(r.device, N / 2, 0),
              from_high = words_filled(r.device, N / 2, 0);
    REQUIRE_OK(bh_buffer_view(x, 0, 0, N / 2, &low));
    REQUIRE_OK(bh_buffer_view(x, 0, N / 2, N / 2, &high));
    bh_ticket fault = submit(rig_kernel(&r, "wait_then_poke"), BH_GRID(1, 1),
                             BH_ARGS(address_of(flag), BH_INOUT(low), NOWHERE), &there);
    flag_wait_begun(flag);
    bh_ticket of_low = submit(copy, BH_GRID(N / 2, 64),
                              BH_ARGS(BH_IN(low), BH_OUT(from_low), (uint32_t)N / 2), &there);
    bh_ticket of_high = submit(copy, BH_GRID(N / 2, 64),
                               BH_ARGS(BH_IN(high), BH_OUT(from_high), (uint32_t)N / 2), &there);
    flag_raise(flag);
    CHECK_STATUS(bh_wait(fault, LONG_NS), BH_E_FAULT);
    CHECK(gone(bh_wait(of_low, LONG_NS)));
    CHECK_OK(bh_wait(of_high, LONG_NS));
    CHECK(words_count(from_high, N / 2, N / 2));
    CHECK(is_suspect(from_low));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_transfer_in_flight_leaves_its_target_suspect_or_whole) {
    enum { BYTES = 16 << 20 };
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer x = words_filled(r.device, BYTES / 4, 1), y = words_filled(r.device, BYTES / 4, 2);
    bh_lane lane = open_lane(r.device);
    for (uint64_t i = 1; i <= 5; i++) {
        bh_ticket t;
        uint32_t value = 100 + (uint32_t)i;
        REQUIRE_OK(bh_submit_fill(lane, x, 0, BYTES, &value, 4, &t));
        kill_worker(r.device, SIGKILL);
        bh_status status = bh_wait(t, LONG_NS);
        CHECK(status == BH_OK || status == BH_E_LOST);
        CHECK_EQ(is_suspect(x), status != BH_OK);
        if (status == BH_OK) CHECK(words_are(x, BYTES / 4, value));
        CHECK(words_are(y, BYTES / 4, 2));
        REQUIRE_OK(bh_buffer_fill(x, 0, BYTES, &value, 4));
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(cancelling_what_would_have_overwritten_leaves_doubt) {
    bh_buffer x;
    rig r = rig_with_suspect(&x);
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, 0);
    uint32_t value = 5;
    bh_ticket fill;
    REQUIRE_OK(bh_submit_fill(lane, x, 0, N * 4, &value, 4, &fill));
    CHECK(is_suspect(x)); /* until it is overwritten */
    bh_status status = bh_cancel(fill);
    if (status == BH_E_BUSY) {
        gate_open(&g);
        SKIP("this device begins work far ahead");
    }
    CHECK_OK(status);
    CHECK(is_suspect(x));
    gate_open(&g);
    check_stale(x);
    CHECK_OK(bh_device_close(r.device));
}

TEST(cancelling_what_would_have_overwritten_after_a_takeover_leaves_doubt) {
    rig r = rig_open(0);
    if (has_queues(r.device)) SKIP("this device does not know which kernel faulted");
    bh_lane one = open_lane(r.device), two = open_lane(r.device);
    bh_launch_options on_one = on_lane(one, 0), on_two = on_lane(two, BH_SUBMIT_IDEMPOTENT);
    bh_buffer x = words_filled(r.device, N, 1), flag = flag_alloc(r.device);
    gate g = gate_close(&r, two, BH_SUBMIT_IDEMPOTENT);
    bh_ticket fault = submit(rig_kernel(&r, "wait_then_poke"), BH_GRID(1, 1),
                             BH_ARGS(address_of(flag), BH_INOUT(x), NOWHERE), &on_one);
    flag_wait_begun(flag);
    bh_ticket over = submit(rig_kernel(&r, "iota"), BH_GRID(N, 64),
                            BH_ARGS(BH_OUT(x), 0u, (uint32_t)N), &on_two);
    flag_raise(flag);
    CHECK_STATUS(bh_wait(fault, LONG_NS), BH_E_FAULT);
    wait_generation(r.device, 2);
    CHECK(is_suspect(x)); /* until it is overwritten, once the gate opens */
    bh_status status = bh_cancel(over);
    if (status == BH_E_BUSY) {
        gate_open(&g);
        SKIP("this device begins work far ahead");
    }
    CHECK_OK(status);
    CHECK(is_suspect(x));
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    check_stale(x);
    CHECK_OK(bh_device_close(r.device));
}

TEST(taking_back_work_on_good_data_raises_no_doubt) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_buffer x = words_filled(r.device, N, 1);
    gate g = gate_close(&r, lane, 0);
    uint32_t value = 5;
    bh_ticket fill;
    REQUIRE_OK(bh_submit_fill(lane, x, 0, N * 4, &value, 4, &fill));
    bh_status status = bh_cancel(fill);
    if (status == BH_E_BUSY) {
        gate_open(&g);
        SKIP("this device begins work far ahead");
    }
    CHECK_OK(status);
    gate_open(&g);
    CHECK(words_are(x, N, 1));
    CHECK_OK(bh_device_close(r.device));
}

/* Work in flight is run again although work behind it writes other bytes of the memory that it
 * reads: of a buffer, and of host memory that uploads and downloads share. */
TEST(work_is_repeated_unless_its_own_input_may_be_gone) {
    rig r = rig_open(0);
    bh_lane lanes[5];
    for (int i = 0; i < 5; i++) lanes[i] = open_lane(r.device);
    gate g = gate_close(&r, lanes[0], 0);
    bh_buffer source = words_counting(r.device, 2 * N, 7), first, second;
    CHECK_OK(bh_buffer_view(source, 0, 0, N, &first));
    CHECK_OK(bh_buffer_view(source, 0, N, N, &second));
    bh_buffer copied = words_filled(r.device, N, 0);
    uint32_t *host;
    REQUIRE_OK(bh_host_alloc(r.device, 2 * 4096, (void **)&host));
    host[0] = 1234;
    /* All of these wait for the gate, in the worker. */
    bh_launch_options again = on_lane(lanes[1], BH_SUBMIT_IDEMPOTENT);
    bh_use after_gate = {g.mark, BH_ACCESS_OUT, 0};
    again.also = &after_gate;
    again.also_count = 1;
    bh_ticket copy, upload, download, churn;
    copy = submit(rig_kernel(&r, "copy_words"), BH_GRID(N, 64),
                  BH_ARGS(BH_IN(first), BH_OUT(copied), (uint32_t)N), &again);
    CHECK_OK(bh_submit_write(lanes[2], g.mark, 0, host, 4, &upload));
    CHECK_OK(bh_submit_read(lanes[3], g.mark, 0, host + 1024, 4, &download));
    bh_use with_mark = {g.mark, BH_ACCESS_IN, 0};
    bh_launch_options behind = on_lane(lanes[4], 0);
    behind.also = &with_mark;
    behind.also_count = 1;
    churn = submit(rig_kernel(&r, "churn"), BH_GRID(N, 64),
                   BH_ARGS(BH_INOUT(second), 1u, (uint32_t)N), &behind);
    sleep_ms(100);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(bh_wait(g.ticket, LONG_NS), BH_E_LOST);
    CHECK_OK(bh_wait(copy, LONG_NS));
    CHECK_OK(bh_wait(upload, LONG_NS));
    CHECK_OK(bh_wait(download, LONG_NS));
    CHECK_STATUS(bh_wait(churn, LONG_NS), BH_E_LOST);
    CHECK_EQ(host[1024], 1234u);
    CHECK(words_count(copied, N, 7));
    CHECK(words_count(first, N, 7));
    CHECK(is_suspect(second));
    CHECK_OK(bh_host_free(r.device, host));
    CHECK_OK(bh_device_close(r.device));
}

/* The zeros of a new buffer have no ticket: if the worker refuses them, whoever reads the buffer
 * learns of it. */
TEST(zeros_that_the_worker_refuses) {
    setenv("BULKHEAD_TEST_REFUSE", "4", 1);
    rig r = rig_open(0);
    if (!has_queues(r.device) || !is_cpu(r.device))
        SKIP("only the CPU device behind queues refuses on demand");
    bh_buffer_options zeros = BH_INIT(zeros);
    zeros.flags = BH_BUFFER_ZERO;
    unsigned refused = 0;
    for (int i = 0; i < 200 && test_failures() == 0; i++) {
        uint32_t words[N] = {0}, dirt = 0xd147;
        bh_buffer x;
        REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, N, NULL, &x));
        (void)bh_buffer_fill(x, 0, N * 4, &dirt, 4);
        CHECK_OK(bh_buffer_release(x));
        REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, N, &zeros, &x));
        bh_status status = bh_buffer_read(x, 0, words, N * 4);
        if (status == BH_E_STALE) CHECK(is_suspect(x));
        refused += status == BH_E_STALE;
        if (status == BH_OK) CHECK(words[0] == 0 && words[N - 1] == 0);
        CHECK_OK(bh_buffer_release(x));
    }
    CHECK_GT(refused, 0);
    CHECK_OK(bh_device_close(r.device));
}
