/* SPDX-License-Identifier: Apache-2.0 */
/* What a device says of its health: degraded, replacing, stopped, closing; at any time and without
 * waiting. */
#include <malloc.h>
#include <signal.h>

#include "../support/support.h"

static void wait_health(bh_device device, uint32_t state) {
    uint64_t limit = now_ns() + LONG_NS;
    while (health_of(device).state != state) {
        REQUIRE(now_ns() < limit);
        sleep_ms(1);
    }
}

TEST(a_device_with_its_standbys_is_well) {
    bh_device_options options = device_options(0);
    options.standbys = 3;
    rig r = rig_open_with(&options);
    bh_health health = health_of(r.device);
    CHECK(health.state == BH_HEALTH_OK || health.state == BH_HEALTH_DEGRADED);
    wait_standby(r.device);
    wait_health(r.device, BH_HEALTH_OK);
    health = health_of(r.device);
    CHECK_EQ(health.size, sizeof health);
    CHECK_EQ(health.generation, 1);
    CHECK_EQ(health.losses, 0);
    CHECK_EQ(health.standbys, 3);
    CHECK_EQ(health.standbys_ready, 3);
    CHECK_EQ(health.worker_pid, health_of(r.device).worker_pid);
    CHECK_STR_EQ(health.reason, "");
    for (int i = 0; i < 3; i++) {
        CHECK(process_exists(health.standby_pids[i]));
        CHECK_NE(health.standby_pids[i], health.worker_pid);
    }
    CHECK_EQ(health.standby_pids[3], 0);
    CHECK_OK(bh_device_close(r.device));
    CHECK_REFUSED(bh_device_get_health(r.device, &health), BH_E_INVALID);
}

TEST(a_device_that_was_asked_for_no_standby_is_well_without) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    CHECK_EQ(health_of(r.device).state, BH_HEALTH_OK);
    CHECK_EQ(health_of(r.device).standbys, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_lost_standby_is_said_until_there_is_another) {
    rig r = rig_open(0);
    wait_standby(r.device);
    wait_health(r.device, BH_HEALTH_OK);
    bh_health before = health_of(r.device);
    REQUIRE(kill(before.standby_pids[0], SIGKILL) == 0);
    wait_health(r.device, BH_HEALTH_DEGRADED);
    CHECK(health_of(r.device).reason[0] != '\0');
    wait_health(r.device, BH_HEALTH_OK);
    CHECK_NE(health_of(r.device).standby_pids[0], before.standby_pids[0]);
    CHECK_EQ(health_of(r.device).losses, 0);
    CHECK_OK(bh_device_close(r.device));
}

typedef struct replacing {
    bh_device device;
    _Atomic(int) decided;
    bh_health during;
} replacing;

static void look_and_linger(void *context, const bh_loss *loss, bh_verdict *verdict) {
    replacing *self = context;
    (void)loss;
    (void)verdict;
    self->during = health_of(self->device);
    atomic_store(&self->decided, 1);
    sleep_ms(200);
}

/* Asked from another thread while the supervisor is busy, and from the policy itself. */
TEST(a_device_that_lost_its_worker_is_replacing_it) {
    replacing self = {0};
    bh_device_options options = device_options(0);
    options.policy = look_and_linger;
    options.policy_context = &self;
    rig r = rig_open_with(&options);
    self.device = r.device;
    bh_ticket bad = submit(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, NULL);
    while (!atomic_load(&self.decided)) sleep_ms(1);
    uint64_t begun = now_ns();
    bh_health health = health_of(r.device);
    CHECK_LT(now_ns() - begun, 100 * MS);
    CHECK_EQ(health.state, BH_HEALTH_REPLACING);
    CHECK_EQ(health.worker_pid, 0);
    CHECK_EQ(health.losses, 1);
    CHECK_EQ(health.generation, 1);
    CHECK_STR_CONTAINS(health.reason, "trap_now");
    CHECK_EQ(self.during.state, BH_HEALTH_REPLACING);
    CHECK_STATUS(bh_wait(bad, LONG_NS), BH_E_FAULT);
    wait_generation(r.device, 2);
    health = health_of(r.device);
    CHECK(health.state == BH_HEALTH_OK || health.state == BH_HEALTH_DEGRADED);
    CHECK_EQ(health.generation, 2);
    CHECK_GT(health.worker_pid, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_stopped_device_says_why) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.restart_limit = 1;
    rig r = rig_open_with(&options);
    kill_worker(r.device, SIGKILL);
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    wait_health(r.device, BH_HEALTH_STOPPED);
    bh_health health = health_of(r.device);
    CHECK_STR_CONTAINS(health.reason, "losses");
    CHECK_EQ(health.worker_pid, 0);
    CHECK_EQ(health.losses, 2);
    CHECK_REFUSED(bh_device_wait_standby(r.device, 0), BH_E_STOPPED);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- orders that are refused where the supervisor is the one who calls ---- */

static bh_kernel followed;
static _Atomic int busy;
static size_t grown;

static void call_from_log(void *context, int32_t level, const char *text) {
    bh_debug_options debug = BH_INIT(debug);
    (void)context, (void)level, (void)text;
    if (!followed.id || bh_kernel_debug(followed, &debug) != BH_E_BUSY || busy) return;
    size_t before = mallinfo2().uordblks;
    while (busy < 200 && bh_kernel_debug(followed, &debug) == BH_E_BUSY) busy++;
    grown = mallinfo2().uordblks - before;
}

/* What was made for an order that nobody takes is freed. */
TEST(an_order_that_is_refused_keeps_no_memory) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    followed = rig_kernel(&r, "iota");
    REQUIRE_OK(bh_log_set(call_from_log, NULL, BH_LOG_DEBUG));
    kill_worker(r.device, SIGKILL);
    for (uint64_t until = now_ns() + LONG_NS; busy < 200 && now_ns() < until;) sleep_ms(1);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    REQUIRE_OK(bh_log_set(NULL, NULL, 0));
    CHECK_EQ(busy, 200);
    CHECK_LT(grown, 1u << 20);
    CHECK_OK(bh_device_close(r.device));
}

/* The window is so long that nothing grows back during the test. */
TEST(losses_count_against_the_limit_until_time_forgives_them) {
    bh_device_options options = device_options(0);
    options.restart_limit = 4;
    options.restart_window_ns = UINT64_C(4000000000000);
    rig r = rig_open_with(&options);
    CHECK_EQ(health_of(r.device).restart_limit, 4);
    CHECK_EQ(health_of(r.device).losses_in_window, 0);
    for (uint32_t i = 1; i <= 3; i++) {
        bh_ticket bad = submit(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, NULL);
        CHECK_STATUS(bh_wait(bad, LONG_NS), BH_E_FAULT);
        CHECK_EQ(health_of(r.device).losses_in_window, i); /* known when the ticket is */
        CHECK_EQ(health_of(r.device).losses, i);
        wait_worker(r.device);
    }
    CHECK_OK(bh_device_close(r.device));
    options.restart_window_ns = 400 * MS;
    r = rig_open_with(&options);
    kill_worker(r.device, SIGKILL);
    uint64_t limit = now_ns() + LONG_NS;
    while (health_of(r.device).losses_in_window > 0 && now_ns() < limit) sleep_ms(5);
    CHECK_EQ(health_of(r.device).losses_in_window, 0);
    CHECK_EQ(health_of(r.device).losses, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_device_without_a_restart_limit_says_so) {
    bh_device_options options = device_options(0);
    options.restart_limit = UINT32_MAX; /* the same as the flag */
    rig r = rig_open_with(&options);
    CHECK_EQ(health_of(r.device).restart_limit, UINT32_MAX);
    CHECK_OK(bh_device_close(r.device));
    r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    CHECK_EQ(health_of(r.device).restart_limit, UINT32_MAX);
    kill_worker(r.device, SIGKILL);
    CHECK_EQ(health_of(r.device).losses_in_window, 0);
    CHECK_OK(bh_device_close(r.device));
}

/* A thread that has the verdict of a ticket sees the device as that verdict left it. */
TEST(a_device_that_reports_its_stop_has_stopped) {
    /* A worker of a GPU takes seconds to start if many start at once. */
    int rounds = strncmp(test_device(), "cuda", 4) == 0 ? 2 : 20;
    for (int i = 0; i < rounds; i++) {
        bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
        options.restart_limit = 1;
        rig r = rig_open_with(&options);
        kill_worker(r.device, SIGKILL);
        gate g = gate_close(&r, open_lane(r.device), BH_SUBMIT_IDEMPOTENT);
        REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
        bh_status status;
        while ((status = bh_wait(g.ticket, 0)) == BH_E_BUSY) {
        }
        bh_health health = health_of(r.device);
        CHECK_STATUS(status, BH_E_STOPPED);
        CHECK_EQ(health.state, BH_HEALTH_STOPPED);
        CHECK(health.reason[0] != '\0');
        CHECK_OK(bh_device_close(r.device));
    }
}

TEST(the_oldest_running_work_is_reported) {
    rig r = rig_open(0);
    CHECK_EQ(health_of(r.device).oldest_running_ns, 0);
    uint64_t begun = now_ns();
    gate g = gate_close(&r, open_lane(r.device), 0);
    sleep_ms(100);
    gate second = gate_close(&r, open_lane(r.device), 0);
    uint64_t limit = now_ns() + LONG_NS;
    while (health_of(r.device).oldest_running_ns < 120 * MS && now_ns() < limit) sleep_ms(1);
    uint64_t running = health_of(r.device).oldest_running_ns;
    CHECK_GE(running, 120 * MS);
    CHECK_LE(running, now_ns() - begun);
    gate_open(&g);
    gate_open(&second);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    CHECK_OK(bh_wait(second.ticket, LONG_NS));
    while (health_of(r.device).oldest_running_ns != 0 && now_ns() < limit) sleep_ms(1);
    CHECK_EQ(health_of(r.device).oldest_running_ns, 0);
    CHECK_OK(bh_device_close(r.device));
}

static void *close_device(void *context) {
    CHECK_OK(bh_device_close(*(bh_device *)context));
    return NULL;
}

/* Close waits for the gate; the call does not. */
TEST(a_device_that_another_thread_closes_is_closing) {
    bh_device_options options = device_options(0);
    options.close_timeout_ns = 500 * MS;
    rig r = rig_open_with(&options);
    gate g = gate_close(&r, open_lane(r.device), 0);
    pthread_t closer;
    REQUIRE(pthread_create(&closer, NULL, close_device, &r.device) == 0);
    wait_health(r.device, BH_HEALTH_CLOSING);
    CHECK(health_of(r.device).reason[0] != '\0');
    bh_health health = BH_INIT(health);
    bh_status status = BH_OK;
    for (uint64_t limit = now_ns() + LONG_NS; status == BH_OK && now_ns() < limit; sleep_ms(1))
        status = bh_device_get_health(r.device, &health);
    CHECK_STATUS(status, BH_E_INVALID);
    CHECK_EQ(health.state, BH_HEALTH_CLOSING);
    pthread_join(closer, NULL);
    CHECK_STATUS(bh_wait(g.ticket, 0), BH_E_CANCELLED);
}

TEST(bad_calls_are_refused) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    bh_health unset = {0};
    bh_health health = BH_INIT(health);
    CHECK_REFUSED(bh_device_get_health(r.device, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_device_get_health(r.device, &unset), BH_E_INVALID);
    CHECK_REFUSED(bh_device_get_health((bh_device){0}, &health), BH_E_INVALID);
    CHECK_REFUSED(bh_device_get_health((bh_device){r.device.id + 1}, &health), BH_E_INVALID);
    CHECK_OK(bh_device_close(r.device));
}
