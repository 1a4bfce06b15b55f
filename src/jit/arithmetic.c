/* SPDX-License-Identifier: Apache-2.0 */
/* Integers, bits, predicates, moves, special registers, parameters. */
#include <stddef.h>

#include "jit/floats.h"

/* Operands as scalars where the result is one, else as vectors. */
static LLVMValueRef operand(bh__jit_unit *u, const bh__jit_step *s, int32_t row, bool wide) {
    return bh__jit_operand(u, s->code->d, row, wide);
}

/* One of the type of the instruction: 16, 32 or 64 bits. */
static LLVMValueRef typed(bh__jit_unit *u, const bh__jit_step *s, int32_t row) {
    unsigned bytes = bh__ptx_bytes((bh__ptx_type)s->insn->types[0]);
    LLVMValueRef v = operand(u, s, row, bytes == 8);
    return bytes == 2 ? LLVMBuildTrunc(u->b, v, bh__jit_shaped(v, u->i16), "") : v;
}

/* Rows have 32 or 64 bits; above a value of 16 are zeros. */
static LLVMValueRef as_row(bh__jit_unit *u, LLVMValueRef v) {
    bool half = LLVMTypeOf(v) == bh__jit_shaped(v, u->i16);
    return half ? LLVMBuildZExt(u->b, v, bh__jit_shaped(v, u->i32), "") : v;
}

static bool type_is_signed(const bh__jit_step *s, unsigned n) {
    return bh__ptx_class((bh__ptx_type)s->insn->types[n]) == 'S';
}

static bool type_is_wide(const bh__jit_step *s) {
    return bh__ptx_bytes((bh__ptx_type)s->insn->types[0]) == 8;
}

static LLVMValueRef extend(bh__jit_unit *u, LLVMValueRef v, bool is_signed) {
    LLVMTypeRef type = bh__jit_shaped(v, u->i64);
    return is_signed ? LLVMBuildSExt(u->b, v, type, "") : LLVMBuildZExt(u->b, v, type, "");
}

/*
 * Widens an operand of 32 bits. One with a stride stays even only if no lane that runs wraps
 * around; if one does, the interpreter runs the instruction.
 */
static LLVMValueRef widen(bh__jit_unit *u, const bh__jit_step *s, int32_t row, bool is_signed) {
    LLVMValueRef v = operand(u, s, row, false);
    int64_t stride;
    bh__jit_class_of(u, row, &stride);
    if (bh__jit_width(v) == LANES || stride == 0) {
        return extend(u, v, is_signed);
    }
    bool parted = bh__jit_is_vector(v);
    LLVMValueRef step = bh__jit_const_like(u, v, (uint64_t)stride), lanes[2], wide[2];
    for (int n = 0; n < 2; n++) {
        lanes[n] = bh__jit_edge_lane(u, u->mask, parted, n == 1);
        LLVMValueRef at = LLVMBuildAdd(u->b, v, LLVMBuildMul(u->b, lanes[n], step, ""), "");
        wide[n] = extend(u, at, is_signed);
    }
    step = bh__jit_const_like(u, wide[0], (uint64_t)stride);
    LLVMValueRef before = LLVMBuildMul(u->b, extend(u, lanes[0], false), step, "");
    LLVMValueRef behind = LLVMBuildMul(u->b, extend(u, lanes[1], false), step, "");
    LLVMValueRef base = LLVMBuildSub(u->b, wide[0], before, "");
    LLVMValueRef end = LLVMBuildAdd(u->b, base, behind, "");
    LLVMValueRef same = LLVMBuildICmp(u->b, LLVMIntEQ, end, wide[1], "");
    bh__jit_step_if(u, LLVMBuildNot(u->b, bh__jit_in_parts(u, same, u->mask), ""));
    return base;
}

static LLVMValueRef choose(bh__jit_unit *u, LLVMIntPredicate how, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(u->b, LLVMBuildICmp(u->b, how, a, b, ""), a, b, "");
}

/* Amounts beyond the width give zero, or the sign. */
static LLVMValueRef shift(bh__jit_unit *u, const bh__jit_step *s) {
    uint64_t bits = 8u * bh__ptx_bytes((bh__ptx_type)s->insn->types[0]);
    LLVMValueRef a = typed(u, s, s->code->a), n = operand(u, s, s->code->b, false);
    LLVMValueRef most = bh__jit_const_like(u, n, bits - 1);
    LLVMValueRef beyond = LLVMBuildICmp(u->b, LLVMIntUGT, n, most, "");
    LLVMValueRef amount = LLVMBuildSelect(u->b, beyond, most, n, "");
    amount = LLVMBuildIntCast2(u->b, amount, LLVMTypeOf(a), false, "");
    if (s->op == JIT_SHR && type_is_signed(s, 0)) {
        return LLVMBuildAShr(u->b, a, amount, "");
    }
    LLVMValueRef r =
        s->op == JIT_SHL ? LLVMBuildShl(u->b, a, amount, "") : LLVMBuildLShr(u->b, a, amount, "");
    return LLVMBuildSelect(u->b, beyond, bh__jit_const_like(u, r, 0), r, "");
}

/* The upper half of a product of 16 or 32 bits. */
static LLVMValueRef high_half(bh__jit_unit *u, LLVMValueRef a, LLVMValueRef b, bool is_signed) {
    LLVMTypeRef narrow = LLVMTypeOf(a);
    bool half = narrow == bh__jit_shaped(a, u->i16);
    LLVMTypeRef type = bh__jit_shaped(a, half ? u->i32 : u->i64);
    a = LLVMBuildIntCast2(u->b, a, type, is_signed, "");
    b = LLVMBuildIntCast2(u->b, b, type, is_signed, "");
    LLVMValueRef r = LLVMBuildMul(u->b, a, b, "");
    r = LLVMBuildLShr(u->b, r, bh__jit_const_like(u, r, half ? 16 : 32), "");
    return LLVMBuildTrunc(u->b, r, narrow, "");
}

/* The same of 64 bits, from products of their halves. For each negative factor the other one is
 * subtracted. */
static LLVMValueRef high_word(bh__jit_unit *u, LLVMValueRef a, LLVMValueRef b, bool is_signed) {
    LLVMValueRef low = bh__jit_const_like(u, a, UINT32_MAX), by = bh__jit_const_like(u, a, 32);
    LLVMValueRef al = LLVMBuildAnd(u->b, a, low, ""), ah = LLVMBuildLShr(u->b, a, by, "");
    LLVMValueRef bl = LLVMBuildAnd(u->b, b, low, ""), bh = LLVMBuildLShr(u->b, b, by, "");
    LLVMValueRef first = LLVMBuildLShr(u->b, LLVMBuildMul(u->b, al, bl, ""), by, "");
    LLVMValueRef one = LLVMBuildAdd(u->b, LLVMBuildMul(u->b, ah, bl, ""), first, "");
    LLVMValueRef two = LLVMBuildMul(u->b, al, bh, "");
    two = LLVMBuildAdd(u->b, two, LLVMBuildAnd(u->b, one, low, ""), "");
    LLVMValueRef r =
        LLVMBuildAdd(u->b, LLVMBuildMul(u->b, ah, bh, ""), LLVMBuildLShr(u->b, one, by, ""), "");
    r = LLVMBuildAdd(u->b, r, LLVMBuildLShr(u->b, two, by, ""), "");
    if (!is_signed) {
        return r;
    }
    LLVMValueRef top = bh__jit_const_like(u, a, 63);
    LLVMValueRef more = LLVMBuildAnd(u->b, LLVMBuildAShr(u->b, a, top, ""), b, "");
    r = LLVMBuildSub(u->b, r, more, "");
    more = LLVMBuildAnd(u->b, LLVMBuildAShr(u->b, b, top, ""), a, "");
    return LLVMBuildSub(u->b, r, more, "");
}

static LLVMValueRef multiply_high(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef a = typed(u, s, s->code->a), b = typed(u, s, s->code->b);
    LLVMValueRef r = (type_is_wide(s) ? high_word : high_half)(u, a, b, type_is_signed(s, 0));
    return s->op == JIT_MAD_HI ? LLVMBuildAdd(u->b, r, typed(u, s, s->code->c), "") : r;
}

/* A product of twice the width. */
static LLVMValueRef multiply_wide(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    bool is_signed = type_is_signed(s, 0);
    bool half = bh__ptx_bytes((bh__ptx_type)s->insn->types[0]) == 2;
    LLVMValueRef a, b;
    if (half) {
        a = typed(u, s, c->a);
        b = typed(u, s, c->b);
        LLVMTypeRef type = bh__jit_shaped(a, u->i32);
        a = LLVMBuildIntCast2(u->b, a, type, is_signed, "");
        b = LLVMBuildIntCast2(u->b, b, type, is_signed, "");
    } else {
        a = widen(u, s, c->a, is_signed);
        b = widen(u, s, c->b, is_signed);
    }
    LLVMValueRef r = LLVMBuildMul(u->b, a, b, "");
    return s->op == JIT_MUL_WIDE ? r : LLVMBuildAdd(u->b, r, operand(u, s, c->c, !half), "");
}

static LLVMValueRef absolute(bh__jit_unit *u, LLVMValueRef a) {
    LLVMValueRef zero = bh__jit_const_like(u, a, 0);
    LLVMValueRef negative = LLVMBuildICmp(u->b, LLVMIntSLT, a, zero, "");
    return LLVMBuildSelect(u->b, negative, LLVMBuildSub(u->b, zero, a, ""), a, "");
}

static LLVMValueRef two(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef a = typed(u, s, s->code->a), b = typed(u, s, s->code->b);
    bool is_signed = type_is_signed(s, 0);
    switch (s->op) {
    case JIT_ADD:
        return LLVMBuildAdd(u->b, a, b, "");
    case JIT_SUB:
        return LLVMBuildSub(u->b, a, b, "");
    case JIT_MUL:
        return LLVMBuildMul(u->b, a, b, "");
    case JIT_MAD:
        return LLVMBuildAdd(u->b, LLVMBuildMul(u->b, a, b, ""), typed(u, s, s->code->c), "");
    case JIT_MIN:
        return choose(u, is_signed ? LLVMIntSLT : LLVMIntULT, a, b);
    case JIT_MAX:
        return choose(u, is_signed ? LLVMIntSGT : LLVMIntUGT, a, b);
    case JIT_AND:
        return LLVMBuildAnd(u->b, a, b, "");
    case JIT_OR:
        return LLVMBuildOr(u->b, a, b, "");
    default:
        return LLVMBuildXor(u->b, a, b, "");
    }
}

static LLVMValueRef count_bits(bh__jit_unit *u, const bh__jit_step *s, LLVMValueRef v) {
    LLVMTypeRef types[] = {LLVMTypeOf(v)};
    LLVMValueRef args[] = {v, bh__jit_int(u, u->i1, 0)}; /* zero has leading zeros too */
    const char *name = s->op == JIT_POPC  ? "llvm.ctpop"
                       : s->op == JIT_CLZ ? "llvm.ctlz"
                                          : "llvm.bitreverse";
    return bh__jit_intrinsic(u, name, types, 1, args, s->op == JIT_CLZ ? 2 : 1);
}

/* ---- predicates ---- */

static LLVMValueRef predicate(bh__jit_unit *u, const bh__jit_step *s, int32_t row) {
    return bh__jit_is_uniform(u, s->code->d) ? bh__jit_bit_of(u, row) : bh__jit_lanes_of(u, row);
}

static void predicates(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    LLVMValueRef a = predicate(u, s, c->a), r;
    switch (s->op) {
    case JIT_AND:
        r = LLVMBuildAnd(u->b, a, predicate(u, s, c->b), "");
        break;
    case JIT_OR:
        r = LLVMBuildOr(u->b, a, predicate(u, s, c->b), "");
        break;
    case JIT_XOR:
        r = LLVMBuildXor(u->b, a, predicate(u, s, c->b), "");
        break;
    case JIT_MOVE:
        r = a;
        break;
    default:
        r = LLVMBuildNot(u->b, a, "");
        break;
    }
    bh__jit_set_predicate(u, c->d, r);
}

typedef struct comparison {
    bh__ptx_mod mod;
    LLVMIntPredicate with_sign, without;
    LLVMRealPredicate real;
} comparison;

static const comparison comparisons[] = {
    {M_EQ, LLVMIntEQ, LLVMIntEQ, LLVMRealOEQ},   {M_NE, LLVMIntNE, LLVMIntNE, LLVMRealONE},
    {M_LT, LLVMIntSLT, LLVMIntULT, LLVMRealOLT}, {M_LE, LLVMIntSLE, LLVMIntULE, LLVMRealOLE},
    {M_GT, LLVMIntSGT, LLVMIntUGT, LLVMRealOGT}, {M_GE, LLVMIntSGE, LLVMIntUGE, LLVMRealOGE},
    {M_LO, LLVMIntULT, LLVMIntULT, LLVMRealOLT}, {M_LS, LLVMIntULE, LLVMIntULE, LLVMRealOLE},
    {M_HI, LLVMIntUGT, LLVMIntUGT, LLVMRealOGT}, {M_HS, LLVMIntUGE, LLVMIntUGE, LLVMRealOGE},
    {M_EQU, LLVMIntEQ, LLVMIntEQ, LLVMRealUEQ},  {M_NEU, LLVMIntNE, LLVMIntNE, LLVMRealUNE},
    {M_LTU, LLVMIntEQ, LLVMIntEQ, LLVMRealULT},  {M_LEU, LLVMIntEQ, LLVMIntEQ, LLVMRealULE},
    {M_GTU, LLVMIntEQ, LLVMIntEQ, LLVMRealUGT},  {M_GEU, LLVMIntEQ, LLVMIntEQ, LLVMRealUGE},
    {M_NUM, LLVMIntEQ, LLVMIntEQ, LLVMRealORD},  {M_ISNAN, LLVMIntEQ, LLVMIntEQ, LLVMRealUNO},
};

static LLVMValueRef compare(bh__jit_unit *u, const bh__jit_step *s, bool scalar) {
    const bh__ptx_code *c = s->code;
    bool wide = type_is_wide(s), real = s->insn->op == OP_SETPF;
    LLVMValueRef a = scalar ? bh__jit_scalar(u, c->a, wide) : bh__jit_vector(u, c->a, wide);
    LLVMValueRef b = scalar ? bh__jit_scalar(u, c->b, wide) : bh__jit_vector(u, c->b, wide);
    const comparison *how = comparisons;
    while (!HAS_MOD(s->insn, how->mod)) {
        how++;
    }
    if (bh__ptx_bytes((bh__ptx_type)s->insn->types[0]) == 2) {
        a = LLVMBuildTrunc(u->b, a, bh__jit_shaped(a, u->i16), "");
        b = LLVMBuildTrunc(u->b, b, bh__jit_shaped(b, u->i16), "");
    }
    if (!real) {
        return LLVMBuildICmp(u->b, type_is_signed(s, 0) ? how->with_sign : how->without, a, b, "");
    }
    LLVMTypeRef type = bh__jit_shaped(a, wide ? u->f64 : u->f32);
    a = LLVMBuildBitCast(u->b, a, type, "");
    b = LLVMBuildBitCast(u->b, b, type, "");
    return LLVMBuildFCmp(u->b, how->real, a, b, "");
}

static LLVMValueRef combine(bh__jit_unit *u, const bh__jit_step *s, LLVMValueRef r) {
    const bh__ptx_insn *insn = s->insn;
    if (!HAS(insn, AND) && !HAS(insn, OR) && !HAS(insn, XOR)) {
        return r;
    }
    LLVMValueRef c =
        bh__jit_is_vector(r) ? bh__jit_lanes_of(u, s->code->c) : bh__jit_bit_of(u, s->code->c);
    return HAS(insn, AND)  ? LLVMBuildAnd(u->b, r, c, "")
           : HAS(insn, OR) ? LLVMBuildOr(u->b, r, c, "")
                           : LLVMBuildXor(u->b, r, c, "");
}

static void set_predicates(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    bool third = HAS(s->insn, AND) || HAS(s->insn, OR) || HAS(s->insn, XOR);
    bool scalar = bh__jit_is_uniform(u, c->a) && bh__jit_is_uniform(u, c->b) &&
                  (!third || bh__jit_is_uniform(u, c->c));
    LLVMValueRef r = compare(u, s, scalar), first = combine(u, s, r);
    LLVMValueRef second = NULL;
    if (c->d2 != NO_ROW) {
        second = combine(u, s, LLVMBuildNot(u->b, r, ""));
    }
    bh__jit_set_predicate(u, c->d, first);
    if (second != NULL) {
        bh__jit_set_predicate(u, c->d2, second);
    }
}

static LLVMValueRef select_value(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    bool wide = type_is_wide(s);
    LLVMValueRef a = operand(u, s, c->a, wide), b = operand(u, s, c->b, wide);
    LLVMValueRef p =
        bh__jit_is_uniform(u, c->c) ? bh__jit_bit_of(u, c->c) : bh__jit_lanes_of(u, c->c);
    return LLVMBuildSelect(u->b, p, a, b, "");
}

/* ---- what a launch gives ---- */

static LLVMValueRef special(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    LLVMValueRef block = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, block), u->ptr);
    LLVMValueRef grid = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, grid), u->ptr);
    size_t n = c->count * sizeof(uint32_t);
    switch (c->imm) {
    case SREG_CTAID:
        return bh__jit_field(u, block, offsetof(bh__ptx_block, id) + n, u->i32);
    case SREG_NTID:
        return bh__jit_field(u, grid, offsetof(bh__ptx_grid, block) + n, u->i32);
    default:
        return bh__jit_field(u, grid, offsetof(bh__ptx_grid, grid) + n, u->i32);
    }
}

static LLVMValueRef thread_index(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    LLVMValueRef block = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, block), u->ptr);
    LLVMValueRef warp = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, warp), u->ptr);
    LLVMValueRef index = bh__jit_field(u, warp, offsetof(bh__ptx_warp, index), u->i32);
    LLVMValueRef list = bh__jit_field(
        u, block, offsetof(bh__ptx_block, tid) + c->count * sizeof(uint32_t *), u->ptr);
    LLVMValueRef at = LLVMBuildZExt(u->b, index, u->i64, "");
    at = LLVMBuildMul(u->b, at, bh__jit_int(u, u->i64, LANES), "");
    LLVMValueRef p = LLVMBuildInBoundsGEP2(u->b, u->i32, list, &at, 1, "");
    bool parted = bh__jit_is_parted(u, c->d);
    LLVMTypeRef type =
        bh__jit_is_affine(u, c->d) && !parted ? u->i32 : LLVMVectorType(u->i32, LANES);
    LLVMValueRef v = LLVMBuildLoad2(u->b, type, p, ""), order[LANES];
    LLVMSetAlignment(v, 4);
    for (unsigned n = 0; n < u->parts; n++) {
        order[n] = bh__jit_int(u, u->i32, n * u->part_lanes);
    }
    return parted ? LLVMBuildShuffleVector(u->b, v, LLVMGetUndef(type),
                                           LLVMConstVector(order, u->parts), "")
                  : v;
}

/* Of each part, the first lane's number. */
static LLVMValueRef lane_number(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef list[LANES];
    if (!bh__jit_is_affine(u, s->code->d)) {
        return bh__jit_lane_numbers(u);
    }
    for (unsigned n = 0; n < u->parts; n++) {
        list[n] = bh__jit_int(u, u->i32, n * u->part_lanes);
    }
    return u->parts == 1 ? list[0] : LLVMConstVector(list, u->parts);
}

static LLVMValueRef parameter(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    LLVMValueRef grid = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, grid), u->ptr);
    LLVMValueRef params = bh__jit_field(u, grid, offsetof(bh__ptx_grid, params), u->ptr);
    LLVMTypeRef type = c->bytes == 1   ? u->i8
                       : c->bytes == 2 ? u->i16
                       : c->bytes == 4 ? u->i32
                                       : u->i64;
    LLVMValueRef v = bh__jit_field(u, params, c->imm, type);
    LLVMSetAlignment(v, 1);
    LLVMTypeRef to = c->flags & FLAG_WIDE_D ? u->i64 : u->i32;
    return LLVMTypeOf(v) == to ? v
                               : LLVMBuildIntCast2(u->b, v, to, (c->flags & FLAG_SIGNED) != 0, "");
}

static LLVMValueRef address_of(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    const bh__ptx_var *var = ((const bh__ptx_symbol *)c->extra)->var;
    LLVMValueRef v;
    if (var->space == SPACE_SHARED) {
        v = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, shared_base), u->i32);
        LLVMValueRef from =
            var->is_extern ? bh__jit_field(u, u->x, offsetof(bh__ptx_exec, dynamic_base), u->i32)
                           : bh__jit_int(u, u->i32, var->offset);
        v = LLVMBuildAdd(u->b, LLVMBuildZExt(u->b, v, u->i64, ""),
                         LLVMBuildZExt(u->b, from, u->i64, ""), "");
    } else if (var->space == SPACE_LOCAL) {
        v = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, stack), u->i32);
        v = LLVMBuildZExt(u->b, v, u->i64, "");
        v = LLVMBuildAdd(u->b, v, bh__jit_int(u, u->i64, var->offset), "");
    } else {
        LLVMValueRef block = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, block), u->ptr);
        LLVMValueRef image = bh__jit_field(u, block, offsetof(bh__ptx_block, image), u->ptr);
        LLVMValueRef list = bh__jit_field(u, image, offsetof(bh__ptx_image, variables), u->ptr);
        v = bh__jit_field(u, list, var->index * sizeof(uint8_t *), u->i64);
    }
    v = LLVMBuildAdd(u->b, v, bh__jit_int(u, u->i64, c->imm), "");
    return c->bytes == 8 ? v : LLVMBuildTrunc(u->b, v, u->i32, "");
}

/* A narrow integer in a register, as wide as the register of the result. */
static LLVMValueRef recode(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    bh__ptx_type to = (bh__ptx_type)s->insn->types[0], from = (bh__ptx_type)s->insn->types[1];
    LLVMValueRef v = operand(u, s, c->a, (c->flags & FLAG_WIDE_A) != 0);
    LLVMTypeRef steps[] = {LLVMIntTypeInContext(u->context, 8 * bh__ptx_bytes(from)), u->i64,
                           LLVMIntTypeInContext(u->context, 8 * bh__ptx_bytes(to)),
                           c->flags & FLAG_WIDE_D ? u->i64 : u->i32};
    for (int n = 0; n < 4; n++) {
        bool is_signed = bh__ptx_class(n < 2 ? from : to) == 'S';
        v = LLVMBuildIntCast2(u->b, v, bh__jit_shaped(v, steps[n]), is_signed, "");
    }
    return v;
}

/* ---- */

static LLVMValueRef value_of(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    bool wide = type_is_wide(s);
    LLVMValueRef a;
    switch (s->op) {
    case JIT_TID:
        return thread_index(u, s);
    case JIT_BLOCK:
        return special(u, s);
    case JIT_LANE:
        return lane_number(u, s);
    case JIT_PARAM:
        return parameter(u, s);
    case JIT_ADDRESS:
        return address_of(u, s);
    case JIT_RECODE:
        return recode(u, s);
    case JIT_DIV:
    case JIT_REM:
        return bh__jit_divide(u, s);
    case JIT_POPC:
    case JIT_CLZ:
    case JIT_BREV:
        return count_bits(u, s, operand(u, s, c->a, wide));
    case JIT_MOVE:
        a = operand(u, s, c->a, wide);
        return s->insn->op == OP_CVTA && c->imm != 0
                   ? LLVMBuildAdd(u->b, a, bh__jit_const_like(u, a, c->imm), "")
                   : a;
    case JIT_MUL_WIDE:
    case JIT_MAD_WIDE:
        return multiply_wide(u, s);
    case JIT_MUL_HI:
    case JIT_MAD_HI:
        return multiply_high(u, s);
    case JIT_NEG:
        return LLVMBuildNeg(u->b, typed(u, s, c->a), "");
    case JIT_ABS:
        return absolute(u, typed(u, s, c->a));
    case JIT_NOT:
        return LLVMBuildNot(u->b, typed(u, s, c->a), "");
    case JIT_SHL:
    case JIT_SHR:
        return shift(u, s);
    case JIT_WIDEN:
        return widen(u, s, c->a, type_is_signed(s, 1));
    case JIT_NARROW:
        a = operand(u, s, c->a, bh__ptx_bytes((bh__ptx_type)s->insn->types[1]) == 8);
        return LLVMBuildTrunc(u->b, a, bh__jit_shaped(a, u->i32), "");
    case JIT_SELP:
        return select_value(u, s);
    case JIT_FIND:
    case JIT_EXTRACT:
    case JIT_INSERT:
    case JIT_FUNNEL:
    case JIT_PERMUTE:
    case JIT_LOGIC:
    case JIT_DOT:
    case JIT_PACK:
        return bh__jit_bits(u, s);
    case JIT_HALF:
        return bh__jit_half(u, s);
    case JIT_FROM_HALF:
        return bh__jit_from_half(u, s);
    case JIT_TO_HALF:
        return bh__jit_to_half(u, s);
    default:
        return two(u, s);
    }
}

void bh__jit_integer(bh__jit_unit *u, const bh__jit_step *s) {
    bool on_predicates =
        s->insn->type_count > 0 && s->insn->types[0] == T_PRED && s->op != JIT_ADDRESS;
    if (s->op == JIT_SETP) {
        set_predicates(u, s);
    } else if (s->op == JIT_NOT_PRED || (on_predicates && s->op != JIT_SELP)) {
        predicates(u, s);
    } else if (s->op == JIT_UNPACK) {
        bh__jit_unpack_parts(u, s);
    } else {
        int32_t row = s->op == JIT_PARAM ? *(const int32_t *)s->code->extra : s->code->d;
        bh__jit_set(u, row, as_row(u, value_of(u, s)));
    }
}
