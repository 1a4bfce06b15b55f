/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling while calls fail: with a program that stands in for the compiler and answers at once,
 * and with clang. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "page.h"
#include "world.h"

static bh_compile_options options_for(world *w, char cache[256], char programs[256]) {
    bh_compile_options options = BH_INIT(options);
    snprintf(cache, 256, "%s/cache", w->folder);
    snprintf(programs, 256, "%s/programs", w->folder);
    options.cache_dir = cache;
    options.timeout_ns = PATIENCE_NS;
    options.compiler_dir = programs;
    return options;
}

static void stand_in(const char *programs) {
    char link[300];
    snprintf(link, sizeof link, "%s/bulkhead-compiler", programs);
    (void)mkdir(programs, 0700);
    if (symlink(STAND_IN, link) != 0 && errno != EEXIST)
        fprintf(stderr, "%s cannot be made: %s\n", link, strerror(errno));
}

/* A result that is on disk and not in this process's memory: made by another process. */
static void prepare_entry(world *w, const bh_compile_options *options, const char *source) {
    pid_t child = fork();
    if (child == 0) {
        static failing_page none; /* what it holds counts for nobody */
        bh_binary binary;
        failing_use(&none);
        _exit(bh_compile(source, options, &binary) != BH_OK);
    }
    int status = 1;
    waitpid(child, &status, 0);
    HOLDS(w, status == 0);
}

void prepare_compile(world *w) {
    char cache[256], programs[256], source[64];
    bh_compile_options options = options_for(w, cache, programs);
    stand_in(programs);
    for (unsigned i = 1; i <= 2; i++) {
        snprintf(source, sizeof source, "// disk %u", w->pass + i);
        prepare_entry(w, &options, source);
    }
    world_open(w);
}

/* Results are kept in memory. */
void tidy_compile(world *w) {
    char cache[256], programs[256];
    options_for(w, cache, programs);
    TRY(w, bh_cache_clear(cache));
}

static void compile(world *w, const char *source, const bh_compile_options *options) {
    bh_binary binary;
    if (!TRY(w, bh_compile(source, options, &binary))) return;
    bh_binary_info info = BH_INIT(info);
    TRY(w, bh_binary_get_info(binary, &info));
    TRY(w, bh_binary_release(binary));
}

static void compile_module(world *w, const char *source, const bh_compile_options *options) {
    bh_module module;
    bh_ticket done;
    if (!TRY(w, bh_submit_compile(w->device, source, options, &module, &done))) return;
    TRY(w, bh_wait(done, WAIT_NS));
    TRY(w, bh_module_release(module));
}

void act_compile(world *w) {
    char cache[256], programs[256], source[64];
    bh_compile_options options = options_for(w, cache, programs);
    bh_cache_info info = BH_INIT(info);
    snprintf(source, sizeof source, "// disk %u", w->pass);
    compile(w, source, &options);
    snprintf(source, sizeof source, "// fresh %u", w->pass);
    compile(w, source, &options);
    compile(w, source, &options);
    snprintf(source, sizeof source, "// module %u", w->pass);
    compile_module(w, source, &options);
    TRY(w, bh_cache_get_info(cache, &info));
    bh_cache_entry entries[8];
    size_t count;
    TRY(w, bh_cache_list(cache, entries, sizeof *entries, 8, &count));
}

void act_compile_real(world *w) {
    char cache[256], programs[256], source[200];
    bh_compile_options options = options_for(w, cache, programs);
    options.compiler_dir = PROGRAMS;
    options.compiler = BH_COMPILER_CLANG;
    snprintf(source, sizeof source, "__global__ void k(unsigned *p) { p[threadIdx.x] = %u; }",
             w->pass);
    compile(w, source, &options);
}
