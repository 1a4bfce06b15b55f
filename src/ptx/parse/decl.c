/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations: registers, variables in every space, formal parameters. */
#include <string.h>

#include "ptx/parse/parse.h"

typedef struct specifiers {
    bh__ptx_space space;
    bh__ptx_type type;
    uint8_t vector;
    uint32_t align; /* 0: natural */
    bool pointer;
} specifiers;

bool bh__ptx_type_of(const bh__ptx_parser *p, bh__ptx_type *out) {
    for (int t = 1; p->token.kind == TOKEN_DOT && t < T_COUNT; t++) {
        if (bh__ptx_is_dot(p, bh__ptx_type_table[t].name)) {
            *out = (bh__ptx_type)t;
            return true;
        }
    }
    return false;
}

static bool number(bh__ptx_parser *p, uint64_t *out) {
    bh__ptx_value v;
    if (!bh__ptx_expression(p, &v)) {
        return false;
    }
    if (v.is_float || (!v.is_unsigned && (int64_t)v.bits < 0)) {
        return bh__ptx_bad(p, BH_E_LOAD, "give an integer that is not negative",
                           "the size or count is not an integer");
    }
    *out = v.bits;
    return true;
}

static bool parse_align(bh__ptx_parser *p, uint32_t *out) {
    uint64_t align = 0;
    if (!number(p, &align)) {
        return false;
    }
    if (align == 0 || (align & (align - 1)) != 0 || align > 4096) {
        return bh__ptx_bad(p, BH_E_LOAD, "use a power of two of at most 4096",
                           "alignment %llu is not valid", (unsigned long long)align);
    }
    *out = (uint32_t)align;
    return true;
}

static bool space_of(const bh__ptx_parser *p, bh__ptx_space *out) {
    static const struct {
        const char *name;
        bh__ptx_space space;
    } spaces[] = {{"global", SPACE_GLOBAL}, {"const", SPACE_CONST}, {"shared", SPACE_SHARED},
                  {"local", SPACE_LOCAL},   {"param", SPACE_PARAM}, {"reg", SPACE_REG}};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        if (bh__ptx_is_dot(p, spaces[i].name)) {
            *out = spaces[i].space;
            return true;
        }
    }
    return false;
}

/* .ptr [.space] [.align N]: describes a pointer parameter; only .ptr itself is used. */
static bool pointer_specifier(bh__ptx_parser *p) {
    bh__ptx_space space;
    if (space_of(p, &space)) {
        bh__ptx_next(p);
    }
    uint32_t align;
    return !bh__ptx_accept_dot(p, "align") || parse_align(p, &align);
}

/* .managed: all memory is. .unified(a, b): numbers that tell linkers of a variable's copies. */
bool bh__ptx_attribute(bh__ptx_parser *p) {
    if (!bh__ptx_expect(p, '(', "after .attribute")) {
        return false;
    }
    while (!bh__ptx_is(p, ')')) {
        uint64_t first, second;
        bool unified = bh__ptx_accept_dot(p, "unified");
        if (unified && !(bh__ptx_expect(p, '(', "after .unified") && number(p, &first) &&
                         bh__ptx_expect(p, ',', "between the numbers of .unified") &&
                         number(p, &second) && bh__ptx_expect(p, ')', "after .unified"))) {
            return false;
        }
        if (!unified && !bh__ptx_accept_dot(p, "managed")) {
            return bh__ptx_bad(p, BH_E_UNSUPPORTED, "remove the attribute",
                               "the CPU device supports the attributes .managed and .unified");
        }
        bh__ptx_accept(p, ',');
    }
    bh__ptx_next(p);
    return true;
}

static bool parse_specifiers(bh__ptx_parser *p, specifiers *s) {
    *s = (specifiers){.vector = 1};
    if (!space_of(p, &s->space)) {
        return bh__ptx_bad(p, BH_E_LOAD, "compile the source again, or correct the line",
                           "'%.*s' is not a directive of PTX",
                           p->token.length > 40 ? 40 : (int)p->token.length,
                           p->text + p->token.start);
    }
    bh__ptx_next(p);
    while (p->token.kind == TOKEN_DOT) {
        if (bh__ptx_accept_dot(p, "align")) {
            if (!parse_align(p, &s->align)) {
                return false;
            }
        } else if (bh__ptx_accept_dot(p, "ptr")) {
            s->pointer = true;
            if (!pointer_specifier(p)) {
                return false;
            }
        } else if (bh__ptx_accept_dot(p, "attribute")) {
            if (!bh__ptx_attribute(p)) {
                return false;
            }
        } else if (bh__ptx_is_dot(p, "v2") || bh__ptx_is_dot(p, "v4")) {
            s->vector = (uint8_t)(p->text[p->token.start + 2] - '0');
            bh__ptx_next(p);
        } else if (s->type == T_NONE && bh__ptx_type_of(p, &s->type)) {
            bh__ptx_next(p);
        } else {
            bool opaque = bh__ptx_is_dot(p, "texref") || bh__ptx_is_dot(p, "surfref") ||
                          bh__ptx_is_dot(p, "samplerref");
            return bh__ptx_bad(
                p, BH_E_UNSUPPORTED,
                opaque ? "pass a texture or surface object to the kernel as a parameter"
                       : "declare variables of plain integer, bit and float types",
                "the CPU device does not support %.*s variables",
                p->token.length > 40 ? 40 : (int)p->token.length, p->text + p->token.start);
        }
    }
    if (s->type == T_NONE) {
        return bh__ptx_bad(p, BH_E_LOAD, "give a type such as .b32",
                           "a declaration without a type");
    }
    if (s->type == T_B128 && s->vector > 1) {
        return bh__ptx_bad(p, BH_E_LOAD, "use an array of .b128", "a vector of .b128");
    }
    bool only_in_names =
        s->type == T_TF32 || s->type == T_E4M3X2 || s->type == T_E5M2X2 || s->type >= T_U4;
    if ((s->type == T_PRED && (s->space != SPACE_REG || s->vector > 1)) || only_in_names) {
        return bh__ptx_bad(p, BH_E_LOAD, "use another type", "a variable in memory cannot be .%s",
                           bh__ptx_type_table[s->type].name);
    }
    return true;
}

static bool expect_name(bh__ptx_parser *p, bh__ptx_token *out) {
    if (p->token.kind != TOKEN_WORD) {
        return bh__ptx_bad(p, BH_E_LOAD, "give the variable a name", "the variable has no name");
    }
    *out = p->token;
    bh__ptx_next(p);
    return true;
}

static bool declare_register(bh__ptx_parser *p, const specifiers *s) {
    bh__ptx_token name = {0};
    if (p->function == NULL) {
        return bh__ptx_bad(p, BH_E_UNSUPPORTED, "declare registers inside functions",
                           "a register at module scope");
    }
    if (!expect_name(p, &name)) {
        return false;
    }
    bool range = bh__ptx_accept(p, '<');
    bh__ptx_symbol *symbol =
        bh__ptx_declare(p, p->text + name.start, name.length, range ? SYMBOL_REGS : SYMBOL_REG);
    if (symbol == NULL) {
        return false;
    }
    symbol->type = s->type;
    symbol->vector = s->vector;
    if (range) {
        if (p->token.kind != TOKEN_INT || p->token.value > 1000000000) {
            return bh__ptx_bad(p, BH_E_LOAD, "give a count such as %r<16>",
                               "this is not a register count");
        }
        symbol->count = (uint32_t)p->token.value;
        bh__ptx_next(p);
        return bh__ptx_expect(p, '>', "after the count") && bh__ptx_check_range(p, symbol);
    }
    if (!bh__ptx_check_range(p, symbol)) {
        return false;
    }
    symbol->count = s->vector;
    for (unsigned i = 0; i < s->vector; i++) {
        uint32_t reg = bh__ptx_new_reg(p, s->type);
        if (reg == NO_REG) {
            return false;
        }
        symbol->first = i == 0 ? reg : symbol->first;
    }
    return true;
}

static bool dimensions(bh__ptx_parser *p, bh__ptx_var *var) {
    bool first = true;
    while (bh__ptx_accept(p, '[')) {
        uint64_t count = 0;
        if (bh__ptx_is(p, ']')) {
            if (!first) {
                return bh__ptx_bad(p, BH_E_LOAD, "give the size",
                                   "only the first dimension may be left empty");
            }
            var->unsized = true;
            count = 1;
        } else if (!number(p, &count)) {
            return false;
        }
        if (__builtin_mul_overflow(var->size, count, &var->size) || var->size > UINT64_C(1) << 40) {
            return bh__ptx_bad(p, BH_E_LOAD, "make the variable smaller",
                               "the variable is too large: more than 2^40 bytes");
        }
        if (!bh__ptx_expect(p, ']', "after the size")) {
            return false;
        }
        first = false;
    }
    return true;
}

static bool check_total(bh__ptx_parser *p, const bh__ptx_var *var, uint64_t *total, uint64_t limit,
                        const char *space) {
    *total += var->size + 64;
    if (*total > limit) {
        return bh__ptx_bad(p, space[0] == 'c' ? BH_E_LOAD : BH_E_UNSUPPORTED,
                           "make the variables smaller, or pass buffers instead",
                           "the .%s variables up to this one need more than %llu bytes", space,
                           (unsigned long long)limit);
    }
    return true;
}

static bh__ptx_var *new_var(bh__ptx_parser *p, const specifiers *s) {
    bh__ptx_var *var = bh__arena_alloc(&p->module->arena, 1, sizeof *var);
    if (var == NULL) {
        bh__ptx_no_memory(p);
        return NULL;
    }
    var->type = s->type;
    var->vector = s->vector;
    var->space = s->space;
    var->size = (uint64_t)bh__ptx_bytes(s->type) * s->vector;
    uint32_t natural = (uint32_t)var->size;
    var->align = s->align > natural ? s->align : natural;
    var->pointer = s->pointer;
    var->reg = NO_REG;
    return var;
}

/* Registers and variables of a frame are the function's own: nothing else could define them. */
static bool check_extern(bh__ptx_parser *p, const specifiers *s) {
    if (s->space == SPACE_REG) {
        return bh__ptx_bad(p, BH_E_LOAD, "remove .extern", "a register cannot be .extern");
    }
    if (s->space == SPACE_LOCAL || s->space == SPACE_PARAM) {
        return bh__ptx_bad(p, BH_E_LOAD, "remove .extern", "a .%s variable cannot be .extern",
                           s->space == SPACE_LOCAL ? "local" : "param");
    }
    return true;
}

/* The same variable may be declared .extern first and defined later, in spaces whose variables get
 * their place after the whole text is read. */
static bh__ptx_symbol *declare_variable(bh__ptx_parser *p, const bh__ptx_token *name,
                                        bh__ptx_var *var) {
    const char *text = p->text + name->start;
    bh__ptx_symbol *old = bh__ptx_find(p, text, name->length);
    if (old != NULL && old->depth == p->depth && old->kind == SYMBOL_VAR &&
        old->var->space == var->space && (old->var->is_extern || var->is_extern)) {
        return old;
    }
    bh__ptx_symbol *symbol = bh__ptx_declare(p, text, name->length, SYMBOL_VAR);
    if (symbol != NULL) {
        symbol->var = var;
    }
    return symbol;
}

static bool add_global(bh__ptx_parser *p, bh__ptx_symbol *symbol) {
    bh__ptx_module *m = p->module;
    bh__ptx_symbol **globals = bh__arena_grow(&m->arena, m->globals, m->global_count,
                                              &m->global_capacity, sizeof *globals);
    if (globals == NULL) {
        return bh__ptx_no_memory(p);
    }
    m->globals = globals;
    symbol->var->index = m->global_count;
    globals[m->global_count++] = symbol;
    return true;
}

static bool check_variable(bh__ptx_parser *p, const bh__ptx_var *var) {
    if (var->unsized && !(var->is_extern || var->init_bytes > 0)) {
        return bh__ptx_bad(p, BH_E_LOAD, "give its size", "a variable without a size");
    }
    if (bh__ptx_bytes(var->type) * var->vector > 16) {
        return bh__ptx_bad(p, BH_E_LOAD, "use an array", "a vector of %u bytes; at most 16 exist",
                           bh__ptx_bytes(var->type) * var->vector);
    }
    if (var->space == SPACE_GLOBAL) {
        return check_total(p, var, &p->global_bytes, BH__PTX_MAX_GLOBAL, "global");
    }
    if (var->space == SPACE_CONST) {
        return check_total(p, var, &p->const_bytes, BH__PTX_MAX_CONST + 65536, "const");
    }
    if (var->init_bytes > 0) {
        return bh__ptx_bad(p, BH_E_LOAD, "initialise it in the kernel",
                           "only .global and .const variables can have initial values");
    }
    uint64_t limit = var->space == SPACE_SHARED ? BH__PTX_MAX_SHARED : BH__PTX_MAX_LOCAL;
    if (var->size > limit) {
        return bh__ptx_bad(p, BH_E_LOAD, "make it smaller",
                           "a variable of %llu bytes; at most %llu fit",
                           (unsigned long long)var->size, (unsigned long long)limit);
    }
    if (p->function == NULL && var->space != SPACE_SHARED) {
        return bh__ptx_bad(p, BH_E_UNSUPPORTED, "declare it inside a function",
                           "a .local or .param variable at module scope");
    }
    return true;
}

static bool declare_in_memory(bh__ptx_parser *p, const specifiers *s, uint8_t is_extern) {
    bh__ptx_token name = {0};
    bh__ptx_var *var = new_var(p, s);
    if (var == NULL || !expect_name(p, &name) || !dimensions(p, var)) {
        return false;
    }
    var->is_extern = is_extern;
    bh__ptx_symbol *symbol = declare_variable(p, &name, var);
    if (symbol == NULL) {
        return false;
    }
    if (bh__ptx_accept(p, '=')) {
        if (!bh__ptx_initialiser(p, var)) {
            return false;
        }
        if (var->unsized) {
            var->size = var->init_bytes;
        }
    }
    if (!check_variable(p, var)) {
        return false;
    }
    if (symbol->var != var) { /* seen before */
        bool keep = var->is_extern;
        var->index = symbol->var->index;
        *symbol->var = keep ? *symbol->var : *var;
        return true;
    }
    if (var->space == SPACE_LOCAL || var->space == SPACE_PARAM) {
        return bh__ptx_place_local(p, var);
    }
    return var->space == SPACE_SHARED || add_global(p, symbol);
}

bool bh__ptx_declaration(bh__ptx_parser *p, uint8_t is_extern) {
    specifiers s;
    if (!parse_specifiers(p, &s) || (is_extern && !check_extern(p, &s))) {
        return false;
    }
    do {
        bool ok =
            s.space == SPACE_REG ? declare_register(p, &s) : declare_in_memory(p, &s, is_extern);
        if (!ok) {
            return false;
        }
    } while (bh__ptx_accept(p, ','));
    return bh__ptx_expect(p, ';', "after a declaration");
}

static bool place_parameter(bh__ptx_parser *p, bh__ptx_function *f, bh__ptx_var *var) {
    uint64_t offset = ((uint64_t)f->param_bytes + var->align - 1) & ~((uint64_t)var->align - 1);
    /* The limits of the driver, so that a module that loads here also loads there. */
    bool old = p->version < 81 || (p->target && p->target < 70);
    uint64_t limit = old ? BH__PTX_OLD_MAX_PARAMS : BH__PTX_MAX_PARAMS;
    if (offset + var->size > limit) {
        return bh__ptx_bad(
            p, BH_E_LOAD,
            old ? "pass a pointer to a struct instead, or compile to PTX 8.1 or later for "
                  "sm_70 or later"
                : "pass a pointer to a struct instead",
            "the parameters of a kernel take at least %llu bytes; at most %llu are allowed",
            (unsigned long long)(offset + var->size), (unsigned long long)limit);
    }
    var->offset = (uint32_t)offset;
    f->param_bytes = (uint32_t)(offset + var->size);
    return true;
}

static bool append_formal(bh__ptx_parser *p, bh__ptx_function *f, bool results, bh__ptx_var *var) {
    bh__ptx_var ***list = results ? &f->results : &f->params;
    uint32_t *count = results ? &f->result_count : &f->param_count;
    size_t *capacity = results ? &f->result_capacity : &f->param_capacity;
    bh__ptx_var **grown = bh__arena_grow(&p->module->arena, *list, *count, capacity, sizeof *grown);
    if (grown == NULL) {
        return bh__ptx_no_memory(p);
    }
    *list = grown;
    grown[(*count)++] = var;
    return true;
}

/* A vector of registers counts as so many parameters. */
static bool add_registers(bh__ptx_parser *p, bh__ptx_function *f, bool results,
                          const bh__ptx_var *vector, bh__ptx_symbol *symbol) {
    for (unsigned n = 0; n < vector->vector; n++) {
        bh__ptx_var *var = bh__arena_alloc(&p->module->arena, 1, sizeof *var);
        if (var == NULL) {
            return bh__ptx_no_memory(p);
        }
        *var = *vector;
        var->vector = 1;
        var->size = bh__ptx_bytes(var->type);
        if (!f->prototype) {
            var->reg = bh__ptx_new_reg(p, var->type);
        }
        if (symbol != NULL && n == 0) {
            symbol->first = var->reg;
        }
        if ((!f->prototype && var->reg == NO_REG) || !append_formal(p, f, results, var)) {
            return false;
        }
    }
    return true;
}

/* Gives an unsized parameter its register: it holds the address of the argument. */
static bool by_reference(bh__ptx_parser *p, const bh__ptx_function *f, bh__ptx_var *var) {
    if (!var->unsized || f->prototype) {
        return true;
    }
    var->reg = bh__ptx_new_reg(p, T_B64);
    return var->reg != NO_REG;
}

static bool add_formal(bh__ptx_parser *p, bh__ptx_function *f, bool results, bh__ptx_var *var,
                       bh__ptx_symbol *symbol) {
    if (var->space == SPACE_REG) {
        return add_registers(p, f, results, var, symbol);
    }
    bool frame = !f->entry && !f->prototype && !var->unsized;
    return (!f->entry || place_parameter(p, f, var)) && (!frame || bh__ptx_place_local(p, var)) &&
           by_reference(p, f, var) && append_formal(p, f, results, var);
}

static bool formal(bh__ptx_parser *p, bh__ptx_function *f, bool results) {
    specifiers s;
    bh__ptx_token name = {0};
    if (!parse_specifiers(p, &s)) {
        return false;
    }
    if (s.space != SPACE_PARAM && (s.space != SPACE_REG || f->entry)) {
        return bh__ptx_bad(p, BH_E_LOAD, "declare it .param",
                           "a formal parameter that is neither .param nor .reg");
    }
    bh__ptx_var *var = new_var(p, &s);
    if (var == NULL || !expect_name(p, &name) || !dimensions(p, var)) {
        return false;
    }
    bool last = !f->entry && !results && s.space == SPACE_PARAM && bh__ptx_is(p, ')');
    if (var->unsized && !last) {
        return bh__ptx_bad(p, BH_E_LOAD, "pass a pointer, or make it the last of a function",
                           "a parameter of unknown size");
    }
    if (var->size > BH__PTX_MAX_PARAMS) {
        return bh__ptx_bad(p, BH_E_LOAD, "pass a pointer instead",
                           "a parameter of %llu bytes; at most %llu are allowed",
                           (unsigned long long)var->size, (unsigned long long)BH__PTX_MAX_PARAMS);
    }
    var->formal = true;
    bool sink = name.length == 1 && p->text[name.start] == '_';
    if (!sink && !f->prototype) {
        bh__ptx_symbol *symbol = bh__ptx_declare(p, p->text + name.start, name.length,
                                                 s.space == SPACE_REG ? SYMBOL_REG : SYMBOL_VAR);
        if (symbol == NULL) {
            return false;
        }
        if (s.space == SPACE_REG) {
            symbol->type = s.type;
            symbol->vector = s.vector;
            symbol->count = s.vector;
        } else {
            symbol->var = var;
        }
        return add_formal(p, f, results, var, symbol);
    }
    return add_formal(p, f, results, var, NULL);
}

bool bh__ptx_formals(bh__ptx_parser *p, bh__ptx_function *f, bool results) {
    if (!bh__ptx_expect(p, '(', "before parameters")) {
        return false;
    }
    while (!bh__ptx_is(p, ')')) {
        if (!formal(p, f, results)) {
            return false;
        }
        if (!bh__ptx_accept(p, ',')) {
            break;
        }
    }
    return bh__ptx_expect(p, ')', "after parameters");
}
