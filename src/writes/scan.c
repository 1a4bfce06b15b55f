/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of PTX, names in scopes, and the graph of where addresses can flow. */
#include "writes/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* ---- tokens ---- */

/* Not <ctype.h>, for speed: initialisers can have megabytes. */
static bool in_word(char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '$' ||
           c == '%';
}

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static void skip_blanks(lexer *l) {
    while (l->at < l->end) {
        if (is_blank(*l->at)) {
            l->at++;
        } else if (*l->at == '#' || (l->end - l->at >= 2 && l->at[0] == '/' && l->at[1] == '/')) {
            bh__scan_skip_line(l); /* a comment, or #line */
        } else if (l->end - l->at >= 2 && l->at[0] == '/' && l->at[1] == '*') {
            for (l->at += 2; l->end - l->at >= 2 && (l->at[0] != '*' || l->at[1] != '/');) l->at++;
            l->at = l->end - l->at >= 2 ? l->at + 2 : l->end;
        } else {
            return;
        }
    }
}

void bh__scan_skip_line(lexer *l) {
    while (l->at < l->end && *l->at != '\n') l->at++;
}

bool bh__scan_next(lexer *l) {
    skip_blanks(l);
    const char *start = l->at;
    l->token = (token){start, 0};
    if (l->at == l->end) return false;
    char first = *l->at++;
    if (first == '"') {
        while (l->at < l->end && *l->at != '"' && *l->at != '\n') l->at++;
        if (l->at < l->end && *l->at == '"') l->at++;
    } else if (first == '.' || in_word(first)) {
        /* .shared::cta and the like are one modifier */
        while (l->at < l->end && (in_word(*l->at) || (first == '.' && l->end - l->at >= 2 &&
                                                      l->at[0] == ':' && l->at[1] == ':')))
            l->at += *l->at == ':' ? 2 : 1;
    }
    l->token.length = (size_t)(l->at - start);
    return true;
}

bool bh__scan_is(const lexer *l, const char *text) {
    return l->token.length == strlen(text) && memcmp(l->token.text, text, l->token.length) == 0;
}

bool bh__scan_word(const lexer *l) {
    return l->token.length > 0 && in_word(*l->token.text) && !is_digit(*l->token.text);
}

/* ---- the graph ---- */

static void *grow(graph *g, void *list, uint32_t count, uint32_t *capacity, size_t element) {
    if (count < *capacity) return list;
    uint32_t larger = *capacity ? *capacity * 2 : 64;
    void *moved = larger > *capacity ? realloc(list, larger * element) : NULL;
    if (!moved) {
        g->failed = true;
        return NULL;
    }
    *capacity = larger;
    return moved;
}

uint32_t bh__scan_node(graph *g) {
    uint32_t *into = grow(g, g->into, g->node_count, &g->node_capacity, sizeof *into);
    if (!into) return NODE_SINK;
    g->into = into;
    into[g->node_count] = 0;
    return g->node_count++;
}

void bh__scan_flow(graph *g, uint32_t from, uint32_t to) {
    if (from == NO_NODE || to == NO_NODE || from == to || g->failed) return;
    flow *flows = grow(g, g->flows, g->flow_count, &g->flow_capacity, sizeof *flows);
    if (!flows) return;
    g->flows = flows;
    flows[g->flow_count] = (flow){from, g->into[to]};
    g->into[to] = ++g->flow_count;
}

/* ---- names ---- */

static uint64_t hash_name(uint32_t scope, token name) {
    uint64_t hash = scope + 0x9e3779b9u;
    for (size_t i = 0; i < name.length; i++) hash = hash * 31 + (uint8_t)name.text[i];
    return bh__hash_u64(hash);
}

static binding *find_slot(const graph *g, uint32_t scope, token name) {
    uint32_t mask = g->slots - 1;
    for (uint32_t at = (uint32_t)hash_name(scope, name) & mask;; at = (at + 1) & mask) {
        binding *b = &g->table[at];
        if (b->length == 0 || (b->scope == scope && b->length == name.length &&
                               memcmp(b->name, name.text, name.length) == 0))
            return b;
    }
}

uint32_t bh__scan_find(const graph *g, uint32_t scope, token name) {
    if (g->slots == 0) return NO_NODE;
    const binding *b = find_slot(g, scope, name);
    return b->length ? b->value : NO_NODE;
}

static bool make_room(graph *g) {
    if (g->slots && g->bound < g->slots / 2) return true;
    uint32_t old_slots = g->slots, slots = old_slots ? old_slots * 2 : 256;
    binding *old = g->table, *table = slots > old_slots ? calloc(slots, sizeof *table) : NULL;
    if (!table) {
        g->failed = true;
        return false;
    }
    g->table = table;
    g->slots = slots;
    for (uint32_t i = 0; i < old_slots; i++) {
        if (old[i].length)
            *find_slot(g, old[i].scope, (token){old[i].name, old[i].length}) = old[i];
    }
    free(old);
    return true;
}

void bh__scan_bind(graph *g, uint32_t scope, token name, uint32_t value) {
    if (name.length == 0 || name.length > UINT32_MAX || !make_room(g)) return;
    binding *b = find_slot(g, scope, name);
    if (b->length == 0) g->bound++;
    *b = (binding){name.text, (uint32_t)name.length, scope, value};
}

void bh__scan_scope_open(graph *g) {
    if (g->depth == MAX_DEPTH) {
        g->failed = true;
        return;
    }
    g->scopes[g->depth++] = FIRST_SCOPE + g->scope_count++;
}

void bh__scan_scope_close(graph *g) {
    if (g->depth == 0) return;
    uint32_t scope = g->scopes[--g->depth];
    while (g->range_count && g->ranges[g->range_count - 1].scope == scope) g->range_count--;
}

void bh__scan_range(graph *g, token prefix, uint64_t count) {
    range *ranges = grow(g, g->ranges, g->range_count, &g->range_capacity, sizeof *ranges);
    if (!ranges || g->depth == 0) return;
    g->ranges = ranges;
    ranges[g->range_count++] = (range){prefix, count, g->scopes[g->depth - 1]};
}

static bool in_range(const range *r, token name) {
    if (name.length <= r->prefix.length || memcmp(name.text, r->prefix.text, r->prefix.length) != 0)
        return false;
    uint64_t number = 0;
    for (size_t i = r->prefix.length; i < name.length; i++) {
        if (!is_digit(name.text[i]) || number > UINT32_MAX) return false;
        number = number * 10 + (uint64_t)(name.text[i] - '0');
    }
    return number < r->count;
}

static uint32_t bind_new(graph *g, uint32_t scope, token name) {
    uint32_t node = bh__scan_node(g);
    bh__scan_bind(g, scope, name, node);
    return node;
}

uint32_t bh__scan_resolve(graph *g, token name) {
    uint32_t left = g->range_count;
    for (uint32_t d = g->depth; d-- > 0;) {
        uint32_t scope = g->scopes[d], node = bh__scan_find(g, scope, name);
        if (node != NO_NODE) return node;
        for (; left && g->ranges[left - 1].scope == scope; left--)
            if (in_range(&g->ranges[left - 1], name)) return bind_new(g, scope, name);
    }
    uint32_t variable = bh__scan_find(g, SCOPE_VARIABLES, name);
    if (variable != NO_NODE) return variable;
    if (bh__scan_find(g, SCOPE_FUNCTIONS, name) != NO_NODE || g->depth == 0) return NO_NODE;
    return bind_new(g, g->scopes[0], name);
}
