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

static stage stage_open(void) {
    stage s = {.device = open_device()};
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

TEST(maps_that_cannot_be) {
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
                 {behind, "elements behind its memory"},
                 {far_behind, "elements behind its memory"}};
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
