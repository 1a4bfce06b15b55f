/* SPDX-License-Identifier: Apache-2.0 */
/* Programs started with exec and watched: workers and compilers. */
#ifndef BH_CLIENT_SPAWN_H
#define BH_CLIENT_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct bh__spawned {
    pid_t pid;                 /* and the number of its process group */
    int end_fd;                /* readable once the process is gone: its pidfd */
    struct bh__sentry *sentry; /* Owned. Where there are no pidfds: end_fd is from here */
} bh__spawned;

typedef struct bh__process_end {
    bool known;    /* false: somebody else reaped it */
    int exit_code; /* -1: ended by a signal */
    int signal;
} bh__process_end;

/* A descriptor of ours and the number it has in the program. */
typedef struct bh__given_fd {
    int fd, number;
} bh__given_fd;

typedef enum bh__spawn_step { BH__SPAWN_DONE, BH__SPAWN_START, BH__SPAWN_WATCH } bh__spawn_step;

/* Starts `path` in a process group of its own with these descriptors (numbers 2 to 9), standard
 * input and output being /dev/null. Says which step failed, with the errno. */
bh__spawn_step bh__spawn(const char *path, const bh__given_fd *given, size_t count,
                         bh__spawned *out, int *out_errno);
void bh__spawned_kill(const bh__spawned *process);
/* Kills what else is in its process group. Only for a process that this library has not reaped. */
void bh__spawned_kill_group(const bh__spawned *process);
/* True once it is gone for good. Reaps it. */
bool bh__spawned_gone(const bh__spawned *process, bh__process_end *out_end);
void bh__spawned_close(bh__spawned *process);

/* A descriptor that becomes readable when this process ends; -1: there is no such thing here. */
int bh__spawn_self(void);

#endif
