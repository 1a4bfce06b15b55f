/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of libcuda.so.1 that libcuda.c does not have: they are there, and fail. */
#include "cuda/driver/driver.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Weak: libcuda.c has its own for some. */
#define BH__NEEDED(name, symbol, parameters)                                                       \
    __attribute__((weak, visibility("default"))) int other_##name parameters __asm__(symbol);      \
    int other_##name parameters {                                                                  \
        return 999;                                                                                \
    }
#define BH__OPTIONAL(name, symbol, parameters) BH__NEEDED(name, symbol, parameters)
#include "cuda/driver/table.h"
