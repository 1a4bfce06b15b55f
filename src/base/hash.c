/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing bytes: two words a step, folded with a full-width multiplication. */
#include "base/hash.h"

#include <string.h>

__extension__ typedef unsigned __int128 wide;

static const uint64_t odd_a = 0x9e3779b97f4a7c15u;
static const uint64_t odd_b = 0xc2b2ae3d27d4eb4fu;

static uint64_t fold(uint64_t a, uint64_t b) {
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load(const unsigned char *bytes, size_t size) {
    uint64_t word = 0;
    memcpy(&word, bytes, size);
    return word;
}

uint64_t bh__hash_bytes(const void *data, size_t size, uint64_t seed) {
    const unsigned char *bytes = data;
    /* The length goes in first, so that zeros at the end count. */
    uint64_t state = bh__hash_u64(seed ^ size * odd_a) | 1;
    while (size > 16) {
        state = fold(load(bytes, 8) ^ odd_b ^ state, load(bytes + 8, 8) ^ odd_a) + state * odd_b;
        bytes += 16;
        size -= 16;
    }
    uint64_t low = 0, high = 0;
    if (size > 8) {
        low = load(bytes, 8);
        high = load(bytes + 8, size - 8);
    } else if (size > 0) {
        low = load(bytes, size);
    }
    state = fold(low ^ odd_b ^ state, high ^ odd_a) + state * odd_b;
    return bh__hash_u64(state);
}

uint64_t bh__hash_string(const char *text, uint64_t seed) {
    return bh__hash_bytes(text, strlen(text), seed);
}
