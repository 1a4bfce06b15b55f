/* SPDX-License-Identifier: Apache-2.0 */
/* What images, samplings and tensor maps are possible: checked by the library, and again by
 * workers. */
#include "wire/texture.h"

#include "base/checked.h"

enum {
    LONGEST = 131072,      /* texels of one dimension */
    LONGEST_PARTS = 32768, /* the same with layers, levels or a surface */
    WIDEST = 131072,
    TALLEST = 65536,
    WIDEST_PARTS = 32768,
    DEEPEST = 16384,
    MAX_LAYERS = 2048,
    MAX_CUBES = 341,
    LARGEST_ROWS = 131072,
    TALLEST_ROWS = 65000,
    LARGEST_LINEAR = 1 << 28
};

static const char *channels_wrong(const bh__image_shape *s) {
    if (s->channels != 1 && s->channels != 2 && s->channels != 4)
        return "channels other than 1, 2 or 4";
    if ((s->bits != 8 && s->bits != 16 && s->bits != 32) || s->kind > BH__CHANNEL_FLOAT ||
        (s->kind == BH__CHANNEL_FLOAT && s->bits == 8))
        return "a type that is not BH_U8, BH_I8, BH_U16, BH_I16, BH_U32, BH_I32, BH_F16 or BH_F32";
    return NULL;
}

static const char *size_wrong(const bh__image_shape *s) {
    bool parts = s->layered || s->levels > 1 || s->surface;
    if (s->width == 0) return "a width of 0";
    if (s->dimensions == 1)
        return s->width > (parts ? LONGEST_PARTS : LONGEST) ? "a width that is too large" : NULL;
    if (s->dimensions == 2)
        return s->width > (parts ? WIDEST_PARTS : WIDEST) ||
                       s->height > (parts ? WIDEST_PARTS : TALLEST)
                   ? "a width or height that is too large"
                   : NULL;
    return s->width > DEEPEST || s->height > DEEPEST || s->depth > DEEPEST
               ? "a width, height or depth that is too large"
               : NULL;
}

static const char *planes_wrong(const bh__image_shape *s) {
    if (s->dimensions == 3 && (s->layered || s->cube)) return "a depth and layers or faces";
    if (s->cube && (s->dimensions != 2 || s->width != s->height))
        return "faces of a cube that are not squares";
    if (s->cube)
        return s->planes == 0 || s->planes % 6 != 0 || s->planes / 6 > MAX_CUBES ||
                       (!s->layered && s->planes != 6)
                   ? "too many layers of cubes"
                   : NULL;
    if (s->layered) return s->planes == 0 || s->planes > MAX_LAYERS ? "too many layers" : NULL;
    return s->planes != 1 ? "planes without layers" : NULL;
}

const char *bh__image_shape_wrong(const bh__image_shape *s) {
    const char *wrong = channels_wrong(s);
    if (s->dimensions < 1 || s->dimensions > 3 || s->width == 0 || s->height == 0 ||
        s->depth == 0 || (s->dimensions < 2 && s->height != 1) ||
        (s->dimensions < 3 && s->depth != 1))
        return "dimensions of 0, or in the wrong order";
    if (!wrong) wrong = size_wrong(s);
    if (!wrong) wrong = planes_wrong(s);
    if (wrong) return wrong;
    uint32_t longest = s->width > s->height ? s->width : s->height, levels = 1;
    if (s->depth > longest) longest = s->depth;
    while (longest >> levels) levels++;
    return s->levels == 0 || s->levels > levels || s->levels > BH__IMAGE_LEVELS
               ? "more levels than its largest dimension can be halved"
               : NULL;
}

/* ---- objects of a launch ---- */

static const char *memory_wrong(const bh__launch_object *o) {
    const bh__image_shape *s = &o->shape;
    uint64_t end;
    if (o->kind == BH__OBJECT_LINEAR) {
        if (s->width > LARGEST_LINEAR) return "more than 2^28 texels in a buffer";
        if (o->address % 512) return "an address that is not a multiple of 512";
        return (uint64_t)s->width * bh__texel_bytes(s) > o->bytes
                   ? "texels beyond the end of its memory"
                   : NULL;
    }
    if (o->kind == BH__OBJECT_ROWS) {
        uint64_t row = (uint64_t)s->width * bh__texel_bytes(s);
        if (s->width > LARGEST_ROWS || s->height > TALLEST_ROWS)
            return "more than 131072 x 65000 texels in rows of a buffer";
        if (o->pitch < row || o->pitch % 32 || o->address % 512)
            return "a pitch shorter than a row or not a multiple of 32, or an address that is not "
                   "a multiple of 512";
        return !bh__mul_u64(o->pitch, s->height - 1, &end) || !bh__add_u64(end, row, &end) ||
                       end > o->bytes
                   ? "rows beyond the end of its memory"
                   : NULL;
    }
    return bh__level_place_of(s, s->levels - 1).end > o->bytes
               ? "texels beyond the end of its memory"
               : NULL;
}

static const char *sampling_wrong(const bh__launch_object *o) {
    const bh__image_shape *s = &o->shape;
    const uint32_t known = BH_SAMPLE_NORMALIZED | BH_SAMPLE_LINEAR | BH_SAMPLE_LINEAR_LEVELS |
                           BH_SAMPLE_AS_FLOAT | BH_SAMPLE_SRGB;
    bool normalized = o->flags & BH_SAMPLE_NORMALIZED, as_float = o->flags & BH_SAMPLE_AS_FLOAT;
    bool integers = s->kind != BH__CHANNEL_FLOAT;
    if (o->flags & ~known) return "unknown flags";
    if (as_float && integers && s->bits == 32) return "BH_SAMPLE_AS_FLOAT with 32-bit integers";
    if (o->flags & (BH_SAMPLE_LINEAR | BH_SAMPLE_LINEAR_LEVELS) && integers && !as_float)
        return "a linear filter of integers without BH_SAMPLE_AS_FLOAT";
    if (o->flags & BH_SAMPLE_SRGB && !(as_float && s->kind == BH__CHANNEL_UNSIGNED && s->bits == 8))
        return "BH_SAMPLE_SRGB without BH_U8 and BH_SAMPLE_AS_FLOAT";
    if (!normalized && (s->cube || s->levels > 1))
        return "a cube, or several levels, without BH_SAMPLE_NORMALIZED";
    for (int i = 0; i < 3; i++) {
        uint32_t mode = o->modes[i];
        if (mode > BH_ADDRESS_BORDER) return "an unknown address mode";
        if (!normalized && (mode == BH_ADDRESS_WRAP || mode == BH_ADDRESS_MIRROR))
            return "BH_ADDRESS_WRAP or BH_ADDRESS_MIRROR without BH_SAMPLE_NORMALIZED";
    }
    if (o->anisotropy > 16) return "an anisotropy of more than 16";
    if (!(o->level_min <= o->level_max)) return "a level_min above level_max";
    return NULL;
}

static const char *buffer_wrong(const bh__launch_object *o) {
    const bh__image_shape *s = &o->shape;
    bool linear = o->kind == BH__OBJECT_LINEAR;
    if (s->dimensions != (linear ? 1 : 2) || s->layered || s->cube || s->planes != 1 ||
        s->levels != 1 || s->width == 0 || s->height == 0 || s->depth != 1)
        return "no texels";
    if (linear && o->flags & ~(uint32_t)(BH_SAMPLE_AS_FLOAT | BH_SAMPLE_SRGB))
        return "a filter or normalised coordinates over a buffer";
    return channels_wrong(s);
}

static const char *tensor_wrong(const bh__launch_object *o) {
    uint64_t bytes;
    const char *wrong = bh__tensor_wrong(&o->tensor);
    if (wrong) return wrong;
    if (o->tensor.address != o->address) return "another address than its memory";
    return !bh__tensor_bytes(&o->tensor, &bytes) || bytes > o->bytes
               ? "elements beyond the end of its memory"
               : NULL;
}

const char *bh__launch_object_wrong(const bh__launch_object *o) {
    const char *wrong = NULL;
    if (o->kind == BH__OBJECT_TENSOR) return tensor_wrong(o);
    if (o->kind == BH__OBJECT_TEXTURE || o->kind == BH__OBJECT_SURFACE) {
        wrong = bh__image_shape_wrong(&o->shape);
        if (!wrong && o->level >= o->shape.levels) wrong = "no such level";
        if (!wrong && o->kind == BH__OBJECT_SURFACE && !o->shape.surface)
            wrong = "an image without BH_IMAGE_SURFACE";
        if (!wrong && o->kind == BH__OBJECT_SURFACE && o->shape.cube)
            wrong = "a surface over a cube";
    } else if (o->kind == BH__OBJECT_LINEAR || o->kind == BH__OBJECT_ROWS) {
        wrong = buffer_wrong(o);
    } else {
        return "no known kind";
    }
    if (!wrong) wrong = memory_wrong(o);
    if (!wrong && o->kind != BH__OBJECT_SURFACE) wrong = sampling_wrong(o);
    return wrong;
}
