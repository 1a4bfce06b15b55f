/* SPDX-License-Identifier: Apache-2.0 */
/* Counters go on through takeovers: they neither go down nor count anything twice. */
#include <signal.h>

#include "../support/support.h"

typedef struct both {
    bh_lane_counters lanes;
    bh_device_counters device;
} both;

static both read_both(bh_device device) {
    return (both){lanes_of(device), counters_of(device)};
}

/* Once all requests so far are counted: a worker counts after it has let them be seen done. */
static both settled(bh_device device) {
    for (uint64_t until = now_ns() + LONG_NS; now_ns() < until; sleep_ms(1)) {
        both now = read_both(device);
        if (now.lanes.running.count >= now.lanes.requests) return now;
    }
    FAIL("requests that are done were never counted");
    return read_both(device);
}

static void check_not_less(const bh_histogram *before, const bh_histogram *after) {
    CHECK_GE(after->count, before->count);
    CHECK_GE(after->sum_ns, before->sum_ns);
    for (int i = 0; i < BH_HISTOGRAM_BUCKETS; i++) CHECK_GE(after->buckets[i], before->buckets[i]);
}

static void check_no_less(const both *before_both, const both *after_both) {
    const bh_lane_counters *before = &before_both->lanes, *after = &after_both->lanes;
    CHECK_GE(after->requests, before->requests);
    CHECK_GE(after->launches, before->launches);
    CHECK_GE(after->failed, before->failed);
    CHECK_GE(after->trains, before->trains);
    CHECK_GE(after->train_launches, before->train_launches);
    CHECK_GE(after->queue_depth_max, before->queue_depth_max);
    CHECK_GE(after->lane_waits, before->lane_waits);
    CHECK_GE(after->host_waits, before->host_waits);
    check_not_less(&before->queued, &after->queued);
    check_not_less(&before->waiting, &after->waiting);
    check_not_less(&before->running, &after->running);
    CHECK_GE(after_both->device.losses, before_both->device.losses);
    CHECK_GE(after_both->device.restarts, before_both->device.restarts);
    check_not_less(&before_both->device.takeover, &after_both->device.takeover);
}

TEST_TIMEOUT(totals_go_on_through_kills, 60) {
    enum { ROUNDS = 4, EACH = 60 };
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lanes[2] = {open_lane(r.device), open_lane(r.device)};
    bh_buffer x[2] = {words_filled(r.device, 64, 0), words_filled(r.device, 64, 0)};
    both start = settled(r.device), last = start;
    uint64_t done = 0, failed = 0;
    for (int round = 0; round < ROUNDS; round++) {
        bh_ticket tickets[2 * EACH];
        for (int i = 0; i < 2 * EACH; i++) {
            bh_launch_options there = on_lane(lanes[i % 2], BH_SUBMIT_IDEMPOTENT);
            tickets[i] = submit(rig_kernel(&r, "iota"), BH_GRID(64, 64),
                                BH_ARGS(BH_OUT(x[i % 2]), (uint32_t)i, 64u), &there);
            if (i == EACH) {
                both now = read_both(r.device);
                check_no_less(&last, &now);
                last = now;
                REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
            }
        }
        for (int i = 0; i < 2 * EACH; i++) {
            bool good = bh_wait(tickets[i], LONG_NS) == BH_OK;
            done += good;
            failed += !good;
        }
        wait_generation(r.device, (uint64_t)round + 2);
        both now = read_both(r.device);
        check_no_less(&last, &now);
        last = now;
        CHECK_EQ(now.lanes.requests - start.lanes.requests, (uint64_t)(round + 1) * 2 * EACH);
        CHECK_LE(now.lanes.running.count - start.lanes.running.count, done);
        CHECK_EQ(now.lanes.failed - start.lanes.failed, failed);
        CHECK_EQ(now.device.losses, (uint64_t)round + 1);
        CHECK_EQ(now.device.restarts, (uint64_t)round + 1);
        CHECK_EQ(now.device.takeover.count, (uint64_t)round + 1);
        wait_standby(r.device);
    }
    /* What a lost worker had done and not yet counted is missing, and no more than that: each kill
     * costs what can be in flight on two lanes. */
    CHECK_GE(last.lanes.running.count - start.lanes.running.count + ROUNDS * 2 * 128, done);
    CHECK_EQ(last.device.faults, 0);
    CHECK_EQ(last.lanes.queue_depth, 0);
    CHECK_GE(last.device.standby_starts, ROUNDS);
    CHECK_OK(bh_device_close(r.device));
}

TEST(faults_deadlines_quarantines_and_stale_refusals_are_counted) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 2;
    rig r = rig_open_with(&options);
    bh_buffer x = words_filled(r.device, 1, 0);
    wait_standby(r.device);
    CHECK_STATUS(run_now(rig_kernel(&r, "write_then_poke"), BH_GRID(1, 1),
                         BH_ARGS(BH_INOUT(x), 1u, NOWHERE)),
                 BH_E_FAULT);
    wait_generation(r.device, 2);
    CHECK_EQ(counters_of(r.device).faults, 1);
    CHECK_EQ(counters_of(r.device).standby_takeovers, 1);
    CHECK_STATUS(run_now(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u)),
                 BH_E_STALE);
    CHECK_EQ(counters_of(r.device).stale_refusals, 1);
    CHECK_EQ(counters_of(r.device).quarantines, 0);
    REQUIRE_OK(bh_buffer_accept(x));
    CHECK_STATUS(run_now(rig_kernel(&r, "write_then_poke"), BH_GRID(1, 1),
                         BH_ARGS(BH_INOUT(x), 1u, NOWHERE)),
                 BH_E_FAULT);
    wait_generation(r.device, 3);
    CHECK_EQ(counters_of(r.device).quarantines, 1);
    REQUIRE_OK(bh_buffer_accept(x));
    bh_launch_options hurry = BH_INIT(hurry);
    hurry.deadline_ns = 20 * MS;
    bh_buffer flag = flag_alloc(r.device);
    CHECK_STATUS(run_with(rig_kernel(&r, "endless"), BH_GRID(1, 1),
                          BH_ARGS(address_of(flag), BH_INOUT(x)), &hurry),
                 BH_E_DEADLINE);
    wait_generation(r.device, 4);
    bh_device_counters now = counters_of(r.device);
    CHECK_EQ(now.deadlines, 1);
    CHECK_EQ(now.faults, 2);
    CHECK_EQ(now.losses, 3);
    CHECK_EQ(now.restarts, 3);
    CHECK_EQ(now.takeover.count, 3);
    CHECK_GT(now.takeover.sum_ns, 0);
    CHECK_OK(bh_device_close(r.device));
}
