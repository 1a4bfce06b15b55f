/* SPDX-License-Identifier: Apache-2.0 */
/* What other processes and other users could get hold of: descriptors that programs inherit, shared
 * memory that is not sealed, files that the library leaves. */
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../support/buffers.h"
#include "host.h"

extern char **environ;

/* ---- a device with one of everything that has a descriptor ---- */

typedef struct rich {
    rig rig;
    int fds[BH_SHARE_FDS];
} rich;

static rich rich_open(uint32_t flags) {
    rich all = {.rig = rig_open(flags)};
    bh_device device = all.rig.device;
    bh_buffer shared, managed;
    bh_share_token token;
    void *memory;
    words_alloc(device, 100);
    load_module(device, ptx_globals);
    REQUIRE_OK(alloc_shareable(device, BH_U32, 16, &shared));
    REQUIRE_OK(bh_buffer_export(shared, all.fds, &token));
    REQUIRE_OK(alloc_managed(device, BH_U32, 16, 0, &managed, NULL));
    REQUIRE_OK(bh_host_alloc(device, 4096, &memory));
    return all;
}

static void rich_close(rich *all) {
    CHECK_OK(bh_device_close(all->rig.device));
    for (int i = 0; i < BH_SHARE_FDS; i++) close(all->fds[i]);
}

/* Calls `each` for every descriptor that was not open before. */
static void each_new(const bool *before, void (*each)(int fd, const char *what)) {
    for (int fd = 3; fd < 1024; fd++) {
        char name[64], what[256] = "";
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        if (!before[fd] && readlink(name, what, sizeof what - 1) > 0) each(fd, what);
    }
}

static void note_open(bool *open_now) {
    for (int fd = 0; fd < 1024; fd++) open_now[fd] = fcntl(fd, F_GETFD) >= 0;
}

static unsigned seen;

static void check_not_inherited(int fd, const char *what) {
    seen++;
    if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC)) FAIL("descriptor %d, %s, is inherited", fd, what);
}

/* Sizes cannot change under those who have mapped it, and seals cannot be added to break them. */
static void check_sealed(int fd, const char *what) {
    if (strncmp(what, "/memfd:", 7) != 0) return;
    seen++;
    const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    int seals = fcntl(fd, F_GET_SEALS);
    if (strncmp(what + 7, "bulkhead-", 9) != 0 || strpbrk(what + 7, "0123456789"))
        FAIL("descriptor %d is named %s", fd, what);
    if ((seals & wanted) != wanted) FAIL("descriptor %d, %s, has seals %#x", fd, what, seals);
}

TEST(every_descriptor_closes_on_exec_and_all_memory_is_sealed) {
    static bool before[1024];
    note_open(before);
    rich all = rich_open(0);
    char trace[300];
    REQUIRE_OK(bh_trace_start(all.rig.device,
                              test_path(trace, sizeof trace, "%s/trace.json", test_tmp_dir())));
    wait_standby(all.rig.device);
    each_new(before, check_not_inherited);
    CHECK_GE(seen, 12);
    seen = 0;
    each_new(before, check_sealed);
    CHECK_GE(seen, is_cpu(all.rig.device) ? 5 : 3);
    rich_close(&all);
}

/* ---- programs that are started meanwhile ---- */

/* A shell that says what it was given beyond the standard streams. */
static int list_inherited(void) {
    char *const command[] = {
        "sh", "-c",
        "for f in /proc/$$/fd/*; do l=$(readlink $f); case $l in "
        "*bulkhead*|*eventfd*|*pidfd*|socket:*) echo \"$f $l\"; exit 9;; esac; "
        "done; exit 0",
        NULL};
    pid_t child;
    int end;
    REQUIRE(posix_spawn(&child, "/bin/sh", NULL, NULL, command, environ) == 0);
    REQUIRE(waitpid(child, &end, 0) == child);
    return end;
}

/* Whenever the fork falls between the making of a descriptor and whatever comes next. */
static void start_or_open(void *context, unsigned index) {
    (void)context;
    for (int i = 0; i < 12; i++) {
        if (index) {
            CHECK_EQ(list_inherited(), 0);
        } else {
            rich all = rich_open(BH_DEVICE_NO_STANDBY);
            kill_worker(all.rig.device, SIGKILL);
            rich_close(&all);
        }
    }
}

TEST_TIMEOUT(programs_that_are_started_meanwhile_inherit_nothing, 60) {
    run_threads(3, start_or_open, NULL);
}

/* ---- files ---- */

static void check_private(const char *path) {
    struct stat info;
    REQUIRE(stat(path, &info) == 0);
    if (info.st_mode & 077) FAIL("%s has mode %o", path, info.st_mode & 07777);
}

TEST(files_that_the_library_leaves_are_their_owners_alone) {
    char trace[300], report[700] = "";
    umask(0);
    bh_device_options options = device_options(0);
    options.report_dir = test_tmp_dir();
    rig r = rig_open_with(&options);
    test_path(trace, sizeof trace, "%s/trace.json", test_tmp_dir());
    REQUIRE_OK(bh_trace_start(r.device, trace));
    kill_worker(r.device, SIGKILL);
    REQUIRE_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_OK(bh_device_close(r.device));
    check_private(trace);
    DIR *folder = opendir(test_tmp_dir());
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (strstr(entry->d_name, "bulkhead-loss"))
            test_path(report, sizeof report, "%s/%s", test_tmp_dir(), entry->d_name);
    closedir(folder);
    REQUIRE(*report != 0);
    check_private(report);
}
