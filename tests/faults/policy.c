/* SPDX-License-Identifier: Apache-2.0 */
/* Restart limits and their window, a device that stops for good, kernels in quarantine. */
#include <signal.h>
#include <sys/stat.h>

#include "../support/buffers.h"
#include "../support/support.h"
#include "../support/worker_program.h"

static void wait_stopped(bh_device device) {
    uint64_t limit = now_ns() + LONG_NS;
    while (health_of(device).state != BH_HEALTH_STOPPED) {
        REQUIRE(now_ns() < limit);
        sleep_ms(1);
    }
}

static uint32_t faults_of(bh_kernel kernel, bool *quarantined) {
    bh_kernel_info info = BH_INIT(info);
    REQUIRE_OK(bh_kernel_get_info(kernel, &info));
    *quarantined = info.quarantined != 0;
    return info.faults;
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
    pid_t worker = health_of(r.device).worker_pid;
    REQUIRE(kill(worker, SIGKILL) == 0);
    wait_stopped(r.device);

    bh_status status = bh_wait(g.ticket, LONG_NS);
    CHECK(status == BH_E_LOST || status == BH_E_STOPPED);
    status = bh_wait(queued, LONG_NS);
    CHECK(status == BH_E_LOST || status == BH_E_STOPPED);
    bh_health now = health_of(r.device);
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
    CHECK_REFUSED(bh_launch(add_one, BH_GRID(100, 64), BH_ARGS(BH_INOUT(x), 100u), NULL, NULL),
                  BH_E_STOPPED);
    CHECK_REFUSED(bh_buffer_write(x, 0, words, sizeof words), BH_E_STOPPED);
    CHECK_REFUSED(bh_buffer_alloc(r.device, BH_U32, 1 << 20, NULL, &y), BH_E_STOPPED);
    CHECK_REFUSED(bh_module_load(r.device, ptx_basic, strlen(ptx_basic), &module), BH_E_STOPPED);
    CHECK_REFUSED(bh_lane_open(r.device, NULL, &other), BH_E_STOPPED);
    CHECK_REFUSED(bh_host_alloc(r.device, 4096, &host), BH_E_STOPPED);
    CHECK_REFUSED(bh_device_wait_standby(r.device, LONG_NS), BH_E_STOPPED);
    bh_error error;
    CHECK_REFUSED(bh_lane_open(r.device, NULL, &other), BH_E_STOPPED);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "losses");
    CHECK_OK(bh_device_sync(r.device, LONG_NS)); /* nothing is left to wait for */
    CHECK_OK(bh_buffer_release(x));
    CHECK_OK(bh_device_close(r.device));
    CHECK(wait_process_gone(worker, 5000));
    if (now.standby_pids[0] > 0) CHECK(wait_process_gone(now.standby_pids[0], 5000));
}

TEST(waiters_of_a_device_that_stops_are_woken) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.restart_limit = 1;
    rig r = rig_open_with(&options);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, BH_SUBMIT_IDEMPOTENT);
    gate g = gate_close(&r, lane, BH_SUBMIT_IDEMPOTENT);
    bh_ticket queued[50];
    bh_buffer x = words_filled(r.device, 1, 0);
    for (int i = 0; i < 50; i++)
        queued[i] =
            submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u), &there);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(bh_wait(queued[49], 0), BH_E_BUSY);
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    bh_status status = bh_wait(queued[49], LONG_NS);
    CHECK(status == BH_E_STOPPED || status == BH_E_LOST);
    for (int i = 0; i < 50; i++) CHECK_NE(bh_wait(queued[i], LONG_NS), BH_OK);
    CHECK_NE(bh_wait(g.ticket, LONG_NS), BH_OK);
    bh_error error;
    bh_ticket_error(queued[49], &error);
    CHECK(error.message[0] != '\0' && error.fix[0] != '\0');
    CHECK_OK(bh_device_close(r.device));
    CHECK_NE(bh_wait(queued[49], 0), BH_OK);
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
    CHECK_EQ(health_of(r.device).losses, 4);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- the defaults ---- */

/* Thousands of requests, each twentieth of which is bad: whatever the others lose by it is done
 * again, and all of them succeed. */
TEST_TIMEOUT(bad_requests_do_not_turn_away_good_ones, 240) {
    enum { REQUESTS = 2000, BAD_EVERY = 20 };
    bh_device_options options = device_options(0);
    options.standbys = 2;
    rig r = rig_open_with(&options);
    bh_kernel poke = rig_kernel(&r, "write_then_poke");
    bh_buffer x = words_filled(r.device, 4, 0);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        bool bad = i % BAD_EVERY == BAD_EVERY - 1;
        uint64_t address = bad ? NOWHERE : address_of(x) + 12;
        bh_status status = BH_E_LOST;
        for (int tries = 0; tries < 5 && (status == BH_E_LOST || status == BH_E_STALE); tries++)
            status = run_now(poke, BH_GRID(2, 2), BH_ARGS(BH_OUT(x), 2u, address));
        if (status != (bad ? BH_E_FAULT : BH_OK)) printf("request %u\n", i);
        REQUIRE(status == (bad ? BH_E_FAULT : BH_OK));
    }
    bool quarantined;
    faults_of(poke, &quarantined);
    CHECK(!quarantined);
    CHECK_EQ(health_of(r.device).losses, REQUESTS / BAD_EVERY);
    CHECK_NE(health_of(r.device).state, BH_HEALTH_STOPPED);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(a_kernel_that_always_faults_is_quarantined_by_default, 120) {
    rig r = rig_open(0);
    bh_kernel trap = rig_kernel(&r, "trap_now");
    bh_kernel add_one = rig_kernel(&r, "add_one");
    bh_buffer x = words_filled(r.device, 1, 0);
    bool quarantined = false;
    int faults = 0;
    while (!quarantined && faults < 100) {
        CHECK_STATUS(run_now(trap, BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
        CHECK_OK(run_now(add_one, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u)));
        CHECK_EQ(faults_of(trap, &quarantined), ++faults);
    }
    CHECK_EQ(faults, 16);
    CHECK_STATUS(run_now(trap, BH_GRID(1, 1), BH_NO_ARGS), BH_E_QUARANTINED);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* What is queued, or was lost because of others, is neither good nor bad. */
TEST_TIMEOUT(a_backlog_of_launches_does_not_put_off_the_quarantine, 120) {
    enum { BACKLOG = 200, ROUNDS = 40 };
    rig r = rig_open(0);
    bh_kernel trap = rig_kernel(&r, "trap_now");
    bool quarantined = false;
    for (int round = 0; round < ROUNDS && !quarantined; round++) {
        bh_ticket tickets[BACKLOG];
        int count = 0;
        while (count < BACKLOG &&
               bh_launch(trap, BH_GRID(1, 1), BH_NO_ARGS, NULL, &tickets[count]) == BH_OK)
            count++;
        for (int i = 0; i < count; i++) CHECK_NE(bh_wait(tickets[i], LONG_NS), BH_OK);
        faults_of(trap, &quarantined);
    }
    CHECK(quarantined);
    CHECK_LE(health_of(r.device).losses, 16);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* Nothing says that the next worker would fare better. */
TEST_TIMEOUT(losses_with_nothing_done_in_between_stop_the_device, 120) {
    rig r = rig_open(0);
    for (int i = 0; i < 19; i++) kill_worker(r.device, SIGKILL);
    check_device_works(&r); /* and starts the count again */
    for (int i = 0; i < 19; i++) kill_worker(r.device, SIGKILL);
    CHECK(is_running(r.device));
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    wait_stopped(r.device);
    CHECK_STR_CONTAINS(health_of(r.device).reason, "20 losses in a row");
    CHECK_OK(bh_device_close(r.device));
}

/* Kills the worker. False: the device has stopped. */
static bool kill_and_look(bh_device device) {
    bh_health before = health_of(device), now = before;
    REQUIRE(before.worker_pid > 0 && kill(before.worker_pid, SIGKILL) == 0);
    for (uint64_t limit = now_ns() + LONG_NS; now.state != BH_HEALTH_STOPPED; sleep_ms(1)) {
        now = health_of(device);
        if (now.losses > before.losses && now.worker_pid > 0) return true;
        REQUIRE(now_ns() < limit);
    }
    return false;
}

TEST(a_restart_budget_grows_back_evenly) {
    bh_device_options options = device_options(0);
    options.restart_limit = 4;
    options.restart_window_ns = 4000 * MS;
    rig r = rig_open_with(&options);
    if (!is_cpu(r.device)) SKIP("workers of a GPU start more slowly than the budget grows back");
    uint64_t begun = now_ns();
    for (int i = 0; i < 4; i++) kill_worker(r.device, SIGKILL);
    sleep_ms(1100); /* room for one */
    kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    /* One more each second, however long the rest took: the device stops at the one beyond. */
    while (kill_and_look(r.device)) {
        REQUIRE(health_of(r.device).losses <= 4 + (now_ns() - begun) / (1000 * MS));
        if (now_ns() - begun > LONG_NS / 2) SKIP("workers start more slowly than the budget grows");
    }
    CHECK_GE(health_of(r.device).losses, 6);
    CHECK_LE(health_of(r.device).losses, 5 + (now_ns() - begun) / (1000 * MS));
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_limit_can_be_lifted) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    for (int i = 0; i < 10; i++) kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    CHECK_EQ(health_of(r.device).losses, 10);
    CHECK_EQ(health_of(r.device).generation, 11);
    CHECK_OK(bh_device_close(r.device));
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
    uint64_t losses = health_of(r.device).losses;
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(run_now(trap, BH_GRID(1, 1), BH_NO_ARGS), BH_E_QUARANTINED);
    CHECK_EQ(health_of(r.device).losses, losses);
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
    bh_status status = bh_launch(trap, BH_GRID(1, 1), BH_NO_ARGS, NULL, &t);
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
        bh_status status = bh_wait(traps[i], 0);
        faults += status == BH_E_FAULT;
        CHECK(status == BH_E_FAULT || status == BH_E_QUARANTINED || status == BH_E_LOST);
    }
    CHECK_LE(faults, 2);
    CHECK_LE(health_of(r.device).losses, 2);
    bh_status status = bh_wait(last, 0);
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
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
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
    bh_health before = health_of(r.device);
    REQUIRE(kill(before.standby_pids[0], SIGSTOP) == 0);
    void *memory[8]; /* of which it is to be told first */
    for (int i = 0; i < 8; i++) CHECK_OK(bh_host_alloc(r.device, 4096, &memory[i]));
    REQUIRE(kill(before.worker_pid, SIGKILL) == 0);
    sleep_ms(50);
    REQUIRE(kill(before.standby_pids[0], SIGKILL) == 0);
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(log.losses[0].from_standby, 0);
    CHECK(health_of(r.device).worker_pid != before.standby_pids[0]);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- the program's policy ---- */

typedef struct decider {
    rig r;
    bh_buffer buffer;
    bh_kernel kernel;
    bh_ticket ticket;
    int calls;
    uint32_t go_on, quarantine, resend; /* what to say; 2: what the limits say */
    bh_loss last;
    uint32_t said_go_on, said_quarantine, said_resend;
    unsigned pause_ms;
    bool calls_back;
    bh_status back[6];
} decider;

static void decide(void *context, const bh_loss *loss, bh_verdict *verdict) {
    decider *self = context;
    self->calls++;
    self->last = *loss;
    self->said_go_on = verdict->go_on;
    self->said_quarantine = verdict->quarantine;
    self->said_resend = verdict->resend;
    if (self->pause_ms) sleep_ms(self->pause_ms);
    if (self->calls_back) {
        uint32_t word;
        bh_memory_info memory = BH_INIT(memory);
        self->back[0] = bh_buffer_read(self->buffer, 0, &word, sizeof word);
        self->back[1] = bh_launch(self->kernel, BH_GRID(1, 1), BH_NO_ARGS, NULL, NULL);
        self->back[2] = bh_wait(self->ticket, UINT64_MAX);
        self->back[3] = bh_device_close(self->r.device);
        self->back[4] = bh_device_sync(self->r.device, UINT64_MAX);
        self->back[5] = bh_memory_get_info(self->r.device, &memory);
    }
    if (self->go_on < 2) verdict->go_on = self->go_on;
    if (self->quarantine < 2) verdict->quarantine = self->quarantine;
    if (self->resend < 2) verdict->resend = self->resend;
}

static void decider_open(decider *self, const bh_device_options *given) {
    bh_device_options options = *given;
    options.policy = decide;
    options.policy_context = self;
    self->go_on = self->quarantine = self->resend = 2;
    self->r = rig_open_with(&options);
    self->kernel = rig_kernel(&self->r, "trap_now");
    self->buffer = words_filled(self->r.device, 1, 7);
}

TEST(a_policy_hears_what_the_limits_would_decide) {
    bh_device_options options = device_options(0);
    options.quarantine_after = 2;
    options.restart_limit = 2;
    decider self = {0};
    decider_open(&self, &options);
    CHECK_STATUS(run_now(self.kernel, BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    CHECK_EQ(self.calls, 1);
    CHECK_EQ(self.last.kind, BH_LOSS_FAULT);
    CHECK_EQ(self.last.number, 1);
    CHECK_EQ(self.last.generation, 1);
    CHECK_STR_EQ(self.last.kernel, "trap_now");
    CHECK_EQ(self.said_go_on, 1);
    CHECK_EQ(self.said_quarantine, 0);
    CHECK_STATUS(run_now(self.kernel, BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    CHECK_EQ(self.said_go_on, 1);
    CHECK_EQ(self.said_quarantine, 1);
    CHECK_STATUS(run_now(self.kernel, BH_GRID(1, 1), BH_NO_ARGS), BH_E_QUARANTINED);
    wait_worker(self.r.device);
    REQUIRE(kill(health_of(self.r.device).worker_pid, SIGKILL) == 0);
    wait_stopped(self.r.device);
    CHECK_EQ(self.last.kind, BH_LOSS_LOST);
    CHECK_EQ(self.said_go_on, 0);
    CHECK_EQ(self.last.stopped, 1);
    CHECK_OK(bh_device_close(self.r.device));
}

TEST(a_policy_can_go_on_beyond_the_limits_and_keep_a_kernel_running) {
    bh_device_options options = device_options(0);
    options.quarantine_after = 1;
    options.restart_limit = 1;
    decider self = {0};
    decider_open(&self, &options);
    self.go_on = 1;
    self.quarantine = 0;
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(run_now(self.kernel, BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    CHECK_EQ(self.calls, 5);
    check_device_works(&self.r);
    CHECK_OK(bh_device_close(self.r.device));
}

TEST(a_policy_can_stop_the_device_and_quarantine_at_once) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    decider self = {0};
    decider_open(&self, &options);
    bh_lane lane = open_lane(self.r.device);
    bh_launch_options there = on_lane(lane, 0);
    gate g = gate_close(&self.r, lane, 0);
    bh_ticket bad = submit(self.kernel, BH_GRID(1, 1), BH_NO_ARGS, &there);
    bh_ticket queued[BEYOND_QUEUES];
    for (int i = 0; i < BEYOND_QUEUES; i++)
        queued[i] = submit(self.kernel, BH_GRID(1, 1), BH_NO_ARGS, &there);
    self.quarantine = 1;
    gate_open(&g);
    CHECK_STATUS(bh_wait(bad, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_wait(queued[BEYOND_QUEUES - 1], LONG_NS), BH_E_QUARANTINED);
    CHECK_EQ(self.calls, 1);
    self.go_on = 0;
    wait_worker(self.r.device);
    REQUIRE(kill(health_of(self.r.device).worker_pid, SIGKILL) == 0);
    wait_stopped(self.r.device);
    CHECK_STR_CONTAINS(health_of(self.r.device).reason, "policy");
    CHECK_REFUSED(bh_buffer_write(self.buffer, 0, &g.value, 4), BH_E_STOPPED);
    CHECK_OK(bh_device_close(self.r.device));
}

TEST(a_policy_decides_whether_idempotent_work_is_sent_again) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    decider self = {0};
    decider_open(&self, &options);
    for (uint32_t resend = 0; resend < 2; resend++) {
        wait_worker(self.r.device);
        self.resend = resend;
        gate g = gate_close(&self.r, open_lane(self.r.device), BH_SUBMIT_IDEMPOTENT);
        REQUIRE(kill(health_of(self.r.device).worker_pid, SIGKILL) == 0);
        if (resend) gate_open(&g);
        CHECK_STATUS(bh_wait(g.ticket, LONG_NS), resend ? BH_OK : BH_E_LOST);
        CHECK_EQ(self.said_resend, 1);
    }
    CHECK_EQ(word_read(self.buffer, 0), 7);
    CHECK_OK(bh_device_close(self.r.device));
}

TEST(a_policy_that_calls_the_device_is_refused) {
    bh_device_options options = device_options(0);
    decider self = {0};
    decider_open(&self, &options);
    self.calls_back = true;
    self.ticket = submit(self.kernel, BH_GRID(1, 1), BH_NO_ARGS, NULL);
    CHECK_STATUS(bh_wait(self.ticket, LONG_NS), BH_E_FAULT);
    for (int i = 0; i < 6; i++) CHECK_STATUS(self.back[i], BH_E_INVALID);
    check_device_works(&self.r);
    CHECK_EQ(word_read(self.buffer, 0), 7);
    CHECK_OK(bh_device_close(self.r.device));
}

/* Longer than a worker may be stuck. Work that is submitted meanwhile is done by the next
 * worker. */
TEST(a_slow_policy_costs_no_worker) {
    bh_device_options options = device_options(0);
    options.stuck_timeout_ns = 300 * MS;
    decider self = {0};
    decider_open(&self, &options);
    if (!is_cpu(self.r.device)) {
        CHECK_OK(bh_device_close(self.r.device));
        SKIP("a GPU puts a fault down to every kernel that runs");
    }
    wait_standby(self.r.device);
    self.pause_ms = 1000;
    bh_ticket bad = submit(self.kernel, BH_GRID(1, 1), BH_NO_ARGS, NULL);
    bh_lane lane = open_lane(self.r.device);
    bh_launch_options there = on_lane(lane, 0);
    sleep_ms(300);
    bh_ticket good = submit(rig_kernel(&self.r, "add_one"), BH_GRID(1, 1),
                            BH_ARGS(BH_INOUT(self.buffer), 1u), &there);
    CHECK_STATUS(bh_wait(bad, LONG_NS), BH_E_FAULT);
    CHECK_OK(bh_wait(good, LONG_NS));
    CHECK_EQ(word_read(self.buffer, 0), 8);
    CHECK_EQ(health_of(self.r.device).losses, 1);
    CHECK_OK(bh_device_close(self.r.device));
}

TEST(causes_are_distinguished) {
    bh_device_options options = device_options(0);
    options.stuck_timeout_ns = 400 * MS;
    decider self = {0};
    decider_open(&self, &options);
    CHECK_STATUS(run_now(self.kernel, BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    CHECK_EQ(self.last.kind, BH_LOSS_FAULT);
    kill_worker(self.r.device, SIGKILL);
    CHECK_EQ(self.last.kind, BH_LOSS_LOST);
    bh_buffer flag = flag_alloc(self.r.device);
    bh_launch_options limited = BH_INIT(limited);
    limited.deadline_ns = 50 * MS;
    CHECK_STATUS(run_with(rig_kernel(&self.r, "endless"), BH_GRID(1, 1),
                          BH_ARGS(BH_INOUT(flag), BH_INOUT(self.buffer)), &limited),
                 BH_E_DEADLINE);
    /* On a machine so busy that the worker does not get to run, it may seem to be stuck. */
    bool silent = strstr(self.last.message, "may be stopped") != NULL;
    CHECK_EQ(self.last.kind, silent ? BH_LOSS_STUCK : BH_LOSS_DEADLINE);
    wait_standby(self.r.device);
    wait_worker(self.r.device);
    REQUIRE(kill(health_of(self.r.device).worker_pid, SIGSTOP) == 0);
    check_device_works(&self.r);
    CHECK_EQ(self.last.kind, BH_LOSS_STUCK);
    CHECK_EQ(self.calls, 4);
    CHECK_OK(bh_device_close(self.r.device));
}

/* ---- installations that break ---- */

TEST(workers_that_never_start_stop_the_device) {
    char folder[700];
    bh_device_options options = replaceable_worker(folder, sizeof folder);
    rig r = rig_open_with(&options);
    place_worker(folder, "/bin/false");
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    wait_stopped(r.device);
    CHECK(health_of(r.device).reason[0] != '\0');
    CHECK_EQ(health_of(r.device).losses, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_policy_can_wait_for_an_installation_to_be_mended) {
    char folder[700];
    bh_device_options options = replaceable_worker(folder, sizeof folder);
    decider self = {0};
    decider_open(&self, &options);
    self.go_on = 1;
    place_worker(folder, "/bin/false");
    REQUIRE(kill(health_of(self.r.device).worker_pid, SIGKILL) == 0);
    sleep_ms(500);
    CHECK_NE(health_of(self.r.device).state, BH_HEALTH_STOPPED);
    place_real_worker(folder);
    wait_generation(self.r.device, 2);
    check_device_works(&self.r);
    CHECK_EQ(self.last.kind, BH_LOSS_BROKEN);
    CHECK_EQ(self.said_go_on, 0);
    CHECK_GE(self.calls, 2);
    CHECK_OK(bh_device_close(self.r.device));
}

/* ---- what a stopped device still gives back ---- */

TEST_TIMEOUT(intact_buffers_of_a_stopped_device_can_be_read, 60) {
    enum { MANY = 1 << 18 }; /* more than one piece of a transfer */
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.restart_limit = 1;
    rig r = rig_open_with(&options);
    bh_buffer small = words_counting(r.device, 100, 5), large = words_counting(r.device, MANY, 9);
    bh_buffer spoilt = words_filled(r.device, 64, 1), view, shared;
    REQUIRE_OK(bh_buffer_view(small, 0, 10, 20, &view));
    REQUIRE_OK(alloc_shareable(r.device, BH_U32, 8, &shared));
    word_write(shared, 3, 77);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(run_now(rig_kernel(&r, "write_then_poke"), BH_GRID(2, 2),
                         BH_ARGS(BH_OUT(spoilt), 2u, NOWHERE)),
                 BH_E_FAULT);
    wait_stopped(r.device);
    uint32_t word = 0, *words = malloc(MANY * sizeof *words);
    REQUIRE(words != NULL);
    CHECK_OK(bh_buffer_read(small, 0, words, 400));
    for (uint32_t i = 0; i < 100; i++) CHECK_EQ(words[i], 5 + i);
    CHECK_OK(bh_buffer_read(view, 8, &word, 4));
    CHECK_EQ(word, 5 + 12);
    CHECK_OK(bh_buffer_read(shared, 12, &word, 4));
    CHECK_EQ(word, 77);
    bh_transfer read = bh_transfer_read(small, 40, &word, 4);
    bh_submit_options wait = BH_INIT(wait);
    wait.flags = BH_SUBMIT_WAIT;
    bh_ticket none = {1, 1};
    CHECK_OK(bh_submit(&read.request, &wait, NULL));
    CHECK_EQ(word, 5 + 10);
    CHECK_OK(bh_submit(&read.request, &wait, &none));
    CHECK_EQ(none.lane | none.sequence, 0);
    CHECK_OK(bh_buffer_read(large, 4, words, (MANY - 1) * sizeof *words));
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < MANY - 1; i++) wrong += words[i] != 10 + i;
    CHECK_EQ(wrong, 0);
    free(words);
    CHECK_OK(bh_buffer_read(small, 0, &word, 0));
    CHECK_REFUSED(bh_buffer_read(spoilt, 0, &word, 4), BH_E_STALE);
    CHECK_REFUSED(bh_buffer_read(small, 400, &word, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_read(small, 0, NULL, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_write(small, 0, &word, 4), BH_E_STOPPED);
    CHECK_REFUSED(bh_buffer_copy(small, 0, large, 0, 4), BH_E_STOPPED);
    CHECK_REFUSED(bh_launch(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, NULL, NULL),
                  BH_E_STOPPED);
    CHECK_OK(bh_buffer_accept(spoilt));
    CHECK_OK(bh_buffer_read(spoilt, 0, &word, 4));
    CHECK_EQ(health_of(r.device).state, BH_HEALTH_STOPPED);
    CHECK_OK(bh_device_close(r.device));
    CHECK_REFUSED(bh_buffer_read(small, 0, &word, 4), BH_E_INVALID);
}

static void read_words(void *context, unsigned index) {
    (void)index;
    for (int i = 0; i < 5; i++) {
        uint32_t word = 0;
        CHECK_OK(bh_buffer_read(*(bh_buffer *)context, 4, &word, 4));
        CHECK_EQ(word, 6);
    }
}

TEST(many_threads_read_from_a_stopped_device) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.restart_limit = 1;
    rig r = rig_open_with(&options);
    bh_buffer x = words_counting(r.device, 8, 5);
    unsigned descriptors = 0;
    kill_worker(r.device, SIGKILL);
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    wait_stopped(r.device);
    read_words(&x, 0);
    descriptors = open_descriptors();
    run_threads(4, read_words, &x);
    CHECK_LE(open_descriptors(), descriptors + 8); /* those of chunks that are being let go */
    CHECK_OK(bh_device_close(r.device));
}
