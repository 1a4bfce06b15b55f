/* SPDX-License-Identifier: Apache-2.0 */
/* Launches in sequences are launches: checked by the same code, counted, however they are sent. */
#include "../support/support.h"
#include "../support/transfers.h"

enum { N = 256 };

static bh_sequence begin(bh_device device) {
    bh_sequence sequence;
    REQUIRE_OK(bh_sequence_begin(device, NULL, &sequence));
    return sequence;
}

/* Refused by bh_launch and by a recording, with the same words and the same line. */
static void check_same(bh_sequence seq, bh_kernel kernel, bh_shape shape, bh_args args,
                       const bh_launch_options *options, bh_status expected) {
    bh_error alone, step;
    char alone_line[BH_LINE_BYTES], step_line[BH_LINE_BYTES];
    uint32_t number = 77;
    CHECK_REFUSED(bh_launch(kernel, shape, args, options, NULL), expected);
    bh_last_error(&alone);
    CHECK_OK(bh_preflight_line(NULL, alone_line, sizeof alone_line));
    (void)bh_launch((bh_kernel){0}, shape, args, NULL, NULL); /* another line */
    CHECK_REFUSED(bh_sequence_launch(seq, kernel, shape, args, options, &number), expected);
    bh_last_error(&step);
    CHECK_OK(bh_preflight_line(NULL, step_line, sizeof step_line));
    CHECK_STR_EQ(step.message, alone.message);
    CHECK_STR_EQ(step.fix, alone.fix);
    CHECK_STR_EQ(step_line, alone_line);
    CHECK_EQ(number, 77);
}

TEST(what_a_launch_is_refused_for_a_step_is_refused_for) {
    rig r = rig_open(0);
    bh_device_info info = BH_INIT(info);
    REQUIRE_OK(bh_device_get_info(r.device, &info));
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_buffer p = words_filled(r.device, N, 0), gone = words_filled(r.device, N, 0);
    CHECK_OK(bh_buffer_release(gone));
    bh_args args = BH_ARGS(BH_INOUT(p), (uint32_t)N);
    bh_sequence seq = begin(r.device);
    check_same(seq, add, BH_SHAPE(0, 1, 1, 64, 1, 1), args, NULL, BH_E_LAUNCH);
    check_same(seq, add, BH_SHAPE(1, 1, 1, 1u << 20, 1, 1), args, NULL, BH_E_LAUNCH);
    check_same(seq, add, BH_SHAPE(1, UINT32_MAX, 1, 64, 1, 1), args, NULL, BH_E_LAUNCH);
    bh_shape shared = BH_SHAPE(1, 1, 1, 64, 1, 1);
    shared.shared_bytes = 1u << 30;
    check_same(seq, add, shared, args, NULL, BH_E_LAUNCH);
    bh_shape cluster = BH_SHAPE(3, 1, 1, 64, 1, 1);
    cluster.cluster.x = 2;
    check_same(seq, add, cluster, args, NULL, BH_E_LAUNCH);
    check_same(seq, add, BH_GRID(N, 64), BH_NO_ARGS, NULL, BH_E_LAUNCH);
    check_same(seq, add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(p), 1ull), NULL, BH_E_LAUNCH);
    check_same(seq, add, BH_GRID(N, 64), BH_ARGS(1u, 1u), NULL, BH_E_LAUNCH);
    check_same(seq, add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(gone), (uint32_t)N), NULL, BH_E_INVALID);
    check_same(seq, add, BH_GRID(N, 64), BH_ARGS(BH_INOUT_AT_LEAST(p, N * 4 + 1), (uint32_t)N),
               NULL, BH_E_LAUNCH);
    bh_launch_options options = BH_INIT(options);
    options.flags = 1u << 30;
    CHECK_REFUSED(bh_sequence_launch(seq, add, BH_GRID(N, 64), args, &options, NULL), BH_E_INVALID);
    options.flags = BH_LAUNCH_COOPERATIVE;
    if (info.cooperative) {
        check_same(seq, add, BH_SHAPE(10000000, 1, 1, 64, 1, 1), args, &options, BH_E_RESIDENCY);
        /* The device has not been asked about this block: the recording does it. */
        REQUIRE_OK(bh_sequence_launch(seq, add, BH_SHAPE(2, 1, 1, 96, 1, 1), args, &options, NULL));
        CHECK_REFUSED(
            bh_sequence_launch(seq, add, BH_SHAPE(20000000, 1, 1, 32, 1, 1), args, &options, NULL),
            BH_E_RESIDENCY);
    }
    options = (bh_launch_options)BH_INIT(options);
    bh_use also = {.buffer = gone, .access = BH_ACCESS_IN};
    options.also = &also;
    options.also_count = 1;
    check_same(seq, add, BH_GRID(N, 64), args, &options, BH_E_INVALID);
    REQUIRE_OK(bh_sequence_launch(seq, add, BH_GRID(N, 64),
                                  BH_ARGS(BH_INOUT_AT_LEAST(p, N * 4), (uint32_t)N), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    bh_ticket ticket;
    REQUIRE_OK(bh_sequence_submit(seq, NULL, &ticket));
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK_EQ(word_read(p, 0), info.cooperative ? 2 : 1);
    CHECK_OK(bh_device_close(r.device));
}

/* A value that is set is checked as an argument of a launch is. */
TEST(what_an_argument_is_refused_for_a_value_is_refused_for) {
    rig r = rig_open(0);
    bh_kernel saxpy = rig_kernel(&r, "saxpy");
    bh_buffer x = words_filled(r.device, N, 0), y = words_filled(r.device, N, 0);
    bh_sequence seq = begin(r.device);
    uint32_t step;
    REQUIRE_OK(bh_sequence_launch(seq, saxpy, BH_GRID(N, 64),
                                  BH_ARGS(1.0f, BH_IN(x), BH_INOUT(y), (uint32_t)N), NULL, &step));
    REQUIRE_OK(bh_sequence_finish(seq));
    bh_arg wrong[] = {
        BH_ARG(1.0), BH_VALUE(NULL, 4), {.kind = 9, .size = 4}, {.kind = BH_ARG_VALUE, .size = 99}};
    for (int i = 0; i < 4; i++) {
        bh_arg list[] = {wrong[i], BH_IN(x), BH_INOUT(y), BH_ARG((uint32_t)N)};
        bh_error alone, set;
        bh_status status = bh_launch(saxpy, BH_GRID(N, 64), (bh_args){list, 4}, NULL, NULL);
        bh_last_error(&alone);
        CHECK_REFUSED(bh_sequence_set(seq, step, 0, wrong[i]), status);
        bh_last_error(&set);
        CHECK_STR_EQ(set.message, alone.message);
        CHECK_STR_EQ(set.fix, alone.fix);
    }
    CHECK_REFUSED(bh_sequence_set(seq, step, 0, BH_IN_AT_LEAST(x, 4)), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_set(seq, step, 1, BH_IN(x)), BH_E_INVALID);
    CHECK_OK(bh_device_close(r.device));
}

TEST(replays_count_their_steps) {
    rig r = rig_open(0);
    void *host;
    REQUIRE_OK(bh_host_alloc(r.device, 4096, &host));
    bh_lane lane = open_lane(r.device);
    bh_buffer p = words_filled(r.device, N, 0), q = words_filled(r.device, N, 0);
    bh_launch_options options = BH_INIT(options);
    options.elements = 100;
    uint32_t zero = 0;
    bh_sequence seq = begin(r.device);
    REQUIRE_OK(record_write(seq, p, 0, host, 400, NULL));
    REQUIRE_OK(record_fill(seq, q, 0, 8, &zero, 4, NULL));
    REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "add_one"), BH_GRID(N, 48),
                                  BH_ARGS(BH_INOUT(p), 100u), &options, NULL));
    REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "add_one"), BH_GRID(N, 64),
                                  BH_ARGS(BH_INOUT(p), (uint32_t)N), NULL, NULL));
    REQUIRE_OK(record_copy(seq, q, 0, p, 0, 16, NULL));
    REQUIRE_OK(record_read(seq, p, 0, host, 300, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    bh_device_counters first = counters_of(r.device);
    bh_lane_counters before = lanes_of(r.device);
    bh_submit_options how = BH_INIT(how);
    how.repeat = 7;
    how.lane = lane;
    bh_ticket ticket;
    REQUIRE_OK(bh_sequence_submit(seq, &how, &ticket));
    how.repeat = 0;
    REQUIRE_OK(bh_sequence_submit(seq, &how, &ticket));
    REQUIRE_OK(bh_wait(ticket, LONG_NS));
    bh_device_counters then = counters_of(r.device);
    bh_lane_counters after = lanes_of(r.device);
    uint64_t blocks = (N + 47) / 48, threads = blocks * 48 + N, slots = blocks * 64 + N;
    CHECK_EQ(after.requests - before.requests, 2);
    CHECK_EQ(then.replays - first.replays, 2);
    CHECK_EQ(then.replay_steps - first.replay_steps, 8 * 6);
    CHECK_EQ(after.launches - before.launches, 8 * 2);
    CHECK_EQ(after.threads - before.threads, 8 * threads);
    CHECK_EQ(after.thread_slots - before.thread_slots, 8 * slots);
    CHECK_EQ(after.elements - before.elements, 8 * (100 + N));
    CHECK_EQ(after.thread_slots_wasted - before.thread_slots_wasted, 8 * (slots - 100 - N));
    CHECK_EQ(after.bytes_to_device - before.bytes_to_device, 8 * 400);
    CHECK_EQ(after.bytes_to_host - before.bytes_to_host, 8 * 300);
    CHECK_EQ(after.bytes_within - before.bytes_within, 8 * 24);
    bh_lane_counters on_lane_counts = BH_INIT(on_lane_counts);
    uint64_t until = now_ns() + LONG_NS;
    do { /* a worker's counts may lag behind its tickets */
        REQUIRE_OK(bh_lane_get_counters(r.device, lane, &on_lane_counts));
    } while (on_lane_counts.running.count < 2 && now_ns() < until);
    CHECK_EQ(on_lane_counts.requests, 2);
    CHECK_EQ(on_lane_counts.launches, 16);
    CHECK_EQ(on_lane_counts.running.count, 2); /* one time each, for the whole */
    char text[65536];
    size_t length;
    REQUIRE_OK(bh_prometheus(&r.device, 1, text, sizeof text, &length));
    CHECK_STR_CONTAINS(text, "bulkhead_replays_total{");
    CHECK_STR_CONTAINS(text, "bulkhead_replay_steps_total{");
    CHECK_STR_CONTAINS(text, "bulkhead_dispatches_total{");
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_device_is_closed_under_replays) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_buffer p = words_filled(r.device, N, 0);
    bh_sequence seq = begin(r.device), unfinished = begin(r.device), released = begin(r.device);
    bh_sequence both[] = {seq, released};
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(bh_sequence_launch(both[i], rig_kernel(&r, "add_one"), BH_GRID(N, 64),
                                      BH_ARGS(BH_INOUT(p), (uint32_t)N), NULL, NULL));
        REQUIRE_OK(bh_sequence_finish(both[i]));
    }
    REQUIRE_OK(bh_sequence_launch(unfinished, rig_kernel(&r, "add_one"), BH_GRID(N, 64),
                                  BH_ARGS(BH_INOUT(p), (uint32_t)N), NULL, NULL));
    bh_submit_options how = BH_INIT(how);
    how.lane = lane;
    how.repeat = 50;
    bh_ticket tickets[8];
    for (int i = 0; i < 8; i++) REQUIRE_OK(bh_sequence_submit(both[i % 2], &how, &tickets[i]));
    CHECK_OK(bh_sequence_release(released));
    CHECK_OK(bh_device_close(r.device));
    for (int i = 0; i < 8; i++) CHECK(bh_wait(tickets[i], 0) != BH_E_BUSY); /* all have a verdict */
    CHECK_REFUSED(bh_sequence_submit(seq, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_finish(unfinished), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_bind(seq, p, p), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_set(seq, 0, 1, BH_ARG(1u)), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_release(released), BH_E_INVALID);
}
