/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels to measure BH_DEVICE_CHECK with. */
#ifndef BENCH_CHECK_SOURCE_H
#define BENCH_CHECK_SOURCE_H

/* PTX: saxpy, reduce, matmul, histogram, stencil. */
extern const char bench_check_source[];

#endif
