/* SPDX-License-Identifier: Apache-2.0 */
/* How many processors this process may use: those of its affinity, or all if that is not known. */
#include "base/processors.h"

#include <sched.h>
#include <unistd.h>

enum { MAX_PROCESSORS = 8192, WORD_BITS = 8 * sizeof(unsigned long) };

uint32_t bh__processors(void) {
    unsigned long set[MAX_PROCESSORS / WORD_BITS] = {0};
    long count = 0;
    if (sched_getaffinity(0, sizeof set, (cpu_set_t *)(void *)set) == 0) {
        for (int i = 0; i < MAX_PROCESSORS / WORD_BITS; i++) count += __builtin_popcountl(set[i]);
    }
    if (count < 1) count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : (uint32_t)count;
}
