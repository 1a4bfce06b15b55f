/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS's threads, which BLAS and LAPACK share in this process. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/library/library.h"

void *bh__cpu_openblas_open(const char *const *names, char *out_reason) {
    /* It starts its threads when it is loaded; they must not run before this process is confined.
     */
    bool set = getenv("OPENBLAS_NUM_THREADS") != NULL;
    if (!set) setenv("OPENBLAS_NUM_THREADS", "1", 1);
    void *handle = bh__cpu_library_open(names, out_reason);
    if (!set) unsetenv("OPENBLAS_NUM_THREADS");
    return handle;
}

/* The number is set once: calls of the other library may be running. */
void bh__cpu_openblas_begin(void *handle) {
    static void *begun;
    void (*set_threads)(int);
    void *found = dlsym(handle, "openblas_set_num_threads");
    memcpy(&set_threads, &found, sizeof found);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (found && found != begun)
        set_threads(processors > 0 && processors < 1024 ? (int)processors : 1);
    begun = found;
}
