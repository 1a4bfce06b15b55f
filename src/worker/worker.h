/* SPDX-License-Identifier: Apache-2.0 */
/* Running a worker: as a process of its own, or, in test builds, as threads of the application. */
#ifndef BH_WORKER_WORKER_H
#define BH_WORKER_WORKER_H

#include "worker/device.h"

/* The descriptor at which the supervisor hands a worker process its end of the socket. */
enum { BH__WORKER_SOCKET = 3 };

/* The exit codes of a worker. */
enum { BH__EXIT_DONE = 0, BH__EXIT_FAILED = 1, BH__EXIT_USAGE = 2 };

typedef struct bh__worker_instance bh__worker_instance;

/* Owns `socket` from now on. NULL, with errno set: no memory or no descriptors. */
bh__worker_instance *bh__worker_create(int socket, const bh__device_ops *ops);

/* Boots and serves until the application is gone, an error cannot be handled or the worker is
 * killed. When it returns, its threads have ended and its memory is unmapped. Returns the exit
 * code. */
int bh__worker_run(bh__worker_instance *worker);

/* Does what SIGKILL does to a process: the worker's threads stop as soon as they can, publish
 * nothing more, and bh__worker_run returns. Any thread, at any time between create and destroy. */
void bh__worker_end(bh__worker_instance *worker);

/* After bh__worker_run has returned, or instead of it. */
void bh__worker_destroy(bh__worker_instance *worker);

/* The main function of a worker program. Does not return: teardown must not delay its end. */
_Noreturn void bh__worker_main(int argc, char **argv, const bh__device_ops *ops);

#endif
