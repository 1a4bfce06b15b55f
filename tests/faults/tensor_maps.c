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

static scene scene_open(void) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    scene s = {.device = open_device_with(&options)};
    bh_tensor_shape shape = BH_INIT(shape);
    shape.type = BH_U32;
    shape.rank = 2;
    shape.dimensions[0] = shape.box[0] = W;
    shape.dimensions[1] = H;
    shape.strides[0] = W * 4;
    shape.box[1] = 4;
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
