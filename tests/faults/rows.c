/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and doubt: what leaves gaps clears nothing, and is in doubt from its first byte to its last.
 */
#include <signal.h>

#include "../support/support.h"
#include "../support/transfers.h"

enum { N = 256, BYTES = N * 4 };

static bh_buffer_info query(bh_buffer buffer) {
    bh_buffer_info info = BH_INIT(info);
    REQUIRE_OK(bh_buffer_get_info(buffer, &info));
    return info;
}

/* Two rows of `width` bytes, at the start and the end of the buffer. */
static bh_transfer first_and_last(uint64_t width) {
    bh_transfer rows = bh_transfer_init(0, 0);
    rows.width = width;
    rows.height = 2;
    rows.target_pitch = BYTES - width;
    return rows;
}

TEST(rows_with_gaps_clear_no_doubt_and_rows_without_do) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer x = words_filled(r.device, N, 1), y = words_filled(r.device, N, 2);
    CHECK_STATUS(run_now(rig_kernel(&r, "write_then_poke"), BH_GRID(N, 64),
                         BH_ARGS(BH_INOUT(x), (uint32_t)N, NOWHERE)),
                 BH_E_FAULT);
    static const uint8_t zeros[BYTES];
    bh_transfer rows = first_and_last(100);
    uint8_t byte = 7;
    REQUIRE_OK(fill_rows(x, &rows, &byte, 1));
    CHECK_EQ(query(x).suspect_bytes, BYTES);
    REQUIRE_OK(fill_rows(x, &rows, "abc", 3));
    CHECK_EQ(query(x).suspect_bytes, BYTES);
    REQUIRE_OK(write_rows(x, zeros, &rows));
    CHECK_EQ(query(x).suspect_bytes, BYTES);
    rows.source_pitch = 0;
    REQUIRE_OK(copy_rows(x, y, &rows));
    CHECK_EQ(query(x).suspect_bytes, BYTES);
    /* Reading any of it is still refused, as rows too. */
    bh_transfer read = {.request = {sizeof(bh_transfer), BH_REQUEST_TRANSFER},
                        .width = 4,
                        .height = 2,
                        .source_pitch = 300};
    uint8_t back[BYTES];
    CHECK_REFUSED(read_rows(back, x, &read), BH_E_STALE);
    CHECK_REFUSED(copy_rows(y, x, &read), BH_E_STALE);
    /* Rows that touch each other are whole. */
    bh_transfer whole = {
        .request = {sizeof(bh_transfer), BH_REQUEST_TRANSFER}, .width = 64, .height = 4};
    REQUIRE_OK(fill_rows(x, &whole, "abcde", 5));
    CHECK_EQ(query(x).suspect_offset, 256);
    CHECK_EQ(query(x).suspect_bytes, BYTES - 256);
    whole.height = BYTES / 64;
    REQUIRE_OK(copy_rows(x, y, &whole));
    CHECK_EQ(query(x).suspect, 0);
    CHECK(words_are(x, N, 2));
    CHECK_OK(bh_device_close(r.device));
}

TEST(rows_lost_in_flight_are_in_doubt_from_first_to_last) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane one = open_lane(r.device), two = open_lane(r.device);
    bh_buffer x = words_counting(r.device, N, 0);
    gate g = gate_close(&r, one, 0);
    /* Reads what the gate is about to write: taken, and waiting for it. */
    bh_transfer rows = {.request = {sizeof(bh_transfer), BH_REQUEST_TRANSFER},
                        .width = 2,
                        .height = 2,
                        .target_offset = 100,
                        .target_pitch = 300};
    bh_ticket ticket;
    REQUIRE_OK(submit_copy_rows(two, x, g.mark, &rows, &ticket));
    sleep_ms(50);
    kill_worker(r.device, SIGKILL);
    bh_status status = bh_wait(ticket, LONG_NS);
    CHECK(status == BH_E_LOST || status == BH_E_STALE);
    CHECK_EQ(query(x).suspect, 1);
    CHECK_EQ(query(x).suspect_offset, 100);
    CHECK_EQ(query(x).suspect_bytes, 302);
    CHECK_EQ(word_read(x, 24), 24);
    CHECK_EQ(word_read(x, 101), 101);
    REQUIRE_OK(bh_buffer_accept(x));
    CHECK_EQ(word_read(x, 50), 50);
    CHECK_OK(bh_device_close(r.device));
}

/* Work that was queued behind what was lost, and in flight and to be sent again. */
TEST(rows_queued_through_a_loss_run_and_leave_doubt_in_their_gaps) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane one = open_lane(r.device), two = open_lane(r.device);
    bh_buffer x = words_filled(r.device, N, 1), good = words_filled(r.device, N, 1);
    gate g = gate_close(&r, one, 0);
    bh_use use = {x, BH_ACCESS_INOUT, 0};
    bh_launch_options options = BH_INIT(options);
    options.lane = one;
    options.also = &use;
    options.also_count = 1;
    bh_ticket writer, rows_ticket, good_ticket;
    REQUIRE_OK(bh_launch(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(g.mark), 1u),
                         &options, &writer));
    bh_transfer rows = first_and_last(64);
    uint8_t nine = 9;
    REQUIRE_OK(submit_fill_rows(two, x, &rows, &nine, 1, &rows_ticket));
    REQUIRE_OK(submit_fill_rows(two, good, &rows, "123", 3, &good_ticket));
    sleep_ms(50);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(bh_wait(rows_ticket, LONG_NS), BH_OK);
    CHECK_STATUS(bh_wait(good_ticket, LONG_NS), BH_OK);
    CHECK(bh_wait(writer, LONG_NS) != BH_OK);
    CHECK_EQ(query(x).suspect_bytes, BYTES);
    CHECK_EQ(query(good).suspect, 0);
    uint8_t back[BYTES];
    REQUIRE_OK(bh_buffer_read(good, 0, back, BYTES));
    for (int i = 0; i < 64; i++) {
        CHECK_EQ(back[i], "123"[i % 3]);
        CHECK_EQ(back[BYTES - 64 + i], "123"[i % 3]);
    }
    REQUIRE_OK(bh_buffer_accept(x));
    REQUIRE_OK(bh_buffer_read(x, 0, back, BYTES));
    for (int i = 0; i < 64; i++) CHECK(back[i] == 9 && back[BYTES - 64 + i] == 9);
    CHECK_OK(bh_device_close(r.device));
}

/* Synchronous calls wait through losses, and pieces through staging arrive whole. */
static void *kill_again_and_again(void *context) {
    bh_device device = *(bh_device *)context;
    for (int i = 0; i < 5; i++) {
        sleep_ms(20);
        kill_worker(device, SIGKILL);
    }
    return NULL;
}

TEST_TIMEOUT(rows_survive_losses, 60) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    enum { WIDTH = 1000, ROWS = 2000, PITCH = 1500 };
    uint8_t *data = malloc(WIDTH * ROWS), *back = malloc(WIDTH * ROWS);
    REQUIRE(data && back);
    bh_buffer x;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, PITCH * ROWS, NULL, &x));
    pthread_t killer;
    REQUIRE(pthread_create(&killer, NULL, kill_again_and_again, &r.device) == 0);
    bh_transfer out = {.request = {sizeof(bh_transfer), BH_REQUEST_TRANSFER},
                       .width = WIDTH,
                       .height = ROWS,
                       .target_pitch = PITCH};
    bh_transfer in = {.request = {sizeof(bh_transfer), BH_REQUEST_TRANSFER},
                      .width = WIDTH,
                      .height = ROWS,
                      .source_pitch = PITCH};
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < WIDTH * ROWS; i++) data[i] = (uint8_t)(i * 7 + (size_t)round);
        bh_status status = write_rows(x, data, &out);
        CHECK_OK(status);
        CHECK_EQ(query(x).suspect, 0);
        memset(back, 0, WIDTH * ROWS);
        CHECK_OK(read_rows(back, x, &in));
        CHECK(memcmp(data, back, WIDTH * ROWS) == 0);
    }
    pthread_join(killer, NULL);
    free(data);
    free(back);
    CHECK_OK(bh_device_close(r.device));
}
