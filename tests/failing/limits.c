/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the process (ulimit): what does not fit is an error that names the limit. Nothing
 * crashes or hangs, no signal is raised, and without the limit all works again. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "../support/support.h"

#define MIB UINT64_C(1048576)

static rlim_t limit_set(int resource, rlim_t value) {
    struct rlimit limit;
    REQUIRE(getrlimit((__rlimit_resource_t)resource, &limit) == 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = value < limit.rlim_max ? value : limit.rlim_max;
    REQUIRE(setrlimit((__rlimit_resource_t)resource, &limit) == 0);
    return before;
}

/* The call failed, said why, and its advice names the limit. */
static void check_names(bh_status status, const char *option) {
    bh_error error;
    CHECK_NE(status, BH_OK);
    bh_last_error(&error);
    CHECK_EQ(error.status, status);
    CHECK_NE(status, BH_E_INTERNAL);
    if (!strstr(error.fix, option))
        FAIL("%s: \"%s\", Fix: \"%s\" does not name %s", bh_status_name(status), error.message,
             error.fix, option);
}

static bh_status try_open(bh_device *out) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    uint64_t begun = now_ns();
    bh_status status = bh_device_open(&options, out);
    CHECK_LT(now_ns() - begun, 12000 * MS * test_time_scale());
    return status;
}

/* Opens a device, loads, launches, reads. The first status that is not BH_OK; none may be a defect.
 * */
static bh_status try_all(void) {
    bh_device device;
    bh_module module;
    bh_kernel kernel;
    bh_buffer buffer;
    bh_ticket done;
    uint32_t word = 0;
    bh_status status = try_open(&device);
    if (status != BH_OK) return status;
    status = bh_module_load(device, ptx_basic, strlen(ptx_basic), &module);
    if (status == BH_OK) status = bh_kernel_get(module, "store_word", &kernel);
    if (status == BH_OK) status = bh_buffer_alloc(device, BH_U32, 1, NULL, &buffer);
    if (status == BH_OK)
        status = bh_launch(kernel, BH_GRID(1, 1), BH_ARGS(BH_OUT(buffer), 5u), NULL, &done);
    if (status == BH_OK) status = bh_wait(done, LONG_NS);
    if (status == BH_OK) status = bh_buffer_read(buffer, 0, &word, sizeof word);
    bh_error error;
    bh_last_error(&error);
    if (status == BH_OK) CHECK_EQ(word, 5);
    if (status != BH_OK && (!error.message[0] || !error.fix[0] || status == BH_E_INTERNAL))
        FAIL("%s: \"%s\", Fix: \"%s\"", bh_status_name(status), error.message, error.fix);
    CHECK_OK(bh_device_close(device));
    return status;
}

/* ---- ulimit -f ---- */

static volatile sig_atomic_t signals;

static void count_signal(int number) {
    (void)number;
    signals++;
}

/* With the default disposition the program would be gone. */
static void check_no_signal(void) {
    sigset_t pending;
    sigpending(&pending);
    CHECK_EQ(sigismember(&pending, SIGXFSZ), 0);
    CHECK_EQ(signals, 0);
}

TEST(a_limit_on_file_size_refuses_the_device) {
    if (strcmp(test_device(), "cpu") != 0) SKIP("drivers write files of their own");
    rlim_t before = limit_set(RLIMIT_FSIZE, 64 * 1024);
    bh_device device;
    check_names(try_open(&device), "ulimit -f");
    signal(SIGXFSZ, count_signal);
    check_names(try_open(&device), "ulimit -f");
    check_no_signal();
    limit_set(RLIMIT_FSIZE, before);
    CHECK_EQ(try_all(), BH_OK);
}

TEST(a_limit_on_file_size_refuses_memory_and_costs_no_worker) {
    rig r = rig_open(0);
    if (!is_cpu(r.device)) SKIP("a GPU's memory is no file");
    bh_buffer buffer;
    void *memory;
    signal(SIGXFSZ, count_signal);
    wait_standby(r.device);
    rlim_t before = limit_set(RLIMIT_FSIZE, 100 * MIB);
    check_names(bh_host_alloc(r.device, 200 * MIB, &memory), "ulimit -f");
    limit_set(RLIMIT_FSIZE, before);
    check_no_signal();
    CHECK_OK(bh_device_close(r.device));

    /* The worker has the limit that there was when it was started. */
    limit_set(RLIMIT_FSIZE, 100 * MIB);
    r = rig_open(0);
    check_names(bh_buffer_alloc(r.device, BH_U8, 200 * MIB, NULL, &buffer), "ulimit -f");
    check_device_works(&r);
    CHECK_EQ(health_of(r.device).losses, 0);
    CHECK_OK(bh_device_close(r.device));
    limit_set(RLIMIT_FSIZE, before);
}

TEST(a_trace_beyond_the_limit_on_file_size_says_so) {
    rig r = rig_open(0);
    char path[600];
    signal(SIGXFSZ, count_signal);
    check_device_works(&r); /* what that needs is there when the limit comes */
    rlim_t before = limit_set(RLIMIT_FSIZE, 4096);
    CHECK_OK(bh_trace_start(r.device, test_path(path, sizeof path, "%s/trace", test_tmp_dir())));
    for (int i = 0; i < 200; i++) check_device_works(&r);
    check_names(bh_trace_stop(r.device), "ulimit -f");
    limit_set(RLIMIT_FSIZE, before);
    check_no_signal();
    CHECK_OK(bh_device_close(r.device));
}

/* ---- ulimit -n ---- */

/* A driver needs more of them than a worker of the CPU device, and longer to say so. */
TEST_TIMEOUT(few_descriptors_are_an_error_or_enough, 120) {
    rlim_t before = limit_set(RLIMIT_NOFILE, 1024);
    unsigned open = open_descriptors(), pace = strcmp(test_device(), "cpu") == 0 ? 8 : 2;
    unsigned good = 0, refused = 0;
    for (unsigned more = 0; more < 40 || (good == 0 && more < 400); more += 1 + more / pace) {
        limit_set(RLIMIT_NOFILE, open + more);
        bh_status status = try_all();
        bh_error error;
        bh_last_error(&error);
        if (status == BH_OK) {
            good++;
            continue;
        }
        refused++;
        if (!strstr(error.fix, "ulimit -n"))
            FAIL("%u more: %s: \"%s\", Fix: \"%s\"", more, bh_status_name(status), error.message,
                 error.fix);
    }
    CHECK_GT(refused, 0);
    CHECK_GT(good, 0);
    limit_set(RLIMIT_NOFILE, before);
    CHECK_EQ(try_all(), BH_OK);
    CHECK_EQ(open_descriptors(), open);
}

/* A driver that lacks descriptors says that there is no device, or that it does not know. */
TEST(a_driver_that_lacks_descriptors_is_explained) {
    static const char *const answers[] = {"init=999", "init=100", "init=304", "context=304",
                                          "context=999"};
    char folder[600];
    setenv("LD_LIBRARY_PATH",
           test_path(folder, sizeof folder, "%s/tests/no_cuda", test_build_dir()), 1);
    rlim_t before = limit_set(RLIMIT_NOFILE, open_descriptors() + 40);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
        bh_device device;
        bh_error error;
        unsigned used = 0, limit = 0;
        options.device = "cuda";
        setenv("BULKHEAD_TEST_CUDA", answers[i], 1);
        check_names(bh_device_open(&options, &device), "ulimit -n");
        bh_last_error(&error);
        const char *told = strstr(error.message, "descriptors: ");
        CHECK(told && sscanf(told, "descriptors: %u of %u are in use", &used, &limit) == 2);
        CHECK_EQ(limit, open_descriptors() + 40);
        CHECK(used > 3 && used <= limit);
    }
    limit_set(RLIMIT_NOFILE, before);
}

TEST(few_descriptors_keep_a_device_that_is_open) {
    rig r = rig_open(0);
    wait_standby(r.device);
    check_device_works(&r);
    rlim_t before = limit_set(RLIMIT_NOFILE, 256);
    int taken[256], count = 0;
    while (count < 256 && (taken[count] = dup(0)) >= 0) count++;
    bh_buffer buffer;
    void *memory;
    check_names(bh_host_alloc(r.device, MIB, &memory), "ulimit -n");
    bh_status status = bh_buffer_alloc(r.device, BH_U8, 300 * MIB, NULL, &buffer);
    if (is_cpu(r.device)) check_names(status, "ulimit -n");
    while (count > 0) close(taken[--count]);
    limit_set(RLIMIT_NOFILE, before);
    check_device_works(&r);
    CHECK_OK(bh_host_alloc(r.device, MIB, &memory));
    CHECK_EQ(health_of(r.device).losses, 0);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- ulimit -v ---- */

static rlim_t address_space(void) {
    char line[200];
    unsigned long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    REQUIRE(file != NULL);
    while (fgets(line, sizeof line, file) && sscanf(line, "VmSize: %lu", &kilobytes) != 1) continue;
    fclose(file);
    return (rlim_t)kilobytes * 1024;
}

TEST_TIMEOUT(little_address_space_is_an_error_or_enough, 60) {
    if (test_time_scale() > 1) SKIP("sanitizers need all of the address space");
    if (strcmp(test_device(), "cpu") != 0) SKIP("drivers need all of the address space");
    rlim_t base = address_space();
    unsigned refused = 0;
    for (unsigned more = 1; more < 400; more += 1 + more / 2) {
        rlim_t before = limit_set(RLIMIT_AS, base + more * MIB);
        bh_status status = try_all();
        limit_set(RLIMIT_AS, before);
        refused += status != BH_OK;
    }
    CHECK_GT(refused, 0);
    CHECK_EQ(try_all(), BH_OK);
}

TEST(too_little_address_space_names_the_limit) {
    if (test_time_scale() > 1) SKIP("sanitizers need all of the address space");
    bh_device device;
    rlim_t before = limit_set(RLIMIT_AS, address_space() + 8 * MIB);
    bh_status status = try_open(&device);
    limit_set(RLIMIT_AS, before);
    check_names(status, "ulimit -v");
}

/* ---- ulimit -u, ulimit -l ---- */

TEST(no_more_processes_is_an_error) {
    enum { NOBODY_ELSE = 424242 };
    if (geteuid() == 0 && setresuid(NOBODY_ELSE, NOBODY_ELSE, NOBODY_ELSE) < 0)
        SKIP("root has no limit on processes, and cannot become somebody else: %s",
             strerror(errno));
    char path[700];
    test_path(path, sizeof path, "%s/bin/bulkhead-worker-cpu", test_build_dir());
    if (access(path, X_OK) < 0) SKIP("%s cannot be used by others", path);
    rlim_t before = limit_set(RLIMIT_NPROC, 1);
    for (rlim_t most = 1; most < 3; most++) {
        limit_set(RLIMIT_NPROC, most);
        bh_device device;
        check_names(try_open(&device), "ulimit -u");
    }
    limit_set(RLIMIT_NPROC, before);
    CHECK_EQ(try_all(), BH_OK);
}

TEST(locked_memory_is_not_needed) {
    rlim_t before = limit_set(RLIMIT_MEMLOCK, 0);
    rig r = rig_open(0);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
    limit_set(RLIMIT_MEMLOCK, before);
}
