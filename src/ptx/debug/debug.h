/* SPDX-License-Identifier: Apache-2.0 */
/* A debugger's view of running threads: names and values of registers, where a thread is. */
#ifndef BH_PTX_DEBUG_DEBUG_H
#define BH_PTX_DEBUG_DEBUG_H

#include "ptx/run/exec.h"

/* ---- string.c: text of limited length; what does not fit is left out ---- */

typedef struct bh__ptx_string {
    char *at; /* ends in NUL */
    size_t length, capacity;
    bool cut;
} bh__ptx_string;

void bh__ptx_string_add(bh__ptx_string *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A value of a type: "3.5 (0x40600000)", "-1 (0xffffffff)", "true". The upper half is of .b128. */
void bh__ptx_string_value(bh__ptx_string *text, bh__ptx_type type, uint64_t low, uint64_t high);

/* ---- registers.c ---- */

typedef void bh__ptx_register_visit(void *context, uint32_t reg, bool written);
/* Calls `visit` for every register that an instruction reads or writes, in order; for one that it
 * reads and writes, twice. */
void bh__ptx_registers_visit(const bh__ptx_insn *insn, bh__ptx_register_visit *visit,
                             void *context);

enum { REGISTER_WRITTEN = 1, REGISTER_WANTED = 2 };
/* For every register of a function: may it have been written on the way to instruction `at`, and
 * may `at` or what follows it read it? The caller frees the result; NULL: no memory. */
uint8_t *bh__ptx_registers_at(const bh__ptx_function *f, uint32_t at);

/* The types to show the registers of a function with: where the declaration says bits only, the
 * type of an instruction that uses the register. The caller frees the result; NULL: no memory. */
uint8_t *bh__ptx_registers_types(const bh__ptx_function *f);

/* The register that a name means at a place in the text of a function; NO_REG: none. A vector's
 * component has .x, .y, .z or .w. */
uint32_t bh__ptx_register_find(const bh__ptx_function *f, const char *name, size_t length,
                               uint32_t place);
/* "%r7", or "%v2.x" */
void bh__ptx_register_name(bh__ptx_string *text, const bh__ptx_reg *reg);

/* The value of a register, or of one half of a .b128, in a frame of a warp. */
uint64_t bh__ptx_register_value(const bh__ptx_warp *w, uint32_t base, const bh__ptx_reg *reg,
                                unsigned lane, unsigned half);

/* ---- section.c: the bytes of debug sections ---- */

/* A name in place of a number: of a label, of a variable, of a section. */
typedef struct bh__ptx_reference {
    uint32_t at;           /* in the bytes */
    uint32_t name, length; /* in the text */
} bh__ptx_reference;

typedef struct bh__ptx_section_bytes {
    uint8_t *at;
    uint32_t count;
    bh__ptx_reference *references; /* in order; their bytes hold what is added to them */
    uint32_t reference_count;
} bh__ptx_section_bytes;

/* Reads the section of this name; empty if there is none or it cannot be read. */
void bh__ptx_section_read(const bh__ptx_module *m, const char *name, bh__ptx_section_bytes *out);
void bh__ptx_section_free(bh__ptx_section_bytes *section);
const bh__ptx_reference *bh__ptx_section_reference(const bh__ptx_section_bytes *section,
                                                   uint32_t at); /* or NULL */

/* ---- dwarf.c: variables of the source, from the debug sections ---- */

typedef struct bh__ptx_source_variable {
    const char *name;               /* Borrowed from the sections */
    uint32_t from, to;              /* in the text: where it is known */
    char reg[12];                   /* the register that holds it; "": it is in memory: */
    uint32_t symbol, symbol_length; /* in the text: the name of a PTX variable */
    uint32_t offset;                /* in that variable */
    uint32_t bytes;                 /* of its type */
    bh__ptx_type type;              /* T_NONE: of no simple type */
} bh__ptx_source_variable;

typedef struct bh__ptx_variables {
    bh__ptx_section_bytes info, abbrev, str;
    bh__ptx_source_variable *list;
    uint32_t count;
    size_t capacity;
} bh__ptx_variables;

/* Reads what the text has; nothing if it was compiled without debug information. */
void bh__ptx_variables_read(const bh__ptx_module *m, bh__ptx_variables *out);
void bh__ptx_variables_free(bh__ptx_variables *variables);

/* ---- variables.c ---- */

/* The variable that a name means at a place in the text: of the innermost scope. NULL: none. */
const bh__ptx_source_variable *bh__ptx_variables_find(const bh__ptx_variables *variables,
                                                      const char *name, uint32_t place);
/* Adds its value in a frame of a thread; false: it is not known, and nothing was added. */
bool bh__ptx_variable_value(bh__ptx_string *text, const bh__ptx_source_variable *variable,
                            const bh__ptx_exec *x, const bh__ptx_warp *w, uint32_t base,
                            unsigned lane);

/* ---- state.c ---- */

/* Where a thread is, which functions called which, and what its registers hold. `code`: the
 * instruction that it executes, or will execute next. */
void bh__ptx_state_put(bh__ptx_string *text, const bh__ptx_variables *variables,
                       const bh__ptx_exec *x, const bh__ptx_warp *w, unsigned lane, uint32_t code);
/* The same of the thread of a fault, as a text that the caller frees. NULL: no memory. */
char *bh__ptx_state_of_fault(const bh__ptx_exec *x, const bh__ptx_fault *fault);

/* ---- trace.c: threads that are followed step by step ---- */

/* One element of the code, executed by the lanes of a warp that are followed. */
typedef struct bh__ptx_trace_step {
    uint32_t code, lanes, base;
    uint32_t skipped; /* lanes whose guard is false */
    const bh__ptx_function *function;
    const bh__ptx_insn *insn; /* NULL: the return at the end of the function */
} bh__ptx_trace_step;

/* Whether a block is followed. `tracing` may be NULL. */
bool bh__ptx_tracing_of(const bh__ptx_tracing *tracing, const uint32_t block[3]);
/* The lanes of a warp that are followed. */
uint32_t bh__ptx_trace_lanes(const bh__ptx_exec *x, const bh__ptx_warp *w);
/* Called before and after a step; the warp's `pc` is up to date. False: stop here. */
bool bh__ptx_trace_before(bh__ptx_exec *x, uint32_t code, uint32_t lanes, bh__ptx_trace_step *step);
void bh__ptx_trace_after(bh__ptx_exec *x, const bh__ptx_trace_step *step, bool faulted);
/* Shows what lanes of the warp have executed that waited for others: the last of these executes it
 * for all. Called before any of them goes on. */
void bh__ptx_trace_settle(bh__ptx_exec *x);

#endif
