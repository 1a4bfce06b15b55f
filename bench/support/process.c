/* SPDX-License-Identifier: Apache-2.0 */
/* What processes use: processor time, memory, descriptors, children. Read from /proc. */
#include "process.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    if (clock_gettime(clock, &time) != 0) return 0;
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t process_cpu_ns(pid_t pid) {
    clockid_t clock;
    return clock_getcpuclockid(pid, &clock) == 0 ? clock_ns(clock) : 0;
}

/* Reads a small file whole. False: there is none. */
static bool read_file(const char *path, char *text, size_t capacity) {
    FILE *file = fopen(path, "re");
    if (!file) return false;
    size_t length = fread(text, 1, capacity - 1, file);
    text[length] = 0;
    fclose(file);
    return true;
}

/* The sum over threads whose names begin with `prefix`, leaving out one. */
static process_thread sum_threads(pid_t pid, const char *prefix, pid_t without) {
    process_thread sum = {0};
    char path[512], text[512];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *directory = opendir(path);
    if (!directory) return sum;
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == without) continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/comm", (int)pid, entry->d_name);
        if (!read_file(path, text, sizeof text) || strncmp(text, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)pid, entry->d_name);
        unsigned long long cpu, delayed;
        if (read_file(path, text, sizeof text) && sscanf(text, "%llu %llu", &cpu, &delayed) == 2) {
            sum.cpu_ns += cpu;
            sum.delayed_ns += delayed;
        }
    }
    closedir(directory);
    return sum;
}

process_thread process_threads(pid_t pid, const char *prefix) {
    return sum_threads(pid, prefix, 0);
}

uint64_t process_other_threads_cpu_ns(void) {
    return sum_threads(getpid(), "", gettid()).cpu_ns;
}

void process_await_kernel(pid_t worker, bool cpu, process_thread before) {
    /* More than an idle lane spins. */
    const uint64_t at_work_ns = 1000000;
    for (int round = 0; round < 2000; round++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (round >= 4 &&
            (!cpu || process_threads(worker, "bh-lane-0").cpu_ns > before.cpu_ns + at_work_ns))
            return;
    }
}

uint64_t process_memory(pid_t pid, const char *file, const char *field) {
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    if (!read_file(path, text, sizeof text)) return 0;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, field, strlen(field)) == 0)
            return strtoull(line + strlen(field), NULL, 10) * 1024;
    }
    return 0;
}

size_t process_descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    if (!directory) return 0;
    size_t count = 0;
    struct dirent *entry;
    while ((entry = readdir(directory))) count += isdigit((unsigned char)entry->d_name[0]) != 0;
    closedir(directory);
    return count - 1; /* the one that was used to look */
}

uint64_t process_shared_bytes(void) {
    enum { MAX = 4096 };
    static ino_t seen[MAX];
    size_t seen_count = 0;
    uint64_t bytes = 0;
    DIR *directory = opendir("/proc/self/fd");
    if (!directory) return 0;
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        char target[256];
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        if (length < 0) continue;
        target[length] = 0;
        struct stat status;
        if (strncmp(target, "/memfd:", 7) != 0 || fstat(atoi(entry->d_name), &status) != 0)
            continue;
        size_t at = 0;
        while (at < seen_count && seen[at] != status.st_ino) at++;
        if (at < seen_count) continue;
        if (seen_count < MAX) seen[seen_count++] = status.st_ino;
        bytes += (uint64_t)status.st_blocks * 512;
    }
    closedir(directory);
    return bytes;
}

/* The numbers behind the name in /proc/PID/stat: 0 is the state, 1 the parent, 19 the start
 * time. */
static bool stat_field(const char *pid, int index, unsigned long long *out) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    if (!read_file(path, text, sizeof text)) return false;
    char *field = strrchr(text, ')'); /* a name may hold anything, spaces too */
    if (!field || !field[1]) return false;
    field += 2;
    for (int i = 0; i < index; i++) {
        field = strchr(field, ' ');
        if (!field) return false;
        field++;
    }
    *out = strtoull(field, NULL, 10);
    return true;
}

size_t process_children(void) {
    DIR *directory = opendir("/proc");
    if (!directory) return 0;
    size_t count = 0;
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        unsigned long long parent;
        if (isdigit((unsigned char)entry->d_name[0]) && stat_field(entry->d_name, 1, &parent) &&
            parent == (unsigned long long)getpid())
            count++;
    }
    closedir(directory);
    return count;
}

uint64_t process_start_time(pid_t pid) {
    char name[24];
    snprintf(name, sizeof name, "%d", (int)pid);
    unsigned long long ticks;
    return stat_field(name, 19, &ticks) ? ticks : 0;
}
