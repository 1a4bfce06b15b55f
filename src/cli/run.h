/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `bulkhead run` share: its options, and what a run leaves to be shown. */
#ifndef BH_CLI_RUN_H
#define BH_CLI_RUN_H

#include "source.h"

typedef struct bh__run_options {
    const char *file;
    const char *kernel; /* NULL: the only one */
    const char *device; /* NULL: auto */
    bh_shape shape;
    bool cooperative;
    bool check;
    bool counters;
    const char *trace; /* a file to write one to; NULL: none */
    bool json;
    bool help;
    bh__style style;
    uint64_t repeat; /* 0: not asked for, one launch */
    uint64_t timeout_ns;
    bh__source source;         /* for CUDA C++ sources */
    const char *source_option; /* the first option that is for CUDA C++ sources; NULL: none */
    bh__arg *args;
    size_t arg_count;
} bh__run_options;

/* Fills in the options; the arguments are parsed and their files read. Returns an exit status,
 * having reported what was wrong. Free with bh__run_options_free in any case. */
int bh__run_options_parse(int count, char **list, bh__run_options *out);
void bh__run_options_free(bh__run_options *options);

typedef struct bh__run {
    bh__run_options *options;
    bh_device device;
    bh_device_info info;
    bh_kernel kernel;
    bh_kernel_info kernel_info;
    bh_buffer *buffers;  /* one for each argument, zero where it is no buffer */
    bh__output *outputs; /* likewise */
    uint64_t launches;
    uint64_t total_ns;
    FILE *printed; /* what the kernel printed, kept for JSON; NULL: goes to standard output */
    char *printed_text;
    size_t printed_size;
    bh_error error; /* status BH_OK: none */
} bh__run;

/* Those that are not zero. */
void bh__counters_print(FILE *to, bh_device device);

/* Writes buffers to their files, and the others to standard output as lines. */
bh_status bh__result_save(bh__run *run);
bh_status bh__result_print(bh__run *run);
/* The members "args" of the JSON document. */
bh_status bh__result_json_args(bh__run *run, bh__json *json);
/* All the others. The device is closed by now. */
void bh__result_json_rest(bh__run *run, bh__json *json);

#endif
