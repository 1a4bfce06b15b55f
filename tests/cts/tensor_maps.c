/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps: what can be made, what kernels do through them, and how launches are ordered. */
#include "../support/support.h"

enum { COLUMNS = 40, ROWS = 10, WORDS = COLUMNS * ROWS, TILES_X = 3, TILES_Y = 3, TILE = 64 };

typedef struct stage {
    bh_device device;
    bh_module module;
    bh_buffer buffer;
} stage;

static bh_tensor_shape matrix(void) {
    bh_tensor_shape shape = BH_INIT(shape);
    shape.type = BH_U32;
    shape.rank = 2;
    shape.dimensions[0] = COLUMNS;
    shape.dimensions[1] = ROWS;
    shape.strides[0] = COLUMNS * 4;
    shape.box[0] = 16;
    shape.box[1] = 4;
    return shape;
}

static stage stage_open_with(uint32_t flags) {
    bh_device_options options = device_options(flags);
    stage s = {.device = open_device_with(&options)};
    uint32_t words[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) words[i] = i;
    bh_status status = bh_module_load(s.device, ptx_tensors, strlen(ptx_tensors), &s.module);
    if (status != BH_OK && !is_cpu(s.device)) {
        CHECK_OK(bh_device_close(s.device));
        SKIP("a GPU before sm_90 has no tensor maps");
    }
    REQUIRE_OK(status);
    REQUIRE_OK(bh_buffer_alloc(s.device, BH_U32, WORDS, NULL, &s.buffer));
    REQUIRE_OK(bh_buffer_write(s.buffer, 0, words, sizeof words));
    return s;
}

static stage stage_open(void) {
    return stage_open_with(0);
}

static bh_tensor_map map_over(bh_buffer buffer) {
    bh_tensor_shape shape = matrix();
    bh_tensor_map map;
    REQUIRE_OK(bh_tensor_map_create(buffer, &shape, &map));
    return map;
}

static bh_shape grid(void) {
    return BH_SHAPE(TILES_X, TILES_Y, 1, TILE, 1, 1);
}

static void check_words(bh_buffer buffer, uint32_t first) {
    uint32_t words[WORDS];
    REQUIRE_OK(bh_buffer_read(buffer, 0, words, sizeof words));
    for (uint32_t i = 0; i < WORDS; i++) CHECK_EQ(words[i], first + i);
}

TEST(boxes_are_read_and_written) {
    stage s = stage_open();
    bh_tensor_map map = map_over(s.buffer);
    bh_buffer out;
    uint32_t got[TILES_X * TILES_Y * TILE];
    REQUIRE_OK(
        run_now(get_kernel(s.module, "tile_add"), grid(), BH_ARGS(BH_TENSOR_INOUT(map), 1000u)));
    check_words(s.buffer, 1000); /* boxes at the edges did not leave the matrix */
    REQUIRE_OK(bh_buffer_alloc(s.device, BH_U32, TILES_X * TILES_Y * TILE, NULL, &out));
    REQUIRE_OK(run_now(get_kernel(s.module, "tile_read"), grid(),
                       BH_ARGS(BH_TENSOR_IN(map), BH_OUT(out))));
    REQUIRE_OK(bh_buffer_read(out, 0, got, sizeof got));
    for (uint32_t i = 0; i < TILES_X * TILES_Y * TILE; i++) {
        uint32_t x = i / TILE % TILES_X * 16 + i % 16, y = i / TILE / TILES_X * 4 + i % TILE / 16;
        CHECK_EQ(got[i], x < COLUMNS && y < ROWS ? 1000 + y * COLUMNS + x : 0);
    }
    CHECK_OK(bh_tensor_map_release(map));
    CHECK_OK(bh_device_close(s.device));
}

/* The tensor begins where the view does, and ends with it. */
TEST(a_map_over_a_view) {
    stage s = stage_open();
    bh_tensor_shape shape = matrix();
    bh_tensor_map map;
    bh_buffer view, odd;
    uint32_t words[WORDS];
    shape.dimensions[0] = 16;
    shape.dimensions[1] = 4;
    REQUIRE_OK(bh_buffer_view(s.buffer, BH_U32, COLUMNS + 8, 3 * COLUMNS + 16, &view));
    REQUIRE_OK(bh_tensor_map_create(view, &shape, &map));
    REQUIRE_OK(run_now(get_kernel(s.module, "tile_add"), BH_GRID(TILE, TILE),
                       BH_ARGS(BH_TENSOR_INOUT(map), 1000u)));
    REQUIRE_OK(bh_buffer_read(s.buffer, 0, words, sizeof words));
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t x = i % COLUMNS, y = i / COLUMNS;
        CHECK_EQ(words[i], i + (x >= 8 && x < 24 && y >= 1 && y < 5 ? 1000 : 0));
    }
    shape.dimensions[0] = 17; /* one more than the last row has */
    CHECK_STATUS(bh_tensor_map_create(view, &shape, &map), BH_E_INVALID);
    shape.dimensions[0] = 16;
    REQUIRE_OK(bh_buffer_view(s.buffer, BH_U32, 1, WORDS - 1, &odd));
    CHECK_STATUS(bh_tensor_map_create(odd, &shape, &map), BH_E_INVALID);
    CHECK_OK(bh_device_close(s.device));
}

TEST(a_kernel_cannot_write_through_an_input) {
    stage s = stage_open();
    bh_tensor_map map = map_over(s.buffer);
    CHECK_STATUS(run_now(get_kernel(s.module, "tile_add"), grid(), BH_ARGS(BH_TENSOR_IN(map), 1u)),
                 BH_E_FAULT);
    check_words(s.buffer, 0);
    CHECK_OK(bh_device_close(s.device));
}

TEST(submitted_work_keeps_what_it_uses) {
    stage s = stage_open();
    bh_tensor_map map = map_over(s.buffer);
    bh_ticket ticket =
        submit(get_kernel(s.module, "tile_add"), grid(), BH_ARGS(BH_TENSOR_INOUT(map), 5u), NULL);
    CHECK_OK(bh_tensor_map_release(map));
    CHECK_OK(bh_wait(ticket, LONG_NS));
    check_words(s.buffer, 5);
    CHECK_STATUS(
        run_now(get_kernel(s.module, "tile_add"), grid(), BH_ARGS(BH_TENSOR_INOUT(map), 5u)),
        BH_E_INVALID);
    CHECK_OK(bh_device_close(s.device));
}

/* Two lanes take turns on the matrix; each launch sees what the one before it wrote. */
TEST(lanes_are_ordered_through_the_buffer) {
    stage s = stage_open();
    bh_tensor_map map = map_over(s.buffer), other = map_over(s.buffer);
    bh_lane lanes[2];
    bh_kernel add = get_kernel(s.module, "tile_add");
    bh_ticket last = {0};
    for (int i = 0; i < 2; i++) REQUIRE_OK(bh_lane_open(s.device, NULL, &lanes[i]));
    for (uint32_t i = 0; i < 64; i++) {
        bh_launch_options options = BH_INIT(options);
        options.lane = lanes[i % 2];
        last = submit(add, grid(), BH_ARGS(BH_TENSOR_INOUT(i % 3 ? map : other), 1u), &options);
    }
    CHECK_OK(bh_wait(last, LONG_NS));
    check_words(s.buffer, 64);
    CHECK_OK(bh_device_close(s.device));
}

TEST(a_prepared_launch_keeps_its_map) {
    stage s = stage_open();
    bh_tensor_map map = map_over(s.buffer);
    bh_prepared prepared;
    bh_ticket ticket;
    REQUIRE_OK(bh_prepare(get_kernel(s.module, "tile_add"), grid(),
                          BH_ARGS(BH_TENSOR_INOUT(map), 2u), NULL, &prepared));
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(bh_prepared_launch(prepared, NULL, 0, &ticket));
        REQUIRE_OK(bh_wait(ticket, LONG_NS));
    }
    check_words(s.buffer, 6);
    CHECK_OK(bh_device_close(s.device));
}

/* ---- what shared memory gets ---- */

enum { DUMP = 4096 };

static void dump(stage *s, bh_tensor_map map, uint32_t bytes, int32_t x, int32_t y, uint8_t *got) {
    bh_buffer out;
    REQUIRE_OK(bh_buffer_alloc(s->device, BH_U8, DUMP, NULL, &out));
    REQUIRE_OK(run_now(get_kernel(s->module, "tensor_dump"), BH_GRID(64, 64),
                       BH_ARGS(BH_TENSOR_IN(map), BH_OUT(out), bytes, x, y)));
    REQUIRE_OK(bh_buffer_read(out, 0, got, DUMP));
    CHECK_OK(bh_buffer_release(out));
}

static void check_bytes(const uint8_t *got, const uint8_t *wanted, const char *what) {
    for (uint32_t i = 0; i < DUMP; i++) {
        if (got[i] == wanted[i]) continue;
        FAIL("%s: byte %u is %#x, must be %#x", what, i, got[i], wanted[i]);
        return;
    }
}

/* Rows of 16 to 128 bytes with each swizzle: 16 bytes are moved together, by bits of the address.
 * Rows that are shorter than the swizzle is wide have gaps between them. */
TEST(rows_shorter_than_the_swizzle) {
    stage s = stage_open();
    for (uint32_t swizzle = 0; swizzle < 4; swizzle++) {
        for (uint32_t columns = 4; columns <= (swizzle ? 4u << swizzle : 32); columns *= 2) {
            bh_tensor_shape shape = matrix();
            bh_tensor_map map;
            uint8_t got[DUMP], wanted[DUMP];
            uint32_t mask = (1u << swizzle) - 1, width = swizzle ? 16u << swizzle : 0;
            uint32_t pitch = columns * 4 > width ? columns * 4 : width;
            char what[64];
            shape.box[0] = columns;
            shape.box[1] = 9;
            shape.swizzle = swizzle;
            REQUIRE_OK(bh_tensor_map_create(s.buffer, &shape, &map));
            dump(&s, map, columns * 9 * 4, 0, 0, got);
            memset(wanted, 0xee, sizeof wanted);
            for (uint32_t i = 0; i < columns * 9; i++) {
                uint32_t word = i / columns * COLUMNS + i % columns;
                uint32_t at = i / columns * pitch + i % columns * 4;
                at ^= (at >> 7 & mask) << 4;
                memcpy(wanted + at, &word, 4);
            }
            snprintf(what, sizeof what, "swizzle %u, rows of %u bytes", swizzle, columns * 4);
            check_bytes(got, wanted, what);
            CHECK_OK(bh_tensor_map_release(map));
        }
    }
    CHECK_OK(bh_device_close(s.device));
}

TEST(what_is_outside_reads_as_zero_or_nan) {
    static const struct {
        bh_type type;
        uint32_t flags, bytes;
        uint64_t wanted;
    } cases[] = {{BH_F16, 0, 2, 0},
                 {BH_F16, BH_TENSOR_NAN_FILL, 2, 0x7ff7},
                 {BH_BF16, BH_TENSOR_NAN_FILL, 2, 0x7ff7},
                 {BH_F32, BH_TENSOR_NAN_FILL, 4, 0x7ff77ff7},
                 {BH_F64, BH_TENSOR_NAN_FILL, 8, 0x7ff77ff77ff77ff7}};
    stage s = stage_open();
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        bh_tensor_shape shape = matrix();
        bh_tensor_map map;
        uint8_t got[DUMP], wanted[DUMP];
        shape.type = cases[n].type;
        shape.flags = cases[n].flags;
        shape.dimensions[0] = 4;
        shape.box[0] = 16;
        shape.box[1] = 1;
        REQUIRE_OK(bh_tensor_map_create(s.buffer, &shape, &map));
        dump(&s, map, 16 * cases[n].bytes, 8, 0, got); /* all of it is outside */
        memset(wanted, 0xee, sizeof wanted);
        for (uint32_t i = 0; i < 16; i++)
            memcpy(wanted + i * cases[n].bytes, &cases[n].wanted, cases[n].bytes);
        check_bytes(got, wanted, bh_type_name(cases[n].type));
        CHECK_OK(bh_tensor_map_release(map));
    }
    CHECK_OK(bh_device_close(s.device));
}

/* In the first dimension: at a multiple of 16 bytes. */
TEST(a_box_that_begins_between_16_bytes_is_a_fault) {
    static const struct {
        bh_type type;
        int32_t at;
        bool good;
    } cases[] = {{BH_F16, 8, true},  {BH_F16, 4, false}, {BH_U32, -4, true},
                 {BH_U32, 2, false}, {BH_F64, 2, true},  {BH_F64, 1, false}};
    stage s = stage_open();
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        bh_tensor_shape shape = matrix();
        bh_tensor_map map;
        uint32_t bytes = 16 * (uint32_t)bh_type_size(cases[n].type);
        bh_buffer out = words_alloc(s.device, DUMP / 4);
        shape.type = cases[n].type;
        shape.dimensions[0] = 16;
        shape.box[1] = 1;
        REQUIRE_OK(bh_tensor_map_create(s.buffer, &shape, &map));
        CHECK_STATUS(run_now(get_kernel(s.module, "tensor_dump"), BH_GRID(64, 64),
                             BH_ARGS(BH_TENSOR_IN(map), BH_OUT(out), bytes, cases[n].at, 0)),
                     cases[n].good ? BH_OK : BH_E_FAULT);
        CHECK_OK(bh_tensor_map_release(map));
        CHECK_OK(bh_buffer_release(out));
    }
    CHECK_OK(bh_device_close(s.device));
}

/* Loads of .tf32 round to 10 bits of fraction, ties to even. Those of .ftz change nothing. */
TEST(types_that_change_numbers) {
    static const uint32_t given[4] = {0x3f801000, 0x3f803000, 0x3f801001, 0x80000123};
    static const struct {
        uint32_t flags, wanted[4];
    } cases[] = {
        {0, {0x3f801000, 0x3f803000, 0x3f801001, 0x80000123}},
        {BH_TENSOR_FTZ, {0x3f801000, 0x3f803000, 0x3f801001, 0x80000123}},
        {BH_TENSOR_TF32, {0x3f800000, 0x3f804000, 0x3f802000, 0x80000000}},
        {BH_TENSOR_TF32 | BH_TENSOR_FTZ, {0x3f800000, 0x3f804000, 0x3f802000, 0x80000000}}};
    stage s = stage_open();
    REQUIRE_OK(bh_buffer_write(s.buffer, 0, given, sizeof given));
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        bh_tensor_shape shape = matrix();
        bh_tensor_map map;
        uint8_t got[DUMP];
        uint32_t words[4];
        shape.type = BH_F32;
        shape.flags = cases[n].flags;
        shape.box[0] = 4;
        shape.box[1] = 1;
        REQUIRE_OK(bh_tensor_map_create(s.buffer, &shape, &map));
        dump(&s, map, 16, 0, 0, got);
        memcpy(words, got, sizeof words);
        for (int i = 0; i < 4; i++)
            if (words[i] != cases[n].wanted[i])
                FAIL("flags %u: %#x gives %#x, must be %#x", cases[n].flags, given[i], words[i],
                     cases[n].wanted[i]);
        CHECK_OK(bh_tensor_map_release(map));
    }
    CHECK_OK(bh_device_close(s.device));
}

/* Two images of 5 x 6 pixels with 4 channels, a filter of 3 x 3 with padding of 1. */
TEST(pixels_of_a_filter) {
    enum { WIDTH = 5, HEIGHT = 6, PIXELS = 40 };
    stage s = stage_open();
    bh_tensor_shape shape = BH_INIT(shape);
    bh_tensor_map map;
    bh_buffer out;
    uint8_t got[DUMP], wanted[DUMP];
    shape.type = BH_U32;
    shape.rank = 4;
    shape.flags = BH_TENSOR_IM2COL;
    shape.dimensions[0] = shape.channels = 4;
    shape.dimensions[1] = WIDTH;
    shape.dimensions[2] = HEIGHT;
    shape.dimensions[3] = 2;
    shape.strides[0] = 16;
    shape.strides[1] = 16 * WIDTH;
    shape.strides[2] = 16 * WIDTH * HEIGHT;
    shape.pixels = PIXELS;
    for (int i = 0; i < 2; i++) shape.lower[i] = shape.upper[i] = -1;
    REQUIRE_OK(bh_tensor_map_create(s.buffer, &shape, &map));
    REQUIRE_OK(bh_buffer_alloc(s.device, BH_U8, DUMP, NULL, &out));
    REQUIRE_OK(run_now(get_kernel(s.module, "tensor_dump_pixels"), BH_GRID(64, 64),
                       BH_ARGS(BH_TENSOR_IN(map), BH_OUT(out), (uint32_t)PIXELS * 16, (int32_t)2,
                               (int32_t)-1, (uint16_t)2, (uint16_t)1)));
    REQUIRE_OK(bh_buffer_read(out, 0, got, DUMP));
    memset(wanted, 0xee, sizeof wanted);
    for (int i = 0; i < PIXELS; i++) { /* corners from (2, -1) on, in images of 5 x 6 of them */
        int corner = 3 + i, n = corner / (WIDTH * HEIGHT), place = corner % (WIDTH * HEIGHT);
        int x = place % WIDTH - 1 + 2, y = place / WIDTH - 1 + 1;
        bool inside = x < WIDTH && y < HEIGHT && y >= 0 && x >= 0;
        for (uint32_t c = 0; c < 4; c++) {
            uint32_t word = inside ? (uint32_t)((n * HEIGHT + y) * WIDTH + x) * 4 + c : 0;
            memcpy(wanted + i * 16 + c * 4, &word, 4);
        }
    }
    check_bytes(got, wanted, "pixels");
    CHECK_OK(bh_device_close(s.device));
}

/* ---- checks ---- */

TEST(checks_find_nothing_in_correct_kernels) {
    if (strcmp(test_device(), "cpu") != 0) SKIP("only the CPU device checks");
    stage s = stage_open_with(BH_DEVICE_CHECK);
    bh_tensor_map map = map_over(s.buffer);
    bh_buffer out;
    REQUIRE_OK(bh_buffer_alloc(s.device, BH_U32, TILES_X * TILES_Y * TILE, NULL, &out));
    REQUIRE_OK(
        run_now(get_kernel(s.module, "tile_add"), grid(), BH_ARGS(BH_TENSOR_INOUT(map), 1000u)));
    REQUIRE_OK(run_now(get_kernel(s.module, "tile_read"), grid(),
                       BH_ARGS(BH_TENSOR_IN(map), BH_OUT(out))));
    check_words(s.buffer, 1000);
    CHECK_OK(bh_device_close(s.device));
}

/* Blocks store to the same box. */
TEST(checks_find_a_race_between_boxes) {
    if (strcmp(test_device(), "cpu") != 0) SKIP("only the CPU device checks");
    stage s = stage_open_with(BH_DEVICE_CHECK);
    bh_tensor_shape shape = matrix();
    bh_tensor_map map;
    bh_error why;
    shape.strides[0] = 0; /* all rows are one */
    REQUIRE_OK(bh_tensor_map_create(s.buffer, &shape, &map));
    bh_ticket ticket = submit(get_kernel(s.module, "tile_add"), BH_SHAPE(1, 2, 1, TILE, 1, 1),
                              BH_ARGS(BH_TENSOR_INOUT(map), 1u), NULL);
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(ticket, &why), BH_E_FAULT);
    CHECK_STR_CONTAINS(why.message, "race");
    CHECK_OK(bh_device_close(s.device));
}

/* Memory that nobody wrote, read through a map. */
TEST(checks_find_reads_of_unwritten_memory) {
    if (strcmp(test_device(), "cpu") != 0) SKIP("only the CPU device checks");
    stage s = stage_open_with(BH_DEVICE_CHECK);
    bh_buffer fresh, out;
    bh_error why;
    REQUIRE_OK(bh_buffer_alloc(s.device, BH_U32, WORDS, NULL, &fresh));
    REQUIRE_OK(bh_buffer_alloc(s.device, BH_U32, TILES_X * TILES_Y * TILE, NULL, &out));
    bh_ticket ticket = submit(get_kernel(s.module, "tile_read"), grid(),
                              BH_ARGS(BH_TENSOR_IN(map_over(fresh)), BH_OUT(out)), NULL);
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(ticket, &why), BH_E_FAULT);
    CHECK_STR_CONTAINS(why.message, "written");
    CHECK_OK(bh_device_close(s.device));
}

/* ---- what is refused ---- */

typedef void change(bh_tensor_shape *shape);

#define CHANGE(name, ...)                                                                          \
    static void name(bh_tensor_shape *s) {                                                         \
        __VA_ARGS__;                                                                               \
    }
CHANGE(no_rank, s->rank = 0)
CHANGE(large_rank, s->rank = 6)
CHANGE(wrong_type, s->type = BH_I8)
CHANGE(tf32_of_integers, s->flags = BH_TENSOR_TF32)
CHANGE(unknown_flag, s->flags = 1u << 20)
CHANGE(empty, s->dimensions[1] = 0)
CHANGE(large, s->dimensions[0] = (UINT64_C(1) << 32) + 1)
CHANGE(odd_stride, s->strides[0] = 168)
CHANGE(long_stride, s->strides[0] = UINT64_C(1) << 40)
CHANGE(no_box, s->box[0] = 0)
CHANGE(large_box, s->box[1] = 257)
CHANGE(odd_row, s->box[0] = 15)
CHANGE(large_step, s->steps[1] = 9)
CHANGE(long_row, s->swizzle = BH_SWIZZLE_32)
CHANGE(no_swizzle, s->swizzle = 4)
CHANGE(no_promotion, s->promotion = 4)
CHANGE(no_interleave, s->interleave = 3)
CHANGE(low_interleave, s->interleave = BH_INTERLEAVE_16)
CHANGE(low_im2col, s->flags = BH_TENSOR_IM2COL)
CHANGE(nan_of_integers, s->flags = BH_TENSOR_NAN_FILL)
CHANGE(behind, s->dimensions[1] = ROWS + 1)
CHANGE(far_behind, s->dimensions[1] = UINT64_C(1) << 32; s->strides[0] = (UINT64_C(1) << 40) - 16)

TEST(invalid_maps_are_refused) {
    static const struct {
        change *change;
        const char *says;
    } cases[] = {{no_rank, "a rank that is not 1 to 5"},
                 {large_rank, "rank 6"},
                 {wrong_type, "a type that elements"},
                 {tf32_of_integers, "a type that elements"},
                 {unknown_flag, "unknown flags"},
                 {empty, "a dimension that is not 1 to 2^32"},
                 {large, "a dimension that is not 1 to 2^32"},
                 {odd_stride, "a stride that is not a multiple of 16"},
                 {long_stride, "a stride of 2^40 or more"},
                 {no_box, "a box that is not 1 to 256"},
                 {large_box, "box 16 x 257"},
                 {odd_row, "rows of the box that are not multiples of 16 bytes"},
                 {large_step, "a step that is not 1 to 8"},
                 {long_row, "rows of the box that are longer than the swizzle"},
                 {no_swizzle, "an unknown swizzle"},
                 {no_promotion, "an unknown promotion"},
                 {no_interleave, "below 3 with an interleave"},
                 {low_interleave, "a rank below 3 with an interleave"},
                 {low_im2col, "a rank below 3 with im2col"},
                 {nan_of_integers, "a fill of NaN with integers"},
                 {behind, "elements beyond the end of its memory"},
                 {far_behind, "elements beyond the end of its memory"}};
    bh_device device = open_device();
    bh_buffer buffer;
    REQUIRE_OK(bh_buffer_alloc(device, BH_U32, WORDS, NULL, &buffer));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bh_tensor_shape shape = matrix();
        bh_tensor_map map = {7};
        bh_error why;
        cases[i].change(&shape);
        CHECK_STATUS(bh_tensor_map_create(buffer, &shape, &map), BH_E_INVALID);
        bh_last_error(&why);
        CHECK_STR_CONTAINS(why.message, cases[i].says);
    }
    CHECK_OK(bh_device_close(device));
}

TEST(corners_and_pixels) {
    bh_device device = open_device();
    bh_buffer buffer;
    bh_tensor_map map;
    bh_tensor_shape shape = BH_INIT(shape);
    REQUIRE_OK(bh_buffer_alloc(device, BH_F16, 1 << 16, NULL, &buffer));
    shape.type = BH_F16;
    shape.rank = 4;
    shape.flags = BH_TENSOR_IM2COL | BH_TENSOR_NAN_FILL;
    for (int i = 0; i < 4; i++) shape.dimensions[i] = i ? 8 : 64;
    shape.strides[0] = 128;
    shape.strides[1] = 1024;
    shape.strides[2] = 8192;
    shape.channels = 64;
    shape.pixels = 32;
    shape.lower[0] = shape.lower[1] = shape.upper[0] = shape.upper[1] = -1;
    shape.swizzle = BH_SWIZZLE_128;
    REQUIRE_OK(bh_tensor_map_create(buffer, &shape, &map));
    CHECK_OK(bh_tensor_map_release(map));
    CHECK_STATUS(bh_tensor_map_release(map), BH_E_INVALID);
    shape.lower[1] = 128;
    CHECK_STATUS(bh_tensor_map_create(buffer, &shape, &map), BH_E_INVALID);
    shape.lower[1] = 8;
    CHECK_STATUS(bh_tensor_map_create(buffer, &shape, &map),
                 BH_E_INVALID); /* behind the upper one */
    shape.lower[1] = 0;
    shape.pixels = 1025;
    CHECK_STATUS(bh_tensor_map_create(buffer, &shape, &map), BH_E_INVALID);
    shape.pixels = 1;
    shape.channels = 0;
    CHECK_STATUS(bh_tensor_map_create(buffer, &shape, &map), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

TEST(the_cpu_device_has_no_interleave) {
    bh_device device = open_device();
    bh_buffer buffer;
    bh_tensor_map map;
    bh_tensor_shape shape = matrix();
    if (!is_cpu(device)) SKIP("about the CPU device");
    REQUIRE_OK(bh_buffer_alloc(device, BH_U32, WORDS, NULL, &buffer));
    shape.rank = 3;
    shape.dimensions[2] = shape.box[2] = 1;
    shape.strides[1] = 1600;
    shape.interleave = BH_INTERLEAVE_16;
    CHECK_STATUS(bh_tensor_map_create(buffer, &shape, &map), BH_E_UNSUPPORTED);
    CHECK_OK(bh_device_close(device));
}

TEST(arguments_of_the_wrong_kind) {
    stage s = stage_open();
    bh_tensor_map map = map_over(s.buffer);
    bh_module basic = load_module(s.device, ptx_basic);
    bh_kernel add = get_kernel(s.module, "tile_add");
    bh_error why;
    CHECK_STATUS(
        run_now(get_kernel(basic, "add_one"), BH_GRID(4, 4), BH_ARGS(BH_TENSOR_INOUT(map), 4u)),
        BH_E_LAUNCH);
    bh_last_error(&why);
    CHECK_STR_CONTAINS(why.message, "is a tensor map, its parameter is");
    CHECK_STATUS(run_now(add, grid(), BH_ARGS(BH_INOUT(s.buffer), 1u)), BH_E_LAUNCH);
    CHECK_STATUS(run_now(add, grid(), BH_ARGS(bh_arg_tensor_map(map, 0), 1u)), BH_E_INVALID);
    CHECK_STATUS(run_now(add, grid(), BH_ARGS(bh_arg_tensor_map(map, 4), 1u)), BH_E_INVALID);
    bh_arg texture = BH_TENSOR_IN(map);
    texture.kind = BH_ARG_TEXTURE;
    CHECK_STATUS(run_now(add, grid(), BH_ARGS(texture, 1u)), BH_E_LAUNCH);
    CHECK_OK(bh_device_close(s.device));
}
