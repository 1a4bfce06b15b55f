/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox that workers and the compiler put themselves into: which system calls they may make
 * (calls.c, rules.c), their limits (limits.c), which files they may access (files.h). Includes no
 * other folder.
 */
#ifndef BH_SANDBOX_SANDBOX_H
#define BH_SANDBOX_SANDBOX_H

#include <stdbool.h>

typedef enum bh__sandbox_profile {
    /* A list of allowed calls: memory, threads, open descriptors. */
    BH__SANDBOX_COMPUTE = 1,
    /* A list of forbidden calls, for a process with a third-party library in it: no programs, no
     * sockets, no other processes, no privileges. Files are not restricted. */
    BH__SANDBOX_DRIVER,
    /* The same with Unix sockets. */
    BH__SANDBOX_DRIVER_SOCKETS,
    /* Like DRIVER, for a process that starts a compiler, and for the compiler: programs may be
     * started, but not with a namespace, session or process group of their own. */
    BH__SANDBOX_COMPILER,
    /* Added to COMPILER in the child that becomes the compiler: no signals to other processes. A
     * filter knows its process by its pid, and a child has another. The compiler's own children
     * can signal nobody, themselves included: abort() ends them by an illegal instruction. */
    BH__SANDBOX_OWN_SIGNALS
} bh__sandbox_profile;

/*
 * Applies the profile to every thread of this process. This cannot be undone. A call that our code
 * never makes raises SIGSYS; others fail with an error. Sets no_new_privs. Returns 0 or -errno;
 * -ENOSYS, -EINVAL and the like: the kernel cannot filter system calls. On failure nothing is
 * restricted.
 */
int bh__sandbox_calls(bh__sandbox_profile profile);

/* The name of a call that raises SIGSYS; NULL: it is none of those. Safe in a signal handler. */
const char *bh__sandbox_call_name(int number);

/* Turns core dumps off unless `core_dumps`. */
void bh__sandbox_limits(bool core_dumps);

/* A tool in this process that makes more calls than a list of allowed ones has: "AddressSanitizer
 * is built in"; NULL: none. */
const char *bh__sandbox_obstacle(void);

#endif
