/* SPDX-License-Identifier: Apache-2.0 */
/* cvt to and from floats, rounded to nearest or to integers: src/ptx/exec/convert.c says what it
 * gives. */
#include "jit/floats.h"

static bh__ptx_type type_of(const bh__jit_step *s, unsigned n) {
    return (bh__ptx_type)s->insn->types[n];
}

static bool is_signed(const bh__jit_step *s, unsigned n) {
    return bh__ptx_class(type_of(s, n)) == 'S';
}

static LLVMValueRef source(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    return bh__jit_operand(u, c->d, c->a, (c->flags & FLAG_WIDE_A) != 0);
}

/* A float, flushed if the instruction says so. */
static LLVMValueRef number(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef v = bh__jit_real_of(u, source(u, s), type_of(s, 1) == T_F64);
    return HAS(s->insn, FTZ) ? bh__jit_flush(u, v) : v;
}

static LLVMValueRef from_int(bh__jit_unit *u, const bh__jit_step *s) {
    unsigned bits = 8 * bh__ptx_bytes(type_of(s, 1));
    LLVMValueRef v = source(u, s);
    v = LLVMBuildIntCast2(u->b, v, bh__jit_shaped(v, LLVMIntTypeInContext(u->context, bits)), false,
                          "");
    LLVMTypeRef type = bh__jit_shaped(v, type_of(s, 0) == T_F64 ? u->f64 : u->f32);
    return is_signed(s, 1) ? LLVMBuildSIToFP(u->b, v, type, "")
                           : LLVMBuildUIToFP(u->b, v, type, "");
}

static LLVMValueRef whole(bh__jit_unit *u, const bh__ptx_insn *insn, LLVMValueRef v) {
    const char *name = HAS(insn, RZI)   ? "llvm.trunc"
                       : HAS(insn, RMI) ? "llvm.floor"
                       : HAS(insn, RPI) ? "llvm.ceil"
                                        : "llvm.roundeven";
    LLVMTypeRef types[] = {LLVMTypeOf(v)};
    return bh__jit_intrinsic(u, name, types, 1, &v, 1);
}

/* NaN becomes zero or, if source or destination has 64 bits, the value with only the top bit
 * set. */
static LLVMValueRef to_int(bh__jit_unit *u, const bh__jit_step *s) {
    bool wide = bh__ptx_bytes(type_of(s, 0)) == 8;
    LLVMValueRef v = whole(u, s->insn, number(u, s));
    LLVMTypeRef to = bh__jit_shaped(v, wide ? u->i64 : u->i32), types[] = {to, LLVMTypeOf(v)};
    LLVMValueRef r = bh__jit_intrinsic(u, is_signed(s, 0) ? "llvm.fptosi.sat" : "llvm.fptoui.sat",
                                       types, 2, &v, 1);
    if (!wide && type_of(s, 1) == T_F32) {
        return r;
    }
    LLVMValueRef top = bh__jit_const_like(u, r, UINT64_C(1) << (wide ? 63 : 31));
    return LLVMBuildSelect(u->b, bh__jit_is_nan(u, v), top, r, "");
}

static LLVMValueRef resize(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMValueRef v = number(u, s);
    return type_of(s, 0) == T_F64 ? LLVMBuildFPExt(u->b, v, bh__jit_shaped(v, u->f64), "")
                                  : LLVMBuildFPTrunc(u->b, v, bh__jit_shaped(v, u->f32), "");
}

void bh__jit_convert(bh__jit_unit *u, const bh__jit_step *s) {
    bool wide = bh__ptx_bytes(type_of(s, 0)) == 8;
    LLVMValueRef r;
    switch (s->op) {
    case JIT_INT_TO_FLOAT:
        r = bh__jit_bits_of(u, from_int(u, s), wide);
        break;
    case JIT_FLOAT_TO_INT:
        r = to_int(u, s);
        break;
    case JIT_RESIZE:
        r = bh__jit_bits_of(u, resize(u, s), wide);
        break;
    case JIT_TO_WHOLE:
        r = bh__jit_canonical(u, whole(u, s->insn, number(u, s)));
        r = bh__jit_bits_of(u, r, false);
        break;
    default: /* JIT_CLAMP */
        r = bh__jit_bits_of(u, bh__jit_saturate(u, number(u, s)), false);
        break;
    }
    bh__jit_set(u, s->code->d, r);
}
