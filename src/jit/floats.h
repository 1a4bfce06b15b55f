/* SPDX-License-Identifier: Apache-2.0 */
/* Floats in IR, scalars and vectors, as src/ptx/fp.h has them. */
#ifndef BH_JIT_FLOATS_H
#define BH_JIT_FLOATS_H

#include "jit/unit.h"

LLVMValueRef bh__jit_bits_of(bh__jit_unit *u, LLVMValueRef v, bool wide); /* as an integer */
LLVMValueRef bh__jit_real_of(bh__jit_unit *u, LLVMValueRef v, bool wide); /* as a float */
LLVMValueRef bh__jit_is_nan(bh__jit_unit *u, LLVMValueRef v);
/* Single precision: */
LLVMValueRef bh__jit_canonical(bh__jit_unit *u, LLVMValueRef v);
LLVMValueRef bh__jit_flush(bh__jit_unit *u, LLVMValueRef v);
LLVMValueRef bh__jit_saturate(bh__jit_unit *u, LLVMValueRef v);

LLVMValueRef bh__jit_ex2(bh__jit_unit *u, LLVMValueRef a); /* approx.c: any NaN stays one */

/* rounding.c: an operation of the processor in another rounding mode than its own. */
bool bh__jit_has_roundings(void); /* engine.c */
bool bh__jit_has_halves(void);    /* engine.c: converts them to and from single precision */
LLVMValueRef bh__jit_rounded(bh__jit_unit *u, bh__jit_op op, const bh__ptx_insn *insn,
                             LLVMValueRef *args, unsigned count);

/* half.c: as words */
LLVMValueRef bh__jit_half(bh__jit_unit *u, const bh__jit_step *s);
LLVMValueRef bh__jit_from_half(bh__jit_unit *u, const bh__jit_step *s);
LLVMValueRef bh__jit_to_half(bh__jit_unit *u, const bh__jit_step *s);

#endif
