/* SPDX-License-Identifier: Apache-2.0 */
/* Slow BLAS: operands kept in the program beside their buffers, and every operation as its formula
 * says, element by element. */
#ifndef BULKHEAD_TESTS_SUPPORT_BLAS_H
#define BULKHEAD_TESTS_SUPPORT_BLAS_H

#include <bulkhead/blas.h>
#include <complex.h>

#include "support.h"

typedef double complex number;

/* A buffer and what it should hold. */
typedef struct numbers {
    bh_buffer buffer;
    bh_type type;
    uint64_t count;
    number *values; /* Owned. */
} numbers;

/* Filled with small whole numbers; imaginary parts too if the type is complex. Sums of their
 * products are exact in every type. */
numbers numbers_make(bh_device device, bh_type type, uint64_t count, rng *r);
void numbers_free(numbers *self);
void numbers_write(const numbers *self);
/* Takes the values from the buffer. */
void numbers_read(numbers *self);
/* Whether the buffer holds `values`, within a part in `precision` of the largest. */
bool numbers_check(const numbers *self, double precision, const char *what);
number number_rounded(bh_type type, number value);

/* A device opened with BLAS. Skips the test where there is none. */
bh_device open_blas_device(void);
/* A device opened with these libraries. Skips the test where one of them is missing. */
bh_device open_library_device(uint32_t libraries);

bool type_is_complex(bh_type type);

/* An operand and the numbers that it lies in. */
typedef struct model_matrix {
    bh_matrix at;
    numbers *in;
} model_matrix;

typedef struct model_vector {
    bh_vector at;
    numbers *in;
} model_vector;

typedef struct model_call {
    bh_blas request;
    model_matrix a, b, c;
    model_vector x, y, result;
} model_call;

/* An element of a member of the batch. */
number *model_element(const model_matrix *m, uint64_t batch, uint64_t i, uint64_t j);
number *model_entry(const model_vector *v, uint64_t batch, uint64_t i);

/* Computes the call, with all its batch, in the numbers of its operands. */
void model_run(const model_call *call);

#endif
