/* SPDX-License-Identifier: Apache-2.0 */
#include "generate.h"

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 12, LONGS = 6, FLOATS = 8, DOUBLES = 4, PREDICATES = 6, DEPTH = 4 };

#define HEAD   ".version 8.0\n.target sm_80\n.address_size 64\n"
#define SPREAD 0x2545F4914F6CDD1D

typedef struct generator {
    uint64_t state;
    char *text;
    size_t length, size;
    unsigned number; /* of the program in its module */
    unsigned labels;
    unsigned left; /* statements */
} generator;

static void add(generator *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(generator *g, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(g->text + g->length, g->size - g->length, format, list);
    va_end(list);
    g->length += (size_t)n;
    if (g->length >= g->size) g->length = g->size - 1;
}

static uint32_t next(generator *g) { /* splitmix64 */
    uint64_t z = g->state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (uint32_t)((z ^ z >> 31) >> 16);
}

static unsigned below(generator *g, unsigned n) {
    return next(g) % n;
}

/* Small numbers, single bits, all ones, anything. */
static uint32_t integer(generator *g) {
    switch (below(g, 4)) {
    case 0:
        return below(g, 16);
    case 1:
        return 1u << below(g, 32);
    case 2:
        return UINT32_MAX - below(g, 4);
    default:
        return next(g);
    }
}

static const char *one_of(generator *g, const char *const *list, unsigned count) {
    return list[below(g, count)];
}

/* A register, but not this one. */
static unsigned another(generator *g, unsigned than, unsigned n) {
    unsigned chosen = below(g, n);
    return chosen == than ? (chosen + 1) % n : chosen;
}

static void expand(generator *g, const char *template) {
    static const char *const roundings[] = {"rn", "rz", "rm", "rp"};
    static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    static const char *const orderless[] = {"add.u32", "min.u32", "max.u32",
                                            "and.b32", "or.b32",  "xor.b32"};
    unsigned label = g->labels++, operation = below(g, 6), last = 0;
    for (const char *c = template; *c; c++) {
        if (*c != '$') {
            add(g, "%c", *c);
            continue;
        }
        switch (*++c) {
        case 'r':
            add(g, "%%r%u", last = below(g, WORDS));
            break;
        case 'X':
            add(g, "%%r%u", another(g, last, WORDS));
            break;
        case 'q':
            add(g, "%%q%u", below(g, LONGS));
            break;
        case 'f':
            add(g, "%%f%u", last = below(g, FLOATS));
            break;
        case 'F':
            add(g, "%%f%u", another(g, last, FLOATS));
            break;
        case 'd':
            add(g, "%%d%u", below(g, DOUBLES));
            break;
        case 'p':
            add(g, "%%p%u", below(g, PREDICATES));
            break;
        case 'i':
            add(g, "%d", (int)integer(g));
            break;
        case '5':
            add(g, "%u", below(g, 32));
            break;
        case '6':
            add(g, "%u", below(g, 64));
            break;
        case 'v':
            add(g, "%u", 160 + 4 * below(g, 24));
            break;
        case 'V':
            add(g, "%u", 160 + 16 * below(g, 6));
            break;
        case 'n':
            add(g, "%s", one_of(g, roundings, 4));
            break;
        case 's':
            add(g, "%s", below(g, 4) ? "" : ".sat");
            break;
        case 'R':
            add(g, "%s", one_of(g, comparisons, 6));
            break;
        case 'l':
            add(g, "%u", label);
            break;
        case 'm':
            add(g, "%u", g->number);
            break;
        case 'o':
            add(g, "%s", orderless[operation]);
            break;
        default: /* O */
            add(g, "%u", 32 * operation);
        }
    }
    add(g, "\n");
}

static void leaf(generator *g, random_where where) {
    unsigned total = 0;
    for (unsigned i = 0; i < random_template_count; i++)
        if (random_templates[i].where <= where) total += random_templates[i].weight;
    unsigned pick = below(g, total);
    for (unsigned i = 0; i < random_template_count; i++) {
        const random_template *t = &random_templates[i];
        if (t->where > where) continue;
        if (pick < t->weight) {
            expand(g, t->text);
            return;
        }
        pick -= t->weight;
    }
}

static void statements(generator *g, unsigned depth, random_where where, unsigned count);

/* The condition is one of the thread, of the warp or of the block, and so are the bodies. */
static void branch(generator *g, unsigned depth, random_where where) {
    unsigned label = g->labels++;
    random_where inside = (random_where)below(g, (unsigned)where + 1);
    if (inside == RANDOM_ANYWHERE)
        add(g, "@%s%%p%u bra ELSE%u;\n", below(g, 2) ? "!" : "", below(g, PREDICATES), label);
    else
        add(g, "and.b32 %%t0, %s, 1; setp.eq.u32 %%pt, %%t0, %u; @%%pt bra ELSE%u;\n",
            inside == RANDOM_WHOLE_WARPS ? "%warp" : "%block", below(g, 2), label);
    statements(g, depth + 1, inside, 1 + below(g, 5));
    if (below(g, 2)) {
        add(g, "bra END%u;\nELSE%u:\n", label, label);
        statements(g, depth + 1, inside, 1 + below(g, 5));
        add(g, "END%u: popc.b32 %%t0, %%t0;\n", label);
    } else {
        add(g, "ELSE%u: popc.b32 %%t0, %%t0;\n", label);
    }
}

/* Up to four times; each thread as often as it likes, or all as often. */
static void loop(generator *g, unsigned depth, random_where where) {
    unsigned label = g->labels++;
    random_where inside = (random_where)below(g, (unsigned)where + 1);
    if (inside == RANDOM_ANYWHERE)
        add(g, "and.b32 %%c%u, %%r%u, 3;\n", depth, below(g, WORDS));
    else if (inside == RANDOM_WHOLE_WARPS)
        add(g, "and.b32 %%c%u, %%warp, 3;\n", depth);
    else
        add(g, "add.u32 %%c%u, %%block, %u;\n", depth, below(g, 3));
    add(g, "LOOP%u: setp.eq.u32 %%pt, %%c%u, 0; @%%pt bra DONE%u; sub.u32 %%c%u, %%c%u, 1;\n",
        label, depth, label, depth, depth);
    statements(g, depth + 1, inside, 1 + below(g, 5));
    if (inside == RANDOM_ANYWHERE && below(g, 2))
        add(g, "@%%p%u bra DONE%u;\n", below(g, PREDICATES), label);
    add(g, "bra LOOP%u;\nDONE%u: popc.b32 %%t0, %%t0;\n", label, label);
}

static void statements(generator *g, unsigned depth, random_where where, unsigned count) {
    for (; count && g->left; count--) {
        g->left--;
        unsigned kind = below(g, 10);
        if (depth < DEPTH && kind == 0)
            branch(g, depth, where);
        else if (depth < DEPTH && kind == 1)
            loop(g, depth, where);
        else
            leaf(g, where);
    }
}

static void functions(generator *g) {
    unsigned n = g->number;
    add(g, ".const .align 4 .u32 table%u[16] = {", n);
    for (int i = 0; i < 16; i++) add(g, "%s%u", i ? ", " : "", integer(g));
    uint32_t factor = integer(g), addend = integer(g), odd = integer(g) | 1, other = integer(g) | 1;
    add(g,
        "};\n.func (.param .b32 c) mixes%u(.param .b32 a, .param .b32 b)\n"
        "{ .reg .b32 %%r<3>; ld.param.b32 %%r0, [a]; ld.param.b32 %%r1, [b];\n"
        "mad.lo.u32 %%r2, %%r0, %u, %%r1; shf.l.wrap.b32 %%r2, %%r2, %%r1, %u; st.param.b32 [c], "
        "%%r2; ret; }\n"
        ".func (.param .b32 c) loops%u(.param .b32 a, .param .b32 b)\n"
        "{ .reg .b32 %%r<4>; .reg .pred %%p; ld.param.b32 %%r0, [a]; ld.param.b32 %%r1, [b];\n"
        "and.b32 %%r2, %%r0, 7;\nL: setp.eq.u32 %%p, %%r2, 0; @%%p bra E; sub.u32 %%r2, %%r2, 1;\n"
        "mad.lo.u32 %%r1, %%r1, %u, %%r0; bra L;\nE: st.param.b32 [c], %%r1; ret; }\n",
        n, factor, below(g, 32), n, odd);
    add(g,
        ".func (.param .b64 c) recurses%u(.param .b32 n, .param .b64 v)\n"
        "{ .reg .b32 %%r<2>; .reg .b64 %%q<3>; .reg .pred %%p; ld.param.b32 %%r0, [n];\n"
        "ld.param.b64 %%q0, [v]; setp.eq.u32 %%p, %%r0, 0; @%%p bra E; sub.u32 %%r1, %%r0, 1;\n"
        "mad.lo.u64 %%q1, %%q0, %u, %u;\n"
        "{ .param .b32 a; .param .b64 b; .param .b64 d; st.param.b32 [a], %%r1; st.param.b64 [b], "
        "%%q1; call (d), recurses%u, (a, b); ld.param.b64 %%q2, [d]; }\n"
        "xor.b64 %%q0, %%q0, %%q2;\nE: st.param.b64 [c], %%q0; ret; }\n"
        ".global .align 8 .u64 chosen%u[2] = {mixes%u, loops%u};\n",
        n, other, addend, n, n, n, n);
}

/* Registers differ between threads. Addresses: %own of the thread's words, %mine of its array. */
static void prologue(generator *g) {
    add(g,
        ".visible .entry program%u(.param .u64 out, .param .u64 cells)\n.maxntid %d, 1, 1\n"
        "{ .reg .b32 %%r<%d>, %%t<4>, %%c<%d>; .reg .b64 %%q<%d>, %%a<4>; .reg .f32 %%f<%d>, "
        "%%g<2>; .reg .f64 %%d<%d>; .reg .pred %%p<%d>, %%pt; .reg .b32 %%thread, %%slot, %%lane, "
        "%%warp, %%block; .reg .b64 %%own, %%cells, %%mine;\n"
        ".shared .align 16 .b32 slots[%d]; .local .align 16 .b32 array[8];\n"
        "ld.param.u64 %%own, [out]; cvta.to.global.u64 %%own, %%own; ld.param.u64 %%cells, [cells]; "
        "cvta.to.global.u64 %%cells, %%cells; mov.u64 %%mine, array;\n"
        "mov.u32 %%thread, %%tid.x; mov.u32 %%block, %%ctaid.x; and.b32 %%lane, %%thread, 31; shr.u32 "
        "%%warp, %%thread, 5;\n"
        "mad.lo.u32 %%t0, %%block, %d, %%thread; mad.wide.u32 %%own, %%t0, %d, %%own;\n"
        "mov.u32 %%slot, slots; mad.lo.u32 %%slot, %%thread, 4, %%slot;\n",
        g->number, RANDOM_THREADS, WORDS, DEPTH + 1, LONGS, FLOATS, DOUBLES, PREDICATES,
        RANDOM_THREADS, RANDOM_THREADS, RANDOM_WORDS * 4);
    for (int i = 0; i < 8; i++) add(g, "st.local.u32 [array+%d], %d;\n", 4 * i, (int)integer(g));
    add(g, "mov.u32 %%t1, %d;\n", (int)(next(g) | 1));
    for (int i = 0; i < WORDS; i++)
        add(g, "mad.lo.u32 %%t1, %%t1, 1664525, %%t0; %s.b32 %%r%d, %%t1, %d;\n",
            i % 3 ? "xor" : "and", i, i % 3 ? (int)integer(g) : 31);
    for (int i = 0; i < LONGS; i++) add(g, "mov.b64 %%q%d, {%%r%d, %%r%d};\n", i, i, WORDS - 1 - i);
    for (int i = 0; i < FLOATS; i++)
        add(g, i % 2 ? "cvt.rn.f32.s32 %%f%d, %%r%d;\n" : "mov.b32 %%f%d, %%r%d;\n", i, i);
    for (int i = 0; i < DOUBLES; i++)
        add(g, i % 2 ? "cvt.rn.f64.s64 %%d%d, %%q%d;\n" : "mov.b64 %%d%d, %%q%d;\n", i, i);
    for (int i = 0; i < PREDICATES; i++) add(g, "setp.lt.s32 %%p%d, %%r%d, %%r%d;\n", i, i, i + 1);
    add(g, "mov.f32 %%g0, 0f00000000; mov.f32 %%g1, %%g0;\n");
}

/* NaNs have the bits that the last instruction gave them; those of moves may be any. */
static void epilogue(generator *g) {
    unsigned at = 0;
    for (int i = 0; i < WORDS; i++, at += 4) add(g, "st.global.u32 [%%own+%u], %%r%d;\n", at, i);
    for (int i = 0; i < LONGS; i++, at += 8) add(g, "st.global.u64 [%%own+%u], %%q%d;\n", at, i);
    for (int i = 0; i < FLOATS; i++, at += 4) add(g, "st.global.f32 [%%own+%u], %%f%d;\n", at, i);
    for (int i = 0; i < DOUBLES; i++, at += 8) add(g, "st.global.f64 [%%own+%u], %%d%d;\n", at, i);
    add(g, "ret;\n}\n");
}

static void program(generator *g, unsigned most) {
    g->left = 20 + below(g, RANDOM_STATEMENTS - 20);
    if (g->left > most) g->left = most;
    functions(g);
    prologue(g);
    while (g->left) statements(g, 0, RANDOM_WHOLE_BLOCK, g->left);
    epilogue(g);
}

size_t random_programs(uint64_t seed, unsigned count, char *text, size_t size) {
    generator g = {.text = text, .size = size};
    add(&g, HEAD);
    for (; g.number < count; g.number++) {
        g.state = (seed + g.number) * SPREAD + 99;
        program(&g, UINT_MAX);
    }
    return g.length;
}

size_t random_part(uint64_t seed, unsigned statements, char *text, size_t size) {
    generator g = {.text = text, .size = size};
    add(&g, HEAD);
    g.state = seed * SPREAD + 99;
    program(&g, statements);
    return g.length;
}
