/* SPDX-License-Identifier: Apache-2.0 */
/* Scans PTX text: kernels with their parameters, variables, the target. The driver compiles the
 * text and decides whether it is valid; what the driver assumes (text without zero bytes, limited
 * nesting) is checked here. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/image/image.h"
#include "writes/writes.h"

enum { MAX_NESTING = 500 };

typedef struct scanner {
    bh__module_image *image;
    const char *at, *end;
    size_t line;
    const char *token; /* the last one read */
    size_t length;
} scanner;

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static void skip_blanks(scanner *s) {
    while (s->at < s->end) {
        if (*s->at == '\n') s->line++;
        if (isspace((unsigned char)*s->at)) {
            s->at++;
        } else if (*s->at == '#' || /* #line */
                   (s->end - s->at >= 2 && s->at[0] == '/' && s->at[1] == '/')) {
            while (s->at < s->end && *s->at != '\n') s->at++;
        } else if (s->end - s->at >= 2 && s->at[0] == '/' && s->at[1] == '*') {
            for (s->at += 2; s->at < s->end; s->at++) {
                if (*s->at == '\n') s->line++;
                if (s->end - s->at >= 2 && s->at[0] == '*' && s->at[1] == '/') break;
            }
            s->at = s->end - s->at >= 2 ? s->at + 2 : s->end;
        } else {
            return;
        }
    }
}

/* Reads a word, a word with a dot before it, a string, or one other character. False: the end. */
static bool next(scanner *s) {
    skip_blanks(s);
    s->token = s->at;
    if (s->at == s->end) {
        s->length = 0;
        return false;
    }
    if (*s->at == '"') {
        for (s->at++; s->at < s->end && *s->at != '"' && *s->at != '\n';) s->at++;
        if (s->at < s->end && *s->at == '"') s->at++;
    } else if (*s->at == '.' || is_word(*s->at)) {
        s->at++;
        while (s->at < s->end && is_word(*s->at)) s->at++;
    } else {
        s->at++;
    }
    s->length = (size_t)(s->at - s->token);
    return true;
}

static bool is(const scanner *s, const char *text) {
    return s->length == strlen(text) && memcmp(s->token, text, s->length) == 0;
}

static uint64_t number(const scanner *s) {
    char text[24];
    snprintf(text, sizeof text, "%.*s", (int)(s->length < 23 ? s->length : 23), s->token);
    return strtoull(text, NULL, 0);
}

static uint32_t width_of(const scanner *s) {
    static const struct {
        const char *name;
        uint32_t bytes;
    } types[] = {{".b8", 1},      {".u8", 1},        {".s8", 1},    {".b16", 2},    {".u16", 2},
                 {".s16", 2},     {".f16", 2},       {".bf16", 2},  {".b32", 4},    {".u32", 4},
                 {".s32", 4},     {".f32", 4},       {".f16x2", 4}, {".bf16x2", 4}, {".b64", 8},
                 {".u64", 8},     {".s64", 8},       {".f64", 8},   {".b128", 16},  {".texref", 8},
                 {".surfref", 8}, {".samplerref", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is(s, types[i].name)) return types[i].bytes;
    return 0;
}

/* Reads the rest of a word that may contain dots: a version, a target. */
static void read_phrase(scanner *s, char *out, size_t size) {
    skip_blanks(s);
    size_t used = 0;
    while (s->at < s->end && (is_word(*s->at) || *s->at == '.')) {
        if (used + 1 < size) out[used++] = *s->at;
        s->at++;
    }
    out[used] = '\0';
}

/* Reads one declaration: type, alignment and dimensions, up to a comma or the end of the list. */
typedef struct declaration {
    const char *name;
    size_t length;
    uint64_t width, count, align;
    bool pointer, real;
} declaration;

static void read_declaration(scanner *s, declaration *d, const char *enders) {
    d->count = 1;
    d->name = NULL;
    while (next(s) && !strchr(enders, *s->token)) {
        uint32_t width = width_of(s);
        if (width) {
            d->width = width * (d->width > 16 ? d->width >> 16 : 1);
            d->real = is(s, ".f64");
        } else if (is(s, ".v2") || is(s, ".v4")) {
            d->width = (uint64_t)(s->token[2] - '0') << 16; /* until the type is known */
        } else if (is(s, ".ptr")) {
            d->pointer = true;
        } else if (is(s, ".align")) {
            if (next(s) && !d->pointer) d->align = number(s);
        } else if (is(s, ".attribute") || *s->token == '(') {
            while (!(*s->token == ')' && s->length == 1) && next(s)) {
            }
        } else if (*s->token == '[') {
            if (next(s) && *s->token != ']') {
                d->count *= number(s);
                next(s);
            } else {
                d->count = 0;
            }
        } else if (*s->token != '.' && is_word(*s->token) && !d->name) {
            d->name = s->token;
            d->length = s->length;
        }
    }
}

static void read_params(scanner *s, bh__module_image_kernel *kernel) {
    uint64_t offset = 0;
    do {
        declaration d = {0};
        read_declaration(s, &d, ",)");
        if (!d.name || !d.width || d.count == 0) continue;
        uint64_t align = d.align ? d.align : d.width, bytes = d.width * d.count;
        if (align == 0 || align > 1 << 16 || bytes > 1 << 20) continue;
        offset = (offset + align - 1) / align * align;
        bh__module_image_add_param(s->image, kernel,
                                   (bh__blob_param){.offset = (uint32_t)offset,
                                                    .bytes = (uint32_t)bytes,
                                                    .pointer = d.pointer,
                                                    .scalar = d.real && bytes == 8});
        offset += bytes;
    } while (s->length == 1 && *s->token == ',');
}

/* Reads from the name of a kernel to where its body begins. */
static void read_entry(scanner *s) {
    if (!next(s)) return;
    bh__module_image_kernel *kernel = bh__module_image_add_kernel(s->image, s->token, s->length);
    if (!kernel) return;
    while (next(s)) {
        if (*s->token == '(') {
            read_params(s, kernel);
        } else if (is(s, ".reqntid")) {
            for (int i = 0; i < 3; i++) {
                kernel->required[i] = next(s) ? (uint32_t)number(s) : 1;
                skip_blanks(s);
                if (s->at == s->end || *s->at != ',') {
                    for (int k = i + 1; k < 3; k++) kernel->required[k] = 1;
                    break;
                }
                next(s);
            }
        } else if (*s->token == '{' || *s->token == ';') {
            s->at = s->token; /* the caller counts braces */
            return;
        }
    }
}

/* Reads what follows .global or .const at the outermost level. */
static void read_variables(scanner *s, bool constant, bool external) {
    declaration d = {0};
    do {
        read_declaration(s, &d, ",;={");
        bool initialised = s->length == 1 && *s->token == '=';
        for (int depth = 0; initialised && next(s);) {
            if (*s->token == '{') depth++;
            if (*s->token == '}') depth--;
            if (depth <= 0 && (*s->token == ';' || *s->token == ',')) break;
        }
        uint64_t bytes = d.width * d.count;
        if (d.name && !external)
            bh__module_image_add_variable(s->image, d.name, d.length, bytes > 0 ? bytes : 1,
                                          constant);
    } while (s->length == 1 && *s->token == ',');
}

static bh_status refuse_nesting(const scanner *s, bh_error *error) {
    return bh__fail(error, BH_E_LOAD, "load PTX as a compiler wrote it",
                    "line %zu: blocks are nested more than %d deep", s->line, MAX_NESTING);
}

static bh_status scan(scanner *s, bh_error *error) {
    int depth = 0;
    bool external = false, begins = true; /* a statement */
    while (next(s)) {
        char c = *s->token;
        bool first = begins;
        begins = s->length == 1 && strchr(";:{}", c);
        if (c == '{') {
            if (++depth > MAX_NESTING) return refuse_nesting(s, error);
        } else if (c == '}') {
            depth -= depth > 0;
            external = false;
        } else if (c == ';') {
            external = false;
        } else if (is(s, "vprintf")) {
            s->image->prints = true;
        } else if (depth == 0 && is(s, ".target")) {
            read_phrase(s, s->image->target, sizeof s->image->target);
        } else if (depth == 0 && is(s, ".extern")) {
            external = true;
        } else if (depth == 0 && is(s, ".entry")) {
            read_entry(s);
        } else if (depth == 0 && (is(s, ".global") || is(s, ".const"))) {
            read_variables(s, c == '.' && s->token[1] == 'c', external);
            external = false;
        } else if (depth > 0 && first && is(s, ".loc")) {
            while (s->at < s->end && *s->at != '\n') s->at++;
            begins = true;
        } else if (depth > 0 && first && is(s, ".global")) {
            read_variables(s, false,
                           false); /* has no name outside, but keeps what is written to it */
            begins = true;
        } else if (depth == 0 && c == '(' && s->length == 1) {
            while (!(*s->token == ')' && s->length == 1) && next(s)) {
            } /* a function's parameters */
        }
    }
    return BH_OK;
}

static void find_written(bh__module_image *image, const char *text, size_t size) {
    bh__writes *writes = image->variable_count ? bh__writes_of_ptx(text, size) : NULL;
    for (size_t i = 0; i < image->variable_count; i++) {
        bh__module_image_variable *variable = &image->variables[i];
        variable->written = !variable->constant && bh__writes_has(writes, variable->name);
    }
    bh__writes_free(writes);
}

bh_status bh__module_image_read_ptx(bh__module_image *image, const char *text, size_t size,
                                    bh_error *error) {
    while (size && text[size - 1] == '\0') size--;
    image->kind = BH__MODULE_IMAGE_PTX;
    image->names_known = true;
    scanner s = {.image = image, .at = text, .end = text + size, .line = 1};
    if (!next(&s) || !is(&s, ".version"))
        return bh__fail(
            error, BH_E_LOAD, "load PTX text, a cubin or a fatbin",
            "line %zu: the image of %zu bytes is not PTX (it does not begin with .version), nor a "
            "cubin or a fatbin",
            s.line, size);
    read_phrase(&s, image->version, sizeof image->version);
    const char *nul = memchr(text, '\0', size);
    if (nul)
        return bh__fail(error, BH_E_LOAD, "load PTX as a compiler wrote it",
                        "the PTX has a zero byte at offset %zu, in or after line %zu",
                        (size_t)(nul - text), s.line);
    bh_status status = scan(&s, error);
    if (status != BH_OK) return status;
    image->lines = s.line;
    find_written(image, text, size);
    image->text = strndup(text, size);
    if (!image->text) image->failed = true;
    image->bytes = image->text;
    return BH_OK;
}
