/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory: sealed memfds and their mappings. */
#include "wire/share.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int bh__share_create(const char *name, uint64_t bytes) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -errno;
    if (ftruncate(fd, (off_t)bytes) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

static void *map_new(int fd, uint64_t offset, uint64_t bytes, bool writable) {
    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *memory = mmap(NULL, bytes, protection, MAP_SHARED, fd, (off_t)offset);
    if (memory == MAP_FAILED) return NULL;
    madvise(memory, bytes, MADV_DONTFORK);
    return memory;
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

/* Maps the whole file once; every part of it is a part of that one mapping. */
void *bh__share_map(int fd, uint64_t offset, uint64_t bytes, bool writable) {
    (void)bytes;
    (void)writable;
    struct stat info;
    if (fstat(fd, &info) < 0) return NULL;
    pthread_mutex_lock(&shared_lock);
    int free_entry = -1, entry = -1;
    for (int i = 0; i < MAX_SHARED; i++) {
        if (shared[i].users && shared[i].inode == info.st_ino) entry = i;
        if (!shared[i].users && free_entry < 0) free_entry = i;
    }
    if (entry < 0 && free_entry >= 0) {
        uint8_t *memory = map_new(fd, 0, (uint64_t)info.st_size, true);
        if (memory) {
            entry = free_entry;
            shared[entry].inode = info.st_ino;
            shared[entry].bytes = (uint64_t)info.st_size;
            shared[entry].memory = memory;
        }
    }
    if (entry >= 0) shared[entry].users++;
    pthread_mutex_unlock(&shared_lock);
    if (entry < 0) errno = ENOMEM;
    return entry < 0 ? NULL : shared[entry].memory + offset;
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
    return map_new(fd, offset, bytes, writable);
}

void bh__share_unmap(void *memory, uint64_t bytes) {
    munmap(memory, bytes);
}

#endif
