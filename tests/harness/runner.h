/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the test runner share. */
#ifndef BULKHEAD_TEST_RUNNER_H
#define BULKHEAD_TEST_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Exit statuses of a test, and of the process that watches over it. Broken: it did not come to an
 * end by itself, left processes behind, or a sanitizer reported something. */
enum { TEST_PASSED = 0, TEST_FAILED = 1, TEST_BROKEN = 2, TEST_SKIPPED = 77 };

struct job {
    char *name;       /* "unit-checked/adds_numbers" */
    char *argv[4];    /* what to execute */
    unsigned seconds; /* time limit */
    size_t number;    /* in the order in which tests were found */
    bool serial;      /* to be run with no other test beside it */
    char *directory;  /* where its files are: output, why, tmp/ and san.* */
    pid_t watcher;    /* 0 when it is not running */
    uint64_t started; /* ns */
    uint64_t ended;   /* ns */
    uint64_t used_ms; /* processor time of all of its processes */
    int result;       /* TEST_PASSED ... */
    bool unreliable;  /* it failed, and then passed every time it was run again */
    char why[512];    /* it failed or was skipped */
};

/* process.c */

uint64_t now_ns(void);

/* Starts `job` under a watcher process, which ends with one of the statuses above
 * when the test and every process that came from it are gone. */
void process_start(struct job *job);

/* Called when the watcher has ended with `status`: fills in result, why and ended. */
void process_finish(struct job *job, int status);

/* Starts a program and returns what it writes to standard output, for free(); NULL if it fails. */
char *process_read(char *const argv[]);

/* Settles in a child what every test gets: signals, limits, memory layout, standard input. */
void process_prepare_child(void);

/* golden.c */

/* Runs one .ptx or .test file in this process. Returns an exit status. */
int golden_run(const char *path);

/* runner.c */

__attribute__((format(printf, 1, 2))) char *format_text(const char *format, ...);
_Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...);

/* How much longer tests may take here than in a plain build on the CPU device: a GPU's workers take
 * half a second to start, and wait for each other when there are many. */
unsigned test_scale(void);

/* A whole file with a NUL after it, for free(); NULL if there is none. */
char *read_file(const char *path);

#endif
