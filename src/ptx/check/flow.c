/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: which bits of an instruction's result are undefined because bits of its sources are, and
 * which instructions depend on what such bits are. */
#include <string.h>

#include "ptx/check/values.h"
#include "ptx/debug/debug.h"

#define ALL UINT64_MAX

/* An instruction that lanes are about to execute. */
typedef struct flow {
    bh__ptx_exec *x;
    const bh__ptx_insn *insn;
    uint32_t mask;
    unsigned bits; /* of the first type */
} flow;

/* A source of one lane. */
typedef struct source {
    uint64_t value, undefined;
    uint32_t origin;
} source;

static bh__check_row row_of(const flow *k, uint32_t reg) {
    const bh__ptx_reg *r = &k->x->frame_function->regs[reg];
    unsigned bytes = bh__ptx_bytes(r->type);
    return (bh__check_row){r->row == 0 ? NO_ROW : (int32_t)r->row,
                           (uint8_t)(bytes > 8 ? 8 : bytes)};
}

/* Of a register of 128 bits: half 0 or 1. */
static bh__check_row half_of(const flow *k, uint32_t reg, unsigned half) {
    bh__check_row row = row_of(k, reg);
    row.row += row.row == NO_ROW || half == 0 ? 0 : HIGH_HALF;
    return row;
}

static bool is_wide(const flow *k, uint32_t reg) {
    return k->x->frame_function->regs[reg].type == T_B128;
}

static uint64_t low(unsigned bits) {
    return bits >= 64 ? ALL : (UINT64_C(1) << bits) - 1;
}

/* From the lowest bit that is set upwards: where a sum may carry. */
static uint64_t upwards(uint64_t bits) {
    return bits | -bits;
}

static uint64_t sign_extend(uint64_t v, unsigned bits) {
    return bits == 0 || bits >= 64 ? v : (uint64_t)((int64_t)(v << (64 - bits)) >> (64 - bits));
}

static source read_source(const flow *k, const bh__ptx_operand *o, unsigned lane) {
    source s = {0, 0, 0};
    if (o->kind == OPERAND_INT) {
        s.value = o->imm;
    } else if (o->kind == OPERAND_REG) {
        const bh__ptx_warp *w = k->x->warp;
        const bh__ptx_reg *r = &k->x->frame_function->regs[o->reg];
        bh__check_undefined u = bh__check_row_get(k->x, row_of(k, o->reg), lane);
        if (r->row != 0) {
            s.value = bh__ptx_register_value(w, (uint32_t)(k->x->bases[0] - w->regs), r, lane, 0);
        }
        s.value ^= o->negated ? 1 : 0;
        s.undefined = u.bits;
        s.origin = u.origin;
    }
    return s;
}

/* ---- operations whose result may be defined although a source is not, or only in part ---- */

static uint64_t lop3(const source *s, uint64_t table) {
    uint64_t zero = 0, one = 0;
    for (unsigned n = 0; n < 8; n++) { /* the bits for which this row of the table may be chosen */
        uint64_t possible = ALL;
        for (unsigned j = 0; j < 3; j++) {
            uint64_t is = n >> (2 - j) & 1 ? s[j].value : ~s[j].value;
            possible &= is | s[j].undefined;
        }
        *(table >> n & 1 ? &one : &zero) |= possible;
    }
    return zero & one;
}

static uint64_t prmt(const source *s) {
    uint64_t both = (s[0].undefined & UINT32_MAX) | s[1].undefined << 32, d = 0;
    for (unsigned n = 0; n < 4; n++) {
        unsigned choice = s[2].value >> 4 * n & 15;
        uint64_t byte = both >> 8 * (choice & 7) & 0xff;
        d |= (choice & 8 ? (byte & 0x80 ? 0xff : 0) : byte) << 8 * n;
    }
    return d;
}

static uint64_t funnel(const flow *k, const source *s) {
    uint64_t both = (s[0].undefined & UINT32_MAX) | s[1].undefined << 32;
    uint64_t n = s[2].value & UINT32_MAX;
    n = HAS(k->insn, WRAP) ? n & 31 : n > 32 ? 32 : n;
    return HAS(k->insn, L) ? (n == 0 ? both >> 32 : both << n >> 32) : both >> n & UINT32_MAX;
}

static uint64_t shift(const flow *k, const source *s) {
    uint64_t n = s[1].value & UINT32_MAX, v = s[0].undefined & low(k->bits);
    bool negative = bh__ptx_class((bh__ptx_type)k->insn->types[0]) == 'S';
    if (k->insn->op == OP_SHL) {
        return n >= k->bits ? 0 : v << n & low(k->bits);
    }
    if (negative) {
        n = n >= k->bits ? k->bits - 1 : n;
        return (uint64_t)((int64_t)sign_extend(v, k->bits) >> n) & low(k->bits);
    }
    return n >= k->bits ? 0 : v >> n;
}

static uint64_t extract(const flow *k, const source *s) {
    unsigned from = s[1].value & 255, count = s[2].value & 255;
    uint64_t v = from >= 64 ? 0 : (s[0].undefined & low(k->bits)) >> from & low(count);
    bool negative = bh__ptx_class((bh__ptx_type)k->insn->types[0]) == 'S';
    return (negative ? sign_extend(v, count) : v) & low(k->bits);
}

static uint64_t insert(const source *s) {
    unsigned to = s[2].value & 255, count = s[3].value & 255;
    uint64_t field = to >= 64 ? 0 : low(count) << to;
    return (s[1].undefined & ~field) | (to >= 64 ? 0 : s[0].undefined << to & field);
}

/* Whether the bits that are known leave the result of a comparison open. */
static uint64_t compare(const flow *k, const source *s) {
    uint64_t undefined = s[0].undefined | s[1].undefined;
    uint64_t differs = (s[0].value ^ s[1].value) & ~undefined & low(k->bits);
    bool equality = HAS(k->insn, EQ) || HAS(k->insn, NE);
    bool open = (undefined & low(k->bits)) != 0 && !(equality && differs != 0);
    return open || s[2].undefined != 0 ? ALL : 0;
}

static bool convert(const flow *k, const source *s, uint64_t *d) {
    bh__ptx_type to = (bh__ptx_type)k->insn->types[0], from = (bh__ptx_type)k->insn->types[1];
    if (bh__ptx_class(to) == 'F' || bh__ptx_class(from) == 'F' || HAS(k->insn, SAT)) {
        return false;
    }
    unsigned bits = 8 * bh__ptx_bytes(from);
    *d = s[0].undefined & low(bits);
    *d = bh__ptx_class(from) == 'S' ? sign_extend(*d, bits) : *d;
    return true;
}

/* False: there is no rule; then all of the result is undefined if anything is. */
static bool result_of(const flow *k, const source *s, uint64_t *d, bool *copied) {
    const bh__ptx_insn *insn = k->insn;
    uint64_t a = s[0].undefined, b = s[1].undefined;
    *copied = true;
    switch (insn->op) {
    case OP_MOV:
    case OP_CVTA:
    case OP_NOT:
        *d = a;
        return true;
    case OP_AND:
        *d = (a | b) & (a | s[0].value) & (b | s[1].value);
        return true;
    case OP_OR:
        *d = (a | b) & (a | ~s[0].value) & (b | ~s[1].value);
        return true;
    case OP_XOR:
        *d = a | b;
        return true;
    case OP_LOP3:
        *d = lop3(s, insn->operands[4].imm);
        return insn->operand_count == 5;
    case OP_SHL:
    case OP_SHR:
        *d = shift(k, s);
        /* Compilers move bytes of structures; by other counts it is a product. */
        *copied = insn->op == OP_SHR || s[1].value % 8 == 0;
        return b == 0;
    case OP_SHF:
        *d = funnel(k, s);
        return s[2].undefined == 0;
    case OP_BFE:
        *d = extract(k, s);
        return b == 0 && s[2].undefined == 0;
    case OP_BFI:
        *d = insert(s);
        return s[2].undefined == 0 && s[3].undefined == 0;
    case OP_PRMT:
        *d = prmt(s);
        return s[2].undefined == 0 && insn->mods == 0;
    case OP_CVT:
        return convert(k, s, d);
    case OP_SELP:
        *d = s[2].value & 1 ? a : b;
        return s[2].undefined == 0;
    case OP_SETP:
        *d = compare(k, s);
        return true;
    case OP_ADD:
    case OP_SUB:
        *copied = false;
        *d = upwards(a | b);
        return !HAS(insn, SAT) && !HAS(insn, CC);
    default:
        return false;
    }
}

/* ---- results ---- */

typedef struct results {
    flow *k;
    bh__check_undefined values[LANES];
} results;

static void set_result(void *context, uint32_t reg, bool written) {
    results *r = context;
    if (!written) {
        return;
    }
    bh__check_row row = row_of(r->k, reg);
    bh__check_undefined values[LANES];
    unsigned bytes = bh__ptx_bytes(r->k->x->frame_function->regs[reg].type);
    memcpy(values, r->values, sizeof values);
    FOR_LANES_IN_ORDER(r->k->mask) {
        values[l].bits &= bytes == 0 ? 1 : low(8 * bytes);
    }
    bh__check_row_set(r->k->x, row, r->k->mask, values);
}

static void set_results(flow *k, const bh__check_undefined values[LANES]) {
    results r = {.k = k};
    memcpy(r.values, values, sizeof r.values);
    bh__ptx_registers_visit(k->insn, set_result, &r);
}

typedef struct sources { /* which lanes have a source with undefined bits, and whose they are */
    const flow *k;
    uint32_t lanes;
    uint32_t origins[LANES];
} sources;

static void note_source(void *context, uint32_t reg, bool written) {
    sources *s = context;
    bh__check_row row = row_of(s->k, reg);
    if (written || !bh__check_row_any(s->k->x, row)) {
        return;
    }
    FOR_LANES_IN_ORDER(s->k->mask) {
        bh__check_undefined u = bh__check_row_get(s->k->x, row, l);
        if (u.bits != 0) {
            s->lanes |= 1u << l;
            s->origins[l] = u.origin;
        }
    }
}

/* All of every result, for lanes that have an undefined bit in any source. */
static void flow_whole(flow *k) {
    sources s = {.k = k};
    bh__check_undefined values[LANES];
    bh__ptx_registers_visit(k->insn, note_source, &s);
    bool exchange = bh__ptx_op_table[k->insn->op].unit == UNIT_WARP && s.lanes != 0;
    FOR_LANES_IN_ORDER(k->mask) {
        unsigned from = s.lanes >> l & 1 ? l : exchange ? (unsigned)__builtin_ctz(s.lanes) : l;
        bool any = s.lanes >> from & 1;
        values[l].bits = any ? ALL : 0;
        values[l].origin = any ? s.origins[from] | ORIGIN_COMPUTED : 0;
    }
    set_results(k, values);
}

static bool flow_by_rule(flow *k) {
    const bh__ptx_insn *insn = k->insn;
    bh__check_undefined values[LANES];
    if (insn->operand_count < 2 || insn->operand_count > 6) {
        return false;
    }
    FOR_LANES_IN_ORDER(k->mask) {
        source s[5] = {{0, 0, 0}};
        bool copied;
        values[l] = (bh__check_undefined){0, 0};
        for (unsigned n = 1; n < insn->operand_count; n++) {
            s[n - 1] = read_source(k, &insn->operands[n], l);
        }
        if (!result_of(k, s, &values[l].bits, &copied)) {
            return false;
        }
        for (unsigned n = 0; n < 5 && values[l].bits != 0 && values[l].origin == 0; n++) {
            values[l].origin = s[n].undefined != 0 ? s[n].origin : 0;
        }
        values[l].origin |= copied || values[l].bits == 0 ? 0 : ORIGIN_COMPUTED;
    }
    set_results(k, values);
    return true;
}

/* ---- mov with vectors ---- */

static const bh__ptx_operand *element(const bh__ptx_operand *o, unsigned n, unsigned *count) {
    *count = o->kind == OPERAND_VECTOR ? o->count : 1;
    return o->kind == OPERAND_VECTOR ? &o->elements[n] : o;
}

/* A register of 128 bits is two rows: its halves, each of which is one or two elements of the
 * vector that it is made of or taken apart into. */
static void flow_wide(flow *k) {
    const bh__ptx_operand *to = &k->insn->operands[0], *from = &k->insn->operands[1];
    bool packs = from->kind == OPERAND_VECTOR;
    const bh__ptx_operand *list = packs ? from : to, *whole = packs ? to : from;
    unsigned each = list->count / 2;
    if (whole->kind != OPERAND_REG || each == 0) {
        return;
    }
    for (unsigned half = 0; half < 2; half++) {
        bh__check_row row = half_of(k, whole->reg, half);
        bh__check_undefined values[LANES], part[LANES];
        memset(values, 0, sizeof values);
        for (unsigned n = 0; n < each; n++) {
            const bh__ptx_operand *o = &list->elements[half * each + n];
            unsigned size = 64 / each;
            FOR_LANES_IN_ORDER(k->mask) {
                bh__check_undefined u =
                    packs ? (bh__check_undefined){0, 0} : bh__check_row_get(k->x, row, l);
                source s = packs ? read_source(k, o, l) : (source){0, 0, 0};
                values[l].bits |= (s.undefined & low(size)) << n * size;
                values[l].origin = s.undefined != 0 ? s.origin : values[l].origin;
                part[l] = (bh__check_undefined){u.bits >> n * size & low(size), u.origin};
            }
            if (!packs && o->kind == OPERAND_REG) {
                bh__check_row_set(k->x, row_of(k, o->reg), k->mask, part);
            }
        }
        if (packs) {
            bh__check_row_set(k->x, row, k->mask, values);
        }
    }
}

/* The bits of all elements of the source in a row, then taken apart as the target has them. */
static void flow_vector(flow *k) {
    const bh__ptx_operand *to = &k->insn->operands[0], *from = &k->insn->operands[1];
    unsigned targets, parts;
    element(to, 0, &targets);
    element(from, 0, &parts);
    bool packs = targets == 1 || parts == 1;
    bh__check_undefined values[8][LANES];
    for (unsigned n = 0; n < targets && n < 8; n++) {
        FOR_LANES_IN_ORDER(k->mask) {
            bh__check_undefined v = {0, 0};
            for (unsigned p = 0; p < parts; p++) {
                source s = read_source(k, element(from, p, &parts), l);
                unsigned size = k->bits / (parts > 1 ? parts : 1);
                uint64_t bits =
                    packs && parts > 1 ? (s.undefined & low(size)) << p * size : s.undefined;
                bool mine = packs || p == n;
                v.bits |= mine ? bits : 0;
                v.origin = mine && bits != 0 ? s.origin : v.origin;
            }
            if (packs && targets > 1) {
                v.bits = v.bits >> n * (k->bits / targets) & low(k->bits / targets);
            }
            v.origin = v.bits != 0 ? v.origin : 0;
            values[n][l] = v;
        }
    }
    for (unsigned n = 0; n < targets && n < 8; n++) {
        const bh__ptx_operand *o = element(to, n, &targets);
        if (o->kind == OPERAND_REG) {
            bh__check_row_set(k->x, row_of(k, o->reg), k->mask, values[n]);
        }
    }
}

/* ---- what depends on undefined bits ---- */

/* Reports the lanes that have undefined bits in a register, which then count as defined. */
static void decide(flow *k, uint32_t reg, uint32_t mask, const char *what) {
    bh__check_row row = row_of(k, reg);
    if (!bh__check_row_any(k->x, row)) {
        return;
    }
    bh__check_undefined none[LANES];
    memset(none, 0, sizeof none);
    FOR_LANES_IN_ORDER(mask) {
        bh__check_undefined u = bh__check_row_get(k->x, row, l);
        if (u.bits != 0) {
            bh__check_report_use(k->x, l, u.origin, what);
        }
    }
    bh__check_row_set(k->x, row, mask, none);
}

static void decide_addresses(flow *k, const bh__ptx_operand *o) {
    if (o->kind != OPERAND_MEMORY) {
        return;
    }
    if (o->has_reg) {
        decide(k, o->reg, k->mask, "the value is used in an address");
    }
    for (uint32_t n = 0; n < o->count; n++) {
        if (o->elements[n].kind == OPERAND_REG) {
            decide(k, o->elements[n].reg, k->mask, "the value is used in an address");
        }
    }
}

static void decide_source(void *context, uint32_t reg, bool written) {
    flow *k = context;
    if (!written) {
        decide(k, reg, k->mask, "the value decides what is done");
    }
}

/* Instructions that do not only compute registers. */
static bool has_effect(const bh__ptx_insn *insn) {
    switch (bh__ptx_op_table[insn->op].unit) {
    case UNIT_ATOM:
    case UNIT_CONTROL:
    case UNIT_MBARRIER:
    case UNIT_ASYNC:
    case UNIT_STACK:
    case UNIT_MULTIMEM:
        return true;
    case UNIT_TEXTURE:
    case UNIT_MATRIX:
        return insn->operand_count > 0 && insn->operands[0].kind == OPERAND_MEMORY;
    default:
        return false;
    }
}

static void flow_result(flow *k) {
    static const bh__check_undefined none[LANES];
    const bh__ptx_insn *insn = k->insn;
    bool vector =
        insn->op == OP_MOV && insn->operand_count == 2 &&
        (insn->operands[0].kind == OPERAND_VECTOR || insn->operands[1].kind == OPERAND_VECTOR);
    if (insn->op == OP_ST || insn->op == OP_SHFL) {
        return; /* done when it is executed */
    }
    if (insn->op == OP_LD || insn->op == OP_LDU || insn->op == OP_CALL) {
        set_results(k, none); /* the same, for what is not defined */
    } else if (has_effect(insn)) {
        bh__ptx_registers_visit(insn, decide_source, k);
        set_results(k, none);
    } else if (vector && k->bits == 128 && insn->operands[0].kind != insn->operands[1].kind) {
        flow_wide(k);
    } else if (vector) {
        flow_vector(k);
    } else if (!flow_by_rule(k)) {
        flow_whole(k);
    }
}

typedef struct touched {
    const flow *k;
    bool any;
} touched;

static void look_at(void *context, uint32_t reg, bool written) {
    touched *t = context;
    (void)written;
    t->any |= bh__check_row_any(t->k->x, row_of(t->k, reg));
    t->any |= is_wide(t->k, reg) && bh__check_row_any(t->k->x, half_of(t->k, reg, 1));
}

void bh__check_flow(bh__ptx_exec *x, uint32_t pc, uint32_t mask) {
    const bh__ptx_function *f = x->frame_function;
    const bh__ptx_site *sites = x->module->sites;
    uint32_t at = sites[pc].insn;
    if (at >= f->insn_count || (pc > f->code && sites[pc - 1].insn == at)) {
        return; /* the function's end; a later part of an instruction */
    }
    flow k = {.x = x, .insn = &f->insns[at], .mask = mask};
    touched t = {.k = &k};
    bh__ptx_registers_visit(k.insn, look_at, &t);
    if (!t.any) {
        return;
    }
    k.bits = k.insn->type_count > 0 ? 8 * bh__ptx_bytes((bh__ptx_type)k.insn->types[0]) : 0;
    k.bits = k.bits == 0 ? 1 : k.bits;
    x->code = &x->module->code[pc];
    if (k.insn->guard != NO_REG) {
        decide(&k, k.insn->guard, mask, "the value decides which threads execute the instruction");
        uint32_t guard = *(const bh__u32 *)bh__row(x, row_of(&k, k.insn->guard).row);
        k.mask &= k.insn->guard_negated ? ~guard : guard;
    }
    if (k.mask == 0) {
        return;
    }
    for (unsigned n = 0; n < k.insn->operand_count; n++) {
        decide_addresses(&k, &k.insn->operands[n]);
    }
    flow_result(&k);
}
