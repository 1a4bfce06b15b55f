/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * The calls that can be made to fail. The linker's --wrap options are read from here too: a name
 * stands on the first line of its entry.
 *
 *   CALL(class, result, what it returns when it fails, errno, name, (parameters), (arguments))
 *
 * NUMBER is for those that return the error's number. Calls that make or release what must be given
 * back, and those with open argument lists, stand in wrap.c; WRAPPED names them.
 *
 * Not here, since they cannot fail on what they are given: close, munmap, fstat, clocks, masks of
 * signals.
 */
#ifndef WRAPPED
#define WRAPPED(name)
#endif

WRAPPED(write)
WRAPPED(malloc)
WRAPPED(calloc)
WRAPPED(realloc)
WRAPPED(aligned_alloc)
WRAPPED(strdup)
WRAPPED(strndup)
WRAPPED(realpath)
WRAPPED(free)
WRAPPED(scandir)
WRAPPED(open_memstream)
WRAPPED(fopen)
WRAPPED(fdopen)
WRAPPED(fclose)
WRAPPED(fdopendir)
WRAPPED(closedir)
WRAPPED(mmap)
WRAPPED(munmap)
WRAPPED(open)
WRAPPED(openat)
WRAPPED(fcntl)
WRAPPED(syscall)
WRAPPED(ioctl)
WRAPPED(fprintf)

CALL(MAP, int, -1, ENOMEM, madvise, (void *a, size_t b, int c), (a, b, c))

CALL(DESCRIPTOR, int, -1, EMFILE, memfd_create, (const char *a, unsigned b), (a, b))
CALL(DESCRIPTOR, int, -1, EMFILE, eventfd, (unsigned a, int b), (a, b))
CALL(DESCRIPTOR, int, -1, EMFILE, pipe2, (int a[2], int b), (a, b))
CALL(DESCRIPTOR, int, -1, EMFILE, socketpair, (int a, int b, int c, int d[2]), (a, b, c, d))
CALL(DESCRIPTOR, int, -1, EMFILE, dup2, (int a, int b), (a, b))

NUMBER(THREAD, EAGAIN, pthread_create,
       (pthread_t *a, const pthread_attr_t *b, void *(*c)(void *), void *d), (a, b, c, d))

NUMBER(SPAWN, EAGAIN, posix_spawn,
       (pid_t *a, const char *b, const posix_spawn_file_actions_t *c, const posix_spawnattr_t *d,
       char *const e[], char *const f[]), (a, b, c, d, e, f))
NUMBER(SPAWN, ENOMEM, posix_spawn_file_actions_init, (posix_spawn_file_actions_t *a), (a))
NUMBER(SPAWN, ENOMEM, posix_spawn_file_actions_addopen,
       (posix_spawn_file_actions_t *a, int b, const char *c, int d, mode_t e), (a, b, c, d, e))
NUMBER(SPAWN, ENOMEM, posix_spawn_file_actions_adddup2,
       (posix_spawn_file_actions_t *a, int b, int c), (a, b, c))
NUMBER(SPAWN, ENOMEM, posix_spawnattr_init, (posix_spawnattr_t *a), (a))
CALL(SPAWN, pid_t, -1, EAGAIN, fork, (void), ())
CALL(SPAWN, int, -1, ENOMEM, execve, (const char *a, char *const b[], char *const c[]), (a, b, c))

CALL(SOCKET, ssize_t, -1, ENOBUFS, sendmsg, (int a, const struct msghdr *b, int c), (a, b, c))
CALL(SOCKET, ssize_t, -1, ENOMEM, recvmsg, (int a, struct msghdr *b, int c), (a, b, c))

CALL(READ, ssize_t, -1, EIO, read, (int a, void *b, size_t c), (a, b, c))
CALL(READ, ssize_t, -1, EIO, pread, (int a, void *b, size_t c, off_t d), (a, b, c, d))
CALL(READ, char *, NULL, EIO, fgets, (char *a, int b, FILE *c), (a, b, c))
CALL(READ, ssize_t, -1, ENOSYS, getrandom, (void *a, size_t b, unsigned c), (a, b, c))
CALL(READ, struct dirent *, NULL, EIO, readdir, (DIR *a), (a))

CALL(WRITE, ssize_t, -1, ENOSPC, pwrite, (int a, const void *b, size_t c, off_t d), (a, b, c, d))
CALL(WRITE, int, -1, ENOSPC, ftruncate, (int a, off_t b), (a, b))
CALL(WRITE, int, -1, ENOSPC, fallocate, (int a, int b, off_t c, off_t d), (a, b, c, d))
CALL(WRITE, size_t, 0, ENOSPC, fwrite, (const void *a, size_t b, size_t c, FILE *d), (a, b, c, d))
CALL(WRITE, int, EOF, ENOSPC, fputc, (int a, FILE *b), (a, b))
CALL(WRITE, int, EOF, ENOSPC, fflush, (FILE *a), (a))

CALL(FILE, int, -1, EIO, stat, (const char *a, struct stat *b), (a, b))
CALL(FILE, int, -1, EIO, fstatat, (int a, const char *b, struct stat *c, int d), (a, b, c, d))
CALL(FILE, int, -1, EIO, access, (const char *a, int b), (a, b))
CALL(FILE, int, -1, EIO, faccessat, (int a, const char *b, int c, int d), (a, b, c, d))
CALL(FILE, int, -1, EIO, fstatvfs, (int a, struct statvfs *b), (a, b))
CALL(FILE, int, -1, EIO, renameat, (int a, const char *b, int c, const char *d), (a, b, c, d))
CALL(FILE, int, -1, EIO, unlinkat, (int a, const char *b, int c), (a, b, c))
CALL(FILE, int, -1, EIO, mkdir, (const char *a, mode_t b), (a, b))
CALL(FILE, int, -1, EIO, utimensat,
     (int a, const char *b, const struct timespec c[2], int d), (a, b, c, d))
CALL(FILE, int, -1, EIO, flock, (int a, int b), (a, b))
CALL(FILE, ssize_t, -1, EIO, readlink, (const char *a, char *b, size_t c), (a, b, c))
CALL(FILE, char *, NULL, EIO, getcwd, (char *a, size_t b), (a, b))
CALL(FILE, int, -1, EIO, chdir, (const char *a), (a))

#undef CALL
#undef NUMBER
#undef WRAPPED
