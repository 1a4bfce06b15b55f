/* SPDX-License-Identifier: Apache-2.0 */
/* The compile cache: products in memory, and products as files in a folder that processes share. */
#ifndef BH_CLIENT_COMPILE_CACHE_H
#define BH_CLIENT_COMPILE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "client/compile/pack.h"
#include "client/compile/request.h"
#include "client/module/product.h"

/* ---- what a compile asks (cache.c) ---- */

/* Returns the product in memory, retained, if its inputs have not changed; else NULL. With
 * bh__compile_lock held, which is released while files are checked. */
bh__product *bh__cache_look_in_memory(const bh__compile_request *request);
/* Returns the product on disk, or NULL, and counts it. Without the lock. */
bh__product *bh__cache_look_on_disk(const bh__compile_request *request);
void bh__cache_keep_on_disk(const bh__compile_request *request, bh__product *product);

/* ---- memory (cache_memory.c). All calls with bh__compile_lock held. ---- */

/* Returns the product, retained, or NULL. */
bh__product *bh__memory_cache_get(const uint64_t hash[2], const void *key, size_t key_bytes);
void bh__memory_cache_put(bh__product *product);
void bh__memory_cache_drop(const bh__product *product);
void bh__memory_cache_clear(void);

/* ---- the folder (cache_folder.c) ---- */

typedef struct bh__folder {
    int fd; /* -1: the folder cannot be used, for the reason in `why` */
    char path[4096];
    char why[256];
} bh__folder;

/* Opens `dir`, or the default folder if it is NULL. With `make`, creates it if it does not
 * exist. */
void bh__folder_open(const char *dir, bool make, bh__folder *out);
void bh__folder_close(bh__folder *folder);
/* `given`, or the default limit if it is 0. */
uint64_t bh__cache_limit(uint64_t given);
#define BH__ENTRY_NAME 40
void bh__entry_name(const uint64_t hash[2], char out[BH__ENTRY_NAME]);
bool bh__is_entry_name(const char *name);
bool bh__is_temporary_name(const char *name);
bool bh__is_probe_name(const char *name);
/* Opens a file of the folder. Returns its descriptor or -errno: -EACCES if it is not a regular file
 * that this user owns and only this user can access. */
int bh__folder_open_file(const bh__folder *folder, const char *name, int flags, struct stat *out);
/* BAD: the file exists but must not be trusted. */
typedef enum bh__file_state { BH__FILE_READ, BH__FILE_NONE, BH__FILE_BAD } bh__file_state;
/* Reads a file as bh__folder_open_file opens it. The caller frees *out. */
bh__file_state bh__folder_read(const bh__folder *folder, const char *name, uint8_t **out,
                               size_t *out_bytes, struct stat *out_info);
/* Writes the file under a temporary name, then renames it. Returns 0 or an errno. */
int bh__folder_write(const bh__folder *folder, const char *name, const void *data, size_t bytes);

/* ---- entries (cache_entry.c) ---- */

/* Serializes a product. Returns false if host memory is exhausted. */
bool bh__entry_pack(const bh__product *product, bh__pack *out);
/* BAD: damaged, or host memory is exhausted. */
typedef enum bh__entry_state { BH__ENTRY_GOOD, BH__ENTRY_OTHER_KEY, BH__ENTRY_BAD } bh__entry_state;
/* With `key` NULL, any key is accepted. *out is set for BH__ENTRY_GOOD only. */
bh__entry_state bh__entry_unpack(const uint8_t *data, size_t bytes, const void *key,
                                 size_t key_bytes, bh__product **out);

/* ---- products on disk (cache_disk.c) ---- */

/* Returns NULL if there is no such entry, or if it is damaged or stale. */
bh__product *bh__disk_get(const char *dir, const uint64_t hash[2], const void *key,
                          size_t key_bytes);
void bh__disk_put(const char *dir, uint64_t limit, const bh__product *product);
/* Marks the entry as used now. */
void bh__disk_touch(const char *dir, const bh__product *product);

/* ---- the files of the folder (cache_evict.c) ---- */

typedef struct bh__cache_file {
    char name[BH__ENTRY_NAME];
    uint64_t used_ns; /* since 1970 */
    uint64_t bytes;   /* size of the file */
} bh__cache_file;

typedef struct bh__cache_files {
    bh__cache_file *list; /* Owned. */
    size_t count, capacity;
    uint64_t bytes;
} bh__cache_files;

/* Lists all entries, in no order. Removes the temporary files that killed processes left. Returns
 * false if the folder cannot be read or host memory is exhausted. */
bool bh__cache_scan(const bh__folder *folder, bh__cache_files *out);
/* Sorts by time of use, the least recently used first. */
void bh__cache_sort(bh__cache_files *files);
void bh__cache_files_free(bh__cache_files *files);
/* Removes the least recently used entries if the folder exceeds the limit. Called after each write;
 * `added` is how many bytes that was. */
void bh__cache_trim(const bh__folder *folder, uint64_t limit, uint64_t added);

/* ---- hits and misses of all processes (cache_counts.c) ---- */

/* Adds the hits and misses of this process that have not been added yet. */
void bh__cache_counts_add(const char *dir);
void bh__cache_counts_get(const bh__folder *folder, uint64_t *out_hits, uint64_t *out_misses);
void bh__cache_counts_clear(const bh__folder *folder);

/* ---- the last write (cache_calls.c) ---- */

/* Why the last product could not be written to disk; "": it was written. */
void bh__cache_problem_set(const char *why);
void bh__cache_problem_get(char *out, size_t size);

#endif
