/* SPDX-License-Identifier: Apache-2.0 */
/* cp.async of up to 16 bytes. Copies are made at once, so only checks know what is not waited
 * for. */
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/exec/async.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

typedef struct copy {
    bh__ptx_lowered_address to, from;
    int32_t size_row;   /* bytes to copy, or NO_ROW; the rest is zero */
    int32_t ignore_row; /* predicate: copy nothing, or NO_ROW */
} copy;

static unsigned source_bytes(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned l) {
    const copy *c = i->extra;
    unsigned size = i->bytes;
    if (c->size_row != NO_ROW) {
        uint32_t given = ((const bh__u32 *)bh__row(x, c->size_row))[l];
        size = given < size ? given : size;
    }
    bool ignored = c->ignore_row != NO_ROW && *(const bh__u32 *)bh__row(x, c->ignore_row) >> l & 1;
    return ignored ? 0 : size;
}

/* Fills in the memory that lanes copy from and to. Returns the lanes that may copy. */
static uint32_t check_copy(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                           uint8_t *to[LANES], uint8_t *from[LANES]) {
    const copy *c = i->extra;
    bh__check_access source = {.space = SPACE_GLOBAL, .bytes = i->bytes};
    bh__check_access target = {.space = SPACE_SHARED, .bytes = i->bytes, .flags = ACCESS_WRITE};
    uint32_t reading = 0;
    FOR_LANES_IN_ORDER(mask) {
        source.address[l] = bh__ptx_place_at(x, &c->from, l);
        target.address[l] = bh__ptx_place_at(x, &c->to, l);
        reading |= (uint32_t)(source_bytes(x, i, l) > 0) << l;
    }
    uint32_t fine = mask;
    if (reading != 0) {
        fine &= ~reading | bh__check_access_lanes(x, &source, reading);
    }
    if (fine != 0) {
        fine = bh__check_access_lanes(x, &target, fine);
        bh__check_copy_begun(x, &target, fine);
    }
    memcpy(from, source.at, sizeof source.at);
    memcpy(to, target.at, sizeof target.at);
    return fine;
}

static bool resolve_copy(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, uint8_t *to[LANES],
                         uint8_t *from[LANES]) {
    const copy *c = i->extra;
    FOR_LANES_IN_ORDER(mask) {
        to[l] = bh__ptx_resolve_lane(x, l, SPACE_SHARED, bh__ptx_place_at(x, &c->to, l), i->bytes,
                                     i->bytes, true);
        from[l] = to[l];
        if (to[l] != NULL && source_bytes(x, i, l) > 0) {
            from[l] = bh__ptx_resolve_lane(x, l, SPACE_GLOBAL, bh__ptx_place_at(x, &c->from, l),
                                           i->bytes, i->bytes, false);
        }
        if (from[l] == NULL) {
            return false;
        }
    }
    return true;
}

HANDLER(copy_async) {
    uint8_t *to[LANES], *from[LANES];
    if (x->check != NULL) {
        mask = check_copy(x, i, mask, to, from);
    } else if (!resolve_copy(x, i, mask, to, from)) {
        return false;
    }
    FOR_LANES_IN_ORDER(mask) {
        unsigned size = source_bytes(x, i, l);
        if (size > 0) {
            memcpy(to[l], from[l], size);
        }
        memset(to[l] + size, 0, i->bytes - size);
    }
    return true;
}

HANDLER(copy_commit) {
    (void)i;
    if (x->check != NULL) {
        bh__check_copy_commit(x, mask);
    }
    return true;
}

/* imm: groups that need not be complete; count: copies without a group must be. */
HANDLER(copy_wait) {
    if (x->check != NULL) {
        bh__check_copy_wait(x, mask, (uint32_t)i->imm, i->count != 0);
    }
    return true;
}

/* All earlier copies of the thread are made. Without .noinc the arrival was not counted on, so the
 * count goes up and down again. count: .noinc; target: the space */
HANDLER(arrive_after) {
    const bh__ptx_lowered_address *place = i->extra;
    if (x->check != NULL) {
        bh__check_copy_wait(x, mask, 0, true);
        bh__check_fence(x, mask, false);
    }
    FOR_LANES_IN_ORDER(mask) {
        uint8_t *p = bh__mbarrier_at(x, l, (bh__ptx_space)i->target, bh__ptx_place_at(x, place, l));
        if (p == NULL ||
            !(i->count ? bh__mbarrier_arrive(x, l, p, 1) : bh__mbarrier_valid(x, l, p))) {
            return false;
        }
    }
    return true;
}

static bool bad(bh__ptx_lowering *low) {
    return bh__ptx_lower_fail(low, BH_E_LOAD, "write it as PTX defines it",
                              "this is not a form of cp.async that PTX has");
}

static bool lower_arrive(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bh__ptx_lowered_address *place = bh__arena_alloc(&low->module->arena, 1, sizeof *place);
    bh__ptx_space space = HAS(insn, SHARED) ? SPACE_SHARED : SPACE_GENERIC;
    if (place == NULL || insn->operand_count != 1 ||
        !bh__ptx_lower_async_place(low, &insn->operands[0], space, place)) {
        return bad(low);
    }
    bool named = insn->operands[0].symbol != NULL;
    bh__ptx_code code = {.run = arrive_after,
                         .extra = place,
                         .count = HAS(insn, NOINC),
                         .target = named ? SPACE_CLUSTER : space};
    return bh__ptx_emit(low, &code, true);
}

/* [to], [from], bytes {, size or predicate} {, policy} */
static bool lower_copy(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands;
    copy *c = bh__arena_alloc(&low->module->arena, 1, sizeof *c);
    unsigned count = insn->operand_count;
    if (HAS(insn, POLICY) && count > 0 && bh__ptx_is_register(low, &o[count - 1], 8)) {
        count--; /* where the data is cached makes no difference here */
    } else if (HAS(insn, POLICY)) {
        return bad(low);
    }
    bool ok = c != NULL && HAS(insn, SHARED) && HAS(insn, GLOBAL) &&
              HAS(insn, CA) != HAS(insn, CG) && (count == 3 || count == 4) &&
              o[2].kind == OPERAND_INT &&
              (o[2].imm == 16 || ((o[2].imm == 4 || o[2].imm == 8) && HAS(insn, CA)));
    if (!ok || !bh__ptx_lower_async_place(low, &o[0], SPACE_SHARED, &c->to) ||
        !bh__ptx_lower_async_place(low, &o[1], SPACE_GLOBAL, &c->from)) {
        return bad(low);
    }
    c->size_row = c->ignore_row = NO_ROW;
    if (count == 4 && o[3].kind == OPERAND_REG && low->function->regs[o[3].reg].type == T_PRED) {
        c->ignore_row = bh__ptx_row_in(low, &o[3], T_PRED);
    } else if (count == 4 && (o[3].kind == OPERAND_INT || bh__ptx_is_register(low, &o[3], 4))) {
        c->size_row = bh__ptx_row_in(low, &o[3], T_B32);
    } else if (count == 4) {
        return bad(low);
    }
    bh__ptx_code code = {.run = copy_async, .extra = c, .bytes = (uint8_t)o[2].imm};
    return bh__ptx_emit(low, &code, true);
}

bool bh__ptx_lower_copy(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    if (!HAS(insn, ASYNC)) {
        return bad(low);
    }
    if (insn->op == OP_CPARRIVE) {
        return HAS(insn, ARRIVE) && HAS(insn, MBARRIER) ? lower_arrive(low) : bad(low);
    }
    if (HAS(insn, COMMIT_GROUP) || HAS(insn, WAIT_ALL)) {
        bh__ptx_code code = {.run = HAS(insn, WAIT_ALL) ? copy_wait : copy_commit, .count = 1};
        return insn->operand_count == 0 ? bh__ptx_emit(low, &code, true) : bad(low);
    }
    if (HAS(insn, WAIT_GROUP)) {
        bool ok = insn->operand_count == 1 && insn->operands[0].kind == OPERAND_INT;
        bh__ptx_code code = {.run = copy_wait, .imm = ok ? insn->operands[0].imm : 0};
        return ok ? bh__ptx_emit(low, &code, true) : bad(low);
    }
    return lower_copy(low);
}
