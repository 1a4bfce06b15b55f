/* SPDX-License-Identifier: Apache-2.0 */
/* Several files as one program: sources are compiled to relocatable PTX, and all parts linked. */
#include <stdlib.h>
#include <string.h>

#include "source.h"

static const char *real_path(const char *path) {
    return strcmp(path, "-") == 0 ? "/dev/stdin" : path;
}

static bh_status refuse_empty(const char *path, bh_error *error) {
    bh__report_set(error, BH_E_LOAD, "%s is empty", path);
    return bh__report_fix(error, "name a file with PTX or CUDA C++ in it");
}

/* ---- sources ---- */

/* Whether the kernel of -k may be in this source: "ns::scale<float>" in one with the word scale. */
static bool may_have_kernel(const char *kernel, const bh__bytes *text) {
    if (kernel == NULL || strncmp(kernel, "_Z", 2) == 0) return false;
    size_t length = strcspn(kernel, "<"), start = length;
    while (length > 0 && kernel[length - 1] == ' ') length--;
    start = length;
    while (start > 0 && kernel[start - 1] != ':' && kernel[start - 1] != ' ') start--;
    return length > start && memmem(text->data, text->size, kernel + start, length - start) != NULL;
}

static bh_status compile(bh__parts *parts, const bh__bytes *text, bh_binary *out, bh_error *error) {
    const bh_compile_options *options = &parts->source->options;
    const char *source = (const char *)text->data;
    if (bh_compile(source, options, out) != BH_OK) {
        bh__report_library(error);
        parts->log = bh__source_last_log();
        return error->status;
    }
    bh_binary_info info = BH_INIT(info);
    if (bh_binary_get_info(*out, &info) != BH_OK) return bh__report_library(error);
    if (!parts->quiet) bh__source_print_log(stderr, info.log, options->name, source);
    return BH_OK;
}

/* A name expression is an error in a source that does not have the kernel; it is then compiled
 * without it. */
static bh_status compile_with_kernel(bh__parts *parts, const bh__bytes *text, bh_binary *out,
                                     bh_error *error) {
    bool named = may_have_kernel(parts->kernel, text);
    if (named) bh__source_add_name(parts->source, parts->kernel);
    bh_status status = compile(parts, text, out, error);
    if (status == BH_E_COMPILE && named) {
        free(parts->log);
        parts->log = NULL;
        memset(error, 0, sizeof *error);
        parts->source->options.expression_count--;
        status = compile(parts, text, out, error);
    }
    if (status != BH_OK && parts->log != NULL && !parts->quiet) {
        fflush(stdout);
        bh__source_print_log(stderr, parts->log, parts->source->options.name,
                             (const char *)text->data);
    }
    return status;
}

static bh_status compile_part(bh__parts *parts, const char *path, const bh__bytes *text,
                              bh_binary *out, bh_error *error) {
    bh__source *source = parts->source;
    bh_compile_options before = source->options;
    if (memchr(text->data, 0, text->size) != NULL) {
        bh__report_set(error, BH_E_INVALID, "%s contains zero bytes, so it is not a source", path);
        return bh__report_fix(error, "name a file with CUDA C++ in it");
    }
    source->options.flags |= BH_COMPILE_RELOCATABLE;
    source->options.output = BH_OUTPUT_PTX;
    bh_status status = bh__source_ready(source, path, error);
    if (status == BH_OK) status = compile_with_kernel(parts, text, out, error);
    source->options = before;
    free(source->folder);
    source->folder = NULL;
    return status;
}

/* ---- images ---- */

/* PTX gets a first line with the name of its file, which messages then have. */
static bh_status take_image(const char *path, const bh__bytes *image, bh_binary *out,
                            bh_error *error) {
    bool text = memchr(image->data, 0, image->size) == NULL;
    size_t room = text ? image->size + strlen(path) + 32 : image->size;
    char *bytes = malloc(room + 1);
    if (bytes == NULL) {
        bh__report_set(error, BH_E_NO_HOST_MEMORY, "no memory for %zu bytes of %s", room, path);
        return bh__report_fix(error, "free some memory");
    }
    size_t head = text ? (size_t)snprintf(bytes, room, "#line 1 \"%s\"\n", path) : 0;
    for (size_t i = 9; i + 2 < head; i++)
        if (bytes[i] == '"' || bytes[i] == '\\' || (unsigned char)bytes[i] < ' ') bytes[i] = '?';
    memcpy(bytes + head, image->data, image->size);
    bh_status status = bh_binary_from(bytes, head + image->size, out);
    free(bytes);
    if (status == BH_OK) return BH_OK;
    bh__report_set(error, BH_E_LOAD, "%s is not PTX, a cubin, a fatbin, LTO-IR or CUDA C++ (.cu)",
                   path);
    return bh__report_fix(error, "name files that nvcc, clang or \"bulkhead compile\" wrote");
}

static bh_status take_file(bh__parts *parts, const char *path, bh_binary *out, bh_error *error) {
    bh__bytes file;
    bh_status status = bh__file_read(real_path(path), &file, error);
    if (status != BH_OK) return status;
    if (file.size == 0)
        status = refuse_empty(path, error);
    else if (bh__source_is_cuda(path, &file))
        status = compile_part(parts, path, &file, out, error);
    else
        status = take_image(path, &file, out, error);
    free(file.data);
    return status;
}

/* ---- the link ---- */

static bool has_lines(const char *log) {
    const char *end = strchr(log, '\n');
    return end != NULL && end[1] != '\0';
}

static bh_status link_parts(bh__parts *parts, const bh_binary *binaries, bh_binary *out,
                            bh_error *error) {
    const bh_compile_options *from = &parts->source->options;
    bh_compile_options options = BH_INIT(options);
    options.flags = from->flags & ~(uint32_t)BH_COMPILE_RELOCATABLE;
    options.output = parts->output;
    options.arch = parts->arch;
    options.max_registers = from->max_registers;
    options.timeout_ns = from->timeout_ns;
    if (bh_link(binaries, parts->count, &options, out) == BH_OK) return BH_OK;
    bh__report_library(error);
    parts->log = bh__source_last_log();
    fflush(stdout);
    /* The error is the log's first line. */
    if (parts->log != NULL && !parts->quiet && has_lines(parts->log)) fputs(parts->log, stderr);
    return error->status;
}

bh_status bh__parts_link(bh__parts *parts, bh_binary *out, bh_error *error) {
    bh_binary *binaries = calloc(parts->count + 1, sizeof *binaries);
    bh_status status = BH_OK;
    if (binaries == NULL) {
        bh__report_set(error, BH_E_NO_HOST_MEMORY, "no memory for %zu files", parts->count);
        return bh__report_fix(error, "free some memory");
    }
    for (size_t i = 0; i < parts->count && status == BH_OK; i++)
        status = take_file(parts, parts->files[i], &binaries[i], error);
    if (status == BH_OK) status = link_parts(parts, binaries, out, error);
    for (size_t i = 0; i < parts->count; i++)
        if (binaries[i].id != 0) bh_binary_release(binaries[i]);
    free(binaries);
    return status;
}

void bh__parts_text(const char *const *files, size_t count, char *out, size_t size) {
    if (count == 1)
        snprintf(out, size, "%s", files[0]);
    else
        snprintf(out, size, "%.100s (and %zu other file%s)", files[0], count - 1,
                 count == 2 ? "" : "s");
}
