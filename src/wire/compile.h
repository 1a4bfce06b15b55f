/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between libbulkhead and bulkhead-compiler: one job, one answer, each a block of
 * tagged fields in a memfd.
 *
 * The library starts the program for one job with three descriptors: 3 the job (sealed), 4 an empty
 * memfd for the answer, 2 a memfd for other output of the compilers. It waits for the process to
 * end. Exit status 0 means that the answer is complete. Any other end, or a timeout, means that the
 * compiler crashed or hangs. The answer is checked before it is used.
 */
#ifndef BH_WIRE_COMPILE_H
#define BH_WIRE_COMPILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "error/error.h"

enum { BH__COMPILE_JOB_FD = 3, BH__COMPILE_ANSWER_FD = 4 };

typedef struct bh__bytes {
    const uint8_t *data; /* texts are NUL-terminated, the NUL is not counted */
    uint64_t count;
} bh__bytes;

typedef struct bh__texts {
    bh__bytes *list;
    size_t count;
} bh__texts;

enum {
    BH__COMPILE_PROBE = 1, /* which compilers are installed */
    BH__COMPILE_SOURCE = 2,
    BH__COMPILE_LINK = 3,
    BH__COMPILE_NATIVE = 4 /* PTX to native code for the CPU device: wire/native.h */
};

typedef struct bh__compile_job {
    uint32_t op;
    uint32_t compiler; /* BH_COMPILER_NVRTC or BH_COMPILER_CLANG; SOURCE only */
    uint32_t output;   /* BH_OUTPUT_PTX ... */
    uint32_t standard; /* 14, 17, 20 */
    uint32_t flags;    /* BH_COMPILE_FAST_MATH ... */
    uint32_t max_registers;
    uint32_t kernel, shapes; /* NATIVE: BH__NATIVE_... */
    uint32_t parent;         /* the process that waits for the answer; 0: not set */
    uint64_t memory_limit;   /* bytes of address space */
    uint64_t time_limit_ns;  /* the program exits by then, as a fallback */
    bh__bytes compiler_path; /* the library or program that a probe found */
    bh__bytes arch;          /* "sm_90", "sm_90a" */
    bh__bytes name;          /* of the source, for messages */
    bh__bytes source;
    bh__texts defines;           /* "NAME" or "NAME=VALUE" */
    bh__texts include_paths;     /* absolute */
    bh__texts header_names;      /* headers in memory: the names for #include ... */
    bh__texts header_bodies;     /* ... and their text, in the same order */
    bh__texts expressions;       /* kernels whose lowered names are requested; LINK: their lowered
                              * names in the inputs */
    bh__texts expression_inputs; /* LINK: the number of the input of each, as text */
    bh__texts extra;             /* flags passed unchanged */
    bh__texts inputs;            /* LINK: images, in order */
    bh__texts input_names;       /* LINK: of the images, for messages, in the same order; or none */
} bh__compile_job;

/* One compiler that a probe looked for. */
typedef struct bh__compiler_found {
    uint32_t compiler; /* BH_COMPILER_..., or BH__COMPILER_NVJITLINK */
    uint32_t usable;
    bh__bytes path;
    bh__bytes version; /* "nvrtc 13.0", "clang 19.1.7" */
    bh__bytes why;     /* where it was found, or why it is not usable */
} bh__compiler_found;

enum { BH__COMPILER_NVJITLINK = 16 };

/* A file that the result depends on: a header that was read, or a path where none was found. */
typedef struct bh__compile_read {
    bh__bytes path; /* absolute */
    uint32_t missing;
    uint32_t reserved;
    uint64_t bytes;   /* BH__READ_CHANGED: it changed meanwhile, so the result must not be cached */
    uint64_t hash[2]; /* bh__checksum of the contents as the compiler saw them */
} bh__compile_read;

#define BH__READ_CHANGED UINT64_MAX

typedef struct bh__compile_answer {
    bh_error error;    /* status BH_OK, BH_E_COMPILE, BH_E_UNSUPPORTED, BH_E_INVALID ... */
    bh__bytes log;     /* everything that the compiler printed, warnings too */
    bh__bytes version; /* of the compiler that was used */
    bh__bytes arch;    /* of the output, where the compiler decided it: "sm_90"; else empty */
    bh__bytes output;
    bh__bytes ptx;     /* beside a cubin, if both are asked for */
    bh__texts lowered; /* one for each of the job's expressions; LINK: their names in the output */
    bh__compile_read *reads;
    size_t read_count;
    bh__compiler_found *found; /* PROBE */
    size_t found_count;
} bh__compile_answer;

/* Write the job to a new sealed memfd, and the answer to `fd`. The first returns a descriptor or
 * -errno. */
int bh__compile_job_write(const bh__compile_job *job);
bool bh__compile_answer_write(int fd, const bh__compile_answer *answer);

/* Read and check; the results are allocated in `arena`. Return false if the data is invalid or
 * memory is exhausted. */
bool bh__compile_job_read(int fd, bh__arena *arena, bh__compile_job *out);
bool bh__compile_answer_read(int fd, bh__arena *arena, bh__compile_answer *out);

#endif
