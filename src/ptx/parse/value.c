/* SPDX-License-Identifier: Apache-2.0 */
/* Constant expressions and initial values of variables. */
#include <string.h>

#include "ptx/half.h"
#include "ptx/parse/parse.h"

static double as_double(const bh__ptx_value *v) {
    if (!v->is_float) {
        return v->is_unsigned ? (double)v->bits : (double)(int64_t)v->bits;
    }
    if (v->single) {
        uint32_t bits = (uint32_t)v->bits;
        float f;
        memcpy(&f, &bits, 4);
        return (double)f;
    }
    double d;
    memcpy(&d, &v->bits, 8);
    return d;
}

static bh__ptx_value from_double(double d) {
    bh__ptx_value v = {.is_float = true};
    memcpy(&v.bits, &d, 8);
    return v;
}

static bh__ptx_value from_int(uint64_t bits, bool is_unsigned) {
    return (bh__ptx_value){.bits = bits, .is_unsigned = is_unsigned};
}

uint64_t bh__ptx_float_bits(const bh__ptx_value *value, bh__ptx_type type) {
    if (value->single && bh__ptx_bytes(type) == 4 && type != T_F16X2 && type != T_BF16X2) {
        return value->bits; /* NaN payloads stay as they are written */
    }
    double d = as_double(value);
    if (type == T_F64 || bh__ptx_bytes(type) == 8) {
        uint64_t bits;
        memcpy(&bits, &d, 8);
        return bits;
    }
    if (type == T_F16) {
        return bh__f16_from_double(d, BH__ROUND_NEAREST);
    }
    if (type == T_BF16) {
        return bh__bf16_from_double(d, BH__ROUND_NEAREST);
    }
    float f = (float)d;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

static bool expression(bh__ptx_parser *p, unsigned depth, unsigned level, bh__ptx_value *out);

static bool parenthesis(bh__ptx_parser *p, unsigned depth, bh__ptx_value *out) {
    bh__ptx_next(p);
    bool to_s64 = bh__ptx_is_dot(p, "s64"), to_u64 = bh__ptx_is_dot(p, "u64");
    if (to_s64 || to_u64) {
        bh__ptx_next(p);
        if (!bh__ptx_expect(p, ')', "after a cast") || !bh__ptx_unary(p, depth + 1, out)) {
            return false;
        }
        if (out->is_float) {
            return bh__ptx_bad(p, BH_E_LOAD, "write the number itself", "a cast of a float");
        }
        *out = from_int(out->bits, to_u64);
        return true;
    }
    return expression(p, depth + 1, 0, out) && bh__ptx_expect(p, ')', "of an expression");
}

bool bh__ptx_unary(bh__ptx_parser *p, unsigned depth, bh__ptx_value *out) {
    if (depth > BH__PTX_MAX_DEPTH) {
        return bh__ptx_bad(p, BH_E_LOAD, "write a simpler expression",
                           "an expression nested more than %d deep", BH__PTX_MAX_DEPTH);
    }
    if (p->token.kind == TOKEN_INT) {
        *out = from_int(p->token.value, p->token.is_unsigned || p->token.value >> 63);
        bh__ptx_next(p);
        return true;
    }
    if (p->token.kind == TOKEN_FLOAT) {
        *out = (bh__ptx_value){.is_float = true, .single = p->token.single, .bits = p->token.value};
        bh__ptx_next(p);
        return true;
    }
    if (p->token.kind == TOKEN_WORD && p->token.length == 7 &&
        memcmp(p->text + p->token.start, "WARP_SZ", 7) == 0) {
        *out = from_int(32, false);
        bh__ptx_next(p);
        return true;
    }
    if (bh__ptx_is(p, '(')) {
        return parenthesis(p, depth, out);
    }
    uint16_t sign = p->token.kind == TOKEN_PUNCT ? p->token.punct : 0;
    if (sign != '-' && sign != '+' && sign != '!' && sign != '~') {
        return bh__ptx_bad(p, BH_E_LOAD, "give a register, a constant or a declared name",
                           "a constant is expected before '%.*s'",
                           p->token.length > 20 ? 20 : (int)p->token.length,
                           p->text + p->token.start);
    }
    bh__ptx_next(p);
    if (!bh__ptx_unary(p, depth + 1, out)) {
        return false;
    }
    if (out->is_float && sign == '-') {
        out->bits ^= out->single ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
    } else if (!out->is_float) {
        out->bits = sign == '-'   ? 0 - out->bits
                    : sign == '!' ? out->bits == 0
                    : sign == '~' ? ~out->bits
                                  : out->bits;
        out->is_unsigned &= sign != '-';
    }
    return true;
}

/* The precedence of binary operators. */
static int binding(uint16_t op) {
    switch (op) {
    case '*':
    case '/':
    case '%':
        return 10;
    case '+':
    case '-':
        return 9;
    case '<' << 8 | '<':
    case '>' << 8 | '>':
        return 8;
    case '<':
    case '>':
    case '<' << 8 | '=':
    case '>' << 8 | '=':
        return 7;
    case '=' << 8 | '=':
    case '!' << 8 | '=':
        return 6;
    case '&':
        return 5;
    case '^':
        return 4;
    case '|':
        return 3;
    case '&' << 8 | '&':
        return 2;
    case '|' << 8 | '|':
        return 1;
    default:
        return -1;
    }
}

static bool apply_float(bh__ptx_parser *p, uint16_t op, bh__ptx_value *a, const bh__ptx_value *b) {
    double x = as_double(a), y = as_double(b);
    switch (op) {
    case '+':
        *a = from_double(x + y);
        return true;
    case '-':
        *a = from_double(x - y);
        return true;
    case '*':
        *a = from_double(x * y);
        return true;
    case '/':
        if (y != 0) {
            *a = from_double(x / y);
            return true;
        }
        break;
    default:
        break;
    }
    return bh__ptx_bad(p, BH_E_LOAD, "write the value itself",
                       "this operation does not apply to floating-point constants");
}

static bool apply(bh__ptx_parser *p, uint16_t op, bh__ptx_value *a, const bh__ptx_value *b) {
    if (a->is_float || b->is_float) {
        return apply_float(p, op, a, b);
    }
    bool u = a->is_unsigned || b->is_unsigned;
    uint64_t x = a->bits, y = b->bits;
    int64_t sx = (int64_t)x, sy = (int64_t)y;
    uint64_t r = 0;
    if ((op == '/' || op == '%') && (y == 0 || (!u && sx == INT64_MIN && sy == -1))) {
        return bh__ptx_bad(p, BH_E_LOAD, "correct the expression", "a constant division by zero");
    }
    switch (op) {
    case '*':
        r = x * y;
        break;
    case '/':
        r = u ? x / y : (uint64_t)(sx / sy);
        break;
    case '%':
        r = u ? x % y : (uint64_t)(sx % sy);
        break;
    case '+':
        r = x + y;
        break;
    case '-':
        r = x - y;
        break;
    case '<' << 8 | '<':
        r = y > 63 ? 0 : x << y;
        break;
    case '>' << 8 | '>':
        r = u ? (y > 63 ? 0 : x >> y) : (uint64_t)(sx >> (y > 63 ? 63 : y));
        break;
    case '<':
        r = u ? x < y : sx < sy;
        break;
    case '>':
        r = u ? x > y : sx > sy;
        break;
    case '<' << 8 | '=':
        r = u ? x <= y : sx <= sy;
        break;
    case '>' << 8 | '=':
        r = u ? x >= y : sx >= sy;
        break;
    case '=' << 8 | '=':
        r = x == y;
        break;
    case '!' << 8 | '=':
        r = x != y;
        break;
    case '&':
        r = x & y;
        break;
    case '^':
        r = x ^ y;
        break;
    case '|':
        r = x | y;
        break;
    case '|' << 8 | '|':
        r = x || y;
        break;
    default:
        r = x && y;
        break;
    }
    *a = from_int(r, u);
    return true;
}

/* condition ? a : b */
static bool conditional(bh__ptx_parser *p, unsigned depth, bh__ptx_value *out) {
    bh__ptx_value yes, no;
    bool which = out->is_float ? as_double(out) != 0 : out->bits != 0;
    bh__ptx_next(p);
    if (!expression(p, depth + 1, 0, &yes) || !bh__ptx_expect(p, ':', "of a condition") ||
        !expression(p, depth + 1, 0, &no)) {
        return false;
    }
    *out = which ? yes : no;
    return true;
}

static bool expression(bh__ptx_parser *p, unsigned depth, unsigned level, bh__ptx_value *out) {
    if (!bh__ptx_unary(p, depth + 1, out)) {
        return false;
    }
    while (p->token.kind == TOKEN_PUNCT) {
        uint16_t op = p->token.punct;
        int tight = binding(op);
        if (tight < 0 || (unsigned)tight <= level) {
            break;
        }
        bh__ptx_next(p);
        bh__ptx_value right;
        if (!expression(p, depth + 1, (unsigned)tight, &right) || !apply(p, op, out, &right)) {
            return false;
        }
    }
    return level > 0 || !bh__ptx_is(p, '?') || conditional(p, depth, out);
}

bool bh__ptx_expression(bh__ptx_parser *p, bh__ptx_value *out) {
    return expression(p, 0, 0, out);
}

bool bh__ptx_term(bh__ptx_parser *p, bh__ptx_value *out) {
    return expression(p, 0, (unsigned)binding('+'), out);
}

static bool put_bytes(bh__ptx_parser *p, bh__ptx_var *var, uint64_t offset, uint64_t bits,
                      unsigned bytes) {
    uint64_t end;
    if (__builtin_add_overflow(offset, (uint64_t)bytes, &end) ||
        (!var->unsized && end > var->size)) {
        return bh__ptx_bad(p, BH_E_LOAD, "make the variable larger, or give fewer values",
                           "more values than the %llu bytes of the variable hold",
                           (unsigned long long)var->size);
    }
    while (var->init_bytes < end) {
        uint8_t *init =
            bh__arena_grow(&p->module->arena, var->init, var->init_bytes, &var->init_capacity, 1);
        if (init == NULL) {
            return bh__ptx_no_memory(p);
        }
        var->init = init;
        init[var->init_bytes++] = 0;
    }
    for (unsigned i = 0; i < bytes; i++) {
        var->init[offset + i] = (uint8_t)(i < 8 ? bits >> 8 * i : 0);
    }
    return true;
}

/* name, name+4, generic(name), generic(name)+4; with a mask before it, 0xFF00(name). */
static bool address_value(bh__ptx_parser *p, bh__ptx_var *var, uint64_t offset, unsigned bytes,
                          uint64_t mask) {
    bh__ptx_reloc reloc = {.offset = offset, .bytes = (uint8_t)bytes, .line = p->token.line};
    bool generic = p->token.length == 7 && memcmp(p->text + p->token.start, "generic", 7) == 0 &&
                   bh__ptx_peek(p)->kind == TOKEN_PUNCT && bh__ptx_peek(p)->punct == '(';
    if (generic) {
        bh__ptx_next(p);
        bh__ptx_next(p);
    }
    bh__ptx_symbol *symbol = p->token.kind == TOKEN_WORD
                                 ? bh__ptx_find(p, p->text + p->token.start, p->token.length)
                                 : NULL;
    if (symbol == NULL || (symbol->kind != SYMBOL_VAR && symbol->kind != SYMBOL_FUNCTION) ||
        (symbol->kind == SYMBOL_VAR && symbol->var->space != SPACE_GLOBAL &&
         symbol->var->space != SPACE_CONST)) {
        return bh__ptx_bad(p, BH_E_LOAD, "declare the variable or function before this line",
                           "%.*s is not a global variable, constant or function",
                           p->token.length > 80 ? 80 : (int)p->token.length,
                           p->text + p->token.start);
    }
    if (symbol->kind == SYMBOL_FUNCTION) {
        symbol->function->called = symbol->function->address_taken = true;
    }
    bh__ptx_next(p);
    if (generic && !bh__ptx_expect(p, ')', "after generic(name")) {
        return false;
    }
    if (bh__ptx_is(p, '+') || bh__ptx_is(p, '-')) {
        bool minus = bh__ptx_is(p, '-');
        bh__ptx_next(p);
        bh__ptx_value v;
        if (!bh__ptx_term(p, &v)) {
            return false;
        }
        reloc.addend = (int64_t)(minus ? 0 - v.bits : v.bits);
    }
    if (mask != UINT64_MAX) {
        while (mask != 0 && (mask & 0xff) == 0) {
            mask >>= 8;
            reloc.shift = (uint8_t)(reloc.shift + 8);
        }
        if (mask != 0xff || bytes != 1) {
            return bh__ptx_bad(
                p, BH_E_UNSUPPORTED, "take one byte of the address at a time",
                "the CPU device supports only masks that select one byte of an address");
        }
    } else if (bytes != 8) {
        return bh__ptx_bad(p, BH_E_LOAD, "store addresses in .u64 variables",
                           "an address does not fit in %u bytes", bytes);
    }
    reloc.symbol = symbol;
    bh__ptx_reloc *relocs = bh__arena_grow(&p->module->arena, var->relocs, var->reloc_count,
                                           &var->reloc_capacity, sizeof *relocs);
    if (relocs == NULL) {
        return bh__ptx_no_memory(p);
    }
    var->relocs = relocs;
    relocs[var->reloc_count++] = reloc;
    return put_bytes(p, var, offset, 0, bytes);
}

static bool values(bh__ptx_parser *p, bh__ptx_var *var, unsigned depth, uint64_t *offset) {
    unsigned bytes = bh__ptx_bytes(var->type);
    if (bh__ptx_is(p, '{')) {
        if (depth > 8) {
            return bh__ptx_bad(p, BH_E_LOAD, "nest the braces less deeply",
                               "an initialiser with more than 8 nested braces");
        }
        bh__ptx_next(p);
        while (!bh__ptx_is(p, '}')) {
            if (!values(p, var, depth + 1, offset)) {
                return false;
            }
            if (!bh__ptx_accept(p, ',')) {
                break;
            }
        }
        return bh__ptx_expect(p, '}', "after the values");
    }
    bool ok;
    if (p->token.kind == TOKEN_WORD) {
        ok = address_value(p, var, *offset, bytes, UINT64_MAX);
    } else if (p->token.kind == TOKEN_INT && bh__ptx_peek(p)->kind == TOKEN_PUNCT &&
               bh__ptx_peek(p)->punct == '(') {
        uint64_t mask = p->token.value;
        bh__ptx_next(p);
        bh__ptx_next(p);
        ok =
            address_value(p, var, *offset, bytes, mask) && bh__ptx_expect(p, ')', "after the name");
    } else {
        bh__ptx_value v;
        ok = bh__ptx_expression(p, &v);
        char class = bh__ptx_class(var->type);
        bool whole = var->type == T_F16 || var->type == T_BF16 || class != 'F';
        if (ok && (v.is_float ? class == 'U' || class == 'S' : !whole)) {
            return bh__ptx_bad(
                p, BH_E_LOAD, whole ? "write an integer" : "write a float, as in 1.0",
                "%s as an initial value of type .%s", v.is_float ? "a float" : "an integer",
                bh__ptx_type_table[var->type].name);
        }
        uint64_t bits = ok && v.is_float ? bh__ptx_float_bits(&v, var->type) : ok ? v.bits : 0;
        ok = ok && put_bytes(p, var, *offset, bits, bytes);
    }
    *offset += bytes;
    return ok;
}

bool bh__ptx_initialiser(bh__ptx_parser *p, bh__ptx_var *var) {
    uint64_t offset = 0;
    return values(p, var, 0, &offset);
}
