/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies: what their units share. */
#ifndef BH_PTX_EXEC_ASYNC_H
#define BH_PTX_EXEC_ASYNC_H

#include "ptx/run/exec.h"

bool bh__ptx_lower_copy(bh__ptx_lowering *low); /* copy.c */

/* bulk.c */
/* The address in brackets, in a space that has 32-bit addresses only if it is of shared memory. */
bool bh__ptx_lower_async_place(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_space space,
                               bh__ptx_lowered_address *out);
/* An integer register of this many bytes. */
bool bh__ptx_is_register(const bh__ptx_lowering *low, const bh__ptx_operand *o, unsigned bytes);

/* With checks, in aligned pieces, which they understand. False: the copy is to be left out. */
bool bh__async_check(bh__ptx_exec *x, unsigned lane, bh__ptx_space space, uint64_t address,
                     uint32_t bytes, unsigned flags);
/* False: a fault. The destination and its mbarrier are in different blocks' shared memory. */
bool bh__async_same_block(bh__ptx_exec *x, unsigned lane, uint64_t to, uint64_t barrier);
/* False: a fault. The mask of a copy to several blocks names one that is not there, or none. */
bool bh__async_blocks_exist(bh__ptx_exec *x, unsigned lane, uint32_t blocks);

bool bh__ptx_lower_tensor(bh__ptx_lowering *low);     /* tensor/copy.c */
bool bh__ptx_lower_tensor_map(bh__ptx_lowering *low); /* tensor/change_map.c */

static inline uint64_t bh__ptx_place_at(const bh__ptx_exec *x, const bh__ptx_lowered_address *p,
                                        unsigned l) {
    if (p->is32) {
        return (uint32_t)(((const bh__u32 *)bh__row(x, p->row))[l] + (uint32_t)p->offset);
    }
    return ((const bh__u64 *)bh__row(x, p->row))[l] + p->offset;
}

#endif
