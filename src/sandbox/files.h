/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a process may access, enforced by the kernel (Landlock). */
#ifndef BH_SANDBOX_FILES_H
#define BH_SANDBOX_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* A file, or a folder with everything below it. Symbolic links are followed once, now. */
typedef struct bh__sandbox_path {
    const char *path;
    bool writable; /* may be written, created, removed and used with ioctl, but not executed */
} bh__sandbox_path;

/*
 * From here on the calling thread, and every thread and process that it starts, can open, execute
 * and change only these paths. This cannot be undone. Open descriptors stay usable, and so do
 * memfds. Paths that do not exist, or that this process cannot access, are skipped. Also refused,
 * if the kernel supports it: TCP (ABI 4), abstract Unix sockets and signals to processes outside
 * (ABI 6). Checking whether a file exists is not refused. Sets no_new_privs. Call it before threads
 * are started. Returns 0 or -errno: -ENOSYS and -EOPNOTSUPP mean that the kernel lacks Landlock, or
 * has it turned off. On failure nothing is restricted.
 */
int bh__sandbox_files(const bh__sandbox_path *paths, size_t count);

/* The version of Landlock that the kernel offers, 1 or more; or -errno as above. */
int bh__sandbox_files_abi(void);

#endif
