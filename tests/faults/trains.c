/* SPDX-License-Identifier: Apache-2.0 */
/* Many short launches that wait together: whether a device sends them as one or one by one, results
 * and order are the same, and a fault among them is put down to at most eight of them, by name. */
#include "../support/support.h"

enum {
    AHEAD = 128, /* what a lane queues one by one behind a long kernel, at most */
    BACKLOG = AHEAD + 128,
    BAD = AHEAD + 84,
    MAX_BLAMED = 8,
    ATTEMPTS = 5
};

typedef struct backlog {
    bh_lane lane;
    gate gate;
    bh_ticket tickets[BACKLOG];
} backlog;

/* Launches behind a closed gate: launch i adds one to its own word of `p`, or flips it where a word
 * at `address` is to be written too. */
static void submit_backlog(const rig *r, backlog *b, bh_buffer p, uint64_t good, uint64_t bad,
                           bool mixed) {
    bh_kernel add = rig_kernel(r, "add_one"), poke = rig_kernel(r, "write_then_poke");
    bh_launch_options there = on_lane(b->lane, 0);
    b->gate = gate_close(r, b->lane, 0);
    for (uint32_t i = 0; i < BACKLOG; i++) {
        bh_buffer word;
        REQUIRE_OK(bh_buffer_view(p, 0, i, 1, &word));
        b->tickets[i] = mixed && i % 2
                            ? submit(add, BH_GRID(1, 1), BH_ARGS(BH_INOUT(word), 1u), &there)
                            : submit(poke, BH_GRID(1, 1),
                                     BH_ARGS(BH_INOUT(word), 1u, i == BAD ? bad : good), &there);
        CHECK_OK(bh_buffer_release(word));
    }
}

TEST(a_backlog_of_short_launches_runs_whole_and_in_order) {
    rig r = rig_open(0);
    backlog b = {.lane = open_lane(r.device)};
    bh_buffer p = words_filled(r.device, BACKLOG, 10), sink = words_filled(r.device, 1, 0);
    for (int round = 1; round <= 3; round++) {
        submit_backlog(&r, &b, p, address_of(sink), address_of(sink), true);
        gate_open(&b.gate);
        for (int i = 0; i < BACKLOG; i++) CHECK_OK(bh_wait(b.tickets[i], LONG_NS));
        for (uint32_t i = 0; i < BACKLOG; i++) {
            uint32_t want = i % 2 ? 10 + (uint32_t)round : round % 2 ? ~10u : 10u;
            CHECK_EQ(word_read(p, i), want);
        }
    }
    /* One word, written by every launch: the last one wins. */
    bh_launch_options there = on_lane(b.lane, 0);
    b.gate = gate_close(&r, b.lane, 0);
    bh_kernel store = rig_kernel(&r, "store_word");
    for (uint32_t i = 0; i < BACKLOG; i++)
        b.tickets[i] = submit(store, BH_GRID(1, 1), BH_ARGS(BH_OUT(sink), i), &there);
    gate_open(&b.gate);
    CHECK_OK(bh_wait(b.tickets[BACKLOG - 1], LONG_NS));
    CHECK_EQ(word_read(sink, 0), BACKLOG - 1);
    CHECK_OK(bh_device_close(r.device));
}

/* One attempt. Returns how many launches were blamed. */
static int fault_in_backlog(const rig *r, bool mixed) {
    backlog b = {.lane = open_lane(r->device)};
    bh_buffer p = words_filled(r->device, BACKLOG, 10), sink = words_filled(r->device, 1, 0);
    bh_buffer intact = words_counting(r->device, 64, 3);
    submit_backlog(r, &b, p, address_of(sink), NOWHERE, mixed);
    gate_open(&b.gate);
    int first = -1, blamed = 0;
    for (int i = 0; i < BACKLOG; i++) {
        bh_status status = bh_wait(b.tickets[i], LONG_NS);
        if (status == BH_E_FAULT) {
            if (first < 0) first = i;
            blamed++;
            CHECK_EQ(i, first + blamed - 1); /* one piece */
        } else if (first < 0) {
            CHECK_OK(status);
        } else {
            CHECK(status == BH_OK || status == BH_E_LOST || status == BH_E_QUARANTINED);
        }
    }
    REQUIRE(first >= 0);
    CHECK_LE(blamed, MAX_BLAMED);
    CHECK(first <= BAD && BAD < first + blamed);
    for (int i = first; i < first + blamed; i++) {
        bh_error error;
        char number[32];
        CHECK_STATUS(bh_ticket_error(b.tickets[i], &error), BH_E_FAULT);
        CHECK_EQ(error.certain, blamed == 1);
        CHECK_STR_EQ(error.kernel, mixed && i % 2 ? "add_one" : "write_then_poke");
        snprintf(number, sizeof number, "%llu", (unsigned long long)b.tickets[i].sequence);
        if (blamed > 1) CHECK_STR_CONTAINS(error.message, number);
    }
    for (int i = 0; i < BACKLOG; i++) {
        uint32_t flipped = mixed && i % 2 ? 11 : ~10u;
        if (bh_wait(b.tickets[i], 0) == BH_OK) CHECK_EQ(word_read(p, (uint64_t)i), flipped);
    }
    CHECK(words_count(intact, 64, 3));
    check_device_works(r);
    CHECK_OK(bh_lane_release(b.lane));
    return blamed;
}

TEST_TIMEOUT(a_fault_in_a_backlog_is_put_down_to_at_most_eight_launches, 120) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 1000;
    rig r = rig_open_with(&options);
    int most = 0;
    for (int i = 0; i < ATTEMPTS && most < 2; i++) {
        int blamed = fault_in_backlog(&r, true);
        if (blamed > most) most = blamed;
    }
    if (has_queues(r.device) && test_time_scale() == 1) CHECK_GT(most, 1);
    if (!has_queues(r.device)) CHECK_EQ(most, 1);
    bh_kernel_info info = BH_INIT(info);
    CHECK_OK(bh_kernel_get_info(rig_kernel(&r, "add_one"), &info));
    CHECK_EQ(info.faults, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(a_kernel_that_faults_in_backlogs_of_its_own_is_quarantined, 120) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 2;
    rig r = rig_open_with(&options);
    for (int i = 0; i < 2; i++) {
        bh_kernel_info info = BH_INIT(info);
        CHECK_GE(fault_in_backlog(&r, false), 1);
        CHECK_OK(bh_kernel_get_info(rig_kernel(&r, "write_then_poke"), &info));
        CHECK_EQ(info.faults, i + 1);
        CHECK_EQ(info.quarantined, i == 1);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(an_endless_launch_in_a_backlog_meets_the_devices_deadline, 120) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.deadline_ns = 200 * MS;
    rig r = rig_open_with(&options);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_kernel spin = rig_kernel(&r, "spin");
    bh_buffer p = words_filled(r.device, BACKLOG, 0);
    bh_ticket tickets[BACKLOG];
    gate g = gate_close(&r, lane, 0);
    for (uint32_t i = 0; i < BACKLOG; i++) {
        bh_buffer word;
        REQUIRE_OK(bh_buffer_view(p, 0, i, 1, &word));
        tickets[i] = submit(spin, BH_GRID(1, 1),
                            BH_ARGS(BH_OUT(word), i, i == BAD ? UINT32_MAX : 1u), &there);
        CHECK_OK(bh_buffer_release(word));
    }
    gate_open(&g);
    int blamed = 0;
    for (int i = 0; i < BACKLOG; i++) {
        bh_status status = bh_wait(tickets[i], LONG_NS);
        if (status == BH_E_DEADLINE) blamed++;
        if (i < BAD && status == BH_OK)
            CHECK_EQ(word_read(p, (uint64_t)i), spin_word((uint32_t)i, 1));
        if (i == BAD) CHECK_STATUS(status, BH_E_DEADLINE);
    }
    CHECK(blamed >= 1 && blamed <= MAX_BLAMED);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}
