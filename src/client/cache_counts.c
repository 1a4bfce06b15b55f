/* SPDX-License-Identifier: Apache-2.0 */
/* Hits and misses of all processes that use a cache folder, in a small file there. What cannot be
 * added now, because somebody else is at it, is added the next time. */
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hash.h"
#include "client/compile.h"

#define MAGIC 0x31544e554f434842u

static const char file_name[] = "counts";

typedef struct counts {
    uint64_t magic, hits, misses, check;
} counts;

static uint64_t added_hits, added_misses; /* of this process; under bh__compile_lock */

static uint64_t check_of(const counts *c) {
    return bh__hash_u64(c->hits ^ bh__hash_u64(c->misses ^ MAGIC));
}

/* Zeros where there is nothing, or nothing good. */
static counts read_counts(int fd) {
    counts c;
    if (fd < 0 || pread(fd, &c, sizeof c, 0) != sizeof c || c.magic != MAGIC ||
        c.check != check_of(&c))
        c = (counts){.magic = MAGIC};
    return c;
}

static bool add(const bh__folder *folder, uint64_t hits, uint64_t misses) {
    int fd =
        openat(folder->fd, file_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0) return false;
    fd = bh__fd_keep(fd);
    bool added = false;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        counts c = read_counts(fd);
        c.hits += hits;
        c.misses += misses;
        c.check = check_of(&c);
        added = pwrite(fd, &c, sizeof c, 0) == sizeof c;
    }
    bh__fd_close(fd);
    return added;
}

void bh__cache_counts_add(const char *dir) {
    bh__folder folder;
    bh__folder_open(dir, false, &folder);
    if (folder.fd < 0) return;
    bh__compile_lock();
    uint64_t hits = atomic_load(&bh__cache_counted.memory_hits) +
                    atomic_load(&bh__cache_counted.disk_hits) - added_hits;
    uint64_t misses = atomic_load(&bh__cache_counted.misses) - added_misses;
    added_hits += hits;
    added_misses += misses;
    bh__compile_unlock();
    if ((hits || misses) && !add(&folder, hits, misses)) {
        bh__compile_lock();
        added_hits -= hits;
        added_misses -= misses;
        bh__compile_unlock();
    }
    bh__folder_close(&folder);
}

void bh__cache_counts_get(const bh__folder *folder, uint64_t *out_hits, uint64_t *out_misses) {
    int fd = openat(folder->fd, file_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    counts c = read_counts(fd);
    if (fd >= 0) close(fd);
    *out_hits = c.hits;
    *out_misses = c.misses;
}

void bh__cache_counts_clear(const bh__folder *folder) {
    unlinkat(folder->fd, file_name, 0);
}
