/* SPDX-License-Identifier: Apache-2.0 */
/* The record of files that decided a result: those that were read, and those that were looked for
 * and did not exist. */
#ifndef BH_COMPILER_READ_RECORD_H
#define BH_COMPILER_READ_RECORD_H

#include <time.h>

#include "compiler/compile.h"

typedef struct bh__read_record {
    bh__arena *arena;
    bh__compile_read *list;
    size_t count, room;
    uint32_t *slots; /* a hash table of indices + 1 */
    size_t slot_count;
    bool failed; /* out of memory: the record is incomplete */
} bh__read_record;

/* Relative paths are below "/", this program's working folder. */
void bh__read_record_missing(bh__read_record *reads, const char *path);
void bh__read_record_content(bh__read_record *reads, const char *path, const void *bytes,
                             size_t count);
void bh__read_record_changed(bh__read_record *reads, const char *path);

/* ---- nvrtc/reads.c: this program's own open, fopen and stat replace the C library's ---- */

/* From here on every file that NVRTC opens is recorded; NULL ends it. NVRTC gets a copy in memory,
 * so that what was recorded is what was read. */
void bh__read_record_intercept(bh__read_record *reads);

/* ---- clang/reads.c: from clang's list of dependencies and its search list ---- */

/* `search`: what cc1 prints with -v. `since`: when the compiler was started; a file that changed
 * after that may have been read before the change. */
void bh__read_record_from_clang(bh__read_record *reads, const bh__compile_job *job,
                                bh__bytes dependencies, bh__bytes search, struct timespec since);

#endif
