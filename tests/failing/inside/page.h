/* SPDX-License-Identifier: Apache-2.0 */
/* What a run and the processes under test share: which call is to fail, how many there were, and
 * what they hold. One page of memory, mapped by the run and by every process that it starts. */
#ifndef TESTS_FAILING_PAGE_H
#define TESTS_FAILING_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum failing_class {
    CALLS_ALLOCATE,   /* malloc and its kin */
    CALLS_MAP,        /* mmap, madvise */
    CALLS_DESCRIPTOR, /* all that makes a descriptor */
    CALLS_THREAD,     /* pthread_create */
    CALLS_SPAWN,      /* posix_spawn, fork, execve */
    CALLS_SOCKET,     /* sendmsg, recvmsg */
    CALLS_READ,       /* read, pread, fgets, getrandom */
    CALLS_WRITE,      /* write, pwrite, ftruncate, fwrite */
    CALLS_FILE,       /* names and what is known of them: rename, mkdir, stat */
    CALLS_CLASSES
} failing_class;

typedef enum failing_process {
    IN_APPLICATION,
    IN_WORKER,
    IN_COMPILER,
    PROCESS_KINDS
} failing_process;

enum { FAIL_ONCE, FAIL_ON }; /* number n alone, or number n and all after it */

typedef struct failing_page {
    /* Set by the run. Calls count while `armed`. */
    _Atomic bool armed;
    uint32_t process; /* IN_... */
    uint32_t calls;   /* CALLS_... */
    uint32_t mode;    /* FAIL_... */
    uint64_t n;       /* from 1 on */
    /* Set by whoever makes the calls. */
    _Atomic uint64_t count[PROCESS_KINDS][CALLS_CLASSES], failed;
    _Atomic(uint64_t) caller; /* of the first that failed: its place in its file */
    char name[32];
    /* What the application holds, as made and let go by the library. */
    _Atomic int64_t blocks, mapped;
} failing_page;

/* The environment variable that names the page for processes that are started. */
#define FAILING_PAGE "BULKHEAD_FAILING_PAGE"

/* The application's page. */
__attribute__((visibility("default"))) void failing_use(failing_page *page);

#endif
