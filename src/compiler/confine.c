/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a compiler can access while it compiles a source that is not trusted: the include folders
 * and the source's own, the toolchain, the system's libraries and headers. Nothing can be written.
 * Source, result and log are memfds, which have no path and stay usable. No sockets, no other
 * processes, no system administration.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compile.h"
#include "sandbox/files.h"
#include "sandbox/sandbox.h"

/* Libraries, headers, programs that scripts need, and what clang and the C library read to identify
 * the system. All are public on every system: no home, no /etc, no /proc, no /var. */
static const bh__sandbox_path system_paths[] = {
    {"/usr/lib", false},
    {"/usr/lib32", false},
    {"/usr/lib64", false},
    {"/usr/libexec", false},
    {"/usr/bin", false},
    {"/usr/include", false},
    {"/usr/local/bin", false},
    {"/usr/local/include", false},
    {"/usr/local/lib", false},
    {"/usr/local/lib64", false},
    {"/usr/share/zoneinfo", false},
    {"/bin", false},
    {"/lib", false},
    {"/lib64", false},
    {"/opt/rh", false}, /* Red Hat's newer compilers, with their headers */
    {"/nix/store", false},
    {"/gnu/store", false},
    {"/home/linuxbrew/.linuxbrew", false},
    {"/etc/ld.so.cache", false},
    {"/etc/ld.so.preload", false},
    {"/etc/localtime", false},
    {"/etc/os-release", false},
    {"/etc/lsb-release", false},
    {"/etc/debian_version", false},
    {"/etc/redhat-release", false},
    {"/dev/null", true},
    {"/dev/urandom", false},
};

enum { SYSTEM_PATHS = sizeof system_paths / sizeof *system_paths };

void bh__toolchain_add(bh__words *paths, const char *program) {
    static const char *const parts[] = {"lib", "lib32", "lib64", "libexec"};
    char real[PATH_MAX];
    const char *places[2] = {program, realpath(program, real)};
    for (int i = 0; i < 2 && places[i] != NULL; i++) {
        const char *slash = strrchr(places[i], '/');
        const char *above = slash ? memrchr(places[i], '/', (size_t)(slash - places[i])) : NULL;
        bh__words_format(paths, "%s", places[i]);
        for (size_t n = 0; n < sizeof parts / sizeof *parts && above != NULL; n++)
            bh__words_format(paths, "%.*s/%s", (int)(above - places[i]), places[i], parts[n]);
    }
}

/* "/" would allow everything: a source there has no folder of its own. */
static void add_own_folder(bh__words *paths, const char *name) {
    const char *slash = strrchr(name, '/');
    if (name[0] == '/' && slash > name) bh__words_format(paths, "%.*s", (int)(slash - name), name);
}

/* Lists the system's paths, then the job's and the toolchain's. */
static bh__sandbox_path *list_paths(bh__compile *c, const bh__words *toolchain, size_t *out_count) {
    bh__words own = {.arena = c->arena};
    bh__texts include = c->job->include_paths;
    for (size_t i = 0; i < include.count; i++) bh__words_add(&own, bh__chars(include.list[i]));
    add_own_folder(&own, bh__chars(c->job->name));
    for (size_t i = 0; i < toolchain->count; i++) bh__words_add(&own, toolchain->list[i]);
    *out_count = SYSTEM_PATHS + own.count;
    bh__sandbox_path *list = bh__arena_alloc(c->arena, *out_count, sizeof *list);
    if (list == NULL || own.failed || toolchain->failed) return NULL;
    memcpy(list, system_paths, sizeof system_paths);
    for (size_t i = 0; i < own.count; i++)
        list[SYSTEM_PATHS + i] = (bh__sandbox_path){own.list[i], false};
    return list;
}

static int confine_files(bh__compile *c, const bh__words *toolchain) {
    size_t count;
    bh__sandbox_path *list = list_paths(c, toolchain, &count);
    if (list == NULL) return -ENOMEM;
    if (bh__sandbox_files_abi() < 0)
        return 0; /* not supported by the kernel; "bulkhead doctor" says so */
    return bh__sandbox_files(list, count);
}

/* Libraries need no other programs; clang is one. */
static int confine_calls(const bh__compile *c) {
    bool starts_clang = c->job->op == BH__COMPILE_SOURCE && c->job->compiler == BH_COMPILER_CLANG;
    int result = bh__sandbox_calls(starts_clang ? BH__SANDBOX_COMPILER : BH__SANDBOX_DRIVER);
    return result == -ENOSYS || result == -EINVAL ? 0 : result; /* not supported by the kernel */
}

static bh_status refuse(bh__compile *c, int result, const char *fix) {
    if (result == -ENOMEM) return bh__compile_no_memory(c);
    return bh__fail(&c->answer->error, BH_E_COMPILE, fix, "the compiler cannot be confined: %s",
                    strerror(-result));
}

bh_status bh__confine(bh__compile *c, const bh__words *toolchain) {
    if (c->job->flags & BH_COMPILE_UNCONFINED) return BH_OK;
    int result = confine_files(c, toolchain);
    if (result == 0) result = confine_calls(c);
    if (result == 0) bh__child_confine();
    if (result == 0) return BH_OK;
    return refuse(c, result, "if both flags and source are trusted, set BH_COMPILE_UNCONFINED");
}

bh_status bh__confine_whole(bh__compile *c) {
    int result = bh__sandbox_files_abi() < 0 ? 0 : bh__sandbox_files(NULL, 0);
    if (result == 0) result = bh__sandbox_calls(BH__SANDBOX_COMPUTE);
    if (result == 0 || result == -ENOSYS || result == -EINVAL) return BH_OK;
    return refuse(c, result, "run kernels with the interpreter (BULKHEAD_EXECUTOR=interp)");
}
