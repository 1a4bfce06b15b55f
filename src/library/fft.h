/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms: the table of the operations, and requests in the form that FFT libraries
 * take. */
#ifndef BH_LIBRARY_FFT_H
#define BH_LIBRARY_FFT_H

#include "bulkhead/fft.h"
#include "library/operation.h"

enum { BH__FFT_OPERATIONS = 3, BH__FFT_AXES = 3 };
extern const bh__operation bh__fft_operations[BH__FFT_OPERATIONS];
/* As bh__library.fits. */
bool bh__fft_fits(const bh__operation *operation, const void *request, char *text, size_t size,
                  const char **fix);

/* One dimension: how many elements, and how far apart they lie in the input and in the output, in
 * elements of each. Of r2c and c2r `count` is that of the real side. */
typedef struct bh__fft_dimension {
    int64_t count, in, out;
} bh__fft_dimension;

/* A transform: `axes` dimensions, at each place that `loops` dimensions lead to. */
typedef struct bh__fft_form {
    uint32_t kind; /* BH_FFT_... */
    bool inverse, single;
    bool empty; /* there is nothing to do */
    uint32_t axes, loops;
    bh__fft_dimension axis[BH__FFT_AXES];
    bh__fft_dimension loop[BH_ARRAY_RANK]; /* those before the axes, and the batch */
    uint64_t in, out;                      /* addresses, from the operands' buffer.id */
    bh_scalar alpha;
} bh__fft_form;

void bh__fft_form_make(const bh_fft *request, const bh_type *types, bh__fft_form *out);

/* Elements of the last axis in the input and in the output. */
int64_t bh__fft_last_in(const bh__fft_form *self);
int64_t bh__fft_last_out(const bh__fft_form *self);

#endif
