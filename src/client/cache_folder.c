/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's folder: where it is, whether it can be trusted, reading and writing files in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"
#include "client/compile.h"

#define MOST_FILE     ((off_t)4 << 30)
#define DEFAULT_LIMIT ((uint64_t)1 << 30)

/* ---- where ---- */

/* "" in `out` with the reason in `why`: nowhere. */
static void default_path(char out[4096], char *why, size_t why_size) {
    const char *named = secure_getenv("BULKHEAD_CACHE_DIR");
    const char *base = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int used = 0;
    out[0] = 0;
    if (named && *named) {
        used = snprintf(out, 4096, "%s", named);
    } else if (base && base[0] == '/') { /* a relative one is to be ignored */
        used = snprintf(out, 4096, "%s/bulkhead", base);
    } else if (home && home[0] == '/') {
        used = snprintf(out, 4096, "%s/.cache/bulkhead", home);
    } else {
        snprintf(why, why_size,
                 home ? "HOME is \"%.100s\", no absolute path; set BULKHEAD_CACHE_DIR"
                      : "none of BULKHEAD_CACHE_DIR, XDG_CACHE_HOME and HOME is set%.0s",
                 home ? home : "");
    }
    if (used >= 4096) {
        out[0] = 0;
        snprintf(why, why_size, "the path of the cache has %d bytes, 4095 are allowed", used);
    }
}

/* mkdir -p, private to the user. */
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

void bh__folder_open(const char *dir, bool make, bh__folder *out) {
    char text[128];
    out->fd = -1;
    out->path[0] = out->why[0] = 0;
    if (dir && *dir) {
        if (strlen(dir) >= sizeof out->path) {
            snprintf(out->why, sizeof out->why, "its path has %zu bytes, 4095 are allowed",
                     strlen(dir));
            return;
        }
        strcpy(out->path, dir);
    } else {
        default_path(out->path, out->why, sizeof out->why);
        if (!out->path[0]) return;
    }
    int fd = open(out->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int number = errno;
    if (fd < 0 && number == ENOENT && make) {
        number = make_folders(out->path);
        if (number == 0) {
            fd = open(out->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            number = errno;
        }
    }
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0) {
        snprintf(out->why, sizeof out->why, "it cannot be opened: %s",
                 bh__errno_text(number, text, sizeof text));
    } else if (info.st_uid != geteuid()) {
        snprintf(out->why, sizeof out->why, "it belongs to user %u, and this is user %u",
                 (unsigned)info.st_uid, (unsigned)geteuid());
    } else if (info.st_mode & 022) {
        snprintf(out->why, sizeof out->why,
                 "others may write to it (mode %04o); chmod 700 makes it private",
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

/* "512M" and so on. */
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
    const char *text = secure_getenv("BULKHEAD_CACHE_LIMIT");
    uint64_t limit;
    if (!text || !*text) return DEFAULT_LIMIT;
    if (parse_size(text, &limit)) return limit;
    bh__log_warning("BULKHEAD_CACHE_LIMIT is \"%.40s\", no size like 512M; 1 GiB it is", text);
    return DEFAULT_LIMIT;
}

/* ---- names ---- */

void bh__entry_name(const uint64_t hash[2], char out[BH__ENTRY_NAME]) {
    snprintf(out, BH__ENTRY_NAME, "%016llx%016llx.bhk", (unsigned long long)hash[0],
             (unsigned long long)hash[1]);
}

bool bh__is_entry_name(const char *name) {
    size_t digits = strspn(name, "0123456789abcdef");
    return digits == 32 && strcmp(name + digits, ".bhk") == 0;
}

/* ---- files ---- */

bh__file_state bh__folder_read(const bh__folder *folder, const char *name, uint8_t **out,
                               size_t *out_bytes, struct stat *out_info) {
    *out = NULL;
    int fd = openat(folder->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return errno == ENOENT ? BH__FILE_NONE : BH__FILE_BAD;
    struct stat info;
    bh__file_state state = BH__FILE_BAD;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        (info.st_mode & 077) == 0 && info.st_size > 0 && info.st_size <= MOST_FILE) {
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
    bh__quiet quiet;
    bh__quiet_begin(&quiet);
    int number = 0;
    for (size_t at = 0; at < bytes && !number;) {
        ssize_t some = write(fd, data + at, bytes - at);
        if (some > 0) {
            at += (size_t)some;
        } else if (some == 0 || errno != EINTR) {
            number = some < 0 ? errno : ENOSPC;
        }
    }
    bh__quiet_end(&quiet);
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
    /* While it is locked somebody is writing it; a process that was killed lets go. */
    flock(fd, LOCK_EX | LOCK_NB);
    int number = write_whole(fd, data, bytes);
    if (number == 0 && renameat(folder->fd, temporary, folder->fd, name) < 0) {
        number = errno;
        if (number == EISDIR || number == ENOTEMPTY || number == EEXIST) /* not made by us */
            unlinkat(folder->fd, name, AT_REMOVEDIR);
    }
    if (number) unlinkat(folder->fd, temporary, 0);
    bh__fd_close(fd);
    return number;
}
