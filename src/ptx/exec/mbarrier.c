/* SPDX-License-Identifier: Apache-2.0 */
/* mbarrier: barriers in shared memory that count arrivals of threads and bytes of copies. */
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/exec/async.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

/*
 * The object, which PTX leaves open. The state that an arrival returns is the object as it was
 * before. One thread runs all blocks that can reach it, so it is read and written plainly.
 */
#define MAX_COUNT  ((1u << 20) - 1)
#define VALID_MARK 2u

typedef struct object {
    uint32_t pending;  /* arrivals that the current phase waits for */
    uint32_t expected; /* arrivals of the next phase */
    int32_t bytes;     /* announced and not copied yet; negative: copied before announced */
    uint32_t phase;    /* its parity */
    bool valid;
} object;

static object unpack(uint64_t v) {
    return (object){.pending = v & MAX_COUNT,
                    .expected = v >> 20 & MAX_COUNT,
                    .bytes = (int32_t)(v >> 40 & 0x1fffff) - (int32_t)MAX_COUNT,
                    .phase = v >> 61 & 1,
                    .valid = v >> 62 == VALID_MARK};
}

static uint64_t pack(const object *o) {
    return (uint64_t)VALID_MARK << 62 | (uint64_t)o->phase << 61 |
           (uint64_t)(uint32_t)(o->bytes + (int32_t)MAX_COUNT) << 40 | (uint64_t)o->expected << 20 |
           o->pending;
}

static uint64_t load(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static void store(uint8_t *p, uint64_t v) {
    memcpy(p, &v, sizeof v);
}

#define FAULT(x, lane, ...) bh__ptx_fault_other(x, BH__PTX_FAULT_MBARRIER, lane, __VA_ARGS__)

/* ---- operations on an object ---- */

static bool take(bh__ptx_exec *x, unsigned lane, const uint8_t *p, object *out) {
    *out = unpack(load(p));
    return out->valid || FAULT(x, lane, "the mbarrier is not initialised, or was invalidated");
}

bool bh__mbarrier_valid(bh__ptx_exec *x, unsigned lane, const uint8_t *p) {
    object o;
    return take(x, lane, p, &o);
}

static void settle(object *o, uint8_t *p) {
    if (o->pending == 0 && o->bytes == 0) {
        o->phase ^= 1;
        o->pending = o->expected;
    }
    store(p, pack(o));
}

static bool check_count(bh__ptx_exec *x, unsigned lane, uint32_t count, uint32_t least,
                        const char *what) {
    return (count >= least && count <= MAX_COUNT) ||
           FAULT(x, lane, "%s of %u; it must be %u to %u", what, (unsigned)count, (unsigned)least,
                 MAX_COUNT);
}

static bool expect(bh__ptx_exec *x, unsigned lane, uint8_t *p, uint32_t bytes) {
    object o;
    if (!take(x, lane, p, &o) || !check_count(x, lane, bytes, 0, "an expected number of bytes")) {
        return false;
    }
    if (o.bytes + (int64_t)bytes > MAX_COUNT) {
        return FAULT(x, lane, "the mbarrier expects %d bytes already; %u more are over %u",
                     (int)o.bytes, (unsigned)bytes, MAX_COUNT);
    }
    o.bytes += (int32_t)bytes;
    store(p, pack(&o));
    return true;
}

bool bh__mbarrier_complete(bh__ptx_exec *x, unsigned lane, uint8_t *p, uint32_t bytes) {
    object o;
    if (!take(x, lane, p, &o) || !check_count(x, lane, bytes, 0, "a number of copied bytes")) {
        return false;
    }
    if (o.bytes - (int64_t)bytes < -(int64_t)MAX_COUNT) {
        return FAULT(x, lane, "%u bytes are copied where the mbarrier expects %d", (unsigned)bytes,
                     (int)o.bytes);
    }
    o.bytes -= (int32_t)bytes;
    settle(&o, p);
    return true;
}

bool bh__mbarrier_arrive(bh__ptx_exec *x, unsigned lane, uint8_t *p, uint32_t count) {
    object o;
    if (!take(x, lane, p, &o) || !check_count(x, lane, count, 1, "an arrival count")) {
        return false;
    }
    if (count > o.pending) {
        return FAULT(x, lane, "%u arrivals at an mbarrier that waits for %u (of %u)",
                     (unsigned)count, (unsigned)o.pending, (unsigned)o.expected);
    }
    o.pending -= count;
    settle(&o, p);
    return true;
}

/* The arrivals of later phases become fewer. */
static bool drop(bh__ptx_exec *x, unsigned lane, uint8_t *p, uint32_t count) {
    object o;
    if (!take(x, lane, p, &o)) {
        return false;
    }
    if (count > o.expected) {
        return FAULT(x, lane, "%u arrivals are dropped from an mbarrier of %u", (unsigned)count,
                     (unsigned)o.expected);
    }
    o.expected -= count;
    store(p, pack(&o));
    return true;
}

/* An arrival that the program says does not complete the phase. */
static bool check_not_last(bh__ptx_exec *x, unsigned lane, const uint8_t *p, uint32_t count) {
    object o;
    return take(x, lane, p, &o) &&
           (count != o.pending || o.bytes != 0 ||
            FAULT(x, lane, ".noComplete arrivals of %u complete the phase, which waits for %u",
                  (unsigned)count, (unsigned)o.pending));
}

/* ---- instructions ---- */

uint8_t *bh__mbarrier_at(bh__ptx_exec *x, unsigned lane, bh__ptx_space space, uint64_t address) {
    if (space == SPACE_GENERIC && address >> BH__PTX_WINDOW_SHIFT != WINDOW_SHARED) {
        FAULT(x, lane, "address 0x%llx of the mbarrier is not in shared memory",
              (unsigned long long)address);
        return NULL;
    }
    uint8_t *p = bh__ptx_resolve_lane(x, lane, space, address, 8, 8, true);
    if (p != NULL && x->check != NULL) {
        bh__check_access_lane(x, lane, space, address, 8,
                              ACCESS_WRITE | ACCESS_ATOMIC | ACCESS_STRONG);
    }
    return p;
}

enum { /* `count` of an arrival */
       ARRIVE_DROP = 1,
       ARRIVE_EXPECT = 2,
       ARRIVE_NO_COMPLETE = 4
};

/* a, imm: the address; b: the count or bytes, or NO_ROW; d: the state, or NO_ROW;
 * target: the space; d2: ACCESS_... */
static uint8_t *object_of(bh__ptx_exec *x, const bh__ptx_code *i, unsigned l) {
    return bh__mbarrier_at(x, l, (bh__ptx_space)i->target,
                           bh__ptx_address_at(x, i, i->a, i->imm, l));
}

static uint32_t operand_of(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l) {
    return i->b == NO_ROW ? 1 : ((const bh__u32 *)bh__row(x, i->b))[l];
}

HANDLER(init) {
    FOR_LANES_IN_ORDER(mask) {
        uint8_t *p = object_of(x, i, l);
        uint32_t count = operand_of(x, i, l);
        if (p == NULL || !check_count(x, l, count, 1, "an mbarrier")) {
            return false;
        }
        store(p, pack(&(object){.pending = count, .expected = count}));
    }
    return true;
}

HANDLER(invalidate) {
    FOR_LANES_IN_ORDER(mask) {
        uint8_t *p = object_of(x, i, l);
        if (p == NULL || !bh__mbarrier_valid(x, l, p)) {
            return false;
        }
        store(p, 0);
    }
    return true;
}

HANDLER(expect_bytes) {
    FOR_LANES_IN_ORDER(mask) {
        uint8_t *p = object_of(x, i, l);
        if (p == NULL || !expect(x, l, p, operand_of(x, i, l))) {
            return false;
        }
    }
    return true;
}

HANDLER(complete_bytes) {
    FOR_LANES_IN_ORDER(mask) {
        uint8_t *p = object_of(x, i, l);
        if (p == NULL || !bh__mbarrier_complete(x, l, p, operand_of(x, i, l))) {
            return false;
        }
    }
    return true;
}

static bool arrive_lane(bh__ptx_exec *x, const bh__ptx_code *i, unsigned l) {
    uint8_t *p = object_of(x, i, l);
    uint32_t n = operand_of(x, i, l), count = i->count & ARRIVE_EXPECT ? 1 : n;
    if (p == NULL || ((i->count & ARRIVE_EXPECT) && !expect(x, l, p, n)) ||
        ((i->count & ARRIVE_NO_COMPLETE) && !check_not_last(x, l, p, count)) ||
        ((i->count & ARRIVE_DROP) && !drop(x, l, p, count))) {
        return false;
    }
    uint64_t before = load(p);
    if (i->d != NO_ROW) {
        ((bh__u64 *)bh__row(x, i->d))[l] = before;
    }
    return bh__mbarrier_arrive(x, l, p, count);
}

HANDLER(arrive) {
    if (x->check != NULL && i->d2 & ACCESS_RELEASE) {
        bh__check_fence(x, mask, x->block->cluster->count > 1);
    }
    FOR_LANES_IN_ORDER(mask) {
        if (!arrive_lane(x, i, l)) {
            return false;
        }
    }
    return true;
}

/* b: the state, or the parity if `count` is set; d: whether that phase is over. */
HANDLER(test) {
    uint32_t over = 0;
    FOR_LANES_IN_ORDER(mask) {
        uint8_t *p = object_of(x, i, l);
        object o;
        if (p == NULL || !take(x, l, p, &o)) {
            return false;
        }
        uint32_t phase;
        if (i->count) {
            phase = ((const bh__u32 *)bh__row(x, i->b))[l] & 1;
        } else {
            object state = unpack(((const bh__u64 *)bh__row(x, i->b))[l]);
            if (!state.valid) {
                return FAULT(x, l, "the state is not one that an arrival returned");
            }
            phase = state.phase;
        }
        over |= (uint32_t)(o.phase != phase) << l;
    }
    if (x->check != NULL && over != 0) {
        bh__check_acquire(x, over, ACCESS_STRONG | ACCESS_CLUSTER);
    }
    bh__set_predicate(x, i->d, over, mask);
    return true;
}

HANDLER(pending_count) {
    const bh__u64 *pa = bh__row(x, i->a);
    bh__u32 *pd = bh__row(x, i->d);
    FOR_LANES_IN_ORDER(mask) {
        object state = unpack(pa[l]);
        if (!state.valid) {
            return FAULT(x, l, "the state is not one that an arrival returned");
        }
        pd[l] = state.pending;
    }
    return true;
}

/* ---- lowering ---- */

static bool bad(bh__ptx_lowering *low) {
    return bh__ptx_lower_fail(low, BH_E_LOAD, "write it as PTX defines it",
                              "this is not a form of mbarrier that PTX has");
}

static bool is_source(const bh__ptx_lowering *low, const bh__ptx_operand *o, unsigned bytes) {
    return o->kind == OPERAND_INT || bh__ptx_is_register(low, o, bytes);
}

static bool is_address(const bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_space space) {
    if (o->kind != OPERAND_MEMORY || (o->symbol != NULL && o->symbol->var->space != SPACE_SHARED)) {
        return false;
    }
    unsigned bytes = o->has_reg ? bh__ptx_bytes(low->function->regs[o->reg].type) : 8;
    return bytes == 8 || (bytes == 4 && space != SPACE_GENERIC);
}

/* [address] {, count}: from operand number `first` on. */
static bool lower_object(bh__ptx_lowering *low, unsigned first, bool needs_count,
                         bh__ptx_code *code) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands + first;
    unsigned count = insn->operand_count - first;
    bh__ptx_space space = bh__ptx_insn_space(insn);
    if (insn->operand_count <= first || count > 2 || (needs_count && count != 2) ||
        !is_address(low, &o[0], space) || (count == 2 && !is_source(low, &o[1], 4))) {
        return bad(low);
    }
    /* A name is an address of shared memory, also where no space is given. */
    code->target = o[0].symbol != NULL && space == SPACE_GENERIC ? SPACE_CLUSTER : space;
    code->d2 |= (int32_t)bh__ptx_access_flags(insn);
    code->b = count == 2 ? bh__ptx_row_in(low, &o[1], T_B32) : NO_ROW;
    return bh__ptx_lower_address(low, &o[0], code) && bh__ptx_emit(low, code, true);
}

static bool lower_arrive(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *d = insn->operands;
    bool expects = HAS(insn, EXPECT_TX), partial = HAS(insn, NO_COMPLETE);
    bh__ptx_code code = {.run = arrive,
                         .d = NO_ROW,
                         .d2 = HAS(insn, RELAXED) ? 0 : ACCESS_RELEASE, /* unless it says so */
                         .count = (uint8_t)((HAS(insn, ARRIVE_DROP) ? ARRIVE_DROP : 0) |
                                            (expects ? ARRIVE_EXPECT : 0) |
                                            (partial ? ARRIVE_NO_COMPLETE : 0))};
    bool remote = HAS(insn, SHARED_CLUSTER);
    if (insn->operand_count < 2 || (expects && partial) || HAS(insn, ACQUIRE) ||
        (partial && (remote || HAS(insn, RELAXED) || HAS(insn, CLUSTER))) ||
        (d->kind != OPERAND_SINK && (remote || !bh__ptx_is_register(low, d, 8)))) {
        return bad(low);
    }
    if (d->kind != OPERAND_SINK) {
        code.d = bh__ptx_row_out(low, d, T_B64);
    }
    return lower_object(low, 1, expects || partial, &code);
}

/* waitComplete, [address], state or parity {, time hint} */
static bool lower_test(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands;
    bool parity = HAS(insn, PARITY);
    bh__ptx_space space = bh__ptx_insn_space(insn);
    unsigned most = HAS(insn, TRY_WAIT) ? 4 : 3;
    if (insn->operand_count < 3 || insn->operand_count > most || space == SPACE_CLUSTER ||
        HAS(insn, RELEASE) || HAS(insn, EXPECT_TX) || HAS(insn, NO_COMPLETE) ||
        o[0].kind != OPERAND_REG || low->function->regs[o[0].reg].type != T_PRED ||
        !is_address(low, &o[1], space) || !is_source(low, &o[2], parity ? 4 : 8) ||
        (insn->operand_count == 4 && !is_source(low, &o[3], 4))) {
        return bad(low);
    }
    bh__ptx_code code = {.kind = CODE_POLL,
                         .run = test,
                         .count = parity,
                         .target = o[1].symbol != NULL ? SPACE_CLUSTER : space};
    code.d = bh__ptx_row_out(low, &o[0], T_PRED);
    code.b = bh__ptx_row_in(low, &o[2], parity ? T_B32 : T_B64);
    return bh__ptx_lower_address(low, &o[1], &code) && bh__ptx_emit(low, &code, true);
}

static bool lower_pending(bh__ptx_lowering *low) {
    const bh__ptx_operand *o = low->insn->operands;
    if (low->insn->operand_count != 2 || !bh__ptx_is_register(low, &o[0], 4) ||
        !bh__ptx_is_register(low, &o[1], 8)) {
        return bad(low);
    }
    bh__ptx_code code = {.run = pending_count};
    code.d = bh__ptx_row_out(low, &o[0], T_B32);
    code.a = bh__ptx_row_in(low, &o[1], T_B64);
    return bh__ptx_emit(low, &code, true);
}

bool bh__ptx_lower_mbarrier(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bh__ptx_code code = {.d = NO_ROW};
    bool local = !HAS(insn, SHARED_CLUSTER);
    if (HAS(insn, ARRIVE) || HAS(insn, ARRIVE_DROP)) {
        return lower_arrive(low);
    }
    if (HAS(insn, TEST_WAIT) || HAS(insn, TRY_WAIT)) {
        return lower_test(low);
    }
    if (HAS(insn, PENDING_COUNT)) {
        return lower_pending(low);
    }
    if (HAS(insn, EXPECT_TX) || HAS(insn, COMPLETE_TX)) {
        code.run = HAS(insn, EXPECT_TX) ? expect_bytes : complete_bytes;
        return lower_object(low, 0, true, &code);
    }
    if (HAS(insn, INIT) && local) {
        code.run = init;
        return lower_object(low, 0, true, &code);
    }
    if (HAS(insn, INVAL) && local && insn->operand_count == 1) {
        code.run = invalidate;
        return lower_object(low, 0, false, &code);
    }
    return bad(low);
}
