/* SPDX-License-Identifier: Apache-2.0 */
/* Operations across the lanes of a warp: votes, shuffles, matches, reductions. */
#include "ptx/check/check.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

/* The participating lanes: those that run together and are in the member mask in row e. */
static uint32_t members(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    if (i->kind != CODE_SYNC) {
        if (x->check != NULL) {
            bh__check_warp_sync(x, x->warp,
                                mask); /* forms without .sync, from when warps ran in lockstep */
        }
        return mask;
    }
    const bh__u32 *row = bh__row(x, i->e);
    return mask & row[__builtin_ctz(mask)];
}

HANDLER(vote) {
    uint32_t all = members(x, i, mask), yes = *(const bh__u32 *)bh__row(x, i->a) & all;
    bool r = false;
    switch (i->imm) {
    case M_ALL:
        r = yes == all;
        break;
    case M_ANY:
        r = yes != 0;
        break;
    case M_UNI:
        r = yes == 0 || yes == all;
        break;
    default: {
        bh__u32 *pd = bh__row(x, i->d);
        FOR_LANES(mask, pd[l] = yes;);
        return true;
    }
    }
    bh__set_predicate(x, i->d, r ? UINT32_MAX : 0, mask);
    return true;
}

static bool source_lane(unsigned l, uint32_t b, uint32_t c, uint64_t mode, unsigned *from) {
    int lane = (int)l, bval = (int)(b & 31), clamp = (int)(c & 31), segment = (int)(c >> 8 & 31);
    int max = (lane & segment) | (clamp & ~segment), min = lane & segment, j;
    bool ok;
    switch (mode) {
    case M_UP:
        j = lane - bval;
        ok = j >= max;
        break;
    case M_DOWN:
        j = lane + bval;
        ok = j <= max;
        break;
    case M_BFLY:
        j = lane ^ bval;
        ok = j <= max;
        break;
    default:
        j = min | (bval & ~segment);
        ok = j <= max;
        break;
    }
    *from = ok ? (unsigned)j : l;
    return ok;
}

static uint32_t named_members(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned lane) {
    return i->kind == CODE_SYNC ? ((const bh__u32 *)bh__row(x, i->e))[lane] : FULL_MASK;
}

/* Returns true if a shuffle up or down goes past the last lane of the member mask. Sums over parts
 * of a warp do that and do not use the value. */
static bool is_past_edge(uint32_t named, unsigned from, uint64_t mode) {
    return named != 0 && ((mode == M_DOWN && from > 31 - (unsigned)__builtin_clz(named)) ||
                          (mode == M_UP && from < (unsigned)__builtin_ctz(named)));
}

/* `from` does not take part. */
static __attribute__((noinline)) void check_source(bh__ptx_exec *x, const bh__ptx_code *i,
                                                   unsigned lane, unsigned from) {
    uint32_t named = named_members(x, i, lane);
    if (i->extra != NULL) { /* lanes at different instructions: see sync.c */
        x->code = ((const bh__ptx_code *const *)i->extra)[lane];
    }
    if (is_past_edge(named, from, i->imm)) {
        return;
    }
    const char *why = !(named >> from & 1)           ? "is not in the member mask"
                      : !(x->warp->live >> from & 1) ? "has exited or does not exist"
                                                     : "does not execute the shuffle";
    bh__check_report(x, BH__PTX_FAULT_SHUFFLE, lane,
                     "shuffle of lane %u from lane %u, which %s (member mask 0x%08x)", lane, from,
                     why, (unsigned)named);
}

HANDLER(shfl) {
    const bh__u32 *pa = bh__row(x, i->a), *pb = bh__row(x, i->b), *pc = bh__row(x, i->c);
    bh__u32 *pd = bh__row(x, i->d);
    uint32_t copy[LANES], valid = 0, all = members(x, i, mask);
    uint8_t sources[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        copy[l] = pa[l];
    }
    FOR_LANES_IN_ORDER(mask) {
        unsigned from;
        valid |= (uint32_t)source_lane(l, pb[l], pc[l], i->imm, &from) << l;
        /* Undefined in PTX if the source lane does not participate; here the value is kept. */
        if (x->check != NULL && !(all >> from & 1)) {
            check_source(x, i, l, from);
        }
        sources[l] = (uint8_t)(all >> from & 1 ? from : l);
        pd[l] = copy[sources[l]];
    }
    if (x->check != NULL && x->warp->undefined != 0) {
        bh__check_shuffled(x, i, mask, sources);
    }
    if (i->d2 != NO_ROW) {
        bh__set_predicate(x, i->d2, valid, mask);
    }
    return true;
}

static uint64_t value_at(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l) {
    return i->bytes == 8 ? ((const bh__u64 *)bh__row(x, i->a))[l]
                         : ((const bh__u32 *)bh__row(x, i->a))[l];
}

HANDLER(match_any) {
    uint32_t all = members(x, i, mask);
    bh__u32 *pd = bh__row(x, i->d);
    uint32_t result[LANES];
    FOR_LANES_IN_ORDER(mask) {
        uint32_t r = 0;
        for (uint32_t m = all; m != 0; m &= m - 1) {
            unsigned other = (unsigned)__builtin_ctz(m);
            r |= (uint32_t)(value_at(x, i, other) == value_at(x, i, l)) << other;
        }
        result[l] = r;
    }
    FOR_LANES_IN_ORDER(mask) {
        pd[l] = result[l];
    }
    return true;
}

HANDLER(match_all) {
    uint32_t all = members(x, i, mask);
    uint64_t first = value_at(x, i, (unsigned)__builtin_ctz(mask));
    bool same = true;
    for (uint32_t m = all; m != 0; m &= m - 1) {
        same &= value_at(x, i, (unsigned)__builtin_ctz(m)) == first;
    }
    bh__u32 *pd = bh__row(x, i->d);
    FOR_LANES_IN_ORDER(mask) {
        pd[l] = same ? all : 0;
    }
    if (i->d2 != NO_ROW) {
        bh__set_predicate(x, i->d2, same ? UINT32_MAX : 0, mask);
    }
    return true;
}

static uint32_t reduce(uint32_t a, uint32_t b, uint64_t op, bool is_signed) {
    switch (op) {
    case M_ADD:
        return a + b;
    case M_AND:
        return a & b;
    case M_OR:
        return a | b;
    case M_XOR:
        return a ^ b;
    case M_MIN:
        return is_signed ? ((int32_t)a < (int32_t)b ? a : b) : a < b ? a : b;
    default:
        return is_signed ? ((int32_t)a > (int32_t)b ? a : b) : a > b ? a : b;
    }
}

HANDLER(redux) {
    const bh__u32 *pa = bh__row(x, i->a);
    bh__u32 *pd = bh__row(x, i->d);
    uint32_t all = members(x, i, mask), r = pa[__builtin_ctz(mask)];
    bool first = true;
    for (uint32_t m = all; m != 0; m &= m - 1) {
        uint32_t v = pa[__builtin_ctz(m)];
        r = first ? v : reduce(r, v, i->imm, i->flags & FLAG_SIGNED);
        first = false;
    }
    FOR_LANES(mask, pd[l] = r;);
    return true;
}

HANDLER(elect) {
    uint32_t all = members(x, i, mask);
    uint32_t leader = (uint32_t)__builtin_ctz(all != 0 ? all : mask);
    bh__u32 *pd = bh__row(x, i->d);
    FOR_LANES(mask, pd[l] = leader;);
    if (i->d2 != NO_ROW) {
        bh__set_predicate(x, i->d2, 1u << leader, mask);
    }
    return true;
}

HANDLER(activemask) {
    bh__u32 *pd = bh__row(x, i->d);
    FOR_LANES(mask, pd[l] = mask;);
    return true;
}

static int find_mod(const bh__ptx_insn *insn, const bh__ptx_mod *mods, size_t count) {
    for (size_t n = 0; n < count; n++) {
        if ((insn->mods >> mods[n] & 1) != 0) {
            return (int)mods[n];
        }
    }
    return -1;
}

#define FIND(insn, ...)                                                                            \
    find_mod(insn, (const bh__ptx_mod[]){__VA_ARGS__},                                             \
             sizeof((const bh__ptx_mod[]){__VA_ARGS__}) / sizeof(bh__ptx_mod))

static bool pick_redux(const bh__ptx_insn *insn, bh__ptx_code *code) {
    int op = FIND(insn, M_ADD, M_MIN, M_MAX, M_AND, M_OR, M_XOR);
    bool bits = insn->types[0] == T_B32;
    code->run = redux;
    code->imm = (uint64_t)op;
    code->flags = insn->types[0] == T_S32 ? FLAG_SIGNED : 0;
    return op >= 0 && bits == (op == M_AND || op == M_OR || op == M_XOR) && HAS(insn, SYNC);
}

/* The member mask is the last operand: lower.c puts it in the row after the other sources. */
bool bh__ptx_pick_warp(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bool sync = HAS(insn, SYNC);
    int mode;
    code->kind = sync ? CODE_SYNC : CODE_RUN;
    code->count = EXCHANGE_ROWS;
    code->bytes = (uint8_t)bh__ptx_bytes(insn->types[0]);
    switch (insn->op) {
    case OP_VOTE:
        mode = FIND(insn, M_ALL, M_ANY, M_UNI, M_BALLOT);
        code->run = vote;
        code->imm = (uint64_t)mode;
        code->count |= EXCHANGE_PREDICATE | (mode != M_BALLOT ? EXCHANGE_TO_PREDICATE : 0);
        return mode >= 0 && (mode == M_BALLOT) == (insn->types[0] == T_B32) &&
               insn->operand_count == (sync ? 3 : 2);
    case OP_SHFL:
        mode = FIND(insn, M_UP, M_DOWN, M_BFLY, M_IDX);
        code->run = shfl;
        code->imm = (uint64_t)mode;
        return mode >= 0 && insn->operand_count == (sync ? 5 : 4);
    case OP_MATCH:
        code->run = HAS(insn, ANY) ? match_any : match_all;
        return sync && HAS(insn, ANY) != HAS(insn, ALL) &&
               (HAS(insn, ALL) || insn->operands[0].kind != OPERAND_PAIR);
    case OP_REDUX:
        return pick_redux(insn, code);
    case OP_ELECT:
        code->run = elect;
        return sync;
    case OP_ACTIVEMASK:
        code->run = activemask;
        return true;
    default:
        return false;
    }
}
