/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of dense solvers: operands that lie in every way and keep what they held, and arithmetic
 * of small matrices, to see whether results solve what was asked. */
#ifndef BULKHEAD_TESTS_SUPPORT_SOLVER_H
#define BULKHEAD_TESTS_SUPPORT_SOLVER_H

#include <bulkhead/solver.h>

#include "blas.h"

/* ---- small matrices in the program, row by row ---- */

/* All are freed by grids_free. */
typedef struct grid {
    uint64_t rows, columns;
    number *at;
} grid;

grid grid_make(uint64_t rows, uint64_t columns);
grid grid_unit(uint64_t rows, uint64_t columns);
grid grid_times(grid a, grid b);
grid grid_adjoint(grid a);
grid grid_transposed(grid a);
/* A^-1 B, by elimination. */
grid grid_solve(grid a, grid b);
/* The largest difference of two elements. */
double grid_distance(grid a, grid b);
double grid_largest(grid a);
void grids_free(void);

static inline number *grid_at(grid a, uint64_t i, uint64_t j) {
    return &a.at[i * a.columns + j];
}

/* ---- operands ---- */

typedef struct held {
    numbers now;
    number *before; /* Owned. */
    bool *written;  /* Owned. Elements that the operation may write. */
} held;

enum { HELD = 12 };

typedef struct solver_trial {
    bh_device device;
    rng r;
    bh_type type;
    uint64_t batch; /* members; 0: one */
    held memory[HELD];
    uint32_t used;
} solver_trial;

typedef struct operand_matrix {
    model_matrix m;
    held *in;
} operand_matrix;

typedef struct operand_vector {
    model_vector v;
    held *in;
} operand_vector;

/* Random numbers between -1 and 1. `writes`: 'A' all, 'U' or 'L' a triangle, 0 nothing; then
 * members may share their elements, and the matrix may be conjugated. */
operand_matrix trial_matrix(solver_trial *t, bh_type type, uint64_t rows, uint64_t columns,
                            char writes);
operand_vector trial_vector(solver_trial *t, bh_type type, uint64_t count, bool writes);
/* The matrix as the operation sees it: now, and before it ran. */
grid trial_now(const operand_matrix *of, uint64_t member);
grid trial_before(const operand_matrix *of, uint64_t member);
grid trial_values(const operand_vector *of, uint64_t member); /* one column */
/* Puts a matrix where the operand is, before the operation runs. */
void trial_put(operand_matrix *to, uint64_t member, grid what);
uint64_t trial_members(const solver_trial *t);

/* Runs the call, reads what became of its operands, and checks that nothing else was written. */
bh_status trial_run(solver_trial *t, bh_solver *call, const char *what);
void trial_end(solver_trial *t);

/* What rounding allows for sizes of about n, and numbers of about `size`. */
double trial_allows(const solver_trial *t, uint64_t n, double size);

#endif
