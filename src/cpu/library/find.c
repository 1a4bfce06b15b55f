/* SPDX-License-Identifier: Apache-2.0 */
/* Finding libraries on this machine. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cpu/library/library.h"

enum { REASON_BYTES = 256 };

#if defined(__SANITIZE_THREAD__)
/* ThreadSanitizer does not see how threads of libraries wait for each other. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "race:libopenblas\n"
           "race:liblapack\n"
           "race:libfftw3\n";
}
#endif

void *bh__cpu_library_open(const char *const *names, char *out_reason) {
    char reason[REASON_BYTES] = "";
    size_t used = 0;
    for (; *names; names++) {
        void *handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (handle) return handle;
        const char *why = dlerror();
        if (used < sizeof reason)
            used += (size_t)snprintf(reason + used, sizeof reason - used, "%s%.100s",
                                     used ? "; " : "", why ? why : *names);
    }
    memcpy(out_reason, reason, sizeof reason);
    return NULL;
}
