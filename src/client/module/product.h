/* SPDX-License-Identifier: Apache-2.0 */
/* Products: results of compiles and links, shared by binaries, modules and the cache. */
#ifndef BH_CLIENT_MODULE_PRODUCT_H
#define BH_CLIENT_MODULE_PRODUCT_H

#include <stdatomic.h>

#include "base/arena.h"
#include "client/module/state.h"

/* ---- the files that a result depends on ---- */

/* Identifies one state of a file: changes and replacements alter it. All zero: not known. */
typedef struct bh__file_id {
    uint64_t device, inode, bytes, mtime_ns, ctime_ns;
} bh__file_id;

typedef struct bh__read {
    const char *path; /* absolute */
    bool missing;     /* the compiler looked for it and did not find it */
    uint32_t folder;  /* missing: index of the folder that would change if it appeared */
    uint64_t bytes;
    uint64_t hash[2];   /* as the compiler saw it */
    uint8_t digest[32]; /* SHA-256: distinguishes files with equal hashes */
    bh__file_id id;     /* of the file when it had these contents */
} bh__read;

typedef struct bh__read_folder {
    const char *path;
    bh__file_id id;
} bh__read_folder;

typedef struct bh__reads {
    bh__read *list;
    size_t count;
    bh__read_folder *folders;
    size_t folder_count;
} bh__reads;

/* ---- products ---- */

/* Never changes once it is shared, but for references and the fields of the cache. */
struct bh__product {
    _Atomic uint32_t references;
    bh__arena arena;
    uint32_t output;      /* BH_OUTPUT_PTX ...: what it holds */
    const uint8_t *bytes; /* the cubin if it holds PTX too */
    uint64_t count;
    const uint8_t *ptx; /* beside a cubin; else NULL */
    uint64_t ptx_count;
    const char *log;
    const char *name; /* of the source */
    const char *arch;
    const char *compiler; /* with its version */
    const char *why;      /* why this compiler was chosen */
    uint64_t compile_ns;
    bh__names names;
    bh__reads reads;
    const uint8_t *key;
    size_t key_bytes;
    uint64_t hash[2]; /* of the key */

    /* For the cache in memory. */
    bh__product *next_in_bucket, *newer, *older;
    _Atomic uint64_t touched_ns; /* when its file was last marked as used */
};

/* Returns a product with one reference. NULL: no host memory. */
bh__product *bh__product_new(void);
void bh__product_retain(bh__product *product);
void bh__product_release(bh__product *product);
uint64_t bh__product_bytes(const bh__product *product);

#endif
