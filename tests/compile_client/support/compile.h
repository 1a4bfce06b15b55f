/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of compiling share: compilers to use, a cache of their own, processes of their own. */
#ifndef TESTS_COMPILE_CLIENT_COMPILE_H
#define TESTS_COMPILE_CLIENT_COMPILE_H

#include "../../support/support.h"

/* The cache folder of this test. */
const char *cache_dir(void);

/* Ends the test as skipped where the compiler is not installed. */
void need_compiler(uint32_t compiler);
void need_linker(void);

/* Options for a real compiler. */
bh_compile_options real_options(uint32_t compiler);
/* Options for the program that stands in for bulkhead-compiler. */
bh_compile_options stand_in_options(void);
/* How often that was run for a source so far. */
unsigned stand_in_runs(void);

/* A compile that must go well. */
bh_binary compile_ok(const char *source, const bh_compile_options *options);
bh_binary_info info_of(bh_binary binary);
/* Compiles and says where the result came from: BH_CACHE_MISS ... */
uint32_t compile_from(const char *source, const bh_compile_options *options);
bh_cache_info cache_info(void);

/* Runs `body` in a process of its own, in which checks count as in this one. The library must not
 * have been used before in this process: caches in memory are inherited. */
void in_process(void (*body)(void *context), void *context);

/* The entries' files. Returns how many there are; the first one's path goes to `path`. */
unsigned entry_files(char *path, size_t size);
void write_file(const char *path, const void *data, size_t size);
/* The path of a file in this test's folder. */
const char *tmp_path(char *path, size_t size, const char *name);

#endif
