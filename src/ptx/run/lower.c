/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering of verified instructions to the interpreter's code: rows, constants, targets. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/half.h"
#include "ptx/parse/parse.h"
#include "ptx/run/exec.h"

#define MAX_FRAME ((uint32_t)32 << 20)

static bh__ptx_site site_of(const bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    return (bh__ptx_site){.line = insn->line,
                          .text = insn->text,
                          .text_length = insn->text_length,
                          .loc_file = insn->loc_file,
                          .loc_line = insn->loc_line,
                          .insn = (uint32_t)(insn - low->function->insns)};
}

bool bh__ptx_lower_fail(bh__ptx_lowering *low, bh_status status, const char *fix,
                        const char *format, ...) {
    if (low->status != BH_OK) {
        return false;
    }
    char what[320];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    bh__ptx_site site = {.line = low->function->line};
    if (low->insn != NULL) {
        site = site_of(low);
    }
    low->status = bh__ptx_error_at(low->module, low->error, status, site.line, site.text,
                                   site.text_length, fix, "%s", what);
    return false;
}

static bool no_memory(bh__ptx_lowering *low) {
    low->status = bh__fail(low->error, BH_E_NO_HOST_MEMORY, "free memory, or load a smaller module",
                           "no memory to decode a module");
    return false;
}

static uint32_t constant_hash(uint64_t value, unsigned bytes) {
    uint64_t h = (value + bytes) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32);
}

/* The buckets hold byte offsets of rows plus one; open addressing. */
static bool constants_rehash(bh__ptx_lowering *low) {
    uint32_t old_count = low->bucket_count;
    uint32_t *old = low->buckets;
    low->bucket_count = old_count == 0 ? 256 : old_count * 2;
    low->buckets = calloc(low->bucket_count, sizeof *low->buckets);
    if (low->buckets == NULL) {
        low->buckets = old;
        low->bucket_count = old_count;
        return no_memory(low);
    }
    for (uint32_t i = 0; i < old_count; i++) {
        if (old[i] == 0) {
            continue;
        }
        uint64_t value = 0;
        unsigned bytes = old[i] & 1 ? 8 : 4;
        memcpy(&value, low->module->constants + (old[i] & ~1u) - 2, bytes);
        uint32_t h = constant_hash(value, bytes) & (low->bucket_count - 1);
        while (low->buckets[h] != 0) {
            h = (h + 1) & (low->bucket_count - 1);
        }
        low->buckets[h] = old[i];
    }
    free(old);
    return true;
}

static bool constants_grow(bh__ptx_lowering *low, size_t bytes) {
    bh__ptx_module *m = low->module;
    if (low->constant_capacity - m->constant_bytes >= bytes) {
        return true;
    }
    size_t capacity = low->constant_capacity == 0 ? 16384 : low->constant_capacity * 2;
    void *grown = capacity > INT32_MAX / 2 ? NULL : aligned_alloc(64, capacity);
    if (grown == NULL) {
        return no_memory(low);
    }
    if (m->constants != NULL) {
        memcpy(grown, m->constants, m->constant_bytes);
    }
    free(m->constants);
    m->constants = grown;
    low->constant_capacity = capacity;
    return true;
}

/* A bucket's value is the row's offset plus 2, plus 1 where it holds 64-bit values. */
int32_t bh__ptx_constant(bh__ptx_lowering *low, uint64_t value, unsigned bytes) {
    unsigned size = bytes == 8 ? 8 : 4;
    if (bytes < 4 && bytes > 0) {
        value &= (UINT64_C(1) << 8 * bytes) - 1;
    } else if (bytes == 4) {
        value = (uint32_t)value;
    } else if (bytes == 0) {
        value = value != 0 ? UINT32_MAX : 0;
    }
    if (low->constant_count * 2 >= low->bucket_count && !constants_rehash(low)) {
        return 0;
    }
    uint32_t h = constant_hash(value, size) & (low->bucket_count - 1);
    for (; low->buckets[h] != 0; h = (h + 1) & (low->bucket_count - 1)) {
        uint64_t have = 0;
        uint32_t row = (low->buckets[h] & ~1u) - 2;
        memcpy(&have, low->module->constants + row, size);
        if (have == value && (low->buckets[h] & 1) == (size == 8)) {
            return (int32_t)row | CONST_ROW;
        }
    }
    if (!constants_grow(low, size * LANES)) {
        return 0;
    }
    uint32_t row = low->module->constant_bytes;
    for (unsigned l = 0; l < LANES; l++) {
        memcpy(low->module->constants + row + l * size, &value, size);
    }
    low->module->constant_bytes += size * LANES;
    low->buckets[h] = (row + 2) | (size == 8);
    low->constant_count++;
    return (int32_t)row | CONST_ROW;
}

/* Kernels have one frame, so nobody asks for their rows. */
static bool note_row(bh__ptx_lowering *low, uint32_t row, uint32_t kind) {
    bh__ptx_function *f = low->function;
    if (f->entry) {
        return true;
    }
    uint32_t *rows =
        bh__arena_grow(&low->module->arena, f->rows, f->row_count, &f->row_capacity, sizeof *rows);
    if (rows == NULL) {
        return no_memory(low);
    }
    f->rows = rows;
    f->rows[f->row_count++] = row + kind;
    return true;
}

int32_t bh__ptx_new_row(bh__ptx_lowering *low, unsigned bytes) {
    uint32_t size = bytes == 0 ? 4 : bytes >= 8 ? bytes * LANES : 4 * LANES;
    if (bytes != 0) {
        low->rows = (low->rows + 63) & ~63u;
    }
    if (low->rows + size > MAX_FRAME) {
        bh__ptx_lower_fail(low, BH_E_UNSUPPORTED, "split the function",
                           "the function has more registers than the CPU device can hold");
        return 0;
    }
    uint32_t row = low->rows;
    low->rows += size;
    bool ok = note_row(low, row,
                       bytes == 0  ? ROW_PREDICATE
                       : bytes < 8 ? ROW_WORDS
                                   : ROW_WIDE) &&
              (bytes <= 8 || note_row(low, row + HIGH_HALF, ROW_WIDE));
    return ok ? (int32_t)row : 0;
}

/* A register gets its row when an instruction first uses it. */
static int32_t register_row(bh__ptx_lowering *low, uint32_t reg) {
    bh__ptx_reg *r = &low->function->regs[reg];
    if (r->row == 0) {
        r->row = (uint32_t)bh__ptx_new_row(low, bh__ptx_bytes(r->type));
    }
    return (int32_t)r->row;
}

static int32_t temp_of_sreg(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type) {
    unsigned bytes = bh__ptx_bytes(type);
    bh__ptx_code code = {.run = bh__ptx_run_sreg,
                         .d = bh__ptx_new_row(low, bytes),
                         .imm = o->sreg,
                         .count = o->component,
                         .bytes = (uint8_t)bytes};
    bh__ptx_emit(low, &code, false);
    return code.d;
}

static int32_t temp_of_address(bh__ptx_lowering *low, const bh__ptx_operand *o, unsigned bytes) {
    bh__ptx_code code = {.run = bh__ptx_run_address,
                         .d = bh__ptx_new_row(low, bytes),
                         .extra = o->symbol,
                         .imm = o->imm,
                         .bytes = (uint8_t)bytes};
    bh__ptx_emit(low, &code, false);
    return code.d;
}

static int32_t temp_of_negated(bh__ptx_lowering *low, const bh__ptx_operand *o) {
    bh__ptx_code code = {
        .run = bh__ptx_run_not_pred, .d = bh__ptx_new_row(low, 0), .a = register_row(low, o->reg)};
    bh__ptx_emit(low, &code, false);
    return code.d;
}

bool bh__ptx_row_wide(const bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type) {
    if (o->kind == OPERAND_REG) {
        return bh__ptx_bytes(low->function->regs[o->reg].type) == 8;
    }
    return bh__ptx_bytes(type) == 8;
}

int32_t bh__ptx_row_in(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type) {
    unsigned bytes = bh__ptx_bytes(type);
    switch (o->kind) {
    case OPERAND_REG:
        return o->negated ? temp_of_negated(low, o) : register_row(low, o->reg);
    case OPERAND_INT:
        return bh__ptx_constant(low, o->imm, bytes);
    case OPERAND_FLOAT: {
        bh__ptx_value v = {.is_float = true, .single = o->single, .bits = o->imm};
        return bh__ptx_constant(low, bh__ptx_float_bits(&v, type), bytes);
    }
    case OPERAND_SREG:
        return temp_of_sreg(low, o, type);
    case OPERAND_ADDRESS:
        return temp_of_address(low, o, bytes);
    default:
        break;
    }
    bh__ptx_lower_fail(low, BH_E_LOAD, "give a register or a constant",
                       "the operand is neither a register nor a constant");
    return 0;
}

int32_t bh__ptx_row_out(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type) {
    if (o->kind == OPERAND_REG) {
        return register_row(low, o->reg);
    }
    unsigned bytes = bh__ptx_bytes(type);
    int32_t *sink = &low->sinks[bytes == 0 ? 0 : bytes < 8 ? 1 : bytes / 8 + 1];
    if (*sink == 0) {
        *sink = bh__ptx_new_row(low, bytes);
    }
    return *sink;
}

bool bh__ptx_emit(bh__ptx_lowering *low, const bh__ptx_code *code, bool guarded) {
    bh__ptx_module *m = low->module;
    bh__ptx_code *codes =
        bh__arena_grow(&m->arena, m->code, m->code_count, &m->code_capacity, sizeof *codes);
    if (codes == NULL) {
        return no_memory(low);
    }
    m->code = codes;
    bh__ptx_site *sites =
        bh__arena_grow(&m->arena, m->sites, m->code_count, &m->site_capacity, sizeof *sites);
    if (sites == NULL) {
        return no_memory(low);
    }
    m->sites = sites;
    bh__ptx_code *c = &codes[m->code_count];
    *c = *code;
    c->guard = NO_ROW;
    c->guard_flip = 0;
    if (guarded && low->insn != NULL && low->insn->guard != NO_REG) {
        c->guard = register_row(low, low->insn->guard);
        c->guard_flip = low->insn->guard_negated ? UINT32_MAX : 0;
    }
    if (low->insn != NULL) {
        sites[m->code_count] = site_of(low);
    } else {
        sites[m->code_count] =
            (bh__ptx_site){.line = low->function->line, .insn = low->function->insn_count};
    }
    m->code_count++;
    return low->status == BH_OK;
}

static bh__ptx_type operand_type(const bh__ptx_insn *insn, char letter) {
    bh__ptx_type t0 = (bh__ptx_type)insn->types[0];
    bh__ptx_type t1 = insn->type_count > 1 ? (bh__ptx_type)insn->types[1] : t0;
    switch (letter) {
    case 'y':
    case 'R':
        return t1;
    case 'w':
        if (HAS(insn, WIDE)) {
            return bh__ptx_bytes(t0) == 2 ? T_B32 : T_B64;
        }
        return t0;
    case 'u':
    case 'E':
        return T_B32;
    case 'q':
    case 'a':
        return T_B64;
    case 'p':
    case 'P':
        return T_PRED;
    default:
        return t0;
    }
}

/* Fills in rows by the operation's operand letters: destinations d and d2, sources a, b, c, e. */
bool bh__ptx_lower_plain(bh__ptx_lowering *low, bh__ptx_code *code) {
    const bh__ptx_insn *insn = low->insn;
    int32_t *sources[] = {&code->a, &code->b, &code->c, &code->e};
    unsigned source = 0, n = 0;
    code->d = code->d2 = code->a = code->b = code->c = code->e = NO_ROW;
    bool dest = false;
    for (const char *s = bh__ptx_op_table[insn->op].operands; *s != 0; s++) {
        if (*s == ' ' || *s == '?') {
            continue;
        }
        if (*s == '=') {
            dest = true;
            continue;
        }
        if (n >= insn->operand_count) {
            break;
        }
        const bh__ptx_operand *o = &insn->operands[n++];
        bh__ptx_type type = operand_type(insn, *s);
        if (dest && o->kind == OPERAND_PAIR) {
            code->d = bh__ptx_row_out(low, &o->elements[0], type);
            code->d2 = bh__ptx_row_out(low, &o->elements[1], T_PRED);
        } else if (dest) {
            code->d = bh__ptx_row_out(low, o, type);
            code->flags |= bh__ptx_row_wide(low, o, type) ? FLAG_WIDE_D : 0;
        } else if (*s == 'i') {
            code->imm = o->imm;
        } else if (source < 4) {
            code->flags |= source == 0 && bh__ptx_row_wide(low, o, type) ? FLAG_WIDE_A : 0;
            *sources[source++] = bh__ptx_row_in(low, o, type);
        }
        dest = false;
    }
    if (code->kind == CODE_SYNC && source > 0) { /* the member mask, always the last source */
        int32_t mask = *sources[source - 1];
        *sources[source - 1] = NO_ROW;
        code->e = mask;
    }
    return bh__ptx_emit(low, code, true);
}

/* Both registers of a conversion have the width of their types. */
static bool natural_widths(const bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    for (int n = 0; n < 2; n++) {
        bh__ptx_type type = (bh__ptx_type)insn->types[n];
        if (bh__ptx_row_wide(low, &insn->operands[n], type) != (bh__ptx_bytes(type) == 8)) {
            return false;
        }
    }
    return true;
}

static bool lower_insn(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    bh__ptx_code code = {0};
    bool found = false;
    switch (bh__ptx_op_table[insn->op].unit) {
    case UNIT_INT:
        found = bh__ptx_pick_int(insn, &code);
        break;
    case UNIT_BITS:
        found = bh__ptx_pick_bits(insn, &code);
        break;
    case UNIT_VIDEO:
        found = bh__ptx_pick_video(insn, &code);
        break;
    case UNIT_FLOAT:
        found = bh__ptx_pick_float(insn, &code);
        break;
    case UNIT_MATH:
        found = bh__ptx_pick_math(insn, &code);
        break;
    case UNIT_HALF:
        found = bh__ptx_pick_half(insn, &code);
        break;
    case UNIT_CMP:
        found = bh__ptx_pick_cmp(insn, &code);
        break;
    case UNIT_CVT:
        found = bh__ptx_pick_cvt(insn, &code);
        if (found && insn->op == OP_CVT && natural_widths(low)) {
            bh__ptx_handler *quick = bh__ptx_fast_cvt(insn);
            code.run = quick != NULL ? quick : code.run;
        }
        break;
    case UNIT_WARP:
        found = bh__ptx_pick_warp(insn, &code);
        break;
    case UNIT_MOVE:
        return bh__ptx_lower_move(low);
    case UNIT_MEM:
        return bh__ptx_lower_memory(low);
    case UNIT_ATOM:
        return bh__ptx_lower_atomic(low);
    case UNIT_CONTROL:
        return bh__ptx_lower_control(low);
    case UNIT_TEXTURE:
        return bh__ptx_lower_texture(low);
    case UNIT_CLUSTER:
        found = bh__ptx_pick_cluster(insn, &code);
        break;
    case UNIT_MBARRIER:
        return bh__ptx_lower_mbarrier(low);
    case UNIT_ASYNC:
        return bh__ptx_lower_async(low);
    case UNIT_MATRIX:
        return bh__ptx_lower_matrix(low);
    case UNIT_STACK:
        return bh__ptx_lower_stack(low);
    case UNIT_HINT:
        return bh__ptx_lower_hint(low);
    case UNIT_MULTIMEM:
        return bh__ptx_lower_multimem(low);
    }
    if (!found) {
        return bh__ptx_lower_fail(
            low, BH_E_UNSUPPORTED, "use a form that PTX defines for this type, or run it on a GPU",
            "the CPU device does not support this form of %s", bh__ptx_op_table[insn->op].mnemonic);
    }
    return bh__ptx_lower_plain(low, &code);
}

static void resolve_targets(bh__ptx_lowering *low, uint32_t first) {
    for (uint32_t i = first; i < low->module->code_count; i++) {
        bh__ptx_code *c = &low->module->code[i];
        if (c->kind == CODE_BRA) {
            c->target = low->code_of[c->target];
        } else if (c->kind == CODE_BRX) {
            bh__ptx_targets *t = (bh__ptx_targets *)(uintptr_t)c->extra;
            for (uint32_t n = 0; n < t->count; n++) {
                t->at[n] = low->code_of[t->at[n]];
            }
        }
    }
}

static bool lower_function(bh__ptx_lowering *low, bh__ptx_function *f) {
    uint32_t first = low->module->code_count;
    low->function = f;
    low->rows = HEADER_BYTES;
    memset(low->sinks, 0, sizeof low->sinks);
    low->code_of = malloc(((size_t)f->insn_count + 1) * sizeof *low->code_of);
    if (low->code_of == NULL) {
        return no_memory(low);
    }
    f->code = first;
    bool ok = true;
    for (uint32_t i = 0; ok && i < f->insn_count; i++) {
        low->code_of[i] = low->module->code_count;
        low->insn = &f->insns[i];
        ok = lower_insn(low) && low->status == BH_OK;
    }
    low->code_of[f->insn_count] = low->module->code_count;
    low->insn = NULL;
    bh__ptx_code end = {.kind = f->entry ? CODE_EXIT : CODE_RET};
    ok = ok && bh__ptx_emit(low, &end, false);
    for (uint32_t i = 0; ok && i < f->param_count + f->result_count; i++) {
        bh__ptx_var *var = i < f->param_count ? f->params[i] : f->results[i - f->param_count];
        if (var->reg != NO_REG) {
            register_row(low, var->reg);
        }
    }
    if (ok) {
        resolve_targets(low, first);
    }
    f->frame_bytes = (low->rows + 63) & ~63u;
    free(low->code_of);
    low->code_of = NULL;
    return ok && low->status == BH_OK;
}

bh_status bh__ptx_lower(bh__ptx_module *module, bh_error *error) {
    bh__ptx_lowering low = {.module = module, .error = error};
    for (uint32_t i = 0; i < module->function_count && low.status == BH_OK; i++) {
        if (module->functions[i]->defined) {
            lower_function(&low, module->functions[i]);
        }
    }
    free(low.buckets);
    return low.status;
}
