/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the library's threads in the application's process: they block every signal but SIGSYS
 * from the first instruction, so that the application's handlers do not run on them. */
#ifndef BH_BASE_THREAD_H
#define BH_BASE_THREAD_H

#include <pthread.h>

/* Like pthread_create: returns 0 or an errno value. `attributes` may be NULL. */
int bh__thread_start(pthread_t *out, const pthread_attr_t *attributes, void *(*body)(void *),
                     void *argument);

#endif
