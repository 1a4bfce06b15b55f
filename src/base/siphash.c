/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4 as its authors specify it, with results of 64 and of 128 bits. */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

typedef struct state {
    uint64_t v[4];
} state;

static uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return le64toh(word);
}

static uint64_t rotate(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

static inline void mix(state *s) {
    s->v[0] += s->v[1];
    s->v[2] += s->v[3];
    s->v[1] = rotate(s->v[1], 13) ^ s->v[0];
    s->v[3] = rotate(s->v[3], 16) ^ s->v[2];
    s->v[0] = rotate(s->v[0], 32);
    s->v[2] += s->v[1];
    s->v[0] += s->v[3];
    s->v[1] = rotate(s->v[1], 17) ^ s->v[2];
    s->v[3] = rotate(s->v[3], 21) ^ s->v[0];
    s->v[2] = rotate(s->v[2], 32);
}

static inline void add_word(state *s, uint64_t word) {
    s->v[3] ^= word;
    mix(s);
    mix(s);
    s->v[0] ^= word;
}

/* `wide` distinguishes the two forms: 0 or 0xee. */
static state add_all(const uint8_t key[16], const uint8_t *at, size_t bytes, uint64_t wide) {
    uint64_t k0 = word_at(key), k1 = word_at(key + 8);
    state s = {{k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du ^ wide, k0 ^ 0x6c7967656e657261u,
                k1 ^ 0x7465646279746573u}};
    uint64_t last = (uint64_t)bytes << 56;
    for (; bytes >= 8; bytes -= 8, at += 8) add_word(&s, word_at(at));
    for (size_t i = 0; i < bytes; i++) last |= (uint64_t)at[i] << 8 * i;
    add_word(&s, last);
    return s;
}

static uint64_t end(state *s) {
    for (int i = 0; i < 4; i++) mix(s);
    return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

uint64_t bh__siphash(const uint8_t key[16], const void *data, size_t bytes) {
    state s = add_all(key, data, bytes, 0);
    s.v[2] ^= 0xff;
    return end(&s);
}

void bh__siphash128(const uint8_t key[16], const void *data, size_t bytes, uint64_t out[2]) {
    state s = add_all(key, data, bytes, 0xee);
    s.v[2] ^= 0xee;
    out[0] = end(&s);
    s.v[1] ^= 0xdd;
    out[1] = end(&s);
}
