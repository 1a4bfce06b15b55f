/* SPDX-License-Identifier: Apache-2.0 */
/* Special registers, and the addresses of variables and functions. */
#include <time.h>

#include "ptx/run/exec.h"

static uint64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static uint64_t lane_value(const bh__ptx_exec *x, unsigned sreg, unsigned l) {
    switch (sreg) {
    case SREG_LANEID:
        return l;
    case SREG_LANEMASK_EQ:
        return 1u << l;
    case SREG_LANEMASK_LE:
        return UINT32_MAX >> (31 - l);
    case SREG_LANEMASK_LT:
        return (1u << l) - 1;
    case SREG_LANEMASK_GE:
        return UINT32_MAX << l;
    case SREG_LANEMASK_GT:
        return UINT32_MAX << l << 1;
    default:
        (void)x;
        return 0;
    }
}

/* Without clusters every block is one. */
static uint64_t cluster_value(const bh__ptx_exec *x, unsigned sreg, unsigned n) {
    const bh__ptx_grid *g = x->grid;
    uint32_t size = g->cluster[0] != 0 ? g->cluster[n] : 1;
    switch (sreg) {
    case SREG_CLUSTERID:
        return x->block->id[n] / size;
    case SREG_NCLUSTERID:
        return g->grid[n] / size;
    case SREG_CLUSTER_CTAID:
        return x->block->id[n] % size;
    default: /* SREG_CLUSTER_NCTAID */
        return size;
    }
}

static uint64_t uniform_value(const bh__ptx_exec *x, unsigned sreg, unsigned component) {
    const bh__ptx_block *b = x->block;
    const bh__ptx_grid *g = x->grid;
    switch (sreg) {
    case SREG_NTID:
        return component < 3 ? g->block[component] : 0;
    case SREG_CTAID:
        return component < 3 ? b->id[component] : 0;
    case SREG_NCTAID:
        return component < 3 ? g->grid[component] : 0;
    case SREG_CLUSTERID:
    case SREG_NCLUSTERID:
    case SREG_CLUSTER_CTAID:
    case SREG_CLUSTER_NCTAID:
        return component < 3 ? cluster_value(x, sreg, component) : 0;
    case SREG_CLUSTER_CTARANK:
        return b->rank;
    case SREG_CLUSTER_NCTARANK:
        return b->cluster->count;
    case SREG_NSMID:
        return 1;
    case SREG_WARPID:
        return x->warp->index;
    case SREG_NWARPID:
        return 32;
    case SREG_GRIDID:
        return g->grid_id;
    case SREG_CLOCK:
    case SREG_CLOCK64:
        return now(CLOCK_MONOTONIC);
    case SREG_CLOCK_HI:
        return now(CLOCK_MONOTONIC) >> 32;
    case SREG_GLOBALTIMER:
    case SREG_GLOBALTIMER_LO:
        return now(CLOCK_REALTIME);
    case SREG_GLOBALTIMER_HI:
        return now(CLOCK_REALTIME) >> 32;
    case SREG_RESERVED_BEGIN:
    case SREG_RESERVED_0:
        return x->shared_base + x->reserved_base;
    case SREG_RESERVED_1:
        return x->shared_base + x->reserved_base + BH__PTX_RESERVED_SHARED / 2;
    case SREG_RESERVED_END:
        return x->shared_base + x->reserved_base + BH__PTX_RESERVED_SHARED;
    case SREG_RESERVED_CAP:
        return BH__PTX_RESERVED_SHARED;
    case SREG_ENVREG:
        return component == 1   ? g->workspace.base >> 32
               : component == 2 ? (uint32_t)g->workspace.base
                                : 0;
    case SREG_DYNAMIC_SMEM_SIZE:
        return g->dynamic_shared;
    case SREG_TOTAL_SMEM_SIZE:
    case SREG_AGGR_SMEM_SIZE:
        return x->shared_bytes;
    default:
        return 0;
    }
}

bool bh__ptx_run_sreg(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    unsigned sreg = (unsigned)i->imm;
    if (i->bytes == 0) {
        /* %is_explicit_cluster */
        bh__set_predicate(x, i->d, x->grid->cluster[0] != 0 ? UINT32_MAX : 0, mask);
        return true;
    }
    if (i->bytes == 8) {
        bh__u64 *pd = bh__row(x, i->d);
        uint64_t v = uniform_value(x, sreg, i->count);
        FOR_LANES(mask, pd[l] = v;);
        return true;
    }
    bh__u32 *pd = bh__row(x, i->d);
    if (sreg == SREG_TID && i->count < 3) {
        const uint32_t *tid = x->block->tid[i->count] + x->warp->index * LANES;
        FOR_LANES(mask, pd[l] = tid[l];);
    } else if (sreg == SREG_LANEID || (sreg >= SREG_LANEMASK_EQ && sreg <= SREG_LANEMASK_GT)) {
        FOR_LANES_IN_ORDER(mask) {
            pd[l] = (uint32_t)lane_value(x, sreg, l);
        }
    } else {
        uint32_t v = (uint32_t)uniform_value(x, sreg, i->count);
        FOR_LANES(mask, pd[l] = v;);
    }
    return true;
}

/* mov.u16: the low half of %tid and its like. */
bool bh__ptx_run_sreg16(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    bh__u32 *pd = bh__row(x, i->d);
    bh__ptx_run_sreg(x, i, mask);
    FOR_LANES(mask, pd[l] &= 0xffff;);
    return true;
}

static uint64_t address_of(const bh__ptx_exec *x, const bh__ptx_symbol *symbol) {
    if (symbol->kind == SYMBOL_FUNCTION) {
        return BH__PTX_WINDOW(WINDOW_CODE) + (uint64_t)symbol->function->index * 16;
    }
    const bh__ptx_var *var = symbol->var;
    switch (var->space) {
    case SPACE_SHARED:
        return x->shared_base + (uint64_t)(var->is_extern ? x->dynamic_base : var->offset);
    case SPACE_LOCAL:
        return x->stack + (uint64_t)var->offset;
    case SPACE_PARAM:
        /* Parameters of a kernel have a window; those of functions are in local memory. */
        return var->formal && x->frame_function->entry ? var->offset
                                                       : x->stack + (uint64_t)var->offset;
    default:
        return (uint64_t)(uintptr_t)x->block->image->variables[var->index];
    }
}

/* An unsized parameter: its register has the address of the argument. */
static bool run_reference(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const bh__ptx_symbol *symbol = i->extra;
    const bh__u64 *pa = bh__row(x, (int32_t)x->frame_function->regs[symbol->var->reg].row);
    FOR_LANES_IN_ORDER(mask) {
        uint64_t v = pa[l] + i->imm;
        if (i->bytes == 8) {
            ((bh__u64 *)bh__row(x, i->d))[l] = v;
        } else {
            ((bh__u32 *)bh__row(x, i->d))[l] = (uint32_t)v;
        }
    }
    return true;
}

bool bh__ptx_run_address(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const bh__ptx_symbol *symbol = i->extra;
    if (symbol->kind == SYMBOL_VAR && symbol->var->formal && symbol->var->unsized) {
        return run_reference(x, i, mask);
    }
    uint64_t v = address_of(x, i->extra) + i->imm;
    if (i->bytes == 8) {
        bh__u64 *pd = bh__row(x, i->d);
        FOR_LANES(mask, pd[l] = v;);
    } else {
        bh__u32 *pd = bh__row(x, i->d);
        FOR_LANES(mask, pd[l] = (uint32_t)v;);
    }
    return true;
}
