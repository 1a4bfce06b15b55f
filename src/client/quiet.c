/* SPDX-License-Identifier: Apache-2.0 */
/* A file that grows past a limit of the process raises a signal that ends it. A library does without:
 * the write fails, and that is all. */
#include <pthread.h>
#include <time.h>

#include "client/compile.h"

void bh__quiet_begin(bh__quiet *quiet) {
    sigset_t pending;
    sigemptyset(&quiet->signal);
    sigaddset(&quiet->signal, SIGXFSZ);
    sigpending(&pending);
    quiet->was_pending = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &quiet->signal, &quiet->before);
}

void bh__quiet_end(const bh__quiet *quiet) {
    sigset_t pending;
    sigpending(&pending);
    if (!quiet->was_pending && sigismember(&pending, SIGXFSZ) == 1) {
        struct timespec now = {0, 0};
        sigtimedwait(&quiet->signal, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}
