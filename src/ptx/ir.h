/* SPDX-License-Identifier: Apache-2.0 */
/* The parsed program: a module, its variables, its functions and their instructions. */
#ifndef BH_PTX_IR_H
#define BH_PTX_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "error/error.h"
#include "ptx/ops.h"
#include "ptx/ptx.h"

/* Prefixes are short because the tables of ops.h use them: T_ types, M_ modifiers, OP_ rows. */
typedef enum bh__ptx_type {
    T_NONE,
#define X(id, name, bytes, class) T_##id,
    BH__PTX_TYPES(X)
#undef X
        T_COUNT
} bh__ptx_type;

typedef enum bh__ptx_mod {
#define X(id, name, group) M_##id,
    BH__PTX_MODS(X) M_END,
    M_BEFORE_MORE = 127,
    BH__PTX_MORE_MODS(X)
#undef X
        M_COUNT
} bh__ptx_mod;

typedef enum bh__ptx_op {
#define X(id, mnemonic, operands, type0, type1, mods, unit) OP_##id,
    BH__PTX_OPS(X)
#undef X
        OP_COUNT
} bh__ptx_op;

typedef enum bh__ptx_unit {
    UNIT_INT,
    UNIT_BITS,
    UNIT_VIDEO,
    UNIT_FLOAT,
    UNIT_MATH,
    UNIT_HALF,
    UNIT_CMP,
    UNIT_CVT,
    UNIT_MOVE,
    UNIT_MEM,
    UNIT_ATOM,
    UNIT_WARP,
    UNIT_CONTROL,
    UNIT_MATRIX,
    UNIT_STACK,
    UNIT_HINT,
    UNIT_MULTIMEM,
    UNIT_CLUSTER,
    UNIT_MBARRIER,
    UNIT_ASYNC,
    UNIT_TEXTURE
} bh__ptx_unit;

__extension__ typedef unsigned __int128 bh__ptx_mods;
#define M_MORE 128 /* the first modifier of the second list */
_Static_assert(M_END <= M_MORE && M_COUNT <= 2 * M_MORE, "a set of modifiers is 128 bits");
_Static_assert(T_COUNT <= 64, "a set of types is 64 bits");

typedef struct bh__ptx_type_info {
    const char *name;
    uint8_t bytes;
    char class;
} bh__ptx_type_info;

typedef struct bh__ptx_op_info {
    const char *mnemonic;
    const char *operands;
    uint64_t type0, type1; /* sets of types; 0: the operation has no such type */
    bh__ptx_mods mods;
    bh__ptx_unit unit;
} bh__ptx_op_info;

extern const bh__ptx_type_info bh__ptx_type_table[T_COUNT];
extern const bh__ptx_op_info bh__ptx_op_table[OP_COUNT];
extern const bh__ptx_mods bh__ptx_op_more[OP_COUNT]; /* of the second list of modifiers */
extern const char *const bh__ptx_mod_names[M_COUNT]; /* NULL between the two lists */

typedef enum bh__ptx_sreg {
    SREG_TID,
    SREG_NTID,
    SREG_CTAID,
    SREG_NCTAID,
    SREG_CLUSTERID,
    SREG_NCLUSTERID,
    SREG_CLUSTER_CTAID,
    SREG_CLUSTER_NCTAID,
    SREG_CLUSTER_CTARANK,
    SREG_CLUSTER_NCTARANK,
    SREG_IS_EXPLICIT_CLUSTER,
    SREG_LANEID,
    SREG_WARPID,
    SREG_NWARPID,
    SREG_SMID,
    SREG_NSMID,
    SREG_GRIDID,
    SREG_CLOCK,
    SREG_CLOCK_HI,
    SREG_CLOCK64,
    SREG_GLOBALTIMER,
    SREG_GLOBALTIMER_LO,
    SREG_GLOBALTIMER_HI,
    SREG_LANEMASK_EQ,
    SREG_LANEMASK_LE,
    SREG_LANEMASK_LT,
    SREG_LANEMASK_GE,
    SREG_LANEMASK_GT,
    SREG_DYNAMIC_SMEM_SIZE,
    SREG_TOTAL_SMEM_SIZE,
    SREG_AGGR_SMEM_SIZE,
    SREG_RESERVED_BEGIN,
    SREG_RESERVED_END,
    SREG_RESERVED_CAP,
    SREG_RESERVED_0,
    SREG_RESERVED_1,
    SREG_ENVREG,
    SREG_PM,   /* %pm0 to %pm7 */
    SREG_PM64, /* %pm0_64 to %pm7_64 */
    SREG_GRAPH_EXEC,
    SREG_COUNT
} bh__ptx_sreg;

typedef struct bh__ptx_sreg_info {
    const char *name;
    bh__ptx_type type;
    bool vector; /* read with .x .y .z .w */
} bh__ptx_sreg_info;

extern const bh__ptx_sreg_info bh__ptx_sreg_table[SREG_COUNT];

typedef enum bh__ptx_space {
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_CONST,
    SPACE_SHARED,
    SPACE_LOCAL,
    SPACE_PARAM,
    SPACE_CLUSTER, /* the shared memory of all blocks of a cluster */
    SPACE_REG
} bh__ptx_space;

typedef struct bh__ptx_symbol bh__ptx_symbol;
typedef struct bh__ptx_function bh__ptx_function;

typedef struct bh__ptx_reloc {
    uint64_t offset; /* in the variable */
    uint8_t bytes;
    uint8_t shift; /* in bits: which byte of the address is stored */
    int64_t addend;
    const bh__ptx_symbol *symbol;
    uint32_t line;
} bh__ptx_reloc;

/* A variable in memory, at module or function scope, or a formal parameter. */
typedef struct bh__ptx_var {
    bh__ptx_type type;
    uint8_t vector; /* 1, 2, 4, 8 */
    bh__ptx_space space;
    uint64_t size;
    uint32_t align;
    uint8_t is_extern;
    bool unsized;    /* declared as x[] */
    bool pointer;    /* .ptr */
    bool formal;     /* parameter or result of a function */
    uint32_t index;  /* global and const: in module->variables */
    uint32_t offset; /* shared: in the window; local and param: in the frame; entry: in params */
    bool placed;     /* `offset` is final */
    uint32_t users, last_user; /* shared: number of kernels that use it */
    uint32_t reg;              /* of a formal parameter declared with .reg */
    uint8_t *init;             /* the first init_bytes bytes; the rest is zero */
    uint64_t init_bytes;
    size_t init_capacity;
    bh__ptx_reloc *relocs;
    size_t reloc_count, reloc_capacity;
} bh__ptx_var;

typedef enum bh__ptx_symbol_kind {
    SYMBOL_REG,  /* one register, or a vector of them */
    SYMBOL_REGS, /* name<count> */
    SYMBOL_VAR,
    SYMBOL_FUNCTION,
    SYMBOL_PROTOTYPE,
    SYMBOL_TARGETS, /* .branchtargets */
    SYMBOL_CALLEES  /* .calltargets */
} bh__ptx_symbol_kind;

/* .branchtargets: labels, resolved when their scope ends. */
typedef struct bh__ptx_targets {
    uint32_t *at; /* instruction indices */
    uint32_t count;
} bh__ptx_targets;

struct bh__ptx_symbol {
    const char *name;
    uint32_t length, hash;
    bh__ptx_symbol_kind kind;
    uint32_t line;
    bh__ptx_symbol *next; /* in the bucket: newest first, so that inner scopes hide outer ones */
    bh__ptx_symbol *in_scope; /* declared before it in the same scope */
    uint32_t depth;
    /* registers */
    bh__ptx_type type;
    uint8_t vector;
    uint32_t first, count;
    /* other kinds */
    bh__ptx_var *var;
    bh__ptx_function *function;
    bh__ptx_targets *targets;
};

typedef struct bh__ptx_reg {
    bh__ptx_type type;
    uint32_t row; /* byte offset in the frame; 0: no instruction uses it */
    /* For debugging: its name, NULL if it has none, and the part of the text that knows it. */
    const char *name;
    uint32_t from, to;
    uint8_t part, parts; /* of a vector: which component, and how many there are */
} bh__ptx_reg;

typedef enum bh__ptx_operand_kind {
    OPERAND_NONE,
    OPERAND_REG,
    OPERAND_INT,
    OPERAND_FLOAT, /* `imm` holds the bits of a double; `bits32` if written as 0f */
    OPERAND_SREG,
    OPERAND_ADDRESS, /* of a variable or function, plus an offset */
    OPERAND_LABEL,
    OPERAND_VECTOR, /* { } */
    OPERAND_MEMORY, /* [ ] */
    OPERAND_PAIR,   /* d|p */
    OPERAND_SINK,   /* _ */
    OPERAND_LIST,   /* ( ), of a call */
    OPERAND_TARGETS,
    OPERAND_PROTOTYPE
} bh__ptx_operand_kind;

typedef struct bh__ptx_operand {
    uint8_t kind;
    bool negated; /* !p */
    bool has_reg; /* MEMORY: [reg+offset] */
    bool single;  /* FLOAT: written as 0f, exact single precision */
    uint8_t sreg, component;
    uint32_t reg;   /* REG, MEMORY */
    uint32_t count; /* VECTOR, LIST, PAIR; MEMORY: further parts; video instructions: SELECT_... */
    uint64_t imm;   /* INT, FLOAT; LABEL: instruction index; offset of ADDRESS and MEMORY */
    bh__ptx_symbol *symbol; /* ADDRESS, MEMORY, TARGETS, PROTOTYPE */
    struct bh__ptx_operand *elements;
} bh__ptx_operand;

/* What follows a register in video instructions, .h10 or .b3: its digits, the last one first. */
#define SELECT_DIGITS(count)   ((count) >> 16 & 15)
#define SELECT_DIGIT(count, n) ((count) >> 4 * (n)&15)
#define SELECT_HALVES          (1u << 20)
#define SELECT_NEGATED         (1u << 21)

#define NO_REG   UINT32_MAX
#define NO_LABEL UINT64_MAX

typedef struct bh__ptx_insn {
    bh__ptx_mods mods, more;
    uint16_t op;
    uint8_t types[4];
    uint8_t type_count;
    uint8_t operand_count;
    bool guard_negated;
    uint16_t shape[3]; /* .m16n8k8: 16, 8, 8; zeros: not given */
    char layout[2];    /* .row and .col of matrices, in order: 'r', 'c' or 0 */
    uint32_t guard;    /* a predicate register or NO_REG */
    bh__ptx_operand *operands;
    uint32_t line;
    uint32_t text, text_length;  /* position in the source */
    uint32_t loc_file, loc_line; /* of the last .loc; 0: none */
} bh__ptx_insn;

/* Functions that the device has. */
typedef enum bh__ptx_builtin {
    BUILTIN_NONE,
    BUILTIN_VPRINTF,
    BUILTIN_ASSERTFAIL,
    BUILTIN_MALLOC,
    BUILTIN_FREE
} bh__ptx_builtin;

typedef struct bh__ptx_call_edge {
    bh__ptx_function *callee;
    struct bh__ptx_call_edge *next;
} bh__ptx_call_edge;

/* What a row of a frame holds, in the low bits of its offset. */
enum { ROW_PREDICATE = 0, ROW_WORDS = 1, ROW_WIDE = 2, ROW_KIND = 3 };

struct bh__ptx_function {
    const char *name;
    uint32_t line;
    uint32_t index; /* in module->functions */
    bool entry, defined, is_extern, called, address_taken, calls_unknown, prototype;
    bh__ptx_builtin builtin;
    bh__ptx_var **params, **results;
    uint32_t param_count, result_count;
    size_t param_capacity, result_capacity;

    bh__ptx_reg *regs;
    uint32_t reg_count;
    size_t reg_capacity;
    bh__ptx_insn *insns;
    uint32_t insn_count;
    size_t insn_capacity;

    struct bh__ptx_named *named; /* its parameters and local variables, for debugging */
    uint32_t named_count;
    size_t named_capacity;

    bh__ptx_var **shared; /* the shared variables that it names */
    uint32_t shared_count;
    size_t shared_capacity;
    bh__ptx_call_edge *calls;
    uint32_t mark; /* of the traversal of the call graph */

    uint32_t param_bytes; /* entry: the parameter block */
    uint32_t local_bytes; /* frame: .local and .param variables and formals, a multiple of 16 */
    uint32_t local_used;  /* of these, before rounding up */
    uint32_t local_align;
    uint32_t frame_bytes; /* frame: header and register rows */
    uint32_t *rows;       /* all rows, for frames of divergent lanes: the offset + ROW_WORDS ... */
    uint32_t row_count;
    size_t row_capacity;
    uint32_t stack_row; /* of its dynamic allocations (exec/stack.c); 0: it makes none */
    uint32_t code;      /* index of its first decoded instruction */
    uint32_t max_threads;
    uint32_t required[3]; /* or zeros */
    uint32_t cluster[3];  /* .reqnctapercluster, or zeros */
    bool needs_cluster;   /* .explicitcluster */
    uint32_t max_cluster; /* .maxclusterrank, or 0 */
    bh__ptx_kernel *kernel;
};

struct bh__ptx_module {
    bh__arena arena;
    const char *text; /* a copy, NUL-terminated: errors and faults quote it */
    size_t length;
    bh__ptx_function **functions;
    uint32_t function_count;
    size_t function_capacity;
    bh__ptx_symbol **globals; /* .global and .const variables, by index */
    uint32_t global_count;
    size_t global_capacity;
    bh__ptx_variable *variables;
    bh__ptx_kernel *kernels;
    bh__ptx_function **kernel_functions;
    uint32_t kernel_count;
    uint32_t dynamic_align; /* of dynamic shared memory */
    bool uses_heap;         /* calls malloc or free */
    bool uses_reserved;     /* uses the shared memory that a GPU reserves for the system */
    struct bh__ptx_code *code;
    struct bh__ptx_site *sites; /* the source position of each element of `code` */
    uint32_t code_count;
    size_t code_capacity, site_capacity;
    uint8_t *constants; /* rows of immediates */
    uint32_t constant_bytes;
    struct bh__ptx_file *files;
    uint32_t file_count;
    size_t file_capacity;
    struct bh__ptx_section *sections;
    uint32_t section_count;
    size_t section_capacity;
    const char *name; /* of the text, for messages; NULL: it has none */
    struct bh__ptx_mark *marks;
    uint32_t mark_count;
    size_t mark_capacity;
};

/* A variable in memory and what it is called. */
typedef struct bh__ptx_named {
    const char *name;
    const bh__ptx_var *var;
} bh__ptx_named;

/* A debug section: its name, and what is between its braces. */
typedef struct bh__ptx_section {
    uint32_t name, name_length, from, to;
} bh__ptx_section;

/* .file: a number and the last part of the path. */
typedef struct bh__ptx_file {
    uint32_t number, start, length;
} bh__ptx_file;

/* A #line directive: from `line` of the text on, lines are those of another file, from `shown` on.
 * A name of length 0: that of the mark before. */
typedef struct bh__ptx_mark {
    uint32_t line, shown, start, length;
} bh__ptx_mark;

/* The source position of a decoded instruction. */
typedef struct bh__ptx_site {
    uint32_t line, text, text_length;
    uint32_t loc_file, loc_line;
    uint32_t insn; /* in the function's `insns`; their number: the return that follows the last */
} bh__ptx_site;

static inline unsigned bh__ptx_bytes(bh__ptx_type type) {
    return bh__ptx_type_table[type].bytes;
}

static inline char bh__ptx_class(bh__ptx_type type) {
    return bh__ptx_type_table[type].class;
}

/* Whether the instruction has modifier number `m`. */
#define HAS_MOD(insn, m)                                                                           \
    ((((m) < M_MORE ? (insn)->mods >> ((m)&127) : (insn)->more >> ((m)&127)) & 1) != 0)
#define HAS(insn, id) HAS_MOD(insn, M_##id)

/* The state space that the instruction names. */
static inline bh__ptx_space bh__ptx_insn_space(const bh__ptx_insn *insn) {
    return HAS(insn, GLOBAL)           ? SPACE_GLOBAL
           : HAS(insn, SHARED)         ? SPACE_SHARED
           : HAS(insn, LOCAL)          ? SPACE_LOCAL
           : HAS(insn, PARAM)          ? SPACE_PARAM
           : HAS(insn, CONST)          ? SPACE_CONST
           : HAS(insn, SHARED_CLUSTER) ? SPACE_CLUSTER
                                       : SPACE_GENERIC;
}

/*
 * Fills `error` with "line N: ..." and the quoted source text (from `text` on, `length` bytes;
 * none if 0). Returns `status`.
 */
bh_status bh__ptx_error_at(const bh__ptx_module *module, bh_error *error, bh_status status,
                           uint32_t line, uint32_t text, uint32_t length, const char *fix,
                           const char *format, ...) __attribute__((format(printf, 8, 9)));

/* Copies source text as one printable line, truncated to fit. */
void bh__ptx_quote(const bh__ptx_module *module, uint32_t text, uint32_t length, char *out,
                   size_t size);

/* The line that messages name for a line of the text, and the file if one is known (not
 * NUL-terminated), else NULL. */
uint32_t bh__ptx_shown_line(const bh__ptx_module *module, uint32_t line, const char **file,
                            uint32_t *file_length);
/* "line 12", or "line 12 of a.ptx". Returns `out`. */
#define BH__PTX_PLACE 120
const char *bh__ptx_place(const bh__ptx_module *module, uint32_t line, char out[BH__PTX_PLACE]);

/* Whether a register of type `have` can hold an operand of type `want` of the same width. */
bool bh__ptx_types_agree(bh__ptx_type have, bh__ptx_type want);

/* The passes, in order. Each returns BH_OK or fills `error`. */
bh_status bh__ptx_parse(bh__ptx_module *module, bh_error *error);
bh_status bh__ptx_verify(bh__ptx_module *module, bh_error *error);
bh_status bh__ptx_layout(bh__ptx_module *module, bh_error *error);
bh_status bh__ptx_lower(bh__ptx_module *module, bh_error *error);

/* Limits, so that a malicious file cannot request unlimited memory. */
#define BH__PTX_MAX_TEXT        ((size_t)256 << 20)
#define BH__PTX_MAX_GLOBAL      ((uint64_t)4 << 30)   /* all .global variables of a module */
#define BH__PTX_MAX_CONST       ((uint64_t)64 << 10)  /* all .const variables of a module */
#define BH__PTX_MAX_SHARED      ((uint64_t)1 << 20)   /* of one kernel, static */
#define BH__PTX_MAX_LOCAL       ((uint64_t)512 << 10) /* of one thread */
#define BH__PTX_MAX_PARAMS      ((uint64_t)32764)     /* of one kernel, or of one function */
#define BH__PTX_OLD_MAX_PARAMS  ((uint64_t)4352)      /* of a kernel before PTX 8.1 and sm_70 */
#define BH__PTX_RESERVED_SHARED 1024                  /* bytes, for kernels that ask for them */
#define BH__PTX_MAX_DEPTH       200 /* of nested scopes, expressions, initialisers */

#endif
