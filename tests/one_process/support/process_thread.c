/* SPDX-License-Identifier: Apache-2.0 */
/* Workers as threads of this process, in place of src/client/process/worker_process.c: a race
 * detector then sees both sides of the protocol. A "process" here ends when all its threads have; a
 * kill makes them stop wherever they next look. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/process/worker_process.h"
#include "cpu/cpu.h"
#include "process_thread.h"
#include "worker/worker.h"

enum { MAX = 4096, FIRST_PID = 0x40000000 }; /* larger than any real process's */

typedef struct worker_thread {
    pthread_t thread;
    bh__worker_instance *worker;
    int ended;
    bool killed;
    bool joined;
} worker_thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static worker_thread *threads[MAX];
static int thread_count;

static void *thread_main(void *argument) {
    worker_thread *self = argument;
    bh__worker_run(self->worker);
    uint64_t one = 1;
    ssize_t ignored = write(self->ended, &one, sizeof one);
    (void)ignored;
    return NULL;
}

bh_status bh__process_start(const char *path, int socket, int errors, bh__process *out,
                            bh_error *error) {
    (void)path;
    (void)errors;
    worker_thread *self = calloc(1, sizeof *self);
    int own = fcntl(socket, F_DUPFD_CLOEXEC, 10);
    self->worker = bh__worker_create(own, &bh__cpu_device);
    self->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_lock(&lock);
    int index = thread_count < MAX ? thread_count++ : -1;
    if (index >= 0) threads[index] = self;
    pthread_mutex_unlock(&lock);
    if (index < 0 || pthread_create(&self->thread, NULL, thread_main, self)) {
        return bh__fail(error, BH_E_NO_DEVICE, "start fewer workers in this test",
                        "no room for worker %d", index);
    }
    *out = (bh__process){{.pid = FIRST_PID + index, .end_fd = self->ended}, .thread = self};
    return BH_OK;
}

static void end(worker_thread *self) {
    pthread_mutex_lock(&lock);
    bool first = !self->killed && !self->joined;
    self->killed = true;
    if (first) bh__worker_end(self->worker);
    pthread_mutex_unlock(&lock);
}

void bh__process_kill(const bh__process *process) {
    if (process->thread) end(process->thread);
}

void kill_worker_thread(int pid) {
    pthread_mutex_lock(&lock);
    int index = pid - FIRST_PID;
    worker_thread *self = index >= 0 && index < thread_count ? threads[index] : NULL;
    pthread_mutex_unlock(&lock);
    if (self) end(self);
}

bool bh__process_gone(const bh__process *process, bh__process_end *out_end) {
    worker_thread *self = process->thread;
    memset(out_end, 0, sizeof *out_end);
    struct pollfd look = {.fd = self->ended, .events = POLLIN};
    if (poll(&look, 1, 0) <= 0) return false;
    pthread_mutex_lock(&lock);
    bool join = !self->joined;
    self->joined = true;
    out_end->known = true;
    out_end->signal = self->killed ? SIGKILL : 0;
    pthread_mutex_unlock(&lock);
    if (join) {
        pthread_join(self->thread, NULL);
        bh__worker_destroy(self->worker);
    }
    return true;
}

void bh__process_close(bh__process *process) {
    if (process->program.end_fd >= 0) close(process->program.end_fd);
    process->program.end_fd = -1;
}

int bh__process_self(void) {
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    return fd < 0 ? -errno : fd;
}
