/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of kernels/, which travel in the program. */
#include "peers.h"

#define TEXT(name, file)                                                                           \
    __asm__(".section .rodata\npeers_text_" #name ":\n.incbin \"" PEERS_KERNELS "/" file           \
            "\"\n.byte 0\n.previous\n");                                                           \
    extern const char peers_text_##name[] __attribute__((visibility("hidden")))

TEXT(cuda, "cuda.prelude");
TEXT(opencl, "opencl.prelude");
TEXT(memory, "memory.kernel");
TEXT(sums, "sums.kernel");
TEXT(dense, "dense.kernel");
TEXT(grids, "grids.kernel");
TEXT(numeric, "numeric.kernel");
TEXT(rows, "rows.kernel");
TEXT(irregular, "irregular.kernel");

const char *const peers_cuda_prelude = peers_text_cuda;
const char *const peers_opencl_prelude = peers_text_opencl;
const char *const peers_texts[PEERS_TEXTS] = {
    [PEERS_MEMORY] = peers_text_memory,      [PEERS_SUMS] = peers_text_sums,
    [PEERS_DENSE] = peers_text_dense,        [PEERS_GRIDS] = peers_text_grids,
    [PEERS_NUMERIC] = peers_text_numeric,    [PEERS_ROWS] = peers_text_rows,
    [PEERS_IRREGULAR] = peers_text_irregular};
