/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that benchmarks time or crash, for the library and for the plain driver alike. */
#ifndef BENCH_KERNEL_SOURCE_H
#define BENCH_KERNEL_SOURCE_H

/* PTX; `bench_kernels` in bench.h says what each kernel does. */
extern const char bench_kernel_source[];

#endif
