/* SPDX-License-Identifier: Apache-2.0 */
/* The flows of one PTX instruction. An unknown instruction is assumed to write through every
 * address in brackets, and to put something of each source into its first operand. */
#include <string.h>

#include "writes/scan.h"

enum { MAX_OPERANDS = 32, MAX_NAMES = 512 };

typedef struct operand {
    char kind; /* [ ( { or 0: what it begins with */
    uint32_t first, count;
} operand;

typedef struct instruction {
    token opcode;
    bool local, param, spaced; /* .local, .param, any state space */
    bool async, bulk, load;    /* .async, .bulk, .load */
    operand operands[MAX_OPERANDS];
    uint32_t operand_count;
    token names[MAX_NAMES];    /* of all operands */
    uint32_t parts[MAX_NAMES]; /* the element of its operand that each is in */
    uint32_t name_count;
} instruction;

static bool is(token t, const char *text) {
    return t.length == strlen(text) && memcmp(t.text, text, t.length) == 0;
}

static bool begins(token t, const char *text) {
    size_t length = strlen(text);
    return t.length >= length && memcmp(t.text, text, length) == 0;
}

static void take_modifier(instruction *in, token t) {
    bool local = is(t, ".local"), param = begins(t, ".param");
    in->local |= local;
    in->param |= param;
    in->spaced |= local || param || is(t, ".global") || is(t, ".const") || begins(t, ".shared");
    in->async |= is(t, ".async");
    in->bulk |= is(t, ".bulk");
    in->load |= is(t, ".load");
}

/* False: too many operands or names. */
static bool read_operands(instruction *in, lexer *l) {
    operand *now = NULL;
    uint32_t depth = 0, part = 0;
    bool modifiers = true;
    while (bh__scan_next(l) && *l->token.text != ';') {
        char c = *l->token.text;
        if (modifiers && c == '.') {
            take_modifier(in, l->token);
            continue;
        }
        modifiers = false;
        if (depth == 0 && c == ',') {
            now = NULL;
            continue;
        }
        if (!now) {
            if (in->operand_count == MAX_OPERANDS) return false;
            now = &in->operands[in->operand_count++];
            *now = (operand){.first = in->name_count};
            if (c == '[' || c == '(' || c == '{') now->kind = c;
            part = 0;
        }
        if (c == '[' || c == '(' || c == '{') depth++;
        if (c == ']' || c == ')' || c == '}') depth -= depth > 0;
        if (c == ',') part++;
        if (!bh__scan_word(l)) continue;
        if (in->name_count == MAX_NAMES) return false;
        in->names[in->name_count] = l->token;
        in->parts[in->name_count++] = part;
        now->count++;
    }
    return true;
}

/* All names of the operand flow to `to`. */
static void flow_all(graph *g, const instruction *in, uint32_t index, uint32_t to) {
    const operand *o = &in->operands[index];
    for (uint32_t i = 0; i < o->count; i++)
        bh__scan_flow(g, bh__scan_resolve(g, in->names[o->first + i]), to);
}

static void flow_to_all(graph *g, const instruction *in, uint32_t from, uint32_t index) {
    const operand *o = &in->operands[index];
    for (uint32_t i = 0; i < o->count; i++)
        bh__scan_flow(g, from, bh__scan_resolve(g, in->names[o->first + i]));
}

static void flow_between(graph *g, const instruction *in, uint32_t from, uint32_t to) {
    const operand *o = &in->operands[to];
    for (uint32_t i = 0; i < o->count; i++)
        flow_all(g, in, from, bh__scan_resolve(g, in->names[o->first + i]));
}

/* ---- kinds of instructions ---- */

/* Global memory holds the address of a variable only if one was stored there or is there from the
 * start, and in both cases the variable counts as written. */
static void load(graph *g, const instruction *in) {
    if (in->operand_count == 0) return;
    if (in->local || !in->spaced) flow_to_all(g, in, NODE_LOCAL, 0);
    for (uint32_t i = 1; in->param && i < in->operand_count; i++) flow_between(g, in, i, 0);
}

static void store(graph *g, const instruction *in) {
    if (in->operand_count == 0) return;
    const operand *address = &in->operands[0];
    bool kept = in->local;
    if (in->param && address->count == 1) {
        for (uint32_t i = 1; i < in->operand_count; i++) flow_between(g, in, i, 0);
        kept = true;
    } else {
        flow_all(g, in, 0, NODE_SINK);
    }
    for (uint32_t i = 1; i < in->operand_count && !(kept && in->param); i++)
        flow_all(g, in, i, kept ? NODE_LOCAL : NODE_SINK);
}

/* The callee is not known: it may do anything with its arguments and with local memory. */
static void call_unknown(graph *g, const instruction *in, uint32_t arguments) {
    if (arguments < in->operand_count) flow_all(g, in, arguments, NODE_SINK);
    bh__scan_flow(g, NODE_LOCAL, NODE_SINK);
}

static void call_known(graph *g, const instruction *in, const function *f, bool results,
                       uint32_t arguments) {
    if (arguments < in->operand_count) {
        const operand *o = &in->operands[arguments];
        for (uint32_t i = o->first; i < o->first + o->count; i++) {
            uint32_t formal = f->result_count + in->parts[i];
            bool known = in->parts[i] < f->formal_count - f->result_count;
            bh__scan_flow(g, bh__scan_resolve(g, in->names[i]),
                          known ? f->formals[formal] : NODE_SINK);
        }
    }
    const operand *o = &in->operands[0];
    for (uint32_t i = o->first; results && i < o->first + o->count; i++) {
        if (in->parts[i] < f->result_count)
            bh__scan_flow(g, f->formals[in->parts[i]], bh__scan_resolve(g, in->names[i]));
    }
}

static void call(graph *g, const instruction *in) {
    uint32_t at = 0;
    bool results = in->operand_count > 0 && in->operands[0].kind == '(';
    if (results) at++;
    if (at >= in->operand_count) return;
    const operand *target = &in->operands[at];
    token name = target->count == 1 ? in->names[target->first] : (token){"", 0};
    uint32_t index = bh__scan_find(g, SCOPE_FUNCTIONS, name);
    for (uint32_t d = g->depth; d-- > 0;) /* a register of the same name hides it */
        if (bh__scan_find(g, g->scopes[d], name) != NO_NODE) index = NO_NODE;
    const function *f = index == NO_NODE ? NULL : &g->functions[index];
    if (f && f->defined) {
        call_known(g, in, f, results, at + 1);
    } else if (f && (is(name, "vprintf") || is(name, "__assertfail"))) {
        /* functions of the driver, which only read their arguments */
    } else {
        call_unknown(g, in, at + 1);
        /* It may be any function of the module, and return what that returns. */
        for (uint32_t i = 0; i < g->function_count; i++)
            for (uint32_t k = 0; k < g->functions[i].result_count; k++)
                bh__scan_flow(g, g->functions[i].formals[k], NODE_SINK);
    }
}

/* Instructions that do not write through their operands, and whose results are not addresses. */
static bool harmless(const instruction *in) {
    static const char *const list[] = {"prefetch", "prefetchu", "isspacep", "setp",    "set",
                                       "testp",    "bra",       "brx",      "ret",     "exit",
                                       "bar",      "trap",      "brkpt",    "pmevent", "membar",
                                       "fence",    "barrier",   "tex",      "tld4",    "txq",
                                       "suq",      "suld",      "vote",     "match",   "istypep"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (is(in->opcode, list[i])) return true;
    return false;
}

/* The address of a formal parameter is that of a copy in local memory, from which its value can be
 * loaded. */
static void take_addresses(graph *g, const instruction *in) {
    for (uint32_t i = 0; i < in->name_count; i++) {
        uint32_t node = bh__scan_resolve(g, in->names[i]);
        if (node < g->first_register && node != bh__scan_find(g, SCOPE_VARIABLES, in->names[i]))
            bh__scan_flow(g, node, NODE_LOCAL);
    }
}

static void other(graph *g, const instruction *in) {
    take_addresses(g, in);
    bool reads = is(in->opcode, "ldmatrix") || (is(in->opcode, "wmma") && in->load);
    bool no_result = in->operand_count > 0 && in->operands[0].kind == '[';
    for (uint32_t i = 0; i < in->operand_count; i++) {
        bool memory = in->operands[i].kind == '[';
        if (no_result || (memory && !reads)) flow_all(g, in, i, NODE_SINK);
        if (!no_result && i > 0 && !(memory && reads)) flow_between(g, in, i, 0);
    }
}

void bh__scan_instruction(graph *g, lexer *l, token opcode) {
    instruction in;
    in.opcode = opcode;
    in.local = in.param = in.spaced = in.async = in.bulk = in.load = false;
    in.operand_count = in.name_count = 0;
    if (!read_operands(&in, l)) {
        g->failed = true; /* no known instruction has so many */
        return;
    }
    if (is(opcode, "ld") || is(opcode, "ldu")) {
        load(g, &in);
    } else if (is(opcode, "st")) {
        store(g, &in);
    } else if (is(opcode, "call")) {
        call(g, &in);
    } else if (is(opcode, "atom") || is(opcode, "red")) {
        for (uint32_t i = is(opcode, "atom"); i < in.operand_count; i++)
            flow_all(g, &in, i, NODE_SINK);
    } else if (is(opcode, "cp") && in.async && !in.bulk) {
        if (in.operand_count) flow_all(g, &in, 0, NODE_SINK);
    } else if (!harmless(&in)) {
        other(g, &in);
    }
}
