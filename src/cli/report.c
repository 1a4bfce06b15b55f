/* SPDX-License-Identifier: Apache-2.0 */
/* Reporting errors, and their exit statuses. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

bh_status bh__report_set(bh_error *error, bh_status status, const char *format, ...) {
    memset(error, 0, sizeof *error);
    error->status = status;
    va_list list;
    va_start(list, format);
    vsnprintf(error->message, sizeof error->message, format, list);
    va_end(list);
    return status;
}

bh_status bh__report_fix(bh_error *error, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(error->fix, sizeof error->fix, format, list);
    va_end(list);
    return error->status;
}

/* Names of the C API that library messages contain, and what they are called on the command
 * line. */
static const struct {
    const char *name, *word;
} translations[] = {
    {"BH_IN", "in:"},
    {"BH_OUT", "out:"},
    {"BH_INOUT", "inout:"},
    {"BH_NULL", "null"},
    {"BH_DEVICE_CHECK", "--check"},
    {"BH_LAUNCH_COOPERATIVE", "--cooperative"},
    {"deadline_ns", "--timeout"},
    {"timeout_ns", "--timeout"},
    {"bh_debug_options.prints", "--print"},
    {"bh_debug_options.stop", "--stop"},
    {"bh_debug_options.threads", "--threads"},
    {"bh_compile_options.arch", "--arch"},
    {"bh_compile_options.compiler", "--compiler"},
    {"bh_compile_options.defines", "-D"},
    {"bh_compile_options.expressions", "--name"},
    {"bh_compile_options.extra", "--extra"},
    {"bh_compile_options.include_paths", "-I"},
    {"bh_compile_options.max_registers", "--max-registers"},
    {"bh_compile_options.output", "the output format"},
    {"bh_compile_options.standard", "--std"},
    {"bh_compile_options.timeout_ns", "--timeout"},
    {"BH_COMPILE_DEBUG", "--debug"},
    {"BH_COMPILE_UNCONFINED", "--unconfined"},
    {"BH_COMPILER_NVRTC", "--compiler nvrtc"},
    {"BH_COMPILER_CLANG", "--compiler clang"},
    {"BH_OUTPUT_PTX", "--ptx"},
    {"BH_OUTPUT_CUBIN", "--cubin"},
    {"BH_OUTPUT_LTOIR", "--ltoir"},
};

static const char *find_word(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof translations / sizeof translations[0]; i++)
        if (strlen(translations[i].name) == length &&
            memcmp(translations[i].name, name, length) == 0)
            return translations[i].word;
    return NULL;
}

static void translate(char *text, size_t size) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    char out[sizeof((bh_error *)0)->message];
    size_t used = 0;
    for (const char *at = text; *at != '\0' && used + 1 < size;) {
        size_t length = strspn(at, letters);
        while (length > 1 && at[length - 1] == '.') length--; /* the end of a sentence */
        const char *word = find_word(at, length);
        if (length == 0) length = 1;
        int some = snprintf(out + used, size - used, "%.*s", word ? (int)strlen(word) : (int)length,
                            word ? word : at);
        used += (size_t)some < size - used ? (size_t)some : size - used - 1;
        at += length;
    }
    out[used] = '\0';
    memcpy(text, out, used + 1);
}

void bh__report_translate(bh_error *error) {
    translate(error->message, sizeof error->message);
    translate(error->fix, sizeof error->fix);
}

bh_status bh__report_library(bh_error *error) {
    memset(error, 0, sizeof *error);
    if (bh_last_error(error) != BH_OK) {
        bh__report_translate(error);
        return error->status;
    }
    bh__report_set(error, BH_E_INTERNAL, "a call failed without an error message");
    return bh__report_fix(error, "run \"bulkhead doctor\"");
}

void bh__report_print(const bh_error *error) {
    fflush(stdout);
    fprintf(stderr, "error: %s: %s\n", bh_status_name(error->status), error->message);
    if (error->device_name[0] != '\0' && strstr(error->message, error->device_name) == NULL)
        fprintf(stderr, "Device: %s (%d)\n", error->device_name, (int)error->device_code);
    if (error->fix[0] != '\0') fprintf(stderr, "Fix: %s\n", error->fix);
}

int bh__report_usage(const bh_error *error) {
    bh__report_print(error);
    return BH__EXIT_USAGE;
}

int bh__report_exit(bh_status status) {
    switch (status) {
    case BH_OK:
        return BH__EXIT_DONE;
    case BH_E_FAULT:
    case BH_E_DEADLINE:
        return BH__EXIT_KERNEL;
    default:
        return BH__EXIT_REFUSED;
    }
}

int bh__report_flush(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    bh_error error;
    bh__report_set(&error, BH_E_IO, "standard output could not be written: %s", strerror(errno));
    bh__report_fix(&error, "check the disk or the program that reads the output");
    bh__report_print(&error);
    return code == BH__EXIT_DONE ? BH__EXIT_REFUSED : code;
}

#define MAX_WORD 32

/* The edit distance between two words. A swap of neighbours counts as one edit. */
static size_t distance(const char *a, const char *b) {
    size_t rows[3][MAX_WORD + 1];
    size_t m = strlen(a), n = strlen(b);
    if (m > MAX_WORD || n > MAX_WORD) return SIZE_MAX;
    for (size_t j = 0; j <= n; j++) rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *now = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[m % 3][n];
}

const char *bh__report_nearest(const char *text, const char *const *words, size_t count) {
    const char *nearest = NULL;
    size_t best = strlen(text) > 4 ? 3 : 2;
    for (size_t i = 0; i < count; i++) {
        size_t edits = distance(text, words[i]);
        bool is_start = strlen(text) >= 2 && strncmp(words[i], text, strlen(text)) == 0;
        if (is_start) edits = 1;
        if (edits < best) {
            best = edits;
            nearest = words[i];
        }
    }
    return nearest;
}
