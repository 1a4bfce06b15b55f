/* SPDX-License-Identifier: Apache-2.0 */
/* The lexer: converts text to tokens, one at a time, and records errors. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/parse/parse.h"

static bool word_start(unsigned char c) {
    return isalpha(c) || c == '_' || c == '$' || c == '%';
}

static bool word_part(unsigned char c) {
    return isalnum(c) || c == '_' || c == '$';
}

static unsigned char at(const bh__ptx_parser *p, uint32_t offset) {
    return p->length - p->at > offset ? (unsigned char)p->text[p->at + offset] : 0;
}

/* Behind the blanks at `from`. */
static uint32_t skip_blanks(const bh__ptx_parser *p, uint32_t from) {
    while (from < p->length && (p->text[from] == ' ' || p->text[from] == '\t')) {
        from++;
    }
    return from;
}

/* Whether only blanks are before the lexer on its line. */
static bool starts_line(const bh__ptx_parser *p) {
    uint32_t i = p->at;
    while (i > 0 && (p->text[i - 1] == ' ' || p->text[i - 1] == '\t')) {
        i--;
    }
    return i == 0 || p->text[i - 1] == '\n';
}

/* #line NUMBER "name" or # NUMBER "name", up to the end of the line; the name may be missing.
 * Returns false if it is neither. */
static bool line_directive(bh__ptx_parser *p) {
    bh__ptx_module *m = p->module;
    uint32_t i = skip_blanks(p, p->at + 1);
    if (p->length - i > 4 && memcmp(p->text + i, "line", 4) == 0) {
        i = skip_blanks(p, i + 4);
    }
    uint32_t digits = i, shown = 0;
    for (; i < p->length && isdigit((unsigned char)p->text[i]) && shown < 100000000; i++) {
        shown = shown * 10 + (uint32_t)(p->text[i] - '0');
    }
    if (i == digits || !starts_line(p)) {
        return false;
    }
    i = skip_blanks(p, i);
    uint32_t start = i + 1, length = 0;
    if (i < p->length && p->text[i] == '"') {
        for (i++; i < p->length && p->text[i] != '"' && p->text[i] != '\n'; i++) {
            length++;
        }
    }
    while (i < p->length && p->text[i] != '\n') {
        i++;
    }
    if (length == 0 && m->mark_count > 0) { /* still the same file */
        start = m->marks[m->mark_count - 1].start;
        length = m->marks[m->mark_count - 1].length;
    }
    bh__ptx_mark *marks =
        bh__arena_grow(&m->arena, m->marks, m->mark_count, &m->mark_capacity, sizeof *marks);
    if (marks == NULL) {
        return bh__ptx_no_memory(p);
    }
    m->marks = marks;
    marks[m->mark_count++] = (bh__ptx_mark){p->line + 1, shown, start, length};
    p->at = i;
    return true;
}

static void skip_space(bh__ptx_parser *p) {
    while (p->at < p->length) {
        unsigned char c = (unsigned char)p->text[p->at];
        if (c == '\n') {
            p->line++;
            p->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            p->at++;
        } else if (c == '/' && at(p, 1) == '/') {
            while (p->at < p->length && p->text[p->at] != '\n') {
                p->at++;
            }
        } else if (c == '/' && at(p, 1) == '*') {
            p->at += 2;
            while (p->at < p->length && !(p->text[p->at] == '*' && at(p, 1) == '/')) {
                p->line += p->text[p->at] == '\n';
                p->at++;
            }
            p->at = p->length - p->at < 2 ? p->length : p->at + 2;
        } else if (c != '#' || !line_directive(p)) {
            break;
        }
    }
}

static int digit_value(unsigned char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (unsigned char)tolower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* 0f and 0d: the bits of a float or double in exactly 8 or 16 hexadecimal digits. */
static void lex_float_bits(bh__ptx_parser *p, bh__ptx_token *t) {
    unsigned digits = tolower(at(p, 1)) == 'f' ? 8 : 16;
    t->single = digits == 8;
    t->kind = TOKEN_FLOAT;
    p->at += 2;
    for (unsigned i = 0; i < digits; i++, p->at++) {
        int digit = digit_value(at(p, 0));
        if (digit > 15) {
            t->kind = TOKEN_BAD;
            t->problem =
                digits == 8 ? "0f needs 8 hexadecimal digits" : "0d needs 16 hexadecimal digits";
            return;
        }
        t->value = t->value << 4 | (unsigned)digit;
    }
}

static void lex_decimal_float(bh__ptx_parser *p, bh__ptx_token *t) {
    char copy[128];
    uint32_t n = 0;
    while (n < sizeof copy - 1) {
        unsigned char c = at(p, n);
        bool sign = (c == '+' || c == '-') && n > 0 && tolower((unsigned char)copy[n - 1]) == 'e';
        if (!isdigit(c) && c != '.' && tolower(c) != 'e' && !sign) {
            break;
        }
        copy[n++] = (char)c;
    }
    copy[n] = 0;
    char *end;
    double value = strtod(copy, &end);
    p->at += (uint32_t)(end - copy);
    t->kind = TOKEN_FLOAT;
    memcpy(&t->value, &value, 8);
}

static void lex_number(bh__ptx_parser *p, bh__ptx_token *t) {
    unsigned char second = (unsigned char)tolower(at(p, 1));
    unsigned base = 10;
    if (at(p, 0) == '0' && (second == 'f' || second == 'd')) {
        lex_float_bits(p, t);
        return;
    }
    uint32_t n = 0;
    while (isdigit(at(p, n))) {
        n++;
    }
    if (at(p, n) == '.' && isdigit(at(p, n + 1))) {
        lex_decimal_float(p, t);
        return;
    }
    if (tolower(at(p, n)) == 'e' &&
        (isdigit(at(p, n + 1)) || at(p, n + 1) == '+' || at(p, n + 1) == '-')) {
        lex_decimal_float(p, t);
        return;
    }
    if (at(p, n) == '.' && !word_part(at(p, n + 1))) {
        lex_decimal_float(p, t);
        return;
    }
    if (at(p, 0) == '0' && second == 'x') {
        base = 16;
        p->at += 2;
    } else if (at(p, 0) == '0' && second == 'b') {
        base = 2;
        p->at += 2;
    } else if (at(p, 0) == '0' && isdigit(second)) {
        base = 8;
    }
    t->kind = TOKEN_INT;
    bool any = false, overflow = false;
    for (;; p->at++, any = true) {
        int digit = digit_value(at(p, 0));
        if (digit >= (int)base) {
            break;
        }
        overflow |= __builtin_mul_overflow(t->value, (uint64_t)base, &t->value);
        overflow |= __builtin_add_overflow(t->value, (uint64_t)digit, &t->value);
    }
    if (at(p, 0) == 'U') {
        t->is_unsigned = true;
        p->at++;
    }
    if (!any || overflow || word_part(at(p, 0))) {
        t->kind = TOKEN_BAD;
        t->problem = overflow ? "the number does not fit in 64 bits" : "this is not a number";
    }
}

static void lex_string(bh__ptx_parser *p, bh__ptx_token *t) {
    p->at++;
    while (p->at < p->length && p->text[p->at] != '"') {
        if (p->text[p->at] == '\n') {
            p->line++;
        }
        p->at += p->text[p->at] == '\\' && p->length - p->at > 1 ? 2 : 1;
    }
    if (p->at >= p->length) {
        p->at = p->length;
        t->kind = TOKEN_BAD;
        t->problem = "the string is not terminated";
        return;
    }
    p->at++;
    t->kind = TOKEN_STRING;
}

void bh__ptx_lex(bh__ptx_parser *p, bh__ptx_token *t) {
    skip_space(p);
    *t = (bh__ptx_token){.kind = TOKEN_END, .start = p->at, .line = p->line};
    if (p->at >= p->length) {
        return;
    }
    unsigned char c = (unsigned char)p->text[p->at];
    if (word_start(c) && (c != '%' || word_part(at(p, 1)))) {
        t->kind = TOKEN_WORD;
        p->at++;
        while (word_part(at(p, 0))) {
            p->at++;
        }
    } else if (c == '.' && (word_part(at(p, 1)))) {
        t->kind = TOKEN_DOT;
        p->at++;
        while (word_part(at(p, 0)) || (at(p, 0) == ':' && at(p, 1) == ':')) {
            p->at += at(p, 0) == ':' ? 2 : 1;
        }
    } else if (isdigit(c)) {
        lex_number(p, t);
    } else if (c == '"') {
        lex_string(p, t);
    } else if (c < 128 && c > ' ' && strchr("()[]{}<>,;:|!@+-*/%&^~=?", c) != NULL) {
        t->kind = TOKEN_PUNCT;
        t->punct = c;
        p->at++;
        unsigned char d = at(p, 0);
        bool two = (strchr("<>&|", c) != NULL && d == c) || (strchr("<>=!", c) != NULL && d == '=');
        if (two) {
            t->punct = (uint16_t)(c << 8 | d);
            p->at++;
        }
    } else {
        t->kind = TOKEN_BAD;
        t->problem = "this character is not allowed in PTX";
        p->at++;
    }
    t->length = p->at - t->start;
}

void bh__ptx_next(bh__ptx_parser *p) {
    if (p->has_ahead) {
        p->token = p->ahead;
        p->has_ahead = false;
    } else {
        bh__ptx_lex(p, &p->token);
    }
}

const bh__ptx_token *bh__ptx_peek(bh__ptx_parser *p) {
    if (!p->has_ahead) {
        bh__ptx_lex(p, &p->ahead);
        p->has_ahead = true;
    }
    return &p->ahead;
}

bool bh__ptx_is(const bh__ptx_parser *p, uint16_t punct) {
    return p->token.kind == TOKEN_PUNCT && p->token.punct == punct;
}

bool bh__ptx_is_dot(const bh__ptx_parser *p, const char *word) {
    size_t n = strlen(word);
    return p->token.kind == TOKEN_DOT && p->token.length == n + 1 &&
           memcmp(p->text + p->token.start + 1, word, n) == 0;
}

bool bh__ptx_accept(bh__ptx_parser *p, uint16_t punct) {
    if (!bh__ptx_is(p, punct)) {
        return false;
    }
    bh__ptx_next(p);
    return true;
}

bool bh__ptx_accept_dot(bh__ptx_parser *p, const char *word) {
    if (!bh__ptx_is_dot(p, word)) {
        return false;
    }
    bh__ptx_next(p);
    return true;
}

static void show_token(const bh__ptx_parser *p, char *out, size_t size) {
    if (p->token.kind == TOKEN_END) {
        snprintf(out, size, "the end of the file");
        return;
    }
    int n = p->token.length > 40 ? 40 : (int)p->token.length;
    snprintf(out, size, "'%.*s'", n, p->text + p->token.start);
    for (char *c = out; *c != 0; c++) {
        *c = isprint((unsigned char)*c) ? *c : '?';
    }
}

bool bh__ptx_expect(bh__ptx_parser *p, uint16_t punct, const char *where) {
    if (bh__ptx_accept(p, punct)) {
        return true;
    }
    char found[64];
    show_token(p, found, sizeof found);
    if (p->token.kind == TOKEN_END) {
        return bh__ptx_bad(p, BH_E_LOAD, "pass the whole PTX text; this text is cut off",
                           "the file ends where '%c' is expected %s", punct, where);
    }
    return bh__ptx_bad(p, BH_E_LOAD, "compile the source again, or correct the line",
                       "found %s where '%c' is expected %s", found, punct, where);
}

void bh__ptx_skip_line(bh__ptx_parser *p) {
    uint32_t line = p->token.line;
    while (p->token.kind != TOKEN_END && p->token.line == line) {
        bh__ptx_next(p);
    }
}

bool bh__ptx_bad(bh__ptx_parser *p, bh_status status, const char *fix, const char *format, ...) {
    if (p->status != BH_OK) {
        return false;
    }
    char what[320];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (p->token.kind == TOKEN_BAD) {
        snprintf(what, sizeof what, "%s", p->token.problem);
        fix = "pass PTX text, as nvcc --ptx or clang -S write it";
        status = BH_E_LOAD;
    }
    uint32_t length = 0;
    while (p->statement + length < p->length && length < 200) {
        char c = p->text[p->statement + length];
        if (c == '\n' && p->statement + length >= p->token.start) {
            break;
        }
        length++;
        if (c == ';') {
            break;
        }
    }
    p->status = bh__ptx_error_at(p->module, p->error, status, p->statement_line, p->statement,
                                 length, fix, "%s", what);
    return false;
}

bool bh__ptx_no_memory(bh__ptx_parser *p) {
    if (p->status == BH_OK) {
        p->status = bh__fail(p->error, BH_E_NO_HOST_MEMORY, "free memory, or load a smaller module",
                             "no memory to load a module of %u bytes", (unsigned)p->length);
    }
    return false;
}
