/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for accesses out of bounds and for reads of uninitialised memory. */
#include <stdio.h>
#include <string.h>

#include "base/shadow.h"
#include "ptx/check.h"

/* Returns flags many of the `bytes` bytes at `offset` are in one buffer. *why: the map entry of the
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

static bool fault_at(bh__ptx_exec *x, const bh__check_access *access, bh__ptx_fault_kind kind,
                     const char *what) {
    bh__ptx_fault_other(x, kind, access->lane, "%s of %u bytes at%s%s address 0x%llx%s",
                        access->flags & ACCESS_ATOMIC  ? "atomic operation"
                        : access->flags & ACCESS_WRITE ? "write"
                                                       : "read",
                        access->bytes, *bh__ptx_space_name(access->space) ? " " : "",
                        bh__ptx_space_name(access->space), (unsigned long long)access->address,
                        what);
    x->fault->address = access->address;
    x->fault->size = access->bytes;
    x->fault->write = access->flags & ACCESS_WRITE;
    x->fault->global = access->address >> BH__PTX_WINDOW_SHIFT == WINDOW_GLOBAL &&
                       access->space != SPACE_SHARED && access->space != SPACE_LOCAL &&
                       access->space != SPACE_PARAM;
    return false;
}

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

static bool fault_unmapped(bh__ptx_exec *x, const bh__check_access *access, uint64_t generic,
                           bool fits) {
    char what[160] = "";
    bool write = access->flags & ACCESS_WRITE;
    bh__ptx_fault_kind kind = BH__PTX_FAULT_ADDRESS;
    if (fits && generic >> BH__PTX_WINDOW_SHIFT == WINDOW_SHARED) {
        kind = BH__PTX_FAULT_BOUNDS;
        snprintf(what, sizeof what, ", beyond the block's %u bytes of shared memory",
                 (unsigned)x->shared_bytes);
    } else if (fits && generic >> BH__PTX_WINDOW_SHIFT == WINDOW_LOCAL) {
        kind = BH__PTX_FAULT_BOUNDS;
        snprintf(what, sizeof what, ", beyond the thread's %u bytes of local memory",
                 (unsigned)(x->stack + x->frame_function->local_used));
    } else if (write && fits &&
               bh__ptx_at(x, access->lane, generic, access->bytes, false, NULL) != NULL) {
        kind = BH__PTX_FAULT_READ_ONLY;
        snprintf(what, sizeof what, ", which is read-only");
    } else if (fits) {
        name_variable(x, generic, access->bytes, what, sizeof what);
        kind = what[0] ? BH__PTX_FAULT_BOUNDS : BH__PTX_FAULT_ADDRESS;
    }
    return fault_at(x, access, kind, what);
}

/* Global memory: the access must be inside one buffer and, if it reads, of written bytes. */
static bool check_buffer(bh__ptx_exec *x, const bh__ptx_range *range, bh__check_access *access) {
    uint64_t offset = access->address - range->base;
    uint8_t why = BH__MAP_GAP;
    access->canonical = (range->canonical != 0 ? range->canonical : range->base) + offset;
    if (range->map == NULL) {
        return true;
    }
    if (usable(range, offset, access->bytes, &why) < access->bytes) {
        return why == BH__MAP_FREED
                   ? fault_at(x, access, BH__PTX_FAULT_FREED, ", in a buffer that was released")
                   : fault_at(x, access, BH__PTX_FAULT_BOUNDS, ", outside of every buffer");
    }
    uint8_t *marks = range->marks + offset;
    if (!(access->flags & ACCESS_WRITE) || access->flags & ACCESS_ATOMIC) {
        if (memchr(marks, 0, access->bytes) != NULL) {
            return fault_at(x, access, BH__PTX_FAULT_UNINITIALISED,
                            ", where nothing was ever written");
        }
    }
    return true;
}

/* Returns the range that contains the whole access, or NULL if there is none or it is read-only. */
static const bh__ptx_range *find_range(bh__ptx_exec *x, uint64_t address, unsigned bytes,
                                       bool write) {
    const bh__ptx_range *range = x->check->range;
    if (range == NULL || address - range->base >= range->size) {
        range = bh__ptx_range_at(x, address);
        if (range == NULL) {
            return NULL;
        }
        x->check->range = range;
    }
    bool fits = range->size - (address - range->base) >= bytes;
    return fits && (range->writable || !write) ? range : NULL;
}

/* Returns the memory that is accessed, or NULL if nothing is mapped there. */
static uint8_t *locate(bh__ptx_exec *x, bh__check_access *access, uint64_t generic, bool write,
                       const bh__ptx_range **range) {
    if (generic >> BH__PTX_WINDOW_SHIFT != WINDOW_GLOBAL) {
        return bh__ptx_at(x, access->lane, generic, access->bytes, write, NULL);
    }
    *range = find_range(x, generic, access->bytes, write);
    return *range != NULL ? (uint8_t *)(uintptr_t)generic : NULL;
}

bool bh__check_access_lane(bh__ptx_exec *x, bh__check_access *access) {
    bool write = access->flags & ACCESS_WRITE;
    uint64_t generic;
    bool fits = bh__ptx_generic(x, access->space, access->address, &generic);
    const bh__ptx_range *range = NULL;
    access->at = fits ? locate(x, access, generic, write, &range) : NULL;
    if (access->at == NULL) {
        return fault_unmapped(x, access, generic, fits);
    }
    if ((access->address & (access->bytes - 1)) != 0) {
        return bh__ptx_fault_access(x, BH__PTX_FAULT_MISALIGNED, access->lane, access->address,
                                    access->bytes, write, bh__ptx_space_name(access->space));
    }
    switch (generic >> BH__PTX_WINDOW_SHIFT) {
    case WINDOW_GLOBAL:
        if (!check_buffer(x, range, access)) {
            return false;
        }
        if (!range->writable && range->map == NULL) {
            return true; /* constants are never written */
        }
        break;
    case WINDOW_SHARED:
        access->shared = true;
        access->canonical = generic - BH__PTX_WINDOW(WINDOW_SHARED);
        break;
    case WINDOW_LOCAL: { /* local to the thread, so no other thread can race */
        uint64_t end = generic - BH__PTX_WINDOW(WINDOW_LOCAL) + access->bytes;
        return end <= x->stack + x->frame_function->local_used ||
               fault_unmapped(x, access, generic, true);
    }
    default:
        return true;
    }
    if (!bh__check_race(x, access)) {
        return false;
    }
    if (write && range != NULL && range->marks != NULL) {
        memset(range->marks + (access->address - range->base), 1, access->bytes);
    }
    if (range != NULL && !(access->flags & (ACCESS_STRONG | ACCESS_VOLATILE))) {
        x->block->check->touched[x->warp->index * LANES + access->lane] = x->check->now;
    }
    if (access->flags & (ACCESS_STRONG | ACCESS_VOLATILE) &&
        (!write || access->flags & ACCESS_ATOMIC)) {
        bh__check_acquire(x, access->lane);
    }
    return true;
}
