/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the programs that the library starts. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "client/core/error.h"
#include "client/process/kinds.h"
#include "client/process/programs.h"

static bool try_path(char *out, size_t bytes, const char *folder, int length, const char *below,
                     const char *program) {
    int used = snprintf(out, bytes, "%.*s%s/%s", length, folder, below, program);
    return used > 0 && (size_t)used < bytes && access(out, F_OK) == 0;
}

/* Returns the length of the folder part of a path. */
static int folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) : 0;
}

/* Returns true if only root and this user can write the path. */
static bool is_safe(const char *path, int length) {
    char part[4096];
    struct stat info;
    int used = snprintf(part, sizeof part, "%.*s", length, path);
    return used > 0 && used < (int)sizeof part && stat(part, &info) == 0 &&
           (info.st_uid == 0 || info.st_uid == geteuid()) && !(info.st_mode & (S_IWGRP | S_IWOTH));
}

/* A privileged program (set-user-ID, for example) cannot trust its own location: the user who
 * starts it may have linked it into another folder and put other programs beside it. */
static bool is_trusted(const char *path) {
    return !bh__is_privileged() ||
           (is_safe(path, (int)strlen(path)) && is_safe(path, folder_length(path)));
}

static bool beside_library(char *out, size_t bytes, const char *program) {
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)&bh__worker_find, &info) || !info.dli_fname) return false;
    char real[4096];
    if (!realpath(info.dli_fname, real)) return false;
    int length = folder_length(real);
    static const char *const below[] = {"", ("/" BULKHEAD_LIBEXEC_FROM_LIB), "/../bin"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        if (try_path(out, bytes, real, length, below[i], program) && is_trusted(out)) return true;
    }
    return false;
}

static bool beside_executable(char *out, size_t bytes, const char *program) {
    char real[4096];
    ssize_t got = readlink("/proc/self/exe", real, sizeof real - 1);
    if (got <= 0) return false;
    real[got] = 0;
    int length = folder_length(real);
    return (try_path(out, bytes, real, length, "", program) && is_trusted(out)) ||
           (try_path(out, bytes, real, length, "/../libexec/bulkhead", program) && is_trusted(out));
}

const char *bh__program_folder(void) {
    return bh__environment("BULKHEAD_WORKER_DIR");
}

/* Searches the default places. */
static bool find_program(const char *program, char *out, size_t bytes) {
    const char *named = bh__program_folder();
    if (named) return try_path(out, bytes, named, (int)strlen(named), "", program);
    return beside_library(out, bytes, program) || beside_executable(out, bytes, program) ||
           try_path(out, bytes, BULKHEAD_LIBEXEC_DIR, (int)strlen(BULKHEAD_LIBEXEC_DIR), "",
                    program);
}

/* Describes for messages where find_program searched. */
static const char *search_note(char out[300]) {
    const char *named = bh__program_folder();
    out[0] = 0;
    if (named) snprintf(out, 300, " in BULKHEAD_WORKER_DIR, %.200s", named);
    if (bh__is_privileged())
        snprintf(out, 300,
                 " in a folder that only root and this user can write, which a privileged program "
                 "requires");
    return out;
}

bh_status bh__worker_find(const char *worker_dir, const char *kind, char *out, size_t bytes) {
    char program[64];
    snprintf(program, sizeof program, "bulkhead-worker-%s", kind);
    if (worker_dir && *worker_dir) {
        if (try_path(out, bytes, worker_dir, (int)strlen(worker_dir), "", program)) return BH_OK;
        return bh__refuse(BH_E_NO_DEVICE,
                          "name the folder that holds the worker programs, or leave worker_dir out",
                          "worker_dir %.300s does not contain %s", worker_dir, program);
    }
    if (find_program(program, out, bytes)) return BH_OK;
    char note[300];
    const bh__device_kind *known = bh__device_kind_find(kind);
    if (known && known->needs) {
        char fix[128];
        snprintf(fix, sizeof fix, "install %s, or open the device \"cpu\"", program);
        return bh__refuse(BH_E_NO_DEVICE, fix,
                          "this machine has %s %s, and its worker program, %s, is not installed",
                          known->found() ? "an" : "no", known->needs, program);
    }
    return bh__refuse(BH_E_NO_DEVICE,
                      "reinstall Bulkhead, or name the folder in worker_dir or BULKHEAD_WORKER_DIR",
                      "the worker program %s was not found%s", program, search_note(note));
}

bh_status bh__compiler_find(const char *compiler_dir, char *out, size_t bytes, bh_error *error) {
    static const char program[] = "bulkhead-compiler";
    if (compiler_dir && *compiler_dir) {
        if (try_path(out, bytes, compiler_dir, (int)strlen(compiler_dir), "", program))
            return BH_OK;
        return bh__fail(error, BH_E_NOT_FOUND,
                        "name the folder that holds bulkhead-compiler, or leave compiler_dir out",
                        "compiler_dir %.300s does not contain %s", compiler_dir, program);
    }
    if (find_program(program, out, bytes)) return BH_OK;
    char note[300];
    return bh__fail(error, BH_E_NOT_FOUND,
                    "reinstall Bulkhead, or name the folder in compiler_dir or BULKHEAD_WORKER_DIR",
                    "the compiler program %s was not found%s", program, search_note(note));
}
