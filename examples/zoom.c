/* SPDX-License-Identifier: Apache-2.0 */
/* Enlarges a picture: a texture reads between its texels, a surface takes the result.
 * usage: zoom [DEVICE] */
#include <bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 8, WIDE = 64, HIGH = 32 };

/* In CUDA C++:
 *     __global__ void zoom(cudaTextureObject_t from, cudaSurfaceObject_t to) {
 *         int x = threadIdx.x, y = blockIdx.x;
 *         float u = (x + 0.5f) / blockDim.x, v = (y + 0.5f) / gridDim.x;
 *         surf2Dwrite(tex2D<float>(from, u, v), to, 4 * x, y);
 *     }
 */
static const char ptx[] = ".version 7.0\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry zoom(.param .u64 from, .param .u64 to)\n"
                          "{\n"
                          "    .reg .b32 %x, %y, %n;\n"
                          "    .reg .f32 %u, %v, %size, %c<4>;\n"
                          "    .reg .b64 %from, %to;\n"
                          "    ld.param.u64 %from, [from];\n"
                          "    ld.param.u64 %to, [to];\n"
                          "    mov.u32 %x, %tid.x;\n"
                          "    mov.u32 %n, %ntid.x;\n"
                          "    cvt.rn.f32.u32 %u, %x;\n"
                          "    cvt.rn.f32.u32 %size, %n;\n"
                          "    add.f32 %u, %u, 0f3f000000;\n" /* 0.5: the middle of the texel */
                          "    div.rn.f32 %u, %u, %size;\n"
                          "    mov.u32 %y, %ctaid.x;\n"
                          "    mov.u32 %n, %nctaid.x;\n"
                          "    cvt.rn.f32.u32 %v, %y;\n"
                          "    cvt.rn.f32.u32 %size, %n;\n"
                          "    add.f32 %v, %v, 0f3f000000;\n"
                          "    div.rn.f32 %v, %v, %size;\n"
                          "    tex.2d.v4.f32.f32 {%c0, %c1, %c2, %c3}, [%from, {%u, %v}];\n"
                          "    shl.b32 %x, %x, 2;\n" /* surfaces count bytes along x */
                          "    mov.b32 %n, %c0;\n"
                          "    sust.b.2d.b32.trap [%to, {%x, %y}], {%n};\n"
                          "    ret;\n"
                          "}\n";

static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    bh_error why;
    bh_last_error(&why);
    fprintf(stderr, "error: %s: %s: %s\nFix: %s\n", what, bh_status_name(status), why.message,
            why.fix);
    exit(1);
}

static const char *const drawing[SIZE] = {"        ", " #####  ", " ##  ## ", " #####  ",
                                          " ##  ## ", " ##  ## ", " #####  ", "        "};

static float texel(int x, int y) {
    x = x < 0 ? 0 : x < SIZE ? x : SIZE - 1;
    y = y < 0 ? 0 : y < SIZE ? y : SIZE - 1;
    return drawing[y][x] == '#' ? 1 : 0;
}

/* What the texture should give for a point of the large picture. */
static float expected(int at_x, int at_y) {
    float x = ((float)at_x + 0.5f) * SIZE / WIDE - 0.5f;
    float y = ((float)at_y + 0.5f) * SIZE / HIGH - 0.5f;
    int left = (int)(x + 1) - 1, top = (int)(y + 1) - 1; /* both are above -1 */
    float a = x - (float)left, b = y - (float)top;
    return (1 - b) * ((1 - a) * texel(left, top) + a * texel(left + 1, top)) +
           b * ((1 - a) * texel(left, top + 1) + a * texel(left + 1, top + 1));
}

int main(int argc, char **argv) {
    bh_device_options options = BH_INIT(options);
    options.device = argc > 1 ? argv[1] : "auto";
    bh_device device;
    bh_module mod;
    bh_kernel zoom;
    must(bh_device_open(&options, &device), "open");
    must(bh_module_load(device, ptx, strlen(ptx), &mod), "load");
    must(bh_kernel_get(mod, "zoom", &zoom), "get zoom");

    bh_image_shape shape = BH_INIT(shape);
    bh_image small, large;
    shape.type = BH_F32;
    shape.channels = 1;
    shape.width = shape.height = SIZE;
    must(bh_image_alloc(device, &shape, &small), "make the picture");
    shape.width = WIDE;
    shape.height = HIGH;
    shape.flags = BH_IMAGE_SURFACE; /* kernels write it */
    must(bh_image_alloc(device, &shape, &large), "make the large picture");

    float picture[SIZE][SIZE], result[HIGH][WIDE];
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++) picture[y][x] = texel(x, y);
    must(bh_image_write(small, NULL, picture, 0, 0), "write");

    bh_sampling how = BH_INIT(how); /* coordinates outside are clamped to the edge */
    how.flags = BH_SAMPLE_NORMALIZED | BH_SAMPLE_LINEAR;
    bh_texture from;
    bh_surface to;
    must(bh_texture_create(small, &how, &from), "make a texture");
    must(bh_surface_create(large, 0, &to), "make a surface");

    bh_ticket ticket;
    must(bh_launch(zoom, BH_SHAPE(HIGH, 1, 1, WIDE, 1, 1),
                   BH_ARGS(BH_TEXTURE(from), BH_SURFACE(to)), NULL, &ticket),
         "launch");
    must(bh_wait(ticket, BH_FOREVER), "run zoom");
    must(bh_image_read(large, NULL, result, 0, 0), "read");
    must(bh_device_close(device), "close"); /* images, textures and surfaces go with it */

    int wrong = 0;
    for (int y = 0; y < HIGH; y++) {
        for (int x = 0; x < WIDE; x++) {
            float got = result[y][x], off = got - expected(x, y);
            wrong += !(off > -0.01f && off < 0.01f);
            putchar(" .:-=+*#%@"[got > 0 ? (int)(got * 9) % 10 : 0]);
        }
        putchar('\n');
    }
    printf("%d of %d points wrong\n", wrong, WIDE * HIGH);
    return wrong != 0;
}
