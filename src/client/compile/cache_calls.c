/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of the compile cache: querying, listing and clearing it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "client/compile/cache.h"
#include "client/compile/compile.h"
#include "client/compile/in_flight.h"
#include "client/core/error.h"
#include "client/core/fork.h"
#include "client/core/sized.h"
#include "client/module/product.h"

bh__cache_counts bh__cache_counted;

static char problem[256];

void bh__cache_problem_set(const char *why) {
    bh__process_lock_take(BH__LOCK_CACHE_PROBLEM);
    snprintf(problem, sizeof problem, "%.255s", why);
    bh__process_lock_give(BH__LOCK_CACHE_PROBLEM);
}

void bh__cache_problem_get(char *out, size_t size) {
    bh__process_lock_take(BH__LOCK_CACHE_PROBLEM);
    snprintf(out, size, "%s", problem);
    bh__process_lock_give(BH__LOCK_CACHE_PROBLEM);
}

void bh__cache_counts_fill(bh_cache_info *info) {
    info->compiles = atomic_load(&bh__cache_counted.compiles);
    info->memory_hits = atomic_load(&bh__cache_counted.memory_hits);
    info->disk_hits = atomic_load(&bh__cache_counted.disk_hits);
    info->misses = atomic_load(&bh__cache_counted.misses);
    info->joined = atomic_load(&bh__cache_counted.joined);
    info->dropped = atomic_load(&bh__cache_counted.dropped);
    info->evicted = atomic_load(&bh__cache_counted.evicted);
}

/* Reports what keeps new entries from being written although the folder can be opened. */
static void find_problem(const bh__folder *folder, bh_cache_info *info) {
    struct statvfs disk;
    char text[128];
    if (fstatvfs(folder->fd, &disk) == 0 && (disk.f_flag & ST_RDONLY)) {
        info->usable = 0;
        snprintf(info->why, sizeof info->why, "its file system is read-only");
    } else if (faccessat(folder->fd, ".", W_OK | X_OK, AT_EACCESS) < 0) {
        info->usable = 0;
        snprintf(info->why, sizeof info->why, "it cannot be written to: %s",
                 bh__errno_text(errno, text, sizeof text));
    } else if (fstatvfs(folder->fd, &disk) == 0 && disk.f_bavail * disk.f_frsize < 65536) {
        snprintf(info->why, sizeof info->why, "the disk is full: %llu bytes are left",
                 (unsigned long long)(disk.f_bavail * disk.f_frsize));
    } else {
        bh__cache_problem_get(info->why, sizeof info->why);
    }
}

bh_status bh_cache_get_info(const char *dir, bh_cache_info *out) {
    if (bh__sized_check(out, "bh_cache_info") != BH_OK) return BH_E_INVALID;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh_cache_info info = {.size = out->size, .usable = 1, .limit = bh__cache_limit(0)};
    bh__folder folder;
    bh__folder_open(dir, true, &folder);
    snprintf(info.dir, sizeof info.dir, "%.511s", folder.path);
    if (folder.fd < 0) {
        info.usable = 0;
        snprintf(info.why, sizeof info.why, "%.255s", folder.why);
    } else {
        bh__cache_files files;
        if (bh__cache_scan(&folder, &files)) {
            info.entries = files.count;
            info.bytes = files.bytes;
            bh__cache_files_free(&files);
        }
        bh__cache_counts_get(&folder, &info.all_hits, &info.all_misses);
        find_problem(&folder, &info);
    }
    bh__folder_close(&folder);
    bh__cache_counts_fill(&info);
    bh__sized_give(out, &info, sizeof info);
    return BH_OK;
}

static bh_status refuse_folder(const bh__folder *folder) {
    return bh__refuse(BH_E_IO, "pass another folder, or set BULKHEAD_CACHE_DIR",
                      "the cache folder \"%.200s\" cannot be used: %.200s", folder->path,
                      folder->why);
}

/* Opens a cache folder and lists its files. On failure nothing is open. */
static bh_status scan(const char *dir, bh__folder *folder, bh__cache_files *out) {
    bh__folder_open(dir, true, folder);
    if (folder->fd < 0) return refuse_folder(folder);
    if (bh__cache_scan(folder, out)) return BH_OK;
    bh_status status = bh__refuse(BH_E_IO, "check the folder's permissions",
                                  "the cache folder \"%.300s\" cannot be read", folder->path);
    bh__folder_close(folder);
    return status;
}

bh_status bh_cache_clear(const char *dir) {
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh__compile_lock();
    bh__memory_cache_clear();
    bh__compile_unlock();
    bh__folder folder;
    bh__cache_files files;
    char text[128];
    bh_status status = scan(dir, &folder, &files);
    if (status != BH_OK) return status;
    for (size_t i = 0; i < files.count && status == BH_OK; i++) {
        int failed = unlinkat(folder.fd, files.list[i].name, 0) < 0 ? errno : 0;
        if (failed == EISDIR) failed = unlinkat(folder.fd, files.list[i].name, AT_REMOVEDIR);
        if (failed && failed != ENOENT) {
            status = bh__refuse(BH_E_IO, "check the folder's permissions",
                                "the cache entry %.200s/%s cannot be removed: %s", folder.path,
                                files.list[i].name, bh__errno_text(failed, text, sizeof text));
        }
    }
    bh__cache_files_free(&files);
    bh__cache_counts_clear(&folder);
    bh__folder_close(&folder);
    return status;
}

/* A damaged entry is listed with what its file tells: key, size and time of use. */
static void describe(const bh__folder *folder, const bh__cache_file *file, bh_cache_entry *out) {
    *out = (bh_cache_entry){.size = sizeof *out, .bytes = file->bytes, .used_ns = file->used_ns};
    memcpy(out->key, file->name, 32);
    uint8_t *data;
    size_t bytes;
    struct stat info;
    bh__product *product = NULL;
    if (bh__folder_read(folder, file->name, &data, &bytes, &info) == BH__FILE_READ) {
        (void)bh__entry_unpack(data, bytes, NULL, 0, &product);
        free(data);
    }
    if (!product) {
        snprintf(out->name, sizeof out->name, "(damaged)");
        return;
    }
    out->output = product->output;
    snprintf(out->name, sizeof out->name, "%.63s", product->name);
    snprintf(out->arch, sizeof out->arch, "%.15s", product->arch);
    snprintf(out->compiler, sizeof out->compiler, "%.63s", product->compiler);
    bh__product_release(product);
}

/* Only entries that are asked for are read. */
static void list_files(const bh__folder *folder, const bh__cache_files *files,
                       bh_cache_entry *entries, size_t entry_size, size_t capacity) {
    for (size_t i = 0; i < files->count && i < capacity; i++) {
        bh_cache_entry entry;
        describe(folder, &files->list[files->count - 1 - i], &entry);
        bh__list_put(entries, entry_size, i, &entry, sizeof entry);
    }
}

bh_status bh_cache_list(const char *dir, bh_cache_entry *entries, size_t entry_size,
                        size_t capacity, size_t *count) {
    if (bh__list_check(entries, entry_size, capacity, count, "bh_cache_entry") != BH_OK)
        return BH_E_INVALID;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh__folder folder;
    bh__cache_files files;
    if (scan(dir, &folder, &files) != BH_OK) return bh__last()->status;
    bh__cache_sort(&files);
    list_files(&folder, &files, entries, entry_size, capacity);
    *count = files.count;
    bh__cache_files_free(&files);
    bh__folder_close(&folder);
    return BH_OK;
}
