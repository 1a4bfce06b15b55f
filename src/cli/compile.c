/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead compile` and `bulkhead cache`: not in this version, and they say so. */
#include "cli.h"

#include <string.h>

static int refuse(const char *name, int count, char **list, const char *what, const char *fix) {
    if (count > 0 && (strcmp(list[0], "--help") == 0 || strcmp(list[0], "-h") == 0)) {
        bh__help_print(stdout, name);
        return BH__EXIT_DONE;
    }
    bh_error error;
    bh__report_set(&error, BH_E_UNSUPPORTED, "%s", what);
    bh__report_fix(&error, "%s", fix);
    bh__report_print(&error);
    return BH__EXIT_REFUSED;
}

int bh__compile_main(int count, char **list) {
    return refuse("compile", count, list,
                  "bulkhead compile: this version has no compiler behind it",
                  "compile to PTX with nvcc --ptx FILE.cu, or with clang++ -S --cuda-device-only "
                  "--cuda-gpu-arch=sm_75 FILE.cu, and run that");
}

int bh__cache_main(int count, char **list) {
    return refuse("cache", count, list,
                  "bulkhead cache: this version compiles nothing and has no cache",
                  "there is nothing to list or clear; run PTX files with bulkhead run");
}
