/* SPDX-License-Identifier: Apache-2.0 */
/* Which device a name means, and where the programs are that the library starts. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/find.h"
#include "client/internal.h"

bool bh__nvidia_present(void) {
    return access("/dev/nvidiactl", F_OK) == 0 || access("/proc/driver/nvidia/version", F_OK) == 0;
}

bh_status bh__device_name_parse(const char *name, char kind[16], uint32_t *out_index) {
    *out_index = 0;
    if (!name || !*name || strcmp(name, "auto") == 0) {
        snprintf(kind, 16, "%s", bh__nvidia_present() ? "cuda" : "cpu");
        return BH_OK;
    }
    if (strcmp(name, "cpu") == 0 || strcmp(name, "cuda") == 0) {
        snprintf(kind, 16, "%s", name);
        return BH_OK;
    }
    if (strncmp(name, "cuda:", 5) == 0 && name[5] >= '0' && name[5] <= '9') {
        char *end;
        unsigned long index = strtoul(name + 5, &end, 10);
        if (*end == 0 && index < 1024) {
            snprintf(kind, 16, "cuda");
            *out_index = (uint32_t)index;
            return BH_OK;
        }
    }
    return bh__refuse(BH_E_INVALID, "use auto, cpu, cuda or cuda:N",
                      "\"%.60s\" is not the name of a device", name);
}

static bool try_path(char *out, size_t bytes, const char *folder, int length, const char *below,
                     const char *program) {
    int used = snprintf(out, bytes, "%.*s%s/%s", length, folder, below, program);
    return used > 0 && (size_t)used < bytes && access(out, F_OK) == 0;
}

/* The folder part of a path, as a length. */
static int folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) : 0;
}

static bool beside_library(char *out, size_t bytes, const char *program) {
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)&bh__worker_find, &info) || !info.dli_fname) return false;
    char real[4096];
    if (!realpath(info.dli_fname, real)) return false;
    int length = folder_length(real);
    static const char *const below[] = {"", ("/" BULKHEAD_LIBEXEC_FROM_LIB), "/../bin"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        if (try_path(out, bytes, real, length, below[i], program)) return true;
    }
    return false;
}

static bool beside_executable(char *out, size_t bytes, const char *program) {
    char real[4096];
    ssize_t got = readlink("/proc/self/exe", real, sizeof real - 1);
    if (got <= 0) return false;
    real[got] = 0;
    int length = folder_length(real);
    return try_path(out, bytes, real, length, "", program) ||
           try_path(out, bytes, real, length, "/../libexec/bulkhead", program);
}

const char *bh__program_folder(void) {
    const char *named = secure_getenv("BULKHEAD_WORKER_DIR");
    return named && *named ? named : NULL;
}

/* Looks where no folder was given. */
static bool find_program(const char *program, char *out, size_t bytes) {
    const char *named = bh__program_folder();
    if (named) return try_path(out, bytes, named, (int)strlen(named), "", program);
    return beside_library(out, bytes, program) || beside_executable(out, bytes, program) ||
           try_path(out, bytes, BULKHEAD_LIBEXEC_DIR, (int)strlen(BULKHEAD_LIBEXEC_DIR), "",
                    program);
}

bh_status bh__worker_find(const char *worker_dir, const char *kind, char *out, size_t bytes) {
    char program[64];
    snprintf(program, sizeof program, "bulkhead-worker-%s", kind);
    if (worker_dir && *worker_dir) {
        if (try_path(out, bytes, worker_dir, (int)strlen(worker_dir), "", program)) return BH_OK;
        return bh__refuse(BH_E_NO_DEVICE,
                          "name the folder that holds the worker programs, or leave worker_dir out",
                          "there is no %s in %.300s", program, worker_dir);
    }
    if (find_program(program, out, bytes)) return BH_OK;
    const char *named = bh__program_folder();
    if (strcmp(kind, "cuda") == 0) {
        return bh__refuse(
            BH_E_NO_DEVICE, "install bulkhead-worker-cuda, or open the device \"cpu\"",
            "%s, and the worker program for it, bulkhead-worker-cuda, is not installed",
            bh__nvidia_present() ? "this machine has an NVIDIA device"
                                 : "this machine has no NVIDIA device");
    }
    return bh__refuse(BH_E_NO_DEVICE,
                      "reinstall Bulkhead, or name the folder in worker_dir or BULKHEAD_WORKER_DIR",
                      "the worker program %s was not found%s%.200s", program,
                      named ? " in BULKHEAD_WORKER_DIR, " : "", named ? named : "");
}

bh_status bh__compiler_find(const char *compiler_dir, char *out, size_t bytes, bh_error *error) {
    static const char program[] = "bulkhead-compiler";
    if (compiler_dir && *compiler_dir) {
        if (try_path(out, bytes, compiler_dir, (int)strlen(compiler_dir), "", program))
            return BH_OK;
        return bh__fail(error, BH_E_NOT_FOUND,
                        "name the folder that holds bulkhead-compiler, or leave compiler_dir out",
                        "there is no %s in %.300s", program, compiler_dir);
    }
    if (find_program(program, out, bytes)) return BH_OK;
    const char *named = bh__program_folder();
    return bh__fail(error, BH_E_NOT_FOUND,
                    "reinstall Bulkhead, or name the folder in compiler_dir or BULKHEAD_WORKER_DIR",
                    "the program that compiles, %s, was not found%s%.200s", program,
                    named ? " in BULKHEAD_WORKER_DIR, " : "", named ? named : "");
}
