/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and reductions of boxes of tensors: cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and
 * their prefetch. As with other bulk copies, all is done at once and then completed.
 */
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/exec/async.h"
#include "ptx/tensor/box.h"
#include "ptx/tensor/map.h"

#define HANDLER(name)       static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)
#define FAULT(x, lane, ...) bh__ptx_fault_other(x, BH__PTX_FAULT_TENSOR, lane, __VA_ARGS__)

enum { BOX_ALIGN = 128 };

typedef struct tensor_copy {
    bh__ptx_lowered_address map, shared, barrier;
    bh__ptx_space space; /* SHARED or CLUSTER: where `shared` is */
    unsigned rank;
    int32_t coordinates[BH__TENSOR_RANK];
    int32_t offsets[BH__TENSOR_RANK]; /* of im2col */
    int32_t mask_row;                 /* of blocks, or NO_ROW */
    bool im2col, loads, reduces;
    /* By type of element: how it is reduced. No handler: it cannot be. */
    bh__ptx_code updates[BH__TENSOR_TYPES];
} tensor_copy;

/* ---- the map ---- */

static bool check_map(bh__ptx_exec *x, unsigned l, const tensor_copy *c, uint64_t address,
                      const bh__tensor *t) {
    const char *wrong = bh__tensor_wrong(t);
    if (wrong != NULL) {
        return FAULT(x, l, "the tensor map at 0x%llx has %s", (unsigned long long)address, wrong);
    }
    if (t->interleave != BH__INTERLEAVE_NONE) {
        return FAULT(x, l,
                     "the tensor map at 0x%llx has an interleave, which the CPU device does not "
                     "support",
                     (unsigned long long)address);
    }
    if (t->rank != c->rank) {
        return FAULT(x, l, "a tensor of %u dimensions is copied as one of %u", t->rank, c->rank);
    }
    return (t->im2col != 0) == c->im2col ||
           FAULT(x, l, "the tensor map at 0x%llx is %s im2col mode, and the copy is %s",
                 (unsigned long long)address, t->im2col ? "of" : "not of",
                 c->im2col ? "of it" : "not");
}

static bool find_map(bh__ptx_exec *x, unsigned l, const tensor_copy *c, bh__tensor *out) {
    uint64_t address = bh__ptx_place_at(x, &c->map, l), window = address >> BH__PTX_WINDOW_SHIFT;
    if (address % BH__TENSOR_MAP_ALIGN != 0) {
        return FAULT(x, l, "the tensor map is at 0x%llx, which is not a multiple of %d",
                     (unsigned long long)address, BH__TENSOR_MAP_ALIGN);
    }
    if (window != WINDOW_GLOBAL && window != WINDOW_PARAM) {
        return FAULT(x, l,
                     "the tensor map is at 0x%llx, which is not in global, constant or parameter "
                     "memory",
                     (unsigned long long)address);
    }
    (void)bh__async_check(x, l, SPACE_GENERIC, address, BH__TENSOR_MAP_BYTES, 0);
    const uint8_t *p =
        bh__ptx_resolve_lane(x, l, SPACE_GENERIC, address, BH__TENSOR_MAP_BYTES, 1, false);
    if (p == NULL) {
        return false;
    }
    const char *wrong = bh__tensor_map_read(p, out);
    if (wrong != NULL) {
        return FAULT(x, l, "the tensor map is at 0x%llx, and %s", (unsigned long long)address,
                     wrong);
    }
    return check_map(x, l, c, address, out);
}

/* ---- shared memory ---- */

/* One row of the box, between `row` and shared memory. False: a fault. */
static bool move_shared(bh__ptx_exec *x, unsigned l, bh__ptx_space space, const bh__tensor *t,
                        uint64_t at, uint8_t *row, uint32_t bytes, bool write) {
    for (uint32_t n = 0; n < bytes; n += BH__TENSOR_CHUNK) {
        uint64_t address = bh__tensor_swizzled(t->swizzle, at + n);
        if (!bh__async_check(x, l, space, address, BH__TENSOR_CHUNK, write ? ACCESS_WRITE : 0)) {
            continue;
        }
        uint8_t *p = bh__ptx_resolve_lane(x, l, space, address, BH__TENSOR_CHUNK, 1, write);
        if (p == NULL) {
            return false;
        }
        memcpy(write ? p : row + n, write ? row + n : p, BH__TENSOR_CHUNK);
    }
    return true;
}

/* Also keeps a walk short: a map may describe a box of 2^43 bytes. */
static bool check_box(bh__ptx_exec *x, unsigned l, uint64_t address, const bh__tensor_walk *w) {
    uint64_t bytes = (w->rows - UINT64_C(1)) * w->pitch + w->row_bytes;
    if (bytes > x->shared_bytes) {
        return FAULT(x, l, "a box of %llu bytes, and the block has %u bytes of shared memory",
                     (unsigned long long)bytes, (unsigned)x->shared_bytes);
    }
    return address % BOX_ALIGN == 0 ||
           FAULT(x, l,
                 "the box of a tensor is at shared address 0x%llx, which is not a multiple of %d",
                 (unsigned long long)address, BOX_ALIGN);
}

/* ---- global memory ---- */

static bool read_row(bh__ptx_exec *x, unsigned l, const bh__tensor *t, const bh__tensor_span *span,
                     uint8_t *row) {
    if (span->bytes == 0 || !bh__async_check(x, l, SPACE_GLOBAL, span->address, span->bytes, 0)) {
        return true;
    }
    const uint8_t *p =
        bh__ptx_resolve_lane(x, l, SPACE_GLOBAL, span->address, span->bytes, 1, false);
    if (p == NULL) {
        return false;
    }
    memcpy(row + span->offset, p, span->bytes);
    bh__tensor_convert(t, row + span->offset, span->bytes);
    return true;
}

static bool write_row(bh__ptx_exec *x, unsigned l, const tensor_copy *c, const bh__tensor *t,
                      const bh__tensor_span *span, const uint8_t *row) {
    unsigned flags = ACCESS_WRITE | (c->reduces ? ACCESS_ATOMIC | ACCESS_STRONG : 0);
    if (span->bytes == 0 ||
        !bh__async_check(x, l, SPACE_GLOBAL, span->address, span->bytes, flags)) {
        return true;
    }
    uint8_t *p = bh__ptx_resolve_lane(x, l, SPACE_GLOBAL, span->address, span->bytes, 1, true);
    if (p == NULL) {
        return false;
    }
    if (!c->reduces) {
        memcpy(p, row + span->offset, span->bytes);
        return true;
    }
    const bh__ptx_code *update = &c->updates[t->type];
    for (uint32_t at = 0; at < span->bytes; at += update->bytes) {
        uint64_t v = 0;
        memcpy(&v, row + span->offset + at, update->bytes);
        bh__ptx_update(update, p + at, v, 0);
    }
    return true;
}

/* ---- one lane ---- */

static bool load_box(bh__ptx_exec *x, unsigned l, const tensor_copy *c, bh__tensor_walk w,
                     uint64_t to) {
    uint8_t row[BH__TENSOR_ROW_MAX];
    for (uint32_t n = 0; n < w.rows; n++, bh__tensor_walk_next(&w)) {
        bh__tensor_span span = bh__tensor_walk_span(&w);
        bh__tensor_fill(w.tensor, row, w.row_bytes);
        if (!read_row(x, l, w.tensor, &span, row) ||
            !move_shared(x, l, c->space, w.tensor, to + (uint64_t)n * w.pitch, row, w.row_bytes,
                         true)) {
            return false;
        }
    }
    return true;
}

static bool store_box(bh__ptx_exec *x, unsigned l, const tensor_copy *c, bh__tensor_walk w,
                      uint64_t from) {
    uint8_t row[BH__TENSOR_ROW_MAX] = {0};
    for (uint32_t n = 0; n < w.rows; n++, bh__tensor_walk_next(&w)) {
        bh__tensor_span span = bh__tensor_walk_span(&w);
        if (!move_shared(x, l, c->space, w.tensor, from + (uint64_t)n * w.pitch, row, w.row_bytes,
                         false) ||
            !write_row(x, l, c, w.tensor, &span, row)) {
            return false;
        }
    }
    return true;
}

static void publish(bh__ptx_exec *x, unsigned l) {
    if (x->check != NULL) {
        bh__check_fence(x, 1u << l, x->block->cluster->count > 1);
    }
}

static bool load_one(bh__ptx_exec *x, unsigned l, const tensor_copy *c, const bh__tensor_walk *w,
                     uint64_t to, uint64_t barrier) {
    if (!check_box(x, l, to, w) || !load_box(x, l, c, *w, to)) {
        return false;
    }
    publish(x, l);
    if (c->space == SPACE_CLUSTER && !bh__async_same_block(x, l, to, barrier)) {
        return false;
    }
    uint8_t *object = bh__mbarrier_at(x, l, c->space, barrier);
    return object != NULL && bh__mbarrier_complete(x, l, object, w->rows * w->row_bytes);
}

static bool load(bh__ptx_exec *x, unsigned l, const tensor_copy *c, const bh__tensor_walk *w) {
    uint64_t to = bh__ptx_place_at(x, &c->shared, l), barrier = bh__ptx_place_at(x, &c->barrier, l);
    if (c->mask_row == NO_ROW) {
        return load_one(x, l, c, w, to, barrier);
    }
    uint32_t blocks = ((const bh__u32 *)bh__row(x, c->mask_row))[l] & 0xffff;
    if (!bh__async_blocks_exist(x, l, blocks)) {
        return false;
    }
    for (uint32_t m = blocks; m != 0; m &= m - 1) {
        uint64_t base = (uint64_t)__builtin_ctz(m) << BH__PTX_RANK_SHIFT;
        if (!load_one(x, l, c, w, base + (to & BH__PTX_RANK_MASK),
                      base + (barrier & BH__PTX_RANK_MASK))) {
            return false;
        }
    }
    return true;
}

static bool store(bh__ptx_exec *x, unsigned l, const tensor_copy *c, const bh__tensor_walk *w) {
    uint64_t from = bh__ptx_place_at(x, &c->shared, l);
    if (c->reduces && c->updates[w->tensor->type].run == NULL) {
        return FAULT(x, l, "elements of this type (%u) cannot be reduced in this way",
                     w->tensor->type);
    }
    if (!check_box(x, l, from, w) || !store_box(x, l, c, *w, from)) {
        return false;
    }
    publish(x, l);
    return true;
}

static bool begin(bh__ptx_exec *x, unsigned l, const tensor_copy *c, bh__tensor *t,
                  bh__tensor_walk *w) {
    int32_t coordinates[BH__TENSOR_RANK] = {0};
    uint16_t offsets[BH__TENSOR_RANK] = {0};
    if (!find_map(x, l, c, t)) {
        return false;
    }
    for (unsigned n = 0; n < c->rank; n++) {
        coordinates[n] = ((const bh__s32 *)bh__row(x, c->coordinates[n]))[l];
        if (c->offsets[n] != NO_ROW) {
            offsets[n] = (uint16_t)((const bh__u32 *)bh__row(x, c->offsets[n]))[l];
        }
    }
    unsigned size = bh__tensor_element_bytes(t); /* as on an H200: an illegal instruction */
    if ((int64_t)coordinates[0] * size % BH__TENSOR_CHUNK != 0) {
        return FAULT(x, l,
                     "a box begins at %d in the first dimension, with elements of %u bytes: that "
                     "is not a multiple of %d bytes",
                     coordinates[0], size, BH__TENSOR_CHUNK);
    }
    bh__tensor_walk_begin(w, t, coordinates, offsets);
    return true;
}

HANDLER(run_copy) {
    const tensor_copy *c = i->extra;
    FOR_LANES_IN_ORDER(mask) {
        bh__tensor t;
        bh__tensor_walk w;
        if (!begin(x, l, c, &t, &w) || !(c->loads ? load(x, l, c, &w) : store(x, l, c, &w))) {
            return false;
        }
    }
    return true;
}

/* A hint, but of a map that must be one. */
HANDLER(run_prefetch) {
    FOR_LANES_IN_ORDER(mask) {
        bh__tensor t;
        if (!find_map(x, l, i->extra, &t)) {
            return false;
        }
    }
    return true;
}

/* ---- lowering ---- */

static bool bad(bh__ptx_lowering *low) {
    return bh__ptx_lower_fail(low, BH_E_LOAD, "write it as PTX defines it",
                              "this is not a form of cp.async.bulk.tensor that PTX has");
}

/* {a, b, ...}: `count` integers. */
static bool lower_list(bh__ptx_lowering *low, const bh__ptx_operand *o, unsigned count,
                       bh__ptx_type type, int32_t *rows) {
    if (o->kind != OPERAND_VECTOR || o->count != count) {
        return false;
    }
    for (unsigned n = 0; n < count; n++) {
        const bh__ptx_operand *e = &o->elements[n];
        if (e->kind != OPERAND_INT && !bh__ptx_is_register(low, e, bh__ptx_bytes(type))) {
            return false;
        }
        rows[n] = bh__ptx_row_in(low, e, type);
    }
    return true;
}

/* [map, {coordinates}] */
static bool lower_tensor(bh__ptx_lowering *low, const bh__ptx_operand *o, tensor_copy *c) {
    bh__ptx_operand map = *o;
    if (o->kind != OPERAND_MEMORY || o->count != 1) {
        return false;
    }
    if (!o->has_reg && o->symbol == NULL) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give a register or a variable with the address",
                                  "the address of a tensor map is a number");
    }
    map.count = 0;
    return bh__ptx_lower_async_place(low, &map, SPACE_GLOBAL, &c->map) &&
           lower_list(low, &o->elements[0], c->rank, T_B32, c->coordinates);
}

static unsigned rank_of(const bh__ptx_insn *insn) {
    return HAS(insn, GEOM_1D)   ? 1
           : HAS(insn, GEOM_2D) ? 2
           : HAS(insn, GEOM_3D) ? 3
           : HAS(insn, GEOM_4D) ? 4
           : HAS(insn, GEOM_5D) ? 5
                                : 0;
}

/* The types that PTX has each reduction for. */
static void pick_updates(const bh__ptx_insn *insn, tensor_copy *c) {
    static const uint8_t numbers[BH__TENSOR_TYPES] = {
        [BH__TENSOR_U32] = T_U32,  [BH__TENSOR_I32] = T_S32, [BH__TENSOR_U64] = T_U64,
        [BH__TENSOR_I64] = T_S64,  [BH__TENSOR_F16] = T_F16, [BH__TENSOR_F32] = T_F32,
        [BH__TENSOR_BF16] = T_BF16};
    bool bits = HAS(insn, AND) || HAS(insn, OR) || HAS(insn, XOR);
    for (unsigned t = 0; t < BH__TENSOR_TYPES; t++) {
        bh__ptx_insn one = *insn;
        bool integer = t >= BH__TENSOR_U32 && t <= BH__TENSOR_I64;
        one.types[0] = bits ? (uint8_t)(t < BH__TENSOR_U64 ? T_B32 : T_B64) : numbers[t];
        if (numbers[t] == 0 || (bits && !integer) || (HAS(insn, ADD) && t == BH__TENSOR_I64)) {
            continue;
        }
        c->updates[t].run = bh__ptx_pick_update(&one, &c->updates[t]) ? run_copy : NULL;
    }
}

static bool is_reduction(const bh__ptx_insn *insn) {
    return HAS(insn, ADD) || HAS(insn, MIN) || HAS(insn, MAX) || HAS(insn, INC) || HAS(insn, DEC) ||
           HAS(insn, AND) || HAS(insn, OR) || HAS(insn, XOR);
}

/* [shared], [map, {}], [mbarrier] {, {offsets}} {, mask} {, policy} */
static bool lower_load(bh__ptx_lowering *low, tensor_copy *c) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands;
    bool cluster = HAS(insn, SHARED_CLUSTER), multicast = HAS(insn, MULTICAST);
    bool policy = HAS(insn, POLICY);
    unsigned at = 3, wanted = 3u + c->im2col + multicast + policy;
    c->loads = true;
    c->space = cluster ? SPACE_CLUSTER : SPACE_SHARED;
    if (insn->operand_count != wanted || cluster == HAS(insn, SHARED) || !HAS(insn, GLOBAL) ||
        HAS(insn, BULK_GROUP) || HAS(insn, IM2COL_NO_OFFS) || (multicast && !cluster) ||
        !bh__ptx_lower_async_place(low, &o[0], c->space, &c->shared) ||
        !lower_tensor(low, &o[1], c) ||
        !bh__ptx_lower_async_place(low, &o[2], c->space, &c->barrier) ||
        (c->im2col && !lower_list(low, &o[at++], c->rank - 2, T_B16, c->offsets)) ||
        (multicast && o[at].kind != OPERAND_INT && !bh__ptx_is_register(low, &o[at], 2)) ||
        (policy && !bh__ptx_is_register(low, &o[wanted - 1], 8))) {
        return bad(low);
    }
    c->mask_row = multicast ? bh__ptx_row_in(low, &o[at], T_B16) : NO_ROW;
    return bh__ptx_emit(low, &(bh__ptx_code){.run = run_copy, .extra = c}, true);
}

/* [map, {}], [shared] {, policy} */
static bool lower_store(bh__ptx_lowering *low, tensor_copy *c) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands;
    bool policy = HAS(insn, POLICY);
    c->space = SPACE_SHARED;
    c->reduces = HAS(insn, REDUCE);
    if (insn->operand_count != 2u + policy || !HAS(insn, GLOBAL) || !HAS(insn, SHARED) ||
        HAS(insn, SHARED_CLUSTER) || !HAS(insn, BULK_GROUP) || HAS(insn, MULTICAST) ||
        HAS(insn, IM2COL) || !lower_tensor(low, &o[0], c) ||
        !bh__ptx_lower_async_place(low, &o[1], SPACE_SHARED, &c->shared) ||
        (policy && !bh__ptx_is_register(low, &o[2], 8))) {
        return bad(low);
    }
    pick_updates(insn, c);
    return bh__ptx_emit(low, &(bh__ptx_code){.run = run_copy, .extra = c}, true);
}

/* [map, {}] {, {offsets}} {, policy} */
static bool lower_prefetch(bh__ptx_lowering *low, tensor_copy *c) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands;
    if (insn->operand_count != 1u + c->im2col + HAS(insn, POLICY) || !HAS(insn, GLOBAL) ||
        !HAS(insn, L2) || HAS(insn, IM2COL_NO_OFFS) || !lower_tensor(low, &o[0], c) ||
        (c->im2col && !lower_list(low, &o[1], c->rank - 2, T_B16, c->offsets))) {
        return bad(low);
    }
    return bh__ptx_emit(low, &(bh__ptx_code){.run = run_prefetch, .extra = c}, true);
}

bool bh__ptx_lower_tensor(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    tensor_copy *c = bh__arena_alloc(&low->module->arena, 1, sizeof *c);
    if (c == NULL) {
        return bad(low);
    }
    *c = (tensor_copy){.rank = rank_of(insn),
                       .mask_row = NO_ROW,
                       .im2col = HAS(insn, IM2COL) || HAS(insn, IM2COL_NO_OFFS)};
    for (unsigned n = 0; n < BH__TENSOR_RANK; n++) {
        c->offsets[n] = NO_ROW;
    }
    if (!HAS(insn, ASYNC) || !HAS(insn, BULK) || !HAS(insn, TENSOR) || c->rank == 0 ||
        (c->im2col && c->rank < 3) || HAS(insn, REDUCE) != is_reduction(insn)) {
        return bad(low);
    }
    if (HAS(insn, PREFETCH)) {
        return lower_prefetch(low, c);
    }
    return HAS(insn, COMPLETE_BYTES) && !HAS(insn, REDUCE) ? lower_load(low, c)
                                                           : lower_store(low, c);
}
