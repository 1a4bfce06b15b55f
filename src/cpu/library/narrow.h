/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices whose elements BLAS does not know: 16-bit floats, 8-bit integers. */
#ifndef BH_CPU_LIBRARY_NARROW_H
#define BH_CPU_LIBRARY_NARROW_H

#include "library/blas.h"

/* Computes one product in a wider type, in which `run` does it: 16-bit floats in BH_F32, 8-bit
 * integers in BH_F64, which has all sums of theirs exactly. False: there is no memory. */
bool bh__cpu_gemm_narrow(const bh__blas_form *form, void (*run)(const bh__blas_form *wide));

#endif
