/* SPDX-License-Identifier: Apache-2.0 */
/* The 128-bit hash: four lanes, each fed 16 bytes of a 64-byte block through a wide multiply. */
#include "base/hash128.h"

#include <string.h>

enum { BLOCK = 64, LANES = 4 };

__extension__ typedef unsigned __int128 wide;

/* Odd, half of the bits set, no pattern: the first digits of the roots of 2, 3, 5 and 7. */
static const uint64_t seeds[LANES] = {0x6a09e667f3bcc909u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu,
                                      0xa54ff53a5f1d36f1u};

static uint64_t load(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t rotate(uint64_t value, unsigned by) {
    return value << by | value >> (64 - by);
}

static uint64_t fold(uint64_t a, uint64_t b) {
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t finish(uint64_t value) {
    value ^= value >> 32;
    value *= 0x9e3779b97f4a7c15u;
    value ^= value >> 29;
    value *= 0xd1b54a32d192ed03u;
    return value ^ value >> 32;
}

static void mix_block(uint64_t lanes[LANES], const uint8_t *block) {
    for (int i = 0; i < LANES; i++) {
        uint64_t a = load(block + 16 * i), b = load(block + 16 * i + 8);
        /* If a factor is zero, the product alone would lose the lane, so the lane is added too. */
        lanes[i] = rotate(lanes[i], 23) + fold(a ^ seeds[i], b ^ lanes[i]) + rotate(b, 11) + a;
    }
}

void bh__hash128_start(bh__hash128_state *state) {
    memset(state, 0, sizeof *state);
    for (int i = 0; i < LANES; i++) state->lanes[i] = seeds[(i + 1) % LANES];
}

void bh__hash128_add(bh__hash128_state *state, const void *data, size_t bytes) {
    const uint8_t *at = data;
    size_t held = (size_t)(state->bytes % BLOCK);
    state->bytes += bytes;
    if (held > 0) {
        size_t take = BLOCK - held < bytes ? BLOCK - held : bytes;
        if (take > 0) memcpy(state->rest + held, at, take);
        at += take;
        bytes -= take;
        if (held + take < BLOCK) return;
        mix_block(state->lanes, state->rest);
    }
    for (; bytes >= BLOCK; at += BLOCK, bytes -= BLOCK) mix_block(state->lanes, at);
    if (bytes > 0) memcpy(state->rest, at, bytes);
}

void bh__hash128_end(const bh__hash128_state *state, uint64_t out[2]) {
    uint64_t lanes[LANES];
    uint8_t last[BLOCK] = {0};
    size_t held = (size_t)(state->bytes % BLOCK);
    memcpy(lanes, state->lanes, sizeof lanes);
    if (held > 0) {
        memcpy(last, state->rest, held);
        mix_block(lanes, last);
    }
    /* The length distinguishes a text from the same text with zeros after it. */
    lanes[0] ^= finish(state->bytes ^ seeds[3]);
    for (int round = 0; round < 2 * LANES; round++) {
        int i = round % LANES, next = (round + 1) % LANES;
        lanes[next] = rotate(lanes[next], 31) ^ finish(lanes[i] + seeds[i]);
    }
    out[0] = finish(lanes[0] ^ rotate(lanes[2], 17));
    out[1] = finish(lanes[1] + rotate(lanes[3], 41));
}

void bh__hash128(const void *data, size_t bytes, uint64_t out[2]) {
    bh__hash128_state state;
    bh__hash128_start(&state);
    bh__hash128_add(&state, data, bytes);
    bh__hash128_end(&state, out);
}
