/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a worker with NVIDIA's driver in it may open. All can be read, because the places of
 * the driver's parts differ from system to system. Only its device files, its cache and what it
 * needs to run can be written. */
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "cuda/state.h"

/* If one of these is missing, the driver may start a program that creates it, with privileges that
 * a confined process cannot pass on. */
static bool has_device_files(void) {
    return access("/dev/nvidiactl", F_OK) == 0 && access("/dev/nvidia-uvm", F_OK) == 0;
}

/* With one of these the driver writes dumps and logs to any path. */
static const char *find_output_variable(void) {
    static const char *const names[] = {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
                                        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "CUDA_LOG_FILE"};
    static const char *const reasons[] = {
        "CUDA_ENABLE_COREDUMP_ON_EXCEPTION lets the driver write anywhere",
        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP lets the driver write anywhere",
        "CUDA_LOG_FILE lets the driver write anywhere"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (bh__environment(names[i])) return reasons[i];
    }
    return NULL;
}

static void add_device_files(bh__file_list *out) {
    glob_t found;
    if (glob("/dev/nvidia*", 0, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc; i++) bh__file_list_add(out, found.gl_pathv[i], true);
}

/* The driver's cache of compiled code. It would create the folder itself, but cannot once files are
 * confined. */
static void add_cache(bh__file_list *out) {
    static char folder[4096];
    const char *given = bh__environment("CUDA_CACHE_PATH"), *home = bh__environment("HOME");
    if (given) {
        mkdir(given, 0700);
        bh__file_list_add(out, given, true);
    } else if (home) {
        snprintf(folder, sizeof folder, "%s/.nv", home);
        mkdir(folder, 0700);
        snprintf(folder, sizeof folder, "%s/.nv/ComputeCache", home);
        mkdir(folder, 0700);
        bh__file_list_add(out, folder, true);
    }
}

const char *bh__cuda_files(bh__file_list *out) {
    const char *reason = find_output_variable(),
               *pipes = bh__environment("CUDA_MPS_PIPE_DIRECTORY");
    if (reason) return reason;
    if (!has_device_files()) return "/dev/nvidiactl or /dev/nvidia-uvm does not exist yet";
    bh__file_list_add(out, "/", false);
    bh__file_list_add(out, "/proc/self", true); /* names of threads */
    bh__file_list_add(out, "/dev/null", true);
    bh__file_list_add(out, "/dev/shm", true);
    bh__file_list_add(out, pipes ? pipes : "/tmp/nvidia-mps", true);
    add_cache(out);
    add_device_files(out);
    return NULL;
}
