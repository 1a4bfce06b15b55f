/* SPDX-License-Identifier: Apache-2.0 */
/* The names in the body of a function: which of them mean something of the module, which something
 * of the function. Nothing else of its instructions matters to the linker, so it links those that
 * the interpreter lacks. A name of the function counts from its declaration to the end of its
 * scope, as for NVIDIA's assembler. */
#include "ptx/link/state.h"

/* ---- scopes ---- */

static bool push(bh__link_walker *w, bh__link_scoped entry) {
    bh__linker *l = w->l;
    bh__link_scoped *list =
        bh__arena_grow(l->arena, l->scoped, l->scoped_count, &l->scoped_capacity, sizeof *list);
    if (list == NULL) return bh__link_no_memory(l);
    l->scoped = list;
    list[l->scoped_count++] = entry;
    return true;
}

static bool open_scope(bh__link_walker *w) {
    w->depth++;
    return push(w, (bh__link_scoped){.opens = true, .token = w->p->token});
}

static void close_scope(bh__link_walker *w) {
    bh__linker *l = w->l;
    bool opened = false;
    while (l->scoped_count > 0 && !opened) {
        bh__link_scoped *last = &l->scoped[--l->scoped_count];
        opened = last->opens;
        if (last->name != NULL) last->name->hidden_depth = last->before;
    }
    w->depth--;
}

bool bh__link_walk_hide(bh__link_walker *w, bh__link_name *name) {
    if (name == NULL || name->hidden_depth == w->depth) return true;
    bh__link_scoped entry = {.name = name, .before = name->hidden_depth};
    name->hidden_depth = w->depth;
    return push(w, entry);
}

uint32_t bh__link_walk_scope(const bh__link_walker *w) {
    size_t i = w->l->scoped_count;
    while (i > 0 && !w->l->scoped[i - 1].opens) i--;
    return i > 0 ? w->l->scoped[i - 1].token.start : 0;
}

/* Whether the word is one of the registers of name<count>: r0 to r3 of r<4>. As for NVIDIA's
 * assembler, r01 is r1. */
static bool in_range(const bh__link_walker *w, const bh__link_scoped *range) {
    const char *text = w->p->text + w->token.start;
    uint32_t prefix = range->token.length;
    if (w->token.length <= prefix || memcmp(text, w->p->text + range->token.start, prefix) != 0)
        return false;
    uint64_t number = 0;
    for (uint32_t i = prefix; i < w->token.length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        if (number < UINT32_MAX) number = number * 10 + (uint64_t)(text[i] - '0');
    }
    return number < range->count;
}

/* Whether the word is a register of a range that no nearer declaration hides. */
static bool is_register(const bh__link_walker *w, const bh__link_name *name) {
    uint32_t depth = w->depth;
    for (size_t i = w->l->scoped_count; i-- > 0 && depth > name->hidden_depth;) {
        const bh__link_scoped *entry = &w->l->scoped[i];
        depth -= entry->opens;
        if (entry->count > 0 && in_range(w, entry)) return true;
    }
    return false;
}

/* The name at module scope of the part that a word may mean. */
static bh__link_name *look_up(bh__link_walker *w) {
    const char *text = w->p->text + w->token.start;
    if (*text == '%' && !w->part->percent) return NULL;
    return bh__link_find(w->l, w->part, text, w->token.length, false);
}

static bh__link_event own(bh__link_walker *w, bh__link_event event) {
    w->name = look_up(w);
    return bh__link_walk_hide(w, w->name) ? event : LINK_END;
}

static bh__link_event use(bh__link_walker *w) {
    w->name = look_up(w);
    if (w->name == NULL) return LINK_NOTHING;
    if (is_register(w, w->name)) return LINK_NOTHING;
    return w->name->hidden_depth > 0 ? LINK_OWN : LINK_USE;
}

/* ---- statements ---- */

bool bh__link_walk_begin(bh__link_walker *w, bh__linker *l, bh__link_part *part,
                         bh__ptx_parser *p) {
    *w = (bh__link_walker){.l = l, .part = part, .p = p, .starts = true};
    l->scoped_count = 0;
    if (!open_scope(w)) return false;
    bh__ptx_next(p);
    return true;
}

/* The guard of an instruction: @p or @!p. Returns false if it names no register. */
static bool take_guard(bh__link_walker *w) {
    bh__ptx_parser *p = w->p;
    bh__ptx_next(p);
    bh__ptx_accept(p, '!');
    if (p->token.kind != TOKEN_WORD) return false;
    w->token = p->token;
    bh__ptx_next(p);
    return true;
}

static void begin_directive(bh__link_walker *w) {
    const bh__ptx_parser *p = w->p;
    w->starts = false;
    w->prototype = bh__ptx_is_dot(p, "callprototype");
    w->declares =
        !w->prototype && !bh__ptx_is_dot(p, "branchtargets") && !bh__ptx_is_dot(p, "calltargets");
}

/* A word that begins a statement: a label, or the name of an instruction. */
static bool take_first(bh__link_walker *w) {
    bh__ptx_parser *p = w->p;
    const bh__ptx_token *ahead = bh__ptx_peek(p);
    bool label = ahead->kind == TOKEN_PUNCT && ahead->punct == ':';
    w->token = p->token;
    bh__ptx_next(p);
    if (label) bh__ptx_next(p);
    w->starts = label;
    return label;
}

/* name<count>: a number of registers. */
static bh__link_event take_range(bh__link_walker *w) {
    bh__ptx_parser *p = w->p;
    const bh__ptx_token *count = bh__ptx_peek(p);
    uint64_t number = count->kind == TOKEN_INT ? count->value : 0;
    return push(w, (bh__link_scoped){.token = w->token, .count = number}) ? LINK_NOTHING : LINK_END;
}

static bh__link_event take_word(bh__link_walker *w) {
    bh__ptx_parser *p = w->p;
    w->token = p->token;
    bh__ptx_next(p);
    if (w->prototype) return LINK_NOTHING;
    if (!w->declares) return use(w);
    return bh__ptx_is(p, '<') ? take_range(w) : own(w, LINK_OWN);
}

/* One token that is neither a word nor a .loc. Returns false at the end of the body. */
static bool take_other(bh__link_walker *w) {
    bh__ptx_parser *p = w->p;
    if (p->token.kind == TOKEN_DOT && w->starts) {
        begin_directive(w);
    } else if (bh__ptx_is(p, '=')) {
        w->declares = false;
    } else if (bh__ptx_is(p, ';')) {
        w->starts = true;
        w->declares = w->prototype = false;
    } else if (bh__ptx_is(p, '{')) { /* of a scope, or of an operand */
        if (!open_scope(w)) return false;
    } else if (bh__ptx_is(p, '}')) {
        close_scope(w);
        if (w->depth == 0) return false;
    }
    bh__ptx_next(p);
    return true;
}

bh__link_event bh__link_walk(bh__link_walker *w) {
    bh__ptx_parser *p = w->p;
    for (;;) {
        bh__link_event event = LINK_NOTHING;
        if (p->token.kind == TOKEN_END || p->token.kind == TOKEN_BAD) {
            bh__ptx_bad(p, BH_E_LOAD, "pass the whole PTX text; this text is cut off",
                        "the file ends inside a function");
            return LINK_END;
        }
        if (w->starts && bh__ptx_is_dot(p, "loc")) {
            bh__ptx_loc_take(p, &w->loc);
            return LINK_LOC;
        }
        if (w->starts && bh__ptx_is(p, '@')) {
            if (take_guard(w)) event = use(w);
        } else if (p->token.kind == TOKEN_WORD && w->starts) {
            if (take_first(w)) event = own(w, LINK_LABEL);
        } else if (p->token.kind == TOKEN_WORD) {
            event = take_word(w);
        } else if (!take_other(w)) {
            return LINK_END;
        }
        if (event != LINK_NOTHING) return event;
    }
}
