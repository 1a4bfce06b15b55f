/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the bits of a NaN matter. Single precision arithmetic makes the same NaN of every one that
 * it is given, and so a result that only goes to such instructions may keep whichever the processor
 * made.
 */
#include "jit/unit.h"

static bool is_single(const bh__jit_step *s) {
    return s->insn != NULL && s->insn->types[0] == T_F32;
}

/* A step that reads a row as a number, so that all NaNs are alike to it. */
static bool takes_any(const bh__jit_unit *u, const bh__jit_step *s) {
    switch (s->op) {
    case JIT_FADD:
    case JIT_FSUB:
    case JIT_FMUL:
    case JIT_FDIV:
    case JIT_FMA:
    case JIT_RCP:
    case JIT_SQRT:
    case JIT_FNEG:
    case JIT_FABS:
    case JIT_FMIN:
    case JIT_FMAX:
    case JIT_RSQRT:
    case JIT_EX2:
    case JIT_QUOTIENT:
    case JIT_CLAMP:
    case JIT_TO_WHOLE:
        return is_single(s);
    case JIT_SETP:
        return is_single(s) && s->insn->op == OP_SETPF;
    case JIT_MOVE:
    case JIT_SELP:
        return s->def_count == 1 && u->rows[s->defs[0]].any_nan;
    default:
        return false;
    }
}

void bh__jit_find_nans(bh__jit_unit *u) {
    for (uint32_t n = 0; n < u->row_count; n++) {
        u->rows[n].any_nan = u->rows[n].kind == KIND_WORD;
    }
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t n = 0; n < u->step_count; n++) {
            const bh__jit_step *s = &u->steps[n];
            bool fine = takes_any(u, s);
            for (uint32_t k = 0; !fine && k < s->use_count; k++) {
                changed |= u->rows[s->uses[k]].any_nan;
                u->rows[s->uses[k]].any_nan = false;
            }
        }
    }
}
