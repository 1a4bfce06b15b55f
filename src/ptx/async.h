/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies: what their units share. */
#ifndef BH_PTX_ASYNC_H
#define BH_PTX_ASYNC_H

#include "ptx/exec.h"

bool bh__ptx_lower_copy(bh__ptx_lowering *low); /* exec_copy.c */

/* exec_bulk.c */
/* The address in brackets, in a space that has 32-bit addresses only if it is of shared memory. */
bool bh__ptx_lower_async_place(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_space space,
                               bh__ptx_lowered_address *out);
/* An integer register of this many bytes. */
bool bh__ptx_is_register(const bh__ptx_lowering *low, const bh__ptx_operand *o, unsigned bytes);

static inline uint64_t bh__ptx_place_at(const bh__ptx_exec *x, const bh__ptx_lowered_address *p, unsigned l) {
    if (p->is32) {
        return (uint32_t)(((const bh__u32 *)bh__row(x, p->row))[l] + (uint32_t)p->offset);
    }
    return ((const bh__u64 *)bh__row(x, p->row))[l] + p->offset;
}

#endif
