/* SPDX-License-Identifier: Apache-2.0 */
/* Host programs that end in every way there is: no worker and no memory stays behind. */
#include "host.h"

/* Everything a device can have going on: work in flight and queued, buffers, host memory,
 * callbacks. */
static rig make_busy(int pipe) {
    rig r = rig_open(0);
    void *memory = NULL;
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_buffer x = words_filled(r.device, 1 << 20, 1);
    REQUIRE_OK(bh_host_alloc(r.device, 1 << 20, &memory));
    wait_standby(r.device);
    gate_close(&r, lane, 0);
    for (int i = 0; i < 50; i++)
        submit(rig_kernel(&r, "add_one"), BH_GRID(1000, 64), BH_ARGS(BH_INOUT(x), 1000u), &there);
    if (pipe >= 0) host_tell(pipe, r.device);
    return r;
}

static int busy_for_ever(int pipe) {
    make_busy(pipe);
    for (;;) pause();
    return 0;
}

TEST(killed_in_the_middle_of_work) {
    host h = host_start(busy_for_ever, true);
    CHECK_GT(h.report.memory_count, 0);
    CHECK(process_exists(h.report.worker));
    CHECK(process_exists(h.report.standby));
    REQUIRE(kill(h.pid, SIGKILL) == 0);
    CHECK_EQ(host_end(&h), 128 + SIGKILL);
    host_check_gone(&h);
}

TEST(ended_by_a_signal_without_handler) {
    host h = host_start(busy_for_ever, true);
    REQUIRE(kill(h.pid, SIGTERM) == 0);
    CHECK_EQ(host_end(&h), 128 + SIGTERM);
    host_check_gone(&h);
}

static int abort_itself(int pipe) {
    make_busy(pipe);
    signal(SIGABRT, SIG_DFL);
    raise(SIGABRT);
    return 0;
}

TEST(aborted) {
    host h = host_start(abort_itself, true);
    CHECK_EQ(host_end(&h), 128 + SIGABRT);
    host_check_gone(&h);
}

static int leave_quickly(int pipe) {
    make_busy(pipe);
    _exit(5);
}

TEST(left_with_underscore_exit) {
    host h = host_start(leave_quickly, true);
    CHECK_EQ(host_end(&h), 5);
    host_check_gone(&h);
}

static int leave_by_exit(int pipe) {
    make_busy(pipe);
    exit(6);
}

TEST(left_with_exit_and_no_close) {
    host h = host_start(leave_by_exit, true);
    CHECK_EQ(host_end(&h), 6);
    host_check_gone(&h);
}

static void *exit_from_thread(void *unused) {
    (void)unused;
    exit(7);
}

static int leave_from_a_thread(int pipe) {
    pthread_t thread;
    make_busy(pipe);
    pthread_create(&thread, NULL, exit_from_thread, NULL);
    for (;;) pause();
    return 0;
}

TEST(left_with_exit_from_another_thread) {
    host h = host_start(leave_from_a_thread, true);
    CHECK_EQ(host_end(&h), 7);
    host_check_gone(&h);
}

static int never_wait(int pipe) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 1000, 0);
    host_tell(pipe, r.device);
    for (int i = 0; i < 3000; i++)
        submit(rig_kernel(&r, "add_one"), BH_GRID(1000, 64), BH_ARGS(BH_INOUT(x), 1000u), NULL);
    return 0;
}

TEST(submitted_and_never_waited) {
    host h = host_start(never_wait, true);
    CHECK_EQ(host_end(&h), 0);
    host_check_gone(&h);
}

static int die_while_opening(int pipe) {
    bh_device_options options = device_options(0);
    bh_device device;
    (void)pipe;
    for (;;) {
        if (bh_device_open(&options, &device) == BH_OK) bh_device_close(device);
    }
    return 0;
}

/* Processes whose name begins as those of workers do, and whose parent is gone. */
static bool orphans_left(pid_t session) {
    bool found = false;
    for (pid_t pid = session + 1; pid < session + 400; pid++) {
        char path[64], name[64] = "";
        FILE *file = fopen(test_path(path, sizeof path, "/proc/%d/stat", (int)pid), "r");
        int parent = 0;
        char state = 0;
        if (file == NULL) continue;
        if (fscanf(file, "%*d (%63[^)]) %c %d", name, &state, &parent) == 3 && parent == 1 &&
            state != 'Z' && strncmp(name, "bulkhead-worke", 14) == 0)
            found = true;
        fclose(file);
    }
    return found;
}

TEST_SERIAL(killed_while_opening_and_closing, 60) {
    for (unsigned i = 0; i < 12; i++) {
        host h = host_start(die_while_opening, false);
        sleep_ms(5 + i * 7);
        REQUIRE(kill(h.pid, SIGKILL) == 0);
        CHECK_EQ(host_end(&h), 128 + SIGKILL);
        uint64_t limit = now_ns() + 5000 * MS * test_time_scale();
        while (orphans_left(h.pid) && now_ns() < limit) sleep_ms(5);
        CHECK(!orphans_left(h.pid));
    }
}

static int become_another_program(int pipe) {
    make_busy(pipe);
    execl("/bin/sleep", "sleep", "20", (char *)NULL);
    return 1;
}

TEST(turned_into_another_program_by_exec) {
    host h = host_start(become_another_program, true);
    host_check_gone(&h);
    CHECK(process_exists(h.pid)); /* the same process is another program now */
    REQUIRE(kill(h.pid, SIGKILL) == 0);
    CHECK_EQ(host_end(&h), 128 + SIGKILL);
}

/* How many descriptors a program started now would have. */
static int inherited(void) {
    int count = -1;
    FILE *program = popen("ls /proc/self/fd | wc -l", "r");
    REQUIRE(program != NULL);
    CHECK_EQ(fscanf(program, "%d", &count), 1);
    pclose(program);
    return count;
}

static void say_status(void *context, bh_ticket ticket, bh_status status) {
    (void)ticket;
    (void)!write(*(int *)context, &status, sizeof status);
}

static int skip(int pipe) {
    bh_device_options options = device_options(0);
    options.close_timeout_ns = MS;
    rig r = rig_open_with(&options);
    gate g = gate_close(&r, open_lane(r.device), 0);
    REQUIRE_OK(bh_on_done(g.ticket, say_status, &pipe));
    SKIP("with a device that is open");
}

/* Workers of a process that just ends live on for a moment, on a GPU for long: a runner would find
 * them. */
TEST(a_skipped_test_closes_its_device) {
    host h = host_start(skip, false);
    bh_status status = BH_OK;
    CHECK_EQ(host_end(&h), 77);
    CHECK_EQ(read(h.pipe, &status, sizeof status), sizeof status);
    CHECK_STATUS(status, BH_E_CANCELLED);
}

static int start_a_program(int pipe) {
    int before = inherited();
    rig r = make_busy(pipe);
    int after = inherited();
    check_device_works(&r);
    return before == after ? 0 : 1;
}

TEST(programs_it_starts_inherit_nothing) {
    host h = host_start(start_a_program, true);
    CHECK_EQ(host_end(&h), 0);
    host_check_gone(&h);
}

static int outlived_by_a_child(int pipe) {
    make_busy(pipe);
    pid_t child = fork();
    if (child == 0)
        for (;;) /* lives on with everything it inherited */
            pause();
    REQUIRE(write(pipe, &child, sizeof child) == sizeof child);
    return 0;
}

TEST(outlived_by_a_forked_child) {
    host h = host_start(outlived_by_a_child, true);
    pid_t child = 0;
    CHECK_EQ(read(h.pipe, &child, sizeof child), sizeof child);
    CHECK_EQ(host_end(&h), 0);
    host_check_gone(&h); /* the child holds none of its memory either */
    CHECK(process_exists(child));
    kill(child, SIGKILL);
}
