/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for accesses out of bounds and for reads of uninitialised memory. */
#include <stdio.h>

#include "base/shadow.h"
#include "ptx/check/check.h"

/* The map and the marks of this many bytes are looked at as one range. */
enum { NEAR_BYTES = 1024 };

/* Returns how many of the `bytes` bytes at `offset` are in one buffer. *why: the map entry of the
 * first byte that is not. */
static uint64_t usable(const bh__ptx_range *range, uint64_t offset, uint64_t bytes, uint8_t *why) {
    uint64_t at = offset, end = offset + bytes;
    while (at < end) {
        uint8_t here = range->map[at / BH__MAP_SCALE];
        unsigned inside = here <= BH__MAP_WHOLE ? here : 0;
        if (at % BH__MAP_SCALE >= inside) {
            *why = here;
            break;
        }
        at = at / BH__MAP_SCALE * BH__MAP_SCALE + inside;
        if (inside < BH__MAP_WHOLE && at < end) {
            *why = BH__MAP_GAP;
            break;
        }
    }
    return (at < end ? at : end) - offset;
}

static bool reads(const bh__check_access *access) {
    return !(access->flags & ACCESS_WRITE) || access->flags & ACCESS_ATOMIC;
}

static bool writes(const bh__check_access *access) {
    return access->flags & ACCESS_WRITE;
}

/* ---- marks of global memory: blocks on other threads may set the same ones ---- */

typedef uint32_t __attribute__((may_alias)) half_word;
typedef uint64_t __attribute__((may_alias)) whole_word;

/* How many bytes to access at once. */
static inline unsigned step_at(const uint8_t *marks, uint64_t left) {
    uintptr_t at = (uintptr_t)marks;
    return (at & 7) == 0 && left >= 8 ? 8 : (at & 3) == 0 && left >= 4 ? 4 : 1;
}

static inline bool all_marked(const uint8_t *marks, uint64_t bytes) {
    bool all = true;
    for (unsigned step; all && bytes > 0; marks += step, bytes -= step) {
        step = step_at(marks, bytes);
        all = step == 8 ? __atomic_load_n((const whole_word *)marks, __ATOMIC_RELAXED) ==
                              UINT64_C(0x0101010101010101)
              : step == 4 ? __atomic_load_n((const half_word *)marks, __ATOMIC_RELAXED) ==
                                UINT32_C(0x01010101)
                          : __atomic_load_n(marks, __ATOMIC_RELAXED) == MARK_WRITTEN;
    }
    return all;
}

static inline void set_range(uint8_t *marks, uint64_t bytes) {
    for (unsigned step; bytes > 0; marks += step, bytes -= step) {
        step = step_at(marks, bytes);
        if (step == 8) {
            __atomic_store_n((whole_word *)marks, UINT64_C(0x0101010101010101), __ATOMIC_RELAXED);
        } else if (step == 4) {
            __atomic_store_n((half_word *)marks, UINT32_C(0x01010101), __ATOMIC_RELAXED);
        } else {
            __atomic_store_n(marks, MARK_WRITTEN, __ATOMIC_RELAXED);
        }
    }
}

/* ---- one lane, when something may be wrong ---- */

/* Names the variable that ends or begins within 64 bytes of the address, if there is one. */
static void name_variable(const bh__ptx_exec *x, uint64_t address, unsigned bytes, char *out,
                          size_t size) {
    const bh__ptx_image *image = x->block->image;
    for (size_t n = 0; n < image->range_count; n++) {
        const bh__ptx_range *r = &image->ranges[n];
        const char *name = x->module->variables[n].name;
        uint64_t end = r->base + r->size, stop = address + bytes;
        if (stop > end && address >= r->base && stop - end <= 64) {
            snprintf(out, size, ", %llu bytes past the end of variable %.60s of %llu bytes",
                     (unsigned long long)(stop - end), name, (unsigned long long)r->size);
            return;
        }
        if (address < r->base && r->base - address <= 64 && out[0] == 0) {
            snprintf(out, size, ", %llu bytes before variable %.60s of %llu bytes",
                     (unsigned long long)(r->base - address), name, (unsigned long long)r->size);
        }
    }
}

/* Of the thread. A frame that has grown ends with its last allocation. */
static uint32_t local_bytes(const bh__ptx_exec *x) {
    uint32_t used = x->stack + x->frame_function->local_used;
    return x->frame_function->stack_row != 0 ? x->local_end : used;
}

static bool report_unmapped(bh__ptx_exec *x, const bh__check_access *access, unsigned lane,
                            uint64_t generic, bool fits) {
    char what[160] = "";
    bh__ptx_fault_kind kind = BH__PTX_FAULT_ADDRESS;
    if (fits && generic >> BH__PTX_WINDOW_SHIFT == WINDOW_SHARED) {
        kind = BH__PTX_FAULT_BOUNDS;
        snprintf(what, sizeof what, ", beyond the block's %u bytes of shared memory",
                 (unsigned)x->shared_bytes);
    } else if (fits && generic >> BH__PTX_WINDOW_SHIFT == WINDOW_LOCAL) {
        kind = BH__PTX_FAULT_BOUNDS;
        snprintf(what, sizeof what, ", beyond the thread's %u bytes of local memory",
                 (unsigned)local_bytes(x));
    } else if (writes(access) && fits &&
               bh__ptx_at(x, lane, generic, access->bytes, false, NULL) != NULL) {
        kind = BH__PTX_FAULT_READ_ONLY;
        snprintf(what, sizeof what, ", which is read-only");
    } else if (fits) {
        name_variable(x, generic, access->bytes, what, sizeof what);
        kind = what[0] ? BH__PTX_FAULT_BOUNDS : BH__PTX_FAULT_ADDRESS;
    }
    bh__check_report_access(x, kind, lane, access, what);
    return false;
}

/* Returns the range that contains an address of global memory, or NULL. */
static const bh__ptx_range *range_of(bh__ptx_exec *x, uint64_t address) {
    bh__check_block *c = x->block->check;
    if (c->range == NULL || address - c->range->base >= c->range->size) {
        c->range = bh__ptx_range_at(x, address);
    }
    return c->range;
}

/* Global memory: the access must be inside one buffer and, if it reads, of written bytes. */
static bool check_buffer(bh__ptx_exec *x, const bh__ptx_range *range, bh__check_access *access,
                         unsigned lane) {
    uint64_t offset = access->address[lane] - range->base;
    uint8_t why = BH__MAP_GAP;
    access->canonical[lane] = (range->canonical != 0 ? range->canonical : range->base) + offset;
    if (range->map == NULL) {
        /* Constants are never written, so nothing races with them. */
        access->global |= (uint32_t)range->writable << lane;
        return true;
    }
    if (usable(range, offset, access->bytes, &why) < access->bytes) {
        bool freed = why == BH__MAP_FREED;
        bh__check_report_access(x, freed ? BH__PTX_FAULT_FREED : BH__PTX_FAULT_BOUNDS, lane, access,
                                freed ? ", in a buffer that was released"
                                      : ", outside of every buffer");
        return false;
    }
    bool unwritten = reads(access) && !all_marked(range->marks + offset, access->bytes);
    if (unwritten && access->loads) {
        access->undefined |= 1u << lane;
    } else if (unwritten) {
        bh__check_report_access(x, BH__PTX_FAULT_UNINITIALISED, lane, access,
                                ", where nothing was ever written");
    }
    if (writes(access)) {
        set_range(range->marks + offset, access->bytes);
    }
    access->global |= 1u << lane;
    return true;
}

/* Returns the memory that is accessed, or NULL if nothing is mapped there. */
static uint8_t *locate(bh__ptx_exec *x, const bh__check_access *access, unsigned lane,
                       uint64_t generic, const bh__ptx_range **range) {
    bool write = writes(access);
    uint64_t window = generic >> BH__PTX_WINDOW_SHIFT;
    if (window != WINDOW_GLOBAL) { /* of these, only parameters are read-only */
        write = write && window == WINDOW_PARAM;
        return bh__ptx_at(x, lane, generic, access->bytes, write, NULL);
    }
    *range = range_of(x, generic);
    bool fits = *range != NULL && (*range)->size - (generic - (*range)->base) >= access->bytes;
    return fits && ((*range)->writable || !write) ? (uint8_t *)(uintptr_t)generic : NULL;
}

static bool check_lane(bh__ptx_exec *x, bh__check_access *access, unsigned lane) {
    uint64_t generic, address = access->address[lane];
    bool fits = bh__ptx_generic(x, access->space, address, &generic);
    const bh__ptx_range *range = NULL;
    access->at[lane] = fits ? locate(x, access, lane, generic, &range) : NULL;
    if (access->at[lane] == NULL) {
        return report_unmapped(x, access, lane, generic, fits);
    }
    if ((address & (access->bytes - 1)) != 0) {
        bh__check_report_access(x, BH__PTX_FAULT_MISALIGNED, lane, access, "");
        return false;
    }
    uint64_t offset = generic & (BH__PTX_WINDOW(1) - 1);
    switch (generic >> BH__PTX_WINDOW_SHIFT) {
    case WINDOW_GLOBAL:
        return check_buffer(x, range, access, lane);
    case WINDOW_SHARED:
        if (offset >> BH__PTX_RANK_SHIFT != x->block->rank) {
            if (writes(access)) { /* of another block: only bounds are checked */
                bh__check_written(x, lane, generic, access->bytes);
            }
            return true;
        }
        access->shared |= 1u << lane;
        access->canonical[lane] = offset & BH__PTX_RANK_MASK;
        return true;
    case WINDOW_LOCAL: /* local to the thread, so no other thread can race */
        if (offset + access->bytes > local_bytes(x)) {
            return report_unmapped(x, access, lane, generic, true);
        }
        bh__check_local_marks(x, access, lane, offset);
        return true;
    default:
        return true;
    }
}

/* ---- all lanes at once, when nothing is wrong ---- */

typedef struct extent { /* of the addresses of all lanes */
    uint64_t low, high, unaligned;
} extent;

static extent extent_of(const bh__check_access *access, uint32_t mask) {
    extent e = {.low = UINT64_MAX};
    FOR_LANES(mask, uint64_t a = access->address[l]; e.low = a < e.low ? a : e.low;
              e.high = a > e.high ? a : e.high; e.unaligned |= a;);
    e.unaligned &= access->bytes - 1;
    return e;
}

static bool shadow_fine(const bh__ptx_range *range, const bh__check_access *access, uint32_t mask,
                        const extent *e) {
    uint64_t from = e->low - range->base, span = e->high + access->bytes - e->low;
    uint8_t why;
    if (span <= NEAR_BYTES) {
        return usable(range, from, span, &why) == span &&
               (!reads(access) || all_marked(range->marks + from, span));
    }
    FOR_LANES_IN_ORDER(mask) {
        uint64_t offset = access->address[l] - range->base;
        if (usable(range, offset, access->bytes, &why) < access->bytes ||
            (reads(access) && !all_marked(range->marks + offset, access->bytes))) {
            return false;
        }
    }
    return true;
}

static void set_marks(const bh__ptx_range *range, const bh__check_access *access, uint32_t mask,
                      const extent *e) {
    uint64_t span = e->high + access->bytes - e->low;
    if (span == (uint64_t)access->bytes * (unsigned)__builtin_popcount(mask)) {
        set_range(range->marks + (e->low - range->base), span);
        return;
    }
    FOR_LANES_IN_ORDER(mask) {
        set_range(range->marks + (access->address[l] - range->base), access->bytes);
    }
}

/* False: something may be wrong. */
static bool check_global(bh__ptx_exec *x, bh__check_access *access, uint32_t mask,
                         const extent *e) {
    const bh__ptx_range *range = range_of(x, e->low);
    if (range == NULL || e->high - range->base >= range->size ||
        range->size - (e->high - range->base) < access->bytes ||
        (writes(access) && !range->writable)) {
        return false;
    }
    if (range->map != NULL && !shadow_fine(range, access, mask, e)) {
        return false;
    }
    uint64_t shift = range->canonical != 0 ? range->canonical - range->base : 0;
    FOR_LANES(mask, access->at[l] = (uint8_t *)(uintptr_t)access->address[l];
              access->canonical[l] = access->address[l] + shift;);
    if (range->map != NULL && writes(access)) {
        set_marks(range, access, mask, e);
    }
    access->global = range->writable || range->map != NULL ? mask : 0;
    return true;
}

/* `base`: the address of the block's shared memory. */
static bool check_shared(bh__ptx_exec *x, bh__check_access *access, uint32_t mask, const extent *e,
                         uint64_t base) {
    if (e->low < base || e->high - base + access->bytes > x->shared_bytes) {
        return false;
    }
    FOR_LANES(mask, access->canonical[l] = access->address[l] - base;
              access->at[l] = x->shared + access->canonical[l];);
    access->shared = mask;
    return true;
}

static bool check_at_once(bh__ptx_exec *x, bh__check_access *access, uint32_t mask) {
    extent e = extent_of(access, mask);
    if (e.unaligned != 0 ||
        e.low >> BH__PTX_WINDOW_SHIFT != (e.high + access->bytes - 1) >> BH__PTX_WINDOW_SHIFT) {
        return false;
    }
    uint64_t window = e.low >> BH__PTX_WINDOW_SHIFT;
    switch (access->space) {
    case SPACE_GLOBAL:
    case SPACE_CONST:
        return window == WINDOW_GLOBAL && check_global(x, access, mask, &e);
    case SPACE_SHARED: /* names are constants, without the rank */
        return window == 0 && check_shared(x, access, mask, &e,
                                           e.low >> BH__PTX_RANK_SHIFT == 0 ? 0 : x->shared_base);
    case SPACE_CLUSTER:
        return window == 0 && check_shared(x, access, mask, &e, x->shared_base);
    case SPACE_GENERIC:
        return window == WINDOW_GLOBAL ? check_global(x, access, mask, &e)
               : window == WINDOW_SHARED
                   ? check_shared(x, access, mask, &e,
                                  BH__PTX_WINDOW(WINDOW_SHARED) + x->shared_base)
                   : false;
    default:
        return false;
    }
}

/* ---- all checks ---- */

static void touch(bh__ptx_exec *x, const bh__check_access *access) {
    if (access->global != 0 && !(access->flags & (ACCESS_STRONG | ACCESS_VOLATILE))) {
        x->block->check->touched[x->warp->index] =
            atomic_load_explicit(&x->check->now, memory_order_relaxed);
    }
}

void bh__check_addresses(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                         bh__check_access *access) {
    FOR_LANES(mask, access->address[l] = bh__ptx_address_at(x, i, i->a, i->imm, l););
}

uint8_t *bh__check_access_lane(bh__ptx_exec *x, unsigned lane, bh__ptx_space space,
                               uint64_t address, unsigned bytes, unsigned flags) {
    bh__check_access access;
    access.space = space;
    access.bytes = bytes;
    access.flags = (uint8_t)flags;
    access.store = NULL;
    access.loads = false;
    access.address[lane] = address;
    return bh__check_access_lanes(x, &access, 1u << lane) != 0 ? access.at[lane] : NULL;
}

uint32_t bh__check_access_lanes(bh__ptx_exec *x, bh__check_access *access, uint32_t mask) {
    uint32_t fine = mask;
    bool narrow = !bh__check_wide(x, access->flags);
    access->flags = (uint8_t)((access->flags & ~ACCESS_CLUSTER) | (narrow ? ACCESS_CTA : 0));
    access->global = access->shared = access->undefined = 0;
    if (!check_at_once(x, access, mask)) {
        FOR_LANES_IN_ORDER(mask) {
            fine &= ~((uint32_t)!check_lane(x, access, l) << l);
        }
    }
    access->global &= fine;
    access->shared &= fine;
    if (access->global != 0) {
        bh__check_races(x, access, access->global, false);
        touch(x, access);
    }
    if (access->shared != 0) {
        bh__check_races(x, access, access->shared, true);
        bh__check_shared_marks(x, access, access->shared);
    }
    return fine;
}
