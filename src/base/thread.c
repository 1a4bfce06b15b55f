/* SPDX-License-Identifier: Apache-2.0 */
/* Starting threads of our own in someone's process. */
#include "base/thread.h"

#include <signal.h>

int bh__thread_start(pthread_t *out, const pthread_attr_t *attributes, void *(*body)(void *),
                     void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(out, attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}
