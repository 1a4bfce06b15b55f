/* SPDX-License-Identifier: Apache-2.0 */
/* The linker reads a text: what it declares at module scope, and which of that it uses. */
#include <string.h>

#include "base/checked.h"
#include "ptx/link/state.h"

static bool bad(bh__ptx_parser *p, const char *what) {
    return bh__ptx_bad(p, BH_E_LOAD, "compile the source again, or correct the line", "%s", what);
}

static bool word_is(const bh__ptx_parser *p, const char *word) {
    return p->token.kind == TOKEN_WORD && p->token.length == strlen(word) &&
           memcmp(p->text + p->token.start, word, p->token.length) == 0;
}

/* ---- directives for the whole module ---- */

/* The lexer reads 8.10 as a number, which is that of 8.1. */
static bool read_version(bh__link_part *part) {
    bh__ptx_parser *p = &part->parser;
    if (part->version != 0) return bad(p, "there are several files in this text");
    bh__ptx_next(p);
    uint32_t numbers[2] = {0, 0}, which = 0;
    for (uint32_t i = 0; i < p->token.length && which < 2; i++) {
        char c = p->text[p->token.start + i];
        if (c == '.')
            which++;
        else if (c >= '0' && c <= '9' && numbers[which] < 1000)
            numbers[which] = numbers[which] * 10 + (uint32_t)(c - '0');
        else
            return bad(p, "this is not a PTX version");
    }
    if (numbers[0] == 0) return bad(p, "this is not a PTX version");
    part->version = numbers[0] << 16 | numbers[1];
    bh__ptx_next(p);
    return true;
}

static bool read_architecture(bh__link_part *part) {
    bh__ptx_parser *p = &part->parser;
    const char *text = p->text + p->token.start;
    uint32_t number = 0, i = 3;
    for (; i < p->token.length && text[i] >= '0' && text[i] <= '9' && number < 10000; i++)
        number = number * 10 + (uint32_t)(text[i] - '0');
    char suffix = i + 1 == p->token.length ? text[i] : 0;
    if (number == 0 || (i < p->token.length && suffix != 'a' && suffix != 'f'))
        return bad(p, "this is not a target");
    part->target = number;
    part->suffix = suffix;
    part->head_line = p->token.line;
    return true;
}

/* Of the options, `debug` goes with the debug sections. */
static bool read_target(bh__linker *l, bh__link_part *part) {
    bh__ptx_parser *p = &part->parser;
    if (part->target != 0) return bad(p, "the file has .target twice");
    do {
        bh__ptx_next(p);
        if (p->token.kind != TOKEN_WORD) return bad(p, "a target is missing");
        if (p->token.length > 3 && memcmp(p->text + p->token.start, "sm_", 3) == 0) {
            if (!read_architecture(part)) return false;
        } else if (!word_is(p, "debug")) {
            part->options = bh__arena_copy(l->arena, p->text + p->token.start, p->token.length);
            if (part->options == NULL) return bh__link_no_memory(l);
        }
        bh__ptx_next(p);
    } while (bh__ptx_is(p, ','));
    return true;
}

static bool read_address_size(bh__link_part *part) {
    bh__ptx_parser *p = &part->parser;
    bh__ptx_next(p);
    if (p->token.kind != TOKEN_INT || (p->token.value != 32 && p->token.value != 64))
        return bad(p, "this is not an address size");
    part->address_size = (uint32_t)p->token.value;
    bh__ptx_next(p);
    return true;
}

static bool read_file(bh__linker *l, bh__link_part *part) {
    bh__ptx_parser *p = &part->parser;
    bh__ptx_token name;
    bh__link_file *file = bh__arena_alloc(l->arena, 1, sizeof *file);
    if (file == NULL) return bh__link_no_memory(l);
    if (!bh__ptx_file_take(p, &file->number, &name, &file->end) ||
        memchr(p->text + name.start, '\n', name.length) != NULL)
        return bad(p, ".file needs a number and a name on one line, and may have a time and a "
                      "size");
    file->start = name.start;
    bh__link_name *numbered = bh__link_find_file(l, part, file->number, true);
    if (numbered == NULL) return false;
    numbered->file = file;
    file->next = part->files;
    part->files = file;
    return true;
}

static bool skip_section(bh__ptx_parser *p) {
    while (p->token.kind != TOKEN_END && !bh__ptx_is(p, '{')) bh__ptx_next(p);
    while (p->token.kind != TOKEN_END && !bh__ptx_is(p, '}')) bh__ptx_next(p);
    return bh__ptx_expect(p, '}', "of a debug section");
}

static bool add_range(bh__linker *l, bh__link_range **list, size_t *count, size_t *capacity,
                      bh__link_range range) {
    bh__link_range *grown = bh__arena_grow(l->arena, *list, *count, capacity, sizeof *grown);
    if (grown == NULL) return bh__link_no_memory(l);
    *list = grown;
    grown[(*count)++] = range;
    return true;
}

static bool read_pragma(bh__linker *l, bh__link_part *part) {
    bh__ptx_parser *p = &part->parser;
    bh__link_range range = {.start = p->token.start, .line = p->token.line};
    while (p->token.kind != TOKEN_END && !bh__ptx_is(p, ';')) bh__ptx_next(p);
    range.end = p->token.start + p->token.length;
    return bh__ptx_expect(p, ';', "after a pragma") &&
           add_range(l, &part->pragmas, &part->pragma_count, &part->pragma_capacity, range);
}

static bh__link_name *declared_word(bh__linker *l, bh__link_part *part) {
    bh__ptx_parser *p = &part->parser;
    if (p->token.kind != TOKEN_WORD) return NULL;
    return bh__link_find(l, part, p->text + p->token.start, p->token.length, false);
}

/* .alias NAME, FUNCTION; The function may be defined behind it. */
static bool read_alias(bh__linker *l, bh__link_part *part) {
    bh__ptx_parser *p = &part->parser;
    bh__link_range range = {.start = p->token.start, .line = p->token.line};
    bh__ptx_next(p);
    range.name = declared_word(l, part);
    bh__ptx_next(p);
    if (!bh__ptx_expect(p, ',', "between the two names")) return false;
    range.target = declared_word(l, part);
    bh__ptx_next(p);
    range.end = p->token.start + p->token.length;
    return bh__ptx_expect(p, ';', "after an alias") &&
           add_range(l, &part->aliases, &part->alias_count, &part->alias_capacity, range);
}

static bool settle_aliases(bh__link_part *part) {
    for (size_t i = 0; i < part->alias_count; i++) {
        const bh__link_range *alias = &part->aliases[i];
        bh__link_name *name = alias->name, *target = alias->target;
        part->parser.statement = alias->start;
        part->parser.statement_line = alias->line;
        if (name == NULL || target == NULL || name->definition != NULL ||
            name->first->sort == LINK_VARIABLE || target->definition == NULL ||
            target->definition->alias || target->first->sort == LINK_VARIABLE)
            return bad(&part->parser, "an alias needs a declared name and a defined function");
        name->definition = name->first;
        name->first->defined = name->first->alias = true;
        target->used = true;
    }
    return true;
}

/* ---- names ---- */

static bool add_reference(bh__linker *l, bh__link_reference **list, size_t *count, size_t *capacity,
                          bh__link_reference reference) {
    bh__link_reference *grown = bh__arena_grow(l->arena, *list, *count, capacity, sizeof *grown);
    if (grown == NULL) return bh__link_no_memory(l);
    *list = grown;
    grown[(*count)++] = reference;
    return true;
}

/* What a weak definition uses is needed only if it is the one that is chosen. */
static bool add_use(bh__linker *l, bh__link_reference use) {
    if (use.from->linkage == LINKAGE_WEAK)
        return add_reference(l, &l->weak_uses, &l->weak_use_count, &l->weak_use_capacity, use);
    bh__link_note_use(use.to, use.line);
    return true;
}

static bool add_name(bh__linker *l, bh__link_name ***list, size_t *count, size_t *capacity,
                     bh__link_name *name) {
    bh__link_name **grown = bh__arena_grow(l->arena, *list, *count, capacity, sizeof *grown);
    if (grown == NULL) return bh__link_no_memory(l);
    *list = grown;
    grown[(*count)++] = name;
    return true;
}

static bool defined_twice(bh__linker *l, const bh__link_decl *decl) {
    char here[BH__PTX_PLACE], before[BH__PTX_PLACE];
    const bh__link_decl *old = decl->name->definition;
    bh__link_problem(l, "rename one of the two, or remove it",
                     "%.100s is defined twice: on %s, and before on %s", decl->name->text,
                     bh__ptx_place(&decl->part->module, decl->line, here),
                     bh__ptx_place(&old->part->module, old->line, before));
    return true;
}

/* Enters a declaration under its name. */
static bool enter(bh__linker *l, bh__link_decl *decl, const bh__ptx_token *word) {
    bh__link_part *part = decl->part;
    const char *text = part->parser.text + word->start;
    bh__link_name *name = bh__link_find(l, part, text, word->length, true);
    bh__link_decl **decls = bh__arena_grow(l->arena, part->decls, part->decl_count,
                                           &part->decl_capacity, sizeof *decls);
    if (name == NULL || decls == NULL) return bh__link_no_memory(l);
    part->decls = decls;
    decls[part->decl_count++] = decl;
    decl->name = name;
    part->percent |= text[0] == '%';
    if (name->first == NULL) {
        if (!add_name(l, &part->names, &part->name_count, &part->name_capacity, name)) return false;
        name->first = decl;
    } else {
        name->last->next = decl;
    }
    name->last = decl;
    if (!decl->defined) return true;
    if (name->definition != NULL) return defined_twice(l, decl);
    name->definition = decl;
    return true;
}

/* ---- functions ---- */

/* A parameter, .param .align 8 .b8 x[16] */
static bool read_formal(bh__linker *l, bh__link_part *part, bh__link_formal *out) {
    bh__ptx_parser *p = &part->parser;
    bh__ptx_type type;
    *out = (bh__link_formal){.size = 1};
    bool typed = false, pointer = false;
    while (p->token.kind == TOKEN_DOT || p->token.kind == TOKEN_INT) {
        bool aligns = bh__ptx_is_dot(p, "align") && !pointer;
        pointer |= bh__ptx_is_dot(p, "ptr"); /* what follows is about what it points to */
        if (bh__ptx_type_of(p, &type)) {
            typed = true;
            out->size *= bh__ptx_bytes(type);
        } else if (bh__ptx_is_dot(p, "v2") || bh__ptx_is_dot(p, "v4")) {
            out->size *= (uint64_t)(p->text[p->token.start + 2] - '0');
        }
        bh__ptx_next(p);
        if (aligns && p->token.kind == TOKEN_INT && p->token.value <= 4096)
            out->align = (uint32_t)p->token.value;
    }
    if (out->align < out->size && out->size <= 4096) out->align = (uint32_t)out->size;
    if (p->token.kind != TOKEN_WORD) return bad(p, "a parameter has no name");
    bh__link_name *hidden = declared_word(l, part);
    if (hidden != NULL && !add_name(l, &l->formals, &l->formal_count, &l->formal_capacity, hidden))
        return false;
    bh__ptx_next(p);
    while (bh__ptx_accept(p, '[')) {
        bh__ptx_value count = {0};
        if (!bh__ptx_is(p, ']') && !bh__ptx_expression(p, &count)) return false;
        if (count.is_float || !bh__mul_u64(out->size, count.bits, &out->size)) out->size = 0;
        if (!bh__ptx_expect(p, ']', "after the size")) return false;
    }
    if (!typed) out->size = 0;
    return true;
}

static bool read_formals(bh__linker *l, bh__link_part *part, bh__link_formal **formals,
                         size_t *capacity, size_t *total, uint32_t *count) {
    bh__ptx_parser *p = &part->parser;
    bh__ptx_next(p);
    while (!bh__ptx_is(p, ')')) {
        bh__link_formal *list = bh__arena_grow(l->arena, *formals, *total, capacity, sizeof *list);
        if (list == NULL) return bh__link_no_memory(l);
        *formals = list;
        if (!read_formal(l, part, &list[*total])) return false;
        ++*total;
        ++*count;
        if (!bh__ptx_accept(p, ',')) break;
    }
    return bh__ptx_expect(p, ')', "after parameters");
}

static bool note_label(bh__linker *l, bh__link_part *part, const bh__link_walker *w) {
    bh__link_word *labels = bh__arena_grow(l->arena, part->labels, part->label_count,
                                           &part->label_capacity, sizeof *labels);
    if (labels == NULL) return bh__link_no_memory(l);
    part->labels = labels;
    labels[part->label_count++] = (bh__link_word){w->token.start, w->token.length};
    /* A branch to it may come before: what looked like a use of the module's name was none. */
    if (w->name != NULL && w->name->touched_in == l->function &&
        w->name->touched_at > bh__link_walk_scope(w))
        w->name->touched_in = 0;
    return true;
}

static bool touch(bh__linker *l, const bh__link_walker *w) {
    bh__link_name *name = w->name;
    if (name->used || name->touched_in == l->function) return true;
    name->touched_in = l->function;
    name->touched_at = w->token.start;
    name->touched_line = w->token.line;
    return add_name(l, &l->touched, &l->touched_count, &l->touched_capacity, name);
}

/* What the function names, apart from names of its own. */
static bool read_body(bh__linker *l, bh__link_part *part, bh__link_decl *decl) {
    bh__link_walker w;
    l->function++;
    l->touched_count = 0;
    if (!bh__link_walk_begin(&w, l, part, &part->parser)) return false;
    for (size_t i = 0; i < l->formal_count; i++)
        if (!bh__link_walk_hide(&w, l->formals[i])) return false;
    for (bh__link_event event; (event = bh__link_walk(&w)) != LINK_END;) {
        part->has_loc |= event == LINK_LOC;
        if (event == LINK_LABEL && !note_label(l, part, &w)) return false;
        if (event == LINK_USE && !touch(l, &w)) return false;
    }
    for (size_t i = 0; i < l->touched_count; i++) {
        bh__link_name *name = l->touched[i];
        if (name->touched_in == l->function &&
            !add_use(l, (bh__link_reference){decl, name, name->touched_line}))
            return false;
    }
    if (part->parser.status != BH_OK || l->status != BH_OK) return false;
    decl->end = part->parser.token.start + 1;
    bh__ptx_next(&part->parser);
    return true;
}

/* .attribute(...), and the directives behind the parameters. */
static void skip_directives(bh__ptx_parser *p, bool *noreturn) {
    while (p->token.kind != TOKEN_END && p->token.kind != TOKEN_BAD && !bh__ptx_is(p, '{') &&
           !bh__ptx_is(p, ';')) {
        *noreturn |= bh__ptx_is_dot(p, "noreturn");
        bh__ptx_next(p);
    }
}

static bool skip_attribute(bh__ptx_parser *p, bool *out_managed) {
    unsigned depth = 0;
    bh__ptx_next(p);
    do {
        depth += bh__ptx_is(p, '(');
        depth -= depth > 0 && bh__ptx_is(p, ')');
        *out_managed |= bh__ptx_is_dot(p, "managed");
        bh__ptx_next(p);
    } while (depth > 0 && p->token.kind != TOKEN_END);
    return true;
}

static bool read_function(bh__linker *l, bh__link_part *part, bh__linkage linkage) {
    bh__ptx_parser *p = &part->parser;
    bh__link_decl *decl = bh__arena_alloc(l->arena, 1, sizeof *decl);
    bh__link_formal *formals = NULL;
    size_t capacity = 0, total = 0;
    if (decl == NULL) return bh__link_no_memory(l);
    *decl = (bh__link_decl){.part = part,
                            .linkage = linkage,
                            .sort = bh__ptx_is_dot(p, "entry") ? LINK_KERNEL : LINK_FUNCTION,
                            .line = p->token.line,
                            .head = p->token.start,
                            .head_line = p->token.line};
    l->formal_count = 0;
    bh__ptx_next(p);
    if (bh__ptx_is_dot(p, "attribute") && !skip_attribute(p, &decl->managed)) return false;
    if (bh__ptx_is(p, '(') &&
        !read_formals(l, part, &formals, &capacity, &total, &decl->result_count))
        return false;
    bh__ptx_token name = p->token;
    if (name.kind != TOKEN_WORD) return bad(p, "the function has no name");
    bh__ptx_next(p);
    if (bh__ptx_is(p, '(') &&
        !read_formals(l, part, &formals, &capacity, &total, &decl->param_count))
        return false;
    decl->formals = formals;
    decl->head_end = decl->start = p->token.start;
    skip_directives(p, &decl->noreturn);
    decl->defined = bh__ptx_is(p, '{');
    if (!enter(l, decl, &name)) return false;
    return decl->defined ? read_body(l, part, decl) : bh__ptx_expect(p, ';', "after a declaration");
}

/* ---- variables ---- */

/* From the space to the name: what all names of the statement share. */
static bool read_specifiers(bh__link_part *part, bh__link_decl *shape) {
    bh__ptx_parser *p = &part->parser;
    bh__ptx_type type;
    shape->head = shape->space = p->token.start;
    shape->space_length = p->token.length;
    shape->align_start = shape->align_end = p->token.start + p->token.length;
    shape->size = 1;
    bool typed = false;
    bh__ptx_next(p);
    while (p->token.kind == TOKEN_DOT) {
        if (bh__ptx_is_dot(p, "align")) {
            shape->align_start = p->token.start;
            bh__ptx_next(p);
            if (p->token.kind == TOKEN_INT && p->token.value <= 4096)
                shape->align = (uint32_t)p->token.value;
            shape->align_end = p->token.start + p->token.length;
        } else if (bh__ptx_is_dot(p, "attribute")) {
            skip_attribute(p, &shape->managed);
            continue;
        } else if (bh__ptx_is_dot(p, "v2") || bh__ptx_is_dot(p, "v4")) {
            shape->size *= (uint64_t)(p->text[p->token.start + 2] - '0');
        } else if (bh__ptx_type_of(p, &type)) {
            typed = true;
            shape->size *= bh__ptx_bytes(type);
        }
        bh__ptx_next(p);
    }
    if (!typed) shape->size = 0;
    if (shape->size > shape->align && shape->size <= 4096) shape->align = (uint32_t)shape->size;
    shape->head_end = p->token.start;
    return true;
}

static bool read_dimensions(bh__ptx_parser *p, bh__link_decl *decl) {
    while (bh__ptx_accept(p, '[')) {
        bh__ptx_value count = {.bits = 1};
        if (bh__ptx_is(p, ']'))
            decl->unsized = true;
        else if (!bh__ptx_expression(p, &count))
            return false;
        if (count.is_float || !bh__mul_u64(decl->size, count.bits, &decl->size)) decl->size = 0;
        if (!bh__ptx_expect(p, ']', "after the size")) return false;
    }
    return true;
}

/* Up to the comma or semicolon behind it. */
static bool read_initialiser(bh__linker *l, bh__link_part *part, bh__link_decl *decl) {
    bh__ptx_parser *p = &part->parser;
    unsigned depth = 0;
    /* How many values there are is not counted, so that the size of x[] = {...} is not known. */
    if (decl->unsized) decl->size = 0;
    decl->unsized = false;
    while (p->token.kind != TOKEN_END && p->token.kind != TOKEN_BAD && !bh__ptx_is(p, ';') &&
           !(depth == 0 && bh__ptx_is(p, ','))) {
        depth += bh__ptx_is(p, '{') || bh__ptx_is(p, '(');
        depth -= depth > 0 && (bh__ptx_is(p, '}') || bh__ptx_is(p, ')'));
        bh__link_name *to = declared_word(l, part);
        if (to != NULL) {
            bh__link_reference reference = {decl, to, p->token.line};
            if (!add_use(l, reference) || !add_reference(l, &l->references, &l->reference_count,
                                                         &l->reference_capacity, reference))
                return false;
        }
        bh__ptx_next(p);
    }
    return true;
}

static bool read_variables(bh__linker *l, bh__link_part *part, bh__linkage linkage) {
    bh__ptx_parser *p = &part->parser;
    bh__link_decl shape = {.part = part,
                           .linkage = linkage,
                           .sort = LINK_VARIABLE,
                           .defined = linkage != LINKAGE_EXTERN,
                           .head_line = p->token.line};
    if (!read_specifiers(part, &shape)) return false;
    do {
        bh__link_decl *decl = bh__arena_alloc(l->arena, 1, sizeof *decl);
        if (decl == NULL) return bh__link_no_memory(l);
        *decl = shape;
        bh__ptx_token name = p->token;
        if (name.kind != TOKEN_WORD) return bad(p, "this is not a declaration of PTX");
        decl->line = name.line;
        decl->start = name.start;
        bh__ptx_next(p);
        if (!read_dimensions(p, decl)) return false;
        decl->name_end = p->token.start;
        if (!enter(l, decl, &name)) return false;
        if (bh__ptx_is(p, '=') && linkage == LINKAGE_EXTERN)
            return bad(p, "an .extern has no initial value");
        if (bh__ptx_accept(p, '=') && !read_initialiser(l, part, decl)) return false;
        decl->end = p->token.start;
    } while (bh__ptx_accept(p, ','));
    return bh__ptx_expect(p, ';', "after a declaration");
}

/* ---- the whole text ---- */

static bool read_declaration(bh__linker *l, bh__link_part *part) {
    static const struct {
        const char *word;
        bh__linkage linkage;
    } words[] = {{"extern", LINKAGE_EXTERN},
                 {"common", LINKAGE_COMMON},
                 {"weak", LINKAGE_WEAK},
                 {"visible", LINKAGE_VISIBLE}};
    bh__ptx_parser *p = &part->parser;
    bh__linkage linkage = LINKAGE_LOCAL;
    for (size_t i = 0; i < sizeof words / sizeof *words;) {
        bool found = bh__ptx_accept_dot(p, words[i].word);
        if (found && words[i].linkage > linkage) linkage = words[i].linkage;
        i = found ? 0 : i + 1;
    }
    if (bh__ptx_is_dot(p, "func") || bh__ptx_is_dot(p, "entry"))
        return read_function(l, part, linkage);
    if (p->token.kind == TOKEN_DOT) return read_variables(l, part, linkage);
    return bh__ptx_bad(p, BH_E_LOAD, "pass PTX text, as nvcc --ptx or clang -S write it",
                       "'%.*s' is not allowed outside a function",
                       p->token.length > 40 ? 40 : (int)p->token.length, p->text + p->token.start);
}

static bool read_statement(bh__linker *l, bh__link_part *part) {
    bh__ptx_parser *p = &part->parser;
    if (bh__ptx_accept(p, ';')) return true;
    if (bh__ptx_is_dot(p, "version")) return read_version(part);
    if (bh__ptx_is_dot(p, "target")) return read_target(l, part);
    if (bh__ptx_is_dot(p, "address_size")) return read_address_size(part);
    if (bh__ptx_is_dot(p, "file")) return read_file(l, part);
    if (bh__ptx_is_dot(p, "section")) return skip_section(p);
    if (bh__ptx_is_dot(p, "pragma")) return read_pragma(l, part);
    if (bh__ptx_is_dot(p, "alias")) return read_alias(l, part);
    if (bh__ptx_is_dot(p, "loc")) {
        bh__ptx_loc loc;
        bh__ptx_loc_take(p, &loc);
        return true;
    }
    return read_declaration(l, part);
}

bool bh__link_read(bh__linker *l, bh__link_part *part) {
    bh__ptx_parser *p = &part->parser;
    bh__ptx_next(p);
    p->statement = p->token.start;
    p->statement_line = p->token.line;
    if (!bh__ptx_is_dot(p, "version"))
        return bh__ptx_bad(p, BH_E_LOAD, "pass PTX text, as nvcc --ptx or clang -S write it", "%s",
                           p->token.kind == TOKEN_END
                               ? "the file is empty"
                               : "the file does not start with .version, so it is not PTX");
    while (p->token.kind != TOKEN_END) {
        p->statement = p->token.start;
        p->statement_line = p->token.line;
        if (!read_statement(l, part)) return false;
    }
    if (part->target == 0) return bad(p, "the file has no .target");
    return p->status == BH_OK && settle_aliases(part);
}
