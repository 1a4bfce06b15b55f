/* SPDX-License-Identifier: Apache-2.0 */
/* Names: scopes, declarations, registers created on first use, and forward references to labels. */
#include <stdio.h>
#include <string.h>

#include "ptx/parse/parse.h"

uint32_t bh__ptx_hash(const char *name, uint32_t length) {
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < length; i++) {
        h = (h ^ (unsigned char)name[i]) * 16777619u;
    }
    return h ^ h >> 15;
}

static bh__ptx_symbol *find_exact(const bh__ptx_parser *p, const char *name, uint32_t length) {
    if (p->bucket_count == 0) {
        return NULL;
    }
    uint32_t hash = bh__ptx_hash(name, length);
    bh__ptx_symbol *best = NULL;
    for (bh__ptx_symbol *s = p->buckets[hash & (p->bucket_count - 1)]; s != NULL; s = s->next) {
        if (s->hash == hash && s->length == length && memcmp(s->name, name, length) == 0 &&
            (best == NULL || s->depth > best->depth)) {
            best = s;
        }
    }
    return best;
}

bh__ptx_symbol *bh__ptx_find_global(const bh__ptx_parser *p, const char *name, uint32_t length) {
    if (p->bucket_count == 0) {
        return NULL;
    }
    uint32_t hash = bh__ptx_hash(name, length);
    bh__ptx_symbol *s = p->buckets[hash & (p->bucket_count - 1)];
    while (s != NULL && !(s->depth == 0 && s->hash == hash && s->length == length &&
                          memcmp(s->name, name, length) == 0)) {
        s = s->next;
    }
    return s;
}

static bool grow_buckets(bh__ptx_parser *p) {
    uint32_t count = p->bucket_count == 0 ? 256 : p->bucket_count * 2;
    bh__ptx_symbol **buckets = bh__arena_alloc(&p->module->arena, count, sizeof *buckets);
    if (buckets == NULL) {
        return bh__ptx_no_memory(p);
    }
    for (uint32_t i = 0; i < p->bucket_count; i++) {
        while (p->buckets[i] != NULL) {
            bh__ptx_symbol *s = p->buckets[i];
            p->buckets[i] = s->next;
            s->next = buckets[s->hash & (count - 1)];
            buckets[s->hash & (count - 1)] = s;
        }
    }
    p->buckets = buckets;
    p->bucket_count = count;
    return true;
}

static bh__ptx_symbol *insert(bh__ptx_parser *p, const char *name, uint32_t length,
                              bh__ptx_symbol_kind kind, uint32_t depth) {
    if (p->symbol_count >= p->bucket_count && !grow_buckets(p)) {
        return NULL;
    }
    bh__ptx_symbol *s = bh__arena_alloc(&p->module->arena, 1, sizeof *s);
    char *copy = bh__arena_copy(&p->module->arena, name, length);
    if (s == NULL || copy == NULL) {
        bh__ptx_no_memory(p);
        return NULL;
    }
    s->name = copy;
    s->length = length;
    s->hash = bh__ptx_hash(name, length);
    s->kind = kind;
    s->line = p->statement_line;
    s->depth = depth;
    s->in_scope = p->scopes[depth];
    p->scopes[depth] = s;
    bh__ptx_symbol **bucket = &p->buckets[s->hash & (p->bucket_count - 1)];
    s->next = *bucket;
    *bucket = s;
    p->symbol_count++;
    return s;
}

bh__ptx_symbol *bh__ptx_declare(bh__ptx_parser *p, const char *name, uint32_t length,
                                bh__ptx_symbol_kind kind) {
    bh__ptx_symbol *old = find_exact(p, name, length);
    if (old != NULL && old->depth == p->depth) {
        char place[BH__PTX_PLACE];
        bh__ptx_bad(p, BH_E_LOAD, "rename one of the two", "%.*s is declared twice, first on %s",
                    length > 80 ? 80 : (int)length, name,
                    bh__ptx_place(p->module, old->line, place));
        return NULL;
    }
    bh__ptx_symbol *s = insert(p, name, length, kind, p->depth);
    if (s != NULL && kind == SYMBOL_REGS && p->depth > 1) {
        p->inner_ranges++;
    }
    return s;
}

/* Parses "%r12": a declared range "%r" with more than 12 registers. */
static bh__ptx_symbol *find_in_range(const bh__ptx_parser *p, const char *name, uint32_t length) {
    bh__ptx_symbol *best = NULL;
    uint64_t number = 0, scale = 1;
    for (uint32_t digits = 1; digits < length && digits <= 9; digits++, scale *= 10) {
        char c = name[length - digits];
        if (c < '0' || c > '9') {
            break;
        }
        number += (uint64_t)(c - '0') * scale;
        if (c == '0' && digits > 1) {
            continue; /* %r01 is not %r1 */
        }
        bh__ptx_symbol *s = find_exact(p, name, length - digits);
        if (s != NULL && s->kind == SYMBOL_REGS && number < s->count &&
            (best == NULL || s->depth > best->depth)) {
            best = s;
        }
    }
    return best;
}

enum { COMPARED = 1024 }; /* registers of a range, so that a long list costs no more */

/* A single register of the current scope that a range of `count` registers has too, or NULL. */
static bh__ptx_symbol *single_in(const bh__ptx_parser *p, const bh__ptx_symbol *range) {
    char name[80];
    for (uint32_t n = 0; range->length < 60 && n < range->count && n < COMPARED; n++) {
        int length = snprintf(name, sizeof name, "%s%u", range->name, (unsigned)n);
        bh__ptx_symbol *s = find_exact(p, name, (uint32_t)length);
        if (s != NULL && s->kind == SYMBOL_REG && s->depth == range->depth) {
            return s;
        }
    }
    return NULL;
}

bool bh__ptx_check_range(bh__ptx_parser *p, const bh__ptx_symbol *symbol) {
    bool single = symbol->kind == SYMBOL_REG;
    char last = symbol->name[symbol->length - 1], place[BH__PTX_PLACE];
    bool numbered = single && last >= '0' && last <= '9';
    p->numbered_singles |= numbered;
    const bh__ptx_symbol *other = NULL, *range = symbol;
    if (numbered) {
        range = find_in_range(p, symbol->name, symbol->length);
        other = range != NULL && range->depth == symbol->depth ? symbol : NULL;
    } else if (!single && p->numbered_singles) {
        other = single_in(p, symbol);
    }
    return other == NULL ||
           bh__ptx_bad(p, BH_E_LOAD, "rename one of the two",
                       "%.60s is declared twice: alone, and as one of %.60s<%u> on %s", other->name,
                       range->name, (unsigned)range->count,
                       bh__ptx_place(p->module, range->line, place));
}

bh__ptx_symbol *bh__ptx_find(bh__ptx_parser *p, const char *name, uint32_t length) {
    bh__ptx_symbol *found = find_exact(p, name, length);
    if (found != NULL && found->kind == SYMBOL_REGS) {
        found = NULL;
    }
    bool nearest = found != NULL && (p->inner_ranges == 0 ? found->depth > 0 || p->depth == 0
                                                          : found->depth == p->depth);
    if (nearest) {
        return found;
    }
    bh__ptx_symbol *range = find_in_range(p, name, length);
    if (range == NULL || (found != NULL && found->depth >= range->depth)) {
        return found;
    }
    bh__ptx_symbol *s = insert(p, name, length, SYMBOL_REG, range->depth);
    if (s == NULL) {
        return NULL;
    }
    s->type = range->type;
    s->vector = range->vector;
    s->count = range->vector;
    s->first = bh__ptx_new_reg(p, range->type);
    for (unsigned n = 1; n < s->vector && s->first != NO_REG; n++) {
        s->first = bh__ptx_new_reg(p, range->type) == NO_REG ? NO_REG : s->first;
    }
    return s->first == NO_REG ? NULL : s;
}

bool bh__ptx_scope_open(bh__ptx_parser *p) {
    if (p->depth >= BH__PTX_MAX_DEPTH) {
        return bh__ptx_bad(p, BH_E_LOAD, "nest scopes less deeply", "more than %d nested scopes",
                           BH__PTX_MAX_DEPTH);
    }
    uint32_t *parents = bh__arena_grow(&p->module->arena, p->scope_parents, p->scope_count,
                                       &p->scope_capacity, sizeof *parents);
    if (parents == NULL) {
        return bh__ptx_no_memory(p);
    }
    p->scope_parents = parents;
    parents[p->scope_count] = p->depth == 0 ? UINT32_MAX : p->scope_ids[p->depth];
    p->depth++;
    p->scope_ids[p->depth] = p->scope_count++;
    p->scopes[p->depth] = NULL;
    p->scope_from[p->depth] = p->token.start;
    p->local_saved[p->depth] = p->local_top;
    return true;
}

/*
 * Allocates a slot in the frame of the current function. The slot of a .param variable is reused
 * when its scope ends. That of a .local variable is not, because its address may still be in use.
 */
bool bh__ptx_place_local(bh__ptx_parser *p, bh__ptx_var *var) {
    bh__ptx_function *f = p->function;
    uint64_t offset = (p->local_top + var->align - 1) & ~((uint64_t)var->align - 1);
    uint64_t end = offset + var->size;
    if (end > BH__PTX_MAX_LOCAL) {
        return bh__ptx_bad(p, BH_E_LOAD, "make the variables smaller",
                           "local variables of more than %llu bytes in one function",
                           (unsigned long long)BH__PTX_MAX_LOCAL);
    }
    var->offset = (uint32_t)offset;
    p->local_top = end;
    if (end > f->local_bytes) {
        f->local_bytes = (uint32_t)end;
    }
    if (var->align > f->local_align) {
        f->local_align = var->align;
    }
    for (uint32_t d = 1; var->space == SPACE_LOCAL && d <= p->depth; d++) {
        p->local_saved[d] = end;
    }
    return true;
}

/* Notes what the registers of a scope that ends are called, for debugging. */
static void name_registers(const bh__ptx_parser *p, const bh__ptx_symbol *s) {
    bh__ptx_function *f = p->function;
    uint8_t parts = s->vector > 1 ? s->vector : 1;
    for (uint8_t n = 0; f != NULL && s->kind == SYMBOL_REG && n < parts; n++) {
        if (s->first < f->reg_count && n < f->reg_count - s->first) {
            bh__ptx_reg *r = &f->regs[s->first + n];
            r->name = s->name;
            r->from = p->scope_from[p->depth];
            r->to = p->token.start;
            r->part = n;
            r->parts = parts;
        }
    }
}

/* The same for parameters and local variables. Without memory for it, there is just no name. */
static void name_variable(const bh__ptx_parser *p, const bh__ptx_symbol *s) {
    bh__ptx_function *f = p->function;
    if (f == NULL || s->kind != SYMBOL_VAR || s->var == NULL ||
        (s->var->space != SPACE_LOCAL && s->var->space != SPACE_PARAM)) {
        return;
    }
    bh__ptx_named *named = bh__arena_grow(&p->module->arena, f->named, f->named_count,
                                          &f->named_capacity, sizeof *named);
    if (named != NULL) {
        f->named = named;
        named[f->named_count++] = (bh__ptx_named){s->name, s->var};
    }
}

void bh__ptx_scope_close(bh__ptx_parser *p) {
    for (bh__ptx_symbol *s = p->scopes[p->depth]; s != NULL; s = s->in_scope) {
        name_registers(p, s);
        name_variable(p, s);
        bh__ptx_symbol **link = &p->buckets[s->hash & (p->bucket_count - 1)];
        while (*link != s) {
            link = &(*link)->next;
        }
        *link = s->next;
        p->symbol_count--;
        if (s->kind == SYMBOL_REGS && p->depth > 1) {
            p->inner_ranges--;
        }
    }
    p->scopes[p->depth] = NULL;
    p->local_top = p->local_saved[p->depth];
    p->depth--;
}

uint32_t bh__ptx_new_reg(bh__ptx_parser *p, bh__ptx_type type) {
    bh__ptx_function *f = p->function;
    bh__ptx_reg *regs =
        bh__arena_grow(&p->module->arena, f->regs, f->reg_count, &f->reg_capacity, sizeof *regs);
    if (regs == NULL) {
        bh__ptx_no_memory(p);
        return NO_REG;
    }
    f->regs = regs;
    regs[f->reg_count] = (bh__ptx_reg){.type = type};
    return f->reg_count++;
}

static bh__ptx_label *label_find(const bh__ptx_parser *p, const char *name, uint32_t length,
                                 uint32_t hash, uint32_t scope) {
    if (p->label_bucket_count == 0) {
        return NULL;
    }
    uint32_t i = p->label_buckets[(hash + scope) & (p->label_bucket_count - 1)];
    while (i != 0) {
        bh__ptx_label *l = &p->labels[i - 1];
        if (l->hash == hash && l->scope == scope && l->length == length &&
            memcmp(p->text + l->start, name, length) == 0) {
            return l;
        }
        i = l->next;
    }
    return NULL;
}

static bool label_rehash(bh__ptx_parser *p) {
    uint32_t count = p->label_bucket_count == 0 ? 64 : p->label_bucket_count * 2;
    uint32_t *buckets = bh__arena_alloc(&p->module->arena, count, sizeof *buckets);
    if (buckets == NULL) {
        return bh__ptx_no_memory(p);
    }
    for (uint32_t i = 0; i < p->label_count; i++) {
        uint32_t *bucket = &buckets[(p->labels[i].hash + p->labels[i].scope) & (count - 1)];
        p->labels[i].next = *bucket;
        *bucket = i + 1;
    }
    p->label_buckets = buckets;
    p->label_bucket_count = count;
    return true;
}

bool bh__ptx_label_define(bh__ptx_parser *p, const bh__ptx_token *name) {
    const char *text = p->text + name->start;
    uint32_t hash = bh__ptx_hash(text, name->length), scope = p->scope_ids[p->depth];
    bh__ptx_label *old = label_find(p, text, name->length, hash, scope);
    if (old != NULL) {
        char place[BH__PTX_PLACE];
        return bh__ptx_bad(p, BH_E_LOAD, "rename one of the two",
                           "label %.*s is defined twice, first on %s",
                           name->length > 80 ? 80 : (int)name->length, text,
                           bh__ptx_place(p->module, old->line, place));
    }
    bh__ptx_label *labels = bh__arena_grow(&p->module->arena, p->labels, p->label_count,
                                           &p->label_capacity, sizeof *labels);
    if (labels == NULL) {
        return bh__ptx_no_memory(p);
    }
    p->labels = labels;
    if (p->label_count >= p->label_bucket_count && !label_rehash(p)) {
        return false;
    }
    uint32_t *bucket = &p->label_buckets[(hash + scope) & (p->label_bucket_count - 1)];
    labels[p->label_count] = (bh__ptx_label){.start = name->start,
                                             .length = name->length,
                                             .hash = hash,
                                             .scope = scope,
                                             .line = name->line,
                                             .index = p->function->insn_count,
                                             .next = *bucket};
    *bucket = ++p->label_count;
    return true;
}

bool bh__ptx_label_use_add(bh__ptx_parser *p, const bh__ptx_token *name, uint64_t *imm,
                           uint32_t *index) {
    bh__ptx_label_use *uses =
        bh__arena_grow(&p->module->arena, p->uses, p->use_count, &p->use_capacity, sizeof *uses);
    if (uses == NULL) {
        return bh__ptx_no_memory(p);
    }
    p->uses = uses;
    uses[p->use_count++] =
        (bh__ptx_label_use){.start = name->start,
                            .length = name->length,
                            .hash = bh__ptx_hash(p->text + name->start, name->length),
                            .scope = p->scope_ids[p->depth],
                            .line = p->statement_line,
                            .text = p->statement,
                            .imm = imm,
                            .index = index};
    return true;
}

bool bh__ptx_labels_resolve(bh__ptx_parser *p) {
    for (uint32_t i = 0; i < p->use_count; i++) {
        const bh__ptx_label_use *use = &p->uses[i];
        const char *name = p->text + use->start;
        bh__ptx_label *label = NULL;
        for (uint32_t s = use->scope; label == NULL && s != UINT32_MAX; s = p->scope_parents[s]) {
            label = label_find(p, name, use->length, use->hash, s);
        }
        if (label == NULL) {
            p->statement = use->text;
            p->statement_line = use->line;
            return bh__ptx_bad(p, BH_E_LOAD, "add the label, or correct its name",
                               "there is no label %.*s in this function",
                               use->length > 80 ? 80 : (int)use->length, name);
        }
        if (use->imm != NULL) {
            *use->imm = label->index;
        } else {
            *use->index = label->index;
        }
    }
    p->use_count = p->label_count = p->label_bucket_count = p->scope_count = 0;
    return true;
}
