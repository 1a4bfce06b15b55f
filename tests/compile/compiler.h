/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead-compiler as libbulkhead starts it: a job in, an answer out. */
#ifndef TESTS_COMPILE_COMPILER_H
#define TESTS_COMPILE_COMPILER_H

#include <sys/types.h>

#include "test.h"
#include "wire/compile.h"

typedef struct outcome {
    int status; /* as waitpid tells it */
    bool answered;
    bh__compile_answer answer; /* in memory that is never freed */
    char *printed;             /* to its standard error */
    uint64_t took_ns;
} outcome;

/* Runs a job whole. */
outcome run_job(const bh__compile_job *job);

/* The same in two steps, for tests that interfere. */
typedef struct started {
    pid_t pid;
    int answer, errors;
    uint64_t since;
} started;
started start_job(const bh__compile_job *job);
outcome finish_job(started *from);

bh__bytes text(const char *from);
/* A copy that lives as long as the test. */
char *keep(const char *from);

/* A job to compile `source` for sm_80 to PTX with C++17 and ample limits; with the path of the
 * compiler that need_compiler found. */
bh__compile_job source_job(uint32_t compiler, const char *source);

/* Ends the test as skipped where that compiler is missing: BH_COMPILER_... */
void need_compiler(uint32_t compiler);

/* Runs a kernel of the answer's PTX on the CPU device with `bulkhead run`: what that printed. */
char *run_ptx(const bh__compile_answer *answer, const char *arguments);

/* A folder of this test's own. */
const char *own_folder(void);

/* A file there with these contents; returns its path. */
char *write_file(const char *name, const char *contents);

/* The record of a path; NULL: none. */
const bh__compile_read *find_read(const bh__compile_answer *answer, const char *path);

#define LIST(...)                                                                                  \
    ((bh__texts){(bh__bytes[]){__VA_ARGS__},                                                       \
                 sizeof((bh__bytes[]){__VA_ARGS__}) / sizeof(bh__bytes)})

/* Both compilers, one test each: the body is a function of the compiler. */
#define TEST_BOTH(name)                                                                            \
    static void both_##name(uint32_t compiler);                                                    \
    TEST_TIMEOUT(name##_nvrtc, 120) {                                                              \
        need_compiler(BH_COMPILER_NVRTC);                                                          \
        both_##name(BH_COMPILER_NVRTC);                                                            \
    }                                                                                              \
    TEST_TIMEOUT(name##_clang, 120) {                                                              \
        need_compiler(BH_COMPILER_CLANG);                                                          \
        both_##name(BH_COMPILER_CLANG);                                                            \
    }                                                                                              \
    static void both_##name(uint32_t compiler)

/* The outcome is an answer with this status; says what it was otherwise. */
#define REQUIRE_ANSWER(outcome, expected)                                                          \
    do {                                                                                           \
        explain_outcome(&(outcome), (expected), __FILE__, __LINE__);                               \
        REQUIRE((outcome).answered);                                                               \
        REQUIRE_EQ((outcome).answer.error.status, (expected));                                     \
    } while (0)
void explain_outcome(const outcome *o, bh_status expected, const char *file, int line);

#endif
