/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps at a loss: they stay, and what a lost kernel could write through one is suspect. */
#include <signal.h>

#include "../support/support.h"

enum { W = 16, H = 8 };

typedef struct scene {
    bh_device device;
    bh_module module;
    bh_buffer buffer;
    bh_tensor_map map;
} scene;

static void fill(bh_buffer buffer, uint32_t first) {
    uint32_t words[W * H];
    for (uint32_t i = 0; i < W * H; i++) words[i] = first + i;
    REQUIRE_OK(bh_buffer_write(buffer, 0, words, sizeof words));
}

static bh_tensor_shape matrix(uint64_t stride) {
    bh_tensor_shape shape = BH_INIT(shape);
    shape.type = BH_U32;
    shape.rank = 2;
    shape.dimensions[0] = shape.box[0] = W;
    shape.dimensions[1] = H;
    shape.strides[0] = stride;
    shape.box[1] = 4;
    return shape;
}

static scene scene_open(void) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    scene s = {.device = open_device_with(&options)};
    bh_tensor_shape shape = matrix(W * 4);
    if (bh_module_load(s.device, ptx_tensors, strlen(ptx_tensors), &s.module) != BH_OK &&
        !is_cpu(s.device))
        SKIP("a GPU before sm_90 has no tensor maps");
    REQUIRE_OK(bh_buffer_alloc(s.device, BH_U32, W * H, NULL, &s.buffer));
    fill(s.buffer, 100);
    REQUIRE_OK(bh_tensor_map_create(s.buffer, &shape, &s.map));
    return s;
}

static bh_status add(const scene *s) {
    return run_now(get_kernel(s->module, "tile_add"), BH_SHAPE(1, H / 4, 1, 64, 1, 1),
                   BH_ARGS(BH_TENSOR_INOUT(s->map), 1u));
}

static void check_words(bh_buffer buffer, uint32_t first) {
    uint32_t words[W * H];
    REQUIRE_OK(bh_buffer_read(buffer, 0, words, sizeof words));
    for (uint32_t i = 0; i < W * H; i++) CHECK_EQ(words[i], first + i);
}

TEST(maps_survive_a_killed_worker) {
    scene s = scene_open();
    REQUIRE_OK(add(&s));
    for (uint32_t loss = 0; loss < 3; loss++) {
        kill_worker(s.device, SIGKILL);
        REQUIRE_OK(add(&s));
        check_words(s.buffer, 102 + loss);
    }
    CHECK_OK(bh_device_close(s.device));
}

static void poke(const scene *s, bh_arg map) {
    CHECK_STATUS(run_now(get_kernel(s->module, "tile_add_poke"), BH_SHAPE(1, H / 4, 1, 64, 1, 1),
                         BH_ARGS(map, 1u, NOWHERE)),
                 BH_E_FAULT);
}

TEST(what_a_lost_kernel_could_write_is_suspect) {
    scene s = scene_open();
    bh_buffer_info info = BH_INIT(info);
    poke(&s, BH_TENSOR_INOUT(s.map));
    REQUIRE_OK(bh_buffer_get_info(s.buffer, &info));
    CHECK_EQ(info.suspect, 1);
    CHECK_STATUS(add(&s), BH_E_STALE);
    fill(s.buffer, 7);
    REQUIRE_OK(add(&s));
    check_words(s.buffer, 8);
    CHECK_OK(bh_device_close(s.device));
}

TEST(what_a_lost_kernel_could_only_read_is_intact) {
    scene s = scene_open();
    bh_buffer_info info = BH_INIT(info);
    poke(&s, BH_TENSOR_IN(s.map));
    REQUIRE_OK(bh_buffer_get_info(s.buffer, &info));
    CHECK_EQ(info.suspect, 0);
    check_words(s.buffer, 100);
    REQUIRE_OK(add(&s));
    CHECK_OK(bh_device_close(s.device));
}

/* A buffer of `rows` rows, suspect, after an output through a map of H rows, which are `stride`
 * bytes apart. */
static void check_output(uint32_t rows, uint64_t stride, bool cleared) {
    scene s = scene_open();
    bh_buffer buffer;
    bh_tensor_map map;
    bh_tensor_shape shape = matrix(stride);
    bh_buffer_info info = BH_INIT(info);
    uint32_t word, last = rows * W - 1;
    REQUIRE_OK(bh_buffer_alloc(s.device, BH_U32, rows * W, NULL, &buffer));
    REQUIRE_OK(bh_buffer_fill(buffer, 0, rows * W * 4, &(uint32_t){0}, 4));
    REQUIRE_OK(bh_tensor_map_create(buffer, &shape, &map));
    poke(&s, BH_TENSOR_INOUT(map));
    REQUIRE_OK(run_now(get_kernel(s.module, "tile_add"), BH_SHAPE(1, H / 4, 1, 64, 1, 1),
                       BH_ARGS(BH_TENSOR_OUT(map), 1u)));
    REQUIRE_OK(bh_buffer_get_info(buffer, &info));
    CHECK_EQ(info.suspect, !cleared);
    CHECK_STATUS(bh_buffer_read(buffer, last * 4, &word, 4), cleared ? BH_OK : BH_E_STALE);
    CHECK_OK(bh_device_close(s.device));
}

TEST(an_output_that_fills_its_buffer_makes_it_good) {
    check_output(H, W * 4, true);
}

TEST(an_output_of_a_part_leaves_the_buffer_suspect) {
    check_output(H + 1, W * 4, false);
}

TEST(an_output_with_gaps_leaves_the_buffer_suspect) {
    check_output(2 * H - 1, W * 8, false);
}

TEST(a_report_names_the_map) {
    scene s = scene_open();
    char text[16384], wanted[200];
    size_t length;
    bh_tensor_map gone, map = s.map;
    bh_tensor_shape shape = matrix(W * 4);
    for (int released = 0; released < 2; released++) {
        REQUIRE_OK(bh_tensor_map_create(s.buffer, &shape, &gone));
        bh_ticket ticket =
            submit(get_kernel(s.module, "tile_add_poke"), BH_SHAPE(1, H / 4, 1, 64, 1, 1),
                   BH_ARGS(BH_TENSOR_INOUT(released ? gone : map), 1u, NOWHERE), NULL);
        CHECK_OK(bh_tensor_map_release(gone));
        CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
        REQUIRE_OK(bh_device_get_report(s.device, 0, text, sizeof text, &length));
        snprintf(wanted, sizeof wanted,
                 "argument 0: inout, tensor map 0x%llx, buffer of u32, 512 bytes",
                 (unsigned long long)map.id);
        if (!released) CHECK_STR_CONTAINS(text, wanted);
        fill(s.buffer, 7);
    }
    CHECK_OK(bh_device_close(s.device));
}
