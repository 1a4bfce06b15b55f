/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the library's threads in the application's process. */
#include "base/thread.h"

#include <signal.h>

int bh__thread_start(pthread_t *out, const pthread_attr_t *attributes, void *(*body)(void *),
                     void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    /* The thread itself raises SIGSYS (seccomp), and a blocked one is fatal: the application's
     * handler must see it. */
    sigdelset(&all, SIGSYS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(out, attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}
