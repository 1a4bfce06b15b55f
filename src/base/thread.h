/* SPDX-License-Identifier: Apache-2.0 */
/* Starting threads of our own in someone's process: they block every signal from the first
 * instruction on, so that the program's handlers never run on them. */
#ifndef BH_BASE_THREAD_H
#define BH_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create: 0, or an errno value. `attributes` may be NULL. */
int bh__thread_start(pthread_t *out, const pthread_attr_t *attributes, void *(*body)(void *),
                     void *argument);

#endif
