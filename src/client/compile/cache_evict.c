/* SPDX-License-Identifier: Apache-2.0 */
/* Listing the files of the cache folder, and removing entries when the limit is exceeded. Any
 * number of processes may do this at once, so a file may already have been removed by another
 * one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "client/compile/cache.h"
#include "client/compile/compile.h"
#include "client/compile/in_flight.h"
#include "client/compile/inputs.h"

enum { PROBE_DAYS = 30 };

/* Writers hold a lock on their file. One that is not locked was left by a killed process. */
static void clean_temporary(const bh__folder *folder, const char *name) {
    struct stat info;
    int fd = bh__folder_open_file(folder, name, O_RDONLY, &info);
    if (fd < 0) return;
    bool old = bh__clock_ns() / BH__NS_PER_S > (uint64_t)info.st_mtim.tv_sec + 2;
    if (old && flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(folder->fd, name, 0);
    close(fd);
}

/* Removes a probe of compilers that has not been written for PROBE_DAYS: its environment is
 * probably not used any more. */
static void clean_probe(const bh__folder *folder, const char *name) {
    struct stat info;
    bool old = fstatat(folder->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
               bh__clock_ns() / BH__NS_PER_S > (uint64_t)info.st_mtim.tv_sec + PROBE_DAYS * 86400;
    if (old) unlinkat(folder->fd, name, 0);
}

static bool add(bh__cache_files *files, const char *name, const struct stat *info) {
    if (files->count == files->capacity) {
        size_t capacity = files->capacity ? files->capacity * 2 : 256;
        bh__cache_file *list = realloc(files->list, capacity * sizeof *list);
        if (!list) return false;
        files->list = list;
        files->capacity = capacity;
    }
    bh__cache_file *file = &files->list[files->count++];
    strcpy(file->name, name);
    file->used_ns = (uint64_t)info->st_mtim.tv_sec * BH__NS_PER_S + (uint64_t)info->st_mtim.tv_nsec;
    file->bytes = (uint64_t)info->st_size;
    files->bytes += file->bytes;
    return true;
}

bool bh__cache_scan(const bh__folder *folder, bh__cache_files *out) {
    *out = (bh__cache_files){0};
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0) close(fd);
        return false;
    }
    bool complete = true;
    for (struct dirent *entry; complete && (entry = readdir(dir));) {
        struct stat info;
        if (bh__is_temporary_name(entry->d_name)) {
            clean_temporary(folder, entry->d_name);
        } else if (bh__is_probe_name(entry->d_name)) {
            clean_probe(folder, entry->d_name);
        } else if (bh__is_entry_name(entry->d_name) &&
                   fstatat(folder->fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
            complete = add(out, entry->d_name, &info);
        }
    }
    closedir(dir);
    if (!complete) bh__cache_files_free(out);
    return complete;
}

static int compare(const void *a, const void *b) {
    const bh__cache_file *x = a, *y = b;
    if (x->used_ns != y->used_ns) return x->used_ns < y->used_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

void bh__cache_sort(bh__cache_files *files) {
    if (files->count) qsort(files->list, files->count, sizeof *files->list, compare);
}

void bh__cache_files_free(bh__cache_files *files) {
    free(files->list);
    *files = (bh__cache_files){0};
}

static void evict(const bh__folder *folder, bh__cache_files *files, uint64_t limit) {
    bh__cache_sort(files);
    uint64_t left = files->bytes;
    /* An eighth below the limit, so that not every new entry causes an eviction. */
    uint64_t target = limit - limit / 8;
    for (size_t i = 0; i < files->count && left > target; i++) {
        if (unlinkat(folder->fd, files->list[i].name, 0) == 0)
            atomic_fetch_add(&bh__cache_counted.evicted, 1);
        left -= files->list[i].bytes;
    }
}

/* Listing many files takes time. It is done after the first write of this process to a folder, and
 * again after each sixteenth of the limit that it has written. */
static bool is_due(const bh__folder *folder, uint64_t limit, uint64_t added) {
    static uint64_t last_device, last_inode, added_since;
    struct stat info;
    if (fstat(folder->fd, &info) < 0) return false;
    bh__compile_lock();
    bool other = last_device != info.st_dev || last_inode != info.st_ino;
    added_since += added;
    bool due = other || added_since > limit / 16;
    if (due) {
        last_device = info.st_dev;
        last_inode = info.st_ino;
        added_since = 0;
    }
    bh__compile_unlock();
    return due;
}

void bh__cache_trim(const bh__folder *folder, uint64_t limit, uint64_t added) {
    if (!is_due(folder, limit, added)) return;
    bh__cache_files files;
    if (!bh__cache_scan(folder, &files)) return;
    if (files.bytes > limit) evict(folder, &files, limit);
    bh__cache_files_free(&files);
}
