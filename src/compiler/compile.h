/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead-compiler: one job, one answer. What its files share. */
#ifndef BH_COMPILER_COMPILE_H
#define BH_COMPILER_COMPILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "compiler/text_builder.h"
#include "wire/compile.h"

/* The current job. Everything is allocated in `arena`. */
typedef struct bh__compile {
    const bh__compile_job *job;
    bh__arena *arena;
    bh__compile_answer *answer;
} bh__compile;

/* Reads the job, runs it in a child process, writes the answer. Returns the exit status. (job.c) */
int bh__job_run(int job_fd, int answer_fd);

/* ---- kinds of jobs: each fills the answer and returns its status ---- */

bh_status bh__compile_probe(bh__compile *c);
bh_status bh__compile_nvrtc(bh__compile *c);
bh_status bh__compile_clang(bh__compile *c);
bh_status bh__compile_link(bh__compile *c);
bh_status bh__compile_native(bh__compile *c);
/* Refuses what nvJitLink made if a name means two kernels in it. (link/kernels.c) */
bh_status bh__compile_check_kernels(bh__compile *c);
/* What messages call an input of a link; NULL: no memory. (link/ptx.c) */
const char *bh__compile_input_name(bh__compile *c, size_t index);
/* Links the inputs, which are all PTX, to one PTX text, without nvJitLink. */
bh_status bh__compile_link_ptx(bh__compile *c, bh__bytes *out);

/* The error for lack of memory in this program. */
bh_status bh__compile_no_memory(bh__compile *c);

/* The error for lack of memory in the compiler. */
bh_status bh__compile_over_limit(bh__compile *c, const char *compiler);
/* Shortens a long log of the answer, in its middle. */
void bh__compile_bound_log(bh__compile *c);
/* True if this text of a compiler or the loader means that the memory limit was reached. */
bool bh__is_memory_error(const char *text);

/*
 * BH_E_COMPILE with the first error of the answer's log, as file:line: text. If the log has none,
 * the message names `what`.
 */
bh_status bh__compile_failed(bh__compile *c, const char *what);

/* ---- options ---- */

typedef struct bh__arch {
    unsigned number; /* 90 */
    char suffix;     /* 'a', 'f' or 0 */
} bh__arch;

bool bh__arch_read(const char *text, bh__arch *out);

/* Refuses what is unknown or contradictory, by name, before a compiler is started. */
bh_status bh__job_options_check(const bh__compile_job *job, bh_error *error);
/* Checks the extra flags (extra_flags.c). */
bh_status bh__flags_check(const bh__compile_job *job, bh_error *error);
/* The PTX version to request from clang: 78 is 7.8. */
unsigned bh__options_ptx_version(bh__arch arch);
void bh__options_nvrtc(const bh__compile_job *job, bh__words *out);
/* `hosted`: with the C and C++ library of the host instead of this program's own headers. */
void bh__options_clang(const bh__compile_job *job, bool hosted, bh__words *out);
void bh__options_link(const bh__compile_job *job, bool lto, bh__words *out);

/* ---- finding compilers ---- */

typedef struct bh__library {
    void *handle;
    char *path; /* absolute, links resolved */
    char *why;  /* where it was found, or what is missing */
} bh__library;

/* Opens `path`, or searches if it is empty. `handle` NULL: not found. */
void bh__library_open_nvrtc(bh__arena *arena, const char *path, bh__library *out);
void bh__library_open_jitlink(bh__arena *arena, const char *path, bh__library *out);

/* The version that `path --version` prints, "19.1.7"; NULL: it is not a clang that runs. */
char *bh__clang_version(bh__arena *arena, const char *path);
enum { BH__CLANG_MIN_VERSION = 16 };
/* The newest clang in PATH that is supported, "" if none; `why` as in bh__library. */
char *bh__clang_find(bh__arena *arena, char **out_version, char **out_why);
bh_status bh__nvrtc_version(const bh__library *library, int *major, int *minor);
bh_status bh__jitlink_version(const bh__library *library, unsigned *major, unsigned *minor);

/* ---- what compilers can access (confine.c) ---- */

/* Adds a program, and the folders beside its own that it needs, such as lib. */
void bh__toolchain_add(bh__words *paths, const char *program);
/* From here on this process and its children read only the job's folders, the system's and these,
 * and write nothing; unless the job is unconfined or the kernel does not support it. */
bh_status bh__confine(bh__compile *c, const bh__words *toolchain);
/* From here on this process uses its memory and the descriptors that it has, and nothing else, as a
 * worker of the CPU device; if the kernel supports it. */
bh_status bh__confine_whole(bh__compile *c);

/* ---- a child process with its input and output in memory ---- */

typedef struct bh__child_end {
    bool started;
    int exit_code; /* -1: ended by a signal */
    int signal;
    bh__bytes output, errors;
} bh__child_end;

/* A memfd with these bytes; negative: -errno. Closed on exec unless `inherited`. */
int bh__memory_file(const char *name, bh__bytes bytes, bool inherited);
/* The contents of a file; data NULL: it cannot be read. */
bh__bytes bh__read_file(bh__arena *arena, int fd);
/* Runs argv[0]; descriptors that are not close-on-exec stay open in it. False: no memory. */
bool bh__child_run(bh__arena *arena, const char *const *argv, int input, bh__child_end *out);
/* From now on programs that are started can signal no other process. */
void bh__child_confine(void);
/* Ends the calling process when `parent` ends, also if that has happened already. */
void bh__die_with(pid_t parent);

/* ---- headers that come with this program ---- */

typedef struct bh__embedded {
    const char *folder; /* "device", "standard", "hosted": for clang; "rtc": for NVRTC */
    const char *name;   /* as included: "cuda_runtime.h" */
    const uint8_t *data;
    const uint8_t *end;
} bh__embedded;

extern const bh__embedded bh__embedded_files[];
extern const size_t bh__embedded_count;

/* The folder in which compilers see these and the job's headers; it does not exist on disk. */
#define BH__VIRTUAL_ROOT     "/__bulkhead__"
#define BH__VIRTUAL_DEVICE   BH__VIRTUAL_ROOT "/device"
#define BH__VIRTUAL_STANDARD BH__VIRTUAL_ROOT "/standard"
#define BH__VIRTUAL_HOSTED   BH__VIRTUAL_ROOT "/hosted"
#define BH__VIRTUAL_RTC      BH__VIRTUAL_ROOT "/rtc"
#define BH__VIRTUAL_MEMORY   BH__VIRTUAL_ROOT "/memory"

/* The text with every alignas where clang takes it; data NULL: no memory.
 * (clang/shared_alignas.c) */
bh__bytes bh__accept_alignas(bh__arena *arena, bh__bytes source);

/* ---- name expressions with clang (clang/name_expressions.c) ---- */

/* The source, followed by declarations that make the compiler print the lowered names. */
bh__bytes bh__names_source(bh__compile *c);
/* Reads the lowered names from the PTX, and removes what bh__names_source added. */
bh_status bh__names_take(bh__compile *c, bh__bytes ptx, bh__bytes *out);

/* Adds a .maxnreg to every kernel in the PTX that has none. (register_limit.c) */
bh__bytes bh__ptx_limit_registers(bh__compile *c, bh__bytes ptx, unsigned registers);

#endif
