/* SPDX-License-Identifier: Apache-2.0 */
/* Chance that a seed repeats: numbers in a row, the same ones for the same seed. Any thread may
 * take the next one. */
#ifndef TESTS_HOSTILE_CHANCE_H
#define TESTS_HOSTILE_CHANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct chance {
    _Atomic uint64_t state;
} chance;

static inline uint64_t chance_next(chance *self) {
    uint64_t x = atomic_fetch_add(&self->state, UINT64_C(0x9e3779b97f4a7c15));
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline uint32_t chance_below(chance *self, uint32_t limit) {
    return (uint32_t)(chance_next(self) >> 32) % limit;
}

static inline bool chance_one_in(chance *self, uint32_t n) {
    return chance_below(self, n) == 0;
}

#endif
