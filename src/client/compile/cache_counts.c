/* SPDX-License-Identifier: Apache-2.0 */
/* Hits and misses of all processes that use a cache folder, in a small file there. If another
 * process has the file locked, the counts are added the next time. */
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file_signal.h"
#include "base/hash.h"
#include "client/compile/cache.h"
#include "client/compile/compile.h"
#include "client/compile/in_flight.h"
#include "client/core/fork.h"

#define MAGIC 0x31544e554f434842u

static const char file_name[] = "counts";

typedef struct counts {
    uint64_t magic, hits, misses, check;
} counts;

/* What this process has added to the file. Protected by bh__compile_lock. */
static uint64_t added_hits, added_misses;

static uint64_t check_of(const counts *c) {
    return bh__hash_u64(c->hits ^ bh__hash_u64(c->misses ^ MAGIC));
}

/* Returns zeros if the file does not exist or is damaged. */
static counts read_counts(int fd) {
    counts c;
    if (fd < 0 || pread(fd, &c, sizeof c, 0) != sizeof c || c.magic != MAGIC ||
        c.check != check_of(&c))
        c = (counts){.magic = MAGIC};
    return c;
}

static bool add(const bh__folder *folder, uint64_t hits, uint64_t misses) {
    struct stat info;
    int fd = bh__folder_open_file(folder, file_name, O_RDWR | O_CREAT, &info);
    if (fd < 0) return false;
    fd = bh__fd_keep(fd);
    bool added = false;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        counts c = read_counts(fd);
        c.hits += hits;
        c.misses += misses;
        c.check = check_of(&c);
        bh__file_signal signals;
        bh__file_signal_block(&signals);
        added = pwrite(fd, &c, sizeof c, 0) == sizeof c;
        bh__file_signal_restore(&signals);
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
    struct stat info;
    int fd = bh__folder_open_file(folder, file_name, O_RDONLY, &info);
    counts c = read_counts(fd);
    if (fd >= 0) close(fd);
    *out_hits = c.hits;
    *out_misses = c.misses;
}

void bh__cache_counts_clear(const bh__folder *folder) {
    unlinkat(folder->fd, file_name, 0);
}
