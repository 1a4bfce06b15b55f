/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings. All simulated processes live in one address space and see a memory file at the same
 * addresses; for each page is noted which process has it mapped, and how.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "heap.h"
#include "sim.h"

#define MAPS_BASE  ((char *)0x520000000000)
#define MAPS_BYTES ((size_t)1 << 36)
enum { PAGE = 4096, WRITER = 16 };

static char *top = MAPS_BASE;
static uint8_t *counts; /* process by process: readers and 16 times writers of each page */
static unsigned mapped[MAX_PROCESSES];

static uint8_t *counts_of(int process, const void *at) {
    return &counts[(size_t)process * (MAPS_BYTES / PAGE) +
                   (size_t)((const char *)at - MAPS_BASE) / PAGE];
}

static bool is_ours(const void *at) {
    return (const char *)at >= MAPS_BASE && (const char *)at < MAPS_BASE + MAPS_BYTES;
}

void *sim_memory_new(size_t bytes, void *wanted) {
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    if (!counts) {
        counts = mmap(NULL, MAPS_BYTES / PAGE * MAX_PROCESSES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (counts == MAP_FAILED) sim_fail(SIM_UNSUPPORTED, "no address space for mappings");
    }
    void *at = wanted ? wanted : top;
    if (!wanted) top += whole + PAGE; /* with a page between that is nobody's */
    if (top > MAPS_BASE + MAPS_BYTES) sim_fail(SIM_UNSUPPORTED, "mappings are used up");
    void *memory = mmap(at, whole, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (memory == MAP_FAILED) sim_fail(SIM_UNSUPPORTED, "no memory to map");
    return memory;
}

static void count(int process, char *at, size_t bytes, int change, bool write) {
    for (char *page = at; page < at + bytes; page += PAGE) {
        uint8_t *word = counts_of(process, page);
        *word = (uint8_t)(*word + change * (write ? WRITER : 1));
    }
}

void sim_mapping_check(const void *at, bool write, const void *where) {
    uint8_t is = *counts_of(sim_current->process, at);
    if (write ? is >= WRITER : is != 0) return;
    sim_fail(SIM_BUG, "%s of %p at %p: %s", write ? "write" : "read", at, where,
             is ? "this process has it mapped for reading only"
                : "this process has it not mapped, or not any more");
}

void sim_access_check(const volatile void *target, size_t bytes, bool write, const void *where) {
    const char *at = (const char *)(uintptr_t)target;
    if (at >= HEAP_BASE && at < HEAP_BASE + HEAP_BYTES) {
        const char *fault = sim_heap_fault(at, sim_current->process);
        if (!fault && bytes > 1) fault = sim_heap_fault(at + bytes - 1, sim_current->process);
        if (fault)
            sim_fail(SIM_BUG, "%s of %zu bytes at %p in the heap, at %p: %s",
                     write ? "write" : "read", bytes, (const void *)at, where, fault);
    } else if (is_ours(at)) {
        sim_mapping_check(at, write, where);
    }
}

/* ---- in place of the system's ---- */

typedef struct mapping {
    char *at;
    size_t bytes;
    int process;
    bool write, live;
} mapping;
enum { MAX_MAPPINGS = 8192 };
static mapping mappings[MAX_MAPPINGS];
static unsigned mapping_count;

static void note(char *at, size_t bytes, bool write) {
    if (mapping_count == MAX_MAPPINGS) sim_fail(SIM_UNSUPPORTED, "too many mappings");
    int process = sim_current->process;
    mappings[mapping_count++] = (mapping){at, bytes, process, write, true};
    mapped[process]++;
    if (!is_ours(at)) return;
    count(process, at, bytes, 1, false);
    if (write) count(process, at, bytes, 1, true);
}

static void forget(mapping *self) {
    self->live = false;
    mapped[self->process]--;
    if (!is_ours(self->at)) return;
    count(self->process, self->at, self->bytes, -1, false);
    if (self->write) count(self->process, self->at, self->bytes, -1, true);
}

/* Takes part of mappings away, as a fixed mapping does and an unmap of part of one. */
static bool cut(char *at, size_t bytes) {
    bool found = false;
    for (unsigned i = mapping_count; i-- > 0;) {
        mapping self = mappings[i];
        char *end = self.at + self.bytes;
        if (!self.live || self.process != sim_current->process || end <= at ||
            self.at >= at + bytes)
            continue;
        forget(&mappings[i]);
        if (self.at < at) note(self.at, (size_t)(at - self.at), self.write);
        if (end > at + bytes) note(at + bytes, (size_t)(end - at - bytes), self.write);
        found = true;
    }
    return found;
}

static void *refuse(int error) {
    errno = error;
    return MAP_FAILED;
}

void *sim_os_mmap(void *wanted, size_t bytes, int protection, int flags, int fd, off_t offset);
void *sim_os_mmap(void *wanted, size_t bytes, int protection, int flags, int fd, off_t offset) {
    bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE), write = protection & PROT_WRITE;
    char *at;
    sim_point(__builtin_return_address(0));
    if (sim_refuses()) return refuse(ENOMEM);
    if (fixed) (void)cut(wanted, bytes);
    if (fd < 0) {
        at = sim_memory_new(bytes, fixed ? wanted : NULL);
    } else {
        object *file = sim_object_of(sim_current->process, fd);
        at = file ? sim_object_memory(file, fixed ? wanted : NULL) : NULL;
        if (!at) return refuse(EBADF);
        if (write && sim_object_published(file)) return refuse(EPERM);
        at += offset;
    }
    note(at, bytes, write);
    return at;
}

int sim_os_munmap(void *at, size_t bytes);
int sim_os_munmap(void *at, size_t bytes) {
    sim_point(__builtin_return_address(0));
    /* One file that is mapped twice has one address here: only one of the two goes. */
    for (unsigned i = mapping_count; i-- > 0;) {
        mapping *self = &mappings[i];
        if (!self->live || self->at != at || self->process != sim_current->process ||
            (self->bytes + PAGE - 1) / PAGE != (bytes + PAGE - 1) / PAGE)
            continue;
        forget(self);
        return 0;
    }
    if (!cut(at, bytes))
        sim_fail(SIM_BUG, "unmap of %p at %p: it is not mapped", at, __builtin_return_address(0));
    return 0;
}

int sim_os_madvise(void *at, size_t bytes, int advice);
int sim_os_madvise(void *at, size_t bytes, int advice) {
    (void)at, (void)bytes, (void)advice; /* what must not be inherited would miss in a snapshot */
    return 0;
}

void sim_mappings_drop(int process) {
    for (unsigned i = 0; i < mapping_count; i++)
        if (mappings[i].live && mappings[i].process == process) forget(&mappings[i]);
}

unsigned sim_mappings_left(int process) {
    return mapped[process];
}
