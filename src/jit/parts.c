/* SPDX-License-Identifier: Apache-2.0 */
/* Warps of several rows of threads: parts of their masks and values. */
#include "jit/unit.h"

static LLVMValueRef count_zeros(bh__jit_unit *u, LLVMValueRef v, bool from_top) {
    LLVMTypeRef types[] = {LLVMTypeOf(v)};
    LLVMValueRef args[] = {v, bh__jit_int(u, u->i1, 0)};
    return bh__jit_intrinsic(u, from_top ? "llvm.ctlz" : "llvm.cttz", types, 1, args, 2);
}

/* The lanes of each part as bits. */
static LLVMValueRef bits_of_parts(bh__jit_unit *u, LLVMValueRef mask) {
    LLVMTypeRef part = LLVMIntTypeInContext(u->context, u->part_lanes);
    return LLVMBuildBitCast(u->b, mask, LLVMVectorType(part, u->parts), "");
}

static LLVMValueRef fold(bh__jit_unit *u, LLVMValueRef mask) {
    LLVMValueRef all = mask;
    for (unsigned n = 1; n < u->parts; n++) {
        LLVMValueRef by = bh__jit_int(u, u->i32, n * u->part_lanes);
        all = LLVMBuildOr(u->b, all, LLVMBuildLShr(u->b, mask, by, ""), "");
    }
    uint64_t low = u->parts == 1 ? FULL_MASK : (1u << u->part_lanes) - 1;
    return LLVMBuildAnd(u->b, all, bh__jit_int(u, u->i32, low), "");
}

LLVMValueRef bh__jit_parts_with(bh__jit_unit *u, LLVMValueRef mask) {
    LLVMValueRef bits = bits_of_parts(u, mask);
    return LLVMBuildICmp(u->b, LLVMIntNE, bits, bh__jit_const_like(u, bits, 0), "");
}

LLVMValueRef bh__jit_edge_lane(bh__jit_unit *u, LLVMValueRef mask, bool parted, bool last) {
    if (!parted) {
        LLVMValueRef zeros = count_zeros(u, fold(u, mask), last);
        return last ? LLVMBuildSub(u->b, bh__jit_int(u, u->i32, 31), zeros, "") : zeros;
    }
    LLVMValueRef bits = bits_of_parts(u, mask);
    LLVMValueRef n = count_zeros(u, bits, last);
    n = LLVMBuildIntCast2(u->b, n, LLVMVectorType(u->i32, u->parts), false, "");
    if (last) {
        n = LLVMBuildSub(u->b, bh__jit_const_like(u, n, u->part_lanes - 1), n, "");
    }
    return LLVMBuildSelect(u->b, bh__jit_parts_with(u, mask), n, bh__jit_const_like(u, n, 0), "");
}

LLVMValueRef bh__jit_in_parts(bh__jit_unit *u, LLVMValueRef v, LLVMValueRef mask) {
    if (!bh__jit_is_vector(v)) {
        return v;
    }
    v = LLVMBuildOr(u->b, v, LLVMBuildNot(u->b, bh__jit_parts_with(u, mask), ""), "");
    LLVMTypeRef types[] = {LLVMTypeOf(v)};
    return bh__jit_intrinsic(u, "llvm.vector.reduce.and", types, 1, &v, 1);
}

LLVMValueRef bh__jit_part(bh__jit_unit *u, LLVMValueRef v, unsigned part) {
    LLVMValueRef order[LANES];
    for (unsigned l = 0; l < u->part_lanes; l++) {
        order[l] = bh__jit_int(u, u->i32, part * u->part_lanes + l);
    }
    return LLVMBuildShuffleVector(u->b, v, LLVMGetUndef(LLVMTypeOf(v)),
                                  LLVMConstVector(order, u->part_lanes), "");
}

LLVMValueRef bh__jit_any_part(bh__jit_unit *u, LLVMValueRef lanes) {
    LLVMValueRef any = bh__jit_part(u, lanes, 0);
    for (unsigned n = 1; n < u->parts; n++) {
        any = LLVMBuildOr(u->b, any, bh__jit_part(u, lanes, n), "");
    }
    return any;
}

LLVMValueRef bh__jit_of_part(bh__jit_unit *u, LLVMValueRef v, unsigned part) {
    return bh__jit_is_vector(v) ? LLVMBuildExtractElement(u->b, v, bh__jit_int(u, u->i32, part), "")
                                : v;
}

LLVMValueRef bh__jit_join_parts(bh__jit_unit *u, LLVMValueRef *parts) {
    LLVMValueRef list[LANES], order[LANES];
    for (unsigned n = 0; n < u->parts; n++) {
        list[n] = parts[n];
    }
    for (unsigned count = u->parts; count > 1; count /= 2) {
        unsigned width = 2 * LANES / count;
        for (unsigned l = 0; l < width; l++) {
            order[l] = bh__jit_int(u, u->i32, l);
        }
        for (unsigned n = 0; n < count / 2; n++) {
            list[n] = LLVMBuildShuffleVector(u->b, list[2 * n], list[2 * n + 1],
                                             LLVMConstVector(order, width), "");
        }
    }
    return list[0];
}
