/* SPDX-License-Identifier: Apache-2.0 */
/* Native code of a module's kernels, which the application sends when it has it (wire/native.h). */
#ifndef BH_CPU_NATIVE_H
#define BH_CPU_NATIVE_H

#include "cpu/cpu.h"

/* For the kernels of a module. NULL: no memory; they are interpreted. */
bh__cpu_native *bh__cpu_native_create(uint32_t kernels);
/* Frees it and its code, which nothing runs any more. NULL is allowed. */
void bh__cpu_native_destroy(bh__cpu_native *native, bh__cpu_code_memory *memory);
/* The code of a kernel for blocks of this shape; NULL: interpret it. Any thread. */
bh__ptx_compiled *bh__cpu_native_code(const bh__cpu_native *native, uint32_t kernel,
                                      const uint32_t block[3]);
/* Puts code in place: launches that begin from now on use it. Control thread. */
bh_status bh__cpu_module_native(bh__device_instance *device, uint32_t id, const void *data,
                                size_t bytes, bh_error *error);

#endif
