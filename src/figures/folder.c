/* SPDX-License-Identifier: Apache-2.0 */
/* The folder with a socket for each open device of this user, and the names in it. */
#include "figures/figures.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- the folder ---- */

static size_t add_path(char out[BH__RUNTIME_PATHS][BH__RUNTIME_PATH], size_t count,
                       const char *format, const char *text, unsigned user) {
    char *path = out[count];
    int length = text ? snprintf(path, BH__RUNTIME_PATH, format, text)
                      : snprintf(path, BH__RUNTIME_PATH, format, user);
    if (length <= 0 || length >= BH__RUNTIME_PATH) return count;
    for (size_t i = 0; i < count; i++)
        if (strcmp(out[i], path) == 0) return count;
    return count + 1;
}

size_t bh__runtime_paths(char out[BH__RUNTIME_PATHS][BH__RUNTIME_PATH]) {
    const char *only = secure_getenv("BULKHEAD_RUNTIME_DIR");
    const char *given = secure_getenv("XDG_RUNTIME_DIR");
    unsigned user = (unsigned)geteuid();
    size_t count = 0;
    if (only && *only) return only[0] == '/' ? add_path(out, 0, "%s/bulkhead", only, 0) : 0;
    if (given && given[0] == '/') count = add_path(out, count, "%s/bulkhead", given, 0);
    count = add_path(out, count, "/run/user/%u/bulkhead", NULL, user);
    return add_path(out, count, "/tmp/bulkhead-%u", NULL, user);
}

/* /tmp belongs to everybody: what is at the path may be another user's, or a link. */
int bh__runtime_open(const char *path, bool make) {
    if (make && mkdir(path, 0700) != 0 && errno != EEXIST) return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    struct stat info;
    if (fstat(fd, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 077) == 0) return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* ---- names ---- */

void bh__offer_name(const bh__offer *entry, char out[BH__OFFER_NAME]) {
    snprintf(out, BH__OFFER_NAME, "%s%ld-%llu-%u", entry->fresh ? "." : "", (long)entry->pid,
             (unsigned long long)entry->start, entry->slot);
}

bool bh__offer_parse(const char *name, bh__offer *out) {
    long pid = 0;
    unsigned long long start = 0;
    unsigned slot = 0;
    char again[BH__OFFER_NAME];
    out->fresh = name[0] == '.';
    if (strlen(name) >= BH__OFFER_NAME ||
        sscanf(name + out->fresh, "%9ld-%19llu-%9u", &pid, &start, &slot) != 3 || pid <= 0)
        return false;
    *out = (bh__offer){(pid_t)pid, start, slot, out->fresh};
    bh__offer_name(out, again);
    return strcmp(name, again) == 0;
}

uint64_t bh__started_at(pid_t pid) {
    enum { START = 22 }; /* the number of the field: proc(5) */
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0) return 0;
    text[got] = 0;
    /* The second field is a name in parentheses, which may contain anything. */
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < START; field++) {
        at = strchr(at, ' ');
        if (at) at++;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

/* ---- sockets ---- */

/* Through /proc, so that neither the length of the path nor what becomes of it matters. */
int bh__offer_connect(int folder, const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%.*s", folder,
             BH__OFFER_NAME - 1, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) return fd;
    int number = errno;
    close(fd);
    errno = number;
    return -1;
}

/* True if the process is gone, or another has its number. */
static bool is_gone(const bh__offer *entry) {
    if (kill(entry->pid, 0) != 0 && errno == ESRCH) return true;
    uint64_t start = bh__started_at(entry->pid);
    return start != 0 && entry->start != 0 && start != entry->start;
}

/* A process in another pid namespace has no number here, so its socket is asked too: one that
 * nobody listens to refuses. Only sockets are removed. */
static bool is_stale(int folder, const char *name, const bh__offer *entry) {
    struct stat info;
    if (!is_gone(entry) || fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISSOCK(info.st_mode))
        return false;
    int fd = bh__offer_connect(folder, name);
    if (fd < 0) return errno == ECONNREFUSED;
    close(fd);
    return false;
}

size_t bh__runtime_sweep(int folder, size_t limit) {
    int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    if (!dir) {
        if (own >= 0) close(own);
        return 0;
    }
    size_t removed = 0;
    for (struct dirent *next; limit > 0 && (next = readdir(dir)); limit--) {
        bh__offer entry;
        if (bh__offer_parse(next->d_name, &entry) && is_stale(folder, next->d_name, &entry) &&
            unlinkat(folder, next->d_name, 0) == 0)
            removed++;
    }
    closedir(dir);
    return removed;
}
