/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH = 4, STATEMENTS = 64, OPERATIONS = 9 };

typedef enum kind {
    MIX,    /* r[to] = r[from] * number + r[other] */
    SPIN,   /* each lane takes a while */
    LEAVE,  /* some lanes exit */
    SYNC,   /* all lanes of the scope execute an operation */
    COPIES, /* the same, in two branches, inline or in a function */
    BRANCH,
    LOOP
} kind;

typedef struct statement {
    kind kind;
    unsigned to, from, other, operation;
    uint32_t number;
    unsigned calls[2]; /* COPIES: 0 inline, 1 in a function, 2 in one that calls itself */
    bool stores;       /* LEAVE: writes its words before */
    int first[2];      /* of the inner statements, or -1 */
    int next;
} statement;

typedef struct program {
    uint64_t state;
    char *text;
    size_t length;
    unsigned labels;
    statement list[STATEMENTS];
    int count;
} program;

static uint32_t random_word(program *p) { /* splitmix64 */
    uint64_t z = p->state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (uint32_t)((z ^ z >> 31) >> 16);
}

static unsigned below(program *p, unsigned n) {
    return random_word(p) % n;
}

/* ---- the program ---- */

static int create(program *p, unsigned depth, unsigned count) {
    static const kind kinds[] = {MIX,  MIX,    MIX,    SPIN,   LEAVE,  SYNC, SYNC,
                                 SYNC, COPIES, COPIES, COPIES, BRANCH, LOOP};
    int first = -1, last = -1;
    for (; count && p->count < STATEMENTS; count--) {
        int at = p->count++;
        kind which = kinds[below(p, depth < DEPTH ? 13 : 8)];
        statement s = {.kind = which,
                       .to = below(p, LANES_WORDS),
                       .from = below(p, LANES_WORDS),
                       .other = below(p, LANES_WORDS),
                       .operation = below(p, OPERATIONS),
                       .number = random_word(p) | 1,
                       .calls = {below(p, 3), below(p, 3)},
                       .stores = below(p, 2),
                       .first = {-1, -1},
                       .next = -1};
        if (which >= COPIES) {
            for (int side = 0; side < (which == LOOP ? 1 : 2); side++)
                s.first[side] = create(p, depth + 1, which == COPIES ? 1 : 1 + below(p, 4));
        }
        p->list[at] = s;
        if (last >= 0)
            p->list[last].next = at;
        else
            first = at;
        last = at;
    }
    return first;
}

/* ---- as PTX ---- */

static void add(program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(program *p, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(p->text + p->length, LANES_TEXT - p->length, format, list);
    va_end(list);
    p->length += (size_t)n;
    if (p->length >= LANES_TEXT) p->length = LANES_TEXT - 1;
}

static void write_operation(program *p, unsigned operation, const char *to, const char *from,
                            const char *mask) {
    switch (operation) {
    case 0:
        add(p, "and.b32 %%x0, %s, 4; setp.ne.u32 %%y0, %%x0, 0; ", from);
        add(p, "vote.sync.ballot.b32 %s, %%y0, %s;\n", to, mask);
        break;
    case 1:
        add(p, "redux.sync.add.u32 %s, %s, %s;\n", to, from, mask);
        break;
    case 2:
        add(p, "redux.sync.min.s32 %s, %s, %s;\n", to, from, mask);
        break;
    case 3:
        add(p, "and.b32 %%x0, %s, 3; match.any.sync.b32 %s, %%x0, %s;\n", from, to, mask);
        break;
    case 4: /* from one of the lanes, each lane from another */
        add(p, "vote.sync.ballot.b32 %%x0, 1, %s; popc.b32 %%x1, %%x0; rem.u32 %%x1, %s, %%x1;\n",
            mask, from);
        add(p, "add.u32 %%x1, %%x1, 1; fns.b32 %%x1, %%x0, 0, %%x1;\n");
        add(p, "shfl.sync.idx.b32 %s, %s, %%x1, 31, %s;\n", to, from, mask);
        break;
    case 5:
        add(p, "and.b32 %%x0, %s, 12; setp.eq.u32 %%y0, %%x0, 0; ", from);
        add(p, "vote.sync.any.pred %%y1, %%y0, %s; selp.u32 %s, 7, 3, %%y1;\n", mask, to);
        break;
    case 6:
        add(p, "and.b32 %%x0, %s, 1; cvt.u64.u32 %%z0, %%x0; ", from);
        add(p, "match.all.sync.b64 %s|%%y1, %%z0, %s; @%%y1 add.u32 %s, %s, 5;\n", to, mask, to,
            to);
        break;
    case 7:
        add(p, "elect.sync %%x0|%%y1, %s; selp.u32 %s, 100, %%x0, %%y1;\n", mask, to);
        break;
    default:
        add(p, "bar.warp.sync %s; mov.u32 %s, %s;\n", mask, to, from);
    }
}

#define TEMPORARIES ".reg .b32 %x<4>; .reg .b64 %z<2>; .reg .pred %y<4>;\n"

static void write_functions(program *p) {
    for (unsigned i = 0; i < OPERATIONS; i++) {
        add(p, ".func (.reg .b32 d) once%u(.reg .b32 v, .reg .b32 m) { %s", i, TEMPORARIES);
        write_operation(p, i, "d", "v", "m");
        add(p, "ret; }\n.func (.reg .b32 d) deep%u(.reg .b32 v, .reg .b32 m, .reg .b32 n) { %s", i,
            TEMPORARIES);
        add(p, "setp.eq.u32 %%y3, n, 0; @%%y3 bra HERE; sub.u32 %%x3, n, 1;\n");
        add(p, "call (d), deep%u, (v, m, %%x3); ret;\nHERE: ", i);
        write_operation(p, i, "d", "v", "m");
        add(p, "ret; }\n");
    }
}

static void write_list(program *p, int at, unsigned depth);

static void write_copy(program *p, const statement *s, unsigned side, unsigned depth) {
    char to[8], from[8], mask[8];
    snprintf(to, sizeof to, "%%r%u", s->to);
    snprintf(from, sizeof from, "%%r%u", s->from);
    snprintf(mask, sizeof mask, "%%m%u", depth);
    write_list(p, s->first[side], depth + 1);
    if (s->calls[side] == 0)
        write_operation(p, s->operation, to, from, mask);
    else if (s->calls[side] == 1)
        add(p, "call (%s), once%u, (%s, %s);\n", to, s->operation, from, mask);
    else
        add(p, "and.b32 %%x2, %%r%u, 3; call (%s), deep%u, (%s, %s, %%x2);\n", s->other, to,
            s->operation, from, mask);
}

/* %m of the next depth becomes the set of lanes that take the same side. */
static void write_sides(program *p, const statement *s, unsigned depth) {
    unsigned label = p->labels++;
    add(p, "and.b32 %%x0, %%r%u, %u; popc.b32 %%x0, %%x0; and.b32 %%x0, %%x0, 1;\n", s->from,
        s->number);
    add(p, "setp.eq.u32 %%y0, %%x0, 0; vote.sync.ballot.b32 %%m%u, %%y0, %%m%u;\n", depth + 1,
        depth);
    add(p, "@%%y0 bra SIDE%u; not.b32 %%m%u, %%m%u; and.b32 %%m%u, %%m%u, %%m%u;\n", label,
        depth + 1, depth + 1, depth + 1, depth + 1, depth);
    for (unsigned side = 0; side < 2; side++) {
        if (side) add(p, "bra END%u;\nSIDE%u: ", label, label);
        if (s->kind == COPIES)
            write_copy(p, s, side, depth);
        else
            write_list(p, s->first[side], depth + 1);
    }
    add(p, "END%u: popc.b32 %%x0, %%x0;\n", label);
}

static void write_store(program *p) {
    for (unsigned i = 0; i < LANES_WORDS; i++)
        add(p, "st.global.u32 [%%own+%u], %%r%u; ", 4 * i, i);
}

static void write_one(program *p, const statement *s, unsigned depth) {
    unsigned label = p->labels++;
    char to[8], from[8], mask[8];
    switch (s->kind) {
    case MIX:
        add(p, "mad.lo.u32 %%r%u, %%r%u, %u, %%r%u;\n", s->to, s->from, s->number, s->other);
        break;
    case SPIN:
        add(p, "and.b32 %%x0, %%r%u, 255;\nSPIN%u: add.u32 %%x0, %%x0, 1; ", s->from, label);
        add(p, "setp.lt.u32 %%y0, %%x0, 256; @%%y0 bra SPIN%u;\n", label);
        break;
    case LEAVE:
        add(p, "and.b32 %%x0, %%r%u, 15; setp.ne.u32 %%y0, %%x0, %u; @%%y0 bra STAY%u;\n", s->from,
            s->number & 15, label);
        if (s->stores) write_store(p);
        add(p, "exit;\nSTAY%u: popc.b32 %%x0, %%x0;\n", label);
        break;
    case SYNC:
        snprintf(to, sizeof to, "%%r%u", s->to);
        snprintf(from, sizeof from, "%%r%u", s->from);
        snprintf(mask, sizeof mask, "%%m%u", depth);
        write_operation(p, s->operation, to, from, mask);
        break;
    case COPIES:
    case BRANCH:
        write_sides(p, s, depth);
        break;
    case LOOP:
        add(p, "and.b32 %%c%u, %%r%u, 3; mov.u32 %%m%u, %%m%u;\n", depth, s->from, depth + 1,
            depth);
        add(p, "LOOP%u: setp.ne.u32 %%y0, %%c%u, 0; ", label, depth);
        add(p, "vote.sync.ballot.b32 %%x0, %%y0, %%m%u; @!%%y0 bra DONE%u;\n", depth + 1, label);
        add(p, "mov.u32 %%m%u, %%x0; sub.u32 %%c%u, %%c%u, 1;\n", depth + 1, depth, depth);
        write_list(p, s->first[0], depth + 1);
        add(p, "bra LOOP%u;\nDONE%u: popc.b32 %%x0, %%x0;\n", label, label);
    }
}

static void write_list(program *p, int at, unsigned depth) {
    for (; at >= 0; at = p->list[at].next) write_one(p, &p->list[at], depth);
}

static const uint32_t start = 2654435761u;

static void write_program(program *p, int first) {
    add(p, ".version 8.0\n.target sm_90\n.address_size 64\n");
    write_functions(p);
    add(p, ".visible .entry program(.param .u64 out)\n.maxntid %d, 1, 1\n{ %s", LANES_THREADS,
        TEMPORARIES);
    add(p, ".reg .b32 %%r<%d>, %%m<%d>, %%c<%d>, %%t; .reg .b64 %%own;\n", LANES_WORDS, DEPTH + 2,
        DEPTH + 2);
    add(p, "ld.param.u64 %%own, [out]; cvta.to.global.u64 %%own, %%own; mov.u32 %%t, %%tid.x;\n");
    add(p, "mad.wide.u32 %%own, %%t, %d, %%own; mov.u32 %%m0, -1;\n", 4 * LANES_WORDS);
    for (unsigned i = 0; i < LANES_WORDS; i++)
        add(p, "add.u32 %%x0, %%t, %u; mul.lo.u32 %%x0, %%x0, %u; shr.u32 %%r%u, %%x0, %u;\n",
            100 * i, start, i, 3 * i);
    write_list(p, first, 0);
    write_store(p);
    add(p, "ret;\n}\n");
}

/* ---- as sets of lanes ---- */

typedef struct warp {
    uint32_t live;
    uint32_t r[LANES_WORDS][32];
    uint32_t *out;
} warp;

static bool in(uint32_t set, unsigned lane) {
    return set >> lane & 1;
}

static unsigned bits(uint32_t set) {
    return (unsigned)__builtin_popcount(set);
}

static unsigned nth_lane(uint32_t set, unsigned n) {
    for (unsigned l = 0;; l++)
        if (in(set, l) && n-- == 0) return l;
}

static void operate(warp *w, const statement *s, uint32_t set) {
    uint32_t v[32], sum = 0, ballot = 0, odd = 0, any = 0;
    int32_t least = INT32_MAX;
    memcpy(v, w->r[s->from], sizeof v);
    if (set == 0) return;
    for (unsigned l = 0; l < 32; l++) {
        if (!in(set, l)) continue;
        sum += v[l];
        least = (int32_t)v[l] < least ? (int32_t)v[l] : least;
        ballot |= (v[l] >> 2 & 1) << l;
        odd |= (v[l] & 1) << l;
        any |= (v[l] & 12) == 0;
    }
    for (unsigned l = 0; l < 32; l++) {
        if (!in(set, l)) continue;
        uint32_t same = 0;
        for (unsigned other = 0; other < 32; other++)
            same |= (uint32_t)(in(set, other) && (v[other] & 3) == (v[l] & 3)) << other;
        uint32_t results[OPERATIONS] = {ballot,
                                        sum,
                                        (uint32_t)least,
                                        same,
                                        v[nth_lane(set, v[l] % bits(set))],
                                        any ? 7 : 3,
                                        odd == 0 || odd == set ? set + 5 : 0,
                                        l == nth_lane(set, 0) ? 100 : nth_lane(set, 0),
                                        v[l]};
        w->r[s->to][l] = results[s->operation];
    }
}

static void follow(const program *p, int at, warp *w, uint32_t set);

static void follow_one(const program *p, const statement *s, warp *w, uint32_t set) {
    uint32_t *to = w->r[s->to], *from = w->r[s->from], *other = w->r[s->other], sides[2] = {0, 0};
    set &= w->live;
    for (unsigned l = 0; l < 32; l++)
        if (in(set, l)) sides[(bits(from[l] & s->number) & 1) == 0] |= 1u << l;
    switch (s->kind) {
    case MIX:
        for (unsigned l = 0; l < 32; l++)
            if (in(set, l)) to[l] = from[l] * s->number + other[l];
        break;
    case SPIN:
        break;
    case LEAVE:
        for (unsigned l = 0; l < 32; l++) {
            if (!in(set, l) || (from[l] & 15) != (s->number & 15)) continue;
            w->live &= ~(1u << l);
            for (unsigned i = 0; i < LANES_WORDS && s->stores; i++)
                w->out[l * LANES_WORDS + i] = w->r[i][l];
        }
        break;
    case SYNC:
        operate(w, s, set);
        break;
    case COPIES:
    case BRANCH:
        follow(p, s->first[0], w, sides[0]);
        follow(p, s->first[1], w, sides[1]);
        if (s->kind == COPIES) operate(w, s, set & w->live);
        break;
    case LOOP: {
        uint32_t count[32];
        for (unsigned l = 0; l < 32; l++) count[l] = from[l] & 3;
        for (unsigned turn = 0; turn < 3; turn++) {
            uint32_t inside = 0;
            for (unsigned l = 0; l < 32; l++) inside |= (uint32_t)(count[l] > turn) << l;
            follow(p, s->first[0], w, set & inside);
        }
    }
    }
}

static void follow(const program *p, int at, warp *w, uint32_t set) {
    for (; at >= 0; at = p->list[at].next) follow_one(p, &p->list[at], w, set);
}

static void follow_warp(const program *p, int first, unsigned thread, uint32_t *out) {
    warp w = {.live = UINT32_MAX, .out = out};
    for (unsigned i = 0; i < LANES_WORDS; i++)
        for (unsigned l = 0; l < 32; l++) w.r[i][l] = (thread + l + 100 * i) * start >> 3 * i;
    follow(p, first, &w, UINT32_MAX);
    for (unsigned l = 0; l < 32; l++)
        for (unsigned i = 0; i < LANES_WORDS && in(w.live, l); i++)
            out[l * LANES_WORDS + i] = w.r[i][l];
}

size_t lanes_program(uint64_t seed, char text[LANES_TEXT],
                     uint32_t expected[LANES_THREADS * LANES_WORDS]) {
    static program p; /* too large for the stack of a thread */
    memset(&p, 0, sizeof p);
    p.state = seed * 0x2545F4914F6CDD1D + 7;
    p.text = text;
    int first = create(&p, 0, 24);
    write_program(&p, first);
    memset(expected, 0, LANES_THREADS * LANES_WORDS * sizeof *expected);
    for (unsigned t = 0; t < LANES_THREADS; t += 32)
        follow_warp(&p, first, t, expected + t * LANES_WORDS);
    return p.length;
}
