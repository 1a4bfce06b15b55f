/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's process: starting it, ending it, knowing that it is gone. */
#ifndef BH_CLIENT_PROCESS_H
#define BH_CLIENT_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "client/spawn.h"

typedef struct bh__process {
    bh__spawned program;
    void *thread; /* builds in which a worker is a thread of this process */
} bh__process;

/* Starts `path` with `socket` as descriptor 3 and `errors` as standard error. */
bh_status bh__process_start(const char *path, int socket, int errors, bh__process *out,
                            bh_error *error);
void bh__process_kill(const bh__process *process);
/* True once it is gone for good: nothing of it can write any more. Reaps it. */
bool bh__process_gone(const bh__process *process, bh__process_end *out_end);
void bh__process_close(bh__process *process);

/* A descriptor that becomes readable when this process ends; -1: there is no such thing here. */
int bh__process_self(void);

#endif
