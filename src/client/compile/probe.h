/* SPDX-License-Identifier: Apache-2.0 */
/* Which compilers are installed. A probe is the answer of bulkhead-compiler to that question. */
#ifndef BH_CLIENT_COMPILE_PROBE_H
#define BH_CLIENT_COMPILE_PROBE_H

#include <stdatomic.h>

#include "base/arena.h"
#include "client/module/product.h"

typedef struct bh__probe_entry {
    uint32_t compiler; /* BH_COMPILER_NVRTC ... */
    bool usable;
    const char *path, *version;
    const char *why; /* why it is preferred, or why it is not usable */
    bh__file_id id;
} bh__probe_entry;

typedef struct bh__probe {
    _Atomic uint32_t references;
    bh__arena arena;
    const char *dir; /* compiler_dir or BULKHEAD_WORKER_DIR; "": neither is set */
    const char *environment;
    const char *program; /* path of bulkhead-compiler */
    bh__file_id program_id, loader_id;
    bh__probe_entry *entries;
    size_t count;
    uint64_t folders;             /* hash of the folders that are searched for compilers */
    uint64_t made_ns;             /* since 1970 */
    _Atomic uint64_t verified_ns; /* when `folders` was last compared, on bh__now_ns's clock */
} bh__probe;

/* Which stored probes may be used: those in memory and on disk, those in memory, none. */
typedef enum bh__probe_use { BH__PROBE_KNOWN, BH__PROBE_MEMORY, BH__PROBE_FRESH } bh__probe_use;

/* Returns a stored probe that is still valid, or runs bulkhead-compiler. A stored probe is used
 * only if the file of `compiler` is unchanged; BH_COMPILER_AUTO stands for the preferred compiler.
 * Returns NULL, with *error set, on failure. */
bh__probe *bh__probe_get(const char *compiler_dir, const char *cache_dir, bh__probe_use use,
                         uint32_t compiler, bh_error *error);
const bh__probe_entry *bh__probe_find(const bh__probe *probe, uint32_t compiler);
void bh__probe_release(bh__probe *probe);

#endif
