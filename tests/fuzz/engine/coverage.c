/* SPDX-License-Identifier: Apache-2.0 */
/* Which edges of the code were taken, as `gcc -fsanitize-coverage=trace-pc` tells: a bit for each
 * pair of places. Without these calls nothing is ever new, and mutation is blind. */
#include "engine.h"

enum { EDGES = 1 << 20 };

static uint8_t seen[EDGES / 8];
static uintptr_t last;
static bool grew;

void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void) {
    uintptr_t here = (uintptr_t)__builtin_return_address(0);
    size_t edge = (here ^ last >> 1) * 0x9e3779b97f4a7c15u >> 44;
    last = here;
    if (seen[edge / 8] >> edge % 8 & 1) return;
    seen[edge / 8] |= (uint8_t)(1 << edge % 8);
    grew = true;
}

void coverage_begin(void) {
    last = 0;
}

bool coverage_grew(void) {
    bool result = grew;
    grew = false;
    return result;
}
