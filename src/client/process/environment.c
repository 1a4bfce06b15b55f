/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables that workers and compilers receive. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "client/process/environment.h"

extern char **environ;

/* The *SAN_OPTIONS are for builds with sanitizers. */
const char *const bh__compiler_variables[] = {"PATH",
                                              "HOME",
                                              "LD_LIBRARY_PATH",
                                              "CUDA_HOME",
                                              "CUDA_PATH",
                                              "VIRTUAL_ENV",
                                              "CONDA_PREFIX",
                                              "BULKHEAD_*",
                                              "ASAN_OPTIONS",
                                              "LSAN_OPTIONS",
                                              "TSAN_OPTIONS",
                                              "UBSAN_OPTIONS",
                                              NULL};

/* For privileged programs. These variables select devices and name no file. */
static const char *const privileged_variables[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                                   "NVIDIA_VISIBLE_DEVICES", NULL};

static char fixed_path[] = "PATH=/usr/local/bin:/usr/bin:/bin";

static bool matches(const char *pattern, const char *variable) {
    size_t length = strlen(pattern);
    if (pattern[length - 1] == '*') return strncmp(variable, pattern, length - 1) == 0;
    return strncmp(variable, pattern, length) == 0 && variable[length] == '=';
}

static bool is_wanted(const char *variable, const char *const *wanted) {
    if (!wanted) return true;
    while (*wanted && !matches(*wanted, variable)) wanted++;
    return *wanted;
}

char **bh__environment_for(const char *const *wanted) {
    bool privileged = bh__is_privileged();
    size_t count = 0, kept = 0;
    while (environ && environ[count]) count++;
    char **list = calloc(count + 2, sizeof *list);
    if (!list) return NULL;
    if (privileged) {
        wanted = privileged_variables;
        list[kept++] = fixed_path;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_wanted(environ[i], wanted)) list[kept++] = environ[i];
    }
    return list;
}
