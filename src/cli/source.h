/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C++ sources: their options, and printing compiler logs. */
#ifndef BH_CLI_SOURCE_H
#define BH_CLI_SOURCE_H

#include "cli.h"

enum {
    BH__SOURCE_DEFINE = 100,
    BH__SOURCE_INCLUDE,
    BH__SOURCE_STD,
    BH__SOURCE_ARCH,
    BH__SOURCE_COMPILER,
    BH__SOURCE_FAST_MATH,
    BH__SOURCE_FTZ,
    BH__SOURCE_DEBUG,
    BH__SOURCE_LINE_INFO,
    BH__SOURCE_REGISTERS,
    BH__SOURCE_NO_CACHE,
    BH__SOURCE_EXTRA,
    BH__SOURCE_UNCONFINED
};

/* Rows of an option table. */
#define BH__SOURCE_OPTIONS                                                                         \
    {'D', NULL, "NAME[=VALUE]", BH__SOURCE_DEFINE}, {'I', NULL, "DIR", BH__SOURCE_INCLUDE},        \
        {0, "std", "c++NN", BH__SOURCE_STD}, {0, "arch", "sm_NN", BH__SOURCE_ARCH},                \
        {0, "compiler", "auto|nvrtc|clang", BH__SOURCE_COMPILER},                                  \
        {0, "fast-math", NULL, BH__SOURCE_FAST_MATH}, {0, "ftz", NULL, BH__SOURCE_FTZ},            \
        {0, "debug", NULL, BH__SOURCE_DEBUG}, {0, "line-info", NULL, BH__SOURCE_LINE_INFO},        \
        {0, "max-registers", "N", BH__SOURCE_REGISTERS},                                           \
        {0, "no-cache", NULL, BH__SOURCE_NO_CACHE}, {0, "extra", "FLAG", BH__SOURCE_EXTRA}, {      \
        0, "unconfined", NULL, BH__SOURCE_UNCONFINED                                               \
    }

typedef struct bh__source {
    bh_compile_options options; /* the lists are complete after bh__source_ready */
    const char **defines, **includes, **expressions, **extra; /* owned arrays of borrowed texts */
    char *folder;                                             /* owned: the folder of the source */
} bh__source;

/* Makes room for as many options as there are words. Returns false if memory is exhausted. Call
 * bh__source_free in any case. */
bool bh__source_init(bh__source *source, int words);
void bh__source_free(bh__source *source);
/* Sets one of the options above. */
bh_status bh__source_take(bh__source *source, int id, const char *value, bh_error *error);
/* The option's name, for messages. */
const char *bh__source_option_name(int id);
void bh__source_add_name(bh__source *source, const char *expression);
/* Sets the file name, and adds its folder to the include paths. */
bh_status bh__source_ready(bh__source *source, const char *path, bh_error *error);

/* Reads the file and checks that it is text. */
bh_status bh__source_read(const char *path, bh__bytes *out, bh_error *error);

/* Prints a compiler log. Adds the marked source line under each message that lacks it. */
void bh__source_print_log(FILE *to, const char *log, const char *name, const char *text);
/* Returns the log of this thread's last failed compile, which the caller frees, or NULL. */
char *bh__source_last_log(void);

bool bh__source_ends_with(const char *text, const char *end);
/* By the file name, or by the contents of a file with another name. */
bool bh__source_is_cuda(const char *path, const bh__bytes *file);

/* Several files that become one program (parts.c). */
typedef struct bh__parts {
    bh__source *source; /* the options for CUDA C++ */
    const char *const *files;
    size_t count;
    const char *kernel; /* of -k, may be a name expression; NULL: none */
    uint32_t output;    /* of the link, BH_OUTPUT_... */
    const char *arch;   /* of the link; NULL: that of the first part */
    bool quiet;         /* logs are not printed */
    char *log;          /* owned by the caller: of a compile or link that failed, else NULL */
} bh__parts;

/* Compiles what is CUDA C++ and links all. Prints logs. */
bh_status bh__parts_link(bh__parts *parts, bh_binary *out, bh_error *error);
/* "a.cu (and 2 other files)" */
void bh__parts_text(const char *const *files, size_t count, char *out, size_t size);

const char *bh__source_cache_text(uint32_t cache);
const char *bh__source_output_text(uint32_t output);

#endif
