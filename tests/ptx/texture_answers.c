/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an H200 answered to texture and surface instructions, recorded by tools/ask_textures.py. All
 * must be equal bit for bit, but for what has a bound: see bound_of().
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/half.h"
#include "ptx/texture/texture.h"
#include "support/kernel.h"
#include "test.h"

enum { ROWS = 512, IMAGES = 40, IMAGE_BYTES = 32768, LINE = 65536, SHOWN = 4 };
enum { LEVELS_LESS = 20, LEVELS_MORE = 128 }; /* see bound_of() */

typedef struct image {
    char name[32], format[8];
    unsigned channels, size[3], layers, levels, cube;
    unsigned at[8], bytes[8]; /* of each level, in `texels` */
    uint8_t texels[IMAGE_BYTES];
} image;

static struct {
    uint64_t handle, count;
    uint32_t in[ROWS][8], out[ROWS][4];
    _Alignas(64) uint8_t texels[IMAGE_BYTES];
} m;

static struct {
    FILE *file;
    char line[LINE];
    image images[IMAGES];
    unsigned count;
    uint32_t want[ROWS][4];
    bool right[ROWS];
    unsigned asked;
} r;

static bh__ptx_texture texture;

/* The same kernel as in the tool: eight words for each thread, and four of results. */
static const char head[] = PTX_HEAD
    ".entry k(.param .u64 p) { .reg .b64 %t, %in, %out, %at, %d<9>; .reg .b32 %r<9>, %o<4>;\n"
    ".reg .b32 %i; .reg .f32 %f<9>; .reg .b16 %h<9>; ld.param.u64 %in, [p];\n"
    "ld.global.u64 %t, [%in]; mov.u32 %i, %tid.x; mul.wide.u32 %at, %i, 16;\n"
    "add.u64 %out, %in, %at; add.u64 %in, %out, %at;\n"
    "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in+16];\n"
    "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%in+32];\n"
    "mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3; mov.b32 %f4, %r4;\n"
    "mov.b32 %f5, %r5; mov.b32 %f6, %r6; mov.b32 %f7, %r7; mov.b32 %f8, %r8;\n"
    "mov.b64 %d5, {%r5, %r6}; cvt.u16.u32 %h5, %r5;\n"
    "mov.u32 %o0, 0; mov.u32 %o1, 0; mov.u32 %o2, 0; mov.u32 %o3, 0;\n";
static const char tail[] = "\nst.global.v4.u32 [%out+16400], {%o0, %o1, %o2, %o3}; }\n";
_Static_assert(sizeof m.in + 16 == 16400, "the kernel's results are there");

static const char *moved_to_words(const char *instruction) {
    return strstr(instruction, "{%d0}") != NULL   ? "mov.b64 {%o0, %o1}, %d0;"
           : strstr(instruction, "{%h0}") != NULL ? "cvt.u32.u16 %o0, %h0;"
           : strstr(instruction, "{%h0,") != NULL
               ? "cvt.u32.u16 %o0, %h0; cvt.u32.u16 %o1, %h1; cvt.u32.u16 %o2, %h2;"
                 "cvt.u32.u16 %o3, %h3;"
               : "";
}

static bool next_line(void) {
    if (fgets(r.line, sizeof r.line, r.file) == NULL) {
        return false;
    }
    r.line[strcspn(r.line, "\n")] = 0;
    return true;
}

/* ---- images ---- */

static void read_image(void) {
    REQUIRE(r.count < IMAGES);
    image *i = &r.images[r.count++];
    unsigned at = 0;
    REQUIRE_EQ(sscanf(r.line,
                      "image %31s %7s channels=%u size=%ux%ux%u layers=%u levels=%u cube=%u",
                      i->name, i->format, &i->channels, &i->size[0], &i->size[1], &i->size[2],
                      &i->layers, &i->levels, &i->cube),
               9);
    for (unsigned level = 0; level < i->levels; level++) {
        REQUIRE(next_line());
        i->at[level] = at;
        i->bytes[level] = (unsigned)strlen(r.line) / 2;
        REQUIRE(at + i->bytes[level] <= IMAGE_BYTES);
        for (unsigned n = 0; n < i->bytes[level]; n++, at++) {
            REQUIRE_EQ(sscanf(r.line + 2 * n, "%2hhx", &i->texels[at]), 1);
        }
    }
}

static const image *find_image(const char *name) {
    for (unsigned n = 0; n < r.count; n++) {
        if (strcmp(r.images[n].name, name) == 0) {
            return &r.images[n];
        }
    }
    FAIL("no image %s", name);
    REQUIRE(false);
    return NULL;
}

static unsigned level_size(unsigned size, unsigned level) {
    return size >> level > 0 ? size >> level : 1;
}

/* The descriptor of an image, with the driver's defaults. */
static void describe(const image *i, bool surface) {
    unsigned bits = (unsigned)atoi(i->format + 1);
    texture = (bh__ptx_texture){
        .surface = surface,
        .layered = i->layers > 0,
        .cube = i->cube != 0,
        .dimensions = (uint8_t)(1 + (i->size[1] > 0) + (i->size[2] > 0)),
        .channels = (uint8_t)i->channels,
        .bits = (uint8_t)bits,
        .kind = i->format[0] == 'f'   ? BH__TEXEL_FLOAT
                : i->format[0] == 's' ? BH__TEXEL_SIGNED
                                      : BH__TEXEL_UNSIGNED,
        .layers = i->layers > 0 ? i->layers : 1,
        .levels = i->levels,
    };
    for (unsigned n = 0; n < i->levels; n++) {
        bh__ptx_texture_level *l = &texture.level[n];
        l->address = (uint64_t)(uintptr_t)m.texels + i->at[n];
        l->width = level_size(i->size[0], n);
        l->height = level_size(i->size[1], n);
        l->depth = level_size(i->size[2], n);
        l->pitch = l->width * i->channels * bits / 8;
        l->slice = l->pitch * l->height;
    }
    memcpy(m.texels, i->texels, IMAGE_BYTES);
    m.handle = (uint64_t)(uintptr_t)&texture;
}

/* (mode=... linear=...), as the tool writes the driver's structure. */
static void apply_sampling(const char *text) {
    static const char *const modes[] = {"wrap", "clamp", "mirror", "border"};
    char mode[8];
    unsigned linear, normalized, levels, integer, srgb;
    REQUIRE_EQ(sscanf(text,
                      "(mode=%7s linear=%u normalized=%u levels=%u bias=%f lowest=%f highest=%f "
                      "integer=%u srgb=%u border=%f,%f,%f,%f",
                      mode, &linear, &normalized, &levels, &texture.level_bias, &texture.level_min,
                      &texture.level_max, &integer, &srgb, &texture.border[0], &texture.border[1],
                      &texture.border[2], &texture.border[3]),
               13);
    for (unsigned n = 0; n < 4; n++) {
        if (strcmp(mode, modes[n]) == 0) {
            memset(texture.address, (int)n, sizeof texture.address);
        }
    }
    texture.linear = linear != 0;
    texture.normalized = normalized != 0;
    texture.mip_linear = levels != 0;
    texture.as_float = texture.kind != BH__TEXEL_FLOAT && integer == 0;
    texture.srgb = srgb != 0;
}

/* ---- questions ---- */

static bool run(const char *instruction, unsigned threads) {
    static const bh__ptx_texture *list[1] = {&texture};
    static const bh__ptx_textures all = {list, 1};
    char text[4096];
    kernel k;
    snprintf(text, sizeof text, "%s%s\n%s%s", head, instruction, moved_to_words(instruction), tail);
    if (kernel_open(&k, text, threads, &m, sizeof m) != BH_OK) {
        FAIL("%s: %s", instruction, k.error.message);
        return false;
    }
    k.grid.textures = &all;
    bh__ptx_outcome outcome = kernel_run(&k);
    if (outcome != BH__PTX_DONE) {
        FAIL("%s: %s", instruction, k.fault.text);
    }
    kernel_close(&k);
    return outcome == BH__PTX_DONE;
}

/* Rows of inputs and results up to the next line of another kind. */
static unsigned read_rows(void) {
    unsigned rows = 0;
    long before = ftell(r.file);
    while (next_line() && strstr(r.line, " = ") != NULL) {
        uint32_t *in = m.in[rows], *out = r.want[rows];
        REQUIRE(rows < ROWS);
        r.right[rows] = false;
        REQUIRE_EQ(sscanf(r.line, "%x %x %x %x %x %x %x %x = %x %x %x %x", &in[0], &in[1], &in[2],
                          &in[3], &in[4], &in[5], &in[6], &in[7], &out[0], &out[1], &out[2],
                          &out[3]),
                   12);
        rows++;
        before = ftell(r.file);
    }
    REQUIRE_EQ(fseek(r.file, before, SEEK_SET), 0);
    return rows;
}

/* What is not known of the H200, and by how much the interpreter may differ. */
typedef struct bound {
    bool not_compared;
    bool levels;       /* from LEVELS_LESS to LEVELS_MORE steps of 1 / 256 of a level */
    unsigned channels; /* to which `relative` and `absolute` apply */
    double relative, absolute;
} bound;

/*
 * Which level gradients select. What its table for sRGB has. How it mixes signed bytes, exactly.
 * And an H200 reads zero where an array of one dimension has integer coordinates.
 */
static bound bound_of(const char *instruction) {
    bound b = {.levels = strstr(instruction, "tex.grad") != NULL,
               .not_compared = strstr(instruction, "tex.1d.v4.f32.s32") != NULL};
    if (texture.srgb) {
        b.channels = 3;
        b.relative = texture.linear ? 0 : 0x1p-7;
        b.absolute = texture.linear ? 0x1p-8 : 0;
    } else if (texture.linear && texture.kind == BH__TEXEL_SIGNED && texture.bits == 8) {
        b.channels = 4;
        b.absolute = 1.01 / INT16_MAX;
    }
    return b;
}

static bool accepted(const uint32_t got[4], const uint32_t want[4], const bound *b) {
    for (unsigned n = 0; n < 4; n++) {
        double g = (double)bh__float_of_bits(got[n]), w = (double)bh__float_of_bits(want[n]);
        bool near = n < b->channels && fabs(g - w) <= b->relative * fabs(w) + b->absolute;
        if (got[n] != want[n] && !near) {
            return false;
        }
    }
    return true;
}

/* Rows that were never right. */
static unsigned count_wrong(unsigned rows, const bound *b) {
    unsigned wrong = 0;
    for (unsigned n = 0; n < rows; n++) {
        r.right[n] |= accepted(m.out[n], r.want[n], b);
        wrong += !r.right[n];
    }
    return wrong;
}

static void compare_fetch(const char *question) {
    char name[32], instruction[256];
    const char *how = strchr(question, ' ') + 1;
    bool surface = strncmp(how, "surface ", 8) == 0;
    REQUIRE_EQ(sscanf(question, "%31s", name), 1);
    describe(find_image(name), surface);
    if (!surface) {
        apply_sampling(how);
    }
    snprintf(instruction, sizeof instruction, "%s", surface ? how + 8 : strchr(how, ')') + 2);
    unsigned rows = read_rows();
    bound most = bound_of(instruction);
    if (most.not_compared || !run(instruction, rows)) {
        return;
    }
    unsigned wrong = count_wrong(rows, &most);
    for (int steps = -LEVELS_LESS; most.levels && wrong > 0 && steps <= LEVELS_MORE; steps++) {
        float bias = texture.level_bias;
        texture.level_bias += (float)steps / 256;
        REQUIRE(run(instruction, rows));
        texture.level_bias = bias;
        wrong = count_wrong(rows, &most);
    }
    for (unsigned n = 0, shown = 0; n < rows && shown < SHOWN; n++) {
        const float *f = (const float *)(const void *)m.in[n];
        if (!r.right[n]) {
            shown++;
            FAIL("%s\n    of %g %g %g %u, %g %g %g %g: %x %x %x %x, on the H200 %x %x %x %x",
                 question, (double)f[0], (double)f[1], (double)f[2], m.in[n][3], (double)f[4],
                 (double)f[5], (double)f[6], (double)f[7], m.out[n][0], m.out[n][1], m.out[n][2],
                 m.out[n][3], r.want[n][0], r.want[n][1], r.want[n][2], r.want[n][3]);
        }
    }
    if (wrong > 0) {
        FAIL("%s: %u of %u differ", question, wrong, rows);
    }
    r.asked++;
}

/* One row after the other, each with the image as it was: the bytes that have changed. */
static void compare_store(const char *question) {
    char name[32], instruction[256];
    REQUIRE_EQ(sscanf(question, "%31s %255[^\n]", name, instruction), 2);
    const image *i = find_image(name);
    long before = ftell(r.file);
    while (next_line() && strstr(r.line, " =") != NULL) {
        uint8_t want[IMAGE_BYTES];
        uint32_t *in = m.in[0];
        int used = 0;
        unsigned at, byte;
        REQUIRE_EQ(sscanf(r.line, "%x %x %x %x %x %x %x %x =%n", &in[0], &in[1], &in[2], &in[3],
                          &in[4], &in[5], &in[6], &in[7], &used),
                   8);
        memcpy(want, i->texels, sizeof want);
        for (const char *p = r.line + used; sscanf(p, " %x:%x%n", &at, &byte, &used) == 2;
             p += used) {
            REQUIRE(at < IMAGE_BYTES);
            want[at] = (uint8_t)byte;
        }
        describe(i, true);
        if (run(instruction, 1) && memcmp(want, m.texels, sizeof want) != 0) {
            FAIL("%s: %s", question, r.line);
        }
        before = ftell(r.file);
    }
    REQUIRE_EQ(fseek(r.file, before, SEEK_SET), 0);
    r.asked++;
}

TEST_TIMEOUT(fetches_and_stores_are_those_of_an_h200, 120) {
    char path[4096], question[LINE];
    test_path(path, sizeof path, "%s/tests/ptx/answers/textures.txt", test_source_dir());
    r.file = fopen(path, "r");
    REQUIRE(r.file != NULL);
    while (next_line()) {
        memcpy(question, r.line, sizeof question);
        if (strncmp(question, "image ", 6) == 0) {
            read_image();
        } else if (strncmp(question, "fetch ", 6) == 0) {
            compare_fetch(question + 6);
        } else if (strncmp(question, "store ", 6) == 0) {
            compare_store(question + 6);
        } else {
            CHECK_EQ(question[0], '#');
        }
    }
    fclose(r.file);
    CHECK_GT(r.asked, 400);
}
