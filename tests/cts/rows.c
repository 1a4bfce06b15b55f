/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills of rows, patterns of any length, copies between devices. */
#include "../support/support.h"
#include "../support/transfers.h"

enum { SIZE = 900000 };

static bh_buffer bytes_buffer(bh_device device, const uint8_t *bytes, size_t size) {
    bh_buffer buffer;
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, size, NULL, &buffer));
    REQUIRE_OK(bh_buffer_write(buffer, 0, bytes, size));
    return buffer;
}

static void check_bytes(bh_buffer buffer, const uint8_t *expected, size_t size, const char *what) {
    uint8_t *back = malloc(size);
    REQUIRE(back != NULL);
    REQUIRE_OK(bh_buffer_read(buffer, 0, back, size));
    for (size_t i = 0; i < size; i++) {
        if (back[i] == expected[i]) continue;
        fprintf(stderr, "%s: byte %zu is %u, not %u\n", what, i, back[i], expected[i]);
        CHECK_EQ(back[i], expected[i]);
        break;
    }
    free(back);
}

static void model_rows(uint8_t *target, const uint8_t *source, const bh_transfer *rows) {
    uint64_t to = rows->target_pitch ? rows->target_pitch : rows->width;
    uint64_t from = rows->source_pitch ? rows->source_pitch : rows->width;
    for (uint64_t i = 0; i < rows->height; i++)
        memcpy(target + rows->target_offset + i * to, source + rows->source_offset + i * from,
               rows->width);
}

/* Rows that fit into SIZE bytes on both sides. */
static bh_transfer any_rows(rng *r) {
    bh_transfer rows = bh_transfer_init(0, 0);
    rows.width = 1 + rng_below(r, rng_below(r, 8) ? 3000 : 300000);
    uint64_t widest = rows.width + rng_below(r, 3000), other = rows.width + rng_below(r, 3000);
    rows.target_pitch = rng_below(r, 5) ? widest : 0;
    rows.source_pitch = rng_below(r, 5) ? other : 0;
    uint64_t pitch = widest > other ? widest : other;
    rows.height = 1 + rng_below(r, (uint32_t)(SIZE / pitch));
    uint64_t slack = SIZE - rows.height * pitch;
    rows.target_offset = rng_below(r, (uint32_t)slack + 1);
    rows.source_offset = rng_below(r, (uint32_t)slack + 1);
    return rows;
}

TEST_TIMEOUT(rows_go_where_a_model_puts_them, 60) {
    bh_device device = open_device();
    bh_lane lane = open_lane(device);
    uint8_t *a = noise_bytes(SIZE, 1), *b = noise_bytes(SIZE, 2), *plain = noise_bytes(SIZE, 3);
    bh_buffer to = bytes_buffer(device, a, SIZE), from = bytes_buffer(device, b, SIZE);
    void *direct;
    REQUIRE_OK(bh_host_alloc(device, SIZE, &direct));
    rng r = rng_seeded(6);
    for (int i = 0; i < 60; i++) {
        bh_transfer rows = any_rows(&r);
        bh_ticket ticket;
        switch (i % 5) {
        case 0:
            REQUIRE_OK(copy_rows(to, from, &rows));
            model_rows(a, b, &rows);
            break;
        case 1:
            REQUIRE_OK(write_rows(to, plain, &rows));
            model_rows(a, plain, &rows);
            break;
        case 2:
            memcpy(direct, plain, SIZE);
            REQUIRE_OK(submit_write_rows(lane, to, direct, &rows, &ticket));
            REQUIRE_OK(bh_wait(ticket, LONG_NS));
            model_rows(a, plain, &rows);
            break;
        case 3: {
            uint8_t *got = noise_bytes(SIZE, 9), *expected = noise_bytes(SIZE, 9);
            REQUIRE_OK(read_rows(got, from, &rows));
            model_rows(expected, b, &rows);
            CHECK(memcmp(got, expected, SIZE) == 0);
            free(got);
            free(expected);
            break;
        }
        default: {
            uint8_t *expected = noise_bytes(SIZE, 9);
            memcpy(direct, expected, SIZE);
            REQUIRE_OK(submit_read_rows(lane, direct, from, &rows, &ticket));
            REQUIRE_OK(bh_wait(ticket, LONG_NS));
            model_rows(expected, b, &rows);
            CHECK(memcmp(direct, expected, SIZE) == 0);
            free(expected);
        }
        }
        if (i % 5 < 3) check_bytes(to, a, SIZE, "after a copy");
    }
    check_bytes(from, b, SIZE, "the source");
    free(a);
    free(b);
    free(plain);
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(patterns_of_any_length_fill_any_rows, 60) {
    bh_device device = open_device();
    uint8_t *a = noise_bytes(SIZE, 4), *pattern = noise_bytes(BH_PATTERN_MAX, 5);
    bh_buffer to = bytes_buffer(device, a, SIZE);
    static const uint32_t lengths[] = {1, 2, 3, 5, 7, 8, 12, 16, 17, 24, 100, 4095, 65535, 65536};
    rng r = rng_seeded(7);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint32_t length = lengths[i];
        uint64_t count = 1 + rng_below(&r, SIZE / length), bytes = count * length;
        uint64_t offset = rng_below(&r, (uint32_t)(SIZE - bytes) + 1);
        REQUIRE_OK(bh_buffer_fill(to, offset, bytes, pattern, length));
        for (uint64_t k = 0; k < bytes; k++) a[offset + k] = pattern[k % length];
        check_bytes(to, a, SIZE, "after a fill");
        bh_transfer rows = any_rows(&r);
        rows.source_offset = UINT64_MAX; /* does not count */
        REQUIRE_OK(fill_rows(to, &rows, pattern, length));
        uint64_t pitch = rows.target_pitch ? rows.target_pitch : rows.width;
        for (uint64_t row = 0; row < rows.height; row++) {
            for (uint64_t k = 0; k < rows.width; k++)
                a[rows.target_offset + row * pitch + k] = pattern[k % length];
        }
        check_bytes(to, a, SIZE, "after a fill of rows");
    }
    free(a);
    free(pattern);
    CHECK_OK(bh_device_close(device));
}

TEST(rows_that_make_no_sense_are_refused) {
    bh_device device = open_device(), second = open_device();
    bh_buffer x = words_counting(device, 64, 1), y = words_counting(device, 64, 1);
    bh_buffer elsewhere = words_alloc(second, 64);
    bh_lane lane = open_lane(second);
    uint8_t memory[256] = {0};
    bh_ticket t = {1, 1};
    static const struct {
        uint64_t width, height, target_offset, target_pitch, source_offset, source_pitch;
    } bad[] = {{257, 1, 0, 0, 0, 0},
               {16, 17, 0, 0, 0, 0},
               {16, 16, 1, 0, 0, 0},
               {16, 16, 0, 0, 1, 0},
               {16, 2, 0, 15, 0, 16},
               {16, 2, 0, 16, 0, 15},
               {16, 2, 0, 241, 0, 16},
               {16, 2, 0, 16, 0, 241},
               {16, UINT64_MAX, 0, 16, 0, 16},
               {UINT64_MAX, 1, 0, 0, 0, 0},
               {UINT64_MAX, 2, 0, 0, 0, 0},
               {1, 3, 0, UINT64_MAX / 2, 0, 1},
               {16, 1, UINT64_MAX, 0, 0, 0},
               {16, 1, UINT64_MAX - 8, 0, 0, 0},
               {16, 1, 0, 0, UINT64_MAX - 8, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bh_transfer rows = {.request = {sizeof(bh_transfer), BH_REQUEST_TRANSFER},
                            .width = bad[i].width,
                            .height = bad[i].height,
                            .target_offset = bad[i].target_offset,
                            .target_pitch = bad[i].target_pitch,
                            .source_offset = bad[i].source_offset,
                            .source_pitch = bad[i].source_pitch};
        CHECK_REFUSED(copy_rows(x, y, &rows), BH_E_INVALID);
        CHECK_REFUSED(submit_copy_rows((bh_lane){0}, x, y, &rows, &t), BH_E_INVALID);
    }
    bh_transfer rows = {
        .request = {sizeof(bh_transfer), BH_REQUEST_TRANSFER}, .width = 16, .height = 4};
    CHECK_REFUSED(write_rows(x, NULL, &rows), BH_E_INVALID);
    CHECK_REFUSED(read_rows(NULL, x, &rows), BH_E_INVALID);
    CHECK_REFUSED(submit_read_rows((bh_lane){0}, memory, x, &rows, &t), BH_E_INVALID);
    CHECK_REFUSED(submit_write_rows(lane, x, memory, &rows, &t), BH_E_INVALID);
    CHECK_REFUSED(submit_copy_rows((bh_lane){7}, x, y, &rows, &t), BH_E_INVALID);
    CHECK_REFUSED(copy_rows(x, elsewhere, &rows), BH_E_INVALID);
    CHECK_REFUSED(copy_rows((bh_buffer){0}, y, &rows), BH_E_INVALID);
    CHECK_REFUSED(copy_rows(x, (bh_buffer){y.id ^ 1}, &rows), BH_E_INVALID);
    CHECK_REFUSED(fill_rows(x, &rows, NULL, 1), BH_E_INVALID);
    CHECK_REFUSED(fill_rows(x, &rows, memory, 0), BH_E_INVALID);
    CHECK_REFUSED(fill_rows(x, &rows, memory, 65537), BH_E_INVALID);
    CHECK_REFUSED(bh_submit(NULL, NULL, &t), BH_E_INVALID);
    rows.request.size = 7;
    CHECK_REFUSED(copy_rows(x, y, &rows), BH_E_INVALID);
    rows.request = (bh_request){sizeof rows, 77};
    CHECK_REFUSED(copy_rows(x, y, &rows), BH_E_UNSUPPORTED);
    rows.request.kind = BH_REQUEST_TRANSFER;
    rows.direction = 5;
    CHECK_REFUSED(bh_submit(&rows.request, NULL, &t), BH_E_INVALID);
    rows = bh_transfer_fill(x, 0, 16, memory, 1);
    bh_submit_options options = BH_INIT(options);
    options.flags = BH_LAUNCH_COOPERATIVE;
    CHECK_REFUSED(bh_submit(&rows.request, &options, &t), BH_E_INVALID);
    options.flags = 0;
    options.deadline_ns = 1;
    CHECK_REFUSED(bh_submit(&rows.request, &options, &t), BH_E_UNSUPPORTED);
    CHECK_EQ(t.lane, 1);
    /* Nothing to do is done at once. */
    rows = bh_transfer_init(0, 0);
    rows.height = 5;
    CHECK_OK(copy_rows(x, y, &rows));
    CHECK_OK(write_rows(x, NULL, &rows));
    CHECK_OK(read_rows(NULL, x, &rows));
    CHECK_OK(fill_rows(x, &rows, memory, 3));
    CHECK(words_count(x, 64, 1));
    CHECK_OK(bh_device_close(device));
    CHECK_OK(bh_device_close(second));
}

TEST(rows_of_one_buffer_may_interleave_and_not_overlap) {
    bh_device device = open_device();
    enum { PITCH = 64, ROWS = 8, ALL = PITCH * ROWS };
    uint8_t *a = noise_bytes(ALL, 8);
    bh_buffer x = bytes_buffer(device, a, ALL), view;
    /* The left half of each row to its right half. */
    bh_transfer rows = {.request = {sizeof(bh_transfer), BH_REQUEST_TRANSFER},
                        .width = 32,
                        .height = ROWS,
                        .target_offset = 32,
                        .target_pitch = PITCH,
                        .source_pitch = PITCH};
    REQUIRE_OK(copy_rows(x, x, &rows));
    model_rows(a, a, &rows);
    check_bytes(x, a, ALL, "interleaved");
    REQUIRE_OK(bh_buffer_view(x, 0, 0, ALL, &view));
    uint32_t refused = 0;
    for (uint64_t offset = 0; offset < 2 * PITCH; offset++) {
        rows.height = 4;
        rows.source_offset = 64;
        rows.target_offset = offset;
        uint64_t apart = offset > 64 ? offset - 64 : 64 - offset, rest = apart % PITCH;
        bool meet = rest < 32 || rest > 32;
        bh_status status = copy_rows(view, x, &rows);
        CHECK_EQ(status, meet ? BH_E_INVALID : BH_OK);
        refused += status != BH_OK;
        if (status == BH_OK) model_rows(a, a, &rows);
    }
    CHECK_EQ(refused, 2 * PITCH - 2);
    check_bytes(x, a, ALL, "after all");
    free(a);
    CHECK_OK(bh_device_close(device));
}

TEST(copies_between_devices) {
    enum { LARGE = (20 << 20) + 77 };
    bh_device one = open_device(), two = open_device();
    uint8_t *a = noise_bytes(LARGE, 11), *b = noise_bytes(LARGE, 12);
    bh_buffer x = bytes_buffer(one, a, LARGE), y = bytes_buffer(two, b, LARGE),
              z = bytes_buffer(one, b, LARGE);
    REQUIRE_OK(bh_buffer_copy(y, 5, x, 3, LARGE - 9));
    memcpy(b + 5, a + 3, LARGE - 9);
    check_bytes(y, b, LARGE, "the other device");
    REQUIRE_OK(bh_buffer_copy(z, 5, x, 3, LARGE - 9));
    check_bytes(z, b, LARGE, "the same device");
    CHECK_EQ(counters_of(two).bytes_between, LARGE - 9); /* on the device that was written */
    CHECK_EQ(counters_of(one).bytes_between, 0);
    REQUIRE_OK(bh_buffer_copy(y, 0, x, 0, 0));
    CHECK_REFUSED(bh_buffer_copy(y, 1, x, 0, LARGE), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_copy(y, 0, x, 1, LARGE), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_copy((bh_buffer){0}, 0, x, 0, 1), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_copy(x, 0, (bh_buffer){0}, 0, 1), BH_E_INVALID);
    CHECK_EQ(counters_of(two).bytes_between, LARGE - 9);
    free(a);
    free(b);
    CHECK_OK(bh_device_close(one));
    CHECK_REFUSED(bh_buffer_copy(y, 0, x, 0, 1), BH_E_INVALID);
    CHECK_OK(bh_device_close(two));
}

TEST(single_ranges_are_transfers_too) {
    bh_device device = open_device();
    bh_lane lane = open_lane(device);
    bh_buffer x = words_counting(device, 64, 1), y = words_filled(device, 64, 0);
    uint32_t plain[64], one = 7;
    bh_ticket ticket;
    bh_transfer copy = bh_transfer_copy(y, 4, x, 0, 63 * 4);
    REQUIRE_OK(transfer_on(lane, 0, &copy, &ticket));
    CHECK_OK(bh_wait(ticket, LONG_NS));
    bh_transfer read = bh_transfer_read(y, 4, plain, 63 * 4);
    CHECK_REFUSED(transfer_on(lane, 0, &read, &ticket), BH_E_INVALID);
    ticket = (bh_ticket){0};
    REQUIRE_OK(transfer_on(lane, BH_SUBMIT_WAIT, &read, &ticket));
    CHECK_OK(bh_wait(ticket, LONG_NS)); /* a ticket like any other */
    for (uint32_t i = 0; i < 63; i++) CHECK_EQ(plain[i], i + 1);
    bh_transfer fill = bh_transfer_fill(x, 0, 64 * 4, &one, 4);
    fill.width = 64 * 4 - 2; /* the last pattern is cut short */
    REQUIRE_OK(transfer_on(lane, BH_SUBMIT_WAIT, &fill, NULL));
    CHECK_EQ(word_read(x, 62), 7);
    CHECK_EQ(word_read(x, 63), 7);
    bh_transfer write = bh_transfer_write(x, 8, plain, 8);
    write.source_offset = 4;
    REQUIRE_OK(transfer_on(lane, BH_SUBMIT_WAIT, &write, NULL));
    CHECK_EQ(word_read(x, 2), 2);
    CHECK_EQ(word_read(x, 3), 3);
    CHECK_OK(bh_device_close(device));
}

/* Reads a tile, a range and nothing, with BH_SUBMIT_WAIT: each ticket has its result at once. */
static void check_waited(bh_buffer buffer, bh_lane lane, uint64_t width, uint64_t height) {
    static uint8_t plain[2 * SIZE];
    bh_transfer read = bh_transfer_read(buffer, 0, plain, width);
    bh_submit_options options = BH_INIT(options);
    bh_ticket ticket = {0, 0};
    read.height = height;
    read.source_pitch = width + 5;
    options.lane = lane;
    options.flags = BH_SUBMIT_WAIT;
    REQUIRE_OK(bh_submit(&read.request, &options, &ticket));
    CHECK_OK(bh_wait(ticket, 0));
    CHECK_STATUS(bh_cancel(ticket), BH_E_INVALID);
    CHECK_OK(bh_wait(ticket, 0));
}

TEST(a_read_that_was_waited_for_has_a_ticket_that_is_done) {
    bh_device device = open_device();
    bh_lane lane = open_lane(device);
    bh_buffer buffer;
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, 2 * SIZE, NULL, &buffer));
    for (int i = 0; i < 300; i++) {
        check_waited(buffer, lane, 100, 16);
        check_waited(buffer, lane, 100, 1);
        check_waited(buffer, lane, 0, 1);
    }
    check_waited(buffer, lane, SIZE, 1);     /* in several pieces */
    check_waited(buffer, lane, SIZE - 5, 2); /* rows that are larger than a piece */
    CHECK_OK(bh_device_close(device));
}

TEST(transfers_come_after_tickets_of_other_lanes) {
    rig r = rig_open(0);
    bh_lane other = open_lane(r.device), lane = open_lane(r.device);
    bh_buffer x = words_filled(r.device, 4, 0);
    gate g = gate_close(&r, other, 0);
    flag_wait_begun(g.flag);
    bh_submit_options options = BH_INIT(options);
    options.lane = lane;
    options.after = &g.ticket;
    options.after_count = 1;
    uint32_t word = 5;
    bh_transfer fill = bh_transfer_fill(x, 0, 16, &word, 4);
    bh_ticket ticket;
    REQUIRE_OK(bh_submit(&fill.request, &options, &ticket));
    sleep_ms(50);
    CHECK_STATUS(bh_wait(ticket, 0), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK_OK(bh_wait(g.ticket, 0));
    CHECK_EQ(word_read(x, 3), 5);
    CHECK_OK(bh_device_close(r.device));
}
