/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests of a lane have results to write back. */
#include "client/managed/internal.h"
#include "test.h"

static void check_runs(const bh__writers *writers, const bh__run *expected, uint32_t count) {
    bh__run runs[512];
    REQUIRE_EQ(bh__writers_runs(writers, runs), count);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ(runs[i].from, expected[i].from);
        CHECK_EQ(runs[i].to, expected[i].to);
    }
}

TEST(writers_without_others_between_are_one_run) {
    bh__writers writers = {0};
    for (uint64_t at = 10; at < 40; at += 3) bh__writers_add(&writers, at - 3, at);
    check_runs(&writers, (bh__run[]){{10, 37}}, 1);
    bh__writers_forget(&writers);
    CHECK_EQ(writers.last, 0);
}

TEST(others_are_in_gaps) {
    bh__writers writers = {0};
    bh__writers_add(&writers, 7, 10);
    bh__writers_add(&writers, 10, 12);
    bh__writers_add(&writers, 16, 20);
    bh__writers_add(&writers, 21, 22);
    check_runs(&writers, (bh__run[]){{10, 12}, {17, 20}, {22, 22}}, 3);
    bh__writers_keep(&writers, 12, 20);
    check_runs(&writers, (bh__run[]){{12, 12}, {17, 20}}, 2);
    bh__writers_keep(&writers, 12, 15); /* in a gap */
    check_runs(&writers, (bh__run[]){{12, 12}}, 1);
    bh__writers_forget(&writers);
}

TEST(the_latest_gaps_are_kept) {
    bh__writers writers = {0};
    for (uint64_t at = 1; at <= 1001; at += 2) bh__writers_add(&writers, at - 1, at);
    bh__run runs[512];
    uint32_t count = bh__writers_runs(&writers, runs);
    REQUIRE_EQ(count, 257);
    CHECK_EQ(runs[0].from, 1);
    CHECK_EQ(runs[0].to, 1001 - 2 * 256);
    for (uint32_t i = 1; i < count; i++) CHECK_EQ(runs[i].from, runs[i].to);
    CHECK_EQ(runs[256].to, 1001);
    bh__writers_forget(&writers);
}
