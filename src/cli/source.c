/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C++ sources: their options, reading them, and printing compiler logs. */
#include "source.h"

#include <stdlib.h>
#include <string.h>

bool bh__source_init(bh__source *source, int words) {
    memset(source, 0, sizeof *source);
    source->options = (bh_compile_options)BH_INIT(source->options);
    size_t room = (size_t)words + 2;
    source->defines = calloc(room, sizeof *source->defines);
    source->includes = calloc(room, sizeof *source->includes);
    source->expressions = calloc(room, sizeof *source->expressions);
    source->extra = calloc(room, sizeof *source->extra);
    source->options.defines = source->defines;
    source->options.include_paths = source->includes;
    source->options.expressions = source->expressions;
    source->options.extra = source->extra;
    return source->defines != NULL && source->includes != NULL && source->expressions != NULL &&
           source->extra != NULL;
}

void bh__source_free(bh__source *source) {
    free(source->defines);
    free(source->includes);
    free(source->expressions);
    free(source->extra);
    free(source->folder);
}

const char *bh__source_option_name(int id) {
    static const bh__option table[] = {BH__SOURCE_OPTIONS};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].id != id) continue;
        if (id == BH__SOURCE_DEFINE) return "-D";
        return id == BH__SOURCE_INCLUDE ? "-I" : table[i].name;
    }
    return NULL;
}

static bh_status take_word(const char *option, const char *value, const char *const *words,
                           const uint32_t *numbers, size_t count, uint32_t *out, const char *fix,
                           bh_error *error) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(value, words[i]) != 0) continue;
        *out = numbers[i];
        return BH_OK;
    }
    bh__report_set(error, BH_E_INVALID, "--%s is \"%.60s\"", option, value);
    return bh__report_fix(error, "%s", fix);
}

bh_status bh__source_take(bh__source *source, int id, const char *value, bh_error *error) {
    static const char *const standards[] = {"c++14", "c++17", "c++20"};
    static const uint32_t standard_numbers[] = {14, 17, 20};
    static const char *const compilers[] = {"auto", "nvrtc", "clang"};
    static const uint32_t compiler_numbers[] = {BH_COMPILER_AUTO, BH_COMPILER_NVRTC,
                                                BH_COMPILER_CLANG};
    bh_compile_options *o = &source->options;
    uint64_t number;
    switch (id) {
    case BH__SOURCE_DEFINE:
        source->defines[o->define_count++] = value;
        break;
    case BH__SOURCE_INCLUDE:
        source->includes[1 + o->include_path_count++] = value;
        break;
    case BH__SOURCE_STD:
        return take_word("std", value, standards, standard_numbers, 3, &o->standard,
                         "write --std=c++14, --std=c++17 or --std=c++20", error);
    case BH__SOURCE_ARCH:
        o->arch = value;
        break;
    case BH__SOURCE_COMPILER:
        return take_word("compiler", value, compilers, compiler_numbers, 3, &o->compiler,
                         "write --compiler auto, nvrtc or clang", error);
    case BH__SOURCE_FAST_MATH:
        o->flags |= BH_COMPILE_FAST_MATH;
        break;
    case BH__SOURCE_FTZ:
        o->flags |= BH_COMPILE_FLUSH_DENORMALS;
        break;
    case BH__SOURCE_DEBUG:
        o->flags |= BH_COMPILE_DEBUG;
        break;
    case BH__SOURCE_LINE_INFO:
        o->flags |= BH_COMPILE_LINE_INFO;
        break;
    case BH__SOURCE_NO_CACHE:
        o->flags |= BH_COMPILE_NO_CACHE;
        break;
    case BH__SOURCE_UNCONFINED:
        o->flags |= BH_COMPILE_UNCONFINED;
        break;
    case BH__SOURCE_EXTRA:
        source->extra[o->extra_count++] = value;
        break;
    case BH__SOURCE_REGISTERS:
        if (!bh__count_parse(value, strlen(value), &number) || number < 16 || number > 255) {
            bh__report_set(error, BH_E_INVALID,
                           "--max-registers is \"%.60s\", not a number from 16 to 255", value);
            return bh__report_fix(error, "write for example --max-registers 64");
        }
        o->max_registers = (uint32_t)number;
        break;
    }
    return BH_OK;
}

void bh__source_add_name(bh__source *source, const char *expression) {
    source->expressions[source->options.expression_count++] = expression;
}

bh_status bh__source_ready(bh__source *source, const char *path, bh_error *error) {
    const char *slash = strrchr(path, '/');
    source->folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    if (source->folder == NULL) {
        bh__report_set(error, BH_E_NO_HOST_MEMORY, "no memory for a path");
        return bh__report_fix(error, "free some memory");
    }
    source->includes[0] = source->folder;
    source->options.include_path_count++;
    source->options.name = strcmp(path, "-") == 0 ? "stdin.cu" : path;
    return BH_OK;
}

bh_status bh__source_read(const char *path, bh__bytes *out, bh_error *error) {
    bh_status status = bh__file_read(strcmp(path, "-") == 0 ? "/dev/stdin" : path, out, error);
    if (status != BH_OK) return status;
    if (out->size > 0 && memchr(out->data, 0, out->size) == NULL) return BH_OK;
    bh__report_set(error, BH_E_INVALID,
                   out->size ? "%s contains zero bytes, so it is not a source" : "%s is empty",
                   path);
    status = bh__report_fix(error, "name a file with CUDA C++ in it");
    free(out->data);
    out->data = NULL;
    return status;
}

static bool starts_with(const bh__bytes *file, const char *bytes, size_t length) {
    return file->size >= length && memcmp(file->data, bytes, length) == 0;
}

bool bh__source_ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

bool bh__source_is_cuda(const char *path, const bh__bytes *file) {
    if (bh__source_ends_with(path, ".cu") || bh__source_ends_with(path, ".cuh")) return true;
    bool binary = starts_with(file, "\177ELF", 4) || starts_with(file, "\x50\xed\x55\xba", 4);
    return !binary && memmem(file->data, file->size, "__global__", 10) != NULL &&
           memmem(file->data, file->size, ".version", 8) == NULL;
}

/* ---- compiler logs ---- */

/* Parses "NAME(12): ..." or "NAME:12:5: ...". The column is 0 if there is none. */
static bool find_place(const char *line, size_t length, const char *name, unsigned long *row,
                       unsigned long *column) {
    size_t skip = strlen(name);
    if (length < skip + 3 || memcmp(line, name, skip) != 0) return false;
    char *end;
    *column = 0;
    if (line[skip] != '(' && line[skip] != ':') return false;
    *row = strtoul(line + skip + 1, &end, 10);
    if (line[skip] == '(') return *row > 0 && end[0] == ')' && end[1] == ':';
    if (*row == 0 || *end != ':') return false;
    *column = strtoul(end + 1, &end, 10);
    return *end == ':';
}

static const char *find_line(const char *text, unsigned long row, size_t *length) {
    for (; row > 1 && text != NULL; row--) {
        text = strchr(text, '\n');
        if (text != NULL) text++;
    }
    *length = text != NULL ? strcspn(text, "\r\n") : 0;
    return text;
}

/* Returns true if one of the next lines of the log contains the source line. */
static bool is_shown(const char *after, const char *line, size_t length) {
    while (length > 0 && (*line == ' ' || *line == '\t')) {
        line++;
        length--;
    }
    if (length == 0) return true;
    for (int i = 0; i < 3 && *after != '\0'; i++) {
        size_t here = strcspn(after, "\n");
        if (memmem(after, here, line, length) != NULL) return true;
        after += here + (after[here] == '\n');
    }
    return false;
}

static void mark(FILE *to, const char *line, size_t length, unsigned long row,
                 unsigned long column) {
    size_t blank = strspn(line, " \t");
    size_t at = column > 0 && column <= length ? column - 1 : blank;
    fprintf(to, "%5lu | %.*s\n      | ", row, (int)length, line);
    for (size_t i = 0; i < at; i++) fputc(line[i] == '\t' ? '\t' : ' ', to);
    fputs("^\n", to);
}

void bh__source_print_log(FILE *to, const char *log, const char *name, const char *text) {
    while (*log != '\0') {
        size_t length = strcspn(log, "\n");
        const char *after = log + length + (log[length] == '\n');
        unsigned long row, column;
        size_t line_length;
        fprintf(to, "%.*s\n", (int)length, log);
        if (find_place(log, length, name, &row, &column)) {
            const char *line = find_line(text, row, &line_length);
            if (line != NULL && !is_shown(after, line, line_length))
                mark(to, line, line_length, row, column);
        }
        log = after;
    }
}

char *bh__source_last_log(void) {
    size_t length = 0;
    bh_compile_log(NULL, NULL, 0, &length);
    char *log = length > 0 ? malloc(length + 1) : NULL;
    if (log != NULL) bh_compile_log(NULL, log, length + 1, NULL);
    return log;
}

const char *bh__source_cache_text(uint32_t cache) {
    static const char *const texts[] = {"miss", "memory", "disk", "off"};
    return cache < 4 ? texts[cache] : "?";
}

const char *bh__source_output_text(uint32_t output) {
    static const char *const texts[] = {"?", "PTX", "cubin", "PTX and cubin", "LTO-IR"};
    return output < 5 ? texts[output] : "?";
}
