/* SPDX-License-Identifier: Apache-2.0 */
/* Images at a loss: what is untouched stays, what a lost kernel could write is suspect. */
#include <signal.h>

#include "../support/support.h"

enum { W = 16, H = 4 };

typedef struct scene {
    bh_device device;
    bh_module module;
    bh_image image;
    bh_surface surface;
} scene;

static bh_image word_image(bh_device device, uint32_t first) {
    bh_image_shape shape = BH_INIT(shape);
    bh_image image;
    uint32_t words[W * H];
    shape.type = BH_U32;
    shape.channels = 1;
    shape.width = W;
    shape.height = H;
    shape.flags = BH_IMAGE_SURFACE;
    for (uint32_t i = 0; i < W * H; i++) words[i] = first + i;
    REQUIRE_OK(bh_image_alloc(device, &shape, &image));
    REQUIRE_OK(bh_image_write(image, NULL, words, 0, 0));
    return image;
}

static scene scene_open(void) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    scene s = {.device = open_device_with(&options)};
    s.module = load_module(s.device, ptx_textures);
    s.image = word_image(s.device, 100);
    REQUIRE_OK(bh_surface_create(s.image, 0, &s.surface));
    return s;
}

static bh_status add(const scene *s, bh_surface surface) {
    return run_now(get_kernel(s->module, "surface_add"), BH_SHAPE(H, 1, 1, W, 1, 1),
                   BH_ARGS(BH_SURFACE(surface), (uint32_t)W, 1u));
}

static void check_words(bh_image image, uint32_t first) {
    uint32_t words[W * H];
    REQUIRE_OK(bh_image_read(image, NULL, words, 0, 0));
    for (uint32_t i = 0; i < W * H; i++) CHECK_EQ(words[i], first + i);
}

TEST(images_and_surfaces_survive_a_killed_worker) {
    scene s = scene_open();
    REQUIRE_OK(add(&s, s.surface));
    for (uint32_t loss = 0; loss < 3; loss++) {
        kill_worker(s.device, SIGKILL);
        REQUIRE_OK(add(&s, s.surface)); /* the handle of the new worker differs */
        check_words(s.image, 102 + loss);
    }
    CHECK_OK(bh_device_close(s.device));
}

TEST(what_a_lost_kernel_could_write_is_suspect) {
    scene s = scene_open();
    bh_image other = word_image(s.device, 7);
    bh_image_info info = BH_INIT(info);
    CHECK_STATUS(run_now(get_kernel(s.module, "surface_add_poke"), BH_SHAPE(H, 1, 1, W, 1, 1),
                         BH_ARGS(BH_SURFACE(s.surface), (uint32_t)W, 1u, NOWHERE)),
                 BH_E_FAULT);
    REQUIRE_OK(bh_image_get_info(s.image, &info));
    CHECK_EQ(info.suspect, 1);
    CHECK_STATUS(add(&s, s.surface), BH_E_STALE);
    check_words(other, 7);
    REQUIRE_OK(bh_buffer_accept(info.buffer));
    CHECK_OK(add(&s, s.surface));
    uint32_t words[W * H] = {0};
    REQUIRE_OK(bh_image_write(s.image, NULL, words, 0, 0));
    REQUIRE_OK(bh_image_get_info(s.image, &info));
    CHECK_EQ(info.suspect, 0);
    CHECK_OK(bh_device_close(s.device));
}

TEST(a_number_that_is_no_handle_is_a_fault) {
    scene s = scene_open();
    if (!is_cpu(s.device)) SKIP("only the CPU device knows its handles");
    bh_error why;
    bh_ticket ticket = submit(get_kernel(s.module, "surface_add"), BH_SHAPE(1, 1, 1, W, 1, 1),
                              BH_ARGS(UINT64_C(0x1234), (uint32_t)W, 1u), NULL);
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(ticket, &why), BH_E_FAULT);
    CHECK_STR_CONTAINS(why.message, "0x1234 is not the handle of a surface");
    CHECK_OK(add(&s, s.surface));
    check_words(s.image, 101);
    CHECK_OK(bh_device_close(s.device));
}

TEST(a_report_names_the_surface) {
    scene s = scene_open();
    char text[16384], wanted[200];
    size_t length;
    CHECK_STATUS(run_now(get_kernel(s.module, "surface_add_poke"), BH_SHAPE(H, 1, 1, W, 1, 1),
                         BH_ARGS(BH_SURFACE(s.surface), (uint32_t)W, 1u, NOWHERE)),
                 BH_E_FAULT);
    REQUIRE_OK(bh_device_get_report(s.device, 0, text, sizeof text, &length));
    snprintf(wanted, sizeof wanted,
             "argument 0: inout, surface 0x%llx, image of 16 x 4 x 1 texels, buffer of ",
             (unsigned long long)s.surface.id);
    CHECK_STR_CONTAINS(text, wanted);
    CHECK_STR_CONTAINS(text, ", bytes 0 to 256 of it, at 0x");
    CHECK_STR_CONTAINS(text, "argument 1: 4 bytes: 10 00 00 00 = 16");
    CHECK_OK(bh_device_close(s.device));
}
