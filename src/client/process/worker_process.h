/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, kills and watches a worker's process. */
#ifndef BH_CLIENT_PROCESS_WORKER_PROCESS_H
#define BH_CLIENT_PROCESS_WORKER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "client/process/spawn.h"
#include "error/error.h"

typedef struct bh__process {
    bh__spawned program;
    void *thread; /* for builds in which a worker is a thread of this process */
} bh__process;

/* Starts `path` with `socket` as descriptor 3 and `errors` as standard error. */
bh_status bh__process_start(const char *path, int socket, int errors, bh__process *out,
                            bh_error *error);
void bh__process_kill(const bh__process *process);
/* Returns true once the process has ended and can no longer write shared memory. Reaps it. */
bool bh__process_gone(const bh__process *process, bh__process_end *out_end);
void bh__process_close(bh__process *process);

/* Returns a descriptor that becomes readable when this process ends; -1: not supported here. */
int bh__process_self(void);

#endif
