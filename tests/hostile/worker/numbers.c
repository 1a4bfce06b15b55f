/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, bytes and pauses by chance. */
#include <time.h>

#include "hostile.h"

uint32_t below(uint32_t limit) {
    return chance_below(&hostile.chance, limit);
}

bool one_in(uint32_t n) {
    return chance_one_in(&hostile.chance, n);
}

uint64_t odd_number(void) {
    switch (below(7)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX - below(4);
    case 2:
        return below(300);
    case 3:
        return UINT64_C(1) << below(64);
    case 4:
        return (UINT64_C(1) << below(64)) - 1 - below(3);
    case 5:
        return UINT32_MAX - below(4);
    default:
        return chance_next(&hostile.chance);
    }
}

void fill_random(void *memory, size_t bytes) {
    uint8_t *to = memory;
    for (size_t i = 0; i < bytes; i++) to[i] = (uint8_t)chance_next(&hostile.chance);
}

void nap_us(uint32_t most) {
    struct timespec pause = {.tv_nsec = (long)below(most) * 1000};
    pause.tv_sec = pause.tv_nsec / 1000000000;
    pause.tv_nsec %= 1000000000;
    nanosleep(&pause, NULL);
}
