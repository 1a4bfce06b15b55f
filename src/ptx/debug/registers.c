/* SPDX-License-Identifier: Apache-2.0 */
/* Registers for people: which ones an instruction uses, which ones matter at a place in a function,
 * their names, types and values. */
#include <stdlib.h>
#include <string.h>

#include "ptx/debug/debug.h"

/* ---- what an instruction reads and writes ---- */

static void visit_operand(const bh__ptx_operand *o, bool written, bh__ptx_register_visit *visit,
                          void *context) {
    switch (o->kind) {
    case OPERAND_REG:
        visit(context, o->reg, written);
        break;
    case OPERAND_MEMORY:
        if (o->has_reg) {
            visit(context, o->reg, false);
        }
        for (uint32_t n = 0; n < o->count; n++) {
            visit_operand(&o->elements[n], false, visit, context);
        }
        break;
    case OPERAND_VECTOR:
    case OPERAND_LIST:
    case OPERAND_PAIR:
        for (uint32_t n = 0; n < o->count; n++) {
            visit_operand(&o->elements[n], written, visit, context);
        }
        break;
    default:
        break;
    }
}

/* Where the table says so, or, for operations whose unit checks operands by itself, what comes
 * first, unless it is memory. */
static bool first_is_written(const bh__ptx_insn *insn) {
    const char *operands = bh__ptx_op_table[insn->op].operands;
    if (operands[0] != '*') {
        return operands[0] == '=';
    }
    switch (insn->op) {
    case OP_BAR:
    case OP_BARRIER:
        return HAS(insn, RED);
    case OP_CALL: /* a list before the function has the results */
        return insn->operands[0].kind == OPERAND_LIST;
    case OP_BRX:
        return false;
    default:
        return true;
    }
}

void bh__ptx_registers_visit(const bh__ptx_insn *insn, bh__ptx_register_visit *visit,
                             void *context) {
    bool first = insn->operand_count > 0 && first_is_written(insn);
    if (insn->guard != NO_REG) {
        visit(context, insn->guard, false);
    }
    for (unsigned n = first; n < insn->operand_count; n++) {
        visit_operand(&insn->operands[n], false, visit, context);
    }
    if (first && insn->op == OP_WGMMA) { /* adds to what is there */
        visit_operand(&insn->operands[0], false, visit, context);
    }
    if (first) {
        visit_operand(&insn->operands[0], true, visit, context);
    }
}

/* ---- what matters at a place ---- */

/* Calls `edge` for every instruction that may follow instruction `n`. */
typedef void edge_visit(void *context, uint32_t from, uint32_t to);

static void successors(const bh__ptx_function *f, uint32_t n, edge_visit *edge, void *context) {
    const bh__ptx_insn *insn = &f->insns[n];
    bool goes_on = insn->guard != NO_REG;
    const bh__ptx_operand *last =
        insn->operand_count > 0 ? &insn->operands[insn->operand_count - 1] : NULL;
    if (insn->op == OP_BRA && last != NULL && last->kind == OPERAND_LABEL) {
        edge(context, n, (uint32_t)last->imm);
    } else if (insn->op == OP_BRX && last != NULL && last->kind == OPERAND_TARGETS) {
        const bh__ptx_targets *list = last->symbol->targets;
        for (uint32_t t = 0; t < list->count; t++) {
            edge(context, n, list->at[t]);
        }
    } else if (insn->op != OP_RET && insn->op != OP_EXIT && insn->op != OP_TRAP) {
        goes_on = true;
    }
    if (goes_on) {
        edge(context, n, n + 1);
    }
}

/* The way between instructions in both directions, as lists of neighbours. */
typedef struct graph {
    const bh__ptx_function *f;
    uint32_t *first, *other; /* of instruction n: other[first[n + 1]] to before first[n + 2] */
    bool backwards, filling;
} graph;

static void note_edge(void *context, uint32_t from, uint32_t to) {
    graph *g = context;
    uint32_t at = g->backwards ? to : from, neighbour = g->backwards ? from : to;
    if (from >= g->f->insn_count || to >= g->f->insn_count) {
        return; /* the end of the function */
    }
    if (g->filling) {
        g->other[--g->first[at + 1]] = neighbour;
    } else {
        g->first[at + 1]++;
    }
}

static void each_edge(graph *g) {
    for (uint32_t n = 0; n < g->f->insn_count; n++) {
        successors(g->f, n, note_edge, g);
    }
}

static bool graph_make(graph *g) {
    uint32_t count = g->f->insn_count;
    g->first = calloc((size_t)count + 2, sizeof *g->first);
    if (g->first == NULL) {
        return false;
    }
    each_edge(g);
    for (uint32_t n = 0; n < count; n++) {
        g->first[n + 1] += g->first[n];
    }
    g->other = malloc(((size_t)g->first[count] + 1) * sizeof *g->other);
    if (g->other == NULL) {
        return false;
    }
    /* Filling counts the end of each list, first[n + 1], down to where it begins. */
    g->first[count + 1] = g->first[count];
    g->filling = true;
    each_edge(g);
    return true;
}

static void graph_free(graph *g) {
    free(g->first);
    free(g->other);
}

typedef struct marking {
    uint8_t *marks;
    bool written; /* what to mark: registers that are written, or read */
    uint8_t mark;
} marking;

static void mark_register(void *context, uint32_t reg, bool written) {
    marking *m = context;
    if (written == m->written) {
        m->marks[reg] |= m->mark;
    }
}

/* Marks what instructions before or behind `at` use, as far as they can be reached. */
static bool mark_reached(const bh__ptx_function *f, uint32_t at, bool backwards, marking *m) {
    graph g = {.f = f, .backwards = backwards};
    uint8_t *seen = calloc((size_t)f->insn_count + 1, 1);
    uint32_t *todo = malloc(((size_t)f->insn_count + 1) * sizeof *todo);
    bool ok = seen != NULL && todo != NULL && graph_make(&g);
    uint32_t count = 0;
    if (ok && at < f->insn_count) {
        todo[count++] = at;
    }
    while (count > 0) {
        uint32_t n = todo[--count];
        for (uint32_t e = g.first[n + 1]; e < g.first[n + 2]; e++) {
            uint32_t next = g.other[e];
            if (!seen[next]) {
                seen[next] = 1;
                todo[count++] = next;
                bh__ptx_registers_visit(&f->insns[next], mark_register, m);
            }
        }
    }
    free(todo);
    free(seen);
    graph_free(&g);
    return ok;
}

uint8_t *bh__ptx_registers_at(const bh__ptx_function *f, uint32_t at) {
    marking m = {.marks = calloc((size_t)f->reg_count + 1, 1)};
    if (m.marks == NULL) {
        return NULL;
    }
    m.mark = REGISTER_WANTED;
    if (at < f->insn_count) {
        bh__ptx_registers_visit(&f->insns[at], mark_register, &m);
    }
    bool ok = mark_reached(f, at, false, &m);
    m.mark = REGISTER_WRITTEN;
    m.written = true;
    ok = ok && mark_reached(f, at, true, &m);
    for (uint32_t n = 0; n < f->param_count; n++) {
        if (f->params[n]->reg != NO_REG && f->params[n]->reg < f->reg_count) {
            m.marks[f->params[n]->reg] |= REGISTER_WRITTEN;
        }
    }
    if (ok) {
        return m.marks;
    }
    free(m.marks);
    return NULL;
}

/* ---- types, names, values ---- */

typedef struct typing {
    const bh__ptx_function *f;
    const bh__ptx_insn *insn;
    uint8_t *types, *by_write;
} typing;

static void note_type(void *context, uint32_t reg, bool written) {
    typing *t = context;
    const bh__ptx_insn *insn = t->insn;
    bh__ptx_type declared = t->f->regs[reg].type;
    bh__ptx_type used =
        insn->type_count == 0
            ? T_NONE
            : (bh__ptx_type)(written ? insn->types[0] : insn->types[insn->type_count - 1]);
    bool better = used != T_NONE && strchr("USF", bh__ptx_class(used)) != NULL &&
                  bh__ptx_bytes(used) == bh__ptx_bytes(declared);
    if (bh__ptx_class(declared) == 'B' && better && !t->by_write[reg]) {
        t->types[reg] = (uint8_t)used;
        t->by_write[reg] = written;
    }
}

uint8_t *bh__ptx_registers_types(const bh__ptx_function *f) {
    typing t = {.f = f,
                .types = malloc((size_t)f->reg_count + 1),
                .by_write = calloc((size_t)f->reg_count + 1, 1)};
    if (t.types != NULL && t.by_write != NULL) {
        for (uint32_t n = 0; n < f->reg_count; n++) {
            t.types[n] = (uint8_t)f->regs[n].type;
        }
        for (uint32_t n = 0; n < f->insn_count; n++) {
            /* Addresses are not numbers, although ld.u64 and mov.u64 say so. */
            t.insn = &f->insns[n];
            bool address = t.insn->type_count > 0 && t.insn->types[0] == T_U64;
            if (!address) {
                bh__ptx_registers_visit(t.insn, note_type, &t);
            }
        }
    } else {
        free(t.types);
        t.types = NULL;
    }
    free(t.by_write);
    return t.types;
}

static const char *const components[] = {".x", ".y", ".z", ".w"};

uint32_t bh__ptx_register_find(const bh__ptx_function *f, const char *name, size_t length,
                               uint32_t place) {
    unsigned part = 0;
    bool vector = false;
    for (unsigned n = 0; length > 2 && !vector && n < 4; n++) {
        vector = memcmp(name + length - 2, components[n], 2) == 0;
        part = vector ? n : 0;
    }
    size_t stem = length - (vector ? 2 : 0);
    uint32_t best = NO_REG;
    for (uint32_t n = 0; n < f->reg_count; n++) {
        const bh__ptx_reg *r = &f->regs[n];
        if (r->name == NULL || place < r->from || place >= r->to || r->part != part ||
            (r->parts > 1) != vector || strlen(r->name) != stem ||
            memcmp(r->name, name, stem) != 0) {
            continue;
        }
        if (best == NO_REG || r->from > f->regs[best].from) {
            best = n; /* of the innermost scope */
        }
    }
    return best;
}

void bh__ptx_register_name(bh__ptx_string *text, const bh__ptx_reg *reg) {
    bh__ptx_string_add(text, "%.100s%s", reg->name != NULL ? reg->name : "?",
                       reg->parts > 1 && reg->part < 4 ? components[reg->part] : "");
}

uint64_t bh__ptx_register_value(const bh__ptx_warp *w, uint32_t base, const bh__ptx_reg *reg,
                                unsigned lane, unsigned half) {
    const uint8_t *row = w->regs + base + reg->row;
    switch (bh__ptx_bytes(reg->type)) {
    case 0:
        return *(const bh__u32 *)(const void *)row >> lane & 1;
    case 8:
    case 16:
        return ((const bh__u64 *)(const void *)(row + (size_t)half * HIGH_HALF))[lane];
    default:
        return ((const bh__u32 *)(const void *)row)[lane];
    }
}
