/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills of rows, patterns of any length, copies between devices. */
#include "../support/support.h"

enum { SIZE = 900000 };

static uint8_t *noise(size_t size, uint32_t seed) {
    uint8_t *bytes = malloc(size);
    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24);
    }
    return bytes;
}

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

static void model_rows(uint8_t *target, const uint8_t *source, const bh_rows *rows) {
    uint64_t to = rows->target_pitch ? rows->target_pitch : rows->width;
    uint64_t from = rows->source_pitch ? rows->source_pitch : rows->width;
    for (uint64_t i = 0; i < rows->height; i++)
        memcpy(target + rows->target_offset + i * to, source + rows->source_offset + i * from,
               rows->width);
}

/* Rows that fit into SIZE bytes on both sides. */
static bh_rows any_rows(rng *r) {
    bh_rows rows = BH_INIT(rows);
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
    uint8_t *a = noise(SIZE, 1), *b = noise(SIZE, 2), *plain = noise(SIZE, 3);
    bh_buffer to = bytes_buffer(device, a, SIZE), from = bytes_buffer(device, b, SIZE);
    void *direct;
    REQUIRE_OK(bh_host_alloc(device, SIZE, &direct));
    rng r = rng_seeded(6);
    for (int i = 0; i < 60; i++) {
        bh_rows rows = any_rows(&r);
        bh_ticket ticket;
        switch (i % 5) {
        case 0:
            REQUIRE_OK(bh_buffer_copy_2d(to, from, &rows));
            model_rows(a, b, &rows);
            break;
        case 1:
            REQUIRE_OK(bh_buffer_write_2d(to, plain, &rows));
            model_rows(a, plain, &rows);
            break;
        case 2:
            memcpy(direct, plain, SIZE);
            REQUIRE_OK(bh_submit_write_2d(lane, to, direct, &rows, &ticket));
            REQUIRE_OK(bh_wait(ticket, LONG_NS));
            model_rows(a, plain, &rows);
            break;
        case 3: {
            uint8_t *got = noise(SIZE, 9), *expected = noise(SIZE, 9);
            REQUIRE_OK(bh_buffer_read_2d(got, from, &rows));
            model_rows(expected, b, &rows);
            CHECK(memcmp(got, expected, SIZE) == 0);
            free(got);
            free(expected);
            break;
        }
        default: {
            uint8_t *expected = noise(SIZE, 9);
            memcpy(direct, expected, SIZE);
            REQUIRE_OK(bh_submit_read_2d(lane, direct, from, &rows, &ticket));
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
    uint8_t *a = noise(SIZE, 4), *pattern = noise(BH_PATTERN_MOST, 5);
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
        bh_rows rows = any_rows(&r);
        rows.source_offset = UINT64_MAX; /* does not count */
        REQUIRE_OK(bh_buffer_fill_2d(to, &rows, pattern, length));
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
        bh_rows rows = {.size = sizeof rows,
                        .width = bad[i].width,
                        .height = bad[i].height,
                        .target_offset = bad[i].target_offset,
                        .target_pitch = bad[i].target_pitch,
                        .source_offset = bad[i].source_offset,
                        .source_pitch = bad[i].source_pitch};
        CHECK_REFUSED(bh_buffer_copy_2d(x, y, &rows), BH_E_INVALID);
        CHECK_REFUSED(bh_submit_copy_2d((bh_lane){0}, x, y, &rows, &t), BH_E_INVALID);
    }
    bh_rows rows = {.size = sizeof rows, .width = 16, .height = 4};
    CHECK_REFUSED(bh_buffer_copy_2d(x, y, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_write_2d(x, NULL, &rows), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_read_2d(NULL, x, &rows), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_read_2d((bh_lane){0}, memory, x, &rows, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_write_2d(lane, x, memory, &rows, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_copy_2d((bh_lane){7}, x, y, &rows, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_copy_2d(x, elsewhere, &rows), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_copy_2d((bh_buffer){0}, y, &rows), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_copy_2d(x, (bh_buffer){y.id ^ 1}, &rows), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill_2d(x, &rows, NULL, 1), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill_2d(x, &rows, memory, 0), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill_2d(x, &rows, memory, 65537), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill_2d(x, NULL, memory, 1), BH_E_INVALID);
    rows.size = 8;
    CHECK_REFUSED(bh_buffer_copy_2d(x, y, &rows), BH_E_INVALID);
    CHECK_EQ(t.lane, 1);
    /* Nothing to do is done at once. */
    rows = (bh_rows){.size = sizeof rows, .width = 16, .height = 0};
    CHECK_OK(bh_buffer_copy_2d(x, y, &rows));
    CHECK_OK(bh_buffer_write_2d(x, NULL, &rows));
    CHECK_OK(bh_buffer_read_2d(NULL, x, &rows));
    CHECK_OK(bh_buffer_fill_2d(x, &rows, memory, 3));
    CHECK(words_count(x, 64, 1));
    CHECK_OK(bh_device_close(device));
    CHECK_OK(bh_device_close(second));
}

TEST(rows_of_one_buffer_may_interleave_and_not_overlap) {
    bh_device device = open_device();
    enum { PITCH = 64, ROWS = 8, ALL = PITCH * ROWS };
    uint8_t *a = noise(ALL, 8);
    bh_buffer x = bytes_buffer(device, a, ALL), view;
    /* The left half of each row to its right half. */
    bh_rows rows = {.size = sizeof rows,
                    .width = 32,
                    .height = ROWS,
                    .target_offset = 32,
                    .target_pitch = PITCH,
                    .source_pitch = PITCH};
    REQUIRE_OK(bh_buffer_copy_2d(x, x, &rows));
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
        bh_status status = bh_buffer_copy_2d(view, x, &rows);
        CHECK_EQ(status, meet ? BH_E_INVALID : BH_OK);
        refused += status != BH_OK;
        if (status == BH_OK) model_rows(a, a, &rows);
    }
    CHECK_EQ(refused, 2 * PITCH - 2);
    check_bytes(x, a, ALL, "after all");
    free(a);
    CHECK_OK(bh_device_close(device));
}

TEST(copies_between_devices_say_which_way_they_went) {
    enum { LARGE = (20 << 20) + 77 };
    bh_device one = open_device(), two = open_device();
    uint8_t *a = noise(LARGE, 11), *b = noise(LARGE, 12);
    bh_buffer x = bytes_buffer(one, a, LARGE), y = bytes_buffer(two, b, LARGE),
              z = bytes_buffer(one, b, LARGE);
    uint32_t way = 0;
    REQUIRE_OK(bh_copy_between(y, 5, x, 3, LARGE - 9, &way));
    CHECK_EQ(way, BH_WAY_HOST);
    memcpy(b + 5, a + 3, LARGE - 9);
    check_bytes(y, b, LARGE, "the other device");
    REQUIRE_OK(bh_copy_between(z, 5, x, 3, LARGE - 9, &way));
    CHECK_EQ(way, BH_WAY_WITHIN);
    check_bytes(z, b, LARGE, "the same device");
    REQUIRE_OK(bh_copy_between(y, 0, x, 0, 0, NULL));
    way = 9;
    CHECK_REFUSED(bh_copy_between(y, 1, x, 0, LARGE, &way), BH_E_INVALID);
    CHECK_REFUSED(bh_copy_between(y, 0, x, 1, LARGE, &way), BH_E_INVALID);
    CHECK_REFUSED(bh_copy_between((bh_buffer){0}, 0, x, 0, 1, &way), BH_E_INVALID);
    CHECK_REFUSED(bh_copy_between(x, 0, (bh_buffer){0}, 0, 1, &way), BH_E_INVALID);
    CHECK_EQ(way, 9);
    free(a);
    free(b);
    CHECK_OK(bh_device_close(one));
    CHECK_REFUSED(bh_copy_between(y, 0, x, 0, 1, &way), BH_E_INVALID);
    CHECK_OK(bh_device_close(two));
}
