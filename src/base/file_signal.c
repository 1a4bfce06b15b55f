/* SPDX-License-Identifier: Apache-2.0 */
/* A file that grows past the process's limit raises SIGXFSZ, which kills the process. The library
 * blocks it, so that the write only fails. */
#include "base/file_signal.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

void bh__file_signal_block(bh__file_signal *signals) {
    sigset_t pending;
    sigemptyset(&signals->signal);
    sigaddset(&signals->signal, SIGXFSZ);
    sigpending(&pending);
    signals->was_pending = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signals->signal, &signals->before);
}

void bh__file_signal_restore(const bh__file_signal *signals) {
    sigset_t pending;
    sigpending(&pending);
    if (!signals->was_pending && sigismember(&pending, SIGXFSZ) == 1) {
        struct timespec now = {0, 0};
        sigtimedwait(&signals->signal, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
}

int bh__file_grow(int fd, uint64_t bytes) {
    bh__file_signal signals;
    bh__file_signal_block(&signals);
    int number = ftruncate(fd, (off_t)bytes) < 0 ? errno : 0;
    bh__file_signal_restore(&signals);
    return number;
}
