/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the variables that the kernels of a PTX text can write, in two passes: one for the names of
 * variables and functions, one for what is done with them. */
#include <stdlib.h>
#include <string.h>

#include "writes/scan.h"

/* ---- declarations ---- */

static bool at_char(const lexer *l, char c) {
    return l->token.length == 1 && *l->token.text == c;
}

/* Skips from an opening bracket to behind the one that closes it. */
static void skip_nested(lexer *l) {
    int depth = 0;
    do {
        char c = l->token.length ? *l->token.text : 0;
        if (c == '{' || c == '(' || c == '[') depth++;
        if (c == '}' || c == ')' || c == ']') depth--;
    } while (depth > 0 && bh__scan_next(l));
}

static uint32_t variable_node(graph *g, token name) {
    uint32_t node = bh__scan_find(g, SCOPE_VARIABLES, name);
    if (node != NO_NODE) return node;
    node = bh__scan_node(g);
    bh__scan_bind(g, SCOPE_VARIABLES, name, node);
    return node;
}

/* Behind .global: the variables, or, in the second pass, the addresses in their initialisers.
 * Behind .const only the latter. */
static void read_variables(graph *g, lexer *l, bool declares, bool first_pass) {
    bool named = false, values = false;
    int depth = 0;
    while (bh__scan_next(l)) {
        char c = *l->token.text;
        if (c == ';') return;
        if (values) {
            if (c == '{') depth++;
            if (c == '}') depth--;
            if (c == ',' && depth <= 0) {
                named = values = false;
            } else if (!first_pass && bh__scan_word(l)) {
                bh__scan_flow(g, bh__scan_find(g, SCOPE_VARIABLES, l->token), NODE_SINK);
            }
        } else if (c == '(' || c == '[') {
            skip_nested(l);
        } else if (c == '=') {
            values = true;
            depth = 0;
        } else if (c == ',') {
            named = false;
        } else if (bh__scan_word(l) && !named) {
            named = true;
            if (declares && first_pass) variable_node(g, l->token);
        }
    }
}

/* Behind .reg, .param, .local or .shared in a function. */
static void read_locals(graph *g, lexer *l) {
    token name = {0};
    while (bh__scan_next(l)) {
        char c = *l->token.text;
        if (c == '<') {
            uint64_t count = 0;
            if (bh__scan_next(l)) {
                char text[24] = "";
                memcpy(text, l->token.text, l->token.length < 23 ? l->token.length : 23);
                count = strtoull(text, NULL, 0);
            }
            if (name.length) bh__scan_range(g, name, count);
            name.length = 0;
        } else if (c == '(' || c == '[') {
            skip_nested(l);
        } else if (c == ',' || c == ';') {
            if (name.length) bh__scan_bind(g, g->scopes[g->depth - 1], name, bh__scan_node(g));
            name.length = 0;
            if (c == ';') return;
        } else if (bh__scan_word(l)) {
            name = l->token;
        }
    }
}

/* ---- functions ---- */

static function *find_function(graph *g, token name) {
    uint32_t index = bh__scan_find(g, SCOPE_FUNCTIONS, name);
    if (index != NO_NODE) return &g->functions[index];
    if (g->function_count == g->function_capacity) {
        uint32_t capacity = g->function_capacity ? g->function_capacity * 2 : 16;
        function *functions = realloc(g->functions, capacity * sizeof *functions);
        if (!functions) {
            g->failed = true;
            return NULL;
        }
        g->functions = functions;
        g->function_capacity = capacity;
    }
    g->functions[g->function_count] = (function){0};
    bh__scan_bind(g, SCOPE_FUNCTIONS, name, g->function_count);
    return &g->functions[g->function_count++];
}

typedef struct header {
    token name;
    token *formals; /* Owned. Results first. */
    uint32_t result_count, formal_count, capacity;
    bool body;
} header;

/* At the bracket that opens a list of parameters. */
static void read_formals(graph *g, lexer *l, header *h) {
    token name = {0};
    for (int depth = 0; bh__scan_next(l);) {
        char c = *l->token.text;
        bool ends = depth == 0 && (c == ',' || c == ')');
        if (ends && name.length) {
            if (h->formal_count == h->capacity) {
                uint32_t capacity = h->capacity ? h->capacity * 2 : 8;
                token *formals = realloc(h->formals, capacity * sizeof *formals);
                if (!formals) {
                    g->failed = true;
                    return;
                }
                h->formals = formals;
                h->capacity = capacity;
            }
            h->formals[h->formal_count++] = name;
            name.length = 0;
        }
        if (ends && c == ')') return;
        if (c == '[' || c == '(') depth++;
        if (c == ']' || c == ')') depth--;
        if (depth == 0 && bh__scan_word(l)) name = l->token;
    }
}

/* Behind .func or .entry, up to the brace that opens the body or the semicolon. */
static void read_header(graph *g, lexer *l, header *h) {
    while (bh__scan_next(l)) {
        char c = *l->token.text;
        if (c == '(') {
            bool results = h->name.length == 0;
            read_formals(g, l, h);
            if (results) h->result_count = h->formal_count;
        } else if (bh__scan_is(l, ".pragma")) {
            while (bh__scan_next(l) && *l->token.text != ';') {
            }
        } else if (c == '{' || c == ';') {
            h->body = c == '{';
            return;
        } else if (bh__scan_word(l) && h->name.length == 0) {
            h->name = l->token;
        }
    }
}

static void note_function(graph *g, const header *h, bool entry) {
    function *f = find_function(g, h->name);
    if (!f || !h->body || f->formals) return; /* of two with the same name the first one counts */
    f->defined = !entry;                      /* kernels are not called */
    f->result_count = h->result_count;
    f->formal_count = h->formal_count;
    f->formals = calloc(h->formal_count + 1, sizeof *f->formals);
    if (!f->formals) {
        g->failed = true;
        f->result_count = f->formal_count = 0;
        f->defined = false;
        return;
    }
    for (uint32_t i = 0; i < h->formal_count; i++) f->formals[i] = bh__scan_node(g);
}

static void bind_formals(graph *g, const header *h) {
    uint32_t index = bh__scan_find(g, SCOPE_FUNCTIONS, h->name);
    if (index == NO_NODE) return;
    const function *f = &g->functions[index];
    for (uint32_t i = 0; i < h->formal_count && i < f->formal_count; i++)
        bh__scan_bind(g, g->scopes[0], h->formals[i], f->formals[i]);
}

/* Behind the brace that opens the body. The first pass reads only the variables declared in it. */
static void read_body(graph *g, lexer *l, bool first_pass) {
    uint32_t depth = 1;
    bool starts = true; /* a statement */
    while (depth && !g->failed && bh__scan_next(l)) {
        char c = *l->token.text;
        if (c == '{' || c == '}') {
            depth += c == '{' ? 1 : -1;
            if (!first_pass && c == '{') bh__scan_scope_open(g);
            if (!first_pass && c == '}') bh__scan_scope_close(g);
            starts = true;
        } else if (c == ';' || c == ':') {
            starts = true;
        } else if (starts && (bh__scan_is(l, ".loc") || bh__scan_is(l, ".file"))) {
            bh__scan_skip_line(l);
        } else if (starts && (bh__scan_is(l, ".global") || bh__scan_is(l, ".const"))) {
            read_variables(g, l, bh__scan_is(l, ".global"), first_pass);
        } else if (first_pass) {
            starts = false;
        } else if (c == '@') {
            bool negated = bh__scan_next(l) && at_char(l, '!');
            if (negated) bh__scan_next(l);
        } else if (bh__scan_is(l, ".reg") || bh__scan_is(l, ".param") || bh__scan_is(l, ".local") ||
                   bh__scan_is(l, ".shared")) {
            read_locals(g, l);
        } else if (c == '.') {
            while (bh__scan_next(l) && *l->token.text != ';') {
            }
        } else if (bh__scan_word(l)) {
            token opcode = l->token;
            const lexer before = *l;
            bool label = bh__scan_next(l) && at_char(l, ':');
            if (label) continue;
            *l = before;
            bh__scan_instruction(g, l, opcode);
        }
    }
}

static void read_function(graph *g, lexer *l, bool entry, bool first_pass) {
    header h = {0};
    read_header(g, l, &h);
    if (first_pass) note_function(g, &h, entry);
    if (h.body && !first_pass) {
        g->depth = g->range_count = 0;
        bh__scan_scope_open(g);
        bind_formals(g, &h);
    }
    if (h.body) read_body(g, l, first_pass);
    free(h.formals);
}

/* ---- modules ---- */

static void read_module(graph *g, lexer l, bool first_pass) {
    while (!g->failed && bh__scan_next(&l)) {
        if (bh__scan_is(&l, ".global") || bh__scan_is(&l, ".const")) {
            read_variables(g, &l, bh__scan_is(&l, ".global"), first_pass);
        } else if (bh__scan_is(&l, ".func") || bh__scan_is(&l, ".entry")) {
            read_function(g, &l, bh__scan_is(&l, ".entry"), first_pass);
        } else if (at_char(&l, '{')) {
            skip_nested(&l); /* a section for debuggers */
        } else if (at_char(&l, '@')) {
            bh__scan_skip_line(&l);
        }
    }
}

/* Marks every node that flows into the sink, directly or not. */
static uint8_t *trace_back(graph *g) {
    uint8_t *marks = calloc(g->node_count, 1);
    uint32_t *open = calloc(g->node_count, sizeof *open), count = 0;
    if (marks && open) {
        marks[NODE_SINK] = 1;
        open[count++] = NODE_SINK;
        while (count) {
            for (uint32_t i = g->into[open[--count]]; i; i = g->flows[i - 1].next) {
                uint32_t from = g->flows[i - 1].from;
                if (marks[from]) continue;
                marks[from] = 1;
                /* The first one takes the place that was just removed, so there is always room. */
                open[count++] = from;
            }
        }
    }
    free(open);
    if (!open) {
        free(marks);
        marks = NULL;
    }
    return marks;
}

static bh__writes *collect(graph *g) {
    uint8_t *marks = trace_back(g);
    bh__writes *writes = marks ? bh__writes_new() : NULL;
    for (uint32_t i = 0; writes && i < g->slots; i++) {
        const binding *b = &g->table[i];
        if (!b->length || b->scope != SCOPE_VARIABLES || !marks[b->value]) continue;
        if (!bh__writes_add(writes, b->name, b->length)) {
            bh__writes_free(writes);
            writes = NULL;
        }
    }
    free(marks);
    return writes;
}

bh__writes *bh__writes_of_ptx(const char *text, size_t length) {
    graph g = {0};
    for (int i = 0; i < FIRST_NODE; i++) bh__scan_node(&g);
    lexer l = {.at = text, .end = text + length};
    read_module(&g, l, true);
    g.first_register = g.node_count;
    if (g.bound) read_module(&g, l, false);
    bh__writes *writes = g.failed ? NULL : collect(&g);
    for (uint32_t i = 0; i < g.function_count; i++) free(g.functions[i].formals);
    free(g.functions);
    free(g.into);
    free(g.flows);
    free(g.table);
    free(g.ranges);
    return writes;
}
