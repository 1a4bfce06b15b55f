/* SPDX-License-Identifier: Apache-2.0 */
/* An input as a file in memory, for readers that take a descriptor. */
#ifndef BH_TESTS_FUZZ_MEMORY_FILE_H
#define BH_TESTS_FUZZ_MEMORY_FILE_H

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

/* The same file each time: making one costs more than most inputs. */
static inline int fuzz_memory_file(const void *bytes, size_t size) {
    static int fd = -1;
    if (fd < 0) fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && ftruncate(fd, 0) == 0);
    FUZZ_CHECK(pwrite(fd, bytes, size, 0) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

#endif
