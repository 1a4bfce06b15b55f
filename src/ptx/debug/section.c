/* SPDX-License-Identifier: Apache-2.0 */
/* Debug sections: from directives such as `.b8 1,2` and `.b64 $L__tmp0` to bytes and references. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/debug/debug.h"

typedef struct reader {
    const char *text;
    uint32_t at, end;
    bh__ptx_section_bytes *out;
    size_t capacity, reference_capacity;
} reader;

static bool is_part(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static void skip_blanks(reader *r) {
    while (r->at < r->end) {
        const char *here = r->text + r->at;
        uint32_t left = r->end - r->at;
        if (isspace((unsigned char)*here) || *here == ',') {
            r->at++;
        } else if (left > 1 && here[0] == '/' && here[1] == '/') {
            const char *line = memchr(here, '\n', left);
            r->at = line != NULL ? (uint32_t)(line - r->text) : r->end;
        } else if (left > 1 && here[0] == '/' && here[1] == '*') {
            for (r->at += 2; r->at < r->end && memcmp(r->text + r->at - 2, "*/", 2) != 0; r->at++) {
            }
        } else {
            return;
        }
    }
}

static uint64_t read_number(reader *r) {
    char digits[24] = "";
    bool negative = r->text[r->at] == '-';
    r->at += negative || r->text[r->at] == '+';
    for (size_t n = 0; r->at < r->end && isalnum((unsigned char)r->text[r->at]); r->at++) {
        if (n + 1 < sizeof digits) {
            digits[n++] = r->text[r->at];
        }
    }
    uint64_t number = strtoull(digits, NULL, 0);
    return negative ? 0 - number : number;
}

static bool add_bytes(reader *r, uint64_t value, unsigned bytes) {
    bh__ptx_section_bytes *out = r->out;
    if (out->count + bytes > r->capacity) {
        size_t capacity = r->capacity == 0 ? 4096 : r->capacity * 2;
        uint8_t *grown = realloc(out->at, capacity);
        if (grown == NULL) {
            return false;
        }
        out->at = grown;
        r->capacity = capacity;
    }
    for (unsigned n = 0; n < bytes; n++) {
        out->at[out->count++] = (uint8_t)(value >> 8 * n);
    }
    return true;
}

static bool add_reference(reader *r, uint32_t name, uint32_t length) {
    bh__ptx_section_bytes *out = r->out;
    if (out->reference_count == r->reference_capacity) {
        size_t capacity = r->reference_capacity == 0 ? 256 : r->reference_capacity * 2;
        bh__ptx_reference *grown = realloc(out->references, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        out->references = grown;
        r->reference_capacity = capacity;
    }
    out->references[out->reference_count++] = (bh__ptx_reference){out->count, name, length};
    return true;
}

/* A number, or a name and perhaps a number to add. */
static bool read_value(reader *r, unsigned bytes) {
    char c = r->text[r->at];
    uint64_t value = 0;
    if (!isdigit((unsigned char)c) && c != '-') {
        uint32_t from = r->at;
        while (r->at < r->end && is_part(r->text[r->at])) {
            r->at++;
        }
        if (r->at == from || !add_reference(r, from, r->at - from)) {
            return false;
        }
        if (r->at < r->end && (r->text[r->at] == '+' || r->text[r->at] == '-')) {
            value = read_number(r);
        }
    } else {
        value = read_number(r);
    }
    return add_bytes(r, value, bytes);
}

/* The size of what follows `.b8` to `.b64`; 0: it is neither. A name may begin with a dot too. */
static unsigned read_directive(reader *r) {
    static const struct {
        const char *name;
        unsigned bytes;
    } directives[] = {{".b8", 1}, {".b16", 2}, {".b32", 4}, {".b64", 8}};
    for (size_t n = 0; n < sizeof directives / sizeof *directives; n++) {
        size_t length = strlen(directives[n].name);
        if (r->end - r->at > length && memcmp(r->text + r->at, directives[n].name, length) == 0 &&
            !is_part(r->text[r->at + length])) {
            r->at += (uint32_t)length;
            return directives[n].bytes;
        }
    }
    return 0;
}

void bh__ptx_section_read(const bh__ptx_module *m, const char *name, bh__ptx_section_bytes *out) {
    *out = (bh__ptx_section_bytes){0};
    for (uint32_t n = 0; n < m->section_count; n++) {
        const bh__ptx_section *s = &m->sections[n];
        if (s->name_length != strlen(name) ||
            memcmp(m->text + s->name, name, s->name_length) != 0) {
            continue;
        }
        reader r = {.text = m->text, .at = s->from, .end = s->to, .out = out};
        unsigned bytes = 0;
        for (skip_blanks(&r); r.at < r.end; skip_blanks(&r)) {
            unsigned next = read_directive(&r);
            if (next != 0) {
                bytes = next;
            } else if (bytes == 0 || !read_value(&r, bytes)) {
                bh__ptx_section_free(out);
                return;
            }
        }
        return;
    }
}

void bh__ptx_section_free(bh__ptx_section_bytes *section) {
    free(section->at);
    free(section->references);
    *section = (bh__ptx_section_bytes){0};
}

const bh__ptx_reference *bh__ptx_section_reference(const bh__ptx_section_bytes *section,
                                                   uint32_t at) {
    uint32_t low = 0, high = section->reference_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (section->references[middle].at < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < section->reference_count && section->references[low].at == at;
    return found ? &section->references[low] : NULL;
}
