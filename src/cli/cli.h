/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the bulkhead command share. The command uses the public API and libc only. */
#ifndef BH_CLI_CLI_H
#define BH_CLI_CLI_H

#include "bulkhead.h"

#include <stdio.h>

/* ---- exit statuses and errors (report.c) ---- */

enum {
    BH__EXIT_DONE = 0,
    BH__EXIT_REFUSED = 1, /* refused or failed */
    BH__EXIT_USAGE = 2,   /* wrong usage */
    BH__EXIT_KERNEL = 3   /* the kernel faulted or exceeded its deadline */
};

/* Fills `error` with a message and returns `status`; the fix is "" until bh__report_fix sets it. */
bh_status bh__report_set(bh_error *error, bh_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets the fix and returns the status that `error` has. */
bh_status bh__report_fix(bh_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Copies the last error of the library on this thread to `error`, in the command's words; returns
 * its status. */
bh_status bh__report_library(bh_error *error);
/* Replaces names of the C API in the message and the fix by the command's words: BH_INOUT by
 * inout:. */
void bh__report_translate(bh_error *error);

/* Writes "error: CODE: message" and "Fix: ..." to standard error. */
void bh__report_print(const bh_error *error);
/* The same for wrong usage; returns BH__EXIT_USAGE. */
int bh__report_usage(const bh_error *error);
/* The exit status for the status of a run: 0, 1 or 3. */
int bh__report_exit(bh_status status);
/* Flushes standard output. Returns `code`, or BH__EXIT_REFUSED with a report if that failed. */
int bh__report_flush(int code);

/* Returns the word that is most similar to `text`, or NULL if none is similar. */
const char *bh__report_nearest(const char *text, const char *const *words, size_t count);

/* ---- options (options.c) ---- */

typedef struct bh__option {
    int letter;        /* 0: none */
    const char *name;  /* without the dashes; NULL: none */
    const char *value; /* the name of its value, "BYTES"; NULL: it takes none */
    int id;            /* what bh__options_next returns; above 0 */
} bh__option;

typedef struct bh__options {
    const char *command; /* for the messages: "run" */
    const bh__option *table;
    size_t table_count;
    char **list;
    int count;
    int next;           /* index of the next argument */
    const char *bundle; /* the rest of a word like -xyz, or NULL */
    bool only_operands; /* after -- */
} bh__options;

enum { BH__OPTIONS_END = 0, BH__OPTIONS_OPERAND = -1, BH__OPTIONS_WRONG = -2 };

/* Returns the id of the next option, with its value if it takes one; BH__OPTIONS_OPERAND with the
 * word as value; BH__OPTIONS_END; or BH__OPTIONS_WRONG with `error` filled in. */
int bh__options_next(bh__options *options, const char **value, bh_error *error);

/* The options of simple subcommands, which list the letters they accept: j (--json), d
 * (--device). */
typedef struct bh__simple_options {
    bool help; /* the help text was printed */
    bool json;
    const char *device;
} bh__simple_options;

/* Returns an exit status. Errors have been reported. */
int bh__simple_options_parse(const char *command, const char *letters, int count, char **list,
                             bh__simple_options *out);

/* ---- numbers (values.c) ---- */

#define BH__VALUE_TEXT 40 /* room for any element as text */

/* Returns the type named by the first `length` bytes of `text`, or 0. */
bh_type bh__type_find(const char *text, size_t length);
bool bh__type_is_float(bh_type type);

/* Parses an element. Its bits are in the low bytes of `bits`. */
bh_status bh__value_parse(bh_type type, const char *text, size_t length, uint64_t *bits,
                          bh_error *error);
/* Writes the shortest text that parses to the same value. */
void bh__value_format(bh_type type, uint64_t bits, char out[BH__VALUE_TEXT]);
void bh__value_format_hex(bh_type type, uint64_t bits, char out[BH__VALUE_TEXT]);
/* True for NaN and the infinities. */
bool bh__value_is_special(bh_type type, uint64_t bits);
/* Converts to an element of a floating type, rounded to nearest even. Returns false if it is too
 * large. */
bool bh__value_from_double(bh_type type, double number, uint64_t *bits);

uint64_t bh__value_load(const void *element, bh_type type);
void bh__value_store(void *element, bh_type type, uint64_t bits);

/* Parses the whole text as an unsigned number: decimal, 0x, 0o or 0b. */
bool bh__count_parse(const char *text, size_t length, uint64_t *out);

/* Parses --timeout, a number of seconds from `at_least` to 1e9. */
bh_status bh__timeout_parse(const char *text, double at_least, uint64_t *out_ns, bh_error *error);

/* ---- arguments of a launch (args.c) ---- */

/* The maximum size of one argument: the memory of this machine. */
uint64_t bh__memory_limit(void);

typedef enum bh__arg_kind {
    BH__ARG_SCALAR = 1, /* TYPE:VALUE */
    BH__ARG_BYTES,      /* bytes:HEX */
    BH__ARG_NULL,
    BH__ARG_BUFFER /* in: out: inout: */
} bh__arg_kind;

typedef struct bh__arg {
    bh__arg_kind kind;
    uint32_t access;      /* BH_ACCESS_IN ..., for buffers */
    bh_type type;         /* 0 for bytes and null */
    uint64_t count;       /* elements of a buffer, bytes of BH__ARG_BYTES */
    unsigned char *data;  /* owned: the contents; NULL for out: */
    const char *text;     /* borrowed: as it was written */
    const char *out_path; /* borrowed: where an out: buffer is saved; NULL: printed */
} bh__arg;

/* Parses one ARG and reads the file that it names. After a failure there is nothing to free. Wrong
 * usage is BH_E_INVALID; other statuses mean that a file could not be read. */
bh_status bh__arg_parse(const char *text, bh__arg *out, bh_error *error);
void bh__arg_free(bh__arg *arg);

/* ---- files (file.c, npy.c) ---- */

typedef struct bh__bytes {
    unsigned char *data; /* owned */
    size_t size;
} bh__bytes;

/* Reads a whole file. The data is followed by a zero byte. */
bh_status bh__file_read(const char *path, bh__bytes *out, bh_error *error);

/* An output file. It is opened before the work begins, so that a bad path fails early. Existing
 * contents stay until bh__output_begin. */
typedef struct bh__output {
    const char *path; /* borrowed */
    int fd;           /* -1: none */
    bool created;
} bh__output;

bh_status bh__output_open(const char *path, bh__output *out, bh_error *error);
bh_status bh__output_begin(bh__output *output, bh_error *error);
bh_status bh__output_write(bh__output *output, const void *data, size_t size, bh_error *error);
/* Closes the file. If it was created and `kept` is false, removes it. */
bh_status bh__output_close(bh__output *output, bool kept, bh_error *error);

typedef struct bh__npy {
    bh_type type; /* 0: raw elements of raw_size bytes ('V2') */
    size_t raw_size;
    uint64_t count; /* elements, all dimensions together */
    size_t offset;  /* of the first element in the file */
} bh__npy;

bool bh__npy_is(const bh__bytes *file);
bool bh__npy_name(const char *path);
bh_status bh__npy_parse(const char *path, const bh__bytes *file, bh__npy *out, bh_error *error);
/* Writes the header of a one-dimensional version 1 file. Returns its length. bf16 is written as
 * '<V2'. */
#define BH__NPY_HEADER 128
size_t bh__npy_header(bh_type type, uint64_t count, char out[BH__NPY_HEADER]);

/* ---- the NVIDIA driver, without initializing it (nvidia.c) ---- */

typedef struct bh__nvidia {
    unsigned gpus;          /* on the PCI bus */
    bool control;           /* /dev/nvidiactl exists */
    bool library;           /* libcuda.so.1 can be loaded */
    int version;            /* 13000 for CUDA 13.0; 0: not known */
    char library_path[512]; /* symbolic links resolved; empty: not known */
    char library_version[32];
    char module_version[32]; /* of the kernel module; empty: not loaded, or not known */
    char denied[64];         /* a device file that this user may not open; empty: none */
    bool no_memory_file;     /* /dev/nvidia-uvm does not exist */
} bh__nvidia;

void bh__nvidia_look(bh__nvidia *out);

/* ---- JSON (json.c) ---- */

/* Writes one document, with commas and indentation. */
typedef struct bh__json {
    FILE *to;
    int depth;
    uint64_t filled;  /* bit per depth: it has a member already */
    uint64_t inline_; /* bit per depth: on one line */
    bool after_key;
} bh__json;

void bh__json_begin(bh__json *json, FILE *to);
void bh__json_open(bh__json *json, char bracket);        /* '{' or '[' */
void bh__json_open_inline(bh__json *json, char bracket); /* ... on one line */
void bh__json_close(bh__json *json, char bracket);       /* '}' or ']' */
void bh__json_key(bh__json *json, const char *key);
void bh__json_text(bh__json *json, const char *text);
void bh__json_text_n(bh__json *json, const char *text, size_t length);
void bh__json_number(bh__json *json, uint64_t number);
void bh__json_bool(bh__json *json, bool value);
void bh__json_raw(bh__json *json, const char *text);
/* Writes an error as an object: message, fix, device code and kernel. */
void bh__json_error(bh__json *json, const bh_error *error);
void bh__json_end(bh__json *json);

/* ---- printing buffers (print.c) ---- */

typedef struct bh__style {
    bool hex;
    bool all;
} bh__style;

/* Reads `count` elements, starting at element `first`, into `target`. */
typedef bh_status bh__reader(void *context, uint64_t first, uint64_t count, void *target);

/* Prints "TYPE[COUNT] v v v ..." and a newline. */
bh_status bh__print_line(FILE *to, bh_type type, uint64_t count, bh__style style, bh__reader *read,
                         void *context);
/* Writes the member "values", or for long buffers "first", "omitted" and "last". */
bh_status bh__print_json(bh__json *json, bh_type type, uint64_t count, bh__style style,
                         bh__reader *read, void *context);

/* ---- times and sizes as text (text.c) ---- */

#define BH__TEXT 32
const char *bh__text_time(uint64_t ns, char out[BH__TEXT]);
const char *bh__text_size(uint64_t bytes, char out[BH__TEXT]);
uint64_t bh__now_ns(void);

/* Shows on a terminal what is running, once it has taken a second. */
typedef struct bh__progress {
    const char *what; /* borrowed */
    uint64_t since_ns;
    uint64_t shown_s;
    bool terminal;
} bh__progress;

void bh__progress_begin(bh__progress *progress, const char *what);
void bh__progress_tick(bh__progress *progress);
void bh__progress_end(bh__progress *progress);
/* Like bh_wait, and shows progress meanwhile. */
bh_status bh__progress_wait(bh__progress *progress, bh_ticket ticket, uint64_t timeout_ns);

/* ---- subcommands: each receives the words after its name and returns the exit status ---- */

int bh__devices_main(int count, char **list);
int bh__run_main(int count, char **list);
int bh__demo_main(int count, char **list);
int bh__doctor_main(int count, char **list);
int bh__compile_main(int count, char **list);
int bh__link_main(int count, char **list);
int bh__cache_main(int count, char **list);
int bh__top_main(int count, char **list);
int bh__serve_main(int count, char **list);
int bh__bench_main(int count, char **list);

/* Prints a help text (help.c). NULL: the overview. Returns false if there is no such topic. */
bool bh__help_print(FILE *to, const char *topic);

/* The kernels of the demo as PTX (demo_kernels.c). */
extern const char bh__demo_ptx[];

#endif
