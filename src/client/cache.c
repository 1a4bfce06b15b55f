/* SPDX-License-Identifier: Apache-2.0 */
/* The cache as programs see it: figures, a list, and clearing it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "client/cache_scan.h"

bh__cache_counts bh__cache_counted;

static pthread_mutex_t note_lock = PTHREAD_MUTEX_INITIALIZER;
static char note[256];

void bh__cache_note(const char *why) {
    pthread_mutex_lock(&note_lock);
    snprintf(note, sizeof note, "%.255s", why);
    pthread_mutex_unlock(&note_lock);
}

void bh__cache_noted(char *out, size_t size) {
    pthread_mutex_lock(&note_lock);
    snprintf(out, size, "%s", note);
    pthread_mutex_unlock(&note_lock);
}

static void fill_counts(bh_cache_info *info) {
    info->memory_hits = atomic_load(&bh__cache_counted.memory_hits);
    info->disk_hits = atomic_load(&bh__cache_counted.disk_hits);
    info->misses = atomic_load(&bh__cache_counted.misses);
    info->joined = atomic_load(&bh__cache_counted.joined);
    info->dropped = atomic_load(&bh__cache_counted.dropped);
    info->evicted = atomic_load(&bh__cache_counted.evicted);
}

/* What keeps new entries from being written, although the folder is there. */
static void look_for_trouble(const bh__folder *folder, bh_cache_info *info) {
    struct statvfs disk;
    char text[128];
    if (fstatvfs(folder->fd, &disk) == 0 && (disk.f_flag & ST_RDONLY)) {
        info->usable = 0;
        snprintf(info->why, sizeof info->why, "its file system is read-only");
    } else if (faccessat(folder->fd, ".", W_OK | X_OK, AT_EACCESS) < 0) {
        info->usable = 0;
        snprintf(info->why, sizeof info->why, "nothing can be written there: %s",
                 bh__errno_text(errno, text, sizeof text));
    } else if (fstatvfs(folder->fd, &disk) == 0 && disk.f_bavail * disk.f_frsize < 65536) {
        snprintf(info->why, sizeof info->why, "the disk is full: %llu bytes are left",
                 (unsigned long long)(disk.f_bavail * disk.f_frsize));
    } else {
        bh__cache_noted(info->why, sizeof info->why);
    }
}

bh_status bh_cache_query(const char *dir, bh_cache_info *out) {
    if (!out || out->size < sizeof(uint32_t) * 2) {
        return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                          "out is NULL or its size is not set");
    }
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
        look_for_trouble(&folder, &info);
    }
    bh__folder_close(&folder);
    fill_counts(&info);
    memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
    return BH_OK;
}

static bh_status refuse_folder(const bh__folder *folder) {
    return bh__refuse(BH_E_IO, "name another folder with BULKHEAD_CACHE_DIR",
                      "the cache %.200s cannot be used: %.200s", folder->path, folder->why);
}

bh_status bh_cache_clear(const char *dir) {
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh__compile_lock();
    bh__memory_cache_clear();
    bh__compile_unlock();
    bh__folder folder;
    char text[128];
    bh__folder_open(dir, true, &folder);
    if (folder.fd < 0) return refuse_folder(&folder);
    bh__cache_files files;
    bh_status status = BH_OK;
    if (!bh__cache_scan(&folder, &files)) {
        status = bh__refuse(BH_E_IO, "check the folder", "%.300s cannot be read", folder.path);
    } else {
        for (size_t i = 0; i < files.count && status == BH_OK; i++) {
            int failed = unlinkat(folder.fd, files.list[i].name, 0) < 0 ? errno : 0;
            if (failed == EISDIR) failed = unlinkat(folder.fd, files.list[i].name, AT_REMOVEDIR);
            if (failed && failed != ENOENT) {
                status = bh__refuse(BH_E_IO, "check the folder's permissions",
                                    "%.200s/%s cannot be removed: %s", folder.path,
                                    files.list[i].name, bh__errno_text(failed, text, sizeof text));
            }
        }
        bh__cache_files_free(&files);
        bh__cache_counts_clear(&folder);
    }
    bh__folder_close(&folder);
    return status;
}

/* An entry that is damaged is listed by what its file says. */
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

bh_status bh_cache_list(const char *dir, bh_cache_fn *each, void *context) {
    if (!each) return bh__refuse(BH_E_INVALID, "pass a function", "each is NULL");
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh__folder folder;
    bh__folder_open(dir, true, &folder);
    if (folder.fd < 0) return refuse_folder(&folder);
    bh__cache_files files;
    bh_status status = BH_OK;
    if (!bh__cache_scan(&folder, &files)) {
        status = bh__refuse(BH_E_IO, "check the folder", "%.300s cannot be read", folder.path);
    } else {
        bh__cache_sort(&files);
        for (size_t i = files.count; i > 0; i--) {
            bh_cache_entry entry;
            describe(&folder, &files.list[i - 1], &entry);
            each(context, &entry);
        }
        bh__cache_files_free(&files);
    }
    bh__folder_close(&folder);
    return status;
}
