/* SPDX-License-Identifier: Apache-2.0 */
/* Restart limits and their window, a device that stops for good, kernels in quarantine. */
#include <signal.h>

#include "../support/support.h"

static void wait_stopped(bh_device device) {
    uint64_t limit = now_ns() + LONG_NS;
    while (status_of(device).state != BH_DEVICE_STOPPED) {
        REQUIRE(now_ns() < limit);
        sleep_ms(1);
    }
}

TEST(a_device_stops_after_too_many_losses) {
    bh_device_options options = device_options(0);
    options.restart_limit = 2;
    rig r = rig_open_with(&options);
    loss_log log;
    loss_log_start(r.device, &log);
    bh_buffer x = words_counting(r.device, 100, 1);
    bh_kernel add_one = rig_kernel(&r, "add_one");
    bh_lane lane = open_lane(r.device);
    kill_worker(r.device, SIGKILL);
    kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    gate g = gate_close(&r, lane, 0);
    bh_launch_options there = on_lane(lane, 0);
    bh_ticket queued = submit(add_one, BH_GRID(100, 64), BH_ARGS(BH_INOUT(x), 100u), &there);
    pid_t worker = status_of(r.device).worker_pid;
    REQUIRE(kill(worker, SIGKILL) == 0);
    wait_stopped(r.device);

    bh_status status = bh_wait(g.ticket, LONG_NS);
    CHECK(status == BH_E_LOST || status == BH_E_STOPPED);
    status = bh_wait(queued, LONG_NS);
    CHECK(status == BH_E_LOST || status == BH_E_STOPPED);
    bh_device_status now = status_of(r.device);
    CHECK(now.reason[0] != '\0');
    CHECK_EQ(now.losses, 3);
    REQUIRE(loss_log_wait(&log, 3));
    CHECK_EQ(log.losses[1].stopped, 0);
    CHECK_EQ(log.losses[2].stopped, 1);

    uint32_t words[100];
    bh_buffer y;
    bh_module module;
    bh_lane other;
    void *host;
    CHECK_REFUSED(bh_launch(add_one, BH_GRID(100, 64), BH_ARGS(BH_INOUT(x), 100u), NULL),
                  BH_E_STOPPED);
    CHECK_REFUSED(bh_buffer_read(x, 0, words, sizeof words), BH_E_STOPPED);
    CHECK_REFUSED(bh_buffer_write(x, 0, words, sizeof words), BH_E_STOPPED);
    CHECK_REFUSED(bh_buffer_alloc(r.device, BH_U32, 1 << 20, &y), BH_E_STOPPED);
    CHECK_REFUSED(bh_module_load(r.device, ptx_basic, strlen(ptx_basic), &module), BH_E_STOPPED);
    CHECK_REFUSED(bh_lane_open(r.device, &other), BH_E_STOPPED);
    CHECK_REFUSED(bh_host_alloc(r.device, 4096, &host), BH_E_STOPPED);
    CHECK_REFUSED(bh_device_wait_standby(r.device, LONG_NS), BH_E_STOPPED);
    bh_error error;
    CHECK_REFUSED(bh_lane_open(r.device, &other), BH_E_STOPPED);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "losses");
    CHECK_OK(bh_device_sync(r.device, LONG_NS)); /* nothing is left to wait for */
    CHECK_OK(bh_buffer_release(x));
    CHECK_OK(bh_device_close(r.device));
    CHECK(wait_process_gone(worker, 5000));
    if (now.standby_pid > 0) CHECK(wait_process_gone(now.standby_pid, 5000));
}

TEST(waiters_of_a_device_that_stops_are_woken) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.restart_limit = 1;
    rig r = rig_open_with(&options);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, BH_LAUNCH_IDEMPOTENT);
    gate g = gate_close(&r, lane, BH_LAUNCH_IDEMPOTENT);
    bh_ticket queued[50];
    bh_buffer x = words_filled(r.device, 1, 0);
    for (int i = 0; i < 50; i++)
        queued[i] =
            submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u), &there);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(bh_query(queued[49]), BH_E_BUSY);
    REQUIRE(kill(status_of(r.device).worker_pid, SIGKILL) == 0);
    bh_status status = bh_wait(queued[49], LONG_NS);
    CHECK(status == BH_E_STOPPED || status == BH_E_LOST);
    for (int i = 0; i < 50; i++) CHECK_NE(bh_wait(queued[i], LONG_NS), BH_OK);
    CHECK_NE(bh_wait(g.ticket, LONG_NS), BH_OK);
    bh_error error;
    bh_ticket_error(queued[49], &error);
    CHECK(error.message[0] != '\0' && error.fix[0] != '\0');
    CHECK_OK(bh_device_close(r.device));
    CHECK_NE(bh_query(queued[49]), BH_OK);
}

TEST(losses_outside_the_window_do_not_count) {
    bh_device_options options = device_options(0);
    options.restart_limit = 1;
    options.restart_window_ns = 200 * MS;
    rig r = rig_open_with(&options);
    for (int i = 0; i < 4; i++) {
        kill_worker(r.device, SIGKILL);
        sleep_ms(300);
    }
    check_device_works(&r);
    CHECK_EQ(status_of(r.device).losses, 4);
    CHECK_OK(bh_device_close(r.device));
}

TEST(three_losses_are_allowed_by_default) {
    rig r = rig_open(0);
    for (int i = 0; i < 3; i++) kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    REQUIRE(kill(status_of(r.device).worker_pid, SIGKILL) == 0);
    wait_stopped(r.device);
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_limit_can_be_lifted) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    for (int i = 0; i < 10; i++) kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    CHECK_EQ(status_of(r.device).losses, 10);
    CHECK_EQ(status_of(r.device).generation, 11);
    CHECK_OK(bh_device_close(r.device));
}

static uint32_t faults_of(bh_kernel kernel, bool *quarantined) {
    bh_kernel_info info = BH_INIT(info);
    REQUIRE_OK(bh_kernel_query(kernel, &info));
    *quarantined = info.quarantined != 0;
    return info.faults;
}

TEST(a_kernel_that_faults_again_and_again_is_quarantined) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 3;
    rig r = rig_open_with(&options);
    bh_kernel trap = rig_kernel(&r, "trap_now");
    bool quarantined;
    for (uint32_t i = 1; i <= 3; i++) {
        CHECK_STATUS(run_now(trap, BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
        CHECK_EQ(faults_of(trap, &quarantined), i);
        CHECK_EQ(quarantined, i == 3);
    }
    uint64_t losses = status_of(r.device).losses;
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(run_now(trap, BH_GRID(1, 1), BH_NO_ARGS), BH_E_QUARANTINED);
    CHECK_EQ(status_of(r.device).losses, losses);
    check_device_works(&r);
    CHECK_STATUS(run_now(rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u)), BH_E_FAULT);

    CHECK_OK(bh_kernel_pardon(trap));
    faults_of(trap, &quarantined);
    CHECK(!quarantined);
    CHECK_STATUS(run_now(trap, BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_quarantined_launch_says_so) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 1;
    rig r = rig_open_with(&options);
    bh_kernel trap = rig_kernel(&r, "trap_now");
    CHECK_STATUS(run_now(trap, BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    bh_ticket t;
    bh_error error;
    bh_status status = bh_launch(trap, BH_GRID(1, 1), BH_NO_ARGS, &t);
    if (status == BH_OK) {
        CHECK_STATUS(bh_wait(t, LONG_NS), BH_E_QUARANTINED);
        bh_ticket_error(t, &error);
    } else {
        CHECK_REFUSED(status, BH_E_QUARANTINED);
        bh_last_error(&error);
    }
    CHECK_STR_CONTAINS(error.message, "trap_now");
    CHECK_STR_CONTAINS(error.fix, "bh_kernel_pardon");
    CHECK_OK(bh_device_close(r.device));
}

TEST(launches_queued_before_the_quarantine_do_not_eat_workers) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 2;
    rig r = rig_open_with(&options);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_buffer x = words_filled(r.device, 1, 0);
    bh_ticket traps[20];
    gate g = gate_close(&r, lane, 0);
    for (int i = 0; i < 20; i++)
        traps[i] = submit(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, &there);
    bh_ticket last =
        submit(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &there);
    gate_open(&g);
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    int faults = 0;
    for (int i = 0; i < 20; i++) {
        bh_status status = bh_query(traps[i]);
        faults += status == BH_E_FAULT;
        CHECK(status == BH_E_FAULT || status == BH_E_QUARANTINED || status == BH_E_LOST);
    }
    CHECK_LE(faults, 2);
    CHECK_LE(status_of(r.device).losses, 2);
    bh_status status = bh_query(last);
    CHECK(status == BH_OK || status == BH_E_LOST);
    if (!has_queues(r.device)) CHECK_OK(status);
    CHECK_OK(bh_device_close(r.device));
}

static void count_warnings(void *context, int32_t level, const char *text) {
    if (level <= BH_LOG_WARNING && text[0] != '\0') atomic_fetch_add((_Atomic(int) *)context, 1);
}

TEST(a_loss_is_worth_a_log_message) {
    _Atomic(int) warnings = 0;
    rig r = rig_open(0);
    CHECK_OK(bh_log_set(count_warnings, &warnings, BH_LOG_WARNING));
    CHECK_STATUS(run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    CHECK_OK(bh_device_close(r.device));
    CHECK_GE(atomic_load(&warnings), 1);
    CHECK_OK(bh_log_set(NULL, NULL, 0));
}

/* A standby that was there is not what the device went on with. */
TEST(a_loss_that_stops_the_device_is_not_from_a_standby) {
    bh_device_options options = device_options(0);
    options.restart_limit = 1;
    rig r = rig_open_with(&options);
    loss_log log;
    loss_log_start(r.device, &log);
    wait_standby(r.device);
    kill_worker(r.device, SIGKILL);
    wait_standby(r.device);
    REQUIRE(kill(status_of(r.device).worker_pid, SIGKILL) == 0);
    wait_stopped(r.device);
    REQUIRE(loss_log_wait(&log, 2));
    CHECK_EQ(log.losses[0].from_standby, 1);
    CHECK_EQ(log.losses[0].stopped, 0);
    CHECK_EQ(log.losses[1].from_standby, 0);
    CHECK_EQ(log.losses[1].stopped, 1);
    CHECK_OK(bh_device_close(r.device));
}

/* Nor is one that died before it could. */
TEST(a_standby_that_dies_at_its_promotion_did_not_take_over) {
    rig r = rig_open(0);
    loss_log log;
    loss_log_start(r.device, &log);
    wait_standby(r.device);
    bh_device_status before = status_of(r.device);
    REQUIRE(kill(before.standby_pid, SIGSTOP) == 0);
    void *memory[8]; /* of which it is to be told first */
    for (int i = 0; i < 8; i++) CHECK_OK(bh_host_alloc(r.device, 4096, &memory[i]));
    REQUIRE(kill(before.worker_pid, SIGKILL) == 0);
    sleep_ms(50);
    REQUIRE(kill(before.standby_pid, SIGKILL) == 0);
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(log.losses[0].from_standby, 0);
    CHECK(status_of(r.device).worker_pid != before.standby_pid);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}
