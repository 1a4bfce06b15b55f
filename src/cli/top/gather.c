/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the open devices of this user for their figures. What is in the folder, and what answers,
 * may be anything. */
#include "cli/top/top.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 64, MOST_ENTRIES = 65536, SHOWN_AT_MOST = 4096, RETRY_MS = 5 };

/* A device that is being closed. */
#define CLOSED "closed"

typedef struct asked {
    size_t which; /* in the sightings */
    int fd;       /* -1: not connected yet, or over */
    bool over;
    char *bytes; /* Owned. */
    size_t count;
    pid_t pid;
} asked;

/* ---- the folder ---- */

typedef struct place {
    int folder;
    dev_t device;
    ino_t inode;
} place;

static bool add(bh__sightings *out, const bh__offer *entry) {
    if (out->count >= SHOWN_AT_MOST) return true;
    if ((out->count & (out->count - 1)) == 0) {
        size_t room = out->count ? out->count * 2 : 1;
        bh__sighting *more = realloc(out->list, room * sizeof *more);
        if (!more) return false;
        out->list = more;
    }
    out->list[out->count++] = (bh__sighting){.entry = *entry};
    return true;
}

static bool list_folder(int folder, bh__sightings *out) {
    int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    bool fits = true;
    if (!dir) {
        if (own >= 0) close(own);
        return true;
    }
    for (struct dirent *next; fits && (next = readdir(dir));) {
        bh__offer entry;
        struct stat info;
        if (bh__offer_parse(next->d_name, &entry) && !entry.fresh &&
            fstatat(folder, next->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISSOCK(info.st_mode))
            fits = add(out, &entry);
    }
    closedir(dir);
    return fits;
}

/* ---- asking ---- */

static void fail(bh__sighting *it, const char *why) {
    snprintf(it->why, sizeof it->why, "%s", why);
}

static void end(asked *one) {
    if (one->fd >= 0) close(one->fd);
    free(one->bytes);
    one->bytes = NULL;
    one->fd = -1;
    one->over = true;
}

/* A full queue is asked again: another reader may be in it. */
static void connect_one(int folder, asked *one, bh__sighting *it) {
    char name[BH__OFFER_NAME];
    struct ucred who = {0};
    socklen_t size = sizeof who;
    bh__offer_name(&it->entry, name);
    one->fd = bh__offer_connect(folder, name);
    if (one->fd < 0) {
        if (errno == EAGAIN) return;
        one->over = true;
        fail(it, errno == ECONNREFUSED || errno == ENOENT ? CLOSED : strerror(errno));
        return;
    }
    if (getsockopt(one->fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != geteuid()) {
        fail(it, "its socket is another user's");
        end(one);
        return;
    }
    one->pid = who.pid;
}

static void finish(asked *one, bh__sighting *it) {
    bh__figures *figures = malloc(sizeof *figures);
    const char *wrong = figures ? bh__figures_unpack(one->bytes, one->count, figures) : "no memory";
    if (one->count == 0) {
        fail(it, CLOSED);
        free(figures);
    } else if (wrong) {
        snprintf(it->why, sizeof it->why, "its answer of %zu bytes cannot be read: %s", one->count,
                 wrong);
        free(figures);
    } else {
        /* In another pid namespace its number is another. */
        if (one->pid > 0) figures->process.pid = one->pid;
        it->figures = figures;
    }
    end(one);
}

static void read_one(asked *one, bh__sighting *it) {
    if (!one->bytes) one->bytes = malloc(BH__FIGURES_MESSAGE_MAX + 1);
    while (one->bytes && one->count <= BH__FIGURES_MESSAGE_MAX) {
        ssize_t got =
            recv(one->fd, one->bytes + one->count, BH__FIGURES_MESSAGE_MAX + 1 - one->count, 0);
        if (got > 0) {
            one->count += (size_t)got;
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        break;
    }
    finish(one, it);
}

static void ask(int folder, asked *list, size_t count, bh__sighting *of, uint64_t deadline) {
    for (;;) {
        struct pollfd look[AT_ONCE];
        size_t watched = 0;
        bool waiting = false;
        for (size_t i = 0; i < count; i++) {
            if (!list[i].over && list[i].fd < 0) connect_one(folder, &list[i], &of[list[i].which]);
            waiting |= !list[i].over && list[i].fd < 0;
            if (list[i].fd >= 0)
                look[watched++] = (struct pollfd){.fd = list[i].fd, .events = POLLIN};
        }
        uint64_t now = bh__now_ns();
        if ((!waiting && watched == 0) || now >= deadline) break;
        int left = (int)((deadline - now) / 1000000 + 1);
        poll(look, watched, waiting && left > RETRY_MS ? RETRY_MS : left);
        for (size_t i = 0, at = 0; i < count; i++) {
            if (list[i].fd < 0) continue;
            bool ready = look[at++].revents != 0;
            if (ready) read_one(&list[i], &of[list[i].which]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (list[i].over) continue;
        fail(&of[list[i].which], "it does not answer");
        end(&list[i]);
    }
}

static void ask_all(int folder, bh__sightings *out, size_t first, uint64_t deadline) {
    for (size_t from = first; from < out->count; from += AT_ONCE) {
        asked list[AT_ONCE];
        size_t count = out->count - from < AT_ONCE ? out->count - from : AT_ONCE;
        for (size_t i = 0; i < count; i++) list[i] = (asked){.which = from + i, .fd = -1};
        ask(folder, list, count, out->list, deadline);
    }
}

/* ---- all folders ---- */

/* A device that was closed between the listing and the question is no news. */
static void drop_closed(bh__sightings *out) {
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        if (!out->list[i].figures && strcmp(out->list[i].why, CLOSED) == 0) continue;
        out->list[kept++] = out->list[i];
    }
    out->count = kept;
}

static void note_problem(bh__sightings *out, const char *path) {
    if (errno == ENOENT) return;
    snprintf(out->problem, sizeof out->problem, "%.100s: %.80s", path,
             errno == EPERM ? "it is another user's, or open to others" : strerror(errno));
}

bool bh__gather(bh__sightings *out, uint64_t patience_ns) {
    char paths[BH__RUNTIME_PATHS][BH__RUNTIME_PATH];
    place seen[BH__RUNTIME_PATHS];
    size_t count = bh__runtime_paths(paths), known = 0;
    bool fits = true;
    *out = (bh__sightings){.at_ns = bh__now_ns()};
    for (size_t i = 0; i < count && fits; i++) {
        struct stat info;
        int folder = bh__runtime_open(paths[i], false);
        if (folder < 0) {
            note_problem(out, paths[i]);
            continue;
        }
        bool again = fstat(folder, &info) != 0;
        for (size_t k = 0; k < known; k++)
            again |= seen[k].device == info.st_dev && seen[k].inode == info.st_ino;
        if (!again) {
            size_t first = out->count;
            seen[known++] = (place){folder, info.st_dev, info.st_ino};
            out->removed += bh__runtime_sweep(folder, MOST_ENTRIES);
            fits = list_folder(folder, out);
            ask_all(folder, out, first, bh__now_ns() + patience_ns);
        }
        close(folder);
    }
    drop_closed(out);
    return fits;
}

void bh__sightings_free(bh__sightings *sightings) {
    for (size_t i = 0; i < sightings->count; i++) free(sightings->list[i].figures);
    free(sightings->list);
    *sightings = (bh__sightings){0};
}
