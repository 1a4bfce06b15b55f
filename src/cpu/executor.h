/* SPDX-License-Identifier: Apache-2.0 */
/* Native code for kernels, if BULKHEAD_EXECUTOR asks for it and LLVM is there: src/jit/. */
#ifndef BH_CPU_EXECUTOR_H
#define BH_CPU_EXECUTOR_H

#include "cpu/cpu.h"

/* Loads libbulkhead-jit.so. Called first in the process: later no file can be opened and no memory
 * made executable. */
void bh__cpu_executor_load(void);

/* For the kernels of a module, compiled as far as time allows; free() it. NULL: they are
 * interpreted. */
bh__cpu_native *bh__cpu_native_create(const bh__ptx_module *module);
/* Fills in who runs a kernel, and why. `native` may be NULL. */
void bh__cpu_native_describe(bh__cpu_native *native, uint32_t kernel, bh__blob_kernel *out);
/* The code of a kernel for blocks of this shape, made at the first call. NULL: interpret it. Any
 * thread. */
bh__ptx_compiled *bh__cpu_native_code(bh__cpu_native *native, const bh__ptx_module *module,
                                      uint32_t kernel, const uint32_t block[3]);

#endif
