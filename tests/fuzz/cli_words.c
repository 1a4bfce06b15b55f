/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of `bulkhead run`: words, one a line. No word names a file that could be read. */
#include <stdio.h>

#include "cli/run/run.h"
#include "fuzz.h"

enum { WORDS = 32 };

/* Files are another target's business. Long lists take long, and exponents make them long too. */
static bool harmless(const char *word) {
    bool many = strstr(word, "..") || strchr(word, '*');
    size_t digits = 0;
    for (const char *at = word; *at && many; at++) {
        digits = strchr("0123456789abcdefABCDEF", *at) ? digits + 1 : 0;
        if (digits > 3 || *at == 'e' || *at == 'p') return false;
    }
    return !strchr(word, '@') && !strstr(word, ".npy");
}

static void quiet(void) {
    static FILE *nowhere;
    if (!nowhere) nowhere = fopen("/dev/null", "we");
    FUZZ_CHECK(nowhere != NULL);
    stdout = stderr = nowhere;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    char *words[WORDS + 1] = {0};
    int count = 0;
    bool run = true;
    while (in.left && count < WORDS) {
        words[count] = fuzz_text(&in, '\n', NULL);
        run = harmless(words[count++]) && run;
    }
    FILE *out = stdout, *errors = stderr;
    quiet();
    if (run) {
        bh__run_options options;
        bh__run_options_parse(count, words, &options);
        bh__run_options_free(&options);
    }
    stdout = out;
    stderr = errors;
    for (int i = 0; i < count; i++) free(words[i]);
    return run ? 0 : -1;
}
