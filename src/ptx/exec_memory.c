/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores. Every address is checked; every aligned access is atomic. */
#include <string.h>

#include "ptx/check.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

bh__ptx_space bh__ptx_insn_space(const bh__ptx_insn *insn) {
    return HAS(insn, GLOBAL)   ? SPACE_GLOBAL
           : HAS(insn, SHARED) ? SPACE_SHARED
           : HAS(insn, LOCAL)  ? SPACE_LOCAL
           : HAS(insn, PARAM)  ? SPACE_PARAM
           : HAS(insn, CONST)  ? SPACE_CONST
                               : SPACE_GENERIC;
}

/* Here every block is a cluster. */
static bool is_narrow(const bh__ptx_insn *insn) {
    return HAS(insn, CTA) || HAS(insn, CLUSTER);
}

uint32_t bh__ptx_access_flags(const bh__ptx_insn *insn) {
    bool acquire = HAS(insn, ACQUIRE) || HAS(insn, ACQ_REL);
    bool release = HAS(insn, RELEASE) || HAS(insn, ACQ_REL);
    bool strong = acquire || release || HAS(insn, RELAXED);
    return (acquire ? ACCESS_ACQUIRE : 0) | (release ? ACCESS_RELEASE : 0) |
           (strong ? ACCESS_STRONG : 0) | (HAS(insn, VOLATILE) ? ACCESS_VOLATILE : 0) |
           (is_narrow(insn) ? ACCESS_CTA : 0);
}

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

static uint32_t local_limit(const bh__ptx_exec *x) {
    return x->stack + x->frame_function->local_bytes;
}

static bool inside(uint64_t offset, uint64_t bytes, uint64_t size) {
    return offset < size && size - offset >= bytes;
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
    case WINDOW_SHARED:
        base = x->shared;
        size = x->shared_bytes;
        break;
    case WINDOW_LOCAL:
        size = local_limit(x);
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
    return base + offset;
}

const char *bh__ptx_space_name(bh__ptx_space space) {
    static const char *const names[] = {"",      "global",    "constant", "shared",
                                        "local", "parameter", ""};
    return names[space];
}

bool bh__ptx_generic(const bh__ptx_exec *x, bh__ptx_space space, uint64_t address, uint64_t *out) {
    uint64_t window = 0;
    switch (space) {
    case SPACE_SHARED:
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

/* The slow path for one lane; the fault says why the address is not valid. */
static uint8_t *resolve_one(bh__ptx_exec *x, unsigned lane, bh__ptx_space space, uint64_t address,
                            unsigned bytes, bool write) {
    uint64_t generic;
    bool fits = bh__ptx_generic(x, space, address, &generic);
    uint8_t *p = fits ? bh__ptx_at(x, lane, generic, bytes, write, NULL) : NULL;
    if (p == NULL) {
        bool readable = write && fits && bh__ptx_at(x, lane, generic, bytes, false, NULL) != NULL;
        bh__ptx_fault_access(x, readable ? BH__PTX_FAULT_READ_ONLY : BH__PTX_FAULT_ADDRESS, lane,
                             address, bytes, write, bh__ptx_space_name(space));
        return NULL;
    }
    if ((address & (bytes - 1)) != 0) {
        bh__ptx_fault_access(x, BH__PTX_FAULT_MISALIGNED, lane, address, bytes, write,
                             bh__ptx_space_name(space));
        return NULL;
    }
    return p;
}

static inline uint64_t address_at(const bh__ptx_exec *x, const bh__ptx_code *i, int32_t row,
                                  uint64_t offset, unsigned l) {
    if (i->flags & FLAG_ADDRESS32) {
        return (uint32_t)(((const bh__u32 *)bh__row(x, row))[l] + (uint32_t)offset);
    }
    return ((const bh__u64 *)bh__row(x, row))[l] + offset;
}

/* The common case in one loop without branches: all lanes access the same range. */
static inline bool resolve_fast(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                                int32_t row, uint64_t offset, unsigned bytes, uint64_t base,
                                uint64_t size, uint8_t *to, size_t stride, uint8_t *out[LANES]) {
    if (size < bytes) {
        return false;
    }
    uint64_t bad = 0, last = size - bytes;
    FOR_LANES(mask, uint64_t address = address_at(x, i, row, offset, l);
              uint64_t at = address - base; bad |= (uint64_t)(at > last) | (address & (bytes - 1));
              out[l] = (uint8_t *)((uintptr_t)to + at + l * stride););
    return bad == 0;
}

bool bh__ptx_resolve(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, bh__ptx_space space,
                     int32_t row, uint64_t offset, unsigned bytes, bool write,
                     uint8_t *out[LANES]) {
    switch (space) {
    case SPACE_SHARED:
        if (resolve_fast(x, i, mask, row, offset, bytes, 0, x->shared_bytes, x->shared, 0, out)) {
            return true;
        }
        break;
    case SPACE_LOCAL:
        if (resolve_fast(x, i, mask, row, offset, bytes, 0, local_limit(x), x->warp->local,
                         x->warp->local_stride, out)) {
            return true;
        }
        break;
    case SPACE_PARAM:
        break;
    default:
        if ((x->range_writable || !write) &&
            resolve_fast(x, i, mask, row, offset, bytes, x->range_base, x->range_size,
                         (uint8_t *)(uintptr_t)x->range_base, 0, out)) {
            return true;
        }
        break;
    }
    FOR_LANES_IN_ORDER(mask) {
        out[l] = resolve_one(x, l, space, address_at(x, i, row, offset, l), bytes, write);
        if (out[l] == NULL) {
            return false;
        }
    }
    return true;
}

#define LOAD(T, p)     __atomic_load_n((const T *)(const void *)(p), __ATOMIC_RELAXED)
#define STORE(T, p, v) __atomic_store_n((T *)(void *)(p), (T)(v), __ATOMIC_RELAXED)

typedef uint8_t __attribute__((may_alias)) a8;
typedef uint16_t __attribute__((may_alias)) a16;
typedef uint32_t __attribute__((may_alias)) a32;
typedef uint64_t __attribute__((may_alias)) a64;

#define LOAD_LANES(R, T, cast)                                                                     \
    do {                                                                                           \
        R *pd = bh__row(x, row);                                                                   \
        FOR_LANES_IN_ORDER(mask) {                                                                 \
            pd[l] = (R)(cast)LOAD(T, p[l] + at);                                                   \
        }                                                                                          \
    } while (0)

static void load_rows(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, int32_t row,
                      uint8_t *const p[LANES], unsigned at) {
    unsigned key =
        i->bytes | (i->flags & FLAG_SIGNED ? 16u : 0) | (i->flags & FLAG_WIDE_D ? 32u : 0);
    switch (key) {
    case 1:
        LOAD_LANES(bh__u32, a8, uint8_t);
        break;
    case 2:
        LOAD_LANES(bh__u32, a16, uint16_t);
        break;
    case 4:
    case 4 | 16:
        LOAD_LANES(bh__u32, a32, uint32_t);
        break;
    case 1 | 16:
        LOAD_LANES(bh__u32, a8, int8_t);
        break;
    case 2 | 16:
        LOAD_LANES(bh__u32, a16, int16_t);
        break;
    case 1 | 32:
        LOAD_LANES(bh__u64, a8, uint8_t);
        break;
    case 2 | 32:
        LOAD_LANES(bh__u64, a16, uint16_t);
        break;
    case 4 | 32:
        LOAD_LANES(bh__u64, a32, uint32_t);
        break;
    case 1 | 16 | 32:
        LOAD_LANES(bh__u64, a8, int8_t);
        break;
    case 2 | 16 | 32:
        LOAD_LANES(bh__u64, a16, int16_t);
        break;
    case 4 | 16 | 32:
        LOAD_LANES(bh__u64, a32, int32_t);
        break;
    default:
        LOAD_LANES(bh__u64, a64, uint64_t);
        break;
    }
}

#define STORE_LANES(R, T)                                                                          \
    do {                                                                                           \
        const R *pa = bh__row(x, row);                                                             \
        FOR_LANES_IN_ORDER(mask) {                                                                 \
            STORE(T, p[l] + at, pa[l]);                                                            \
        }                                                                                          \
    } while (0)

static void store_rows(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, int32_t row,
                       uint8_t *const p[LANES], unsigned at) {
    switch (i->bytes | (i->flags & FLAG_WIDE_A ? 32u : 0)) {
    case 1:
        STORE_LANES(bh__u32, a8);
        break;
    case 2:
        STORE_LANES(bh__u32, a16);
        break;
    case 4:
        STORE_LANES(bh__u32, a32);
        break;
    case 1 | 32:
        STORE_LANES(bh__u64, a8);
        break;
    case 2 | 32:
        STORE_LANES(bh__u64, a16);
        break;
    case 4 | 32:
        STORE_LANES(bh__u64, a32);
        break;
    default:
        STORE_LANES(bh__u64, a64);
        break;
    }
}

/* Loads and stores with checks: lane by lane, so that each sees the accesses before it. */
static bool load_checked(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                         bh__ptx_space space) {
    uint8_t *p[LANES];
    const int32_t *rows = i->extra;
    FOR_LANES_IN_ORDER(mask) {
        bh__check_access access = {.lane = l,
                                   .space = space,
                                   .address = address_at(x, i, i->a, i->imm, l),
                                   .bytes = (unsigned)i->bytes * i->count,
                                   .flags = (uint8_t)i->target};
        if (!bh__check_access_lane(x, &access)) {
            return false;
        }
        p[l] = access.at;
    }
    for (unsigned n = 0; n < i->count; n++) {
        load_rows(x, i, mask, rows[n], p, n * i->bytes);
    }
    return true;
}

static bool store_checked(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                          bh__ptx_space space) {
    uint8_t *p[LANES], value[64];
    const int32_t *rows = i->extra;
    if (i->target & ACCESS_RELEASE) {
        bh__check_fence(x, mask, !(i->target & ACCESS_CTA));
    }
    FOR_LANES_IN_ORDER(mask) {
        for (unsigned n = 0; n < i->count; n++) {
            const uint8_t *row = bh__row(x, rows[n]);
            memcpy(value + n * i->bytes, row + l * (i->flags & FLAG_WIDE_A ? 8u : 4u), i->bytes);
        }
        bh__check_access access = {.lane = l,
                                   .space = space,
                                   .address = address_at(x, i, i->a, i->imm, l),
                                   .bytes = (unsigned)i->bytes * i->count,
                                   .flags = (uint8_t)i->target | ACCESS_WRITE,
                                   .value = value};
        if (!bh__check_access_lane(x, &access)) {
            return false;
        }
        p[l] = access.at;
        for (unsigned n = 0; n < i->count; n++) {
            store_rows(x, i, 1u << l, rows[n], p, n * i->bytes);
        }
    }
    return true;
}

/* `extra`: rows of the vector; `target`: ACCESS_... */
static inline bool load_from(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                             bh__ptx_space space) {
    uint8_t *p[LANES];
    const int32_t *rows = i->extra;
    if (x->check != NULL) {
        return load_checked(x, i, mask, space);
    }
    if (!bh__ptx_resolve(x, i, mask, space, i->a, i->imm, (unsigned)i->bytes * i->count, false,
                         p)) {
        return false;
    }
    for (unsigned n = 0; n < i->count; n++) {
        load_rows(x, i, mask, rows[n], p, n * i->bytes);
    }
    if (i->target & ACCESS_ACQUIRE) {
        bh__fence();
    }
    return true;
}

static inline bool store_to(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                            bh__ptx_space space) {
    uint8_t *p[LANES];
    const int32_t *rows = i->extra;
    if (x->check != NULL) {
        return store_checked(x, i, mask, space);
    }
    if (!bh__ptx_resolve(x, i, mask, space, i->a, i->imm, (unsigned)i->bytes * i->count, true, p)) {
        return false;
    }
    if (i->target & ACCESS_RELEASE) {
        bh__fence();
    }
    for (unsigned n = 0; n < i->count; n++) {
        store_rows(x, i, mask, rows[n], p, n * i->bytes);
    }
    return true;
}

HANDLER(load_generic) {
    return load_from(x, i, mask, SPACE_GENERIC);
}
HANDLER(load_global) {
    return load_from(x, i, mask, SPACE_GLOBAL);
}
HANDLER(load_const) {
    return load_from(x, i, mask, SPACE_CONST);
}
HANDLER(load_shared) {
    return load_from(x, i, mask, SPACE_SHARED);
}
HANDLER(load_local) {
    return load_from(x, i, mask, SPACE_LOCAL);
}
HANDLER(load_param) {
    return load_from(x, i, mask, SPACE_PARAM);
}
HANDLER(store_generic) {
    return store_to(x, i, mask, SPACE_GENERIC);
}
HANDLER(store_global) {
    return store_to(x, i, mask, SPACE_GLOBAL);
}
HANDLER(store_shared) {
    return store_to(x, i, mask, SPACE_SHARED);
}
HANDLER(store_local) {
    return store_to(x, i, mask, SPACE_LOCAL);
}
HANDLER(store_param) {
    return store_to(x, i, mask, SPACE_PARAM);
}

/* A kernel's parameter by name: verified at load time, and the same for every lane. */
HANDLER(load_entry) {
    const uint8_t *params = (const uint8_t *)x->grid->params + i->imm;
    const int32_t *rows = i->extra;
    for (unsigned n = 0; n < i->count; n++) {
        uint64_t v = 0;
        memcpy(&v, params + n * i->bytes, i->bytes);
        if (i->flags & FLAG_SIGNED) {
            unsigned shift = 64 - 8u * i->bytes;
            v = (uint64_t)((int64_t)(v << shift) >> shift);
        }
        if (i->flags & FLAG_WIDE_D) {
            bh__u64 *pd = bh__row(x, rows[n]);
            FOR_LANES(mask, pd[l] = v;);
        } else {
            bh__u32 *pd = bh__row(x, rows[n]);
            FOR_LANES(mask, pd[l] = (uint32_t)v;);
        }
    }
    return true;
}

static void frame_pointers(const bh__ptx_exec *x, const bh__ptx_code *i, uint8_t *p[LANES]) {
    uint8_t *base = x->warp->local + x->stack + i->imm;
    for (unsigned l = 0; l < LANES; l++) {
        p[l] = base + (size_t)l * x->warp->local_stride;
    }
}

/* A .param variable of a function, by name: it is in the frame. */
HANDLER(load_frame) {
    uint8_t *p[LANES];
    const int32_t *rows = i->extra;
    frame_pointers(x, i, p);
    for (unsigned n = 0; n < i->count; n++) {
        load_rows(x, i, mask, rows[n], p, n * i->bytes);
    }
    return true;
}

HANDLER(store_frame) {
    uint8_t *p[LANES];
    const int32_t *rows = i->extra;
    frame_pointers(x, i, p);
    for (unsigned n = 0; n < i->count; n++) {
        store_rows(x, i, mask, rows[n], p, n * i->bytes);
    }
    return true;
}

HANDLER(fence) {
    bh__fence();
    if (x->check != NULL) {
        bh__check_fence(x, mask, !(i->target & ACCESS_CTA));
    }
    return true;
}

static bool check_copy(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const bh__u32 *sizes = i->b == NO_ROW ? NULL : bh__row(x, i->b);
    const bh__u64 *from = bh__row(x, i->a);
    FOR_LANES_IN_ORDER(mask) {
        bh__check_access to = {.lane = l,
                               .space = SPACE_SHARED,
                               .address = address_at(x, i, i->d, i->target, l),
                               .bytes = i->bytes,
                               .flags = ACCESS_WRITE};
        bh__check_access source = {
            .lane = l, .space = SPACE_GLOBAL, .address = from[l] + i->imm, .bytes = i->bytes};
        if (((sizes == NULL || sizes[l] > 0) && !bh__check_access_lane(x, &source)) ||
            !bh__check_access_lane(x, &to)) {
            return false;
        }
    }
    return true;
}

/* cp.async copies at once, so a later wait returns immediately. b: bytes to copy, or NO_ROW */
HANDLER(copy_async) {
    uint8_t *to[LANES], *from[LANES];
    bh__ptx_code wide = *i;
    wide.flags = (uint8_t)(i->count & 1 ? FLAG_ADDRESS32 : 0);
    if (x->check != NULL && !check_copy(x, &wide, mask)) {
        return false;
    }
    if (!bh__ptx_resolve(x, &wide, mask, SPACE_SHARED, i->d, i->target, i->bytes, true, to)) {
        return false;
    }
    wide.flags = 0;
    const bh__u32 *sizes = i->b == NO_ROW ? NULL : bh__row(x, i->b);
    FOR_LANES_IN_ORDER(mask) {
        unsigned size = sizes == NULL || sizes[l] > i->bytes ? i->bytes : sizes[l];
        if (size > 0) {
            uint32_t lane = 1u << l;
            if (!bh__ptx_resolve(x, &wide, lane, SPACE_GLOBAL, i->a, i->imm, i->bytes, false,
                                 from)) {
                return false;
            }
            memcpy(to[l], from[l], size);
        }
        memset(to[l] + size, 0, i->bytes - size);
    }
    return true;
}

/* The row of the address and the offset to add to it. */
static bool lower_address(bh__ptx_lowering *low, const bh__ptx_operand *o, int32_t *row,
                          uint64_t *offset, bool *is32) {
    *is32 = false;
    *offset = 0;
    if (o->has_reg) {
        bh__ptx_operand reg = {.kind = OPERAND_REG, .reg = o->reg};
        *is32 = bh__ptx_bytes(low->function->regs[o->reg].type) == 4;
        *row = bh__ptx_row_in(low, &reg, low->function->regs[o->reg].type);
        *offset = o->imm;
    } else if (o->symbol != NULL && o->symbol->var->space == SPACE_SHARED &&
               !o->symbol->var->is_extern) {
        *row = bh__ptx_constant(low, o->symbol->var->offset + o->imm, 8);
    } else if (o->symbol != NULL) {
        bh__ptx_operand address = {.kind = OPERAND_ADDRESS, .symbol = o->symbol, .imm = o->imm};
        *row = bh__ptx_row_in(low, &address, T_B64);
    } else {
        *row = bh__ptx_constant(low, o->imm, 8);
    }
    return low->status == BH_OK;
}

bool bh__ptx_lower_address(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_code *code) {
    bool is32;
    if (!lower_address(low, o, &code->a, &code->imm, &is32)) {
        return false;
    }
    code->flags |= is32 ? FLAG_ADDRESS32 : 0;
    return true;
}

/* The rows of a value or a vector. All registers of a vector must have the same width. */
static bool lower_values(bh__ptx_lowering *low, const bh__ptx_operand *o, bool dest,
                         bh__ptx_code *code) {
    bh__ptx_type type = (bh__ptx_type)low->insn->types[0];
    const bh__ptx_operand *list = o->kind == OPERAND_VECTOR ? o->elements : o;
    unsigned count = o->kind == OPERAND_VECTOR ? o->count : 1;
    int32_t *rows = bh__arena_alloc(&low->module->arena, count, sizeof *rows);
    bool wide = bh__ptx_bytes(type) == 8, known = false;
    if (rows == NULL) {
        return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory",
                                  "no memory for a vector");
    }
    for (unsigned n = 0; n < count; n++) {
        if (list[n].kind == OPERAND_REG) {
            bool this_wide = bh__ptx_row_wide(low, &list[n], type);
            if (known && this_wide != wide) {
                return bh__ptx_lower_fail(low, BH_E_UNSUPPORTED, "use registers of one width",
                                          "the registers of the vector have different widths");
            }
            wide = this_wide;
            known = true;
        }
    }
    bh__ptx_type row_type = wide ? T_B64 : type;
    for (unsigned n = 0; n < count; n++) {
        if (wide && bh__ptx_bytes(type) < 8 &&
            (list[n].kind == OPERAND_FLOAT || list[n].kind == OPERAND_SREG)) {
            return bh__ptx_lower_fail(low, BH_E_UNSUPPORTED, "move it to a register first",
                                      "the vector mixes constants and registers of another width");
        }
        bool register_like = list[n].kind == OPERAND_REG || list[n].kind == OPERAND_SINK;
        bool floating = list[n].kind == OPERAND_FLOAT;
        rows[n] = dest ? bh__ptx_row_out(low, &list[n], row_type)
                       : bh__ptx_row_in(low, &list[n], register_like || floating ? type : row_type);
    }
    code->extra = rows;
    code->count = (uint8_t)count;
    code->flags |= wide ? (dest ? FLAG_WIDE_D : FLAG_WIDE_A) : 0;
    return low->status == BH_OK;
}

static bool lower_param(bh__ptx_lowering *low, const bh__ptx_operand *o, bool load,
                        bh__ptx_code *code) {
    const bh__ptx_var *var = o->symbol->var;
    bool entry = low->function->entry && var->formal;
    if (entry && !load) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "write to a variable instead",
                                  "a kernel cannot write to its parameters");
    }
    code->imm = var->offset + o->imm;
    code->run = entry ? load_entry : load ? load_frame : store_frame;
    return bh__ptx_emit(low, code, true);
}

static bool lower_access(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bool load = insn->op != OP_ST;
    const bh__ptx_operand *memory = &insn->operands[load ? 1 : 0];
    bh__ptx_space space = bh__ptx_insn_space(insn);
    bh__ptx_type type = (bh__ptx_type)insn->types[0];
    bh__ptx_code code = {.bytes = (uint8_t)bh__ptx_bytes(type),
                         .flags = bh__ptx_class(type) == 'S' ? FLAG_SIGNED : 0,
                         .target = bh__ptx_access_flags(insn)};
    if ((insn->operand_count == 3) != HAS(insn, POLICY) ||
        (HAS(insn, MMIO) && !HAS(insn, RELAXED))) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give a cache policy with .L2::cache_hint only",
                                  "the cache policy operand does not match the modifiers");
    }
    if (!lower_values(low, &insn->operands[load ? 0 : 1], load, &code)) {
        return false;
    }
    if (space == SPACE_PARAM && memory->symbol != NULL) {
        return lower_param(low, memory, load, &code);
    }
    static bh__ptx_handler *const loads[] = {load_generic, load_global, load_const,
                                             load_shared,  load_local,  load_param};
    static bh__ptx_handler *const stores[] = {store_generic, store_global, NULL,
                                              store_shared,  store_local,  store_param};
    code.run = load ? loads[space] : stores[space];
    if (code.run == NULL) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "write to a .global variable",
                                  "constant memory cannot be written");
    }
    return bh__ptx_lower_address(low, memory, &code) && bh__ptx_emit(low, &code, true);
}

static bool bad_copy(bh__ptx_lowering *low) {
    return bh__ptx_lower_fail(low, BH_E_UNSUPPORTED, "copy with loads and stores, or run on a GPU",
                              "the CPU device does not support this form of cp");
}

static bool lower_copy(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    if (!HAS(insn, ASYNC)) {
        return bad_copy(low);
    }
    if (HAS(insn, COMMIT_GROUP) || HAS(insn, WAIT_ALL)) {
        return insn->operand_count == 0 || bad_copy(low);
    }
    if (HAS(insn, WAIT_GROUP)) {
        return (insn->operand_count == 1 && insn->operands[0].kind == OPERAND_INT) || bad_copy(low);
    }
    const bh__ptx_operand *o = insn->operands;
    bool ok = HAS(insn, SHARED) && HAS(insn, GLOBAL) && HAS(insn, CA) != HAS(insn, CG) &&
              (insn->operand_count == 3 || insn->operand_count == 4) &&
              o[0].kind == OPERAND_MEMORY && o[1].kind == OPERAND_MEMORY &&
              o[2].kind == OPERAND_INT &&
              (o[2].imm == 16 || ((o[2].imm == 4 || o[2].imm == 8) && HAS(insn, CA)));
    ok = ok && (o[0].symbol == NULL || o[0].symbol->var->space == SPACE_SHARED) &&
         (o[1].symbol == NULL || o[1].symbol->var->space == SPACE_GLOBAL) &&
         (!o[0].has_reg || bh__ptx_bytes(low->function->regs[o[0].reg].type) >= 4) &&
         (!o[1].has_reg || bh__ptx_bytes(low->function->regs[o[1].reg].type) == 8);
    bool size_ok =
        insn->operand_count == 3 || o[3].kind == OPERAND_INT ||
        (o[3].kind == OPERAND_REG && bh__ptx_bytes(low->function->regs[o[3].reg].type) == 4);
    if (!ok || !size_ok) {
        return bad_copy(low);
    }
    bh__ptx_code code = {.run = copy_async, .bytes = (uint8_t)o[2].imm, .b = NO_ROW};
    bool to32, from32;
    uint64_t to_offset;
    if (!lower_address(low, &o[0], &code.d, &to_offset, &to32) ||
        !lower_address(low, &o[1], &code.a, &code.imm, &from32)) {
        return false;
    }
    if (insn->operand_count == 4) {
        code.b = bh__ptx_row_in(low, &o[3], T_B32);
    }
    code.count = to32;
    code.target = (uint32_t)to_offset;
    return bh__ptx_emit(low, &code, true);
}

bool bh__ptx_lower_memory(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    switch (insn->op) {
    case OP_MEMBAR:
    case OP_FENCE: {
        bh__ptx_code code = {.run = fence, .target = is_narrow(insn) ? ACCESS_CTA : 0};
        return bh__ptx_emit(low, &code, true);
    }
    case OP_PREFETCH:
    case OP_PREFETCHU:
        return true; /* a hint, which has no effect here */
    case OP_CP:
        return lower_copy(low);
    default:
        return lower_access(low);
    }
}
