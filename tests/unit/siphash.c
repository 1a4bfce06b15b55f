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

TEST(published_values_of_128_bits) {
    static const uint8_t expected[2][16] = {{0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d,
                                             0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93},
                                            {0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34,
                                             0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45}};
    uint8_t key[16], text[1] = {0};
    for (uint8_t i = 0; i < 16; i++) key[i] = i;
    for (size_t count = 0; count < 2; count++) {
        uint64_t out[2];
        bh__siphash128(key, text, count, out);
        CHECK_MEM_EQ(out, expected[count], sizeof out);
    }
}

TEST(checksums_of_zeros_differ_by_their_length) {
    static const uint8_t zeros[300];
    static uint64_t seen[300][2];
    for (size_t count = 0; count < 300; count++) {
        bh__checksum(zeros, count, seen[count]);
        for (size_t i = 0; i < count; i++)
            CHECK(seen[i][0] != seen[count][0] && seen[i][1] != seen[count][1]);
    }
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
