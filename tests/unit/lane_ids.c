/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of lanes in tickets: which were given out, for as many lanes as a process may open. */
#include "base/hash.h"
#include "client/core/handles.h"
#include "test.h"

static void check_ids(void) {
    uint64_t ids[300];
    uint32_t device, lane;
    for (uint32_t i = 0; i < 300; i++) {
        ids[i] = bh__lane_id_new(i % 256, i * 7 % 256);
        CHECK_NE(ids[i], 0);
    }
    for (uint32_t i = 0; i < 300; i++) {
        CHECK(bh__lane_id_read(ids[i], &device, &lane));
        CHECK_EQ(device, i % 256);
        CHECK_EQ(lane, i * 7 % 256);
        CHECK_EQ(bh__lane_id_index(ids[i]), lane);
    }
}

TEST(ids_are_read_back_and_others_are_not_ids) {
    check_ids();
    uint64_t id = bh__lane_id_new(0, 1);
    uint32_t device, lane;
    for (uint64_t wrong = 0; wrong < 1000; wrong++) CHECK(!bh__lane_id_read(wrong, &device, &lane));
    for (int bit = 0; bit < 64; bit++)
        CHECK(!bh__lane_id_read(id ^ (uint64_t)1 << bit, &device, &lane));
}

/* A service that opens lanes for each batch gets there in weeks. */
TEST(ids_do_not_end_after_2_to_the_32_lanes) {
    uint64_t first = bh__lane_id_new(3, 4);
    uint32_t device, lane;
    for (int bits = 31; bits < 47; bits++) {
        atomic_store(&bh__lane_ids_given, ((uint64_t)1 << bits) - 150);
        check_ids();
        CHECK(bh__lane_id_read(first, &device, &lane));
        CHECK_EQ(device, 3);
        CHECK_EQ(lane, 4);
    }
}

TEST(unhashing_undoes_hashing) {
    for (uint64_t i = 0, value = 1; i < 10000; i++, value = value * 6364136223846793005u + i) {
        CHECK_EQ(bh__unhash_u64(bh__hash_u64(value)), value);
        CHECK_EQ(bh__hash_u64(bh__unhash_u64(i)), i);
    }
}
