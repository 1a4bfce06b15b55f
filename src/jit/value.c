/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as LLVM values: scalars, vectors, and how they go to the frame and come from it. */
#include <string.h>

#include "jit/unit.h"

LLVMValueRef bh__jit_int(bh__jit_unit *u, LLVMTypeRef type, uint64_t v) {
    (void)u;
    return LLVMConstInt(type, v, false);
}

bool bh__jit_is_vector(LLVMValueRef v) {
    return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind;
}

unsigned bh__jit_width(LLVMValueRef v) {
    return bh__jit_is_vector(v) ? LLVMGetVectorSize(LLVMTypeOf(v)) : 1;
}

LLVMTypeRef bh__jit_shaped(LLVMValueRef like, LLVMTypeRef element) {
    return bh__jit_is_vector(like) ? LLVMVectorType(element, bh__jit_width(like)) : element;
}

LLVMValueRef bh__jit_intrinsic(bh__jit_unit *u, const char *name, LLVMTypeRef *types, unsigned n,
                               LLVMValueRef *args, unsigned count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(u->module, id, types, n);
    LLVMTypeRef type = LLVMIntrinsicGetType(u->context, id, types, n);
    return LLVMBuildCall2(u->b, type, f, args, count, "");
}

LLVMValueRef bh__jit_splat_to(bh__jit_unit *u, LLVMValueRef scalar, unsigned count) {
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), count);
    LLVMTypeRef mask = LLVMVectorType(u->i32, count);
    LLVMValueRef one =
        LLVMBuildInsertElement(u->b, LLVMGetUndef(type), scalar, bh__jit_int(u, u->i32, 0), "");
    return LLVMBuildShuffleVector(u->b, one, LLVMGetUndef(type), LLVMConstNull(mask), "");
}

LLVMValueRef bh__jit_splat(bh__jit_unit *u, LLVMValueRef scalar) {
    return bh__jit_splat_to(u, scalar, LANES);
}

/* What the lanes have more than the first one of their part. */
static LLVMValueRef steps_of(bh__jit_unit *u, LLVMTypeRef type, int64_t stride) {
    LLVMValueRef list[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        list[l] = LLVMConstInt(type, (uint64_t)(stride * (l % u->part_lanes)), true);
    }
    return LLVMConstVector(list, LANES);
}

LLVMValueRef bh__jit_lane_numbers(bh__jit_unit *u) {
    LLVMValueRef list[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        list[l] = bh__jit_int(u, u->i32, l);
    }
    return LLVMConstVector(list, LANES);
}

LLVMValueRef bh__jit_expand(bh__jit_unit *u, LLVMValueRef base, int64_t stride) {
    LLVMValueRef v, order[LANES];
    if (bh__jit_is_vector(base)) {
        for (unsigned l = 0; l < LANES; l++) {
            order[l] = bh__jit_int(u, u->i32, l / u->part_lanes);
        }
        v = LLVMBuildShuffleVector(u->b, base, LLVMGetUndef(LLVMTypeOf(base)),
                                   LLVMConstVector(order, LANES), "");
    } else {
        v = bh__jit_splat(u, base);
    }
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(v));
    return stride == 0 ? v : LLVMBuildAdd(u->b, v, steps_of(u, element, stride), "");
}

LLVMValueRef bh__jit_const_like(bh__jit_unit *u, LLVMValueRef like, uint64_t v) {
    LLVMTypeRef type = LLVMTypeOf(like);
    if (!bh__jit_is_vector(like)) {
        return LLVMConstInt(type, v, false);
    }
    LLVMValueRef list[LANES], one = LLVMConstInt(LLVMGetElementType(type), v, false);
    (void)u;
    for (unsigned l = 0; l < bh__jit_width(like); l++) {
        list[l] = one;
    }
    return LLVMConstVector(list, bh__jit_width(like));
}

LLVMValueRef bh__jit_field(bh__jit_unit *u, LLVMValueRef base, size_t offset, LLVMTypeRef type) {
    LLVMValueRef index = bh__jit_int(u, u->i64, offset);
    LLVMValueRef at = LLVMBuildInBoundsGEP2(u->b, u->i8, base, &index, 1, "");
    return LLVMBuildLoad2(u->b, type, at, "");
}

static const bh__jit_row *find(const bh__jit_unit *u, int32_t row) {
    int32_t index = bh__jit_row_index(u, row);
    return index < 0 ? NULL : &u->rows[index];
}

bool bh__jit_is_affine(const bh__jit_unit *u, int32_t row) {
    int64_t stride;
    return bh__jit_class_of(u, row, &stride) == CLASS_AFFINE;
}

bool bh__jit_is_uniform(const bh__jit_unit *u, int32_t row) {
    int64_t stride;
    return bh__jit_class_of(u, row, &stride) == CLASS_AFFINE && stride == 0 &&
           !bh__jit_is_parted(u, row);
}

LLVMTypeRef bh__jit_slot_type(const bh__jit_unit *u, const bh__jit_row *r) {
    bool varying = r->class == CLASS_VARYING;
    if (r->kind == KIND_PREDICATE) {
        return varying ? u->i32 : u->i1;
    }
    LLVMTypeRef element = r->kind == KIND_WIDE ? u->i64 : u->i32;
    return varying     ? LLVMVectorType(element, LANES)
           : r->parted ? LLVMVectorType(element, u->parts)
                       : element;
}

static LLVMValueRef read_slot(bh__jit_unit *u, const bh__jit_row *r) {
    return LLVMBuildLoad2(u->b, bh__jit_slot_type(u, r), r->slot, "");
}

static LLVMValueRef place(bh__jit_unit *u, int32_t row) {
    LLVMValueRef index = bh__jit_int(u, u->i64, (uint64_t)row);
    return LLVMBuildInBoundsGEP2(u->b, u->i8, u->frame, &index, 1, "");
}

static LLVMValueRef from_frame(bh__jit_unit *u, int32_t row, LLVMTypeRef type) {
    LLVMValueRef v = LLVMBuildLoad2(u->b, type, place(u, row), "");
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) {
        LLVMSetAlignment(v, 64); /* rows of vectors are */
    }
    return v;
}

/* As many bits as asked for: registers may be wider than the operation. */
static LLVMValueRef fit(bh__jit_unit *u, LLVMValueRef v, bool wide) {
    LLVMTypeRef type = bh__jit_shaped(v, wide ? u->i64 : u->i32);
    return LLVMTypeOf(v) == type ? v : LLVMBuildIntCast2(u->b, v, type, false, "");
}

LLVMValueRef bh__jit_scalar(bh__jit_unit *u, int32_t row, bool wide) {
    uint64_t bits;
    if (bh__jit_constant(u, row, wide, &bits)) {
        return bh__jit_int(u, wide ? u->i64 : u->i32, bits);
    }
    return fit(u, read_slot(u, find(u, row)), wide);
}

LLVMValueRef bh__jit_operand(bh__jit_unit *u, int32_t like, int32_t row, bool wide) {
    if (!bh__jit_is_affine(u, like)) {
        return bh__jit_vector(u, row, wide);
    }
    LLVMValueRef v = bh__jit_scalar(u, row, wide);
    return bh__jit_is_parted(u, like) && !bh__jit_is_vector(v) ? bh__jit_splat_to(u, v, u->parts)
                                                               : v;
}

static LLVMValueRef spread(bh__jit_unit *u, LLVMValueRef base, const bh__jit_row *r) {
    return bh__jit_expand(u, base, r->stride);
}

LLVMValueRef bh__jit_vector(bh__jit_unit *u, int32_t row, bool wide) {
    const bh__jit_row *r = row < 0 ? NULL : find(u, row);
    if (row < 0) {
        return bh__jit_splat(u, bh__jit_scalar(u, row, wide));
    }
    if (r == NULL) {
        return from_frame(u, row, LLVMVectorType(wide ? u->i64 : u->i32, LANES));
    }
    LLVMValueRef v = read_slot(u, r);
    return fit(u, r->class == CLASS_VARYING ? v : spread(u, v, r), wide);
}

static LLVMValueRef lanes_of_bits(bh__jit_unit *u, LLVMValueRef bits) {
    return LLVMBuildBitCast(u->b, bits, LLVMVectorType(u->i1, LANES), "");
}

static LLVMValueRef bits_of_lanes(bh__jit_unit *u, LLVMValueRef lanes) {
    return LLVMBuildBitCast(u->b, lanes, u->i32, "");
}

LLVMValueRef bh__jit_bit_of(bh__jit_unit *u, int32_t row) {
    uint64_t bits;
    if (bh__jit_constant(u, row, false, &bits)) {
        return bh__jit_int(u, u->i1, bits & 1);
    }
    return read_slot(u, find(u, row));
}

LLVMValueRef bh__jit_lanes_of(bh__jit_unit *u, int32_t row) {
    const bh__jit_row *r = row < 0 ? NULL : find(u, row);
    if (row >= 0 && r == NULL) {
        return lanes_of_bits(u, from_frame(u, row, u->i32));
    }
    if (row < 0 || r->class == CLASS_AFFINE) {
        return bh__jit_splat(u, bh__jit_bit_of(u, row));
    }
    return lanes_of_bits(u, read_slot(u, r));
}

/* Whether lanes that do not run need the row's old value: the guard leaves them out, or they wait
 * where it is alive. */
static bool must_keep(const bh__jit_unit *u, const bh__jit_row *r) {
    return u->guarded || (!u->full && ROW_IN(u->block->keep, (size_t)(r - u->rows)));
}

static LLVMValueRef blend(bh__jit_unit *u, LLVMValueRef v, LLVMValueRef old) {
    if (u->guard_bit != NULL) {
        return LLVMBuildSelect(u->b, u->guard_bit, v, old, "");
    }
    return LLVMBuildSelect(u->b, u->active_lanes, v, old, "");
}

static void masked_store(bh__jit_unit *u, LLVMValueRef v, LLVMValueRef at, LLVMValueRef lanes) {
    LLVMTypeRef types[] = {LLVMTypeOf(v), u->ptr};
    LLVMValueRef args[] = {v, at, bh__jit_int(u, u->i32, 64), lanes};
    bh__jit_intrinsic(u, "llvm.masked.store", types, 2, args, 4);
}

static void store_bits(bh__jit_unit *u, int32_t row, LLVMValueRef bits, LLVMValueRef mask) {
    LLVMValueRef at = place(u, row), old = LLVMBuildLoad2(u->b, u->i32, at, "");
    LLVMValueRef keep = LLVMBuildAnd(u->b, old, LLVMBuildNot(u->b, mask, ""), "");
    LLVMValueRef put = LLVMBuildAnd(u->b, bits, mask, "");
    LLVMBuildStore(u->b, LLVMBuildOr(u->b, keep, put, ""), at);
}

void bh__jit_set(bh__jit_unit *u, int32_t row, LLVMValueRef v) {
    const bh__jit_row *r = find(u, row);
    bool varying = r == NULL || r->class == CLASS_VARYING;
    if (varying && bh__jit_width(v) != LANES) {
        v = bh__jit_expand(u, v, 0);
    }
    if (r == NULL) { /* a sink, or 128 bits: only in the frame */
        masked_store(u, v, place(u, row), u->active_lanes);
        return;
    }
    if (!varying && r->parted && !bh__jit_is_vector(v)) {
        v = bh__jit_splat_to(u, v, u->parts);
    }
    v = fit(u, v, r->kind == KIND_WIDE);
    LLVMBuildStore(u->b, must_keep(u, r) ? blend(u, v, read_slot(u, r)) : v, r->slot);
}

void bh__jit_set_predicate(bh__jit_unit *u, int32_t row, LLVMValueRef v) {
    const bh__jit_row *r = find(u, row);
    bool vector = bh__jit_is_vector(v);
    if (r != NULL && r->class == CLASS_AFFINE) {
        LLVMBuildStore(u->b, u->guarded ? blend(u, v, read_slot(u, r)) : v, r->slot);
        return;
    }
    LLVMValueRef bits = vector ? bits_of_lanes(u, v) : LLVMBuildSExt(u->b, v, u->i32, "");
    if (r == NULL) {
        store_bits(u, row, bits, u->active);
        return;
    }
    if (must_keep(u, r)) {
        LLVMValueRef old = read_slot(u, r), keep = LLVMBuildNot(u->b, u->active, "");
        bits = LLVMBuildOr(u->b, LLVMBuildAnd(u->b, bits, u->active, ""),
                           LLVMBuildAnd(u->b, old, keep, ""), "");
    }
    LLVMBuildStore(u->b, bits, r->slot);
}

void bh__jit_spill(bh__jit_unit *u, const bh__jit_row *r, bool all) {
    LLVMValueRef v = read_slot(u, r);
    LLVMValueRef mask = all ? u->all : u->mask, lanes = all ? u->all_lanes : u->lanes;
    if (r->kind == KIND_PREDICATE) {
        bool varying = r->class == CLASS_VARYING;
        store_bits(u, r->row, varying ? v : LLVMBuildSExt(u->b, v, u->i32, ""), mask);
        return;
    }
    masked_store(u, r->class == CLASS_VARYING ? v : spread(u, v, r), place(u, r->row), lanes);
}

void bh__jit_pack(bh__jit_unit *u, const bh__jit_row *r) {
    LLVMValueRef v = read_slot(u, r);
    if (r->kind == KIND_PREDICATE && r->class == CLASS_AFFINE) {
        v = LLVMBuildSExt(u->b, v, u->i32, "");
    }
    LLVMValueRef store = LLVMBuildStore(u->b, v, place(u, r->row));
    if (bh__jit_is_vector(v)) {
        LLVMSetAlignment(store, 64);
    }
}

void bh__jit_unpack(bh__jit_unit *u, const bh__jit_row *r) {
    bool bit = r->kind == KIND_PREDICATE && r->class == CLASS_AFFINE;
    LLVMValueRef v = from_frame(u, r->row, bit ? u->i32 : bh__jit_slot_type(u, r));
    if (bit) {
        v = LLVMBuildICmp(u->b, LLVMIntNE, v, bh__jit_int(u, u->i32, 0), "");
    }
    LLVMBuildStore(u->b, v, r->slot);
}

static LLVMTypeRef frame_type(bh__jit_unit *u, const bh__jit_row *r) {
    return r->kind == KIND_PREDICATE
               ? u->i32
               : LLVMVectorType(r->kind == KIND_WIDE ? u->i64 : u->i32, LANES);
}

/* The value of a part's first lane, from `lane` of all lanes and of the part. */
static LLVMValueRef base_from(bh__jit_unit *u, const bh__jit_row *r, LLVMValueRef lane,
                              LLVMValueRef in_part) {
    LLVMTypeRef type = r->kind == KIND_WIDE ? u->i64 : u->i32;
    LLVMValueRef index = LLVMBuildZExt(u->b, lane, u->i64, "");
    LLVMValueRef at = LLVMBuildInBoundsGEP2(u->b, type, place(u, r->row), &index, 1, "");
    LLVMValueRef v = LLVMBuildLoad2(u->b, type, at, "");
    if (r->stride != 0) {
        LLVMValueRef step = LLVMConstInt(type, (uint64_t)r->stride, true);
        in_part = LLVMBuildIntCast2(u->b, in_part, type, false, "");
        v = LLVMBuildSub(u->b, v, LLVMBuildMul(u->b, in_part, step, ""), "");
    }
    return v;
}

/* Lane 0's value, or each part's, from the first lane that runs. */
static LLVMValueRef base_of(bh__jit_unit *u, const bh__jit_row *r) {
    if (!r->parted) {
        LLVMTypeRef overload[] = {u->i32};
        LLVMValueRef args[] = {u->mask, bh__jit_int(u, u->i1, 1)};
        LLVMValueRef first = bh__jit_intrinsic(u, "llvm.cttz", overload, 1, args, 2);
        LLVMValueRef low = bh__jit_int(u, u->i32, u->part_lanes - 1);
        return base_from(u, r, first, LLVMBuildAnd(u->b, first, low, ""));
    }
    LLVMValueRef firsts = bh__jit_edge_lane(u, u->mask, true, false);
    LLVMValueRef v = LLVMGetUndef(bh__jit_slot_type(u, r));
    for (unsigned n = 0; n < u->parts; n++) {
        LLVMValueRef first = bh__jit_of_part(u, firsts, n);
        LLVMValueRef before = bh__jit_int(u, u->i32, n * u->part_lanes);
        LLVMValueRef one = base_from(u, r, LLVMBuildAdd(u->b, first, before, ""), first);
        v = LLVMBuildInsertElement(u->b, v, one, bh__jit_int(u, u->i32, n), "");
    }
    return v;
}

void bh__jit_reload(bh__jit_unit *u, const bh__jit_row *r) {
    LLVMValueRef v;
    if (r->class == CLASS_VARYING) {
        v = from_frame(u, r->row, frame_type(u, r));
        if (u->block != NULL && must_keep(u, r)) { /* after a handler, which has set some lanes */
            LLVMValueRef lanes = r->kind == KIND_PREDICATE ? lanes_of_bits(u, v) : v;
            LLVMValueRef old = read_slot(u, r);
            old = r->kind == KIND_PREDICATE ? lanes_of_bits(u, old) : old;
            v = LLVMBuildSelect(u->b, u->active_lanes, lanes, old, "");
            v = r->kind == KIND_PREDICATE ? bits_of_lanes(u, v) : v;
        }
    } else if (r->kind == KIND_PREDICATE) {
        LLVMValueRef bits = LLVMBuildAnd(u->b, from_frame(u, r->row, u->i32), u->mask, "");
        v = LLVMBuildICmp(u->b, LLVMIntNE, bits, bh__jit_int(u, u->i32, 0), "");
    } else {
        v = base_of(u, r);
    }
    LLVMBuildStore(u->b, v, r->slot);
}

LLVMValueRef bh__jit_enter_row(bh__jit_unit *u, const bh__jit_row *r) {
    bh__jit_reload(u, r);
    if (r->class == CLASS_VARYING) {
        return NULL;
    }
    LLVMValueRef have = from_frame(u, r->row, frame_type(u, r)), v = read_slot(u, r);
    LLVMValueRef differs;
    if (r->kind == KIND_PREDICATE) {
        differs = LLVMBuildXor(u->b, have, LLVMBuildSExt(u->b, v, u->i32, ""), "");
    } else {
        LLVMValueRef lanes = LLVMBuildICmp(u->b, LLVMIntNE, have, spread(u, v, r), "");
        differs = bits_of_lanes(u, lanes);
    }
    differs = LLVMBuildAnd(u->b, differs, u->mask, "");
    return LLVMBuildICmp(u->b, LLVMIntEQ, differs, bh__jit_int(u, u->i32, 0), "");
}
