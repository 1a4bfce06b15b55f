/* SPDX-License-Identifier: Apache-2.0 */
/* The cache folder: finding it, checking that it can be trusted, reading and writing its files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/file_signal.h"
#include "base/log.h"
#include "client/compile/cache.h"
#include "client/compile/inputs.h"
#include "client/core/fork.h"

#define MAX_FILE      ((off_t)4 << 30)
#define DEFAULT_LIMIT ((uint64_t)1 << 30)

/* ---- finding the folder ---- */

/* Sets `out` to "", with the reason in `why`, if there is no default. */
static void default_path(char out[4096], char *why, size_t why_size) {
    const char *named = bh__environment("BULKHEAD_CACHE_DIR");
    const char *base = bh__environment("XDG_CACHE_HOME"), *home = bh__environment("HOME");
    int used = 0;
    out[0] = 0;
    if (named) {
        used = snprintf(out, 4096, "%s", named);
    } else if (base && base[0] == '/') { /* the XDG specification: ignore relative paths */
        used = snprintf(out, 4096, "%s/bulkhead", base);
    } else if (home && home[0] == '/') {
        used = snprintf(out, 4096, "%s/.cache/bulkhead", home);
    } else if (bh__is_privileged()) {
        snprintf(why, why_size,
                 "this program is privileged (set-user-ID), so its environment is "
                 "ignored; pass a folder in cache_dir");
    } else {
        snprintf(why, why_size,
                 home ? "HOME is \"%.100s\", not an absolute path; set BULKHEAD_CACHE_DIR"
                      : "none of BULKHEAD_CACHE_DIR, XDG_CACHE_HOME and HOME is set%.0s",
                 home ? home : "");
    }
    if (used >= 4096) {
        out[0] = 0;
        snprintf(why, why_size, "its path has %d bytes, the maximum is 4095", used);
    }
}

/* Like mkdir -p, with mode 0700. Returns 0 or an errno. */
static int make_folders(const char *path) {
    char part[4096];
    size_t length = strlen(path);
    if (length >= sizeof part) return ENAMETOOLONG;
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (part[i] != '/' && part[i] != 0) continue;
        char kept = part[i];
        part[i] = 0;
        if (mkdir(part, 0700) < 0 && errno != EEXIST) {
            struct stat info;
            int number = errno;
            if (stat(part, &info) < 0 || !S_ISDIR(info.st_mode)) return number;
        }
        part[i] = kept;
    }
    return 0;
}

/* Opens the folder for reading. A symbolic link is followed only if it belongs to this user or to
 * root: in a folder that others can write to, another user's link could point the cache at any
 * folder of this user. Opening relative to `at` opens what was checked. Returns -errno on failure,
 * perhaps with a reason in `why`. */
static int open_folder(const char *path, char *why, size_t why_size) {
    struct stat info;
    int at = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (at < 0) return -errno;
    int fd = -1, number = fstat(at, &info) == 0 ? 0 : errno;
    bool link = number == 0 && S_ISLNK(info.st_mode);
    if (link && info.st_uid != geteuid() && info.st_uid != 0) {
        snprintf(why, why_size, "it is a symbolic link of user %u, and this is user %u",
                 (unsigned)info.st_uid, (unsigned)geteuid());
        number = ELOOP;
    }
    if (number == 0) {
        fd = link ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                  : openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        number = errno;
    }
    close(at);
    return fd >= 0 ? fd : -number;
}

/* Fills in the path. Returns false, with `why` filled in, if there is none. */
static bool choose_path(const char *dir, bh__folder *out) {
    out->path[0] = out->why[0] = 0;
    size_t length = dir ? strlen(dir) : 0;
    if (length >= sizeof out->path) {
        snprintf(out->why, sizeof out->why, "its path has %zu bytes, the maximum is 4095", length);
        return false;
    }
    if (length > 0)
        strcpy(out->path, dir);
    else
        default_path(out->path, out->why, sizeof out->why);
    /* With a slash at the end, O_NOFOLLOW would not see a symbolic link. */
    length = strlen(out->path);
    while (length > 1 && out->path[length - 1] == '/') out->path[--length] = 0;
    return length > 0;
}

void bh__folder_open(const char *dir, bool make, bh__folder *out) {
    char text[128];
    out->fd = -1;
    if (!choose_path(dir, out)) return;
    int fd = open_folder(out->path, out->why, sizeof out->why);
    if (fd == -ENOENT && make) {
        int failed = make_folders(out->path);
        fd = failed ? -failed : open_folder(out->path, out->why, sizeof out->why);
    }
    if (out->why[0]) return;
    int number = fd < 0 ? -fd : 0;
    struct stat info;
    if (fd >= 0 && fstat(fd, &info) < 0) number = errno;
    if (number) {
        snprintf(out->why, sizeof out->why, "it cannot be opened: %s",
                 bh__errno_text(number, text, sizeof text));
    } else if (info.st_uid != geteuid()) {
        snprintf(out->why, sizeof out->why, "it belongs to user %u, and this is user %u",
                 (unsigned)info.st_uid, (unsigned)geteuid());
    } else if (info.st_mode & 022) {
        snprintf(out->why, sizeof out->why,
                 "others may write to it (mode %04o); make it private with chmod 700",
                 (unsigned)info.st_mode & 07777);
    } else {
        out->fd = bh__fd_keep(fd);
        return;
    }
    if (fd >= 0) close(fd);
}

void bh__folder_close(bh__folder *folder) {
    if (folder->fd >= 0) bh__fd_close(folder->fd);
    folder->fd = -1;
}

/* Parses a size such as 512M. */
static bool parse_size(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (end == text || errno || text[0] == '-') return false;
    unsigned shift = 0;
    switch (*end) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    case 0:
        *out = number;
        return number > 0;
    default:
        return false;
    }
    if (end[1] != 0 || number == 0 || number > UINT64_MAX >> shift) return false;
    *out = (uint64_t)number << shift;
    return true;
}

uint64_t bh__cache_limit(uint64_t given) {
    if (given) return given;
    const char *text = bh__environment("BULKHEAD_CACHE_LIMIT");
    uint64_t limit;
    if (!text) return DEFAULT_LIMIT;
    if (parse_size(text, &limit)) return limit;
    bh__log_warning(
        "BULKHEAD_CACHE_LIMIT is \"%.40s\", which is not a size like 512M; the default of "
        "1 GiB is used",
        text);
    return DEFAULT_LIMIT;
}

/* ---- names ---- */

void bh__entry_name(const uint64_t hash[2], char out[BH__ENTRY_NAME]) {
    snprintf(out, BH__ENTRY_NAME, "%016llx%016llx.bhk", (unsigned long long)hash[0],
             (unsigned long long)hash[1]);
}

static const char hex_digits[] = "0123456789abcdef";

bool bh__is_entry_name(const char *name) {
    size_t digits = strspn(name, hex_digits);
    return digits == 32 && strcmp(name + digits, ".bhk") == 0;
}

bool bh__is_temporary_name(const char *name) {
    int length = 0;
    return sscanf(name, "tmp-%*[0-9]-%*[0-9]-%*[0-9a-f]%n", &length) == 0 && length > 0 &&
           name[length] == 0;
}

bool bh__is_probe_name(const char *name) {
    return strncmp(name, "probe-", 6) == 0 && strspn(name + 6, hex_digits) == 16 && !name[22];
}

/* ---- files ---- */

int bh__folder_open_file(const bh__folder *folder, const char *name, int flags, struct stat *out) {
    int fd = openat(folder->fd, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0) return -errno;
    if (fstat(fd, out) == 0 && S_ISREG(out->st_mode) && out->st_uid == geteuid() &&
        (out->st_mode & 077) == 0)
        return fd;
    close(fd);
    return -EACCES;
}

bh__file_state bh__folder_read(const bh__folder *folder, const char *name, uint8_t **out,
                               size_t *out_bytes, struct stat *out_info) {
    struct stat info;
    *out = NULL;
    int fd = bh__folder_open_file(folder, name, O_RDONLY, &info);
    if (fd < 0) return fd == -ENOENT ? BH__FILE_NONE : BH__FILE_BAD;
    bh__file_state state = BH__FILE_BAD;
    if (info.st_size > 0 && info.st_size <= MAX_FILE) {
        size_t bytes = (size_t)info.st_size, got = 0;
        uint8_t *data = malloc(bytes);
        ssize_t some;
        while (data && got < bytes && (some = read(fd, data + got, bytes - got)) > 0)
            got += (size_t)some;
        if (data && got == bytes) {
            *out = data;
            *out_bytes = bytes;
            *out_info = info;
            state = BH__FILE_READ;
        } else {
            free(data);
            if (!data) state = BH__FILE_NONE;
        }
    }
    close(fd);
    return state;
}

static int write_whole(int fd, const uint8_t *data, size_t bytes) {
    bh__file_signal signals;
    bh__file_signal_block(&signals);
    int number = 0;
    for (size_t at = 0; at < bytes && !number;) {
        ssize_t some = write(fd, data + at, bytes - at);
        if (some > 0) {
            at += (size_t)some;
        } else if (some == 0 || errno != EINTR) {
            number = some < 0 ? errno : ENOSPC;
        }
    }
    bh__file_signal_restore(&signals);
    return number;
}

int bh__folder_write(const bh__folder *folder, const char *name, const void *data, size_t bytes) {
    static _Atomic uint32_t count;
    char temporary[80];
    snprintf(temporary, sizeof temporary, "tmp-%d-%u-%llx", (int)getpid(),
             atomic_fetch_add(&count, 1), (unsigned long long)bh__clock_ns());
    int fd =
        openat(folder->fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return errno;
    fd = bh__fd_keep(fd);
    /* The lock marks the file as being written. It is released if the process is killed. */
    flock(fd, LOCK_EX | LOCK_NB);
    int number = write_whole(fd, data, bytes);
    if (number == 0 && renameat(folder->fd, temporary, folder->fd, name) < 0) {
        number = errno;
        if (number == EISDIR || number == ENOTEMPTY ||
            number == EEXIST) /* a folder, not an entry */
            unlinkat(folder->fd, name, AT_REMOVEDIR);
    }
    if (number) unlinkat(folder->fd, temporary, 0);
    bh__fd_close(fd);
    return number;
}
