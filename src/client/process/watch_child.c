/* SPDX-License-Identifier: Apache-2.0 */
/* Watches a child process with a thread that waits for it. For systems without pidfds: some
 * sandboxes and older versions of Valgrind. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "base/thread.h"
#include "client/core/fork.h"
#include "client/process/watch_child.h"

struct bh__child_watch {
    pthread_t thread;
    pid_t child;
    int fd;
};

static void *watch(void *argument) {
    const bh__child_watch *self = argument;
    siginfo_t info;
    while (waitid(P_PID, (id_t)self->child, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    (void)bh__fd_poke(self->fd);
    return NULL;
}

bh__child_watch *bh__child_watch_start(pid_t child, int *out_fd) {
    bh__child_watch *self = calloc(1, sizeof *self);
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

void bh__child_watch_end(bh__child_watch *self) {
    struct pollfd poll_fd = {.fd = self->fd, .events = POLLIN};
    if (!bh__fd_is_ours(self->fd) || poll(&poll_fd, 1, 0) != 1) {
        /* The child still runs, or the program has closed the descriptor. The thread may still use
         * *self, so it is not freed. */
        pthread_detach(self->thread);
        return;
    }
    pthread_join(self->thread, NULL);
    bh__fd_close(self->fd);
    free(self);
}
