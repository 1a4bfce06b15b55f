/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings at addresses that the application chose. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cpu/cpu.h"

static int map_new(uint64_t address, uint64_t bytes, int fd, bool writable) {
    void *wanted = (void *)(uintptr_t)address;
    void *memory = mmap(wanted, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                        MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
    if (memory == MAP_FAILED) return errno;
    if (memory != wanted) {
        /* Kernels before 4.17 treat the address as a hint. */
        munmap(memory, bytes);
        return EEXIST;
    }
    return 0;
}

#ifdef BH__ONE_PROCESS

/* Workers that are threads of one process share its address space: a mapping of one of them is
 * used by the others too. */
enum { MAX_MAPPINGS = 4096 };

static struct {
    uint64_t address, bytes;
    ino_t inode;
    int users;
} mappings[MAX_MAPPINGS];
static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;

static int map_shared(uint64_t address, uint64_t bytes, int fd, bool writable, ino_t inode) {
    int unused = -1;
    for (int i = 0; i < MAX_MAPPINGS; i++) {
        if (!mappings[i].users) {
            unused = unused < 0 ? i : unused;
        } else if (mappings[i].address == address) {
            if (mappings[i].inode != inode || mappings[i].bytes != bytes) return EEXIST;
            mappings[i].users++;
            return 0;
        }
    }
    if (unused < 0) return ENOMEM;
    int result = map_new(address, bytes, fd, writable);
    if (result == 0) {
        mappings[unused].address = address;
        mappings[unused].bytes = bytes;
        mappings[unused].inode = inode;
        mappings[unused].users = 1;
    }
    return result;
}

int bh__cpu_map_at(uint64_t address, uint64_t bytes, int fd, bool writable) {
    struct stat info;
    if (fstat(fd, &info) < 0) return errno;
    pthread_mutex_lock(&mappings_lock);
    int result = map_shared(address, bytes, fd, writable, info.st_ino);
    pthread_mutex_unlock(&mappings_lock);
    return result;
}

void bh__cpu_unmap_at(uint64_t address, uint64_t bytes) {
    pthread_mutex_lock(&mappings_lock);
    for (int i = 0; i < MAX_MAPPINGS; i++) {
        if (mappings[i].users && mappings[i].address == address) {
            if (--mappings[i].users == 0) munmap((void *)(uintptr_t)address, bytes);
            break;
        }
    }
    pthread_mutex_unlock(&mappings_lock);
}

#else

int bh__cpu_map_at(uint64_t address, uint64_t bytes, int fd, bool writable) {
    return map_new(address, bytes, fd, writable);
}

void bh__cpu_unmap_at(uint64_t address, uint64_t bytes) {
    munmap((void *)(uintptr_t)address, bytes);
}

#endif
