/* SPDX-License-Identifier: Apache-2.0 */
/* The files that decided a result: whether they are still what they were. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash128.h"
#include "base/sha256.h"
#include "client/compile.h"

/* File times are only as fine as the kernel's tick: two changes within one look the same. */
#define TICK_NS (20 * BH__NS_PER_MS)

uint64_t bh__clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * BH__NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t nanoseconds(struct timespec time) {
    return (uint64_t)time.tv_sec * BH__NS_PER_S + (uint64_t)time.tv_nsec;
}

static bh__file_id id_of(const struct stat *info) {
    return (bh__file_id){.device = info->st_dev,
                         .inode = info->st_ino,
                         .bytes = (uint64_t)info->st_size,
                         .mtime_ns = nanoseconds(info->st_mtim),
                         .ctime_ns = nanoseconds(info->st_ctim)};
}

bool bh__file_id_get(const char *path, bh__file_id *out) {
    struct stat info;
    *out = (bh__file_id){0};
    if (stat(path, &info) < 0) return false;
    *out = id_of(&info);
    return true;
}

bool bh__file_id_equal(const bh__file_id *a, const bh__file_id *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

bool bh__file_id_known(const bh__file_id *id) {
    return id->inode != 0;
}

/* The whole of a regular file and its identity. NULL: it is gone, or changes while it is read. */
static uint8_t *read_file(const char *path, uint64_t expected, bh__file_id *out_id) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat before, after;
    uint8_t *data = NULL;
    bool whole = false;
    if (fd >= 0 && fstat(fd, &before) == 0 && S_ISREG(before.st_mode) &&
        (uint64_t)before.st_size == expected)
        data = malloc(expected + 1);
    if (data) {
        size_t got = 0;
        ssize_t some;
        while (got <= expected && (some = read(fd, data + got, expected + 1 - got)) > 0)
            got += (size_t)some;
        whole = got == expected && fstat(fd, &after) == 0;
        if (whole) {
            *out_id = id_of(&before);
            bh__file_id same = id_of(&after);
            whole = bh__file_id_equal(out_id, &same);
        }
    }
    if (fd >= 0) close(fd);
    if (whole) return data;
    free(data);
    return NULL;
}

static bool hash_matches(const bh__read *read, const uint8_t *data) {
    uint64_t hash[2];
    bh__hash128(data, read->bytes, hash);
    return hash[0] == read->hash[0] && hash[1] == read->hash[1];
}

/* An identity stands for contents only if a later change would show in it. */
static bh__file_id settled(const bh__file_id *id, uint64_t moment_ns) {
    bool old = id->ctime_ns + TICK_NS < moment_ns && id->mtime_ns + TICK_NS < moment_ns;
    return old ? *id : (bh__file_id){0};
}

/* ---- files that are not there ----
 *
 * A compiler looks for a header in many places. Each is remembered with the nearest folder that
 * exists: nothing can appear there without that folder changing. */

/* Folders change for other reasons too; one that does so all the time is not written down again and
 * again. */
#define QUIET_NS (10 * BH__NS_PER_S)

enum { MOST_FOLDERS = 512 };

typedef struct folder_list {
    bh__arena *arena;
    uint64_t begun_ns;
    bh__read_folder *folders;
    size_t count, capacity;
    /* What the folder of a path comes to, so that it is looked for once. */
    struct {
        const char *path;
        size_t length;
        uint32_t folder;
    } known[MOST_FOLDERS];
    size_t known_count;
} folder_list;

static bool add_folder(folder_list *self, const char *path, const bh__file_id *id, uint32_t *out) {
    for (size_t i = 0; i < self->count; i++) {
        *out = (uint32_t)i;
        if (strcmp(self->folders[i].path, path) == 0) return true;
    }
    bh__read_folder *folders = bh__arena_grow(self->arena, self->folders, self->count,
                                              &self->capacity, sizeof *self->folders);
    char *copy = folders ? bh__arena_copy(self->arena, path, strlen(path)) : NULL;
    if (!copy) return false;
    self->folders = folders;
    *out = (uint32_t)self->count;
    folders[self->count++] = (bh__read_folder){copy, settled(id, self->begun_ns)};
    return true;
}

/* False: no host memory. */
static bool find_folder(folder_list *self, const char *path, uint32_t *out) {
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    for (size_t i = 0; i < self->known_count; i++) {
        *out = self->known[i].folder;
        if (self->known[i].length == length && memcmp(self->known[i].path, path, length) == 0)
            return true;
    }
    char folder[4096];
    bh__file_id id;
    if (length >= sizeof folder) length = 0;
    memcpy(folder, path, length);
    folder[length] = 0;
    size_t end = length;
    while (end > 0 && !bh__file_id_get(folder, &id)) {
        while (end > 0 && folder[end] != '/') end--;
        folder[end] = 0;
    }
    if (end == 0) {
        strcpy(folder, "/");
        bh__file_id_get(folder, &id);
    }
    if (!add_folder(self, folder, &id, out)) return false;
    if (self->known_count < MOST_FOLDERS) {
        self->known[self->known_count].path = path;
        self->known[self->known_count].length = length;
        self->known[self->known_count++].folder = *out;
    }
    return true;
}

/* ---- all of them ---- */

bool bh__reads_complete(bh__reads *reads, bh__arena *arena, uint64_t begun_ns) {
    folder_list *list = calloc(1, sizeof *list);
    bool complete = list != NULL;
    if (list) *list = (folder_list){.arena = arena, .begun_ns = begun_ns};
    for (size_t i = 0; i < reads->count && complete; i++) {
        bh__read *read = &reads->list[i];
        bh__file_id id;
        if (read->missing) {
            /* The folder first: what appears in between is seen. */
            complete =
                find_folder(list, read->path, &read->folder) && !bh__file_id_get(read->path, &id);
            continue;
        }
        uint8_t *data = read_file(read->path, read->bytes, &id);
        complete = data && hash_matches(read, data);
        if (complete) {
            bh__sha256(data, read->bytes, read->digest);
            read->id = settled(&id, begun_ns);
        }
        free(data);
    }
    if (complete) {
        reads->folders = list->folders;
        reads->folder_count = list->count;
    }
    free(list);
    return complete;
}

/* Whether a file has the contents it had. */
static bool has_contents(const bh__read *read, bh__file_id *out_id) {
    uint8_t *data = read_file(read->path, read->bytes, out_id);
    uint8_t digest[32];
    bool same = data && hash_matches(read, data);
    if (same) {
        bh__sha256(data, read->bytes, digest);
        same = memcmp(digest, read->digest, sizeof digest) == 0;
    }
    free(data);
    return same;
}

bh__freshness bh__reads_check(bh__reads *reads, bool renew) {
    bool quiet[MOST_FOLDERS] = {false};
    bh__freshness freshness = BH__FRESH;
    uint64_t moment = 0;
    for (size_t i = 0; i < reads->folder_count && i < MOST_FOLDERS; i++) {
        bh__file_id id;
        bh__file_id_get(reads->folders[i].path, &id);
        quiet[i] = bh__file_id_equal(&id, &reads->folders[i].id);
        if (quiet[i]) continue;
        if (!moment) moment = bh__clock_ns();
        id = settled(&id, moment > QUIET_NS ? moment - QUIET_NS : 0);
        if (!bh__file_id_known(&id)) continue;
        freshness = BH__FRESH_RENEWED; /* if the rest is as it was */
        if (renew) reads->folders[i].id = id;
    }
    for (size_t i = 0; i < reads->count; i++) {
        bh__read *read = &reads->list[i];
        bh__file_id id;
        if (read->missing && read->folder < MOST_FOLDERS && quiet[read->folder]) continue;
        bool there = bh__file_id_get(read->path, &id);
        if (there == read->missing) return BH__STALE;
        if (read->missing || bh__file_id_equal(&id, &read->id)) continue;
        uint64_t before = bh__clock_ns();
        if (!has_contents(read, &id)) return BH__STALE;
        id = settled(&id, before);
        if (!bh__file_id_known(&id)) continue;
        if (renew) read->id = id;
        freshness = BH__FRESH_RENEWED;
    }
    return freshness;
}
