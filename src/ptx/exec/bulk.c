/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous operations that an mbarrier or a group completes: bulk copies and reductions,
 * st.async, red.async. All are made at once, which PTX allows; then their bytes are completed.
 */
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/exec/async.h"

#define HANDLER(name)       static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)
#define FAULT(x, lane, ...) bh__ptx_fault_other(x, BH__PTX_FAULT_COPY, lane, __VA_ARGS__)

enum { BULK_ALIGN = 16 };

typedef struct bulk {
    bh__ptx_lowered_address to, from, barrier;
    bh__ptx_space to_space, from_space; /* GLOBAL, SHARED, CLUSTER */
    int32_t size_row;
    int32_t mask_row; /* of blocks, or NO_ROW */
    bool has_barrier;
    bool reduces; /* by the update in the code */
} bulk;

typedef struct transfer { /* of one lane */
    uint64_t to, from, barrier;
    uint32_t bytes;
} transfer;

/* ---- checks ---- */

static const char *side_name(bool write) {
    return write ? "destination" : "source";
}

static bool check_aligned(bh__ptx_exec *x, unsigned l, bh__ptx_space space, uint64_t address,
                          bool write) {
    return address % BULK_ALIGN == 0 ||
           FAULT(x, l, "the %s of a bulk copy, %s address 0x%llx, is not a multiple of %d",
                 side_name(write), bh__ptx_space_name(space), (unsigned long long)address,
                 BULK_ALIGN);
}

bool bh__async_check(bh__ptx_exec *x, unsigned l, bh__ptx_space space, uint64_t address,
                     uint32_t bytes, unsigned flags) {
    for (uint32_t at = 0, part; x->check != NULL && at < bytes; at += part) {
        part = BULK_ALIGN;
        while ((address + at) % part != 0 || part > bytes - at) {
            part /= 2;
        }
        if (bh__check_access_lane(x, l, space, address + at, part, flags) == NULL) {
            return false;
        }
    }
    return true;
}

/* ---- one block's part ---- */

static void move(const bh__ptx_code *i, const bulk *b, uint8_t *to, const uint8_t *from,
                 uint32_t bytes) {
    if (!b->reduces) {
        memmove(to, from, bytes);
        return;
    }
    for (uint32_t at = 0; at < bytes; at += i->bytes) {
        uint64_t v = 0;
        memcpy(&v, from + at, i->bytes);
        bh__ptx_update(i, to + at, v, 0);
    }
}

bool bh__async_same_block(bh__ptx_exec *x, unsigned l, uint64_t to, uint64_t barrier) {
    uint64_t a = to >> BH__PTX_RANK_SHIFT, b = barrier >> BH__PTX_RANK_SHIFT;
    return a == b || FAULT(x, l,
                           "the destination is in the shared memory of the cluster's block %u, and "
                           "the mbarrier in that of block %u",
                           (unsigned)(a & 0xff), (unsigned)(b & 0xff));
}

static bool transfer_bytes(bh__ptx_exec *x, const bh__ptx_code *i, unsigned l, const transfer *t) {
    const bulk *b = i->extra;
    unsigned flags = ACCESS_WRITE | (b->reduces ? ACCESS_ATOMIC | ACCESS_STRONG : 0);
    if (!check_aligned(x, l, b->from_space, t->from, false) ||
        !check_aligned(x, l, b->to_space, t->to, true)) {
        return false;
    }
    if (!bh__async_check(x, l, b->from_space, t->from, t->bytes, 0) ||
        !bh__async_check(x, l, b->to_space, t->to, t->bytes, flags)) {
        return true;
    }
    const uint8_t *from = bh__ptx_resolve_lane(x, l, b->from_space, t->from, t->bytes, 1, false);
    uint8_t *to = bh__ptx_resolve_lane(x, l, b->to_space, t->to, t->bytes, 1, from != NULL);
    if (from == NULL || to == NULL) {
        return false;
    }
    move(i, b, to, from, t->bytes);
    if (x->check != NULL) {
        bh__check_fence(x, 1u << l, x->block->cluster->count > 1);
    }
    return true;
}

static bool transfer_one(bh__ptx_exec *x, const bh__ptx_code *i, unsigned l, const transfer *t) {
    const bulk *b = i->extra;
    if (!transfer_bytes(x, i, l, t)) {
        return false;
    }
    if (!b->has_barrier) {
        return true;
    }
    if (b->to_space == SPACE_CLUSTER && !bh__async_same_block(x, l, t->to, t->barrier)) {
        return false;
    }
    uint8_t *p = bh__mbarrier_at(x, l, b->to_space, t->barrier);
    return p != NULL && bh__mbarrier_complete(x, l, p, t->bytes);
}

bool bh__async_blocks_exist(bh__ptx_exec *x, unsigned l, uint32_t blocks) {
    uint32_t count = x->block->cluster->count;
    return (blocks != 0 && blocks >> count == 0) ||
           FAULT(x, l, "a copy to the blocks of mask 0x%x, in a cluster of %u", (unsigned)blocks,
                 (unsigned)count);
}

/* To the same offset in each block of the mask. */
static bool transfer_all(bh__ptx_exec *x, const bh__ptx_code *i, unsigned l, transfer t,
                         uint32_t blocks) {
    if (!bh__async_blocks_exist(x, l, blocks)) {
        return false;
    }
    for (uint32_t m = blocks; m != 0; m &= m - 1) {
        uint64_t base = (uint64_t)__builtin_ctz(m) << BH__PTX_RANK_SHIFT;
        transfer one = t;
        one.to = base + (t.to & BH__PTX_RANK_MASK);
        one.barrier = base + (t.barrier & BH__PTX_RANK_MASK);
        if (!transfer_one(x, i, l, &one)) {
            return false;
        }
    }
    return true;
}

HANDLER(run_bulk) {
    const bulk *b = i->extra;
    const bh__u32 *sizes = bh__row(x, b->size_row);
    FOR_LANES_IN_ORDER(mask) {
        transfer t = {bh__ptx_place_at(x, &b->to, l), bh__ptx_place_at(x, &b->from, l),
                      b->has_barrier ? bh__ptx_place_at(x, &b->barrier, l) : 0, sizes[l]};
        if (t.bytes % BULK_ALIGN != 0) {
            return FAULT(x, l, "a bulk copy of %u bytes, which is not a multiple of %d",
                         (unsigned)t.bytes, BULK_ALIGN);
        }
        if (b->mask_row == NO_ROW) {
            if (!transfer_one(x, i, l, &t)) {
                return false;
            }
        } else if (!transfer_all(x, i, l, t,
                                 ((const bh__u32 *)bh__row(x, b->mask_row))[l] & 0xffff)) {
            return false;
        }
    }
    return true;
}

/* ---- st.async and red.async: a value to shared memory of the cluster ---- */

typedef struct value {
    bh__ptx_lowered_address to, barrier;
    bh__ptx_space space;
    unsigned count;
    int32_t rows[4];
    bool reduces;
} value;

static void write_value(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l, uint8_t *p) {
    const value *v = i->extra;
    for (unsigned n = 0; n < v->count; n++) {
        uint64_t bits = i->bytes == 8 ? ((const bh__u64 *)bh__row(x, v->rows[n]))[l]
                                      : ((const bh__u32 *)bh__row(x, v->rows[n]))[l];
        if (v->reduces) {
            bh__ptx_update(i, p, bits, 0);
        } else {
            memcpy(p + n * i->bytes, &bits, i->bytes);
        }
    }
}

static bool put(bh__ptx_exec *x, const bh__ptx_code *i, unsigned l) {
    const value *v = i->extra;
    uint32_t bytes = i->bytes * v->count;
    uint64_t to = bh__ptx_place_at(x, &v->to, l), barrier = bh__ptx_place_at(x, &v->barrier, l);
    unsigned flags = ACCESS_WRITE | (v->reduces ? ACCESS_ATOMIC | ACCESS_STRONG : 0);
    if (bh__async_check(x, l, v->space, to, bytes, flags)) {
        uint8_t *p = bh__ptx_resolve_lane(x, l, v->space, to, bytes, bytes, true);
        if (p == NULL || !bh__async_same_block(x, l, to, barrier)) {
            return false;
        }
        write_value(x, i, l, p);
    }
    if (x->check != NULL) {
        bh__check_fence(x, 1u << l, x->block->cluster->count > 1);
    }
    uint8_t *object = bh__mbarrier_at(x, l, v->space, barrier);
    return object != NULL && bh__mbarrier_complete(x, l, object, bytes);
}

HANDLER(run_value) {
    FOR_LANES_IN_ORDER(mask) {
        if (!put(x, i, l)) {
            return false;
        }
    }
    return true;
}

/* ---- lowering ---- */

bool bh__ptx_is_register(const bh__ptx_lowering *low, const bh__ptx_operand *o, unsigned bytes) {
    return o->kind == OPERAND_REG && !o->negated &&
           bh__ptx_bytes(low->function->regs[o->reg].type) == bytes &&
           bh__ptx_class(low->function->regs[o->reg].type) != 'F' &&
           bh__ptx_class(low->function->regs[o->reg].type) != 'P';
}

bool bh__ptx_lower_async_place(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_space space,
                               bh__ptx_lowered_address *out) {
    bool shared = space == SPACE_SHARED || space == SPACE_CLUSTER;
    if (o->kind != OPERAND_MEMORY) {
        return false;
    }
    if (o->symbol != NULL &&
        o->symbol->var->space != (space == SPACE_GLOBAL ? SPACE_GLOBAL : SPACE_SHARED)) {
        return false;
    }
    if (o->has_reg &&
        !bh__ptx_is_register(low, &(bh__ptx_operand){OPERAND_REG, .reg = o->reg}, 8) &&
        !(shared && bh__ptx_is_register(low, &(bh__ptx_operand){OPERAND_REG, .reg = o->reg}, 4))) {
        return false;
    }
    return bh__ptx_lower_place(low, o, out);
}

static bool bad(bh__ptx_lowering *low) {
    return bh__ptx_lower_fail(low, BH_E_LOAD, "write it as PTX defines it",
                              "this is not a form of %s that PTX has",
                              bh__ptx_op_table[low->insn->op].mnemonic);
}

/* The two spaces come from the set of modifiers; how it completes says which one is read. */
static bool find_spaces(const bh__ptx_insn *insn, bulk *b) {
    bool global = HAS(insn, GLOBAL), own = HAS(insn, SHARED), cluster = HAS(insn, SHARED_CLUSTER);
    b->has_barrier = HAS(insn, COMPLETE_BYTES);
    if (b->has_barrier == HAS(insn, BULK_GROUP) || global + own + cluster != 2) {
        return false;
    }
    b->from_space = b->has_barrier && global ? SPACE_GLOBAL : SPACE_SHARED;
    b->to_space = !b->has_barrier ? SPACE_GLOBAL : cluster ? SPACE_CLUSTER : SPACE_SHARED;
    return b->has_barrier || (global && own);
}

/* [to], [from], size {, [mbarrier]} {, mask} {, policy} */
static bool lower_bulk(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands;
    bulk *b = bh__arena_alloc(&low->module->arena, 1, sizeof *b);
    if (b == NULL || !find_spaces(insn, b)) {
        return bad(low);
    }
    bool multicast = HAS(insn, MULTICAST), policy = HAS(insn, POLICY);
    unsigned wanted = 3u + b->has_barrier + multicast + policy;
    if (insn->operand_count > 2 && o[2].kind == OPERAND_INT && o[2].imm % BULK_ALIGN != 0) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "copy a multiple of 16 bytes",
                                  "a bulk copy of %llu bytes", (unsigned long long)o[2].imm);
    }
    if (insn->operand_count != wanted || (multicast && b->from_space != SPACE_GLOBAL) ||
        (multicast && b->to_space != SPACE_CLUSTER) ||
        (o[2].kind != OPERAND_INT && !bh__ptx_is_register(low, &o[2], 4)) ||
        !bh__ptx_lower_async_place(low, &o[0], b->to_space, &b->to) ||
        !bh__ptx_lower_async_place(low, &o[1], b->from_space, &b->from) ||
        (b->has_barrier && !bh__ptx_lower_async_place(low, &o[3], b->to_space, &b->barrier)) ||
        (multicast && o[4].kind != OPERAND_INT && !bh__ptx_is_register(low, &o[4], 2)) ||
        (policy && !bh__ptx_is_register(low, &o[wanted - 1], 8))) {
        return bad(low);
    }
    bh__ptx_code code = {.run = run_bulk, .extra = b};
    b->reduces = insn->op == OP_CPREDUCE;
    if (b->reduces && (!HAS(insn, REDUCE) || !bh__ptx_pick_update(insn, &code))) {
        return bad(low);
    }
    b->size_row = bh__ptx_row_in(low, &o[2], T_B32);
    b->mask_row = multicast ? bh__ptx_row_in(low, &o[4], T_B16) : NO_ROW;
    return bh__ptx_emit(low, &code, true);
}

/* A hint: [from], size {, policy} */
static bool lower_prefetch(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bh__ptx_lowered_address from;
    return (insn->operand_count == 2u + HAS(insn, POLICY) && HAS(insn, GLOBAL) && HAS(insn, L2) &&
            bh__ptx_lower_async_place(low, &insn->operands[0], SPACE_GLOBAL, &from)) ||
           bad(low);
}

/* [to], value, [mbarrier] */
static bool lower_value(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands;
    bh__ptx_type type = (bh__ptx_type)insn->types[0];
    value *v = bh__arena_alloc(&low->module->arena, 1, sizeof *v);
    bh__ptx_code code = {.run = run_value, .extra = v, .bytes = (uint8_t)bh__ptx_bytes(type)};
    if (v == NULL || insn->operand_count != 3 || !HAS(insn, COMPLETE_BYTES)) {
        return bad(low);
    }
    v->count = HAS(insn, V2) ? 2 : HAS(insn, V4) ? 4 : 1;
    v->space = HAS(insn, SHARED_CLUSTER) ? SPACE_CLUSTER : SPACE_GENERIC;
    v->reduces = insn->op == OP_REDASYNC;
    if (v->space == SPACE_GENERIC && (o[0].symbol != NULL || o[2].symbol != NULL)) {
        return bad(low); /* a name is an address of shared memory */
    }
    const bh__ptx_operand *values = v->count > 1 ? o[1].elements : &o[1];
    if (HAS(insn, V8) ||
        (v->count > 1 && (o[1].kind != OPERAND_VECTOR || o[1].count != v->count)) ||
        v->count * code.bytes > 16 || !bh__ptx_lower_async_place(low, &o[0], v->space, &v->to) ||
        !bh__ptx_lower_async_place(low, &o[2], v->space, &v->barrier) ||
        (v->reduces && !bh__ptx_pick_update(insn, &code))) {
        return bad(low);
    }
    for (unsigned n = 0; n < v->count; n++) {
        if (values[n].kind == OPERAND_REG &&
            (values[n].negated ||
             bh__ptx_bytes(low->function->regs[values[n].reg].type) != code.bytes)) {
            return bad(low);
        }
        v->rows[n] = bh__ptx_row_in(low, &values[n], type);
    }
    return bh__ptx_emit(low, &code, true);
}

bool bh__ptx_lower_async(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    if (HAS(insn, CAS) || HAS(insn, EXCH)) {
        return bad(low);
    }
    if (insn->op == OP_CP || insn->op == OP_CPARRIVE) {
        return bh__ptx_lower_copy(low);
    }
    if (insn->op == OP_STASYNC || insn->op == OP_REDASYNC) {
        return lower_value(low);
    }
    if (insn->op == OP_CPTENSOR) {
        return bh__ptx_lower_tensor(low);
    }
    if (insn->op == OP_TENSORMAP || insn->op == OP_TENSORCOPY) {
        return bh__ptx_lower_tensor_map(low);
    }
    if (!HAS(insn, ASYNC) || !HAS(insn, BULK)) {
        return bad(low);
    }
    if (HAS(insn, PREFETCH)) {
        return lower_prefetch(low);
    }
    if (HAS(insn, COMMIT_GROUP)) {
        return (insn->operand_count == 0 && !HAS(insn, READ)) || bad(low);
    }
    if (HAS(insn, WAIT_GROUP)) {
        return (insn->operand_count == 1 && insn->operands[0].kind == OPERAND_INT) || bad(low);
    }
    return lower_bulk(low);
}
