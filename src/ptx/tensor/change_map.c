/* SPDX-License-Identifier: Apache-2.0 */
/* tensormap: kernels that change tensor maps. A changed map is checked when it is used. */
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/exec/async.h"
#include "ptx/tensor/map.h"

#define HANDLER(name)       static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)
#define FAULT(x, lane, ...) bh__ptx_fault_other(x, BH__PTX_FAULT_TENSOR, lane, __VA_ARGS__)

/* ---- tensormap.replace ---- */

typedef struct replacement {
    bh__ptx_lowered_address map;
    bh__ptx_space space; /* GLOBAL, SHARED, GENERIC */
    bh__ptx_mod field;
    unsigned ordinal; /* of a dimension */
    int32_t row;
    bool wide; /* the row has 64-bit values */
} replacement;

static void set(const replacement *r, bh__tensor *t, uint64_t value) {
    /* PTX and the driver count the types differently. */
    static const uint8_t types[] = {
        BH__TENSOR_U8,   BH__TENSOR_U16,  BH__TENSOR_U32,     BH__TENSOR_I32,     BH__TENSOR_U64,
        BH__TENSOR_I64,  BH__TENSOR_F16,  BH__TENSOR_F32,     BH__TENSOR_F32_FTZ, BH__TENSOR_F64,
        BH__TENSOR_BF16, BH__TENSOR_TF32, BH__TENSOR_TF32_FTZ};
    switch ((int)r->field) {
    case M_GLOBAL_ADDRESS:
        t->address = value;
        break;
    case M_RANK: /* counted from 0 */
        t->rank = value < BH__TENSOR_RANK ? (uint8_t)(value + 1) : UINT8_MAX;
        break;
    case M_BOX_DIM:
        t->box[r->ordinal] = (uint32_t)value;
        break;
    case M_GLOBAL_DIM:
        t->dims[r->ordinal] = value;
        break;
    case M_GLOBAL_STRIDE:
        t->strides[r->ordinal] = value;
        break;
    case M_ELEMENT_STRIDE:
        t->steps[r->ordinal] = (uint32_t)value;
        break;
    case M_ELEMTYPE:
        t->type = types[value];
        break;
    case M_INTERLEAVE_LAYOUT:
        t->interleave = (uint8_t)value;
        break;
    case M_SWIZZLE_MODE:
        t->swizzle = (uint8_t)value;
        break;
    default:
        t->nan_fill = (uint8_t)value;
    }
}

static bool replace_one(bh__ptx_exec *x, unsigned l, const replacement *r) {
    uint64_t address = bh__ptx_place_at(x, &r->map, l);
    bh__tensor t;
    if (address % BH__TENSOR_MAP_ALIGN != 0) {
        return FAULT(x, l, "the tensor map is at 0x%llx, which is not a multiple of %d",
                     (unsigned long long)address, BH__TENSOR_MAP_ALIGN);
    }
    if (!bh__async_check(x, l, r->space, address, BH__TENSOR_MAP_BYTES, 0) ||
        !bh__async_check(x, l, r->space, address, BH__TENSOR_MAP_BYTES, ACCESS_WRITE)) {
        return true;
    }
    uint8_t *p = bh__ptx_resolve_lane(x, l, r->space, address, BH__TENSOR_MAP_BYTES, 1, true);
    if (p == NULL) {
        return false;
    }
    const char *wrong = bh__tensor_map_read(p, &t);
    if (wrong == NULL && t.im2col) {
        wrong = "it is one of im2col mode, which tensormap.replace.tile does not change";
    }
    if (wrong != NULL) {
        return FAULT(x, l, "the tensor map is at 0x%llx, and %s", (unsigned long long)address,
                     wrong);
    }
    set(r, &t,
        r->wide ? ((const bh__u64 *)bh__row(x, r->row))[l]
                : ((const bh__u32 *)bh__row(x, r->row))[l]);
    bh__tensor_map_write(&t, p);
    return true;
}

HANDLER(run_replace) {
    FOR_LANES_IN_ORDER(mask) {
        if (!replace_one(x, l, i->extra)) {
            return false;
        }
    }
    return true;
}

/* ---- tensormap.cp_fenceproxy ---- */

typedef struct map_copy {
    bh__ptx_lowered_address to, from;
} map_copy;

static bool copy_one(bh__ptx_exec *x, unsigned l, uint64_t to, uint64_t from) {
    if (to % BH__TENSOR_MAP_ALIGN != 0 || from % BH__TENSOR_MAP_ALIGN != 0) {
        return FAULT(x, l, "a tensor map is copied from 0x%llx to 0x%llx, not multiples of %d",
                     (unsigned long long)from, (unsigned long long)to, BH__TENSOR_MAP_ALIGN);
    }
    if (!bh__async_check(x, l, SPACE_SHARED, from, BH__TENSOR_MAP_BYTES, 0) ||
        !bh__async_check(x, l, SPACE_GLOBAL, to, BH__TENSOR_MAP_BYTES, ACCESS_WRITE)) {
        return true;
    }
    const uint8_t *source =
        bh__ptx_resolve_lane(x, l, SPACE_SHARED, from, BH__TENSOR_MAP_BYTES, 1, false);
    uint8_t *target =
        bh__ptx_resolve_lane(x, l, SPACE_GLOBAL, to, BH__TENSOR_MAP_BYTES, 1, source != NULL);
    if (source == NULL || target == NULL) {
        return false;
    }
    memmove(target, source, BH__TENSOR_MAP_BYTES);
    return true;
}

/* All threads of the warp execute it, usually for one map, which is then copied once. */
HANDLER(run_copy) {
    const map_copy *c = i->extra;
    unsigned first = (unsigned)__builtin_ctz(mask);
    uint64_t to = bh__ptx_place_at(x, &c->to, first), from = bh__ptx_place_at(x, &c->from, first);
    FOR_LANES_IN_ORDER(mask) {
        uint64_t lane_to = bh__ptx_place_at(x, &c->to, l);
        uint64_t lane_from = bh__ptx_place_at(x, &c->from, l);
        bool same = l != first && lane_to == to && lane_from == from;
        if (!same && !copy_one(x, l, lane_to, lane_from)) {
            return false;
        }
    }
    bh__fence();
    if (x->check != NULL) {
        bh__check_fence(x, mask, bh__check_wide(x, i->target));
    }
    return true;
}

/* ---- lowering ---- */

static bool bad(bh__ptx_lowering *low) {
    return bh__ptx_lower_fail(low, BH_E_LOAD, "write it as PTX defines it",
                              "this is not a form of tensormap that PTX has");
}

/* The fields, what their values are, and the first value or dimension that is none. */
static const struct field {
    bh__ptx_mod mod;
    enum { OF_MAP, OF_DIMENSION, CONSTANT } kind;
    uint8_t bytes;
    uint8_t limit;
} fields[] = {{M_GLOBAL_ADDRESS, OF_MAP, 8, 0},
              {M_RANK, OF_MAP, 4, 0},
              {M_BOX_DIM, OF_DIMENSION, 4, BH__TENSOR_RANK},
              {M_GLOBAL_DIM, OF_DIMENSION, 4, BH__TENSOR_RANK},
              {M_GLOBAL_STRIDE, OF_DIMENSION, 8, BH__TENSOR_RANK - 1},
              {M_ELEMENT_STRIDE, OF_DIMENSION, 4, BH__TENSOR_RANK},
              {M_ELEMTYPE, CONSTANT, 4, BH__TENSOR_TYPES},
              {M_INTERLEAVE_LAYOUT, CONSTANT, 4, 3},
              {M_SWIZZLE_MODE, CONSTANT, 4, 4},
              {M_FILL_MODE, CONSTANT, 4, 2}};

static const struct field *field_of(const bh__ptx_insn *insn) {
    for (size_t n = 0; n < sizeof fields / sizeof *fields; n++) {
        if (HAS_MOD(insn, fields[n].mod)) {
            return &fields[n];
        }
    }
    return NULL;
}

/* [map] {, ordinal}, value */
static bool lower_replace(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands;
    const struct field *field = field_of(insn);
    replacement *r = bh__arena_alloc(&low->module->arena, 1, sizeof *r);
    bh__ptx_type type = (bh__ptx_type)insn->types[0];
    if (r == NULL || field == NULL || !HAS(insn, REPLACE) || !HAS(insn, TILE) ||
        !HAS(insn, B1024) || (HAS(insn, GLOBAL) && HAS(insn, SHARED)) ||
        bh__ptx_bytes(type) != field->bytes) {
        return bad(low);
    }
    unsigned last = field->kind == OF_DIMENSION ? 2 : 1;
    if (insn->operand_count != last + 1) {
        return bad(low);
    }
    *r = (replacement){
        .space = bh__ptx_insn_space(insn), .field = field->mod, .wide = field->bytes == 8};
    bool known = o[1].kind == OPERAND_INT && o[1].imm < field->limit;
    bool named = r->space == SPACE_GENERIC && o[0].symbol != NULL;
    if ((field->kind != OF_MAP && !known) || named ||
        (o[last].kind != OPERAND_INT && !bh__ptx_is_register(low, &o[last], field->bytes)) ||
        !bh__ptx_lower_async_place(low, &o[0], r->space, &r->map)) {
        return bad(low);
    }
    r->ordinal = field->kind == OF_DIMENSION ? (unsigned)o[1].imm : 0;
    r->row = bh__ptx_row_in(low, &o[last], type);
    return bh__ptx_emit(low, &(bh__ptx_code){.run = run_replace, .extra = r}, true);
}

/* [to], [from], 128 */
static bool lower_map_copy(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands;
    map_copy *c = bh__arena_alloc(&low->module->arena, 1, sizeof *c);
    bool scoped = HAS(insn, CTA) || HAS(insn, CLUSTER) || HAS(insn, GPU) || HAS(insn, SYS);
    if (c == NULL || insn->operand_count != 3 || !HAS(insn, CP_FENCEPROXY) || !HAS(insn, GLOBAL) ||
        !HAS(insn, SHARED) || !HAS(insn, PROXY) || !HAS(insn, RELEASE) || !scoped ||
        !HAS(insn, SYNC) || !HAS(insn, ALIGNED) || o[2].kind != OPERAND_INT ||
        o[2].imm != BH__TENSOR_MAP_BYTES ||
        !bh__ptx_lower_async_place(low, &o[0], SPACE_GLOBAL, &c->to) ||
        !bh__ptx_lower_async_place(low, &o[1], SPACE_SHARED, &c->from)) {
        return bad(low);
    }
    bh__ptx_code code = {.run = run_copy, .extra = c, .target = bh__ptx_access_flags(insn)};
    return bh__ptx_emit(low, &code, true);
}

bool bh__ptx_lower_tensor_map(bh__ptx_lowering *low) {
    return low->insn->op == OP_TENSORMAP ? lower_replace(low) : lower_map_copy(low);
}
