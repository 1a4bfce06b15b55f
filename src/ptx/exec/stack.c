/* SPDX-License-Identifier: Apache-2.0 */
/* alloca, stacksave, stackrestore: memory that a function adds to its frame while it runs. */
#include <string.h>

#include "ptx/run/exec.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

enum { MIN_ALIGN = 8 };

/*
 * Local memory grows upwards. A function that uses these instructions has a row with the end of
 * each lane's allocations, zero while there are none.
 */
static bh__u32 *tops(const bh__ptx_exec *x) {
    return bh__row(x, (int32_t)x->frame_function->stack_row);
}

static uint32_t frame_end(const bh__ptx_exec *x) {
    return x->stack + x->frame_function->local_bytes;
}

static uint32_t top_of(const bh__ptx_exec *x, unsigned l) {
    uint32_t top = tops(x)[l];
    return top != 0 ? top : frame_end(x);
}

static uint64_t get(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l) {
    return i->bytes == 8 ? ((const bh__u64 *)bh__row(x, i->a))[l]
                         : ((const bh__u32 *)bh__row(x, i->a))[l];
}

static void set(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l, uint32_t v) {
    if (i->bytes == 8) {
        ((bh__u64 *)bh__row(x, i->d))[l] = v;
    } else {
        ((bh__u32 *)bh__row(x, i->d))[l] = v;
    }
}

uint32_t bh__ptx_stack_top(const bh__ptx_warp *w, uint32_t base, uint32_t top) {
    const bh__ptx_frame *frame = (const bh__ptx_frame *)(const void *)(w->regs + base);
    const bh__u32 *row =
        (const bh__u32 *)(const void *)(w->regs + base + frame->function->stack_row);
    for (unsigned l = 0; l < LANES; l++) {
        top = row[l] > top ? row[l] : top;
    }
    return top;
}

/* imm: the alignment */
HANDLER(run_alloca) {
    uint32_t start[LANES];
    FOR_LANES_IN_ORDER(mask) {
        uint64_t size = get(x, i, l), top = top_of(x, l);
        uint64_t at = (top + i->imm - 1) & ~(i->imm - 1);
        bool fits = size <= BH__PTX_MAX_LOCAL && at + size <= BH__PTX_MAX_LOCAL;
        if (!fits || !bh__ptx_local_room(x->warp, (uint32_t)(at + size))) {
            return bh__ptx_fault_other(x, BH__PTX_FAULT_STACK, l,
                                       "stack overflow: alloca of %llu bytes with %u of %u in use",
                                       (unsigned long long)size, (unsigned)top,
                                       (unsigned)BH__PTX_MAX_LOCAL);
        }
        start[l] = (uint32_t)at;
        tops(x)[l] = (uint32_t)(at + size);
        x->local_end = tops(x)[l] > x->local_end ? tops(x)[l] : x->local_end;
        memset(x->warp->local + (size_t)l * x->warp->local_stride + at, 0, (size_t)size);
    }
    FOR_LANES_IN_ORDER(mask) { /* after all sizes are read: it may be the same register */
        set(x, i, l, start[l]);
    }
    return true;
}

HANDLER(run_save) {
    FOR_LANES_IN_ORDER(mask) {
        set(x, i, l, top_of(x, l));
    }
    return true;
}

HANDLER(run_restore) {
    FOR_LANES_IN_ORDER(mask) {
        uint64_t to = get(x, i, l);
        if (to < frame_end(x) || to > top_of(x, l)) {
            return bh__ptx_fault_other(
                x, BH__PTX_FAULT_STACK, l,
                "stackrestore to 0x%llx, which is not from 0x%x to 0x%x: no stacksave of this "
                "function gave it",
                (unsigned long long)to, (unsigned)frame_end(x), (unsigned)top_of(x, l));
        }
        tops(x)[l] = (uint32_t)to;
    }
    return true;
}

bool bh__ptx_lower_stack(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bh__ptx_code code = {.bytes = (uint8_t)bh__ptx_bytes(insn->types[0]), .imm = MIN_ALIGN};
    code.run = insn->op == OP_ALLOCA      ? run_alloca
               : insn->op == OP_STACKSAVE ? run_save
                                          : run_restore;
    if (low->function->stack_row == 0) {
        low->function->stack_row = (uint32_t)bh__ptx_new_row(low, 4);
    }
    if (insn->op == OP_ALLOCA && insn->operand_count == 3) {
        uint64_t align = insn->operands[2].imm;
        if (align == 0 || (align & (align - 1)) != 0 || align > 1u << 23) {
            return bh__ptx_lower_fail(low, BH_E_LOAD, "use a power of two of at most 8388608",
                                      "alignment %llu is not valid", (unsigned long long)align);
        }
        code.imm = align > MIN_ALIGN ? align : MIN_ALIGN;
    }
    bh__ptx_type type = (bh__ptx_type)insn->types[0];
    const bh__ptx_operand *o = insn->operands;
    if (insn->op != OP_STACKRESTORE) {
        code.d = bh__ptx_row_out(low, o++, type);
    }
    if (insn->op != OP_STACKSAVE) {
        code.a = bh__ptx_row_in(low, o, type);
    }
    return bh__ptx_emit(low, &code, true);
}
