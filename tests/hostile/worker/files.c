/* SPDX-License-Identifier: Apache-2.0 */
/* Files: those the worker was given, and odd ones to hand back. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hostile.h"

void file_note(int fd) {
    struct stat info;
    uint32_t at = atomic_load(&hostile.file_count);
    if (at == FILES || fstat(fd, &info) != 0) return;
    if (S_ISFIFO(info.st_mode)) {
        atomic_store(&hostile.bell_number, fd);
        atomic_store(&hostile.bell_fd, fcntl(fd, F_DUPFD_CLOEXEC, 100));
    }
    given_file *file = &hostile.files[at];
    *file = (given_file){.fd = fcntl(fd, F_DUPFD_CLOEXEC, 100), .bytes = (uint64_t)info.st_size};
    if (S_ISREG(info.st_mode) && file->bytes) {
        void *memory = mmap(NULL, file->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
        if (memory != MAP_FAILED) file->memory = memory;
    }
    atomic_store(&hostile.file_count, at + 1);
}

int memory_file(uint64_t bytes, unsigned seals) {
    int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && seals) fcntl(fd, F_ADD_SEALS, seals);
    return fd;
}

static int one_end_of(int pair[2], int failed) {
    if (failed) return -1;
    close(pair[1]);
    return pair[0];
}

int odd_descriptor(void) {
    static const char *const paths[] = {"/dev/null", "/dev/zero", "/proc/self/mem", "/tmp", "/"};
    int pair[2];
    switch (below(9)) {
    case 0:
        return one_end_of(pair, pipe2(pair, O_CLOEXEC));
    case 1:
        return one_end_of(pair, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    case 2:
        return memory_file(0, 0);
    case 3:
        return memory_file(UINT64_C(1) << (12 + below(38)), 0);
    case 4:
        return memory_file(1 + below(100000), 0);
    case 5:
        return memory_file(1 + below(100000), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    case 6:
        return eventfd(1, EFD_CLOEXEC);
    default:
        return open(paths[below(sizeof paths / sizeof *paths)], O_RDONLY | O_CLOEXEC);
    }
}
