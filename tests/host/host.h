/* SPDX-License-Identifier: Apache-2.0 */
/* Host programs as child processes: each runs a function with a device of its own and reports its
 * workers. */
#ifndef TESTS_HOST_HOST_H
#define TESTS_HOST_HOST_H

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../support/support.h"

typedef struct host_report {
    pid_t worker, standby;
    int memory_count;
    struct {
        dev_t device;
        ino_t inode;
    } memory[64]; /* anonymous memory files the host had open */
} host_report;

typedef struct host {
    pid_t pid;
    int pipe; /* what the host writes comes out here; it ends when the host and its children do */
    host_report report;
} host;

/* In the host: tells the test about its workers and memory. */
void host_tell(int pipe, bh_device device);

/* Starts `body` in a child process and, if it tells, waits for what it has to say. */
host host_start(int (*body)(int pipe), bool tells);

/* How the host ended: its exit code, or 128 + the signal. Ends the test if it takes too long. */
int host_end(const host *h);

/* No worker of it is left, and nobody holds its memory. */
void host_check_gone(const host *h);

#endif
