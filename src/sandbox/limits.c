/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit on core dumps, and which tools are in the process. Not limited: the number of processes
 * (the limit counts all processes of a user, and calls.c refuses to start any), open files (nothing
 * can be opened, and descriptors come from the application), the address space (drivers reserve far
 * more than there is memory). The process stays "dumpable": that flag protects it from others, not
 * others from it, and without it the application cannot read /proc/PID/exe and debuggers cannot
 * attach.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "sandbox/sandbox.h"

/* 1 byte and not 0: a limit of 0 is ignored if cores are piped to a program (core(5)); with 1 the
 * kernel writes and pipes nothing. */
void bh__sandbox_limits(bool core_dumps) {
    struct rlimit limit = {1, 1};
    if (!core_dumps) setrlimit(RLIMIT_CORE, &limit);
}

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

const char *bh__sandbox_obstacle(void) {
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
    return "AddressSanitizer is built in";
#elif defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
    return "ThreadSanitizer is built in";
#else
    /* Valgrind preloads a library of its own into its clients. */
    const char *loaded = getenv("LD_PRELOAD");
    return loaded && strstr(loaded, "vgpreload") ? "it runs under Valgrind" : NULL;
#endif
}
