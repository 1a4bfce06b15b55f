/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/hash128: the same whatever the pieces, different for whatever differs. */
#include "base/hash128.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

static void fill(uint8_t *bytes, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(seed >> 56);
    }
}

TEST(pieces_make_no_difference) {
    uint8_t bytes[700];
    fill(bytes, sizeof bytes, 1);
    for (size_t count = 0; count <= sizeof bytes; count += 7) {
        uint64_t whole[2];
        bh__hash128(bytes, count, whole);
        for (size_t step = 1; step < 130; step += 9) {
            bh__hash128_state state;
            uint64_t out[2];
            bh__hash128_start(&state);
            for (size_t at = 0; at < count; at += step)
                bh__hash128_add(&state, bytes + at, count - at < step ? count - at : step);
            bh__hash128_end(&state, out);
            CHECK_MEM_EQ(out, whole, sizeof out);
        }
    }
}

TEST(lengths_of_zeros_differ) {
    static const uint8_t zeros[600];
    static uint64_t seen[600][2];
    for (size_t count = 0; count < 600; count++) {
        bh__hash128(zeros, count, seen[count]);
        for (size_t i = 0; i < count; i++) {
            CHECK(seen[i][0] != seen[count][0]);
            CHECK(seen[i][1] != seen[count][1]);
        }
    }
}

TEST(one_bit_changes_half_of_the_result) {
    uint8_t bytes[192];
    for (int kind = 0; kind < 3; kind++) {
        fill(bytes, sizeof bytes, 3);
        if (kind == 1) memset(bytes, 0, sizeof bytes);
        if (kind == 2) memset(bytes, 0xff, sizeof bytes);
        uint64_t before[2], after[2];
        unsigned total = 0, least = 128;
        bh__hash128(bytes, sizeof bytes, before);
        for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            bh__hash128(bytes, sizeof bytes, after);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            unsigned changed = (unsigned)__builtin_popcountll(before[0] ^ after[0]) +
                               (unsigned)__builtin_popcountll(before[1] ^ after[1]);
            total += changed;
            least = changed < least ? changed : least;
        }
        unsigned mean = total / (unsigned)(8 * sizeof bytes);
        CHECK_GE(mean, 62);
        CHECK_LE(mean, 66);
        CHECK_GE(least, 36);
    }
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Either half alone has no collisions in 2^18 texts that differ in a number. */
TEST(small_numbers_do_not_meet) {
    enum { COUNT = 1 << 18 };
    uint64_t *halves[2] = {malloc(COUNT * sizeof(uint64_t)), malloc(COUNT * sizeof(uint64_t))};
    REQUIRE(halves[0] && halves[1]);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t out[2];
        uint32_t text[4] = {0, i, 0, 0};
        bh__hash128(text, sizeof text, out);
        halves[0][i] = out[0];
        halves[1][i] = out[1];
    }
    for (int half = 0; half < 2; half++) {
        qsort(halves[half], COUNT, sizeof **halves, compare);
        for (size_t i = 1; i < COUNT; i++) REQUIRE_NE(halves[half][i - 1], halves[half][i]);
        free(halves[half]);
    }
}
