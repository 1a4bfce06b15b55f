/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling of one warp: which lanes run together, and the loop that executes them. */
#include "ptx/check/check.h"
#include "ptx/debug/debug.h"

#define SLICE        2048 /* instructions before the next warp runs */
#define FAVOUR_SLICE 256  /* for lanes that waited while other lanes of the warp ran */
#define NATIVE_TIMES 8    /* as many of native code, which is faster */

void bh__ptx_bind(bh__ptx_exec *x, bh__ptx_warp *w, uint32_t base) {
    const bh__ptx_frame *frame = (const bh__ptx_frame *)(const void *)(w->regs + base);
    x->warp = w;
    x->bases[0] = w->regs + base;
    x->stack = frame->stack;
    x->frame_function = frame->function;
    x->local_end = frame->stack + frame->function->local_bytes;
    if (frame->function->stack_row != 0) {
        x->local_end = bh__ptx_stack_top(w, base, x->local_end);
    }
}

typedef struct group {
    uint32_t mask, pc, base;
    uint32_t limit; /* other lanes wait at this pc: stop there to reconverge */
    bool alone;     /* all lanes that can run */
} group;

static uint32_t runnable(const bh__ptx_warp *w) {
    return w->live & ~w->at_barrier & ~w->at_sync & ~w->at_cluster;
}

static unsigned longest_waiting(const bh__ptx_warp *w, uint32_t lanes) {
    unsigned best = (unsigned)__builtin_ctz(lanes);
    FOR_LANES_IN_ORDER(lanes) {
        best = w->last_turn[l] < w->last_turn[best] ? l : best;
    }
    return best;
}

/* All lanes are at one instruction, in one frame. */
static bool are_together(const bh__ptx_warp *w) {
    uint32_t differs = 0;
    for (unsigned l = 0; l < LANES; l++) {
        differs |= (w->pc[l] ^ w->pc[0]) | (w->base[l] ^ w->base[0]);
    }
    return differs == 0;
}

/*
 * Innermost call first, then lowest program counter: this makes divergent lanes reconverge. On its
 * own it could livelock, because lanes may spin on a value that a waiting lane must write. So the
 * lanes that have waited longest are run first from time to time.
 */
static group choose(bh__ptx_warp *w, uint32_t lanes, bool favour) {
    if (lanes == FULL_MASK && are_together(w)) {
        return (group){lanes, w->pc[0], w->base[0], UINT32_MAX, true};
    }
    unsigned lead = (unsigned)__builtin_ctz(lanes);
    if (favour) {
        lead = longest_waiting(w, lanes);
    } else {
        FOR_LANES_IN_ORDER(lanes) {
            if (w->depth[l] > w->depth[lead] ||
                (w->depth[l] == w->depth[lead] && w->pc[l] < w->pc[lead])) {
                lead = l;
            }
        }
    }
    group g = {.pc = w->pc[lead], .base = w->base[lead], .limit = UINT32_MAX};
    FOR_LANES_IN_ORDER(lanes) {
        if (w->base[l] != g.base) {
            continue;
        }
        if (w->pc[l] == g.pc) {
            g.mask |= 1u << l;
        } else if (!favour && w->pc[l] > g.pc && w->pc[l] < g.limit) {
            g.limit = w->pc[l];
        }
    }
    g.alone = g.mask == lanes;
    if (!g.alone) {
        w->turn++;
        FOR_LANES_IN_ORDER(g.mask) {
            w->last_turn[l] = w->turn;
        }
    }
    return g;
}

static void set_pc(bh__ptx_warp *w, uint32_t lanes, uint32_t pc) {
    FOR_LANES(lanes, w->pc[l] = pc;);
}

static bool exit_lanes(bh__ptx_exec *x, uint32_t lanes) {
    bh__ptx_warp *w = x->warp;
    bh__ptx_call_abandon(w, lanes);
    w->live &= ~lanes;
    x->block->live_threads -= (uint32_t)__builtin_popcount(lanes);
    bh__ptx_barrier_exit(x->block);
    bh__ptx_cluster_exit(x, lanes);
    return bh__ptx_sync_exit(x);
}

/* Why a group stopped running. */
typedef enum stop { STOP_CHOOSE, STOP_SLICE, STOP_SLEEP, STOP_FAULT, STOP_DEBUG } stop;

static stop run_branch(bh__ptx_exec *x, const bh__ptx_code *i, group *g, uint32_t mask) {
    const bh__ptx_targets *list = i->extra;
    const bh__u32 *row = bh__row(x, i->a);
    set_pc(x->warp, g->mask & ~mask, g->pc + 1);
    FOR_LANES_IN_ORDER(mask) {
        if (row[l] >= list->count) {
            bh__ptx_fault_other(x, BH__PTX_FAULT_TRAP, l,
                                "brx.idx with index %u into a list of %u targets", (unsigned)row[l],
                                (unsigned)list->count);
            return STOP_FAULT;
        }
        x->warp->pc[l] = list->at[row[l]];
    }
    return STOP_CHOOSE;
}

static stop run_call(bh__ptx_exec *x, const bh__ptx_code *i, group *g, uint32_t mask) {
    set_pc(x->warp, g->mask, g->pc);
    set_pc(x->warp, g->mask & ~mask, g->pc + 1);
    return bh__ptx_call_enter(x, i, mask, g->pc) == 0 ? STOP_FAULT : STOP_CHOOSE;
}

static stop run_barrier(bh__ptx_exec *x, const bh__ptx_code *i, group *g, uint32_t mask) {
    uint32_t same = bh__ptx_barrier_same(x, i, mask);
    set_pc(x->warp, g->mask, g->pc + 1);
    set_pc(x->warp, mask & ~same, g->pc);
    return bh__ptx_barrier_arrive(x, i, same) == BAR_FAULT ? STOP_FAULT : STOP_CHOOSE;
}

static stop run_sync(bh__ptx_exec *x, const bh__ptx_code *i, group *g, uint32_t mask) {
    set_pc(x->warp, g->mask & ~mask, g->pc + 1);
    return bh__ptx_sync_run(x, i, mask, g->pc) ? STOP_CHOOSE : STOP_FAULT;
}

/* A test that fails is most likely in a loop: let others make it true. */
static stop run_poll(bh__ptx_exec *x, const bh__ptx_code *i, group *g, uint32_t mask) {
    if (!i->run(x, i, mask)) {
        return STOP_FAULT;
    }
    set_pc(x->warp, g->mask, g->pc + 1);
    return (*(const bh__u32 *)bh__row(x, i->d) & mask) == mask ? STOP_CHOOSE : STOP_SLEEP;
}

/* Instructions after which the group is formed again; `mask` is not empty. */
__attribute__((always_inline)) static inline stop
run_control(bh__ptx_exec *x, const bh__ptx_code *i, group *g, uint32_t mask) {
    switch (i->kind) {
    case CODE_BRA:
        set_pc(x->warp, mask, i->target);
        set_pc(x->warp, g->mask & ~mask, g->pc + 1);
        return STOP_CHOOSE;
    case CODE_BRX:
        return run_branch(x, i, g, mask);
    case CODE_CALL:
        return run_call(x, i, g, mask);
    case CODE_RET:
        set_pc(x->warp, g->mask & ~mask, g->pc + 1);
        bh__ptx_call_leave(x, mask);
        return STOP_CHOOSE;
    case CODE_EXIT:
        set_pc(x->warp, g->mask & ~mask, g->pc + 1);
        return exit_lanes(x, mask) ? STOP_CHOOSE : STOP_FAULT;
    case CODE_BAR:
        return run_barrier(x, i, g, mask);
    case CODE_SYNC:
        return run_sync(x, i, g, mask);
    case CODE_CLUSTER:
        set_pc(x->warp, g->mask, g->pc + 1);
        return bh__ptx_cluster_barrier(x, i, mask) ? STOP_CHOOSE : STOP_FAULT;
    case CODE_POLL:
        return run_poll(x, i, g, mask);
    default: /* CODE_SLEEP */
        set_pc(x->warp, g->mask, g->pc + 1);
        return STOP_SLEEP;
    }
}

/* Runs the group until it diverges or blocks, or until `left` instructions were executed. Inline,
 * so that warps that are not followed do not pay for those that are. `checked`: ends when a
 * register gets undefined bits. */
__attribute__((always_inline)) static inline stop run_group(bh__ptx_exec *x, group *g,
                                                            uint64_t *left, bool checked) {
    const bh__ptx_code *code = x->module->code;
    uint32_t pc = g->pc, mask = g->mask;
    uint64_t n = *left;
    while (n > 0) {
        if (pc >= g->limit) {
            set_pc(x->warp, mask, pc);
            *left = n;
            return STOP_CHOOSE;
        }
        const bh__ptx_code *i = &code[pc];
        uint32_t active = mask;
        n--;
        if (i->guard != NO_ROW) {
            active &= *(const bh__u32 *)(const void *)(x->bases[0] + i->guard) ^ i->guard_flip;
            if (active == 0) {
                pc++;
                continue;
            }
        }
        x->code = i;
        if (i->kind == CODE_RUN) {
            if (!i->run(x, i, active)) {
                return STOP_FAULT;
            }
            pc++;
            if (checked && x->warp->undefined != 0) {
                set_pc(x->warp, mask, pc);
                *left = n;
                return STOP_CHOOSE;
            }
        } else if (i->kind == CODE_BRA && active == mask) {
            pc = i->target;
        } else if (i->kind == CODE_SYNC && active == x->warp->live &&
                   bh__ptx_same_members(x, i, active) == active) {
            if (x->check != NULL) { /* all members are in the group */
                const bh__u32 *members = bh__row(x, i->e);
                bh__check_warp_sync(x, x->warp, members[__builtin_ctz(active)] | active);
            }
            if (!i->run(x, i, active)) {
                return STOP_FAULT;
            }
            pc++;
        } else {
            g->pc = pc;
            *left = n;
            return run_control(x, i, g, active);
        }
    }
    set_pc(x->warp, mask, pc);
    *left = 0;
    return STOP_SLICE;
}

static stop run_apart(bh__ptx_exec *x, group *g, uint64_t *left) {
    return run_group(x, g, left, false);
}

static stop run_checked(bh__ptx_exec *x, group *g, uint64_t *left) {
    return run_group(x, g, left, true);
}

/* As run_group, while registers have undefined bits: one instruction at a time. */
__attribute__((noinline)) static stop run_undefined(bh__ptx_exec *x, group *g, uint64_t *left) {
    bh__ptx_warp *w = x->warp;
    while (*left > 0 && w->undefined != 0) {
        set_pc(w, g->mask, g->pc);
        if (g->pc >= g->limit) {
            return STOP_CHOOSE;
        }
        bh__check_flow(x, g->pc, g->mask);
        uint64_t one = 1;
        stop why = run_apart(x, g, &one);
        --*left;
        if (why != STOP_SLICE) {
            return why;
        }
        g->pc = w->pc[__builtin_ctz(g->mask)];
    }
    return *left > 0 ? STOP_CHOOSE : STOP_SLICE;
}

/* As run_group, in a block that is followed: lanes that are take one instruction at a time. */
__attribute__((noinline)) static stop run_steps(bh__ptx_exec *x, group *g, uint64_t *left) {
    bh__ptx_warp *w = x->warp;
    uint32_t lanes = bh__ptx_trace_lanes(x, w) & g->mask;
    bh__ptx_trace_settle(x);
    if (lanes == 0) {
        return run_apart(x, g, left);
    }
    stop why = STOP_SLICE;
    while (*left > 0 && why == STOP_SLICE) {
        set_pc(w, g->mask, g->pc);
        if (g->pc >= g->limit) {
            return STOP_CHOOSE;
        }
        bh__ptx_trace_step step;
        if (!bh__ptx_trace_before(x, g->pc, lanes, &step)) {
            return STOP_DEBUG;
        }
        if (x->check != NULL && w->undefined != 0) {
            bh__check_flow(x, g->pc, g->mask);
        }
        uint64_t one = 1;
        why = run_apart(x, g, &one);
        --*left;
        bh__ptx_trace_after(x, &step, why == STOP_FAULT);
        if (why != STOP_FAULT) {
            bh__ptx_trace_settle(x);
        }
        g->pc = w->pc[__builtin_ctz(g->mask)];
    }
    return why;
}

/* As run_group, with the kernel's native code where it has some for these lanes. */
static stop run_compiled(bh__ptx_exec *x, group *g, uint64_t *left) {
    bh__ptx_group_state state = {.mask = g->mask, .pc = g->pc, .left = (int64_t)*left};
    uint32_t end = x->grid->compiled(x, &state);
    if (end == COMPILED_NOT) {
        return run_apart(x, g, left);
    }
    if (end == COMPILED_FAULT) {
        return STOP_FAULT;
    }
    *left = state.left > 0 ? (uint64_t)state.left : 0;
    g->pc = state.pc;
    g->mask = state.mask;
    set_pc(x->warp, g->mask, g->pc);
    if (state.exited != 0) {
        if (!exit_lanes(x, state.exited)) {
            return STOP_FAULT;
        }
        bh__ptx_bind(x, x->warp, g->base);
    }
    if (end == COMPILED_SLICE) {
        *left = 0;
        return STOP_SLICE;
    }
    if (end == COMPILED_EXIT) {
        return STOP_CHOOSE;
    }
    uint64_t one = 1;
    stop why = run_apart(x, g, &one);
    return why == STOP_SLICE ? STOP_CHOOSE : why;
}

bh__ptx_turn bh__ptx_warp_run(bh__ptx_exec *x, bh__ptx_warp *w, uint64_t *budget) {
    bool favour = w->favour;
    bool native = x->grid->compiled != NULL && x->check == NULL;
    uint64_t slice = (favour ? FAVOUR_SLICE : SLICE) * (native ? NATIVE_TIMES : 1);
    slice = slice < *budget ? slice : *budget;
    uint64_t left = slice;
    bool ran = false, split = false;
    w->favour = false;
    while (left > 0) {
        uint32_t lanes = runnable(w);
        if (lanes == 0) {
            break;
        }
        group g = choose(w, lanes, favour);
        bh__ptx_bind(x, w, g.base);
        ran = true;
        split = !g.alone;
        stop why = x->tracing != NULL                 ? run_steps(x, &g, &left)
                   : native && g.base == 0 && g.alone ? run_compiled(x, &g, &left)
                   : x->check == NULL                 ? run_group(x, &g, &left, false)
                   : w->undefined == 0                ? run_checked(x, &g, &left)
                                                      : run_undefined(x, &g, &left);
        if (why >= STOP_FAULT) {
            return why == STOP_FAULT ? TURN_FAULT : TURN_STOP;
        }
        if (why == STOP_SLEEP) {
            left = 0;
        }
    }
    *budget -= slice - left;
    /* Next time, lanes that had to wait run first. */
    w->favour = !favour && split;
    return ran ? TURN_RAN : TURN_BLOCKED;
}
