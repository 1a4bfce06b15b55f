/* SPDX-License-Identifier: Apache-2.0 */
/* A debugger's view of running threads: names and values of registers, where a thread is. */
#ifndef BH_PTX_DEBUG_H
#define BH_PTX_DEBUG_H

#include "ptx/exec.h"

/* ---- text.c: text of limited length; what does not fit is left out ---- */

typedef struct bh__ptx_text {
    char *at; /* ends in NUL */
    size_t length, capacity;
    bool cut;
} bh__ptx_text;

void bh__ptx_text_add(bh__ptx_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A value of a type: "3.5 (0x40600000)", "-1 (0xffffffff)", "true". The upper half is of .b128. */
void bh__ptx_text_value(bh__ptx_text *text, bh__ptx_type type, uint64_t low, uint64_t high);

/* ---- registers.c ---- */

typedef void bh__ptx_register_visit(void *context, uint32_t reg, bool written);
/* Calls `visit` for every register that an instruction reads or writes, in order; for one that it
 * reads and writes, twice. */
void bh__ptx_registers_visit(const bh__ptx_insn *insn, bh__ptx_register_visit *visit,
                             void *context);

enum { REGISTER_WRITTEN = 1, REGISTER_WANTED = 2 };
/* For every register of a function: may it have been written on the way to instruction `at`, and may
 * `at` or what follows it read it? The caller frees the result; NULL: no memory. */
uint8_t *bh__ptx_registers_at(const bh__ptx_function *f, uint32_t at);

/* The types to show the registers of a function with: where the declaration says bits only, the type
 * of an instruction that uses the register. The caller frees the result; NULL: no memory. */
uint8_t *bh__ptx_registers_types(const bh__ptx_function *f);

/* The register that a name means at a place in the text of a function; NO_REG: none. A vector's
 * component has .x, .y, .z or .w. */
uint32_t bh__ptx_register_find(const bh__ptx_function *f, const char *name, size_t length,
                               uint32_t place);
/* "%r7", or "%v2.x" */
void bh__ptx_register_name(bh__ptx_text *text, const bh__ptx_reg *reg);

/* The value of a register, or of one half of a .b128, in a frame of a warp. */
uint64_t bh__ptx_register_value(const bh__ptx_warp *w, uint32_t base, const bh__ptx_reg *reg,
                                unsigned lane, unsigned half);

/* ---- state.c ---- */

/* Where a thread is, which functions called which, and what its registers hold. `code`: the
 * instruction that it executes, or will execute next. */
void bh__ptx_state_put(bh__ptx_text *text, const bh__ptx_exec *x, const bh__ptx_warp *w,
                       unsigned lane, uint32_t code);
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

#endif
