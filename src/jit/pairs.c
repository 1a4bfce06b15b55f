/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses of 16 bytes for each lane. Processors with AVX make an aligned access of 16 bytes whole,
 * and wider ones in such pieces, so LLVM must not split any: plain ones are volatile.
 */
#include "jit/access.h"

enum { AT_POINTER, AT_LOW, AT_HIGH }; /* rows of u->scratch */

static LLVMTypeRef pair_type(const bh__jit_unit *u) {
    return LLVMVectorType(u->i64, 2);
}

static LLVMValueRef load_whole(bh__jit_unit *u, LLVMTypeRef type, LLVMValueRef from) {
    LLVMValueRef v = LLVMBuildLoad2(u->b, type, from, "");
    LLVMSetAlignment(v, 16);
    LLVMSetVolatile(v, true);
    return v;
}

static void store_whole(bh__jit_unit *u, LLVMValueRef v, LLVMValueRef to) {
    LLVMValueRef store = LLVMBuildStore(u->b, v, to);
    LLVMSetAlignment(store, 16);
    LLVMSetVolatile(store, true);
}

/* Every second one of 2 n values, from the first or the second on. */
static LLVMValueRef half_of(bh__jit_unit *u, LLVMValueRef v, unsigned which) {
    LLVMValueRef order[LANES];
    unsigned n = bh__jit_width(v) / 2;
    for (unsigned l = 0; l < n; l++) {
        order[l] = bh__jit_int(u, u->i32, 2 * l + which);
    }
    return LLVMBuildShuffleVector(u->b, v, LLVMGetUndef(LLVMTypeOf(v)), LLVMConstVector(order, n),
                                  "");
}

/* One from each in turn. */
static LLVMValueRef zip(bh__jit_unit *u, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef order[2 * LANES];
    unsigned n = bh__jit_width(a);
    for (unsigned l = 0; l < n; l++) {
        order[2 * l] = bh__jit_int(u, u->i32, l);
        order[2 * l + 1] = bh__jit_int(u, u->i32, n + l);
    }
    return LLVMBuildShuffleVector(u->b, a, b, LLVMConstVector(order, 2 * n), "");
}

/* A mask with two bits for each one of `lanes`. */
static LLVMValueRef both_of(bh__jit_unit *u, LLVMValueRef lanes) {
    static const uint64_t keep[] = {0x0000ffff0000ffff, 0x00ff00ff00ff00ff, 0x0f0f0f0f0f0f0f0f,
                                    0x3333333333333333, 0x5555555555555555};
    unsigned n = bh__jit_width(lanes);
    LLVMTypeRef bits = LLVMIntTypeInContext(u->context, n);
    LLVMTypeRef twice = LLVMIntTypeInContext(u->context, 2 * n);
    LLVMValueRef v = LLVMBuildZExt(u->b, LLVMBuildBitCast(u->b, lanes, bits, ""), u->i64, "");
    for (unsigned k = 0; k < sizeof keep / sizeof *keep; k++) {
        LLVMValueRef moved = LLVMBuildShl(u->b, v, bh__jit_int(u, u->i64, 16u >> k), "");
        v = LLVMBuildOr(u->b, v, moved, "");
        v = LLVMBuildAnd(u->b, v, bh__jit_int(u, u->i64, keep[k]), "");
    }
    v = LLVMBuildOr(u->b, v, LLVMBuildShl(u->b, v, bh__jit_int(u, u->i64, 1), ""), "");
    v = LLVMBuildTrunc(u->b, v, twice, "");
    return LLVMBuildBitCast(u->b, v, LLVMVectorType(u->i1, 2 * n), "");
}

static bool is_complete(const bh__jit_unit *u) { /* all lanes run */
    return u->full && !u->guarded;
}

/* ---- lanes whose pairs follow each other ---- */

static LLVMValueRef load_row(bh__jit_unit *u, LLVMValueRef from, LLVMValueRef lanes) {
    LLVMTypeRef type = LLVMVectorType(u->i64, 2 * bh__jit_width(lanes));
    if (is_complete(u)) {
        return load_whole(u, type, from);
    }
    LLVMTypeRef types[] = {type, u->ptr};
    LLVMValueRef args[] = {from, bh__jit_int(u, u->i32, 16), both_of(u, lanes), LLVMGetUndef(type)};
    return bh__jit_intrinsic(u, "llvm.masked.load", types, 2, args, 4);
}

static void load_rows(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef out[2]) {
    LLVMValueRef from = bh__jit_pointer(u, a), low[LANES], high[LANES];
    LLVMValueRef all = NULL;
    if (u->parts > 1 && !bh__jit_is_split(a)) {
        all = load_row(u, from, bh__jit_any_part(u, u->active_lanes));
    }
    for (unsigned n = 0; n < u->parts; n++) {
        LLVMValueRef lanes = u->parts == 1 ? u->active_lanes : bh__jit_part(u, u->active_lanes, n);
        LLVMValueRef row = all != NULL ? all : load_row(u, bh__jit_of_part(u, from, n), lanes);
        low[n] = half_of(u, row, 0);
        high[n] = half_of(u, row, 1);
    }
    out[0] = bh__jit_join_parts(u, low);
    out[1] = bh__jit_join_parts(u, high);
}

/* Part after part: those behind may be where others were. */
static void store_rows(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef v[2]) {
    LLVMValueRef to = bh__jit_pointer(u, a);
    for (unsigned n = 0; n < u->parts; n++) {
        LLVMValueRef low = u->parts == 1 ? v[0] : bh__jit_part(u, v[0], n);
        LLVMValueRef high = u->parts == 1 ? v[1] : bh__jit_part(u, v[1], n);
        LLVMValueRef lanes = u->parts == 1 ? u->active_lanes : bh__jit_part(u, u->active_lanes, n);
        LLVMValueRef row = zip(u, low, high), at = bh__jit_of_part(u, to, n);
        if (is_complete(u)) {
            store_whole(u, row, at);
            continue;
        }
        LLVMTypeRef types[] = {LLVMTypeOf(row), u->ptr};
        LLVMValueRef args[] = {row, at, bh__jit_int(u, u->i32, 16), both_of(u, lanes)};
        bh__jit_intrinsic(u, "llvm.masked.store", types, 2, args, 4);
    }
}

/* ---- lane by lane ---- */

static LLVMValueRef pointer_of(bh__jit_unit *u, LLVMValueRef lane) {
    return LLVMBuildLoad2(u->b, u->ptr, bh__jit_scratch_at(u, AT_POINTER, u->ptr, lane), "");
}

/* `from`: a vector of pointers; `mask`: i32, those that are to be read. */
static void load_each(bh__jit_unit *u, LLVMValueRef from, LLVMValueRef mask, LLVMValueRef out[2]) {
    LLVMTypeRef type = LLVMVectorType(u->i64, bh__jit_width(from));
    bh__jit_loop loop;
    LLVMBuildStore(u->b, from, bh__jit_scratch(u, AT_POINTER));
    bh__jit_loop_begin(u, mask, &loop);
    LLVMValueRef v = load_whole(u, pair_type(u), pointer_of(u, loop.lane));
    for (unsigned n = 0; n < 2; n++) {
        LLVMValueRef one = LLVMBuildExtractElement(u->b, v, bh__jit_int(u, u->i32, n), "");
        LLVMBuildStore(u->b, one, bh__jit_scratch_at(u, AT_LOW + n, u->i64, loop.lane));
    }
    bh__jit_loop_end(u, &loop);
    for (unsigned n = 0; n < 2; n++) {
        out[n] = LLVMBuildLoad2(u->b, type, bh__jit_scratch(u, AT_LOW + n), "");
    }
}

/* Lanes store in order: of several to one place, the last one stays. */
static void store_each(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef v[2]) {
    bh__jit_loop loop;
    LLVMBuildStore(u->b, bh__jit_pointers(u, a), bh__jit_scratch(u, AT_POINTER));
    LLVMBuildStore(u->b, v[0], bh__jit_scratch(u, AT_LOW));
    LLVMBuildStore(u->b, v[1], bh__jit_scratch(u, AT_HIGH));
    bh__jit_loop_begin(u, u->active, &loop);
    LLVMValueRef pair = LLVMGetUndef(pair_type(u));
    for (unsigned n = 0; n < 2; n++) {
        LLVMValueRef at = bh__jit_scratch_at(u, AT_LOW + n, u->i64, loop.lane);
        LLVMValueRef one = LLVMBuildLoad2(u->b, u->i64, at, "");
        pair = LLVMBuildInsertElement(u->b, pair, one, bh__jit_int(u, u->i32, n), "");
    }
    store_whole(u, pair, pointer_of(u, loop.lane));
    bh__jit_loop_end(u, &loop);
}

/* ---- all ---- */

void bh__jit_load_pairs(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef out[2]) {
    if (bh__jit_is_single(a)) {
        LLVMValueRef v = load_whole(u, pair_type(u), bh__jit_pointer(u, a));
        for (unsigned n = 0; n < 2; n++) {
            out[n] = LLVMBuildExtractElement(u->b, v, bh__jit_int(u, u->i32, n), "");
        }
    } else if (bh__jit_is_contiguous(a)) {
        load_rows(u, a, out);
    } else if (bh__jit_is_split(a) && a->stride == 0 && !a->local) {
        LLVMTypeRef bits = LLVMIntTypeInContext(u->context, u->parts);
        LLVMValueRef parts = bh__jit_parts_with(u, u->active);
        parts = LLVMBuildZExt(u->b, LLVMBuildBitCast(u->b, parts, bits, ""), u->i32, "");
        load_each(u, bh__jit_pointer(u, a), parts, out);
    } else {
        load_each(u, bh__jit_pointers(u, a), u->active, out);
    }
}

void bh__jit_store_pairs(bh__jit_unit *u, const bh__jit_place *a, LLVMValueRef v[2]) {
    if (bh__jit_is_single(a)) {
        LLVMValueRef pair = LLVMGetUndef(pair_type(u));
        for (unsigned n = 0; n < 2; n++) {
            pair = LLVMBuildInsertElement(u->b, pair, v[n], bh__jit_int(u, u->i32, n), "");
        }
        store_whole(u, pair, bh__jit_pointer(u, a));
    } else if (bh__jit_is_contiguous(a)) {
        store_rows(u, a, v);
    } else {
        store_each(u, a, v);
    }
}
