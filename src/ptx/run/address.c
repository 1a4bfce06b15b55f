/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: where each lane's access goes in this process, and whether it may go there. */
#include "ptx/check/check.h"

static const bh__ptx_range *find_range(const bh__ptx_range *ranges, size_t count,
                                       uint64_t address) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].base <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || address - ranges[low - 1].base >= ranges[low - 1].size) {
        return NULL;
    }
    return &ranges[low - 1];
}

const bh__ptx_range *bh__ptx_range_at(const bh__ptx_exec *x, uint64_t address) {
    const bh__ptx_memory *memory = x->grid->memory;
    const bh__ptx_image *image = x->block->image;
    const bh__ptx_range *r = NULL;
    if (memory != NULL) {
        r = find_range(memory->ranges, memory->count, address);
    }
    if (r == NULL) {
        r = find_range(image->ranges, image->range_count, address);
    }
    if (r == NULL) {
        r = find_range(&x->grid->workspace, 1, address);
    }
    if (r == NULL && x->grid->heap != NULL) {
        r = find_range(bh__ptx_heap_range(x->grid->heap), 1, address);
    }
    return r;
}

static const bh__ptx_range *find_global(bh__ptx_exec *x, uint64_t address) {
    const bh__ptx_range *r = bh__ptx_range_at(x, address);
    if (r != NULL) {
        x->range_base = r->base;
        x->range_size = r->size;
        x->range_writable = r->writable;
    }
    return r;
}

static bool inside(uint64_t offset, uint64_t bytes, uint64_t size) {
    return offset < size && size - offset >= bytes;
}

/* The block whose shared memory an offset in the window is in; NULL: there is none. */
static const bh__ptx_block *block_of(const bh__ptx_exec *x, uint64_t offset) {
    uint64_t rank = offset >> BH__PTX_RANK_SHIFT;
    const bh__ptx_cluster *cluster = x->block->cluster;
    return rank < cluster->count ? cluster->blocks[rank] : NULL;
}

uint8_t *bh__ptx_at(bh__ptx_exec *x, unsigned lane, uint64_t address, uint64_t bytes, bool write,
                    uint64_t *left) {
    uint64_t offset = address & ((UINT64_C(1) << BH__PTX_WINDOW_SHIFT) - 1), size = 0;
    uint8_t *base = NULL;
    switch (address >> BH__PTX_WINDOW_SHIFT) {
    case WINDOW_GLOBAL: {
        const bh__ptx_range *r = find_global(x, address);
        if (r == NULL || (write && !r->writable)) {
            return NULL;
        }
        offset = address - r->base;
        size = r->size;
        base = (uint8_t *)(uintptr_t)r->base;
        break;
    }
    case WINDOW_SHARED: {
        const bh__ptx_block *b = block_of(x, offset);
        offset &= BH__PTX_RANK_MASK;
        base = b == NULL ? NULL : b->shared;
        size = b == NULL || b->done ? 0 : b->x.shared_bytes;
        break;
    }
    case WINDOW_LOCAL:
        size = x->local_end;
        if (size) base = x->warp->local + (size_t)lane * x->warp->local_stride;
        break;
    case WINDOW_PARAM:
        base = (uint8_t *)(uintptr_t)x->grid->params;
        size = write ? 0 : x->grid->kernel->param_bytes;
        break;
    default:
        break;
    }
    if (!inside(offset, bytes, size)) {
        return NULL;
    }
    if (left != NULL) {
        *left = size - offset;
    }
    if (write && x->check != NULL) {
        bh__check_written(x, lane, address, bytes);
    }
    return base + offset;
}

const char *bh__ptx_space_name(bh__ptx_space space) {
    static const char *const names[] = {"",      "global",    "constant",         "shared",
                                        "local", "parameter", "cluster's shared", ""};
    return names[space];
}

bool bh__ptx_generic(const bh__ptx_exec *x, bh__ptx_space space, uint64_t address, uint64_t *out) {
    uint64_t window = 0;
    switch (space) {
    case SPACE_SHARED: {
        uint64_t own = address & BH__PTX_RANK_MASK;
        *out = BH__PTX_WINDOW(WINDOW_SHARED) + x->shared_base + own;
        return address == own || address == x->shared_base + own;
    }
    case SPACE_CLUSTER:
        window = WINDOW_SHARED;
        break;
    case SPACE_LOCAL:
        window = WINDOW_LOCAL;
        break;
    case SPACE_PARAM:
        window = x->frame_function->entry ? WINDOW_PARAM : WINDOW_LOCAL;
        break;
    default:
        break;
    }
    *out = address + BH__PTX_WINDOW(window);
    return space == SPACE_GENERIC || address >> BH__PTX_WINDOW_SHIFT == 0;
}

/* Shared memory of a block of the cluster that has ended. */
static bool is_of_ended(const bh__ptx_exec *x, uint64_t generic) {
    const bh__ptx_block *b = NULL;
    if (generic >> BH__PTX_WINDOW_SHIFT == WINDOW_SHARED) {
        b = block_of(x, generic - BH__PTX_WINDOW(WINDOW_SHARED));
    }
    return b != NULL && b->done;
}

uint8_t *bh__ptx_resolve_lane(bh__ptx_exec *x, unsigned lane, bh__ptx_space space, uint64_t address,
                              uint32_t bytes, uint32_t align, bool write) {
    uint64_t generic;
    bool fits = bh__ptx_generic(x, space, address, &generic);
    uint8_t *p = fits ? bh__ptx_at(x, lane, generic, bytes, write, NULL) : NULL;
    if (p == NULL && fits && is_of_ended(x, generic)) {
        bh__ptx_fault_other(
            x, BH__PTX_FAULT_ADDRESS, lane,
            "%s of %u bytes of the shared memory of the block of rank %u of the "
            "cluster, which has ended",
            write ? "write" : "read", (unsigned)bytes,
            (unsigned)((generic - BH__PTX_WINDOW(WINDOW_SHARED)) >> BH__PTX_RANK_SHIFT));
        return NULL;
    }
    if (p == NULL) {
        bool readable = write && fits && bh__ptx_at(x, lane, generic, bytes, false, NULL) != NULL;
        bh__ptx_fault_access(x, readable ? BH__PTX_FAULT_READ_ONLY : BH__PTX_FAULT_ADDRESS, lane,
                             address, bytes, write, bh__ptx_space_name(space));
        return NULL;
    }
    if ((address & (align - 1)) != 0) {
        bh__ptx_fault_access(x, BH__PTX_FAULT_MISALIGNED, lane, address, bytes, write,
                             bh__ptx_space_name(space));
        return NULL;
    }
    return p;
}

/* The common case in one loop without branches: all lanes access the same range. */
static inline bool resolve_fast(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                                int32_t row, uint64_t offset, unsigned bytes, uint64_t base,
                                uint64_t size, uint8_t *to, size_t stride, uint8_t *out[LANES]) {
    if (size < bytes) {
        return false;
    }
    uint64_t bad = 0, last = size - bytes;
    FOR_LANES(mask, uint64_t address = bh__ptx_address_at(x, i, row, offset, l);
              uint64_t at = address - base; bad |= (uint64_t)(at > last) | (address & (bytes - 1));
              out[l] = (uint8_t *)((uintptr_t)to + at + l * stride););
    return bad == 0;
}

/* In the range of the last access, else in that of the first lane's address. */
static bool resolve_global(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, int32_t row,
                           uint64_t offset, unsigned bytes, bool write, uint8_t *out[LANES]) {
    uint64_t first = bh__ptx_address_at(x, i, row, offset, (unsigned)__builtin_ctz(mask));
    if (!inside(first - x->range_base, bytes, x->range_size) && find_global(x, first) == NULL) {
        return false;
    }
    return (x->range_writable || !write) &&
           resolve_fast(x, i, mask, row, offset, bytes, x->range_base, x->range_size,
                        (uint8_t *)(uintptr_t)x->range_base, 0, out);
}

static bool resolve_all(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, bh__ptx_space space,
                        int32_t row, uint64_t offset, unsigned bytes, bool write,
                        uint8_t *out[LANES]) {
    switch (space) {
    case SPACE_SHARED: /* names are constants, without the rank */
        return resolve_fast(x, i, mask, row, offset, bytes, row < 0 ? 0 : x->shared_base,
                            x->shared_bytes, x->shared, 0, out);
    case SPACE_LOCAL:
        return resolve_fast(x, i, mask, row, offset, bytes, 0, x->local_end, x->warp->local,
                            x->warp->local_stride, out);
    case SPACE_PARAM:
    case SPACE_CLUSTER:
        return false;
    default:
        return resolve_global(x, i, mask, row, offset, bytes, write, out);
    }
}

/* Whether the addresses of all lanes are `first` and grow by `step` from lane to lane. */
WIDE_VECTORS static bool have_step(const bh__ptx_exec *x, const bh__ptx_code *i, int32_t row,
                                   uint64_t first, uint64_t step) {
    uint64_t differs = 0;
    if (i->flags & FLAG_ADDRESS32) {
        const bh__u32 *a = bh__row(x, row);
        uint32_t from = a[0], by = (uint32_t)step, narrow = 0;
        for (unsigned l = 0; l < LANES; l++) {
            narrow |= a[l] ^ (from + l * by);
        }
        return narrow == 0 && first + (LANES - 1) * step <= UINT32_MAX;
    }
    const bh__u64 *a = bh__row(x, row);
    uint64_t from = a[0];
    for (unsigned l = 0; l < LANES; l++) {
        differs |= a[l] ^ (from + l * step);
    }
    return differs == 0;
}

uint8_t *bh__ptx_resolve_warp(bh__ptx_exec *x, const bh__ptx_code *i, bh__ptx_space space,
                              unsigned bytes, bool write, bool *same) {
    uint64_t first = bh__ptx_address_at(x, i, i->a, i->imm, 0);
    uint64_t step = bh__ptx_address_at(x, i, i->a, i->imm, 1) - first;
    uint64_t total = step == 0 ? bytes : (uint64_t)LANES * bytes;
    if ((step != bytes && (step != 0 || write)) || (first & (bytes - 1)) != 0 ||
        !have_step(x, i, i->a, first, step)) {
        return NULL;
    }
    *same = step == 0;
    if (space == SPACE_SHARED) {
        uint64_t at = first - (i->a < 0 ? 0 : x->shared_base);
        return inside(at, total, x->shared_bytes) ? x->shared + at : NULL;
    }
    if (!inside(first - x->range_base, total, x->range_size) && find_global(x, first) == NULL) {
        return NULL;
    }
    bool fits = inside(first - x->range_base, total, x->range_size);
    return fits && (x->range_writable || !write) ? (uint8_t *)(uintptr_t)first : NULL;
}

bool bh__ptx_resolve(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, bh__ptx_space space,
                     int32_t row, uint64_t offset, unsigned bytes, bool write,
                     uint8_t *out[LANES]) {
    if (x->check == NULL && resolve_all(x, i, mask, space, row, offset, bytes, write, out)) {
        return true;
    }
    FOR_LANES_IN_ORDER(mask) {
        out[l] = bh__ptx_resolve_lane(x, l, space, bh__ptx_address_at(x, i, row, offset, l), bytes,
                                      bytes, write);
        if (out[l] == NULL) {
            return false;
        }
    }
    return true;
}
