/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this machine has left for programs, as the system estimates it. */
#include "base/available.h"

#include <stdio.h>

uint64_t bh__memory_available(void) {
    FILE *file = fopen("/proc/meminfo", "re");
    char line[256];
    unsigned long long kib;
    uint64_t bytes = UINT64_MAX;
    while (file && bytes == UINT64_MAX && fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) bytes = kib * 1024;
    }
    if (file) fclose(file);
    return bytes;
}
