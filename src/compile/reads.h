/* SPDX-License-Identifier: Apache-2.0 */
/* Which files decided a result: those read, and places where one was looked for in vain. */
#ifndef BH_COMPILE_READS_H
#define BH_COMPILE_READS_H

#include <time.h>

#include "compile/compile.h"

typedef struct bh__reads {
    bh__arena *arena;
    bh__compile_read *list;
    size_t count, room;
    uint32_t *slots; /* a hash table of indices + 1 */
    size_t slot_count;
    bool failed; /* for want of memory: the record is not whole */
} bh__reads;

/* Relative paths are below "/", where this program works. */
void bh__reads_missing(bh__reads *reads, const char *path);
void bh__reads_content(bh__reads *reads, const char *path, const void *bytes, size_t count);
void bh__reads_changed(bh__reads *reads, const char *path);

/* ---- NVRTC: this program's own open, fopen, stat stand before the C library's ---- */

/* From here on what the process opens is recorded; NULL ends it. Files are handed out as copies in
 * memory, so that what was recorded is what was seen. */
void bh__watch(bh__reads *reads);

/* ---- clang: from its list of dependencies and its search list ---- */

/* `search`: what cc1 prints with -v. `since`: when the compiler was started; what changed after
 * that may have been read before. */
void bh__reads_from_clang(bh__reads *reads, const bh__compile_job *job, bh__bytes dependencies,
                          bh__bytes search, struct timespec since);

#endif
