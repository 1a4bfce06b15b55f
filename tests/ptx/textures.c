/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tex, tld4 and txq, compared with a plain reference of the formulas in NVIDIA's guide. Products of
 * weights are rounded, see sample_filter.c: texture_answers.c compares every bit.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ptx/half.h"
#include "ptx/texture/texture.h"
#include "support/kernel.h"
#include "test.h"

enum { LANES = 32, IMAGE_BYTES = 1 << 16 };

static struct {
    uint64_t handle, pad;
    uint32_t in[LANES][8]; /* layer or x, y, z; at 16: a level, or other extras */
    uint32_t out[LANES][4];
    _Alignas(64) uint8_t image[IMAGE_BYTES];
} m;

static bh__ptx_texture texture;

/* Loads eight words of the lane to %r1 to %r8, also as %f1 to %f8, and stores %r11 to %r14. */
#define WORK(body)                                                                                 \
    PTX_KERNEL(".reg .b32 %c<32>; .reg .f32 %g<32>; .reg .b64 %tex, %mine;\n"                      \
               "ld.global.u64 %tex, [%out]; mul.wide.u32 %mine, %t, 32;\n"                         \
               "add.u64 %mine, %mine, %out;\n"                                                     \
               "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%mine+16];\n"                              \
               "ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%mine+32];\n"                              \
               "mov.b32 %g1, %r1; mov.b32 %g2, %r2; mov.b32 %g3, %r3; mov.b32 %g4, %r4;\n"         \
               "mov.b32 %g5, %r5; mov.b32 %g6, %r6; mov.b32 %g7, %r7; mov.b32 %g8, %r8;\n" body    \
               "\nmul.wide.u32 %mine, %t, 16; add.u64 %mine, %mine, %out;\n"                       \
               "st.global.v4.b32 [%mine+1040], {%r11, %r12, %r13, %r14};")
#define CHECK_FLOAT(a, b) CHECK_EQ(bh__bits_of_float(a), bh__bits_of_float(b))
#define RESULT            "{%r11, %r12, %r13, %r14}, "

static bh__ptx_outcome run_on(const char *text, bh__ptx_fault *fault) {
    static const bh__ptx_texture *list[1] = {&texture};
    static const bh__ptx_textures all = {list, 1};
    kernel k;
    if (m.handle == 0) m.handle = (uint64_t)(uintptr_t)&texture;
    if (kernel_open(&k, text, LANES, &m, sizeof m) != BH_OK) {
        FAIL("%s", k.error.message);
        return BH__PTX_STOPPED;
    }
    k.grid.textures = &all;
    bh__ptx_outcome outcome = kernel_run(&k);
    if (fault != NULL) *fault = k.fault;
    if (outcome != BH__PTX_DONE && fault == NULL) FAIL("%s", k.fault.text);
    kernel_close(&k);
    return outcome;
}

static void put(unsigned lane, unsigned n, float value) {
    m.in[lane][n] = bh__bits_of_float(value);
}

static float got(unsigned lane, unsigned n) {
    return bh__float_of_bits(m.out[lane][n]);
}

/* An image of floats, one channel; all levels one after the other. */
static void make(unsigned dimensions, uint32_t w, uint32_t h, uint32_t d, uint32_t slices,
                 uint32_t levels) {
    memset(&m, 0, sizeof m);
    texture = (bh__ptx_texture){.dimensions = (uint8_t)dimensions,
                                .channels = 1,
                                .bits = 32,
                                .kind = BH__TEXEL_FLOAT,
                                .address = {1, 1, 1},
                                .levels = levels,
                                .layers = 1,
                                .level_max = 100};
    uint64_t at = (uint64_t)(uintptr_t)m.image;
    for (uint32_t l = 0; l < levels; l++) {
        uint32_t size[3] = {w >> l ? w >> l : 1, h >> l ? h >> l : 1, d >> l ? d >> l : 1};
        bh__ptx_texture_level level = {.address = at,
                                       .pitch = size[0] * 4 + 16,
                                       .width = size[0],
                                       .height = size[1],
                                       .depth = size[2]};
        level.slice = level.pitch * size[1] + 32;
        texture.level[l] = level;
        at += level.slice * size[2] * slices;
    }
    REQUIRE(at <= (uint64_t)(uintptr_t)m.image + sizeof m.image);
    float *f = (float *)(void *)m.image;
    for (unsigned n = 0; n < sizeof m.image / 4; n++) f[n] = (float)((n * 2654435761u) >> 24);
}

/* ---- the reference ---- */

static double texel(unsigned level, unsigned slice, const long i[3]) {
    const bh__ptx_texture_level *l = &texture.level[level];
    long n[3] = {l->width, l->height, l->depth}, at[3] = {0};
    for (unsigned d = 0; d < texture.dimensions; d++) {
        long x = i[d];
        unsigned mode = texture.address[d];
        if (!texture.normalized && mode != BH__ADDRESS_BORDER) mode = BH__ADDRESS_CLAMP;
        if (mode == BH__ADDRESS_BORDER && (x < 0 || x >= n[d])) return texture.border[0];
        if (mode == BH__ADDRESS_CLAMP) x = x < 0 ? 0 : x >= n[d] ? n[d] - 1 : x;
        while (mode == BH__ADDRESS_WRAP && x < 0) x += n[d];
        while (mode == BH__ADDRESS_WRAP && x >= n[d]) x -= n[d];
        while (mode == BH__ADDRESS_MIRROR && (x < 0 || x >= n[d]))
            x = x < 0 ? -1 - x : 2 * n[d] - 1 - x;
        at[d] = x;
    }
    float f;
    memcpy(&f,
           (const uint8_t *)(uintptr_t)l->address + (slice + (unsigned long)at[2]) * l->slice +
               (unsigned long)at[1] * l->pitch + (unsigned long)at[0] * 4,
           4);
    return (double)f;
}

/* tex(x,y,z) = (1-a) tex(i,...) + a tex(i+1,...), one dimension after the other. */
static double mix(unsigned level, unsigned slice, const double u[3], unsigned d, long i[3]) {
    if (d == texture.dimensions) return texel(level, slice, i);
    if (!texture.linear) {
        i[d] = (long)floor(u[d]);
        return mix(level, slice, u, d + 1, i);
    }
    double b = floor((u[d] - 0.5) * 256 + 0.5) / 256; /* 8 bits of fraction */
    long first = (long)floor(b);
    double a = b - (double)first;
    i[d] = first;
    double low = mix(level, slice, u, d + 1, i);
    i[d] = first + 1;
    return (1 - a) * low + a * mix(level, slice, u, d + 1, i);
}

static float reference(unsigned level, unsigned slice, const float at[3]) {
    const bh__ptx_texture_level *l = &texture.level[level];
    double n[3] = {l->width, l->height, l->depth}, u[3];
    long i[3] = {0};
    for (unsigned d = 0; d < 3; d++) u[d] = (double)at[d] * (texture.normalized ? n[d] : 1);
    return (float)mix(level, slice, u, 0, i);
}

/* ---- every shape, filter and address mode ---- */

typedef struct shape {
    const char *text;
    unsigned dimensions, slices;
    bool layered;
} shape;

static const shape shapes[] = {
    {WORK("tex.1d.v4.f32.f32 " RESULT "[%tex, {%g1}];"), 1, 1, false},
    {WORK("tex.2d.v4.f32.f32 " RESULT "[%tex, {%g1, %g2}];"), 2, 1, false},
    {WORK("tex.3d.v4.f32.f32 " RESULT "[%tex, {%g1, %g2, %g3, %g3}];"), 3, 1, false},
    {WORK("tex.a1d.v4.f32.f32 " RESULT "[%tex, {%r4, %g1}];"), 1, 3, true},
    {WORK("tex.a2d.v4.f32.f32 " RESULT "[%tex, {%r4, %g1, %g2, %g2}];"), 2, 3, true}};

static void sweep(const shape *s, uint32_t seed) {
    float at[LANES][3];
    for (unsigned l = 0; l < LANES; l++) {
        for (unsigned d = 0; d < 3; d++) {
            seed = seed * 1664525 + 1013904223;
            /* from -2 to 2 sizes, in steps of 1/1024 */
            at[l][d] = (float)((int)(seed >> 20) - 2048) / 1024 * (texture.normalized ? 1 : 11);
            put(l, d, at[l][d]);
        }
        m.in[l][3] = l % 4; /* the last one is past the layers */
    }
    REQUIRE_EQ(run_on(s->text, NULL), BH__PTX_DONE);
    bool line_with_border = s->dimensions == 1 && !s->layered && texture.linear &&
                            texture.address[1] == BH__ADDRESS_BORDER;
    for (unsigned l = 0; l < LANES; l++) {
        unsigned slice = s->layered ? (l % 4 < 3 ? l % 4 : 2) : 0;
        float want = reference(0, slice, at[l]);
        if (line_with_border)
            want = (want + texture.border[0]) / 2; /* at the edge of its one row */
        float most = !texture.linear || (s->dimensions == 1 && !line_with_border) ? 0
                     : s->dimensions == 3                                         ? 4
                                                                                  : 1;
        if (fabsf(got(l, 0) - want) > most || got(l, 1) != 0 || got(l, 2) != 0 || got(l, 3) != 0)
            FAIL("%u dimensions, mode %u, linear %d, normalised %d, (%g, %g, %g): %g, expected %g",
                 s->dimensions, texture.address[0], texture.linear, texture.normalized,
                 (double)at[l][0], (double)at[l][1], (double)at[l][2], (double)got(l, 0),
                 (double)want);
    }
}

TEST(every_shape_filter_and_address_mode) {
    for (unsigned n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        const shape *s = &shapes[n];
        for (unsigned bits = 0; bits < 16; bits++) {
            make(s->dimensions, 8, 4, 4, s->slices, 1);
            texture.layered = s->layered;
            texture.layers = s->slices;
            texture.border[0] = 77;
            texture.linear = (bits & 1) != 0;
            texture.normalized = (bits & 2) != 0;
            for (unsigned d = 0; d < 3; d++) texture.address[d] = (uint8_t)((bits >> 2) + d) % 4;
            sweep(s, bits * 977 + n);
        }
    }
}

TEST(coordinates_that_are_not_numbers_read_an_edge) {
    make(1, 8, 1, 1, 1, 1);
    static const float odd[4] = {NAN, INFINITY, -INFINITY, 1e30f};
    for (unsigned l = 0; l < LANES; l++) put(l, 0, odd[l % 4]);
    texture.linear = true;
    REQUIRE_EQ(run_on(shapes[0].text, NULL), BH__PTX_DONE);
    const float *f = (const float *)(const void *)m.image;
    CHECK_FLOAT(got(0, 0), f[0]);
    CHECK_FLOAT(got(1, 0), f[7]);
    CHECK_FLOAT(got(2, 0), f[0]);
    CHECK_FLOAT(got(3, 0), f[7]);
}

/* ---- cubes ---- */

/* The major axis, s and t of the six faces, as the guide's table has them. */
static void face_of(const float v[3], unsigned *face, float at[3]) {
    float x = v[0], y = v[1], z = v[2], ax = fabsf(x), ay = fabsf(y), az = fabsf(z), s, t, major;
    if (ax > ay && ax > az) {
        *face = x >= 0 ? 0 : 1;
        major = ax, s = x >= 0 ? -z : z, t = -y;
    } else if (ay > az) {
        *face = y >= 0 ? 2 : 3;
        major = ay, s = x, t = y >= 0 ? z : -z;
    } else {
        *face = z >= 0 ? 4 : 5;
        major = az, s = z >= 0 ? x : -x, t = -y;
    }
    at[0] = (s / major + 1) / 2;
    at[1] = (t / major + 1) / 2;
    at[2] = 0;
}

static void check_cube(const char *text, unsigned layers) {
    for (unsigned linear = 0; linear < 2; linear++) {
        float v[LANES][3];
        make(2, 8, 8, 1, 6 * layers, 1);
        texture.cube = true;
        texture.layered = layers > 1;
        texture.layers = layers;
        texture.normalized = true;
        texture.linear = linear != 0;
        for (unsigned l = 0; l < LANES; l++) {
            static const float minor[4] = {0.375f, -0.625f, 0.8125f, -0.1875f};
            v[l][l % 3] = l % 2 ? -1 : 1;
            v[l][(l + 1) % 3] = minor[l / 3 % 4];
            v[l][(l + 2) % 3] = minor[l / 2 % 4];
            for (unsigned d = 0; d < 3; d++) put(l, d, v[l][d]);
            m.in[l][3] = l % layers;
        }
        REQUIRE_EQ(run_on(text, NULL), BH__PTX_DONE);
        for (unsigned l = 0; l < LANES; l++) {
            unsigned face;
            float at[3];
            face_of(v[l], &face, at);
            CHECK_FLOAT(got(l, 0), reference(0, l % layers * 6 + face, at));
        }
    }
}

TEST(cubes) {
    check_cube(WORK("tex.cube.v4.f32.f32 " RESULT "[%tex, {%g1, %g2, %g3, %g3}];"), 1);
    check_cube(WORK("tex.acube.v4.f32.f32 " RESULT "[%tex, {%r4, %g1, %g2, %g3}];"), 2);
}

/* ---- levels ---- */

TEST(levels_are_selected_and_mixed) {
    static const char text[] = WORK("tex.level.2d.v4.f32.f32 " RESULT "[%tex, {%g1, %g2}], %g5;");
    for (unsigned mixed = 0; mixed < 2; mixed++) {
        make(2, 16, 16, 1, 1, 5);
        texture.normalized = true;
        texture.linear = true;
        texture.mip_linear = mixed != 0;
        texture.level_bias = 0.5f;
        texture.level_max = 3.25f;
        for (unsigned l = 0; l < LANES; l++) {
            put(l, 0, 0.3f);
            put(l, 1, 0.6f);
            put(l, 4, (float)l / 8 - 1);
        }
        REQUIRE_EQ(run_on(text, NULL), BH__PTX_DONE);
        for (unsigned l = 0; l < LANES; l++) {
            static const float at[3] = {0.3f, 0.6f, 0};
            double level = l / 8.0 - 1 + 0.5;
            level = level < 0 ? 0 : level > 3.25 ? 3.25 : level;
            unsigned fine = (unsigned)level, near = (unsigned)floor(level + 0.5);
            double a = level - fine;
            float want = mixed ? (float)((1 - a) * (double)reference(fine, 0, at) +
                                         a * (double)reference(fine + 1, 0, at))
                               : reference(near, 0, at);
            CHECK(fabsf(got(l, 0) - want) <= 4); /* of 255 */
        }
    }
}

TEST(gradients_select_levels) {
    static const char text[] =
        WORK("tex.grad.2d.v4.f32.f32 " RESULT "[%tex, {%g1, %g2}], {%g5, %g6}, {%g7, %g8};");
    static const float at[3] = {0.25f, 0.75f, 0};
    make(2, 16, 16, 1, 1, 5);
    texture.normalized = true;
    for (unsigned l = 0; l < LANES; l++) {
        put(l, 0, at[0]);
        put(l, 1, at[1]);
        put(l, 4 + l % 4, ldexpf(1, (int)(l / 4 % 5)) / 16); /* 1, 2, 4, 8, 16 texels */
    }
    REQUIRE_EQ(run_on(text, NULL), BH__PTX_DONE);
    for (unsigned l = 0; l < LANES; l++) CHECK_FLOAT(got(l, 0), reference(l / 4 % 5, 0, at));
}

TEST(a_fetch_without_level_reads_the_first) {
    static const float at[3] = {0.25f, 0.75f, 0};
    make(2, 16, 16, 1, 1, 5);
    texture.normalized = true;
    for (unsigned l = 0; l < LANES; l++) put(l, 0, at[0]), put(l, 1, at[1]);
    REQUIRE_EQ(run_on(WORK("tex.base.2d.v4.f32.f32 " RESULT "[%tex, {%g1, %g2}];"), NULL),
               BH__PTX_DONE);
    CHECK_FLOAT(got(5, 0), reference(0, 0, at));
}

/* ---- integer coordinates and offsets ---- */

TEST(integer_coordinates) {
    make(2, 8, 4, 1, 1, 1);
    texture.linear = true; /* not used */
    for (unsigned l = 0; l < LANES; l++) {
        m.in[l][0] = l % 12 - 2;
        m.in[l][1] = l / 8;
    }
    REQUIRE_EQ(run_on(WORK("tex.2d.v4.f32.s32 " RESULT "[%tex, {%r1, %r2}];"), NULL), BH__PTX_DONE);
    for (unsigned l = 0; l < LANES; l++) {
        const long i[3] = {(long)(l % 12) - 2, l / 8, 0};
        bool outside = i[0] < 0 || i[0] > 7;
        CHECK_FLOAT(got(l, 0), outside ? 0 : (float)texel(0, 0, i));
    }
}

TEST(offsets_are_texels) {
    make(2, 8, 4, 1, 1, 1);
    for (unsigned l = 0; l < LANES; l++) {
        put(l, 0, (float)(l % 8) + 0.5f);
        put(l, 1, (float)(l / 8) + 0.5f);
    }
    REQUIRE_EQ(run_on(WORK("tex.2d.v4.f32.f32 " RESULT "[%tex, {%g1, %g2}], {-1, 2};"), NULL),
               BH__PTX_DONE);
    for (unsigned l = 0; l < LANES; l++) {
        const long i[3] = {(long)(l % 8) - 1, l / 8 + 2, 0};
        CHECK_FLOAT(got(l, 0), (float)texel(0, 0, i));
    }
}

TEST(gather_reads_four_texels) {
    make(2, 8, 4, 1, 1, 1);
    for (unsigned l = 0; l < LANES; l++) {
        put(l, 0, (float)(l % 8) + 0.75f);
        put(l, 1, (float)(l / 8) + 0.25f);
    }
    REQUIRE_EQ(run_on(WORK("tld4.r.2d.v4.f32.f32 " RESULT "[%tex, {%g1, %g2}];"), NULL),
               BH__PTX_DONE);
    for (unsigned l = 0; l < LANES; l++) {
        long x = l % 8, y = (long)(l / 8) - 1;
        const long at[4][3] = {{x, y + 1, 0}, {x + 1, y + 1, 0}, {x + 1, y, 0}, {x, y, 0}};
        for (unsigned n = 0; n < 4; n++) CHECK_FLOAT(got(l, n), (float)texel(0, 0, at[n]));
    }
}

/* ---- formats ---- */

static void fetch_format(const char *type, uint8_t channels, uint8_t bits, uint8_t kind,
                         bool as_float, const void *texels) {
    char text[4096];
    snprintf(text, sizeof text, "%s", WORK("tex.1d.v4.TYP.s32 " RESULT "[%tex, {%r1}];"));
    memcpy(strstr(text, "TYP"), type, 3);
    make(1, 8, 1, 1, 1, 1);
    texture.channels = channels;
    texture.bits = bits;
    texture.kind = kind;
    texture.as_float = as_float;
    memcpy(m.image, texels, 16);
    REQUIRE_EQ(run_on(text, NULL), BH__PTX_DONE);
}

TEST(formats) {
    static const uint8_t bytes[16] = {0, 255, 128, 1};
    fetch_format("u32", 4, 8, BH__TEXEL_UNSIGNED, false, bytes);
    CHECK_EQ(m.out[0][1], 255);
    CHECK_EQ(m.out[0][2], 128);
    fetch_format("s32", 4, 8, BH__TEXEL_SIGNED, false, bytes);
    CHECK_EQ((int32_t)m.out[0][1], -1);
    CHECK_EQ((int32_t)m.out[0][2], -128);
    fetch_format("f32", 4, 8, BH__TEXEL_UNSIGNED, true, bytes);
    CHECK_FLOAT(got(0, 1), 1.0f);
    CHECK_FLOAT(got(0, 2), (float)(128 / 255.0));
    fetch_format("f32", 4, 8, BH__TEXEL_SIGNED, true, bytes);
    CHECK_FLOAT(got(0, 1), (float)(-1 / 127.0));
    CHECK_FLOAT(got(0, 2), -1.0f);
    static const uint16_t shorts[8] = {65535, 32768};
    fetch_format("f32", 2, 16, BH__TEXEL_UNSIGNED, true, shorts);
    CHECK_FLOAT(got(0, 0), 1.0f);
    CHECK_FLOAT(got(0, 1), (float)(32768 / 65535.0));
    CHECK_FLOAT(got(0, 3), 0.0f); /* alpha that is not there */
    static const uint16_t halves[8] = {0x3c00, 0xc000};
    fetch_format("f32", 2, 16, BH__TEXEL_FLOAT, false, halves);
    CHECK_FLOAT(got(0, 0), 1.0f);
    CHECK_FLOAT(got(0, 1), -2.0f);
    static const uint32_t words[4] = {0xdeadbeef, 0x7f800001}; /* the second: a signalling NaN */
    fetch_format("u32", 1, 32, BH__TEXEL_UNSIGNED, false, words);
    CHECK_EQ(m.out[0][0], 0xdeadbeef);
    CHECK_EQ(m.out[0][3], 0);
    fetch_format("f32", 2, 32, BH__TEXEL_FLOAT, false, words);
    CHECK_EQ(m.out[0][1], 0x7f800001);
}

TEST(srgb_is_made_linear) {
    static const uint8_t bytes[16] = {188, 10, 255, 188};
    make(1, 8, 1, 1, 1, 1);
    texture.channels = 4;
    texture.bits = 8;
    texture.kind = BH__TEXEL_UNSIGNED;
    texture.as_float = texture.srgb = true;
    memcpy(m.image, bytes, 16);
    REQUIRE_EQ(run_on(WORK("tex.1d.v4.f32.s32 " RESULT "[%tex, {%r1}];"), NULL), BH__PTX_DONE);
    CHECK(fabsf(got(0, 0) - 0.5029f) < 0x1p-9f); /* eight digits */
    CHECK(fabsf(got(0, 1) - 10 / 255.0f / 12.92f) < 0x1p-16f);
    CHECK_FLOAT(got(0, 2), 1.0f);
    CHECK_FLOAT(got(0, 3), 188 / 255.0f);
}

TEST(halves_as_results) {
    make(1, 8, 1, 1, 1, 1);
    texture.channels = 4;
    static const float texels[4] = {1.0f, -2.5f, 0.1f, 1e6f};
    memcpy(m.image, texels, sizeof texels);
    REQUIRE_EQ(run_on(WORK("tex.1d.v4.f16.s32 {%h1, %h2, %h3, %h4}, [%tex, {%r1}];"
                           "tex.1d.v2.f16x2.s32 {%r13, %r14}, [%tex, {%r1}];"
                           "mov.b32 %r11, {%h1, %h2}; mov.b32 %r12, {%h3, %h4};"),
                      NULL),
               BH__PTX_DONE);
    CHECK_EQ(m.out[3][0], 0xc1003c00);
    CHECK_EQ(m.out[3][1], 0x7c002e66);
    CHECK_EQ(m.out[3][2], 0xc1003c00);
    CHECK_EQ(m.out[3][3], 0x7c002e66);
}

/* ---- attributes ---- */

TEST(attributes) {
    make(2, 16, 8, 1, 3, 4);
    texture.layered = true;
    texture.layers = 3;
    texture.normalized = true;
    REQUIRE_EQ(run_on(WORK("txq.width.b32 %r11, [%tex]; txq.height.b32 %r12, [%tex];"
                           "txq.array_size.b32 %r13, [%tex]; mov.b32 %r5, 2;"
                           "txq.level.width.b32 %r14, [%tex], %r5;"),
                      NULL),
               BH__PTX_DONE);
    CHECK_EQ(m.out[0][0], 16);
    CHECK_EQ(m.out[0][1], 8);
    CHECK_EQ(m.out[0][2], 3);
    CHECK_EQ(m.out[0][3], 4);
    REQUIRE_EQ(
        run_on(WORK("txq.channel_data_type.b32 %r11, [%tex]; txq.channel_order.b32 %r12, [%tex];"
                    "txq.normalized_coords.b32 %r13, [%tex];"
                    "txq.num_mipmap_levels.b32 %r14, [%tex];"),
               NULL),
        BH__PTX_DONE);
    CHECK_EQ(m.out[0][0], 0x10de);
    CHECK_EQ(m.out[0][1], 0x10b0);
    CHECK_EQ(m.out[0][2], 1);
    CHECK_EQ(m.out[0][3], 4);
}

/* ---- faults and refusals ---- */

TEST(a_wild_handle_is_a_fault) {
    bh__ptx_fault fault;
    static const uint64_t wild[] = {1, 0x1234, UINT64_MAX};
    for (unsigned n = 0; n < 3; n++) {
        make(1, 8, 1, 1, 1, 1);
        m.handle = wild[n];
        CHECK_EQ(run_on(shapes[0].text, &fault), BH__PTX_FAULTED);
        CHECK_STR_CONTAINS(fault.text, "is not the handle of a texture");
    }
    make(1, 8, 1, 1, 1, 1);
    m.handle = (uint64_t)(uintptr_t)&texture + 8;
    CHECK_EQ(run_on(shapes[0].text, &fault), BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(fault.text, "is not the handle of a texture");
}

TEST(another_shape_and_another_kind_are_faults) {
    bh__ptx_fault fault;
    make(2, 8, 8, 1, 1, 1);
    CHECK_EQ(run_on(shapes[0].text, &fault), BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(fault.text, "an instruction for .1d with a texture that is .2d");
    texture.surface = true;
    CHECK_EQ(run_on(shapes[1].text, &fault), BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(fault.text, "is a surface, not a texture");
}

TEST(memory_that_is_gone_is_a_fault) {
    bh__ptx_fault fault;
    make(1, 8, 1, 1, 1, 1);
    texture.level[0].address = 4096;
    CHECK_EQ(run_on(shapes[0].text, &fault), BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(fault.text, "illegal read of 4 bytes");
}

static void check_refused(const char *text, bh_status status, const char *message) {
    bh_error error;
    CHECK_EQ(load_error(text, strlen(text), &error), status);
    CHECK_STR_CONTAINS(error.message, message);
    CHECK(error.fix[0] != 0);
}

TEST(other_forms_are_refused) {
    check_refused(PTX_HEAD ".global .texref t;\n", BH_E_UNSUPPORTED, ".texref variables");
    check_refused(PTX_HEAD ".global .surfref t;\n", BH_E_UNSUPPORTED, ".surfref variables");
    check_refused(PTX_HEAD ".global .samplerref t;\n", BH_E_UNSUPPORTED, ".samplerref variables");
    check_refused(WORK("tex.2d.v4.f32.f32 " RESULT "[%tex, %tex, {%g1, %g2}];"), BH_E_UNSUPPORTED,
                  "separate samplers");
    check_refused(WORK("tex.2d.v4.f32.f32 " RESULT "[%tex, {%g1, %g2}], {1, 2}, %g3;"),
                  BH_E_UNSUPPORTED, "depth textures");
    check_refused(WORK("tex.2d.v4.f32.f32 {%r11, %r12, %r13, %r14}|%p1, [%tex, {%g1, %g2}];"),
                  BH_E_UNSUPPORTED, "parts are missing");
    check_refused(WORK("tex.2dms.v4.f32.s32 " RESULT "[%tex, {%r1, %r2, %r3, %r4}];"),
                  BH_E_UNSUPPORTED, ".2dms");
    check_refused(WORK("txq.filter_mode.b32 %r11, [%tex];"), BH_E_UNSUPPORTED, ".filter_mode");
    check_refused(WORK("istypep.texref %p1, %tex;"), BH_E_UNSUPPORTED, "istypep");
    check_refused(WORK("tex.2d.v4.f32.f32 " RESULT "[%tex, {%g1}];"), BH_E_LOAD, "1 coordinates");
    check_refused(WORK("tex.2d.v4.f32.f32 " RESULT "[%r1, {%g1, %g2}];"), BH_E_LOAD,
                  "not a 64-bit register");
    check_refused(WORK("tex.2d.v4.f32.f32 {%r11, %r12}, [%tex, {%g1, %g2}];"), BH_E_LOAD,
                  "vector of 4");
    check_refused(WORK("tex.2d.v4.f32.f32 " RESULT "[%tex, {%g1, %rd1}];"), BH_E_LOAD,
                  "not a .f32");
    check_refused(WORK("tex.level.2d.v4.f32.f32 " RESULT "[%tex, {%g1, %g2}];"), BH_E_LOAD,
                  "operands are missing");
}
