/* SPDX-License-Identifier: Apache-2.0 */
/* The linker: which definition each name means, and what is wrong with that. */
#include "ptx/link/link.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ptx/link/state.h"

enum { MAX_LOGGED = 200 };

/* ---- texts and problems ---- */

bool bh__link_no_memory(bh__linker *l) {
    if (l->status == BH_OK)
        l->status = bh__fail(l->error, BH_E_NO_HOST_MEMORY, "free memory, or link fewer files",
                             "no memory to link %zu files of PTX", l->count);
    return false;
}

bool bh__link_append(bh__linker *l, char **text, size_t *length, size_t *capacity,
                     const char *bytes, size_t count) {
    if (l->status != BH_OK) return false;
    if (*capacity - *length <= count) {
        size_t room = *capacity < 4096 ? 4096 : *capacity;
        while (room - *length <= count && room < SIZE_MAX / 4) room *= 2;
        char *moved = bh__arena_alloc(l->arena, room, 1);
        if (moved == NULL) return bh__link_no_memory(l);
        if (*length > 0) memcpy(moved, *text, *length);
        *text = moved;
        *capacity = room;
    }
    memcpy(*text + *length, bytes, count);
    *length += count;
    (*text)[*length] = 0;
    return true;
}

void bh__link_problem(bh__linker *l, const char *fix, const char *format, ...) {
    char what[480], line[512];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (l->problems++ == 0) bh__fail(l->error, BH_E_COMPILE, fix, "%s", what);
    if (l->problems > MAX_LOGGED) return;
    int length = snprintf(line, sizeof line, "error: %s\n", what);
    bh__link_append(l, &l->log, &l->log_length, &l->log_capacity, line, (size_t)length);
}

/* ---- names ---- */

static bool grow_buckets(bh__linker *l) {
    uint32_t count = l->bucket_count == 0 ? 1024 : l->bucket_count * 2;
    bh__link_name **buckets = bh__arena_alloc(l->arena, count, sizeof *buckets);
    if (buckets == NULL) return bh__link_no_memory(l);
    for (uint32_t i = 0; i < l->bucket_count; i++) {
        for (bh__link_name *name = l->buckets[i], *next; name != NULL; name = next) {
            next = name->next_in_bucket;
            name->next_in_bucket = buckets[name->hash & (count - 1)];
            buckets[name->hash & (count - 1)] = name;
        }
    }
    l->buckets = buckets;
    l->bucket_count = count;
    return true;
}

bh__link_name *bh__link_find(bh__linker *l, bh__link_part *part, const char *text, uint32_t length,
                             bool make) {
    uint32_t scope = part != NULL ? (part->index + 1) * 2654435761u : 0;
    uint32_t hash = bh__ptx_hash(text, length) ^ scope;
    bh__link_name *name = l->bucket_count > 0 ? l->buckets[hash & (l->bucket_count - 1)] : NULL;
    while (name != NULL && !(name->hash == hash && name->part == part && name->length == length &&
                             memcmp(name->text, text, length) == 0))
        name = name->next_in_bucket;
    if (name != NULL || !make) return name;
    if (l->name_count >= l->bucket_count && !grow_buckets(l)) return NULL;
    name = bh__arena_alloc(l->arena, 1, sizeof *name);
    char *copy = name != NULL ? bh__arena_copy(l->arena, text, length) : NULL;
    if (copy == NULL) {
        bh__link_no_memory(l);
        return NULL;
    }
    name->text = copy;
    name->length = length;
    name->hash = hash;
    name->part = part;
    name->next_in_bucket = l->buckets[hash & (l->bucket_count - 1)];
    l->buckets[hash & (l->bucket_count - 1)] = name;
    l->name_count++;
    return name;
}

bh__link_name *bh__link_find_file(bh__linker *l, bh__link_part *part, uint32_t number, bool make) {
    char text[24];
    int length = snprintf(text, sizeof text, ".file %u", (unsigned)number);
    return bh__link_find(l, part, text, (uint32_t)length, make);
}

void bh__link_note_use(bh__link_name *name, uint32_t line) {
    if (!name->used) name->use_line = line;
    name->used = true;
}

static const char *sort_text(const bh__link_decl *decl) {
    return decl->sort == LINK_VARIABLE ? "variable"
           : decl->sort == LINK_KERNEL ? "kernel"
                                       : "function";
}

static const char *place(const bh__link_decl *decl, char out[BH__PTX_PLACE]) {
    return bh__ptx_place(&decl->part->module, decl->line, out);
}

/* ---- do two declarations agree? ---- */

typedef struct sentence {
    char text[120];
    size_t length;
} sentence;

static void add(sentence *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(sentence *to, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(to->text + to->length, sizeof to->text - to->length, format, list);
    va_end(list);
    size_t room = sizeof to->text - 1 - to->length;
    to->length += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room;
}

static void add_formals(sentence *to, const bh__link_decl *decl, uint32_t first, uint32_t count,
                        const char *what, bool aligns) {
    add(to, " with %u %s%s", (unsigned)count, what, count == 1 ? "" : "s");
    for (uint32_t i = 0; i < count && i < 4; i++) {
        const bh__link_formal *formal = &decl->formals[first + i];
        add(to, "%s%llu", i == 0 ? " (" : ", ",
            aligns ? (unsigned long long)formal->align : (unsigned long long)formal->size);
    }
    if (count > 0) add(to, "%s bytes%s)", count > 4 ? ", ..." : "", aligns ? " aligned" : "");
}

/* Writes what a declaration says, for a message: "a variable in .global of 4 bytes". If all sizes
 * agree, it is the alignments of parameters that do not. */
static void describe(const bh__link_decl *decl, bool aligns, sentence *out) {
    *out = (sentence){0};
    add(out, "a %s%s", decl->managed ? "managed " : "", sort_text(decl));
    if (decl->sort == LINK_VARIABLE) {
        int length = decl->space_length < 40 ? (int)decl->space_length : 40;
        add(out, " in %.*s", length, decl->part->module.text + decl->space);
        if (decl->size > 0 && !decl->unsized)
            add(out, " of %llu bytes", (unsigned long long)decl->size);
        return;
    }
    if (decl->result_count > 0) add_formals(out, decl, 0, decl->result_count, "result", aligns);
    add_formals(out, decl, decl->result_count, decl->param_count, "parameter", aligns);
}

static bool sizes_agree(const bh__link_decl *a, const bh__link_decl *b) {
    if (a->unsized || b->unsized || a->size == 0 || b->size == 0) return true;
    if (b->linkage == LINKAGE_COMMON) return b->size <= a->size;
    return a->size == b->size;
}

/* `aligns`: the alignments, otherwise the sizes. */
static bool formals_agree(const bh__link_decl *a, const bh__link_decl *b, bool aligns) {
    if (a->result_count != b->result_count || a->param_count != b->param_count) return false;
    for (uint32_t i = 0; i < a->result_count + a->param_count; i++) {
        const bh__link_formal *x = &a->formals[i], *y = &b->formals[i];
        if (x->size == 0 || y->size == 0) continue;
        if (aligns ? x->align != y->align : x->size != y->size) return false;
    }
    return true;
}

static bool agree(const bh__link_decl *a, const bh__link_decl *b) {
    if (a->sort != b->sort) return false;
    if (a->sort == LINK_VARIABLE)
        return a->space_length == b->space_length &&
               memcmp(a->part->module.text + a->space, b->part->module.text + b->space,
                      a->space_length) == 0 &&
               a->managed == b->managed && sizes_agree(a, b);
    return formals_agree(a, b, false) && formals_agree(a, b, true);
}

/* All declarations must agree with the definition, or, of what the device has, with the first. */
static void check_agreement(bh__linker *l, const bh__link_name *shared) {
    const bh__link_decl *with =
        shared->definition != NULL ? shared->definition : shared->uses->first;
    for (const bh__link_name *use = shared->uses; use != NULL; use = use->next_use) {
        for (const bh__link_decl *decl = use->first; decl != NULL; decl = decl->next) {
            if (decl == with || agree(with, decl)) continue;
            char here[BH__PTX_PLACE], there[BH__PTX_PLACE];
            sentence this, that;
            bool aligns = decl->sort != LINK_VARIABLE && with->sort != LINK_VARIABLE &&
                          formals_agree(with, decl, false);
            describe(decl, aligns, &this);
            describe(with, aligns, &that);
            bh__link_problem(l, "make both declarations the same",
                             "declarations of %.80s do not agree: %s on %s, %s on %s", shared->text,
                             this.text, place(decl, here), that.text, place(with, there));
            break;
        }
    }
}

/* ---- which definition a shared name means ---- */

/* A definition without a directive that another declaration made visible is a strong one. */
static bh__linkage strength(const bh__link_decl *decl) {
    return decl->linkage < LINKAGE_COMMON ? LINKAGE_VISIBLE : decl->linkage;
}

static void choose(bh__linker *l, bh__link_name *shared) {
    for (const bh__link_name *use = shared->uses; use != NULL; use = use->next_use) {
        bh__link_decl *best = shared->definition, *next = use->definition;
        if (next == NULL) continue;
        if (best == NULL) {
            shared->definition = next;
            continue;
        }
        bh__linkage of_best = strength(best), of_next = strength(next);
        if (of_best == LINKAGE_VISIBLE && of_next == LINKAGE_VISIBLE) {
            char here[BH__PTX_PLACE], before[BH__PTX_PLACE];
            bh__link_problem(l, "rename one of the two, make it static, or leave out one file",
                             "%s %.100s is defined twice: on %s, and before on %s", sort_text(next),
                             shared->text, place(next, here), place(best, before));
        }
        if (of_next > of_best ||
            (of_next == LINKAGE_COMMON && of_best == LINKAGE_COMMON && next->size > best->size))
            shared->definition = next;
    }
}

/* What the device itself has. */
static bool is_system(const bh__link_name *shared) {
    static const char *const names[] = {"vprintf", "malloc", "free", "__assertfail"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(shared->text, names[i]) == 0) return true;
    return false;
}

static bool is_dynamic_shared(const bh__link_decl *decl) {
    return decl->sort == LINK_VARIABLE && decl->unsized && decl->space_length == 7 &&
           memcmp(decl->part->module.text + decl->space, ".shared", 7) == 0;
}

static void report_missing(bh__linker *l, const bh__link_name *shared) {
    const bh__link_name *first = NULL;
    unsigned others = 0;
    for (const bh__link_name *use = shared->uses; use != NULL; use = use->next_use) {
        if (!use->used) continue;
        if (first == NULL)
            first = use;
        else
            others++;
    }
    if (first == NULL) return;
    char used[BH__PTX_PLACE], declared[BH__PTX_PLACE], more[40] = "";
    if (others > 0)
        snprintf(more, sizeof more, " and in %u other file%s", others, others == 1 ? "" : "s");
    bh__link_problem(l,
                     "link the file that defines it; compile parts with BH_COMPILE_RELOCATABLE "
                     "(--relocatable)",
                     "%s %.100s is not defined in any file; it is used on %s%s, and declared on %s",
                     sort_text(first->first), shared->text,
                     bh__ptx_place(&first->part->module, first->use_line, used), more,
                     place(first->first, declared));
}

/* A shared name that is used and not defined may be one of the device's own. */
static bool may_be_undefined(const bh__link_name *shared) {
    bool dynamic = true;
    for (const bh__link_name *use = shared->uses; use != NULL; use = use->next_use)
        for (const bh__link_decl *decl = use->first; decl != NULL; decl = decl->next)
            dynamic &= is_dynamic_shared(decl);
    return dynamic || is_system(shared);
}

static void resolve(bh__linker *l, bh__link_name *shared) {
    for (const bh__link_name *use = shared->uses; use != NULL; use = use->next_use) {
        shared->used |= use->used;
        for (const bh__link_decl *decl = use->first; decl != NULL; decl = decl->next) {
            shared->prototype |= !decl->defined;
            if (decl->align > shared->align) shared->align = decl->align;
        }
    }
    if (shared->definition != NULL || may_be_undefined(shared))
        check_agreement(l, shared);
    else
        report_missing(l, shared);
}

/* What weak definitions name counts if they are chosen. */
static void count_weak_uses(bh__linker *l) {
    for (size_t i = 0; i < l->weak_use_count; i++) {
        const bh__link_reference *use = &l->weak_uses[i];
        if (use->from->name->shared->definition == use->from) bh__link_note_use(use->to, use->line);
    }
}

/* ---- names of one file ---- */

static bool is_shared(const bh__link_name *name) {
    if (name->definition == NULL) return true;
    for (const bh__link_decl *decl = name->first; decl != NULL; decl = decl->next)
        if (decl->linkage != LINKAGE_LOCAL) return true;
    return false;
}

/* The number behind the last "$link" of a name that the linker made, so that names of another
 * number occur in no text. */
static void find_marker(bh__linker *l, const bh__link_part *part) {
    static const char mark[] = "$link";
    const char *at = part->module.text, *end = at + part->module.length;
    while ((at = memmem(at, (size_t)(end - at), mark, sizeof mark - 1)) != NULL) {
        uint32_t number = 0;
        for (at += sizeof mark - 1; at < end && *at >= '0' && *at <= '9'; at++)
            if (number < 100000000) number = number * 10 + (uint32_t)(*at - '0');
        if (number > l->marker) l->marker = number;
    }
}

/* Gives a local name another one, which no text has. */
static bool rename_local(bh__linker *l, bh__link_name *name) {
    size_t room = name->length + 40;
    char *text = bh__arena_alloc(l->arena, room, 1);
    if (text == NULL) return bh__link_no_memory(l);
    snprintf(text, room, "%s$link%u_%u", name->text, (unsigned)l->marker + 1,
             (unsigned)name->part->index);
    name->new_name = text;
    name->part->renames = true;
    return true;
}

/* Shared names keep their names; of local ones, those that come first. */
static bool settle_names(bh__linker *l) {
    for (size_t i = 0; i < l->count; i++) find_marker(l, &l->parts[i]);
    for (size_t i = 0; i < l->count; i++) {
        bh__link_part *part = &l->parts[i];
        for (size_t n = 0; n < part->name_count; n++) {
            bh__link_name *name = part->names[n];
            if (!name->local) continue;
            name->prototype = name->first->next != NULL;
            name->align = name->definition->align;
            if (bh__link_find(l, NULL, name->text, name->length, false) != NULL) {
                if (!rename_local(l, name)) return false;
            } else if (bh__link_find(l, NULL, name->text, name->length, true) == NULL) {
                return false;
            }
        }
    }
    return true;
}

/* NVIDIA's assembler takes a branch to a label behind it for a use of the module's name, if that
 * has one like it. So labels that are like names of other texts get new ones. */
static bool settle_labels(bh__linker *l) {
    for (size_t i = 0; i < l->count; i++) {
        bh__link_part *part = &l->parts[i];
        for (size_t n = 0; n < part->label_count; n++) {
            const char *text = part->module.text + part->labels[n].start;
            uint32_t length = part->labels[n].length;
            if (bh__link_find(l, NULL, text, length, false) == NULL) continue;
            bh__link_name *name = bh__link_find(l, part, text, length, true);
            if (name == NULL) return false;
            if (name->first != NULL || name->new_name != NULL) continue;
            part->percent |= *text == '%';
            if (!rename_local(l, name)) return false;
        }
    }
    return true;
}

static void each_shared(bh__linker *l, void each(bh__linker *l, bh__link_name *shared)) {
    for (size_t i = 0; i < l->count; i++) {
        for (size_t n = 0; n < l->parts[i].name_count; n++) {
            bh__link_name *name = l->parts[i].names[n];
            if (name->shared != NULL && name->shared->uses == name) each(l, name->shared);
        }
    }
}

static bool share_names(bh__linker *l) {
    for (size_t i = 0; i < l->count; i++) {
        for (size_t n = 0; n < l->parts[i].name_count; n++) {
            bh__link_name *name = l->parts[i].names[n];
            name->local = !is_shared(name);
            if (name->local) continue;
            bh__link_name *shared = bh__link_find(l, NULL, name->text, name->length, true);
            if (shared == NULL) return false;
            name->shared = shared;
            if (shared->uses == NULL)
                shared->uses = name;
            else
                shared->last_use->next_use = name;
            shared->last_use = name;
        }
    }
    each_shared(l, choose);
    count_weak_uses(l);
    each_shared(l, resolve);
    return settle_names(l) && settle_labels(l);
}

/* ---- the files as a whole ---- */

static const bh__link_decl *placed(const bh__link_name *name) {
    return name->shared != NULL ? name->shared->definition : name->definition;
}

/* Variables come in the order of their files. One whose address is needed before gets a
 * declaration before; functions always have one. */
static void order_variables(bh__linker *l) {
    uint32_t position = 0;
    for (size_t i = 0; i < l->count; i++)
        for (size_t n = 0; n < l->parts[i].decl_count; n++)
            l->parts[i].decls[n]->position = ++position;
    for (size_t i = 0; i < l->reference_count; i++) {
        const bh__link_reference *r = &l->references[i];
        const bh__link_decl *to = placed(r->to);
        if (placed(r->from->name) != r->from || to == NULL) continue;
        bh__link_name *deciding = r->to->shared != NULL ? r->to->shared : r->to;
        deciding->prototype = true;
        deciding->forward |= to->position >= r->from->position;
    }
}

static const char *option_of(const bh__link_part *part) {
    return part->options != NULL ? part->options : "texmode_unified";
}

static void check_heads(bh__linker *l) {
    const bh__link_part *first = &l->parts[0], *specific = NULL, *highest = first;
    for (size_t i = 0; i < l->count; i++) {
        const bh__link_part *part = &l->parts[i];
        if (part->address_size != first->address_size)
            bh__link_problem(l, "compile all files for 64-bit addresses",
                             "%.100s has addresses of %u bits, and %.100s has %u", part->name,
                             (unsigned)part->address_size, first->name,
                             (unsigned)first->address_size);
        if (strcmp(option_of(part), option_of(first)) != 0)
            bh__link_problem(l, "compile all files in the same way",
                             "%.100s has the target option %.40s, and %.100s has %.40s", part->name,
                             option_of(part), first->name, option_of(first));
        if (part->target > highest->target) highest = part;
        if (part->suffix != 0 && (specific == NULL || part->target < specific->target))
            specific = part;
    }
    if (specific != NULL && specific->target != highest->target)
        bh__link_problem(l, "compile all files for the same architecture",
                         "%.100s is for sm_%u%c, which only that architecture runs, and %.100s is "
                         "for sm_%u",
                         specific->name, (unsigned)specific->target, specific->suffix,
                         highest->name, (unsigned)highest->target);
}

/* The name as #line can have it. */
static char *clean_name(bh__linker *l, const char *name) {
    if (name == NULL || name[0] == 0) name = "(unnamed)";
    char *copy = bh__arena_copy(l->arena, name, strlen(name));
    for (char *at = copy; at != NULL && *at != 0; at++)
        if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') *at = '?';
    return copy;
}

static bool open_parts(bh__linker *l, const bh__ptx_text *texts) {
    l->parts = bh__arena_alloc(l->arena, l->count, sizeof *l->parts);
    if (l->parts == NULL) return bh__link_no_memory(l);
    size_t total = 0;
    for (size_t i = 0; i < l->count; i++) {
        bh__link_part *part = &l->parts[i];
        size_t length = texts[i].length;
        while (length > 0 && texts[i].text[length - 1] == 0) length--;
        total += length < BH__PTX_MAX_TEXT ? length : BH__PTX_MAX_TEXT;
        part->name = clean_name(l, texts[i].name);
        if (part->name == NULL) return bh__link_no_memory(l);
        part->index = (uint32_t)i;
        part->address_size = 32;
        part->module.name = part->name;
        part->module.text = texts[i].text;
        part->module.length = length;
        part->parser = (bh__ptx_parser){.module = &part->module,
                                        .error = l->error,
                                        .text = texts[i].text,
                                        .length = (uint32_t)length,
                                        .line = 1};
    }
    if (total < BH__PTX_MAX_TEXT) return true;
    l->status =
        bh__fail(l->error, BH_E_INVALID, "link fewer or smaller files",
                 "the PTX of %zu files has more than %zu bytes", l->count, BH__PTX_MAX_TEXT);
    return false;
}

/* A text that cannot be read is a problem like others, with the parser's message. */
static bool read_parts(bh__linker *l) {
    for (size_t i = 0; i < l->count; i++) {
        bh__link_part *part = &l->parts[i];
        bh_error why = {0};
        part->parser.error = &why;
        bool whole = bh__link_read(l, part);
        if (l->status != BH_OK) return false;
        if (!whole && part->parser.status == BH_E_NO_HOST_MEMORY) return bh__link_no_memory(l);
        if (!whole) bh__link_problem(l, why.fix, "%s", why.message);
    }
    return l->problems == 0;
}

static void finish(bh__linker *l, bh__ptx_linked *out) {
    if (l->problems > MAX_LOGGED) {
        char line[80];
        int length = snprintf(line, sizeof line, "and %llu more\n",
                              (unsigned long long)l->problems - MAX_LOGGED);
        bh__link_append(l, &l->log, &l->log_length, &l->log_capacity, line, (size_t)length);
    }
    out->log = l->log != NULL ? l->log : "";
    for (size_t i = 0; l->parts != NULL && i < l->count; i++)
        bh__arena_free(&l->parts[i].module.arena);
}

static void answer_names(bh__linker *l, const bh__ptx_text *texts) {
    for (size_t i = 0; i < l->count; i++) {
        for (size_t n = 0; n < texts[i].name_count; n++) {
            bh__ptx_name *asked = &texts[i].names[n];
            const bh__link_name *name =
                bh__link_find(l, &l->parts[i], asked->name, (uint32_t)strlen(asked->name), false);
            asked->result = name != NULL && name->new_name != NULL ? name->new_name : asked->name;
        }
    }
}

bh_status bh__ptx_link(bh__arena *arena, const bh__ptx_text *texts, size_t count, bh_error *error,
                       bh__ptx_linked *out) {
    bh__linker l = {.arena = arena, .error = error, .count = count};
    *out = (bh__ptx_linked){.log = ""};
    if (count == 0)
        return bh__fail(error, BH_E_INVALID, "give at least one file", "there is nothing to link");
    if (open_parts(&l, texts) && read_parts(&l)) {
        check_heads(&l);
        if (share_names(&l)) order_variables(&l);
    }
    if (l.status == BH_OK && l.problems == 0) bh__link_write(&l, out->arch);
    finish(&l, out);
    if (l.status != BH_OK) return l.status;
    if (l.problems > 0) return BH_E_COMPILE;
    answer_names(&l, texts);
    out->text = l.text;
    out->length = l.length;
    return BH_OK;
}
