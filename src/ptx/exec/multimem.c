/* SPDX-License-Identifier: Apache-2.0 */
/* multimem on a multicast object of one device: its address is plain memory. */
#include "ptx/run/exec.h"

/* A reduction of one copy is its value; a store or update of every copy is one of that copy. */
bool bh__ptx_lower_multimem(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bool reduces = HAS(insn, ADD) || HAS(insn, MIN) || HAS(insn, MAX) || HAS(insn, AND) ||
                   HAS(insn, OR) || HAS(insn, XOR);
    bool load = HAS(insn, LD_REDUCE), store = HAS(insn, MULTI_STORE), red = HAS(insn, RED);
    if (load + store + red != 1 || reduces == store) {
        return bh__ptx_lower_fail(low, BH_E_UNSUPPORTED, "use a form that PTX defines",
                                  "the CPU device does not support this form of multimem");
    }
    bh__ptx_insn plain = *insn;
    plain.op = load ? OP_LD : store ? OP_ST : insn->op;
    low->insn = &plain;
    bool ok = red ? bh__ptx_lower_atomic(low) : bh__ptx_lower_memory(low);
    low->insn = insn;
    return ok;
}
