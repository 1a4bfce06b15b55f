/* SPDX-License-Identifier: Apache-2.0 */
/* BH_SUBMIT_TIMED and bh_ticket_get_info: how long one piece of work was queued, waited and ran. */
#include "../support/buffers.h"
#include "../support/support.h"
#include "../support/transfers.h"

enum { N = 64 };

static bh_ticket_info info_of(bh_ticket ticket) {
    bh_ticket_info info = BH_INIT(info);
    REQUIRE_OK(bh_ticket_get_info(ticket, &info));
    return info;
}

/* Waits for the ticket and returns its times, which must be known. */
static bh_ticket_info timed(bh_ticket ticket) {
    CHECK_OK(bh_wait(ticket, LONG_NS));
    bh_ticket_info info = info_of(ticket);
    CHECK_OK(info.status);
    CHECK_EQ(info.timed, 1);
    return info;
}

static bool is_zero(const bh_ticket_info *info) {
    return !info->timed && !info->queued_ns && !info->waiting_ns && !info->device_ns;
}

TEST(a_launch_that_runs_long_has_a_long_device_time) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    uint64_t before = now_ns();
    gate g = gate_close(&r, lane, BH_SUBMIT_TIMED); /* returns once it runs */
    bh_launch_options there = on_lane(lane, BH_SUBMIT_TIMED);
    bh_buffer x = words_filled(r.device, N, 0);
    bh_ticket behind = submit(rig_kernel(&r, "add_one"), BH_GRID(N, 64),
                              BH_ARGS(BH_INOUT(x), (uint32_t)N), &there);
    bh_ticket_info info = info_of(g.ticket);
    CHECK_STATUS(info.status, BH_E_BUSY);
    CHECK(is_zero(&info));
    sleep_ms(60);
    gate_open(&g);
    info = timed(g.ticket);
    uint64_t most = now_ns() - before;
    bh_lane_counters counts = BH_INIT(counts);
    REQUIRE_OK(bh_lane_get_counters(r.device, lane, &counts));
    CHECK_EQ(info.lane_index, counts.index);
    CHECK_EQ(info.generation, 1);
    CHECK(info.device_ns >= 55 * MS && info.device_ns <= most);
    CHECK(info.queued_ns + info.waiting_ns + info.device_ns <= most);
    /* The one behind it has waited, in the queue or in the worker, and not run long. */
    info = timed(behind);
    CHECK(info.queued_ns + info.waiting_ns >= 50 * MS);
    CHECK(info.device_ns < 50 * MS);
    CHECK(info.queued_ns + info.waiting_ns + info.device_ns <= now_ns() - before);
    /* It can be asked again, with the same answer. */
    bh_ticket_info again = info_of(behind);
    CHECK(memcmp(&info, &again, sizeof info) == 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(work_without_the_flag_is_not_timed) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, N, 0);
    bh_ticket t =
        submit(rig_kernel(&r, "add_one"), BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), (uint32_t)N), NULL);
    CHECK_OK(bh_wait(t, LONG_NS));
    bh_ticket_info info = info_of(t);
    CHECK_OK(info.status);
    CHECK(is_zero(&info));
    CHECK_EQ(info.generation, 1);
    bh_ticket wrong = {t.lane, t.sequence + 5};
    CHECK_REFUSED(bh_ticket_get_info(wrong, &info), BH_E_INVALID);
    CHECK_REFUSED(bh_ticket_get_info(t, NULL), BH_E_INVALID);
    REQUIRE_OK(bh_device_close(r.device));
    info = info_of(t); /* a ticket can always be asked */
    CHECK_OK(info.status);
    CHECK(is_zero(&info));
}

TEST(transfers_and_sequences_are_timed_as_a_whole) {
    enum { LARGE = 6 << 20 };
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_buffer x, y;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, LARGE, NULL, &x));
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, LARGE, NULL, &y));
    uint8_t *bytes = calloc(1, LARGE);
    void *host;
    bh_ticket t;
    REQUIRE(bytes != NULL);
    REQUIRE_OK(bh_host_alloc(r.device, LARGE, &host));
    bh_transfer all[] = {
        bh_transfer_write(x, 0, bytes, LARGE), /* twelve pieces */
        bh_transfer_write(x, 0, host, LARGE),  bh_transfer_read(x, 0, host, LARGE),
        bh_transfer_copy(y, 0, x, 0, LARGE),   bh_transfer_fill(x, 0, LARGE, "\1\2\3", 3),
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (uint32_t flags = BH_SUBMIT_TIMED; flags;
             flags ^= flags & BH_SUBMIT_WAIT ? flags : BH_SUBMIT_WAIT) {
            REQUIRE_OK(transfer_on(lane, flags, &all[i], &t));
            bh_ticket_info info = timed(t);
            /* No memory is as fast as 10 TB/s, and nothing here takes a minute. */
            CHECK(info.device_ns > LARGE / 10000 && info.device_ns < 60000 * MS);
        }
    }
    /* Pieces of plain memory that is read have no ticket in common. */
    bh_transfer plain = bh_transfer_read(x, 0, bytes, LARGE);
    REQUIRE_OK(transfer_on(lane, BH_SUBMIT_TIMED | BH_SUBMIT_WAIT, &plain, &t));
    bh_ticket_info info = info_of(t);
    CHECK(is_zero(&info));
    plain = bh_transfer_fill(x, 0, 0, "a", 1); /* nothing to do takes no time */
    REQUIRE_OK(transfer_on(lane, BH_SUBMIT_TIMED, &plain, &t));
    CHECK_EQ(timed(t).device_ns, 0);
    bh_sequence seq;
    REQUIRE_OK(bh_sequence_begin(r.device, NULL, &seq));
    for (int i = 0; i < 3; i++) REQUIRE_OK(record_copy(seq, y, 0, x, 0, LARGE, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    bh_submit_options options = BH_INIT(options);
    options.lane = lane;
    options.flags = BH_SUBMIT_TIMED;
    options.repeat = 4;
    REQUIRE_OK(bh_sequence_submit(seq, &options, &t));
    CHECK(timed(t).device_ns > 12 * (LARGE / 10000));
    free(bytes);
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_latest_1024_of_a_lane_are_known) {
    enum { KEPT = 1024, MORE = 300 };
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options with = on_lane(lane, BH_SUBMIT_TIMED), without = on_lane(lane, 0);
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_buffer x = words_filled(r.device, 1, 0);
    bh_ticket *tickets = calloc(KEPT + MORE, sizeof *tickets);
    REQUIRE(tickets != NULL);
    for (int i = 0; i < KEPT + MORE; i++) {
        tickets[i] = submit(add, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &with);
        submit(add, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &without); /* these do not count */
    }
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    for (int i = 0; i < KEPT + MORE; i++) CHECK_EQ(info_of(tickets[i]).timed, i >= MORE);
    CHECK_EQ(word_read(x, 0), 2 * (KEPT + MORE));
    /* The next lane in the same place has times of its own. */
    bh_ticket last = tickets[KEPT + MORE - 1];
    REQUIRE_OK(bh_lane_release(lane));
    lane = open_lane(r.device);
    with = on_lane(lane, BH_SUBMIT_TIMED);
    bh_ticket other = submit(add, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &with);
    (void)timed(other);
    CHECK_EQ(info_of(last).timed, 0);
    CHECK_OK(info_of(last).status);
    free(tickets);
    CHECK_OK(bh_device_close(r.device));
}

TEST(prepared_launches_and_launches_without_a_place_in_a_train_are_timed) {
    enum { COUNT = 200 };
    rig r = rig_open(0);
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_buffer x = words_filled(r.device, 1, 0);
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_SUBMIT_TIMED;
    bh_prepared timed_one, plain;
    REQUIRE_OK(bh_prepare(add, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &options, &timed_one));
    REQUIRE_OK(bh_prepare(add, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), NULL, &plain));
    bh_ticket tickets[COUNT];
    for (int i = 0; i < COUNT; i++)
        REQUIRE_OK(bh_prepared_launch(i % 50 == 49 ? timed_one : plain, NULL, 0, &tickets[i]));
    CHECK_OK(bh_wait(tickets[COUNT - 1], LONG_NS));
    for (int i = 0; i < COUNT; i++) CHECK_EQ(info_of(tickets[i]).timed, i % 50 == 49);
    CHECK_EQ(word_read(x, 0), COUNT);
    CHECK_OK(bh_device_close(r.device));
}
