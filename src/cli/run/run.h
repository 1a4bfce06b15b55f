/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `bulkhead run` share: its options, and the state of a run. */
#ifndef BH_CLI_RUN_RUN_H
#define BH_CLI_RUN_RUN_H

#include "../source.h"

typedef struct bh__run_options {
    const char *file;   /* the first one */
    const char **files; /* owned array; several are linked */
    size_t file_count;
    char file_text[160]; /* for messages */
    const char *kernel;  /* NULL: the only one */
    const char *device;  /* NULL: auto */
    bh_shape shape;
    bool cooperative;
    bool check;
    bool verbose;
    const char *executor; /* NULL: not given */
    bool counters;
    const char *trace;  /* the trace file; NULL: none */
    const char *report; /* a folder for reports of losses; NULL: none */
    bool follow;        /* one of the options for debugging was given */
    bh_debug_options debug;
    const char **prints; /* owned array: of `debug` */
    bool json;
    bool sarif; /* print findings, not results */
    bool help;
    bh__style style;
    uint64_t repeat; /* 0: --repeat was not given, one launch */
    uint64_t timeout_ns;
    bh__source source;         /* for CUDA C++ sources */
    const char *source_option; /* the first option that is for CUDA C++ sources; NULL: none */
    bh__arg *args;
    size_t arg_count;
} bh__run_options;

/* Parses the command line, and reads the files of arguments. Returns an exit status; errors have
 * been reported. Call bh__run_options_free in any case. */
int bh__run_options_parse(int count, char **list, bh__run_options *out);
void bh__run_options_free(bh__run_options *options);

typedef struct bh__run {
    bh__run_options *options;
    bh_device device;
    bh_device_info info;
    bh_kernel kernel;
    bh_kernel_info kernel_info;
    bh_buffer *buffers;  /* one per argument, zero if it is not a buffer */
    bh__output *outputs; /* one per argument */
    uint64_t launches;
    uint64_t total_ns;
    bh_histogram times; /* the buckets: device times of the launches */
    FILE *printed; /* collects what the kernel prints, for JSON; NULL: standard output */
    char *printed_text;
    size_t printed_size;
    char *state;          /* Owned, or NULL: of the thread that faulted */
    bh_finding *findings; /* Owned. With --check */
    size_t finding_count;
    bh_error error; /* status BH_OK: none */
} bh__run;

/* ---- debug.c: threads that are followed, and the state at a fault ---- */

/* Asks the device to follow threads, if the options say so. */
bh_status bh__debug_begin(bh__run *run);
/* Called before the device is closed. */
void bh__debug_get_state(bh__run *run);
/* Says that the line to stop at was not reached. */
void bh__debug_note(const bh__run *run);
/* On standard error. */
void bh__debug_print_state(const bh__run *run);

/* ---- findings.c ---- */

/* Called before the device is closed. */
void bh__findings_get(bh__run *run);
/* On standard error, if there are several; one alone is the error's message. */
void bh__findings_print(const bh__run *run);
/* Writes the member "findings" of the JSON document. */
void bh__findings_json(const bh__run *run, bh__json *json);
void bh__findings_sarif(const bh__run *run);

/* ---- times.c: how the device times of repeated launches are distributed ---- */

void bh__times_begin(bh__run *run);
/* Called when the launches have completed. */
void bh__times_end(bh__run *run);
void bh__times_print(FILE *to, const bh__run *run);

/* Prints the counters that are not zero. */
void bh__counters_print(FILE *to, bh_device device);

/* Writes buffers to their files, and the others to standard output as lines. */
bh_status bh__result_save(bh__run *run);
bh_status bh__result_print(bh__run *run);
/* Writes the member "args" of the JSON document. */
bh_status bh__result_json_args(bh__run *run, bh__json *json);
/* Writes all other members. Called after the device is closed. */
void bh__result_json_rest(bh__run *run, bh__json *json);

#endif
