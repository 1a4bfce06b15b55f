/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the parser share: tokens, scopes, the parser's state. */
#ifndef BH_PTX_PARSE_PARSE_H
#define BH_PTX_PARSE_PARSE_H

#include "ptx/ir.h"

typedef enum bh__ptx_token_kind {
    TOKEN_END,
    TOKEN_WORD, /* identifiers, mnemonics, %registers */
    TOKEN_DOT,  /* .word, with :: inside */
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_STRING,
    TOKEN_PUNCT, /* one character, or one of << >> == != <= >= && || */
    TOKEN_BAD
} bh__ptx_token_kind;

typedef struct bh__ptx_token {
    bh__ptx_token_kind kind;
    uint32_t start, length; /* in the text */
    uint32_t line;
    uint16_t punct; /* PUNCT: the character, or two of them: '<' << 8 | '<' */
    bool single;    /* FLOAT: written as 0f */
    bool is_unsigned;
    uint64_t value;      /* INT: the value; FLOAT: the bits of a double (of a float if `single`) */
    const char *problem; /* BAD */
} bh__ptx_token;

typedef struct bh__ptx_label {
    uint32_t start, length, hash, scope, line, index;
    uint32_t next; /* in the bucket, plus one */
} bh__ptx_label;

typedef struct bh__ptx_label_use {
    uint32_t start, length, hash, scope, line, text;
    uint64_t *imm;   /* set once known */
    uint32_t *index; /* or this one */
} bh__ptx_label_use;

typedef struct bh__ptx_parser {
    bh__ptx_module *module;
    bh_error *error;
    bh_status status;
    const char *text;
    uint32_t length;
    uint32_t at, line; /* of the lexer */
    bh__ptx_token token, ahead;
    bool has_ahead;
    uint32_t statement, statement_line; /* where the current statement starts */

    bh__ptx_symbol **buckets;
    uint32_t bucket_count, symbol_count;
    bh__ptx_symbol *scopes[BH__PTX_MAX_DEPTH + 2];
    uint32_t scope_ids[BH__PTX_MAX_DEPTH + 2];
    uint32_t scope_from[BH__PTX_MAX_DEPTH + 2]; /* where it begins in the text */
    uint32_t depth;
    uint32_t inner_ranges; /* live name<count> declarations inside nested scopes */
    bool numbered_singles; /* a single register has a name that ends in a digit */

    bh__ptx_function *function;
    uint32_t *scope_parents;
    uint32_t scope_count;
    size_t scope_capacity;
    bh__ptx_label *labels;
    uint32_t label_count;
    size_t label_capacity;
    uint32_t *label_buckets;
    uint32_t label_bucket_count;
    bh__ptx_label_use *uses;
    uint32_t use_count;
    size_t use_capacity;

    uint64_t local_top; /* of the current function's frame */
    uint64_t local_saved[BH__PTX_MAX_DEPTH + 2];

    uint64_t global_bytes, const_bytes;
    uint32_t loc_file, loc_line; /* of the last .loc in this function */
    bool has_target, has_address_size;
    uint32_t version; /* 81 for PTX 8.1 */
    uint32_t target;  /* 90 for sm_90; 0: not given */
} bh__ptx_parser;

/* lex.c */
void bh__ptx_lex(bh__ptx_parser *p, bh__ptx_token *out);
void bh__ptx_next(bh__ptx_parser *p);
const bh__ptx_token *bh__ptx_peek(bh__ptx_parser *p);
bool bh__ptx_is(const bh__ptx_parser *p, uint16_t punct);
bool bh__ptx_is_dot(const bh__ptx_parser *p, const char *word);
bool bh__ptx_accept(bh__ptx_parser *p, uint16_t punct);
bool bh__ptx_accept_dot(bh__ptx_parser *p, const char *word);
bool bh__ptx_expect(bh__ptx_parser *p, uint16_t punct, const char *where);
void bh__ptx_skip_line(bh__ptx_parser *p);

/* Records the first error, about the current statement. Always returns false. */
bool bh__ptx_bad(bh__ptx_parser *p, bh_status status, const char *fix, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool bh__ptx_no_memory(bh__ptx_parser *p);

/* loc.c */
typedef struct bh__ptx_loc {
    bool whole; /* it has a file and a line */
    uint32_t file, line;
    bh__ptx_token number;             /* the token of the file */
    uint32_t start, numbers_end, end; /* in the text; behind the numbers is where it is inlined */
} bh__ptx_loc;

/* .loc FILE LINE COLUMN[, function_name NAME[+N], inlined_at FILE LINE COLUMN] */
void bh__ptx_loc_take(bh__ptx_parser *p, bh__ptx_loc *out);
/* .file NUMBER "name"[, time, size]. Returns false if it is not that. */
bool bh__ptx_file_take(bh__ptx_parser *p, uint32_t *out_number, bh__ptx_token *out_name,
                       uint32_t *out_end);

/* symbol.c */
uint32_t bh__ptx_hash(const char *name, uint32_t length);
bh__ptx_symbol *bh__ptx_find(bh__ptx_parser *p, const char *name, uint32_t length);
bh__ptx_symbol *bh__ptx_find_global(const bh__ptx_parser *p, const char *name, uint32_t length);
bool bh__ptx_place_local(bh__ptx_parser *p, bh__ptx_var *var);
/* False, with an error: a single register is also one of a range of the same scope. */
bool bh__ptx_check_range(bh__ptx_parser *p, const bh__ptx_symbol *symbol);
bh__ptx_symbol *bh__ptx_declare(bh__ptx_parser *p, const char *name, uint32_t length,
                                bh__ptx_symbol_kind kind);
bool bh__ptx_scope_open(bh__ptx_parser *p);
void bh__ptx_scope_close(bh__ptx_parser *p);
uint32_t bh__ptx_new_reg(bh__ptx_parser *p, bh__ptx_type type); /* NO_REG: out of memory */
bool bh__ptx_label_define(bh__ptx_parser *p, const bh__ptx_token *name);
bool bh__ptx_label_use_add(bh__ptx_parser *p, const bh__ptx_token *name, uint64_t *imm,
                           uint32_t *index);
bool bh__ptx_labels_resolve(bh__ptx_parser *p);

/* value.c: constant expressions and initialisers. */
typedef struct bh__ptx_value {
    bool is_float, is_unsigned, single;
    uint64_t bits; /* an integer, or a double's bits (a float's if `single`) */
} bh__ptx_value;

bool bh__ptx_expression(bh__ptx_parser *p, bh__ptx_value *out);
bool bh__ptx_unary(bh__ptx_parser *p, unsigned depth, bh__ptx_value *out);
/* As much of an expression as may follow a + or -. */
bool bh__ptx_term(bh__ptx_parser *p, bh__ptx_value *out);
bool bh__ptx_initialiser(bh__ptx_parser *p, bh__ptx_var *var);
uint64_t bh__ptx_float_bits(const bh__ptx_value *value, bh__ptx_type type);

/* decl.c: variables, registers and formals. */
bool bh__ptx_type_of(const bh__ptx_parser *p, bh__ptx_type *out); /* of the current .word */
bool bh__ptx_declaration(bh__ptx_parser *p, uint8_t is_extern);
bool bh__ptx_attribute(bh__ptx_parser *p); /* after .attribute */
bool bh__ptx_formals(bh__ptx_parser *p, bh__ptx_function *function, bool results);

/* insn.c */
bool bh__ptx_instruction(bh__ptx_parser *p);

#endif
