/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: a stack each, and a copy of the program's thread-local variables, swapped at each
 * switch. */
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap.h"
#include "sim.h"

#define STACKS                                                                                     \
    ((char *)0x530000000000) /* the same in every run: addresses may decide something  
                                         * \ */
enum { STACK_BYTES = SIM_STACK_BYTES, FRAMES = 16 };

fiber *sim_fibers[MAX_FIBERS];
int sim_fiber_count;
fiber *sim_current;

static void *tls_memory;
static size_t tls_bytes;

void sim_switch_stacks(void **from, void *to);
__asm__(".text\n"
        ".globl sim_switch_stacks\n"
        "sim_switch_stacks:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\n"
        "ret\n");

static void fiber_main(void) {
    fiber *self = sim_current;
    self->result = self->body(self->argument);
    sim_stores_flush();
    sim_fiber_end(self);
    sim_point(__builtin_return_address(0));
    abort(); /* a dead fiber is never chosen */
}

void sim_fiber_end(fiber *self) {
    if (self->dead) return;
    self->dead = true;
    if (self->kept) sim_object_release(self->kept);
    self->kept = NULL;
    sim_wake(WAIT_JOIN, self, MAX_FIBERS);
    sim_changed = true;
}

/* The end of a stack as sim_switch_stacks leaves it: six registers and where to go on. */
static void *first_frame(char *top) {
    uint64_t *at = (uint64_t *)(void *)top;
    *--at = 0;
    *--at = 0;
    *--at = 0; /* a function is entered at 8 modulo 16 */
    *--at = (uint64_t)(uintptr_t)fiber_main;
    for (int i = 0; i < 6; i++) *--at = 0;
    return at;
}

fiber *sim_spawn(int process, void *(*body)(void *), void *argument) {
    if (sim_fiber_count == MAX_FIBERS)
        sim_fail(SIM_UNSUPPORTED, "more than %d threads in one run", MAX_FIBERS);
    fiber *self = calloc(1, sizeof *self);
    self->id = sim_fiber_count;
    self->process = process;
    self->body = body;
    self->argument = argument;
    self->deadline = NEVER;
    self->stack =
        mmap(STACKS + (size_t)self->id * 2 * STACK_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (self->stack == MAP_FAILED) sim_fail(SIM_UNSUPPORTED, "no memory for a stack");
    self->tls = calloc(1, tls_bytes + 1);
    self->stack_pointer = first_frame((char *)self->stack + STACK_BYTES);
    self->priority = ((uint64_t)1 << 38) + sim_random() % ((uint64_t)1 << 40);
    snprintf(self->name, sizeof self->name, "thread %d", self->id);
    sim_fibers[sim_fiber_count++] = self;
    sim_changed = true;
    return self;
}

void sim_switch_to(fiber *next) {
    fiber *last = sim_current;
    if (next == last) return;
    if (tls_bytes) {
        memcpy(last->tls, tls_memory, tls_bytes);
        memcpy(tls_memory, next->tls, tls_bytes);
    }
    last->saved_errno = errno;
    sim_current = next;
    sim_switch_stacks(&last->stack_pointer, next->stack_pointer);
    errno = sim_current->saved_errno;
}

static int find_tls(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
        tls_memory = info->dlpi_tls_data;
        tls_bytes = info->dlpi_phdr[i].p_memsz;
    }
    return 1; /* the first is the program itself */
}

void sim_fibers_start(void *(*body)(void *)) {
    static fiber root = {.dead = true};
    dl_iterate_phdr(find_tls, NULL);
    root.tls = calloc(1, tls_bytes + 1);
    fiber *first = sim_spawn(0, body, NULL);
    memcpy(first->tls, tls_memory, tls_bytes);
    sim_current = &root;
    sim_switch_to(first);
}

/* ---- for people ---- */

/* With addr2line's help where it is installed. */
static void print_frames(const fiber *self) {
    const uint64_t *frame = self == sim_current
                                ? __builtin_frame_address(0)
                                : (const uint64_t *)((const uint64_t *)self->stack_pointer)[5];
    const char *low = self->stack, *high = low + STACK_BYTES;
    char command[1024], exe[512];
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    size_t used = (size_t)snprintf(command, sizeof command, "addr2line -fsp -e '%.*s'",
                                   length < 0 ? 0 : (int)length, exe);
    for (int i = 0; i < FRAMES && (const char *)frame > low && (const char *)frame < high - 16;
         i++) {
        used += (size_t)snprintf(command + used, sizeof command - used, " 0x%llx",
                                 (unsigned long long)frame[1] - 1);
        frame = (const uint64_t *)(uintptr_t)frame[0];
    }
    snprintf(command + used, sizeof command - used, " 1>&2");
    fflush(stderr);
    if (system(command)) fprintf(stderr, "%s\n", command);
}

void sim_backtraces(void) {
    static const char *const kinds[] = {"runnable", "futex", "mutex",    "condition",
                                        "join",     "poll",  "sleeping", "message"};
    for (int i = 0; i < sim_fiber_count; i++) {
        const fiber *self = sim_fibers[i];
        if (self->dead) continue;
        fprintf(stderr, "process %d, %s: %s%s, %llu steps\n", self->process, self->name,
                self->stopped ? "stopped, " : "", kinds[self->blocked ? self->kind : 0],
                (unsigned long long)self->steps);
        print_frames(self);
    }
}

void sim_fiber_tls(const fiber *self, void (*each)(const void *from, const void *to)) {
    const char *memory = self == sim_current ? tls_memory : self->tls;
    each(memory, memory + tls_bytes);
}
