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

bool bh__reads_complete(bh__read *reads, size_t count, uint64_t begun_ns) {
    for (size_t i = 0; i < count; i++) {
        bh__read *read = &reads[i];
        bh__file_id id;
        if (read->missing) {
            if (bh__file_id_get(read->path, &id)) return false;
            continue;
        }
        uint8_t *data = read_file(read->path, read->bytes, &id);
        bool same = data && hash_matches(read, data);
        if (same) {
            bh__sha256(data, read->bytes, read->digest);
            read->id = settled(&id, begun_ns);
        }
        free(data);
        if (!same) return false;
    }
    return true;
}

bh__freshness bh__reads_check(bh__read *reads, size_t count, bool renew) {
    bh__freshness freshness = BH__FRESH;
    for (size_t i = 0; i < count; i++) {
        bh__read *read = &reads[i];
        bh__file_id id;
        bool there = bh__file_id_get(read->path, &id);
        if (there == read->missing) return BH__STALE;
        if (read->missing || bh__file_id_equal(&id, &read->id)) continue;
        uint64_t moment = bh__clock_ns();
        uint8_t *data = read_file(read->path, read->bytes, &id);
        uint8_t digest[32];
        bool same = data && hash_matches(read, data);
        if (same) {
            bh__sha256(data, read->bytes, digest);
            same = memcmp(digest, read->digest, sizeof digest) == 0;
        }
        free(data);
        if (!same) return BH__STALE;
        id = settled(&id, moment);
        if (!bh__file_id_known(&id)) continue;
        if (renew) read->id = id;
        freshness = BH__FRESH_RENEWED;
    }
    return freshness;
}
