/* SPDX-License-Identifier: Apache-2.0 */
/* Images, textures and surfaces: what kernels read and write through them, on every device. */
#include <math.h>

#include "../support/support.h"

enum { MAX = 64 };

typedef struct stage {
    bh_device device;
    bh_module module;
    bh_buffer in, out;
    float at[MAX][4], got[MAX][4];
} stage;

static void stage_open(stage *s) {
    memset(s, 0, sizeof *s);
    s->device = open_device();
    s->module = load_module(s->device, ptx_textures);
    REQUIRE_OK(bh_buffer_alloc(s->device, BH_F32, MAX * 4, NULL, &s->in));
    REQUIRE_OK(bh_buffer_alloc(s->device, BH_F32, MAX * 4, NULL, &s->out));
}

static void stage_close(stage *s) {
    CHECK_OK(bh_device_close(s->device));
}

/* Runs a kernel on the coordinates in s->at; the results are in s->got. */
static void fetch(stage *s, const char *kernel, bh_texture texture) {
    REQUIRE_OK(bh_buffer_write(s->in, 0, s->at, sizeof s->at));
    REQUIRE_OK(run_now(get_kernel(s->module, kernel), BH_GRID(MAX, 32),
                       BH_ARGS(BH_TEXTURE(texture), BH_IN(s->in), BH_OUT(s->out), (uint32_t)MAX)));
    REQUIRE_OK(bh_buffer_read(s->out, 0, s->got, sizeof s->got));
}

static uint32_t bits(float f) {
    uint32_t word;
    memcpy(&word, &f, 4);
    return word;
}

static float of_bits(uint32_t word) {
    float f;
    memcpy(&f, &word, 4);
    return f;
}

static bh_image_shape shape_of(uint32_t width, uint32_t height, uint32_t depth) {
    bh_image_shape shape = BH_INIT(shape);
    shape.type = BH_F32;
    shape.channels = 1;
    shape.width = width;
    shape.height = height;
    shape.depth = depth;
    return shape;
}

/* An image whose texel (x, y, z) of level 0 is x + 100 y + 10000 z. */
static bh_image counted_image(stage *s, const bh_image_shape *shape, uint32_t planes) {
    bh_image image;
    uint32_t height = shape->height ? shape->height : 1;
    size_t count = (size_t)shape->width * height * planes;
    float *texels = malloc(count * 4);
    for (size_t i = 0; i < count; i++)
        texels[i] = (float)(i % shape->width + i / shape->width % height * 100 +
                            i / shape->width / height * 10000);
    REQUIRE_OK(bh_image_alloc(s->device, shape, &image));
    REQUIRE_OK(bh_image_write(image, NULL, texels, 0, 0));
    free(texels);
    return image;
}

static bh_texture texture_over(bh_image image, uint32_t flags, uint32_t mode) {
    bh_sampling how = BH_INIT(how);
    bh_texture texture;
    how.flags = flags;
    how.address[0] = how.address[1] = how.address[2] = mode;
    how.border[0] = -1;
    REQUIRE_OK(bh_texture_create(image, &how, &texture));
    return texture;
}

TEST(texels_of_every_shape) {
    stage s;
    stage_open(&s);
    bh_image_shape one = shape_of(8, 0, 0), two = shape_of(8, 4, 0), three = shape_of(8, 4, 3);
    bh_image_shape layers = shape_of(8, 4, 0), line = shape_of(8, 0, 0);
    layers.layers = line.layers = 3;
    const struct {
        const char *kernel;
        bh_image_shape *shape;
        uint32_t planes;
    } cases[] = {{"fetch_1d", &one, 1},
                 {"fetch_2d", &two, 1},
                 {"fetch_3d", &three, 3},
                 {"fetch_a1d", &line, 3},
                 {"fetch_a2d", &layers, 3}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        bh_image image = counted_image(&s, cases[n].shape, cases[n].planes);
        bh_texture texture = texture_over(image, 0, BH_ADDRESS_CLAMP);
        bool tall = cases[n].shape->height != 0;
        for (uint32_t i = 0; i < MAX; i++) {
            uint32_t z = i % cases[n].planes;
            s.at[i][0] = (float)(i % 8) + 0.5f;
            s.at[i][1] = (float)(i / 8 % 4) + 0.25f;
            s.at[i][2] = (float)z + 0.75f;
            s.at[i][3] = of_bits(z);
        }
        fetch(&s, cases[n].kernel, texture);
        for (uint32_t i = 0; i < MAX; i++) {
            uint32_t want = i % 8 + (tall ? i / 8 % 4 * 100 : 0) + i % cases[n].planes * 10000;
            if (s.got[i][0] != (float)want)
                FAIL("%s, %u: %g, expected %u", cases[n].kernel, i, (double)s.got[i][0], want);
        }
        CHECK_OK(bh_texture_release(texture));
        CHECK_OK(bh_image_release(image));
    }
    stage_close(&s);
}

TEST(address_modes) {
    stage s;
    stage_open(&s);
    bh_image_shape shape = shape_of(4, 0, 0);
    bh_image image = counted_image(&s, &shape, 1);
    static const float clamp[12] = {0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3};
    static const float wrap[12] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
    static const float mirror[12] = {3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0};
    static const float border[12] = {-1, -1, -1, -1, 0, 1, 2, 3, -1, -1, -1, -1};
    const float *const wanted[] = {clamp, wrap, mirror, border};
    for (uint32_t mode = 0; mode < 4; mode++) {
        bh_texture texture = texture_over(image, BH_SAMPLE_NORMALIZED, mode);
        for (int i = 0; i < 12; i++) s.at[i][0] = ((float)i - 4 + 0.5f) / 4;
        fetch(&s, "fetch_1d", texture);
        for (int i = 0; i < 12; i++)
            if (s.got[i][0] != wanted[mode][i])
                FAIL("mode %u, texel %d: %g", mode, i - 4, (double)s.got[i][0]);
        CHECK_OK(bh_texture_release(texture));
    }
    stage_close(&s);
}

TEST(linear_filter) {
    stage s;
    stage_open(&s);
    bh_image_shape shape = shape_of(8, 4, 0);
    bh_image image = counted_image(&s, &shape, 1);
    bh_texture texture = texture_over(image, BH_SAMPLE_LINEAR, BH_ADDRESS_CLAMP);
    for (int i = 0; i < MAX; i++) {
        s.at[i][0] = 1.5f + (float)i / 16; /* weights are multiples of 1/16: exact */
        s.at[i][1] = 1.75f;
    }
    fetch(&s, "fetch_2d", texture);
    for (int i = 0; i < MAX; i++) CHECK_NEAR(s.got[i][0], 1 + i / 16.0 + 125, 1e-3);
    stage_close(&s);
}

TEST(integers_as_floats_and_as_they_are) {
    stage s;
    stage_open(&s);
    bh_image_shape shape = shape_of(4, 0, 0);
    shape.type = BH_U8;
    shape.channels = 4;
    static const uint8_t texels[4][4] = {
        {0, 255, 51, 102}, {1, 2, 3, 4}, {5, 6, 7, 8}, {9, 9, 9, 9}};
    bh_image image;
    REQUIRE_OK(bh_image_alloc(s.device, &shape, &image));
    REQUIRE_OK(bh_image_write(image, NULL, texels, 0, 0));
    bh_texture texture = texture_over(image, BH_SAMPLE_AS_FLOAT, BH_ADDRESS_CLAMP);
    s.at[0][0] = 0.5f;
    fetch(&s, "fetch_1d", texture);
    CHECK_NEAR(s.got[0][0], 0, 0);
    CHECK_NEAR(s.got[0][1], 1, 0);
    CHECK_NEAR(s.got[0][2], 0.2, 1e-6);
    CHECK_NEAR(s.got[0][3], 0.4, 1e-6);
    CHECK_OK(bh_texture_release(texture));
    texture = texture_over(image, 0, BH_ADDRESS_CLAMP);
    for (uint32_t i = 0; i < 4; i++) s.at[i][0] = (float)i;
    fetch(&s, "fetch_1d", texture);
    for (uint32_t i = 0; i < 4; i++)
        for (int n = 0; n < 4; n++) CHECK_EQ(bits(s.got[i][n]), texels[i][n]);
    stage_close(&s);
}

TEST(levels) {
    stage s;
    stage_open(&s);
    bh_image_shape shape = shape_of(16, 16, 0);
    shape.levels = 5;
    bh_image image;
    REQUIRE_OK(bh_image_alloc(s.device, &shape, &image));
    for (uint32_t level = 0; level < 5; level++) {
        float texels[256];
        bh_image_box box = BH_INIT(box);
        box.level = level;
        for (int i = 0; i < 256; i++) texels[i] = (float)level * 10;
        REQUIRE_OK(bh_image_write(image, &box, texels, 0, 0));
    }
    for (uint32_t mixed = 0; mixed < 2; mixed++) {
        bh_texture texture = texture_over(
            image, BH_SAMPLE_NORMALIZED | (mixed ? BH_SAMPLE_LINEAR_LEVELS : 0), BH_ADDRESS_CLAMP);
        for (int i = 0; i < MAX; i++) {
            s.at[i][0] = s.at[i][1] = 0.4f;
            s.at[i][2] = (float)i / 16 + 1 / 32.0f;
        }
        fetch(&s, "fetch_level", texture);
        for (int i = 0; i < MAX; i++) {
            double level = i / 16.0 + 1 / 32.0;
            CHECK_NEAR(s.got[i][0], mixed ? level * 10 : floor(level + 0.5) * 10, 1e-3);
        }
        CHECK_OK(bh_texture_release(texture));
    }
    stage_close(&s);
}

TEST(faces_of_a_cube) {
    stage s;
    stage_open(&s);
    bh_image_shape shape = shape_of(2, 2, 0);
    shape.flags = BH_IMAGE_CUBE;
    bh_image image = counted_image(&s, &shape, 6);
    bh_texture texture = texture_over(image, BH_SAMPLE_NORMALIZED, BH_ADDRESS_CLAMP);
    for (int face = 0; face < 6; face++) {
        s.at[face][0] = s.at[face][1] = s.at[face][2] = 0.25f;
        s.at[face][face / 2] = face % 2 ? -1 : 1;
    }
    fetch(&s, "fetch_cube", texture);
    for (int face = 0; face < 6; face++) CHECK_EQ((int)s.got[face][0] / 10000, face);
    stage_close(&s);
}

TEST(gather_and_size) {
    stage s;
    stage_open(&s);
    bh_image_shape shape = shape_of(8, 4, 0);
    bh_image image = counted_image(&s, &shape, 1);
    bh_texture texture = texture_over(image, 0, BH_ADDRESS_CLAMP);
    s.at[0][0] = 3;
    s.at[0][1] = 2;
    fetch(&s, "gather_2d", texture);
    static const float around[4] = {202, 203, 103, 102};
    for (int n = 0; n < 4; n++) CHECK_EQ((int)s.got[0][n], (int)around[n]);
    fetch(&s, "size_2d", texture);
    CHECK_EQ(bits(s.got[0][0]), 8);
    CHECK_EQ(bits(s.got[0][1]), 4);
    stage_close(&s);
}

/* ---- over buffers ---- */

static bh_buffer aligned_words(bh_device device, uint64_t count) {
    bh_buffer_options options = BH_INIT(options);
    bh_buffer buffer;
    options.align = 512;
    REQUIRE_OK(bh_buffer_alloc(device, BH_U32, count, &options, &buffer));
    return buffer;
}

TEST(a_buffer_as_a_line) {
    stage s;
    stage_open(&s);
    bh_buffer buffer = aligned_words(s.device, 100);
    uint32_t words[100];
    for (uint32_t i = 0; i < 100; i++) words[i] = i * 3;
    REQUIRE_OK(bh_buffer_write(buffer, 0, words, sizeof words));
    bh_texture texture;
    REQUIRE_OK(bh_texture_create_linear(buffer, BH_U32, 1, NULL, &texture));
    for (uint32_t i = 0; i < MAX; i++) s.at[i][0] = of_bits(i * 2);
    fetch(&s, "fetch_texel", texture);
    for (uint32_t i = 0; i < MAX; i++) CHECK_EQ(bits(s.got[i][0]), i * 2 < 100 ? i * 6 : 0);
    stage_close(&s);
}

TEST(a_buffer_as_rows) {
    stage s;
    stage_open(&s);
    bh_buffer buffer = aligned_words(s.device, 32 * 4);
    float texels[4][32];
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 32; x++) texels[y][x] = (float)(x + 100 * y);
    REQUIRE_OK(bh_buffer_write(buffer, 0, texels, sizeof texels));
    bh_texture texture;
    REQUIRE_OK(bh_texture_create_rows(buffer, BH_F32, 1, 10, 4, 128, NULL, &texture));
    for (int i = 0; i < MAX; i++) {
        s.at[i][0] = (float)(i % 16) + 0.5f;
        s.at[i][1] = (float)(i / 16) + 0.5f;
    }
    fetch(&s, "fetch_2d", texture);
    for (int i = 0; i < MAX; i++)
        CHECK_EQ((int)s.got[i][0], (i % 16 < 10 ? i % 16 : 9) + i / 16 * 100);
    stage_close(&s);
}

/* ---- surfaces ---- */

static bh_image word_image(bh_device device, uint32_t width, uint32_t height, uint32_t flags) {
    bh_image_shape shape = shape_of(width, height, 0);
    bh_image image;
    shape.type = BH_U32;
    shape.flags = flags;
    REQUIRE_OK(bh_image_alloc(device, &shape, &image));
    return image;
}

TEST(a_surface_is_read_and_written) {
    stage s;
    stage_open(&s);
    enum { W = 13, H = 5 };
    uint32_t words[H][W], got[H][W];
    bh_image image = word_image(s.device, W, H, BH_IMAGE_SURFACE);
    bh_surface surface;
    bh_kernel kernel = get_kernel(s.module, "surface_add");
    bh_lane lane = open_lane(s.device);
    for (uint32_t i = 0; i < W * H; i++) words[i / W][i % W] = i;
    REQUIRE_OK(bh_image_write(image, NULL, words, 0, 0));
    REQUIRE_OK(bh_surface_create(image, 0, &surface));
    for (uint32_t i = 0; i < 10; i++) { /* on two lanes in turn, which the library orders */
        bh_launch_options options = on_lane(i % 2 ? lane : (bh_lane){0}, 0);
        (void)submit(kernel, BH_SHAPE(H, 1, 1, 32, 1, 1),
                     BH_ARGS(BH_SURFACE(surface), (uint32_t)W, 100u), &options);
    }
    REQUIRE_OK(bh_image_read(image, NULL, got, 0, 0));
    for (uint32_t i = 0; i < W * H; i++) CHECK_EQ(got[i / W][i % W], i + 1000);
    /* What a surface wrote, a texture reads; and what the host writes in between. */
    bh_texture texture;
    REQUIRE_OK(bh_texture_create(image, NULL, &texture));
    for (uint32_t round = 0; round < 3; round++) {
        bh_image_box box = BH_INIT(box);
        uint32_t value = round * 7;
        box.x = 2;
        box.y = 1;
        box.width = box.height = 1;
        REQUIRE_OK(bh_image_write(image, &box, &value, 0, 0));
        REQUIRE_OK(run_now(kernel, BH_SHAPE(H, 1, 1, 32, 1, 1),
                           BH_ARGS(BH_SURFACE(surface), (uint32_t)W, 1u)));
        s.at[0][0] = 2.5f;
        s.at[0][1] = 1.5f;
        fetch(&s, "fetch_2d", texture);
        CHECK_EQ(bits(s.got[0][0]), value + 1);
    }
    CHECK_OK(bh_surface_release(surface));
    stage_close(&s);
}

TEST(the_memory_of_an_image_is_a_buffer) {
    rig r = rig_open(0);
    bh_image image = word_image(r.device, 8, 8, 0);
    bh_image_info info = BH_INIT(info);
    REQUIRE_OK(bh_image_get_info(image, &info));
    CHECK_EQ(info.bytes, 256);
    CHECK_EQ(info.width, 8);
    CHECK_EQ(info.height, 8);
    CHECK_EQ(info.levels, 1);
    CHECK_EQ(info.suspect, 0);
    CHECK_EQ(info.device.id, r.device.id);
    bh_kernel kernel = get_kernel(load_module(r.device, ptx_textures), "fetch_2d");
    bh_texture texture;
    bh_buffer in, out;
    REQUIRE_OK(bh_texture_create(image, NULL, &texture));
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_F32, 4, NULL, &in));
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_F32, 4, NULL, &out));
    static const float at[4] = {3.5f, 2.5f};
    REQUIRE_OK(bh_buffer_write(in, 0, at, sizeof at));
    for (uint32_t base = 0; base < 3000; base += 1000) { /* a kernel writes it as an array */
        (void)submit(rig_kernel(&r, "iota"), BH_GRID(64, 64),
                     BH_ARGS(BH_OUT(info.buffer), base, 64u), NULL);
        REQUIRE_OK(run_now(kernel, BH_GRID(1, 1),
                           BH_ARGS(BH_TEXTURE(texture), BH_IN(in), BH_OUT(out), 1u)));
        uint32_t got;
        REQUIRE_OK(bh_buffer_read(out, 0, &got, 4));
        CHECK_EQ(got, base + 2 * 8 + 3);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_buffer_of_an_image_is_released_with_it) {
    rig r = rig_open(0);
    bh_image image = word_image(r.device, 8, 8, 0);
    bh_image_info info = BH_INIT(info);
    REQUIRE_OK(bh_image_get_info(image, &info));
    CHECK_REFUSED(bh_buffer_release(info.buffer), BH_E_INVALID);
    CHECK_STR_CONTAINS(bh_last_message(), "belongs to an image");
    CHECK_OK(bh_buffer_retain(info.buffer)); /* a reference of the program's own */
    CHECK_OK(bh_buffer_release(info.buffer));
    CHECK_REFUSED(bh_buffer_release(info.buffer), BH_E_INVALID);
    CHECK_OK(bh_image_get_info(image, &info));
    CHECK_OK(bh_buffer_retain(info.buffer));
    CHECK_OK(bh_image_release(image));
    word_write(info.buffer, 63, 5); /* lives on by that reference */
    CHECK_EQ(word_read(info.buffer, 63), 5);
    CHECK_OK(bh_buffer_release(info.buffer));
    CHECK_REFUSED(bh_buffer_release(info.buffer), BH_E_INVALID);
    CHECK_EQ(memory_of(r.device).buffers, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(prepared_launches_keep_their_textures) {
    stage s;
    stage_open(&s);
    bh_image_shape shape = shape_of(8, 0, 0);
    bh_image image = counted_image(&s, &shape, 1);
    bh_texture texture = texture_over(image, 0, BH_ADDRESS_CLAMP);
    bh_prepared prepared;
    s.at[0][0] = 3.5f;
    REQUIRE_OK(bh_buffer_write(s.in, 0, s.at, sizeof s.at));
    REQUIRE_OK(bh_prepare(get_kernel(s.module, "fetch_1d"), BH_GRID(1, 1),
                          BH_ARGS(BH_TEXTURE(texture), BH_IN(s.in), BH_OUT(s.out), 1u), NULL,
                          &prepared));
    CHECK_REFUSED(launch_changed(prepared, 0, BH_TEXTURE(texture)), BH_E_UNSUPPORTED);
    CHECK_REFUSED(launch_changed(prepared, 0, BH_ARG(UINT64_C(5))), BH_E_UNSUPPORTED);
    CHECK_OK(launch_changed(prepared, 3, BH_ARG(1u)));
    CHECK_OK(bh_texture_release(texture));
    for (int i = 0; i < 3; i++) {
        float texels[8] = {0, 0, 0, (float)i + 1};
        bh_ticket ticket;
        REQUIRE_OK(bh_image_write(image, NULL, texels, 0, 0));
        REQUIRE_OK(bh_prepared_launch(prepared, NULL, 0, &ticket));
        REQUIRE_OK(bh_wait(ticket, LONG_NS));
        REQUIRE_OK(bh_buffer_read(s.out, 0, s.got, 16));
        CHECK_EQ((int)s.got[0][0], i + 1);
    }
    stage_close(&s);
}

/* ---- boxes ---- */

TEST(boxes_with_pitches) {
    bh_device device = open_device();
    bh_image_shape shape = shape_of(6, 5, 4);
    shape.type = BH_U8;
    bh_image image;
    uint8_t all[4][5][6], part[2][4][16], got[4][5][6];
    REQUIRE_OK(bh_image_alloc(device, &shape, &image));
    for (unsigned i = 0; i < sizeof all; i++) (&all[0][0][0])[i] = (uint8_t)i;
    REQUIRE_OK(bh_image_write(image, NULL, all, 0, 0));
    bh_image_box box = BH_INIT(box);
    box.x = 1;
    box.y = 2;
    box.z = 1;
    box.width = 3;
    box.height = 3;
    box.depth = 2;
    memset(part, 0xee, sizeof part);
    REQUIRE_OK(bh_image_read(image, &box, part, 16, 64));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 3; y++) {
            CHECK_MEM_EQ(part[z][y], &all[z + 1][y + 2][1], 3);
            CHECK_EQ(part[z][y][3], 0xee);
        }
    memset(part, 0x55, sizeof part);
    REQUIRE_OK(bh_image_write(image, &box, part, 16, 64));
    for (int z = 1; z < 3; z++)
        for (int y = 2; y < 5; y++) memset(&all[z][y][1], 0x55, 3);
    REQUIRE_OK(bh_image_read(image, NULL, got, 0, 0));
    CHECK_MEM_EQ(got, all, sizeof all);
    bh_image_level level = BH_INIT(level);
    REQUIRE_OK(bh_image_get_level(image, 0, &level));
    CHECK_EQ(level.width, 6);
    CHECK_EQ(level.height, 5);
    CHECK_EQ(level.planes, 4);
    CHECK_EQ(level.pitch, 6);
    CHECK_EQ(level.slice, 30);
    box.width = 6;
    CHECK_REFUSED(bh_image_read(image, &box, part, 16, 64), BH_E_INVALID);
    box.width = 3;
    CHECK_REFUSED(bh_image_read(image, &box, part, 2, 64), BH_E_INVALID);
    CHECK_REFUSED(bh_image_read(image, &box, part, 16, 34), BH_E_INVALID);
    box.level = 1;
    CHECK_REFUSED(bh_image_read(image, &box, part, 16, 64), BH_E_INVALID);
    CHECK_REFUSED(bh_image_get_level(image, 1, &level), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

/* ---- lifetimes and refusals ---- */

TEST(a_texture_keeps_the_memory) {
    stage s;
    stage_open(&s);
    bh_image_shape shape = shape_of(8, 0, 0);
    bh_image image = counted_image(&s, &shape, 1);
    bh_texture texture = texture_over(image, 0, BH_ADDRESS_CLAMP);
    CHECK_OK(bh_image_release(image));
    CHECK_REFUSED(bh_image_write(image, NULL, s.at, 0, 0), BH_E_INVALID);
    for (int i = 0; i < 8; i++) s.at[i][0] = (float)i + 0.5f;
    fetch(&s, "fetch_1d", texture);
    for (int i = 0; i < 8; i++) CHECK_EQ((int)s.got[i][0], i);
    uint64_t buffers = memory_of(s.device).buffers;
    CHECK_OK(bh_texture_release(texture));
    CHECK_OK(bh_device_sync(s.device, LONG_NS));
    CHECK_LE(memory_of(s.device).buffers, buffers);
    CHECK_REFUSED(bh_texture_release(texture), BH_E_INVALID);
    stage_close(&s);
}

TEST(launches_check_their_textures) {
    stage s;
    stage_open(&s);
    bh_image_shape shape = shape_of(8, 0, 0);
    bh_image image = counted_image(&s, &shape, 1);
    bh_texture texture = texture_over(image, 0, BH_ADDRESS_CLAMP);
    bh_kernel kernel = get_kernel(s.module, "fetch_1d");
    bh_surface none = {0};
    CHECK_REFUSED(
        run_now(kernel, BH_GRID(1, 1), BH_ARGS(BH_SURFACE(none), BH_IN(s.in), BH_OUT(s.out), 1u)),
        BH_E_INVALID);
    CHECK_REFUSED(run_now(kernel, BH_GRID(1, 1),
                          BH_ARGS(BH_TEXTURE(texture), BH_TEXTURE(texture), BH_OUT(s.out), 1u)),
                  BH_E_LAUNCH);
    CHECK_REFUSED(
        run_now(kernel, BH_GRID(1, 1),
                BH_ARGS(BH_TEXTURE(texture), BH_IN(s.in), BH_OUT(s.out), BH_TEXTURE(texture))),
        BH_E_LAUNCH);
    bh_sequence sequence;
    REQUIRE_OK(bh_sequence_begin(s.device, NULL, &sequence));
    CHECK_REFUSED(bh_sequence_launch(sequence, kernel, BH_GRID(1, 1),
                                     BH_ARGS(BH_TEXTURE(texture), BH_IN(s.in), BH_OUT(s.out), 1u),
                                     NULL, NULL),
                  BH_E_UNSUPPORTED);
    bh_device other = open_device();
    bh_module module = load_module(other, ptx_textures);
    bh_buffer in = words_alloc(other, 4), out = words_alloc(other, 4);
    CHECK_REFUSED(run_now(get_kernel(module, "fetch_1d"), BH_GRID(1, 1),
                          BH_ARGS(BH_TEXTURE(texture), BH_IN(in), BH_OUT(out), 1u)),
                  BH_E_INVALID);
    CHECK_OK(bh_device_close(other));
    stage_close(&s);
}

TEST(impossible_images_are_refused) {
    bh_device device = open_device();
    bh_image image;
    const struct {
        uint32_t width, height, depth, layers, levels, flags, channels;
        bh_type type;
    } bad[] = {{0, 0, 0, 0, 0, 0, 1, BH_F32},
               {8, 0, 4, 0, 0, 0, 1, BH_F32},
               {8, 8, 4, 2, 0, 0, 1, BH_F32},
               {8, 4, 0, 0, 0, BH_IMAGE_CUBE, 1, BH_F32},
               {8, 8, 0, 0, 5, 0, 1, BH_F32},
               {8, 8, 0, 0, 0, 0, 3, BH_F32},
               {8, 8, 0, 0, 0, 0, 1, BH_F64},
               {8, 8, 0, 0, 0, 0, 1, BH_BF16},
               {8, 8, 0, 0, 0, 64, 1, BH_F32},
               {8, 8, 0, 4096, 0, 0, 1, BH_F32},
               {200000, 0, 0, 0, 0, 0, 1, BH_F32},
               {20000, 8, 8, 0, 0, 0, 1, BH_F32},
               {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0, 4, BH_F32}};
    for (size_t n = 0; n < sizeof bad / sizeof *bad; n++) {
        bh_image_shape shape = BH_INIT(shape);
        shape.type = bad[n].type;
        shape.channels = bad[n].channels;
        shape.width = bad[n].width;
        shape.height = bad[n].height;
        shape.depth = bad[n].depth;
        shape.layers = bad[n].layers;
        shape.levels = bad[n].levels;
        shape.flags = bad[n].flags;
        CHECK_REFUSED(bh_image_alloc(device, &shape, &image), BH_E_INVALID);
    }
    CHECK_REFUSED(bh_image_alloc(device, NULL, &image), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

TEST(impossible_samplings_are_refused) {
    bh_device device = open_device();
    bh_image image = word_image(device, 8, 8, 0);
    bh_texture texture;
    bh_surface surface;
    const struct {
        uint32_t flags, mode, anisotropy;
    } bad[] = {{BH_SAMPLE_LINEAR, 0, 0},
               {BH_SAMPLE_AS_FLOAT, 0, 0},
               {0, BH_ADDRESS_WRAP, 0},
               {0, BH_ADDRESS_MIRROR, 0},
               {0, 9, 0},
               {1u << 20, 0, 0},
               {0, 0, 17},
               {BH_SAMPLE_SRGB, 0, 0}};
    for (size_t n = 0; n < sizeof bad / sizeof *bad; n++) {
        bh_sampling how = BH_INIT(how);
        how.flags = bad[n].flags;
        how.address[1] = bad[n].mode;
        how.anisotropy = bad[n].anisotropy;
        CHECK_REFUSED(bh_texture_create(image, &how, &texture), BH_E_INVALID);
    }
    CHECK_REFUSED(bh_surface_create(image, 0, &surface), BH_E_INVALID);
    bh_buffer buffer = aligned_words(device, 64), view;
    CHECK_REFUSED(bh_texture_create_linear(buffer, BH_F64, 1, NULL, &texture), BH_E_INVALID);
    CHECK_REFUSED(bh_texture_create_linear(buffer, BH_U32, 3, NULL, &texture), BH_E_INVALID);
    CHECK_REFUSED(bh_texture_create_rows(buffer, BH_U32, 1, 16, 8, 32, NULL, &texture),
                  BH_E_INVALID);
    CHECK_REFUSED(bh_texture_create_rows(buffer, BH_U32, 1, 16, 8, 64, NULL, &texture),
                  BH_E_INVALID);
    CHECK_REFUSED(bh_texture_create_rows(buffer, BH_U32, 1, 4, 4, 40, NULL, &texture),
                  BH_E_INVALID);
    REQUIRE_OK(bh_buffer_view(buffer, BH_U32, 1, 32, &view));
    CHECK_REFUSED(bh_texture_create_linear(view, BH_U32, 1, NULL, &texture), BH_E_INVALID);
    CHECK_OK(bh_texture_create_rows(buffer, BH_U32, 1, 16, 4, 64, NULL, &texture));
    CHECK_OK(bh_device_close(device));
}
