/* SPDX-License-Identifier: Apache-2.0 */
/* The library's file descriptors, and fork: a forked child cannot use the library and must not keep
 * its memory or workers alive. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/core/error.h"
#include "client/core/fork.h"

enum { KEPT_FDS = 65536 };

static _Atomic uint64_t kept[KEPT_FDS / 64];
static struct {
    _Atomic uint64_t device, inode;
    _Atomic uint32_t holders; /* reference count: the last holder closes the descriptor */
} identity[KEPT_FDS];
_Atomic bool bh__in_forked_child;
static _Atomic int devices_open;

void bh__fork_count(int change) {
    atomic_fetch_add(&devices_open, change);
}

static bool is_kept(int fd) {
    return fd >= 0 && fd < KEPT_FDS && (atomic_load(&kept[fd / 64]) >> (fd % 64) & 1);
}

/* If the kernel returned a number that is still kept, the program has closed the library's
 * descriptor of that number. Its holder must not mistake the new descriptor for its own. */
static int avoid_kept_number(int fd) {
    while (is_kept(fd)) {
        int other = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
        if (other < 0) break;
        close(fd);
        fd = other;
    }
    return fd;
}

int bh__fd_keep(int fd) {
    struct stat info;
    fd = avoid_kept_number(fd);
    if (fd >= 0 && fd < KEPT_FDS && fstat(fd, &info) == 0) {
        identity[fd].device = info.st_dev;
        identity[fd].inode = info.st_ino;
        atomic_store(&identity[fd].holders, 1);
        atomic_fetch_or(&kept[fd / 64], 1ull << (fd % 64));
    }
    return fd;
}

int bh__fd_hold(int fd) {
    if (fd < 0) return -1;
    if (!is_kept(fd)) return bh__fd_keep(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    atomic_fetch_add(&identity[fd].holders, 1);
    return fd;
}

bool bh__fd_is_ours(int fd) {
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0) return false;
    return fd >= KEPT_FDS ||
           (identity[fd].device == info.st_dev && identity[fd].inode == info.st_ino);
}

void bh__fd_close(int fd) {
    if (fd < 0 || (is_kept(fd) && atomic_fetch_sub(&identity[fd].holders, 1) > 1)) return;
    bool ours = bh__fd_is_ours(fd);
    if (fd < KEPT_FDS) atomic_fetch_and(&kept[fd / 64], ~(1ull << (fd % 64)));
    if (ours) close(fd);
}

/* A thread may sleep until this write arrives, so a failed write is retried. */
bool bh__fd_poke(int fd) {
    uint64_t one = 1;
    for (int tries = 0; tries < 3 && bh__fd_is_ours(fd); tries++) {
        if (write(fd, &one, sizeof one) == sizeof one || errno == EAGAIN) return true;
    }
    return false;
}

/* ---- forking ---- */

pthread_mutex_t bh__process_locks[BH__PROCESS_LOCKS] = {
    [BH__LOCK_COMPILES] = PTHREAD_MUTEX_INITIALIZER,
    [BH__LOCK_CACHE_PROBLEM] = PTHREAD_MUTEX_INITIALIZER,
    [BH__LOCK_COMPILE_LOGS] = PTHREAD_MUTEX_INITIALIZER,
    [BH__LOCK_MAPPINGS] = PTHREAD_MUTEX_INITIALIZER,
    [BH__LOCK_MIRRORS] = PTHREAD_MUTEX_INITIALIZER,
    [BH__LOCK_SLOTS] = PTHREAD_MUTEX_INITIALIZER,
    [BH__LOCK_VERDICTS] = PTHREAD_MUTEX_INITIALIZER,
};

static void before_fork(void) {
    for (int i = 0; i < BH__PROCESS_LOCKS; i++) bh__process_lock_take((bh__process_lock)i);
}

static void after_fork(void) {
    for (int i = BH__PROCESS_LOCKS; i-- > 0;) bh__process_lock_give((bh__process_lock)i);
}

/* The child does not inherit the mappings (MADV_DONTFORK). It inherits the descriptors. */
static void after_fork_in_child(void) {
    after_fork();
    if (atomic_load(&devices_open) == 0) return; /* such a child may open its own devices */
    atomic_store(&bh__in_forked_child, true);
    for (int word = 0; word < KEPT_FDS / 64; word++) {
        uint64_t bits = atomic_exchange(&kept[word], 0);
        while (bits) {
            close(word * 64 + __builtin_ctzll(bits));
            bits &= bits - 1;
        }
    }
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

bool bh__refuse_forked(void) {
    if (!bh__is_forked_child()) return false;
    bh__refuse(BH_E_STOPPED, "call exec after fork, or open devices in the process that uses them",
               "this process was forked from one that has devices open, and cannot use Bulkhead");
    return true;
}
