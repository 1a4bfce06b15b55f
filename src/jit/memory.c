/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores of values and vectors. The bounds are the interpreter's: for global memory the
 * last range that was found for such an address (ranges.c), for shared memory the block's, for
 * local memory the warp's. What is outside of them, or not aligned, goes to the interpreter's
 * handler, which finds another range or reports the fault.
 *
 * A lane's vector of up to 8 bytes is accessed as one integer, one of 16 bytes as two of them
 * (pairs.c).
 */
#include <stddef.h>

#include "jit/access.h"
#include "ptx/check/check.h"

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
    if (a->local) {
        LLVMValueRef end = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, local_end), u->i32);
        a->start = number(u, 0);
        a->size = LLVMBuildZExt(u->b, end, u->i64, "");
        a->to = bh__jit_field(u, u->warp, offsetof(bh__ptx_warp, local), u->ptr);
        a->usable = bh__jit_int(u, u->i1, 1);
        return;
    }
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

/* How many bytes from the range's start an access of `bytes` may begin: less than this. */
static LLVMValueRef limit_of(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef bytes) {
    LLVMValueRef size = bh__jit_is_vector(bytes) ? bh__jit_splat_to(u, a->size, u->parts) : a->size;
    LLVMTypeRef types[] = {LLVMTypeOf(size)};
    LLVMValueRef args[] = {size, LLVMBuildSub(u->b, bytes, bh__jit_const_like(u, bytes, 1), "")};
    return bh__jit_intrinsic(u, "llvm.usub.sat", types, 1, args, 2);
}

static LLVMValueRef is_aligned(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef address) {
    LLVMValueRef rest =
        LLVMBuildAnd(u->b, address, bh__jit_const_like(u, address, a->bytes - 1u), "");
    return LLVMBuildICmp(u->b, LLVMIntEQ, rest, bh__jit_const_like(u, address, 0), "");
}

static LLVMValueRef all_fit(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef limit = limit_of(u, a, number(u, a->bytes));
    LLVMValueRef at = LLVMBuildSub(u->b, a->base, bh__jit_splat(u, a->start), "");
    LLVMValueRef outside = LLVMBuildICmp(u->b, LLVMIntUGE, at, bh__jit_splat(u, limit), "");
    LLVMValueRef bad =
        LLVMBuildOr(u->b, outside, LLVMBuildNot(u->b, is_aligned(u, a, a->base), ""), "");
    bad = LLVMBuildBitCast(u->b, LLVMBuildAnd(u->b, bad, u->active_lanes, ""), u->i32, "");
    return LLVMBuildICmp(u->b, LLVMIntEQ, bad, bh__jit_int(u, u->i32, 0), "");
}

static LLVMValueRef edge_of(bh__jit_unit *u, const bh__jit_place *a, bool last) {
    LLVMValueRef lane = bh__jit_edge_lane(u, u->active, bh__jit_is_vector(a->base), last);
    return LLVMBuildZExt(u->b, lane, LLVMTypeOf(a->base), "");
}

/* From the lowest address of the lanes that run to the end of the highest one: one comparison, or
 * one for each part. */
static LLVMValueRef span_fits(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef lowest = a->base, bytes = bh__jit_const_like(u, a->base, a->bytes);
    if (a->stride % a->bytes != 0) {
        return bh__jit_int(u, u->i1, 0); /* the lanes between may not be aligned */
    }
    if (a->stride != 0) {
        LLVMValueRef first = edge_of(u, a, false), last = edge_of(u, a, true);
        LLVMValueRef lanes = LLVMBuildSub(u->b, last, first, "");
        uint64_t step = (uint64_t)(a->stride < 0 ? -a->stride : a->stride);
        LLVMValueRef stride = bh__jit_const_like(u, a->base, (uint64_t)a->stride);
        LLVMValueRef to_lowest = LLVMBuildMul(u->b, a->stride < 0 ? last : first, stride, "");
        lowest = LLVMBuildAdd(u->b, a->base, to_lowest, "");
        lanes = LLVMBuildMul(u->b, lanes, bh__jit_const_like(u, lanes, step), "");
        bytes = LLVMBuildAdd(u->b, lanes, bytes, "");
    }
    LLVMValueRef start =
        bh__jit_is_vector(lowest) ? bh__jit_splat_to(u, a->start, u->parts) : a->start;
    LLVMValueRef at = LLVMBuildSub(u->b, lowest, start, "");
    LLVMValueRef inside = LLVMBuildICmp(u->b, LLVMIntULT, at, limit_of(u, a, bytes), "");
    inside = LLVMBuildAnd(u->b, inside, is_aligned(u, a, a->base), "");
    return bh__jit_in_parts(u, inside, u->active);
}

static LLVMValueRef is_fine(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef fits = a->affine ? span_fits(u, a) : all_fit(u, a);
    return LLVMBuildAnd(u->b, a->usable, fits, "");
}

/* ---- the access itself ---- */

static LLVMValueRef pointer_to(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef address) {
    unsigned width = bh__jit_width(address);
    LLVMValueRef start = width > 1 ? bh__jit_splat_to(u, a->start, width) : a->start;
    LLVMValueRef at = LLVMBuildSub(u->b, address, start, "");
    return LLVMBuildGEP2(u->b, u->i8, a->to, &at, 1, "");
}

LLVMValueRef bh__jit_pointer(bh__jit_unit *u, const bh__jit_place *a) {
    return pointer_to(u, a, a->base);
}

/* Each lane has its own local memory, one behind the other. */
LLVMValueRef bh__jit_pointers(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef at = a->affine ? bh__jit_expand(u, a->base, a->stride) : a->base;
    if (a->local) {
        size_t offset = offsetof(bh__ptx_warp, local_stride);
        LLVMValueRef bytes = bh__jit_splat(u, bh__jit_field(u, u->warp, offset, u->i32));
        bytes = LLVMBuildMul(u->b, bytes, bh__jit_lane_numbers(u), "");
        at = LLVMBuildAdd(u->b, at, LLVMBuildZExt(u->b, bytes, LLVMTypeOf(at), ""), "");
    }
    return pointer_to(u, a, at);
}

bool bh__jit_is_contiguous(const bh__jit_place *a) {
    return a->affine && a->stride == a->bytes && !a->local;
}

bool bh__jit_is_split(const bh__jit_place *a) {
    return a->affine && bh__jit_is_vector(a->base);
}

bool bh__jit_is_single(const bh__jit_place *a) {
    return a->affine && a->stride == 0 && !bh__jit_is_split(a) && !a->local;
}

static LLVMValueRef gather(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef from,
                           LLVMValueRef lanes) {
    LLVMTypeRef type = LLVMVectorType(a->type, bh__jit_width(from));
    LLVMTypeRef types[] = {type, LLVMTypeOf(from)};
    LLVMValueRef align = bh__jit_int(u, u->i32, a->bytes);
    LLVMValueRef args[] = {from, align, lanes, LLVMGetUndef(type)};
    return bh__jit_intrinsic(u, "llvm.masked.gather", types, 2, args, 4);
}

static LLVMValueRef load_lanes(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef from,
                               LLVMValueRef lanes) {
    LLVMTypeRef type = LLVMVectorType(a->type, bh__jit_width(lanes)), types[] = {type, u->ptr};
    LLVMValueRef align = bh__jit_int(u, u->i32, a->bytes);
    LLVMValueRef args[] = {from, align, lanes, LLVMGetUndef(type)};
    return bh__jit_intrinsic(u, "llvm.masked.load", types, 2, args, 4);
}

/* Lanes whose values follow each other in their part. */
static LLVMValueRef load_rows(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef from = bh__jit_pointer(u, a), parts[LANES];
    if (u->parts == 1) {
        return load_lanes(u, a, from, u->active_lanes);
    }
    LLVMValueRef all =
        bh__jit_is_split(a) ? NULL : load_lanes(u, a, from, bh__jit_any_part(u, u->active_lanes));
    for (unsigned n = 0; n < u->parts; n++) {
        parts[n] = all != NULL ? all
                               : load_lanes(u, a, bh__jit_of_part(u, from, n),
                                            bh__jit_part(u, u->active_lanes, n));
    }
    return bh__jit_join_parts(u, parts);
}

/* One value for each part. */
static LLVMValueRef load_parts(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef from = bh__jit_pointer(u, a);
    LLVMValueRef v = LLVMGetUndef(LLVMVectorType(a->type, u->parts));
    if (!u->full || u->guarded) {
        return gather(u, a, from, bh__jit_parts_with(u, u->active));
    }
    for (unsigned n = 0; n < u->parts; n++) {
        LLVMValueRef one = LLVMBuildLoad2(u->b, a->type, bh__jit_of_part(u, from, n), "");
        LLVMSetAlignment(one, a->bytes);
        v = LLVMBuildInsertElement(u->b, v, one, bh__jit_int(u, u->i32, n), "");
    }
    return v;
}

static LLVMValueRef load_vector(bh__jit_unit *u, const bh__jit_place *a) {
    bool split = bh__jit_is_split(a) && a->stride == 0 && !a->local;
    return bh__jit_is_contiguous(a) ? load_rows(u, a)
           : split                  ? load_parts(u, a)
                                    : gather(u, a, bh__jit_pointers(u, a), u->active_lanes);
}

/* Volatile: of a vector, LLVM must not make several accesses. */
static LLVMValueRef load_single(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef v = LLVMBuildLoad2(u->b, a->type, bh__jit_pointer(u, a), "");
    LLVMSetAlignment(v, a->bytes);
    LLVMSetVolatile(v, a->code->count > 1);
    return v;
}

static LLVMValueRef shift_of(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef like,
                             unsigned n) {
    return bh__jit_const_like(u, like, n * 8u * a->code->bytes % 64);
}

/* Element `n` of what was loaded. */
static LLVMValueRef element_of(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef loaded[2],
                               unsigned n) {
    LLVMValueRef v = loaded[n * a->code->bytes / 8];
    LLVMTypeRef type = bh__jit_shaped(v, memory_type(u, a->code->bytes));
    if (LLVMTypeOf(v) == type) {
        return v;
    }
    return LLVMBuildTrunc(u->b, LLVMBuildLShr(u->b, v, shift_of(u, a, v, n), ""), type, "");
}

static void make_load(bh__jit_unit *u, const bh__jit_place *a) {
    const bh__ptx_code *c = a->code;
    LLVMValueRef loaded[2];
    if (a->bytes == 16) {
        bh__jit_load_pairs(u, a, loaded);
    } else {
        loaded[0] = bh__jit_is_single(a) ? load_single(u, a) : load_vector(u, a);
    }
    for (unsigned n = 0; n < c->count; n++) {
        LLVMValueRef v = element_of(u, a, loaded, n);
        LLVMTypeRef to = bh__jit_shaped(v, c->flags & FLAG_WIDE_D ? u->i64 : u->i32);
        if (LLVMTypeOf(v) != to) {
            v = LLVMBuildIntCast2(u->b, v, to, (c->flags & FLAG_SIGNED) != 0, "");
        }
        bh__jit_set(u, ((const int32_t *)c->extra)[n], v);
    }
}

static LLVMValueRef last_lane(bh__jit_unit *u) {
    LLVMTypeRef types[] = {u->i32};
    LLVMValueRef args[] = {u->active, bh__jit_int(u, u->i1, 1)};
    LLVMValueRef above = bh__jit_intrinsic(u, "llvm.ctlz", types, 1, args, 2);
    return LLVMBuildSub(u->b, bh__jit_int(u, u->i32, 31), above, "");
}

/* Part after part: those behind may be where others were. */
static void store_rows(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef v) {
    LLVMValueRef to = bh__jit_pointer(u, a), align = bh__jit_int(u, u->i32, a->bytes);
    for (unsigned n = 0; n < u->parts; n++) {
        LLVMValueRef part = u->parts == 1 ? v : bh__jit_part(u, v, n);
        LLVMValueRef lanes = u->parts == 1 ? u->active_lanes : bh__jit_part(u, u->active_lanes, n);
        LLVMTypeRef types[] = {LLVMTypeOf(part), u->ptr};
        LLVMValueRef args[] = {part, bh__jit_of_part(u, to, n), align, lanes};
        bh__jit_intrinsic(u, "llvm.masked.store", types, 2, args, 4);
    }
}

/* Element `n` of what is stored, for all lanes, or as a scalar if they have one address. */
static LLVMValueRef value_of(bh__jit_unit *u, const bh__jit_place *a, unsigned n) {
    int32_t row = ((const int32_t *)a->code->extra)[n];
    bool wide = (a->code->flags & FLAG_WIDE_A) != 0;
    LLVMValueRef v;
    if (!bh__jit_is_single(a)) {
        v = bh__jit_vector(u, row, wide);
    } else if (bh__jit_is_uniform(u, row)) {
        v = bh__jit_scalar(u, row, wide);
    } else {
        v = LLVMBuildExtractElement(u->b, bh__jit_vector(u, row, wide), last_lane(u), "");
    }
    LLVMTypeRef type = bh__jit_shaped(v, memory_type(u, a->code->bytes));
    return LLVMTypeOf(v) == type ? v : LLVMBuildTrunc(u->b, v, type, "");
}

/* The elements of a vector as integers of its bytes, or of 64 bits. */
static void join_elements(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef out[2]) {
    for (unsigned n = 0; n < a->code->count; n++) {
        LLVMValueRef v = value_of(u, a, n), *to = &out[n * a->code->bytes / 8];
        LLVMTypeRef type = bh__jit_shaped(v, a->type);
        bool first = n * a->code->bytes % 8 == 0;
        v = LLVMTypeOf(v) == type ? v : LLVMBuildZExt(u->b, v, type, "");
        v = first ? v : LLVMBuildShl(u->b, v, shift_of(u, a, v, n), "");
        *to = first ? v : LLVMBuildOr(u->b, *to, v, "");
    }
}

/* Lanes store in order: of several to one place, the last one stays. */
static void make_store(bh__jit_unit *u, const bh__jit_place *a) {
    LLVMValueRef v[2];
    join_elements(u, a, v);
    if (a->bytes == 16) {
        bh__jit_store_pairs(u, a, v);
    } else if (bh__jit_is_single(a)) {
        LLVMValueRef store = LLVMBuildStore(u->b, v[0], bh__jit_pointer(u, a));
        LLVMSetAlignment(store, a->bytes);
        LLVMSetVolatile(store, a->code->count > 1);
    } else if (bh__jit_is_contiguous(a)) {
        store_rows(u, a, v[0]);
    } else {
        LLVMValueRef align = bh__jit_int(u, u->i32, a->bytes);
        LLVMTypeRef types[] = {LLVMTypeOf(v[0]), LLVMVectorType(u->ptr, LANES)};
        LLVMValueRef args[] = {v[0], bh__jit_pointers(u, a), align, u->active_lanes};
        bh__jit_intrinsic(u, "llvm.masked.scatter", types, 2, args, 4);
    }
}

bool bh__jit_has_range(const bh__jit_step *s) {
    if (s->op != JIT_LOAD && s->op != JIT_STORE && s->op != JIT_ATOMIC) {
        return false;
    }
    bh__ptx_space space = bh__ptx_insn_space(s->insn);
    return space != SPACE_SHARED && space != SPACE_LOCAL;
}

LLVMBasicBlockRef bh__jit_begin_access(bh__jit_unit *u, const bh__jit_step *s, bh__jit_place *a) {
    bh__ptx_space space = bh__ptx_insn_space(s->insn);
    unsigned bytes = s->code->bytes * (s->op == JIT_ATOMIC ? 1u : s->code->count);
    *a = (bh__jit_place){.code = s->code,
                         .writes = s->op != JIT_LOAD,
                         .range = s->range,
                         .shared = space == SPACE_SHARED,
                         .local = space == SPACE_LOCAL,
                         .bytes = bytes,
                         .type = memory_type(u, bytes)};
    find_addresses(u, a);
    find_range(u, a);
    LLVMValueRef fine = is_fine(u, a);
    LLVMBasicBlockRef fast = bh__jit_new_block(u), slow = bh__jit_new_block(u);
    LLVMBasicBlockRef after = bh__jit_new_block(u);
    bh__jit_rarely(u, LLVMBuildNot(u->b, fine, ""), slow, fast);
    LLVMPositionBuilderAtEnd(u->b, slow);
    bh__jit_call_handler(u, s);
    if (bh__jit_has_range(s)) {
        bh__jit_keep_range(u, a->range);
    }
    LLVMBuildBr(u->b, after);
    LLVMPositionBuilderAtEnd(u->b, fast);
    return after;
}

/* LLVM must not move or merge accesses across it; no instruction of the processor. */
static void keep_order(bh__jit_unit *u) {
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(u->context), NULL, 0, false);
    static const char clobbers[] = "~{memory}";
    LLVMValueRef nothing = LLVMGetInlineAsm(type, "", 0, clobbers, sizeof clobbers - 1, true, false,
                                            LLVMInlineAsmDialectATT, false);
    LLVMBuildCall2(u->b, type, nothing, NULL, 0, "");
}

/* Strong accesses: volatile, relaxed, acquire and release. */
void bh__jit_access(bh__jit_unit *u, const bh__jit_step *s) {
    const LLVMAtomicOrdering all = LLVMAtomicOrderingSequentiallyConsistent;
    uint32_t how = s->code->target;
    bh__jit_place a;
    LLVMBasicBlockRef after = bh__jit_begin_access(u, s, &a);
    if (how & ACCESS_RELEASE) {
        LLVMBuildFence(u->b, all, false, "");
    } else if (how != 0) {
        keep_order(u);
    }
    if (s->op == JIT_LOAD) {
        make_load(u, &a);
    } else {
        make_store(u, &a);
    }
    if (how & ACCESS_ACQUIRE) {
        LLVMBuildFence(u->b, all, false, "");
    } else if (how != 0) {
        keep_order(u);
    }
    LLVMBuildBr(u->b, after);
    LLVMPositionBuilderAtEnd(u->b, after);
}
