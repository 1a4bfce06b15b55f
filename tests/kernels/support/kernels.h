/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of tests/kernels/NAME.cu and how to run them. Each has this signature:
 *
 *     extern "C" __global__ void name(const unsigned *in, unsigned *out, unsigned n)
 *
 * `in` has n words of input_word, `out` n words of zero. A line before the kernel says how it is
 * launched and how its result is compared:
 *
 *     // RUN name n=4096 grid=16 block=256 exact
 *
 * With the word `maps` the first two parameters are tensor maps of `in` and `out` as matrices of 64
 * columns, with a box of 32 x 8 and a swizzle of 128 bytes.
 * grid and block may be 4x4; further words are shared=BYTES (dynamic), cooperative, cluster=N,
 * loose=EPS instead of exact (float results, whose sums are compared with a relative EPS),
 * nofast (not with fast math). A line "// FILE nvrtc arch=90a" at the top of a file is for all of
 * it: only NVRTC has the headers; only architectures from 90 on.
 */
#ifndef TESTS_KERNELS_KERNELS_H
#define TESTS_KERNELS_KERNELS_H

#include "../../support/support.h"

typedef struct run {
    char name[64];
    uint32_t n;
    bh_shape shape;
    bool cooperative, fast, maps;
    double loose; /* 0: exact */
} run;

enum { RUNS_MAX = 32 };
typedef struct kernel_file {
    char name[64];
    char *source; /* free() */
    char arch[16];
    bool nvrtc_only;
    run runs[RUNS_MAX];
    unsigned count;
} kernel_file;

/* The .cu files by name; returns how many. Failing to read one ends the test. */
enum { FILES_MAX = 64 };
unsigned kernel_files(kernel_file files[FILES_MAX]);

uint32_t input_word(uint32_t index);

/* What a kernel must compute, written plainly in C. NULL: there is none for this kernel. */
typedef void reference_fn(const uint32_t *in, uint32_t *out, uint32_t n);
reference_fn *reference_of(const char *name);

#endif
