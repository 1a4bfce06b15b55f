/* SPDX-License-Identifier: Apache-2.0 */
/* The linker writes the result: declarations of functions, variables, then the functions, with
 * their texts as they were but for names and numbers of files. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ptx/link/state.h"

typedef struct writer {
    bh__linker *l;
    bh__ptx_module scratch; /* for the lexer, which notes #line in it */
    /* The file and line that the next character has according to #line. */
    bool known;
    const char *file;
    uint32_t file_length, line;
} writer;

static void put(writer *w, const char *bytes, size_t count) {
    bh__linker *l = w->l;
    if (!bh__link_append(l, &l->text, &l->length, &l->capacity, bytes, count)) return;
    for (const char *at = bytes; (at = memchr(at, '\n', count - (size_t)(at - bytes))); at++)
        w->line++;
}

static void put_text(writer *w, const char *text) {
    put(w, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void put_format(writer *w, const char *format, ...) {
    char text[160];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    put(w, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

/* What follows is on this line of the part. */
static void put_place(writer *w, const bh__link_part *part, uint32_t line) {
    const char *file;
    uint32_t length, shown = bh__ptx_shown_line(&part->module, line, &file, &length);
    if (w->l->length > 0 && w->l->text[w->l->length - 1] != '\n') put_text(w, "\n");
    if (w->known && w->line == shown && w->file_length == length &&
        memcmp(w->file, file, length) == 0)
        return;
    put_format(w, "#line %u \"", (unsigned)shown);
    put(w, file, length);
    put_text(w, "\"\n");
    w->known = true;
    w->file = file;
    w->file_length = length;
    w->line = shown;
}

static const char *linkage_text(bh__linkage linkage) {
    static const char *const texts[] = {"", ".extern ", ".common ", ".weak ", ".visible "};
    return texts[linkage];
}

/* ---- texts with other names ---- */

static const char *new_name(const writer *w, bh__link_part *part, const bh__ptx_token *word) {
    const char *text = part->module.text + word->start;
    if (!part->renames || (*text == '%' && !part->percent)) return NULL;
    const bh__link_name *name = bh__link_find(w->l, part, text, word->length, false);
    return name != NULL ? name->new_name : NULL;
}

/* Copies up to the token and writes `instead` for it. */
static void replace(writer *w, const bh__link_part *part, uint32_t *from, uint32_t start,
                    uint32_t end, const char *instead) {
    put(w, part->module.text + *from, start - *from);
    put_text(w, instead);
    *from = end;
}

static void begin_lexing(writer *w, const bh__link_part *part, uint32_t at, bh__ptx_parser *p) {
    w->scratch.mark_count = 0;
    w->scratch.text = part->module.text;
    *p = (bh__ptx_parser){.module = &w->scratch,
                          .error = w->l->error,
                          .text = part->module.text,
                          .length = part->parser.length,
                          .at = at,
                          .line = 1};
    bh__ptx_next(p);
}

/* A piece of text that is no body of a function: every word may be a name. */
static void copy(writer *w, bh__link_part *part, uint32_t from, uint32_t to) {
    if (part->renames) {
        bh__ptx_parser p;
        begin_lexing(w, part, from, &p);
        for (; p.token.kind != TOKEN_END && p.token.start < to; bh__ptx_next(&p)) {
            const char *name = p.token.kind == TOKEN_WORD ? new_name(w, part, &p.token) : NULL;
            if (name == NULL) continue;
            replace(w, part, &from, p.token.start, p.token.start + p.token.length, name);
        }
    }
    put(w, part->module.text + from, to - from);
    if (part->module.mark_count > 0) w->known = false; /* the piece may have a #line of its own */
}

/* .loc with the number of the file in the result. Where it is inlined is left out: that refers to
 * debug sections. */
static void copy_loc(writer *w, bh__link_part *part, const bh__ptx_loc *loc, uint32_t *from) {
    const bh__link_name *numbered = bh__link_find_file(w->l, part, loc->file, false);
    const bh__link_file *file = numbered != NULL ? numbered->file : NULL;
    if (file == NULL || !loc->whole) {
        replace(w, part, from, loc->start, loc->end, "");
        return;
    }
    char instead[16];
    snprintf(instead, sizeof instead, "%u", (unsigned)file->result_number);
    replace(w, part, from, loc->number.start, loc->number.start + loc->number.length, instead);
    replace(w, part, from, loc->numbers_end, loc->end, "");
}

/* From behind the head of a function to the end of its body. */
static void copy_body(writer *w, bh__link_part *part, uint32_t from, uint32_t to) {
    if (part->renames || part->has_loc) {
        bh__ptx_parser p;
        bh__link_walker walk;
        begin_lexing(w, part, from, &p);
        while (p.token.kind != TOKEN_END && !bh__ptx_is(&p, '{')) bh__ptx_next(&p);
        if (!bh__link_walk_begin(&walk, w->l, part, &p)) return;
        for (bh__link_event event; (event = bh__link_walk(&walk)) != LINK_END;) {
            if (event == LINK_LOC) {
                copy_loc(w, part, &walk.loc, &from);
                continue;
            }
            const char *name = walk.name != NULL ? walk.name->new_name : NULL;
            if (name == NULL) continue;
            replace(w, part, &from, walk.token.start, walk.token.start + walk.token.length, name);
        }
    }
    put(w, part->module.text + from, to - from);
    if (part->module.mark_count > 0) w->known = false;
}

/* ---- declarations ---- */

/* Whether this declaration is the definition that the result has. */
static bool is_chosen(const bh__link_decl *decl) {
    const bh__link_name *name = decl->name;
    return (name->shared != NULL ? name->shared : name)->definition == decl;
}

static const bh__link_name *deciding(const bh__link_decl *decl) {
    return decl->name->shared != NULL ? decl->name->shared : decl->name;
}

/* In the result, a definition is visible if any declaration of it was. */
static bh__linkage linkage_of(const bh__link_decl *decl) {
    return decl->linkage < LINKAGE_COMMON && decl->name->shared != NULL ? LINKAGE_VISIBLE
                                                                        : decl->linkage;
}

static void write_prototype(writer *w, const bh__link_decl *decl, bh__linkage linkage) {
    put_place(w, decl->part, decl->head_line);
    put_text(w, linkage_text(linkage));
    copy(w, decl->part, decl->head, decl->head_end);
    put_text(w, decl->noreturn ? " .noreturn;\n" : ";\n");
}

/* Space, alignment and type; then the name with its dimensions, and up to `end` more. */
static void write_variable(writer *w, const bh__link_decl *decl, bh__linkage linkage,
                           uint32_t end) {
    bh__link_part *part = decl->part;
    uint32_t align = deciding(decl)->align;
    bool one_line =
        memchr(part->module.text + decl->head, '\n', decl->head_end - decl->head) == NULL;
    put_place(w, part, one_line ? decl->line : decl->head_line);
    put_text(w, linkage_text(linkage));
    if (align > decl->align) { /* another declaration promises more */
        copy(w, part, decl->head, decl->align_start);
        put_format(w, " .align %u", (unsigned)align);
        copy(w, part, decl->align_end, decl->head_end);
    } else {
        copy(w, part, decl->head, decl->head_end);
    }
    copy(w, part, decl->start, end);
    put_text(w, ";\n");
}

/* Dynamic shared memory, and functions that the device has: used, and defined nowhere. */
static void write_undefined(writer *w, const bh__link_decl *decl) {
    const bh__link_name *shared = decl->name->shared;
    if (shared == NULL || shared->definition != NULL || shared->uses != decl->name ||
        decl->name->first != decl || !shared->used)
        return;
    if (decl->sort == LINK_VARIABLE)
        write_variable(w, decl, LINKAGE_EXTERN, decl->name_end);
    else
        write_prototype(w, decl, LINKAGE_EXTERN);
}

typedef void visit(writer *w, const bh__link_decl *decl);

static void visit_all(writer *w, visit *each) {
    for (size_t i = 0; i < w->l->count; i++)
        for (size_t n = 0; n < w->l->parts[i].decl_count; n++) each(w, w->l->parts[i].decls[n]);
}

static void write_declaration(writer *w, const bh__link_decl *decl) {
    if (!is_chosen(decl)) {
        write_undefined(w, decl);
    } else if (decl->sort == LINK_FUNCTION ||
               (decl->sort == LINK_KERNEL && deciding(decl)->prototype)) {
        write_prototype(w, decl, linkage_of(decl));
    } else if (decl->sort == LINK_VARIABLE && deciding(decl)->forward) {
        write_variable(w, decl, LINKAGE_EXTERN, decl->name_end);
    }
}

static void write_definition_of_variable(writer *w, const bh__link_decl *decl) {
    if (decl->sort == LINK_VARIABLE && is_chosen(decl))
        write_variable(w, decl, linkage_of(decl), decl->end);
}

static void write_function(writer *w, const bh__link_decl *decl) {
    if (decl->sort == LINK_VARIABLE || decl->alias || !is_chosen(decl)) return;
    put_place(w, decl->part, decl->head_line);
    put_text(w, linkage_text(linkage_of(decl)));
    copy(w, decl->part, decl->head, decl->head_end);
    copy_body(w, decl->part, decl->start, decl->end);
    put_text(w, "\n");
}

static void write_aliases(writer *w) {
    for (size_t i = 0; i < w->l->count; i++) {
        bh__link_part *part = &w->l->parts[i];
        for (size_t n = 0; n < part->alias_count; n++) {
            const bh__link_range *alias = &part->aliases[n];
            if (!is_chosen(alias->name->definition)) continue;
            put_place(w, part, alias->line);
            copy(w, part, alias->start, alias->end);
            put_text(w, "\n");
        }
    }
}

/* ---- the head ---- */

/* Each file once: the same name gets the same number. */
static void write_files(writer *w) {
    bh__linker *l = w->l;
    bh__link_part files = {.index = UINT32_MAX - 1}; /* a scope for the names of files */
    uint32_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        for (bh__link_file *file = l->parts[i].files; file != NULL; file = file->next) {
            const char *text = l->parts[i].module.text + file->start;
            uint32_t length = file->end - file->start;
            bh__link_name *name = bh__link_find(l, &files, text, length, true);
            if (name == NULL) return;
            if (name->use_line == 0) {
                name->use_line = ++count;
                put_format(w, ".file %u ", (unsigned)count);
                put(w, text, length);
                put_text(w, "\n");
            }
            file->result_number = name->use_line;
        }
    }
}

static void write_head(writer *w, char arch[16]) {
    const bh__link_part *newest = &w->l->parts[0], *highest = newest;
    const char *options = NULL;
    char suffix = 0;
    for (size_t i = 0; i < w->l->count; i++) {
        const bh__link_part *part = &w->l->parts[i];
        if (part->version > newest->version) newest = part;
        if (part->target > highest->target) highest = part;
        if (part->suffix == 'a' || (part->suffix == 'f' && suffix == 0)) suffix = part->suffix;
        if (part->options != NULL) options = part->options;
    }
    char end[2] = {suffix, 0};
    snprintf(arch, 16, "sm_%u%s", (unsigned)highest->target, end);
    put_format(w, ".version %u.%u\n.target %s%s%.60s\n", (unsigned)(newest->version >> 16),
               (unsigned)(newest->version & 0xffff), arch, options ? ", " : "",
               options ? options : "");
    if (highest->address_size == 64) put_text(w, ".address_size 64\n");
}

bool bh__link_write(bh__linker *l, char arch[16]) {
    writer w = {.l = l};
    write_head(&w, arch);
    write_files(&w);
    visit_all(&w, write_declaration);
    visit_all(&w, write_definition_of_variable);
    for (size_t i = 0; i < l->count; i++) {
        for (size_t n = 0; n < l->parts[i].pragma_count; n++) {
            const bh__link_range *pragma = &l->parts[i].pragmas[n];
            put_place(&w, &l->parts[i], pragma->line);
            copy(&w, &l->parts[i], pragma->start, pragma->end);
            put_text(&w, "\n");
        }
    }
    visit_all(&w, write_function);
    write_aliases(&w);
    bh__arena_free(&w.scratch.arena);
    return l->status == BH_OK;
}
