/* SPDX-License-Identifier: Apache-2.0 */
/* Bit fields, funnel shifts, permutations of bytes, lop3, dp4a; registers as parts of others. The
 * formulas are those of src/ptx/exec/bits.c. */
#include "jit/unit.h"

static LLVMValueRef word(bh__jit_unit *u, const bh__jit_step *s, int32_t row) {
    return bh__jit_operand(u, s->code->d, row, false);
}

static LLVMValueRef number(bh__jit_unit *u, LLVMValueRef like, uint64_t v) {
    return bh__jit_const_like(u, like, v);
}

static LLVMValueRef and_number(bh__jit_unit *u, LLVMValueRef v, uint64_t bits) {
    return LLVMBuildAnd(u->b, v, number(u, v, bits), "");
}

static LLVMValueRef least(bh__jit_unit *u, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(u->b, LLVMBuildICmp(u->b, LLVMIntULT, a, b, ""), a, b, "");
}

static LLVMValueRef resize(bh__jit_unit *u, LLVMValueRef v, LLVMTypeRef element, bool is_signed) {
    LLVMTypeRef type = bh__jit_shaped(v, element);
    return LLVMTypeOf(v) == type ? v : LLVMBuildIntCast2(u->b, v, type, is_signed, "");
}

static bool is_wide(const bh__jit_step *s) {
    return bh__ptx_bytes((bh__ptx_type)s->insn->types[0]) == 8;
}

static bool is_signed(const bh__jit_step *s, unsigned n) {
    return bh__ptx_class((bh__ptx_type)s->insn->types[n]) == 'S';
}

/* ---- fields ---- */

/* A position or length: the low byte for fields of 32 bits, all of it for 64; at most 255. */
static LLVMValueRef field_number(bh__jit_unit *u, const bh__jit_step *s, int32_t row) {
    LLVMValueRef v = word(u, s, row);
    v = is_wide(s) ? least(u, v, number(u, v, 255)) : and_number(u, v, 255);
    return resize(u, v, is_wide(s) ? u->i64 : u->i32, false);
}

/* `length` ones, all if there are not so many bits. */
static LLVMValueRef ones(bh__jit_unit *u, LLVMValueRef length, unsigned bits) {
    LLVMValueRef all = number(u, length, bits == 64 ? UINT64_MAX : UINT32_MAX);
    LLVMValueRef amount = and_number(u, length, bits - 1);
    LLVMValueRef some = LLVMBuildNot(u->b, LLVMBuildShl(u->b, all, amount, ""), "");
    LLVMValueRef fits = LLVMBuildICmp(u->b, LLVMIntULT, length, number(u, length, bits), "");
    return LLVMBuildSelect(u->b, fits, some, all, "");
}

static LLVMValueRef extract(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    unsigned bits = is_wide(s) ? 64 : 32;
    LLVMValueRef a = bh__jit_operand(u, c->d, c->a, is_wide(s));
    LLVMValueRef position = field_number(u, s, c->b), length = field_number(u, s, c->c);
    LLVMValueRef top = number(u, a, bits - 1), zero = number(u, a, 0);
    LLVMValueRef from = least(u, position, top);
    if (!is_signed(s, 0)) {
        LLVMValueRef field =
            LLVMBuildAnd(u->b, LLVMBuildLShr(u->b, a, from, ""), ones(u, length, bits), "");
        LLVMValueRef inside = LLVMBuildICmp(u->b, LLVMIntULE, position, top, "");
        return LLVMBuildSelect(u->b, inside, field, zero, "");
    }
    /* The last bit of the field moves to the top, and the field down from there. */
    LLVMValueRef last = LLVMBuildAdd(u->b, position, length, "");
    last = least(u, LLVMBuildSub(u->b, last, number(u, last, 1), ""), top);
    LLVMValueRef up = LLVMBuildSub(u->b, top, last, "");
    LLVMValueRef down = least(u, LLVMBuildAdd(u->b, up, from, ""), top);
    LLVMValueRef field = LLVMBuildAShr(u->b, LLVMBuildShl(u->b, a, up, ""), down, "");
    LLVMValueRef empty = LLVMBuildICmp(u->b, LLVMIntEQ, length, zero, "");
    return LLVMBuildSelect(u->b, empty, zero, field, "");
}

static LLVMValueRef insert(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    unsigned bits = is_wide(s) ? 64 : 32;
    LLVMValueRef a = bh__jit_operand(u, c->d, c->a, is_wide(s));
    LLVMValueRef b = bh__jit_operand(u, c->d, c->b, is_wide(s));
    LLVMValueRef position = field_number(u, s, c->c), low = ones(u, field_number(u, s, c->e), bits);
    LLVMValueRef from = and_number(u, position, bits - 1);
    LLVMValueRef hole = LLVMBuildNot(u->b, LLVMBuildShl(u->b, low, from, ""), "");
    LLVMValueRef put = LLVMBuildShl(u->b, LLVMBuildAnd(u->b, a, low, ""), from, "");
    LLVMValueRef r = LLVMBuildOr(u->b, LLVMBuildAnd(u->b, b, hole, ""), put, "");
    LLVMValueRef inside = LLVMBuildICmp(u->b, LLVMIntULT, position, number(u, a, bits), "");
    return LLVMBuildSelect(u->b, inside, r, b, "");
}

/* The highest bit that is not the sign; all ones if there is none. */
static LLVMValueRef find(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    unsigned bits = is_wide(s) ? 64 : 32;
    LLVMValueRef a = bh__jit_operand(u, c->d, c->a, is_wide(s));
    if (is_signed(s, 0)) {
        LLVMValueRef sign = LLVMBuildAShr(u->b, a, number(u, a, bits - 1), "");
        a = LLVMBuildXor(u->b, a, sign, "");
    }
    LLVMTypeRef types[] = {LLVMTypeOf(a)};
    LLVMValueRef args[] = {a, bh__jit_int(u, u->i1, 0)};
    LLVMValueRef zeros = bh__jit_intrinsic(u, "llvm.ctlz", types, 1, args, 2);
    LLVMValueRef r = zeros;
    if (!HAS(s->insn, SHIFTAMT)) {
        r = LLVMBuildSub(u->b, number(u, zeros, bits - 1), zeros, "");
    }
    LLVMValueRef none = LLVMBuildICmp(u->b, LLVMIntEQ, a, number(u, a, 0), "");
    r = LLVMBuildSelect(u->b, none, number(u, zeros, UINT64_MAX), r, "");
    return resize(u, r, u->i32, false);
}

/* ---- words ---- */

static LLVMValueRef funnel(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *code = s->code;
    LLVMValueRef a = word(u, s, code->a), b = word(u, s, code->b), n = word(u, s, code->c);
    LLVMTypeRef types[] = {LLVMTypeOf(a)};
    LLVMValueRef args[] = {b, a, n}; /* `n` counts modulo 32 */
    bool left = HAS(s->insn, L);
    LLVMValueRef r = bh__jit_intrinsic(u, left ? "llvm.fshl" : "llvm.fshr", types, 1, args, 3);
    if (HAS(s->insn, WRAP)) {
        return r;
    }
    LLVMValueRef beyond = LLVMBuildICmp(u->b, LLVMIntUGT, n, number(u, n, 31), "");
    return LLVMBuildSelect(u->b, beyond, left ? a : b, r, "");
}

/* The modes with a name take c modulo 4; see src/ptx/exec/bits.c. Only the one without is here. */
static LLVMValueRef permute(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *code = s->code;
    LLVMValueRef a = resize(u, word(u, s, code->a), u->i64, false);
    LLVMValueRef b = resize(u, word(u, s, code->b), u->i64, false);
    LLVMValueRef select = word(u, s, code->c), r = NULL;
    LLVMValueRef bytes = LLVMBuildOr(u->b, LLVMBuildShl(u->b, b, number(u, b, 32), ""), a, "");
    for (unsigned n = 0; n < 4; n++) {
        LLVMValueRef which = LLVMBuildLShr(u->b, select, number(u, select, 4 * n), "");
        LLVMValueRef from = LLVMBuildShl(u->b, and_number(u, which, 7), number(u, which, 3), "");
        LLVMValueRef at = resize(u, from, u->i64, false);
        LLVMValueRef byte = resize(u, LLVMBuildLShr(u->b, bytes, at, ""), u->i8, false);
        LLVMValueRef sign = LLVMBuildAShr(u->b, byte, number(u, byte, 7), "");
        LLVMValueRef copies = and_number(u, which, 8);
        copies = LLVMBuildICmp(u->b, LLVMIntNE, copies, number(u, copies, 0), "");
        byte = resize(u, LLVMBuildSelect(u->b, copies, sign, byte, ""), u->i32, false);
        byte = LLVMBuildShl(u->b, byte, number(u, byte, 8 * n), "");
        r = r == NULL ? byte : LLVMBuildOr(u->b, r, byte, "");
    }
    return r;
}

/* One term for each bit of the table; LLVM finds the shortest form. */
static LLVMValueRef logic(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *code = s->code;
    LLVMValueRef in[] = {word(u, s, code->c), word(u, s, code->b), word(u, s, code->a)};
    LLVMValueRef r = number(u, in[0], 0);
    for (unsigned n = 0; n < 8; n++) {
        if (!(code->imm >> n & 1)) {
            continue;
        }
        LLVMValueRef term = number(u, in[0], UINT32_MAX);
        for (unsigned k = 0; k < 3; k++) {
            LLVMValueRef one = n >> k & 1 ? in[k] : LLVMBuildNot(u->b, in[k], "");
            term = LLVMBuildAnd(u->b, term, one, "");
        }
        r = LLVMBuildOr(u->b, r, term, "");
    }
    return r;
}

static LLVMValueRef dot(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *code = s->code;
    LLVMValueRef sum = word(u, s, code->c), in[] = {word(u, s, code->a), word(u, s, code->b)};
    for (unsigned n = 0; n < 32; n += 8) {
        LLVMValueRef part[2];
        for (unsigned k = 0; k < 2; k++) {
            part[k] = LLVMBuildLShr(u->b, in[k], number(u, in[k], n), "");
            part[k] = resize(u, resize(u, part[k], u->i8, false), u->i32, is_signed(s, k));
        }
        sum = LLVMBuildAdd(u->b, sum, LLVMBuildMul(u->b, part[0], part[1], ""), "");
    }
    return sum;
}

/* ---- parts ---- */

static LLVMTypeRef part_type(bh__jit_unit *u, const bh__jit_step *s) {
    return LLVMIntTypeInContext(u->context, 8u * s->code->bytes);
}

static LLVMValueRef pack(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    LLVMTypeRef whole = c->flags & FLAG_WIDE_D ? u->i64 : u->i32;
    LLVMValueRef r = NULL;
    for (unsigned n = 0; n < c->count; n++) {
        LLVMValueRef v = word(u, s, ((const int32_t *)c->extra)[n]);
        v = resize(u, resize(u, v, part_type(u, s), false), whole, false);
        v = LLVMBuildShl(u->b, v, number(u, v, 8u * c->bytes * n), "");
        r = r == NULL ? v : LLVMBuildOr(u->b, r, v, "");
    }
    return r;
}

void bh__jit_unpack_parts(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    bool wide = (c->flags & FLAG_WIDE_A) != 0;
    int64_t stride;
    bool even = bh__jit_class_of(u, c->a, &stride) == CLASS_AFFINE && stride == 0;
    LLVMValueRef v = even ? bh__jit_scalar(u, c->a, wide) : bh__jit_vector(u, c->a, wide);
    LLVMValueRef parts[4];
    for (unsigned n = 0; n < c->count; n++) { /* all, before any register is set */
        LLVMValueRef at = LLVMBuildLShr(u->b, v, number(u, v, 8u * c->bytes * n), "");
        parts[n] = resize(u, resize(u, at, part_type(u, s), false), u->i32, false);
    }
    for (unsigned n = 0; n < c->count; n++) {
        bh__jit_set(u, ((const int32_t *)c->extra)[n], parts[n]);
    }
}

LLVMValueRef bh__jit_bits(bh__jit_unit *u, const bh__jit_step *s) {
    switch (s->op) {
    case JIT_FIND:
        return find(u, s);
    case JIT_EXTRACT:
        return extract(u, s);
    case JIT_INSERT:
        return insert(u, s);
    case JIT_FUNNEL:
        return funnel(u, s);
    case JIT_PERMUTE:
        return permute(u, s);
    case JIT_LOGIC:
        return logic(u, s);
    case JIT_DOT:
        return dot(u, s);
    default:
        return pack(u, s);
    }
}
