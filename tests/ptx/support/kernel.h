/* SPDX-License-Identifier: Apache-2.0 */
/* Running PTX text in the interpreter, for tests. */
#ifndef BH_TESTS_PTX_KERNEL_H
#define BH_TESTS_PTX_KERNEL_H

#include "ptx/ptx.h"

/* What every module needs in front. Its last line is line 3, so the text after it starts on 4. */
#define PTX_HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

/* A kernel `k` with a pointer parameter whose value is in %out and common registers declared. */
#define PTX_KERNEL(body)                                                                           \
    PTX_HEAD                                                                                       \
    ".visible .entry k(.param .u64 p)\n"                                                           \
    "{\n"                                                                                          \
    ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>;\n"                    \
    ".reg .f32 %f<8>; .reg .f64 %d<8>; .reg .b64 %out; .reg .b32 %t;\n"                            \
    "ld.param.u64 %out, [p];\n"                                                                    \
    "mov.u32 %t, %tid.x;\n" body "\nret;\n}\n"

typedef struct kernel {
    bh__ptx_module *module;
    bh__ptx_image *image;
    bh__ptx_block *block;
    bh_error error;
    bh__ptx_fault fault;
    bh__ptx_range range;
    bh__ptx_memory memory;
    bh__ptx_grid grid;
    uint64_t pointer;
    char printed[1024];
} kernel;

/* Loads `text` and readies its first kernel, one block of `threads`; `out` is its only buffer. */
bh_status kernel_open(kernel *k, const char *text, uint32_t threads, void *out, size_t bytes);
void kernel_close(kernel *k);

/* Runs all clusters of the grid to their end, or to the first fault. */
bh__ptx_outcome kernel_run(kernel *k);

/* All of the above: the outcome, with k->fault filled in, or a failed check if it does not load. */
bh__ptx_outcome run_text(kernel *k, const char *text, uint32_t threads, void *out, size_t bytes);

/* The error that loading gives. */
bh_status load_error(const char *text, size_t length, bh_error *error);

#endif
