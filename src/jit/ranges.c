/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which accesses are likely to be to the same range of memory, because their addresses begin with
 * the same parameter, variable or pointer in memory: these share what is known of the range. A
 * wrong guess costs time only.
 */
#include <stddef.h>
#include <string.h>

#include "jit/unit.h"

/* What an address begins with: a step that gives a pointer. */
enum { ORIGIN_OPEN = -2, ORIGIN_NONE = -1 };

typedef struct origins {
    const bh__jit_unit *u;
    int32_t *of; /* by row */
} origins;

static int32_t origin_of(const origins *o, int32_t row) {
    int32_t index = bh__jit_row_index(o->u, row);
    return index < 0 ? ORIGIN_NONE : o->of[index];
}

static int32_t either(int32_t a, int32_t b) {
    return a == ORIGIN_NONE ? b : b == ORIGIN_NONE ? a : a == b ? a : ORIGIN_NONE;
}

/* Steps that load one parameter count as one. */
static int32_t first_like(const bh__jit_unit *u, uint32_t at) {
    const bh__ptx_code *c = u->steps[at].code;
    for (uint32_t n = 0; n < at; n++) {
        const bh__ptx_code *other = u->steps[n].code;
        if (u->steps[n].op == u->steps[at].op && other->run == c->run && other->imm == c->imm &&
            (u->steps[at].op == JIT_PARAM || other->extra == c->extra)) {
            return (int32_t)n;
        }
    }
    return (int32_t)at;
}

static int32_t given_by(const origins *o, uint32_t at) {
    const bh__jit_step *s = &o->u->steps[at];
    const bh__ptx_code *c = s->code;
    switch (s->op) {
    case JIT_PARAM:
        return first_like(o->u, at);
    case JIT_LOAD:
        return c->bytes == 8 ? (int32_t)at : ORIGIN_NONE;
    case JIT_MOVE:
    case JIT_SUB:
        return origin_of(o, c->a);
    case JIT_ADD:
    case JIT_SELP:
        return either(origin_of(o, c->a), origin_of(o, c->b));
    case JIT_MAD:
    case JIT_MAD_WIDE:
        return origin_of(o, c->c);
    case JIT_ADDRESS:
        return first_like(o->u, at);
    default:
        return ORIGIN_NONE;
    }
}

static bool find_origins(origins *o) {
    bool changed = false;
    for (uint32_t n = 0; n < o->u->step_count; n++) {
        const bh__jit_step *s = &o->u->steps[n];
        if (s->def_count != 1 || o->u->rows[s->defs[0]].kind != KIND_WIDE) {
            continue;
        }
        int32_t *have = &o->of[s->defs[0]], now = given_by(o, n);
        now = *have == ORIGIN_OPEN ? now : now == ORIGIN_OPEN || now == *have ? *have : ORIGIN_NONE;
        changed |= now != *have;
        *have = now;
    }
    return changed;
}

/* Gives each step that accesses global memory one of the block's ranges. */
bool bh__jit_find_ranges(bh__jit_unit *u) {
    enum { ROUNDS = 8 };
    origins o = {u, bh__arena_alloc(&u->arena, u->row_count + 1, sizeof *o.of)};
    int32_t *range = bh__arena_alloc(&u->arena, u->step_count + 1, sizeof *range);
    if (o.of == NULL || range == NULL) {
        return bh__jit_refuse(u, "there is no memory to compile it");
    }
    for (uint32_t n = 0; n < u->row_count; n++) {
        o.of[n] = ORIGIN_OPEN;
    }
    for (int round = 0; round < ROUNDS && find_origins(&o); round++) {
    }
    memset(range, 0xff, u->step_count * sizeof *range);
    uint32_t count = 0;
    for (uint32_t n = 0; n < u->step_count; n++) {
        bh__jit_step *s = &u->steps[n];
        if (!bh__jit_has_range(s)) {
            continue;
        }
        int32_t origin = origin_of(&o, s->code->a);
        origin = origin < 0 ? (int32_t)n : origin;
        if (range[origin] < 0) {
            range[origin] = (int32_t)(count++ % SITE_RANGES);
        }
        s->range = (uint32_t)range[origin];
    }
    u->range_count = count < SITE_RANGES ? count : SITE_RANGES;
    return true;
}

/* ---- their values ---- */

static size_t place_of(uint32_t n) {
    return offsetof(bh__ptx_block, site_ranges) + n * sizeof(bh__ptx_site_range);
}

static LLVMValueRef slot_for(bh__jit_unit *u, LLVMValueRef block, size_t offset, LLVMTypeRef type) {
    LLVMValueRef slot = LLVMBuildAlloca(u->b, type, "");
    LLVMBuildStore(u->b, bh__jit_field(u, block, offset, type), slot);
    return slot;
}

void bh__jit_load_ranges(bh__jit_unit *u) {
    LLVMValueRef block = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, block), u->ptr);
    for (uint32_t n = 0; n < u->range_count; n++) {
        bh__jit_range *r = &u->ranges[n];
        size_t at = place_of(n);
        r->base = slot_for(u, block, at + offsetof(bh__ptx_site_range, base), u->i64);
        r->size = slot_for(u, block, at + offsetof(bh__ptx_site_range, size), u->i64);
        r->writable = slot_for(u, block, at + offsetof(bh__ptx_site_range, writable), u->i8);
    }
}

static void keep(bh__jit_unit *u, LLVMValueRef slot, LLVMValueRef block, size_t to, size_t from,
                 LLVMTypeRef type) {
    LLVMValueRef v = bh__jit_field(u, u->x, from, type);
    LLVMBuildStore(u->b, v, slot);
    bh__jit_set_field(u, block, to, v);
}

void bh__jit_keep_range(bh__jit_unit *u, uint32_t n) {
    LLVMValueRef block = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, block), u->ptr);
    const bh__jit_range *r = &u->ranges[n];
    size_t at = place_of(n);
    keep(u, r->base, block, at + offsetof(bh__ptx_site_range, base),
         offsetof(bh__ptx_exec, range_base), u->i64);
    keep(u, r->size, block, at + offsetof(bh__ptx_site_range, size),
         offsetof(bh__ptx_exec, range_size), u->i64);
    keep(u, r->writable, block, at + offsetof(bh__ptx_site_range, writable),
         offsetof(bh__ptx_exec, range_writable), u->i8);
}
