/* SPDX-License-Identifier: Apache-2.0 */
/* A guest in someone's process: signals, streams, limits, environment and locale are left alone. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/resource.h>

#include "host.h"

extern char **environ;

static uint64_t mask_of(const char *status, const char *field) {
    const char *at = strstr(status, field);
    return at == NULL ? 0 : strtoull(at + strlen(field), NULL, 16);
}

static void read_status(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    size_t length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    fclose(file);
}

/* A device with a fault behind it. */
static rig lived_in(void) {
    rig r = rig_open(0);
    wait_standby(r.device);
    CHECK_STATUS(run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    check_device_works(&r);
    return r;
}

TEST(no_signal_handler_is_installed_and_no_mask_changed) {
    char before[4000], after[4000];
    read_status("/proc/self/status", before, sizeof before);
    rig r = lived_in();
    read_status("/proc/self/status", after, sizeof after);
    uint64_t theirs = UINT64_C(3) << 31; /* 32 and 33 are libc's own, used with threads */
    CHECK_EQ(mask_of(before, "SigCgt:") | theirs, mask_of(after, "SigCgt:") | theirs);
    CHECK_EQ(mask_of(before, "SigIgn:") | theirs, mask_of(after, "SigIgn:") | theirs);
    CHECK_EQ(mask_of(before, "SigBlk:"), mask_of(after, "SigBlk:"));
    CHECK_OK(bh_device_close(r.device));
}

TEST(threads_of_the_library_block_every_signal) {
    rig r = lived_in();
    char path[300], text[4000];
    int others = 0;
    DIR *dir = opendir("/proc/self/task");
    REQUIRE(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == (int)getpid()) continue;
        read_status(test_path(path, sizeof path, "/proc/self/task/%.20s/status", entry->d_name),
                    text, sizeof text);
        uint64_t blocked = mask_of(text, "SigBlk:");
        static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGCHLD,  SIGUSR1,
                                      SIGUSR2, SIGALRM, SIGPIPE, SIGWINCH, SIGPROF};
        for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
            if ((blocked >> (signals[i] - 1) & 1) == 0 && test_time_scale() == 1)
                FAIL("thread %s does not block signal %d", entry->d_name, signals[i]);
        others++;
    }
    closedir(dir);
    CHECK_GE(others, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(interrupting_the_terminal_does_not_reach_the_workers) {
    REQUIRE(getpgrp() == getpid() || setpgid(0, 0) == 0);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    rig r = rig_open(0);
    wait_standby(r.device);
    REQUIRE(kill(0, SIGINT) == 0);
    REQUIRE(kill(0, SIGTERM) == 0);
    sleep_ms(50);
    check_device_works(&r);
    wait_standby(r.device);
    CHECK_EQ(health_of(r.device).losses, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(every_descriptor_is_closed_on_exec) {
    bool before[1024] = {false};
    for (int fd = 0; fd < 1024; fd++) before[fd] = fcntl(fd, F_GETFD) >= 0;
    rig r = lived_in();
    void *memory = NULL;
    int fd = -1, ours = 0;
    CHECK_OK(bh_host_alloc(r.device, 4096, &memory));
    CHECK_OK(bh_device_eventfd(r.device, &fd));
    for (fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || before[fd]) continue;
        ours++;
        if ((flags & FD_CLOEXEC) == 0) FAIL("descriptor %d would be inherited", fd);
    }
    CHECK_GT(ours, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(environment_locale_limits_and_folder_are_left_alone) {
    struct rlimit before[RLIM_NLIMITS], after;
    char folder_before[4096], folder_after[4096];
    size_t variables = 0, now = 0;
    REQUIRE(setlocale(LC_ALL, "C") != NULL);
    for (int i = 0; i < (int)RLIM_NLIMITS; i++) getrlimit((__rlimit_resource_t)i, &before[i]);
    for (char **at = environ; *at != NULL; at++) variables++;
    mode_t mask = umask(027);
    REQUIRE(getcwd(folder_before, sizeof folder_before) != NULL);
    rig r = lived_in();
    CHECK_OK(bh_device_close(r.device));
    REQUIRE(getcwd(folder_after, sizeof folder_after) != NULL);
    for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
        getrlimit((__rlimit_resource_t)i, &after);
        CHECK_EQ(after.rlim_cur, before[i].rlim_cur);
        CHECK_EQ(after.rlim_max, before[i].rlim_max);
    }
    for (char **at = environ; *at != NULL; at++) now++;
    CHECK_EQ(now, variables);
    CHECK_STR_EQ(setlocale(LC_ALL, NULL), "C");
    CHECK_STR_EQ(folder_after, folder_before);
    CHECK_EQ(umask(mask), 027);
}

TEST(nothing_is_ever_printed) {
    char path[600];
    test_path(path, sizeof path, "%s/printed", test_tmp_dir());
    int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    int out = dup(1), error = dup(2);
    REQUIRE(file >= 0 && out >= 0 && error >= 0);
    dup2(file, 1);
    dup2(file, 2);
    rig r = lived_in();
    bh_kernel say = get_kernel(load_module(r.device, ptx_printf), "say");
    bh_status said = run_now(say, BH_GRID(1, 1), BH_ARGS(1u, 2u));
    bh_status nonsense = bh_module_load(r.device, "nonsense", 8, &r.module);
    bh_status closed = bh_device_close(r.device);
    dup2(out, 1);
    dup2(error, 2);
    CHECK_OK(said);
    CHECK_STATUS(nonsense, BH_E_LOAD);
    CHECK_OK(closed);
    CHECK_EQ(lseek(file, 0, SEEK_END), 0);
}

/* A second copy of the library, opened and closed at run time with a device open in it. */
TEST(the_library_cannot_be_unloaded_under_its_threads) {
    char from[600], to[600], command[1300];
    if (test_time_scale() != 1) SKIP("sanitizers do not go with a second copy of a library");
    test_path(from, sizeof from, "%s/lib/libbulkhead.so", test_build_dir());
    test_path(to, sizeof to, "%s/second.so", test_tmp_dir());
    test_path(command, sizeof command, "cp -L '%s' '%s'", from, to);
    REQUIRE(system(command) == 0);
    void *library = dlopen(to, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == NULL) FAIL("dlopen: %s", dlerror());
    REQUIRE(library != NULL);
    bh_status (*open_device_there)(const bh_device_options *, bh_device *);
    bh_status (*get_health_there)(bh_device, bh_health *);
    *(void **)&open_device_there = dlsym(library, "bh_device_open");
    *(void **)&get_health_there = dlsym(library, "bh_device_get_health");
    REQUIRE(open_device_there != NULL && get_health_there != NULL);
    REQUIRE(open_device_there != bh_device_open);
    char folder[600];
    bh_device_options options = device_options(0);
    options.worker_dir = test_path(folder, sizeof folder, "%s/bin", test_build_dir());
    bh_device device = {0};
    REQUIRE_OK(open_device_there(&options, &device));
    CHECK_EQ(dlclose(library), 0);
    sleep_ms(50); /* its threads go on */
    bh_health health = BH_INIT(health);
    CHECK_OK(get_health_there(device, &health));
    REQUIRE(health.worker_pid > 0);
    REQUIRE(kill(health.worker_pid, SIGKILL) == 0);
    uint64_t limit = now_ns() + LONG_NS;
    while (now_ns() < limit &&
           (get_health_there(device, &health) != BH_OK || health.generation < 2))
        sleep_ms(1);
    CHECK_GE(health.generation, 2);
}

/* Hundredths of a second a process has used. */
static unsigned long ticks_of(pid_t pid) {
    char path[64];
    unsigned long user = 0, system_time = 0;
    FILE *file = fopen(test_path(path, sizeof path, "/proc/%d/stat", (int)pid), "r");
    REQUIRE(file != NULL);
    CHECK_EQ(fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                    &system_time),
             2);
    fclose(file);
    return user + system_time;
}

TEST(an_idle_device_uses_no_time) {
    rig r = lived_in();
    wait_standby(r.device);
    sleep_ms(200);
    bh_health health = health_of(r.device);
    pid_t pids[3] = {getpid(), health.worker_pid, health.standby_pids[0]};
    unsigned long before[3];
    for (int i = 0; i < 3; i++) before[i] = ticks_of(pids[i]);
    sleep_ms(1000);
    for (int i = 0; i < 3; i++) CHECK_LE(ticks_of(pids[i]) - before[i], 3 * test_time_scale());
    CHECK_OK(bh_device_close(r.device));
}

/* Its own table of descriptors, with one end of a pipe in it, tells of the worker's death before
 * the worker's memory is given back. */
TEST(a_worker_has_a_thread_that_tells_of_its_death_early) {
    rig r = rig_open(0);
    char path[128];
    int pid = health_of(r.device).worker_pid, canaries = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    REQUIRE(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char name[32] = "", file[400];
        snprintf(file, sizeof file, "/proc/%d/task/%s/comm", pid, task->d_name);
        FILE *comm = fopen(file, "r");
        if (!comm) continue;
        if (!fgets(name, sizeof name, comm)) name[0] = 0;
        fclose(comm);
        if (strcmp(name, "bh-canary\n") != 0) continue;
        canaries++;
        int descriptors = 0;
        snprintf(file, sizeof file, "/proc/%d/task/%s/fd", pid, task->d_name);
        DIR *list = opendir(file);
        REQUIRE(list != NULL);
        for (struct dirent *fd; (fd = readdir(list)) != NULL;) descriptors += fd->d_name[0] != '.';
        closedir(list);
        CHECK_EQ(descriptors, 1);
    }
    closedir(tasks);
    CHECK_EQ(canaries, 1);
    CHECK_OK(bh_device_close(r.device));
}
