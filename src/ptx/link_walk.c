/* SPDX-License-Identifier: Apache-2.0 */
/* The names in the body of a function: which are operands, which the function declares. Nothing
 * else of its instructions matters to the linker, so it links those that the interpreter lacks. */
#include "ptx/link_state.h"

void bh__link_walk_begin(bh__link_walker *w, bh__ptx_parser *p) {
    *w = (bh__link_walker){.p = p, .depth = 1, .starts = true};
    bh__ptx_next(p);
}

/* .loc FILE LINE COLUMN, and more up to the end of the line. */
static void take_loc(bh__link_walker *w) {
    bh__ptx_parser *p = w->p;
    uint32_t line = p->token.line;
    w->token = p->token;
    w->loc_file = 0;
    for (unsigned n = 0; p->token.kind != TOKEN_END && p->token.line == line; n++) {
        if (n == 1 && p->token.kind == TOKEN_INT) w->loc_file = (uint32_t)p->token.value;
        w->line_end = p->token.start + p->token.length;
        if (n <= 3) w->loc_end = w->line_end;
        bh__ptx_next(p);
    }
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

static bool is_declaration(const bh__ptx_parser *p) {
    return !bh__ptx_is_dot(p, "branchtargets") && !bh__ptx_is_dot(p, "calltargets");
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

static bh__link_event take_word(bh__link_walker *w) {
    bh__ptx_parser *p = w->p;
    w->token = p->token;
    bh__ptx_next(p);
    if (w->declares && bh__ptx_is(p, '<')) return LINK_RANGE;
    return w->declares ? LINK_OWN : LINK_USE;
}

/* One token that is neither a word nor a .loc. Returns false at the end of the body. */
static bool take_other(bh__link_walker *w) {
    bh__ptx_parser *p = w->p;
    if (p->token.kind == TOKEN_DOT && w->starts) {
        w->starts = false;
        w->declares = is_declaration(p);
    } else if (bh__ptx_is(p, '=')) {
        w->declares = false;
    } else if (bh__ptx_is(p, ';')) {
        w->starts = true;
        w->declares = false;
    } else if (bh__ptx_is(p, '{')) { /* of a scope, or of an operand */
        w->depth++;
    } else if (bh__ptx_is(p, '}') && --w->depth == 0) {
        return false;
    }
    bh__ptx_next(p);
    return true;
}

bh__link_event bh__link_walk(bh__link_walker *w) {
    bh__ptx_parser *p = w->p;
    for (;;) {
        if (p->token.kind == TOKEN_END || p->token.kind == TOKEN_BAD) {
            bh__ptx_bad(p, BH_E_LOAD, "pass the whole PTX text; this text is cut off",
                        "the file ends inside a function");
            return LINK_END;
        }
        if (w->starts && bh__ptx_is_dot(p, "loc")) {
            take_loc(w);
            return LINK_LOC;
        }
        if (w->starts && bh__ptx_is(p, '@')) {
            if (take_guard(w)) return LINK_USE;
        } else if (p->token.kind == TOKEN_WORD && w->starts) {
            if (take_first(w)) return LINK_OWN;
        } else if (p->token.kind == TOKEN_WORD) {
            return take_word(w);
        } else if (!take_other(w)) {
            return LINK_END;
        }
    }
}
