/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that are alive and do nothing: stopped by a signal, stuck in a driver, taking no
 * requests. Each is lost after stuck_timeout_ns, whatever it was to do, and the device goes on. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "../support/control.h"

#define STUCK_NS (400 * MS * test_time_scale())
/* What a takeover may take on a machine with much else to do. */
#define SLACK_NS (1500 * MS * test_time_scale())

static loss_log losses;

static rig open_impatient(uint32_t flags) {
    bh_device_options options = device_options(flags | BH_DEVICE_NO_RESTART_LIMIT);
    options.stuck_timeout_ns = STUCK_NS;
    rig r = rig_open_with(&options);
    if (!(flags & BH_DEVICE_NO_STANDBY)) wait_standby(r.device);
    loss_log_start(r.device, &losses);
    return r;
}

/* How many threads of the process have not stopped. */
static int running_threads(int32_t pid) {
    char path[64];
    DIR *threads = opendir(test_path(path, sizeof path, "/proc/%d/task", (int)pid));
    REQUIRE(threads != NULL);
    int running = 0;
    for (struct dirent *entry; (entry = readdir(threads));) {
        if (entry->d_name[0] == '.') continue;
        char state = 0;
        FILE *file = fopen(
            test_path(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, entry->d_name), "r");
        if (!file) continue;
        REQUIRE(fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
        fclose(file);
        running += state != 'T';
    }
    closedir(threads);
    return running;
}

/* Returns once all threads have stopped: they run on for a moment. */
static void stop_process(int32_t pid) {
    REQUIRE(pid > 0);
    REQUIRE(kill(pid, SIGSTOP) == 0);
    while (running_threads(pid) > 0) sleep_ms(1);
}

static void stop_worker(const rig *r) {
    stop_process(health_of(r->device).worker_pid);
}

static bh_status add_one(const rig *r, bh_buffer x, uint64_t deadline_ns, bh_ticket *out) {
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = deadline_ns;
    *out = submit(rig_kernel(r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), &options);
    return bh_wait(*out, LONG_NS);
}

static void check_loss(int index, bh_status cause, const char *reason) {
    REQUIRE(loss_log_wait(&losses, index + 1));
    CHECK_EQ(losses.losses[index].cause, cause);
    CHECK_STR_CONTAINS(losses.losses[index].message, reason);
}

TEST(an_idle_worker_that_is_stopped) {
    rig r = open_impatient(0);
    bh_buffer x = words_filled(r.device, 64, 1);
    bh_ticket ticket;
    stop_worker(&r);
    uint64_t begun = now_ns();
    CHECK_OK(add_one(&r, x, 0, &ticket));
    CHECK_LT(now_ns() - begun, STUCK_NS + SLACK_NS);
    CHECK_GE(now_ns() - begun, STUCK_NS * 9 / 10);
    CHECK(words_are(x, 64, 2));
    check_loss(0, BH_E_LOST, "took no request for");
    CHECK_STR_CONTAINS(losses.losses[0].message, "may be stopped");
    CHECK_EQ(losses.losses[0].from_standby, 1);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_idle_worker_that_is_stopped_without_a_standby) {
    rig r = open_impatient(BH_DEVICE_NO_STANDBY);
    bh_buffer x = words_filled(r.device, 64, 1);
    bh_ticket ticket;
    stop_worker(&r);
    CHECK_OK(add_one(&r, x, 0, &ticket));
    CHECK(words_are(x, 64, 2));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_busy_worker_that_is_stopped) {
    rig r = open_impatient(0);
    bh_buffer x = words_filled(r.device, 64, 1);
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, 0);
    sleep_ms(100); /* it is pinged meanwhile */
    bh_health before = health_of(r.device);
    stop_process(before.worker_pid);
    uint64_t begun = now_ns();
    CHECK_STATUS(bh_wait(g.ticket, LONG_NS), BH_E_LOST);
    CHECK_LT(now_ns() - begun, STUCK_NS + SLACK_NS);
    check_loss(0, BH_E_LOST, "has not answered for");
    CHECK(wait_process_gone(before.worker_pid, 5000));
    bh_ticket ticket;
    CHECK_OK(add_one(&r, x, 0, &ticket));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* The deadline runs from the moment the request could have run, taken or not. The kernel is not to
 * blame, however often it happens. */
TEST(a_deadline_passes_on_a_worker_that_takes_nothing) {
    rig r = open_impatient(0);
    bh_buffer x = words_filled(r.device, 64, 1);
    for (int i = 0; i < 4; i++) {
        bh_ticket ticket;
        bh_error error;
        wait_standby(r.device);
        stop_worker(&r);
        uint64_t begun = now_ns();
        CHECK_STATUS(add_one(&r, x, 100 * MS * test_time_scale(), &ticket), BH_E_DEADLINE);
        CHECK_LT(now_ns() - begun, STUCK_NS + SLACK_NS);
        CHECK_STATUS(bh_ticket_error(ticket, &error), BH_E_DEADLINE);
        CHECK_STR_CONTAINS(error.message, "took no request for");
        CHECK_STR_CONTAINS(error.message, "add_one");
        CHECK(error.fix[0] != '\0');
        CHECK_OK(bh_buffer_accept(x));
    }
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* The worker has not yet skipped what was cancelled: the deadline behind it counts all the same,
 * and not from before its own request was there. */
TEST(a_deadline_passes_behind_a_cancelled_request) {
    rig r = open_impatient(0);
    bh_buffer x = words_filled(r.device, 64, 1);
    bh_ticket ticket, cancelled;
    bh_launch_options options = BH_INIT(options);
    stop_worker(&r);
    cancelled =
        submit(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), &options);
    REQUIRE_OK(bh_cancel(cancelled));
    CHECK_STATUS(add_one(&r, x, 100 * MS * test_time_scale(), &ticket), BH_E_DEADLINE);
    check_loss(0, BH_E_DEADLINE, "took no request for 0.");
    CHECK_STATUS(bh_wait(cancelled, 0), BH_E_CANCELLED);
    CHECK_OK(bh_buffer_accept(x));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* Nor is one that was running: twice would quarantine it. */
TEST(a_deadline_passes_on_a_worker_that_is_stopped) {
    rig r = open_impatient(0);
    bh_lane lane = open_lane(r.device);
    for (int i = 0; i < 3; i++) {
        bh_error error;
        wait_standby(r.device);
        bh_buffer flag = flag_alloc(r.device), mark = words_filled(r.device, 1, 0);
        bh_launch_options options = on_lane(lane, 0);
        options.deadline_ns = 350 * MS * test_time_scale();
        bh_ticket ticket = submit(rig_kernel(&r, "gate"), BH_SHAPE(1, 1, 1, 1, 1, 1),
                                  BH_ARGS(address_of(flag), BH_OUT(mark), 1u), &options);
        flag_wait_begun(flag);
        stop_worker(&r);
        CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_DEADLINE);
        CHECK_STATUS(bh_ticket_error(ticket, &error), BH_E_DEADLINE);
        CHECK_STR_CONTAINS(error.message, "may be stopped");
    }
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* Where no worker is left, one is started cold: on a GPU that takes as long as its driver does,
 * more so beside other tests. */
static uint64_t cold_ns(const rig *r) {
    bh_device_info info = {.size = sizeof info};
    REQUIRE_OK(bh_device_get_info(r->device, &info));
    return strcmp(info.kind, "cpu") == 0 ? 0 : 20000 * MS;
}

TEST(a_stopped_standby_that_takes_over) {
    rig r = open_impatient(0);
    bh_buffer x = words_filled(r.device, 64, 1);
    bh_health health = health_of(r.device);
    bh_ticket ticket;
    stop_process(health.standby_pids[0]);
    REQUIRE(kill(health.worker_pid, SIGKILL) == 0);
    uint64_t begun = now_ns();
    CHECK_OK(add_one(&r, x, 0, &ticket));
    CHECK_LT(now_ns() - begun, STUCK_NS + SLACK_NS + cold_ns(&r));
    CHECK(words_are(x, 64, 2));
    CHECK_OK(bh_device_close(r.device));
}

TEST(worker_and_standby_both_stopped) {
    for (int busy = 0; busy < 2; busy++) {
        rig r = open_impatient(0);
        bh_buffer x = words_filled(r.device, 64, 1);
        bh_lane lane = open_lane(r.device);
        wait_standby(r.device);
        if (busy) (void)gate_close(&r, lane, 0);
        bh_health health = health_of(r.device);
        bh_ticket ticket;
        stop_process(health.standby_pids[0]);
        stop_process(health.worker_pid);
        uint64_t begun = now_ns();
        CHECK_OK(add_one(&r, x, 0, &ticket));
        CHECK_LT(now_ns() - begun, STUCK_NS + SLACK_NS + cold_ns(&r));
        CHECK_OK(bh_device_close(r.device));
    }
}

TEST(a_stopped_standby_is_replaced_while_the_device_is_busy) {
    rig r = open_impatient(0);
    gate g = gate_close(&r, open_lane(r.device), 0);
    wait_standby(r.device);
    int32_t stopped = health_of(r.device).standby_pids[0];
    stop_process(stopped);
    uint64_t limit = now_ns() + 4 * STUCK_NS + SLACK_NS + cold_ns(&r);
    for (;;) {
        bh_health health = health_of(r.device);
        if (health.standby_pids[0] > 0 && health.standby_pids[0] != stopped &&
            health.standbys_ready)
            break;
        REQUIRE(now_ns() < limit);
        sleep_ms(5);
    }
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    CHECK_EQ(health_of(r.device).generation, 1);
    CHECK_OK(bh_device_close(r.device));
}

/* Every call that has the worker do something. */
typedef bh_status stalled_call(const rig *r);

static bh_status call_alloc(const rig *r) {
    bh_buffer buffer;
    return bh_buffer_alloc(r->device, BH_U8, 128 << 20, NULL, &buffer);
}
static bh_status call_load(const rig *r) {
    bh_module module;
    return bh_module_load(r->device, ptx_basic, strlen(ptx_basic), &module);
}
static bh_status call_lane_open(const rig *r) {
    bh_lane lane;
    return bh_lane_open(r->device, NULL, &lane);
}
static bh_status call_host_alloc(const rig *r) {
    void *memory;
    return bh_host_alloc(r->device, 1 << 20, &memory);
}
static bh_status call_preflight(const rig *r) {
    bh_preflight report = BH_INIT(report);
    return bh_launch_preflight(rig_kernel(r, "churn"), BH_GRID(96, 96), NULL, NULL, &report);
}

static void check_call(stalled_call *call, bool busy) {
    rig r = open_impatient(0);
    bh_lane lane = open_lane(r.device);
    wait_standby(r.device);
    if (busy) (void)gate_close(&r, lane, 0);
    stop_worker(&r);
    uint64_t begun = now_ns();
    CHECK_OK(call(&r));
    CHECK_LT(now_ns() - begun, STUCK_NS + SLACK_NS);
    CHECK_EQ(health_of(r.device).generation, 2);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(stopped_while_memory_is_allocated) {
    check_call(call_alloc, false);
}
TEST(stopped_while_a_module_is_loaded) {
    check_call(call_load, false);
}
TEST(stopped_while_a_lane_is_opened) {
    check_call(call_lane_open, false);
}
TEST(stopped_while_host_memory_is_allocated) {
    check_call(call_host_alloc, false);
}
TEST(stopped_while_a_launch_is_checked) {
    check_call(call_preflight, false);
}
TEST(stopped_and_busy_while_a_module_is_loaded) {
    check_call(call_load, true);
}

TEST(stopped_while_a_buffer_is_written) {
    rig r = open_impatient(0);
    bh_buffer x = words_filled(r.device, 64, 1);
    stop_worker(&r);
    uint64_t begun = now_ns();
    uint32_t words[64];
    for (uint32_t i = 0; i < 64; i++) words[i] = i;
    bh_status status = bh_buffer_write(x, 0, words, sizeof words);
    CHECK_OK(status);
    CHECK_LT(now_ns() - begun, STUCK_NS + SLACK_NS);
    CHECK(words_count(x, 64, 0));
    CHECK_OK(bh_device_close(r.device));
}

/* The process lives, and one of its lanes takes nothing. */
TEST(a_lane_that_takes_nothing_though_the_process_lives) {
    rig r = open_impatient(0);
    bh_lane lane = open_lane(r.device);
    bh_buffer x = words_filled(r.device, 64, 1);
    wait_standby(r.device);
    bh__front *front = control_block();
    for (uint32_t i = 0; i < BH__AREAS; i++)
        atomic_fetch_or(&area_at(front, i)->lane[1].claim, BH__PAUSED);
    bh_launch_options options = on_lane(lane, 0);
    uint64_t begun = now_ns();
    bh_ticket ticket =
        submit(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), &options);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK_LT(now_ns() - begun, STUCK_NS + SLACK_NS);
    check_loss(0, BH_E_LOST, "took no request for");
    CHECK_STR_CONTAINS(losses.losses[0].message, "of lane 1");
    CHECK(strstr(losses.losses[0].message, "may be stopped") == NULL);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- drivers ---- */

/* The driver of the next worker is well: this one was stuck long enough to be lost. */
static void mend_driver(void *context, const bh_loss *loss, bh_verdict *verdict) {
    (void)loss;
    (void)verdict;
    unlink(context);
}

/* The CPU device behind queues, whose driver gets stuck as `where` says until the file is gone, at
 * the first loss. */
static rig open_stuck_driver(const char *where, char *file, size_t size) {
    char folder[600], wish[700];
    if (strcmp(test_device(), "cpu") != 0) SKIP("the driver of a GPU does not get stuck on demand");
    test_path(folder, sizeof folder, "%s/tests/queued", test_build_dir());
    test_path(file, size, "%s/stuck", test_tmp_dir());
    int fd = open(file, O_CREAT | O_WRONLY, 0600);
    REQUIRE(fd >= 0);
    close(fd);
    setenv("BULKHEAD_TEST_STUCK", test_path(wish, sizeof wish, "%s:%s", where, file), 1);
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.worker_dir = folder;
    options.stuck_timeout_ns = STUCK_NS;
    options.policy = mend_driver;
    options.policy_context = file;
    rig r = rig_open_with(&options);
    wait_standby(r.device);
    loss_log_start(r.device, &losses);
    return r;
}

static void check_stuck_driver(const char *where, const char *reason) {
    char file[700];
    rig r = open_stuck_driver(where, file, sizeof file);
    bh_buffer x = words_filled(r.device, 64, 1), y = words_filled(r.device, 64, 1);
    bh_lane lane = open_lane(r.device);
    bh_ticket ticket, next;
    uint8_t byte = 0x5b;
    uint64_t begun = now_ns();
    REQUIRE_OK(bh_submit_fill(lane, x, 0, 256, &byte, 1, &ticket));
    CHECK_OK(bh_wait(ticket, LONG_NS)); /* fills are idempotent and sent again */
    CHECK_LT(now_ns() - begun, STUCK_NS + SLACK_NS);
    CHECK(words_are(x, 64, 0x5b5b5b5b));
    CHECK_OK(add_one(&r, y, 0, &next));
    check_loss(0, BH_E_LOST, reason);
    CHECK_STR_CONTAINS(losses.losses[0].message, "a fill");
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_driver_call_that_does_not_return) {
    check_stuck_driver("driver", "in a driver call");
}

TEST(a_transfer_that_does_not_end) {
    check_stuck_driver("transfer", "made no progress for");
}

/* ---- what is not stuck ---- */

TEST(kernels_may_run_longer) {
    rig r = open_impatient(0);
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, 0);
    /* Behind it, and thus not stuck either. */
    bh_launch_options options = on_lane(lane, 0);
    bh_buffer x = words_filled(r.device, 64, 1);
    bh_ticket behind =
        submit(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), &options);
    sleep_ms((unsigned)(3 * STUCK_NS / MS));
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    CHECK_OK(bh_wait(behind, LONG_NS));
    CHECK_EQ(health_of(r.device).generation, 1);
    CHECK_OK(bh_device_close(r.device));
}

/* A signal, a debugger, a virtual machine that is paused: workers cannot help it. */
TEST(the_application_may_be_stopped) {
    rig r = open_impatient(0);
    gate g = gate_close(&r, open_lane(r.device), 0);
    bh_buffer x = words_filled(r.device, 64, 1);
    char command[200];
    snprintf(command, sizeof command, "(kill -STOP %d; sleep %llu; kill -CONT %d) &", (int)getpid(),
             (unsigned long long)(4 * STUCK_NS / (1000 * MS) + 1), (int)getpid());
    for (int i = 0; i < 2; i++) {
        uint64_t begun = now_ns();
        bh_ticket ticket;
        REQUIRE(system(command) == 0);
        while (now_ns() - begun < 3 * STUCK_NS) CHECK_OK(add_one(&r, x, 10000 * MS, &ticket));
    }
    CHECK_EQ(health_of(r.device).generation, 1);
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    CHECK_EQ(health_of(r.device).generation, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(without_a_time_out_nothing_is_stuck) {
    bh_device_options options = device_options(0);
    options.stuck_timeout_ns = UINT64_MAX;
    rig r = rig_open_with(&options);
    bh_buffer x = words_filled(r.device, 64, 1);
    int32_t pid = health_of(r.device).worker_pid;
    stop_process(pid);
    bh_ticket ticket =
        submit(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), NULL);
    CHECK_STATUS(bh_wait(ticket, 1000 * MS), BH_E_TIMEOUT);
    REQUIRE(kill(pid, SIGCONT) == 0);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK_EQ(health_of(r.device).generation, 1);
    CHECK_OK(bh_device_close(r.device));
}
