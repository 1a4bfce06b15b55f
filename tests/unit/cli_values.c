/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the command: parsing with range checks, shortest text that reads back. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "test.h"

static bh_status parse(bh_type type, const char *text, uint64_t *bits, bh_error *error) {
    *bits = 0;
    return bh__value_parse(type, text, strlen(text), bits, error);
}

static uint64_t bits_of(bh_type type, const char *text) {
    uint64_t bits;
    bh_error error;
    if (parse(type, text, &bits, &error) != BH_OK) FAIL("%s: %s", text, error.message);
    return bits;
}

TEST(types_are_found_by_their_whole_name) {
    CHECK_EQ(bh__type_find("f32:1", 3), BH_F32);
    CHECK_EQ(bh__type_find("bf16", 4), BH_BF16);
    CHECK_EQ(bh__type_find("u8", 2), BH_U8);
    CHECK_EQ(bh__type_find("f3", 2), 0);
    CHECK_EQ(bh__type_find("f320", 4), 0);
    CHECK_EQ(bh__type_find("", 0), 0);
}

TEST(integers_parse_in_every_base) {
    CHECK_EQ(bits_of(BH_I32, "-7"), UINT64_C(0xfffffff9));
    CHECK_EQ(bits_of(BH_I32, "+7"), 7u);
    CHECK_EQ(bits_of(BH_U64, "0x10"), 16u);
    CHECK_EQ(bits_of(BH_U64, "0Xff"), 255u);
    CHECK_EQ(bits_of(BH_U8, "0b101"), 5u);
    CHECK_EQ(bits_of(BH_U8, "0o17"), 15u);
    CHECK_EQ(bits_of(BH_U8, "010"), 10u);
    CHECK_EQ(bits_of(BH_I64, "-9223372036854775808"), UINT64_C(1) << 63);
    CHECK_EQ(bits_of(BH_U64, "18446744073709551615"), UINT64_MAX);
    CHECK_EQ(bits_of(BH_I8, "-0x80"), 0x80u);
    CHECK_EQ(bits_of(BH_U8, "-0"), 0u);
}

TEST(integers_out_of_range_name_the_range) {
    static const struct {
        bh_type type;
        const char *text, *range;
    } cases[] = {
        {BH_I8, "128", "-128 to 127"},
        {BH_I8, "-129", "-128 to 127"},
        {BH_I8, "300", "-128 to 127"},
        {BH_U8, "256", "0 to 255"},
        {BH_U8, "-1", "0 to 255"},
        {BH_I16, "32768", "-32768 to 32767"},
        {BH_U16, "65536", "0 to 65535"},
        {BH_I32, "2147483648", "-2147483648 to 2147483647"},
        {BH_U32, "4294967296", "0 to 4294967295"},
        {BH_I64, "9223372036854775808", "-9223372036854775808 to 9223372036854775807"},
        {BH_U64, "18446744073709551616", "0 to 18446744073709551615"},
        {BH_U64, "99999999999999999999999999", "0 to 18446744073709551615"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bits;
        bh_error error;
        CHECK_EQ(parse(cases[i].type, cases[i].text, &bits, &error), BH_E_INVALID);
        CHECK_STR_CONTAINS(error.message, cases[i].range);
        CHECK(error.fix[0] != '\0');
    }
}

TEST(what_is_no_number_is_refused) {
    static const char *const integers[] = {"",   "-",  "+",   "1.5", "x",   "0x",  "0xg",
                                           "1 ", " 1", "--1", "1e3", "0b2", "0o8", "0x-1"};
    static const char *const floats[] = {"",    "-",  ".",  "x",    "1.5x", " 1",  "1 ",
                                         "1,5", "1e", "0x", "nano", "info", "--1", "e5"};
    uint64_t bits;
    bh_error error;
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        if (parse(BH_I32, integers[i], &bits, &error) != BH_E_INVALID) FAIL("i32 %s", integers[i]);
        if (parse(BH_U64, integers[i], &bits, &error) != BH_E_INVALID) FAIL("u64 %s", integers[i]);
    }
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++)
        for (bh_type type = BH_F16; type <= BH_F64; type++)
            if (parse(type, floats[i], &bits, &error) != BH_E_INVALID)
                FAIL("%s %s", bh_type_name(type), floats[i]);
    char *longest = malloc(5000);
    memset(longest, '1', 4999);
    longest[4999] = '\0';
    CHECK_EQ(parse(BH_F64, longest, &bits, &error), BH_E_INVALID);
    CHECK_EQ(parse(BH_U64, longest, &bits, &error), BH_E_INVALID);
    free(longest);
}

TEST(floats_round_to_nearest_even) {
    CHECK_EQ(bits_of(BH_F32, "1"), 0x3f800000u);
    CHECK_EQ(bits_of(BH_F32, "0x1.8p1"), 0x40400000u);
    CHECK_EQ(bits_of(BH_F64, "-0"), UINT64_C(1) << 63);
    CHECK_EQ(bits_of(BH_F16, "1"), 0x3c00u);
    CHECK_EQ(bits_of(BH_F16, "-2"), 0xc000u);
    CHECK_EQ(bits_of(BH_F16, "65504"), 0x7bffu);
    CHECK_EQ(bits_of(BH_F16, "65519"), 0x7bffu);
    CHECK_EQ(bits_of(BH_F16, "2049"), 0x6800u); /* a tie: to even, 2048 */
    CHECK_EQ(bits_of(BH_F16, "2051"), 0x6802u); /* a tie: to even, 2052 */
    CHECK_EQ(bits_of(BH_F16, "5.9604645e-08"), 1u);
    CHECK_EQ(bits_of(BH_F16, "2.9e-08"), 0u); /* below half of the smallest */
    CHECK_EQ(bits_of(BH_F16, "3e-08"), 1u);
    CHECK_EQ(bits_of(BH_F16, "6.1035156e-05"), 0x400u);
    CHECK_EQ(bits_of(BH_F16, "6.1e-05"), 0x3ffu);
    CHECK_EQ(bits_of(BH_BF16, "1"), 0x3f80u);
    CHECK_EQ(bits_of(BH_BF16, "3.14159"), 0x4049u);
    CHECK_EQ(bits_of(BH_BF16, "1e-40"), 0x1u);
    CHECK_EQ(bits_of(BH_BF16, "1e-300"), 0u);
    CHECK_EQ(bits_of(BH_F64, "1e-400"), 0u);
    for (bh_type type = BH_F16; type <= BH_F64; type++) {
        char text[BH__VALUE_TEXT];
        bh__value_format(type, bits_of(type, "inf"), text);
        CHECK_STR_EQ(text, "inf");
        bh__value_format(type, bits_of(type, "-Infinity"), text);
        CHECK_STR_EQ(text, "-inf");
        bh__value_format(type, bits_of(type, "nan"), text);
        CHECK_STR_EQ(text, "nan");
        CHECK(bh__value_is_special(type, bits_of(type, "NaN")));
        CHECK(!bh__value_is_special(type, bits_of(type, "1")));
        bh__value_format(type, bits_of(type, "-0.0"), text);
        CHECK_STR_EQ(text, "-0");
    }
}

TEST(floats_that_do_not_fit_are_refused) {
    uint64_t bits;
    bh_error error;
    CHECK_EQ(parse(BH_F16, "65520", &bits, &error), BH_E_INVALID);
    CHECK_STR_CONTAINS(error.message, "65504");
    CHECK_EQ(parse(BH_BF16, "3.4e38", &bits, &error), BH_E_INVALID);
    CHECK_EQ(parse(BH_F32, "1e39", &bits, &error), BH_E_INVALID);
    CHECK_EQ(parse(BH_F64, "1e309", &bits, &error), BH_E_INVALID);
    CHECK_EQ(parse(BH_F64, "-1e309", &bits, &error), BH_E_INVALID);
}

TEST(known_values_format_in_their_shortest_form) {
    static const struct {
        bh_type type;
        const char *text;
    } cases[] = {
        {BH_F32, "1"},           {BH_F32, "3.5"},
        {BH_F32, "0.1"},         {BH_F32, "1e+20"},
        {BH_F32, "16777216"},    {BH_F32, "0.0001"},
        {BH_F32, "1e-05"},       {BH_F32, "1.1754944e-38"},
        {BH_F32, "1e-45"},       {BH_F32, "3.4028235e+38"},
        {BH_F32, "-0.33333334"}, {BH_F64, "0.3333333333333333"},
        {BH_F64, "5e-324"},      {BH_F64, "1.7976931348623157e+308"},
        {BH_F64, "100000"},      {BH_F64, "1000000000000000"},
        {BH_F64, "1e+16"},       {BH_F64, "0.30000000000000004"},
        {BH_F16, "65500"},       {BH_F16, "0.1"},
        {BH_F16, "6e-08"},       {BH_BF16, "3.14"},
        {BH_BF16, "0.1"},        {BH_BF16, "9e-41"},
        {BH_F64, "123456.789"},  {BH_F32, "1234.5"},
        {BH_F32, "-120"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[BH__VALUE_TEXT];
        bh__value_format(cases[i].type, bits_of(cases[i].type, cases[i].text), text);
        CHECK_STR_EQ(text, cases[i].text);
    }
}

/* Significant digits, leading and trailing zeros not counted. */
static int digits_in(const char *text) {
    char digits[64];
    int count = 0;
    for (; *text != '\0' && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (count > 0 || *text != '0')) digits[count++] = *text;
    while (count > 0 && digits[count - 1] == '0') count--;
    return count;
}

/* Whether one of the decimals with `digits` digits around the value reads back to it. */
static bool shorter_exists(bh_type type, uint64_t bits, const char *exact, int digits) {
    char text[64];
    bh_error error;
    uint64_t again;
    snprintf(text, sizeof text, "%.*e", digits - 1, strtod(exact, NULL));
    char *e = strchr(text, 'e');
    int exponent = atoi(e + 1);
    *e = '\0';
    char plain[32];
    int length = 0;
    for (char *c = text; *c != '\0'; c++)
        if (*c >= '0' && *c <= '9') plain[length++] = *c;
    plain[length] = '\0';
    long long middle = atoll(plain);
    for (long long near = middle - 1; near <= middle + 1; near++) {
        snprintf(text, sizeof text, "%llde%d", near, exponent - (digits - 1));
        if (bh__value_parse(type, text, strlen(text), &again, &error) == BH_OK && again == bits)
            return true;
    }
    return false;
}

static void check_all_of(bh_type type) {
    int wrong = 0;
    for (uint64_t bits = 0; bits < 0x8000 && wrong < 5; bits++) {
        if (bh__value_is_special(type, bits)) continue;
        char text[BH__VALUE_TEXT];
        bh_error error;
        uint64_t again = ~bits;
        bh__value_format(type, bits, text);
        bool back = bh__value_parse(type, text, strlen(text), &again, &error) == BH_OK;
        if (!back || again != bits) {
            FAIL("%s 0x%04" PRIx64 " is %s, which reads back as 0x%04" PRIx64, bh_type_name(type),
                 bits, text, again);
            wrong++;
        }
        int digits = digits_in(text);
        if (digits > 1 && shorter_exists(type, bits, text, digits - 1)) {
            FAIL("%s 0x%04" PRIx64 " is %s, and there is a shorter one", bh_type_name(type), bits,
                 text);
            wrong++;
        }
        char negative[BH__VALUE_TEXT];
        bh__value_format(type, bits | 0x8000, negative);
        if (negative[0] != '-' || strcmp(negative + 1, text) != 0) {
            FAIL("minus %s is %s", text, negative);
            wrong++;
        }
    }
}

TEST(every_f16_reads_back_and_is_shortest) {
    check_all_of(BH_F16);
}
TEST(every_bf16_reads_back_and_is_shortest) {
    check_all_of(BH_BF16);
}

TEST(random_f32_and_f64_read_back) {
    uint64_t state = 88172645463325252u;
    int wrong = 0;
    for (int i = 0; i < 40000 && wrong < 5; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        for (bh_type type = BH_F32; type <= BH_F64; type++) {
            uint64_t bits = type == BH_F32 ? state & 0xffffffff : state;
            if (i % 8 == 0) /* powers of two, whose gaps are uneven */
                bits &= type == BH_F32 ? UINT64_C(0x7f800000) : UINT64_C(0x7ff) << 52;
            if (bh__value_is_special(type, bits)) continue;
            char text[BH__VALUE_TEXT];
            uint64_t again = ~bits;
            bh_error error;
            bh__value_format(type, bits, text);
            bool back = bh__value_parse(type, text, strlen(text), &again, &error) == BH_OK;
            if (!back || again != bits) {
                FAIL("%s 0x%" PRIx64 " is %s", bh_type_name(type), bits, text);
                wrong++;
            }
        }
    }
}

TEST(integers_and_hex_format) {
    char text[BH__VALUE_TEXT];
    bh__value_format(BH_I8, 0x80, text);
    CHECK_STR_EQ(text, "-128");
    bh__value_format(BH_U8, 0x80, text);
    CHECK_STR_EQ(text, "128");
    bh__value_format(BH_I64, UINT64_C(1) << 63, text);
    CHECK_STR_EQ(text, "-9223372036854775808");
    bh__value_format(BH_U64, UINT64_MAX, text);
    CHECK_STR_EQ(text, "18446744073709551615");
    bh__value_format_hex(BH_F32, 0x3f800000, text);
    CHECK_STR_EQ(text, "0x3f800000");
    bh__value_format_hex(BH_U8, 7, text);
    CHECK_STR_EQ(text, "0x07");
    bh__value_format_hex(BH_I64, UINT64_MAX, text);
    CHECK_STR_EQ(text, "0xffffffffffffffff");
}

TEST(elements_are_stored_little_endian) {
    unsigned char bytes[8] = {0};
    bh__value_store(bytes, BH_U32, 0x01020304);
    CHECK_EQ(bytes[0], 4);
    CHECK_EQ(bytes[3], 1);
    CHECK_EQ(bytes[4], 0);
    CHECK_EQ(bh__value_load(bytes, BH_U32), 0x01020304u);
    CHECK_EQ(bh__value_load(bytes, BH_U8), 4u);
}

TEST(sizes_and_times_are_readable) {
    char text[BH__TEXT];
    CHECK_STR_EQ(bh__text_size(0, text), "0 bytes");
    CHECK_STR_EQ(bh__text_size(1023, text), "1023 bytes");
    CHECK_STR_EQ(bh__text_size(4096, text), "4 KiB");
    CHECK_STR_EQ(bh__text_size(UINT64_C(3) << 29, text), "1.50 GiB");
    CHECK_STR_EQ(bh__text_size(UINT64_MAX, text), "16.0 EiB");
    CHECK_STR_EQ(bh__text_time(999, text), "999 ns");
    CHECK_STR_EQ(bh__text_time(1500, text), "1.50 us");
    CHECK_STR_EQ(bh__text_time(12345678, text), "12.3 ms");
    CHECK_STR_EQ(bh__text_time(UINT64_C(60000000000), text), "60.0 s");
}
