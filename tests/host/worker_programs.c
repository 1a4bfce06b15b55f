/* SPDX-License-Identifier: Apache-2.0 */
/* Worker programs that are missing, broken, of another version, or that vanish while in use. */
#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../support/support.h"

/* A folder with nothing in it, for worker programs. */
static const char *empty_folder(void) {
    static char path[600];
    test_path(path, sizeof path, "%s/workers-XXXXXX", test_tmp_dir());
    REQUIRE(mkdtemp(path) != NULL);
    return path;
}

static void place_path(char *path, size_t size, const char *folder) {
    const char *kind = strncmp(test_device(), "cuda", 4) == 0 ? "cuda" : "cpu";
    test_path(path, size, "%s/bulkhead-worker-%s", folder, kind);
}

static void place_text(const char *folder, const char *text, mode_t mode) {
    char path[700];
    place_path(path, sizeof path, folder);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs(text, file);
    fclose(file);
    REQUIRE(chmod(path, mode) == 0);
}

static void place_link(const char *folder, const char *target) {
    char path[700];
    place_path(path, sizeof path, folder);
    REQUIRE(symlink(target, path) == 0);
}

/* Children of this process, zombies included. */
static int children(void) {
    int count = 0;
    char text[64];
    DIR *dir = opendir("/proc");
    REQUIRE(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        int parent = 0;
        char state = 0;
        FILE *file = fopen(test_path(text, sizeof text, "/proc/%.20s/stat", entry->d_name), "r");
        if (file == NULL) continue;
        if (fscanf(file, "%*d (%*[^)]) %c %d", &state, &parent) == 2 && parent == (int)getpid())
            count++;
        fclose(file);
    }
    closedir(dir);
    return count;
}

static bool wait_no_children(void) {
    uint64_t limit = now_ns() + 5000 * MS * test_time_scale();
    while (children() > 0) {
        if (now_ns() > limit) return false;
        sleep_ms(2);
    }
    return true;
}

/* A child that ends while a tracer holds it (a leak checker is one) is reaped when that lets go,
 * and its descriptor is closed a moment later. */
static bool wait_descriptors(unsigned count) {
    uint64_t limit = now_ns() + 5000 * MS * test_time_scale();
    while (open_descriptors() != count) {
        if (now_ns() > limit) return false;
        sleep_ms(2);
    }
    return true;
}

/* Opening a device with this folder fails clearly and soon, and leaves nothing behind. */
static void check_refused_within(const char *folder, uint64_t ms, bh_error *out_error) {
    bh_device_options options = device_options(0);
    bh_device device = {42};
    unsigned before = open_descriptors();
    options.worker_dir = folder;
    for (int i = 0; i < 2; i++) {
        uint64_t begun = now_ns();
        bh_status status = bh_device_open(&options, &device);
        CHECK_REFUSED_ANY(status);
        CHECK_LT(now_ns() - begun, ms * MS * test_time_scale());
        bh_last_error(out_error);
        CHECK_EQ(device.id, 42);
        CHECK(wait_no_children());
    }
    CHECK(wait_descriptors(before));
    options.worker_dir = NULL; /* the real one still works */
    REQUIRE_OK(bh_device_open(&options, &device));
    CHECK_OK(bh_device_close(device));
}

static void check_refused_with(const char *folder, bh_error *out_error) {
    check_refused_within(folder, 3000, out_error);
}

TEST(a_folder_that_does_not_exist) {
    bh_error error;
    check_refused_with("/no/such/folder", &error);
    CHECK_EQ(error.status, BH_E_NO_DEVICE);
    CHECK_STR_CONTAINS(error.message, "/no/such/folder");
}

TEST(a_folder_without_worker_programs) {
    bh_error error;
    const char *folder = empty_folder();
    check_refused_with(folder, &error);
    CHECK_EQ(error.status, BH_E_NO_DEVICE);
    CHECK_STR_CONTAINS(error.message, "bulkhead-worker-");
}

TEST(a_folder_named_at_absurd_length) {
    bh_error error;
    char *folder = malloc(100000);
    memset(folder, 'f', 99999);
    folder[0] = '/';
    folder[99999] = '\0';
    check_refused_with(folder, &error);
    free(folder);
}

TEST(a_program_that_is_not_executable) {
    bh_error error;
    const char *folder = empty_folder();
    place_text(folder, "#!/bin/sh\nexit 0\n", 0644);
    check_refused_with(folder, &error);
    CHECK_STR_CONTAINS(error.fix, "executable");
}

TEST(a_program_that_is_no_program) {
    bh_error error;
    const char *folder = empty_folder();
    place_text(folder, "\177ELF but not really", 0755);
    check_refused_with(folder, &error);
}

TEST(a_program_that_is_a_folder) {
    bh_error error;
    char path[700];
    const char *folder = empty_folder();
    place_path(path, sizeof path, folder);
    REQUIRE(mkdir(path, 0755) == 0);
    check_refused_with(folder, &error);
}

TEST(a_program_that_exits_at_once) {
    bh_error error;
    const char *folder = empty_folder();
    place_text(folder, "#!/bin/sh\necho the frobnicator is out of order >&2\nexit 3\n", 0755);
    check_refused_with(folder, &error);
    CHECK_STR_CONTAINS(error.message, "the frobnicator is out of order");
}

TEST(a_program_that_says_nothing_and_exits_well) {
    bh_error error;
    const char *folder = empty_folder();
    place_text(folder, "#!/bin/sh\nexit 0\n", 0755);
    check_refused_with(folder, &error);
}

/* The program under test that misbehaves as `how` says. */
static void check_impostor_within(const char *how, uint64_t ms, bh_error *out_error) {
    char path[600];
    const char *folder = empty_folder();
    place_link(folder,
               test_path(path, sizeof path, "%s/tests/programs/impostor", test_build_dir()));
    REQUIRE(access(path, X_OK) == 0);
    setenv("BULKHEAD_TEST_IMPOSTOR", how, 1);
    check_refused_within(folder, ms, out_error);
}

static void check_impostor(const char *how, bh_error *out_error) {
    check_impostor_within(how, 3000, out_error);
}

/* It may be a slow one: it is given more time than those that are clearly wrong. */
TEST_TIMEOUT(a_program_that_hangs, 90) {
    bh_error error;
    bool cpu = strcmp(test_device(), "cpu") == 0;
    check_impostor_within("hang", cpu ? 20000 : 45000, &error);
}

TEST(a_program_that_dies_of_a_signal) {
    bh_error error;
    check_impostor("die", &error);
}

TEST(a_program_that_closes_its_line_and_stays) {
    bh_error error;
    check_impostor("close", &error);
}

TEST(a_program_of_another_version) {
    bh_error error;
    check_impostor("version", &error);
    CHECK_STR_CONTAINS(error.message, "version");
}

TEST(a_program_that_is_no_worker_of_this_kind) {
    bh_error error;
    check_impostor("magic", &error);
}

TEST(a_program_that_talks_nonsense) {
    bh_error error;
    check_impostor("noise", &error);
}

TEST(a_program_that_is_ready_and_gone) {
    bh_error error;
    check_impostor("ready", &error);
}

TEST(a_program_that_is_ready_and_then_does_nothing) {
    bh_error error;
    check_impostor_within("silent", 6000, &error);
    CHECK_EQ(error.status, BH_E_NO_DEVICE);
    CHECK_STR_CONTAINS(error.message, "has not answered");
}

TEST(a_program_that_refuses_gives_its_reason) {
    bh_error error;
    check_impostor("refuse", &error);
    CHECK_EQ(error.status, BH_E_NO_DEVICE);
    CHECK_STR_CONTAINS(error.message, "the flux is not capacitated");
    CHECK_STR_CONTAINS(error.fix, "capacitate it");
}

static void place_real(const char *folder) {
    char path[700], real[700];
    place_path(path, sizeof path, folder);
    test_path(real, sizeof real, "%s/bin%s", test_build_dir(), strrchr(path, '/'));
    place_link(folder, real);
}

TEST(the_folder_given_is_the_one_used) {
    const char *folder = empty_folder();
    bh_device_options options = device_options(0);
    place_real(folder);
    options.worker_dir = folder;
    rig r = rig_open_with(&options);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_environment_names_a_folder_too) {
    const char *folder = empty_folder();
    bh_device_options options = device_options(0);
    bh_device device = {0};
    setenv("BULKHEAD_WORKER_DIR", folder, 1);
    CHECK_REFUSED(bh_device_open(&options, &device), BH_E_NO_DEVICE);
    place_real(folder);
    REQUIRE_OK(bh_device_open(&options, &device));
    CHECK_OK(bh_device_close(device));
}

TEST(without_a_program_a_lost_worker_stops_the_device) {
    const char *folder = empty_folder();
    char path[700];
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY | BH_DEVICE_NO_RESTART_LIMIT);
    place_real(folder);
    options.worker_dir = folder;
    rig r = rig_open_with(&options);
    bh_buffer x = words_filled(r.device, 10, 0);
    place_path(path, sizeof path, folder);
    REQUIRE(unlink(path) == 0);
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    uint64_t limit = now_ns() + 20000 * MS;
    while (health_of(r.device).state != BH_HEALTH_STOPPED && now_ns() < limit) sleep_ms(2);
    bh_health health = health_of(r.device);
    CHECK_EQ(health.state, BH_HEALTH_STOPPED);
    CHECK(health.reason[0] != '\0');
    uint32_t word;
    CHECK_REFUSED(bh_buffer_read(x, 0, &word, 4), BH_E_STOPPED);
    CHECK_OK(bh_device_close(r.device));
    CHECK(wait_no_children());
}

TEST(without_a_program_for_the_standby_the_device_runs_and_says_so) {
    const char *folder = empty_folder();
    char path[700];
    bh_device_options options = device_options(0);
    place_real(folder);
    options.worker_dir = folder;
    rig r = rig_open_with(&options);
    wait_standby(r.device);
    place_path(path, sizeof path, folder);
    REQUIRE(unlink(path) == 0);
    kill_worker(r.device, SIGKILL); /* the standby takes over, and no other can be started */
    check_device_works(&r);
    CHECK_REFUSED(bh_device_wait_standby(r.device, 500 * MS), BH_E_TIMEOUT);
    CHECK_REFUSED(bh_device_wait_standby(r.device, 0), BH_E_BUSY);
    bh_health health = health_of(r.device);
    CHECK(is_running(r.device));
    CHECK_EQ(health.standbys_ready, 0);
    CHECK(health.reason[0] != '\0');
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
    CHECK(wait_no_children());
}

/* Holds a process as a debugger does, until the other end of the pipe is closed. */
static pid_t trace_process(int32_t traced, int pipe_end[2]) {
    char begun = 0;
    int answer[2];
    REQUIRE(pipe(pipe_end) == 0 && pipe(answer) == 0);
    pid_t tracer = fork();
    REQUIRE(tracer >= 0);
    if (tracer == 0) {
        close(pipe_end[1]);
        begun = ptrace(PTRACE_SEIZE, traced, NULL, NULL) == 0;
        if (write(answer[1], &begun, 1) == 1 && read(pipe_end[0], &begun, 1) != 0) _exit(1);
        _exit(0); /* which lets go of the process */
    }
    close(pipe_end[0]);
    REQUIRE(read(answer[0], &begun, 1) == 1);
    close(answer[0]);
    close(answer[1]);
    if (begun) return tracer;
    close(pipe_end[1]);
    waitpid(tracer, NULL, 0);
    return 0;
}

TEST(a_worker_that_a_debugger_holds_when_it_ends_is_reaped_later) {
    unsigned before = open_descriptors();
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    int pipe_end[2];
    pid_t tracer = trace_process(health_of(r.device).worker_pid, pipe_end);
    if (tracer == 0) SKIP("this user may not trace processes");
    kill_worker(r.device, SIGKILL);
    check_device_works(&r); /* the next worker does not wait for the debugger */
    CHECK_OK(bh_device_close(r.device));
    CHECK_EQ(children(), 2); /* the debugger, and what it holds */
    close(pipe_end[1]);
    REQUIRE(waitpid(tracer, NULL, 0) == tracer);
    CHECK(wait_no_children());
    CHECK(wait_descriptors(before));
}

/* ---- workers that fail once they are in use ---- */

#define STUCK_NS (400 * MS * test_time_scale())

/* A device whose first `count` workers are impostors; the next ones are real. */
static bh_device open_with_impostors(const char *how, int count, uint32_t flags) {
    char path[700], real[700];
    const char *folder = empty_folder();
    bh_device_options options = device_options(flags);
    place_link(folder,
               test_path(path, sizeof path, "%s/tests/programs/impostor", test_build_dir()));
    place_path(real, sizeof real, folder);
    test_path(path, sizeof path, "%s/bin%s", test_build_dir(), strrchr(real, '/'));
    test_path(real, sizeof real, "%s/real", folder);
    REQUIRE(symlink(path, real) == 0);
    for (int i = 0; i < count; i++) {
        FILE *file = fopen(test_path(path, sizeof path, "%s/impostor-%d", folder, i), "w");
        REQUIRE(file != NULL);
        fclose(file);
    }
    setenv("BULKHEAD_TEST_IMPOSTOR", how, 1);
    setenv("BULKHEAD_TEST_IMPOSTORS", folder, 1);
    options.worker_dir = folder;
    options.stuck_timeout_ns = STUCK_NS;
    bh_device device = {0};
    REQUIRE_OK(bh_device_open(&options, &device));
    return device;
}

static void check_loads_after_loss(bh_device device, loss_log *log, const char *reason) {
    rig r = {device, load_module(device, ptx_basic)};
    check_device_works(&r);
    CHECK(loss_log_wait(log, 1));
    CHECK_STR_CONTAINS(log->losses[0].message, reason);
    CHECK_EQ(log->losses[0].cause, BH_E_LOST);
    CHECK_OK(bh_device_close(device));
}

TEST(a_worker_that_answers_no_order_is_replaced_and_the_order_carried_out) {
    static loss_log log;
    bh_device device = open_with_impostors("deaf", 1, BH_DEVICE_NO_STANDBY);
    loss_log_start(device, &log);
    bh_lane lane = open_lane(device);
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    check_loads_after_loss(device, &log, "LANE_OPEN");
}

TEST(a_worker_that_answers_with_another_number_is_replaced_and_the_order_carried_out) {
    static loss_log log;
    bh_device device = open_with_impostors("serial", 1, BH_DEVICE_NO_STANDBY);
    loss_log_start(device, &log);
    check_loads_after_loss(device, &log, "answered order");
}

TEST(a_worker_that_answers_twice_is_replaced_and_the_order_carried_out) {
    static loss_log log;
    bh_device device = open_with_impostors("twice", 1, BH_DEVICE_NO_STANDBY);
    loss_log_start(device, &log);
    bh_lane lane = open_lane(device);
    check_loads_after_loss(device, &log, "answered order");
    (void)lane;
}

/* Its successors would die of memory that is shorter than it is said to be. */
TEST(a_worker_that_makes_other_memory_than_asked_for_is_replaced) {
    static loss_log log;
    bh_device device = open_with_impostors("chunk", 1, BH_DEVICE_NO_STANDBY);
    if (!is_cpu(device)) SKIP("a GPU's memory says nothing of itself through its descriptor");
    loss_log_start(device, &log);
    bh_buffer x = words_counting(device, 1000, 3);
    CHECK(words_count(x, 1000, 3));
    check_loads_after_loss(device, &log, "(CHUNK_CREATE) is invalid");
}

/* The supervisor sends until the socket takes no more, and does not wait there. */
TEST(a_worker_that_answers_orders_it_does_not_take_is_replaced) {
    enum { ORDERS = 400 };
    static loss_log log;
    bh_device device = open_with_impostors("unheard", 1, BH_DEVICE_NO_STANDBY);
    loss_log_start(device, &log);
    for (int i = 0; i < ORDERS && log.count == 0; i++) {
        void *memory;
        REQUIRE_OK(bh_host_alloc(device, 4096, &memory));
    }
    check_loads_after_loss(device, &log, "its socket is full");
}

static long resident_pages(void) {
    long size, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    REQUIRE(file != NULL);
    REQUIRE(fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident;
}

static void print_slowly(void *context, const bh_event *event) {
    (void)event;
    while (!atomic_load((_Atomic bool *)context)) sleep_ms(1);
}

TEST(a_worker_that_never_stops_printing_does_not_take_all_memory) {
    static _Atomic bool released;
    REQUIRE(freopen("/dev/null", "w", stderr) != NULL); /* where the log goes */
    bh_device device = open_with_impostors("print", 1, BH_DEVICE_NO_STANDBY);
    long before = resident_pages();
    watch_for(device, BH_EVENT_PRINT, print_slowly, &released);
    bh_lane lane = open_lane(device); /* which it answers when it has printed all */
    CHECK_LT((resident_pages() - before) * sysconf(_SC_PAGESIZE), 100l << 20);
    atomic_store(&released, true);
    (void)lane;
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(an_order_that_no_worker_carries_out_fails, 60) {
    bh_device device =
        open_with_impostors("deaf", 8, BH_DEVICE_NO_STANDBY | BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lane = {0};
    uint64_t begun = now_ns();
    CHECK_REFUSED(bh_lane_open(device, NULL, &lane), BH_E_LOST);
    bh_error error;
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "3 workers in a row");
    CHECK_STR_CONTAINS(error.message, "LANE_OPEN");
    CHECK_LT(now_ns() - begun, 5 * STUCK_NS + 3000 * MS);
    CHECK_OK(bh_device_close(device));
}

/* All of its time goes into reading what such a worker says, unless it is read in turns. */
TEST(a_worker_that_floods_its_standard_error_is_noticed_as_stuck) {
    static loss_log log;
    REQUIRE(freopen("/dev/null", "w", stderr) != NULL); /* where the log goes */
    bh_device device = open_with_impostors("flood", 1, BH_DEVICE_NO_STANDBY);
    loss_log_start(device, &log);
    uint64_t begun = now_ns();
    bh_lane lane = open_lane(device);
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    CHECK_LT(now_ns() - begun, STUCK_NS + 3000 * MS * test_time_scale());
    CHECK(loss_log_wait(&log, 1));
    CHECK_OK(bh_device_close(device));
}
