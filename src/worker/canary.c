/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canary: a thread that holds one end of a pipe, so that the application sees at once that the
 * process is dying. A dying process first frees its memory and only then closes its descriptors;
 * with a GPU's memory mapped that takes 50 ms. But a thread may have a descriptor table of its own,
 * which is closed when the thread ends. This thread's table holds the pipe and nothing else.
 */
#include "worker/canary.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"

enum { STACK_BYTES = 64 * 1024, STARTING = 0, READY = 1, FAILED = 2 };

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

typedef struct canary {
    int pipe;
    _Atomic uint32_t state; /* private futex */
} canary;

static bool close_all_but(int fd) {
    return (fd == 0 || syscall(SYS_close_range, 0, (unsigned)fd - 1, 0) == 0) &&
           syscall(SYS_close_range, (unsigned)fd + 1, ~0u, 0) == 0;
}

static void *canary_main(void *argument) {
    canary *self = argument;
    pthread_setname_np(pthread_self(), "bh-canary");
    bool alone = unshare(CLONE_FILES) == 0 && close_all_but(self->pipe);
    atomic_store(&self->state, alone ? READY : FAILED);
    bh__futex_wake(&self->state, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
    while (alone) pause();
    return NULL;
}

static bool start(canary *self) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = bh__thread_start(&thread, &attributes, canary_main, self);
    pthread_attr_destroy(&attributes);
    if (failed) return false;
    while (atomic_load(&self->state) == STARTING)
        bh__futex_wait(&self->state, STARTING, BH__NEVER, BH__FUTEX_PRIVATE);
    return atomic_load(&self->state) == READY;
}

int bh__canary_start(void) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    canary self = {.pipe = ends[1]};
    bool ready = start(&self);
    close(ends[1]);
    if (ready) return ends[0];
    close(ends[0]);
    return -1;
}
