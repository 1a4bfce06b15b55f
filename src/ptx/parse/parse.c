/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's outer loop: module directives, functions and their bodies. */
#include "ptx/parse/parse.h"

#include <string.h>

static bool word_is(const bh__ptx_parser *p, const bh__ptx_token *t, const char *word) {
    return t->length == strlen(word) && memcmp(p->text + t->start, word, t->length) == 0;
}

static bool parse_version(bh__ptx_parser *p) {
    bh__ptx_next(p);
    /* 8.4 reads as a decimal. */
    double version = 0;
    if (p->token.kind == TOKEN_FLOAT && !p->token.single) {
        memcpy(&version, &p->token.value, 8);
    } else if (p->token.kind == TOKEN_INT && p->token.value < 100) {
        version = (double)p->token.value;
    }
    if (version < 1 || version >= 100) {
        return bh__ptx_bad(p, BH_E_LOAD, "start the file with a line such as .version 8.0",
                           "this is not a PTX version");
    }
    p->version = (uint32_t)(version * 10 + 0.5);
    bh__ptx_next(p);
    return true;
}

static bool parse_target(bh__ptx_parser *p) {
    do {
        bh__ptx_next(p);
        if (p->token.kind != TOKEN_WORD) {
            return bh__ptx_bad(p, BH_E_LOAD, "write a line such as .target sm_80",
                               "a target is missing");
        }
        if (word_is(p, &p->token, "map_f64_to_f32")) {
            return bh__ptx_bad(p, BH_E_UNSUPPORTED, "compile for sm_13 or later",
                               "the CPU device does not map f64 to f32");
        }
        if (p->token.length > 3 && memcmp(p->text + p->token.start, "sm_", 3) == 0) {
            p->target = 0;
            for (uint32_t i = 3; i < p->token.length && p->target < 1000; i++) {
                char c = p->text[p->token.start + i];
                if (c < '0' || c > '9') {
                    break;
                }
                p->target = p->target * 10 + (uint32_t)(c - '0');
            }
        }
        bh__ptx_next(p);
    } while (bh__ptx_is(p, ','));
    p->has_target = true;
    return true;
}

static bool parse_address_size(bh__ptx_parser *p) {
    bh__ptx_next(p);
    if (p->token.kind != TOKEN_INT || p->token.value != 64) {
        return bh__ptx_bad(p, BH_E_UNSUPPORTED, "compile for 64-bit addresses",
                           "the address size is not 64");
    }
    bh__ptx_next(p);
    p->has_address_size = true;
    return true;
}

/* Nothing in it is needed to run the module. What shows variables to people reads it (dwarf.c). */
static bool note_section(bh__ptx_parser *p) {
    bh__ptx_module *m = p->module;
    bh__ptx_section *sections = bh__arena_grow(&m->arena, m->sections, m->section_count,
                                               &m->section_capacity, sizeof *sections);
    if (sections == NULL) {
        return bh__ptx_no_memory(p);
    }
    m->sections = sections;
    bh__ptx_next(p);
    bh__ptx_section s = {.name = p->token.start, .name_length = p->token.length};
    while (p->token.kind != TOKEN_END && !bh__ptx_is(p, '{')) {
        bh__ptx_next(p);
    }
    s.from = p->token.start + 1;
    while (p->token.kind != TOKEN_END && !bh__ptx_is(p, '}')) {
        bh__ptx_next(p);
    }
    s.to = p->token.start;
    sections[m->section_count++] = s;
    return bh__ptx_expect(p, '}', "of a debug section");
}

static bool skip_strings(bh__ptx_parser *p, const char *directive) {
    do {
        bh__ptx_next(p);
        if (p->token.kind != TOKEN_STRING) {
            return bh__ptx_bad(p, BH_E_LOAD, "give text in quotes", "%s needs a string", directive);
        }
        bh__ptx_next(p);
    } while (bh__ptx_is(p, ','));
    return bh__ptx_expect(p, ';', "after the string");
}

static bool dimensions3(bh__ptx_parser *p, uint32_t out[3]) {
    out[0] = out[1] = out[2] = 1;
    for (int i = 0; i < 3; i++) {
        if (p->token.kind != TOKEN_INT || p->token.value == 0 || p->token.value > 0x7fffffff) {
            return bh__ptx_bad(p, BH_E_LOAD, "give one to three positive numbers",
                               "a block size is expected here");
        }
        out[i] = (uint32_t)p->token.value;
        bh__ptx_next(p);
        if (!bh__ptx_accept(p, ',')) {
            break;
        }
    }
    return true;
}

static bool cluster_directive(bh__ptx_parser *p, uint32_t size[3]) {
    if (!dimensions3(p, size)) {
        return false;
    }
    uint64_t blocks = (uint64_t)size[0] * size[1];
    if (blocks > BH__PTX_MAX_CLUSTER || blocks * size[2] > BH__PTX_MAX_CLUSTER) {
        return bh__ptx_bad(p, BH_E_LOAD, "use smaller clusters",
                           "a cluster of %u x %u x %u blocks; at most %d blocks are possible",
                           (unsigned)size[0], (unsigned)size[1], (unsigned)size[2],
                           BH__PTX_MAX_CLUSTER);
    }
    return true;
}

/* .abi_preserve N and .abi_preserve_control N: registers that calls keep. Here they keep all. */
static bool abi_directive(bh__ptx_parser *p) {
    if ((!bh__ptx_is_dot(p, "abi_preserve") && !bh__ptx_is_dot(p, "abi_preserve_control")) ||
        bh__ptx_peek(p)->kind != TOKEN_INT) {
        return false;
    }
    bh__ptx_next(p);
    bh__ptx_next(p);
    return true;
}

/* Performance directives, between the head of a function and its body. */
static bool performance_directives(bh__ptx_parser *p, bh__ptx_function *f) {
    while (p->token.kind == TOKEN_DOT) {
        uint32_t n[3];
        p->statement = p->token.start;
        p->statement_line = p->token.line;
        if (bh__ptx_accept_dot(p, "maxntid") || bh__ptx_is_dot(p, "reqntid")) {
            bool required = bh__ptx_accept_dot(p, "reqntid");
            if (!dimensions3(p, n)) {
                return false;
            }
            uint64_t threads = (uint64_t)n[0] * n[1];
            threads = threads > 0x7fffffff ? threads : threads * n[2];
            if (required && threads > 1024) {
                return bh__ptx_bad(p, BH_E_LOAD, "require at most 1024 threads",
                                   "the required block size is more than 1024 threads");
            }
            f->max_threads = threads > 1024 ? 1024 : (uint32_t)threads;
            if (required) {
                memcpy(f->required, n, sizeof n);
            }
        } else if (bh__ptx_accept_dot(p, "minnctapersm") || bh__ptx_accept_dot(p, "maxnctapersm") ||
                   bh__ptx_accept_dot(p, "maxnreg")) {
            if (!dimensions3(p, n)) {
                return false;
            }
        } else if (bh__ptx_accept_dot(p, "maxclusterrank")) {
            if (!dimensions3(p, n)) {
                return false;
            }
            f->max_cluster = n[0];
        } else if (bh__ptx_accept_dot(p, "reqnctapercluster")) {
            if (!cluster_directive(p, f->cluster)) {
                return false;
            }
        } else if (bh__ptx_accept_dot(p, "explicitcluster")) {
            f->needs_cluster = true;
        } else if (bh__ptx_is_dot(p, "pragma")) {
            if (!skip_strings(p, ".pragma")) {
                return false;
            }
        } else if (bh__ptx_is_dot(p, "blocksareclusters")) {
            return bh__ptx_bad(p, BH_E_UNSUPPORTED, "give the grid in blocks, without it",
                               "the CPU device does not support .blocksareclusters");
        } else if (!bh__ptx_accept_dot(p, "noreturn") && !abi_directive(p)) {
            break;
        }
    }
    return true;
}

static bool parse_targets_list(bh__ptx_parser *p, bh__ptx_symbol *symbol) {
    bh__ptx_targets *targets = bh__arena_alloc(&p->module->arena, 1, sizeof *targets);
    size_t capacity = 0;
    bh__ptx_token *names = NULL;
    uint32_t count = 0;
    do {
        bh__ptx_next(p);
        names = bh__arena_grow(&p->module->arena, names, count, &capacity, sizeof *names);
        if (targets == NULL || names == NULL) {
            return bh__ptx_no_memory(p);
        }
        if (p->token.kind != TOKEN_WORD) {
            return bh__ptx_bad(p, BH_E_LOAD, "list label names", "a label name is missing");
        }
        names[count++] = p->token;
        bh__ptx_next(p);
    } while (bh__ptx_is(p, ','));
    symbol->targets = targets;
    targets->count = count;
    targets->at = bh__arena_alloc(&p->module->arena, count, sizeof *targets->at);
    if (targets->at == NULL) {
        return bh__ptx_no_memory(p);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!bh__ptx_label_use_add(p, &names[i], NULL, &targets->at[i])) {
            return false;
        }
    }
    return bh__ptx_expect(p, ';', "after the labels");
}

static bool parse_prototype(bh__ptx_parser *p, bh__ptx_symbol *symbol) {
    bh__ptx_function *f = bh__arena_alloc(&p->module->arena, 1, sizeof *f);
    if (f == NULL) {
        return bh__ptx_no_memory(p);
    }
    symbol->function = f;
    f->prototype = true;
    bh__ptx_next(p);
    if (bh__ptx_is(p, '(') && !bh__ptx_formals(p, f, true)) {
        return false;
    }
    if (p->token.kind != TOKEN_WORD) {
        return bh__ptx_bad(p, BH_E_LOAD, "write _ for the name", "the prototype has no name");
    }
    bh__ptx_next(p);
    if (bh__ptx_is(p, '(') && !bh__ptx_formals(p, f, false)) {
        return false;
    }
    while (bh__ptx_accept_dot(p, "noreturn") || abi_directive(p)) {
    }
    return bh__ptx_expect(p, ';', "after a prototype");
}

/* .calltargets: functions of one kind; the first one says which. */
static bool parse_callees(bh__ptx_parser *p, bh__ptx_symbol *symbol) {
    do {
        bh__ptx_next(p);
        bh__ptx_symbol *s = p->token.kind == TOKEN_WORD
                                ? bh__ptx_find(p, p->text + p->token.start, p->token.length)
                                : NULL;
        if (s == NULL || s->kind != SYMBOL_FUNCTION) {
            return bh__ptx_bad(p, BH_E_LOAD, "list declared functions", "this is not a function");
        }
        symbol->function = symbol->function == NULL ? s->function : symbol->function;
        bh__ptx_next(p);
    } while (bh__ptx_is(p, ','));
    return bh__ptx_expect(p, ';', "after the functions");
}

static bool parse_label(bh__ptx_parser *p) {
    bh__ptx_token name = p->token;
    bh__ptx_next(p);
    bh__ptx_next(p);
    bh__ptx_symbol_kind kind = bh__ptx_is_dot(p, "branchtargets")   ? SYMBOL_TARGETS
                               : bh__ptx_is_dot(p, "callprototype") ? SYMBOL_PROTOTYPE
                               : bh__ptx_is_dot(p, "calltargets")   ? SYMBOL_CALLEES
                                                                    : SYMBOL_REG;
    if (kind == SYMBOL_REG) {
        return bh__ptx_label_define(p, &name);
    }
    bh__ptx_symbol *symbol = bh__ptx_declare(p, p->text + name.start, name.length, kind);
    if (symbol == NULL) {
        return false;
    }
    return kind == SYMBOL_TARGETS     ? parse_targets_list(p, symbol)
           : kind == SYMBOL_PROTOTYPE ? parse_prototype(p, symbol)
                                      : parse_callees(p, symbol);
}

/* .file NUMBER "name"; its number and the last part of its name are kept for messages. */
static bool note_file(bh__ptx_parser *p, uint32_t number, const bh__ptx_token *name) {
    bh__ptx_module *m = p->module;
    bh__ptx_file *files =
        bh__arena_grow(&m->arena, m->files, m->file_count, &m->file_capacity, sizeof *files);
    if (files == NULL) {
        return bh__ptx_no_memory(p);
    }
    m->files = files;
    uint32_t start = name->start, end = name->start + name->length;
    for (uint32_t at = start; at < end; at++) {
        if (p->text[at] == '/' || p->text[at] == '"') {
            start = at + 1 < end ? at + 1 : start;
        }
    }
    while (end > start && p->text[end - 1] == '"') {
        end--;
    }
    files[m->file_count++] = (bh__ptx_file){number, start, end - start};
    return true;
}

static bool source_line(bh__ptx_parser *p) {
    if (bh__ptx_is_dot(p, "loc")) {
        bh__ptx_loc loc;
        bh__ptx_loc_take(p, &loc);
        if (loc.whole) {
            p->loc_file = loc.file;
            p->loc_line = loc.line;
        }
        return true;
    }
    uint32_t number, end, line = p->token.line;
    bh__ptx_token name;
    if (bh__ptx_file_take(p, &number, &name, &end)) return note_file(p, number, &name);
    if (p->token.line == line) bh__ptx_skip_line(p);
    return true;
}

static bool statement(bh__ptx_parser *p) {
    if (p->token.kind == TOKEN_WORD) {
        const bh__ptx_token *ahead = bh__ptx_peek(p);
        if (ahead->kind == TOKEN_PUNCT && ahead->punct == ':') {
            return parse_label(p);
        }
        return bh__ptx_instruction(p);
    }
    if (bh__ptx_is(p, '@')) {
        return bh__ptx_instruction(p);
    }
    if (bh__ptx_accept(p, ';')) {
        return true;
    }
    if (bh__ptx_is_dot(p, "loc") || bh__ptx_is_dot(p, "file")) {
        return source_line(p);
    }
    if (bh__ptx_is_dot(p, "pragma")) {
        return skip_strings(p, ".pragma");
    }
    if (p->token.kind == TOKEN_DOT) {
        uint8_t is_extern = bh__ptx_accept_dot(p, "extern");
        return bh__ptx_declaration(p, is_extern);
    }
    if (p->token.kind == TOKEN_END) {
        return bh__ptx_bad(p, BH_E_LOAD, "pass the whole PTX text; this text is cut off",
                           "the file ends inside a function");
    }
    return bh__ptx_bad(p, BH_E_LOAD, "compile the source again, or correct the line",
                       "'%.*s' cannot start a statement",
                       p->token.length > 40 ? 40 : (int)p->token.length, p->text + p->token.start);
}

/* The scope of the function itself is open already. */
static bool parse_body(bh__ptx_parser *p) {
    unsigned open = 1;
    bh__ptx_next(p);
    while (open > 0) {
        p->statement = p->token.start;
        p->statement_line = p->token.line;
        if (bh__ptx_accept(p, '{')) {
            if (!bh__ptx_scope_open(p)) {
                return false;
            }
            open++;
        } else if (bh__ptx_is(p, '}')) {
            bh__ptx_next(p);
            if (--open > 0) {
                bh__ptx_scope_close(p);
            }
        } else if (!statement(p)) {
            return false;
        }
    }
    return bh__ptx_labels_resolve(p);
}

static bh__ptx_builtin builtin_of(const char *name) {
    return strcmp(name, "vprintf") == 0        ? BUILTIN_VPRINTF
           : strcmp(name, "__assertfail") == 0 ? BUILTIN_ASSERTFAIL
           : strcmp(name, "malloc") == 0       ? BUILTIN_MALLOC
           : strcmp(name, "free") == 0         ? BUILTIN_FREE
                                               : BUILTIN_NONE;
}

/* Declares the function, or finds its earlier declaration and checks that the two agree. */
static bool enter_function(bh__ptx_parser *p, bh__ptx_function *f, const bh__ptx_token *name) {
    bh__ptx_module *m = p->module;
    bh__ptx_symbol *old = bh__ptx_find_global(p, p->text + name->start, name->length);
    if (old != NULL && old->kind == SYMBOL_FUNCTION) {
        bh__ptx_function *before = old->function;
        char place[BH__PTX_PLACE];
        bh__ptx_place(m, before->line, place);
        if (before->defined && f->defined) {
            return bh__ptx_bad(p, BH_E_LOAD, "rename one of the two",
                               "function %s is defined twice, first on %s", before->name, place);
        }
        bool same = before->entry == f->entry && before->param_count == f->param_count &&
                    before->result_count == f->result_count;
        for (uint32_t i = 0; same && i < f->param_count; i++) {
            same = before->params[i]->size == f->params[i]->size;
        }
        if (!same) {
            return bh__ptx_bad(p, BH_E_LOAD, "make both declarations the same",
                               "function %s was declared with different parameters on %s",
                               before->name, place);
        }
        if (f->defined) { /* calls refer to this object */
            f->index = before->index;
            f->name = before->name;
            f->address_taken = before->address_taken;
            f->called = before->called;
            f->builtin = before->builtin;
            *before = *f;
            p->function = before;
        }
        return true;
    }
    bh__ptx_symbol *symbol =
        bh__ptx_declare(p, p->text + name->start, name->length, SYMBOL_FUNCTION);
    bh__ptx_function **functions = bh__arena_grow(&m->arena, m->functions, m->function_count,
                                                  &m->function_capacity, sizeof *functions);
    if (symbol == NULL || functions == NULL) {
        return symbol == NULL ? false : bh__ptx_no_memory(p);
    }
    m->functions = functions;
    f->name = symbol->name;
    f->builtin = builtin_of(f->name);
    f->index = m->function_count;
    functions[m->function_count++] = f;
    symbol->function = f;
    return true;
}

static bool parse_function(bh__ptx_parser *p, bool entry, uint8_t is_extern) {
    bh__ptx_function *f = bh__arena_alloc(&p->module->arena, 1, sizeof *f);
    if (f == NULL) {
        return bh__ptx_no_memory(p);
    }
    f->entry = entry;
    f->is_extern = is_extern;
    f->line = p->token.line;
    p->loc_file = p->loc_line = 0;
    f->max_threads = 1024;
    bh__ptx_next(p);
    p->function = f;
    p->local_top = 0;
    if (!bh__ptx_scope_open(p)) {
        return false;
    }
    if (bh__ptx_accept_dot(p, "attribute") && !bh__ptx_attribute(p)) {
        return false;
    }
    if (!entry && bh__ptx_is(p, '(') && !bh__ptx_formals(p, f, true)) {
        return false;
    }
    bh__ptx_token name = p->token;
    if (name.kind != TOKEN_WORD) {
        return bh__ptx_bad(p, BH_E_LOAD, "give the function a name", "the function has no name");
    }
    bh__ptx_next(p);
    if (bh__ptx_is(p, '(') && !bh__ptx_formals(p, f, false)) {
        return false;
    }
    if (!performance_directives(p, f)) {
        return false;
    }
    f->defined = bh__ptx_is(p, '{');
    uint32_t depth = p->depth;
    p->depth = 0;
    bool ok = enter_function(p, f, &name);
    p->depth = depth;
    if (!ok) {
        return false;
    }
    if (f->defined) {
        if (!parse_body(p)) {
            return false;
        }
    } else if (!bh__ptx_expect(p, ';', "after a declaration")) {
        return false;
    }
    bh__ptx_scope_close(p);
    p->scope_count = 0;
    p->function = NULL;
    return true;
}

static bool parse_alias(bh__ptx_parser *p) {
    bh__ptx_next(p);
    bh__ptx_token name = p->token;
    bh__ptx_next(p);
    bh__ptx_symbol *alias =
        name.kind == TOKEN_WORD ? bh__ptx_find(p, p->text + name.start, name.length) : NULL;
    if (!bh__ptx_expect(p, ',', "between the two names")) {
        return false;
    }
    bh__ptx_symbol *target = p->token.kind == TOKEN_WORD
                                 ? bh__ptx_find(p, p->text + p->token.start, p->token.length)
                                 : NULL;
    if (alias == NULL || alias->kind != SYMBOL_FUNCTION || target == NULL ||
        target->kind != SYMBOL_FUNCTION || alias->function->defined || !target->function->defined) {
        return bh__ptx_bad(p, BH_E_LOAD, "define the function before its alias",
                           "an alias needs a declared name and a defined function");
    }
    bh__ptx_next(p);
    /* The alias becomes a function with the same body and registers of its own. */
    bh__ptx_function *f = alias->function;
    uint32_t index = f->index;
    const char *alias_name = f->name;
    bool called = f->called, address_taken = f->address_taken;
    *f = *target->function;
    f->index = index;
    f->name = alias_name;
    f->called = called;
    f->address_taken = address_taken;
    f->regs = bh__arena_alloc(&p->module->arena, f->reg_count, sizeof *f->regs);
    if (f->regs == NULL) {
        return bh__ptx_no_memory(p);
    }
    if (f->reg_count > 0) {
        memcpy(f->regs, target->function->regs, f->reg_count * sizeof *f->regs);
    }
    return bh__ptx_expect(p, ';', "after an alias");
}

static bool module_statement(bh__ptx_parser *p) {
    if (bh__ptx_is_dot(p, "file") || bh__ptx_is_dot(p, "loc")) {
        return source_line(p);
    }
    if (bh__ptx_is_dot(p, "section")) {
        return note_section(p);
    }
    if (bh__ptx_is_dot(p, "version")) {
        return parse_version(p);
    }
    if (bh__ptx_is_dot(p, "target")) {
        return parse_target(p);
    }
    if (bh__ptx_is_dot(p, "address_size")) {
        return parse_address_size(p);
    }
    if (bh__ptx_is_dot(p, "pragma")) {
        return skip_strings(p, ".pragma");
    }
    if (bh__ptx_is_dot(p, "alias")) {
        return parse_alias(p);
    }
    if (bh__ptx_accept(p, ';')) {
        return true;
    }
    uint8_t is_extern = 0;
    while (bh__ptx_is_dot(p, "visible") || bh__ptx_is_dot(p, "weak") ||
           bh__ptx_is_dot(p, "common") || bh__ptx_is_dot(p, "extern")) {
        is_extern |= bh__ptx_is_dot(p, "extern");
        bh__ptx_next(p);
    }
    if (bh__ptx_is_dot(p, "entry") || bh__ptx_is_dot(p, "func")) {
        return parse_function(p, bh__ptx_is_dot(p, "entry"), is_extern);
    }
    if (p->token.kind == TOKEN_DOT) {
        return bh__ptx_declaration(p, is_extern);
    }
    return bh__ptx_bad(p, BH_E_LOAD, "pass PTX text, as nvcc --ptx or clang -S write it",
                       "'%.*s' is not allowed outside a function",
                       p->token.length > 40 ? 40 : (int)p->token.length, p->text + p->token.start);
}

bh_status bh__ptx_parse(bh__ptx_module *module, bh_error *error) {
    bh__ptx_parser *p = bh__arena_alloc(&module->arena, 1, sizeof *p);
    if (p == NULL) {
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory", "no memory for the PTX parser");
    }
    p->module = module;
    p->error = error;
    p->text = module->text;
    p->length = (uint32_t)module->length;
    p->line = 1;
    bh__ptx_next(p);
    p->statement = p->token.start;
    p->statement_line = p->token.line;
    if (!bh__ptx_is_dot(p, "version")) {
        bh__ptx_bad(p, BH_E_LOAD, "pass PTX text, as nvcc --ptx or clang -S write it",
                    "the file does not start with .version, so it is not PTX");
        return p->status;
    }
    while (p->status == BH_OK && p->token.kind != TOKEN_END) {
        p->statement = p->token.start;
        p->statement_line = p->token.line;
        if (!module_statement(p) && p->status == BH_OK) {
            bh__ptx_bad(p, BH_E_LOAD, "compile the source again", "the statement is malformed");
        }
    }
    if (p->status == BH_OK && !(p->has_target && p->has_address_size)) {
        bh__ptx_bad(p, p->has_target ? BH_E_UNSUPPORTED : BH_E_LOAD,
                    "start the file with .version, .target and .address_size 64",
                    p->has_target ? "no .address_size, which means 32-bit addresses"
                                  : "the file has no .target");
    }
    return p->status;
}
