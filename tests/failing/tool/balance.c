/* SPDX-License-Identifier: Apache-2.0 */
/* What a process holds: blocks and mappings as the library made them, the rest as the system sees
 * it. */
#include "balance.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned entries(const char *path) {
    unsigned count = 0;
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) count += entry->d_name[0] != '.';
    if (folder) closedir(folder);
    return count;
}

static unsigned children(void) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

balance balance_take(const failing_page *page, unsigned threads) {
    balance now = {0};
    for (unsigned i = 0; i < 2000; i++) {
        now.threads = entries("/proc/self/task");
        now.children = children();
        if (now.threads <= threads && !now.children) break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    now.descriptors = entries("/proc/self/fd");
    now.blocks = atomic_load(&page->blocks);
    now.mapped = atomic_load(&page->mapped);
    return now;
}

/* Counts descriptors of files so named, and prints all of them if asked to. */
static unsigned descriptors(const char *name, bool print) {
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    char path[64], target[200];
    unsigned count = 0;
    while (folder && (entry = readdir(folder))) {
        snprintf(path, sizeof path, "/proc/self/fd/%.20s", entry->d_name);
        ssize_t got = readlink(path, target, sizeof target - 1);
        if (got <= 0) continue;
        target[got] = 0;
        count += strstr(target, name) != NULL;
        if (print) printf("    %s: %s\n", entry->d_name, target);
    }
    if (folder) closedir(folder);
    return count;
}

unsigned chunks_held(void) {
    return descriptors("bulkhead-chunk", false);
}

unsigned chunks_mapped(pid_t process) {
    char path[64], line[500];
    unsigned count = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps)) count += strstr(line, "bulkhead-chunk") != NULL;
    if (maps) fclose(maps);
    return count;
}

static void more(world *w, const char *what, int64_t before, int64_t after) {
    if (after > before)
        defect(w, "%lld %s before, %lld after", (long long)before, what, (long long)after);
}

void balance_compare(world *w, const balance *before, const balance *after) {
    more(w, "blocks", before->blocks, after->blocks);
    more(w, "mapped bytes", before->mapped, after->mapped);
    more(w, "descriptors", before->descriptors, after->descriptors);
    more(w, "threads", before->threads, after->threads);
    more(w, "children", before->children, after->children);
    if (after->descriptors > before->descriptors) descriptors("", true);
}
