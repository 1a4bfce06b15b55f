/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a compile read: recording them, and checking that they have not changed. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/siphash.h"
#include "client/compile/inputs.h"
#include "client/module/product.h"

/* File times have the resolution of the kernel's tick: two changes within one tick look the
 * same. */
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

/* A compromised compiler may report any file, and any number of them. Beyond these limits, which
 * real headers do not reach, files are not read and the result is not cached. */
#define MAX_BYTES ((uint64_t)256 << 20)
enum { MAX_READS = 1 << 16, MAX_MISSING_IN = 4096 };

/* Reads a regular file and its identity. Returns NULL if it is missing, has another size, or
 * changes while it is read. */
static uint8_t *read_file(const char *path, uint64_t expected, bh__file_id *out_id) {
    if (expected > MAX_BYTES) return NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat before, after;
    uint8_t *data = NULL;
    bool complete = false;
    if (fd >= 0 && fstat(fd, &before) == 0 && S_ISREG(before.st_mode) &&
        (uint64_t)before.st_size == expected)
        data = malloc(expected + 1);
    if (data) {
        size_t got = 0;
        ssize_t some;
        while (got <= expected && (some = read(fd, data + got, expected + 1 - got)) > 0)
            got += (size_t)some;
        complete = got == expected && fstat(fd, &after) == 0;
        if (complete) {
            *out_id = id_of(&before);
            bh__file_id same = id_of(&after);
            complete = bh__file_id_equal(out_id, &same);
        }
    }
    if (fd >= 0) close(fd);
    if (complete) return data;
    free(data);
    return NULL;
}

static bool hash_matches(const bh__read *read, const uint8_t *data) {
    uint64_t hash[2];
    bh__checksum(data, read->bytes, hash);
    return hash[0] == read->hash[0] && hash[1] == read->hash[1];
}

/* Returns the identity, or zeros if the file changed so recently that another change could leave
 * the identity the same. */
static bh__file_id settled(const bh__file_id *id, uint64_t now_ns) {
    bool old = id->ctime_ns + TICK_NS < now_ns && id->mtime_ns + TICK_NS < now_ns;
    return old ? *id : (bh__file_id){0};
}

/* ---- missing files ----
 *
 * A compiler searches many folders for a header. Each path where it found none is recorded with the
 * nearest folder that exists: a file cannot appear at that path without that folder changing. */

/* Folders change for other reasons too. The new identity of a folder is stored only after it has
 * not changed for this long, so that a busy folder does not cause constant rewrites. */
#define QUIET_NS (10 * BH__NS_PER_S)

enum { MAX_FOLDERS = 512 };

typedef struct folder_list {
    bh__arena *arena;
    uint64_t begun_ns;
    bh__read_folder *folders;
    size_t count, capacity;
    /* Results of find_folder, so that each folder of a path is searched for once. */
    struct {
        const char *path;
        size_t length;
        uint32_t folder;
    } known[MAX_FOLDERS];
    size_t known_count;
} folder_list;

static bool add_folder(folder_list *self, const char *path, const bh__file_id *id, uint32_t *out) {
    for (size_t i = 0; i < self->count; i++) {
        *out = (uint32_t)i;
        if (strcmp(self->folders[i].path, path) == 0) return true;
    }
    if (self->count == MAX_MISSING_IN) return false;
    bh__read_folder *folders = bh__arena_grow(self->arena, self->folders, self->count,
                                              &self->capacity, sizeof *self->folders);
    char *copy = folders ? bh__arena_copy(self->arena, path, strlen(path)) : NULL;
    if (!copy) return false;
    self->folders = folders;
    *out = (uint32_t)self->count;
    folders[self->count++] = (bh__read_folder){copy, settled(id, self->begun_ns)};
    return true;
}

/* Finds the nearest existing folder above `path`. Returns false if host memory is exhausted or
 * there are too many folders. */
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
    if (self->known_count < MAX_FOLDERS) {
        self->known[self->known_count].path = path;
        self->known[self->known_count].length = length;
        self->known[self->known_count++].folder = *out;
    }
    return true;
}

/* ---- recording and checking ---- */

bool bh__reads_complete(bh__reads *reads, bh__arena *arena, uint64_t begun_ns) {
    folder_list *list = calloc(1, sizeof *list);
    bool complete = list != NULL && reads->count <= MAX_READS;
    if (list) *list = (folder_list){.arena = arena, .begun_ns = begun_ns};
    for (size_t i = 0; i < reads->count && complete; i++) {
        bh__read *read = &reads->list[i];
        bh__file_id id;
        if (read->missing) {
            /* The folder first: a file that appears between the two steps is noticed. */
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

/* Returns true if the file still has the recorded contents. */
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
    bool unchanged[MAX_FOLDERS] = {false};
    bh__freshness freshness = BH__FRESH;
    uint64_t now = 0;
    for (size_t i = 0; i < reads->folder_count && i < MAX_FOLDERS; i++) {
        bh__file_id id;
        bh__file_id_get(reads->folders[i].path, &id);
        unchanged[i] = bh__file_id_equal(&id, &reads->folders[i].id);
        if (unchanged[i]) continue;
        if (!now) now = bh__clock_ns();
        id = settled(&id, now > QUIET_NS ? now - QUIET_NS : 0);
        if (!bh__file_id_known(&id)) continue;
        freshness = BH__FRESH_RENEWED; /* unless a file turns out to be stale */
        if (renew) reads->folders[i].id = id;
    }
    for (size_t i = 0; i < reads->count; i++) {
        bh__read *read = &reads->list[i];
        bh__file_id id;
        if (read->missing && read->folder < MAX_FOLDERS && unchanged[read->folder]) continue;
        bool exists = bh__file_id_get(read->path, &id);
        if (exists == read->missing) return BH__STALE;
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
