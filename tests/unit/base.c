/* SPDX-License-Identifier: Apache-2.0 */
/* src/base: checked arithmetic, errors, names, hashes, clock. */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/hash.h"
#include "bulkhead.h"
#include "error/error.h"
#include "test.h"

TEST(checked_arithmetic_refuses_what_does_not_fit) {
    uint64_t wide = 7;
    uint32_t narrow = 7;
    CHECK(bh__add_u64(UINT64_MAX - 1, 1, &wide));
    CHECK_EQ(wide, UINT64_MAX);
    CHECK(!bh__add_u64(UINT64_MAX, 1, &wide));
    CHECK_EQ(wide, UINT64_MAX);
    CHECK(!bh__sub_u64(1, 2, &wide));
    CHECK(bh__mul_u64(1ull << 32, (1ull << 32) - 1, &wide));
    CHECK_EQ(wide, 0xffffffff00000000u);
    CHECK(!bh__mul_u64(1ull << 32, 1ull << 32, &wide));
    CHECK(!bh__add_u32(UINT32_MAX, 1, &narrow));
    CHECK(!bh__mul_u32(1u << 16, 1u << 16, &narrow));
    CHECK_EQ(narrow, 7);
    CHECK(bh__sub_u32(9, 4, &narrow));
    CHECK_EQ(narrow, 5);
}

TEST(align_up_and_powers_of_two) {
    uint64_t out = 0;
    CHECK(bh__align_up_u64(0, 256, &out) && out == 0);
    CHECK(bh__align_up_u64(1, 256, &out) && out == 256);
    CHECK(bh__align_up_u64(256, 256, &out) && out == 256);
    CHECK(bh__align_up_u64(UINT64_MAX - 255, 256, &out) && out == UINT64_MAX - 255);
    CHECK(!bh__align_up_u64(UINT64_MAX - 254, 256, &out));
    CHECK(!bh__is_power_of_two(0));
    CHECK(bh__is_power_of_two(1) && bh__is_power_of_two(1ull << 63));
    CHECK(!bh__is_power_of_two(3));
}

TEST(range_fits_is_not_misled_by_overflow) {
    CHECK(bh__range_fits(0, 0, 0));
    CHECK(bh__range_fits(10, 0, 10));
    CHECK(bh__range_fits(3, 7, 10));
    CHECK(!bh__range_fits(4, 7, 10));
    CHECK(!bh__range_fits(11, 0, 10));
    CHECK(!bh__range_fits(UINT64_MAX, 2, 10));
    CHECK(!bh__range_fits(2, UINT64_MAX, 10));
}

TEST(fail_fills_an_error_and_zeroes_the_rest) {
    bh_error error;
    memset(&error, 0xff, sizeof error);
    bh_status status = bh__fail(&error, BH_E_INVALID, "give at least 1", "count is %d", -3);
    CHECK_EQ(status, BH_E_INVALID);
    CHECK_EQ(error.status, BH_E_INVALID);
    CHECK_STR_EQ(error.message, "count is -3");
    CHECK_STR_EQ(error.fix, "give at least 1");
    CHECK_STR_EQ(error.device_name, "");
    CHECK_STR_EQ(error.kernel, "");
    CHECK_EQ(error.device_code, 0);
    CHECK_EQ(error.ticket.lane, 0);
    CHECK_EQ(error.certain, 0);
    CHECK_EQ(bh__fail(NULL, BH_E_IO, "fix", "message"), BH_E_IO);
    bh__fail(&error, BH_E_IO, NULL, "no advice");
    CHECK_STR_EQ(error.fix, "");
}

/* Of ASCII and of Unicode: U+009B begins an order of terminals. */
TEST(fail_replaces_control_characters) {
    bh_error error;
    bh__fail(&error, BH_E_IO, "f\x1bx\xc2\x9by", "%s%s\xc3\xa9", "m\x07\xc2", "\x9b\x1b[31m");
    CHECK_STR_EQ(error.message, "m????[31m\xc3\xa9");
    CHECK_STR_EQ(error.fix, "f?x??y");
}

/* Errors go from process to process. */
TEST(fail_keeps_nothing_of_what_was_on_the_stack) {
    bh_error error, same;
    memset(&same, 0, sizeof same);
    same.status = BH_E_IO;
    memcpy(same.message, "no 3", 4);
    memcpy(same.fix, "fix", 3);
    test_soil_stack();
    bh__fail(&error, BH_E_IO, "fix", "no %d", 3);
    CHECK(memcmp(&error, &same, sizeof same) == 0);
}

TEST(fail_can_wrap_the_message_that_it_replaces) {
    bh_error error;
    bh__fail(&error, BH_E_LOAD, "mend the file", "line 12: no such instruction");
    bh__fail(&error, BH_E_LOAD, error.fix, "module 'a.ptx': %s", error.message);
    CHECK_STR_EQ(error.message, "module 'a.ptx': line 12: no such instruction");
    CHECK_STR_EQ(error.fix, "mend the file");
}

TEST(fail_cuts_long_text) {
    bh_error error;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    bh__fail(&error, BH_E_IO, text, "%s", text);
    CHECK_EQ(strlen(error.message), sizeof error.message - 1);
    CHECK_EQ(strlen(error.fix), sizeof error.fix - 1);
    bh__fail_device_code(&error, 700, text);
    CHECK_EQ(error.device_code, 700);
    CHECK_EQ(strlen(error.device_name), sizeof error.device_name - 1);
    bh__fail_device_code(NULL, 700, "ignored");
}

TEST(errno_text_never_fails) {
    char text[64], tiny[4];
    CHECK_STR_EQ(bh__errno_text(ENOENT, text, sizeof text), "No such file or directory");
    CHECK_STR_EQ(bh__errno_text(123456, text, sizeof text), "error 123456");
    CHECK_STR_EQ(bh__errno_text(ENOENT, tiny, sizeof tiny), "No ");
    CHECK_STR_EQ(bh__errno_text(ENOENT, NULL, 0), "");
}

TEST(every_status_has_its_name) {
    CHECK_STR_EQ(bh_status_name(BH_OK), "BH_OK");
    CHECK_STR_EQ(bh_status_name(BH_E_INTERNAL), "BH_E_INTERNAL");
    for (bh_status status = 1; status <= BH_E_INTERNAL; status++) {
        REQUIRE(bh_status_name(status) != NULL);
        CHECK(strncmp(bh_status_name(status), "BH_E_", 5) == 0);
        for (bh_status other = 1; other < status; other++) {
            CHECK(strcmp(bh_status_name(status), bh_status_name(other)) != 0);
        }
    }
    CHECK_STR_EQ(bh_status_name(BH_E_INTERNAL + 1), "BH_E_?");
    CHECK_STR_EQ(bh_status_name(-1), "BH_E_?");
    CHECK_STR_EQ(bh_status_name(INT32_MIN), "BH_E_?");
}

TEST(types_have_sizes_and_names) {
    CHECK_EQ(bh_type_size(BH_I8), 1);
    CHECK_EQ(bh_type_size(BH_BF16), 2);
    CHECK_EQ(bh_type_size(BH_F32), 4);
    CHECK_EQ(bh_type_size(BH_F64), 8);
    CHECK_STR_EQ(bh_type_name(BH_BF16), "bf16");
    CHECK_STR_EQ(bh_type_name(BH_U64), "u64");
    CHECK_EQ(bh_type_size(0), 0);
    CHECK_EQ(bh_type_size(BH_C128 + 1), 0);
    CHECK_EQ(bh_type_size(UINT32_MAX), 0);
    CHECK_STR_EQ(bh_type_name(0), "?");
    CHECK_STR_EQ(bh_type_name(UINT32_MAX), "?");
}

TEST(hash_spreads_small_numbers_over_a_table) {
    unsigned words[256] = {0};
    for (uint64_t i = 0; i < 25600; i++) words[bh__hash_u64(i) & 255]++;
    for (int i = 0; i < 256; i++) {
        /* 100 are expected in each; a fair spread stays within six standard deviations. */
        CHECK(words[i] > 40 && words[i] < 160);
    }
}

TEST(deadlines_saturate) {
    uint64_t now = bh__now_ns();
    CHECK_EQ(bh__deadline_after(BH__NEVER), BH__NEVER);
    CHECK_EQ(bh__deadline_after(UINT64_MAX - 1), BH__NEVER);
    uint64_t soon = bh__deadline_after(BH__NS_PER_S);
    CHECK_GE(soon, now + BH__NS_PER_S);
    CHECK_EQ(bh__time_left(BH__NEVER), BH__NEVER);
    CHECK_EQ(bh__time_left(now), 0);
    CHECK_LE(bh__time_left(soon), BH__NS_PER_S);
    struct timespec time = bh__timespec(3 * BH__NS_PER_S + 5);
    CHECK_EQ(time.tv_sec, 3);
    CHECK_EQ(time.tv_nsec, 5);
}
