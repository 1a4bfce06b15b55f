/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that follow addresses through PTX: tokens, names, the graph of flows. */
#ifndef BH_WRITES_SCAN_H
#define BH_WRITES_SCAN_H

#include "writes/writes.h"

#define NO_NODE UINT32_MAX

/* A part of the text. A word starts with a letter, _, $ or %; a directive or modifier with a dot;
 * of other tokens only the first character matters. */
typedef struct token {
    const char *text;
    size_t length;
} token;

typedef struct lexer {
    const char *at, *end;
    token token; /* the last one read */
} lexer;

bool bh__scan_next(lexer *l); /* false: the end */
void bh__scan_skip_line(lexer *l);
bool bh__scan_is(const lexer *l, const char *text);
bool bh__scan_word(const lexer *l); /* a name */

/*
 * Nodes are places that can hold an address. A variable's node stands for its own address, a
 * register's or parameter's for its contents. A flow from A to B: the contents of A may get into B.
 * Two places that differ only by control flow share a node, which only makes the answer larger.
 */
typedef struct flow {
    uint32_t from, next;
} flow;

typedef struct binding {
    const char *name;
    uint32_t length, scope, value;
} binding;

typedef struct function {
    uint32_t *formals; /* Owned. Results first. */
    uint32_t result_count, formal_count, capacity;
    bool defined;
} function;

/* name<count> in a scope */
typedef struct range {
    token prefix;
    uint64_t count;
    uint32_t scope;
} range;

enum {
    NODE_SINK,  /* an address that flows here may be written through */
    NODE_LOCAL, /* all local memory of all threads */
    FIRST_NODE
};

enum { SCOPE_VARIABLES = 0, SCOPE_FUNCTIONS = 1, FIRST_SCOPE = 2, MAX_DEPTH = 512 };

typedef struct graph {
    bool failed;
    uint32_t *into; /* Owned. For each node the first flow into it, plus one. */
    uint32_t node_count, node_capacity;
    uint32_t first_register; /* nodes below it are variables and formal parameters */
    flow *flows;             /* Owned */
    uint32_t flow_count, flow_capacity;
    binding *table; /* Owned. Open addressing; length 0: free. */
    uint32_t bound, slots;
    function *functions; /* Owned */
    uint32_t function_count, function_capacity;
    range *ranges; /* Owned. Of the open scopes. */
    uint32_t range_count, range_capacity;
    uint32_t scopes[MAX_DEPTH]; /* the open ones, outermost first */
    uint32_t depth, scope_count;
} graph;

uint32_t bh__scan_node(graph *g);
void bh__scan_flow(graph *g, uint32_t from, uint32_t to);
/* NO_NODE: not bound there. */
uint32_t bh__scan_find(const graph *g, uint32_t scope, token name);
void bh__scan_bind(graph *g, uint32_t scope, token name, uint32_t value);

void bh__scan_scope_open(graph *g);
void bh__scan_scope_close(graph *g);
void bh__scan_range(graph *g, token prefix, uint64_t count);
/* The node of a name where it is used: a variable of the function, of the module, or a register. */
uint32_t bh__scan_resolve(graph *g, token name);

/* Reads from behind an opcode to behind its semicolon and adds the flows of the instruction. */
void bh__scan_instruction(graph *g, lexer *l, token opcode);

#endif
