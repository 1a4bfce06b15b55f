/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between the library, or one of its programs, and the C library: counts calls and makes the
 * one that was asked for fail. Linked with --wrap for each of them, so that what the C library and
 * the test call is left alone, and sanitizers see the calls that are made. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "page.h"

static failing_page none, *page = &none;

void failing_use(failing_page *its) {
    page = its;
}

#if FAILING_IN != 0

/* A program that the application started maps the application's page. */
__attribute__((constructor)) static void find_page(void) {
    const char *path = getenv(FAILING_PAGE);
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *its = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *page, 3, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (its != MAP_FAILED) page = its;
}

#endif

extern const char __ehdr_start[];

static void note_first(const char *name, const void *caller) {
    if (atomic_fetch_add(&page->failed, 1)) return;
    strncpy(page->name, name, sizeof page->name - 1);
    atomic_store(&page->caller, (uint64_t)((const char *)caller - __ehdr_start));
}

/* Whether this call is to fail. */
static bool fails(failing_class calls, int number, const char *name, const void *caller) {
    if (!atomic_load(&page->armed)) return false;
    uint64_t at = atomic_fetch_add(&page->count[FAILING_IN][calls], 1) + 1;
    if (page->process != FAILING_IN || page->calls != (uint32_t)calls) return false;
    if (page->mode == FAIL_ONCE ? at != page->n : at < page->n) return false;
    note_first(name, caller);
    errno = number;
    return true;
}

#define FAILS(class, number, name) fails(CALLS_##class, number, name, __builtin_return_address(0))

#define CALL(class, result, failure, number, name, parameters, arguments)                          \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters;                                                               \
    result __wrap_##name parameters {                                                              \
        if (FAILS(class, number, #name)) return failure;                                           \
        return __real_##name arguments;                                                            \
    }
#define NUMBER(class, number, name, parameters, arguments)                                         \
    CALL(class, int, number, errno, name, parameters, arguments)
#include "calls.h"

/* ---- what must be given back ---- */

/* Programs that were started give back all they have when they end. */
static void hold_blocks(int64_t more) {
    if (FAILING_IN == IN_APPLICATION) atomic_fetch_add(&page->blocks, more);
}

static void hold_mapped(int64_t more) {
    if (FAILING_IN == IN_APPLICATION) atomic_fetch_add(&page->mapped, more);
}

static void *counted(void *block) {
    if (block) hold_blocks(1);
    return block;
}

static void gone(const void *block) {
    if (block) hold_blocks(-1);
}

#define MAKES(class, number, result, name, parameters, arguments)                                  \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters;                                                               \
    result __wrap_##name parameters {                                                              \
        if (FAILS(class, number, #name)) return NULL;                                              \
        return counted(__real_##name arguments);                                                   \
    }
#define RELEASES(result, name, type)                                                               \
    result __real_##name(type *a);                                                                 \
    result __wrap_##name(type *a);                                                                 \
    result __wrap_##name(type *a) {                                                                \
        gone(a);                                                                                   \
        return __real_##name(a);                                                                   \
    }

MAKES(ALLOCATE, ENOMEM, void *, malloc, (size_t a), (a))
MAKES(ALLOCATE, ENOMEM, void *, calloc, (size_t a, size_t b), (a, b))
MAKES(ALLOCATE, ENOMEM, void *, aligned_alloc, (size_t a, size_t b), (a, b))
MAKES(ALLOCATE, ENOMEM, char *, strdup, (const char *a), (a))
MAKES(ALLOCATE, ENOMEM, char *, strndup, (const char *a, size_t b), (a, b))
MAKES(DESCRIPTOR, EMFILE, FILE *, fopen, (const char *a, const char *b), (a, b))
MAKES(ALLOCATE, ENOMEM, FILE *, fdopen, (int a, const char *b), (a, b))
MAKES(ALLOCATE, ENOMEM, DIR *, fdopendir, (int a), (a))
RELEASES(int, closedir, DIR)

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block) {
    gone(block);
    __real_free(block);
}

void *__real_realloc(void *block, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes) {
    if (FAILS(ALLOCATE, ENOMEM, "realloc")) return NULL;
    void *now = __real_realloc(block, bytes);
    return block ? now : counted(now);
}

char *__real_realpath(const char *path, char *out);
char *__wrap_realpath(const char *path, char *out);
char *__wrap_realpath(const char *path, char *out) {
    if (FAILS(FILE, EIO, "realpath")) return NULL;
    char *resolved = __real_realpath(path, out);
    return out ? resolved : counted(resolved);
}

/* The stream and the text it leaves. */
FILE *__real_open_memstream(char **text, size_t *size);
FILE *__wrap_open_memstream(char **text, size_t *size);
FILE *__wrap_open_memstream(char **text, size_t *size) {
    if (FAILS(ALLOCATE, ENOMEM, "open_memstream")) return NULL;
    FILE *stream = counted(__real_open_memstream(text, size));
    if (stream) counted(stream);
    return stream;
}

/* A full disk is often noticed when the last of it is written. */
int __real_fclose(FILE *stream);
int __wrap_fclose(FILE *stream);
int __wrap_fclose(FILE *stream) {
    bool full = FAILS(WRITE, ENOSPC, "fclose");
    gone(stream);
    int failed = __real_fclose(stream);
    if (full) errno = ENOSPC;
    return full ? EOF : failed;
}

int __real_scandir(const char *path, struct dirent ***list, int (*wants)(const struct dirent *),
                   int (*order)(const struct dirent **, const struct dirent **));
int __wrap_scandir(const char *path, struct dirent ***list, int (*wants)(const struct dirent *),
                   int (*order)(const struct dirent **, const struct dirent **));
int __wrap_scandir(const char *path, struct dirent ***list, int (*wants)(const struct dirent *),
                   int (*order)(const struct dirent **, const struct dirent **)) {
    if (FAILS(DESCRIPTOR, EMFILE, "scandir")) return -1;
    int count = __real_scandir(path, list, wants, order);
    if (count >= 0) hold_blocks(count + 1);
    return count;
}

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    if (FAILS(MAP, ENOMEM, "mmap")) return MAP_FAILED;
    void *memory = __real_mmap(at, bytes, protection, flags, fd, offset);
    bool more = memory != MAP_FAILED && !(flags & MAP_FIXED);
    if (more) hold_mapped((int64_t)bytes);
    return memory;
}

int __real_munmap(void *memory, size_t bytes);
int __wrap_munmap(void *memory, size_t bytes);
int __wrap_munmap(void *memory, size_t bytes) {
    hold_mapped(-(int64_t)bytes);
    return __real_munmap(memory, bytes);
}

/* ---- open argument lists ---- */

#define LAST(type, name, after)                                                                    \
    va_list list;                                                                                  \
    va_start(list, after);                                                                         \
    type name = va_arg(list, type);                                                                \
    va_end(list)

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    if (FAILS(DESCRIPTOR, EMFILE, "open")) return -1;
    LAST(unsigned, mode, flags);
    return __real_open(path, flags, mode);
}

int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...) {
    if (FAILS(DESCRIPTOR, EMFILE, "openat")) return -1;
    LAST(unsigned, mode, flags);
    return __real_openat(folder, path, flags, mode);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) {
    bool makes = command == F_DUPFD_CLOEXEC || command == F_DUPFD;
    if (makes && FAILS(DESCRIPTOR, EMFILE, "fcntl")) return -1;
    LAST(long, argument, command);
    return __real_fcntl(fd, command, argument);
}

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...) {
    if (FAILS(READ, ENOTTY, "ioctl")) return -1;
    LAST(void *, argument, request);
    return __real_ioctl(fd, request, argument);
}

static bool is_eventfd(int fd) {
    char path[40], target[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, target, sizeof target);
    return length > 0 && memmem(target, (size_t)length, "eventfd", 7);
}

/* Adding to an eventfd can be interrupted. It does not fail for good: there is no other way to wake
 * whoever polls it. */
ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes) {
    bool spared = page->mode == FAIL_ON && atomic_load(&page->armed) && is_eventfd(fd);
    if (!spared && FAILS(WRITE, ENOSPC, "write")) return -1;
    return __real_write(fd, data, bytes);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
    if (number == SYS_pidfd_open && FAILS(DESCRIPTOR, EMFILE, "pidfd_open")) return -1;
    va_list list;
    va_start(list, number);
    long a[6];
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Streams remember that they failed. */
enum { ERROR_SEEN = 0x20 };

int __real_fprintf(FILE *stream, const char *format, ...);
int __wrap_fprintf(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_fprintf(FILE *stream, const char *format, ...) {
    if (FAILS(WRITE, ENOSPC, "fprintf")) {
        stream->_flags |= ERROR_SEEN;
        return -1;
    }
    va_list list;
    va_start(list, format);
    int written = vfprintf(stream, format, list);
    va_end(list);
    return written;
}
