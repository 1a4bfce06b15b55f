/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLAS: the table of its operations, and requests in the form that BLAS libraries take: everything
 * column by column, with flags for transposed operands.
 */
#ifndef BH_LIBRARY_BLAS_H
#define BH_LIBRARY_BLAS_H

#include "bulkhead/blas.h"
#include "library/operation.h"

enum { BH__BLAS_OPERATIONS = 28 };
extern const bh__operation bh__blas_operations[BH__BLAS_OPERATIONS];
/* As bh__library.refuse. */
const char *bh__blas_refuse(const bh__operation *operation, const void *request,
                            const bh_type *types, const char **fix);

/* How a call is made. `kind` may be another one than the request's: what BLAS cannot do of vectors
 * is done as an operation of matrices with one row. Matrices are a, b and c in the order in which
 * BLAS takes them, vectors x and y. */
typedef struct bh__blas_form {
    uint32_t kind; /* BH_BLAS_... */
    bh_type type, c_type;
    char side;                        /* 'L', 'R' */
    char triangle;                    /* 'U', 'L' */
    char unit;                        /* 'U', 'N' */
    char op_a, op_b;                  /* 'N', 'T', 'C' */
    bool conjugate;                   /* DOT, GER */
    int m, n, k;                      /* m also counts vectors */
    uint64_t a, b, c, x, y, result;   /* addresses */
    int a_stride, b_stride, c_stride; /* from column to column */
    int x_stride, y_stride;           /* may be negative: the address is the lowest one */
    bh_scalar alpha, beta;
    uint64_t batch;
    uint64_t a_next, b_next, c_next, x_next, y_next, result_next; /* bytes to the next member */
} bh__blas_form;

/* A number in the type of the elements; for real types its real part. */
typedef union bh__blas_number {
    float f[2];
    double d[2];
} bh__blas_number;
bh__blas_number bh__blas_number_as(bh_type type, bh_scalar from);

/* Puts a request into this form. `types` are those of its operands, in order. Addresses are taken
 * from the operands' buffer.id. NULL: done; else what BLAS has no way to do. */
const char *bh__blas_form_make(const bh__operation *operation, const bh_blas *request,
                               const bh_type *types, bh__blas_form *out);
/* Goes on to the next member of the batch. */
void bh__blas_form_next(bh__blas_form *self);

#endif
