/* SPDX-License-Identifier: Apache-2.0 */
/* Shuffles between the lanes of a warp whose source lanes are known, and votes. */
#include "jit/unit.h"

/* As the interpreter's: the lane that lane l reads, and whether it is in its segment. */
static bool source_of(unsigned l, uint32_t b, uint32_t c, uint64_t mode, unsigned *from) {
    int lane = (int)l, distance = (int)(b & 31), clamp = (int)(c & 31),
        segment = (int)(c >> 8 & 31);
    int max = (lane & segment) | (clamp & ~segment), min = lane & segment;
    int j = mode == M_UP     ? lane - distance
            : mode == M_DOWN ? lane + distance
            : mode == M_BFLY ? lane ^ distance
                             : min | (distance & ~segment);
    bool ok = mode == M_UP ? j >= max : j <= max;
    *from = ok ? (unsigned)j : l;
    return ok;
}

void bh__jit_shuffle(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    uint64_t b, k;
    bh__jit_constant(u, c->b, false, &b);
    bh__jit_constant(u, c->c, false, &k);
    LLVMValueRef order[LANES], valid[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        unsigned from;
        bool ok = source_of(l, (uint32_t)b, (uint32_t)k, c->imm, &from);
        order[l] = bh__jit_int(u, u->i32, from & 31);
        valid[l] = bh__jit_int(u, u->i1, ok);
    }
    LLVMValueRef a = bh__jit_vector(u, c->a, false), permutation = LLVMConstVector(order, LANES);
    LLVMValueRef members = LLVMBuildAnd(u->b, u->active, bh__jit_scalar(u, c->e, false), "");
    LLVMValueRef takes_part = LLVMBuildBitCast(u->b, members, LLVMVectorType(u->i1, LANES), "");
    LLVMValueRef undef = LLVMGetUndef(LLVMTypeOf(a));
    LLVMValueRef there = LLVMBuildShuffleVector(u->b, a, undef, permutation, "");
    LLVMValueRef source_is = LLVMBuildShuffleVector(
        u->b, takes_part, LLVMGetUndef(LLVMTypeOf(takes_part)), permutation, "");
    bh__jit_set(u, c->d, LLVMBuildSelect(u->b, source_is, there, a, ""));
    if (c->d2 != NO_ROW) {
        bh__jit_set_predicate(u, c->d2, LLVMConstVector(valid, LANES));
    }
}

/* The lanes that vote are those that execute it; all of the member mask are there. */
void bh__jit_vote(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    LLVMValueRef all = LLVMBuildAnd(u->b, u->active, bh__jit_scalar(u, c->e, false), "");
    LLVMValueRef yes = LLVMBuildBitCast(u->b, bh__jit_lanes_of(u, c->a), u->i32, "");
    yes = LLVMBuildAnd(u->b, yes, all, "");
    LLVMValueRef none = LLVMBuildICmp(u->b, LLVMIntEQ, yes, bh__jit_int(u, u->i32, 0), "");
    LLVMValueRef every = LLVMBuildICmp(u->b, LLVMIntEQ, yes, all, "");
    switch (c->imm) {
    case M_ALL:
        bh__jit_set_predicate(u, c->d, every);
        break;
    case M_ANY:
        bh__jit_set_predicate(u, c->d, LLVMBuildNot(u->b, none, ""));
        break;
    case M_UNI:
        bh__jit_set_predicate(u, c->d, LLVMBuildOr(u->b, none, every, ""));
        break;
    default: /* .ballot */
        bh__jit_set(u, c->d, yes);
        break;
    }
}
