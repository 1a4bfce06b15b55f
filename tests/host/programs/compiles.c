/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a kernel with clang and says what came of it, where that is kept, and whether the system
 * takes this program for one whose environment is not to be trusted. With "for-good" it first
 * becomes its owner, so that the system no longer knows that of what it starts; with "unconfined"
 * it asks for that; any other argument is the folder of bulkhead-compiler. */
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "bulkhead.h"

int main(int argc, char **argv) {
    bool for_good = argc > 1 && strcmp(argv[1], "for-good") == 0;
    if (for_good && (setregid(getegid(), getegid()) != 0 || setreuid(geteuid(), geteuid()) != 0))
        return 2;
    bh_compile_options options = BH_INIT(options);
    options.compiler = BH_COMPILER_CLANG;
    bool unconfined = argc > 1 && strcmp(argv[1], "unconfined") == 0;
    if (unconfined) options.flags = BH_COMPILE_UNCONFINED;
    if (argc > 1 && !for_good && !unconfined) options.compiler_dir = argv[1];
    bh_binary binary;
    bh_error error = {.message = ""};
    bh_cache_info cache = BH_INIT(cache);
    bh_status status = bh_compile("__global__ void k() {}\n", &options, &binary);
    if (status != BH_OK) bh_last_error(&error);
    bh_cache_get_info(NULL, &cache);
    printf("%s %s %s; cache: %s %s\n", getauxval(AT_SECURE) ? "secure" : "plain",
           bh_status_name(status), error.message, cache.dir, cache.why);
    /* At once: a sanitizer would look for leaks by tracing this process, which a privileged one
     * does not allow. */
    fflush(stdout);
    _exit(status != BH_OK);
}
