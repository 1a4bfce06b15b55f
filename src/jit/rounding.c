/* SPDX-License-Identifier: Apache-2.0 */
/* Single precision rounded to zero, up and down, by instructions that carry a rounding mode: only
 * AVX-512 has them, for vectors of 16. */
#include "jit/floats.h"

enum { WIDTH = 16 };
enum { TO_NEGATIVE = 9, TO_POSITIVE = 10, TO_ZERO = 11 }; /* of the instructions, without faults */

static LLVMValueRef half_of(bh__jit_unit *u, LLVMValueRef v, unsigned half) {
    LLVMValueRef order[WIDTH];
    if (!bh__jit_is_vector(v)) {
        LLVMValueRef zero = bh__jit_int(u, u->i32, 0), undef;
        undef = LLVMGetUndef(LLVMVectorType(LLVMTypeOf(v), WIDTH));
        v = LLVMBuildInsertElement(u->b, undef, v, zero, "");
        LLVMValueRef all = LLVMConstNull(LLVMVectorType(u->i32, WIDTH));
        return LLVMBuildShuffleVector(u->b, v, undef, all, "");
    }
    for (unsigned n = 0; n < WIDTH; n++) {
        order[n] = bh__jit_int(u, u->i32, half * WIDTH + n);
    }
    return LLVMBuildShuffleVector(u->b, v, LLVMGetUndef(LLVMTypeOf(v)),
                                  LLVMConstVector(order, WIDTH), "");
}

static const char *name_of(bh__jit_op op) {
    return op == JIT_FADD   ? "llvm.x86.avx512.add.ps.512"
           : op == JIT_FSUB ? "llvm.x86.avx512.sub.ps.512"
           : op == JIT_FMUL ? "llvm.x86.avx512.mul.ps.512"
                            : "llvm.x86.avx512.vfmadd.ps.512";
}

static LLVMValueRef operate(bh__jit_unit *u, bh__jit_op op, unsigned mode, LLVMValueRef *args,
                            unsigned count, unsigned half) {
    LLVMValueRef list[4];
    for (unsigned n = 0; n < count; n++) {
        list[n] = half_of(u, args[n], half);
    }
    list[count] = bh__jit_int(u, u->i32, mode);
    return bh__jit_intrinsic(u, name_of(op), NULL, 0, list, count + 1);
}

LLVMValueRef bh__jit_rounded(bh__jit_unit *u, bh__jit_op op, const bh__ptx_insn *insn,
                             LLVMValueRef *args, unsigned count) {
    unsigned mode = HAS(insn, RZ) ? TO_ZERO : HAS(insn, RM) ? TO_NEGATIVE : TO_POSITIVE;
    LLVMValueRef low = operate(u, op, mode, args, count, 0);
    if (!bh__jit_is_vector(args[0])) {
        return LLVMBuildExtractElement(u->b, low, bh__jit_int(u, u->i32, 0), "");
    }
    LLVMValueRef high = operate(u, op, mode, args, count, 1), order[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        order[l] = bh__jit_int(u, u->i32, l);
    }
    return LLVMBuildShuffleVector(u->b, low, high, LLVMConstVector(order, LANES), "");
}
