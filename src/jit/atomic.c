/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atom and red on one value. Lanes go in order, one after another. A block's shared memory belongs
 * to the thread that runs it; in global memory each is an atomic operation of the processor.
 */
#include "jit/access.h"
#include "jit/floats.h"

/* Rows of u->scratch: what lanes have as vectors, for a loop that goes from lane to lane. */
enum { AT_POINTER, AT_VALUE, AT_SECOND, AT_OLD };

/* An operand that each lane has its own of. */
typedef struct source {
    LLVMValueRef same; /* all lanes' value, or NULL */
    unsigned row;
} source;

static source source_of(bh__jit_unit *u, int32_t row, bool wide, unsigned to) {
    source s = {NULL, to};
    if (bh__jit_is_uniform(u, row)) {
        s.same = bh__jit_scalar(u, row, wide);
    } else {
        LLVMBuildStore(u->b, bh__jit_vector(u, row, wide), bh__jit_scratch(u, to));
    }
    return s;
}

static LLVMValueRef take(bh__jit_unit *u, const source *s, LLVMTypeRef type, LLVMValueRef lane) {
    return s->same != NULL
               ? s->same
               : LLVMBuildLoad2(u->b, type, bh__jit_scratch_at(u, s->row, type, lane), "");
}

static LLVMValueRef choose(bh__jit_unit *u, LLVMIntPredicate how, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(u->b, LLVMBuildICmp(u->b, how, a, b, ""), a, b, "");
}

static bool is_float(const bh__ptx_insn *insn) {
    return insn->types[0] == T_F32;
}

/* What replaces `old`. */
static LLVMValueRef update(bh__jit_unit *u, const bh__ptx_insn *insn, LLVMValueRef old,
                           LLVMValueRef b, LLVMValueRef c) {
    if (is_float(insn)) {
        LLVMValueRef sum =
            LLVMBuildFAdd(u->b, bh__jit_real_of(u, old, false), bh__jit_real_of(u, b, false), "");
        return bh__jit_bits_of(u, bh__jit_canonical(u, sum), false);
    }
    bool is_signed = bh__ptx_class((bh__ptx_type)insn->types[0]) == 'S';
    if (HAS(insn, ADD)) {
        return LLVMBuildAdd(u->b, old, b, "");
    }
    if (HAS(insn, AND)) {
        return LLVMBuildAnd(u->b, old, b, "");
    }
    if (HAS(insn, OR)) {
        return LLVMBuildOr(u->b, old, b, "");
    }
    if (HAS(insn, XOR)) {
        return LLVMBuildXor(u->b, old, b, "");
    }
    if (HAS(insn, MIN)) {
        return choose(u, is_signed ? LLVMIntSLT : LLVMIntULT, old, b);
    }
    if (HAS(insn, MAX)) {
        return choose(u, is_signed ? LLVMIntSGT : LLVMIntUGT, old, b);
    }
    if (HAS(insn, CAS)) {
        return LLVMBuildSelect(u->b, LLVMBuildICmp(u->b, LLVMIntEQ, old, b, ""), c, old, "");
    }
    return b;
}

static LLVMAtomicRMWBinOp operation_of(const bh__ptx_insn *insn) {
    bool is_signed = bh__ptx_class((bh__ptx_type)insn->types[0]) == 'S';
    return HAS(insn, ADD)   ? LLVMAtomicRMWBinOpAdd
           : HAS(insn, AND) ? LLVMAtomicRMWBinOpAnd
           : HAS(insn, OR)  ? LLVMAtomicRMWBinOpOr
           : HAS(insn, XOR) ? LLVMAtomicRMWBinOpXor
           : HAS(insn, MIN) ? (is_signed ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin)
           : HAS(insn, MAX) ? (is_signed ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax)
                            : LLVMAtomicRMWBinOpXchg;
}

/* An operation that the processor does not have: again, until nobody has written in between. */
static LLVMValueRef exchange_until_equal(bh__jit_unit *u, const bh__jit_step *s, LLVMValueRef at,
                                         LLVMValueRef b) {
    const LLVMAtomicOrdering order = LLVMAtomicOrderingSequentiallyConsistent;
    LLVMValueRef first = LLVMBuildLoad2(u->b, u->i32, at, "");
    LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(first, 4);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(u->b), again = bh__jit_new_block(u);
    LLVMBasicBlockRef after = bh__jit_new_block(u);
    LLVMBuildBr(u->b, again);
    LLVMPositionBuilderAtEnd(u->b, again);
    LLVMValueRef old = LLVMBuildPhi(u->b, u->i32, ""), new = update(u, s->insn, old, b, NULL);
    LLVMValueRef both = LLVMBuildAtomicCmpXchg(u->b, at, old, new, order, order, false);
    LLVMValueRef now = LLVMBuildExtractValue(u->b, both, 0, "");
    LLVMBuildCondBr(u->b, LLVMBuildExtractValue(u->b, both, 1, ""), after, again);
    LLVMValueRef from[] = {first, now};
    LLVMBasicBlockRef blocks[] = {before, again};
    LLVMAddIncoming(old, from, blocks, 2);
    LLVMPositionBuilderAtEnd(u->b, after);
    return old;
}

/* One lane's operation. Returns what was there. */
static LLVMValueRef operate(bh__jit_unit *u, const bh__jit_step *s, const bh__jit_place *a,
                            LLVMValueRef at, LLVMValueRef b, LLVMValueRef c) {
    if (a->shared) {
        LLVMValueRef old = LLVMBuildLoad2(u->b, a->type, at, "");
        LLVMBuildStore(u->b, update(u, s->insn, old, b, c), at);
        return old;
    }
    const LLVMAtomicOrdering order = LLVMAtomicOrderingSequentiallyConsistent;
    if (is_float(s->insn)) {
        return exchange_until_equal(u, s, at, b);
    }
    if (HAS(s->insn, CAS)) {
        LLVMValueRef both = LLVMBuildAtomicCmpXchg(u->b, at, b, c, order, order, false);
        return LLVMBuildExtractValue(u->b, both, 0, "");
    }
    return LLVMBuildAtomicRMW(u->b, operation_of(s->insn), at, b, order, false);
}

/* From the first lane that runs to the last. */
static void each_lane(bh__jit_unit *u, const bh__jit_step *s, const bh__jit_place *a) {
    const bh__ptx_code *c = s->code;
    bool wide = c->bytes == 8, cas = HAS(s->insn, CAS), keeps = c->d != NO_ROW;
    source pointers = {NULL, AT_POINTER};
    if (bh__jit_is_single(a)) {
        pointers.same = bh__jit_pointer(u, a);
    } else {
        LLVMBuildStore(u->b, bh__jit_pointers(u, a), bh__jit_scratch(u, AT_POINTER));
    }
    source first = source_of(u, c->b, wide, AT_VALUE), second = {NULL, 0};
    if (cas) {
        second = source_of(u, c->c, wide, AT_SECOND);
    }
    bh__jit_loop loop;
    bh__jit_loop_begin(u, u->active, &loop);
    LLVMValueRef b = take(u, &first, a->type, loop.lane);
    LLVMValueRef v = cas ? take(u, &second, a->type, loop.lane) : NULL;
    LLVMValueRef old = operate(u, s, a, take(u, &pointers, u->ptr, loop.lane), b, v);
    if (keeps) {
        LLVMBuildStore(u->b, old, bh__jit_scratch_at(u, AT_OLD, a->type, loop.lane));
    }
    bh__jit_loop_end(u, &loop);
    if (keeps) {
        LLVMTypeRef all = LLVMVectorType(a->type, LANES);
        bh__jit_set(u, c->d, LLVMBuildLoad2(u->b, all, bh__jit_scratch(u, AT_OLD), ""));
    }
}

/* All lanes add to one integer and none asks what it was: they add their sum. */
static bool adds_to_one(bh__jit_unit *u, const bh__jit_step *s, const bh__jit_place *a) {
    return bh__jit_is_single(a) && HAS(s->insn, ADD) && s->code->d == NO_ROW && a->type == u->i32 &&
           !is_float(s->insn);
}

static void add_sum(bh__jit_unit *u, const bh__jit_step *s, const bh__jit_place *a) {
    LLVMValueRef v = bh__jit_vector(u, s->code->b, false);
    v = LLVMBuildSelect(u->b, u->active_lanes, v, LLVMConstNull(LLVMTypeOf(v)), "");
    LLVMTypeRef types[] = {LLVMTypeOf(v)};
    LLVMValueRef sum = bh__jit_intrinsic(u, "llvm.vector.reduce.add", types, 1, &v, 1);
    operate(u, s, a, bh__jit_pointer(u, a), sum, NULL);
}

void bh__jit_atomic(bh__jit_unit *u, const bh__jit_step *s) {
    bh__jit_place a;
    LLVMBasicBlockRef after = bh__jit_begin_access(u, s, &a);
    if (adds_to_one(u, s, &a)) {
        add_sum(u, s, &a);
    } else {
        each_lane(u, s, &a);
    }
    LLVMBuildBr(u->b, after);
    LLVMPositionBuilderAtEnd(u->b, after);
}
