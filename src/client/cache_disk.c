/* SPDX-License-Identifier: Apache-2.0 */
/* Products kept on disk: looking one up, keeping one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "client/compile.h"

#define TOUCH_NS BH__NS_PER_S /* entries used closer together than this count as used at once */

static void touch(const bh__folder *folder, const char *name, const struct stat *info) {
    uint64_t used = (uint64_t)info->st_mtim.tv_sec * BH__NS_PER_S + (uint64_t)info->st_mtim.tv_nsec;
    uint64_t now = bh__clock_ns();
    if (now - used < TOUCH_NS && now >= used) return;
    utimensat(folder->fd, name, NULL, AT_SYMLINK_NOFOLLOW);
}

static void drop(const bh__folder *folder, const char *name, const char *why) {
    atomic_fetch_add(&bh__cache_counted.dropped, 1);
    bh__log_warning("cache entry %s/%s is %s, and was dropped", folder->path, name, why);
    if (unlinkat(folder->fd, name, 0) < 0 && errno == EISDIR)
        unlinkat(folder->fd, name, AT_REMOVEDIR);
}

/* The product in this file, if it is what the key asks for and up to date. */
static bh__product *read_entry(const bh__folder *folder, const char *name, const void *key,
                               size_t key_bytes) {
    uint8_t *data;
    size_t bytes;
    struct stat info;
    bh__file_state file = bh__folder_read(folder, name, &data, &bytes, &info);
    if (file == BH__FILE_BAD) drop(folder, name, "no private file of this user");
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
        snprintf(why, sizeof why, "no host memory for an entry");
    } else if (entry.count > limit) {
        snprintf(why, sizeof why, "the last entry has %zu bytes, more than the limit of %llu",
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
    if (why[0]) bh__log_info("nothing is kept in the cache: %s", why);
    bh__cache_note(why);
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
