/* SPDX-License-Identifier: Apache-2.0 */
/* Images, textures, surfaces and tensor maps while calls fail. */
#include <string.h>

#include "world.h"

enum { SIDE = 16, COLUMNS = 40, ROWS = 10 };

static void launch(world *w, bh_kernel kernel, bh_shape shape, bh_args args) {
    bh_ticket done;
    if (TRY(w, bh_launch(kernel, shape, args, NULL, &done))) TRY(w, bh_wait(done, WAIT_NS));
}

static bool load(world *w, const char *ptx, const char *name, bh_module *module,
                 bh_kernel *kernel) {
    if (!TRY(w, bh_module_load(w->device, ptx, strlen(ptx), module))) return false;
    if (TRY(w, bh_kernel_get(*module, name, kernel))) return true;
    TRY(w, bh_module_release(*module));
    return false;
}

static void add_to_image(world *w, bh_image image) {
    bh_module module;
    bh_kernel kernel;
    bh_surface surface;
    if (!load(w, ptx_textures, "surface_add", &module, &kernel)) return;
    if (TRY(w, bh_surface_create(image, 0, &surface))) {
        launch(w, kernel, BH_SHAPE(SIDE, 1, 1, SIDE, 1, 1),
               BH_ARGS(BH_SURFACE(surface), (uint32_t)SIDE, 1u));
        TRY(w, bh_surface_release(surface));
    }
    TRY(w, bh_module_release(module));
}

static void fetch(world *w, bh_image image) {
    bh_module module;
    bh_kernel kernel;
    bh_texture texture;
    bh_buffer places = words(w, 4 * SIDE), texels = words(w, 4 * SIDE);
    if (places.id && texels.id && TRY(w, bh_buffer_fill(places, 0, 16 * SIDE, "", 1)) &&
        load(w, ptx_textures, "fetch_2d", &module, &kernel)) {
        if (TRY(w, bh_texture_create(image, NULL, &texture))) {
            launch(w, kernel, BH_GRID(SIDE, SIDE),
                   BH_ARGS(BH_TEXTURE(texture), BH_IN(places), BH_OUT(texels), (uint32_t)SIDE));
            TRY(w, bh_texture_release(texture));
        }
        TRY(w, bh_module_release(module));
    }
    let_go(w, places);
    let_go(w, texels);
}

void act_images(world *w) {
    uint32_t pixels[SIDE * SIDE] = {0};
    bh_image image;
    bh_image_shape shape = BH_INIT(shape);
    shape.type = BH_U32;
    shape.channels = 1;
    shape.width = shape.height = SIDE;
    shape.flags = BH_IMAGE_SURFACE;
    if (!TRY(w, bh_image_alloc(w->device, &shape, &image))) return;
    bool written = TRY(w, bh_image_write(image, NULL, pixels, 0, 0));
    if (written) {
        fetch(w, image);
        add_to_image(w, image);
        if (TRY(w, bh_image_read(image, NULL, pixels, 0, 0)))
            for (int i = 1; i < SIDE * SIDE; i++) HOLDS(w, pixels[i] == pixels[0]);
    }
    TRY(w, bh_image_release(image));
}

void act_tensors(world *w) {
    bh_module module;
    bh_kernel kernel;
    bh_tensor_map map;
    bh_tensor_shape shape = BH_INIT(shape);
    shape.type = BH_U32;
    shape.rank = 2;
    shape.dimensions[0] = COLUMNS;
    shape.dimensions[1] = ROWS;
    shape.strides[0] = COLUMNS * 4;
    shape.box[0] = 16;
    shape.box[1] = 4;
    bh_buffer matrix = words(w, COLUMNS * ROWS);
    if (matrix.id && TRY(w, bh_buffer_fill(matrix, 0, COLUMNS * ROWS * 4, "", 1)) &&
        load(w, ptx_tensors, "tile_add", &module, &kernel)) {
        if (TRY(w, bh_tensor_map_create(matrix, &shape, &map))) {
            launch(w, kernel, BH_SHAPE(3, 3, 1, 64, 1, 1), BH_ARGS(BH_TENSOR_INOUT(map), 1u));
            TRY(w, bh_tensor_map_release(map));
        }
        TRY(w, bh_module_release(module));
    }
    let_go(w, matrix);
}
