/* SPDX-License-Identifier: Apache-2.0 */
/* mapa and getctarank: addresses of the shared memory of other blocks of the cluster. */
#include "ptx/run/exec.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

static uint64_t get(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l) {
    return i->bytes == 8 ? ((const bh__u64 *)bh__row(x, i->a))[l]
                         : ((const bh__u32 *)bh__row(x, i->a))[l];
}

/* The offset in the window of shared memory. imm: where the window starts. */
static bool offset_of(bh__ptx_exec *x, const bh__ptx_code *i, unsigned l, uint64_t *out) {
    *out = get(x, i, l) - i->imm;
    if (*out >> BH__PTX_RANK_SHIFT < x->block->cluster->count) {
        return true;
    }
    return bh__ptx_fault_other(x, BH__PTX_FAULT_ADDRESS, l,
                               "address 0x%llx is not in the shared memory of the cluster",
                               (unsigned long long)get(x, i, l));
}

HANDLER(map_address) {
    const bh__u32 *ranks = bh__row(x, i->b);
    FOR_LANES_IN_ORDER(mask) {
        uint64_t offset;
        if (!offset_of(x, i, l, &offset)) {
            return false;
        }
        if (ranks[l] >= x->block->cluster->count) {
            return bh__ptx_fault_other(x, BH__PTX_FAULT_ADDRESS, l,
                                       "mapa to block %u of a cluster of %u", (unsigned)ranks[l],
                                       (unsigned)x->block->cluster->count);
        }
        uint64_t there =
            i->imm + ((uint64_t)ranks[l] << BH__PTX_RANK_SHIFT) + (offset & BH__PTX_RANK_MASK);
        if (i->bytes == 8) {
            ((bh__u64 *)bh__row(x, i->d))[l] = there;
        } else {
            ((bh__u32 *)bh__row(x, i->d))[l] = (uint32_t)there;
        }
    }
    return true;
}

HANDLER(get_rank) {
    bh__u32 *pd = bh__row(x, i->d);
    FOR_LANES_IN_ORDER(mask) {
        uint64_t offset;
        if (!offset_of(x, i, l, &offset)) {
            return false;
        }
        pd[l] = (uint32_t)(offset >> BH__PTX_RANK_SHIFT);
    }
    return true;
}

bool bh__ptx_pick_cluster(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bool generic = !HAS(insn, SHARED_CLUSTER);
    code->run = insn->op == OP_MAPA ? map_address : get_rank;
    code->bytes = (uint8_t)bh__ptx_bytes((bh__ptx_type)insn->types[0]);
    code->imm = generic ? BH__PTX_WINDOW(WINDOW_SHARED) : 0;
    return !generic || code->bytes == 8;
}
