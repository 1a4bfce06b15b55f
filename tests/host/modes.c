/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that are shared, damaged or verbose: no standby is kept and the reason is reported, a
 * damaged one stops, a worker's last message is received, lanes get their priorities. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "../support/support.h"

static char lock[700];

/* A device whose worker is the program tests/worker/programs/odd_worker.c, odd as `how` says. */
static rig odd_open(const char *how, bool locks, uint32_t flags) {
    static char folder[600];
    char place[700], program[700];
    test_path(folder, sizeof folder, "%s/odd-XXXXXX", test_tmp_dir());
    REQUIRE(mkdtemp(folder) != NULL);
    test_path(place, sizeof place, "%s/bulkhead-worker-cpu", folder);
    test_path(program, sizeof program, "%s/tests/programs/odd_worker", test_build_dir());
    REQUIRE(access(program, X_OK) == 0);
    REQUIRE(symlink(program, place) == 0);
    test_path(lock, sizeof lock, "%s/lock", folder);
    setenv("BULKHEAD_TEST_WORKER", how, 1);
    if (locks) setenv("BULKHEAD_TEST_LOCK", lock, 1);
    bh_device_options options = BH_INIT(options);
    options.device = "cpu";
    options.flags = flags;
    options.worker_dir = folder;
    return rig_open_with(&options);
}

/* How many workers found the device taken. */
static unsigned refusals(void) {
    char path[800];
    struct stat info;
    test_path(path, sizeof path, "%s.refused", lock);
    return stat(path, &info) == 0 ? (unsigned)(info.st_size / 8) : 0;
}

static void check_degraded(bh_device device, const char *why) {
    bh_error error;
    uint64_t begun = now_ns();
    CHECK_REFUSED(bh_device_wait_standby(device, LONG_NS), BH_E_UNSUPPORTED);
    CHECK_LT(now_ns() - begun, 5000 * MS * test_time_scale());
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, why);
    bh_health health = health_of(device);
    CHECK(is_running(device));
    CHECK_EQ(health.standbys_ready, 0);
    CHECK_EQ(health.standby_pids[0], 0);
    CHECK_STR_CONTAINS(health.reason, why);
}

TEST(where_a_standby_makes_no_sense_none_is_tried) {
    rig r = odd_open("alone", true, 0);
    bh_device_info info = BH_INIT(info);
    CHECK_OK(bh_device_get_info(r.device, &info));
    CHECK_STR_EQ(info.no_standby, "the device serves one at a time");
    check_degraded(r.device, "no standby: the device serves one at a time");
    check_device_works(&r);
    sleep_ms(50);
    CHECK_EQ(refusals(), 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(with_room_for_one_worker_the_next_waits_for_the_last_to_end) {
    rig r = odd_open("alone", true, BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer intact = words_counting(r.device, 1000, 5);
    for (uint64_t i = 0; i < 3; i++) {
        kill_worker(r.device, SIGKILL);
        wait_generation(r.device, i + 2);
        CHECK(words_count(intact, 1000, 5));
        check_device_works(&r);
    }
    CHECK_STATUS(run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    wait_generation(r.device, 5);
    CHECK(words_count(intact, 1000, 5));
    check_degraded(r.device, "one at a time");
    CHECK_EQ(refusals(), 0);
    CHECK_OK(bh_device_close(r.device));
}

/* Lets the device go after a while. */
static void *let_go(void *busy) {
    sleep_ms(250);
    unlink(busy);
    return NULL;
}

TEST(a_successor_that_is_refused_is_tried_again) {
    rig r = odd_open("alone", true, 0);
    bh_buffer intact = words_counting(r.device, 1000, 5);
    char busy[800];
    pthread_t thread;
    test_path(busy, sizeof busy, "%s.busy", lock);
    REQUIRE(close(open(busy, O_WRONLY | O_CREAT, 0600)) == 0);
    REQUIRE(pthread_create(&thread, NULL, let_go, busy) == 0);
    kill_worker(r.device, SIGKILL);
    pthread_join(thread, NULL);
    CHECK(words_count(intact, 1000, 5));
    check_device_works(&r);
    CHECK_EQ(health_of(r.device).generation, 2);
    CHECK_GE(refusals(), 1);
    CHECK_LE(refusals(), 4); /* with pauses between */
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_device_opened_without_a_standby_is_not_called_degraded) {
    rig r = odd_open("alone", true, BH_DEVICE_NO_STANDBY);
    CHECK_REFUSED(bh_device_wait_standby(r.device, LONG_NS), BH_E_UNSUPPORTED);
    CHECK_STR_EQ(health_of(r.device).reason, "");
    kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    CHECK_EQ(refusals(), 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(without_room_for_a_second_worker_the_standby_is_given_up) {
    rig r = odd_open("crowded", true, 0);
    check_degraded(r.device, "no standby: the device has room for one");
    CHECK_EQ(refusals(), 1);
    check_device_works(&r);
    kill_worker(r.device, SIGKILL); /* its successor is not refused: it comes later */
    check_device_works(&r);
    bh_health health = health_of(r.device);
    CHECK_EQ(health.generation, 2);
    CHECK_EQ(health.losses, 1);
    CHECK_EQ(refusals(), 1);
    check_degraded(r.device, "room for one");
    CHECK_OK(bh_device_close(r.device));
}

TEST(damaged_memory_stops_the_device_for_good) {
    rig r = odd_open("broken", false, BH_DEVICE_NO_RESTART_LIMIT);
    loss_log log;
    bh_buffer x = words_filled(r.device, 64, 1);
    loss_log_start(r.device, &log);
    wait_standby(r.device);
    bh_health before = health_of(r.device);
    bh_ticket fault = submit(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, NULL);
    bh_error error;
    CHECK_STATUS(bh_wait(fault, LONG_NS), BH_E_FAULT);
    bh_ticket_error(fault, &error);
    CHECK_EQ(error.device_code, 214);
    CHECK_STR_EQ(error.device_name, "CUDA_ERROR_ECC_UNCORRECTABLE");
    CHECK_STR_CONTAINS(error.message, "damaged");
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(log.losses[0].stopped, 1);
    CHECK_EQ(log.losses[0].cause, BH_E_FAULT);

    bh_health after = health_of(r.device);
    CHECK_EQ(after.state, BH_HEALTH_STOPPED);
    CHECK_EQ(after.losses, 1);
    CHECK_EQ(after.generation, before.generation);
    CHECK_EQ(after.worker_pid, 0);
    CHECK_STR_CONTAINS(after.reason, "the memory is damaged");
    uint32_t word;
    CHECK_REFUSED(bh_buffer_read(x, 0, &word, 4), BH_E_STOPPED);
    bh_last_error(&error);
    CHECK_STR_EQ(error.fix, "replace the memory");
    CHECK_EQ(error.device_code, 214);
    CHECK(wait_process_gone(before.worker_pid, 5000));
    CHECK(wait_process_gone(before.standby_pids[0], 5000));
    CHECK_OK(bh_device_close(r.device));
}

/* What the print callback was given. */
static char heard[8192];
static _Atomic size_t heard_length;

static void hear(void *context, const bh_event *event) {
    (void)context;
    size_t length = event->length;
    size_t at = atomic_load(&heard_length), room = sizeof heard - 1 - at;
    if (length > room) length = room;
    memcpy(heard + at, event->text, length);
    atomic_store(&heard_length, at + length);
}

TEST(what_a_worker_writes_before_it_reports_a_fault_is_heard) {
    rig r = odd_open("words", false, 0);
    bh_error error;
    watch_for(r.device, BH_EVENT_PRINT, hear, NULL);
    bh_ticket fault = submit(rig_kernel(&r, "trap_now"), BH_GRID(64, 32), BH_NO_ARGS, NULL);
    CHECK_STATUS(bh_wait(fault, LONG_NS), BH_E_FAULT);
    bh_ticket_error(fault, &error);
    CHECK_STR_CONTAINS(error.message, "kernel \"trap_now\" (launch ");
    CHECK_STR_CONTAINS(error.message, "grid 2 x 1 x 1, block 32 x 1 x 1)");
    CHECK_STR_CONTAINS(error.message, "kernel.cu:7: f: Assertion `x > 0` failed.");
    CHECK(strstr(error.message, "and so on") == NULL);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_STR_EQ(heard, "kernel.cu:7: f: Assertion `x > 0` failed.\nkernel.cu:8: g: and so on.\n");
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

static bh_lane open_urgent(bh_device device, int32_t priority) {
    bh_lane_options options = BH_INIT(options);
    bh_lane lane;
    options.priority = priority;
    REQUIRE_OK(bh_lane_open(device, &options, &lane));
    return lane;
}

static unsigned count_text(const char *text) {
    static char so_far[sizeof heard];
    size_t length = atomic_load(&heard_length);
    unsigned count = 0;
    memcpy(so_far, heard, length);
    so_far[length] = '\0';
    for (const char *at = so_far; (at = strstr(at, text)) != NULL; at++) count++;
    return count;
}

/* Waits until it was heard so often; a standby is told of new lanes a moment after they are
 * open. */
static void check_heard(const char *text, unsigned count) {
    uint64_t limit = now_ns() + 5000 * MS * test_time_scale();
    while (count_text(text) < count && now_ns() < limit) sleep_ms(1);
    CHECK_EQ(count_text(text), count);
}

/* The fields of bh_device_limits from max_block on are numbered in the order that the struct
 * has. */
TEST(a_program_gets_the_numbers_that_the_worker_reports) {
    rig r = odd_open("numbers", false, BH_DEVICE_NO_STANDBY);
    bh_device_limits limits = limits_of(r.device);
    uint32_t fields[26];
    CHECK_EQ(offsetof(bh_device_limits, priority_lowest),
             offsetof(bh_device_limits, max_block) + sizeof fields);
    memcpy(fields, (const char *)&limits + offsetof(bh_device_limits, max_block), sizeof fields);
    for (uint32_t i = 0; i < 26; i++) CHECK_EQ(fields[i], 1001 + i);
    CHECK_EQ(limits.priority_lowest, -7);
    CHECK_EQ(limits.priority_highest, 8);
    bh_device_info info = BH_INIT(info);
    CHECK_OK(bh_device_get_info(r.device, &info));
    CHECK_EQ(info.multiprocessors, 1101);
    CHECK_EQ(info.driver_version, 1102);
    CHECK_STR_EQ(info.uuid, "the uuid");
    CHECK_STR_EQ(info.pci, "the bus");
    CHECK_STR_EQ(info.kind, "cpu");
    CHECK_OK(bh_device_close(r.device));
}

/* "advice A of C": the worker sets the bits C as in A. */
TEST(workers_are_told_what_advice_changes) {
    rig r = odd_open("advice", false, 0);
    wait_standby(r.device);
    watch_for(r.device, BH_EVENT_PRINT, hear, NULL);
    bh_buffer_options options = BH_INIT(options);
    options.flags = BH_BUFFER_DRIVER;
    bh_buffer x, view;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, 8192, &options, &x));
    REQUIRE_OK(bh_buffer_view(x, 0, 4096, 4096, &view));
    REQUIRE_OK(bh_managed_advise(x, 0, 8192, 0)); /* nothing to take back: nobody is told */
    REQUIRE_OK(bh_managed_advise(x, 0, 8192, BH_ADVISE_READ_MOSTLY | BH_ADVISE_PREFER_DEVICE));
    REQUIRE_OK(bh_managed_advise(view, 100, 50, BH_ADVISE_PREFER_HOST));
    REQUIRE_OK(bh_managed_advise(view, 0, 4096, BH_ADVISE_ACCESSED_BY_HOST));
    REQUIRE_OK(bh_managed_advise(view, 0, 4096, 0));
    /* Both workers. */
    check_heard("advice 0x5 of 0x5 for 8192 bytes at 0\n", 2);
    check_heard("advice 0x2 of 0x7 for 50 bytes at 4196\n", 2);
    check_heard("advice 0x10 of 0x17 for 4096 bytes at 4096\n", 2);
    check_heard("advice 0x0 of 0x10 for 4096 bytes at 4096\n", 2);
    check_heard("advice 0x", 8);
    /* One started from nothing is told what holds. */
    kill_worker(r.device, SIGKILL);
    check_heard("advice 0x1 of 0x1 for 4096 bytes at 0\n", 1);
    check_heard("advice 0x4 of 0x4 for 4096 bytes at 0\n", 1);
    check_heard("advice 0x", 10);
    CHECK_OK(bh_device_close(r.device));
}

TEST(lanes_are_made_with_their_priority_by_every_worker) {
    rig r = odd_open("priority", false, 0);
    CHECK_EQ(limits_of(r.device).priority_lowest, -1);
    CHECK_EQ(limits_of(r.device).priority_highest, 3);
    wait_standby(r.device);
    watch_for(r.device, BH_EVENT_PRINT, hear, NULL);
    open_lane(r.device);
    bh_lane second = open_urgent(r.device, 2);
    open_urgent(r.device, 99);
    open_urgent(r.device, -99);
    /* A closed one serves again, for the same priority only. */
    CHECK_OK(bh_lane_release(second));
    open_urgent(r.device, 1);
    open_urgent(r.device, 2);
    /* Both workers make them all. */
    check_heard("lane 1 priority 0\n", 2);
    check_heard("lane 2 priority 2\n", 2);
    check_heard("lane 3 priority 3\n", 2);
    check_heard("lane 4 priority -1\n", 2);
    check_heard("lane 5 priority 1\n", 2);
    check_heard("lane 6", 0);
    /* One started from nothing does too. */
    kill_worker(r.device, SIGKILL);
    check_heard("lane 0 priority 0\n", 1);
    check_heard("lane 3 priority 3\n", 3);
    check_heard("lane 4 priority -1\n", 3);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(lanes_left_with_other_priorities_are_named_when_there_are_no_more) {
    rig r = odd_open("priority", false, BH_DEVICE_NO_STANDBY);
    bh_lane lanes[100];
    bh_error error;
    unsigned count = 0;
    while (count < 100 && bh_lane_open(r.device, NULL, &lanes[count]) == BH_OK) count++;
    REQUIRE(count > 8 && count < 100);
    bh_lane_options options = BH_INIT(options);
    bh_lane lane = {77};
    options.priority = 1;
    CHECK_REFUSED(bh_lane_open(r.device, &options, &lane), BH_E_BUSY);
    CHECK_OK(bh_lane_release(lanes[3]));
    CHECK_REFUSED(bh_lane_open(r.device, &options, &lane), BH_E_BUSY);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "priority 1");
    CHECK_EQ(lane.id, 77);
    options.priority = 0;
    CHECK_OK(bh_lane_open(r.device, &options, &lane));
    CHECK_OK(bh_device_close(r.device));
}
