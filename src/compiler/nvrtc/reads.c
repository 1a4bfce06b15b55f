/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVRTC reads. The program exports its own open, fopen, stat and similar functions, and the
 * loader binds the libraries that it loads to these instead of the C library's (interposition).
 * While a record is being made, a file that is opened for reading is copied into memory and
 * recorded, and NVRTC gets the copy. The folder of headers for NVRTC exists only here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiler/read_record.h"

static bh__read_record *recorder;

void bh__read_record_intercept(bh__read_record *reads) {
    recorder = reads;
}

static const bh__embedded *find_virtual(const char *path) {
    size_t root = sizeof BH__VIRTUAL_RTC - 1;
    if (strncmp(path, BH__VIRTUAL_RTC "/", root + 1) != 0) return NULL;
    for (size_t i = 0; i < bh__embedded_count; i++) {
        const bh__embedded *file = &bh__embedded_files[i];
        if (strcmp(file->folder, "rtc") == 0 && strcmp(file->name, path + root + 1) == 0)
            return file;
    }
    return NULL;
}

static bool is_ours(const char *path) {
    return strncmp(path, BH__VIRTUAL_ROOT "/", sizeof BH__VIRTUAL_ROOT) == 0;
}

/* False for files whose contents change all the time. */
static bool is_recorded(const char *path) {
    return path[0] != 0 && !is_ours(path) && strncmp(path, "/proc/", 6) != 0 &&
           strncmp(path, "/sys/", 5) != 0 && strncmp(path, "/dev/", 5) != 0;
}

static void note_missing(const char *path, int error) {
    if (recorder != NULL && path != NULL && is_recorded(path) &&
        (error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP))
        bh__read_record_missing(recorder, path);
}

static int plain_open(int folder, const char *path, int flags, unsigned mode) {
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

static int copy_into_memory(const char *path, int fd, int flags) {
    bh__bytes bytes = bh__read_file(recorder->arena, fd);
    int copy = bytes.data ? bh__memory_file("header", bytes, !(flags & O_CLOEXEC)) : -1;
    if (copy < 0) {
        recorder->failed = true;
        return fd;
    }
    bh__read_record_content(recorder, path, bytes.data, bytes.count);
    close(fd);
    return copy;
}

static int watched_open(int folder, const char *path, int flags, unsigned mode) {
    const bh__embedded *file = recorder && path ? find_virtual(path) : NULL;
    if (file != NULL) {
        bh__bytes bytes = {file->data, (uint64_t)(file->end - file->data)};
        return bh__memory_file("header", bytes, !(flags & O_CLOEXEC));
    }
    int fd = plain_open(folder, path, flags, mode);
    if (recorder == NULL || path == NULL || (flags & O_ACCMODE) != O_RDONLY) return fd;
    if (folder != AT_FDCWD && path[0] != '/') {
        recorder->failed = true; /* relative to a folder whose path is not known here */
        return fd;
    }
    int error = errno;
    struct stat info;
    if (fd < 0)
        note_missing(path, error);
    else if (!(flags & (O_DIRECTORY | O_PATH)) && is_recorded(path) && fstat(fd, &info) == 0 &&
             S_ISREG(info.st_mode))
        fd = copy_into_memory(path, fd, flags);
    errno = error;
    return fd;
}

/* ---- the exported functions; by symbol, so that they do not clash with the C library's headers
 * ---- */

#define SEEN(symbol) __asm__(symbol) __attribute__((visibility("default"), used))

static unsigned mode_of(int flags, va_list list) {
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, unsigned) : 0;
}

#define DEFINE_OPEN(name, symbol)                                                                  \
    int name(const char *path, int flags, ...) SEEN(symbol);                                       \
    int name(const char *path, int flags, ...) {                                                   \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        unsigned mode = mode_of(flags, list);                                                      \
        va_end(list);                                                                              \
        return watched_open(AT_FDCWD, path, flags, mode);                                          \
    }
#define DEFINE_OPENAT(name, symbol)                                                                \
    int name(int folder, const char *path, int flags, ...) SEEN(symbol);                           \
    int name(int folder, const char *path, int flags, ...) {                                       \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        unsigned mode = mode_of(flags, list);                                                      \
        va_end(list);                                                                              \
        return watched_open(folder, path, flags, mode);                                            \
    }
DEFINE_OPEN(watched_open_, "open")
DEFINE_OPEN(watched_open64, "open64")
DEFINE_OPENAT(watched_openat_, "openat")
DEFINE_OPENAT(watched_openat64, "openat64")

typedef FILE *open_stream(const char *path, const char *mode);

static FILE *watched_fopen(const char *path, const char *mode) {
    if (recorder != NULL && path != NULL && mode != NULL && mode[0] == 'r' &&
        strchr(mode, '+') == NULL) {
        int fd = watched_open(AT_FDCWD, path, O_RDONLY | (strchr(mode, 'e') ? O_CLOEXEC : 0), 0);
        if (fd < 0) return NULL;
        FILE *stream = fdopen(fd, mode);
        if (stream == NULL) close(fd);
        return stream;
    }
    static open_stream *next;
    if (next == NULL) {
        void *found = dlsym(RTLD_NEXT, "fopen");
        memcpy(&next, &found, sizeof found);
    }
    return next != NULL ? next(path, mode) : NULL;
}

FILE *watched_fopen_(const char *path, const char *mode) SEEN("fopen");
FILE *watched_fopen_(const char *path, const char *mode) {
    return watched_fopen(path, mode);
}
FILE *watched_fopen64(const char *path, const char *mode) SEEN("fopen64");
FILE *watched_fopen64(const char *path, const char *mode) {
    return watched_fopen(path, mode);
}

static int watched_stat(const char *path, struct stat *out, int flags) {
    const bh__embedded *file = recorder && path ? find_virtual(path) : NULL;
    if (file != NULL) {
        memset(out, 0, sizeof *out);
        out->st_mode = S_IFREG | 0444;
        out->st_nlink = 1;
        out->st_size = file->end - file->data;
        out->st_ino = (ino_t)(file - bh__embedded_files) + 1;
        out->st_dev = (dev_t)-1; /* NVRTC identifies headers by device and inode */
        return 0;
    }
    int result = fstatat(AT_FDCWD, path, out, flags);
    if (result != 0) {
        int error = errno;
        note_missing(path, error);
        errno = error;
    }
    return result;
}

#define DEFINE_STAT(name, symbol, flags)                                                           \
    int name(const char *path, struct stat *out) SEEN(symbol);                                     \
    int name(const char *path, struct stat *out) {                                                 \
        return watched_stat(path, out, flags);                                                     \
    }
/* What libraries built with a C library before 2.33 call. */
#define DEFINE_XSTAT(name, symbol, flags)                                                          \
    int name(int version, const char *path, struct stat *out) SEEN(symbol);                        \
    int name(int version, const char *path, struct stat *out) {                                    \
        (void)version;                                                                             \
        return watched_stat(path, out, flags);                                                     \
    }
DEFINE_STAT(watched_stat_, "stat", 0)
DEFINE_STAT(watched_stat64, "stat64", 0)
DEFINE_STAT(watched_lstat, "lstat", AT_SYMLINK_NOFOLLOW)
DEFINE_STAT(watched_lstat64, "lstat64", AT_SYMLINK_NOFOLLOW)
DEFINE_XSTAT(watched_xstat, "__xstat", 0)
DEFINE_XSTAT(watched_xstat64, "__xstat64", 0)
DEFINE_XSTAT(watched_lxstat, "__lxstat", AT_SYMLINK_NOFOLLOW)
DEFINE_XSTAT(watched_lxstat64, "__lxstat64", AT_SYMLINK_NOFOLLOW)

int watched_access(const char *path, int mode) SEEN("access");
int watched_access(const char *path, int mode) {
    if (recorder != NULL && path != NULL && find_virtual(path) != NULL)
        return mode & (W_OK | X_OK) ? -1 : 0;
    int result = (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
    if (result != 0) {
        int error = errno;
        note_missing(path, error);
        errno = error;
    }
    return result;
}
