/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name expressions with clang. After the source come variables whose initialisers are the
 * expressions; the PTX then has the lowered names in it, as `__bh_name_0 = _Z1kIfEvPT_;`. The
 * variables, and the declarations of kernels that only they need, are removed again.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "compiler/compile.h"

#define VARIABLE "__bh_name_"

static void append_quoted(bh__text *text, const char *from) {
    for (; *from != 0; from++) {
        if (*from == '"' || *from == '\\') bh__text_append(text, "\\", 1);
        bh__text_append(text, *from == '\n' ? " " : from, 1);
    }
}

bh__bytes bh__names_source(bh__compile *c) {
    bh__text text = {.arena = c->arena};
    const bh__compile_job *job = c->job;
    bh__text_add(&text, "#line 1 \"");
    append_quoted(&text, bh__chars(job->name));
    bh__text_add(&text, "\"\n");
    bh__bytes source = bh__accept_alignas(c->arena, job->source);
    if (source.data == NULL && job->source.count) return source;
    bh__text_append(&text, bh__chars(source), source.count);
    for (size_t i = 0; i < job->expressions.count; i++) {
        const char *expression = bh__chars(job->expressions.list[i]);
        bh__text_add(&text, "\n#line 1 \"name expression ");
        append_quoted(&text, expression);
        bh__text_add(&text,
                     "\"\nextern \"C\" __attribute__((device, nodebug)) const void *const " VARIABLE
                     "%zu = (const void *)(",
                     i);
        bh__text_append(&text, expression, strlen(expression));
        bh__text_add(&text, ");\n");
    }
    if (text.failed) return (bh__bytes){NULL, 0};
    return bh__text_bytes(&text);
}

static bool is_name(char ch) {
    return isalnum((unsigned char)ch) || ch == '_' || ch == '$' || ch == '.' || ch == '%';
}

/* Where the line that holds `at` begins. */
static const char *line_start(const char *text, const char *at) {
    while (at > text && at[-1] != '\n') at--;
    return at;
}

typedef struct cut {
    const char *from, *to;
} cut;

typedef struct editor {
    bh__compile *c;
    const char *text, *end;
    cut *cuts;
    size_t count, room;
    bool failed;
} editor;

static void add_cut(editor *e, const char *from, const char *to) {
    cut *cuts = bh__arena_grow(e->c->arena, e->cuts, e->count, &e->room, sizeof *cuts);
    if (cuts == NULL) {
        e->failed = true;
        return;
    }
    e->cuts = cuts;
    cuts[e->count++] = (cut){from, to};
}

static bool is_cut(const editor *e, const char *at) {
    for (size_t i = 0; i < e->count; i++) {
        if (at >= e->cuts[i].from && at < e->cuts[i].to) return true;
    }
    return false;
}

/* The value of variable `index`, whose line is removed; empty if there is none. */
static bh__bytes take_value(editor *e, size_t index) {
    char wanted[48];
    int length = snprintf(wanted, sizeof wanted, " " VARIABLE "%zu = ", index);
    const char *at = memmem(e->text, (size_t)(e->end - e->text), wanted, (size_t)length);
    if (at == NULL) return (bh__bytes){NULL, 0};
    const char *from = at + length, *stop = from + strcspn(from, ";\n");
    const char *next = stop + strcspn(stop, "\n");
    add_cut(e, line_start(e->text, at), *next == '\n' ? next + 1 : next);
    if (stop - from > 8 && memcmp(from, "generic(", 8) == 0) from += 8;
    size_t name = 0;
    while (from + name < stop && is_name(from[name])) name++;
    char *copy = bh__arena_copy(e->c->arena, from, name);
    e->failed = e->failed || copy == NULL;
    return (bh__bytes){(const uint8_t *)copy, name};
}

/* True if `name` is between `from` and `to` as a word, in a line that stays and is not a comment.
 */
static bool is_used(const editor *e, const char *from, const char *to, const char *name,
                    size_t length) {
    const char *at = from;
    while ((at = memmem(at, (size_t)(to - at), name, length)) != NULL) {
        bool word = !is_name(at[length]) && (at == e->text || !is_name(at[-1]));
        const char *line = line_start(e->text, at);
        bool comment = memmem(line, (size_t)(at - line), "//", 2) != NULL;
        if (word && !comment && !is_cut(e, at)) return true;
        at += length;
    }
    return false;
}

/* A kernel that is named before it is defined is declared first:
 *     .visible .entry NAME
 *     (...)
 *     ;
 * which PTX does not require, and which nothing needs once the variables are gone. */
static void cut_declaration(editor *e, bh__bytes lowered) {
    const char *name = bh__chars(lowered);
    char *wanted = bh__text_format(e->c->arena, ".entry %s\n", name);
    if (wanted == NULL) {
        e->failed = true;
        return;
    }
    const char *at = memmem(e->text, (size_t)(e->end - e->text), wanted, strlen(wanted));
    if (at == NULL || is_cut(e, at)) return;
    const char *from = line_start(e->text, at), *body = at + strlen(wanted);
    const char *close = strstr(body, "\n;\n");
    const char *brace = strchr(body, '{');
    if (close == NULL || (brace != NULL && brace < close)) return;
    const char *to = close + 3;
    char *definition = bh__text_format(e->c->arena, ".entry %s(", name);
    const char *defined =
        definition ? memmem(to, (size_t)(e->end - to), definition, strlen(definition)) : NULL;
    if (defined != NULL && !is_used(e, to, line_start(e->text, defined), name, lowered.count))
        add_cut(e, from, to);
}

static bh__bytes without_cuts(editor *e) {
    bh__text out = {.arena = e->c->arena};
    const char *at = e->text;
    while (at < e->end) {
        const cut *next = NULL;
        for (size_t i = 0; i < e->count; i++) {
            const cut *candidate = &e->cuts[i];
            if (candidate->from >= at && (next == NULL || candidate->from < next->from))
                next = candidate;
        }
        const char *stop = next ? next->from : e->end;
        bh__text_append(&out, at, (size_t)(stop - at));
        at = next ? next->to : e->end;
    }
    e->failed = e->failed || out.failed;
    return bh__text_bytes(&out);
}

bh_status bh__names_take(bh__compile *c, bh__bytes ptx, bh__bytes *out) {
    bh__texts wanted = c->job->expressions;
    *out = ptx;
    if (wanted.count == 0) return BH_OK;
    editor e = {.c = c, .text = bh__chars(ptx), .end = bh__chars(ptx) + ptx.count};
    bh__bytes *lowered = bh__arena_alloc(c->arena, wanted.count, sizeof *lowered);
    if (lowered == NULL) return bh__compile_no_memory(c);
    for (size_t i = 0; i < wanted.count && !e.failed; i++) {
        lowered[i] = take_value(&e, i);
        if (lowered[i].count == 0 || isdigit(lowered[i].data[0]))
            return bh__fail(&c->answer->error, BH_E_COMPILE,
                            "name a kernel, or a variable with & before it",
                            "name expression '%.200s' is neither a kernel nor the address of a "
                            "variable",
                            bh__chars(wanted.list[i]));
    }
    for (size_t i = 0; i < wanted.count && !e.failed; i++) cut_declaration(&e, lowered[i]);
    *out = without_cuts(&e);
    if (e.failed) return bh__compile_no_memory(c);
    c->answer->lowered = (bh__texts){lowered, wanted.count};
    return BH_OK;
}
