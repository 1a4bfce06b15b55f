/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows are the same in all lanes, which grow evenly from lane to lane, which vary. */
#include <string.h>

#include "jit/unit.h"

bool bh__jit_constant(const bh__jit_unit *u, int32_t row, bool wide, uint64_t *out) {
    if (row >= 0) {
        return false;
    }
    *out = 0;
    memcpy(out, u->request->module->constants + (row & INT32_MAX), wide ? 8 : 4);
    return true;
}

bh__jit_class bh__jit_class_of(const bh__jit_unit *u, int32_t row, int64_t *stride) {
    *stride = 0;
    if (row < 0) {
        return CLASS_AFFINE;
    }
    int32_t index = bh__jit_row_index(u, row);
    if (index < 0) {
        return CLASS_VARYING; /* it stays in the frame */
    }
    *stride = u->rows[index].stride;
    return (bh__jit_class)u->rows[index].class;
}

bool bh__jit_is_parted(const bh__jit_unit *u, int32_t row) {
    int32_t index = row < 0 ? -1 : bh__jit_row_index(u, row);
    return index >= 0 && u->rows[index].class == CLASS_AFFINE && u->rows[index].parted;
}

typedef struct shape {
    bh__jit_class class;
    int64_t stride;
    bool parted;
} shape;

static const shape varying = {CLASS_VARYING, 0, false}, uniform = {CLASS_AFFINE, 0, false};
static const shape unknown = {CLASS_NONE, 0, false};

static shape shape_of(const bh__jit_unit *u, int32_t row) {
    shape s;
    s.class = bh__jit_class_of(u, row, &s.stride);
    s.parted = bh__jit_is_parted(u, row);
    return s;
}

static shape join(shape a, shape b) {
    if (a.class == CLASS_NONE) {
        return b;
    }
    if (b.class == CLASS_NONE) {
        return a;
    }
    a.parted |= b.parted;
    return a.class == CLASS_AFFINE && b.class == CLASS_AFFINE && a.stride == b.stride ? a : varying;
}

/* Strides stay small, so that 31 times one fits any width. */
static shape even(int64_t stride, bool parted) {
    bool small = stride > -(INT64_C(1) << 20) && stride < INT64_C(1) << 20;
    return small ? (shape){CLASS_AFFINE, stride, parted} : varying;
}

static shape sum(shape a, shape b, int sign) {
    if (a.class == CLASS_VARYING || b.class == CLASS_VARYING) {
        return varying;
    }
    if (a.class == CLASS_NONE || b.class == CLASS_NONE) {
        return unknown;
    }
    return even(a.stride + sign * b.stride, a.parted || b.parted);
}

/* A product with a stride needs a factor that is known now. */
static shape product(const bh__jit_unit *u, int32_t row_a, int32_t row_b, bool is_signed,
                     bool wide) {
    shape a = shape_of(u, row_a), b = shape_of(u, row_b);
    if (a.class == CLASS_VARYING || b.class == CLASS_VARYING) {
        return varying;
    }
    if (a.class == CLASS_NONE || b.class == CLASS_NONE) {
        return unknown;
    }
    if (a.stride == 0 && b.stride == 0) {
        return even(0, a.parted || b.parted);
    }
    uint64_t factor;
    shape other = a;
    if (!bh__jit_constant(u, row_b, wide, &factor)) {
        if (!bh__jit_constant(u, row_a, wide, &factor)) {
            return varying;
        }
        other = b;
    }
    int64_t f = wide        ? (int64_t)factor
                : is_signed ? (int32_t)(uint32_t)factor
                            : (int64_t)(uint32_t)factor;
    if (f > INT64_C(1) << 20 || f < -(INT64_C(1) << 20)) {
        return varying;
    }
    return even(other.stride * f, other.parted);
}

static shape all_uniform(const bh__jit_unit *u, const bh__jit_step *s) {
    bool open = false, parted = false;
    for (uint32_t n = 0; n < s->use_count; n++) {
        const bh__jit_row *row = &u->rows[s->uses[n]];
        if (row->class == CLASS_VARYING || row->stride != 0) {
            return varying;
        }
        open |= row->class == CLASS_NONE;
        parted |= row->class == CLASS_AFFINE && row->parted;
    }
    return open ? unknown : even(0, parted);
}

static shape result_of(const bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    bh__ptx_type type = s->insn->type_count > 0 ? (bh__ptx_type)s->insn->types[0] : T_NONE;
    bool wide = bh__ptx_bytes(type) == 8, is_signed = bh__ptx_class(type) == 'S';
    uint64_t amount;
    if (bh__ptx_bytes(type) == 2 && s->op >= JIT_ADD && s->op <= JIT_SHR) {
        return all_uniform(u, s); /* 16 bits wrap around sooner than their row */
    }
    switch (s->op) {
    case JIT_MOVE:
        return shape_of(u, c->a);
    case JIT_TID:
        if (u->request->row == 0) {
            return varying;
        }
        return even(c->count == 0, c->count != 0 && u->parts > 1);
    case JIT_LANE:
        return even(1, u->parts > 1);
    case JIT_BLOCK:
    case JIT_PARAM:
    case JIT_ADDRESS:
    case JIT_VOTE:
        return uniform;
    case JIT_ADD:
        return sum(shape_of(u, c->a), shape_of(u, c->b), 1);
    case JIT_SUB:
        return sum(shape_of(u, c->a), shape_of(u, c->b), -1);
    case JIT_MUL:
    case JIT_MUL_WIDE:
        return product(u, c->a, c->b, is_signed, wide);
    case JIT_MAD:
    case JIT_MAD_WIDE:
        return sum(product(u, c->a, c->b, is_signed, wide), shape_of(u, c->c), 1);
    case JIT_SHL:
        if (bh__jit_constant(u, c->b, false, &amount) && amount < 16) {
            shape a = shape_of(u, c->a);
            return a.class == CLASS_AFFINE ? even(a.stride * (INT64_C(1) << amount), a.parted) : a;
        }
        return all_uniform(u, s);
    case JIT_WIDEN:
    case JIT_NARROW:
        return shape_of(u, c->a);
    case JIT_SELP: {
        shape p = shape_of(u, c->c), r = join(shape_of(u, c->a), shape_of(u, c->b));
        return p.class == CLASS_VARYING ? varying : r;
    }
    case JIT_LOAD: {
        if (bh__ptx_insn_space(s->insn) == SPACE_LOCAL) {
            return varying; /* each lane has its own */
        }
        shape a = shape_of(u, c->a);
        return a.class == CLASS_AFFINE && a.stride != 0 ? varying : a;
    }
    case JIT_SHFL:
    case JIT_ATOMIC:
        return varying;
    case JIT_HANDLED:
        return s->uniform ? uniform : varying;
    case JIT_EXIT:
    case JIT_STOP:
        return varying;
    default:
        return all_uniform(u, s);
    }
}

/* The guard decides, lane by lane, whether the row changes. */
static shape guarded(const bh__jit_unit *u, const bh__jit_step *s, shape r) {
    if (s->code->guard == NO_ROW) {
        return r;
    }
    shape g = shape_of(u, s->code->guard);
    return g.class == CLASS_VARYING ? varying : r;
}

static bool classify_step(bh__jit_unit *u, const bh__jit_step *s) {
    bool changed = false;
    shape r = guarded(u, s, result_of(u, s));
    for (uint32_t k = 0; k < s->def_count; k++) {
        bh__jit_row *row = &u->rows[s->defs[k]];
        shape old = {(bh__jit_class)row->class, row->stride, row->parted}, now = join(old, r);
        if (row->differs || (row->kind == KIND_PREDICATE && (now.stride != 0 || now.parted))) {
            now = varying;
        }
        changed |= now.class != old.class || now.stride != old.stride || now.parted != old.parted;
        row->parted = now.parted;
        row->class = (uint8_t)now.class;
        row->stride = now.stride;
    }
    return changed;
}

static void settle(bh__jit_unit *u) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t n = 0; n < u->step_count; n++) {
            if (u->steps[n].insn != NULL && u->steps[n].def_count > 0) {
                changed |= classify_step(u, &u->steps[n]);
            }
        }
    }
}

/*
 * Starts with nothing known and only ever moves towards `varying`. Which branches are divergent,
 * and so which rows vary for that reason, depends on the classes: both are repeated until nothing
 * changes.
 */
void bh__jit_classify(bh__jit_unit *u) {
    do {
        settle(u);
        for (uint32_t n = 0; n < u->row_count; n++) { /* never written: zero in all lanes */
            if (u->rows[n].class == CLASS_NONE) {
                u->rows[n].class = CLASS_AFFINE;
            }
        }
        settle(u);
    } while (bh__jit_find_pending(u));
}
