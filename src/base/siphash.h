/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4: a checksum of bytes that cannot be computed without the 16-byte key. */
#ifndef BH_BASE_SIPHASH_H
#define BH_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t bh__sip_word(const uint8_t *bytes, size_t count) {
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

static inline uint64_t bh__sip_rotate(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

static inline void bh__sip_rounds(uint64_t v[4], int rounds) {
    while (rounds-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = bh__sip_rotate(v[1], 13) ^ v[0];
        v[3] = bh__sip_rotate(v[3], 16) ^ v[2];
        v[0] = bh__sip_rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = bh__sip_rotate(v[1], 17) ^ v[2];
        v[3] = bh__sip_rotate(v[3], 21) ^ v[0];
        v[2] = bh__sip_rotate(v[2], 32);
    }
}

static inline uint64_t bh__siphash(const uint8_t key[16], const void *data, size_t bytes) {
    const uint8_t *at = data;
    uint64_t k0 = bh__sip_word(key, 8), k1 = bh__sip_word(key + 8, 8);
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                     k1 ^ 0x7465646279746573u};
    uint64_t last = (uint64_t)bytes << 56;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t word = bh__sip_word(at, 8);
        v[3] ^= word;
        bh__sip_rounds(v, 2);
        v[0] ^= word;
    }
    last |= bh__sip_word(at, bytes);
    v[3] ^= last;
    bh__sip_rounds(v, 2);
    v[0] ^= last;
    v[2] ^= 0xff;
    bh__sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
