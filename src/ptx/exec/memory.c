/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores. Every address is checked; every access is a single one. */
#include <string.h>

#include "base/checked.h"
#include "ptx/check/check.h"
#include "ptx/run/single.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

uint32_t bh__ptx_access_flags(const bh__ptx_insn *insn) {
    bool acquire = HAS(insn, ACQUIRE) || HAS(insn, ACQ_REL);
    bool release = HAS(insn, RELEASE) || HAS(insn, ACQ_REL);
    bool strong = acquire || release || HAS(insn, RELAXED);
    return (acquire ? ACCESS_ACQUIRE : 0) | (release ? ACCESS_RELEASE : 0) |
           (strong ? ACCESS_STRONG : 0) | (HAS(insn, VOLATILE) ? ACCESS_VOLATILE : 0) |
           (HAS(insn, CTA) ? ACCESS_CTA : 0) | (HAS(insn, CLUSTER) ? ACCESS_CLUSTER : 0);
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

/* `extra`: rows of the vector. Element after element: for memory that no one else accesses. */
static void load_elements(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                          uint8_t *const p[LANES]) {
    const int32_t *rows = i->extra;
    for (unsigned n = 0; n < i->count; n++) {
        load_rows(x, i, mask, rows[n], p, n * i->bytes);
    }
}

static void store_elements(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                           uint8_t *const p[LANES]) {
    const int32_t *rows = i->extra;
    for (unsigned n = 0; n < i->count; n++) {
        store_rows(x, i, mask, rows[n], p, n * i->bytes);
    }
}

/* The vectors of all lanes, between registers and memory. */
typedef struct stage {
    _Alignas(32) uint8_t bytes[LANES][32];
    uint8_t *at[LANES];
} stage;

static void set_stage(stage *s) {
    for (unsigned l = 0; l < LANES; l++) {
        s->at[l] = s->bytes[l];
    }
}

/* Each lane's vector in one access. */
static void load_whole(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                       uint8_t *const p[LANES]) {
    unsigned bytes = (unsigned)i->bytes * i->count;
    stage s;
    if (i->count == 1) {
        load_elements(x, i, mask, p);
        return;
    }
    set_stage(&s);
    FOR_LANES_IN_ORDER(mask) {
        bh__single_load(s.bytes[l], p[l], bytes);
    }
    load_elements(x, i, mask, s.at);
}

static void store_whole(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                        uint8_t *const p[LANES]) {
    unsigned bytes = (unsigned)i->bytes * i->count;
    stage s;
    if (i->count == 1) {
        store_elements(x, i, mask, p);
        return;
    }
    set_stage(&s);
    store_elements(x, i, mask, s.at);
    FOR_LANES_IN_ORDER(mask) {
        bh__single_store(p[l], s.bytes[l], bytes);
    }
}

/* A load that was not made gives zero. */
static void load_zero(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const int32_t *rows = i->extra;
    for (unsigned n = 0; n < i->count; n++) {
        uint8_t *row = bh__row(x, rows[n]);
        unsigned width = i->flags & FLAG_WIDE_D ? 8 : 4;
        FOR_LANES_IN_ORDER(mask) {
            memset(row + l * width, 0, width);
        }
    }
}

static bool load_checked(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                         bh__ptx_space space) {
    bh__check_access access;
    access.space = space;
    access.bytes = (unsigned)i->bytes * i->count;
    access.flags = (uint8_t)i->target;
    access.store = NULL;
    access.loads = true;
    bh__check_addresses(x, i, mask, &access);
    uint32_t fine = bh__check_access_lanes(x, &access, mask);
    if (fine != mask) {
        load_zero(x, i, mask & ~fine);
    }
    if (fine != 0) {
        load_whole(x, i, fine, access.at);
    }
    if (access.undefined != 0) {
        bh__check_loaded(x, i, &access, fine);
    }
    bh__check_acquire(x, fine, access.flags);
    return true;
}

static bool store_checked(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                          bh__ptx_space space) {
    bh__check_access access;
    access.space = space;
    access.bytes = (unsigned)i->bytes * i->count;
    access.flags = (uint8_t)i->target | ACCESS_WRITE;
    access.store = i;
    access.loads = false;
    if (i->target & ACCESS_RELEASE) {
        bh__check_fence(x, mask, bh__check_wide(x, i->target));
    }
    bh__check_addresses(x, i, mask, &access);
    uint32_t fine = bh__check_access_lanes(x, &access, mask);
    if (x->warp->undefined != 0) {
        bh__check_stored(x, i, &access, fine);
    }
    if (fine != 0) {
        store_whole(x, i, fine, access.at);
    }
    return true;
}

/* ---- a warp in one access ---- */

/* Vectors of 16 bytes at any multiple of 4: an element that is aligned is not split by them. */
typedef uint32_t __attribute__((vector_size(16), aligned(4), may_alias)) quad;

static inline void copy_quads(void *to, const void *from, unsigned bytes) {
    quad *t = to;
    const quad *f = from;
    for (unsigned n = 0; n < bytes / sizeof *t; n++) {
        t[n] = f[n];
    }
}

/* Values of 4 or 8 bytes whose rows have the same width, weak, of all lanes. ThreadSanitizer is to
 * see the lanes' accesses one by one. */
static inline bool is_of_warp(const bh__ptx_code *i, uint32_t mask, bh__ptx_space space,
                              unsigned wide) {
#if defined(__SANITIZE_THREAD__)
    return (void)i, (void)mask, (void)space, (void)wide, false;
#else
    return mask == FULL_MASK && i->count == 1 && i->target == 0 && space <= SPACE_SHARED &&
           i->bytes == (i->flags & wide ? 8 : 4);
#endif
}

static bool load_warp(bh__ptx_exec *x, const bh__ptx_code *i, bh__ptx_space space) {
    bool same;
    const uint8_t *p = bh__ptx_resolve_warp(x, i, space, i->bytes, false, &same);
    if (p == NULL) {
        return false;
    }
    void *row = bh__row(x, *(const int32_t *)i->extra);
    if (!same) {
        copy_quads(row, p, LANES * 4);
        if (i->bytes == 8) copy_quads((uint8_t *)row + LANES * 4, p + LANES * 4, LANES * 4);
    } else if (i->bytes == 8) {
        uint64_t v = LOAD(a64, p);
        FOR_LANES(FULL_MASK, ((bh__u64 *)row)[l] = v;);
    } else {
        uint32_t v = LOAD(a32, p);
        FOR_LANES(FULL_MASK, ((bh__u32 *)row)[l] = v;);
    }
    return true;
}

static bool store_warp(bh__ptx_exec *x, const bh__ptx_code *i, bh__ptx_space space) {
    bool same;
    uint8_t *p = bh__ptx_resolve_warp(x, i, space, i->bytes, true, &same);
    if (p == NULL) {
        return false;
    }
    const uint8_t *row = bh__row(x, *(const int32_t *)i->extra);
    copy_quads(p, row, LANES * 4);
    if (i->bytes == 8) copy_quads(p + LANES * 4, row + LANES * 4, LANES * 4);
    return true;
}

/* `target`: ACCESS_... */
static inline bool load_from(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                             bh__ptx_space space) {
    uint8_t *p[LANES];
    if (x->check != NULL) {
        return load_checked(x, i, mask, space);
    }
    if (is_of_warp(i, mask, space, FLAG_WIDE_D) && load_warp(x, i, space)) {
        return true;
    }
    if (!bh__ptx_resolve(x, i, mask, space, i->a, i->imm, (unsigned)i->bytes * i->count, false,
                         p)) {
        return false;
    }
    load_whole(x, i, mask, p);
    if (i->target & ACCESS_ACQUIRE) {
        bh__fence();
    }
    return true;
}

static inline bool store_to(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                            bh__ptx_space space) {
    uint8_t *p[LANES];
    if (x->check != NULL) {
        return store_checked(x, i, mask, space);
    }
    if (is_of_warp(i, mask, space, FLAG_WIDE_A) && store_warp(x, i, space)) {
        return true;
    }
    if (!bh__ptx_resolve(x, i, mask, space, i->a, i->imm, (unsigned)i->bytes * i->count, true, p)) {
        return false;
    }
    if (i->target & ACCESS_RELEASE) {
        bh__fence();
    }
    store_whole(x, i, mask, p);
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
HANDLER(load_cluster) {
    return load_from(x, i, mask, SPACE_CLUSTER);
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
HANDLER(store_cluster) {
    return store_to(x, i, mask, SPACE_CLUSTER);
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
    frame_pointers(x, i, p);
    load_elements(x, i, mask, p);
    if (x->check != NULL) {
        bh__check_loaded_param(x, i, mask);
    }
    return true;
}

HANDLER(store_frame) {
    uint8_t *p[LANES];
    frame_pointers(x, i, p);
    store_elements(x, i, mask, p);
    if (x->check != NULL) {
        bh__check_stored_param(x, i, mask);
    }
    return true;
}

HANDLER(fence) {
    bh__fence();
    if (x->check != NULL) {
        bh__check_fence(x, mask, bh__check_wide(x, i->target));
    }
    return true;
}

/* A name in .shared::cta space needs no rank, so its address is a constant. */
static bool is_constant_address(const bh__ptx_lowering *low, const bh__ptx_operand *o) {
    unsigned unit = bh__ptx_op_table[low->insn->op].unit;
    return o->symbol->var->space == SPACE_SHARED && !o->symbol->var->is_extern &&
           unit != UNIT_ASYNC && unit != UNIT_MBARRIER && HAS(low->insn, SHARED);
}

bool bh__ptx_lower_place(bh__ptx_lowering *low, const bh__ptx_operand *o,
                         bh__ptx_lowered_address *out) {
    *out = (bh__ptx_lowered_address){0};
    if (o->count != 0) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give one register, variable or number",
                                  "an address of %u parts", (unsigned)o->count + 1);
    }
    if (o->has_reg) {
        bh__ptx_operand reg = {.kind = OPERAND_REG, .reg = o->reg};
        out->is32 = bh__ptx_bytes(low->function->regs[o->reg].type) == 4;
        out->row = bh__ptx_row_in(low, &reg, low->function->regs[o->reg].type);
        out->offset = o->imm;
    } else if (o->symbol != NULL && o->symbol->var->formal && o->symbol->var->unsized) {
        bh__ptx_operand reg = {.kind = OPERAND_REG, .reg = o->symbol->var->reg};
        out->row = bh__ptx_row_in(low, &reg, T_B64);
        out->offset = o->imm;
    } else if (o->symbol != NULL && is_constant_address(low, o)) {
        out->row = bh__ptx_constant(low, o->symbol->var->offset + o->imm, 8);
    } else if (o->symbol != NULL) {
        bh__ptx_operand address = {.kind = OPERAND_ADDRESS, .symbol = o->symbol, .imm = o->imm};
        out->row = bh__ptx_row_in(low, &address, T_B64);
    } else {
        out->row = bh__ptx_constant(low, o->imm, 8);
    }
    return low->status == BH_OK;
}

bool bh__ptx_lower_address(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_code *code) {
    bh__ptx_lowered_address place;
    if (!bh__ptx_lower_place(low, o, &place)) {
        return false;
    }
    code->a = place.row;
    code->imm = place.offset;
    code->flags |= place.is32 ? FLAG_ADDRESS32 : 0;
    return true;
}

/* A 128-bit value is a vector of its two halves. */
static bool lower_halves(bh__ptx_lowering *low, const bh__ptx_operand *o, unsigned count, bool dest,
                         bh__ptx_code *code) {
    int32_t *rows = bh__arena_alloc(&low->module->arena, 2, sizeof *rows);
    if (rows == NULL || count != 1) {
        return bh__ptx_lower_fail(low, BH_E_UNSUPPORTED, "use one access for each of them",
                                  "the CPU device does not support vectors of .b128");
    }
    rows[0] = dest ? bh__ptx_row_out(low, o, T_B128) : bh__ptx_row_in(low, o, T_B128);
    rows[1] = rows[0] + HIGH_HALF;
    code->extra = rows;
    code->count = 2;
    code->bytes = 8;
    code->flags |= dest ? FLAG_WIDE_D : FLAG_WIDE_A;
    return low->status == BH_OK;
}

/* The rows of a value or a vector. All registers of a vector must have the same width. */
static bool lower_values(bh__ptx_lowering *low, const bh__ptx_operand *o, bool dest,
                         bh__ptx_code *code) {
    bh__ptx_type type = (bh__ptx_type)low->insn->types[0];
    const bh__ptx_operand *list = o->kind == OPERAND_VECTOR ? o->elements : o;
    unsigned count = o->kind == OPERAND_VECTOR ? o->count : 1;
    if (type == T_B128) {
        return lower_halves(low, list, count, dest, code);
    }
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
    /* Nothing checks it when it runs. */
    uint64_t room = entry ? low->function->param_bytes : low->function->local_bytes;
    uint64_t bytes = (uint64_t)code->bytes * code->count;
    if (!bh__range_fits(var->offset, var->size, room) ||
        !bh__range_fits(o->imm, bytes, var->size)) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "stay inside the parameter",
                                  "bytes %lld to %lld of %s, which has %llu", (long long)o->imm,
                                  (long long)(o->imm + bytes - 1), o->symbol->name,
                                  (unsigned long long)var->size);
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
    if (space == SPACE_PARAM && memory->symbol != NULL && !memory->symbol->var->unsized) {
        return lower_param(low, memory, load, &code);
    }
    static bh__ptx_handler *const loads[] = {load_generic, load_global, load_const,  load_shared,
                                             load_local,   load_param,  load_cluster};
    static bh__ptx_handler *const stores[] = {
        store_generic, store_global, NULL, store_shared, store_local, store_param, store_cluster};
    code.run = load ? loads[space] : stores[space];
    if (code.run == NULL) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "write to a .global variable",
                                  "constant memory cannot be written");
    }
    return bh__ptx_lower_address(low, memory, &code) && bh__ptx_emit(low, &code, true);
}

/* fence.proxy.tensormap...acquire also names the object: [address], 128 */
static bool lower_fence(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands;
    bool object = insn->operand_count == 2 && HAS(insn, PROXY) && HAS(insn, ACQUIRE) &&
                  o[0].kind == OPERAND_MEMORY && o[1].kind == OPERAND_INT && o[1].imm == 128;
    if (insn->operand_count != 0 && !object) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "remove the operands",
                                  "%u operands of a fence that has none",
                                  (unsigned)insn->operand_count);
    }
    bh__ptx_code code = {.run = fence, .target = bh__ptx_access_flags(insn)};
    return bh__ptx_emit(low, &code, true);
}

bool bh__ptx_lower_memory(bh__ptx_lowering *low) {
    switch (low->insn->op) {
    case OP_MEMBAR:
    case OP_FENCE:
        return lower_fence(low);
    case OP_PREFETCH:
    case OP_PREFETCHU:
        return true; /* a hint, which has no effect here */
    default:
        return lower_access(low);
    }
}
