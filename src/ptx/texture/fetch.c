/* SPDX-License-Identifier: Apache-2.0 */
/* tex, tld4 and txq; and what they share with surfaces: handles, shapes, operands. */
#include "ptx/check/check.h"
#include "ptx/half.h"
#include "ptx/texture/sample.h"

/* ---- handles and memory ---- */

const bh__ptx_texture *bh__texture_find(bh__ptx_exec *x, unsigned lane, uint64_t handle,
                                        bool surface) {
    const bh__ptx_textures *all = x->grid->textures;
    size_t low = 0, high = all == NULL ? 0 : all->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const bh__ptx_texture *t = all->list[middle];
        if ((uintptr_t)t == handle) {
            if (t->surface == surface) {
                return t;
            }
            bh__ptx_fault_other(x, BH__PTX_FAULT_ADDRESS, lane, "handle 0x%llx is a %s, not a %s",
                                (unsigned long long)handle, t->surface ? "surface" : "texture",
                                surface ? "surface" : "texture");
            return NULL;
        }
        if ((uintptr_t)t < handle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bh__ptx_fault_other(x, BH__PTX_FAULT_ADDRESS, lane, "0x%llx is not the handle of a %s",
                        (unsigned long long)handle, surface ? "surface" : "texture");
    return NULL;
}

uint8_t *bh__texel_at(bh__ptx_exec *x, unsigned lane, uint64_t address, unsigned bytes,
                      uint8_t flags) {
    bool write = (flags & ACCESS_WRITE) != 0;
    /* Rows may begin anywhere, so the checks get aligned pieces. Where there is no memory, the
     * launch ends below. */
    for (unsigned done = 0, piece; x->check != NULL && done < bytes; done += piece) {
        uint64_t at = address + done, aligned = at & (0 - at);
        for (piece = bytes; piece > aligned || piece > bytes - done; piece /= 2) {
        }
        bh__check_access_lane(x, lane, SPACE_GLOBAL, at, piece, flags);
    }
    uint8_t *p = bh__ptx_at(x, lane, address, bytes, write, NULL);
    if (p == NULL) {
        bh__ptx_fault_access(x, BH__PTX_FAULT_ADDRESS, lane, address, bytes, write, "global");
    }
    return p;
}

/* ---- shapes ---- */

static const struct {
    bh__ptx_mod mod;
    bh__geometry geometry;
} geometries[] = {
    {M_GEOM_1D, {"1d", 1, false, false, 1, 1}},    {M_GEOM_2D, {"2d", 2, false, false, 2, 2}},
    {M_GEOM_3D, {"3d", 3, false, false, 3, 4}},    {M_GEOM_A1D, {"a1d", 1, true, false, 1, 2}},
    {M_GEOM_A2D, {"a2d", 2, true, false, 2, 4}},   {M_GEOM_CUBE, {"cube", 2, false, true, 3, 4}},
    {M_GEOM_ACUBE, {"acube", 2, true, true, 3, 4}}};
enum { GEOMETRIES = sizeof geometries / sizeof *geometries };

const bh__geometry *bh__geometry_of(const bh__ptx_insn *insn) {
    for (unsigned n = 0; n < GEOMETRIES; n++) {
        if (HAS_MOD(insn, geometries[n].mod)) {
            return &geometries[n].geometry;
        }
    }
    return NULL;
}

static bool same_shape(const bh__geometry *g, const bh__ptx_texture *t) {
    return g->dimensions == t->dimensions && g->layered == t->layered && g->cube == t->cube;
}

bool bh__geometry_check(bh__ptx_exec *x, unsigned lane, const bh__geometry *geometry,
                        const bh__ptx_texture *t) {
    const char *name = "";
    if (same_shape(geometry, t)) {
        return true;
    }
    for (unsigned n = 0; n < GEOMETRIES; n++) {
        if (same_shape(&geometries[n].geometry, t)) {
            name = geometries[n].geometry.name;
        }
    }
    return bh__ptx_fault_other(x, BH__PTX_FAULT_ADDRESS, lane,
                               "an instruction for .%s with a %s that is .%s", geometry->name,
                               t->surface ? "surface" : "texture", name);
}

/* ---- operands ---- */

bool bh__texture_fail(bh__ptx_lowering *low, const char *fix, const char *what) {
    return bh__ptx_lower_fail(low, BH_E_LOAD, fix, "%s", what);
}

static bool right_register(const bh__ptx_lowering *low, const bh__ptx_operand *o,
                           bh__ptx_type type) {
    bh__ptx_type have = low->function->regs[o->reg].type;
    unsigned bytes = bh__ptx_bytes(type) == 1 ? 2 : bh__ptx_bytes(type);
    return have != T_PRED && !o->negated &&
           (bh__ptx_bytes(type) == 1 ? bh__ptx_bytes(have) >= bytes : bh__ptx_bytes(have) == bytes);
}

int32_t bh__texture_row_in(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type) {
    bool right = o->kind == OPERAND_REG ? right_register(low, o, type)
                 : type == T_F32        ? o->kind == OPERAND_FLOAT
                                        : o->kind == OPERAND_INT;
    if (!right) {
        bh__ptx_lower_fail(low, BH_E_LOAD, "give a register or a constant of that type",
                           "an operand is not a .%s", bh__ptx_type_table[type].name);
        return 0;
    }
    return bh__ptx_row_in(low, o, type);
}

int32_t bh__texture_row_out(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type) {
    if (o->kind != OPERAND_SINK && (o->kind != OPERAND_REG || !right_register(low, o, type))) {
        bh__ptx_lower_fail(low, BH_E_LOAD, "write to a register of that type",
                           "a result is not a .%s register", bh__ptx_type_table[type].name);
        return 0;
    }
    return bh__ptx_row_out(low, o, type);
}

/* The elements of a vector, or the operand itself in place of a vector of one. */
static const bh__ptx_operand *vector_of(const bh__ptx_operand *o, unsigned *count) {
    *count = o->kind == OPERAND_VECTOR ? o->count : 1;
    return o->kind == OPERAND_VECTOR ? o->elements : o;
}

bool bh__texture_operand(bh__ptx_lowering *low, const bh__ptx_operand *o,
                         const bh__geometry *geometry, bh__ptx_type type, int32_t *handle,
                         int32_t rows[4]) {
    unsigned wanted = geometry == NULL ? 0 : 1, count;
    if (o->kind != OPERAND_MEMORY || !o->has_reg || o->imm != 0 ||
        bh__ptx_bytes(low->function->regs[o->reg].type) != 8) {
        return bh__texture_fail(low, "pass the texture or surface object to the kernel as .u64",
                                "the handle is not a 64-bit register");
    }
    if (o->count == 2) {
        return bh__ptx_lower_fail(low, BH_E_UNSUPPORTED,
                                  "use texture objects, which contain their sampler",
                                  "the CPU device does not support separate samplers");
    }
    if (o->count != wanted) {
        return bh__texture_fail(low, "write [handle, {x, y}] for example",
                                "the address has too many or too few parts");
    }
    bh__ptx_operand reg = {.kind = OPERAND_REG, .reg = o->reg};
    *handle = bh__ptx_row_in(low, &reg, T_B64);
    if (geometry == NULL) {
        return low->status == BH_OK;
    }
    const bh__ptx_operand *list = vector_of(&o->elements[0], &count);
    if (count != geometry->parts) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give as many coordinates as the shape has",
                                  "%u coordinates for .%s, which has %u", count, geometry->name,
                                  geometry->parts);
    }
    unsigned used = geometry->coordinates + (geometry->layered ? 1u : 0u);
    for (unsigned n = 0; n < used; n++) {
        bool layer = geometry->layered && n == 0;
        rows[n] = bh__texture_row_in(low, &list[n], layer ? T_B32 : type);
    }
    return low->status == BH_OK;
}

/* ---- tex and tld4 ---- */

typedef struct fetch {
    const bh__geometry *geometry;
    int32_t handle, at[4], offset[3], level, dx[3], dy[3], d[4];
    bh__ptx_type type;
    bool whole;
    bh__sample_level select;
    uint8_t channel; /* of tld4 */
} fetch;

static uint32_t word(const bh__ptx_exec *x, int32_t row, unsigned l) {
    return ((const bh__u32 *)bh__row(x, row))[l];
}

static float number(const bh__ptx_exec *x, int32_t row, unsigned l) {
    return bh__float_of_bits(word(x, row, l));
}

static void read_operands(const bh__ptx_exec *x, const fetch *f, unsigned l, bh__sample *s) {
    unsigned first = f->geometry->layered;
    s->layer = first ? word(x, f->at[0], l) : 0;
    for (unsigned n = 0; n < f->geometry->coordinates; n++) {
        s->texel[n] = (int32_t)word(x, f->at[first + n], l);
        s->at[n] = bh__float_of_bits(word(x, f->at[first + n], l));
        s->offset[n] = f->offset[n] == NO_ROW ? 0 : (int32_t)word(x, f->offset[n], l);
        s->dx[n] = f->dx[n] == NO_ROW ? 0 : number(x, f->dx[n], l);
        s->dy[n] = f->dy[n] == NO_ROW ? 0 : number(x, f->dy[n], l);
    }
    if (f->level != NO_ROW) {
        s->level = f->whole ? (float)(int32_t)word(x, f->level, l) : number(x, f->level, l);
    }
}

static uint32_t half_of(const bh__ptx_texture *t, const bh__texel *texel, unsigned n) {
    return bh__texture_is_float(t) ? bh__f16_from_double(texel->value[n], BH__ROUND_NEAREST)
                                   : texel->bits[n] & 0xffff;
}

static void write_result(const bh__ptx_exec *x, const fetch *f, unsigned l,
                         const bh__ptx_texture *t, const bh__texel *texel) {
    if (f->type == T_F16X2) {
        for (unsigned n = 0; n < 2; n++) {
            uint32_t high = half_of(t, texel, 2 * n + 1);
            ((bh__u32 *)bh__row(x, f->d[n]))[l] = high << 16 | half_of(t, texel, 2 * n);
        }
        return;
    }
    for (unsigned n = 0; n < 4; n++) {
        ((bh__u32 *)bh__row(x, f->d[n]))[l] =
            f->type == T_F16 ? half_of(t, texel, n) : texel->bits[n];
    }
}

static bool run_fetch(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, bool gather) {
    const fetch *f = i->extra;
    FOR_LANES_IN_ORDER(mask) {
        uint64_t handle = ((const bh__u64 *)bh__row(x, f->handle))[l];
        bh__sample s = {.x = x, .lane = l, .whole = f->whole, .select = f->select};
        bh__texel texel;
        s.texture = bh__texture_find(x, l, handle, false);
        if (s.texture == NULL || !bh__geometry_check(x, l, f->geometry, s.texture)) {
            return false;
        }
        read_operands(x, f, l, &s);
        if (!(gather ? bh__sample_gather(&s, f->channel, &texel) : bh__sample_get(&s, &texel))) {
            return false;
        }
        write_result(x, f, l, s.texture, &texel);
    }
    return true;
}

static bool run_tex(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    return run_fetch(x, i, mask, false);
}

static bool run_gather(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    return run_fetch(x, i, mask, true);
}

/* A vector with one element for each dimension; those of three dimensions have a fourth, unused. */
static bool per_dimension(bh__ptx_lowering *low, const bh__ptx_operand *o, unsigned dimensions,
                          bh__ptx_type type, int32_t rows[3]) {
    unsigned count, wanted = dimensions == 3 ? 4 : dimensions;
    const bh__ptx_operand *list = vector_of(o, &count);
    if (count != wanted) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "give one element for each dimension",
                                  "a vector of %u elements where %u are needed", count, wanted);
    }
    for (unsigned n = 0; n < dimensions; n++) {
        rows[n] = bh__texture_row_in(low, &list[n], type);
    }
    return low->status == BH_OK;
}

static bool lower_results(bh__ptx_lowering *low, const bh__ptx_operand *o, fetch *f) {
    unsigned wanted = f->type == T_F16X2 ? 2 : 4;
    if (o->kind != OPERAND_VECTOR || o->count != wanted || HAS(low->insn, V4) != (wanted == 4)) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "write .v4 and four registers; .v2 for .f16x2",
                                  "the result is not a vector of %u elements", wanted);
    }
    for (unsigned n = 0; n < wanted; n++) {
        f->d[n] = bh__texture_row_out(low, &o->elements[n], f->type);
    }
    return low->status == BH_OK;
}

/* What selects the level, and then the offset. */
static bool lower_extras(bh__ptx_lowering *low, fetch *f) {
    const bh__ptx_insn *insn = low->insn;
    bool cube = f->geometry->cube;
    unsigned next = 2, dimensions = f->geometry->dimensions;
    unsigned wanted = 2 + (f->select == SAMPLE_LEVEL) + 2 * (f->select == SAMPLE_GRADIENT);
    if (insn->operand_count < wanted) {
        return bh__texture_fail(low, "add the level, or both gradients", "operands are missing");
    }
    if (f->select == SAMPLE_LEVEL) {
        f->level = bh__texture_row_in(low, &insn->operands[next++], f->whole ? T_S32 : T_F32);
    } else if (f->select == SAMPLE_GRADIENT) {
        unsigned elements = cube ? 3 : dimensions;
        if (!per_dimension(low, &insn->operands[next], elements, T_F32, f->dx) ||
            !per_dimension(low, &insn->operands[next + 1], elements, T_F32, f->dy)) {
            return false;
        }
        next += 2;
    }
    if (next < insn->operand_count) {
        const bh__ptx_operand *o = &insn->operands[next++];
        bool depth = o->kind == OPERAND_FLOAT ||
                     (o->kind == OPERAND_REG && low->function->regs[o->reg].type == T_F32);
        if (cube || depth || next < insn->operand_count) {
            return bh__ptx_lower_fail(low, BH_E_UNSUPPORTED, "compare in the kernel",
                                      "the CPU device does not support depth textures");
        }
        return per_dimension(low, o, dimensions, T_S32, f->offset);
    }
    return low->status == BH_OK;
}

static bool lower_fetch(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    fetch *f = bh__arena_alloc(&low->module->arena, 1, sizeof *f);
    if (f == NULL) {
        return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory",
                                  "no memory for an instruction");
    }
    *f = (fetch){.geometry = bh__geometry_of(insn),
                 .offset = {NO_ROW, NO_ROW, NO_ROW},
                 .dx = {NO_ROW, NO_ROW, NO_ROW},
                 .dy = {NO_ROW, NO_ROW, NO_ROW},
                 .level = NO_ROW,
                 .type = (bh__ptx_type)insn->types[0],
                 .whole = insn->types[1] == T_S32,
                 .select = HAS(insn, LEVEL)  ? SAMPLE_LEVEL
                           : HAS(insn, GRAD) ? SAMPLE_GRADIENT
                                             : SAMPLE_BASE};
    bool gather = insn->op == OP_TLD4;
    const bh__geometry *g = f->geometry;
    if (g == NULL || insn->operand_count < 2 || (f->whole && (g->cube || HAS(insn, GRAD))) ||
        (gather && g->dimensions != 2)) {
        return bh__texture_fail(low, "write a form that PTX defines, tex.2d.v4.f32.f32 for example",
                                "the shape, or its coordinates, do not fit the instruction");
    }
    if (gather) {
        f->channel = HAS(insn, R) ? 0 : HAS(insn, G) ? 1 : HAS(insn, B) ? 2 : 3;
        if (!HAS(insn, R) && !HAS(insn, G) && !HAS(insn, B) && !HAS(insn, A)) {
            return bh__texture_fail(low, "add .r, .g, .b or .a", "no component is named");
        }
    }
    bh__ptx_code code = {.run = gather ? run_gather : run_tex, .extra = f};
    return lower_results(low, &insn->operands[0], f) &&
           bh__texture_operand(low, &insn->operands[1], g, (bh__ptx_type)insn->types[1], &f->handle,
                               f->at) &&
           lower_extras(low, f) && bh__ptx_emit(low, &code, true);
}

/* ---- txq and suq ---- */

/* The numbers of OpenCL, which PTX uses. */
static uint32_t channel_type(const bh__ptx_texture *t) {
    uint32_t size = t->bits == 8 ? 0 : t->bits == 16 ? 1 : 2;
    if (t->kind == BH__TEXEL_FLOAT) {
        return t->bits == 16 ? 0x10dd : 0x10de;
    }
    if (t->as_float) {
        return (t->kind == BH__TEXEL_SIGNED ? 0x10d0 : 0x10d2) + size;
    }
    return (t->kind == BH__TEXEL_SIGNED ? 0x10d7 : 0x10da) + size;
}

static uint32_t channel_order(const bh__ptx_texture *t) {
    return t->channels == 1 ? 0x10b0 : t->channels == 2 ? 0x10b2 : 0x10b5;
}

static const bh__ptx_mod queries[] = {M_WIDTH,
                                      M_HEIGHT,
                                      M_DEPTH,
                                      M_CHANNEL_DATA_TYPE,
                                      M_CHANNEL_ORDER,
                                      M_ARRAY_SIZE,
                                      M_NORMALIZED_COORDS,
                                      M_NUM_MIPMAP_LEVELS};

/* The number of layers comes after the sizes. A line has height 1 for tex and 0 for surfaces. */
static uint32_t size_of(const bh__ptx_texture *t, const uint32_t size[3], unsigned dimension) {
    if (dimension < t->dimensions) {
        return size[dimension];
    }
    return dimension > t->dimensions ? 0 : t->layered ? t->layers : dimension == 1 && !t->surface;
}

static uint32_t answer(const bh__ptx_texture *t, uint32_t query, uint32_t level) {
    static const bh__ptx_texture_level none;
    const bh__ptx_texture_level *l = level < t->levels ? &t->level[level] : &none;
    const uint32_t size[3] = {l->width, l->height, l->depth};
    switch (query) {
    case M_WIDTH:
        return l->width;
    case M_HEIGHT:
        return size_of(t, size, 1);
    case M_DEPTH:
        return size_of(t, size, 2);
    case M_CHANNEL_DATA_TYPE:
        return channel_type(t);
    case M_CHANNEL_ORDER:
        return channel_order(t);
    case M_ARRAY_SIZE:
        return t->layered ? t->layers : 0;
    case M_NORMALIZED_COORDS:
        return t->normalized;
    default:
        return t->levels;
    }
}

/* `target`: what is asked; b: the level, or NO_ROW; count: 1 for surfaces */
static bool run_query(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    FOR_LANES_IN_ORDER(mask) {
        uint64_t handle = ((const bh__u64 *)bh__row(x, i->a))[l];
        const bh__ptx_texture *t = bh__texture_find(x, l, handle, i->count != 0);
        if (t == NULL) {
            return false;
        }
        ((bh__u32 *)bh__row(x, i->d))[l] =
            answer(t, i->target, i->b == NO_ROW ? 0 : word(x, i->b, l));
    }
    return true;
}

static bool lower_query(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bh__ptx_code code = {.run = run_query, .b = NO_ROW, .count = insn->op == OP_SUQ};
    unsigned wanted = HAS(insn, LEVEL) ? 3 : 2, found = 0;
    for (size_t n = 0; n < sizeof queries / sizeof *queries; n++) {
        if (HAS_MOD(insn, queries[n])) {
            code.target = queries[n];
            found++;
        }
    }
    if (found != 1 || insn->operand_count != wanted) {
        return bh__texture_fail(low, "ask for one attribute, txq.width for example",
                                "the attribute, or an operand, is missing");
    }
    if (!bh__texture_operand(low, &insn->operands[1], NULL, T_B32, &code.a, NULL)) {
        return false;
    }
    if (wanted == 3) {
        code.b = bh__texture_row_in(low, &insn->operands[2], T_B32);
    }
    code.d = bh__texture_row_out(low, &insn->operands[0], T_B32);
    return bh__ptx_emit(low, &code, true);
}

bool bh__ptx_lower_texture(bh__ptx_lowering *low) {
    switch (low->insn->op) {
    case OP_TEX:
    case OP_TLD4:
        return lower_fetch(low);
    case OP_TXQ:
    case OP_SUQ:
        return lower_query(low);
    default:
        return bh__ptx_lower_surface(low);
    }
}
