/* SPDX-License-Identifier: Apache-2.0 */
/* Watching a child process where the system has no pidfds, as in sandboxes and under versions
 * of Valgrind that do not know the call: a thread that waits for it. */
#include "client/sentry.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "base/thread.h"
#include "client/internal.h"

struct bh__sentry {
    pthread_t thread;
    pid_t child;
    int fd;
};

static void *watch(void *argument) {
    const bh__sentry *self = argument;
    siginfo_t info;
    while (waitid(P_PID, (id_t)self->child, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    (void)bh__fd_poke(self->fd);
    return NULL;
}

bh__sentry *bh__sentry_start(pid_t child, int *out_fd) {
    bh__sentry *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->child = child;
    self->fd = bh__fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    int failed = self->fd < 0 ? errno : bh__thread_start(&self->thread, NULL, watch, self);
    if (failed) {
        bh__fd_close(self->fd);
        free(self);
        errno = failed;
        return NULL;
    }
    *out_fd = self->fd;
    return self;
}

void bh__sentry_end(bh__sentry *self) {
    struct pollfd look = {.fd = self->fd, .events = POLLIN};
    if (!bh__fd_is_ours(self->fd) || poll(&look, 1, 0) != 1) {
        /* A child that nothing ends, or a descriptor that the program has closed: the thread keeps
         * what it needs. */
        pthread_detach(self->thread);
        return;
    }
    pthread_join(self->thread, NULL);
    bh__fd_close(self->fd);
    free(self);
}
