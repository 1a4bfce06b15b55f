/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory: sealed memfds and their mappings. */
#include "wire/share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_signal.h"

enum { SIZE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

/* Closes the descriptor. Returns -errno of the failure before. */
static int fail_and_close(int fd) {
    int number = errno;
    close(fd);
    return -number;
}

static int create(const char *name, uint64_t bytes, int seals) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -errno;
    errno = bh__file_grow(fd, bytes);
    if (errno != 0 || fcntl(fd, F_ADD_SEALS, seals) < 0) return fail_and_close(fd);
    return fd;
}

int bh__share_create(const char *name, uint64_t bytes) {
    return create(name, bytes, SIZE_SEALS | F_SEAL_SEAL);
}

/* Linux before 5.1 has no F_SEAL_FUTURE_WRITE: returns a read-only descriptor instead of `fd`, and
 * makes the file read-only, so that it cannot be opened for writing again. */
static int reopen_read_only(int fd) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fchmod(fd, 0400) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) < 0) return fail_and_close(fd);
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    if (reader < 0) return fail_and_close(fd);
    close(fd);
    return reader;
}

int bh__share_publish(const char *name, uint64_t bytes, void **out) {
    int fd = create(name, bytes, SIZE_SEALS);
    if (fd < 0) return fd;
    void *memory = bh__share_map(fd, 0, bytes, true);
    if (!memory) return fail_and_close(fd);
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
        fd = errno == EINVAL ? reopen_read_only(fd) : fail_and_close(fd);
    if (fd < 0) {
        bh__share_unmap(memory, bytes);
        return fd;
    }
    *out = memory;
    return fd;
}

bool bh__share_is_steady(int fd, uint64_t bytes) {
    struct stat info;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK && fstat(fd, &info) == 0 &&
           (uint64_t)info.st_size >= bytes;
}

bool bh__share_is_published(int fd, uint64_t bytes) {
    bool sealed = fcntl(fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE;
    return bh__share_is_steady(fd, bytes) &&
           (sealed || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
}

bool bh__share_is_writable(int fd) {
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) &&
           (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/* Maps at `place` (MAP_FIXED), or anywhere if it is NULL. */
static void *map_at(void *place, int fd, uint64_t offset, uint64_t bytes, int protection) {
    int flags = (place ? MAP_FIXED : 0) |
                (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED);
    void *memory = mmap(place, bytes, protection, flags, fd, (off_t)offset);
    if (memory == MAP_FAILED) return NULL;
    madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

void *bh__share_reserve(uint64_t bytes) {
    return map_at(NULL, -1, 0, bytes, PROT_READ | PROT_WRITE);
}

#ifdef BH__ONE_PROCESS

#include <pthread.h>

enum { MAX_SHARED = 4096 };

static struct {
    ino_t inode;
    uint64_t bytes;
    uint8_t *memory;
    int users;
} shared[MAX_SHARED];
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns -1 if the file is not mapped and the table is full. Called with the lock held. */
static int entry_of(ino_t inode) {
    int free_entry = -1;
    for (int i = 0; i < MAX_SHARED; i++) {
        if (shared[i].users && shared[i].inode == inode) return i;
        if (!shared[i].users) free_entry = i;
    }
    return free_entry;
}

/* Adds a user of the file, which is mapped once as a whole: every part of it is in that mapping.
 * `place` is where to map it; NULL: where it is mapped already, or anywhere. Called with the lock
 * held. */
static uint8_t *use(int fd, void *place) {
    struct stat info;
    int entry = fstat(fd, &info) < 0 ? -1 : entry_of(info.st_ino);
    if (entry < 0) return NULL;
    if (shared[entry].users++) return shared[entry].memory;
    uint64_t bytes = (uint64_t)info.st_size;
    uint8_t *memory = map_at(place, fd, 0, bytes, PROT_READ | PROT_WRITE);
    /* A published file cannot be mapped writable any more. */
    if (!memory) memory = map_at(place, fd, 0, bytes, PROT_READ);
    shared[entry].inode = info.st_ino;
    shared[entry].bytes = bytes;
    shared[entry].memory = memory;
    shared[entry].users = memory != NULL;
    return memory;
}

void *bh__share_map(int fd, uint64_t offset, uint64_t bytes, bool writable) {
    (void)bytes;
    (void)writable;
    pthread_mutex_lock(&shared_lock);
    uint8_t *memory = use(fd, NULL);
    pthread_mutex_unlock(&shared_lock);
    if (!memory) errno = ENOMEM;
    return memory ? memory + offset : NULL;
}

/* Removes the users of files that are mapped in this range. Called with the lock held. */
static void forget(const uint8_t *memory, uint64_t bytes) {
    for (int i = 0; i < MAX_SHARED; i++) {
        if (shared[i].memory >= memory && shared[i].memory < memory + bytes) shared[i].users = 0;
    }
}

bool bh__share_place(void *place, int fd, uint64_t bytes) {
    pthread_mutex_lock(&shared_lock);
    forget(place, bytes);
    bool placed = use(fd, place) == place;
    pthread_mutex_unlock(&shared_lock);
    return placed;
}

void bh__share_release(void *memory, uint64_t bytes) {
    pthread_mutex_lock(&shared_lock);
    forget(memory, bytes);
    pthread_mutex_unlock(&shared_lock);
    munmap(memory, bytes);
}

void bh__share_unmap(void *memory, uint64_t bytes) {
    (void)bytes;
    pthread_mutex_lock(&shared_lock);
    for (int i = 0; i < MAX_SHARED; i++) {
        uint8_t *base = shared[i].memory;
        if (!shared[i].users || (uint8_t *)memory < base ||
            (uint8_t *)memory >= base + shared[i].bytes)
            continue;
        if (--shared[i].users == 0) munmap(base, shared[i].bytes);
        break;
    }
    pthread_mutex_unlock(&shared_lock);
}

#else

void *bh__share_map(int fd, uint64_t offset, uint64_t bytes, bool writable) {
    return map_at(NULL, fd, offset, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ);
}

void bh__share_unmap(void *memory, uint64_t bytes) {
    munmap(memory, bytes);
}

bool bh__share_place(void *place, int fd, uint64_t bytes) {
    return map_at(place, fd, 0, bytes, PROT_READ | PROT_WRITE) != NULL;
}

void bh__share_release(void *memory, uint64_t bytes) {
    munmap(memory, bytes);
}

#endif
