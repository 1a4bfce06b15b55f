/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap of simulated processes. Nothing is used twice, so that a use after free is always seen;
 * a byte for each 16 says whose it is. Blocks lie between heads, which belong to nobody.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "heap.h"
#include "sim.h"

enum { GRAIN = 16, FREED = 0xff, HEAD = 0xfe };
#define HERE __builtin_return_address(0)

typedef struct head {
    struct head *next; /* of the same process, freed ones too */
    size_t bytes;
    const void *where; /* it was allocated */
    int process;
    bool freed, reached;
} head;
_Static_assert(sizeof(head) % GRAIN == 0, "blocks are aligned to 16");

static char *top = HEAP_BASE;
static uint8_t *owner; /* of each 16 bytes: process + 1 */
static head *blocks[MAX_PROCESSES];

void sim_heap_begin(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void *heap = mmap(HEAP_BASE, HEAP_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    owner = mmap(NULL, HEAP_BYTES / GRAIN, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (heap != (void *)HEAP_BASE || owner == MAP_FAILED)
        sim_fail(SIM_UNSUPPORTED, "no address space for the heap");
}

static uint8_t *owner_of(const void *at) {
    return &owner[(size_t)((const char *)at - HEAP_BASE) / GRAIN];
}

const char *sim_heap_fault(const void *at, int process) {
    uint8_t is = *owner_of(at);
    if (is == process + 1) return NULL;
    if (is == FREED) return "it was freed";
    if (is == HEAD || is == 0) return "it is outside of every block";
    return "it is another process's";
}

static void *take(size_t bytes, size_t align, const void *where) {
    int process = sim_current ? sim_current->process : 0;
    char *block = top + sizeof(head);
    block += (align - (uintptr_t)block % align) % align;
    size_t whole = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    if ((size_t)(block + whole - HEAP_BASE) > HEAP_BYTES)
        sim_fail(SIM_UNSUPPORTED, "the heap is used up");
    head *self = (head *)(void *)(block - sizeof(head));
    *self = (head){.next = blocks[process], .bytes = bytes, .where = where, .process = process};
    blocks[process] = self;
    memset(owner_of(self), HEAD, sizeof *self / GRAIN);
    memset(owner_of(block), process + 1, whole / GRAIN);
    top = block + whole + (whole ? 0 : GRAIN);
    return block;
}

static head *head_of(void *block, const void *where) {
    const char *at = block;
    head *self = (head *)(void *)((char *)block - sizeof(head));
    if (at < HEAP_BASE || at >= top || *owner_of(self) != HEAD)
        sim_fail(SIM_BUG, "free of %p at %p: it is no block", block, where);
    if (self->freed) sim_fail(SIM_BUG, "free of %p at %p: it was freed before", block, where);
    int process = sim_current ? sim_current->process : 0;
    if (self->process != process)
        sim_fail(SIM_BUG, "free of %p at %p: it is another process's", block, where);
    return self;
}

static void release(head *self) {
    size_t whole = (self->bytes + GRAIN - 1) / GRAIN;
    self->freed = true;
    memset(owner_of(self + 1), FREED, whole);
}

void sim_heap_forget(int process) {
    blocks[process] = NULL;
}

/* ---- in place of the C library's ---- */

static bool refused(void) {
    if (!sim_refuses()) return false;
    errno = ENOMEM;
    return true;
}

void *sim_os_malloc(size_t bytes) {
    return refused() ? NULL : take(bytes, GRAIN, HERE);
}
void *sim_os_calloc(size_t count, size_t bytes) {
    size_t whole;
    if (__builtin_mul_overflow(count, bytes, &whole)) return NULL;
    return refused() ? NULL : take(whole, GRAIN, HERE); /* fresh memory is zero */
}
void *sim_os_aligned_alloc(size_t align, size_t bytes) {
    return refused() ? NULL : take(bytes, align < GRAIN ? GRAIN : align, HERE);
}
void sim_os_free(void *block) {
    if (block) release(head_of(block, HERE));
}
void *sim_os_realloc(void *block, size_t bytes) {
    if (refused()) return NULL;
    void *larger = take(bytes, GRAIN, HERE);
    if (!block) return larger;
    head *self = head_of(block, HERE);
    memcpy(larger, block, self->bytes < bytes ? self->bytes : bytes);
    release(self);
    return larger;
}
char *sim_os_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    return refused() ? NULL : memcpy(take(bytes, GRAIN, HERE), text, bytes);
}
char *sim_os_strndup(const char *text, size_t most) {
    size_t bytes = strnlen(text, most);
    char *copy = refused() ? NULL : take(bytes + 1, GRAIN, HERE);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

/* ---- what nothing points to any more ---- */

static head *pending_scan[1 << 16];
static size_t pending_count;

/* Anything that looks like a pointer into a block of the application keeps it. */
static void reach(const void *from, const void *to) {
    for (const char *at = (const char *)(((uintptr_t)from + 7) & ~(uintptr_t)7);
         at + 8 <= (const char *)to; at += 8) {
        char *seen;
        memcpy(&seen, at, sizeof seen);
        if (seen < HEAP_BASE || seen >= top || *owner_of(seen) != 1) continue;
        uint8_t *grain = owner_of(seen);
        while (*grain == 1) grain--;
        head *self = (head *)(void *)(HEAP_BASE + (size_t)(grain - owner + 1) * GRAIN) - 1;
        if (self->reached || self->freed) continue;
        self->reached = true;
        if (pending_count < sizeof pending_scan / sizeof *pending_scan)
            pending_scan[pending_count++] = self;
    }
}

extern char __data_start, _end; /* of the program's own variables */

size_t sim_heap_leaked(const void **out_where, size_t *out_count) {
    reach(&__data_start, &_end);
    for (int i = 0; i < sim_fiber_count; i++) {
        const fiber *self = sim_fibers[i];
        if (self->dead || self->process != 0) continue;
        const char *stack = self == sim_current ? __builtin_frame_address(0) : self->stack_pointer;
        reach(stack, (const char *)self->stack + SIM_STACK_BYTES);
        sim_fiber_tls(self, reach);
        reach(self->specific, self->specific + MAX_KEYS);
    }
    while (pending_count) {
        head *self = pending_scan[--pending_count];
        reach(self + 1, (char *)(self + 1) + self->bytes);
    }
    size_t bytes = 0;
    *out_count = 0;
    for (head *self = blocks[0]; self; self = self->next) {
        if (self->freed || self->reached) continue;
        bytes += self->bytes;
        *out_where = self->where;
        ++*out_count;
    }
    return bytes;
}
