/* SPDX-License-Identifier: Apache-2.0 */
/* Available memory of this machine, as the kernel estimates it. */
#include "base/available.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int bh__available_open(void) {
    return open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
}

uint64_t bh__available_bytes(int source) {
    char text[4096]; /* the line is the third of the file */
    unsigned long long kib;
    ssize_t got = source < 0 ? -1 : pread(source, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = 0;
    const char *line = strstr(text, "MemAvailable:");
    return line && sscanf(line, "MemAvailable: %llu kB", &kib) == 1 ? kib * 1024 : UINT64_MAX;
}
