/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and watches programs: workers and compilers. */
#ifndef BH_CLIENT_PROCESS_SPAWN_H
#define BH_CLIENT_PROCESS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct bh__spawned {
    pid_t pid;                           /* also the id of its process group */
    int end_fd;                          /* its pidfd: readable once the process has ended */
    struct bh__child_watch *child_watch; /* Owned. Without pidfds: provides end_fd. */
} bh__spawned;

typedef struct bh__process_end {
    bool known;    /* false: another part of the program reaped it, or a tracer holds it */
    int exit_code; /* -1: ended by a signal */
    int signal;
} bh__process_end;

/* A descriptor of this process and its number in the new program. */
typedef struct bh__given_fd {
    int fd, number;
} bh__given_fd;

/* The step of bh__spawn that failed. DONE: none. */
typedef enum bh__spawn_step { BH__SPAWN_DONE, BH__SPAWN_START, BH__SPAWN_WATCH } bh__spawn_step;

/* Starts `path` in its own process group with the given descriptors (numbers 2 to 9) and
 * environment variables (bh__environment_for). Standard input and output are /dev/null. Returns the
 * step that failed and stores its errno. */
bh__spawn_step bh__spawn(const char *path, const bh__given_fd *given, size_t count,
                         const char *const *variables, bh__spawned *out, int *out_errno);
void bh__spawned_kill(const bh__spawned *process);
/* Kills its process group. Only valid before the process is reaped. */
void bh__spawned_kill_group(const bh__spawned *process);
/* Returns true once the process has ended. Reaps it, unless a tracer still holds it. */
bool bh__spawned_gone(const bh__spawned *process, bh__process_end *out_end);
/* A process that is not reaped yet is reaped by a thread of its own as soon as that is possible. */
void bh__spawned_close(bh__spawned *process);

/* Returns a descriptor that becomes readable when this process ends; -1: not supported here. */
int bh__spawn_self(void);

#endif
