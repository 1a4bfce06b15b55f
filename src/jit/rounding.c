/* SPDX-License-Identifier: Apache-2.0 */
/* Single precision rounded to zero, up and down, by instructions that carry a rounding mode: only
 * AVX-512 has them, for vectors of 16. */
#include "jit/floats.h"

enum { WIDTH = 16 };
enum { TO_NEGATIVE = 9, TO_POSITIVE = 10, TO_ZERO = 11 }; /* of the instructions, without faults */

/* `count` lanes of one vector, or of two, from `first` on; lanes beyond them are undefined. */
static LLVMValueRef take(bh__jit_unit *u, LLVMValueRef a, LLVMValueRef b, unsigned first,
                         unsigned count) {
    LLVMValueRef order[LANES];
    for (unsigned n = 0; n < count; n++) {
        bool there = b != NULL || first + n < bh__jit_width(a);
        order[n] = there ? bh__jit_int(u, u->i32, first + n) : LLVMGetUndef(u->i32);
    }
    b = b == NULL ? LLVMGetUndef(LLVMTypeOf(a)) : b;
    return LLVMBuildShuffleVector(u->b, a, b, LLVMConstVector(order, count), "");
}

static LLVMValueRef half_of(bh__jit_unit *u, LLVMValueRef v, unsigned half) {
    return bh__jit_is_vector(v) ? take(u, v, NULL, half * WIDTH, WIDTH)
                                : bh__jit_splat_to(u, v, WIDTH);
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
    if (bh__jit_width(args[0]) <= WIDTH) {
        return take(u, low, NULL, 0, bh__jit_width(args[0]));
    }
    return take(u, low, operate(u, op, mode, args, count, 1), 0, LANES);
}
