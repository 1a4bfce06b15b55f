/* SPDX-License-Identifier: Apache-2.0 */
/* Host programs as child processes: each runs a function with a device of its own and reports its
 * workers. */
#include "../host.h"

#include <dirent.h>

static bool is_memory_file(const char *link) {
    return strncmp(link, "/memfd:", 7) == 0;
}

/* Calls `found` for each anonymous memory file that a process has open. */
static void each_memory(const char *process, bool (*found)(void *context, const struct stat *info),
                        void *context) {
    char path[300], link[300];
    snprintf(path, sizeof path, "/proc/%.20s/fd", process);
    DIR *dir = opendir(path);
    if (dir == NULL) return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        struct stat info;
        snprintf(path, sizeof path, "/proc/%.20s/fd/%.20s", process, entry->d_name);
        ssize_t length = readlink(path, link, sizeof link - 1);
        if (length <= 0) continue;
        link[length] = '\0';
        if (is_memory_file(link) && stat(path, &info) == 0 && !found(context, &info)) break;
    }
    closedir(dir);
}

static bool note_memory(void *context, const struct stat *info) {
    host_report *report = context;
    if (report->memory_count == 64) return false;
    report->memory[report->memory_count].device = info->st_dev;
    report->memory[report->memory_count++].inode = info->st_ino;
    return true;
}

void host_tell(int pipe, bh_device device) {
    host_report report;
    memset(&report, 0, sizeof report);
    bh_health health = health_of(device);
    report.worker = health.worker_pid;
    report.standby = health.standby_pids[0];
    each_memory("self", note_memory, &report);
    REQUIRE(write(pipe, &report, sizeof report) == sizeof report);
}

host host_start(int (*body)(int pipe), bool tells) {
    host h;
    int ends[2];
    memset(&h, 0, sizeof h);
    REQUIRE(pipe(ends) == 0);
    fflush(stdout);
    fflush(stderr);
    h.pid = fork(); /* with no device open, the child starts afresh */
    REQUIRE(h.pid >= 0);
    if (h.pid == 0) {
        close(ends[0]);
        int code = body(ends[1]);
        fflush(stdout);
        _exit(code);
    }
    close(ends[1]);
    h.pipe = ends[0];
    if (tells) REQUIRE(read(h.pipe, &h.report, sizeof h.report) == sizeof h.report);
    return h;
}

/* Where each thread of a program that hangs is. */
static void tell_threads(pid_t pid) {
    char path[64], name[64], where[256];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        const char *const files[] = {"comm", "syscall"};
        for (int i = 0; i < 2; i++) {
            char *text = i ? where : name;
            snprintf(path, sizeof path, "/proc/%d/task/%.12s/%s", (int)pid, entry->d_name,
                     files[i]);
            FILE *from = fopen(path, "r");
            if (!from || !fgets(text, i ? sizeof where : sizeof name, from)) strcpy(text, "?");
            text[strcspn(text, "\n")] = 0;
            if (from) fclose(from);
        }
        printf("thread %s (%s): system call %s\n", entry->d_name, name, where);
    }
    if (dir) closedir(dir);
}

int host_end(const host *h) {
    /* Hosts open devices again and again; that of a GPU takes a second each time. */
    bool cpu = strcmp(test_device(), "cpu") == 0;
    uint64_t limit = now_ns() + (cpu ? LONG_NS : 4 * LONG_NS);
    int status;
    while (waitpid(h->pid, &status, WNOHANG) == 0) {
        if (now_ns() > limit) {
            tell_threads(h->pid);
            kill(h->pid, SIGKILL);
            waitpid(h->pid, &status, 0);
            FAIL("the host program did not end");
            return -1;
        }
        sleep_ms(1);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct search {
    const host_report *report;
    bool found;
};

static bool match_memory(void *context, const struct stat *info) {
    struct search *search = context;
    for (int i = 0; i < search->report->memory_count; i++)
        if (search->report->memory[i].device == info->st_dev &&
            search->report->memory[i].inode == info->st_ino)
            search->found = true;
    return !search->found;
}

static bool memory_is_held(const host_report *report) {
    struct search search = {report, false};
    DIR *dir = opendir("/proc");
    REQUIRE(dir != NULL);
    for (struct dirent *entry; !search.found && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            each_memory(entry->d_name, match_memory, &search);
    closedir(dir);
    return search.found;
}

void host_check_gone(const host *h) {
    CHECK(h->report.worker > 0);
    CHECK(wait_process_gone(h->report.worker, 15000));
    if (h->report.standby > 0) CHECK(wait_process_gone(h->report.standby, 15000));
    uint64_t limit = now_ns() + 5000 * MS;
    while (memory_is_held(&h->report)) {
        if (now_ns() > limit) {
            FAIL("memory of the host program is still held by someone");
            return;
        }
        sleep_ms(10);
    }
}
