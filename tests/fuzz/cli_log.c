/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiler said, shown beside the source it is about: a log, a NUL, a name, a NUL, the
 * source. */
#include <stdio.h>

#include "cli/source.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static FILE *nowhere;
    fuzz_input in = {data, size};
    if (!nowhere) nowhere = fopen("/dev/null", "we");
    FUZZ_CHECK(nowhere != NULL);
    char *log = fuzz_text(&in, 0, NULL), *name = fuzz_text(&in, 0, NULL);
    char *source = fuzz_text(&in, 0, NULL);
    bh__source_print_log(nowhere, log, name, source);
    free(log);
    free(name);
    free(source);
    return 0;
}
