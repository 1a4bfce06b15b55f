/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that close descriptors they do not own, or have none left. No crash, no hang, no worker
 * left. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "host.h"

/* ThreadSanitizer rightly calls it a race when a number is closed or given out anew while another
 * thread has it in use. That is what these hosts do; races on memory are still reported. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
#define RACE_IN(call) "race_top:^" call "$\nrace_top:_interceptor_" call "$\n"
    return RACE_IN("close") RACE_IN("eventfd") RACE_IN("open") RACE_IN("pipe2") RACE_IN("recvmsg")
        RACE_IN("socketpair") RACE_IN("socket") RACE_IN("accept4");
}

/* Makes every kind of call, whatever it answers. */
static void call_everything(const rig *r) {
    bh_buffer x = {0};
    bh_lane lane = {0};
    bh_module module = {0};
    bh_kernel kernel = {0};
    bh_ticket ticket;
    bh_health health = BH_INIT(health);
    void *memory = NULL;
    uint32_t word = 0;
    int fd = -1;
    bh_buffer_alloc(r->device, BH_U32, 100, NULL, &x);
    bh_buffer_write(x, 0, &word, 4);
    bh_buffer_read(x, 0, &word, 4);
    if (bh_kernel_get(r->module, "iota", &kernel) == BH_OK &&
        bh_launch(kernel, BH_GRID(100, 64), BH_ARGS(BH_OUT(x), 1u, 100u), NULL, &ticket) == BH_OK) {
        bh_notify(ticket);
        bh_wait(ticket, 3000 * MS);
    }
    bh_lane_open(r->device, NULL, &lane);
    bh_host_alloc(r->device, 4096, &memory);
    bh_module_load(r->device, ptx_factor, strlen(ptx_factor), &module);
    bh_device_eventfd(r->device, &fd);
    bh_device_get_health(r->device, &health);
    bh_device_wait_standby(r->device, 100 * MS);
    bh_device_sync(r->device, 1000 * MS);
}

static bh_device_options short_close(void) {
    bh_device_options options = device_options(0);
    options.close_timeout_ns = 1000 * MS;
    return options;
}

static bool has_descriptor(pid_t pid, const char *what) {
    char name[300], target[300];
    bool found = false;
    snprintf(name, sizeof name, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(name);
    REQUIRE(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        snprintf(name, sizeof name, "/proc/%d/fd/%.200s", (int)pid, entry->d_name);
        ssize_t length = readlink(name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        found |= strcmp(target, what) == 0;
    }
    closedir(dir);
    return found;
}

/* Of what the program has open, a worker could use all that is not closed on exec. */
TEST(workers_inherit_nothing) {
    char name[64], what[300] = "";
    int ends[2], low;
    REQUIRE(pipe(ends) == 0);
    /* Also a low number: some are given to workers, the others must not be. */
    low = dup2(ends[0], 5);
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[0]);
    REQUIRE(readlink(name, what, sizeof what - 1) > 0);
    rig r = rig_open(0);
    wait_standby(r.device);
    CHECK(has_descriptor(getpid(), what));
    CHECK(!has_descriptor(health_of(r.device).worker_pid, what));
    CHECK(!has_descriptor(health_of(r.device).standby_pids[0], what));
    CHECK_OK(bh_device_close(r.device));
    close(low);
}

static int close_them_all(int pipe) {
    bh_device_options options = short_close();
    rig r = rig_open_with(&options);
    host_tell(pipe, r.device);
    for (int fd = 3; fd < 1024; fd++) close(fd);
    call_everything(&r);
    bh_device_close(r.device);
    return 0;
}

TEST(a_host_that_closes_every_descriptor) {
    host h = host_start(close_them_all, true);
    CHECK_EQ(host_end(&h), 0);
    host_check_gone(&h);
}

static int close_and_leave(int pipe) {
    rig r = rig_open(0);
    host_tell(pipe, r.device);
    for (int fd = 3; fd < 1024; fd++) close(fd);
    return 0;
}

TEST(a_host_that_closes_every_descriptor_and_leaves) {
    host h = host_start(close_and_leave, true);
    CHECK_EQ(host_end(&h), 0);
    host_check_gone(&h);
}

static int victim;

static int close_one(int pipe) {
    static int fds[256];
    int count = 0;
    bh_device_options options = short_close();
    rig r = rig_open_with(&options);
    wait_standby(r.device);
    host_tell(pipe, r.device);
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (fd > 2 && fd != pipe && fd != dirfd(dir) && count < 256) fds[count++] = fd;
    }
    closedir(dir);
    if (victim >= count) return 99;
    char name[64], what[128] = "";
    snprintf(name, sizeof name, "/proc/self/fd/%d", fds[victim]);
    (void)!readlink(name, what, sizeof what - 1);
    printf("descriptor number %d is %d, %s\n", victim, fds[victim], what);
    fflush(stdout);
    close(fds[victim]);
    call_everything(&r);
    bh_device_close(r.device);
    return 0;
}

TEST_TIMEOUT(a_host_that_closes_one_of_ours, 300) {
    for (victim = 0; victim < 60; victim++) {
        host h = host_start(close_one, true);
        int code = host_end(&h);
        if (code == 99) {
            host_check_gone(&h);
            break;
        }
        if (code != 0)
            FAIL("with descriptor number %d closed the host ended with %d", victim, code);
        host_check_gone(&h);
        close(h.pipe);
    }
    CHECK_GT(victim, 3);
}

static void count_call(void *context, bh_ticket ticket, bh_status status) {
    (void)ticket, (void)status;
    atomic_fetch_add((_Atomic int *)context, 1);
}

/* The dispatcher sleeps already when descriptors go, one at a time or all at once. */
static int close_under_sleepers(int pipe) {
    static _Atomic int calls;
    bh_device_options options = short_close();
    rig r = rig_open_with(&options);
    host_tell(pipe, r.device);
    bh_buffer x = words_alloc(r.device, 100);
    bh_ticket ticket =
        submit(rig_kernel(&r, "iota"), BH_GRID(100, 64), BH_ARGS(BH_OUT(x), 1u, 100u), NULL);
    REQUIRE_OK(bh_on_done(ticket, count_call, &calls));
    REQUIRE_OK(bh_device_sync(r.device, LONG_NS));
    sleep_ms(50);
    for (int fd = 3; fd < 1024; fd++) {
        if (victim < 0 || fd == victim) close(fd);
    }
    /* The numbers become those of other descriptors of ours. */
    void *memory[3];
    for (size_t i = 0; i < 3; i++) bh_host_alloc(r.device, 65536, &memory[i]);
    bh_device_sync(r.device, 1000 * MS);
    bh_device_close(r.device);
    return atomic_load(&calls) == 1 ? 0 : 3;
}

TEST_TIMEOUT(descriptors_that_go_while_threads_sleep_on_them, 120) {
    for (victim = -1; victim < 16; victim += victim < 0 ? 4 : 1) {
        host h = host_start(close_under_sleepers, true);
        int code = host_end(&h);
        if (code != 0) FAIL("with descriptor %d closed the host ended with %d", victim, code);
        host_check_gone(&h);
        close(h.pipe);
    }
}

static int close_before(int pipe) {
    close(0);
    close(1);
    /* what a library opens now may get these numbers */
    rig r = rig_open(0);
    host_tell(pipe, r.device);
    bh_kernel say = get_kernel(load_module(r.device, ptx_printf), "say");
    CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(1u, 2u)));
    check_device_works(&r);
    CHECK_STATUS(run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
    return 0;
}

TEST(a_host_without_standard_streams) {
    host h = host_start(close_before, true);
    CHECK_EQ(host_end(&h), 0);
    host_check_gone(&h);
}

static int open_with_few(int pipe) {
    struct rlimit few;
    int opened = 0;
    (void)pipe;
    getrlimit(RLIMIT_NOFILE, &few);
    for (rlim_t limit = 5; limit < 60; limit += 3) {
        bh_device_options options = device_options(0);
        bh_device device = {0};
        few.rlim_cur = limit;
        setrlimit(RLIMIT_NOFILE, &few);
        bh_status status = bh_device_open(&options, &device);
        if (status == BH_OK) {
            opened++;
            bh_device_close(device);
            continue;
        }
        bh_error error;
        if (bh_last_error(&error) != status || error.message[0] == '\0' || error.fix[0] == '\0')
            return 1;
    }
    return opened > 0 ? 0 : 2;
}

TEST(a_host_with_few_descriptors_left) {
    host h = host_start(open_with_few, false);
    CHECK_EQ(host_end(&h), 0);
}

static int run_out_while_open(int pipe) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer x = words_counting(r.device, 1000, 1);
    struct rlimit few;
    host_tell(pipe, r.device);
    getrlimit(RLIMIT_NOFILE, &few);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) few.rlim_cur = 0;
    call_everything(&r);
    for (int i = 0; i < 3; i++) {
        bh_health health = BH_INIT(health);
        if (bh_device_get_health(r.device, &health) == BH_OK && health.worker_pid > 0)
            kill(health.worker_pid, SIGKILL);
        sleep_ms(100);
    }
    uint32_t words[1000];
    bh_status status = bh_buffer_read(x, 0, words, sizeof words);
    for (uint32_t i = 0; status == BH_OK && i < 1000; i++)
        if (words[i] != i + 1) return 1;
    bh_device_close(r.device);
    return 0;
}

TEST(a_host_that_runs_out_of_descriptors) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 256;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    host h = host_start(run_out_while_open, true);
    CHECK_EQ(host_end(&h), 0);
    host_check_gone(&h);
}
