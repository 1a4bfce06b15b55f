/* SPDX-License-Identifier: Apache-2.0 */
/* Order within a lane, order between lanes through the buffers they share, full queues. */
#include "../support/support.h"

TEST(a_thousand_dependent_launches_run_in_order) {
    enum { COUNT = 1000 };
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 32, 1);
    bh_kernel churn = rig_kernel(&r, "churn");
    uint32_t expected = 1;
    bh_ticket last = {0, 0};
    for (uint32_t i = 0; i < COUNT; i++) {
        last = submit(churn, BH_GRID(32, 32), BH_ARGS(BH_INOUT(x), i, 32u), NULL);
        expected = churn_word(expected, i);
    }
    CHECK_OK(bh_wait(last, LONG_NS));
    CHECK(words_are(x, 32, expected));
    CHECK_OK(bh_device_close(r.device));
}

TEST(lanes_run_side_by_side) {
    rig r = rig_open(0);
    gate gates[4];
    for (int i = 0; i < 4; i++)
        gates[i] = gate_close(&r, open_lane(r.device), 0); /* returns once it runs */
    for (int i = 3; i >= 0; i--) {
        CHECK_STATUS(bh_wait(gates[i].ticket, 0), BH_E_BUSY);
        gate_open(&gates[i]);
        CHECK_OK(bh_wait(gates[i].ticket, LONG_NS));
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_reader_on_another_lane_waits_for_the_writer) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device), b = open_lane(r.device);
    bh_launch_options on_b = on_lane(b, 0);
    bh_buffer copy = words_filled(r.device, 1, 0);
    gate g = gate_close(&r, a, 0);
    bh_ticket read = submit(rig_kernel(&r, "copy_words"), BH_GRID(1, 1),
                            BH_ARGS(BH_IN(g.mark), BH_OUT(copy), 1u), &on_b);
    CHECK_STATUS(bh_wait(read, 30 * MS), BH_E_TIMEOUT);
    gate_open(&g);
    CHECK_OK(bh_wait(read, LONG_NS));
    CHECK_EQ(word_read(copy, 0), g.value);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_writer_on_another_lane_waits_for_readers) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device), b = open_lane(r.device);
    bh_launch_options on_a = on_lane(a, 0), on_b = on_lane(b, 0);
    bh_buffer x = words_filled(r.device, 1, 7), copy = words_filled(r.device, 1, 0);
    gate g = gate_close(&r, a, 0);
    submit(rig_kernel(&r, "copy_words"), BH_GRID(1, 1), BH_ARGS(BH_IN(x), BH_OUT(copy), 1u), &on_a);
    bh_ticket write =
        submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 8u), &on_b);
    CHECK_STATUS(bh_wait(write, 30 * MS), BH_E_TIMEOUT);
    gate_open(&g);
    CHECK_OK(bh_wait(write, LONG_NS));
    CHECK_EQ(word_read(copy, 0), 7);
    CHECK_EQ(word_read(x, 0), 8);
    CHECK_OK(bh_device_close(r.device));
}

TEST(readers_on_several_lanes_do_not_wait_for_each_other) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device), b = open_lane(r.device);
    bh_launch_options on_b = on_lane(b, 0);
    bh_buffer x = words_filled(r.device, 2, 0), copy = words_filled(r.device, 1, 0);
    bh_launch_options on_a = on_lane(a, 0);
    bh_use use = {x, BH_ACCESS_IN, 0};
    on_a.also = &use;
    on_a.also_count = 1;
    bh_buffer flag = flag_alloc(r.device), mark = words_alloc(r.device, 1);
    bh_ticket held = submit(rig_kernel(&r, "gate"), BH_GRID(1, 1),
                            BH_ARGS(address_of(flag), BH_OUT(mark), 1u), &on_a);
    flag_wait_begun(flag);
    CHECK_OK(run_with(rig_kernel(&r, "copy_words"), BH_GRID(1, 1),
                      BH_ARGS(BH_IN(x), BH_OUT(copy), 1u), &on_b));
    CHECK_STATUS(bh_wait(held, 0), BH_E_BUSY);
    flag_raise(flag);
    CHECK_OK(bh_wait(held, LONG_NS));
    CHECK_OK(bh_device_close(r.device));
}

TEST(views_apart_from_each_other_do_not_order_lanes) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device), b = open_lane(r.device);
    bh_launch_options on_a = on_lane(a, 0), on_b = on_lane(b, 0);
    bh_buffer x = words_filled(r.device, 1024, 0), low, high, flag = flag_alloc(r.device);
    REQUIRE_OK(bh_buffer_view(x, 0, 0, 512, &low));
    REQUIRE_OK(bh_buffer_view(x, 0, 512, 512, &high));
    bh_ticket held = submit(rig_kernel(&r, "gate"), BH_GRID(1, 1),
                            BH_ARGS(address_of(flag), BH_INOUT(low), 1u), &on_a);
    flag_wait_begun(flag);
    CHECK_OK(run_with(rig_kernel(&r, "add_one"), BH_GRID(512, 64), BH_ARGS(BH_INOUT(high), 512u),
                      &on_b));
    CHECK_STATUS(bh_wait(held, 0), BH_E_BUSY);
    flag_raise(flag);
    CHECK_OK(bh_wait(held, LONG_NS));
    CHECK(words_are(high, 512, 1));
    CHECK_OK(bh_device_close(r.device));
}

TEST(declared_uses_order_lanes_too) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device), b = open_lane(r.device);
    bh_buffer table, x = words_filled(r.device, 1, 0), out = words_filled(r.device, 1, 0);
    uint64_t address = address_of(x);
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U64, 1, NULL, &table));
    REQUIRE_OK(bh_buffer_write(table, 0, &address, 8));
    bh_launch_options on_a = on_lane(a, 0), on_b = on_lane(b, 0);
    for (uint32_t i = 1; i <= 100; i++) {
        bh_use writes = {x, BH_ACCESS_OUT, 0}, reads = {x, BH_ACCESS_IN, 0};
        on_a.also = &writes;
        on_b.also = &reads;
        on_a.also_count = on_b.also_count = 1;
        submit(rig_kernel(&r, "scatter"), BH_GRID(1, 1), BH_ARGS(BH_IN(table), i, 1u), &on_a);
        bh_ticket t = submit(rig_kernel(&r, "gather"), BH_GRID(1, 1),
                             BH_ARGS(BH_IN(table), BH_OUT(out), 1u), &on_b);
        if (i % 10 == 0) {
            CHECK_OK(bh_wait(t, LONG_NS));
            CHECK_EQ(word_read(out, 0), i);
        }
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(four_lanes_with_random_dependencies_match_a_sequential_model) {
    enum { LANES = 4, BUFFERS = 6, WORDS = 64, STEPS = 1500 };
    rig r = rig_open(0);
    bh_lane lanes[LANES];
    bh_buffer buffers[BUFFERS];
    uint32_t model[BUFFERS][WORDS];
    bh_kernel mix = rig_kernel(&r, "mix"), churn = rig_kernel(&r, "churn");
    rng random = rng_seeded(21);
    for (int i = 0; i < LANES; i++) lanes[i] = open_lane(r.device);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        buffers[i] = words_counting(r.device, WORDS, i * 100);
        for (uint32_t j = 0; j < WORDS; j++) model[i][j] = i * 100 + j;
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        bh_launch_options there = on_lane(lanes[rng_below(&random, LANES)], 0);
        uint32_t to = rng_below(&random, BUFFERS), a = rng_below(&random, BUFFERS);
        uint32_t b = rng_below(&random, BUFFERS);
        if (rng_below(&random, 3) == 0 || a == to || b == to) {
            submit(churn, BH_GRID(WORDS, 64), BH_ARGS(BH_INOUT(buffers[to]), step, (uint32_t)WORDS),
                   &there);
            for (int j = 0; j < WORDS; j++) model[to][j] = churn_word(model[to][j], step);
        } else {
            submit(mix, BH_GRID(WORDS, 64),
                   BH_ARGS(BH_OUT(buffers[to]), BH_IN(buffers[a]), BH_IN(buffers[b]), step,
                           (uint32_t)WORDS),
                   &there);
            for (int j = 0; j < WORDS; j++) model[to][j] = mix_word(model[a][j], model[b][j], step);
        }
    }
    for (int i = 0; i < BUFFERS; i++) {
        uint32_t got[WORDS];
        REQUIRE_OK(bh_buffer_read(buffers[i], 0, got, sizeof got));
        CHECK_MEM_EQ(got, model[i], sizeof got);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(two_lanes_play_ping_pong) {
    rig r = rig_open(0);
    bh_lane lanes[2] = {open_lane(r.device), open_lane(r.device)};
    bh_buffer ball = words_filled(r.device, 1, 3);
    bh_kernel churn = rig_kernel(&r, "churn");
    uint32_t expected = 3;
    for (uint32_t i = 0; i < 600; i++) {
        bh_launch_options there = on_lane(lanes[i % 2], 0);
        submit(churn, BH_GRID(1, 1), BH_ARGS(BH_INOUT(ball), i, 1u), &there);
        expected = churn_word(expected, i);
    }
    CHECK_EQ(word_read(ball, 0), expected);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_full_queue_is_busy_when_asked_not_to_block) {
    bh_device_options options = device_options(0);
    options.queue_length = 64;
    rig r = rig_open_with(&options);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, BH_SUBMIT_NO_BLOCK);
    bh_buffer x = words_filled(r.device, 1, 0);
    bh_kernel add_one = rig_kernel(&r, "add_one");
    gate g = gate_close(&r, lane, 0);
    uint32_t accepted = 0;
    bh_status status = BH_OK;
    bh_ticket ticket = {0, 0}, last = {0, 0};
    while (accepted < 10000) {
        status = bh_launch(add_one, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &there, &ticket);
        if (status != BH_OK) break;
        last = ticket;
        accepted++;
    }
    CHECK_REFUSED(status, BH_E_BUSY);
    CHECK_EQ(ticket.sequence, last.sequence);
    CHECK(accepted > 0 && accepted < 10000);
    gate_open(&g);
    CHECK_OK(bh_wait(last, LONG_NS));
    CHECK_EQ(word_read(x, 0), accepted);
    CHECK_OK(bh_launch(add_one, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &there, &last));
    CHECK_OK(bh_wait(last, LONG_NS));
    CHECK_OK(bh_device_close(r.device));
}

struct filler {
    rig r;
    bh_lane lane;
    bh_buffer x;
    _Atomic(uint32_t) submitted;
};

static void *fill_queue(void *context) {
    struct filler *f = context;
    bh_launch_options there = on_lane(f->lane, 0);
    for (int i = 0; i < 300; i++) {
        submit(rig_kernel(&f->r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(f->x), 1u), &there);
        atomic_fetch_add(&f->submitted, 1);
    }
    return NULL;
}

TEST(a_full_queue_blocks_until_there_is_room) {
    bh_device_options options = device_options(0);
    options.queue_length = 64;
    struct filler f = {.r = rig_open_with(&options)};
    pthread_t thread;
    f.lane = open_lane(f.r.device);
    f.x = words_filled(f.r.device, 1, 0);
    gate g = gate_close(&f.r, f.lane, 0);
    REQUIRE(pthread_create(&thread, NULL, fill_queue, &f) == 0);
    uint32_t before = 0;
    for (int calm = 0; calm < 50; calm++) { /* until it has made no progress for 50 ms */
        uint32_t now = atomic_load(&f.submitted);
        if (now != before) calm = 0;
        before = now;
        sleep_ms(1);
    }
    if (is_cpu(f.r.device)) CHECK_LT(before, 300);
    /* others are not held up by it */
    check_device_works(&f.r);
    gate_open(&g);
    pthread_join(thread, NULL);
    CHECK_EQ(word_read(f.x, 0), 300);
    CHECK_OK(bh_device_close(f.r.device));
}

TEST(queues_of_every_length_work) {
    for (uint32_t length = 64; length <= 4096; length *= 8) {
        bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
        options.queue_length = length;
        rig r = rig_open_with(&options);
        bh_buffer x = words_filled(r.device, 1, 0);
        for (int i = 0; i < 700; i++)
            submit(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), NULL);
        CHECK_EQ(word_read(x, 0), 700);
        CHECK_OK(bh_device_close(r.device));
    }
}

TEST(a_closed_lane_still_runs_what_it_was_given) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_buffer x = words_filled(r.device, 1, 0);
    gate g = gate_close(&r, lane, 0);
    bh_ticket last = {0, 0};
    for (int i = 0; i < 20; i++)
        last = submit(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &there);
    CHECK_OK(bh_lane_release(lane));
    CHECK_REFUSED(bh_lane_release(lane), BH_E_INVALID);
    CHECK_REFUSED(
        bh_launch(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &there, NULL),
        BH_E_INVALID);
    CHECK_STATUS(bh_wait(last, 0), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_wait(last, LONG_NS));
    CHECK_EQ(word_read(x, 0), 20);
    CHECK_OK(bh_device_close(r.device));
}

TEST(lane_sync_waits_for_its_lane_alone) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device), b = open_lane(r.device);
    gate g = gate_close(&r, a, 0);
    CHECK_OK(bh_lane_sync(b, LONG_NS));
    CHECK_REFUSED(bh_lane_sync(a, 20 * MS), BH_E_TIMEOUT);
    CHECK_REFUSED(bh_lane_sync(a, 0), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_lane_sync(a, BH_FOREVER));
    CHECK_OK(bh_wait(g.ticket, 0));
    CHECK_OK(bh_device_close(r.device));
}

TEST(lanes_open_and_close_hundreds_of_times) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 1, 0);
    for (int i = 0; i < 300; i++) {
        bh_lane lane = open_lane(r.device);
        bh_launch_options there = on_lane(lane, 0);
        submit(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &there);
        REQUIRE_OK(bh_lane_release(lane));
    }
    CHECK_EQ(word_read(x, 0), 300);
    CHECK_OK(bh_device_close(r.device));
}

TEST(as_many_lanes_as_the_device_says_and_no_more) {
    rig r = rig_open(0);
    uint32_t free_lanes = limits_of(r.device).max_lanes - health_of(r.device).lanes;
    bh_lane lanes[256], extra = {0};
    if (free_lanes > 200) SKIP("%u lanes are too many to try", free_lanes);
    bh_buffer x = words_filled(r.device, 256, 0);
    for (uint32_t i = 0; i < free_lanes; i++) {
        bh_buffer view;
        REQUIRE_OK(bh_lane_open(r.device, NULL, &lanes[i]));
        REQUIRE_OK(bh_buffer_view(x, 0, i, 1, &view));
        bh_launch_options there = on_lane(lanes[i], 0);
        submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(view), i + 1), &there);
    }
    CHECK_REFUSED(bh_lane_open(r.device, NULL, &extra), BH_E_BUSY);
    for (uint32_t i = 0; i < free_lanes; i++) CHECK_EQ(word_read(x, i), i + 1);
    CHECK_OK(bh_lane_release(lanes[0]));
    CHECK_OK(bh_lane_open(r.device, NULL, &extra));
    CHECK_OK(bh_device_close(r.device));
}

TEST(lanes_of_every_priority_work) {
    rig r = rig_open(0);
    bh_device_limits limits = limits_of(r.device);
    bh_buffer x = words_filled(r.device, 64, 0);
    uint32_t count = 0;
    for (int32_t p = limits.priority_lowest - 1; p <= limits.priority_highest + 1; p++, count++) {
        bh_lane_options options = BH_INIT(options);
        bh_lane lane;
        options.priority = p;
        REQUIRE_OK(bh_lane_open(r.device, &options, &lane));
        bh_launch_options there = on_lane(lane, 0);
        CHECK_OK(run_with(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u),
                          &there));
    }
    CHECK(words_are(x, 64, count));
    CHECK_OK(bh_device_close(r.device));
}
