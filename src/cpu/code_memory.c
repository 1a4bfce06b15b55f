/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of executable memory, taken and given back. They are a file in memory with two mappings:
 * one to execute it, for good, and one to write a part of it, for as long as that takes. */
#include "cpu/code_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/errno_text.h"
#include "base/file_signal.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

/* A file that nobody can start as a program. Linux before 6.3 does not know the flag. */
static int make_file(void) {
    int fd = memfd_create("bulkhead-code", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) fd = memfd_create("bulkhead-code", MFD_CLOEXEC);
    if (fd < 0) return -1;
    errno = bh__file_grow(fd, BH__CPU_CODE_BYTES);
    if (errno == 0) return fd;
    close(fd);
    return -1;
}

bool bh__cpu_code_open(bh__cpu_code_memory *self) {
    *self = (bh__cpu_code_memory){.page = (size_t)sysconf(_SC_PAGESIZE), .fd = make_file()};
    if (self->fd < 0) return false;
    self->pages = BH__CPU_CODE_BYTES / self->page;
    self->in_use = calloc(self->pages, 1);
    void *base = self->in_use ? mmap(NULL, BH__CPU_CODE_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED,
                                     self->fd, 0)
                              : MAP_FAILED;
    if (base == MAP_FAILED) {
        close(self->fd);
        free(self->in_use);
        *self = (bh__cpu_code_memory){.fd = -1};
        return false;
    }
    self->base = base;
    return true;
}

void bh__cpu_code_close(bh__cpu_code_memory *self) {
    if (!self->base) return;
    munmap(self->base, BH__CPU_CODE_BYTES);
    close(self->fd);
    free(self->in_use);
    *self = (bh__cpu_code_memory){.fd = -1};
}

static size_t pages_of(const bh__cpu_code_memory *self, size_t bytes) {
    return bytes / self->page + (bytes % self->page != 0);
}

uint8_t *bh__cpu_code_take(bh__cpu_code_memory *self, size_t bytes) {
    size_t wanted = self->base ? pages_of(self, bytes) : 0, run = 0;
    if (wanted == 0) return NULL;
    for (size_t i = 0; i < self->pages; i++) {
        run = self->in_use[i] ? 0 : run + 1;
        if (run < wanted) continue;
        size_t first = i + 1 - wanted;
        memset(self->in_use + first, 1, wanted);
        return self->base + first * self->page;
    }
    return NULL;
}

/* Allocates the pages now: otherwise writing them could raise a signal. */
static void *map_to_write(const bh__cpu_code_memory *self, off_t offset, size_t bytes) {
    if (fallocate(self->fd, 0, offset, (off_t)bytes) != 0) return MAP_FAILED;
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, offset);
}

bh_status bh__cpu_code_write(bh__cpu_code_memory *self, uint8_t *at, const void *code, size_t bytes,
                             bh_error *error) {
    char reason[128];
    void *place = map_to_write(self, at - self->base, bytes);
    if (place == MAP_FAILED)
        return bh__fail(error, BH_E_NO_HOST_MEMORY,
                        bh__errno_fix(errno, "free memory in this machine"),
                        "%zu bytes of native code cannot be put in place: %s", bytes,
                        bh__errno_text(errno, reason, sizeof reason));
    memcpy(place, code, bytes);
    munmap(place, bytes);
    __builtin___clear_cache((char *)at, (char *)at + bytes);
    return BH_OK;
}

void bh__cpu_code_give(bh__cpu_code_memory *self, uint8_t *at, size_t bytes) {
    size_t first = (size_t)(at - self->base) / self->page, count = pages_of(self, bytes);
    memset(self->in_use + first, 0, count);
    (void)fallocate(self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)(first * self->page), (off_t)(count * self->page));
}
