/* SPDX-License-Identifier: Apache-2.0 */
/* Executable memory of a worker. It is mapped before the worker gives up its rights; afterwards no
 * other memory can be made executable. Nowhere is it mapped to be written, except that pages are
 * while code is put there. Control thread only. */
#ifndef BH_CPU_CODE_MEMORY_H
#define BH_CPU_CODE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error/error.h"

enum { BH__CPU_CODE_BYTES = 64 * 1024 * 1024 }; /* address space; used as code comes */

typedef struct bh__cpu_code_memory {
    uint8_t *base;   /* NULL: there is none */
    uint8_t *in_use; /* Owned: a byte for each page */
    size_t page, pages;
    int fd; /* of the memory */
} bh__cpu_code_memory;

/* False: the system gives no such memory, and errno says why. */
bool bh__cpu_code_open(bh__cpu_code_memory *self);
void bh__cpu_code_close(bh__cpu_code_memory *self);
/* Whole pages. NULL: there are not enough of them in a row. */
uint8_t *bh__cpu_code_take(bh__cpu_code_memory *self, size_t bytes);
/* Puts code at a place that was taken, through a mapping that ends with the call. */
bh_status bh__cpu_code_write(bh__cpu_code_memory *self, uint8_t *at, const void *code, size_t bytes,
                             bh_error *error);
/* Gives the memory back to the system; the address space can be taken again. */
void bh__cpu_code_give(bh__cpu_code_memory *self, uint8_t *at, size_t bytes);

#endif
