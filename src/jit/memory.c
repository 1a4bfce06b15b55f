/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores of one value. The bounds are the interpreter's: for global memory the range of
 * the same instruction's last access, for shared memory the block's. What is outside of them, or not aligned, goes to
 * the interpreter's handler, which finds another range or reports the fault.
 */
#include <stddef.h>

#include "jit/access.h"

static LLVMTypeRef memory_type(const bh__jit_unit *u, unsigned bytes) {
    return bytes == 1 ? u->i8 : bytes == 2 ? u->i16 : bytes == 4 ? u->i32 : u->i64;
}

static LLVMValueRef number(bh__jit_unit *u, uint64_t v) {
    return bh__jit_int(u, u->i64, v);
}

/* Addresses of 32 bits wrap around before they are widened. */
static void find_addresses(bh__jit_unit *u, bh__jit_place *a) {
    const bh__ptx_code *c = a->code;
    bool narrow = (c->flags & FLAG_ADDRESS32) != 0;
    a->affine = bh__jit_class_of(u, c->a, &a->stride) == CLASS_AFFINE;
    LLVMValueRef v =
        a->affine ? bh__jit_scalar(u, c->a, !narrow) : bh__jit_vector(u, c->a, !narrow);
    v = LLVMBuildAdd(u->b, v, bh__jit_const_like(u, v, narrow ? (uint32_t)c->imm : c->imm), "");
    a->base = narrow ? LLVMBuildZExt(u->b, v, bh__jit_shaped(v, u->i64), "") : v;
}

static void find_range(bh__jit_unit *u, bh__jit_place *a) {
    if (a->shared) {
        LLVMValueRef window = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, shared_base), u->i32);
        LLVMValueRef bytes = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, shared_bytes), u->i32);
        a->start = a->code->a < 0 ? number(u, 0) : LLVMBuildZExt(u->b, window, u->i64, "");
        a->size = LLVMBuildZExt(u->b, bytes, u->i64, "");
        a->to = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, shared), u->ptr);
        a->usable = bh__jit_int(u, u->i1, 1);
        return;
    }
    const bh__jit_range *r = &u->ranges[a->range];
    a->start = LLVMBuildLoad2(u->b, u->i64, r->base, "");
    a->size = LLVMBuildLoad2(u->b, u->i64, r->size, "");
    a->to = LLVMBuildIntToPtr(u->b, a->start, u->ptr, "");
    a->usable = bh__jit_int(u, u->i1, 1);
    if (a->writes) {
        LLVMValueRef w = LLVMBuildLoad2(u->b, u->i8, r->writable, "");
        a->usable = LLVMBuildICmp(u->b, LLVMIntNE, w, bh__jit_int(u, u->i8, 0), "");
    }
}

static LLVMValueRef edge_lane(bh__jit_unit *u, bool last) {
    return LLVMBuildZExt(u->b, bh__jit_edge_lane(u, u->active, last), u->i64, "");
}

static LLVMValueRef address_of_lane(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef lane) {
    LLVMValueRef step = LLVMBuildMul(u->b, lane, number(u, (uint64_t)a->stride), "");
    return LLVMBuildAdd(u->b, a->base, step, "");
}

/* How many bytes from the range's start an access of `bytes` may begin: less than this. */
static LLVMValueRef limit_of(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef bytes) {
    LLVMTypeRef types[] = {u->i64};
    LLVMValueRef args[] = {a->size, LLVMBuildSub(u->b, bytes, number(u, 1), "")};
    return bh__jit_intrinsic(u, "llvm.usub.sat", types, 1, args, 2);
}

static LLVMValueRef is_aligned(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef address) {
    LLVMValueRef rest =
        LLVMBuildAnd(u->b, address, bh__jit_const_like(u, address, a->code->bytes - 1u), "");
    return LLVMBuildICmp(u->b, LLVMIntEQ, rest, bh__jit_const_like(u, address, 0), "");
}

static LLVMValueRef all_fit(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef limit = limit_of(u, a, number(u, a->code->bytes));
    LLVMValueRef at = LLVMBuildSub(u->b, a->base, bh__jit_splat(u, a->start), "");
    LLVMValueRef outside = LLVMBuildICmp(u->b, LLVMIntUGE, at, bh__jit_splat(u, limit), "");
    LLVMValueRef bad =
        LLVMBuildOr(u->b, outside, LLVMBuildNot(u->b, is_aligned(u, a, a->base), ""), "");
    bad = LLVMBuildBitCast(u->b, LLVMBuildAnd(u->b, bad, u->active_lanes, ""), u->i32, "");
    return LLVMBuildICmp(u->b, LLVMIntEQ, bad, bh__jit_int(u, u->i32, 0), "");
}

/* From the lowest address of the lanes that run to the end of the highest one: one comparison. */
static LLVMValueRef span_fits(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef lowest = a->base, bytes = number(u, a->code->bytes);
    if (a->stride % a->code->bytes != 0) {
        return bh__jit_int(u, u->i1, 0); /* the lanes between may not be aligned */
    }
    if (a->stride != 0) {
        LLVMValueRef first = edge_lane(u, false), last = edge_lane(u, true);
        LLVMValueRef lanes = LLVMBuildSub(u->b, last, first, "");
        uint64_t step = (uint64_t)(a->stride < 0 ? -a->stride : a->stride);
        lowest = address_of_lane(u, a, a->stride < 0 ? last : first);
        bytes = LLVMBuildAdd(u->b, LLVMBuildMul(u->b, lanes, number(u, step), ""), bytes, "");
    }
    LLVMValueRef at = LLVMBuildSub(u->b, lowest, a->start, "");
    LLVMValueRef inside = LLVMBuildICmp(u->b, LLVMIntULT, at, limit_of(u, a, bytes), "");
    return LLVMBuildAnd(u->b, inside, is_aligned(u, a, a->base), "");
}

static LLVMValueRef is_fine(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef fits = a->affine ? span_fits(u, a) : all_fit(u, a);
    return LLVMBuildAnd(u->b, a->usable, fits, "");
}

/* ---- the access itself ---- */

LLVMValueRef bh__jit_pointer(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef at = LLVMBuildSub(u->b, a->base, a->start, "");
    return LLVMBuildGEP2(u->b, u->i8, a->to, &at, 1, "");
}

LLVMValueRef bh__jit_pointers(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef addresses = a->base;
    if (a->affine) {
        addresses =
            LLVMBuildAdd(u->b, bh__jit_splat(u, a->base), bh__jit_iota(u, true, a->stride), "");
    }
    LLVMValueRef at = LLVMBuildSub(u->b, addresses, bh__jit_splat(u, a->start), "");
    return LLVMBuildGEP2(u->b, u->i8, a->to, &at, 1, "");
}

static bool is_contiguous(const bh__jit_place *a) {
    return a->affine && a->stride == a->code->bytes;
}

bool bh__jit_is_single(const bh__jit_place *a) {
    return a->affine && a->stride == 0;
}

static LLVMValueRef load_vector(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMTypeRef type = LLVMVectorType(a->type, LANES);
    LLVMValueRef align = bh__jit_int(u, u->i32, a->code->bytes), none = LLVMGetUndef(type);
    if (is_contiguous(a)) {
        LLVMTypeRef types[] = {type, u->ptr};
        LLVMValueRef args[] = {bh__jit_pointer(u, a), align, u->active_lanes, none};
        return bh__jit_intrinsic(u, "llvm.masked.load", types, 2, args, 4);
    }
    LLVMTypeRef types[] = {type, LLVMVectorType(u->ptr, LANES)};
    LLVMValueRef args[] = {bh__jit_pointers(u, a), align, u->active_lanes, none};
    return bh__jit_intrinsic(u, "llvm.masked.gather", types, 2, args, 4);
}

static void make_load(bh__jit_unit *u, const bh__jit_place *a) {
    const bh__ptx_code *c = a->code;
    LLVMValueRef v;
    if (bh__jit_is_single(a)) {
        v = LLVMBuildLoad2(u->b, a->type, bh__jit_pointer(u, a), "");
        LLVMSetAlignment(v, c->bytes);
    } else {
        v = load_vector(u, a);
    }
    LLVMTypeRef to = bh__jit_shaped(v, c->flags & FLAG_WIDE_D ? u->i64 : u->i32);
    if (LLVMTypeOf(v) != to) {
        v = LLVMBuildIntCast2(u->b, v, to, (c->flags & FLAG_SIGNED) != 0, "");
    }
    bh__jit_set(u, ((const int32_t *)c->extra)[0], v);
}

/* Lanes store in order: of several to one place, the last one stays. */
static void make_store(bh__jit_unit *u, const bh__jit_place *a) {
    const bh__ptx_code *c = a->code;
    int32_t row = ((const int32_t *)c->extra)[0];
    bool wide = (c->flags & FLAG_WIDE_A) != 0;
    if (bh__jit_is_single(a)) {
        LLVMValueRef v;
        if (bh__jit_is_uniform(u, row)) {
            v = bh__jit_scalar(u, row, wide);
        } else {
            LLVMValueRef all = bh__jit_vector(u, row, wide);
            v = LLVMBuildExtractElement(u->b, all, edge_lane(u, true), "");
        }
        v = LLVMTypeOf(v) == a->type ? v : LLVMBuildTrunc(u->b, v, a->type, "");
        LLVMSetAlignment(LLVMBuildStore(u->b, v, bh__jit_pointer(u, a)), c->bytes);
        return;
    }
    LLVMValueRef v = bh__jit_vector(u, row, wide), align = bh__jit_int(u, u->i32, c->bytes);
    LLVMTypeRef type = LLVMVectorType(a->type, LANES);
    v = LLVMTypeOf(v) == type ? v : LLVMBuildTrunc(u->b, v, type, "");
    if (is_contiguous(a)) {
        LLVMTypeRef types[] = {type, u->ptr};
        LLVMValueRef args[] = {v, bh__jit_pointer(u, a), align, u->active_lanes};
        bh__jit_intrinsic(u, "llvm.masked.store", types, 2, args, 4);
        return;
    }
    LLVMTypeRef types[] = {type, LLVMVectorType(u->ptr, LANES)};
    LLVMValueRef args[] = {v, bh__jit_pointers(u, a), align, u->active_lanes};
    bh__jit_intrinsic(u, "llvm.masked.scatter", types, 2, args, 4);
}

static bool is_shared(const bh__jit_step *s) {
    return bh__ptx_insn_space(s->insn) == SPACE_SHARED;
}

bool bh__jit_has_range(const bh__jit_step *s) {
    return (s->op == JIT_LOAD || s->op == JIT_STORE || s->op == JIT_ATOMIC) && !is_shared(s);
}

LLVMBasicBlockRef bh__jit_begin_access(bh__jit_unit *u, const bh__jit_step *s, bh__jit_place *a) {
    *a = (bh__jit_place){.code = s->code,
                         .writes = s->op != JIT_LOAD,
                         .range = s->range,
                         .shared = is_shared(s),
                         .type = memory_type(u, s->code->bytes)};
    find_addresses(u, a);
    find_range(u, a);
    LLVMValueRef fine = is_fine(u, a);
    LLVMBasicBlockRef fast = bh__jit_new_block(u), slow = bh__jit_new_block(u);
    LLVMBasicBlockRef after = bh__jit_new_block(u);
    bh__jit_rarely(u, LLVMBuildNot(u->b, fine, ""), slow, fast);
    LLVMPositionBuilderAtEnd(u->b, slow);
    bh__jit_call_handler(u, s);
    if (!a->shared) {
        bh__jit_keep_range(u, a->range);
    }
    LLVMBuildBr(u->b, after);
    LLVMPositionBuilderAtEnd(u->b, fast);
    return after;
}

void bh__jit_access(bh__jit_unit *u, const bh__jit_step *s) {
    bh__jit_place a;
    LLVMBasicBlockRef after = bh__jit_begin_access(u, s, &a);
    if (s->op == JIT_LOAD) {
        make_load(u, &a);
    } else {
        make_store(u, &a);
    }
    LLVMBuildBr(u->b, after);
    LLVMPositionBuilderAtEnd(u->b, after);
}
