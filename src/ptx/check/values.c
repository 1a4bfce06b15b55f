/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: undefined bits on their way between memory and registers, and from function to
 * function. */
#include <stdlib.h>
#include <string.h>

#include "ptx/check/values.h"
#include "ptx/debug/debug.h"

enum { MAX_BYTES = 64 }; /* of an access */

/* ---- marks ---- */

/* The marks of what a lane accesses; NULL: none are kept. */
static uint8_t *marks_of(bh__ptx_exec *x, const bh__check_access *access, unsigned lane,
                         bool *global) {
    uint64_t generic;
    *global = false;
    if (!bh__ptx_generic(x, access->space, access->address[lane], &generic)) {
        return NULL;
    }
    uint64_t offset = generic & (BH__PTX_WINDOW(1) - 1);
    switch (generic >> BH__PTX_WINDOW_SHIFT) {
    case WINDOW_GLOBAL: {
        const bh__ptx_range *range = bh__ptx_range_at(x, generic);
        *global = true;
        return range == NULL || range->marks == NULL ? NULL
                                                     : range->marks + (generic - range->base);
    }
    case WINDOW_SHARED:
        return offset >> BH__PTX_RANK_SHIFT != x->block->rank
                   ? NULL
                   : x->block->check->shared_marks + (offset & BH__PTX_RANK_MASK);
    case WINDOW_LOCAL: {
        uint8_t *marks = bh__check_local_at(x, lane, offset + access->bytes);
        return marks == NULL ? NULL : marks + offset;
    }
    default:
        return NULL;
    }
}

/* Blocks on other threads may set the same marks. Returns true if all bits are undefined. */
static bool get_marks(const uint8_t *marks, uint8_t *undefined, unsigned bytes) {
    bool whole = true;
    for (unsigned n = 0; n < bytes; n++) {
        undefined[n] = bh__check_undefined_of(__atomic_load_n(&marks[n], __ATOMIC_RELAXED));
        whole &= undefined[n] == 0xff;
    }
    return whole;
}

/* Whether bytes that nobody wrote may be padding or an object without members: if parts of what is
 * read were written; outside of buffers also if they are few, or if parts of the eight bytes that
 * they are among were written, because some compilers copy structures word by word. */
static bool looks_like_padding(const uint8_t *marks, uint64_t address, unsigned bytes, bool whole,
                               bool global) {
    if (!whole || global || bytes < 4) {
        return !whole || !global;
    }
    const uint8_t *eight = marks - (address & 7);
    bool some = false;
    for (unsigned n = 0; bytes == 4 && n < 8; n++) {
        some |= eight[n] != MARK_NONE;
    }
    return some;
}

static void set_marks(uint8_t *marks, const uint8_t *undefined, unsigned bytes) {
    for (unsigned n = 0; n < bytes; n++) {
        __atomic_store_n(&marks[n], bh__check_mark_of(undefined[n]), __ATOMIC_RELAXED);
    }
}

/* ---- loads ---- */

typedef struct search {
    const bh__ptx_insn *load;
    bool found;
} search;

static void look_for(void *context, uint32_t reg, bool written) {
    search *s = context;
    const bh__ptx_operand *d = &s->load->operands[0];
    for (uint32_t n = 0; !written && n < (d->kind == OPERAND_VECTOR ? d->count : 1); n++) {
        const bh__ptx_operand *one = d->kind == OPERAND_VECTOR ? &d->elements[n] : d;
        s->found |= one->kind == OPERAND_REG && one->reg == reg;
    }
}

/* Whether an instruction of the function reads what the current one loads. */
static bool is_read(const bh__ptx_exec *x) {
    const bh__ptx_function *f = x->frame_function;
    uint32_t at = x->module->sites[x->code - x->module->code].insn;
    search s = {.load = at < f->insn_count ? &f->insns[at] : NULL};
    for (uint32_t n = 0; s.load != NULL && !s.found && n < f->insn_count; n++) {
        bh__ptx_registers_visit(&f->insns[n], look_for, &s);
    }
    return s.load == NULL || s.found;
}

/* Returns whether anything reads the result of the current instruction: if not, the load itself is
 * all that can be reported. Looked up once for each load. */
static bool is_used(bh__ptx_exec *x) {
    bh__check_block *c = x->block->check;
    enum { NOT_KNOWN, USED, UNUSED };
    if (c->used_of != x->module) {
        free(c->used);
        c->used = calloc(x->module->code_count, 1);
        c->used_of = c->used == NULL ? NULL : x->module;
    }
    if (c->used == NULL) {
        return true;
    }
    uint8_t *used = &c->used[x->code - x->module->code];
    if (*used == NOT_KNOWN) {
        *used = is_read(x) ? USED : UNUSED;
    }
    return *used == USED;
}

static bh__check_row row_of(const bh__ptx_code *i, unsigned n, bool load) {
    bool wide = i->flags & (load ? FLAG_WIDE_D : FLAG_WIDE_A);
    return (bh__check_row){((const int32_t *)i->extra)[n], wide ? 8 : 4};
}

/* The undefined bits of a register that a value in memory is loaded to. */
static uint64_t extend(const bh__ptx_code *i, const uint8_t *undefined) {
    uint64_t bits = 0;
    memcpy(&bits, undefined, i->bytes);
    unsigned shift = 64 - 8u * i->bytes;
    return i->flags & FLAG_SIGNED ? (uint64_t)((int64_t)(bits << shift) >> shift) : bits;
}

static void set_rows(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t lanes,
                     uint8_t (*undefined)[MAX_BYTES], const uint32_t *origins) {
    for (unsigned n = 0; n < i->count; n++) {
        bh__check_undefined values[LANES];
        FOR_LANES_IN_ORDER(lanes) {
            values[l].bits = extend(i, undefined[l] + n * i->bytes);
            values[l].origin = values[l].bits != 0 ? origins[l] : 0;
        }
        bh__check_row_set(x, row_of(i, n, true), lanes, values);
    }
}

static const char *unused_text(const bh__check_access *access, bool global) {
    return global                           ? ", where nothing was ever written"
           : access->space == SPACE_LOCAL   ? ", where the thread never wrote"
           : access->space == SPACE_GENERIC ? ", where nothing was written"
                                            : ", where no thread of the block wrote";
}

void bh__check_loaded(bh__ptx_exec *x, const bh__ptx_code *i, const bh__check_access *access,
                      uint32_t lanes) {
    uint8_t undefined[LANES][MAX_BYTES] = {{0}};
    uint32_t origins[LANES] = {0};
    FOR_LANES_IN_ORDER(access->undefined & lanes) {
        bool global;
        const uint8_t *marks = marks_of(x, access, l, &global);
        if (marks == NULL) {
            continue;
        }
        bool whole = get_marks(marks, undefined[l], access->bytes);
        bool padding = looks_like_padding(marks, access->address[l], access->bytes, whole, global);
        if (is_used(x)) {
            origins[l] = bh__check_origin_new(x, access, l, whole, global, padding);
            continue;
        }
        if (global || (whole && access->bytes >= 4)) {
            bh__check_report_access(x, BH__PTX_FAULT_UNINITIALISED, l, access,
                                    unused_text(access, global));
        }
        memset(undefined[l], 0, access->bytes);
    }
    set_rows(x, i, lanes, undefined, origins);
}

/* ---- stores ---- */

static bool may_be_padding(const bh__ptx_exec *x, uint32_t origin) {
    const bh__check_origin *o = bh__check_origin_of(x, origin);
    return !(origin & ORIGIN_COMPUTED) && (o == NULL || o->padding);
}

/* Collects the undefined bits of what a lane stores. Returns the origin of some, or 0. */
static uint32_t stored_bits(const bh__ptx_exec *x, const bh__ptx_code *i, unsigned lane,
                            uint8_t *undefined) {
    uint32_t origin = 0;
    for (unsigned n = 0; n < i->count; n++) {
        bh__check_undefined v = bh__check_row_get(x, row_of(i, n, false), lane);
        memcpy(undefined + n * i->bytes, &v.bits, i->bytes);
        uint64_t kept = 0;
        memcpy(&kept, undefined + n * i->bytes, i->bytes);
        if (kept != 0 && (origin == 0 || !may_be_padding(x, v.origin))) {
            origin = v.origin;
        }
    }
    return origin;
}

void bh__check_stored(bh__ptx_exec *x, const bh__ptx_code *i, const bh__check_access *access,
                      uint32_t lanes) {
    FOR_LANES_IN_ORDER(lanes) {
        uint8_t undefined[MAX_BYTES];
        uint32_t origin = stored_bits(x, i, l, undefined);
        bool global = false;
        uint8_t *marks = origin == 0 ? NULL : marks_of(x, access, l, &global);
        if (origin == 0) {
            continue;
        }
        if (global && !may_be_padding(x, origin)) {
            bh__check_report_use(x, l, origin, "the value is stored to global memory");
        } else if (marks != NULL) {
            set_marks(marks, undefined, access->bytes);
        }
    }
}

/* ---- functions ---- */

/* A range of the frame of a function as an access, for origins. */
static bh__check_access access_of_frame(uint32_t offset, uint32_t bytes, unsigned lane) {
    bh__check_access access;
    access.space = SPACE_PARAM;
    access.bytes = bytes;
    access.address[lane] = offset;
    return access;
}

void bh__check_loaded_param(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    uint8_t undefined[LANES][MAX_BYTES] = {{0}};
    uint32_t origins[LANES] = {0};
    uint32_t offset = x->stack + (uint32_t)i->imm, bytes = (uint32_t)i->bytes * i->count;
    FOR_LANES_IN_ORDER(mask) {
        const uint8_t *marks = bh__check_local_at(x, l, offset + bytes);
        if (marks == NULL) {
            return;
        }
        bool whole = get_marks(marks + offset, undefined[l], bytes);
        uint8_t any = 0;
        for (uint32_t n = 0; n < bytes; n++) {
            any |= undefined[l][n];
        }
        if (any != 0) {
            bh__check_access access = access_of_frame(offset, bytes, l);
            bool padding = looks_like_padding(marks + offset, offset, bytes, whole, false);
            origins[l] = bh__check_origin_new(x, &access, l, whole, false, padding);
        }
    }
    set_rows(x, i, mask, undefined, origins);
}

void bh__check_stored_param(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    uint32_t offset = x->stack + (uint32_t)i->imm, bytes = (uint32_t)i->bytes * i->count;
    FOR_LANES_IN_ORDER(mask) {
        uint8_t undefined[MAX_BYTES] = {0};
        uint8_t *marks = bh__check_local_at(x, l, offset + bytes);
        if (marks == NULL) {
            return;
        }
        stored_bits(x, i, l, undefined);
        set_marks(marks + offset, undefined, bytes);
    }
}

/* One lane's undefined bits in a slot that is a register, or in 16 bytes of memory at most. */
static bh__check_undefined slot_get(bh__ptx_exec *x, const bh__ptx_slot *slot, unsigned lane) {
    bh__check_undefined v = {0, 0};
    if (slot->row != NO_ROW) {
        return bh__check_row_get(x, (bh__check_row){slot->row, (uint8_t)slot->bytes}, lane);
    }
    uint32_t offset = x->stack + slot->offset, bytes = slot->bytes < 8 ? slot->bytes : 8;
    const uint8_t *marks = bh__check_local_at(x, lane, offset + slot->bytes);
    uint8_t undefined[8] = {0};
    bool whole = marks != NULL && get_marks(marks + offset, undefined, bytes);
    memcpy(&v.bits, undefined, bytes);
    if (v.bits != 0) {
        bh__check_access access = access_of_frame(offset, bytes, lane);
        bool padding = looks_like_padding(marks + offset, offset, bytes, whole, false);
        v.origin = bh__check_origin_new(x, &access, lane, whole, false, padding);
    }
    return v;
}

static void slot_set(bh__ptx_exec *x, const bh__ptx_slot *slot, unsigned lane,
                     bh__check_undefined v) {
    if (slot->row != NO_ROW) {
        bh__check_undefined values[LANES];
        values[lane] = v;
        bh__check_row_set(x, (bh__check_row){slot->row, (uint8_t)slot->bytes}, 1u << lane, values);
        return;
    }
    uint32_t offset = x->stack + slot->offset;
    uint8_t *marks = bh__check_local_at(x, lane, offset + slot->bytes);
    uint8_t undefined[16] = {0};
    memcpy(undefined, &v.bits, sizeof v.bits);
    if (marks != NULL) {
        set_marks(marks + offset, undefined, slot->bytes < 16 ? slot->bytes : 16);
    }
}

void bh__check_passed(bh__ptx_exec *from, const bh__ptx_slot *a, bh__ptx_exec *to,
                      const bh__ptx_slot *d, uint32_t mask) {
    FOR_LANES_IN_ORDER(mask) {
        if (a->row != NO_ROW || d->row != NO_ROW) {
            slot_set(to, d, l, slot_get(from, a, l));
            continue;
        }
        uint32_t source = from->stack + a->offset, target = to->stack + d->offset;
        uint32_t end = (source > target ? source : target) + a->bytes;
        uint8_t *marks = bh__check_local_at(from, l, end);
        if (marks != NULL) {
            memmove(marks + target, marks + source, a->bytes);
        }
    }
}

void bh__check_shuffled(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask,
                        const uint8_t from[LANES]) {
    bh__check_undefined values[LANES];
    bh__check_row source = {i->a, 4}, target = {i->d, 4};
    FOR_LANES_IN_ORDER(mask) {
        values[l] = bh__check_row_get(x, source, from[l]);
    }
    bh__check_row_set(x, target, mask, values);
}
