/* SPDX-License-Identifier: Apache-2.0 */
/* BH_LANE_NO_BLOCK and BH_SUBMIT_NO_BLOCK: submissions that never wait. A gate holds the lane all
 * the while, so that a call that waited would never return. */
#include "../support/buffers.h"
#include "../support/managed.h"
#include "../support/support.h"
#include "../support/transfers.h"

enum { QUEUE = 64, STAGING = 512 * 1024, SLOTS = 16, N = 64 };

static bh_lane open_no_block(bh_device device) {
    bh_lane_options options = BH_INIT(options);
    options.flags = BH_LANE_NO_BLOCK;
    bh_lane lane;
    REQUIRE_OK(bh_lane_open(device, &options, &lane));
    return lane;
}

static rig rig_with_queue(uint32_t length) {
    bh_device_options options = device_options(0);
    options.queue_length = length;
    return rig_open_with(&options);
}

/* The first write of plain memory that must not wait has the staging memory made. */
static void make_staging(bh_device device) {
    bh_buffer x = words_alloc(device, 1);
    word_write(x, 0, 1);
    CHECK_OK(bh_buffer_release(x));
}

static bool says(const char *text) {
    bh_error error;
    bh_last_error(&error);
    if (strstr(error.message, text) && error.fix[0]) return true;
    fprintf(stderr, "\"%s\" is not in: %s\n", text, error.message);
    return false;
}

/* Fills the queue with empty requests. Returns the last ticket. */
static bh_ticket fill_queue(bh_lane lane, bh_buffer x) {
    bh_ticket last = {0, 0};
    bh_status status;
    do {
        status = bh_submit_read(lane, x, 0, NULL, 0, &last);
    } while (status == BH_OK);
    CHECK_REFUSED(status, BH_E_BUSY);
    CHECK(says("slots are in use"));
    return last;
}

TEST(nothing_waits_for_a_full_queue) {
    rig r = rig_with_queue(QUEUE);
    bh_lane lane = open_no_block(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_buffer x = words_filled(r.device, N, 5), y = words_filled(r.device, N, 6);
    uint32_t words[N] = {0};
    void *host;
    bh_prepared prepared;
    bh_sequence seq;
    bh_submit_options on = BH_INIT(on);
    on.lane = lane;
    REQUIRE_OK(bh_host_alloc(r.device, sizeof words, &host));
    REQUIRE_OK(
        bh_prepare(add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), (uint32_t)N), &there, &prepared));
    REQUIRE_OK(bh_sequence_begin(r.device, NULL, &seq));
    REQUIRE_OK(bh_sequence_launch(seq, add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), (uint32_t)N), NULL,
                                  NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    gate g = gate_close(&r, lane, 0);
    bh_ticket last = fill_queue(lane, y), t = {1, 1};
    CHECK_REFUSED(bh_launch(add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), (uint32_t)N), &there, &t),
                  BH_E_BUSY);
    CHECK_REFUSED(bh_prepared_launch(prepared, NULL, 0, &t), BH_E_BUSY);
    CHECK_REFUSED(bh_sequence_submit(seq, &on, &t), BH_E_BUSY);
    CHECK_REFUSED(bh_submit_write(lane, x, 0, words, sizeof words, &t), BH_E_BUSY);
    CHECK_REFUSED(bh_submit_write(lane, x, 0, host, sizeof words, &t), BH_E_BUSY);
    CHECK_REFUSED(bh_submit_read(lane, x, 0, host, sizeof words, &t), BH_E_BUSY);
    CHECK_REFUSED(bh_submit_copy(lane, x, 0, y, 0, N * 4, &t), BH_E_BUSY);
    CHECK_REFUSED(bh_submit_fill(lane, x, 0, N * 4, "\1", 1, &t), BH_E_BUSY);
    CHECK_REFUSED(bh_submit_fill(lane, x, 0, N * 4 - 4, "\1\2\3", 3, &t), BH_E_BUSY);
    bh_transfer rows = bh_transfer_write(x, 0, words, 8);
    rows.height = 4;
    rows.target_pitch = 16;
    CHECK_REFUSED(bh_submit(&rows.request, &on, &t), BH_E_BUSY);
    on.after = &g.ticket; /* on its own lane: nothing to wait for, and nothing submitted */
    on.after_count = 1;
    CHECK_REFUSED(bh_submit(&rows.request, &on, &t), BH_E_BUSY);
    CHECK_EQ(t.lane, 1);
    gate_open(&g);
    CHECK_OK(bh_wait(last, LONG_NS));
    bh_ticket next;
    REQUIRE_OK(bh_submit_read(lane, x, 0, NULL, 0, &next));
    CHECK_EQ(next.sequence, last.sequence + 1); /* none of the others is in between */
    CHECK(words_are(x, N, 5));
    REQUIRE_OK(bh_prepared_launch(prepared, NULL, 0, &t));
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK(words_are(x, N, 6));
    CHECK_OK(bh_device_close(r.device));
}

/* Submits a write until staging memory has been made. */
static bh_status write_soon(bh_lane lane, bh_buffer x, const void *bytes, uint64_t count) {
    bh_status status;
    uint64_t limit = now_ns() + LONG_NS;
    do {
        status = bh_submit_write(lane, x, 0, bytes, count, NULL);
    } while (status == BH_E_BUSY && now_ns() < limit);
    return status;
}

TEST(the_first_write_is_busy_until_there_is_staging_memory) {
    rig r = rig_open(0);
    bh_lane lane = open_no_block(r.device);
    bh_buffer x;
    uint32_t word = 77;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, 1, NULL, &x));
    bh_status first = bh_submit_write(lane, x, 0, &word, 4, NULL);
    if (first != BH_OK) CHECK_REFUSED(first, BH_E_BUSY);
    CHECK(first == BH_OK || says("staging slots"));
    CHECK_OK(write_soon(lane, x, &word, 4));
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    CHECK_EQ(word_read(x, 0), 77);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_write_of_several_parts_is_submitted_whole_or_not_at_all) {
    enum { PARTS = 3, BYTES = PARTS * STAGING };
    rig r = rig_with_queue(QUEUE);
    bh_lane lane = open_no_block(r.device);
    make_staging(r.device);
    bh_buffer x, y;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, BYTES, NULL, &x));
    REQUIRE_OK(alloc_flags(r.device, BH_U8, BYTES, BH_BUFFER_ZERO, &y));
    uint8_t *bytes = malloc(BYTES), *back = malloc(BYTES);
    REQUIRE(bytes && back);
    memset(bytes, 7, BYTES);
    /* Staging memory: of 16 slots, 15 are in use after five. */
    gate g = gate_close(&r, lane, 0);
    bh_ticket last = {0, 0}, t = {1, 1}, next;
    for (int i = 0; i < SLOTS / PARTS; i++)
        REQUIRE_OK(bh_submit_write(lane, x, 0, bytes, BYTES, &last));
    CHECK_REFUSED(bh_submit_write(lane, y, 0, bytes, BYTES, &t), BH_E_BUSY);
    CHECK(says("1 of the 16 staging slots"));
    bh_transfer rows = bh_transfer_write(y, 0, bytes, 1000);
    rows.height = 1000;
    rows.target_pitch = 1024;
    CHECK_REFUSED(transfer_on(lane, 0, &rows, &t), BH_E_BUSY);
    CHECK(says("1 of the 16 staging slots"));
    REQUIRE_OK(bh_submit_read(lane, x, 0, NULL, 0, &next));
    CHECK_EQ(next.sequence, last.sequence + 1);
    gate_open(&g);
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    /* The queue: two slots are free, three are needed. */
    g = gate_close(&r, lane, 0);
    for (int i = 1; i < QUEUE - 2; i++) REQUIRE_OK(bh_submit_read(lane, x, 0, NULL, 0, &last));
    CHECK_REFUSED(bh_submit_write(lane, y, 0, bytes, BYTES, &t), BH_E_BUSY);
    CHECK(says("3 are needed"));
    REQUIRE_OK(bh_submit_write(lane, x, 0, bytes, 2 * STAGING, &next));
    CHECK_EQ(next.sequence, last.sequence + 2);
    CHECK_REFUSED(bh_submit_read(lane, x, 0, NULL, 0, &t), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    CHECK_EQ(t.lane, 1);
    REQUIRE_OK(bh_buffer_read(y, 0, back, BYTES));
    for (int i = 0; i < BYTES; i++) {
        if (back[i] == 0) continue;
        CHECK_EQ(back[i], 0);
        break;
    }
    REQUIRE_OK(bh_submit_write(lane, y, 0, bytes, BYTES, &t));
    REQUIRE_OK(bh_buffer_read(y, 0, back, BYTES));
    CHECK(memcmp(back, bytes, BYTES) == 0);
    free(bytes);
    free(back);
    CHECK_OK(bh_device_close(r.device));
}

TEST(rows_without_waiting_arrive_as_with_it) {
    static const struct {
        uint64_t width, height, pitch;
    } cases[] = {{1, 5, 3}, {1000, 3, 1000}, {3000, 700, 4000}, {STAGING + 7, 3, STAGING + 9}};
    rig r = rig_open(0);
    bh_lane lane = open_no_block(r.device);
    make_staging(r.device);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes = cases[i].height * cases[i].pitch;
        uint8_t *from = malloc(bytes), *one = malloc(bytes), *two = malloc(bytes);
        REQUIRE(from && one && two);
        for (uint64_t k = 0; k < bytes; k++) from[k] = (uint8_t)(k * 31 + k / 251);
        bh_buffer x, y;
        REQUIRE_OK(alloc_flags(r.device, BH_U8, bytes, BH_BUFFER_ZERO, &x));
        REQUIRE_OK(alloc_flags(r.device, BH_U8, bytes, BH_BUFFER_ZERO, &y));
        bh_transfer rows = bh_transfer_write(x, 0, from, cases[i].width);
        rows.height = cases[i].height;
        rows.target_pitch = rows.source_pitch = cases[i].pitch;
        REQUIRE_OK(transfer_on((bh_lane){0}, BH_SUBMIT_WAIT, &rows, NULL));
        rows.target = y;
        REQUIRE_OK(transfer_on(lane, BH_SUBMIT_WAIT, &rows, NULL));
        REQUIRE_OK(bh_buffer_read(x, 0, one, bytes));
        REQUIRE_OK(bh_buffer_read(y, 0, two, bytes));
        CHECK(memcmp(one, two, bytes) == 0);
        CHECK_OK(bh_buffer_release(x));
        CHECK_OK(bh_buffer_release(y));
        free(from);
        free(one);
        free(two);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(what_can_never_be_done_without_waiting_is_not_called_busy) {
    enum { BYTES = SLOTS * STAGING + 1 };
    rig r = rig_open(0);
    make_staging(r.device);
    bh_lane lane = open_no_block(r.device);
    bh_buffer x;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, BYTES, NULL, &x));
    uint8_t *bytes = calloc(1, BYTES);
    REQUIRE(bytes != NULL);
    CHECK_REFUSED(bh_submit_write(lane, x, 0, bytes, BYTES, NULL), BH_E_UNSUPPORTED);
    CHECK_OK(bh_submit_write(lane, x, 0, bytes, BYTES - 1, NULL));
    bh_transfer read = bh_transfer_read(x, 0, bytes, 100);
    CHECK_REFUSED(transfer_on(lane, BH_SUBMIT_WAIT | BH_SUBMIT_NO_BLOCK, &read, NULL),
                  BH_E_UNSUPPORTED);
    read.height = 2;
    CHECK_REFUSED(transfer_on(lane, BH_SUBMIT_WAIT | BH_SUBMIT_NO_BLOCK, &read, NULL),
                  BH_E_UNSUPPORTED);
    CHECK_OK(transfer_on(lane, BH_SUBMIT_WAIT, &read, NULL)); /* says itself that it waits */
    void *host;
    REQUIRE_OK(bh_host_alloc(r.device, 100, &host));
    read = bh_transfer_read(x, 0, host, 100);
    CHECK_OK(transfer_on(lane, BH_SUBMIT_WAIT | BH_SUBMIT_NO_BLOCK, &read, NULL));
    free(bytes);
    CHECK_OK(bh_device_close(r.device));
}

TEST(transfers_take_the_flag_on_any_lane) {
    rig r = rig_with_queue(QUEUE);
    make_staging(r.device);
    bh_lane lane = open_lane(r.device);
    bh_buffer x = words_filled(r.device, N, 1);
    uint32_t words[N] = {0};
    gate g = gate_close(&r, lane, 0);
    bh_transfer write = bh_transfer_write(x, 0, words, sizeof words);
    bh_transfer fill = bh_transfer_fill(x, 0, N * 4, "\3", 1);
    bh_ticket t;
    uint32_t sent = 0;
    bh_status status;
    while ((status = transfer_on(lane, BH_SUBMIT_NO_BLOCK, &fill, &t)) == BH_OK) sent++;
    CHECK_REFUSED(status, BH_E_BUSY);
    CHECK_EQ(sent, QUEUE - 1);
    CHECK_REFUSED(transfer_on(lane, BH_SUBMIT_NO_BLOCK, &write, &t), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK(words_are(x, N, 0x03030303));
    CHECK_OK(bh_device_close(r.device));
}

TEST(pages_of_managed_buffers_do_not_move_for_a_launch_that_is_busy) {
    rig r = rig_with_queue(QUEUE);
    bh_lane lane = open_no_block(r.device);
    bh_launch_options there = on_lane(lane, 0);
    made m = managed_made(r.device, 1 << 20, 0);
    bh_buffer x = words_filled(r.device, N, 0);
    uint64_t page = managed_info(m.buffer).page_bytes;
    gate g = gate_close(&r, lane, 0);
    bh_ticket last, t;
    for (int i = 1; i < QUEUE - 4; i++) REQUIRE_OK(bh_submit_read(lane, x, 0, NULL, 0, &last));
    /* Six runs of pages that the host has written, and four free slots. */
    for (uint64_t i = 0; i < 6; i++) {
        void *pointer;
        REQUIRE_OK(bh_managed_map(m.buffer, 2 * i * page, page, BH_MAP_WRITE, &pointer));
        uint32_t *words = pointer;
        words[0] = 7;
        REQUIRE_OK(bh_managed_unmap(words, page));
    }
    uint64_t moves = managed_info(m.buffer).moves_to_device;
    CHECK_REFUSED(bh_launch(rig_kernel(&r, "add_one"), BH_GRID(N, 64),
                            BH_ARGS(BH_INOUT(m.buffer), (uint32_t)N), &there, &t),
                  BH_E_BUSY);
    CHECK(says("are needed"));
    bh_submit_options on = BH_INIT(on);
    on.lane = lane;
    CHECK_REFUSED(bh_managed_prefetch(m.buffer, 0, 1 << 22, BH_TO_DEVICE, &on, &t), BH_E_BUSY);
    CHECK_EQ(managed_info(m.buffer).moves_to_device, moves);
    gate_open(&g);
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    bh_ticket next;
    REQUIRE_OK(bh_submit_read(lane, x, 0, NULL, 0, &next));
    CHECK_EQ(next.sequence, last.sequence + 1);
    REQUIRE_OK(bh_launch(rig_kernel(&r, "add_one"), BH_GRID(N, 64),
                         BH_ARGS(BH_INOUT(m.buffer), (uint32_t)N), &there, &t));
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK_EQ(word_read(m.buffer, 0), 8);
    CHECK_OK(bh_device_close(r.device));
}

static void *open_soon(void *context) {
    sleep_ms(50);
    gate_open(context);
    return NULL;
}

TEST(calls_that_wait_for_data_wait_on_such_a_lane_too) {
    rig r = rig_with_queue(QUEUE);
    bh_lane lane = open_no_block(r.device);
    bh_launch_options there = on_lane(lane, 0);
    made m = managed_made(r.device, N, 0);
    bh_buffer x = words_filled(r.device, N, 4);
    gate g = gate_close(&r, lane, 0);
    REQUIRE_OK(bh_launch(rig_kernel(&r, "copy_words"), BH_GRID(N, 64),
                         BH_ARGS(BH_IN(x), BH_OUT(m.buffer), (uint32_t)N), &there, NULL));
    (void)fill_queue(lane, x);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, open_soon, &g) == 0);
    void *pointer;
    CHECK_OK(bh_managed_map(m.buffer, 0, N * 4, BH_MAP_READ, &pointer));
    CHECK_EQ(((uint32_t *)pointer)[N - 1], 4);
    CHECK_OK(bh_managed_unmap(pointer, N * 4));
    pthread_join(thread, NULL);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_launch_that_must_ask_the_device_first_is_busy_until_it_was_asked) {
    rig r = rig_open(0);
    bh_lane lane = open_no_block(r.device);
    bh_launch_options there = on_lane(lane, BH_LAUNCH_COOPERATIVE);
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_buffer x = words_filled(r.device, N, 0);
    bh_ticket t;
    CHECK_REFUSED(bh_launch(add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), (uint32_t)N), &there, &t),
                  BH_E_BUSY);
    CHECK(says("can be resident"));
    bh_preflight preflight = BH_INIT(preflight);
    REQUIRE_OK(bh_launch_preflight(add, BH_GRID(N, 64), NULL, &there, &preflight));
    REQUIRE_OK(bh_launch(add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), (uint32_t)N), &there, &t));
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK_OK(bh_device_close(r.device));
}
