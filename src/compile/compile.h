/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead-compiler: one job, one answer. What its files share. */
#ifndef BH_COMPILE_COMPILE_H
#define BH_COMPILE_COMPILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "compile/text.h"
#include "wire/compile.h"

/* The job in hand. Everything lives in `arena`. */
typedef struct bh__compile {
    const bh__compile_job *job;
    bh__arena *arena;
    bh__compile_answer *answer;
} bh__compile;

/* Reads the job, does it in a child that can be ended, answers. Returns the exit status. */
int bh__compiler_run(int job_fd, int answer_fd);

/* ---- doing it: each fills the answer and returns its status ---- */

bh_status bh__compile_probe(bh__compile *c);
bh_status bh__compile_nvrtc(bh__compile *c);
bh_status bh__compile_clang(bh__compile *c);
bh_status bh__compile_link(bh__compile *c);

/* For want of memory of this program's own. */
bh_status bh__compile_no_memory(bh__compile *c);

/* For want of memory of the compiler's. */
bh_status bh__compile_over_limit(bh__compile *c, const char *compiler);
/* Whether what a compiler or the loader says means that the memory limit was reached. */
bool bh__tells_of_memory(const char *text);

/*
 * BH_E_COMPILE out of the answer's log: the first line that tells of an error, as file:line: text.
 * `what` stands for it where there is none.
 */
bh_status bh__compile_failed(bh__compile *c, const char *what);

/* ---- options ---- */

typedef struct bh__arch {
    unsigned number; /* 90 */
    char suffix;     /* 'a', 'f' or 0 */
} bh__arch;

bool bh__arch_read(const char *text, bh__arch *out);

/* Refuses what is unknown or contradictory, by name, before a compiler is started. */
bh_status bh__options_check(const bh__compile_job *job, bh_error *error);
/* The version of PTX to ask clang for: 78 is 7.8. */
unsigned bh__options_ptx_version(bh__arch arch);
void bh__options_nvrtc(const bh__compile_job *job, bh__words *out);
void bh__options_clang(const bh__compile_job *job, bh__words *out);
void bh__options_link(const bh__compile_job *job, bool lto, bh__words *out);

/* ---- finding compilers ---- */

typedef struct bh__library {
    void *handle;
    char *path; /* absolute, links resolved */
    char *why;  /* where it was found, or what is missing */
} bh__library;

/* From `path`, or looked for where `path` is empty. `handle` NULL: not found. */
void bh__library_open_nvrtc(bh__arena *arena, const char *path, bh__library *out);
void bh__library_open_jitlink(bh__arena *arena, const char *path, bh__library *out);

/* The version that `path --version` tells, "19.1.7"; NULL: it is no clang that runs. */
char *bh__clang_version(bh__arena *arena, const char *path);
enum { BH__CLANG_OLDEST = 16 };
/* The newest clang in PATH that will do, "" if none; `why` as in bh__library. */
char *bh__clang_find(bh__arena *arena, char **out_version, char **out_why);
bh_status bh__nvrtc_version(const bh__library *library, int *major, int *minor);
bh_status bh__jitlink_version(const bh__library *library, unsigned *major, unsigned *minor);

/* ---- a child process with its input and output in memory ---- */

typedef struct bh__child_end {
    bool started;
    int exit_code; /* -1: ended by a signal */
    int signal;
    bh__bytes output, errors;
} bh__child_end;

/* A memfd with these bytes; negative: -errno. Closed on exec unless `inherited`. */
int bh__memory_file(const char *name, bh__bytes bytes, bool inherited);
/* All of a file; data NULL: it cannot be read. */
bh__bytes bh__read_file(bh__arena *arena, int fd);
/* Runs argv[0]; descriptors that are not close-on-exec stay open in it. False: no memory. */
bool bh__child_run(bh__arena *arena, const char *const *argv, int input, bh__child_end *out);
/* Ends the calling process when `parent` ends, also if that has happened already. */
void bh__die_with(pid_t parent);

/* ---- headers that come with this program ---- */

typedef struct bh__embedded {
    const char *folder; /* "device": for clang; "rtc": for NVRTC */
    const char *name;   /* as included: "cuda_runtime.h" */
    const uint8_t *data;
    const uint8_t *end;
} bh__embedded;

extern const bh__embedded bh__embedded_files[];
extern const size_t bh__embedded_count;

/* Where compilers believe these and the job's headers to be; nothing is there on disk. */
#define BH__VIRTUAL_ROOT   "/__bulkhead__"
#define BH__VIRTUAL_DEVICE BH__VIRTUAL_ROOT "/device"
#define BH__VIRTUAL_RTC    BH__VIRTUAL_ROOT "/rtc"
#define BH__VIRTUAL_MEMORY BH__VIRTUAL_ROOT "/memory"

/* ---- name expressions with clang ---- */

/* The source with declarations after it that make the compiler tell the names. */
bh__bytes bh__names_source(bh__compile *c);
/* Takes what bh__names_source brought in out of the PTX again, and the names from it. */
bh_status bh__names_take(bh__compile *c, bh__bytes ptx, bh__bytes *out);

/* A .maxnreg for every kernel in the PTX that has none. */
bh__bytes bh__ptx_limit_registers(bh__compile *c, bh__bytes ptx, unsigned registers);

#endif
