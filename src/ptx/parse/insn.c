/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions: mnemonic, modifiers, operands; and which row of the operation table they match. */
#include <string.h>

#include "ptx/parse/parse.h"

#define MAX_OPERANDS 12
#define MAX_ELEMENTS 128

static const char *const refused[] = {
#define X(mnemonic) mnemonic,
    BH__PTX_REFUSED(X)
#undef X
};

static const char *const newer[] = {
#define X(word) word,
    BH__PTX_NEWER(X)
#undef X
};

static const struct {
    const char *name;
    bh__ptx_mod mod;
} mod_aliases[] = {
#define X(name, id) {name, M_##id},
    BH__PTX_MOD_ALIASES(X)
#undef X
};

static const uint8_t mod_groups[M_COUNT] = {
#define X(id, name, group) [M_##id] = group,
    BH__PTX_MODS(X) BH__PTX_MORE_MODS(X)
#undef X
};

static bool same(const char *text, uint32_t length, const char *word) {
    return word != NULL && word[0] == text[0] && strlen(word) == length &&
           memcmp(word, text, length) == 0;
}

static int mod_of(const char *text, uint32_t length) {
    for (int m = 0; m < M_COUNT; m++) {
        if (same(text, length, bh__ptx_mod_names[m])) {
            return m;
        }
    }
    for (size_t i = 0; i < sizeof mod_aliases / sizeof *mod_aliases; i++) {
        if (same(text, length, mod_aliases[i].name)) {
            return mod_aliases[i].mod;
        }
    }
    return -1;
}

static int first_row(const char *text, uint32_t length) {
    for (int op = 0; op < OP_COUNT; op++) {
        if (same(text, length, bh__ptx_op_table[op].mnemonic)) {
            return op;
        }
    }
    return -1;
}

static bool is_newer(const char *text, uint32_t length) {
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++) {
        if (same(text, length, newer[i])) {
            return true;
        }
    }
    return false;
}

static bool refuse_newer(bh__ptx_parser *p, const char *dot, int length, const char *text) {
    return bh__ptx_bad(p, BH_E_UNSUPPORTED, "compile for sm_90a or earlier",
                       "the CPU device is an sm_90a: %s%.*s came with sm_100", dot, length, text);
}

/* Modifiers that are a part of the name: mul.hi, bar.sync. Nothing may come before them. */
static bool is_part_of_name(int op, int mod) {
    switch (op) {
    case OP_MUL:
    case OP_MAD:
    case OP_MADC:
    case OP_MUL24:
    case OP_MAD24:
    case OP_DP2A:
        return mod == M_LO || mod == M_HI || mod == M_WIDE;
    case OP_SHF:
        return mod == M_L || mod == M_R;
    case OP_CVTA:
        return mod == M_TO;
    case OP_SETMAXNREG:
        return mod == M_INC || mod == M_DEC;
    case OP_CREATEPOLICY:
        return mod == M_FRACTIONAL || mod == M_RANGE || mod == M_CONVERT;
    case OP_MULTILOAD: /* the first row of multimem */
        return mod == M_LD_REDUCE || mod == M_MULTI_STORE || mod == M_RED;
    case OP_MBARRIER:
        return mod == M_INIT || mod == M_INVAL || mod == M_ARRIVE || mod == M_ARRIVE_DROP ||
               mod == M_COMPLETE_TX || mod == M_TEST_WAIT || mod == M_TRY_WAIT ||
               mod == M_PENDING_COUNT;
    case OP_BAR:
    case OP_BARRIER:
        return mod == M_SYNC || mod == M_ARRIVE || mod == M_RED || mod == M_WAIT || mod == M_CTA;
    default:
        return false;
    }
}

/* Returns true if something other than these modifiers was given. bar.cta.sync, bar.warp.sync. */
static bool has_others(const bh__ptx_insn *insn) {
    bh__ptx_mods first = 0;
    if (insn->op == OP_BAR || insn->op == OP_BARRIER) {
        first = (bh__ptx_mods)1 << M_CTA | (bh__ptx_mods)1 << M_CLUSTER | (bh__ptx_mods)1 << M_WARP;
    }
    return (insn->mods & ~first) != 0 || insn->more != 0 || insn->type_count != 0;
}

static bool add_mod(bh__ptx_parser *p, bh__ptx_insn *insn, int mod) {
    bool two_spaces = insn->op == OP_CP && (mod == M_SHARED || mod == M_GLOBAL);
    bool repeat_ok = mod == M_HINT || mod == M_PROXY || two_spaces;
    if (is_part_of_name(insn->op, mod) && has_others(insn)) {
        return bh__ptx_bad(p, BH_E_LOAD, "write it before all others",
                           ".%s is a part of the name of %s and comes first",
                           bh__ptx_mod_names[mod], bh__ptx_op_table[insn->op].mnemonic);
    }
    if (HAS_MOD(insn, mod) && !repeat_ok) {
        return bh__ptx_bad(p, BH_E_LOAD, "remove one of the two", ".%s is given twice",
                           bh__ptx_mod_names[mod]);
    }
    for (int other = 0; mod_groups[mod] != 0 && other < M_COUNT; other++) {
        /* cp and tensormap name two spaces, brx may have .idx.uni, mma.and.popc two operations */
        bool both = insn->op == OP_CP || insn->op == OP_TENSORMAP || insn->op == OP_BRX ||
                    bh__ptx_op_table[insn->op].unit == UNIT_MATRIX;
        if (other != mod && mod_groups[other] == mod_groups[mod] && HAS_MOD(insn, other) && !both) {
            return bh__ptx_bad(p, BH_E_LOAD, "keep one of the two",
                               ".%s and .%s exclude each other", bh__ptx_mod_names[other],
                               bh__ptx_mod_names[mod]);
        }
    }
    *(mod < M_MORE ? &insn->mods : &insn->more) |= (bh__ptx_mods)1 << (mod & 127);
    return true;
}

/* .m16n8k8, .m8n8: up to three letters with numbers. */
static bool shape(const char *text, uint32_t length, uint16_t out[3]) {
    uint16_t found[3] = {0};
    uint32_t at = 0;
    for (int n = 0; n < 3 && at < length; n++) {
        uint32_t digits = at + 1;
        if (text[at] != "mnk"[n]) {
            return false;
        }
        for (at++; at < length && at < digits + 4 && text[at] >= '0' && text[at] <= '9'; at++) {
            found[n] = (uint16_t)(found[n] * 10 + (text[at] - '0'));
        }
        if (found[n] == 0) {
            return false;
        }
    }
    memcpy(out, found, sizeof found);
    return at == length && found[1] != 0;
}

/* .row and .col of matrices: how often and in which order counts. */
static bool layout(const char *text, uint32_t length, bh__ptx_insn *insn) {
    bool row = same(text, length, "row"), free = insn->layout[1] == 0;
    if ((!row && !same(text, length, "col")) || !free ||
        bh__ptx_op_table[insn->op].unit != UNIT_MATRIX) {
        return false;
    }
    insn->layout[insn->layout[0] != 0] = row ? 'r' : 'c';
    return true;
}

static bool modifiers(bh__ptx_parser *p, bh__ptx_insn *insn) {
    while (p->token.kind == TOKEN_DOT) {
        bh__ptx_type type;
        const char *text = p->text + p->token.start + 1;
        uint32_t length = p->token.length - 1;
        if (bh__ptx_type_of(p, &type)) {
            if (insn->type_count == sizeof insn->types) {
                return bh__ptx_bad(p, BH_E_LOAD, "remove a type", "more than four types");
            }
            insn->types[insn->type_count++] = (uint8_t)type;
        } else if (insn->shape[0] == 0 && shape(text, length, insn->shape)) {
            /* only the unit of matrices has operations with a shape */
            if (bh__ptx_op_table[insn->op].unit != UNIT_MATRIX) {
                return bh__ptx_bad(p, BH_E_LOAD, "remove it", "%s has no shape",
                                   bh__ptx_op_table[insn->op].mnemonic);
            }
        } else if (!layout(text, length, insn)) {
            int mod = mod_of(text, length);
            if (mod < 0 && is_newer(text, length)) {
                return refuse_newer(p, ".", (int)length, text);
            }
            if (mod < 0) {
                return bh__ptx_bad(
                    p, BH_E_UNSUPPORTED, "use an instruction without it, or run on a GPU",
                    "the CPU device does not support .%.*s", length > 60 ? 60 : (int)length, text);
            }
            if (!add_mod(p, insn, mod)) {
                return false;
            }
        }
        bh__ptx_next(p);
    }
    return true;
}

static bool types_match(const bh__ptx_op_info *row, const bh__ptx_insn *insn) {
    unsigned needed = (row->type0 != 0) + (row->type1 != 0);
    if (row->unit == UNIT_MATRIX) {
        return true; /* the unit knows which types a shape has */
    }
    bool third = row - bh__ptx_op_table == OP_CVTPACK || row->unit == UNIT_VIDEO;
    unsigned maximum = third ? 3 : needed;
    bool optional = row - bh__ptx_op_table == OP_BAR || row - bh__ptx_op_table == OP_BARRIER;
    if ((insn->type_count < needed && !optional) || insn->type_count > maximum) {
        return false;
    }
    return (insn->type_count < 1 || (row->type0 >> insn->types[0] & 1) != 0) &&
           (insn->type_count < 2 || (row->type1 >> insn->types[1] & 1) != 0);
}

/* Selects insn->op among the rows of one mnemonic, first by types, then by modifiers. */
static bool choose_row(bh__ptx_parser *p, bh__ptx_insn *insn) {
    int first = insn->op, best = -1;
    const char *mnemonic = bh__ptx_op_table[first].mnemonic;
    for (int op = first; op < OP_COUNT; op++) {
        const bh__ptx_op_info *row = &bh__ptx_op_table[op];
        if (strcmp(row->mnemonic, mnemonic) != 0 || !types_match(row, insn)) {
            continue;
        }
        if ((insn->mods & ~row->mods) == 0 && (insn->more & ~bh__ptx_op_more[op]) == 0) {
            insn->op = (uint16_t)op;
            return true;
        }
        best = best < 0 ? op : best;
    }
    if (best < 0) {
        return bh__ptx_bad(p, BH_E_UNSUPPORTED,
                           "use types that PTX defines for the instruction, or run on a GPU",
                           "the CPU device does not support %s with these types", mnemonic);
    }
    bh__ptx_insn extra = {.mods = insn->mods & ~bh__ptx_op_table[best].mods,
                          .more = insn->more & ~bh__ptx_op_more[best]};
    for (int m = 0; m < M_COUNT; m++) {
        if (HAS_MOD(&extra, m)) {
            return bh__ptx_bad(
                p, BH_E_UNSUPPORTED, "use an instruction without it, or run on a GPU",
                "the CPU device does not support %s with .%s", mnemonic, bh__ptx_mod_names[m]);
        }
    }
    return false;
}

static bh__ptx_operand *store_elements(bh__ptx_parser *p, const bh__ptx_operand *list, uint32_t n) {
    bh__ptx_operand *copy = bh__arena_alloc(&p->module->arena, n, sizeof *copy);
    if (copy == NULL) {
        bh__ptx_no_memory(p);
        return NULL;
    }
    memcpy(copy, list, n * sizeof *copy);
    return copy;
}

static bool note_use(bh__ptx_parser *p, const bh__ptx_insn *insn, bh__ptx_symbol *symbol) {
    if (symbol->kind == SYMBOL_FUNCTION) {
        symbol->function->called = true;
        symbol->function->address_taken |= insn->op != OP_CALL;
    }
    if (symbol->kind != SYMBOL_VAR || symbol->var->space != SPACE_SHARED) {
        return true;
    }
    bh__ptx_function *f = p->function;
    if (f->shared_count > 0 && f->shared[f->shared_count - 1] == symbol->var) {
        return true;
    }
    bh__ptx_var **shared = bh__arena_grow(&p->module->arena, f->shared, f->shared_count,
                                          &f->shared_capacity, sizeof *shared);
    if (shared == NULL) {
        return bh__ptx_no_memory(p);
    }
    f->shared = shared;
    shared[f->shared_count++] = symbol->var;
    return true;
}

static bool undefined(bh__ptx_parser *p) {
    return bh__ptx_bad(p, BH_E_LOAD, "declare it, or correct the name", "%.*s is not declared",
                       p->token.length > 80 ? 80 : (int)p->token.length, p->text + p->token.start);
}

/* .x .y .z .w (or .r .g .b .a) after a vector; -1: none. */
static int component(bh__ptx_parser *p) {
    if (p->token.kind != TOKEN_DOT || p->token.length != 2) {
        return -1;
    }
    char c = p->text[p->token.start + 1];
    const char *at = c == 0 ? NULL : strchr("xyzwrgba", c);
    if (at == NULL) {
        return -1;
    }
    bh__ptx_next(p);
    return (int)(at - "xyzwrgba") & 3;
}

static bool register_operand(bh__ptx_parser *p, const bh__ptx_symbol *symbol,
                             bh__ptx_operand *out) {
    bh__ptx_next(p);
    *out = (bh__ptx_operand){.kind = OPERAND_REG, .reg = symbol->first};
    if (symbol->vector == 1) {
        return true;
    }
    int c = component(p);
    if (c >= symbol->vector) {
        return bh__ptx_bad(p, BH_E_LOAD, "use a component that the vector has",
                           "the vector has %d components", symbol->vector);
    }
    if (c >= 0) {
        out->reg += (uint32_t)c;
        return true;
    }
    bh__ptx_operand list[8];
    for (unsigned i = 0; i < symbol->vector; i++) {
        list[i] = (bh__ptx_operand){.kind = OPERAND_REG, .reg = symbol->first + i};
    }
    *out = (bh__ptx_operand){.kind = OPERAND_VECTOR,
                             .count = symbol->vector,
                             .elements = store_elements(p, list, symbol->vector)};
    return out->elements != NULL;
}

/* %pm0 to %pm7, which count what a profiler asks for, and %pm0_64 to %pm7_64. */
static bool counter(bh__ptx_parser *p, bh__ptx_operand *out) {
    const char *text = p->text + p->token.start;
    uint32_t length = p->token.length;
    bool wide = length == 7 && memcmp(text + 4, "_64", 3) == 0;
    if ((length != 4 && !wide) || memcmp(text, "%pm", 3) != 0 || text[3] < '0' || text[3] > '7') {
        return false;
    }
    *out = (bh__ptx_operand){.kind = OPERAND_SREG,
                             .sreg = wide ? SREG_PM64 : SREG_PM,
                             .component = (uint8_t)(text[3] - '0')};
    bh__ptx_next(p);
    return true;
}

static bool special_register(bh__ptx_parser *p, bh__ptx_operand *out) {
    const char *text = p->text + p->token.start;
    uint32_t length = p->token.length;
    if (counter(p, out)) {
        return true;
    }
    for (int i = 0; i < SREG_COUNT; i++) {
        const bh__ptx_sreg_info *info = &bh__ptx_sreg_table[i];
        size_t n = strlen(info->name);
        bool numbered = i == SREG_ENVREG && length > n && length <= n + 2;
        if (length < n || memcmp(text, info->name, n) != 0 || (length != n && !numbered)) {
            continue;
        }
        *out = (bh__ptx_operand){.kind = OPERAND_SREG, .sreg = (uint8_t)i};
        p->module->uses_reserved |= i >= SREG_RESERVED_BEGIN && i <= SREG_RESERVED_1;
        if (numbered) {
            for (uint32_t d = (uint32_t)n; d < length; d++) {
                if (text[d] < '0' || text[d] > '9') {
                    return undefined(p);
                }
                out->component = (uint8_t)(out->component * 10 + (text[d] - '0'));
            }
        }
        bh__ptx_next(p);
        if (info->vector) {
            int c = component(p);
            if (c < 0) {
                return bh__ptx_bad(p, BH_E_LOAD, "read one component, %tid.x for example",
                                   "%s is a vector", info->name);
            }
            out->component = (uint8_t)c;
        }
        return true;
    }
    return undefined(p);
}

/* +4, -4, +-4 after a name or register. */
static bool offset(bh__ptx_parser *p, uint64_t *out) {
    *out = 0;
    while (bh__ptx_is(p, '+') || bh__ptx_is(p, '-')) {
        bool minus = bh__ptx_is(p, '-');
        bh__ptx_next(p);
        bh__ptx_value v;
        if (!bh__ptx_term(p, &v)) {
            return false;
        }
        if (v.is_float) {
            return bh__ptx_bad(p, BH_E_LOAD, "give an integer", "the offset is not an integer");
        }
        *out += minus ? 0 - v.bits : v.bits;
    }
    return true;
}

static bool name_operand(bh__ptx_parser *p, const bh__ptx_insn *insn, bh__ptx_operand *out) {
    const char *text = p->text + p->token.start;
    if (p->token.length == 1 && text[0] == '_') {
        *out = (bh__ptx_operand){.kind = OPERAND_SINK};
        bh__ptx_next(p);
        return true;
    }
    if (insn->op == OP_BRA) {
        *out = (bh__ptx_operand){.kind = OPERAND_LABEL,
                                 .imm = NO_LABEL,
                                 .reg = p->token.start,
                                 .count = p->token.length};
        bh__ptx_next(p);
        return true;
    }
    bh__ptx_symbol *symbol = bh__ptx_find(p, text, p->token.length);
    if (symbol == NULL && p->status != BH_OK) {
        return false;
    }
    if (symbol == NULL && same(text, p->token.length, "WARP_SZ")) {
        *out = (bh__ptx_operand){.kind = OPERAND_INT, .imm = 32};
        bh__ptx_next(p);
        return true;
    }
    if (symbol == NULL) {
        return text[0] == '%' ? special_register(p, out) : undefined(p);
    }
    if (symbol->kind == SYMBOL_REG) {
        return register_operand(p, symbol, out);
    }
    bh__ptx_next(p);
    *out = (bh__ptx_operand){.kind = OPERAND_ADDRESS, .symbol = symbol};
    switch (symbol->kind) {
    case SYMBOL_TARGETS:
        out->kind = OPERAND_TARGETS;
        return true;
    case SYMBOL_PROTOTYPE:
    case SYMBOL_CALLEES:
        out->kind = OPERAND_PROTOTYPE;
        return true;
    default:
        return note_use(p, insn, symbol) && offset(p, &out->imm);
    }
}

static bool operand_list(bh__ptx_parser *p, bh__ptx_insn *insn, unsigned depth, uint16_t close,
                         bh__ptx_operand *out);

static bool memory_operand(bh__ptx_parser *p, bh__ptx_insn *insn, unsigned depth,
                           bh__ptx_operand *out) {
    bh__ptx_next(p);
    bh__ptx_operand base = {0};
    *out = (bh__ptx_operand){.kind = OPERAND_MEMORY, .reg = NO_REG};
    if (p->token.kind == TOKEN_WORD) {
        if (!name_operand(p, insn, &base)) {
            return false;
        }
        if (base.kind == OPERAND_REG) {
            out->has_reg = true;
            out->reg = base.reg;
            if (!offset(p, &out->imm)) {
                return false;
            }
        } else if (base.kind == OPERAND_ADDRESS && base.symbol->kind == SYMBOL_VAR) {
            out->symbol = base.symbol;
            out->imm = base.imm;
        } else {
            return bh__ptx_bad(p, BH_E_LOAD, "use a register, a variable or a number in brackets",
                               "this is not an address");
        }
    } else {
        bh__ptx_value v;
        if (!bh__ptx_expression(p, &v)) {
            return false;
        }
        out->imm = v.bits;
    }
    if (bh__ptx_is(p, ',')) { /* a tensor's or texture's coordinates */
        return operand_list(p, insn, depth, ']', out);
    }
    return bh__ptx_expect(p, ']', "after an address");
}

static bool operand(bh__ptx_parser *p, bh__ptx_insn *insn, unsigned depth, bh__ptx_operand *out);

static bool operand_list(bh__ptx_parser *p, bh__ptx_insn *insn, unsigned depth, uint16_t close,
                         bh__ptx_operand *out) {
    bh__ptx_operand list[MAX_ELEMENTS];
    uint32_t n = 0;
    bh__ptx_next(p);
    while (!bh__ptx_is(p, close)) {
        if (n == MAX_ELEMENTS || depth > 1) {
            return bh__ptx_bad(p, BH_E_UNSUPPORTED, "use fewer", "more than %d operands in a list",
                               MAX_ELEMENTS);
        }
        if (!operand(p, insn, depth + 1, &list[n++])) {
            return false;
        }
        if (!bh__ptx_accept(p, ',')) {
            break;
        }
    }
    out->count = n;
    out->elements = store_elements(p, list, n);
    return out->elements != NULL && bh__ptx_expect(p, close, "after a list");
}

/* .b0 to .b3, .h0, .h1, and several digits in one, after a register. */
static bool selector(bh__ptx_parser *p, uint32_t *out) {
    const char *text = p->text + p->token.start + 1;
    uint32_t digits = p->token.length - 2;
    bool halves = text[0] == 'h';
    if (p->token.length < 3 || digits > 4 || (!halves && text[0] != 'b')) {
        return bh__ptx_bad(p, BH_E_LOAD, "select with .h1 or .b3 for example",
                           "this does not select a part of a register");
    }
    *out = digits << 16 | (halves ? SELECT_HALVES : 0);
    for (uint32_t n = 0; n < digits; n++) {
        char c = text[digits - n];
        if (c < '0' || c > '7') {
            return bh__ptx_bad(p, BH_E_LOAD, "number halves from 0 to 3 and bytes from 0 to 7",
                               "this does not select a part of a register");
        }
        *out |= (uint32_t)(c - '0') << 4 * n;
    }
    bh__ptx_next(p);
    return true;
}

/* Of a video instruction: a register, part of one, the negative of one, or a constant. */
static bool video_operand(bh__ptx_parser *p, bh__ptx_insn *insn, bh__ptx_operand *out) {
    bool minus = bh__ptx_accept(p, '-');
    bh__ptx_value v;
    if (p->token.kind != TOKEN_WORD) {
        if (!bh__ptx_expression(p, &v)) {
            return false;
        }
        *out = (bh__ptx_operand){.kind = v.is_float ? OPERAND_FLOAT : OPERAND_INT,
                                 .single = v.single,
                                 .imm = minus ? 0 - v.bits : v.bits};
        return true;
    }
    if (!name_operand(p, insn, out) || (p->token.kind == TOKEN_DOT && !selector(p, &out->count))) {
        return false;
    }
    out->count |= minus ? SELECT_NEGATED : 0;
    return out->kind == OPERAND_REG || bh__ptx_bad(p, BH_E_LOAD, "give a register or a constant",
                                                   "an operand is of the wrong kind");
}

/* name[3]: an element of an array, or its address for mov. */
static bool element(bh__ptx_parser *p, const bh__ptx_insn *insn, bh__ptx_operand *out) {
    bh__ptx_value v;
    bh__ptx_next(p);
    if (!bh__ptx_expression(p, &v)) {
        return false;
    }
    if (out->symbol->kind != SYMBOL_VAR || v.is_float) {
        return bh__ptx_bad(p, BH_E_LOAD, "index an array with an integer",
                           "this is not an element of an array");
    }
    const bh__ptx_var *var = out->symbol->var;
    out->imm += v.bits * bh__ptx_bytes(var->type) * var->vector;
    if (bh__ptx_op_table[insn->op].unit != UNIT_MOVE) {
        out->kind = OPERAND_MEMORY;
        out->reg = NO_REG;
    }
    return bh__ptx_expect(p, ']', "after an index");
}

static bool operand(bh__ptx_parser *p, bh__ptx_insn *insn, unsigned depth, bh__ptx_operand *out) {
    *out = (bh__ptx_operand){0};
    if (bh__ptx_op_table[insn->op].unit == UNIT_VIDEO) {
        return video_operand(p, insn, out);
    }
    if (bh__ptx_is(p, '[')) {
        return memory_operand(p, insn, depth, out);
    }
    if (bh__ptx_is(p, '{')) {
        out->kind = OPERAND_VECTOR;
        return operand_list(p, insn, depth, '}', out) &&
               (!bh__ptx_is(p, '|') ||
                bh__ptx_bad(p, BH_E_UNSUPPORTED, "use an image all of which is in memory",
                            "the CPU device does not support images of which parts are missing"));
    }
    if (bh__ptx_is(p, '(') && insn->op == OP_CALL) {
        out->kind = OPERAND_LIST;
        return operand_list(p, insn, depth, ')', out);
    }
    if (bh__ptx_is(p, '!')) {
        bh__ptx_next(p);
        if (p->token.kind != TOKEN_WORD || !name_operand(p, insn, out)) {
            return bh__ptx_bad(p, BH_E_LOAD, "negate predicates only",
                               "'!' is not followed by a register");
        }
        out->negated = true;
        return out->kind == OPERAND_REG || bh__ptx_bad(p, BH_E_LOAD, "negate predicates only",
                                                       "'!' is not followed by a register");
    }
    if (p->token.kind == TOKEN_WORD &&
        !same(p->text + p->token.start, p->token.length, "WARP_SZ")) {
        if (!name_operand(p, insn, out)) {
            return false;
        }
        if (out->kind == OPERAND_ADDRESS && bh__ptx_is(p, '[')) {
            return element(p, insn, out);
        }
        if (bh__ptx_is(p, '|') && (out->kind == OPERAND_REG || out->kind == OPERAND_SINK)) {
            bh__ptx_operand pair[2] = {*out};
            bh__ptx_next(p);
            if (p->token.kind != TOKEN_WORD || !name_operand(p, insn, &pair[1])) {
                return bh__ptx_bad(p, BH_E_LOAD, "name a predicate",
                                   "'|' is not followed by a register");
            }
            *out = (bh__ptx_operand){
                .kind = OPERAND_PAIR, .count = 2, .elements = store_elements(p, pair, 2)};
            return out->elements != NULL;
        }
        return true;
    }
    bh__ptx_value v;
    if (!bh__ptx_expression(p, &v)) {
        return false;
    }
    out->kind = v.is_float ? OPERAND_FLOAT : OPERAND_INT;
    out->single = v.single;
    out->imm = v.bits;
    return true;
}

static bool guard(bh__ptx_parser *p, bh__ptx_insn *insn) {
    insn->guard = NO_REG;
    if (!bh__ptx_accept(p, '@')) {
        return true;
    }
    insn->guard_negated = bh__ptx_accept(p, '!');
    bh__ptx_symbol *symbol = p->token.kind == TOKEN_WORD
                                 ? bh__ptx_find(p, p->text + p->token.start, p->token.length)
                                 : NULL;
    if (symbol == NULL || symbol->kind != SYMBOL_REG || symbol->type != T_PRED) {
        return bh__ptx_bad(p, BH_E_LOAD, "guard with a register declared .pred",
                           "'%.*s' is not a predicate register",
                           p->token.length > 60 ? 60 : (int)p->token.length,
                           p->text + p->token.start);
    }
    insn->guard = symbol->first;
    bh__ptx_next(p);
    return true;
}

static bool mnemonic(bh__ptx_parser *p, bh__ptx_insn *insn) {
    if (p->token.kind != TOKEN_WORD) {
        return bh__ptx_bad(p, BH_E_LOAD, "compile the source again", "an instruction is missing");
    }
    const char *text = p->text + p->token.start;
    int length = p->token.length > 40 ? 40 : (int)p->token.length;
    int op = first_row(text, p->token.length);
    for (size_t i = 0; op < 0 && i < sizeof refused / sizeof *refused; i++) {
        if (same(text, p->token.length, refused[i])) {
            return bh__ptx_bad(p, BH_E_UNSUPPORTED,
                               "write the kernel without it, or run it on a GPU",
                               "the CPU device does not support %s", refused[i]);
        }
    }
    if (op < 0 && is_newer(text, p->token.length)) {
        return refuse_newer(p, "", length, text);
    }
    if (op < 0) {
        return bh__ptx_bad(p, BH_E_LOAD, "correct the name, or compile the source again",
                           "PTX has no instruction %.*s", length, text);
    }
    insn->op = (uint16_t)op;
    bh__ptx_next(p);
    return true;
}

/* Braces around one value mean that value, where the table has a value or a vector. */
static void open_braces(bh__ptx_insn *insn) {
    if (strpbrk(bh__ptx_op_table[insn->op].operands, "vV") == NULL) {
        return;
    }
    for (unsigned i = 0; i < insn->operand_count; i++) {
        bh__ptx_operand *o = &insn->operands[i];
        if (o->kind == OPERAND_VECTOR && o->count == 1 && o->elements[0].kind != OPERAND_MEMORY) {
            *o = o->elements[0];
        }
    }
}

static bool add_insn(bh__ptx_parser *p, bh__ptx_insn *insn, const bh__ptx_operand *operands) {
    bh__ptx_function *f = p->function;
    bh__ptx_insn *insns = bh__arena_grow(&p->module->arena, f->insns, f->insn_count,
                                         &f->insn_capacity, sizeof *insns);
    insn->operands = store_elements(p, operands, insn->operand_count);
    if (insns == NULL || insn->operands == NULL) {
        return bh__ptx_no_memory(p);
    }
    open_braces(insn);
    f->insns = insns;
    insns[f->insn_count++] = *insn;
    for (unsigned i = 0; i < insn->operand_count; i++) {
        bh__ptx_operand *o = &insn->operands[i];
        if (o->kind == OPERAND_LABEL) {
            bh__ptx_token name = {.start = o->reg, .length = o->count};
            if (!bh__ptx_label_use_add(p, &name, &o->imm, NULL)) {
                return false;
            }
        }
    }
    return true;
}

/* Votes and shuffles of the lanes that happen to run together. */
static bool is_lockstep(const bh__ptx_parser *p, const bh__ptx_insn *insn) {
    return (insn->op == OP_SHFL || insn->op == OP_VOTE) && !HAS(insn, SYNC) && p->version >= 64 &&
           p->target >= 70;
}

bool bh__ptx_instruction(bh__ptx_parser *p) {
    bh__ptx_insn insn = {.line = p->token.line,
                         .text = p->token.start,
                         .loc_file = p->loc_file,
                         .loc_line = p->loc_line};
    bh__ptx_operand operands[MAX_OPERANDS];
    if (!guard(p, &insn) || !mnemonic(p, &insn) || !modifiers(p, &insn) || !choose_row(p, &insn)) {
        return false;
    }
    if (is_lockstep(p, &insn)) {
        return bh__ptx_bad(p, BH_E_LOAD, "write .sync, and a member mask at the end",
                           "%s without .sync ended with sm_70 and PTX 6.4",
                           bh__ptx_op_table[insn.op].mnemonic);
    }
    while (!bh__ptx_is(p, ';')) {
        if (insn.operand_count == MAX_OPERANDS) {
            return bh__ptx_bad(p, BH_E_LOAD, "remove some", "more than %d operands", MAX_OPERANDS);
        }
        if (p->token.kind == TOKEN_END) {
            break;
        }
        if (!operand(p, &insn, 0, &operands[insn.operand_count++])) {
            return false;
        }
        if (!bh__ptx_accept(p, ',')) {
            break;
        }
    }
    insn.text_length = p->token.start - insn.text;
    return bh__ptx_expect(p, ';', "after an instruction") && add_insn(p, &insn, operands);
}
