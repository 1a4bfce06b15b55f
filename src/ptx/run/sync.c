/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions for which the lanes of a warp wait for each other: votes, shuffles, matches,
 * reductions, elect.sync, bar.warp.sync, and those for matrices.
 *
 * A lane that arrives before the others waits: its bit is set in at_sync, its member mask is in
 * members, and its pc stays at the instruction, which says what it waits to execute. A set of lanes
 * is complete when all of them wait with the same mask and every lane of the mask is among them or
 * has exited. The last one to arrive, or to exit, executes the instruction for all of them at once.
 *
 * The lanes of a complete set may be at different instructions, such as the two copies of a shuffle
 * that a compiler has put in both branches of an `if`, and in different frames. PTX asks for the
 * same operation with the same qualifiers; then values are exchanged as if it were one instruction.
 * With other operations or qualifiers each part of the lanes would wait for the rest forever: a
 * fault. Matrix instructions are .aligned: all lanes must be at the same one.
 *
 * Lanes that wait with another mask belong to another set, whatever lanes the two masks share.
 */
#include <string.h>

#include "ptx/check/check.h"

static const bh__ptx_code *code_at(const bh__ptx_exec *x, unsigned lane) {
    return &x->module->code[x->warp->pc[lane]];
}

/* The lanes that wait with this member mask. */
static uint32_t waiting_with(const bh__ptx_warp *w, uint32_t members) {
    uint32_t found = 0;
    FOR_LANES_IN_ORDER(w->at_sync) {
        found |= (uint32_t)(w->members[l] == members) << l;
    }
    return found;
}

/* The lanes in the member mask have converged. */
static void check_sync(bh__ptx_exec *x, uint32_t members, uint32_t lanes) {
    if (x->check != NULL) {
        bh__check_warp_sync(x, x->warp, members | lanes);
    }
}

static bool same_operation(const bh__ptx_code *a, const bh__ptx_code *b) {
    return a == b || (a->count && a->run == b->run && a->imm == b->imm && a->bytes == b->bytes &&
                      a->flags == b->flags);
}

static bool fault_differs(bh__ptx_exec *x, unsigned first, unsigned other) {
    bh__ptx_warp *w = x->warp;
    bh__ptx_bind(x, w, w->base[first]);
    x->code = code_at(x, first);
    bool copies = x->code->run == code_at(x, other)->run && !x->code->count;
    char place[BH__PTX_PLACE];
    return bh__ptx_fault_other(
        x, BH__PTX_FAULT_BARRIER, first,
        "lanes with member mask 0x%08x wait at %s: lane %u at this one, lane %u on PTX %s",
        (unsigned)w->members[first],
        copies ? "copies of an .aligned instruction" : "different operations", first, other,
        bh__ptx_place(x->module, x->module->sites[w->pc[other]].line, place));
}

/* The rows of an exchange, in a frame of its own. */
typedef struct stage {
    bh__u64 a[LANES];
    bh__u32 b[LANES], c[LANES], e[LANES], d[LANES], d2;
} stage;

static bool bit_of(const bh__u32 *row, unsigned lane) {
    return *row >> lane & 1;
}

static void stage_in(stage *s, const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l) {
    if (i->a != NO_ROW && i->count & EXCHANGE_PREDICATE) {
        bh__u32 *bits = (bh__u32 *)s->a;
        *bits |= (uint32_t)bit_of(bh__row(x, i->a), l) << l;
    } else if (i->a != NO_ROW && i->bytes == 8) {
        s->a[l] = ((const bh__u64 *)bh__row(x, i->a))[l];
    } else if (i->a != NO_ROW) {
        ((bh__u32 *)s->a)[l] = ((const bh__u32 *)bh__row(x, i->a))[l];
    }
    if (i->b != NO_ROW) {
        s->b[l] = ((const bh__u32 *)bh__row(x, i->b))[l];
        s->c[l] = ((const bh__u32 *)bh__row(x, i->c))[l];
    }
    s->e[l] = x->warp->members[l];
}

static void stage_out(const stage *s, const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l) {
    if (i->d != NO_ROW && i->count & EXCHANGE_TO_PREDICATE) {
        bh__set_predicate(x, i->d, s->d[0], 1u << l);
    } else if (i->d != NO_ROW) {
        ((bh__u32 *)bh__row(x, i->d))[l] = s->d[l];
    }
    if (i->d2 != NO_ROW) {
        bh__set_predicate(x, i->d2, s->d2, 1u << l);
    }
}

#define ROW_OF(field) ((int32_t)offsetof(stage, field))

/* Executes the lanes' operation, each lane with the rows of its own instruction and frame. */
static bool run_exchange(bh__ptx_exec *x, uint32_t lanes) {
    bh__ptx_warp *w = x->warp;
    const bh__ptx_code *sites[LANES];
    stage s;
    memset(&s, 0, sizeof s);
    FOR_LANES_IN_ORDER(lanes) {
        x->bases[0] = w->regs + w->base[l];
        sites[l] = code_at(x, l);
        stage_in(&s, x, sites[l], l);
    }
    unsigned first = (unsigned)__builtin_ctz(lanes);
    bh__ptx_code all = *sites[first];
    all.extra = sites;
    all.a = ROW_OF(a), all.b = ROW_OF(b), all.c = ROW_OF(c), all.e = ROW_OF(e);
    all.d = ROW_OF(d), all.d2 = ROW_OF(d2);
    bh__ptx_bind(x, w, w->base[first]);
    x->code = sites[first];
    x->bases[0] = (uint8_t *)&s;
    bool ran = all.run(x, &all, lanes);
    FOR_LANES_IN_ORDER(lanes) {
        x->bases[0] = w->regs + w->base[l];
        stage_out(&s, x, sites[l], l);
    }
    return ran;
}

/* A matrix instruction has too many rows for that: the lanes' frames, which are of one function,
 * are copied to one. */
static bool run_gathered(bh__ptx_exec *x, uint32_t lanes) {
    bh__ptx_warp *w = x->warp;
    unsigned first = (unsigned)__builtin_ctz(lanes);
    uint32_t base = bh__ptx_call_gather(w, lanes);
    x->code = code_at(x, first);
    if (base == 0) {
        bh__ptx_bind(x, w, w->base[first]);
        return bh__ptx_fault_other(x, BH__PTX_FAULT_STACK, first,
                                   "call stack overflow: %u lanes are in different calls of %.60s",
                                   (unsigned)__builtin_popcount(lanes), x->frame_function->name);
    }
    bh__ptx_bind(x, w, base);
    bool ran = x->code->run(x, x->code, lanes);
    bh__ptx_call_scatter(w, base, lanes);
    return ran;
}

/* Executes the instructions at which a complete set of lanes waits. */
static bool run_waiting(bh__ptx_exec *x, uint32_t members, uint32_t lanes) {
    bh__ptx_warp *w = x->warp;
    unsigned first = (unsigned)__builtin_ctz(lanes);
    bool together = true;
    FOR_LANES_IN_ORDER(lanes) {
        if (!same_operation(code_at(x, first), code_at(x, l))) {
            return fault_differs(x, first, l);
        }
        together &= w->pc[l] == w->pc[first] && w->base[l] == w->base[first];
    }
    check_sync(x, members, lanes);
    bool ran;
    if (together) {
        bh__ptx_bind(x, w, w->base[first]);
        x->code = code_at(x, first);
        ran = x->code->run(x, x->code, lanes);
    } else if (code_at(x, first)->count) {
        ran = run_exchange(x, lanes);
    } else {
        ran = run_gathered(x, lanes);
    }
    w->at_sync &= ~lanes;
    FOR_LANES(lanes, w->pc[l]++;);
    return ran;
}

bool bh__ptx_sync_run(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, uint32_t pc) {
    bh__ptx_warp *w = x->warp;
    uint32_t base = w->base[__builtin_ctz(mask)];
    for (uint32_t rest = mask; rest != 0;) {
        uint32_t part = bh__ptx_same_members(x, i, rest);
        uint32_t members = ((const bh__u32 *)bh__row(x, i->e))[__builtin_ctz(part)];
        rest &= ~part;
        if ((members & w->live & ~part) == 0) { /* all of them are here */
            check_sync(x, members, part);
            x->code = i;
            if (!i->run(x, i, part)) {
                return false;
            }
            FOR_LANES(part, w->pc[l] = pc + 1;);
            continue;
        }
        FOR_LANES(part, w->pc[l] = pc; w->members[l] = members;);
        w->at_sync |= part;
        uint32_t waiting = waiting_with(w, members);
        if ((members & w->live & ~waiting) == 0) {
            if (!run_waiting(x, members, waiting)) {
                return false;
            }
            bh__ptx_bind(x, w, base);
        }
    }
    return true;
}

bool bh__ptx_sync_exit(bh__ptx_exec *x) {
    bh__ptx_warp *w = x->warp;
    for (uint32_t rest = w->at_sync; rest != 0;) {
        uint32_t members = w->members[__builtin_ctz(rest)];
        uint32_t waiting = waiting_with(w, members);
        rest &= ~waiting;
        if ((members & w->live & ~waiting) == 0 && !run_waiting(x, members, waiting)) {
            return false;
        }
    }
    return true;
}
