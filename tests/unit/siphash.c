/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4 against the values that its authors published. */
#include "base/siphash.h"

#include "test.h"

TEST(published_values) {
    uint8_t key[16], text[16];
    for (uint8_t i = 0; i < 16; i++) key[i] = text[i] = i;
    CHECK_EQ(bh__siphash(key, text, 0), 0x726fdb47dd0e0e31u);
    CHECK_EQ(bh__siphash(key, text, 1), 0x74f839c593dc67fdu);
    CHECK_EQ(bh__siphash(key, text, 8), 0x93f5f5799a932462u);
    CHECK_EQ(bh__siphash(key, text, 15), 0xa129ca6149be45e5u);
}

TEST(every_bit_counts) {
    uint8_t key[16] = {1}, text[40] = {0};
    uint64_t plain = bh__siphash(key, text, sizeof text);
    for (unsigned i = 0; i < 8 * sizeof text; i++) {
        text[i / 8] ^= (uint8_t)(1 << i % 8);
        CHECK_NE(bh__siphash(key, text, sizeof text), plain);
        text[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (unsigned i = 0; i < 8 * sizeof key; i++) {
        key[i / 8] ^= (uint8_t)(1 << i % 8);
        CHECK_NE(bh__siphash(key, text, sizeof text), plain);
        key[i / 8] ^= (uint8_t)(1 << i % 8);
    }
}
