/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: bits of registers that come from memory which nobody wrote. */
#ifndef BH_PTX_CHECK_VALUES_H
#define BH_PTX_CHECK_VALUES_H

#include "ptx/check/check.h"

/*
 * Compilers copy structures with their padding, and change a bit-field by reading and writing all
 * of its word. So a load of bytes that nobody wrote is not wrong by itself: each register has, for
 * every bit, a second one that says whether the bit is undefined, and what matters is what is done
 * with it. The warp counts the rows that have such bits. As long as there are none, instructions
 * are executed as without checks.
 */
struct bh__check_shadow {
    size_t capacity;   /* of the register file that it describes */
    uint8_t *bits;     /* laid out like the registers */
    uint32_t *origins; /* by four bytes of registers: which load; ORIGIN_COMPUTED */
    uint8_t *rows;     /* by four bytes of registers: at the start of a row, whether it has any */
};

/* The value was computed from undefined bits; otherwise it is a copy. */
#define ORIGIN_COMPUTED (UINT32_C(1) << 31)

/* A load of bytes that nobody wrote. */
typedef struct bh__check_origin {
    uint32_t id; /* 0: none */
    uint32_t code;
    uint64_t address;
    uint16_t bytes;
    uint8_t space;
    bool whole;   /* no byte was written */
    bool global;  /* memory */
    bool padding; /* it may be a compiler's copy of bytes that have no meaning */
} bh__check_origin;

enum { ORIGINS = 4096 }; /* that a block remembers */

/* A row of 32 values: `bytes` as in the lowering, 0 for a predicate. */
typedef struct bh__check_row {
    int32_t row; /* a constant's: has no undefined bits */
    uint8_t bytes;
} bh__check_row;

/* Undefined bits of one lane, and where they come from. */
typedef struct bh__check_undefined {
    uint64_t bits;
    uint32_t origin;
} bh__check_undefined;

/* ---- shadow.c ---- */

bool bh__check_row_any(const bh__ptx_exec *x, bh__check_row row);
bh__check_undefined bh__check_row_get(const bh__ptx_exec *x, bh__check_row row, unsigned lane);
/* Sets what the lanes of `mask` have. */
void bh__check_row_set(bh__ptx_exec *x, bh__check_row row, uint32_t mask,
                       const bh__check_undefined values[LANES]);

uint32_t bh__check_origin_new(bh__ptx_exec *x, const bh__check_access *access, unsigned lane,
                              bool whole, bool global, bool padding);
const bh__check_origin *bh__check_origin_of(const bh__ptx_exec *x, uint32_t origin); /* or NULL */

/* Reports that a lane's undefined bits decide something: `use`, which is followed by the line of
 * the current instruction. */
void bh__check_report_use(bh__ptx_exec *x, unsigned lane, uint32_t origin, const char *use);

#endif
