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

enum { AT_ONCE = 64, MOST_ENTRIES = 65536, SHOWN_AT_MOST = 4096, RETRY_MS = 5, SHARE_MS = 10 };

/* A device that is being closed. */
#define CLOSED "closed"

typedef struct asked {
    size_t which; /* in the sightings */
    int fd;       /* -1: not connected yet, or over */
    bool over;    /* its place is free for another */
    uint64_t since_ns;
    char *bytes; /* Owned. */
    size_t count;
    pid_t pid;
} asked;

/* Everybody who is asked. Those without a place wait in a ring that has room for all. */
typedef struct asking {
    int folder;
    bh__sighting *of;
    asked list[AT_ONCE];
    size_t *ring; /* Owned. */
    size_t room, head, waiting;
    uint64_t share_ns; /* how long one may keep its place while others wait */
    uint64_t deadline;
} asking;

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

/* Those who have kept a place for too long are asked anew after the others. */
static void make_places(asking *all, uint64_t now) {
    size_t wanted = all->waiting;
    for (size_t i = 0; i < AT_ONCE && wanted > 0; i++) {
        asked *one = &all->list[i];
        bool slow = !one->over && now - one->since_ns >= all->share_ns;
        if (!one->over && !slow) continue;
        wanted--;
        if (!slow) continue;
        end(one);
        all->ring[(all->head + all->waiting++) % all->room] = one->which;
    }
}

static void fill_places(asking *all, uint64_t now) {
    for (size_t i = 0; i < AT_ONCE && all->waiting > 0; i++) {
        if (!all->list[i].over) continue;
        size_t which = all->ring[all->head];
        all->list[i] = (asked){.which = which, .fd = -1, .since_ns = now};
        all->head = (all->head + 1) % all->room;
        all->waiting--;
    }
}

/* Returns when something has to be done even if nobody answers. */
static uint64_t connect_all(asking *all, uint64_t now) {
    uint64_t next = all->deadline, retry = now + RETRY_MS * UINT64_C(1000000);
    for (size_t i = 0; i < AT_ONCE; i++) {
        asked *one = &all->list[i];
        if (!one->over && one->fd < 0) connect_one(all->folder, one, &all->of[one->which]);
        uint64_t due = all->deadline;
        if (one->over)
            due = all->waiting > 0 ? now : due;
        else if (one->fd < 0)
            due = retry;
        else if (all->waiting > 0)
            due = one->since_ns + all->share_ns;
        if (due < next) next = due;
    }
    return next;
}

/* Returns false if nobody is left to ask. */
static bool hear(asking *all, uint64_t next) {
    struct pollfd look[AT_ONCE];
    asked *of[AT_ONCE];
    size_t watched = 0;
    bool left = all->waiting > 0;
    for (size_t i = 0; i < AT_ONCE; i++) {
        left |= !all->list[i].over;
        if (all->list[i].fd < 0) continue;
        of[watched] = &all->list[i];
        look[watched++] = (struct pollfd){.fd = all->list[i].fd, .events = POLLIN};
    }
    if (!left) return false;
    uint64_t now = bh__now_ns();
    poll(look, watched, next > now ? (int)((next - now) / 1000000 + 1) : 0);
    for (size_t i = 0; i < watched; i++)
        if (look[i].revents) read_one(of[i], &all->of[of[i]->which]);
    return true;
}

static void give_up(asking *all) {
    static const char silent[] = "it does not answer";
    for (size_t i = 0; i < AT_ONCE; i++) {
        asked *one = &all->list[i];
        if (one->fd >= 0) read_one(one, &all->of[one->which]);
        if (one->over) continue;
        fail(&all->of[one->which], silent);
        end(one);
    }
    for (; all->waiting > 0; all->waiting--, all->head = (all->head + 1) % all->room)
        fail(&all->of[all->ring[all->head]], silent);
}

/* In half of the time everybody has been asked once, even if nobody answers. */
static bool ask_all(int folder, bh__sightings *out, size_t first, uint64_t patience_ns) {
    const uint64_t least = SHARE_MS * UINT64_C(1000000);
    size_t count = out->count - first, turns = (count + AT_ONCE - 1) / AT_ONCE;
    uint64_t now = bh__now_ns();
    if (count == 0) return true;
    asking all = {.folder = folder, .of = out->list, .room = count, .waiting = count};
    all.ring = malloc(count * sizeof *all.ring);
    if (!all.ring) return false;
    all.share_ns = patience_ns / (2 * turns) > least ? patience_ns / (2 * turns) : least;
    all.deadline = now + patience_ns;
    for (size_t i = 0; i < count; i++) all.ring[i] = first + i;
    for (size_t i = 0; i < AT_ONCE; i++) all.list[i] = (asked){.fd = -1, .over = true};
    do {
        make_places(&all, now);
        fill_places(&all, now);
    } while (hear(&all, connect_all(&all, now)) && (now = bh__now_ns()) < all.deadline);
    give_up(&all);
    free(all.ring);
    return true;
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
            fits &= ask_all(folder, out, first, patience_ns);
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
