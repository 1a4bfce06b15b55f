/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of executable memory, taken and given back. */
#include "cpu/code_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool bh__cpu_code_open(bh__cpu_code_memory *self) {
    void *base = mmap(NULL, BH__CPU_CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    self->page = (size_t)sysconf(_SC_PAGESIZE);
    self->pages = BH__CPU_CODE_BYTES / self->page;
    self->in_use = calloc(self->pages, 1);
    if (!self->in_use) {
        munmap(base, BH__CPU_CODE_BYTES);
        return false;
    }
    self->base = base;
    return true;
}

void bh__cpu_code_close(bh__cpu_code_memory *self) {
    if (self->base) munmap(self->base, BH__CPU_CODE_BYTES);
    free(self->in_use);
    *self = (bh__cpu_code_memory){0};
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

void bh__cpu_code_give(bh__cpu_code_memory *self, uint8_t *at, size_t bytes) {
    size_t first = (size_t)(at - self->base) / self->page, count = pages_of(self, bytes);
    memset(self->in_use + first, 0, count);
    (void)madvise(at, count * self->page, MADV_DONTNEED);
}
