/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of arrays that lie in any way: copied, and multiplied with a number. */
#ifndef BH_CPU_LIBRARY_STRIDED_H
#define BH_CPU_LIBRARY_STRIDED_H

#include "library/fft.h"

enum { BH__CPU_DIMENSIONS = BH_ARRAY_RANK + 1 }; /* a batch, too */

/* Copies elements of 4, 8 or 16 bytes from the places `in` of the dimensions to the places `out`.
 */
void bh__cpu_strided_copy(const bh__fft_dimension *dimensions, uint32_t count, const void *from,
                          void *to, uint32_t element_bytes);
/* Multiplies the elements at the places `out`: BH_F32, BH_F64, BH_C64 or BH_C128. */
void bh__cpu_strided_scale(const bh__fft_dimension *dimensions, uint32_t count, bh_type type,
                           void *data, bh_scalar alpha);

#endif
