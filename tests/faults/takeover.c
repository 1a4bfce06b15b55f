/* SPDX-License-Identifier: Apache-2.0 */
/* The next worker takes over: queued work runs in order, buffers stay, standbys come and go. */
#include <signal.h>

#include "../support/support.h"

enum { N = 128 };

TEST(queued_work_runs_on_the_next_worker_in_order) {
    enum { CHAIN = BEYOND_QUEUES, QUEUED = CHAIN + 50 };
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0), again = on_lane(lane, BH_SUBMIT_IDEMPOTENT);
    bh_buffer flag = flag_alloc(r.device), broken = words_filled(r.device, 1, 0);
    bh_buffer x = words_filled(r.device, N, 0);
    bh_ticket tickets[QUEUED];
    bh_kernel churn = rig_kernel(&r, "churn");
    submit(rig_kernel(&r, "wait_then_poke"), BH_GRID(1, 1),
           BH_ARGS(address_of(flag), BH_INOUT(broken), NOWHERE), &there);
    flag_wait_begun(flag);
    /* Whatever has been begun ahead of time may be repeated; the chain itself comes after it. */
    uint32_t start = 1;
    for (int i = 0; i < CHAIN; i++)
        tickets[i] = submit(rig_kernel(&r, "iota"), BH_GRID(N, 64),
                            BH_ARGS(BH_OUT(x), start, (uint32_t)N), &again);
    for (uint32_t i = CHAIN; i < QUEUED; i++)
        tickets[i] = submit(churn, BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), i, (uint32_t)N), &there);
    flag_raise(flag);
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    bool all = true;
    for (int i = 0; i < QUEUED; i++) {
        bh_status status = bh_wait(tickets[i], 0);
        all = all && status == BH_OK;
        CHECK(status == BH_OK || status == BH_E_LOST || status == BH_E_STALE);
        if (is_cpu(r.device)) CHECK_OK(status);
    }
    if (all) {
        uint32_t got[N];
        REQUIRE_OK(bh_buffer_read(x, 0, got, sizeof got));
        for (uint32_t k = 0; k < N; k++) {
            uint32_t expected = start + k;
            for (uint32_t i = CHAIN; i < QUEUED; i++) expected = churn_word(expected, i);
            CHECK_EQ(got[k], expected);
        }
    } else {
        CHECK(is_suspect(x));
    }
    CHECK_EQ(health_of(r.device).generation, 2);
    CHECK_OK(bh_device_close(r.device));
}

TEST(work_submitted_after_a_loss_and_before_anyone_asks_runs) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, N, 0);
    bh_launch_options again = BH_INIT(again);
    again.flags = BH_SUBMIT_IDEMPOTENT;
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    bh_ticket t =
        submit(rig_kernel(&r, "iota"), BH_GRID(N, 64), BH_ARGS(BH_OUT(x), 4u, (uint32_t)N), &again);
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK(words_count(x, N, 4));
    CHECK_OK(bh_device_close(r.device));
}

TEST(modules_lanes_and_kernels_are_in_place_in_the_next_worker) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lanes[3] = {open_lane(r.device), open_lane(r.device), open_lane(r.device)};
    bh_buffer x = words_filled(r.device, N, 0);
    void *host = NULL;
    REQUIRE_OK(bh_host_alloc(r.device, N * 4, &host));
    for (uint32_t round = 1; round <= 4; round++) {
        bh_module more = load_module(r.device, ptx_basic);
        bh_lane lane = open_lane(r.device);
        bh_launch_options there = on_lane(lanes[round % 3], 0), newer = on_lane(lane, 0);
        bh_ticket t;
        kill_worker(r.device, SIGKILL);
        CHECK_OK(run_with(rig_kernel(&r, "add_one"), BH_GRID(N, 64),
                          BH_ARGS(BH_INOUT(x), (uint32_t)N), &there));
        CHECK_OK(run_with(get_kernel(more, "add_one"), BH_GRID(N, 64),
                          BH_ARGS(BH_INOUT(x), (uint32_t)N), &newer));
        CHECK_OK(bh_submit_read(lane, x, 0, host, N * 4, &t));
        CHECK_OK(bh_wait(t, LONG_NS));
        CHECK_EQ(((uint32_t *)host)[N - 1], round * 2);
        CHECK_OK(bh_module_release(more));
        CHECK_OK(bh_lane_release(lane));
    }
    CHECK(words_are(x, N, 8));
    CHECK_OK(bh_device_close(r.device));
}

TEST(modules_loaded_before_and_after_a_loss_work_side_by_side) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    kill_worker(r.device, SIGKILL);
    bh_module more = load_module(r.device, ptx_basic);
    bh_buffer big = words_counting(r.device, 1 << 20, 3); /* a chunk the new worker made */
    kill_worker(r.device, SIGKILL);
    rig second = {r.device, more};
    check_device_works(&second);
    check_device_works(&r);
    CHECK(words_count(big, 1 << 20, 3));
    CHECK_OK(bh_device_close(r.device));
}

TEST(pointers_stored_inside_buffers_stay_good) {
    rig r = rig_open(0);
    bh_buffer table, x = words_counting(r.device, N, 40), out = words_filled(r.device, N, 0);
    uint64_t addresses[N];
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U64, N, NULL, &table));
    for (uint64_t i = 0; i < N; i++) addresses[i] = address_of(x) + 4 * (N - 1 - i);
    REQUIRE_OK(bh_buffer_write(table, 0, addresses, sizeof addresses));
    kill_worker(r.device, SIGKILL);
    bh_use use = {x, BH_ACCESS_IN, 0};
    bh_launch_options options = BH_INIT(options);
    options.also = &use;
    options.also_count = 1;
    CHECK_OK(run_with(rig_kernel(&r, "gather"), BH_GRID(N, 64),
                      BH_ARGS(BH_IN(table), BH_OUT(out), (uint32_t)N), &options));
    for (uint32_t i = 0; i < N; i += 9) CHECK_EQ(word_read(out, i), 40 + N - 1 - i);
    CHECK_OK(bh_device_close(r.device));
}

TEST(many_intact_buffers_are_byte_for_byte_the_same) {
    enum { BUFFERS = 40 };
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer buffers[BUFFERS];
    uint64_t addresses[BUFFERS];
    uint32_t counts[BUFFERS];
    for (uint32_t i = 0; i < BUFFERS; i++) {
        counts[i] = 1 + i * i * 37;
        buffers[i] = words_counting(r.device, counts[i], i);
        addresses[i] = address_of(buffers[i]);
    }
    for (int round = 0; round < 3; round++) {
        CHECK_STATUS(run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
        CHECK_OK(bh_kernel_pardon(rig_kernel(&r, "trap_now")));
        for (uint32_t i = 0; i < BUFFERS; i++) {
            CHECK(words_count(buffers[i], counts[i], i));
            CHECK_EQ(address_of(buffers[i]), addresses[i]);
        }
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(repeatable_work_in_flight_is_sent_again) {
    rig r = rig_open(0);
    loss_log log;
    loss_log_start(r.device, &log);
    gate g = gate_close(&r, open_lane(r.device), BH_SUBMIT_IDEMPOTENT);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(bh_wait(g.ticket, 30 * MS), BH_E_TIMEOUT); /* it waits at the gate again */
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    CHECK_EQ(word_read(g.mark, 0), g.value);
    CHECK(!is_suspect(g.mark));
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(log.losses[0].resent, 1);
    CHECK_EQ(log.losses[0].lost, 0);
    CHECK_EQ(log.losses[0].suspect_buffers, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(repeatable_work_that_writes_in_place_is_not_sent_again) {
    rig r = rig_open(0);
    bh_launch_options again = on_lane(open_lane(r.device), BH_SUBMIT_IDEMPOTENT);
    bh_buffer flag = flag_alloc(r.device), x = words_filled(r.device, 1, 0);
    bh_ticket t = submit(rig_kernel(&r, "gate"), BH_GRID(1, 1),
                         BH_ARGS(address_of(flag), BH_INOUT(x), 1u), &again);
    flag_wait_begun(flag);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(bh_wait(t, LONG_NS), BH_E_LOST);
    CHECK(is_suspect(x));
    CHECK_OK(bh_device_close(r.device));
}

TEST(repeatable_work_survives_loss_after_loss) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    gate g = gate_close(&r, open_lane(r.device), BH_SUBMIT_IDEMPOTENT);
    for (int i = 0; i < 4; i++) kill_worker(r.device, SIGKILL);
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    CHECK_EQ(word_read(g.mark, 0), g.value);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_device_without_standby_starts_a_worker_cold) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    loss_log log;
    bh_buffer x = words_counting(r.device, N, 6);
    loss_log_start(r.device, &log);
    CHECK_STATUS(run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    CHECK(words_count(x, N, 6));
    check_device_works(&r);
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(log.losses[0].from_standby, 0);
    CHECK_EQ(log.losses[0].stopped, 0);
    kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    CHECK_EQ(health_of(r.device).standby_pids[0], 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_standby_that_dies_is_replaced_quietly) {
    rig r = rig_open(0);
    loss_log log;
    loss_log_start(r.device, &log);
    for (int i = 0; i < 2; i++) {
        wait_standby(r.device);
        bh_health before = health_of(r.device);
        REQUIRE(kill(before.standby_pids[0], SIGKILL) == 0);
        REQUIRE(wait_process_gone(before.standby_pids[0], 5000));
        uint64_t limit = now_ns() + LONG_NS;
        bh_health now = health_of(r.device);
        while ((!now.standbys_ready || now.standby_pids[0] == before.standby_pids[0]) &&
               now_ns() < limit) {
            sleep_ms(2);
            now = health_of(r.device);
        }
        CHECK_EQ(now.standbys_ready, 1);
        CHECK_NE(now.standby_pids[0], before.standby_pids[0]);
        CHECK_EQ(now.worker_pid, before.worker_pid);
        CHECK_EQ(now.generation, 1);
        CHECK_EQ(now.losses, 0);
    }
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
    CHECK_EQ(atomic_load(&log.count), 0);
}

TEST(worker_and_standby_lost_together) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer x = words_counting(r.device, 5000, 8);
    gate g = gate_close(&r, open_lane(r.device), BH_SUBMIT_IDEMPOTENT);
    wait_standby(r.device);
    bh_health before = health_of(r.device);
    REQUIRE(kill(before.standby_pids[0], SIGKILL) == 0);
    REQUIRE(kill(before.worker_pid, SIGKILL) == 0);
    wait_generation(r.device, 2);
    CHECK(words_count(x, 5000, 8));
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    check_device_works(&r);
    wait_standby(r.device);
    CHECK_OK(bh_device_close(r.device));
}

TEST(losses_faster_than_standbys_can_start) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer x = words_counting(r.device, 5000, 8);
    for (int i = 0; i < 6; i++) {
        bh_health health = health_of(r.device);
        if (health.worker_pid > 0) kill(health.worker_pid, SIGKILL);
        bh_status outcome = run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS);
        CHECK(outcome == BH_E_FAULT || outcome == BH_E_LOST);
        CHECK_OK(bh_kernel_pardon(rig_kernel(&r, "trap_now")));
    }
    CHECK(words_count(x, 5000, 8));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(losses_leave_no_process_and_no_descriptor_behind) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    pid_t pids[20];
    wait_standby(r.device);
    kill_worker(r.device, SIGKILL);
    wait_standby(r.device);
    check_device_works(&r);
    unsigned before = open_descriptors();
    for (int i = 0; i < 10; i++) {
        bh_health health = health_of(r.device);
        pids[i * 2] = health.worker_pid;
        pids[i * 2 + 1] = health.standby_pids[0];
        kill_worker(r.device, SIGKILL);
        wait_standby(r.device);
        check_device_works(&r);
    }
    bh_health now = health_of(r.device);
    for (int i = 0; i < 20; i++)
        if (pids[i] != now.worker_pid && pids[i] != now.standby_pids[0])
            CHECK(wait_process_gone(pids[i], 5000));
    CHECK_LE(open_descriptors(), before);
    CHECK_OK(bh_device_close(r.device));
    CHECK(wait_process_gone(now.worker_pid, 5000));
    CHECK(wait_process_gone(now.standby_pids[0], 5000));
}

TEST(memory_allocated_through_losses_is_given_back) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer x;
    uint64_t reserved = 0;
    for (int i = 0; i < 8; i++) {
        x = words_filled(r.device, 1 << 18, 1);
        bh_ticket t = submit(rig_kernel(&r, "write_then_poke"), BH_GRID(N, 64),
                             BH_ARGS(BH_INOUT(x), (uint32_t)N, NOWHERE), NULL);
        CHECK_OK(bh_buffer_release(x));
        CHECK_STATUS(bh_wait(t, LONG_NS), BH_E_FAULT);
        CHECK_OK(bh_kernel_pardon(rig_kernel(&r, "write_then_poke")));
        wait_standby(r.device);
        if (i == 2) reserved = memory_of(r.device).bytes_reserved;
    }
    CHECK_EQ(memory_of(r.device).bytes_buffers, 0);
    CHECK_LE(memory_of(r.device).bytes_reserved, reserved * 2);
    CHECK_OK(bh_device_close(r.device));
}

TEST(one_devices_loss_is_no_concern_of_another) {
    rig a = rig_open(0), b = rig_open(0);
    gate g = gate_close(&b, open_lane(b.device), 0);
    CHECK_STATUS(run_now(rig_kernel(&a, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    CHECK_EQ(health_of(b.device).generation, 1);
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    check_device_works(&a);
    check_device_works(&b);
    CHECK_OK(bh_device_close(a.device));
    CHECK_OK(bh_device_close(b.device));
}

static rig rig_open_standbys(uint32_t count) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.standbys = count;
    rig r = rig_open_with(&options);
    bh_health health = health_of(r.device);
    if (bh_device_wait_standby(r.device, LONG_NS) == BH_E_UNSUPPORTED)
        SKIP("no standby can be kept here: %s", health.reason);
    return r;
}

/* As many losses in a row as there are standbys find one ready, whatever was loaded since. */
TEST(several_standbys_take_over_one_after_the_other) {
    enum { STANDBYS = 4 };
    static loss_log log;
    rig r = rig_open_standbys(STANDBYS);
    loss_log_start(r.device, &log);
    bh_lane lane = open_lane(r.device);
    bh_module second = load_module(r.device, ptx_basic);
    bh_buffer x = words_filled(r.device, N, 1);
    void *host = NULL;
    REQUIRE_OK(bh_host_alloc(r.device, 4096, &host));
    wait_standby(r.device);
    bh_launch_options there = on_lane(lane, 0);
    for (uint32_t i = 0; i < STANDBYS; i++) {
        kill_worker(r.device, SIGKILL);
        CHECK_OK(run_with(get_kernel(second, "add_one"), BH_GRID(N, 64),
                          BH_ARGS(BH_INOUT(x), (uint32_t)N), &there));
        CHECK(loss_log_wait(&log, (int)i + 1));
        CHECK_EQ(log.losses[i].from_standby, 1);
    }
    CHECK(words_are(x, N, 1 + STANDBYS));
    wait_standby(r.device);
    CHECK_EQ(health_of(r.device).standbys_ready, STANDBYS);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(memory_comes_and_goes_with_several_standbys) {
    rig r = rig_open_standbys(3);
    for (int i = 0; i < 6; i++) {
        bh_buffer large;
        void *host;
        REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, 96 << 20, NULL, &large));
        REQUIRE_OK(bh_host_alloc(r.device, 1 << 20, &host));
        if (i % 2) kill_worker(r.device, SIGKILL);
        CHECK_OK(bh_host_free(r.device, host));
        CHECK_OK(bh_buffer_release(large));
        check_device_works(&r);
    }
    wait_standby(r.device);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(more_standbys_than_can_be_kept_are_refused) {
    bh_device_options options = device_options(0);
    bh_device device = {42};
    options.standbys = 5;
    CHECK_REFUSED(bh_device_open(&options, &device), BH_E_INVALID);
    CHECK_EQ(device.id, 42);
}
