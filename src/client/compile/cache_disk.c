/* SPDX-License-Identifier: Apache-2.0 */
/* Products in the cache folder: looking one up, storing one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "client/compile/cache.h"
#include "client/compile/compile.h"
#include "client/compile/inputs.h"
#include "client/module/product.h"

/* A time of use that is more recent than this is not updated. */
#define TOUCH_NS BH__NS_PER_S

static void touch(const bh__folder *folder, const char *name, const struct stat *info) {
    uint64_t used = (uint64_t)info->st_mtim.tv_sec * BH__NS_PER_S + (uint64_t)info->st_mtim.tv_nsec;
    uint64_t now = bh__clock_ns();
    if (now - used < TOUCH_NS && now >= used) return;
    utimensat(folder->fd, name, NULL, AT_SYMLINK_NOFOLLOW);
}

static void drop(const bh__folder *folder, const char *name, const char *why) {
    atomic_fetch_add(&bh__cache_counted.dropped, 1);
    bh__log_warning("cache entry %s/%s was removed: it is %s", folder->path, name, why);
    if (unlinkat(folder->fd, name, 0) < 0 && errno == EISDIR)
        unlinkat(folder->fd, name, AT_REMOVEDIR);
}

/* Returns the product in this file, or NULL if its key differs or its inputs have changed. */
static bh__product *read_entry(const bh__folder *folder, const char *name, const void *key,
                               size_t key_bytes) {
    uint8_t *data;
    size_t bytes;
    struct stat info;
    bh__file_state file = bh__folder_read(folder, name, &data, &bytes, &info);
    if (file == BH__FILE_BAD)
        drop(folder, name, "not a regular file that only this user can access");
    if (file != BH__FILE_READ) return NULL;
    bh__product *product;
    bh__entry_state state = bh__entry_unpack(data, bytes, key, key_bytes, &product);
    free(data);
    if (state == BH__ENTRY_BAD) drop(folder, name, "damaged");
    if (state != BH__ENTRY_GOOD) return NULL;
    bh__freshness freshness = bh__reads_check(&product->reads, true);
    if (freshness == BH__STALE) {
        bh__product_release(product);
        return NULL;
    }
    bh__pack renewed = {0};
    if (freshness == BH__FRESH_RENEWED && bh__entry_pack(product, &renewed)) {
        (void)bh__folder_write(folder, name, renewed.data, renewed.count);
    } else {
        touch(folder, name, &info);
    }
    bh__pack_free(&renewed);
    product->touched_ns = bh__now_ns();
    return product;
}

bh__product *bh__disk_get(const char *dir, const uint64_t hash[2], const void *key,
                          size_t key_bytes) {
    bh__folder folder;
    char name[BH__ENTRY_NAME];
    bh__folder_open(dir, false, &folder);
    if (folder.fd < 0) return NULL;
    bh__entry_name(hash, name);
    bh__product *product = read_entry(&folder, name, key, key_bytes);
    bh__folder_close(&folder);
    return product;
}

void bh__disk_put(const char *dir, uint64_t limit, const bh__product *product) {
    bh__folder folder;
    char name[BH__ENTRY_NAME], text[128], why[256] = "";
    bh__pack entry = {0};
    bh__folder_open(dir, true, &folder);
    if (folder.fd < 0) {
        snprintf(why, sizeof why, "%s", folder.why);
    } else if (!bh__entry_pack(product, &entry)) {
        snprintf(why, sizeof why, "no host memory for a cache entry");
    } else if (entry.count > limit) {
        snprintf(why, sizeof why, "the last entry has %zu bytes, the cache limit is %llu",
                 entry.count, (unsigned long long)limit);
    } else {
        bh__entry_name(product->hash, name);
        int number = bh__folder_write(&folder, name, entry.data, entry.count);
        if (number) {
            snprintf(why, sizeof why, "the last entry (%zu bytes) could not be written: %s",
                     entry.count, bh__errno_text(number, text, sizeof text));
        }
        bh__cache_trim(&folder, limit, number ? 0 : entry.count);
    }
    if (why[0]) bh__log_info("compile cache: the result was not stored: %s", why);
    bh__cache_problem_set(why);
    bh__pack_free(&entry);
    bh__folder_close(&folder);
}

void bh__disk_touch(const char *dir, const bh__product *product) {
    bh__folder folder;
    char name[BH__ENTRY_NAME];
    bh__folder_open(dir, false, &folder);
    if (folder.fd < 0) return;
    bh__entry_name(product->hash, name);
    utimensat(folder.fd, name, NULL, AT_SYMLINK_NOFOLLOW);
    bh__folder_close(&folder);
}
