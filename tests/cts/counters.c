/* SPDX-License-Identifier: Apache-2.0 */
/* Counters: what is submitted is what is counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/support.h"

static bh_lane_counters counts_of(bh_device device, bh_lane lane) {
    bh_lane_counters counts = BH_INIT(counts);
    REQUIRE_OK(bh_lane_get_counters(device, lane, &counts));
    return counts;
}

/* The worker's counts may lag behind the tickets. */
static bh_lane_counters counts_when(bh_device device, bh_lane lane, uint64_t completed) {
    uint64_t until = now_ns() + LONG_NS;
    for (;;) {
        bh_lane_counters counts = counts_of(device, lane);
        if (counts.running.count >= completed || now_ns() > until) return counts;
        sleep_ms(1);
    }
}

static uint64_t bucket_sum(const bh_histogram *of) {
    uint64_t sum = 0;
    for (int i = 0; i < BH_HISTOGRAM_BUCKETS; i++) sum += of->buckets[i];
    return sum;
}

TEST(what_is_submitted_is_counted_once) {
    rig r = rig_open(0);
    bh_buffer x = words_alloc(r.device, 1000), y = words_alloc(r.device, 1000);
    uint32_t data[1000] = {0};
    bh_lane_counters before = lanes_of(r.device);
    REQUIRE_OK(bh_buffer_write(x, 0, data, sizeof data));
    REQUIRE_OK(bh_buffer_copy(y, 0, x, 0, 400));
    REQUIRE_OK(bh_buffer_fill(y, 400, 600, data, 4));
    bh_launch_options options = BH_INIT(options);
    options.elements = 900;
    REQUIRE_OK(run_with(rig_kernel(&r, "iota"), BH_GRID(1000, 96), BH_ARGS(BH_OUT(x), 1u, 1000u),
                        &options));
    REQUIRE_OK(
        run_now(rig_kernel(&r, "iota"), BH_SHAPE(2, 1, 1, 10, 3, 1), BH_ARGS(BH_OUT(x), 1u, 0u)));
    REQUIRE_OK(bh_buffer_read(x, 0, data, 800));
    bh_lane_counters after = lanes_of(r.device);
    CHECK_EQ(after.requests - before.requests, 6);
    CHECK_EQ(after.launches - before.launches, 2);
    CHECK_EQ(after.failed - before.failed, 0);
    CHECK_EQ(after.bytes_to_device - before.bytes_to_device, sizeof data);
    CHECK_EQ(after.bytes_to_host - before.bytes_to_host, 800);
    CHECK_EQ(after.bytes_within - before.bytes_within, 1000);
    CHECK_EQ(after.threads - before.threads, 11 * 96 + 60);
    CHECK_EQ(after.elements - before.elements, 900 + 60);
    CHECK_EQ(after.thread_slots - before.thread_slots, 11 * 96 + 64);
    CHECK_EQ(after.thread_slots_wasted - before.thread_slots_wasted, 11 * 96 - 900 + 4);
    CHECK_EQ(after.queue_depth, 0);
    CHECK_EQ(after.index, UINT32_MAX);
    CHECK_EQ(counters_of(r.device).module_loads, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(times_are_counted_for_each_request_and_fit_the_clock) {
    enum { COUNT = 200 };
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_buffer x = words_alloc(r.device, 1);
    uint64_t began = now_ns();
    for (int i = 0; i < COUNT; i++)
        submit(rig_kernel(&r, "spin"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u, 2000u), &there);
    REQUIRE_OK(bh_lane_sync(lane, LONG_NS));
    bh_lane_counters counts = counts_when(r.device, lane, COUNT);
    uint64_t took = now_ns() - began;
    CHECK_EQ(counts.requests, COUNT);
    CHECK_EQ(counts.running.count, COUNT);
    CHECK_GE(counts.queued.count, COUNT / 32);
    CHECK_LE(counts.queued.count, COUNT);
    CHECK_EQ(counts.waiting.count, COUNT);
    CHECK_EQ(bucket_sum(&counts.running), COUNT);
    CHECK_EQ(bucket_sum(&counts.queued), counts.queued.count);
    CHECK_GT(counts.running.sum_ns, 0);
    /* One after the other on a lane: device times do not overlap. */
    CHECK_LE(counts.running.sum_ns, took + took / 16);
    CHECK_LE(counts.queued.sum_ns, (took + took / 16) * COUNT);
    CHECK_LE(counts.train_launches, COUNT);
    CHECK_LE(counts.queue_depth_max, 1024);
    CHECK_GE(counts.queue_depth_max, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_long_kernel_shows_as_running_and_what_is_behind_it_as_queued_or_waiting) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device), b = open_lane(r.device);
    bh_launch_options on_b = on_lane(b, 0);
    bh_buffer copy = words_filled(r.device, 1, 0);
    gate g = gate_close(&r, a, 0);
    submit(rig_kernel(&r, "copy_words"), BH_GRID(1, 1), BH_ARGS(BH_IN(g.mark), BH_OUT(copy), 1u),
           &on_b);
    CHECK_GE(counts_of(r.device, a).queue_depth, 1);
    sleep_ms(50);
    gate_open(&g);
    REQUIRE_OK(bh_lane_sync(b, LONG_NS));
    bh_lane_counters of_a = counts_when(r.device, a, 1), of_b = counts_when(r.device, b, 1);
    CHECK_EQ(of_a.running.count, 1);
    CHECK_GE(of_a.running.sum_ns, 50 * MS);
    CHECK_EQ(of_b.running.count, 1);
    CHECK_GE(of_b.queued.sum_ns + of_b.waiting.sum_ns + of_b.running.sum_ns, 50 * MS);
    if (!has_queues(r.device)) { /* it did not run before the gate was opened */
        CHECK_GE(of_b.queued.sum_ns + of_b.waiting.sum_ns, 50 * MS);
        CHECK(of_b.waiting.sum_ns > 0);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_lane_opened_again_counts_from_zero_and_the_device_goes_on) {
    rig r = rig_open(0);
    bh_buffer x = words_alloc(r.device, 1);
    uint64_t launches = lanes_of(r.device).launches;
    uint32_t index = 0;
    for (int i = 0; i < 3; i++) {
        bh_lane lane = open_lane(r.device);
        bh_launch_options there = on_lane(lane, 0);
        CHECK_EQ(counts_of(r.device, lane).requests, 0);
        CHECK_EQ(counts_of(r.device, lane).launches, 0);
        for (int k = 0; k < 5; k++)
            submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u), &there);
        REQUIRE_OK(bh_lane_sync(lane, LONG_NS));
        bh_lane_counters counts = counts_when(r.device, lane, 5);
        CHECK_EQ(counts.launches, 5);
        CHECK_EQ(counts.running.count, 5);
        if (i) CHECK_EQ(counts.index, index);
        index = counts.index;
        REQUIRE_OK(bh_lane_release(lane));
    }
    CHECK_EQ(lanes_of(r.device).launches - launches, 15);
    bh_lane own = {0};
    CHECK_EQ(counts_of(r.device, own).index, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(memory_from_chunks_that_are_there_is_a_hit) {
    rig r = rig_open(0);
    bh_device_counters before = counters_of(r.device);
    bh_buffer x = words_alloc(r.device, 1000), y = words_alloc(r.device, 1000);
    bh_device_counters after = counters_of(r.device);
    CHECK_EQ(after.allocations - before.allocations, 2);
    CHECK_EQ(after.pool_hits - before.pool_hits + after.chunks_made - before.chunks_made, 2);
    CHECK_GE(after.chunks_made, 1);
    REQUIRE_OK(bh_buffer_release(x));
    REQUIRE_OK(bh_buffer_release(y));
    words_alloc(r.device, 1000);
    CHECK_EQ(counters_of(r.device).pool_hits - after.pool_hits, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(failed_tickets_and_refused_modules_are_counted) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, 0);
    bh_launch_options there = on_lane(lane, 0);
    bh_buffer x = words_alloc(r.device, 1);
    /* Behind more than can be queued ahead, so that it can be cancelled. */
    bh_ticket last = {0, 0};
    for (int i = 0; i < 300; i++)
        last = submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u), &there);
    REQUIRE_OK(bh_cancel(last));
    gate_open(&g);
    REQUIRE_OK(bh_lane_sync(lane, LONG_NS));
    bh_lane_counters counts = counts_when(r.device, lane, 300);
    CHECK_EQ(counts.failed, 1);
    CHECK_EQ(counts.requests, 301);
    CHECK_EQ(counts.running.count, 300);
    CHECK_GE(counts.queue_depth_max, 100);
    bh_module none;
    CHECK_REFUSED_ANY(bh_module_load(r.device, "nonsense", 8, &none));
    CHECK_EQ(counters_of(r.device).module_load_failures, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(all_lanes_are_the_sum_of_each) {
    rig r = rig_open(0);
    bh_lane lanes[3] = {{0}, open_lane(r.device), open_lane(r.device)};
    bh_buffer x[3];
    for (uint32_t i = 0; i < 3; i++) x[i] = words_alloc(r.device, 64);
    for (uint32_t i = 0; i < 3; i++) {
        bh_launch_options there = on_lane(lanes[i], 0);
        for (uint32_t k = 0; k <= i; k++)
            REQUIRE_OK(bh_wait(submit(rig_kernel(&r, "iota"), BH_GRID(64, 64),
                                      BH_ARGS(BH_OUT(x[i]), 1u, 64u), &there),
                               LONG_NS));
    }
    bh_lane_counters sum = lanes_of(r.device), each[3];
    uint64_t launches = 0, threads = 0;
    for (uint32_t i = 0; i < 3; i++) {
        each[i] = counts_of(r.device, lanes[i]);
        CHECK_EQ(each[i].index, i);
        CHECK_EQ(each[i].launches, i + 1);
        launches += each[i].launches;
        threads += each[i].threads;
    }
    CHECK_EQ(sum.launches, launches);
    CHECK_EQ(sum.threads, threads);
    CHECK_EQ(counters_of(r.device).lanes, 3);
    CHECK_OK(bh_lane_release(lanes[2]));
    CHECK_EQ(lanes_of(r.device).launches, launches); /* of closed lanes too */
    CHECK_OK(bh_device_close(r.device));
}

TEST(waits_for_lanes_and_of_the_program_are_counted) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device), b = open_lane(r.device);
    bh_launch_options on_b = on_lane(b, 0);
    bh_buffer y = words_filled(r.device, 1, 0);
    gate g = gate_close(&r, a, 0);
    bh_launch_options on_a = on_lane(a, 0);
    submit(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(y), 1u), &on_a);
    bh_lane_counters of_a = counts_of(r.device, a), of_b = counts_of(r.device, b);
    CHECK_EQ(of_b.lane_waits, 0);
    /* The first reads what lane a has yet to write; the second waits for nothing. */
    bh_ticket behind =
        submit(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(y), 1u), &on_b);
    bh_buffer z = words_alloc(r.device, 1);
    submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(z), 1u), &on_b);
    CHECK_EQ(counts_of(r.device, b).lane_waits, 1);
    CHECK_EQ(counts_of(r.device, a).lane_waits, of_a.lane_waits);
    CHECK_STATUS(bh_wait(behind, 0), BH_E_BUSY); /* asks, does not wait */
    CHECK_EQ(counts_of(r.device, b).host_waits, of_b.host_waits);
    CHECK_STATUS(bh_wait(behind, 5 * MS), BH_E_TIMEOUT);
    CHECK_EQ(counts_of(r.device, b).host_waits, of_b.host_waits + 1);
    gate_open(&g);
    REQUIRE_OK(bh_wait(behind, LONG_NS));
    uint64_t so_far = counts_of(r.device, b).host_waits;
    CHECK_GE(so_far, of_b.host_waits + 1);
    REQUIRE_OK(bh_wait(behind, LONG_NS)); /* done: it does not wait */
    CHECK_EQ(counts_of(r.device, b).host_waits, so_far);
    CHECK_EQ(lanes_of(r.device).lane_waits, of_a.lane_waits + 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(wrong_arguments_are_refused) {
    rig r = rig_open(0);
    bh_device_counters counters = {0};
    bh_lane_counters counts = {0};
    bh_lane own = {0}, forged = {0x1234};
    CHECK_REFUSED(bh_device_get_counters(r.device, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_device_get_counters(r.device, &counters), BH_E_INVALID);
    CHECK_REFUSED(bh_lane_get_counters(r.device, own, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_lane_get_counters(r.device, own, &counts), BH_E_INVALID);
    counts.size = sizeof counts;
    CHECK_REFUSED(bh_lane_get_counters(r.device, forged, &counts), BH_E_INVALID);
    /* A program built with a shorter struct gets that much of it. */
    bh_device_counters shorter = {.size = 16, .pool_hits = 77};
    REQUIRE_OK(bh_device_get_counters(r.device, &shorter));
    CHECK_EQ(shorter.pool_hits, 77);
    CHECK_OK(bh_device_close(r.device));
    counters.size = sizeof counters;
    CHECK_REFUSED(bh_device_get_counters(r.device, &counters), BH_E_INVALID);
}
